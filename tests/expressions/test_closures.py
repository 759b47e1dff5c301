"""Truth of three values, errors that pass through, and comparisons whose constant is promoted beforehand."""

from __future__ import annotations

from itertools import product

import pytest

from dotr.expressions.evaluate import (
    both,
    choice,
    coalesce,
    either,
    member,
    negation,
    none_of_nothing,
    passing,
    same_resource,
    strict,
    with_constant,
)
from dotr.expressions.operators import COMPARISONS, Truth, add, at_most, effective, equal, less, plus
from dotr.rdf.terms import XSD, XSD_DOUBLE, Term, integer, literal
from dotr.rdf.values import Value, decode, single

NAN = decode(literal("NaN", XSD_DOUBLE))
ZONED = decode(literal("2026-01-01T00:00:00Z", XSD + "dateTime"))
LOCAL = decode(literal("2026-01-01T00:00:00", XSD + "dateTime"))
DAY = decode(literal("P1D", XSD + "dayTimeDuration"))
ILL = decode(literal("x", XSD + "integer"))


def always(value: Truth) -> object:
    return lambda row: value


def constant(value: Value | None) -> object:
    return lambda row: value


@pytest.mark.parametrize(("left", "right"), list(product((True, False, None), repeat=2)))
def test_and_or_and_not_with_errors(left: Truth, right: Truth) -> None:
    given = {left, right}
    conjunction = False if False in given else None if None in given else True
    disjunction = True if True in given else None if None in given else False
    assert both(always(left), always(right))(()) is conjunction
    assert either(always(left), always(right))(()) is disjunction
    assert negation(always(left))(()) is (None if left is None else not left)


def test_a_choice_with_an_error_for_a_condition_has_no_value() -> None:
    chosen = [
        choice(lambda row: row, lambda row: "<y>", lambda row: "<n>")(row) for row in (True, False, None)
    ]
    assert chosen == ["<y>", "<n>", None]


def test_the_first_bound_value_is_taken_and_none_of_nothing() -> None:
    assert coalesce((lambda row: None, lambda row: "<b>", lambda row: "<c>"))(()) == "<b>"
    assert coalesce(())(()) is None


def test_a_member_is_found_beside_an_error_and_missed_beside_one_only_as_an_error() -> None:
    def within(*options: Value | None) -> Truth:
        return member(lambda row: 1, tuple(constant(option) for option in options), equal)(())

    assert within(None, 1) is True
    assert within(None, 2) is None
    assert within(2, ILL) is None
    assert within(2, 3) is False
    assert within() is False
    assert none_of_nothing(lambda row: True)(()) is False
    assert none_of_nothing(lambda row: None)(()) is None


def test_an_error_in_any_argument_is_an_error_of_the_call() -> None:
    def count(*given: Value) -> Value:
        return len(given)

    for number in (1, 2, 3):
        good = tuple(lambda row: 7 for _ in range(number))
        assert strict(count, good)(()) == number
        for place in range(number):
            assert strict(count, (*good[:place], lambda row: None, *good[place + 1 :]))(()) is None
    assert strict(lambda: "now", ())(()) == "now"


@pytest.mark.parametrize("operator", ["=", "<", ">", "<=", ">="])
@pytest.mark.parametrize("term", [integer(5), literal("5.0", XSD_DOUBLE), literal("NaN", XSD_DOUBLE)])
def test_a_promoted_constant_compares_as_any_other_value(operator: str, term: Term) -> None:
    test = passing(operator, term)
    for value in (
        4,
        5,
        6,
        5.0,
        5.5,
        decode('"5.0"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        NAN,
        "5",
        True,
    ):
        assert test(value) is (COMPARISONS[operator](value, decode(term)) is True), (value, operator, term)


def test_a_constant_stands_on_its_side_of_the_operator() -> None:
    minus = COMPARISONS["<"]
    first = with_constant(lambda a, b: minus(a, b), lambda row: 7, integer(5), first=True)
    second = with_constant(lambda a, b: minus(a, b), lambda row: 7, integer(5), first=False)
    assert (first(()), second(())) == (True, False)
    assert with_constant(add, lambda row: None, integer(5), first=True)(()) is None


def test_a_resource_is_compared_as_a_term_and_an_unbound_one_is_neither() -> None:
    same, other = (same_resource(lambda row: row, "<urn:a>", wanted) for wanted in (True, False))
    assert [same(t) for t in ("<urn:a>", "<urn:b>", '"a"', "_:b", None)] == [True, False, False, False, False]
    assert [other(t) for t in ("<urn:a>", "<urn:b>", '"a"', "_:b", None)] == [False, True, True, True, False]


def test_a_duration_is_added_to_a_time_in_either_order() -> None:
    assert add(ZONED, DAY) == add(DAY, ZONED) == decode(literal("2026-01-02T00:00:00Z", XSD + "dateTime"))
    assert add(ZONED, 5) is None


def test_effective_values() -> None:
    assert [effective(v) for v in (True, False, "", "a", 0, 2, 0.0, NAN)] == [
        *(True, False, False, True, False, True, False, False)
    ]
    assert [effective(v) for v in (None, ZONED, ILL, decode("<urn:a>"))] == [None] * 4


def test_equality_and_order_of_what_does_not_go_together() -> None:
    assert equal(1, single(1.0)) is True
    assert equal(decode("<urn:a>"), 1) is False
    assert equal(ILL, 1) is None
    assert equal(ILL, ILL) is True
    assert equal(ZONED, LOCAL) is False
    assert less(1, NAN) is at_most(1, NAN) is less("a", 1) is less(True, False) is None
    assert (less(NAN, NAN), at_most(NAN, NAN)) == (False, True)
    assert (less(True, True), at_most(True, True)) == (False, True)
    assert plus("a") is None
    assert plus(DAY) == DAY
