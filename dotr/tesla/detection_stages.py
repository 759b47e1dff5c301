"""How far the trigger facts of a rule got: what is left after each step of its detection.

Place:   compile.py writes the counting into a group's function, network.py holds the counts; core/funnel.py
         makes a rule's funnel from them.
Method:  after each step one addition of the number of partial matches: candidates of an EACH that is not
         looped over yet count each. Steps are in the engine's own order. A group sleeps while a stream that
         it must choose from has nothing within reach, and then sees no trigger fact; so steps before the last
         such choice are not counted, but named together with it. Members of a group that differ in thresholds
         are counted by the start and end of their range.
Why not: a count per trigger fact in every step, asleep or not: waking rules that cannot match costs more than
         all counting does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct, field

from dotr.codegen import CodeSource, Reserved
from dotr.temporal.stages import TRIGGER, Passed


class StageCounts(Struct, eq=False):
    """Owns what the function of a group counts. `members`: the number of rules; `ranged`: counts are kept by
    start and end of ranges of members. `steps`: (name, place of its count, or -1: as many as triggers).
    `triggers`: if facts must pass a threshold, or are not counted elsewhere: number of first members → how
    many facts triggered them.
    """

    members: int
    ranged: bool
    steps: list[tuple[str, int]] = field(default_factory=list)
    counts: list[list[int]] = field(default_factory=list)
    triggers: list[int] | None = None

    def new(self) -> int:
        """Add a count; returns its place."""
        self.counts.append([0] * (self.members + 1 if self.ranged else 1))
        return len(self.counts) - 1

    def of(self, member: int) -> Passed:
        """The counts of a member."""
        sums = [list(accumulate(count))[member if self.ranged else 0] for count in self.counts]
        steps: Passed = [(name, None if place < 0 else sums[place]) for name, place in self.steps]
        return steps if self.triggers is None else [(TRIGGER, sum(self.triggers[member + 1 :])), *steps]

    def forget(self) -> None:
        """Reset the counts to 0."""
        for count in self.counts if self.triggers is None else [*self.counts, self.triggers]:
            count[:] = [0] * len(count)


class StageWriter:
    """Owns the counting of one function under construction.

    `needed`: names of steps before the last of which nothing can be counted.
    """

    def __init__(self, source: CodeSource, counts: StageCounts, needed: Sequence[str]) -> None:
        self._source = source
        self._counts = counts
        self._needed = set(needed)
        self._names: list[str] = []  # steps that are not counted yet
        self._lines: list[tuple[str, Reserved, str]] = []

    def passed(
        self,
        name: str,
        loops: Sequence[str],
        range_: tuple[str, str] | None,
        line: Reserved,
        *,
        may_fail: bool = True,
    ) -> None:
        """A step has passed at `line`. `loops`: lists of candidates that are not looped over yet; `range_`:
        the members it passed for, None if not known yet.
        """
        self._needed.discard(name)
        if not may_fail and not self._names and not self._needed:
            self._lines.append((name, line, ""))
            return
        self._names.append(name)
        self.opened(loops, range_, line)

    def bound(self) -> None:
        """A computed binding passed: steps not yet counted are counted after it, and named with it."""
        if self._names:
            self._names.append("WITH")

    def opened(self, loops: Sequence[str], range_: tuple[str, str] | None, line: Reserved) -> None:
        """From `line` on, earlier steps may be counted, too."""
        counts = self._counts
        if not self._names or self._needed or (counts.ranged and range_ is None):
            return
        name = ", ".join(dict.fromkeys(self._names))
        self._names = []
        many = "*".join(f"len({several})" for several in loops) or "1"
        if counts.ranged and range_ is not None:
            low, high = range_
            text = f"COUNT[{low}] += {many}; COUNT[{high}] -= {many}"
        else:
            text = f"COUNT[0] += {many}"
        self._lines.append((name, line, text))

    def settle(self, known: dict[int, list[int]]) -> None:
        """The function is written: fill the reserved lines. Of consecutive equal steps the last one counts.

        `known`: counts of lines that several groups share, by id.
        """
        counts, before = self._counts, -1
        for number, (name, line, text) in enumerate(self._lines):
            if number + 1 < len(self._lines) and self._lines[number + 1][0] == name:
                continue
            if text and id(line) in known:
                counts.counts.append(known[id(line)])
                before = len(counts.counts) - 1
            elif text:
                before = counts.new()
                known[id(line)] = counts.counts[before]
                line.text = text.replace("COUNT", self._source.name("passed", counts.counts[before]))
            counts.steps.append((name, before))
        self._names = []
