"""Tables through a mapping: what the compiled template costs a row, beside filling in and parsing Turtle.

Method:  rows of an observation (six triples) in three tables: values that repeat, values that are all
         different, and those with a local time to be read by a format. "template" is what makes triples of
         cells that were read, "times" what finds the rows' instants, "file" reading the CSV file as `dotr`
         does. "by hand" fills the cells into Turtle and lets pyoxigraph parse it, row by row: what a template
         without a compiler does (it escapes nothing). Processor time, best of the repeats, all in turn.
"""

from __future__ import annotations

import csv
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import pyoxigraph as ox

from dotr.io.graphs import SourceOptions
from dotr.io.sources import Sources
from dotr.io.tables.compiled import compile_mapping
from dotr.io.tables.mapping import TableMapping, parse_mapping
from dotr.rdf.terms import canonical

COLUMNS = ("seen", "id", "sensor", "room", "temp")
PREFIXES = """PREFIX sosa: <http://www.w3.org/ns/sosa/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX : <http://example.org/>
"""
GRAPH = """<http://example.org/observation/{id}> a sosa:Observation ;
   sosa:madeBySensor <http://example.org/sensor/{sensor}> ;
   :room {room} ;
   sosa:resultTime {seen} ;
   sosa:hasSimpleResult {temp}^^xsd:decimal .
"""
LOCAL = 'seen|datetime("%d/%m/%Y %H:%M:%S", "Europe/Berlin")'

Row = tuple[str, ...]


def rows(count: int, unique: bool, local: bool) -> list[Row]:
    draw = random.Random(7)
    found = []
    for n in range(count):
        second, minute, hour, day = n % 60, n // 60 % 60, n // 3600 % 24, 1 + n // 86_400 % 28
        clock = f"{hour:02}:{minute:02}:{second:02}"
        seen = f"{day:02}/07/2026 {clock}" if local else f"2026-07-{day:02}T{clock}Z"
        number = n if unique else n % 100
        temperature = f"{draw.random() * 40:.6f}" if unique else f"{number % 40}.5"
        found.append((seen, f"o-{number}", f"t-{n % 17}", f"room {number} of the house", temperature))
    return found


def mapping(local: bool) -> TableMapping:
    time = f"{{{LOCAL}}}" if local else "{seen}^^xsd:dateTime"
    head = f"# time: {LOCAL if local else 'seen'}\n"
    return parse_mapping(f"{head}{PREFIXES}{GRAPH.replace('{seen}', time)}", "bench.map")


def by_hand(table: Sequence[Row], local: bool) -> Iterator[list[tuple[str, str, str]]]:
    for seen, id_, sensor, room, temp in table:
        if local:
            seen = f"{seen[6:10]}-{seen[3:5]}-{seen[:2]}T{int(seen[11:13]):02}{seen[13:]}+02:00"
        text = (
            GRAPH.replace("{seen}", f'"{seen}"^^xsd:dateTime')
            .replace("{id}", id_)
            .replace("{sensor}", sensor)
            .replace("{room}", f'"{room}"')
            .replace("{temp}", f'"{temp}"')
        )
        yield [
            (str(quad.subject), str(quad.predicate), str(quad.object))
            for quad in ox.parse(PREFIXES + text, ox.RdfFormat.TURTLE)
        ]


TABLES = {"values repeat": (False, False), "all different": (True, False), "local times": (True, True)}


def measure(count: int, repeats: int) -> list[dict[str, Any]]:
    """A row per table, in µs a row."""
    return [measured(name, rows(count, *kind), kind[1], repeats) for name, kind in TABLES.items()]


def measured(name: str, table: list[Row], local: bool, repeats: int) -> dict[str, Any]:
    compiled = compile_mapping(mapping(local), COLUMNS, 1_000_000, "", "bench.csv")
    parts = [table[at : at + 512] for at in range(0, len(table), 512)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "bench.csv")
        with file.open("w", newline="") as out:
            csv.writer(out).writerows([COLUMNS, *table])
        options = SourceOptions(mappings=(mapping(local),))
        if not local:
            found = [graph.triples for graph in Sources([str(file)], options)]
            made = [[(s, p, canonical(o)) for s, p, o in graph] for graph in by_hand(table, local)]
            assert found == made, f"{name}: not the graphs that are made by hand"
        seen: list[list[str | None]] = [[row[0] for row in part] for part in parts]
        runners: dict[str, Callable[[], object]] = {
            "template µs": lambda: sum(1 for part in parts for _ in compiled.parts(part)),
            "times µs": lambda: sum(len(compiled.instants(part)) for part in seen),
            "file µs": lambda: sum(1 for _ in Sources([str(file)], options)),
            "by hand µs": lambda: sum(1 for _ in by_hand(table, local)),
        }
        best = dict.fromkeys(runners, float("inf"))
        for _ in range(repeats):
            for runner, run in runners.items():  # in turn, so that a busy machine is busy for all
                compiled.times.clear() if hasattr(compiled.times, "clear") else None
                start = process_time()
                run()
                best[runner] = min(best[runner], (process_time() - start) / len(table) * 1e6)
    return {"table": name, **best, "to by hand": best["template µs"] / best["by hand µs"]}
