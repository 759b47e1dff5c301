"""Documents become canonical triples, or say what is wrong with them and where."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from dotr.errors import DataError
from dotr.io.decode import rdf as parsing
from dotr.io.decode.documents import Format, decode, format_of, read_bytes
from dotr.io.decode.rdf import parse_quads, parse_triples
from dotr.rdf.terms import literal

RDF_XML = """
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="urn:x:">
  <rdf:Description rdf:about="urn:x:a"><x:b rdf:resource="urn:x:c"/></rdf:Description>
</rdf:RDF>"""
XSD = "http://www.w3.org/2001/XMLSchema#"


def refused(code: str, action: Callable[[], object]) -> str:
    """The one diagnostic that `action` ends with, as text."""
    with pytest.raises(DataError) as caught:
        action()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code, str(caught.value)
    return str(caught.value)


def test_terms_are_canonical_and_repeats_are_gone() -> None:
    text = f'<urn:a> <urn:p> 01, 1, "1"^^<{XSD}int>, 1.50, "x"@EN, "x\\n\\u00e9" .'
    assert [o for _s, _p, o in parse_triples(text)] == [
        f'"1"^^<{XSD}integer>',
        f'"1.5"^^<{XSD}decimal>',
        '"x"@en',
        '"x\\né"',
    ]


@pytest.mark.parametrize(
    "inside", ['a " . b', "x <y> z", "tab\t\\ end", "\u2028\x85\x0b", "a\nb\rc", "--ltr", "<<( )>>"]
)
def test_strings_that_look_like_syntax_stay_one_object(inside: str) -> None:
    term = literal(inside)
    assert parse_triples(f"<urn:s> <urn:p> {term} .", Format.NTRIPLES) == [("<urn:s>", "<urn:p>", term)]
    assert parse_quads(f"<urn:s> <urn:p> {term} <urn:g> .", Format.NQUADS) == [
        ("<urn:s>", "<urn:p>", term, "<urn:g>")
    ]


def test_relative_iris_are_resolved_against_the_base_never_a_path(tmp_path: Path) -> None:
    assert parse_triples("<> <#p> <#q> .") == [
        ("<urn:dotr:stream>", "<urn:dotr:stream#p>", "<urn:dotr:stream#q>")
    ]


@pytest.mark.parametrize(
    "iri",
    [
        "http://a/b/../c",
        "http://a/./",
        "urn:..",
        "file:../x",
        "http:x",
        "HTTP://A:80/%7e",
        "x:/..//b?/../c#/./d",
    ],
)
def test_absolute_iris_stay_as_they_are_written_in_short_and_in_long_documents(iri: str) -> None:
    text = f"PREFIX : <{iri}> <{iri}> : <urn:{iri}> ."
    expected = [(f"<{iri}>", f"<{iri}>", f"<urn:{iri}>")]
    long = f"{text} # {'-' * 10_000}"
    bases = (None, "urn:dotr:stream", "http://h/p/q")
    assert all(parse_triples(document, base=base) == expected for document in (text, long) for base in bases)
    assert parse_quads(text, Format.TURTLE) == [(*expected[0], "")]


@pytest.mark.parametrize("head", ["", "PREFIX p: <#>\n", "# a comment\n" * 500])
def test_a_relative_iri_is_resolved_wherever_it_stands_and_refused_without_a_base(head: str) -> None:
    text = f"{head}<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> <x> ."
    assert parse_triples(text, base="http://h/p/q")[1] == ("<urn:s>", "<urn:p>", "<http://h/p/x>")
    assert "--base" in refused("D2001", lambda: parse_triples(text, base=None))


@pytest.mark.parametrize(
    ("text", "parses"),
    [
        ("PREFIX : <urn:x:> :a :b :c , 1 .", 1),
        ("<a> <urn:b> <urn:c> .", 2),
        ("<a> <urn:b> <urn:c> . #" + "-" * 10_000, 1),
        ("<urn:a> <urn:b> <urn:c> . #" + "-" * 10_000, 1),
    ],
)
def test_a_document_is_parsed_once_unless_it_is_short_and_relative(
    monkeypatch: pytest.MonkeyPatch, text: str, parses: int
) -> None:
    calls: list[str] = []

    def parse(text: str, format_: ox.RdfFormat, **options: Any) -> ox.QuadParser:
        calls.append(text)
        return ox.parse(text, format_, **options)

    monkeypatch.setattr(parsing, "parse", parse)
    parse_triples(text)
    assert len(calls) == parses


def test_a_document_without_triples_is_an_empty_graph() -> None:
    assert parse_triples("") == parse_triples("# nothing\n", Format.NTRIPLES) == []


def test_one_triple_is_read_as_it_is_among_others() -> None:
    objects = [
        "<urn:o>",
        "_:b",
        '"x"',
        '"x y"',
        '""',
        '" "',
        '"01"^^<urn:t>',
        '"x y"@EN',
        f'"01"^^<{XSD}int>',
    ]
    together = parse_triples("".join(f"<urn:s> <urn:p> {o} .\n" for o in objects))
    assert [parse_triples(f"<urn:s> <urn:p> {o} .") for o in objects] == [[triple] for triple in together]


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        (Format.TURTLE, "PREFIX : <urn:x:> :a :b :c ."),
        (Format.NTRIPLES, "<urn:x:a> <urn:x:b> <urn:x:c> .\n# comment\n\n"),
        (Format.JSONLD, '{"@id":"urn:x:a","urn:x:b":{"@id":"urn:x:c"}}'),
        (
            Format.RDFXML,
            RDF_XML,
        ),
    ],
)
def test_every_format_gives_the_same_triple(format_: Format, text: str) -> None:
    assert parse_triples(text, format_) == [("<urn:x:a>", "<urn:x:b>", "<urn:x:c>")]


def test_names_say_formats_and_gz_is_put_aside() -> None:
    found = [
        format_of(name) for name in ("a.ttl", "b.NQ.gz", "c.n3", "d.owl", "e.jsonl", "f.txt", "ttl", "g.gz")
    ]
    assert found == [
        Format.TURTLE,
        Format.NQUADS,
        Format.TURTLE,
        Format.RDFXML,
        Format.JSONLINES,
        None,
        None,
        None,
    ]


def test_a_syntax_error_says_file_line_and_column() -> None:
    message = refused("D2001", lambda: parse_triples("PREFIX : <urn:x:>\n\n:a :b .\n", name="bad.ttl"))
    assert "bad.ttl:3:7" in message


def test_the_message_of_an_undeclared_prefix_says_how_to_declare_it() -> None:
    assert "PREFIX" in refused("D2001", lambda: parse_triples(":a :b :c ."))


def test_latin1_is_refused_with_its_byte() -> None:
    message = refused("D2002", lambda: decode("ab\nc\xe9".encode("latin-1"), "x.ttl"))
    assert "x.ttl:2:2" in message
    assert "0xE9" in message


@pytest.mark.parametrize("format_", [Format.TURTLE, Format.NTRIPLES, Format.TRIG])
def test_half_a_character_is_refused_with_its_place_not_with_a_traceback(format_: Format) -> None:
    text = '<urn:a> <urn:b> 1 .\n<urn:a> <urn:b> "\ud800" .'
    message = refused("D2002", lambda: parse_triples(text, format_, "x"))
    assert "x:2:18" in message
    assert "\\uD800" in message
    assert message.isascii()


def test_a_byte_order_mark_is_no_content() -> None:
    assert parse_triples(decode("\ufeff<urn:a> <urn:b> 1 .".encode(), "x")) == [
        ("<urn:a>", "<urn:b>", f'"1"^^<{XSD}integer>')
    ]


@pytest.mark.parametrize(
    "object_",
    [
        "<<( <urn:a> <urn:b> <urn:c> )>>",
        '"x"@en--ltr',
        '1, "x y"@en--ltr',
        '"--ltr", <<( <urn:a> <urn:b> 1 )>>',
        "<urn:c> ~ <urn:d>",
        "<urn:c> {| <urn:p> 1 |}",
    ],
)
def test_terms_of_rdf_12_are_refused_by_name(object_: str) -> None:
    assert "RDF 1.2" in refused("D2004", lambda: parse_triples(f"<urn:a> <urn:b> {object_} ."))
    assert "RDF 1.2" in refused(
        "D2004", lambda: parse_quads(f"<urn:g> {{ <urn:a> <urn:b> {object_} }}", Format.TRIG)
    )


def test_json_ld_never_fetches_a_context() -> None:
    document = '{"@context":"http://example.org/context","@id":"urn:a","name":"x"}'
    assert "network" in refused("D2005", lambda: parse_triples(document, Format.JSONLD))


def test_named_graphs_are_refused_where_one_graph_is_wanted() -> None:
    refused("D2001", lambda: parse_triples("<urn:g> { <urn:a> <urn:b> 1 }", Format.TRIG))
    refused("D2001", lambda: parse_triples("<urn:a> <urn:b> <urn:c> <urn:g> .", Format.NQUADS))


def test_xml_entities_that_swell_without_measure_are_refused() -> None:
    levels = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    document = f'<!DOCTYPE rdf:RDF [<!ENTITY e0 "aaaaaaaaaa">{levels}]><rdf:RDF>&e11;</rdf:RDF>'
    refused("D2007", lambda: parse_triples(document, Format.RDFXML))


def test_gzip_is_known_by_its_bytes_and_bounded(tmp_path: Path) -> None:
    content = b"<urn:a> <urn:b> 1 .\n" * 1000
    (tmp_path / "a.ttl").write_bytes(gzip.compress(content))
    assert read_bytes(str(tmp_path / "a.ttl")) == content
    refused("D2006", lambda: read_bytes(str(tmp_path / "a.ttl"), limit=1000))


def test_a_damaged_archive_and_a_missing_file_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.ttl.gz").write_bytes(gzip.compress(b"x" * 10_000)[:-12])
    refused("D2007", lambda: read_bytes(str(tmp_path / "a.ttl.gz")))
    refused("D2003", lambda: read_bytes(str(tmp_path / "none.ttl")))
