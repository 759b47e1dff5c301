"""Reading alone: the same graphs in every format of time-annotated graphs, by dotr and by pyoxigraph.

Method:  a file of each format; dotr reads it as `dotr run` does (time, canonical terms, no repeats, what is
         wrong with its place). "By hand" is the loop that a competent user would write for this very file:
         pyoxigraph parses, every graph comes out with its time as an integer and its triples as text, term
         by term (`str`); nothing is checked, repeats stay. "pyoxigraph" parses the same bytes, or the
         documents in them, and does nothing with the quads: no use, but nothing that parses with it can be
         quicker. Processor time, best of the repeats; dotr and the loop by hand deliver the same graphs.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import pyoxigraph as ox

from dotr.connectors.sources import Sources
from dotr.rdf.terms import Triple

PREFIXES = "PREFIX : <http://example.org/bench#>\nPREFIX sosa: <http://www.w3.org/ns/sosa/>\n"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
PHENOMENON_TIME = "<http://www.w3.org/ns/sosa/phenomenonTime>"
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
    return [
        ox.Quad(name, ox.NamedNode(PROV), stamp),
        *(ox.Quad(q.subject, q.predicate, q.object, name) for q in inside),
    ]


def content(count: int) -> dict[str, bytes]:
    """File name → bytes."""
    numbers = range(1, count + 1)
    lines = [json.dumps({"time": n, "graph": PREFIXES + graph(n)}) for n in numbers]
    log = 'VERSION "1.2-messages"\n' + PREFIXES + "\nMESSAGE\n".join(map(graph, numbers)) + "\n"
    nquads = b"".join(ox.serialize(quads(n), format=ox.RdfFormat.N_QUADS) or b"" for n in numbers)
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


Graphs = Iterator[tuple[int, list[Triple]]]


def triples(quads_: Iterable[ox.Quad]) -> list[Triple]:
    return [(str(q.subject), str(q.predicate), str(q.object)) for q in quads_]


def hand_lines(data: bytes) -> Graphs:
    for line in data.splitlines():
        value = json.loads(line)
        yield value["time"], triples(ox.parse(value["graph"], format=ox.RdfFormat.TURTLE))


def texts(data: bytes) -> list[str]:
    """The messages of a log, each with the prefixes."""
    messages = data.decode().split("\n", 1)[1].removeprefix(PREFIXES).split("\nMESSAGE\n")
    return [PREFIXES + text for text in messages]


def hand_messages(data: bytes) -> Graphs:
    for text in texts(data):
        graph = triples(ox.parse(text, format=ox.RdfFormat.TURTLE))
        yield next(literal(o) for _s, p, o in graph if p == PHENOMENON_TIME), graph


def literal(term: str) -> int:
    return int(term[1 : term.index('"', 1)])


def hand_quads(data: bytes, format_: ox.RdfFormat) -> Graphs:
    """Every graph stands behind its stamp."""
    time: int | None = None
    graph: list[Triple] = []
    for quad in ox.parse(data, format=format_):
        if isinstance(quad.graph_name, ox.DefaultGraph):
            if time is not None:
                yield time, graph
            time, graph = int(quad.object.value), []
        else:
            graph.append((str(quad.subject), str(quad.predicate), str(quad.object)))
    if time is not None:
        yield time, graph


HAND: Mapping[str, Callable[[bytes], Graphs]] = {
    "stream.jsonl": hand_lines,
    "stream.jsonl.gz": lambda data: hand_lines(gzip.decompress(data)),
    "stream.ttl": hand_messages,
    "stream.nq": lambda data: hand_quads(data, ox.RdfFormat.N_QUADS),
    "stream.trig": lambda data: hand_quads(data, ox.RdfFormat.TRIG),
}


def parse_lines(data: bytes) -> int:
    return sum(
        sum(1 for _ in ox.parse(json.loads(line)["graph"], format=ox.RdfFormat.TURTLE))
        for line in data.splitlines()
    )


ALONE: Mapping[str, Callable[[bytes], int]] = {
    "stream.jsonl": parse_lines,
    "stream.jsonl.gz": lambda data: parse_lines(gzip.decompress(data)),
    "stream.ttl": lambda data: sum(
        sum(1 for _ in ox.parse(text, format=ox.RdfFormat.TURTLE)) for text in texts(data)
    ),
    "stream.nq": lambda data: sum(1 for _ in ox.parse(data, format=ox.RdfFormat.N_QUADS)),
    "stream.trig": lambda data: sum(1 for _ in ox.parse(data, format=ox.RdfFormat.TRIG)),
}


def best(action: Callable[[], object], repeats: int) -> float:
    """Seconds of processor time of the quickest of several runs."""
    times = []
    for _ in range(repeats):
        start = process_time()
        action()
        times.append(process_time() - start)
    return min(times)


def measure(count: int, repeats: int) -> list[dict[str, Any]]:
    """A row per format, in µs a graph."""
    with tempfile.TemporaryDirectory() as folder:
        return [row(Path(folder, name), data, count, repeats) for name, data in content(count).items()]


def row(file: Path, data: bytes, count: int, repeats: int) -> dict[str, Any]:
    file.write_bytes(data)
    read = [(graph.time // 1_000_000, graph.triples) for graph in Sources([str(file)])]
    assert len(read) == count, f"{file.name}: {len(read)} of {count} graphs were read"
    assert read == list(HAND[file.name](data)), f"{file.name}: not the graphs that are read by hand"
    del read
    own, hand, alone = (
        best(action, repeats) / count * 1e6
        for action in (
            lambda: sum(1 for _ in Sources([str(file)])),
            lambda: sum(1 for _ in HAND[file.name](file.read_bytes())),
            lambda: ALONE[file.name](file.read_bytes()),
        )
    )
    return {
        "format": file.name,
        "dotr µs": own,
        "by hand µs": hand,
        "pyoxigraph µs": alone,
        "to by hand": own / hand,
        "ratio": own / alone,
    }
