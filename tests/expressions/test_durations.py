"""Durations as operands, by XPath and XQuery Functions and Operators 3.1, and where its examples say more."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.events import Clock
from dotr.expressions.aggregates import summarise
from dotr.expressions.evaluate import check_call, compile_expression
from dotr.extract.called_operators import CALLS
from dotr.program import Call, Const, Expression
from dotr.rdf.terms import XSD, Term, canonical, integer, literal
from dotr.rdf.values import Duration, decode, duration, term_key
from tests.expressions.engine import answer


def seconds(text: str) -> Term:
    return canonical(literal(text, XSD + "dayTimeDuration"))


def months(text: str) -> Term:
    return canonical(literal(text, XSD + "yearMonthDuration"))


def decimal(text: str) -> Term:
    return literal(text, XSD + "decimal")


def double(text: str) -> Term:
    return literal(text, XSD + "double")


def value(function: str, *terms: Term) -> Term | None:
    expression = Call(function, tuple(map(Const, terms)))
    return compile_expression(expression, lambda leaf: lambda row: None, clock=Clock())(())


EITHER = literal("P1Y2M3DT4H", XSD + "duration")
SHORT = literal("PT2S", XSD + "duration")


@pytest.mark.parametrize(
    ("function", "operands", "wanted"),
    [
        ("*", (seconds("PT2H10M"), decimal("2.1")), seconds("PT4H33M")),
        ("*", (integer(3), seconds("-PT1.5S")), seconds("-PT4.5S")),
        ("*", (months("P2Y11M"), decimal("2.3")), months("P6Y9M")),
        ("*", (months("-P1M"), decimal("2.5")), months("-P2M")),
        ("*", (seconds("PT1S"), double("0.1")), seconds("PT0.1S")),
        ("*", (seconds("PT1S"), double("NaN")), None),
        ("*", (seconds("PT1S"), double("INF")), None),
        ("*", (seconds("PT1S"), seconds("PT1S")), None),
        ("*", (SHORT, integer(2)), None),
        ("/", (seconds("P1DT2H30M10.5S"), decimal("1.5")), seconds("PT17H40M7S")),
        ("/", (months("P2Y11M"), decimal("1.5")), months("P1Y11M")),
        ("/", (seconds("P2DT53M11S"), seconds("P1DT10H")), decimal("1.437834967320261437")),
        ("/", (months("P3Y4M"), months("-P1Y4M")), decimal("-2.5")),
        ("/", (seconds("PT1S"), integer(0)), None),
        ("/", (seconds("PT1S"), seconds("PT0S")), None),
        ("/", (seconds("PT1S"), months("P1M")), None),
        ("/", (seconds("PT1S"), double("-INF")), seconds("PT0S")),
        ("/", (integer(1), seconds("PT1S")), None),
        ("+", (seconds("P2DT12H5M"), seconds("P5DT12H")), seconds("P8DT5M")),
        ("-", (months("P2Y11M"), months("P3Y3M")), months("-P4M")),
        ("u-", (seconds("PT1S"),), seconds("-PT1S")),
        ("<", (seconds("-PT1H"), seconds("PT0.5S")), literal("true", XSD + "boolean")),
        ("=", (seconds("P0D"), months("P0M")), literal("true", XSD + "boolean")),
        ("<", (months("P1M"), seconds("P30D")), None),
        (">", (months("P1M"), seconds("P27D")), literal("true", XSD + "boolean")),
        (f"<{XSD}decimal>", (seconds("-P1DT0.25S"),), decimal("-86400.25")),
        (f"<{XSD}decimal>", (SHORT,), decimal("2")),
        (f"<{XSD}decimal>", (months("P1M"),), None),
        (f"<{XSD}decimal>", (EITHER,), None),
        ("DAYS", (seconds("P3DT55H"),), integer(5)),
        ("HOURS", (seconds("P3DT55H"),), integer(7)),
        ("HOURS", (seconds("-P3DT10H"),), integer(-10)),
        ("MINUTES", (seconds("-P5DT12H30M"),), integer(-30)),
        ("SECONDS", (seconds("-PT256S"),), decimal("-16")),
        ("SECONDS", (seconds("P3DT10H12.5S"),), decimal("12.5")),
        ("DAYS", (EITHER,), integer(3)),
        ("DAYS", (integer(3),), None),
        ("YEAR", (EITHER,), None),
    ],
)
def test_functions_and_operators(function: str, operands: tuple[Term, ...], wanted: Term | None) -> None:
    assert value(function, *operands) == wanted


AGGREGATED = [seconds("PT1S"), seconds("-PT0.5S"), seconds("P1D")]


def test_sums_means_and_extremes_of_durations() -> None:
    for terms in permutations(AGGREGATED):
        assert summarise("SUM", False, terms) == seconds("P1DT0.5S")
        assert summarise("AVG", False, terms) == seconds("PT8H0.166666666666666666S")
        assert summarise("MIN", False, terms) == seconds("-PT0.5S")
        assert summarise("MAX", False, terms) == seconds("P1D")
    assert summarise("AVG", False, [months("P1M"), months("P2M")]) == months("P2M")
    assert summarise("MAX", False, [seconds("PT9S"), seconds("PT10S")]) == seconds("PT10S")
    for mixed in (
        [seconds("PT1S"), integer(1)],
        [seconds("PT1S"), months("P1M")],
        [SHORT],
        [seconds("PT1S"), None],
    ):
        assert summarise("SUM", False, mixed) is summarise("AVG", False, mixed) is None


lengths = st.integers(-3 * 10**23, 3 * 10**23)
counts = st.integers(-40, 40)
kinds = st.sampled_from(["duration", "dayTimeDuration", "yearMonthDuration"])


@st.composite
def durations(draw: Any) -> Term:
    kind, ticks, count = draw(kinds), draw(lengths), draw(counts)
    if kind == "dayTimeDuration":
        count = 0
    if kind == "yearMonthDuration":
        ticks = 0
    found = duration(abs(count), abs(ticks), XSD + kind)
    assert found is not None
    term = found.term
    return literal("-" + found.term[1 : term.index('"', 1)], XSD + kind) if draw(st.booleans()) else term


numbers = st.sampled_from(["0", "1", "-3", "7"]).map(
    lambda text: literal(text, XSD + "integer")
) | st.decimals(-9, 9, places=3).map(lambda number: canonical(decimal(format(number, "f"))))


@given(durations())
def test_a_duration_is_read_and_written_as_the_full_engine_does(term: Term) -> None:
    read = decode(term)
    assert isinstance(read, Duration)
    again = duration(read.months, read.ticks, read.datatype)
    assert again is not None
    assert again.term == canonical(term)


@given(st.sampled_from(["*", "/", "+", "-", "<", "<=", "="]), durations() | numbers, durations() | numbers)
def test_operators_agree_with_the_letter_of_the_standard(function: str, a: Term, b: Term) -> None:
    a, b = canonical(a), canonical(b)
    assert value(function, a, b) == answer(Call(function, (Const(a), Const(b))), {"a": integer(1)})


@given(st.sampled_from(sorted(name for name in CALLS if check_call(name, 1) is None)), durations())
def test_components_and_casts_agree_with_the_letter_of_the_standard(function: str, term: Term) -> None:
    expression: Expression = Call(function, (Const(canonical(term)),))
    assert value(function, canonical(term)) == answer(expression, {"a": integer(1)})


@given(durations(), durations())
def test_the_canonical_order_keeps_the_order_of_the_standard(a: Term, b: Term) -> None:
    a, b = canonical(a), canonical(b)
    if answer(Call("<", (Const(a), Const(b))), {"a": integer(1)}) == literal("true", XSD + "boolean"):
        assert term_key(a) < term_key(b)
