"""Numbers read literally: those of the full engine within its bits, Python's past them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dotr.events import Clock
from dotr.expressions.aggregates import SPREADS, summarise
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.expressions.literal_numbers import (
    MATHEMATICS,
    OPERATORS,
    literally,
    order_key,
    read,
    summarised,
    write,
)
from dotr.program import Call, Const, Expression, Var
from dotr.rdf.terms import FALSE, TRUE, XSD, Term, canonical, integer, literal, literal_parts
from dotr.rdf.values import term_key
from tests.expressions.engine import answer, native
from tests.rdf import terms_strategies as t

CLOCK = Clock()
numbers = t.numbers.map(canonical)


def leaf(node: Any) -> Any:
    return lambda row: row[node.name]


def value(expression: Expression, row: dict[str, Term]) -> Term | None:
    return compile_expression(expression, leaf, clock=CLOCK)(row)


@given(numbers)
def test_a_number_is_read_and_written(term: Term) -> None:
    found = read(term)
    if found is not None:
        again = read(write(found))
        assert again == found or (again is not None and again.value != again.value != found.value)


A, B = Var("a"), Var("b")
NAMES = [
    name
    for name in OPERATORS
    if name not in ("truth", f"<{XSD}integer>", f"<{XSD}decimal>", *MATHEMATICS)  # the engine has none
]


@given(st.sampled_from(NAMES), numbers, numbers)
def test_they_are_the_engines_own_where_that_has_an_answer(name: str, a: Term, b: Term) -> None:
    unary = name.isalpha() or name in ("u-", "u+") or (name.endswith(">") and len(name) > 2)
    call = Call(name, (A,) if unary else (A, B))
    own = native(call, {"a": a, "b": b})
    assume(own is not None and not (name == "ISNUMERIC" and own == FALSE))
    assert answer(call, {"a": a, "b": b}) == own


@given(st.lists(numbers | st.none() | t.strings, max_size=6), st.booleans())
def test_aggregates_read_literally_are_those_of_the_engines(terms: list[Term | None], distinct: bool) -> None:
    for function in ("COUNT", "SUM", "AVG", "MIN", "MAX", *SPREADS, "MEDIAN", "PERCENTILE 0.3"):
        assert summarised(function, distinct, terms) == summarise(function, distinct, terms)


FRACTIONS = st.sampled_from(["", ".5", ".000000000000000001", ".999999999999999999", ".1234567890123456789"])
LENGTHS = st.builds(
    lambda sign, size, fraction: canonical(literal(f"{sign}PT{size}{fraction}S", f"{XSD}dayTimeDuration")),
    st.sampled_from(["", "-"]),
    st.integers(0, 10) | st.sampled_from([86_400, 2**127 // 10**18, 2**127 // 10**18 - 1, 2**128]),
    FRACTIONS,
)
MONTHS = st.builds(
    lambda sign, size: canonical(literal(f"{sign}P{size}M", f"{XSD}yearMonthDuration")),
    st.sampled_from(["", "-"]),
    st.integers(0, 30) | st.sampled_from([2**63 - 1, 2**63 - 2, 2**64]),
)


@given(
    st.lists(LENGTHS, max_size=6)
    | st.lists(MONTHS, max_size=6)
    | st.lists(LENGTHS | MONTHS | numbers | st.none()),
    st.booleans(),
)
def test_aggregates_of_durations_read_literally_are_those_of_the_engines(
    terms: list[Term | None], distinct: bool
) -> None:
    for function in ("SUM", "AVG", "MEDIAN", "PERCENTILE 0.3", "PERCENTILE 1"):
        assert summarised(function, distinct, terms) == summarise(function, distinct, terms)


@given(st.lists(t.terms.map(canonical), min_size=2, max_size=6))
def test_the_order_read_literally_is_that_of_the_engines(terms: list[Term]) -> None:
    assert sorted(terms, key=order_key) == sorted(terms, key=term_key)


# -- against Python's integers

integers = st.integers(-5, 5) | t.around | st.integers(-(10**40), 10**40)
TREES: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


Tree = tuple[Expression, int]


def _pairs(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    def join(
        name: str, left: tuple[Expression, int], right: tuple[Expression, int]
    ) -> tuple[Expression, int]:
        return Call(name, (left[0], right[0])), TREES[name](left[1], right[1])

    def sign(name: str, only: tuple[Expression, int]) -> tuple[Expression, int]:
        return Call(name, (only[0],)), {"u-": -only[1], "ABS": abs(only[1])}.get(name, only[1])

    unary = st.sampled_from(["u-", "u+", "ABS", "CEIL", "FLOOR", "ROUND", f"<{XSD}integer>"])
    return st.builds(join, st.sampled_from(sorted(TREES)), inner, inner) | st.builds(sign, unary, inner)


trees = st.recursive(integers.map(lambda n: (Const(integer(n)), n)), _pairs, max_leaves=6)


@given(trees, trees)
def test_expressions_of_integers_are_pythons(one: Tree, other: Tree) -> None:
    for expression, exact in (one, other):
        assert value(expression, {}) == integer(exact)
        assert answer(expression, {"a": TRUE}) == integer(exact)
        text = literal(str(exact))
        assert value(Call(f"<{XSD}integer>", (Const(text),)), {}) == integer(exact)
        assert value(Call("STRDT", (Const(text), Const(f"<{XSD}nonPositiveInteger>"))), {}) == (
            canonical(literal(str(exact), XSD + "nonPositiveInteger"))
        )
    for name, compared in COMPARED.items():
        call = Call(name, (one[0], other[0]))
        right = TRUE if compared(one[1], other[1]) else FALSE
        assert value(call, {}) == answer(call, {"a": TRUE}) == right
        row = {"a": integer(one[1])}
        fixed = Call(name, (A, Const(integer(other[1]))))
        assert compile_condition(fixed, leaf, clock=CLOCK)(row) is (right == TRUE)
        by_the_letter = compile_condition(fixed, leaf, clock=CLOCK, reading=literally)
        assert by_the_letter(row) is (right == TRUE)
    within = Call("IN", (one[0], Const(integer(5)), other[0]))
    assert value(within, {}) == answer(within, {"a": TRUE}) == (TRUE if one[1] in (5, other[1]) else FALSE)
    without = Call("NOT-IN", (one[0], other[0]))
    assert value(without, {}) == answer(without, {"a": TRUE}) == (TRUE if one[1] != other[1] else FALSE)


@given(integers, integers)
def test_a_quotient_of_integers_is_cut_after_18_digits(a: int, b: int) -> None:
    call = Call("/", (A, B))
    found = value(call, {"a": integer(a), "b": integer(b)})
    assert found == answer(call, {"a": integer(a), "b": integer(b)})
    if b == 0:
        assert found is None
        return
    units = abs(a) * 10**18 // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    assert found is not None
    assert literal_parts(found)[1] == XSD + "decimal"
    assert Fraction(literal_parts(found)[0]) == Fraction(units, 10**18)


@given(st.lists(integers, min_size=1, max_size=8))
def test_aggregates_of_integers_are_pythons(values: list[int]) -> None:
    terms = list(map(integer, values))
    for summary in (summarise, summarised):
        assert summary("SUM", False, terms) == integer(sum(values))
        assert summary("SUM", True, terms) == integer(sum(set(values)))
        assert summary("MIN", False, terms) == integer(min(values))
        assert summary("MAX", False, terms) == integer(max(values))
        mean = summary("AVG", False, terms)
        assert mean is not None
        assert abs(Fraction(literal_parts(mean)[0]) - Fraction(sum(values), len(values))) < Fraction(
            1, 10**18
        )


@pytest.mark.parametrize(
    ("text", "left", "right", "expected"),
    [
        ("=", integer(2**63), literal("9223372036854775808", XSD + "decimal"), TRUE),
        ("=", integer(2**63 + 1), literal("9223372036854775808", XSD + "double"), TRUE),  # promoted
        ("<", integer(2**63 + 1), literal("9223372036854775808.5", XSD + "decimal"), FALSE),
        ("<", integer(10**400), literal("INF", XSD + "double"), FALSE),  # promoted, it is INF
        (">", integer(10**400), literal("179769313486231570000000", XSD + "double"), TRUE),
        ("<", integer(2**64), literal("a"), None),
        ("=", integer(2**64), literal("a"), FALSE),
        ("+", integer(10**30), literal("0.5", XSD + "decimal"), literal(f"1{'0' * 30}.5", XSD + "decimal")),
        ("+", integer(10**400), literal("1", XSD + "double"), literal("INF", XSD + "double")),
        ("-", integer(2**63), integer(2**63 - 1), integer(1)),
        ("<", integer(2**63), literal("NaN", XSD + "double"), None),
    ],
)
def test_large_integers_beside_others(text: str, left: Term, right: Term, expected: Term | None) -> None:
    call, row = Call(text, (A, B)), {"a": left, "b": right}
    assert value(call, row) == expected
    assert answer(call, row) == expected
    by_the_letter = compile_expression(call, leaf, clock=CLOCK, reading=literally)
    assert by_the_letter(row) == expected


@pytest.mark.parametrize("text", ["!", "&&", "||", "IF", "boolean", "isNumeric"])
def test_a_large_integer_is_true(text: str) -> None:
    big = Const(integer(2**70))
    call = {
        "!": Call("!", (Call("!", (big,)),)),
        "&&": Call("&&", (big, big)),
        "||": Call("||", (Const(FALSE), big)),
        "IF": Call("IF", (big, Const(TRUE), Const(FALSE))),
        "boolean": Call(f"<{XSD}boolean>", (big,)),
        "isNumeric": Call("ISNUMERIC", (big,)),
    }[text]
    assert value(call, {}) == answer(call, {"a": TRUE}) == TRUE
