"""Expressions in place of calls: which have a table of one term, and sums that are compared as integers."""

from __future__ import annotations

import pytest

from dotr.codegen import CodeSource
from dotr.detect.scope import SumComparison, only_attribute, small, term_table, truth_table
from dotr.program import Attribute, Call, Const, Expression
from dotr.rdf.terms import XSD, integer
from tests.detect.building import A, call

V = Attribute("X", "v")


@pytest.mark.parametrize(
    ("expression", "one"),
    [
        (V, None),
        (call(">", "X.v", 3), None),
        (call(">", call("+", "X.v", 1), 3), V),
        (call("+", "X.v", "X.v"), V),
        (call("+", "X.v", "X.k"), None),
        (call("+", "X.v", "X.time"), None),
        (call("&&", call("isIRI", "X.v"), call("NOW")), None),
        (call("ABS", 3), None),
        (call("CONCAT", "X.v", "X.v"), None),
    ],
)
def test_a_table_is_for_what_reads_one_attribute_and_computes(
    expression: Expression, one: Attribute | None
) -> None:
    assert only_attribute(expression) == one


def test_tables_give_values_and_errors() -> None:
    doubled = term_table(call("+", "X.v", "X.v"))
    assert doubled[integer(4)] == integer(8)
    assert doubled[A] is None
    assert truth_table(call(">", call("+", "X.v", 1), 3))[integer(3)] is True
    assert truth_table(call(">", call("+", "X.v", 1), 3))[None] is False


def number(text: str, kind: str = "decimal") -> str:
    return f'"{text}"^^<{XSD}{kind}>'


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (integer(-3), -3_000_000),
        (number("0.000001"), 1),
        (number("0.0000001"), None),
        (integer(10**12), None),
        (integer(10**12 - 1), (10**12 - 1) * 10**6),
        (number("1.5", "double"), None),
        (number("true", "boolean"), None),
        (A, None),
        (None, None),
    ],
)
def test_small_numbers_are_integers_of_a_millionth(term: str | None, value: int | None) -> None:
    assert small[term] == value


def compared(condition: Expression) -> object:
    source = CodeSource()
    text = SumComparison(source, lambda leaf: f"row[{leaf.variable!r}]").test(condition, "'general'")  # type: ignore[union-attr]
    if text is None:
        return None
    source.line(f"return {text}")
    return source.function("row")


def test_sums_are_compared_exactly_and_what_is_not_small_is_left() -> None:
    function = compared(call("<", call("+", "X.a", 1), call("-", "X.b", "X.a")))
    assert callable(function)
    assert function({"a": number("0.1"), "b": number("1.2")}) is False
    assert function({"a": number("0.1"), "b": number("1.200001")}) is True
    assert function({"a": number("0.1", "double"), "b": integer(2)}) == "general"
    assert function({"a": None, "b": integer(2)}) == "general"


@pytest.mark.parametrize(
    "condition",
    [
        call("=", 1, 2),
        call("<", call("*", "X.a", 2), "X.b"),
        call("+", "X.a", "X.b"),
        Call("<", (V, Const(number("1.5", "double")))),
    ],
)
def test_other_conditions_are_left(condition: Expression) -> None:
    assert compared(condition) is None
