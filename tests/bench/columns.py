"""Tables and archives as people have them: a Parquet table through a mapping, the same events as an RDF log.

Method:  readings and alarms of 500 rooms, a row a second, made from a seed: (time, kind, room, value). One
         rule, or ten that differ in a threshold: an alarm, and the last reading of its room above it within
         60 min. `dotr run` and `dotr batch --engine local` are processes of their own, starts included;
         processor time of all of them, in turns, best of the repeats. "distinct" is a table whose values
         all differ, "four triples" one whose rows are four triples each. `peers` has Polars and DuckDB
         compute the same events from the same table, in an environment of their own; their events are
         compared with those of dotr, row by row.
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
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dotr.io.decode.parquet import column, integers, texts

from .peers_environment import Environment, Peer, PeerError, measured

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

    def __init__(self, folder: Path, rows: int) -> None:
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


def peers(bench: Bench) -> list[dict[str, Any]]:
    """Rows of Polars and DuckDB, whose events are those of dotr; [] where they cannot be had."""
    try:
        with Environment(PEERS) as environment:
            found = []
            for number in (1, 10):
                events = bench.folder / f"table{number}.parquet"
                bounds = ",".join(map(str, thresholds(number)))
                found.append(environment.run(str(bench.folder / "table.parquet"), str(events), bounds))
    except PeerError as error:
        print(error, file=sys.stderr)
        return []
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
        log = seconds["RDF log", 1]
        checks |= {
            "one rule: a table takes at most 0.66 of its log": seconds["table", 1] <= 0.66 * log,
            "ten rules: typed Parquet takes at most 0.8 of JSON lines": seconds["typed", 10]
            <= 0.8 * seconds["table", 10],
        }
        if not quick:
            others = peers(bench)
            table += others
            checks |= {f"{row['way']} finds the same events": row["same events"] for row in others}
    return table, checks


def main() -> int:
    """python -m tests.bench.columns FOLDER ROWS: what `figures` measures is prepared and kept there."""
    folder, rows = Path(sys.argv[1]), int(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    Bench(folder, rows)
    subprocess.run(["ls", "-l", str(folder)], check=True, env=os.environ)
    return 0


if __name__ == "__main__":
    sys.exit(main())
