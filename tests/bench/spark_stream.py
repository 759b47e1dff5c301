"""Streams on Spark: graphs a second in warm micro-batches, and whether the events are those of one process.

    python -m tests.bench.spark_stream [--batches 10] [--rows 100000] [--mode distributed|ordered] [--cores 2]
                                       [--phases] [--growing]

Method:  graphs of one triple, half a millisecond apart, 1,000 rooms; one rule keyed by room, by which about a
         fifth become events. A micro-batch is a Parquet file of `--rows` graphs. Warm: the median over the
         batches behind the third, by Spark's own clock. Events are compared with those of the pipeline as a
         set, by the sum of their lines' hashes.
         --growing: nine of ten graphs are a reading of a room of its own, the tenth is smoke in one of the
         rooms before, and WITHIN is an hour: every room is a key that is kept. A row of each batch: the facts
         that are remembered, seconds of CPU, what RocksDB has on disk, the largest Python worker.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import dotr.spark
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.events import Clock
from dotr.io.events import format_jsonl
from dotr.io.time import UNITS
from dotr.lang import parse_program
from dotr.rdf.terms import Triple

from .harness import json_line, machine, table
from .spark import tree

RULES = """PREFIX : <urn:x:>
QUERY Smoke := { SELECT ?room WHERE { ?o :smoke ?room } }
RULE Alarm
DEFINE { dotr_id a :Alarm ; :in ?room ; :after ?n }
FROM Smoke
AND LAST Heat := { SELECT ?room WHERE { ?o :heat ?room } } WITHIN 4 s FROM Smoke ON Heat.?room = Smoke.?room
WITH ?room := Smoke.?room, ?n := Heat.time
"""
ROOMS = 1_000
CLOCK = Clock(integer=True, unit=UNITS["us"])


def graphs(count: int) -> Iterator[tuple[int, Triple]]:
    random = Random(1)
    for i in range(count):
        what = random.choice(("smoke", "heat", "heat", "noise"))
        room = f"<urn:x:room{random.randrange(ROOMS)}>"
        yield i * 500, (f"<urn:x:o{i}>", f"<urn:x:{what}>", room)


def growing(count: int) -> Iterator[tuple[int, Triple]]:
    random = Random(1)
    for i in range(count):
        smoke = i % 10 == 9
        room = random.randrange(i // 10 * 9) if i > 10 and smoke else i // 10 * 9 + i % 10 % 9
        yield i * 500, (f"<urn:x:o{i}>", f"<urn:x:{'smoke' if smoke else 'heat'}>", f"<urn:x:room{room}>")


Log = Callable[[int], Iterator[tuple[int, Triple]]]


def write_log(folder: Path, batches: int, rows: int, made: Log = graphs) -> None:
    folder.mkdir()
    log = made(batches * rows)
    for number in range(batches):
        some = [next(log) for _ in range(rows)]
        texts = [f"{s} {p} {o} .\n" for _, (s, p, o) in some]
        path = folder / f"{number:04}.parquet"
        pq.write_table(pa.table({"time": [time for time, _ in some], "graph": texts}), path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))


class Lines:
    """Owns the count and the sum of the hashes of lines."""

    def __init__(self) -> None:
        self.count = self.sum = 0

    def add(self, line: str) -> None:
        self.count += 1
        self.sum += int.from_bytes(blake2b(line.rstrip("\n").encode(), digest_size=8).digest())


def expected(count: int, rules: str, made: Log) -> Lines:
    pipeline = Pipeline(Deployment(parse_program(rules, "r.dotr")))
    pipeline.begin(CLOCK)
    found = Lines()
    for time, triple in made(count):
        for event in pipeline.push(time, [triple]):
            found.add(format_jsonl(event, CLOCK))
    for event in pipeline.finish():
        found.add(format_jsonl(event, CLOCK))
    return found


def cpu() -> dict[str, float]:
    """Seconds of CPU of this process and all below it: Spark's JVM and the Pythons."""
    found = {"java": 0.0, "driver": 0.0, "workers": 0.0}
    for pid, (name, seconds, _) in tree().items():
        found["java" if name == "java" else "driver" if pid == os.getpid() else "workers"] += seconds
    return found


def held(batch: int, stream: Any, state: Path) -> dict[str, Any]:
    """What a stream keeps after a batch."""
    last = stream.query.lastProgress
    workers = [size for pid, (name, _, size) in tree().items() if "python" in name and pid != os.getpid()]
    size = 0
    for path in state.rglob("*"):
        with suppress(FileNotFoundError):  # Spark removes what it needs no longer
            size += path.stat().st_size
    return {
        "batch": batch,
        "graphs": last["numInputRows"],
        "facts kept": sum(stream.progress()["state"].values()),
        "clock s": last["durationMs"]["triggerExecution"] / 1000,
        "RocksDB MB": sum(one["memoryUsedBytes"] for one in last["stateOperators"]) / 1e6,
        "checkpoint MB": size / 1e6,
        "largest worker MB": max(workers, default=0) / 1e6,
    }


def main() -> None:
    """Print one row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--mode", default="distributed")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--phases", action="store_true", help="what Spark says of every batch")
    parser.add_argument("--growing", action="store_true", help="every graph has a key of its own")
    parser.add_argument("--conf", action="append", default=[], help="a setting of Spark, K=V")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dotr-stream-"))
    try:
        made, rules = (
            (growing, RULES.replace("WITHIN 4 s", "WITHIN 1 h")) if given.growing else (graphs, RULES)
        )
        write_log(folder / "log", given.batches, given.rows, made)
        conf = dict(setting.split("=", 1) for setting in given.conf)
        spark = dotr.spark.session(f"local[{given.cores}]", **conf)
        reader = spark.readStream.schema("time bigint, graph string").option("maxFilesPerTrigger", 1)
        stream = dotr.spark.stream(
            reader.parquet(str(folder / "log")),
            text=rules,
            out=folder / "out",
            checkpoint=folder / "state",
            time_unit="us",
            once=True,
            mode=given.mode,
        )
        used: list[tuple[int, dict[str, float]]] = []
        grown: list[dict[str, Any]] = []
        while not stream.query.awaitTermination(0.2):
            last = stream.query.lastProgress
            if last is not None and (not used or used[-1][0] != last["batchId"]):
                used.append((last["batchId"], cpu()))
                if given.growing:
                    grown.append(held(last["batchId"], stream, folder / "state"))
        reported = [dict(p) for p in stream.query.recentProgress if p["numInputRows"] >= given.rows]
        stream.wait()
        work = {
            number: {name: round(after[name] - before[name], 1) for name in after}
            for (_, before), (number, after) in pairwise(used)
        }
        if given.phases:
            for one in reported:
                print(one["batchId"], one["numInputRows"], one["durationMs"], work.get(one["batchId"]))
        if grown:
            for row in grown:
                row["CPU s"] = sum(work.get(row["batch"], {}).values())
            print(table(grown))
        rates = [one["numInputRows"] / one["durationMs"]["triggerExecution"] * 1000 for one in reported]
        found = Lines()
        for path in (folder / "out").glob("*.jsonl"):
            with open(path, encoding="utf-8") as lines:
                for line in lines:
                    found.add(line)
        wanted = expected(given.batches * given.rows, rules, made)
        same = (found.count, found.sum) == (wanted.count, wanted.sum)
        print(
            json_line(
                {
                    "mode": given.mode,
                    "graphs": given.batches * given.rows,
                    "events": found.count,
                    "same": same,
                    "warm graphs/s": round(median(rates[3:] or rates)),
                    "warm seconds of CPU": round(
                        median([sum(w.values()) for w in work.values()][2:-1] or [0.0]), 2
                    ),
                    "all": [round(rate) for rate in rates],
                    **machine(),
                }
            )
        )
        spark.stop()
        if not same:
            raise SystemExit(f"{found.count} events, {wanted.count} were expected")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
