"""Guards and assignments as functions of a row, in each of the forms in which a row comes."""

from __future__ import annotations

import pytest

from dotr.events import Clock
from dotr.joins.filters import Moment, condition_of, positional_condition, positional_value, value_of
from dotr.joins.plan import Assign, RowFilter
from dotr.program import Attribute, Call, Const, TimeOf, Var
from dotr.rdf.terms import integer, literal

ONE, TWO = integer(1), integer(2)
LESS = Call("<", (Var("a"), Var("b")))
SUM = Call("+", (Var("a"), Var("b")))


def test_a_row_is_a_dict_a_tuple_or_the_bare_value_of_one_variable() -> None:
    moment = Moment()
    assert condition_of(RowFilter(LESS), moment)({"a": ONE, "b": TWO}) is True
    assert value_of(Assign(SUM, "c"), moment)({"b": TWO, "a": ONE}) == integer(3)
    assert positional_condition(LESS, ["b", "a"], moment)((ONE, TWO)) is False
    assert positional_value(SUM, ["x", "a", "b"], moment)(("", ONE, TWO)) == integer(3)
    assert positional_value(Call("+", (Var("a"), Var("a"))), ["a"], moment)(TWO) == integer(4)
    assert positional_value(Const(ONE), [], moment)(()) == ONE


def test_an_error_is_false_and_no_value() -> None:
    moment = Moment()
    row = {"a": literal("x")}
    assert condition_of(RowFilter(LESS), moment)(row) is False
    assert value_of(Assign(SUM, "c"), moment)(row) is None
    assert condition_of(RowFilter(Call("BOUND", (Var("b"),))), moment)(row) is False


def test_now_is_the_time_of_the_instant_unless_it_is_set() -> None:
    moment = Moment()
    now = value_of(Assign(Call("NOW", ()), "n"), moment)
    moment.time = 3_000_000
    assert now({}) == integer(3)
    moment.time = 4_000_000
    assert now({}) == integer(4)
    moment.now = ONE
    assert now({}) == ONE
    moment.now = None
    assert now({}) == integer(4)
    moment.clock = Clock(True, 1_000)
    assert now({}) == integer(4_000)


@pytest.mark.parametrize("leaf", [Attribute("X", "a"), TimeOf("X")])
def test_rows_know_nothing_of_positions(leaf: Attribute | TimeOf) -> None:
    with pytest.raises(AssertionError):
        positional_value(leaf, ["a"], Moment())
