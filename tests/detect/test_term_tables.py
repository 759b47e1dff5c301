"""What is looked up or written in place decides as expressions/ does, whatever the terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dotr.codegen import CodeSource
from dotr.detect.columns import own_condition, own_getter
from dotr.detect.scope import Scope
from dotr.events import Clock, Fact
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.program.queries import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.rdf.terms import XSD, Term, canonical

CLOCK = Clock(True, 1_000_000)
VARIABLES = {"A": ("x", "y"), "B": ("z",)}


def _typed(text: str, datatype: str) -> Term:
    return canonical(f'"{text}"^^<{XSD}{datatype}>')


TERMS: list[Term | None] = [
    None,
    *("<urn:x:a>", '"a"', '"12"', '"a"@en', _typed("true", "boolean"), _typed("2020-01-01", "date")),
    *(_typed(text, "integer") for text in ("0", "1", "3", "-3", "999999999999", "1000000000000")),
    *(_typed(text, "integer") for text in ("9223372036854775807", "-9223372036854775808", "x")),
    *(_typed(text, "decimal") for text in ("0.5", "3.0", "1.000001", "1.0000001", "-0.000000000000000001")),
    *(_typed(text, "decimal") for text in ("170141183460469231731.687303715884105727", "999999999999.9")),
    *(_typed(text, "double") for text in ("0.5", "3", "NaN", "INF", "1e300")),
    *(_typed(text, "float") for text in ("0.1", "3")),
]
terms = st.sampled_from(TERMS)
constants = st.sampled_from([term for term in TERMS if term is not None]).map(Const)
attributes = st.sampled_from([Attribute("A", "x"), Attribute("A", "y"), Attribute("B", "z"), Var("n")])
times = st.sampled_from([Call("-", (TimeOf("A"), TimeOf("B"))), Call("NOW", ())])


def _sums(leaves: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        two = st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(["+", "-", "*"]), inner, inner)
        one = st.builds(lambda f, a: Call(f, (a,)), st.sampled_from(["u-", "STR", "ABS"]), inner)
        return st.one_of(two, one)

    return st.recursive(leaves, grown, max_leaves=4)


def _conditions(leaves: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    comparisons = st.sampled_from(["=", "!=", "<", ">", "<=", ">="])
    one = st.builds(lambda f, a, b: Call(f, (a, b)), comparisons, _sums(leaves), _sums(leaves))
    both = st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(["&&", "||"]), one, one)
    return st.one_of(one, one, both)


expressions = _sums(st.one_of(attributes, constants, times))
conditions = _conditions(st.one_of(attributes, constants, times))
X, Y = Attribute("A", "x"), Attribute("A", "y")


def _written(write: Callable[[Scope], str]) -> Callable[[Fact, Fact, Term | None], Any]:
    source = CodeSource()
    scope = Scope(source, CLOCK, "A", VARIABLES)
    scope.locals |= {"A": "f0", "B": "f1", "?n": "a2"}
    source.line(f"return {write(scope)}")
    return source.function("f0, f1, a2")


def _now(row: Any) -> Term:
    return CLOCK.term(row[0][0])


def _leaf(node: Var | Attribute | TimeOf) -> Callable[[Any], Term | None]:
    if isinstance(node, Var):
        return lambda row: row[2]
    place = "AB".index(node.position)
    if isinstance(node, TimeOf):
        return lambda row: CLOCK.term(row[place][0])
    column = VARIABLES[node.position].index(node.variable)
    return lambda row: row[place][1][column]


@given(conditions, terms, terms, terms, terms, st.integers(0, 3), st.integers(0, 3))
@example(Call("=", (X, Y)), _typed("1.0000001", "decimal"), _typed("1", "integer"), None, None, 0, 0)
@example(
    Call(">", (Call("+", (X, Y)), Y)), TERMS[13], _typed("1", "integer"), None, None, 0, 0
)  # past the limit
@example(Call("=", (Call("+", (Call("NOW", ()), X)), X)), _typed("3", "integer"), None, None, None, 0, 0)
@example(Call("!=", (X, Y)), _typed("3", "integer"), _typed("1.5", "decimal"), None, None, 0, 0)
@example(
    Call("<", (Call("-", (TimeOf("A"), TimeOf("B"))), X)), _typed("2", "integer"), None, None, None, 3, 1
)
def test_conditions_hold_as_they_do_when_called(
    condition: Expression,
    x: Term | None,
    y: Term | None,
    z: Term | None,
    n: Term | None,
    one: int,
    other: int,
) -> None:
    row = (one * 1_000_000, (x, y), 0, ""), (other * 1_000_000, (z,), 0, ""), n
    called = compile_condition(condition, _leaf, clock=CLOCK, now=_now, seconds=True)
    written = _written(lambda scope: scope.test(condition))
    assert [bool(written(*row)) for _ in range(2)] == [called(row)] * 2  # from the table the second time


@given(expressions, terms, terms, terms, terms)
def test_values_are_those_of_a_call(
    expression: Expression, x: Term | None, y: Term | None, z: Term | None, n: Term | None
) -> None:
    row = (2_000_000, (x, y), 0, ""), (1_000_000, (z,), 0, ""), n
    called = compile_expression(expression, _leaf, clock=CLOCK, now=_now, seconds=True)
    written = _written(lambda scope: scope.value(expression))
    assert [written(*row) for _ in range(2)] == [called(row)] * 2


own = st.sampled_from([Attribute("", "0"), Attribute("", "1"), TimeOf("")])


@given(_conditions(st.one_of(own, own, constants)), _sums(st.one_of(own, own, constants)), terms, terms)
def test_a_column_asks_its_own_facts_alike(
    condition: Expression, expression: Expression, x: Term | None, y: Term | None
) -> None:
    def leaf(node: Var | Attribute | TimeOf) -> Callable[[Any], Term | None]:
        if isinstance(node, Attribute):
            return lambda fact: fact[1][int(node.variable)]
        return lambda fact: CLOCK.term(fact[0])

    fact = 7_000_000, (x, y), 0, ""
    holds, value = own_condition(condition, CLOCK), own_getter(expression, CLOCK)
    called = compile_condition(condition, leaf, clock=CLOCK, seconds=True)
    assert [holds(fact) for _ in range(2)] == [called(fact)] * 2
    assert value(fact) == compile_expression(expression, leaf, clock=CLOCK, seconds=True)(fact)


@pytest.mark.parametrize(
    ("condition", "calls"),
    [
        (Call("<", (Call("-", (X, Attribute("B", "z"))), Const(_typed("30", "integer")))), 0),
        (Call("<", (Call("+", (X, Y)), Call("-", (TimeOf("A"), TimeOf("B"))))), 0),
        (Call("=", (Call("STR", (X,)), Const('"a"'))), 0),
        (Call("=", (Call("STR", (X,)), Call("STR", (Y,)))), 1),
    ],
)
def test_small_numbers_and_known_terms_take_no_call(
    condition: Expression, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def counting(*given: Any, **named: Any) -> Callable[[Any], bool]:
        holds = compile_condition(*given, **named)

        def asking(row: Any) -> bool:
            asked.append(row)
            return holds(row)

        return asking

    monkeypatch.setattr("dotr.detect.scope.compile_condition", counting)
    monkeypatch.setattr("dotr.detect.scope.compile_condition", counting)
    written = _written(lambda scope: scope.test(condition))
    one = _typed("1", "integer")
    row = (1_000_000, (one, one), 0, ""), (0, (one,), 0, ""), None
    written(*row)
    asked.clear()
    written(*row)
    assert len(asked) == calls
