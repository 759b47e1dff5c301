"""What the function of a rule charges while it searches the matches of one trigger fact.

Place:   used by compile.py and the files of conjuncts; budget.py has the units.
Method:  a loop charges its length on entry, together with the expressions evaluated inside it; what is listed
         or scanned is charged with its tests. A rule that shares thresholds with others charges no less than
         alone: if sharing turns a single choice into a loop, the expressions inside are also charged for the
         loop around it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dotr.budget import EXPRESSION, KEPT, Factor, Meter
from dotr.codegen import CodeSource, Reserved
from dotr.ir.expressions import Attribute, Const, Expression, Var


class _SpentUnits:
    """Generated code calls it when no units are left: (the length of each loop it is in)."""

    __slots__ = ("_meter", "_whats")

    def __init__(self, meter: Meter, whats: Sequence[str]) -> None:
        self._meter, self._whats = meter, tuple(whats)

    def __call__(self, *sizes: int) -> None:
        self._meter.stop([Factor(what, size) for what, size in zip(self._whats, sizes, strict=True)])


class _Loop(Struct):
    """A loop under construction. `choice`: for a rule alone it would be a single choice."""

    what: str
    length: str
    choice: bool
    line: Reserved
    spent: str
    units: int = 1


class RuleWork:
    """Owns the charges of one function under construction, and the meter they go to. `spent`: if passed, its
    only item adds up the units of all trigger facts.
    """

    def __init__(self, source: CodeSource, budget: int, spent: list[int] | None = None) -> None:
        self._source = source
        self._spent_by_all = "" if spent is None else f"{source.name('by_all', spent)}[0]"
        self._meter = Meter(budget)
        self._loops: list[_Loop] = []
        self._left = f"{source.name('left', self._meter.left)}[0]"
        self.matches = budget // KEPT
        """How many matches of one trigger fact may be kept."""
        self.start = "start"
        """The local with the number of matches before those of the current rule."""
        self._written: list[_Loop] = []

    def begin(self) -> None:
        """A trigger fact's work begins, or that of the last one has ended."""
        limit = self._source.name("budget", self._meter.limit)
        self._add_up(limit)
        self._source.line(f"{self._left} = {limit}")

    def _add_up(self, before: str) -> None:
        """Add to the units of all trigger facts what was charged since `before` were left."""
        if self._spent_by_all:
            self._source.line(f"{self._spent_by_all} += {before} - {self._left}")

    def loop(self, what: str, length: str, *, choice: bool = False) -> None:
        """The next line is a loop."""
        line = self._source.reserve()
        self._loops.append(_Loop(what, length, choice, line, self._spent(what, f"len({length})")))

    def expression(self) -> None:
        """An expression is evaluated in the innermost loop."""
        for loop in reversed(self._loops):
            loop.units += EXPRESSION
            if not loop.choice:
                break

    def listed(self, what: str, length: str, tests: int = 0) -> None:
        """Charge candidates that are listed, each with a number of tests."""
        self._charge(f"({length}) * {1 + tests * EXPRESSION}", self._spent(what, length))

    def count_matches(self) -> None:
        """There are `len(out) - start` matches of the trigger fact now."""
        many = self._source.name("many", _SpentUnits(self._meter, ["matches"]))
        most = self._source.name("most", self.matches)
        self._source.line(f"if len(out) - {self.start} > {most}: {many}(len(out) - {self.start})")

    def save(self, local: str) -> None:
        """The code before is shared with others; the code after is charged separately: see `restore`."""
        self._source.line(f"{local} = {self._left}")

    def restore(self, local: str) -> None:
        self._add_up(local)
        self._source.line(f"{self._left} = {local}")

    def leave(self) -> None:
        """The next lines are outside of all loops."""
        self._written += self._loops
        self._loops = []

    def settle(self) -> None:
        """The function is written: fill the reserved lines."""
        if self._spent_by_all:
            self.begin()
        self.leave()
        for loop in self._written:
            charge = f"{self._left} -= len({loop.length}) * {loop.units}"
            loop.line.text = f"{charge}\n{loop.line.indent}if {self._left} < 0: {loop.spent}"

    def _charge(self, units: str, spent: str) -> None:
        self._source.line(f"{self._left} -= {units}")
        self._source.line(f"if {self._left} < 0: {spent}")

    def _spent(self, what: str, length: str) -> str:
        """A call that reports the loops it was in."""
        whats = [*(loop.what for loop in self._loops), what]
        sizes = [*(f"len({loop.length})" for loop in self._loops), length]
        return f"{self._source.name('spent', _SpentUnits(self._meter, whats))}({', '.join(sizes)})"


def computed(expression: Expression) -> bool:
    """Whether it takes more than reading a value."""
    return not isinstance(expression, Attribute | Const | Var)
