"""Keys with so many facts that one task has most of the work while the others wait.

Place:   detecting.py weighs the parts of groups that are cut by key; the driver of either engine judges.
Method:  rows of a part are counted, and the keys of some of them sampled. There is no automatic remedy: a key
         belongs to one detector, in order; another equation, or cutting by time, helps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from dotr.batch.fact_rows import MARK, FactReader, FactRow, Layout
from dotr.errors import Diagnostic, Severity
from dotr.ir import Program
from dotr.temporal.partitions import StreamKeys

Weight: TypeAlias = tuple[int, int, str, float]
"""(part, rows, their most frequent key, its share), a JSON value."""

LEAST = 5_000
"""Rows of one part below which skew does not matter."""

HEAVY = 4
"""A part is reported if it has this multiple of the others' average rows."""

_EVERY = 16
_KEYS = 1_000


class Weighing:
    """Owns the count of one part's rows, which pass through it."""

    def __init__(self, part: int, keys: StreamKeys, reader: FactReader, program: Program) -> None:
        self._part, self._keys, self._reader, self._program = part, keys, reader, program
        self._rows = 0
        self._found: Counter[str] = Counter()

    def through(self, rows: Iterable[FactRow]) -> Iterator[FactRow]:
        for row in rows:
            if row[1] != MARK:
                if self._rows % _EVERY == 0 and len(self._found) < _KEYS:
                    self._look(row)
                self._rows += 1
            yield row

    def _look(self, row: FactRow) -> None:
        for stream, facts in self._reader.read(row[2], row[1]).items():
            places = self._keys.get(stream, ())
            names = self._program.queries[stream].variables
            for fact in facts if places else ():
                self._found[", ".join(f"?{names[i]} = {fact[1][i] or 'unbound'}" for i in places)] += 1

    @property
    def weight(self) -> Weight:
        if not self._found:
            return self._part, self._rows, "", 0.0
        key, count = min(self._found.most_common(), key=lambda pair: (-pair[1], pair[0]))
        return self._part, self._rows, key, count / self._found.total()


def skewed(program: Program, layout: Layout, weights: Iterable[Weight]) -> list[Diagnostic]:
    """The warnings about parts of a run: the heaviest of each group, if too heavy."""
    groups: dict[int, list[Weight]] = {}
    for weight in weights:
        groups.setdefault(layout.owner(weight[0])[0], []).append(weight)
    found = []
    for number in sorted(groups):
        parts = groups[number]
        total = sum(rows for _, rows, _, _ in parts)
        heaviest = max(parts, key=lambda weight: (weight[1], weight[0]))
        others = (total - heaviest[1]) / max(1, layout.cuts[number].buckets - 1)
        if heaviest[1] >= LEAST and heaviest[1] > HEAVY * others:
            rules = [program.rules[i].name for i in layout.plan.groups[number].rules]
            found.append(_diagnosed(rules, heaviest, total))
    return found


def _diagnosed(rules: list[str], weight: Weight, total: int) -> Diagnostic:
    _part, rows, key, share = weight
    return Diagnostic(
        "D4136",
        f"one task has {rows / total:.0%} of the input of `{'`, `'.join(rules)}`",
        label=f"{key} in {share:.0%} of it" if key else "",
        notes=(f"{rows:,} of {total:,} instants with facts lie in one part, for which the other tasks wait",),
        hint="another equation with the trigger in ON splits it further; so does --by time, if possible",
        severity=Severity.WARNING,
    )
