"""Structured Streaming: a few queries, one of them killed; all else is tested without a JVM beside this."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dotr.spark
from dotr.batch.spark.stream import BatchTrigger
from dotr.batch.spark.stream_frames import start
from dotr.batch.spark.stream_sources import files, from_records
from dotr.batch.stream import StreamOptions
from dotr.cli.main import run
from dotr.core.deployment import Deployment
from dotr.errors import DataError, UsageError
from dotr.events import Clock
from dotr.io.sources import SourceOptions
from dotr.lang import parse_program
from tests.batch.test_micro_batches import RULES, SECOND, found, graphs, in_one_go
from tests.cli.test_show import on_a_terminal, plain

pytestmark = pytest.mark.spark

LIMIT = 240


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """Rules, and a log in twelve files that came one after the other."""
    (tmp_path / "rules.dotr").write_text(RULES, encoding="utf-8")
    (tmp_path / "log").mkdir()
    rows = graphs()
    for number in range(12):
        lines = [
            {"time": at // SECOND, "graph": "".join(f"{s} {p} {o} .\n" for s, p, o in graph)}
            for at, graph in rows[number * 5 : number * 5 + 5]
        ]
        path = tmp_path / "log" / f"{number:02}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    return tmp_path


def frame_of(spark: Any, story: Path) -> Any:
    reader = spark.readStream.schema("time bigint, graph string").option("maxFilesPerTrigger", 3)
    return reader.json(str(story / "log"))


def test_a_stream_writes_what_one_process_prints(story: Path, spark: Any) -> None:
    frame = frame_of(spark, story)
    with pytest.raises(UsageError, match=r"D4129[\s\S]*dotr\.spark\.stream"):
        dotr.spark.detect(frame, story / "rules.dotr")
    folders = {"out": story / "out", "checkpoint": story / "state"}
    with pytest.raises(UsageError, match=r"D4129[\s\S]*dotr\.spark\.detect"):
        dotr.spark.stream(spark.range(3), text=RULES, **folders)
    stream = dotr.spark.stream(frame, story / "rules.dotr", once=True, **folders)
    query = stream.query
    assert stream.wait(LIMIT)
    assert found(story) == in_one_go(graphs())
    reported = stream.progress()
    assert (reported["graphs"], reported["event_time"], reported["watermark"]) == (60, "39", "39")
    assert reported["state"]["Quiet"] > 0
    batches = [dict(batch) for batch in query.recentProgress]
    observed = [batch["observedMetrics"]["dotr"] for batch in batches if batch["numInputRows"]]
    assert sum(metrics.graphs for metrics in observed) == 60
    assert observed[-1].event_time == 39
    state = query.lastProgress["observedMetrics"]["dotr_state"]
    assert (state["watermark"], state["state Quiet"] > 0) == ("38", True)  # 39 is open still
    assert sum(batch["observedMetrics"]["dotr_state"].events for batch in batches) > 0
    assert query.lastProgress["processedRowsPerSecond"] is not None
    assert query.lastProgress["observedMetrics"]["dotr_closed"].late == 0
    assert query.id == query.lastProgress["id"] == stream.query.id
    closed = stream.query.lastProgress["observedMetrics"]["dotr_state"]
    assert closed["watermark"] == "39"


def test_a_bad_graph_ends_a_stream_as_a_diagnostic(story: Path, spark: Any) -> None:
    line = json.dumps({"time": 50, "graph": "nonsense"})
    (story / "log" / "99.jsonl").write_text(f"{line}\n", encoding="utf-8")
    frame = frame_of(spark, story)
    stream = dotr.spark.stream(frame, text=RULES, out=story / "out", checkpoint=story / "state", once=True)
    with pytest.raises(DataError, match="D2001"):
        stream.wait(LIMIT)
    kept = {"out": story / "kept", "checkpoint": story / "other", "on_error": "keep"}
    stream = dotr.spark.stream(frame, text=RULES, once=True, **kept)
    assert stream.wait(LIMIT)
    assert stream.totals.refused == 1
    (letters,) = (story / "kept" / "_letters").iterdir()
    assert json.loads(letters.read_text(encoding="utf-8"))["document"] == "nonsense"


@pytest.mark.parametrize("mode", ["ordered", "distributed"])
def test_a_terminal_shows_how_far_a_stream_is(story: Path, mode: str) -> None:
    places = ("--checkpoint", str(story / "state"), "--out", str(story / "out"))
    rules, log = str(story / "rules.dotr"), str(story / "log")
    options = ("--master", "local[2]", "--mode", mode, "--most", "3", "--once")
    code, shown = on_a_terminal("stream", rules, "--source", "files", log, *places, *options, columns=200)
    assert code == 0
    assert re.search(
        r"\d+ graphs · [\d,]+/s · at \d+, closed up to \d+ · \d+ events · remembered: (Quiet|Alarm) \d+",
        plain(shown),
    ), plain(shown)


def test_records_as_kafka_has_them_are_json_lines(story: Path, spark: Any) -> None:
    """All of the source but its connector; no broker is started here."""
    (story / "records").mkdir()
    log = [line for file in sorted((story / "log").iterdir()) for line in file.read_text().splitlines()]
    records = [
        {"topic": "readings", "partition": i % 3, "offset": i // 3, "value": line}
        for i, line in enumerate([*log[:30], "no JSON", *log[30:]])
    ]
    for number in range(4):
        path = story / "records" / f"{number}.json"
        some = records[number * 16 : number * 16 + 16]
        path.write_text("".join(json.dumps(record) + "\n" for record in some), encoding="utf-8")
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    reader = spark.readStream.schema("topic string, partition int, offset bigint, value string")
    frame = reader.option("maxFilesPerTrigger", 1).json(str(story / "records"))
    frame = frame.withColumn("value", frame.value.cast("binary"))
    source = from_records(frame, SourceOptions(), "keep").graphs(None)
    options = StreamOptions(on_error="keep")
    deployment = Deployment(parse_program(RULES, "rules.dotr"))
    folders = (str(story / "out"), str(story / "state"))
    stream = start("ordered", source, deployment, *folders, options, BatchTrigger(once=True))
    assert stream.wait(LIMIT)
    assert (stream.totals.graphs, stream.totals.refused) == (60, 1)
    assert found(story) == in_one_go(graphs())
    (letters,) = (story / "out" / "_letters").iterdir()
    assert json.loads(letters.read_text(encoding="utf-8"))["document"] == "no JSON"


def test_a_stream_begins_before_there_is_data(story: Path, spark: Any) -> None:
    """A document that cannot be read becomes a letter; the first graph shows how times are written. A later
    start finds that in the documents, and goes on.
    """
    folder, deployment = story / "later", Deployment(parse_program(RULES, "rules.dotr"))
    folder.mkdir()
    folders, options = (str(story / "out"), str(story / "state")), StreamOptions(on_error="keep")
    source = files(spark, str(folder), SourceOptions(), "keep", 3)
    assert source.sampled() is None
    stream = start("ordered", source.graphs(None), deployment, *folders, options, BatchTrigger())
    try:
        (story / "bad.jsonl").write_text("no JSON\n", encoding="utf-8")
        os.utime(story / "bad.jsonl", (999_999, 999_999))  # Spark leaves out what is much older
        (story / "bad.jsonl").rename(folder / "000.jsonl")
        for _ in range(LIMIT):
            if (story / "out" / "_letters").exists():
                break
            assert not stream.wait(1)
        log = sorted((story / "log").iterdir())
        for path in log[:6]:
            path.rename(folder / path.name)
        for _ in range(LIMIT):
            if stream.totals.graphs == 30:
                break
            assert not stream.wait(1)
    finally:
        stream.stop()
    assert stream.state().event_time == "19"
    for path in log[6:]:
        path.rename(folder / path.name)
    clock = source.sampled()
    assert clock == Clock()
    stream = start("ordered", source.graphs(clock), deployment, *folders, options, BatchTrigger(once=True))
    assert stream.wait(LIMIT)
    assert found(story) == in_one_go(graphs())
    (letters,) = (story / "out" / "_letters").iterdir()
    assert json.loads(letters.read_text(encoding="utf-8"))["document"] == "no JSON"


def test_a_killed_stream_goes_on_without_a_difference(story: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Killed as soon as events of the third batch are there: Spark has not noted their end then."""
    arguments = [
        *("stream", story / "rules.dotr", "--source", "files", story / "log", "--most", "1", "--once"),
        *("--checkpoint", story / "state", "--out", story / "out", "--master", "local[1]", "-q"),
    ]
    command = [sys.executable, "-m", "dotr", *map(str, arguments)]
    query = subprocess.Popen(command, start_new_session=True)
    try:
        until = time.monotonic() + LIMIT
        while len(list((story / "out").glob("*.jsonl"))) < 3 and query.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.005)
        assert query.poll() is None, "it ended before it was killed"
    finally:
        os.killpg(query.pid, signal.SIGKILL)  # the JVM with it
        query.wait()
    assert len(list((story / "out").glob("*.jsonl"))) < 12
    subprocess.run(command, check=True, timeout=LIMIT)
    capfd.readouterr()
    assert run(["run", str(story / "rules.dotr"), str(story / "log"), "-q"]) == 0
    assert found(story) == capfd.readouterr().out
