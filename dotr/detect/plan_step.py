"""One conjunct of a rule, planned: what a column keeps of a stream for it, by which key.

Place:   plan.py gets it from an operator (operators.py); columns.py makes the column. The specification of a
         column is a value that identifies shared columns.
Method:  TESLA's automaton of columns (Cugola, Margara 2010: T-Rex keeps a column of partial results per
         position), with columns split by the equations of ON. A conjunct gets the smallest memory that its
         semantics allows:
           latest   one fact per key: LAST, and NOT, in a window anchored at the trigger
           groups   the latest fact of each group per key: EACH … PER, in a window anchored at the trigger
           total    a running aggregate per key, in a window anchored at the trigger
           stack    per key, what is the latest above some threshold: a latest whose filter compares with
                    a constant, so that rules with other constants share it (thresholds.py)
           ranked   all facts per key above the lowest of several thresholds: EACH, and aggregates under
                    further conditions, shared as stacks are
           ranked total  a running aggregate per key and level between such thresholds, shared likewise
           log      all facts per key within reach, in canonical order: everything else
         A window BEFORE the trigger has a column that takes the facts of an instant at its end (`deferred`),
         so that the newest fact of the column is always the newest of the window.
Why not: one kind for all: a log where one fact is enough costs the window in space.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from dotr.detect.analysis import Occasion, looks_at_time
from dotr.detect.thresholds import CARRIED, Measure, Threshold
from dotr.events import Time
from dotr.program.queries import Expression
from dotr.program.rules import Conjunct


class LastValue(Struct, frozen=True):
    """One fact per key: the greatest in canonical order."""


class LatestOfGroups(Struct, frozen=True):
    """Per key the greatest fact of each group: of each tuple of the attributes with these numbers."""

    places: tuple[int, ...]


class FactLog(Struct, frozen=True):
    """All facts per key, in canonical order. `held`: facts of what holds, kept as intervals."""

    held: bool = False


class RunningTotal(Struct, frozen=True):
    """A running aggregate per key over the last `duration`; its argument reads only the own fact. `held`:
    over what holds, kept as intervals. `weight`, of COUNT(*) over a rule: which value of a fact is the number
    of events that it stands for, if it has so many (counting.py).
    """

    function: str
    distinct: bool
    argument: Expression | None
    duration: Time
    held: bool = False
    weight: int = -1

    @property
    def weighed(self) -> bool:
        """Whether a fact may stand for several."""
        return self.weight >= 0


class MonotonicStack(Struct, frozen=True):
    """Per key, the facts that are the latest above some threshold: later ones measure less."""

    measure: Measure


class Ranked(Struct, frozen=True):
    """All facts per key that pass the lowest threshold of the rules that share them."""

    measure: Measure


class RankedTotal(Struct, frozen=True):
    """A running aggregate per key, by level: what it comes to above each threshold of the rules that share
    it.
    """

    measure: Measure
    function: str
    distinct: bool
    argument: Expression | None
    duration: Time


Content: TypeAlias = (
    LastValue | LatestOfGroups | FactLog | RunningTotal | MonotonicStack | Ranked | RankedTotal
)


def for_one(content: Content) -> Content:
    """What is kept instead where all rules have the same threshold, so that it can be a filter."""
    match content:
        case MonotonicStack():
            return LastValue()
        case Ranked():
            return FactLog()
        case RankedTotal(_, function, distinct, argument, duration):
            return RunningTotal(function, distinct, argument, duration)
        case _:
            return content


class ColumnSpec(Struct, frozen=True):
    """What a column keeps. Equal specs are one column, whichever rules use it.

    `chained`: its facts are found while rules run. `keys` and `filters` read only the own fact, named "", its
    attributes by number. `size`: a threshold for its facts (the size that a fact of a base carries is then
    dropped). `occasions`: whose instants it sees beside those of graphs. `owner`: the only rule of the column
    if that consumes from it, else "". `epoch` separates rules deployed at different times: their pasts
    differ.
    """

    stream: str
    chained: bool
    occasions: frozenset[Occasion]
    deferred: bool
    keys: tuple[Expression, ...]
    filters: tuple[Expression, ...]
    content: Content
    size: Threshold | None = None
    owner: str = ""
    epoch: int = 0

    @property
    def fed_by_base(self) -> bool:
        """Whether its facts arrive with their size."""
        content, size = self.content, self.size
        if isinstance(content, MonotonicStack | Ranked | RankedTotal) and content.measure.place == CARRIED:
            return True
        return size is not None and size.measure.place == CARRIED

    @property
    def carries(self) -> bool:
        """Whether it keeps facts with their size."""
        return isinstance(self.content, Ranked) and self.content.measure.place == CARRIED


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
