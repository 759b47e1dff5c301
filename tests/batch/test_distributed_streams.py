"""Streams by part on Spark's workers: one that is killed, one with ticks; all else is test_live_parts.py."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import dotr.spark
from dotr.batch.stream import _hash
from dotr.detect.partitioning import plan_batch
from dotr.errors import EngineError
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from tests.batch.test_local import in_one_process
from tests.batch.test_micro_batches import RULES, SECOND, found, graphs, in_one_go
from tests.batch.test_spark_holds import BY_KEY, HELD, IN_ONE_TASK
from tests.batch.test_stream_operators import DIVIDED
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
    reported = stream.progress()
    assert (reported["mode"], reported["graphs"], reported["watermark"]) == ("distributed", 30, "19")
    assert reported["state"]["Quiet"] > 0
    observed = stream.query.lastProgress["observedMetrics"]["dotr_state"]
    assert observed["state Quiet"] is not None
    assert observed["watermark"] == "19"
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


def test_graphs_out_of_order_meet_and_late_ones_are_counted(tmp_path: Path, spark: Any) -> None:
    """A file a batch; each is shuffled, and the fourth brings a graph for an instant that is closed. What
    Spark shows of its progress counts them.
    """
    random = Random(7)
    rows = graphs()
    (tmp_path / "log").mkdir()
    for number in range(4):
        lines = [
            {"time": at // SECOND, "graph": "".join(f"{s} {p} {o} .\n" for s, p, o in graph)}
            for at, graph in rows[number * 15 : number * 15 + 15]
        ]
        random.shuffle(lines)
        if number == 3:
            lines.append({"time": 3, "graph": "<urn:x:late> <urn:x:smoke> <urn:x:room1> .\n"})
            lines.append({"time": 30, "graph": None})
        path = tmp_path / "log" / f"{number}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    reader = spark.readStream.schema("time bigint, graph string").option("maxFilesPerTrigger", 1)
    rules = RULES[: RULES.index("RULE Quiet")]
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "state"}
    options = {"mode": "distributed", "lateness": "10 s", "on_error": "skip", "once": True, **places}
    stream = dotr.spark.stream(reader.json(str(tmp_path / "log")), text=rules, **options)
    assert stream.wait(LIMIT)
    wanted = in_one_go(graphs(), rules)
    assert wanted
    assert sorted(found(tmp_path).splitlines()) == sorted(wanted.splitlines())
    reported = stream.progress()
    assert (reported["graphs"], reported["late"], reported["refused"]) == (61, 1, 1)
    meta = tmp_path / "state" / "dotr" / "dotr-stream.json"
    meta.write_text(meta.read_text().replace('"version": 3', '"version": 1'))
    with pytest.raises(EngineError, match=r"D5221[\s\S]*version 1"):
        dotr.spark.stream(reader.json(str(tmp_path / "log")), text=rules, **options)


@pytest.mark.parametrize(("lars", "keyed"), [(BY_KEY, True), (IN_ONE_TASK, False)])
def test_what_holds_in_parts_is_what_holds_in_one_process(
    lars: str, keyed: bool, spark: Any, tmp_path: Path
) -> None:
    """Twice with `once`: time ends at a point, and the second run goes on from there."""
    (tmp_path / "rules.dotr").write_text(HELD, encoding="utf-8")
    (tmp_path / "holds.lars").write_text(lars.replace("STEP 1 s", "STEP 10 s"), encoding="utf-8")
    (tmp_path / "log").mkdir()
    lines = []
    for i in range(64):
        value = f'"{20 + i * 7 % 11}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        graph = f"_:o <urn:x:room> <urn:x:r{i % 5}> .\n_:o <urn:x:value> {value} ."
        lines.append(json.dumps({"time": i * i * 37 % 40 + i // 8 * 400, "graph": graph}))
    program = load_program([str(tmp_path / "rules.dotr")], read_rules_text)
    plan = plan_batch(program)
    assert any(group.keys is not None for group in plan.groups) == keyed
    reader = spark.readStream.schema("time bigint, graph string").option("maxFilesPerTrigger", 2)
    options = {"out": tmp_path / "out", "checkpoint": tmp_path / "state", "mode": "distributed"}
    for run in range(2):
        for number in range(run * 4, run * 4 + 4):
            path = tmp_path / "log" / f"{number}.jsonl"
            path.write_text("\n".join(lines[number * 8 : number * 8 + 8]) + "\n", encoding="utf-8")
            os.utime(path, (1_000_000 + number, 1_000_000 + number))
        frame = reader.json(str(tmp_path / "log"))
        rules = tmp_path / "rules.dotr"
        stream = dotr.spark.stream(frame, rules, lateness="40 s", once=True, **options)
        assert stream.wait(LIMIT)
    logs = sorted(map(str, (tmp_path / "log").iterdir()))
    expected = in_one_process(program, [], logs, SourceOptions())
    assert {json.loads(line)["rule"] for line in expected} == {"Begun", "Still", "Counted"}
    assert sorted(found(tmp_path).splitlines()) == expected


@pytest.mark.parametrize("rules", [RULES, DIVIDED])
def test_a_killed_distributed_stream_goes_on_without_a_difference(rules: str, story: Path) -> None:
    """Killed as soon as events of the second batch are there; also where parts hold what lasts of their keys,
    with ends by time, and effects.
    """
    (story / "rules.dotr").write_text(rules, encoding="utf-8")
    expected = in_one_go(graphs(), rules)
    assert {json.loads(line)["rule"] for line in expected.splitlines()} == set(
        re.findall(r"RULE (\w+)", rules)
    )
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
    reported = done.stderr.splitlines()
    assert reported[0] == "dotr: distributed: that was asked for"
    assert len(reported) == 3, "nothing of what Spark's workers print"
    assert reported[-1].startswith("dotr: remembered facts: ")
    assert sorted(found(story).splitlines()) == sorted(expected.splitlines())
