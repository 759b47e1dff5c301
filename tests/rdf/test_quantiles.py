"""The value of a rank: interpolated exactly, of the type of a mean, whatever came and left in between."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.rdf.quantiles import Quantile, quantile
from dotr.rdf.terms import XSD, Term, canonical, integer, literal


def typed(text: str, kind: str) -> Term:
    return canonical(literal(text, XSD + kind))


def decimal(text: str) -> Term:
    return typed(text, "decimal")


def double(text: str) -> Term:
    return typed(text, "double")


ONE, TWO, FOUR = integer(1), integer(2), integer(4)
MONTHS = [typed(text, "yearMonthDuration") for text in ("P1M", "P2M")]
SECONDS = [typed(text, "dayTimeDuration") for text in ("-PT1S", "PT2S")]


@pytest.mark.parametrize(
    ("share", "terms", "wanted"),
    [
        ("1/2", [FOUR, ONE, TWO], decimal("2")),
        ("1/2", [FOUR, ONE], decimal("2.5")),
        ("0", [FOUR, ONE, TWO], decimal("1")),
        ("1", [FOUR, ONE, TWO], decimal("4")),
        ("9/10", [ONE, TWO, FOUR], decimal("3.6")),
        ("1/3", [ONE, TWO], decimal("1.333333333333333333")),
        ("1/3", [integer(-1), integer(-2)], decimal("-1.666666666666666666")),
        ("1/2", [ONE, double("2")], double("1.5")),
        ("1/2", [typed("1", "float"), typed("2", "float")], typed("1.5", "float")),
        ("1/2", [double("-0.0")], double("0")),
        ("1/2", [double("-INF"), double("INF")], double("NaN")),
        ("1/4", [double("1"), double("INF")], double("INF")),
        ("1/2", [double("NaN"), ONE, TWO], double("NaN")),
        ("1/2", MONTHS, MONTHS[1]),  # a half upwards
        ("1/2", SECONDS, typed("PT0.5S", "dayTimeDuration")),
        ("1/2", [*MONTHS, *SECONDS], None),
        ("1/2", [ONE, None], None),
        ("1/2", [ONE, '"x"'], None),
        ("1/2", [], None),
    ],
)
def test_the_value_of_a_rank(share: str, terms: list[Term | None], wanted: Term | None) -> None:
    assert quantile(Fraction(share), terms) == wanted


NUMBERS = st.sampled_from([ONE, TWO, FOUR, decimal("2.5"), double("-0.0"), double("0.1"), integer(0)])


@given(st.lists(NUMBERS, min_size=1), st.lists(NUMBERS), st.fractions(0, 1))
def test_what_left_has_left_no_trace(stays: list[Term], goes: list[Term], share: Fraction) -> None:
    kept = Quantile(share)
    for term in (*goes, *stays):
        kept.add(term)
    for term in goes:
        kept.remove(term)
    assert kept.value() == quantile(share, stays)


@pytest.mark.parametrize(
    "kept", [ONE, typed("1.0", "decimal"), MONTHS[0], typed("PT0.000000000000000001S", "dayTimeDuration")]
)
def test_of_equal_values_of_several_types_the_type_of_the_one_that_stays_decides(kept: Term) -> None:
    whole = Quantile(Fraction(1, 2))
    for term in (kept, double("1e0")):
        whole.add(term)
    whole.remove(double("1e0"))
    assert whole.value() == quantile(Fraction(1, 2), [kept])
    whole.add(double("1e0"))
    whole.remove(kept)
    assert whole.value() == double("1e0")
