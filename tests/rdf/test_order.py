"""The canonical order is total, exact, and has the classes of the contract."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dotr.rdf.terms import XSD, Term, canonical, integer, literal
from dotr.rdf.values import number, term_key, values_key
from tests.rdf import terms_strategies as t

canonical_terms = t.terms.map(canonical)
maybe_terms = st.none() | canonical_terms


@given(maybe_terms, maybe_terms)
def test_any_two_terms_are_equal_or_ordered(a: Term | None, b: Term | None) -> None:
    assert [term_key(a) < term_key(b), term_key(b) < term_key(a), a == b].count(True) == 1


@given(maybe_terms, maybe_terms, maybe_terms)
def test_the_order_is_transitive(a: Term | None, b: Term | None, c: Term | None) -> None:
    if term_key(a) <= term_key(b) <= term_key(c):
        assert term_key(a) <= term_key(c)


@given(st.lists(t.numbers.map(canonical), min_size=2, max_size=8), st.randoms())
def test_numbers_of_all_types_sort_the_same_from_any_start(terms: list[Term], random: object) -> None:
    expected = sorted(terms, key=term_key)
    random.shuffle(terms)  # type: ignore[attr-defined]  # hypothesis types its Random as object here
    assert sorted(terms, key=term_key) == expected


@given(t.numbers.map(canonical), t.numbers.map(canonical))
def test_numbers_compare_by_exact_value(a: Term, b: Term) -> None:
    left, right = number(a), number(b)
    if (
        left is None
        or right is None
        or any(v in (float("inf"), float("-inf")) or v != v for v in (left, right))
    ):
        return
    if Fraction(left) != Fraction(right):
        assert (term_key(a) < term_key(b)) == (Fraction(left) < Fraction(right))


def test_classes_stand_in_the_order_of_the_contract() -> None:
    ascending: list[Term | None] = [
        None,
        "_:b",
        "<URN:a>",
        "<urn:a>",
        "<urn:a#b>",
        "<urn:ab>",
        literal("-INF", XSD + "double"),
        integer(9),
        integer(10),
        literal("9007199254740992", XSD + "double"),
        integer(9007199254740993),
        literal("INF", XSD + "double"),
        literal("NaN", XSD + "double"),
        '""',
        '"5"',
        '"a"',
        '"a b"',
        literal("false", XSD + "boolean"),
        literal("true", XSD + "boolean"),
        literal("-0044-03-15T12:00:00Z", XSD + "dateTime"),
        literal("1970-01-01T00:00:00Z", XSD + "dateTime"),
        literal("2020-01-01T00:00:00+01:00", XSD + "dateTime"),
        literal("2020-01-01T00:00:00", XSD + "dateTime"),
        literal("2020-01-01T00:00:00Z", XSD + "dateTime"),
        literal("2020-01-01", XSD + "date"),
        '"a"@en',
        literal("x", XSD + "integer"),
    ]
    assert all(term_key(a) < term_key(b) for a, b in pairwise(ascending))


def test_equal_numbers_of_different_types_stand_together_by_text() -> None:
    same = [integer(1), literal("1", XSD + "double"), literal("1", XSD + "decimal")]
    assert sorted(same, key=term_key) == sorted(same)
    assert sorted([*same, integer(2), integer(0)], key=term_key) == [integer(0), *sorted(same), integer(2)]


def test_rows_compare_from_left_to_right() -> None:
    rows = [(integer(1), None), (integer(1), integer(0)), (None, integer(9))]
    assert sorted(rows, key=values_key) == [rows[2], rows[0], rows[1]]
