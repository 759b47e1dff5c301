"""What a sample says of a sequence: conditions of elements that are never true, or never of the right kind.

Place:   report.py calls it with the facts of the sources; judge of conditions.py reports.
Method:  the literal reading (reference/sequences.py) goes its way over the rows of each partition, and what
         the condition of each element reads is kept, row by row, until that is enough. Rows, starts and
         matches are counted by the engine, as a run counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final

from dotr.budget import BUDGET
from dotr.core.funnel import Funnel
from dotr.detect.analysis import parts
from dotr.detect.sequences.sequence import SequenceRun
from dotr.errors import Diagnostics
from dotr.events import Clock, Fact, Time
from dotr.program import Rule
from dotr.program.sequences import RowElement, RowPattern
from dotr.rdf.terms import Term
from dotr.reference.sequences import LiteralSequence, PatternRow
from dotr.reference.sequences import Mapping as RowMapping
from dotr.reference.tesla import fact_key
from dotr.survey.conditions import Row, SolutionTable, column_of, judge, leaves
from dotr.survey.queries import Observed

_TESTED: Final = 20_000
"""Rows of which the condition of an element is tested; a row is tested for each mapping that asks."""


class _EnoughError(Exception):
    """So many rows were tested."""


class _Asked(LiteralSequence):
    """Keeps what conditions read. `seen`: rows by element, under the columns of `columns`."""

    def __init__(self, pattern: RowPattern, clock: Clock) -> None:
        super().__init__(pattern, (), clock)
        self._left = _TESTED
        self._read = {e.name: list(dict.fromkeys(leaves(e.on))) for e in pattern.elements if e.on is not None}
        self.columns = {
            name: {column: n for n, column in enumerate(dict.fromkeys(map(column_of, read)))}
            for name, read in self._read.items()
        }
        self.seen: dict[str, list[Row]] = {name: [] for name in self._read}

    def passes(self, element: RowElement, mapping: RowMapping) -> bool:
        self._left -= 1
        if self._left < 0:
            raise _EnoughError
        if element.on is not None:
            values = {column_of(leaf): self.value(leaf, mapping) for leaf in self._read[element.name]}
            own = tuple(values[column] for column in self.columns[element.name])
            self.seen[element.name].append((mapping.now, own))
        return super().passes(element, mapping)


def judge_sequence(rule: Rule, facts: Mapping[str, Observed], clock: Clock, found: Diagnostics) -> None:
    """Report what a sample decides of the conditions of a sequence's elements; `facts`: of its sources."""
    pattern = rule.trigger
    assert isinstance(pattern, RowPattern), "the trigger of a sequence"
    asked = _Asked(pattern, clock)
    partial = any(_partial(facts[source.stream]) for source in pattern.sources)
    try:
        for rows in _partitions(asked, facts).values():
            for _ in asked.starts(rows):
                pass
    except _EnoughError:
        partial = True
    for element in pattern.elements:
        if element.on is None:
            continue
        tested = asked.seen[element.name]
        table = SolutionTable(
            clock, asked.columns[element.name], tested, len(tested), "rows", partial, rule=True
        )
        judge(table, parts(element.on), f"element `{element.name}` of sequence `{rule.name}`", found)


def count_sequence(rule: Rule, facts: Mapping[str, Observed], clock: Clock) -> Funnel:
    """How far the rows of a sample come in a sequence, as in a run of it; `facts`: of its sources."""
    run = SequenceRun(0, rule, clock, BUDGET, lambda _fact, _exhausted: None)
    at: dict[Time, list[tuple[int, list[Fact]]]] = {}
    for row in _rows(run.pattern, facts):
        sources = at.setdefault(row.fact[0], [])
        if not sources or sources[-1][0] != row.source:
            sources.append((row.source, []))
        sources[-1][1].append(row.fact)
    for time, rows in at.items():
        while (due := run.next(time)) is not None:
            run.run(due, ())
        run.run(time, rows)
    return [(step or "rows", count or 0) for step, count in run.passed()]


def _partial(observed: Observed) -> bool:
    return observed.partial or observed.count > len(observed.matches)


def _partitions(
    literal: LiteralSequence, facts: Mapping[str, Observed]
) -> dict[tuple[Term, ...], Sequence[PatternRow]]:
    """The rows of the sample, in order, by partition."""
    found: dict[tuple[Term, ...], list[PatternRow]] = {}
    for row in _rows(literal.pattern, facts):
        if (key := literal.key(row)) is not None:
            found.setdefault(key, []).append(row)
    return dict(found)


def _rows(pattern: RowPattern, facts: Mapping[str, Observed]) -> list[PatternRow]:
    """The facts of the sample that are rows, in order."""
    rows = []
    for number, source in enumerate(pattern.sources):
        for (fact, *_), _ in facts[source.stream].matches:
            rows.append(((fact[0], number, fact_key(fact)), PatternRow(number, fact)))
    return [row for _, row in sorted(rows, key=itemgetter(0))]
