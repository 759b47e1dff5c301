"""Batch against run: the same log, the same rules, wall clock, CPU, memory, and whether the events are the
same.

    python -m tests.bench.spark [--graphs 1000000] [--engine spark|local] [--shape even|hot-key|busy-hour]
                                [--rules city|all] [--scratch DIR] [--json]

Method:  a log of CityBench-like graphs of 15 triples (two roads' congestion, one weather report), made from
         a seed, as a Parquet archive. `dotr run` replays it in a process of its own; the batch runs here, in
         a session that is already warm. CPU is that of all processes below this one, the JVM among them
         (from /proc). Outputs are compared by the sum of their lines' hashes, which does not depend on order.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random
from time import monotonic

from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request, Runner
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.spark.session import session
from dotr.core.deployment import Deployment
from dotr.detect.partitioning import describe
from dotr.events import Clock
from dotr.io.decode.parquet import ArchiveWriter
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from dotr.rdf.terms import RDF_TYPE, Triple

from .harness import json_line, machine, table

ROADS = 400
DAY = 86_400_000
CITY = """\
PREFIX : <urn:city:>
PREFIX out: <urn:out:>
BACKGROUND <background.nt>
QUERY Congestion := { SELECT ?road ?v WHERE { ?o :road ?road ; :property ?p ; :congestion ?v . ?p a
:CongestionLevel } } QUERY Weather := { SELECT ?t ?h ?w WHERE { ?r :temperature ?t ; :humidity ?h ; :wind ?w
} }

RULE Condition
DEFINE { dotr_x a out:Condition ; out:road ?road ; out:congestion ?c ; out:temperature ?t }
FROM Congestion
AND LAST Weather WITHIN 3 min BEFORE Congestion
WITH ?road := Congestion.?road, ?c := Congestion.?v, ?t := Weather.?t
"""
MORE = """
QUERY High := { SELECT ?road ?v WHERE { ?o :road ?road ; :congestion ?v FILTER(?v > 95) } }
QUERY Low := { SELECT ?road WHERE { ?o :road ?road ; :congestion ?v FILTER(?v < 5) } }
RULE Jam
DEFINE { dotr_x a out:Jam ; out:road ?road ; out:mean ?mean }
FROM High
AND AVG(Congestion.?v) AS ?mean OVER Congestion WITHIN 10 min FROM High ON Congestion.?road = High.?road
AND NOT Low WITHIN 5 min FROM High ON Low.?road = High.?road
WITH ?road := High.?road, ?mean := ?mean

RULE Recovered
DEFINE { dotr_x a out:Recovered ; out:road ?road ; out:since ?since }
FROM Low
AND FIRST High WITHIN 1 h BEFORE Low ON High.?road = Low.?road
WITH ?road := Low.?road, ?since := High.time
CONSUMING High

RULE Hourly
DEFINE { dotr_x a out:Hourly ; out:jams ?n }
FROM EVERY 1 h AS Tick
AND COUNT(*) AS ?n OVER Jam WITHIN 1 h BEFORE Tick
WITH ?n := ?n
"""

JAM = CITY.partition("QUERY Weather")[0] + MORE.partition("\nRULE Recovered")[0]
"""One rule of them, by key; about a tenth of the graphs trigger, and few pass."""
BACKGROUND = "".join(f"<urn:city:property{i}> {RDF_TYPE} <urn:city:CongestionLevel> .\n" for i in (0, 1))


def graphs(count: int, shape: str) -> Iterator[tuple[int, list[Triple]]]:
    """(time in ms, 15 triples), in time order, every time twice in a hundred shared by two graphs."""
    random = Random(20_140_801)
    step = 1000
    time = 0
    for i in range(count):
        busy = shape == "busy-hour" and count // 3 < i < 2 * count // 3
        if i % 50:
            time += random.randrange(1, 20) if busy else random.randrange(1, 2 * step)
        triples: list[Triple] = []
        for place in (0, 1):
            hot = shape == "hot-key" and random.random() < 0.9
            road = f"<urn:city:road{0 if hot else random.randrange(ROADS)}>"
            reading = f"<urn:city:reading{i}-{place}>"
            value = f'"{random.randrange(1000) / 10}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
            triples += [
                (reading, RDF_TYPE, "<urn:city:Observation>"),
                (reading, "<urn:city:road>", road),
                (reading, "<urn:city:property>", f"<urn:city:property{place}>"),
                (reading, "<urn:city:congestion>", value),
                (reading, "<urn:city:unit>", '"vehicles per metre"'),
            ]
        report = f"<urn:city:report{i}>"
        triples += [
            (report, RDF_TYPE, "<urn:city:Observation>"),
            (report, "<urn:city:station>", "<urn:city:station0>"),
            (report, "<urn:city:temperature>", f'"{random.randrange(-50, 350) / 10}"'),
            (report, "<urn:city:humidity>", f'"{random.randrange(100)}"'),
            (report, "<urn:city:wind>", f'"{random.randrange(200) / 10}"'),
        ]
        yield time, triples


def make_log(path: Path, count: int, shape: str) -> None:
    writer = ArchiveWriter(str(path), Clock(True, 1000))
    for time, triples in graphs(count, shape):
        writer.add(time * 1000, triples)
    writer.close()


def tree() -> dict[int, tuple[str, float, int]]:
    """Per process below this one: name, seconds of CPU (its ended children included), resident bytes."""
    found: dict[int, tuple[int, str, float, int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            ticks = sum(map(int, rest[11:15])) / os.sysconf("SC_CLK_TCK")
            found[int(entry)] = int(rest[1]), name, ticks, int(rest[21]) * os.sysconf("SC_PAGE_SIZE")
    mine: dict[int, tuple[str, float, int]] = {}
    todo = [os.getpid()]
    while todo:
        parent = todo.pop()
        if parent in found:
            mine[parent] = found[parent][1:]
        todo += [process for process, facts in found.items() if facts[0] == parent]
    return mine


class Watch:
    """Owns a thread that looks for the largest Python worker."""

    def __init__(self) -> None:
        self.largest = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(3):
            workers = [
                size for pid, (name, _, size) in tree().items() if "python" in name and pid != os.getpid()
            ]
            self.largest = max([self.largest, *workers])


def fingerprint(files: list[Path]) -> tuple[int, str]:
    """(lines, the sum of their hashes)."""
    count = total = 0
    for file in files:
        with file.open("rb") as lines:
            for line in lines:
                count += 1
                total += int.from_bytes(blake2b(line.rstrip(b"\n"), digest_size=16).digest(), "big")
    return count, f"{total % (1 << 128):032x}"


@dataclass
class Measured:
    wall: float
    cpu: float
    memory: int
    events: int
    fingerprint: str
    stages: dict[str, float]
    parts: dict[str, float]


def measure_run(rules: Path, log: Path, scratch: Path) -> Measured:
    out = scratch / "run.jsonl"
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), monotonic()
    command = [sys.executable, "-m", "dotr", "run", str(rules), str(log), "--time-unit", "ms", "-q"]
    subprocess.run([*command, "-o", str(out), "--overwrite"], check=True)
    wall, after = monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    events, mark = fingerprint([out])
    return Measured(wall, cpu, after.ru_maxrss * 1024, events, mark, {}, {"python": cpu})


def measure_batch(runner: Runner, request: Request, scratch: Path) -> Measured:
    out = scratch / "batch"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    before, start = tree(), monotonic()
    with Watch() as watch:
        report = runner.run(request, str(out), lambda *_: None)
    wall, after = monotonic() - start, tree()
    parts: dict[str, float] = {}
    for pid, (name, cpu, _) in after.items():
        parts[name] = parts.get(name, 0) + cpu - (before[pid][1] if pid in before else 0)
    events, mark = fingerprint([out / file for file in report.files])
    return Measured(wall, sum(parts.values()), watch.largest, events, mark, report.seconds, parts)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.spark", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("--graphs", type=int, default=1_000_000)
    parser.add_argument("--engine", choices=["spark", "local"], default="spark")
    parser.add_argument("--shape", choices=["even", "hot-key", "busy-hour"], default="even")
    parser.add_argument("--rules", choices=["city", "all"], default="city")
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="dotr-bench-"))
    scratch.mkdir(parents=True, exist_ok=True)
    log, rules = scratch / f"{options.shape}-{options.graphs}.parquet", scratch / f"{options.rules}.dotr"
    rules.write_text(CITY + (MORE if options.rules == "all" else ""), encoding="utf-8")
    (scratch / "background.nt").write_text(BACKGROUND, encoding="utf-8")
    if not log.exists():
        make_log(log, options.graphs, options.shape)
    program = load_program([str(rules)], read_rules_text)
    deployment = Deployment(program, read_background(program.background))
    request = Request(deployment, open_log([str(log)], SourceOptions(unit=1000)))
    runner: Runner
    if options.engine == "spark":
        session().range(1000).mapInArrow(_same, "id bigint").count()
        runner = SparkRunner()
    else:
        runner = LocalRunner()
    batch = measure_batch(runner, request, scratch)
    run = measure_run(rules, log, scratch)
    rows = [
        {
            "runner": name,
            "graphs/s": options.graphs / m.wall,
            "CPU µs/graph": m.cpu / options.graphs * 1e6,
            "largest worker MB": m.memory / 1e6,
            "events": m.events,
            **{f"{part} CPU s": cpu for part, cpu in sorted(m.parts.items()) if cpu > 0.5},
        }
        for name, m in (("run", run), (options.engine, batch))
    ]
    checks = {
        "the events are the same": run.fingerprint == batch.fingerprint and run.events == batch.events,
        "throughput ≥ 1.3 × run": run.wall >= 1.3 * batch.wall,
        "CPU a graph ≤ 1.3 × run": batch.cpu <= 1.3 * run.cpu,
    }
    if not options.json:
        print("\n".join(describe(program, request.plan())), end="\n\n")
        print(table(rows), end="\n\n")
        print(json.dumps({stage: round(seconds, 1) for stage, seconds in batch.stages.items()}))
        for check, holds in checks.items():
            print(f"{'holds' if holds else 'FAILS'}  {check}")
    figures = {"graphs": options.graphs, "shape": options.shape, "rules": options.rules, "checks": checks}
    print(json_line({"scenario": "spark", **figures, "rows": rows, "machine": machine()}))
    if options.scratch is None:
        shutil.rmtree(scratch)
    return 0 if checks["the events are the same"] else 1


def _same(batches: Iterator[object]) -> Iterator[object]:
    return batches


if __name__ == "__main__":
    sys.exit(main())
