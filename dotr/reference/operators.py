"""What each operator of a rule means, literally: found by `LITERAL`.

Place:   reference/tesla.py goes through a rule by them; explain/ looks into matches by them. Nothing here
         knows an engine.
Method:  language.md, sec. 3, the rows of the table of conjuncts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from dotr.events import Fact, Time, no_fact
from dotr.expressions.literal_numbers import row_key, summarised
from dotr.program.queries import Expression
from dotr.program.rules import Absent, Choose, Operator, Selection, Summarise
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


def group_of(conjunct: Choose, fact: Fact, now: Time) -> Fact:
    """The group of a candidate of EACH … PER, as a fact: only the attributes of PER are bound."""
    pairs = zip(conjunct.position.variables, fact[1], strict=True)
    return now, tuple(term if name in conjunct.per else None for name, term in pairs), 0, ""


def _each(conjunct: Choose, row: Row, candidates: Sequence[Fact], _value: Value) -> list[Row]:
    """A match for every candidate; PER for every group of them, in canonical order."""
    if conjunct.per:
        now = max(fact[0] for name, fact in row.items() if name[0] != "?")
        groups = {group_of(conjunct, fact, now) for fact in candidates}
        candidates = sorted(groups, key=lambda group: row_key(group[1]))
    return [{**row, conjunct.position.name: fact} for fact in candidates]


def _last(conjunct: Choose, row: Row, candidates: list[Fact], value: Value) -> list[Row]:
    """A match for each of the k greatest candidates in canonical order; fewer if there are no more."""
    if conjunct.optional and not candidates:
        return _without(conjunct, row)
    return _each(conjunct, row, candidates[max(0, len(candidates) - conjunct.k) :], value)


def _first(conjunct: Choose, row: Row, candidates: list[Fact], value: Value) -> list[Row]:
    """A match for each of the k least candidates in canonical order; fewer if there are no more."""
    if conjunct.optional and not candidates:
        return _without(conjunct, row)
    return _each(conjunct, row, candidates[: conjunct.k], value)


def _without(conjunct: Choose, row: Row) -> list[Row]:
    """OPTIONAL without a candidate: the partial match goes on, with nothing bound."""
    position = conjunct.position
    return [{**row, position.name: no_fact(len(position.variables))}]


def _not(_conjunct: Absent, row: Row, candidates: list[Fact], _value: Value) -> list[Row]:
    """The partial match goes on where there is no candidate."""
    return [] if candidates else [row]


def summed_up(conjunct: Summarise, candidates: list[Fact]) -> list[Fact]:
    """The candidates over which an aggregate is: all, or the k greatest or least in canonical order."""
    match conjunct.selection:
        case Selection.LAST:
            return candidates[max(0, len(candidates) - conjunct.k) :]
        case Selection.FIRST:
            return candidates[: conjunct.k]
        case _:
            return candidates


def _aggregate(conjunct: Summarise, row: Row, candidates: list[Fact], value: Value) -> list[Row]:
    """One value over all candidates, or some; never prevents a match."""
    argument, name = conjunct.argument, conjunct.position.name
    candidates = summed_up(conjunct, candidates)
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
