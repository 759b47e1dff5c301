"""Tables and archives as people have them: a Parquet table through a mapping, the same events as an RDF log.

Method:  readings and alarms of 500 rooms, a row a second, made from a seed: (time, kind, room, value). One
         rule, or ten that differ in a threshold: an alarm, and the last reading of its room above it within
         60 min. `dotr run` and `dotr batch --engine local` are processes of their own, starts included;
         processor time of all of them, in turns, best of the repeats. "distinct" is a table whose values
         all differ, "four triples" one whose rows are four triples each. `peers` has Polars and DuckDB
         compute the same events from the same table, in an environment of their own; their events are
         compared with those of dotr, row by row (`python -m tests.bench.peers columns`: these alone).
         "local batch" is by the clock: two processes beside one of `dotr run`, in turns, the same events.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dotr.io.decode.parquet import column, integers, texts

from .harness import table as as_table
from .peers_environment import Environment, Peer, PeerError, Result, measured

ROOMS, START = 500, 1_767_225_600_000_000
E = "http://example.org/"
HEAD = "# time: time\nPREFIX : <http://example.org/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
ONE = "<http://example.org/room/{room}> <http://example.org/{kind}> {value}^^xsd:double .\n"
FOUR = (
    "<http://example.org/reading/{id}> a :Reading ; :kind {kind} ; :room <http://example.org/room/{room}> ;\n"
    "   :value {value}^^xsd:double .\n"
)
RULE = """
RULE Alarm{n}
DEFINE {{ dotr_id1 a :Alarm{n} ; :room ?room ; :value ?v }}
FROM Smoke{n} := {{ {smoke} }}
AND LAST Heat{n} := {{ {heat} FILTER(?v > {above}) }} }}
    WITHIN 60 min FROM Smoke{n} ON Heat{n}.?room = Smoke{n}.?room
WITH ?room := Smoke{n}.?room, ?v := Heat{n}.?v
"""
QUERIES = {
    "one": ("SELECT ?room WHERE { ?room :smoke ?x }", "SELECT ?room ?v WHERE { ?room :heat ?v"),
    "four": (
        'SELECT ?room WHERE { ?o :kind "smoke" ; :room ?room }',
        'SELECT ?room ?v WHERE { ?o :kind "heat" ; :room ?room ; :value ?v',
    ),
}
PEERS = Peer("polars duckdb pyarrow", "peer_columns.py")


def thresholds(rules: int) -> list[float]:
    return [30.0] if rules == 1 else [3.0 * number for number in range(rules)]


def rules(rules: int, form: str) -> str:
    smoke, heat = QUERIES[form]
    rows = (
        RULE.format(n=number, above=above, smoke=smoke, heat=heat)
        for number, above in enumerate(thresholds(rules))
    )
    return f"PREFIX : <{E}>\n{''.join(rows)}"


def write_table(path: Path, rows: int, distinct: bool = False) -> None:
    """`distinct`: all values differ."""
    draw = random.Random(7)
    schema = pa.schema(
        [
            ("time", pa.timestamp("us", tz="UTC")),
            ("id", pa.int64()),
            ("kind", pa.string()),
            ("room", pa.string()),
            ("value", pa.float64()),
        ]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 65_536):
            numbers = range(start, min(rows, start + 65_536))
            values = [40 * draw.random() if distinct else draw.randrange(400) / 10 for _ in numbers]
            columns = [
                integers([START + number * 1_000_000 for number in numbers], schema.field(0).type),
                integers(numbers),
                texts(["smoke" if draw.random() < 0.25 else "heat" for _ in numbers]),
                texts([f"r{draw.randrange(ROOMS)}" for _ in numbers]),
                column(values, pa.float64()),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


class Bench:
    """Owns a folder with a table, mappings, rules and logs."""

    def __init__(self, folder: Path, rows: int, logs: bool = True) -> None:
        """`logs`: whether the RDF logs are made, too."""
        self.folder, self.rows = folder, rows
        self.best: dict[str, float] = {}
        self.memory: dict[str, float] = {}
        for name, distinct in (("table", False), ("distinct", True)):
            write_table(folder / f"{name}.parquet", rows, distinct)
        (folder / "one.map").write_text(HEAD + ONE, encoding="utf-8")
        (folder / "four.map").write_text(HEAD + FOUR, encoding="utf-8")
        for form in QUERIES:
            for number in (1, 10):
                (folder / f"{form}{number}.dotr").write_text(rules(number, form), encoding="utf-8")
            if logs:
                self.call(
                    "convert", "table.parquet", "--map", f"{form}.map", "-o", f"{form}.jsonl", "--overwrite"
                )

    def call(self, *arguments: str) -> tuple[float, float]:
        """(seconds of processor time, MB) of `dotr`."""
        return measured([sys.executable, "-m", "dotr", *arguments], self.folder)

    def run(self, name: str, *arguments: str) -> None:
        """Measure a way; the best counts."""
        seconds, size = self.call(*arguments)
        self.best[name] = min(seconds, self.best.get(name, seconds))
        self.memory[name] = max(size, self.memory.get(name, size))

    def digest(self, file: str) -> str:
        return digest(self.folder / file)


WAYS = {
    "RDF log": ("one.jsonl", (), "one"),
    "table": ("table.parquet", ("--map", "one.map"), "one"),
    "distinct values": ("distinct.parquet", ("--map", "one.map"), "one"),
    "four triples: log": ("four.jsonl", (), "four"),
    "four triples: table": ("table.parquet", ("--map", "four.map"), "four"),
}


def measure(bench: Bench, repeats: int, only: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """A row a way: CPU seconds of one rule and of ten."""
    ways = {name: way for name, way in WAYS.items() if not only or name in only}
    for _ in range(repeats):
        for name, (source, options, form) in ways.items():
            for number in (1, 10):
                out = f"{name.replace(' ', '-').replace(':', '')}{number}"
                common = (f"{form}{number}.dotr", source, *options, "-q", "--overwrite", "-o")
                bench.run(f"{name} {number}", "run", *common, f"{out}.jsonl")
                if name == "table":
                    bench.run(f"typed {number}", "run", *common, f"{out}.parquet", "--schema", "typed")
    for name in [*ways, *(["typed"] if "table" in ways else [])]:
        yield {
            "way": name,
            "one rule, CPU s": bench.best[f"{name} 1"],
            "ten rules, CPU s": bench.best[f"{name} 10"],
            "MB": max(bench.memory[f"{name} 1"], bench.memory[f"{name} 10"]),
        }


BATCHES = {
    "JSON lines": ("one.jsonl", ()),
    "Parquet": ("one.parquet", ()),
    "table": ("table.parquet", ("--map", "one.map")),
}


def batches(bench: Bench, repeats: int) -> tuple[list[dict[str, Any]], dict[str, bool]]:
    """(rows of local batch beside `dotr run`, whether the events are the same)."""
    bench.call("convert", "one.jsonl", "-o", "one.parquet", "--overwrite")
    table, same = [], {}
    for name, (source, options) in BATCHES.items():
        best: dict[str, list[float]] = {}
        for _ in range(repeats):
            for way, given in (
                ("run", ("run", "one1.dotr", source, "-o", "run.jsonl")),
                ("batch", ("batch", "one1.dotr", source, "--engine", "local", "--out", "batched")),
            ):
                start = perf_counter()
                cpu, _ = bench.call(*given, *options, "-q", "--overwrite")
                found = cpu, perf_counter() - start
                best[way] = [min(pair) for pair in zip(found, best.get(way, found), strict=True)]
        lines = [
            line
            for part in sorted((bench.folder / "batched").glob("part-*"))
            for line in part.read_text("utf-8").splitlines()
        ]
        expected = (bench.folder / "run.jsonl").read_text("utf-8").splitlines()
        same[f"local batch of {name}: the events of a run"] = sorted(lines) == sorted(expected)
        table.append(
            {
                "way": f"local batch: {name}",
                "one rule, CPU s": best["batch"][0],
                "clock s": best["batch"][1],
                "clock / run": best["batch"][1] / best["run"][1],
            }
        )
    return table, same


def compared(environment: Environment, facts: int, _repeats: int) -> Result:
    """Polars and DuckDB beside `dotr run`, for `tests.bench.peers`."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), facts, logs=False)
        table = list(measure(bench, 1, ("table",)))
        events = [pq.read_metadata(bench.folder / f"table{number}.parquet").num_rows for number in (1, 10)]
        found = _peer_rows(bench, environment)
    checks = {f"{row['way']} finds the same events": row["same events"] for row in found}
    notes = [f"{facts:,} rows; {events[0]:,} events of one rule, {events[1]:,} of ten"]
    return Result([*table, *found], {"rows": facts, "events": events}, checks, notes)


def peers(bench: Bench) -> list[dict[str, Any]]:
    """Rows of Polars and DuckDB, whose events are those of dotr; [] where they cannot be had."""
    try:
        with Environment(PEERS) as environment:
            return _peer_rows(bench, environment)
    except PeerError as error:
        print(error, file=sys.stderr)
        return []


def _peer_rows(bench: Bench, environment: Environment) -> list[dict[str, Any]]:
    found = []
    for number in (1, 10):
        events = bench.folder / f"table{number}.parquet"
        bounds = ",".join(map(str, thresholds(number)))
        found.append(environment.run(str(bench.folder / "table.parquet"), str(events), bounds))
    return [
        {
            "way": peer,
            "one rule, CPU s": found[0][peer]["seconds"],
            "ten rules, CPU s": found[1][peer]["seconds"],
            "same events": found[0][peer]["same"] and found[1][peer]["same"],
        }
        for peer in ("polars", "duckdb")
    ]


def figures(rows: int, repeats: int, quick: bool) -> tuple[list[dict[str, Any]], dict[str, bool]]:
    """(table, what must hold)."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), rows)
        table = list(measure(bench, repeats))
        checks = {
            f"{form}, {number} rules: a table gives the events of its log": bench.digest(f"{a}{number}.jsonl")
            == bench.digest(f"{b}{number}.jsonl")
            for form, a, b in (
                ("one triple", "RDF-log", "table"),
                ("four triples", "four-triples-log", "four-triples-table"),
            )
            for number in (1, 10)
        }
        seconds = {
            (row["way"], number): row[f"{word}, CPU s"]
            for row in table
            for number, word in ((1, "one rule"), (10, "ten rules"))
        }
        if not quick:  # else starting Arrow is most of it; a log took 1.6 times as long before runs of graphs
            log = seconds["RDF log", 1]
            checks["one rule: a table takes at most 1.08 of its log"] = seconds["table", 1] <= 1.08 * log
        checks |= {
            "ten rules: typed Parquet takes at most 0.8 of JSON lines": seconds["typed", 10]
            <= 0.8 * seconds["table", 10],
        }
        batched, same = batches(bench, repeats)
        table += batched
        checks |= same
        if not quick:
            others = peers(bench)
            table += others
            checks |= {f"{row['way']} finds the same events": row["same events"] for row in others}
    return table, checks


ALL = 100_000_000
"""Rows for which `slopes` computes."""


def slopes(folder: Path, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """What a row of the table costs in `dotr run` and in local batch, one rule: µs of CPU and by the clock,
    MB at every size, and `ALL` rows computed from the line through the least and the greatest size.
    """
    found: dict[str, list[tuple[float, float, float]]] = {"run": [], "local batch": []}
    for rows in sizes:
        place = folder / str(rows)
        place.mkdir()
        bench = Bench(place, rows, logs=False)
        common = ("one1.dotr", "table.parquet", "--map", "one.map", "-q")
        for way, command in (
            ("run", ("run", *common, "-o", "run.jsonl")),
            ("local batch", ("batch", *common, "--engine", "local", "--out", "batched")),
        ):
            start = perf_counter()
            cpu, size = bench.call(*command)
            found[way].append((cpu, perf_counter() - start, size))
        shutil.rmtree(place)
    table = []
    for way, costs in found.items():
        (cpu, clock, _), (more_cpu, more_clock, _) = costs[0], costs[-1]
        many = sizes[-1] - sizes[0]
        cpu_slope, clock_slope = (more_cpu - cpu) / many, (more_clock - clock) / many
        table.append(
            {
                "way": way,
                "CPU µs a row": cpu_slope * 1e6,
                "clock µs a row": clock_slope * 1e6,
                "MB": " ".join(f"{size:.0f}" for _, _, size in costs),
                "100M rows, CPU min": (cpu + cpu_slope * (ALL - sizes[0])) / 60,
                "100M rows, clock min": (clock + clock_slope * (ALL - sizes[0])) / 60,
            }
        )
    return table


def main() -> int:
    """python -m tests.bench.columns FOLDER ROWS: what `figures` measures is prepared and kept there.
    python -m tests.bench.columns slopes ROWS ROWS…: see `slopes`.
    """
    if sys.argv[1] == "slopes":
        with tempfile.TemporaryDirectory() as made:
            print(as_table(slopes(Path(made), [int(size) for size in sys.argv[2:]])))
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        return 0
    folder, rows = Path(sys.argv[1]), int(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    Bench(folder, rows)
    subprocess.run(["ls", "-l", str(folder)], check=True, env=os.environ)
    return 0


if __name__ == "__main__":
    sys.exit(main())
