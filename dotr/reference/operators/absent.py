"""NOT: the partial match goes on where there is no candidate; facts that were consumed are candidates too."""

from __future__ import annotations

from dotr.events import Fact
from dotr.ir.rules import Absent
from dotr.reference.operators.literal import LiteralOperator, Row, Value


def _extend(_conjunct: Absent, row: Row, candidates: list[Fact], _value: Value) -> list[Row]:
    return [] if candidates else [row]


ABSENT = LiteralOperator(_extend, sees_consumed=True)
