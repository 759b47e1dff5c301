"""What a graph costs in `dotr run`, in `dotr batch --engine local` and on Spark, and what a start costs.

    python -m tests.bench.spark_slopes [--graphs 1000000 3000000] [--triples 1|15] [--upto 10000000]
                                       [--engines run,local,spark] [--cores 2]

Method:  logs as Parquet archives: graphs of one triple (those of spark_stream.py), or CityBench's fifteen
         (those of spark.py, of which a twentieth triggers); every command is a process of its own, started
         as a user starts it. A line through the least and the greatest size gives what a graph costs (the
         slope) and what does not depend on graphs (the fixed part), which a log of 1,000 graphs shows, too;
         `--upto` computes a size that was not run from that line. CPU is that of the command and of all
         below it (processes.py), memory that of the command's own process: on Spark the driver's Python.
         Events are compared as sets. Clock ratios mean nothing on busy cores, so the load is printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from . import spark, spark_stream
from .harness import json_line, machine, table
from .processes import Use, watched

TINY = 1_000
_GROUP = 50_000

LIMITS = {
    "spark": {"CPU slope": 1.4, "clock slope": 0.75, "fixed clock": 15.0},
    "local": {"clock slope": 1 / 1.6},
}
"""By engine, at most, as multiples of `run`; the fixed part in seconds. Of graphs of one triple: the facts of
fifteen are shuffled by key."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one command: what it took; (events, the sum of their hashes)."""

    use: Use
    found: tuple[int, str]


@dataclass(frozen=True, slots=True)
class Work:
    """Rules, the unit of the times of their logs, and (time, N-Triples) of so many graphs."""

    rules: str
    unit: str
    graphs: Callable[[int], Iterator[tuple[int, str]]]


def one_triple(count: int) -> Iterator[tuple[int, str]]:
    for time, (s, p, o) in spark_stream.graphs(count):
        yield time, f"{s} {p} {o} .\n"


def fifteen_triples(count: int) -> Iterator[tuple[int, str]]:
    for time, triples in spark.graphs(count, "even"):
        yield time, "".join([f"{s} {p} {o} .\n" for s, p, o in triples])


WORK = {1: Work(spark_stream.RULES, "us", one_triple), 15: Work(spark.JAM, "ms", fifteen_triples)}
"""By the triples of a graph."""


def write_log(path: Path, work: Work, count: int) -> None:
    log = work.graphs(count)
    schema = pa.schema([("time", pa.int64()), ("graph", pa.string())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while some := list(islice(log, _GROUP)):
            writer.write_table(pa.table([list(column) for column in zip(*some, strict=True)], schema))


def command(engine: str, rules: Path, log: Path, unit: str, out: Path, cores: int) -> list[str]:
    python = [sys.executable, "-m", "dotr"]
    common = [str(rules), str(log), "--time-unit", unit, "-q"]
    if engine == "run":
        return [*python, "run", *common, "-o", str(out / "events.jsonl")]
    more = ["--master", f"local[{cores}]"] if engine == "spark" else []
    return [*python, "batch", *common, "--engine", engine, *more, "--out", str(out / "parts")]


def measured(engine: str, rules: Path, log: Path, unit: str, scratch: Path, cores: int) -> Cost:
    out = scratch / "out"
    out.mkdir()
    use = watched(command(engine, rules, log, unit, out, cores))
    found = spark.fingerprint(sorted(out.rglob("*.jsonl")))
    shutil.rmtree(out)
    return Cost(use, found)


def line(small: Cost, large: Cost, few: int, many: int) -> dict[str, float]:
    """What a graph costs, in µs, and what is fixed, in seconds."""
    found = {}
    for name, a, b in (("CPU", small.use.cpu, large.use.cpu), ("clock", small.use.clock, large.use.clock)):
        slope = (b - a) / (many - few)
        found[f"{name} slope"] = slope * 1e6
        found[f"fixed {name}"] = a - slope * few
    return found


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark_slopes")
    parser.add_argument("--graphs", type=int, nargs="+", default=[1_000_000, 3_000_000], help="two or more")
    parser.add_argument("--triples", type=int, choices=list(WORK), default=1, help="of a graph")
    parser.add_argument("--upto", type=int, default=10_000_000, help="a size that is computed")
    parser.add_argument("--engines", default="run,local,spark")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    return parser


def main() -> int:
    """Print what each engine costs, and which limits hold."""
    given = arguments().parse_args()
    sizes = sorted(given.graphs)
    few, many = sizes[0], sizes[-1]
    engines = given.engines.split(",")
    work = WORK[given.triples]
    scratch = Path(tempfile.mkdtemp(prefix="dotr-slopes-"))
    costs: dict[tuple[str, int], Cost] = {}
    try:
        rules = scratch / "rules.dotr"
        rules.write_text(work.rules, encoding="utf-8")
        (scratch / "background.nt").write_text(spark.BACKGROUND, encoding="utf-8")
        for count in (TINY, *sizes):
            log = scratch / f"{count}.parquet"
            write_log(log, work, count)
            for engine in engines:
                cost = costs[engine, count] = measured(engine, rules, log, work.unit, scratch, given.cores)
                use = cost.use
                print(
                    f"{engine:6} {count:10,} graphs: {use.cpu:6.1f} s of CPU, {use.clock:6.1f} s,"
                    f" {use.memory:4.0f} MB, {cost.found[0]:,} events, load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
            log.unlink()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    same = all(len({costs[engine, count].found for engine in engines}) == 1 for count in (TINY, *sizes))
    lines = {engine: line(costs[engine, few], costs[engine, many], few, many) for engine in engines}
    rows = [
        {
            "engine": engine,
            "CPU µs/graph": found["CPU slope"],
            "clock µs/graph": found["clock slope"],
            "fixed CPU s": found["fixed CPU"],
            "fixed clock s": found["fixed clock"],
            "1,000 graphs, CPU s": costs[engine, TINY].use.cpu,
            "1,000 graphs, clock s": costs[engine, TINY].use.clock,
            "MB": " ".join(f"{costs[engine, size].use.memory:.0f}" for size in sizes),
            f"{given.upto:,}, CPU min": (found["fixed CPU"] + found["CPU slope"] * given.upto / 1e6) / 60,
            f"{given.upto:,}, clock min": (found["fixed clock"] + found["clock slope"] * given.upto / 1e6)
            / 60,
        }
        for engine, found in lines.items()
    ]
    print(table(rows))
    checks = {"the events are the same": same}
    for engine, limits in LIMITS.items() if given.triples == 1 else ():
        for name, limit in limits.items() if engine in lines and "run" in lines else ():
            found = lines[engine][name] / (lines["run"][name] if "slope" in name else 1)
            checks[f"{engine}: {name} {found:.2f} ≤ {limit:.2f}"] = found <= limit
    for check, holds in checks.items():
        print(f"{'holds' if holds else 'FAILS'}  {check}")
    figures = {"triples": given.triples, "graphs": sizes, "rows": rows, "machine": machine()}
    print(json_line({"scenario": "spark slopes", **figures}))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
