"""Aggregates: one value over all candidates, the reference and consumed facts among them; never prevents."""

from __future__ import annotations

from dotr.events import Fact
from dotr.expressions.aggregates import summarise
from dotr.ir.rules import Summarise
from dotr.reference.operators.literal import LiteralOperator, Row, Value


def _extend(conjunct: Summarise, row: Row, candidates: list[Fact], value: Value) -> list[Row]:
    argument, name = conjunct.argument, conjunct.position.name
    if argument is None:
        total = summarise(conjunct.function, conjunct.distinct, [None] * len(candidates), star=True)
    else:
        terms = [value(argument, {**row, name: fact}) for fact in candidates]
        total = summarise(conjunct.function, conjunct.distinct, terms)
    return [{**row, "?" + conjunct.variable: total}]


AGGREGATE = LiteralOperator(_extend, counts_reference=True, sees_consumed=True)
