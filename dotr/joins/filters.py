"""Guards and assignments as functions of a row.

Place:   the interpreter passes dicts, generated code bare values (one variable) or tuples (several).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from dotr.events import Clock, Time
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.ir import Attribute, Expression, TimeOf, Var
from dotr.joins.body import Assign, RowFilter
from dotr.rdf.terms import Term

Row = Mapping[str, Term]
Leaf = Callable[[Var | Attribute | TimeOf], Callable[[Any], Term | None]]


class Moment:
    """Owns the value of `NOW()` in filters: `time` as `clock` writes it, unless a caller sets `now`."""

    __slots__ = ("_now", "clock", "time")

    def __init__(self) -> None:
        self._now: Term | None = None
        self.clock = Clock()
        self.time: Time = 0

    @property
    def now(self) -> Term | None:
        return self.clock.term(self.time) if self._now is None else self._now

    @now.setter
    def now(self, term: Term | None) -> None:
        self._now = term

    def read(self, _: object) -> Term | None:
        return self.now


def condition_of(filter_: RowFilter, moment: Moment) -> Callable[[Row], bool]:
    """Over a dict of variables."""
    return compile_condition(filter_.condition, _from_dict, clock=moment.clock, now=moment.read)


def value_of(assign: Assign, moment: Moment) -> Callable[[Row], Term | None]:
    """Over a dict of variables."""
    return compile_expression(assign.expression, _from_dict, clock=moment.clock, now=moment.read)


def positional_condition(
    condition: Expression, variables: Sequence[str], moment: Moment
) -> Callable[[Any], bool]:
    """Over the bare value of a single variable, or a tuple of the values of several in this order."""
    return compile_condition(condition, _from_tuple(variables), clock=moment.clock, now=moment.read)


def positional_value(
    expression: Expression, variables: Sequence[str], moment: Moment
) -> Callable[[Any], Term | None]:
    """Over the bare value of a single variable, or a tuple of the values of several in this order."""
    return compile_expression(expression, _from_tuple(variables), clock=moment.clock, now=moment.read)


def _from_dict(leaf: Var | Attribute | TimeOf) -> Callable[[Row], Term | None]:
    if not isinstance(leaf, Var):
        raise AssertionError("joins know variables only")
    name = leaf.name
    return lambda row: row.get(name)


def _from_tuple(variables: Sequence[str]) -> Leaf:
    places = {name: i for i, name in enumerate(variables)}

    def leaf(variable: Var | Attribute | TimeOf) -> Callable[[Any], Term | None]:
        if not isinstance(variable, Var):
            raise AssertionError("joins know variables only")
        if len(places) == 1:
            return _itself
        return itemgetter(places[variable.name])

    return leaf


def _itself(row: Term) -> Term:
    return row
