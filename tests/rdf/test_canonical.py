"""The canonical form of a term is the one a pyoxigraph store gives back."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.rdf import canonical as module
from dotr.rdf.canonical import canonical, canonical_triples, double_text
from dotr.rdf.terms import XSD, Term, is_literal, literal, to_oxigraph
from tests.rdf import terms_strategies as t


def stored(term: Term) -> Term:
    """What a store gives back, language tags in lower case."""
    store = ox.Store()
    place = ox.NamedNode("urn:x")
    store.add(ox.Quad(place, place, to_oxigraph(term)))
    found = next(iter(store)).object
    if isinstance(found, ox.Literal) and found.language:
        return str(ox.Literal(found.value, language=found.language.lower()))
    return str(found)


@given(t.terms)
def test_canonical_form_is_what_a_store_gives_back(term: Term) -> None:
    assert canonical(term) == stored(term)


@given(t.terms)
def test_canonicalising_twice_changes_nothing(term: Term) -> None:
    assert canonical(canonical(term)) == canonical(term)


@given(t.literals)
def test_the_rewriter_agrees_with_the_round_trip(term: Term) -> None:
    if not module._VALUE_TYPES.isdisjoint([term.rpartition("#")[2][:-1]]):
        assert module._canonical(term) == module._round_trip(term)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (literal("01", XSD + "integer"), literal("1", XSD + "integer")),
        (literal("1", XSD + "int"), literal("1", XSD + "integer")),
        (literal("1.50", XSD + "decimal"), literal("1.5", XSD + "decimal")),
        (literal("-0.0", XSD + "decimal"), literal("0", XSD + "decimal")),
        (literal("1.5E10", XSD + "double"), literal("15000000000", XSD + "double")),
        (
            literal("2020-01-01T00:00:00.50+00:00", XSD + "dateTime"),
            literal("2020-01-01T00:00:00.5Z", XSD + "dateTime"),
        ),
        (literal("x", XSD + "integer"), literal("x", XSD + "integer")),
        ('"a"@en-GB', '"a"@en-gb'),
    ],
)
def test_the_examples_of_the_contract(before: Term, after: Term) -> None:
    assert canonical(before) == after


@given(st.integers(2**45, 2**53), st.integers(1, 63), st.sampled_from([-1, 1]))
def test_doubles_half_way_between_two_texts_take_the_engines(whole: int, part: int, sign: int) -> None:
    value = sign * (whole + part / 64)
    assert canonical(literal(repr(value), XSD + "double")) == stored(literal(repr(value), XSD + "double"))
    assert double_text(value) == to_oxigraph(stored(literal(repr(value), XSD + "double"))).value


def test_triples_keep_their_order_and_repeats() -> None:
    triple = ("<urn:s>", "<urn:p>", literal("01", XSD + "integer"))
    plain = ("<urn:s>", "<urn:p>", '"01"')
    assert canonical_triples([triple, plain, triple]) == [
        ("<urn:s>", "<urn:p>", literal("1", XSD + "integer")),
        plain,
        ("<urn:s>", "<urn:p>", literal("1", XSD + "integer")),
    ]


def test_the_table_is_bounded() -> None:
    for i in range(40_000):
        canonical(literal(f"{i}.50", XSD + "decimal"))
    assert len(module.canonical_literals) <= 1 << 15
    canonical(literal("1" * 300, XSD + "integer"))
    assert not any(is_literal(key) and len(key) > 256 for key in module.canonical_literals)
