"""What grows with a cluster, with keys and with files.

    python -m tests.bench.spark_scale background [--triples 1000000] [--workers 4]
    python -m tests.bench.spark_scale keys [--graphs 300000]
    python -m tests.bench.spark_scale files [--files 5000 50000] [--engines run,local,spark]

Method:  background: a batch on a standalone cluster here, whose workers stand for machines; what their Python
         processes have mapped of the background, and hold of their own, is read from /proc. keys: graphs of
         one triple, 1,000 rooms that come equally often or as 1/rank, divided by key and by time in local
         processes. files: as many files of ten graphs. CPU is that of all processes (processes.py), memory
         that of the command's own: on Spark the driver's Python. Events are those of `dotr run`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dotr.rdf.terms import RDF_TYPE
from tests.batch.standalone import BIN, below, children, mappings, standalone

from .harness import json_line, machine, table
from .processes import Use, watched
from .spark import fingerprint
from .spark_stream import ROOMS, RULES

DOTR = [sys.executable, "-m", "dotr"]
GRAPHS = 100_000
A_FILE = 10


def readings(count: int, rooms: int = ROOMS, ranked: bool = False) -> Iterator[tuple[int, str]]:
    """(time in half milliseconds, N-Triples); `ranked`: room n as often as 1/(n + 1)."""
    random = Random(1)
    weights = [1 / (room + 1 if ranked else 1) for room in range(rooms)]
    for i, room in enumerate(random.choices(range(rooms), weights, k=count)):
        kind = random.choice(("smoke", "heat", "heat", "noise"))
        yield i * 500, f"<urn:x:o{i}> <urn:x:{kind}> <urn:x:room{room}> .\n"


def write_archive(path: Path, log: Iterator[tuple[int, str]], group: int = 50_000) -> None:
    schema = pa.schema([("time", pa.int64()), ("graph", pa.string())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while some := list(islice(log, group)):
            writer.write_table(pa.table([list(column) for column in zip(*some, strict=True)], schema))


def run(folder: Path, log: str, *options: str) -> tuple[Use, tuple[int, str]]:
    """(cost, events) of `dotr run`."""
    command = [
        "run",
        "rules.dotr",
        log,
        "--time-unit",
        "us",
        "-q",
        *options,
        "--overwrite",
        "-o",
        "run.jsonl",
    ]
    return watched([*DOTR, *command], folder), fingerprint([folder / "run.jsonl"])


def batch(folder: Path, log: str, *options: str) -> tuple[Use, tuple[int, str]]:
    """Likewise, of `dotr batch`."""
    command = ["batch", "rules.dotr", log, "--time-unit", "us", "--out", "out", *options]
    use = watched([*DOTR, *command], folder)
    found = fingerprint(sorted((folder / "out").glob("part-*")))
    shutil.rmtree(folder / "out")
    return use, found


def own(process: int) -> float:
    """MB that no other process has."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024
    return 0.0


def background(folder: Path, triples: int, workers: int) -> tuple[list[dict[str, Any]], bool]:
    smoke = "{ ?o :smoke ?room }"
    rules = RULES.replace(smoke, "{ ?o :smoke ?room . ?room a :Room }")
    rules = rules.replace("QUERY", "BACKGROUND <rooms.nt>\nQUERY", 1)
    (folder / "rules.dotr").write_text(rules.replace("WITHIN 4 s", "WITHIN 1 h"), encoding="utf-8")
    with (folder / "rooms.nt").open("w", encoding="utf-8") as file:
        file.writelines(f"<urn:x:room{i}> {RDF_TYPE} <urn:x:Room> .\n" for i in range(triples))
    write_archive(folder / "log.parquet", readings(GRAPHS, triples, ranked=True), GRAPHS // 40)
    subprocess.run([*DOTR, "spark", "entry-point"], cwd=folder, check=True, capture_output=True)
    _, expected = run(folder, "log.parquet")
    found: dict[int, dict[int, tuple[str, float]]] = {}
    driver_size = 0.0
    with standalone(folder, workers) as cluster:
        submit = [str(BIN / "spark-submit"), "--master", cluster.url, "--conf", "spark.ui.enabled=false"]
        submit += [
            "--conf",
            "spark.executor.memory=512m",
            "dotr-submit.py",
            "batch",
            "rules.dotr",
            "log.parquet",
        ]
        start = monotonic()
        with (folder / "driver.log").open("wb") as log:
            driver = subprocess.Popen(
                [*submit, "--time-unit", "us", "-q", "--out", "out"],
                cwd=folder,
                env=cluster.environment,
                stdout=log,
                stderr=log,
            )
        while driver.poll() is None:
            for place, worker in enumerate(cluster.workers):
                for process in (one for executor in children(worker.pid) for one in below(executor)):
                    for mapped in mappings(process):
                        size = max(own(process), found.get(place, {}).get(process, ("", 0.0))[1])
                        found.setdefault(place, {})[process] = mapped, size
            pythons = [size for one in below(driver.pid) if (size := own(one))]
            driver_size = max([driver_size, *pythons])
            sleep(0.1)
        clock = monotonic() - start
    assert driver.returncode == 0, f"spark-submit ended with {driver.returncode}"
    copies = {mapped for processes in found.values() for mapped, _ in processes.values()}
    files = [path.stat().st_size for path in folder.glob("worker*/app-*/*/background-*")]
    row = {
        "triples": triples,
        "workers": workers,
        "workers that mapped it": len(found),
        "copies mapped": len(copies),
        "Python processes with it": sum(map(len, found.values())),
        "MB a copy": max(files, default=0) / 1e6,
        "MB of its own, a process at most": max(size for some in found.values() for _, size in some.values()),
        "MB of the driver's Python": driver_size,
        "clock s": clock,
        "events": expected[0],
    }
    return [row], fingerprint(sorted((folder / "out").glob("part-*"))) == expected


def keys(folder: Path, graphs: int) -> tuple[list[dict[str, Any]], bool]:
    (folder / "rules.dotr").write_text(RULES, encoding="utf-8")
    rows, same = [], True
    for name, ranked in (("even", False), ("1/rank", True)):
        write_archive(folder / "log.parquet", readings(graphs, ranked=ranked))
        _, expected = run(folder, "log.parquet")
        for by in ("key", "time"):
            use, events = batch(folder, "log.parquet", "--engine", "local", "--by", by)
            same &= events == expected
            row: dict[str, Any] = {"keys": name, "by": by, "CPU s": use.cpu, "clock s": use.clock}
            rows.append(row | {"D4136": use.said.count("[D4136]"), "events": events[0]})
    return rows, same


def files(folder: Path, counts: list[int], engines: list[str]) -> tuple[list[dict[str, Any]], bool]:
    (folder / "rules.dotr").write_text(RULES, encoding="utf-8")
    rows, same = [], True
    for count in counts:
        place = folder / "log"
        place.mkdir()
        log = readings(count * A_FILE)
        for number in range(count):
            lines = [json.dumps({"time": time, "graph": graph}) for time, graph in islice(log, A_FILE)]
            (place / f"{number:06}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        found = set()
        for engine in engines:
            more = ["--master", "local[2]"] if engine == "spark" else []
            use, events = (
                run(folder, "log")
                if engine == "run"
                else batch(folder, "log", "--engine", engine, "-q", *more)
            )
            found.add(events)
            row: dict[str, Any] = {"files": count, "engine": engine, "CPU s": use.cpu, "clock s": use.clock}
            rows.append(row | {"MB": use.memory, "events": events[0]})
            print(json_line(rows[-1]), flush=True)
        same &= len(found) == 1
        shutil.rmtree(place)
    return rows, same


def main() -> int:
    """Print a table, and whether the events are those of `dotr run`."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark_scale")
    parser.add_argument("what", choices=["background", "keys", "files"])
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--graphs", type=int, default=300_000)
    parser.add_argument("--files", type=int, nargs="+", default=[5_000, 50_000])
    parser.add_argument("--engines", default="run,local,spark")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dotr-scale-") as made:
        folder = Path(made)
        if given.what == "background":
            rows, same = background(folder, given.triples, given.workers)
        elif given.what == "keys":
            rows, same = keys(folder, given.graphs)
        else:
            rows, same = files(folder, given.files, given.engines.split(","))
    print(table(rows))
    print(f"{'holds' if same else 'FAILS'}  the events are those of dotr run")
    load = os.getloadavg()[0]
    print(
        json_line({"scenario": f"spark scale {given.what}", "rows": rows, "load": load, "machine": machine()})
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
