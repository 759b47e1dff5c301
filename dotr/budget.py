"""Work and its limits: units that are charged, and what is raised when none are left.

Place:   below rdf/; every loop over rows charges here: joins/, enrich/, extract/, detect/. The opener of the
         meter knows the query or rule and reports it.
Method:  one unit per row of a loop, ten per evaluated expression and ten more per call of a function of one's
         own in it, whether or not its result is kept. A loop adds its length once, on entry, and
         never counts row by row: that would cost a third of a join. Generated code subtracts from `left[0]`
         itself and calls `spent` when it is negative. The cost of a piece of work depends on how it is run
         (rules that share, indexes made late, the order of graphs), but by less than a factor of SLACK. So
         work runs with a limit of 1/SLACK of the budget; past that it is abandoned and repeated in the one
         canonical way, and only that count decides.
Why not: the clock. A slower machine would refuse what a faster one answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from msgspec import Struct

from dotr.errors import ProgramError

BUDGET: Final = 10_000_000
"""Units for an instant's Datalog, for a query at an instant, and for a rule at one trigger fact."""

CORRECTIONS: Final = 0.5
LEAST_CORRECTIONS, MOST_CORRECTIONS = 0.05, 0.95
"""The share of the work that corrections may be by default, and its limits."""

EXPRESSION: Final = 10
"""Units of one evaluated expression, and of a call of a function of one's own; a row of a loop is one."""

POINT: Final = 120
"""Units of a point of a timeline that is evaluated although nothing came at it, beside those of its rules."""

VIEW: Final = 4
"""Units of a window or a head of LARS rules at such a point, whether or not it changes."""

VERIFIED: Final = 1_000
"""Units of such a point that the literal reading evaluates beside an engine: all queries are asked at it."""

EVENT: Final = 50
"""Units of an event at such a point."""

INPUT: Final = 200
"""Input at a point adds 1/INPUT of the budget to what points without input may cost in a run, and SLACK times
what its own point cost: what begins there also ends."""

KEPT: Final = 10
"""Units for keeping a derived fact or an operator's row, beside those of finding it."""

CHANGED: Final = 4
"""Units of an answer over what lasts that begins or ends, beside those of finding it."""

CHUNK: Final = 4096
"""Units that generated code accumulates before it charges the meter."""

SLACK: Final = 16
"""Past 1/SLACK of the budget, work is abandoned and repeated in the canonical way."""

TEXT: Final = 1 << 20
"""Characters of a string that an expression may make."""

DIGITS: Final = 4096
"""Digits of an integer, and of a decimal before its point. Python turns no more than 4,300 into text."""

UNLIMITED: Final = 2**62


def at_deployment(budget: int, triples: int) -> int:
    """What the background alone may cost, given its number of triples."""
    return budget + 100 * triples


class Factor(Struct, frozen=True):
    """A loop whose length multiplies with others: what it ranges over, and its rows when last entered."""

    what: str
    size: int

    def __str__(self) -> str:
        return f"{self.what}: {self.size} row{'' if self.size == 1 else 's'}"


class Exhausted(Exception):  # noqa: N818  # becomes a diagnostic once the query or rule is known
    """No units are left. `factors`: the loops in progress, outermost first; the last is the step at which it
    ended. `source`: the query or rule whose meter it was, if the opener named it.
    """

    def __init__(self, factors: Sequence[Factor] = (), source: object = None) -> None:
        super().__init__(factors, source)
        self.factors = tuple(factors)
        self.source = source

    @property
    def step(self) -> str:
        """What was being done."""
        return self.factors[-1].what if self.factors else ""

    @property
    def largest(self) -> tuple[Factor, ...]:
        """The two largest factors, the largest first."""
        return tuple(sorted(self.factors, key=lambda factor: -factor.size)[:2])

    def notes(self) -> tuple[str, ...]:
        """For a diagnostic: the step and its largest loops."""
        step = (f"it had reached {self.step}",) if self.step else ()
        loops = " in a loop over ".join(map(str, self.largest))
        return (*step, f"in a loop over {loops}") if loops else step


class Overlong(Exhausted):
    """An expression would make a string of more than TEXT characters: of at least `length`; without a length,
    a number of more than DIGITS digits.

    Caught wherever Exhausted is; only the diagnostic differs: D4133.
    """

    def __init__(self, length: int | None = None) -> None:
        super().__init__()
        self._length = length

    @property
    def made(self) -> str:
        """What would be made, for a message."""
        if self._length is None:
            return f"a number of more than {DIGITS:,} digits"
        return f"a string of more than {TEXT:,} characters"

    @property
    def hint(self) -> str:
        return "make smaller numbers" if self._length is None else "make a shorter string"

    def notes(self) -> tuple[str, ...]:
        return () if self._length is None else (f"it would have about {self._length:,} characters",)


OVERLONG: Final = "D4133"
"""The code of Overlong."""


def text_of(length: int) -> None:
    """Raise Overlong if a string of `length` characters would be too long."""
    if length > TEXT:
        raise Overlong(length)


class Allowance:
    """Owns what a run may spend on work that its input does not bound, from instant to instant: `most` units
    at first; input adds to what is `left`, never above `most`.

    Whoever spends it adds and takes the same units however the stream is cut, and saves `left` in snapshots.
    """

    __slots__ = ("left", "most")

    def __init__(self, most: int = UNLIMITED) -> None:
        self.most = self.left = most

    def add(self, units: int) -> None:
        self.left = min(self.most, self.left + units)

    def take(self, units: int) -> None:
        """Afterwards `left` is negative if the units were more than that."""
        self.left -= units

    @property
    def exhausted(self) -> bool:
        return self.left < 0


class Meter:
    """Owns the units left of one budget. `left[0]` is what generated code subtracts from.

    `moment` names the piece of work in progress (for a query: the instant). A meter with one refills itself
    when it is found empty in a new piece of work, so that it need not be opened at every instant; its limit
    is then exact to a factor of two. Without one, `open` begins a piece.
    """

    __slots__ = ("_moment", "_piece", "left", "limit", "source")

    def __init__(
        self, limit: int = UNLIMITED, moment: Callable[[], object] | None = None, source: object = None
    ) -> None:
        self.limit = limit
        self.left = [limit]
        self.source = source
        self._moment = moment
        self._piece: object = None

    def open(self, limit: int | None = None) -> None:
        """Begin a piece of work; `limit`, if passed, applies from now on."""
        if limit is not None:
            self.limit = limit
        self.left[0] = self.limit
        if self._moment is not None:
            self._piece = self._moment()

    @property
    def used(self) -> int:
        """Units charged since `open`."""
        return self.limit - self.left[0]

    def charge(self, rows: int, what: str = "", units: int = 1, outer: Sequence[Factor] = ()) -> None:
        """Take `units` for each row of a loop over `what`, inside loops over `outer`. Raises Exhausted."""
        self.left[0] -= rows * units
        if self.left[0] < 0:
            self.spent((*outer, Factor(what, rows)))

    def spent(self, factors: Sequence[Factor] = (), source: object = None) -> None:
        """`left[0]` is negative: raise Exhausted, or refill for another piece of work.

        `source`: whose work it was, if not that of the whole meter.
        """
        if self._moment is not None and (piece := self._moment()) != self._piece:
            self._piece = piece
            self.left[0] += self.limit
            if self.left[0] >= 0:
                return
        self.stop(factors, source)

    def stop(self, factors: Sequence[Factor] = (), source: object = None) -> NoReturn:
        """Raise Exhausted."""
        raise Exhausted(factors, self.source if source is None else source)


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
        self._each = max(1, budget // TRIPLE)
        self.deepest = 0
        """The most that was ever missing of the allowance."""

    def begin(self, triples: int, statements: int, readers: int) -> None:
        """An instant begins, with so many triples in its messages, over so many statements; `readers`: the
        number of queries, and of rules with an AGGREGATE.
        """
        if triples:
            self._allowance.add(triples * self._each)
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
        self._used += meter.limit - max(meter.left[0], 0)

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
        return ProgramError([one._replace(notes=(*one.notes, note)) for one in error.diagnostics])
