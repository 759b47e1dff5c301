"""One conjunct of a rule, planned: which column serves it, by which key."""

from __future__ import annotations

from msgspec import Struct

from dotr.events import Time
from dotr.ir.expressions import Expression
from dotr.ir.rules import Conjunct
from dotr.tesla.column_spec import ColumnSpec, FactLog
from dotr.tesla.conditions import looks_at_time
from dotr.tesla.thresholds import Threshold


class PlanStep(Struct, frozen=True):
    """One conjunct, planned.

    `retention`: the age up to which a fact of the column can be read. `probe`: what the column's keys must
    equal. `residual`: the rest of ON. `itself`: the reference whose fact is not a candidate. `newest`: the
    window ends with the column, so no upper bound is searched.
    """

    conjunct: Conjunct
    column: ColumnSpec
    retention: Time
    probe: tuple[Expression, ...]
    residual: Expression | None
    itself: str | None
    newest: bool
    threshold: Threshold | None = None

    @property
    def held(self) -> bool:
        """Whether its candidates are kept as intervals."""
        return isinstance(self.column.content, FactLog) and self.column.content.held

    def every_point(self, trigger: str) -> bool:
        """Whether points at which the same holds may differ for it: it reads their time, or excludes the fact
        of one of them (the trigger's is at the newest point, which is separate).
        """
        own = self.conjunct.position.name
        looks = self.residual is not None and looks_at_time(self.residual, own)
        return looks or self.itself not in (None, trigger)

    @property
    def title(self) -> str:
        """For diagnostics: the conjunct as written."""
        return f"{self.conjunct.word} {self.conjunct.position.name}"
