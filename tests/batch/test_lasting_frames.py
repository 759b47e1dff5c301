"""Frames of graphs where something lasts: the events and dead letters of one run, in any order of rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import dotr.spark
from dotr.batch.lasting import Slice, lasting_content, make_lasting_job
from dotr.batch.spark.lasting_frames import ParseGraphs, RunInOrder
from dotr.batch.work import Treatment
from dotr.core.deployment import Deployment
from dotr.errors import DataError, DotrError
from dotr.events import Clock, Time
from dotr.io.decode.documents import STREAM_BASE
from dotr.lang import parse_program
from dotr.program import Program
from dotr.rdf.terms import Triple
from tests.batch.test_lasting import PERMITS, RULES, permits, reported
from tests.lasting.histories import UNIT, histories
from tests.lasting.test_engines import _background, _with_schema
from tests.lasting.test_instants import History, Schema, _parts, _schema, whole_programs

Graphs = list[tuple[Time, list[Triple]]]


def text(graph: Sequence[Triple]) -> str:
    return "".join(f"{s} {p} {o} .\n" for s, p, o in graph)


def rows_of(parts: Graphs, seed: int = 1) -> list[tuple[int, str]]:
    """(time in seconds, graph) in another order."""
    rows = [(time // UNIT, text(graph)) for time, graph in parts]
    Random(seed).shuffle(rows)
    return rows


def events_of(lines: Sequence[str]) -> list[str]:
    return sorted(json.loads(line)["id"] for line in lines)


@given(whole_programs(), _background, histories(), _schema)
@settings(max_examples=40, deadline=None)
def test_tasks_of_a_frame_are_one_run(
    program: Program, background: list[Triple], history: History, schema: Schema
) -> None:
    """The functions that the workers run, without Spark."""
    parts: Graphs = []
    for time, part in _parts(_with_schema(history, schema)):
        parts.append((time, part if isinstance(part, list) else list(part.graph or ())))
    try:
        expected, refused = reported(program, background, parts)
    except DotrError:
        return
    if not parts:
        return
    rows = rows_of(parts)
    columns = [pa.array([time for time, _ in rows], pa.int64()), pa.array([graph for _, graph in rows])]
    batch = pa.RecordBatch.from_arrays(columns, ["time", "graph"])
    parsed = pa.Table.from_batches(ParseGraphs(Clock(), STREAM_BASE, True)(iter([batch])))
    ordered = parsed.select(["time", "graph"]).sort_by([("time", "ascending"), ("graph", "ascending")])
    times = [time for time, _ in parts]
    treatment = Treatment(forgiving=True, shared=False)
    deployment = Deployment(program, background)
    content = lasting_content(deployment, Clock(), treatment, min(times), max(times), None)
    job = make_lasting_job(deployment, content)
    run = RunInOrder(job, Slice(tuple(range(len(program.rules)))))
    found = [row for some in run(iter(ordered.to_batches(max_chunksize=3))) for row in some.to_pylist()]
    assert sorted(row["id"] for row in found if row["id"]) == events_of(expected)
    letters = [row["time"] * UNIT for row in found if row["letter"]]
    assert sorted(letters) == refused


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_lasts_on_a_frame_is_that_of_one_run(spark: Any) -> None:
    """Rows in any order and several partitions; with what begins later, ticks and consumption."""
    parts = [(time, part) for time, part in permits(60) if isinstance(part, list)]
    expected = list(map(json.loads, reported(parse_program(RULES + PERMITS), [], parts)[0]))
    frame = spark.createDataFrame(rows_of(parts), "time bigint, graph string").repartition(3)
    with pytest.warns(UserWarning, match="D4126"):
        found = dotr.spark.detect(frame, text=RULES + PERMITS).collect()
    assert sorted((row.time, row.id) for row in found) == sorted((one["time"], one["id"]) for one in expected)
    with pytest.warns(UserWarning, match="D4126"):
        typed = dotr.spark.detect(frame, text=RULES + PERMITS, types="data").collect()
    with pytest.warns(UserWarning, match="D4126"):
        terms = dotr.spark.detect(frame, text=RULES + PERMITS, schema="terms").collect()
    assert sorted(row.id for row in typed) == sorted(row.id for row in terms)
    persons = {row.id: row.bindings["x"] for row in typed if row.bindings["x"] is not None}
    assert {row.id: row.bindings["x"] for row in terms if "x" in row.bindings} == {
        id_: f"<{person}>" for id_, person in persons.items()
    }
    rules = {"Came", "Left", "Once", "Still", "Opened", "Shut", "Costly"}
    assert {row.rule for row in found} == rules
    stamped = frame.selectExpr("timestamp_seconds(time) AS time", "graph")
    with pytest.warns(UserWarning, match="D4126"):
        found = dotr.spark.detect(stamped, text=RULES).selectExpr("unix_seconds(time) AS time", "rule")
    kept = sorted((one["time"], one["rule"]) for one in expected if one["rule"] in RULES)
    assert sorted((row.time, row.rule) for row in found.collect()) == kept


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_a_frame_of_lasting_knowledge_refuses(spark: Any) -> None:
    """A graph that cannot be read, a row without a time, an instant in error, one too far ahead."""
    rules = """PREFIX : <urn:>
ENTAILMENT OWL2RL
HOLD :in FOR 20 s
QUERY In := { SELECT ?x ?y WHERE { ?x :in ?y } }
RULE Came DEFINE { dotr_c a :Came } FROM C := ISTREAM In WITH ?x := C.?x
"""
    a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    disjoint = "<urn:A> <http://www.w3.org/2002/07/owl#disjointWith> <urn:B> ."
    rows = [
        (1, "<urn:p> <urn:in> <urn:r1> ."),
        (2, "nonsense"),
        (None, "<urn:p> <urn:in> <urn:r2> ."),
        (3, f"{disjoint}\n<urn:i> {a} <urn:A> .\n<urn:i> {a} <urn:B> ."),
        (5, "<urn:q> <urn:in> <urn:r2> ."),
        (9_000, "<urn:z> <urn:in> <urn:r2> ."),
    ]
    frame = spark.createDataFrame(rows, "time bigint, graph string")
    with pytest.warns(UserWarning, match="D4126"):
        events, letters = dotr.spark.detect(frame, text=rules, on_error="keep", max_jump="1 h")
    assert [(row.time, row.bindings["x"].value) for row in events.orderBy("time").collect()] == [
        (1, "urn:p"),
        (5, "urn:q"),
    ]
    found = {row.time: json.loads(row.letter)["code"] for row in letters.collect()}
    assert found == {2: "D2001", None: "D2018", 3: "D2601", 9_000: "D2106"}, found
    with pytest.warns(UserWarning, match="D4126"), pytest.raises(DataError, match="D2106"):
        dotr.spark.detect(frame.where("time > 0"), text=rules, max_jump="1 h")
    with pytest.warns(UserWarning, match="D4126"):
        failing = dotr.spark.detect(frame.where("time < 4"), text=rules)
    with pytest.raises(DataError, match="D2001"):
        failing.collect()
