"""What a graph costs in `dotr run`, in `dotr batch --engine local` and on Spark, and what a start costs.

    python -m tests.bench.spark_slopes [--graphs 1000000 3000000] [--engines run,local,spark] [--cores 2]

Method:  logs of one-triple graphs (those of spark_stream.py) as Parquet archives; every command is a process
         of its own, started as a user starts it. A line through the two sizes gives what a graph costs (the
         slope) and what does not depend on graphs (the fixed part), which a log of 1,000 graphs shows, too.
         CPU is that of the command and of all below it, read from /proc every 50 ms: Spark's daemon for
         Python does not wait for its workers, so what the system sums up lacks them. Events are compared as
         sets. Under 8 minutes on two quiet cores; clock ratios mean nothing on busy ones, so the load is
         printed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic, sleep

import pyarrow as pa
import pyarrow.parquet as pq

from .harness import json_line, machine, table
from .spark import fingerprint
from .spark_stream import RULES, graphs

TINY = 1_000
_GROUP = 50_000
_LOOK = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of Linux's prctl."""

LIMITS = {
    "spark": {"CPU slope": 1.4, "clock slope": 0.75, "fixed clock": 15.0},
    "local": {"clock slope": 1 / 1.6},
}
"""By engine, at most, as multiples of `run`; the fixed part in seconds."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one command: seconds; (events, the sum of their hashes)."""

    cpu: float
    clock: float
    found: tuple[int, str]


def write_log(path: Path, count: int) -> None:
    log = graphs(count)
    schema = pa.schema([("time", pa.int64()), ("graph", pa.string())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while some := list(islice(log, _GROUP)):
            texts = [f"{s} {p} {o} .\n" for _, (s, p, o) in some]
            writer.write_table(pa.table([[time for time, _ in some], texts], schema))


def command(engine: str, rules: Path, log: Path, out: Path, cores: int) -> list[str]:
    python = [sys.executable, "-m", "dotr"]
    common = [str(rules), str(log), "--time-unit", "us", "-q"]
    if engine == "run":
        return [*python, "run", *common, "-o", str(out / "events.jsonl")]
    more = ["--master", f"local[{cores}]"] if engine == "spark" else []
    return [*python, "batch", *common, "--engine", engine, *more, "--out", str(out / "parts")]


def measured(engine: str, rules: Path, log: Path, scratch: Path, cores: int) -> Cost:
    out = scratch / "out"
    out.mkdir()
    start = monotonic()
    ran = subprocess.Popen(command(engine, rules, log, out, cores))
    used: dict[int, float] = {}
    while ran.poll() is None:
        used |= {pid: own for pid, own in own_seconds() if pid != os.getpid()}
        sleep(_LOOK)
    clock = monotonic() - start
    with suppress(ChildProcessError):
        while True:  # what outlived it, and what has ended and nobody asked about
            used |= {pid: own for pid, own in own_seconds() if pid != os.getpid()}
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                sleep(_LOOK)
    assert ran.returncode == 0, f"{engine} ended with {ran.returncode}"
    found = fingerprint(sorted(out.rglob("*.jsonl")))
    shutil.rmtree(out)
    return Cost(sum(used.values()), clock, found)


def own_seconds() -> Iterator[tuple[int, float]]:
    """(process, seconds of CPU without those of ended children) of all below this one, which adopts those
    whose parents have ended.
    """
    parents: dict[int, tuple[int, float]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            text = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
            fields = text[text.rindex(")") + 2 :].split()
            parents[int(entry)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS
    for process, (parent, seconds) in parents.items():
        while parent in parents and parent != os.getpid():
            parent = parents[parent][0]
        if parent == os.getpid():
            yield process, seconds


def line(small: Cost, large: Cost, few: int, many: int) -> dict[str, float]:
    """What a graph costs, in µs, and what is fixed, in seconds."""
    found = {}
    for name, a, b in (("CPU", small.cpu, large.cpu), ("clock", small.clock, large.clock)):
        slope = (b - a) / (many - few)
        found[f"{name} slope"] = slope * 1e6
        found[f"fixed {name}"] = a - slope * few
    return found


def main() -> int:
    """Print what each engine costs, and which limits hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark_slopes")
    parser.add_argument("--graphs", type=int, nargs=2, default=[1_000_000, 3_000_000])
    parser.add_argument("--engines", default="run,local,spark")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    few, many = given.graphs
    engines = given.engines.split(",")
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    scratch = Path(tempfile.mkdtemp(prefix="dotr-slopes-"))
    costs: dict[tuple[str, int], Cost] = {}
    try:
        rules = scratch / "rules.dotr"
        rules.write_text(RULES, encoding="utf-8")
        for count in (TINY, few, many):
            log = scratch / f"{count}.parquet"
            write_log(log, count)
            for engine in engines:
                cost = costs[engine, count] = measured(engine, rules, log, scratch, given.cores)
                load = os.getloadavg()[0]
                print(
                    f"{engine:6} {count:9,} graphs: {cost.cpu:6.1f} s of CPU, {cost.clock:6.1f} s,"
                    f" load {load:.1f}",
                    flush=True,
                )
            log.unlink()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    same = all(len({costs[engine, count].found for engine in engines}) == 1 for count in (TINY, few, many))
    lines = {engine: line(costs[engine, few], costs[engine, many], few, many) for engine in engines}
    tiny = {engine: costs[engine, TINY] for engine in engines}
    rows = [
        {
            "engine": engine,
            "CPU µs/graph": found["CPU slope"],
            "clock µs/graph": found["clock slope"],
            "fixed CPU s": found["fixed CPU"],
            "fixed clock s": found["fixed clock"],
            "1,000 graphs, CPU s": tiny[engine].cpu,
            "1,000 graphs, clock s": tiny[engine].clock,
        }
        for engine, found in lines.items()
    ]
    print(table(rows))
    checks = {"the events are the same": same}
    for engine, limits in LIMITS.items():
        for name, limit in limits.items() if engine in lines and "run" in lines else ():
            found = lines[engine][name] / (lines["run"][name] if "slope" in name else 1)
            checks[f"{engine}: {name} {found:.2f} ≤ {limit:.2f}"] = found <= limit
    for check, holds in checks.items():
        print(f"{'holds' if holds else 'FAILS'}  {check}")
    print(json_line({"scenario": "spark slopes", "graphs": [few, many], "rows": rows, "machine": machine()}))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
