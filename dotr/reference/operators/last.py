"""LAST k: a match for each of the k greatest candidates in canonical order; fewer if there are no more."""

from __future__ import annotations

from dotr.events import Fact
from dotr.ir.rules import Choose
from dotr.reference.operators.literal import LiteralOperator, Row, Value, with_each


def _extend(conjunct: Choose, row: Row, candidates: list[Fact], _value: Value) -> list[Row]:
    return with_each(conjunct, row, candidates[max(0, len(candidates) - conjunct.k) :])


LAST = LiteralOperator(_extend)
