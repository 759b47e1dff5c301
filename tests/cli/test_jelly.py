"""Jelly in and out: the same graphs as in other formats, and what is told of files that are none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

pytest.importorskip("pyjelly", reason="the extra `jelly`")

from pyjelly import jelly
from pyjelly.integrations.generic.generic_sink import (
    IRI,
    BlankNode,
    GenericStatementSink,
    Literal,
    Quad,
    Triple,
)
from pyjelly.integrations.generic.serialize import flat_stream_to_file, grouped_stream_to_file
from pyjelly.serialize.streams import SerializerOptions

from tests.cli.conftest import Dotr

HOT = """PREFIX : <http://example.org/>
RULE Hot DEFINE { dotr_e a :Hot ; :in ?s ; :celsius ?c }
FROM Reading := { SELECT ?s ?c WHERE { ?s :celsius ?c FILTER(?c > 30) } }
WITH ?s := Reading.?s, ?c := Reading.?c
"""
EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "http://www.w3.org/ns/prov#"
SOSA = "http://www.w3.org/ns/sosa/"


@pytest.fixture(autouse=True)
def _rules(folder: Path) -> None:
    Path("hot.dotr").write_text(HOT)


def triples(number: int) -> list[Triple]:
    room = IRI(f"{EX}room{number}")
    return [
        Triple(room, IRI(f"{EX}celsius"), Literal(f"{30 + number}.5", None, f"{XSD}decimal")),
        Triple(room, IRI(f"{EX}note"), Literal('a "quote"\nand a line', "en")),
        Triple(room, IRI(f"{EX}near"), BlankNode("a b")),
        Triple(room, IRI(f"{SOSA}resultTime"), Literal(str(number), None, f"{XSD}integer")),
    ]


def sinks(count: int) -> list[GenericStatementSink]:
    made = []
    for number in range(count):
        sink = GenericStatementSink()
        for triple in triples(number):
            sink.add(triple)
        made.append(sink)
    return made


def grouped(path: str, count: int = 3) -> None:
    options = SerializerOptions(logical_type=jelly.LOGICAL_STREAM_TYPE_GRAPHS)
    with open(path, "wb") as file:
        grouped_stream_to_file(iter(sinks(count)), file, options=options)


def quads(path: str) -> None:
    statements = []
    for number in range(3):
        name = IRI(f"{EX}g{number}")
        stamp = Triple(
            name,
            IRI("http://www.w3.org/ns/prov#generatedAtTime"),
            Literal(str(number), None, f"{XSD}integer"),
        )
        statements += [Quad(*stamp, GenericStatementSink().identifier)]
        statements += [Quad(*triple, name) for triple in triples(number)]
    with open(path, "wb") as file:
        flat_stream_to_file(iter(statements), file)


def found(out: str) -> list[tuple[object, object]]:
    events = map(json.loads, out.splitlines())
    return [(event["time"], event["bindings"]["c"]["value"]) for event in events]


def test_frames_of_a_stream_of_graphs_are_graphs(dotr: Dotr) -> None:
    grouped("x.jelly")
    ran = dotr("run", "hot.dotr", "x.jelly")
    assert (ran.code, found(ran.out)) == (0, [(0, "30.5"), (1, "31.5"), (2, "32.5")])
    Path("y.jelly.gz").write_bytes(gzip.compress(Path("x.jelly").read_bytes()))
    assert dotr("run", "hot.dotr", "y.jelly.gz").out == ran.out


def test_quads_are_grouped_as_those_of_n_quads(dotr: Dotr) -> None:
    quads("x.jelly")
    assert found(dotr("run", "hot.dotr", "x.jelly").out) == [(0, "30.5"), (1, "31.5"), (2, "32.5")]


def test_a_flat_stream_of_triples_is_a_document_and_a_dump(dotr: Dotr) -> None:
    with open("one.jelly", "wb") as file:
        flat_stream_to_file(iter(triples(5)), file)
    assert found(dotr("run", "hot.dotr", "one.jelly").out) == [(5, "35.5")]
    with open("many.jelly", "wb") as file:
        flat_stream_to_file(iter([*triples(5), *triples(4)]), file)
    whole = dotr("run", "hot.dotr", "many.jelly")
    assert (whole.code, "--split" in whole.err) == (3, True)
    split = dotr("run", "hot.dotr", "many.jelly", "--split", f"{EX}celsius")
    assert found(split.out) == [(4, "34.5"), (5, "35.5")]


def test_every_verb_reads_it(dotr: Dotr) -> None:
    grouped("x.jelly")
    ran = dotr("run", "hot.dotr", "x.jelly")
    assert dotr("batch", "hot.dotr", "x.jelly", "--out", "out", "--engine", "local").code == 0
    assert "".join(part.read_text() for part in sorted(Path("out").glob("part-*"))) == ran.out
    assert dotr("deploy", "hot.dotr").code == 0
    assert dotr("feed", "x.jelly").out == ran.out
    assert dotr("feed", "x.jelly").out == ""
    grouped("x.jelly", 4)
    assert found(dotr("feed", "x.jelly").out) == [(3, "33.5")]
    assert dotr("times", "x.jelly").code == 0


def test_what_is_written_is_a_source(dotr: Dotr) -> None:
    grouped("x.jelly")
    ran = dotr("run", "hot.dotr", "x.jelly")
    assert dotr("convert", "x.jelly", "-o", "x.nq").code == 0
    assert dotr("convert", "x.nq", "-o", "again.jelly").code == 0
    assert dotr("run", "hot.dotr", "again.jelly").out == ran.out
    assert dotr("convert", "again.jelly", "-o", "again.nq").code == 0
    assert Path("again.nq").read_text() == Path("x.nq").read_text()
    Path("relay.dotr").write_text(
        "PREFIX : <http://example.org/>\nRULE Again DEFINE { dotr_e a :Again }\n"
        "FROM Hot := { SELECT ?e WHERE { ?e a :Hot } }\n"
    )
    assert dotr("run", "hot.dotr", "x.jelly", "-o", "events.jelly").code == 0
    assert dotr("run", "hot.dotr", "x.jelly", "-o", "events.nq").code == 0
    relayed = dotr("run", "relay.dotr", "events.jelly")
    assert relayed.out.count("\n") == 3
    assert relayed.out == dotr("run", "relay.dotr", "events.nq").out


def test_an_output_without_events_is_a_stream(dotr: Dotr) -> None:
    grouped("x.jelly", 1)
    Path("none.dotr").write_text(HOT.replace("> 30", "> 300"))
    assert dotr("run", "none.dotr", "x.jelly", "-o", "events.jelly").code == 0
    assert dotr("run", "hot.dotr", "events.jelly").code == 0


@pytest.mark.parametrize("cut", [1, 2, 10, 60, 200])
def test_what_is_cut_off_is_told(dotr: Dotr, cut: int) -> None:
    grouped("x.jelly")
    Path("x.jelly").write_bytes(Path("x.jelly").read_bytes()[:-cut])
    ran = dotr("run", "hot.dotr", "x.jelly")
    assert (ran.code, "D2412" in ran.err) == (3, True)
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("content", [b"@prefix : <urn:> .\n", b"\xff" * 40, b"\x0a\x0b\x0c" * 9, b"\x0a"])
def test_what_is_no_jelly_is_told(dotr: Dotr, content: bytes) -> None:
    Path("x.jelly").write_bytes(content)
    ran = dotr("run", "hot.dotr", "x.jelly")
    assert (ran.code, "D2412" in ran.err) == (3, True)


@pytest.mark.parametrize(
    "term",
    [
        IRI("http://example.org/> <urn:x> <urn:y> .\n<urn:a"),
        Literal("x", "en> . <urn:a> <urn:b> <urn:c"),
        Literal("x", None, "urn:x> . <urn:a> <urn:b> <urn:c"),
        Triple(IRI("urn:a"), IRI("urn:b"), IRI("urn:c")),
    ],
)
def test_no_term_gets_out_of_its_place(dotr: Dotr, term: object) -> None:
    with open("x.jelly", "wb") as file:
        flat_stream_to_file(iter([*triples(1), Triple(IRI("urn:s"), IRI("urn:p"), term)]), file)
    ran = dotr("run", "hot.dotr", "x.jelly")
    assert (ran.code, "D2412" in ran.err) == (3, True)
