"""Jelly in and out: the same graphs as in other formats, and what is reported of files that are not Jelly."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
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

from dotr.io.decode.documents import is_jelly
from tests.cli.conftest import Dotr

HOT = """PREFIX : <http://example.org/>
RULE Hot DEFINE { dotr_e a :Hot ; :in ?s ; :celsius ?c }
FROM Reading := { SELECT ?s ?c WHERE { ?s :celsius ?c FILTER(?c > 30) } }
WITH ?s := Reading.?s, ?c := Reading.?c
"""
RELAY = """PREFIX : <http://example.org/>
RULE Again DEFINE { dotr_e a :Again }
FROM Hot := { SELECT ?e WHERE { ?e a :Hot } }
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
    Path("relay.dotr").write_text(RELAY)
    assert dotr("run", "hot.dotr", "x.jelly", "-o", "events.jelly").code == 0
    assert dotr("run", "hot.dotr", "x.jelly", "-o", "events.nq").code == 0
    relayed = dotr("run", "relay.dotr", "events.jelly")
    assert relayed.out.count("\n") == 3
    assert relayed.out == dotr("run", "relay.dotr", "events.nq").out


def test_a_feed_writes_a_part_a_commit(dotr: Dotr) -> None:
    grouped("x.jelly")
    assert dotr("deploy", "hot.dotr").code == 0
    assert dotr("feed", "x.jelly", "-o", "events.jelly", "--commit-graphs", "2").code == 0
    first = sorted(Path("events.jelly").iterdir())
    count = len(first)  # 2, or 1 where a slow machine puts a commit off
    assert [path.name for path in first] == [f"part-00000{number}.jelly" for number in range(count)]
    Path("events.jelly/part-000099.jelly").write_bytes(b"left by a crash")
    grouped("x.jelly", 4)
    assert dotr("feed", "x.jelly", "-o", "events.jelly").code == 0
    assert sorted(path.name for path in Path("events.jelly").iterdir()) == [
        f"part-00000{number}.jelly" for number in range(count + 1)
    ]
    assert f"{count + 1} files" in dotr("status").out
    grouped("whole.jelly", 4)
    assert dotr("run", "hot.dotr", "whole.jelly", "-o", "ran.nq").code == 0
    assert dotr("convert", "ran.nq", "-o", "whole.nq").code == 0
    assert dotr("convert", "events.jelly", "-o", "fed.nq").code == 0
    assert Path("fed.nq").read_text() == Path("whole.nq").read_text()
    refused = dotr("feed", "x.jelly", "-o", "events.jelly", "--format", "parquet")
    assert (refused.code, "error[D5206]" in refused.err) == (5, True)


def test_a_feed_writes_one_stream_to_a_pipe() -> None:
    grouped("x.jelly")
    program = [sys.executable, "-m", "dotr"]
    subprocess.run([*program, "deploy", "hot.dotr"], check=True, capture_output=True)
    fed = subprocess.run(
        [*program, "feed", "x.jelly", "--format", "jelly"], check=True, capture_output=True
    ).stdout
    again = subprocess.run(
        [*program, "feed", "x.jelly", "--format", "jelly"], check=True, capture_output=True
    ).stdout
    assert len(fed) > len(again) > 0
    Path("relay.dotr").write_text(RELAY)
    for content, count in ((fed, 3), (again, 0)):
        ran = subprocess.run(
            [*program, "run", "relay.dotr", "-", "--format", "jsonl"], input=content, capture_output=True
        )
        assert (ran.returncode, ran.stdout.count(b"\n")) == (0, count)


def test_parts_of_a_batch_are_streams(dotr: Dotr) -> None:
    grouped("x.jelly")
    grouped("y.jelly", 4)
    logs = ("x.jelly", "y.jelly")
    assert dotr("run", "hot.dotr", *logs, "-o", "ran.nq").code == 0
    assert dotr("convert", "ran.nq", "-o", "events.nq").code == 0
    ran = dotr("batch", "hot.dotr", *logs, "--engine", "local", "--out", "events.jelly")
    assert ran.code == 0
    parts = sorted(Path("events.jelly").glob("part-*"))
    assert parts
    assert all(part.suffix == ".jelly" for part in parts)
    assert dotr("convert", "events.jelly", "-o", "batch.nq").code == 0
    assert Path("batch.nq").read_text() == Path("events.nq").read_text()


def test_a_batch_to_a_uri_is_refused_with_what_is_written_there(dotr: Dotr) -> None:
    grouped("x.jelly")
    ran = dotr("batch", "hot.dotr", "x.jelly", "--out", "hdfs://nowhere/events.jelly")
    assert (ran.code, "error[D4151]: dotr batch does not write Jelly at a URI" in ran.err) == (2, True)


@pytest.mark.parametrize("make", [grouped, quads])
def test_standard_input_is_known_by_its_first_bytes(dotr: Dotr, make: Callable[[str], None]) -> None:
    make("x.jelly")
    expected = dotr("run", "hot.dotr", "x.jelly").out
    content = Path("x.jelly").read_bytes()
    with open("x.jelly", "rb") as file:
        ran = subprocess.run(
            [sys.executable, "-m", "dotr", "run", "hot.dotr", "-", "--format", "jsonl"],
            stdin=file,
            capture_output=True,
        )
    assert (ran.returncode, ran.stdout.decode()) == (0, expected)
    assert is_jelly(content)
    assert not any(is_jelly(content[:size]) for size in range(4))


def test_a_lone_frame_is_known_by_its_first_bytes() -> None:
    with open("x.jelly", "wb") as file:
        flat_stream_to_file(iter(triples(5)), file)
    content = Path("x.jelly").read_bytes()
    assert content[0] > 127, "its length takes two bytes"
    assert is_jelly(content)
    assert is_jelly(content[2:])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "\n" * 20,
        "\n\r\n\r\n",
        "# a\n# b\n",
        '{"time": 1, "graph": ""}\n',
        "\n<urn:s>\n<urn:p>\n1 .\n",
    ],
)
def test_texts_are_no_jelly(text: str) -> None:
    assert not is_jelly(text.encode())


def test_an_output_without_events_is_a_stream(dotr: Dotr) -> None:
    grouped("x.jelly", 1)
    Path("none.dotr").write_text(HOT.replace("> 30", "> 300"))
    assert dotr("run", "none.dotr", "x.jelly", "-o", "events.jelly").code == 0
    assert dotr("run", "hot.dotr", "events.jelly").code == 0


@pytest.mark.parametrize("cut", [1, 2, 10, 60, 200])
def test_what_is_cut_off_is_reported(dotr: Dotr, cut: int) -> None:
    grouped("x.jelly")
    Path("x.jelly").write_bytes(Path("x.jelly").read_bytes()[:-cut])
    ran = dotr("run", "hot.dotr", "x.jelly")
    assert (ran.code, "D2412" in ran.err) == (3, True)
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("content", [b"@prefix : <urn:> .\n", b"\xff" * 40, b"\x0a\x0b\x0c" * 9, b"\x0a"])
def test_what_is_no_jelly_is_reported(dotr: Dotr, content: bytes) -> None:
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
