"""EACH: a match for every candidate."""

from __future__ import annotations

from dotr.events import Fact
from dotr.ir.rules import Choose
from dotr.reference.operators.literal import LiteralOperator, Row, Value, with_each


def _extend(conjunct: Choose, row: Row, candidates: list[Fact], _value: Value) -> list[Row]:
    return with_each(conjunct, row, candidates)


EACH = LiteralOperator(_extend)
