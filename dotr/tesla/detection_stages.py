"""How far the trigger facts of a rule came: what is left after each step of its detection.

Place:   compile.py writes the counting into a group's function, network.py holds the counts; core/funnel.py
         makes a rule's funnel of them.
Method:  one addition where a step has passed, of as many partial matches as there are by then: candidates of
         an EACH that is not looped over yet count each. Steps are those of the engine's own order. A group
         sleeps while a stream that it must choose from has nothing within reach, and then looks at no
         trigger fact; so what comes before the last such choice is not counted, and named together with it.
         Members of a group that differ in thresholds are counted as a range: where it begins and ends.
Why not: a count per trigger fact in every step, asleep or not: waking rules that cannot match costs more
         than all counting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import accumulate
from typing import Final, TypeAlias

from dotr.codegen import CodeSource, Reserved
from dotr.ir.rules import Choose, Conjunct, Rule, Summarise
from dotr.late import dataclass

TRIGGER: Final = ""
"""The name of the first step of a rule whose trigger facts are some of those that it is given."""

Passed: TypeAlias = list[tuple[str, int | None]]
"""(step, partial matches left after it) in order of evaluation. None: as many as before it."""


def label(conjunct: Conjunct) -> str:
    """What a conjunct is called in a funnel: `LAST Spike`, `NOT Later`, `AVG`."""
    name = conjunct.position.name
    if isinstance(conjunct, Choose):
        return f"{conjunct.selection} {name}"
    return conjunct.function if isinstance(conjunct, Summarise) else f"NOT {name}"


def unreached(rule: Rule) -> Passed:
    """What there is to say of a rule that was never looked at: a stream it must choose from had nothing."""
    chosen = [label(conjunct) for conjunct in rule.conjuncts if isinstance(conjunct, Choose)]
    return [(", ".join(chosen), 0)] if chosen else []


def added(one: Passed, other: Passed) -> Passed:
    """Two counts of one rule, summed. Where one has further steps at its end, the other passed them all."""
    if not one or not other:
        return one or other
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if any(a[0] != b[0] for a, b in zip(longer, shorter, strict=False)):
        return other  # other rules changed in what order this one is evaluated
    found: Passed = []
    last: int | None = None
    for place, (name, count) in enumerate(longer):
        last = shorter[place][1] if place < len(shorter) else last
        found.append((name, None if count is None or last is None else count + last))
    return found


def subtracted(all_: Mapping[str, Passed], before: Mapping[str, Passed]) -> dict[str, Passed]:
    """What was counted since `before`, of the same detector, rule by rule. Counts only grow."""
    return {rule: _since(passed, before.get(rule, [])) for rule, passed in all_.items()}


def _since(passed: Passed, before: Passed) -> Passed:
    """`passed` less `before`, which may lack steps at its end: it passed them all, as in `added`."""
    if not before:
        return passed
    found: Passed = []
    old: int | None = None
    for place, (name, count) in enumerate(passed):
        old = before[place][1] if place < len(before) else old
        found.append((name, None if count is None or old is None else count - old))
    return found


def summed(one: Mapping[str, Passed], other: Mapping[str, Passed]) -> dict[str, Passed]:
    """As `added`, rule by rule."""
    return {**one, **{rule: added(one.get(rule, []), passed) for rule, passed in other.items()}}


@dataclass(slots=True, eq=False)
class StageCounts:
    """Owns what the function of a group counts. `members`: how many rules it is; `ranged`: counts are kept by
    where ranges of members begin and end. `steps`: (name, place of its count, or -1: as many as triggers).
    `triggers`: where facts must pass a threshold, or nobody else counts them, how many were trigger facts of
    so many members, the first ones.
    """

    members: int
    ranged: bool
    steps: list[tuple[str, int]] = field(default_factory=list)
    counts: list[list[int]] = field(default_factory=list)
    triggers: list[int] | None = None

    def new(self) -> int:
        """The place of one more count."""
        self.counts.append([0] * (self.members + 1 if self.ranged else 1))
        return len(self.counts) - 1

    def of(self, member: int) -> Passed:
        """What was counted for a member."""
        sums = [list(accumulate(count))[member if self.ranged else 0] for count in self.counts]
        steps: Passed = [(name, None if place < 0 else sums[place]) for name, place in self.steps]
        return steps if self.triggers is None else [(TRIGGER, sum(self.triggers[member + 1 :])), *steps]

    def forget(self) -> None:
        """From now on counts begin at 0."""
        for count in self.counts if self.triggers is None else [*self.counts, self.triggers]:
            count[:] = [0] * len(count)


class StageWriter:
    """Owns the counting of one function under construction.

    `needed`: names of steps before which nothing can be counted.
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
        the members it passed for, None where nobody knows yet.
        """
        self._needed.discard(name)
        if not may_fail and not self._names and not self._needed:
            self._lines.append((name, line, ""))
            return
        self._names.append(name)
        self.opened(loops, range_, line)

    def opened(self, loops: Sequence[str], range_: tuple[str, str] | None, line: Reserved) -> None:
        """At `line` steps may be counted that could not before."""
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
        """The function is written: fill the lines kept free. Of equal steps in a row the last one counts.

        `known`: what lines that several groups share count in, by their ids.
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
