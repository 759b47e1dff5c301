"""Sums are exact: no order, no slicing, no history of removals shows in them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.rdf.sums import ExactSum
from dotr.rdf.terms import XSD, Term, canonical, integer, literal
from dotr.rdf.values import Single, decode, number
from tests.rdf import terms_strategies as t


def double(text: str) -> Term:
    return canonical(literal(text, XSD + "double"))


def decimal(text: str) -> Term:
    return canonical(literal(text, XSD + "decimal"))


def total(*terms: Term | None) -> Term | None:
    return built(terms).total()


def built(terms: tuple[Term | None, ...] | list[Term | None]) -> ExactSum:
    summed = ExactSum()
    for term in terms:
        summed.add(term)
    return summed


numbers = t.numbers.map(canonical)
mostly_numbers = st.lists(numbers | numbers | numbers | t.terms.map(canonical) | st.none(), max_size=8)


@given(mostly_numbers, mostly_numbers)
def test_the_terms_of_one_sum_may_be_included_in_another(
    some: list[Term | None], more: list[Term | None]
) -> None:
    summed, whole = built(some), built(some + more)
    summed.include(built(more))
    assert (summed.total(), summed.mean(7)) == (whole.total(), whole.mean(7))


@given(mostly_numbers, mostly_numbers, st.randoms())
def test_removing_is_the_inverse_of_adding(
    kept: list[Term | None], passing: list[Term | None], random: object
) -> None:
    summed = ExactSum()
    steps = [(True, v) for v in kept + passing]
    random.shuffle(steps)  # type: ignore[attr-defined]  # hypothesis types its Random as object here
    for _, term in steps:
        summed.add(term)
    for term in passing:
        summed.remove(term)
    assert summed.total() == built(kept).total()
    assert summed.mean(len(kept)) == built(kept).mean(len(kept))


@given(st.lists(numbers, max_size=8), st.randoms())
def test_the_order_of_terms_does_not_matter(terms: list[Term], random: object) -> None:
    expected = total(*terms)
    random.shuffle(terms)  # type: ignore[attr-defined]  # hypothesis types its Random as object here
    assert total(*terms) == expected


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_doubles_are_summed_exactly_and_rounded_once(values: list[float]) -> None:
    exact = sum(map(Fraction, values), Fraction(0))
    try:
        expected = float(exact)
    except OverflowError:
        expected = math.inf if exact > 0 else -math.inf
    found = number(total(*(double(repr(v)) for v in values)) or "")
    assert found == expected
    mean = number(built([double(repr(v)) for v in values]).mean(len(values)) or "")
    assert mean == float(exact / len(values))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_floats_alone_are_summed_to_the_nearest_float(values: list[float]) -> None:
    terms = [canonical(literal(repr(v), XSD + "float")) for v in values]
    found = decode(total(*terms) or "")
    assert isinstance(found, Single)
    exact = sum(map(Fraction, values), Fraction(0))
    if math.isfinite(found):
        with np.errstate(over="ignore"):
            beside = [float(np.nextafter(np.float32(found), np.float32(way))) for way in ("inf", "-inf")]
        error = abs(Fraction(found) - exact)
        assert all(error <= abs(Fraction(other) - exact) for other in beside if math.isfinite(other))


@given(st.lists(t.small_integers | t.decimals, max_size=8))
def test_integers_and_decimals_are_summed_exactly(terms: list[Term]) -> None:
    values = [number(canonical(term)) for term in terms]
    found = total(*map(canonical, terms))
    if None in values:
        assert found is None
        return
    exact = sum((Fraction(v) for v in values if v is not None), Fraction(0))
    assert found is not None
    assert Fraction(number(found) or 0) == exact


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([], integer(0)),
        ([integer(2**63 - 1), integer(1)], integer(2**63)),
        ([integer(2**63 - 1), integer(1), integer(-1)], integer(2**63 - 1)),
        ([integer(10**400), integer(-1)], integer(10**400 - 1)),
        ([integer(10**400), decimal("0.5")], decimal(f"1{'0' * 400}.5")),
        ([integer(10**400), double("1")], double("INF")),
        ([integer(-(10**400)), integer(10**400), double("1")], double("NaN")),
        ([integer(2**62), integer(2**62), double("0")], double("9223372036854775808")),
        ([integer(1), decimal("0.5")], decimal("1.5")),
        ([integer(1), decimal("1.0")], decimal("2")),
        ([double("0.1")] * 10, double("1")),
        ([double("1e308"), double("1e308")], double("INF")),
        ([double("1e308"), double("1e308"), double("-1e308")], double("1e308")),
        ([double("INF"), integer(1)], double("INF")),
        ([double("INF"), double("-INF")], double("NaN")),
        ([double("NaN"), double("1")], double("NaN")),
        ([decimal("0.1"), double("0.2")], double("0.30000000000000004")),
        ([integer(9007199254740993), double("0")], double("9007199254740992")),
        ([integer(1), '"a"'], None),
        ([integer(1), None], None),
        ([integer(1), literal("x", XSD + "integer")], None),
        ([canonical(literal("0.5", XSD + "float"))] * 2, canonical(literal("1", XSD + "float"))),
        ([canonical(literal("0.5", XSD + "float")), integer(1)], double("1.5")),
        # the nearest double of the exact total lies on the other side of half-way between two floats
        (
            [canonical(literal(v, XSD + "float")) for v in ["-5", *["-21514597139742720"] * 3]],
            canonical(literal("-64543795000000000", XSD + "float")),
        ),
    ],
)
def test_totals(terms: list[Term | None], expected: Term | None) -> None:
    assert total(*terms) == expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([integer(1), integer(2)], decimal("1.5")),
        ([integer(1), integer(1)], decimal("1")),
        ([integer(1)] + [integer(0)] * 2, decimal("0.333333333333333333")),
        ([integer(-1)] + [integer(0)] * 2, decimal("-0.333333333333333333")),
        ([double("1e308"), double("1e308")], double("1e308")),
        ([double("INF")], double("INF")),
        ([integer(2**63 - 1), integer(1)], decimal("4611686018427387904")),
        ([integer(10**30), integer(1)], decimal("500000000000000000000000000000.5")),
    ],
)
def test_means(terms: list[Term | None], expected: Term | None) -> None:
    assert built(terms).mean(len(terms)) == expected


def test_adding_costs_the_same_however_much_was_added() -> None:
    summed = ExactSum()
    for i in range(20_000):
        summed.add(decimal(f"{i % 100}.25"))
    for i in range(20_000):
        summed.remove(decimal(f"{i % 100}.25"))
    assert summed._decimal == summed._as_doubles == 0
    assert Decimal(0) == number(summed.total() or "")
