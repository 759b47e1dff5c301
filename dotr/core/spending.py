"""What maintaining what lasts may cost, in an instant and in a run.

Place:   jumps.py owns one; lasting_model.py asks it for the limit of each piece of work and spends.
Method:  work over what lasts grows with what lasts, not with what comes: a product of three patterns costs
         the square of what is held for each triple. So an instant may spend LASTING units for each triple
         that is stated, for each query, as often as instants come (an aggregate reads all that is held).
         Beyond that it takes from an allowance of the run, which is the budget at first. Each triple that
         comes adds 1/TRIPLE of the budget to it, never above the budget. What exceeds both is refused like
         any instant that takes too much work.
Why not: a budget of each instant alone: 24 KB of messages, each just within it, would take minutes.
"""

from __future__ import annotations

from msgspec.structs import replace

from dotr.budget import Allowance, Meter
from dotr.errors import ProgramError

LASTING = 100
"""Units that an instant may spend for each triple that is stated, the background included, for each query, or
rule with an AGGREGATE, that looks at what lasts.
"""

TRIPLE = 10_000
"""A triple of a message adds 1/TRIPLE of the budget to the allowance."""

ANSWER = 25
"""Units of a fact that a query has over what lasts: rules see it."""


class Spending:
    """Owns the allowance of a run, and what the instant in progress has spent."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._allowance = Allowance(budget)
        self._free = self._used = 0
        self.deepest = 0
        """The most that was ever missing of the allowance."""

    def begin(self, triples: int, statements: int, readers: int) -> None:
        """An instant begins, with so many triples in its messages, over so many statements; `readers`: the
        number of queries, and of rules with an AGGREGATE.
        """
        self._allowance.add(triples * max(1, self.budget // TRIPLE))
        self._free, self._used = LASTING * (statements + triples) * readers, 0

    @property
    def left(self) -> int:
        """Units that the instant may still spend."""
        return max(0, self._free + self._allowance.left - self._used)

    def limit(self, most: int) -> int:
        """What a piece of work may take that has a limit of its own."""
        left = self._free + self._allowance.left - self._used
        return most if most <= left else max(0, left)

    def spend(self, units: int) -> None:
        self._used += units

    def spend_of(self, meter: Meter) -> None:
        """Spend what a meter was charged since it was opened, or its limit."""
        self._used += min(meter.used, meter.limit)

    def end(self) -> None:
        """The instant is done, or refused."""
        if self._used > self._free:
            self._allowance.take(min(self._used - self._free, self._allowance.left))
            self._used = self._free
            self.deepest = max(self.deepest, self.spent)

    @property
    def spent(self) -> int:
        """What is missing of the allowance, for a snapshot."""
        return self._allowance.most - self._allowance.left

    def restore(self, spent: int) -> None:
        self._allowance.left = max(0, self._allowance.most - spent)

    def explained(self, error: ProgramError) -> ProgramError:
        """An error of the instant, which says so if earlier instants had spent most of the allowance."""
        if self._allowance.left >= self.budget // 2:
            return error
        note = (
            f"an instant may spend {LASTING} units for each triple that is stated and each query, and a run "
            f"{self.budget:,} more, of which {self.spent:,} were spent before"
        )
        return ProgramError([replace(one, notes=(*one.notes, note)) for one in error.diagnostics])
