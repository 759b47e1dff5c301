"""The rule of the peers' bench: plain PySpark and dotr find the same alarms, in a log and in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dotr.spark
from tests.bench.columns import Bench
from tests.bench.peer_spark import alarms, readings
from tests.bench.peers_spark import SOURCES

pytestmark = pytest.mark.spark


def test_plain_pyspark_finds_the_events_of_dotr(spark: Any, tmp_path: Path) -> None:
    bench = Bench(tmp_path, 6_000)
    for form, source in SOURCES.items():
        path = str(bench.folder / source)
        plain = alarms(readings(spark, form, path))
        if form == "log":
            log = spark.read.schema("time timestamp, graph string").json(path)
        else:
            log = dotr.spark.graphs(spark.read.parquet(path), mapping=tmp_path / "one.map")
        rules = tmp_path / "one1.dotr"
        events = dotr.spark.detect(log, rules, types={"v": "double", "room": "iri"}, times="distinct")
        rooms = "replace(room, 'http://example.org/room/') AS room"
        found = events.rule("Alarm0").selectExpr("time", rooms, "v AS value")
        rows = sorted(map(tuple, plain.collect()))
        assert sorted(map(tuple, found.collect())) == rows
        assert len(rows) > 500
