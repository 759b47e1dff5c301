"""Frames of any columns become logs on Spark as they do in one process."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dotr
import dotr.spark
from dotr.batch.spark.frames import ReadTable
from dotr.errors import DataError, UsageError
from dotr.events import Clock
from dotr.io.tables.mapping import parse_mapping

pytestmark = pytest.mark.spark

HOT = """PREFIX : <http://example.org/>
RULE Hot DEFINE { dotr_e a :Hot ; :in ?s ; :celsius ?c }
FROM Reading := { SELECT ?s ?c WHERE { ?o :of ?s ; :celsius ?c FILTER(?c > 30) } }
WITH ?s := Reading.?s, ?c := Reading.?c
"""
TEMPLATE = """PREFIX : <http://example.org/>
[] :of <http://example.org/room/{at.room}> ; :celsius {temp}^^xsd:decimal ; :note {note} .
"""
ROWS = [
    (1, ("a b", 1), "31.5", 'x" . <urn:a> <urn:b> <urn:c> .'),
    (2, ("c", 2), "20", None),
    (3, ("c", 2), "41", ""),
]
SCHEMA = "ts bigint, at struct<room:string, floor:int>, temp string, note string"


def test_a_frame_becomes_a_log_whose_events_are_those_of_one_process(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "hot.dotr").write_text(HOT)
    (tmp_path / "r.map").write_text("# time: ts\n" + TEMPLATE)
    frame = spark.createDataFrame(ROWS, SCHEMA)
    log = dotr.spark.graphs(frame, time="ts", template=TEMPLATE)
    assert log.dtypes == [("time", "bigint"), ("graph", "string")]
    assert "urn:a> <urn:b" in log.where("time = 1").collect()[0].graph.replace("\\", "")
    events = dotr.spark.detect(log, tmp_path / "hot.dotr").collect()
    engine = dotr.Engine(tmp_path / "hot.dotr")
    table = frame.toArrow()
    expected = [(event.time, event.id) for event in engine.feed(table, mapping=tmp_path / "r.map")]
    assert sorted((row.time, row.id) for row in events) == sorted(expected)
    assert [time for time, _ in expected] == [1, 3]
    again = dotr.spark.graphs(frame, mapping=tmp_path / "r.map")
    assert sorted(again.collect()) == sorted(log.collect())


def test_timestamps_epochs_and_local_times_are_instants(spark: Any) -> None:
    at = datetime(2026, 7, 1, 10, 0, tzinfo=UTC)
    frame = spark.createDataFrame(
        [(at, int(at.timestamp()), "01/07/2026 12:00")], "stamp timestamp, epoch bigint, text string"
    )
    for time in ("stamp", "epoch|epoch(s)", 'text|datetime("%d/%m/%Y %H:%M", "Europe/Berlin")'):
        log = dotr.spark.graphs(frame, time=time, template="<urn:s> <urn:p> {text} .")
        assert log.dtypes[0] == ("time", "timestamp")
        assert log.selectExpr("unix_micros(time)").collect()[0][0] == at.timestamp() * 1_000_000


def test_times_that_are_no_instant_as_they_stand_are_what_was_chosen(spark: Any) -> None:
    texts = ["2026-10-25 02:30:00.1234567", "2026-03-29 02:30:00"]
    frame = spark.createDataFrame([(text,) for text in texts], "text string")
    iso = {"time": 'text|datetime("iso", "Europe/Berlin")', "template": "<urn:s> <urn:p> {text} ."}
    chosen = {"ambiguous_time": "later", "nonexistent_time": "forward"}
    log = dotr.spark.graphs(frame, **iso, **chosen).selectExpr("unix_micros(time)")
    assert sorted(row[0] for row in log.collect()) == [1_774_746_000_000_000, 1_792_891_800_123_456]
    for refused in ({}, {**chosen, "sub_microsecond": "refuse"}):
        with pytest.raises(DataError):
            dotr.spark.graphs(frame, **iso, **refused).collect()
    with pytest.raises(UsageError, match="D4187"):
        dotr.spark.graphs(frame, **iso, ambiguous_time="infer")


def test_rows_in_error_are_reported_or_kept(spark: Any) -> None:
    frame = spark.createDataFrame([*ROWS, (4, ("c", 2), "warm", None)], SCHEMA)
    log = dotr.spark.graphs(frame, time="ts", template=TEMPLATE)
    with pytest.raises(DataError) as error:
        log.collect()
    assert error.value.diagnostics[0].code == "D2404"
    assert dotr.spark.graphs(frame, time="ts", template=TEMPLATE, on_error="skip").count() == 3
    kept, letters = dotr.spark.graphs(frame, time="ts", template=TEMPLATE, on_error="keep")
    assert kept.count() == 3
    letter = json.loads(letters.collect()[0].letter)
    assert (letter["code"], json.loads(letter["document"])["temp"]) == ("D2404", "warm")


def test_what_is_wrong_with_a_mapping_is_reported_at_once(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS, SCHEMA)
    with pytest.raises(DataError) as error:
        dotr.spark.graphs(frame, time="ts", template="[] <urn:p> {tmep} .")
    assert error.value.diagnostics[0].code == "D2402"
    for given in (
        {"time": "ts"},
        {"template": TEMPLATE},
        {"time": "ts", "template": TEMPLATE, "mapping": "x"},
    ):
        with pytest.raises(UsageError):
            dotr.spark.graphs(frame, **given)


def test_two_kinds_of_time_are_reported() -> None:
    mapping = parse_mapping("# time: ts\n<urn:s> <urn:p> 1 .")
    work = ReadTable(mapping, ("ts",), Clock(integer=False), "", fail=False)
    batch = pa.RecordBatch.from_pydict({"ts": ["2026-07-01T00:00:00Z", "12"]})
    (made,) = work(iter([batch]))
    assert [json.loads(letter)["code"] for letter in made["letter"].to_pylist() if letter] == ["D2102"]
