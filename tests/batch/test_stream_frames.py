"""Streams as frames of events: any sink, restarts, other rules on an old checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import dotr.spark
from dotr.errors import DotrError, RefusedError, UsageError
from tests.batch.test_micro_batches import RULES, SECOND, Graphs, graphs, in_one_go

pytestmark = pytest.mark.spark

LIMIT = 240
END = 1_000
MODES = ("ordered", "distributed")


def put(folder: Path, number: int, rows: Graphs) -> None:
    """A file of graphs, which comes after those with smaller numbers."""
    folder.mkdir(exist_ok=True)
    lines = [
        {"time": at // SECOND, "graph": "".join(f"{s} {p} {o} .\n" for s, p, o in graph)}
        for at, graph in rows
    ]
    path = folder / f"{number:03}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    os.utime(path, (1_000_000 + number, 1_000_000 + number))


def log_of(spark: Any, folder: Path, files: int = 1) -> Any:
    reader = spark.readStream.schema("time bigint, graph string").option("maxFilesPerTrigger", files)
    return reader.json(str(folder))


def cut(rows: Graphs, *ends: int) -> list[Graphs]:
    return [rows[start:end] for start, end in zip((0, *ends), (*ends, len(rows)), strict=True)]


def events_in(lines: str) -> list[tuple[str, int, str]]:
    found = [json.loads(line) for line in lines.splitlines()]
    return sorted((event["id"], event["time"], event["rule"]) for event in found)


def events_of(rows: Sequence[Any]) -> list[tuple[str, int, str]]:
    return sorted((row.id, row.time, row["rule"]) for row in rows)


def once(events: Any, place: Path, checkpoint: Path) -> None:
    """Run a query over what is there, with Parquet as the sink."""
    writer = events.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start(str(place))
    assert query.awaitTermination(LIMIT)


@pytest.mark.parametrize("mode", MODES)
def test_a_streaming_frame_gives_the_events_of_one_process(mode: str, spark: Any, tmp_path: Path) -> None:
    """In three queries, one after the other, on one checkpoint; with an empty batch, and rows that come late."""
    rows, log = graphs(), tmp_path / "log"
    first, second, third = cut(rows, 20, 41)
    options = {"text": RULES, "mode": mode, "lateness": "3 s"}
    for number, part in enumerate([first[:11], first[11:]]):
        put(log, number, part)
    once(dotr.spark.stream(log_of(spark, log), **options), tmp_path / "found", tmp_path / "state")
    once(dotr.spark.stream(log_of(spark, log), **options), tmp_path / "found", tmp_path / "state")
    late = (SECOND, [("<urn:x:late>", "<urn:x:smoke>", "<urn:x:room0>")])
    put(log, 2, second)
    put(log, 3, [])
    put(log, 4, [late])
    once(dotr.spark.stream(log_of(spark, log), **options), tmp_path / "found", tmp_path / "state")
    put(log, 5, [*third, (END * SECOND, [("<urn:x:o>", "<urn:x:end>", "<urn:x:o>")])])
    put(log, 6, [((END + 10) * SECOND, [])])
    events = dotr.spark.stream(log_of(spark, log), **options)
    assert events.isStreaming
    once(events, tmp_path / "found", tmp_path / "state")
    found = spark.read.parquet(str(tmp_path / "found"))
    wanted = events_in(in_one_go([*rows, (END * SECOND, [])]))
    got = events_of(found.collect())
    assert [event for event in got if event[1] < 900] == [event for event in wanted if event[1] < 900]
    assert len(got) >= 15
    assert found.schema["bindings"].dataType.simpleString().startswith("struct<")
