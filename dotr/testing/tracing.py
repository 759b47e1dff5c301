"""What tests made true and false: rules followed literally, conjunct by conjunct, while a test runs.

Place:   beside the engine of a run; reports.py reads what was seen.
Method:  the literal reading of a rule (reference/tesla.py) with counters in it. Tests are small; the engine
         has already said what comes, this says how far everything else came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from dotr.core.instant import Facts
from dotr.events import NEVER, Clock, Fact, Match, Time
from dotr.explain.sequences import MOST, SearchedSequence
from dotr.program import Choose, Conjunct, Expression, Program, Rule
from dotr.program.sequences import RowElement, RowPattern
from dotr.rdf.terms import Term
from dotr.reference.operators import Row
from dotr.reference.sequences import Mapped, Mapping, PatternRow
from dotr.reference.tesla import LiteralRule, LiteralSequenceRule, LiteralTesla

ON, WHERE = "ON", "WHERE"

Asked: TypeAlias = tuple[str, int]
"""ON with the number of its conjunct, or WHERE with 0."""


class Trace(Struct):
    """What was seen of a rule: `triggers`; matches that each conjunct left (`stages`), and how often it left
    none of a match, or an OPTIONAL had nothing (`lacked`); conditions that were true and false; `events`.
    """

    rule: Rule
    triggers: int = 0
    stages: list[int] = field(default_factory=list)
    lacked: list[int] = field(default_factory=list)
    true: dict[Asked, int] = field(default_factory=dict)
    false: dict[Asked, int] = field(default_factory=dict)
    events: int = 0
    given: set[str] = field(default_factory=set)
    """Elements of a sequence that have rows in matches."""
    satisfied: set[tuple[str, int, Fact]] = field(default_factory=set)
    """(element, source, fact): rows that satisfied an element where a mapping asked."""

    def __post_init__(self) -> None:
        self.stages = [0] * len(self.rule.conjuncts)
        self.lacked = [0] * len(self.rule.conjuncts)

    def add(self, other: Trace) -> None:
        """Add what another test saw of the same rule."""
        self.triggers += other.triggers
        self.events += other.events
        self.given |= other.given
        self.stages = [a + b for a, b in zip(self.stages, other.stages, strict=True)]
        self.lacked = [a + b for a, b in zip(self.lacked, other.lacked, strict=True)]
        for mine, theirs in ((self.true, other.true), (self.false, other.false)):
            for asked, count in theirs.items():
                mine[asked] = mine.get(asked, 0) + count


class TracedRule(LiteralRule):
    """A literal rule that counts."""

    def __init__(self, rule: Rule, clock: Clock) -> None:
        super().__init__(rule, clock)
        self.trace = Trace(rule)
        self._asked: Asked = (WHERE, 0)

    def matches(
        self, index: int, time: Time, left_out: Collection[tuple[int, object]]
    ) -> tuple[list[Match], int]:
        self.trace.triggers += len(self._trigger_facts(time))
        found, dropped = super().matches(index, time, left_out)  # type: ignore[arg-type]  # handed on as it came
        self.trace.events += len(found)
        return found, dropped

    def _extend(self, row: Row, conjunct: Conjunct) -> list[Row]:
        number = next(i for i, own in enumerate(self.rule.conjuncts) if own is conjunct)
        self._asked = (ON, number)
        rows = super()._extend(row, conjunct)
        self._asked = (WHERE, 0)
        self.trace.stages[number] += len(rows)
        self.trace.lacked[number] += not rows or _is_without(rows[0], conjunct)
        return rows

    def holds(self, condition: Expression, row: Row) -> bool:
        held = super().holds(condition, row)
        counts = self.trace.true if held else self.trace.false
        counts[self._asked] = counts.get(self._asked, 0) + 1
        return held


def _is_without(row: Row, conjunct: Conjunct) -> bool:
    return isinstance(conjunct, Choose) and row[conjunct.position.name][0] == NEVER


class TracedSequence(LiteralSequenceRule):
    """A literal sequence that counts: rows, matches, and conditions of elements, as those of conjuncts."""

    def __init__(self, rule: Rule, clock: Clock) -> None:
        super().__init__(rule, clock)
        self.trace = Trace(rule)
        self.reading: _CountingReading = _CountingReading(rule, clock, self.trace)

    def take(self, time: Time) -> None:
        before = sum(len(part.rows) for part in self.partitions.values())
        super().take(time)
        self.trace.triggers += sum(len(part.rows) for part in self.partitions.values()) - before

    def matches(
        self, index: int, time: Time, left_out: Collection[tuple[int, object]]
    ) -> tuple[list[Match], int]:
        self.reading.steps = MOST
        found, dropped = super().matches(index, time, left_out)  # type: ignore[arg-type]  # handed on as it came
        self.trace.events += len(found)
        return found, dropped


class _CountingReading(SearchedSequence):
    """Counts how often the condition of each element is true and false; a row is tested again as time goes
    on.
    """

    def __init__(self, rule: Rule, clock: Clock, trace: Trace) -> None:
        super().__init__(rule, clock)
        self._trace = trace
        self._numbers = {element.name: number for number, element in enumerate(self.pattern.elements)}

    def values(self, rows: Sequence[PatternRow], mapped: Mapped) -> tuple[Term | None, ...]:
        self._trace.given.update(mapped.given)
        return super().values(rows, mapped)

    def passes(self, element: RowElement, mapping: Mapping) -> bool:
        held = super().passes(element, mapping)
        if held:
            row = mapping.rows[mapping.first + len(mapping.given) - 1]
            self._trace.satisfied.add((element.name, row.source, row.fact))
        counts = self._trace.true if held else self._trace.false
        asked = (ON, self._numbers[element.name])
        counts[asked] = counts.get(asked, 0) + 1
        return held


class Tracer(LiteralTesla):
    """Follows all rules of a program. Costs what enumeration costs."""

    def __init__(self, program: Program, clock: Clock) -> None:
        super().__init__(program, clock)
        self.traced: list[TracedRule | TracedSequence] = [
            TracedSequence(rule, clock) if isinstance(rule.trigger, RowPattern) else TracedRule(rule, clock)
            for rule in program.rules
        ]
        self._rules = list(self.traced)
        self.answered: set[str] = set()
        self.empty: set[str] = set()

    def see(self, time: Time, facts: Facts, graph: bool) -> Facts:
        """Take the facts of an instant; gives them back."""
        for stream in self.program.selects:
            (self.answered if facts.get(stream) else self.empty).add(stream)
        self.at(time, facts, graph)
        return facts


def stages_text(trace: Trace) -> str:
    """How far a rule came: `Smoke 2 → LAST Hot 1 → NOT Drill 0`; of a sequence the rows that satisfied each
    element: `rows 7 → Fail 5 → Ok 1 → matches 1`.
    """
    if isinstance(trace.rule.trigger, RowPattern):
        satisfied = Counter(name for name, _, _ in trace.satisfied)
        parts = [f"{element.name} {satisfied[element.name]}" for element in trace.rule.trigger.elements]
        return " → ".join([f"rows {trace.triggers}", *parts, f"matches {trace.events}"])
    parts = [f"{trace.rule.triggering.name} {trace.triggers}"]
    for conjunct, left in zip(trace.rule.conjuncts, trace.stages, strict=True):
        parts.append(f"{conjunct_name(conjunct)} {left}")
        if not left:
            break
    else:
        if trace.rule.where is not None:
            parts.append(f"WHERE {trace.true.get((WHERE, 0), 0)}")
        parts.append(f"events {trace.events}")
    return " → ".join(parts)


def conjunct_name(conjunct: Conjunct) -> str:
    """A conjunct as a reader names it: `LAST Hot`, `NOT Drill`, `COUNT OVER Beat`."""
    if isinstance(conjunct, Choose):
        optional = "OPTIONAL " if conjunct.optional else ""
        return f"{optional}{conjunct.selection} {conjunct.position.name}"
    name = getattr(conjunct, "function", None)
    return f"NOT {conjunct.position.name}" if name is None else f"{name} OVER {conjunct.position.name}"
