"""The planner of `dotr batch` at sizes that no machine here has: tasks, bytes at the driver, shuffle, skew.

    python -m tests.bench.spark_paper [--graphs 1000000000] [--cores 1000] [--background 10000000] [--json]

Method:  the planner itself runs (packed, lay_out, numbered, bucket) over row groups that are not there; what
         tasks are sent is pickled and measured, and so is what planning allocates. Taken from elsewhere are
         the CPU of a graph in extraction and of a fact in detection (arguments), and what a triple of the
         background takes (python -m tests.bench background).
"""

from __future__ import annotations

import argparse
import json
import pickle
import tracemalloc
from collections.abc import Iterator
from time import process_time

from dotr.batch.log import Piece, Split, packed
from dotr.batch.runs import PARTS, lay_out
from dotr.batch.work import make_job, ship
from dotr.core.deployment import Deployment
from dotr.detect.partitioning import By, bucket
from dotr.events import Clock
from dotr.io.decode.parquet import ROWS
from dotr.lang import parse_program

from .harness import json_line, table

RULES = """PREFIX : <urn:x:>
RULE Alarm
DEFINE { dotr_id a :Alarm ; :in ?room }
FROM Smoke := { SELECT ?room WHERE { ?o :smoke ?room } }
AND LAST Heat := { SELECT ?room WHERE { ?o :heat ?room } } WITHIN 5 min FROM Smoke ON Heat.?room = Smoke.?room
WITH ?room := Smoke.?room
"""
YEAR = 365 * 86_400 * 1_000_000
KEYS = 100_000
BYTES = 70
"""Of a graph of one triple and its time, unpacked."""

MAPPED, IN_DICTS = 42, 121
"""Bytes of a triple of the background in its file, and in the dicts of one process."""

REMEMBERED = 35e6
"""Bytes that the lookups of one process remember, at most."""

WORKERS = 16
"""Python workers of an executor, one executor a machine."""

REPORT = (
    "0123456789abcdef0123456789abcdef.jsonl",
    *('{"Alarm": 123456}', 0, 6, "[]", 0, "[]", "{}"),
    '{"Alarm": [["Smoke", 123456], ["Heat", 123456], ["event", 123456]]}',
    "[[0, 5999, 123456], [0, 4999, 123456]]",
)
"""What a task that writes reports to the driver: a row of WRITTEN_COLUMNS."""

FACT = 14
"""Bytes of a fact with one IRI in the shuffle, compressed as Spark does it (LZ4, blocks of 32 KB), where what
a task gathers goes to 6,000 parts: 11 of them make a bundle. In 12 parts, rooms that repeat: 8.
"""


def row_groups(graphs: int) -> Iterator[Split]:
    """Files of about a hundred row groups each."""
    for number in range(-(-graphs // ROWS)):
        file, group = divmod(number, 100)
        piece = Piece(f"hdfs/archive/part-{file:05}.parquet", group, group + 1, ROWS, ROWS * BYTES)
        yield Split((piece,))


def shares(skew: float, buckets: int) -> list[float]:
    """The share of facts of each bucket, keys falling off as 1/rank^skew."""
    found = [0.0] * buckets
    for rank in range(1, KEYS + 1):
        found[bucket((f"<urn:x:room{rank}>",), (0,), buckets)] += rank**-skew
    total = sum(found)
    return [share / total for share in found]


def paper(graphs: int, cores: int, extracting: float, detecting: float, background: int) -> dict[str, float]:
    """The figures of one size; `extracting` and `detecting` are µs of CPU for a graph and a fact."""
    deployment = Deployment(parse_program(RULES, "r.dotr"))
    tasks = cores * PARTS
    begun = process_time()
    splits = packed(list(row_groups(graphs)), tasks)
    planning = process_time() - begun
    tracemalloc.start()
    packed(list(row_groups(graphs)), tasks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    quantiles = [YEAR * i // tasks for i in range(tasks)]
    layouts = {
        by: lay_out(deployment.partitioning(by), cores, quantiles, YEAR, None) for by in (By.KEY, By.TIME)
    }
    shipped = ship(make_job(deployment, Clock(), layouts[By.TIME]))
    rows = [json.dumps([[p.file, p.first, p.end, p.graphs, p.size] for p in s.pieces]) for s in splits]
    (group,) = layouts[By.TIME].plan.groups
    sliced = layouts[By.TIME].numbered(0)[0]
    cut = layouts[By.KEY].cuts[0]
    ideal = graphs * (extracting + detecting) / cores / 1e6
    heavy = {skew: max(shares(skew, cut.buckets)) * graphs * detecting / 1e6 for skew in (0.0, 0.8, 1.0)}
    return {
        "tasks that read": len(splits),
        "row groups of one": max(piece.end - piece.first for split in splits for piece in split.pieces),
        "planning, s of the driver": planning,
        "planning, MB of the driver": peak / 1e6,
        "what tasks report to the driver, MB": len(pickle.dumps(REPORT)) * tasks / 1e6,
        "list of pieces at the driver, MB": len(pickle.dumps(splits)) / 1e6,
        "pieces sent to one task, bytes": max(map(len, rows)),
        "job sent to one worker, kB": len(shipped.content) / 1e3,
        "parts by key": layouts[By.KEY].numbered(0)[0],
        "parts by time": sliced,
        "seen twice by time": sliced * (group.horizon or 0) / YEAR,
        "shuffle, GB": graphs * FACT / 1e9,
        "background, GB sent to an executor": background * MAPPED / 1e9,
        "background, GB of a machine: mapped": (background * MAPPED + WORKERS * REMEMBERED) / 1e9,
        "background, GB of a machine: in dicts": background * IN_DICTS * WORKERS / 1e9,
        "ideal, s": ideal,
        "heaviest task, s, keys even": heavy[0.0],
        "heaviest task, s, keys as 1/rank^0.8": heavy[0.8],
        "heaviest task, s, keys as 1/rank": heavy[1.0],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.spark_paper", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("--graphs", type=int, default=1_000_000_000)
    parser.add_argument("--cores", type=int, default=1000)
    parser.add_argument("--extracting", type=float, default=20.0, help="CPU of a graph, µs")
    parser.add_argument("--detecting", type=float, default=6.0, help="CPU of a fact, µs")
    parser.add_argument("--background", type=int, default=10_000_000, help="triples of the background")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = paper(options.graphs, options.cores, options.extracting, options.detecting, options.background)
    rows = [{"figure": name, "value": value} for name, value in found.items()]
    print(json_line(found) if options.json else table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
