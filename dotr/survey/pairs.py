"""Rules conjunct by conjunct on a sample: how many matches each leaves, and what its ON was asked about.

Place:   probed by report.py; decided_conditions.py judges the tables.
Method:  a probe for each prefix of a rule, without WHERE, with the values of its aggregates. What a
         conjunct's ON is asked about are pairs: matches of the prefix before it with the facts that its
         window holds.
Limits:  CONSUMING is left out, so that a probe may have more matches than its rule.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

from dotr import ir
from dotr.events import Clock, Fact, Time
from dotr.rdf.terms import Term
from dotr.survey.probes import Observed, Probes
from dotr.survey.rows import Row, SolutionTable

_NOTHING: Term = "<urn:dotr:nothing>"
"""Stands for an aggregate without a value: an unbound value would drop the match."""

_CANDIDATES = 40
"""Facts of a window that are paired with one match: the latest."""

_PAIRS = 20_000


class RuleProbe(Struct, frozen=True):
    """What was seen of a rule: matches up to each conjunct (the trigger's first), and facts by stream."""

    rule: ir.Rule
    prefixes: Sequence[Observed]
    facts: Mapping[str, Observed]

    def before_where(self, clock: Clock) -> SolutionTable:
        """The matches that WHERE and WITH are asked about."""
        return _table(self, len(self.rule.conjuncts), clock)

    def pairs(self, number: int, clock: Clock) -> SolutionTable:
        """The pairs that the ON of a conjunct is asked about."""
        conjunct = self.rule.conjuncts[number]
        before = _table(self, number, clock)
        own = conjunct.position
        columns = dict(before.columns)
        for name in (*(f"{own.name}.?{v}" for v in own.variables), f"{own.name}.time"):
            columns[name] = len(columns)
        rows = []
        for row, fact in _paired(self, number, before):
            rows.append((row[0], (*row[1], *fact[1], clock.term(fact[0]))))
            if len(rows) == _PAIRS:
                break
        return SolutionTable(clock, columns, rows, len(rows), "pairs", before.partial, rule=True)

    def nearest(self, number: int) -> Time | None:
        """How far the next fact of a conjunct is before its window's reference; None if there is none."""
        conjunct = self.rule.conjuncts[number]
        if not isinstance(conjunct.window, ir.Within):
            return None
        place = _places(self.rule, number)[conjunct.window.reference]
        stream = conjunct.position.stream
        candidates = sorted((facts[0] for facts, _ in self.facts[stream].matches), key=itemgetter(0))
        times = [fact[0] for fact in candidates]
        same = [n for name, n in _places(self.rule, number).items() if self._stream(name) == stream]
        gaps = []
        for facts, _ in self.prefixes[number].matches:
            own = [facts[n] for n in same]  # a fact is no neighbour of its own
            index = bisect_right(times, facts[place][0]) - 1
            while index >= 0 and candidates[index] in own:
                index -= 1
            if index >= 0:
                gaps.append(facts[place][0] - times[index])
        return min(gaps, default=None)

    def _stream(self, name: str) -> str | None:
        """The stream of a position; None of a tick."""
        return next((p.stream for p in self.rule.positions if p.name == name), None)


def probe_rule(probes: Probes, rule: ir.Rule, facts: dict[str, Observed]) -> RuleProbe:
    """Look at a rule up to each of its conjuncts; `facts`: streams that are looked at already."""
    for position in rule.positions:
        if position.stream not in facts:
            facts[position.stream] = probes.rule(
                ir.Position("_f", position.stream, position.variables, position.chained)
            )
    seen = [
        probes.rule(rule.trigger, rule.conjuncts[:number], _values(rule.conjuncts[:number]))
        for number in range(len(rule.conjuncts) + 1)
    ]
    return RuleProbe(rule, seen, facts)


def _values(conjuncts: Sequence[ir.Conjunct]) -> list[ir.Binding]:
    """The values of aggregates, as bindings."""
    return [
        ir.Binding(name, ir.Call("COALESCE", (ir.Var(name), ir.Const(_NOTHING))))
        for name in (c.variable for c in conjuncts if isinstance(c, ir.Summarise))
    ]


def _places(rule: ir.Rule, number: int) -> dict[str, int]:
    """Position → its place among the facts of a match of the first conjuncts."""
    chosen = [c.position.name for c in rule.conjuncts[:number] if isinstance(c, ir.Choose)]
    return {name: place for place, name in enumerate((rule.trigger.name, *chosen))}


def _table(probe: RuleProbe, number: int, clock: Clock) -> SolutionTable:
    """Matches of the first conjuncts as rows: attributes and times of positions, values of aggregates."""
    rule, seen = probe.rule, probe.prefixes[number]
    positions = [c.position for c in rule.conjuncts[:number] if isinstance(c, ir.Choose)]
    trigger = () if isinstance(rule.trigger, ir.Every) else rule.trigger.variables
    columns: dict[str, int] = {}
    for name, variables in ((rule.trigger.name, trigger), *((p.name, p.variables) for p in positions)):
        for column in (*(f"{name}.?{v}" for v in variables), f"{name}.time"):
            columns[column] = len(columns)
    for conjunct in rule.conjuncts[:number]:
        if isinstance(conjunct, ir.Summarise):
            columns[f"?{conjunct.variable}"] = len(columns)
    rows: list[Row] = []
    for facts, values in seen.matches:
        row: list[Term | None] = []
        for time, attributes, *_ in facts:
            row += (*attributes, clock.term(time))
        rows.append((facts[0][0], (*row, *(None if v == _NOTHING else v for v in values))))
    return SolutionTable(clock, columns, rows, seen.count, "matches", seen.partial, rule=True)


def _paired(probe: RuleProbe, number: int, before: SolutionTable) -> Iterator[tuple[Row, Fact]]:
    """Rows of the matches before a conjunct with the facts that its window holds, the latest of them."""
    conjunct = probe.rule.conjuncts[number]
    places = _places(probe.rule, number)
    facts = [match[0][0] for match in probe.facts[conjunct.position.stream].matches]
    times = [fact[0] for fact in facts]
    for row, (match, _) in zip(before.rows, probe.prefixes[number].matches, strict=True):
        low, high = _window(conjunct, match, places)
        first, last = bisect_left(times, low), bisect_right(times, high)
        for fact in facts[max(first, last - _CANDIDATES) : last]:
            if isinstance(conjunct, ir.Summarise) or fact not in match:
                yield row, fact


def _window(conjunct: ir.Conjunct, match: Sequence[Fact], places: Mapping[str, int]) -> tuple[Time, Time]:
    """The first and the last time that a candidate may have."""
    window = conjunct.window
    if isinstance(window, ir.Within):
        reference = match[places[window.reference]][0]
        return reference - window.duration, reference - window.before
    return match[places[window.start]][0] + 1, match[places[window.end]][0] - 1
