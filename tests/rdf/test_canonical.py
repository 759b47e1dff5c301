"""The canonical form of a term is the one a pyoxigraph store gives back."""

from __future__ import annotations

import re

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.rdf import terms as module
from dotr.rdf.terms import XSD, Term, canonical, double_text, is_literal, literal, literal_parts, to_oxigraph
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


UNBOUNDED = {"integer", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"}


def numeric_form(term: Term) -> Term:
    """By Python's int: the form of a number that is past the store's bits; any other term."""
    lexical, datatype, _ = literal_parts(term) if is_literal(term) else ("", "", "")
    name = datatype.removeprefix(XSD)
    if name in UNBOUNDED | {"unsignedLong"} and re.fullmatch("[+-]?[0-9]+", lexical):
        value, signed = int(lexical), name in ("integer", "nonPositiveInteger", "negativeInteger")
        fits = signed if value < 0 else name in ("integer", "nonNegativeInteger", "positiveInteger")
        if abs(value) > 2**63 and (fits or (name == "unsignedLong" and 0 <= value < 2**64)):
            return literal(str(value), XSD + "integer")
    number = re.fullmatch(r"([+-]?)0*([0-9]{20,})(?:\.([0-9]*?)0*)?", lexical) if name == "decimal" else None
    if number and len(number[3] or "") <= 18:
        sign, fraction = number[1].strip("+"), f".{number[3]}" if number[3] else ""
        return literal(f"{sign}{number[2]}{fraction}", XSD + "decimal")
    return term


def form(term: Term) -> Term:
    return stored(numeric_form(term))


@given(t.terms)
def test_canonical_form_is_what_a_store_gives_back(term: Term) -> None:
    assert canonical(term) == form(term)


@given(t.terms)
def test_canonicalising_twice_changes_nothing(term: Term) -> None:
    assert canonical(canonical(term)) == canonical(term)


@given(t.literals)
def test_the_rewriter_agrees_with_the_round_trip(term: Term) -> None:
    if not module._VALUE_TYPES.isdisjoint([term.rpartition("#")[2][:-1]]):
        assert module.canonical_literal(term) == module._round_trip(numeric_form(term))


@given(
    st.sampled_from(["0000", "0001", "1900", "2000", "2023", "2024", "9999"]),
    *[st.integers(0, 14), st.integers(0, 32), st.integers(0, 25), st.integers(0, 61), st.integers(0, 61)],
    st.sampled_from(["", ".5", ".500", ".000", ".123456789012345678", f".{'9' * 18}", "."]),
    st.sampled_from(["", "Z", "+00:00", "-00:00", "+05:30", "-13:59", "+14:00", "-14:01", "z", "+5:00"]),
)
def test_date_times_are_what_a_store_gives_back(
    year: str, month: int, day: int, hour: int, minute: int, second: int, fraction: str, zone: str
) -> None:
    text = f"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"
    term = literal(text, XSD + "dateTime")
    assert canonical(term) == stored(term)


@pytest.mark.parametrize("day", ["01-31", "02-28", "02-29", "02-30", "04-30", "04-31", "12-31", "11-31"])
@pytest.mark.parametrize("year", ["2023", "2024"])
def test_the_last_days_of_months_are_what_a_store_gives_back(year: str, day: str) -> None:
    term = literal(f"{year}-{day}T08:00:00.50+01:00", XSD + "dateTime")
    assert canonical(term) == stored(term)


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


def test_the_table_is_bounded() -> None:
    for i in range(40_000):
        canonical(literal(f"{i}.50", XSD + "decimal"))
    assert len(module.canonical_literals) <= 1 << 15
    canonical(literal("1" * 300, XSD + "integer"))
    assert not any(is_literal(key) and len(key) > 256 for key in module.canonical_literals)
