"""Rows with named values, and conditions tested on them.

Place:   between what probes saw and who judges it: a row is an answer without its filters, or a pair of facts
         before ON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from dotr.events import Clock, Time
from dotr.expressions.evaluate import compile_expression
from dotr.expressions.value_operators import truth_of
from dotr.ir import Aggregate, Attribute, Call, Exists, Expression, TimeOf, Var
from dotr.rdf.terms import Term

Row: TypeAlias = tuple[Time, tuple[Term | None, ...]]
"""(what NOW() is, values by column)."""

Column: TypeAlias = Var | Attribute | TimeOf


class SolutionTable(Struct, frozen=True):
    """Rows under column names. `total`: how many were seen, of which these are the first. `partial`: there
    are others that were not seen. `rule`: what is asked of them is ON, WHERE or WITH of a rule.
    """

    clock: Clock
    columns: Mapping[str, int]
    rows: Sequence[Row]
    total: int
    what: str = "rows"
    partial: bool = False
    rule: bool = False

    def counted(self, everything: str = "") -> str:
        """How many rows a claim is about, behind `everything` where these are all: "all 941 rows", "the first
        5,000 of 2,160,000 rows".
        """
        if len(self.rows) < self.total:
            return f"the first {len(self.rows):,} of {self.total:,} {self.what}"
        if self.partial:
            return f"the first {self.total:,} {self.what}"
        return f"{everything}{self.total:,} {self.what}"

    def values(self, expression: Expression) -> list[Term | None]:
        """The value of an expression in each row; None where it is an error or unbound."""
        compute = compile_expression(
            expression, self._leaf, clock=self.clock, now=self._now, seconds=self.rule
        )
        return [compute(row) for row in self.rows]

    def knows(self, expression: Expression) -> bool:
        """Whether everything that an expression reads has a column."""
        return all(column_of(leaf) in self.columns for leaf in leaves(expression))

    def _leaf(self, leaf: Column) -> Callable[[Row], Term | None]:
        place = self.columns[column_of(leaf)]
        return lambda row: row[1][place]

    def _now(self, row: Row) -> Term:
        return self.clock.term(row[0])


class Truth(Struct, frozen=True):
    """How often a condition was true, false, and an error."""

    true: int
    false: int
    error: int

    @property
    def total(self) -> int:
        return self.true + self.false + self.error


def truth(table: SolutionTable, condition: Expression) -> Truth:
    """How a condition came out, row by row."""
    found = [truth_of(term) for term in table.values(condition)]
    true, false = sum(t is True for t in found), sum(t is False for t in found)
    return Truth(true, false, len(found) - true - false)


def column_of(leaf: Column) -> str:
    """The name of the column that a leaf reads: `?v`, `Event.?v`, `Event.time`."""
    match leaf:
        case Var(name):
            return f"?{name}"
        case Attribute(position, variable):
            return f"{position}.?{variable}"
        case TimeOf(position):
            return f"{position}.time"


def leaves(expression: Expression) -> Iterator[Column]:
    """What an expression reads, left to right. (Of EXISTS nothing: it has its own pattern.)"""
    match expression:
        case Var() | Attribute() | TimeOf():
            yield expression
        case Call(arguments=arguments):
            for argument in arguments:
                yield from leaves(argument)
        case Aggregate(argument=argument) if argument is not None:
            yield from leaves(argument)
        case _:
            return


def asks_a_graph(expression: Expression) -> bool:
    """Whether there is an EXISTS in it, or an aggregate: no row has its value."""
    if isinstance(expression, Call):
        return any(map(asks_a_graph, expression.arguments))
    return isinstance(expression, Exists | Aggregate)


def text_of(expression: Expression) -> str:
    """An expression as it was written, in one line."""
    span = expression.span
    return "a condition" if span is None else " ".join(span.source.text[span.start : span.end].split())
