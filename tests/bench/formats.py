"""Reading alone: the same graphs in every format of time-annotated graphs, by dotr and by pyoxigraph.

Method:  a file of each format; dotr reads it as `dotr run` does (time, triples, canonical terms), pyoxigraph
         parses the same bytes, or the documents inside them, and does nothing with the quads.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import pyoxigraph as ox

from dotr.connectors.sources import Sources

PREFIXES = "PREFIX : <http://example.org/bench#>\nPREFIX sosa: <http://www.w3.org/ns/sosa/>\n"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def graph(number: int) -> str:
    """Five triples, as a sensor would say them."""
    return (
        f":o{number} a sosa:Observation ; sosa:madeBySensor :s{number % 10} ; sosa:observedProperty :t ; "
        f"sosa:hasSimpleResult {number % 50} ; sosa:phenomenonTime {number} ."
    )


def quads(number: int) -> list[ox.Quad]:
    name = ox.NamedNode(f"http://example.org/graph/{number}")
    stamp = ox.Literal(str(number), datatype=ox.NamedNode(INTEGER))
    inside = ox.parse(PREFIXES + graph(number), format=ox.RdfFormat.TURTLE)
    return [ox.Quad(name, ox.NamedNode(PROV), stamp), *(ox.Quad(*quad.triple, name) for quad in inside)]


def content(count: int) -> dict[str, bytes]:
    """File name → bytes."""
    numbers = range(1, count + 1)
    lines = [json.dumps({"time": n, "graph": PREFIXES + graph(n)}) for n in numbers]
    log = 'VERSION "1.2-messages"\n' + PREFIXES + "\nMESSAGE\n".join(map(graph, numbers)) + "\n"
    nquads = b"".join(ox.serialize(quads(n), format=ox.RdfFormat.N_QUADS) for n in numbers)
    trig = "".join(
        f"<http://example.org/graph/{n}> <{PROV}> {n} .\n<http://example.org/graph/{n}> {{ {graph(n)} }}\n"
        for n in numbers
    )
    jsonl = "\n".join(lines).encode()
    return {
        "stream.jsonl": jsonl,
        "stream.jsonl.gz": gzip.compress(jsonl),
        "stream.ttl": log.encode(),
        "stream.nq": nquads,
        "stream.trig": (PREFIXES + trig).encode(),
    }


def parse_lines(data: bytes) -> int:
    return sum(
        sum(1 for _ in ox.parse(json.loads(line)["graph"], format=ox.RdfFormat.TURTLE))
        for line in data.splitlines()
    )


def parse_messages(data: bytes) -> int:
    messages = data.decode().split("\n", 1)[1].removeprefix(PREFIXES).split("\nMESSAGE\n")
    return sum(sum(1 for _ in ox.parse(PREFIXES + text, format=ox.RdfFormat.TURTLE)) for text in messages)


ALONE: Mapping[str, Callable[[bytes], int]] = {
    "stream.jsonl": parse_lines,
    "stream.jsonl.gz": lambda data: parse_lines(gzip.decompress(data)),
    "stream.ttl": parse_messages,
    "stream.nq": lambda data: sum(1 for _ in ox.parse(data, format=ox.RdfFormat.N_QUADS)),
    "stream.trig": lambda data: sum(1 for _ in ox.parse(data, format=ox.RdfFormat.TRIG)),
}


def measure(count: int, repeats: int) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, data in content(count).items():
            file = Path(folder, name)
            file.write_bytes(data)
            own, alone = [], []
            for _ in range(repeats):
                start = perf_counter()
                read = sum(1 for _ in Sources([str(file)]))
                own.append(perf_counter() - start)
                assert read == count, f"{name}: {read} of {count} graphs were read"
                start = perf_counter()
                ALONE[name](data)
                alone.append(perf_counter() - start)
            dotr, oxigraph = min(own) / count * 1e6, min(alone) / count * 1e6
            rows.append(
                {"format": name, "dotr µs": dotr, "pyoxigraph µs": oxigraph, "ratio": dotr / oxigraph}
            )
    return rows
