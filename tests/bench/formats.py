"""Reading alone: the same graphs in every format of time-annotated graphs, by dotr and by pyoxigraph.

Method:  a file of each format, and a folder of Turtle files of one graph; dotr reads them as `dotr run` does
         (time, canonical terms, no repeats, what is wrong with its place). "By hand" is the loop that a
         competent user would write for this very file: pyoxigraph parses, every graph comes out with its time
         as an integer and its triples as text, term by term (`str`); nothing is checked, repeats stay.
         "pyoxigraph" parses the same bytes, or the documents in them, and does nothing with the quads: no
         use, but what parses with it cannot be quicker. Processor time, best of the repeats, all three in
         turn; dotr and the loop by hand deliver the same graphs.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox

from dotr.io.sources import Sources
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


def content(count: int) -> dict[str, bytes | dict[str, bytes]]:
    """File name → bytes; of a folder a file of one graph each."""
    numbers = range(1, count + 1)
    lines = [json.dumps({"time": n, "graph": PREFIXES + graph(n)}) for n in numbers]
    log = 'VERSION "1.2-messages"\n' + PREFIXES + "\nMESSAGE\n".join(map(graph, numbers)) + "\n"
    nquads = b"".join(ox.serialize(quads(n), format=ox.RdfFormat.N_QUADS) or b"" for n in numbers)
    trig = "".join(
        f"<http://example.org/graph/{n}> <{PROV}> {n} .\n<http://example.org/graph/{n}> {{ {graph(n)} }}\n"
        for n in numbers
    )
    jsonl = "\n".join(lines).encode()
    ntriples = [
        ox.serialize(ox.parse(PREFIXES + graph(n), format=ox.RdfFormat.TURTLE), format=ox.RdfFormat.N_TRIPLES)
        for n in numbers
    ]
    archive = BytesIO()
    pq.write_table(
        pa.table({"time": list(numbers), "graph": [(g or b"").decode() for g in ntriples]}), archive
    )
    return {
        "stream.jsonl": jsonl,
        "stream.jsonl.gz": gzip.compress(jsonl),
        "stream.ttl": log.encode(),
        "stream.nq": nquads,
        "stream.trig": (PREFIXES + trig).encode(),
        "log.parquet": archive.getvalue(),
        "folder": {f"{n}.ttl": (PREFIXES + graph(n)).encode() for n in numbers},
    }


Graphs = Iterator[tuple[int, list[Triple]]]


def triples(quads_: Iterable[ox.Quad]) -> list[Triple]:
    return [(str(q.subject), str(q.predicate), str(q.object)) for q in quads_]


def unzipped(file: Path) -> bytes:
    data = file.read_bytes()
    return gzip.decompress(data) if file.suffix == ".gz" else data


def hand_lines(file: Path) -> Graphs:
    for line in unzipped(file).splitlines():
        value = json.loads(line)
        yield value["time"], triples(ox.parse(value["graph"], format=ox.RdfFormat.TURTLE))


def texts(file: Path) -> list[str]:
    """The messages of a log, each with the prefixes."""
    messages = file.read_text().split("\n", 1)[1].removeprefix(PREFIXES).split("\nMESSAGE\n")
    return [PREFIXES + text for text in messages]


def hand_messages(file: Path) -> Graphs:
    for text in texts(file):
        graph = triples(ox.parse(text, format=ox.RdfFormat.TURTLE))
        yield next(literal(o) for _s, p, o in graph if p == PHENOMENON_TIME), graph


def literal(term: str) -> int:
    return int(term[1 : term.index('"', 1)])


def hand_quads(file: Path) -> Graphs:
    """Every graph stands behind its stamp."""
    time: int | None = None
    graph: list[Triple] = []
    for quad in parsed(file):
        if isinstance(quad.graph_name, ox.DefaultGraph):
            if time is not None:
                yield time, graph
            time, graph = literal(str(quad.object)), []
        else:
            graph.append((str(quad.subject), str(quad.predicate), str(quad.object)))
    if time is not None:
        yield time, graph


def parsed(file: Path) -> Iterable[ox.Quad]:
    format_ = ox.RdfFormat.TRIG if file.suffix == ".trig" else ox.RdfFormat.N_QUADS
    return ox.parse(file.read_bytes(), format=format_)


def rows_of(file: Path) -> Iterator[tuple[int, str]]:
    for batch in pq.ParquetFile(file).iter_batches():
        yield from zip(batch["time"].to_pylist(), batch["graph"].to_pylist(), strict=True)


def hand_archive(file: Path) -> Graphs:
    for time, text in rows_of(file):
        yield time, triples(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))


def hand_folder(folder: Path) -> Graphs:
    graphs = []
    for name in os.listdir(folder):
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            graph = triples(ox.parse(file.read(), format=ox.RdfFormat.TURTLE))
        graphs.append((int(name[:-4]), graph))
    graphs.sort(key=lambda pair: pair[0])
    yield from graphs


HAND: Mapping[str, Callable[[Path], Graphs]] = {
    "stream.jsonl": hand_lines,
    "stream.jsonl.gz": hand_lines,
    "stream.ttl": hand_messages,
    "stream.nq": hand_quads,
    "stream.trig": hand_quads,
    "log.parquet": hand_archive,
    "folder": hand_folder,
}


def count(texts_: Iterable[str], format_: ox.RdfFormat = ox.RdfFormat.TURTLE) -> int:
    return sum(sum(1 for _ in ox.parse(text, format=format_)) for text in texts_)


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


ALONE: Mapping[str, Callable[[Path], int]] = {
    "stream.jsonl": lambda file: count(json.loads(line)["graph"] for line in unzipped(file).splitlines()),
    "stream.jsonl.gz": lambda file: count(json.loads(line)["graph"] for line in unzipped(file).splitlines()),
    "stream.ttl": lambda file: count(texts(file)),
    "stream.nq": lambda file: sum(1 for _ in parsed(file)),
    "stream.trig": lambda file: sum(1 for _ in parsed(file)),
    "log.parquet": lambda file: count((text for _, text in rows_of(file)), ox.RdfFormat.N_TRIPLES),
    "folder": lambda folder: count(read(f"{folder}/{name}") for name in os.listdir(folder)),
}


def measure(count: int, repeats: int) -> list[dict[str, Any]]:
    """A row per format, in µs a graph."""
    with tempfile.TemporaryDirectory() as folder:
        return [row(Path(folder, name), data, count, repeats) for name, data in content(count).items()]


def row(file: Path, data: bytes | dict[str, bytes], count: int, repeats: int) -> dict[str, Any]:
    if isinstance(data, bytes):
        file.write_bytes(data)
    else:
        file.mkdir()
        for name, part in data.items():
            Path(file, name).write_bytes(part)
    own = [(graph.time // 1_000_000, graph.triples) for graph in Sources([str(file)])]
    assert len(own) == count, f"{file.name}: {len(own)} of {count} graphs were read"
    assert own == list(HAND[file.name](file)), f"{file.name}: not the graphs that are read by hand"
    del own
    runners: dict[str, Callable[[], object]] = {
        "dotr µs": lambda: sum(1 for _ in Sources([str(file)])),
        "by hand µs": lambda: sum(1 for _ in HAND[file.name](file)),
        "pyoxigraph µs": lambda: ALONE[file.name](file),
    }
    best = dict.fromkeys(runners, float("inf"))
    for _ in range(repeats):
        for name, run in runners.items():  # in turn, so that a busy machine is busy for all
            start = process_time()
            run()
            best[name] = min(best[name], (process_time() - start) / count * 1e6)
    return {
        "format": file.name,
        **best,
        "to by hand": best["dotr µs"] / best["by hand µs"],
        "ratio": best["dotr µs"] / best["pyoxigraph µs"],
    }
