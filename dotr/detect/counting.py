"""Which rules have their matches counted instead of listed, and how many there are in a window.

Place:   network.py asks which rules; code.py writes the code, which keeps numbers in `Counts`.
Method:  the events of a PRIVATE rule that only COUNT(*) and NOT read are never seen one by one: only how many
         there are with the same values. A pattern is a tree (dead_ends.py), so the number of matches that
         contain a candidate is the product, over the loops measured from it, of the sums over their
         candidates: dynamic programming over the tree, as for counting answers of acyclic queries
         (Yannakakis 1981; Pichler, Skritek 2013). Each candidate is counted once for each trigger fact, and
         the sum over a window is the difference of two prefix sums: O(candidates in the windows), however
         many matches there are. Where NOT or WHERE looks at a candidate and the one that it is measured from:
         O(pairs of them).
         What is counted becomes one fact of the rule, with the number as one more value, which a COUNT(*)
         adds up (`RunningWeight` in totals.py). Values that no reader looks at are left out; those that are
         read must be known before any loop is open, and so must those that decide whether the event has a
         graph.
Why not: counting where a condition looks at several events that were chosen apart, or values differ from
         match to match: that is a join, whose result would have to be grouped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from dotr.detect.analysis import NOW, names
from dotr.detect.dead_ends import (
    DEEP,
    Completable,
    Part,
    completions,
    known_first,
    leaves,
    parts_of,
    uncovered,
)
from dotr.detect.plan import RulePlan
from dotr.detect.plan_step import PlanStep, RunningTotal
from dotr.detect.scope import faults
from dotr.events import Fact, Time
from dotr.program.positions import Position
from dotr.program.program import Program
from dotr.program.queries import Attribute, Expression
from dotr.program.rules import Absent, Rule
from dotr.program.sequences import RowPattern


def counted_parts(rule: Rule, steps: Sequence[PlanStep]) -> list[Part]:
    """The conjuncts of a rule, the parts of its WHERE, and its bindings, which must have a value."""
    found = parts_of(rule, steps)
    return found + [Part(_needs(rule, binding.expression)) for binding in rule.bindings]


def _needs(rule: Rule, expression: Expression) -> frozenset[str]:
    return frozenset(rule.trigger.name if name == NOW else name for name in names(expression))


def countable(program: Program, plans: Iterable[RulePlan]) -> dict[int, frozenset[str]]:
    """Number of a rule whose matches can be counted → its variables that others read."""
    if program.lars.rules:
        return {}
    plans = list(plans)
    read = _read(plans)
    return {
        plan.index: read[plan.rule.name]
        for plan in plans
        if plan.rule.name in read and _is_countable(plan, read[plan.rule.name])
    }


def _read(plans: Iterable[RulePlan]) -> Mapping[str, frozenset[str]]:
    """Rule → which of its variables COUNT(*) and NOT read, if nothing else reads its events."""
    found: dict[str, set[str]] = {}
    listed: set[str] = set()
    for plan in plans:
        listed.update(p.stream for p in _first(plan.rule) if p.chained)
        for conjunct, step in zip(plan.rule.conjuncts, plan.steps, strict=True):
            content, position = step.column.content, conjunct.position
            if not position.chained:
                continue
            if isinstance(conjunct, Absent) or (isinstance(content, RunningTotal) and content.weighed):
                of = found.setdefault(position.stream, set())
                read = () if conjunct.on is None else leaves(conjunct.on)
                of.update(
                    a.variable for a in read if isinstance(a, Attribute) and a.position == position.name
                )
            else:
                listed.add(position.stream)
    return {name: frozenset(variables) for name, variables in found.items() if name not in listed}


def _first(rule: Rule) -> Sequence[Position]:
    """What triggers a rule."""
    first = rule.triggering
    if isinstance(first, RowPattern):
        return first.sources
    return (first,) if isinstance(first, Position) else ()


def _is_countable(plan: RulePlan, read: frozenset[str]) -> bool:
    rule = plan.rule
    if not rule.private or rule.has_effects or rule.consuming or rule.lists:
        return False
    if isinstance(rule.trigger, RowPattern) or plan.thresholds.keys() - {0}:
        return False
    found = counted_parts(rule, plan.steps)
    known = known_first(rule, found)
    ways = completions(found, known, counted=True)
    if not 0 < len(ways) <= DEEP or uncovered(found, known, counted=True):
        return False
    of_graph = faults(rule)
    shown = {i for i, binding in enumerate(rule.bindings) if binding.variable in read} | of_graph.named()
    return not of_graph.never and all(_needs(rule, rule.bindings[i].expression) <= known for i in shown)


class Counts(Completable):
    """Owns the candidates of one bucket that are part of a match of one trigger fact, and of how many."""

    __slots__ = ("_sums", "_ways")

    def __init__(self) -> None:
        super().__init__()
        self._ways: list[int] = []
        self._sums: list[int] = [0]  # of the first ways, up to where something was put last

    def put(self, found: tuple[list[Fact], list[int]]) -> None:  # type: ignore[override]  # with their ways
        """Add those that pass of what was not known."""
        facts, ways = found
        if not facts:
            return
        known = self.facts
        place = bisect_left(known, (facts[0][0],))
        if place == len(known) or facts[-1][0] < known[place][0]:
            known[place:place] = facts
            self._ways[place:place] = ways
        else:  # facts of one time became known together
            both = sorted(zip([*known, *facts], [*self._ways, *ways], strict=True), key=_time)
            known[:] = [fact for fact, _ in both]
            self._ways = [many for _, many in both]
        del self._sums[place + 1 :]

    def many(self, start: Time, end: Time) -> int:
        """Of how many matches the candidates from `start` up to before `end` are a part, together."""
        known, sums = self.facts, self._sums
        first = bisect_left(known, (start,))
        last = bisect_left(known, (end,), first)
        if last >= len(sums):
            sums[-1:] = accumulate(self._ways[len(sums) - 1 :], initial=sums[-1])
        return sums[last] - sums[first]

    def of(self, fact: Fact) -> int:
        """Of how many matches one fact is a part."""
        known = self.facts
        for place in range(bisect_left(known, (fact[0],)), len(known)):
            if known[place][0] != fact[0]:
                break
            if known[place] == fact:
                return self._ways[place]
        return 0

    def between(self, start: Time, end: Time, itself: Fact | None) -> tuple[list[Fact], list[int]]:
        """The candidates from `start` up to before `end` but for `itself`, and the ways of each."""
        first = bisect_left(self.facts, (start,))
        last = bisect_left(self.facts, (end,), first)
        facts, ways = self.facts[first:last], self._ways[first:last]
        if itself in facts:
            place = facts.index(itself)
            del facts[place], ways[place]
        return facts, ways


def _time(of: tuple[Fact, int]) -> Time:
    return of[0][0]


def holds(bucket: Sequence[Fact], fact: Fact) -> bool:
    """Whether a bucket has a fact. O(log(bucket) + facts of one time)."""
    for place in range(bisect_left(bucket, (fact[0],)), len(bucket)):
        if bucket[place][0] != fact[0]:
            break
        if bucket[place] == fact:
            return True
    return False
