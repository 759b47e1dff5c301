"""Documents parsed together have the graphs that they have alone, or are left alone."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.decode.plain import BatchParser, common_head
from dotr.io.decode.rdf import parse_triples
from dotr.rdf.blanks import label_stream
from dotr.rdf.terms import Triple

HEAD = "PREFIX : <urn:x:>\n@prefix y: <urn:y:> . "
WHOLE = [
    ":a :b :c .",
    ":a :b 1 , 01 ; :c 'x y' .",
    "[] :p [ :q 1 ] .",
    "_:b :p _:c .",
    "<r> <#s> <> .",
    ":a :p ( 1 2 ) .",
    "# a comment",
    ":a :b :c . # and a comment",
    ":database :version <urn:x/prefix#base> .",
    "",
    "\n\n",
]
BROKEN = [
    *[":a", ":a :b", ":a :b :c", ":a :b :c ;", ":a :b :c ,", "[", "]", "[ :p", "[ :p :o", "[ :p :o ]"],
    *[
        "(",
        "( 1",
        ")",
        "<<",
        "<< :a",
        "<< :a :b",
        "<< :a :b :c",
        ">>",
        "<<(",
        ")>>",
        ":a :b :c ~",
        ":a :b :c {|",
    ],
    *[
        "|}",
        ".",
        ";",
        "a",
        "1",
        '"',
        '"x"',
        ':a :b "x"',
        ':a :b "x"@',
        ':a :b "x"^^',
        ':a :b "x',
        "<urn:a",
        "'''",
    ],
    *['"""', ':a :b """', '""" .', ":a :b '\\", "undeclared:a :b :c .", "\ud800", ':a :b "x"@en--ltr .'],
    *[":a :b <<( :a :b :c )>> .", "<dotr:> <dotr:> <dotr:> .", "<dotr:>"],
    *[
        "PREFIX : <urn:z:>",
        "@prefix : <urn:z:> .",
        "BASE <urn:z:>",
        "@base <q> .",
        ":a :b 1.base <z>",
        'VERSION "1.2"',
    ],
]


def alone(texts: list[str], head: str) -> list[list[Triple]] | None:
    try:
        return [parse_triples(f"{head}\n{text}") for text in texts]
    except DataError:
        return None


def labelled(graphs: list[list[Triple]]) -> list[list[Triple]]:
    """Anonymous nodes have other labels every time."""
    return [sorted(label_stream([graph], 0)[0]) for graph in graphs]


@given(st.lists(st.sampled_from(WHOLE), min_size=1, max_size=6))
def test_whole_documents_are_the_same_together_and_alone(texts: list[str]) -> None:
    found, expected = BatchParser().parse(texts, HEAD), alone(texts, HEAD)
    assert found is not None
    assert expected is not None
    assert labelled(found) == labelled(expected)
    assert [len(graph) for graph in found] == [len(graph) for graph in expected]


@given(st.lists(st.sampled_from(WHOLE[:2] + BROKEN), min_size=2, max_size=5), st.sampled_from(["", HEAD]))
def test_a_document_that_is_bad_alone_is_not_good_in_company(texts: list[str], head: str) -> None:
    found, expected = BatchParser().parse(texts, head), alone(texts, head)
    assert found is None or (expected is not None and labelled(found) == labelled(expected))


def test_no_two_pieces_make_a_document() -> None:
    ends = [":b .", ":b :c .", ":p :o ] .", ") .", ">> :p :o .", *BROKEN]
    for first, second in product(BROKEN + WHOLE, ends):
        found, expected = BatchParser().parse([first, second], HEAD), alone([first, second], HEAD)
        assert found is None or (expected is not None and labelled(found) == labelled(expected))


def test_the_head_is_what_all_declare_and_nothing_else() -> None:
    assert common_head([HEAD + ":a :b 1 .", HEAD + ":c :d 2 ."]) == HEAD.rstrip()
    assert common_head([HEAD + ":a :b 1 .", ":c :d 2 ."]) == ""
    assert common_head([":a :b 1 .", ":a :b 1 ."]) == ""
    assert common_head(["PREFIX : <urn:x:> :a", "PREFIX : <urn:x:> :b"]) == "PREFIX : <urn:x:>"
    assert common_head(["@prefix : <urn:x:>"] * 2) == ""


def test_long_documents_are_left_alone() -> None:
    assert BatchParser().parse([":a :b 1 .", ":a :b 1 . #" + "-" * 100_000], HEAD) is None


def test_after_a_failure_documents_are_left_alone_for_a_while() -> None:
    together = BatchParser()
    good = [":a :b 'x' , 2 ."] * 2  # not plain: those are read without a parser
    assert together.parse(good, HEAD) is not None
    assert together.parse([*good, ":a :b"], HEAD) is None
    tries = [together.parse(good, HEAD) is not None for _ in range(20)]
    assert tries == sorted(tries)
    assert tries[-1]
    assert not tries[0]
