"""Streams by part on Spark's workers: one that is killed, one with ticks; all else is test_live_parts.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dotr.spark
from dotr.batch.stream_modes import _hash
from tests.batch.test_micro_batches import found, graphs, in_one_go
from tests.batch.test_streams import LIMIT, frame_of, story

__all__ = ["story"]  # a fixture

pytestmark = pytest.mark.spark


def test_parts_on_workers_find_what_one_process_finds(story: Path, spark: Any) -> None:
    """Twice with `once`, the second time over more; instants are closed, ticks run, nothing comes twice."""
    kept = [story / "log" / f"{number:02}.jsonl" for number in range(6, 12)]
    later = {path: path.read_bytes() for path in kept}
    for path in kept:
        path.unlink()
    options = {"out": story / "out", "checkpoint": story / "state", "mode": "distributed", "once": True}
    stream = dotr.spark.stream(frame_of(spark, story), story / "rules.dotr", **options)
    assert stream.wait(LIMIT)
    assert sorted(found(story).splitlines()) == sorted(in_one_go(graphs()[:30]).splitlines())
    told = stream.progress()
    assert (told["mode"], told["graphs"], told["watermark"]) == ("distributed", 30, "19")
    assert told["state"]["Quiet"] > 0
    observed = stream.query.lastProgress["observedMetrics"]["dotr_state"]
    assert observed["state Quiet"] is not None
    for number, (path, content) in enumerate(later.items()):
        path.write_bytes(content)
        os.utime(path, (2_000_000 + number, 2_000_000 + number))
    stream = dotr.spark.stream(frame_of(spark, story), story / "rules.dotr", **options)
    assert stream.wait(LIMIT)
    assert sorted(found(story).splitlines()) == sorted(in_one_go(graphs()).splitlines())
    times = [line.partition('"time":')[2].partition(",")[0] for line in found(story).splitlines()]
    assert times == sorted(times, key=int)
    hashed = spark.range(-3, 50).selectExpr("id", "hash(id) AS found").collect()
    assert [_hash(row.id) for row in hashed] == [row.found for row in hashed]


def test_a_killed_distributed_stream_goes_on_without_a_difference(
    story: Path,
) -> None:
    """Killed as soon as events of the second batch are there."""
    arguments = [
        *("stream", story / "rules.dotr", "--source", "files", story / "log", "--most", "2", "--once"),
        *("--checkpoint", story / "state", "--out", story / "out", "--master", "local[2]"),
        *("--mode", "distributed"),
    ]
    command = [sys.executable, "-m", "dotr", *map(str, arguments)]
    query = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + LIMIT
        while len(list((story / "out").glob("*.jsonl"))) < 2 and query.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.005)
        assert query.poll() is None, "it ended before it was killed"
    finally:
        os.killpg(query.pid, signal.SIGKILL)  # the JVM with it
        query.wait()
    done = subprocess.run(command, check=True, timeout=LIMIT, capture_output=True, text=True)
    told = done.stderr.splitlines()
    assert told[0] == "dotr: distributed: that was asked for"
    assert len(told) == 3, "nothing of what Spark's workers print"
    assert told[-1].startswith("dotr: remembered facts: ")
    assert sorted(found(story).splitlines()) == sorted(in_one_go(graphs()).splitlines())
