"""Batch over what lasts: the events of slices are those of one run, wherever the log is cut and whatever is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Report, Request, Runner
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.work import Treatment
from dotr.core.deployment import Deployment
from dotr.core.funnel import Funnel
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.errors import DotrError
from dotr.events import Clock, GraphOrMessage, Message, Time
from dotr.io.events import format_jsonl, late_line
from dotr.io.sources import SourceOptions
from dotr.lang import parse_program
from dotr.program import Program
from dotr.rdf.terms import Triple, integer
from tests.batch.test_local import Serial, in_one_process, output, quiet
from tests.lasting.histories import UNIT, histories
from tests.lasting.test_engines import _background, _with_schema
from tests.lasting.test_instants import History, Schema, _parts, _schema, whole_programs

RULES = """PREFIX : <urn:>
HOLD :in LATEST FOR 20 s
HOLD :seen FOR 7 s
QUERY In := { SELECT ?x ?y WHERE { ?x :in ?y } }
QUERY Seen := { SELECT ?x WHERE { ?x :seen ?y } }
RULE Came DEFINE { dotr_c a :Came } FROM C := ISTREAM In WITH ?x := C.?x, ?y := C.?y
RULE Left DEFINE { dotr_l a :Left } FROM L := DSTREAM In
AND EACH S := Seen WITHIN 3 s FROM L WITH ?x := L.?x, ?s := S.?x
RULE Once DEFINE { dotr_o a :Once } FROM C := ISTREAM Seen
AND LAST I := In WITHIN 2 s FROM C WITH ?x := C.?x CONSUMING I
RULE Still DEFINE { dotr_s a :Still } FROM EVERY 5 s AS T
AND EACH I := In WITHIN 0 s FROM T WITH ?x := I.?x, ?t := T.time
"""


def reported(
    program: Program, background: Sequence[Triple], parts: Sequence[tuple[Time, GraphOrMessage]]
) -> tuple[list[str], list[Time]]:
    """The sorted lines of one run that sets instants aside, and when it did."""
    refused: list[Time] = []
    pipeline = Pipeline(
        Deployment(program, list(background)),
        PipelineObserver(refused=lambda time, parts, _: refused.extend([time] * len(parts))),
    )
    pipeline.begin(Clock())
    lines: list[str] = []
    for time, part in sorted(parts, key=lambda pair: pair[0]):
        lines += [format_jsonl(event, Clock()) for event in pipeline.push_part(time, part)]
    lines += [format_jsonl(event, Clock()) for event in pipeline.finish()]
    return sorted(lines), sorted(refused)


def funnels_of_run(
    program: Program, background: Sequence[Triple], parts: Sequence[tuple[Time, GraphOrMessage]]
) -> dict[str, Funnel]:
    """How far the rules of one run came that sets instants aside."""
    pipeline = Pipeline(Deployment(program, list(background)), PipelineObserver(refused=lambda *_: None))
    pipeline.begin(Clock())
    for time, part in sorted(parts, key=lambda pair: pair[0]):
        pipeline.push_part(time, part)
    pipeline.finish()
    return pipeline.counters.funnel


def in_slices(
    program: Program,
    background: Sequence[Triple],
    parts: Sequence[tuple[Time, GraphOrMessage]],
    folder: Path,
    length: int | None = 4 * UNIT,
    runner: Runner | None = None,
) -> tuple[list[str], Report]:
    log = folder / "log.jsonl"
    log.write_text("".join(late_line(time, part, Clock()) + "\n" for time, part in parts), "utf-8")
    request = Request(
        Deployment(program, list(background)),
        open_log([str(log)], SourceOptions()),
        slice_length=length,
        treatment=Treatment(forgiving=True),
    )
    report = (runner or LocalRunner(2, Serial)).run(request, str(folder), quiet)
    return output(folder, report), report


@given(whole_programs(), _background, histories(), _schema)
@settings(max_examples=8, deadline=None)
def test_slices_are_one_run(
    program: Program, background: list[Triple], history: History, schema: Schema
) -> None:
    parts = _parts(_with_schema(history, schema))
    try:
        expected, refused = reported(program, background, parts)
    except DotrError:
        return
    with TemporaryDirectory() as folder:
        lines, report = in_slices(program, background, parts, Path(folder))
    assert lines == expected
    assert len(report.letters) == len(refused)
    if not refused:
        assert report.funnel(program) == funnels_of_run(program, background, parts)


def people(count: int) -> list[tuple[Time, GraphOrMessage]]:
    parts: list[tuple[Time, GraphOrMessage]] = []
    for number in range(count):
        who, where = f"<urn:p{number % 7}>", f"<urn:r{number * number % 5}>"
        graph = [(who, "<urn:in>", where)]
        if number % 4 == 0:
            graph.append((who, "<urn:seen>", "<urn:door>"))
        parts.append((number * 2 * UNIT, graph))
    return parts


@pytest.mark.parametrize("length", [None, 17 * UNIT])
def test_a_story_is_the_same_however_it_is_cut(length: int | None, tmp_path: Path) -> None:
    program, parts = parse_program(RULES), people(80)
    expected, _ = reported(program, [], parts)
    lines, report = in_slices(program, [], parts, tmp_path, length)
    assert lines == expected
    assert report.parts > 2
    assert report.funnel(program) == funnels_of_run(program, [], parts)
    assert report.funnel(program)["Left"][-1] == ("EACH S", sum('"Left"' in line for line in lines))
    assert {json.loads(line)["rule"] for line in lines} == {"Came", "Left", "Once", "Still"}


PERMITS = """HOLD :permits FROM :from UNTIL :until
HOLD :costs LATEST FROM :from FOR 25 s
QUERY Permits := { SELECT ?x ?y WHERE { ?x :permits ?y } }
QUERY Costs := { SELECT ?x ?y WHERE { ?x :costs ?y } }
RULE Opened DEFINE { dotr_o a :Opened } FROM O := ISTREAM Permits
AND LAST C := Costs WITHIN 30 s FROM O WITH ?x := O.?x, ?c := C.?y
RULE Shut DEFINE { dotr_s a :Shut } FROM S := DSTREAM Permits WITH ?x := S.?x
RULE Costly DEFINE { dotr_c a :Costs } FROM C := ISTREAM Costs WITH ?x := C.?x, ?y := C.?y
"""


def permits(count: int) -> list[tuple[Time, GraphOrMessage]]:
    """People, with permits and costs that begin later, or have no period."""
    parts = people(count)
    for number in range(0, count, 3):
        time, who = number * 2 + 1, f"<urn:p{number % 4}>"
        start, end = time + number % 11 - 2, time + number % 29 - 1
        graph = [(who, "<urn:from>", integer(start)), (who, "<urn:until>", integer(end))]
        graph.append((who, "<urn:permits>", f"<urn:r{number % 5}>"))
        graph.append((who, "<urn:costs>", integer(number)))
        parts.append((time * UNIT, graph))
        if number % 4 == 0:
            parts.append(((time + 1) * UNIT, Message(None, None, [(who, "<urn:permits>", "<urn:r1>")])))
    return parts


@pytest.mark.parametrize("length", [None, 5 * UNIT, 17 * UNIT])
def test_what_begins_later_begins_in_whichever_slice(length: int | None, tmp_path: Path) -> None:
    program, parts = parse_program(RULES + PERMITS), permits(80)
    expected, _ = reported(program, [], parts)
    lines, report = in_slices(program, [], parts, tmp_path, length)
    assert lines == expected
    assert report.parts > 2
    assert report.funnel(program) == funnels_of_run(program, [], parts)
    assert {json.loads(line)["rule"] for line in lines} >= {"Opened", "Shut", "Costly"}
    assert report.not_held == 4
    assert {finding.code for finding in report.findings} == {"D2603"}


@pytest.mark.spark
def test_a_story_is_the_same_on_spark(spark: Any, tmp_path: Path) -> None:
    parts = permits(60)
    gone = Message(None, None, [("<urn:p3>", "<urn:in>", "<urn:r4>")])
    parts.append((61 * UNIT, gone))
    program = parse_program(RULES + PERMITS)
    expected, _ = reported(program, [], parts)
    lines, report = in_slices(program, [], parts, tmp_path, 23 * UNIT, SparkRunner())
    assert lines == expected
    assert report.parts > 2


def test_messages_make_knowledge_last_that_nothing_declares(tmp_path: Path) -> None:
    program = parse_program(
        "PREFIX : <urn:>\nRULE R DEFINE { dotr_x a :R } FROM S := { SELECT ?x { ?x :in ?y . ?z a :Bell } } "
        "WITH ?x := S.?x"
    )
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"time": 1, "insert": "<urn:a> <urn:in> <urn:r> ."}\n'
        '{"time": 2, "graph": "<urn:b> a <urn:Bell> ."}\n'
        '{"time": 3, "delete": "<urn:a> <urn:in> <urn:r> ."}\n'
        '{"time": 4, "graph": "<urn:b> a <urn:Bell> ."}\n'
    )
    expected = in_one_process(program, [], [str(log)], SourceOptions())
    request = Request(Deployment(program), open_log([str(log)], SourceOptions()), slice_length=UNIT)
    report = LocalRunner(2, Serial).run(request, str(tmp_path), quiet)
    assert output(tmp_path, report) == expected
    assert len(expected) == 1
