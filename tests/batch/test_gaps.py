"""Rules that neither key nor horizon cuts are cut where the log has gaps, by either engine."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dotr.spark
from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.time_cuts import Spans, gaps, joined, with_fewer_gaps
from dotr.core.deployment import Deployment
from dotr.core.funnel import Funnel
from dotr.events import Clock
from dotr.io.decode.parquet import ArchiveWriter
from dotr.io.sources import SourceOptions
from dotr.lang import parse_program
from tests.batch.test_local import Serial, in_one_process, output, quiet

RULES = """PREFIX : <urn:x:>
QUERY Smoke := { SELECT ?a { ?a a :Smoke } }
RULE Pair DEFINE { dotr_id a :Pair ; :of ?a , ?b }
FROM Smoke AND FIRST Heat := { SELECT ?b { ?b a :Heat } } WITHIN 5 s FROM Smoke
WITH ?a := Smoke.?a, ?b := Heat.?b CONSUMING Heat
RULE Calm DEFINE { dotr_id a :Calm ; :of ?a }
FROM Smoke AND NOT Calm WITHIN 3 s BEFORE Smoke ON true WITH ?a := Smoke.?a
"""
TICKING = """PREFIX : <urn:x:>
QUERY Smoke := { SELECT ?a { ?a a :Smoke } }
RULE Still DEFINE { dotr_id a :Still ; :of ?a } FROM EVERY 2 s AS Tick AND LAST Smoke WITHIN 6 s FROM Tick
WITH ?a := Smoke.?a
RULE Back DEFINE { dotr_id a :Back ; :of ?a , ?b } FROM Smoke AND LAST Still WITHIN 3 s FROM Smoke
WITH ?a := Smoke.?a, ?b := Still.?a CONSUMING Still
"""
"""Ticks go on finding events 6 s into a gap, and those are looked back to for 3 s."""

SECOND = 1_000_000


def graphs() -> list[tuple[int, str]]:
    """Two hours of a graph every 1 to 3 s, with a pause of 4 to 20 s now and then."""
    random = Random(19)
    time, found = -40, []
    for number in range(3_000):
        time += random.choice([0, 1, 1, 2, 3]) if number % 50 else random.choice([4, 6, 8, 20])
        kind = random.choice(["Smoke", "Heat", "Heat", "Noise"])
        found.append((time, f"<urn:x:o{number}> a <urn:x:{kind}> .".replace(" a ", f" {TYPE} ")))
    return found


TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@pytest.fixture
def log(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """As lines in any order, or as an archive in order of time, whose times nobody would have to read."""
    found = graphs()
    if request.param == "archive":
        path = tmp_path / "log.parquet"
        writer = ArchiveWriter(str(path), Clock(integer=True, unit=SECOND))
        for time, graph in found:
            writer.add(time * SECOND, [tuple(graph.split(" ")[:3])])  # type: ignore[list-item]  # three of them
        writer.close()
    else:
        path = tmp_path / "log.jsonl"
        Random(3).shuffle(found)
        lines = [json.dumps({"time": time, "graph": graph}) + "\n" for time, graph in found]
        path.write_text("".join(lines), encoding="utf-8")
    (tmp_path / "out").mkdir()
    return str(path)


def check(log: str, runner: Any, rules: str = RULES) -> None:
    program = parse_program(rules, "rules.dotr")
    told: dict[str, Funnel] = {}
    expected = in_one_process(program, [], [log], SourceOptions(), told)
    request = Request(Deployment(program), open_log([log], SourceOptions()))
    out = Path(log).parent / "out"
    report = runner.run(request, str(out), quiet)
    assert len(expected) > 500
    assert output(out, report) == expected
    assert report.funnel(program) == told
    assert report.parts > 6


@pytest.mark.parametrize("log", ["lines", "archive"], indirect=True)
@pytest.mark.parametrize("rules", [RULES, TICKING])
def test_local_tasks_begin_behind_gaps(log: str, rules: str) -> None:
    check(log, LocalRunner(4, Serial), rules)


@pytest.mark.parametrize(
    ("old", "new", "gap"),
    [
        ("", "", 12),
        ("LAST Smoke", "NOT Smoke", None),
        ("6 s", "9 s", 18),
    ],
    ids=["ticks find something for so long", "for ever", "for longer"],
)
def test_a_gap_contains_the_ticks_that_may_find_something(old: str, new: str, gap: int | None) -> None:
    rules = TICKING.replace(old, new)
    if new.startswith("NOT"):
        rules = rules.replace("Tick\nWITH ?a := Smoke.?a", "Tick\nWITH ?a := Tick.time", 1)
    plan = Deployment(parse_program(rules)).partitioning()
    assert plan.gap == (None if gap is None else gap * SECOND)


@pytest.mark.spark
@pytest.mark.parametrize("log", ["lines", "archive"], indirect=True)
@pytest.mark.parametrize("rules", [RULES, TICKING])
def test_spark_tasks_begin_behind_gaps(log: str, rules: str, spark: Any) -> None:
    check(log, SparkRunner(), rules)


@pytest.mark.spark
def test_frames_are_cut_behind_gaps(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = [json.dumps({"time": time, "graph": graph}) + "\n" for time, graph in graphs()]
    path.write_text("".join(lines), encoding="utf-8")
    expected = in_one_process(parse_program(RULES, "rules.dotr"), [], [str(path)], SourceOptions())
    frame = spark.createDataFrame(graphs(), "time bigint, graph string").repartition(3)
    with pytest.warns(UserWarning, match=r"D4126[\s\S]*a gap longer than 5 s"):
        found = dotr.spark.detect(frame, text=RULES)
    assert sorted(row.id for row in found.collect()) == sorted(json.loads(line)["id"] for line in expected)
    assert len({row.task for row in found.selectExpr("spark_partition_id() AS task").collect()}) > 1


@given(st.lists(st.integers(-50, 50), min_size=1), st.integers(0, 9), st.integers(0, 5))
def test_gaps_that_are_forgotten_join_spans(times: list[int], stride: int, most: int) -> None:
    spans = joined([(time, time) for time in times], stride)
    fewer = with_fewer_gaps(spans, most)
    assert len(fewer) == min(len(spans), most + 1)
    assert set(gaps(fewer, stride)) <= set(gaps(spans, stride))
    widths = sorted(after - before for before, after in gaps(spans, stride))
    assert (
        sorted(after - before for before, after in gaps(fewer, stride))
        == widths[len(widths) - len(fewer) + 1 :]
    )


def test_a_reader_of_ever_new_times_remembers_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.batch.time_cuts._MANY", 100)
    spans = Spans(5, most=10)
    times = list(range(0, 50_000, 10))
    Random(1).shuffle(times)
    for time in [*times, 70_000, 90_000]:
        spans.add(time)
        assert len(spans._joined) <= 51
    found = list(gaps(spans.joined(), 5))
    assert len(found) <= 10
    assert found[-2:] == [(49_990, 70_000), (70_000, 90_000)]
    assert all(before < after for before, after in pairwise(first for first, _ in found))
