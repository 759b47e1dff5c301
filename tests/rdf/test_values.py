"""Decoded values are those the full engine computes with."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.rdf.terms import XSD, Term, canonical, integer, literal, literal_parts
from dotr.rdf.values import DateTime, decode, instant, number
from tests.rdf import terms_strategies as t

STORE = ox.Store()


def engine(expression: str, a: Term, b: Term) -> str | None:
    """The text of an answer. By VALUES: the engine answers `=` otherwise where terms are substituted."""
    rows = STORE.query(f"SELECT ({expression} AS ?r) {{ VALUES (?a ?b) {{ ({a} {b}) }} }}")
    found = next(iter(rows))["r"]  # type: ignore[union-attr, index]  # a SELECT has rows of solutions
    return None if found is None else found.value


@given(t.literals)
def test_a_term_is_a_number_exactly_when_the_engine_says_so(term: Term) -> None:
    lexical, datatype, _ = literal_parts(canonical(term))
    large = datatype == XSD + "integer" and re.fullmatch("-?[0-9]+", lexical) is not None
    fine = datatype == XSD + "decimal" and re.fullmatch(r"[+-]?[0-9]*\.?[0-9]*", lexical) is not None
    known = large or (fine and any(c.isdigit() for c in lexical))
    assert (number(term) is not None) == (known or engine("isNumeric(?a)", term, term) == "true")


@given(t.datetimes)
def test_a_datetime_is_an_instant_exactly_when_the_engine_has_its_year(term: Term) -> None:
    assert (instant(term) is not None) == (engine("YEAR(?a)", term, term) is not None)


@given(t.datetimes, t.datetimes)
def test_instants_compare_as_in_the_engine_where_both_have_a_zone(a: Term, b: Term) -> None:
    left, right = decode(a), decode(b)
    if isinstance(left, DateTime) and isinstance(right, DateTime) and left.zoned == right.zoned:
        assert str(left.ticks < right.ticks).lower() == engine("?a < ?b", a, b)
        assert str(left.ticks == right.ticks).lower() == engine("?a = ?b", a, b)


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_are_microseconds_since_1970(moment: datetime) -> None:
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
    assert instant(literal(moment.isoformat(), XSD + "dateTime")) == micros


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (integer(5), 5),
        (literal("01", XSD + "int"), 1),
        (literal("1.50", XSD + "decimal"), Decimal("1.5")),
        (literal("1e3", XSD + "double"), 1000.0),
        (literal("9223372036854775808", XSD + "integer"), 2**63),
        (literal("+0018446744073709551615", XSD + "unsignedLong"), 2**64 - 1),
        (literal("18446744073709551616", XSD + "unsignedLong"), None),
        (literal("9223372036854775808", XSD + "long"), None),
        (literal("-18446744073709551616", XSD + "positiveInteger"), None),
        (literal("-18446744073709551616", XSD + "negativeInteger"), -(2**64)),
        (literal("9" * 4096, XSD + "integer"), 10**4096 - 1),
        (literal("9" * 4097, XSD + "integer"), None),
        (literal("9" * 1_000_000, XSD + "nonNegativeInteger"), None),
        (literal("1e400", XSD + "double"), float("inf")),
        (literal("0.1234567890123456789", XSD + "decimal"), Decimal("0.123456789012345678")),
        ('"5"', None),
        ("<urn:x>", None),
        ("_:b", None),
        (literal("true", XSD + "boolean"), None),
    ],
)
def test_numbers(term: Term, value: object) -> None:
    assert number(term) == value


@given(t.terms)
def test_the_value_of_a_term_is_that_of_its_canonical_form(term: Term) -> None:
    left, right = decode(term), decode(canonical(term))
    assert left == right or (left != left and right != right)
    assert type(left) is type(right)
