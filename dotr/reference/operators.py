"""What each operator of a rule means, literally: found by `LITERAL`.

Place:   reference/tesla.py goes through a rule by them; explain/ looks into matches by them. Nothing here
         knows an engine.
Method:  language.md, sec. 3, the rows of the table of conjuncts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from dotr.events import Fact
from dotr.expressions.literal_numbers import summarised
from dotr.program.queries import Expression
from dotr.program.rules import Absent, Choose, Operator, Summarise
from dotr.rdf.terms import Term

Row: TypeAlias = dict[str, Any]
"""One partial match: position name → fact, "?v" → the value of an aggregate or None."""

Value: TypeAlias = Callable[[Expression, Row], Term | None]
"""(expression, partial match) → its value; None for unbound or an error."""


class LiteralOperator(NamedTuple):
    """One operator. `extend`: (conjunct, partial match, its candidates in canonical order, values) → the ways
    in which it goes on, in canonical order. `counts_reference`: under FROM the reference's own fact is a
    candidate. `sees_consumed`: facts that the rule consumed are candidates.
    """

    extend: Callable[[Any, Row, list[Fact], Value], list[Row]]
    counts_reference: bool = False
    sees_consumed: bool = False


def _each(conjunct: Choose, row: Row, candidates: Sequence[Fact], _value: Value) -> list[Row]:
    """A match for every candidate."""
    return [{**row, conjunct.position.name: fact} for fact in candidates]


def _last(conjunct: Choose, row: Row, candidates: list[Fact], value: Value) -> list[Row]:
    """A match for each of the k greatest candidates in canonical order; fewer if there are no more."""
    return _each(conjunct, row, candidates[max(0, len(candidates) - conjunct.k) :], value)


def _first(conjunct: Choose, row: Row, candidates: list[Fact], value: Value) -> list[Row]:
    """A match for each of the k least candidates in canonical order; fewer if there are no more."""
    return _each(conjunct, row, candidates[: conjunct.k], value)


def _not(_conjunct: Absent, row: Row, candidates: list[Fact], _value: Value) -> list[Row]:
    """The partial match goes on where there is no candidate."""
    return [] if candidates else [row]


def _aggregate(conjunct: Summarise, row: Row, candidates: list[Fact], value: Value) -> list[Row]:
    """One value over all candidates; never prevents a match."""
    argument, name = conjunct.argument, conjunct.position.name
    if argument is None:
        total = summarised(conjunct.function, conjunct.distinct, [None] * len(candidates), star=True)
    else:
        terms = [value(argument, {**row, name: fact}) for fact in candidates]
        total = summarised(conjunct.function, conjunct.distinct, terms)
    return [{**row, "?" + conjunct.variable: total}]


LITERAL: Final[Mapping[Operator, LiteralOperator]] = {
    Operator.EACH: LiteralOperator(_each),
    Operator.LAST: LiteralOperator(_last),
    Operator.FIRST: LiteralOperator(_first),
    Operator.NOT: LiteralOperator(_not, sees_consumed=True),
    Operator.AGGREGATE: LiteralOperator(_aggregate, counts_reference=True, sees_consumed=True),
}
