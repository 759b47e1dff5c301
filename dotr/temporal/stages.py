"""How far the trigger facts of a rule got: what is left after each step, as counts that can be added.

Place:   engines count (tesla/detection_stages.py), core/funnel.py makes a funnel from it, batch/ sums it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, TypeAlias

from dotr.ir.rules import Choose, Conjunct, Rule, Summarise

TRIGGER: Final = ""
"""The name of the first step of a rule that is triggered by some of the facts passed to it."""

Passed: TypeAlias = list[tuple[str, int | None]]
"""(step, partial matches left after it) in order of evaluation. None: as many as before it."""

Counts: TypeAlias = defaultdict[str, list[int]]
"""Name → a list of one number, maybe 0, which a loop adds to without looking for the name each time."""


def counts() -> Counts:
    """Nothing counted."""
    return defaultdict(lambda: [0])


def label(conjunct: Conjunct) -> str:
    """The name of a conjunct in a funnel: `LAST Spike`, `NOT Later`, `AVG`."""
    name = conjunct.position.name
    if isinstance(conjunct, Choose):
        return f"{conjunct.selection} {name}"
    return conjunct.function if isinstance(conjunct, Summarise) else f"NOT {name}"


def unreached(rule: Rule) -> Passed:
    """The text for a rule that was never evaluated: a stream it must choose from was empty."""
    chosen = [label(conjunct) for conjunct in rule.conjuncts if isinstance(conjunct, Choose)]
    return [(", ".join(chosen), 0)] if chosen else []


def added(one: Passed, other: Passed) -> Passed:
    """The sum of two counts of one rule. If one has further steps at its end, the other passed them all, or
    slept: then it has none but TRIGGER.
    """
    if not one or not other:
        return one or other
    if one[0][0] == other[0][0] == TRIGGER and 1 in (len(one), len(other)) and len(one) != len(other):
        return [*added(one[:1], other[:1]), *one[1:], *other[1:]]
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if any(a[0] != b[0] for a, b in zip(longer, shorter, strict=False)):
        return other  # other rules changed the order in which this one is evaluated
    found: Passed = []
    last: int | None = None
    for place, (name, count) in enumerate(longer):
        last = shorter[place][1] if place < len(shorter) else last
        found.append((name, None if count is None or last is None else count + last))
    return found


def subtracted(all_: Mapping[str, Passed], before: Mapping[str, Passed]) -> dict[str, Passed]:
    """What the same detector counted since `before`, per rule. Counts only grow."""
    return {rule: _since(passed, before.get(rule, [])) for rule, passed in all_.items()}


def _since(passed: Passed, before: Passed) -> Passed:
    """`passed` minus `before`, which may lack steps at its end: it passed them all or slept: see `added`."""
    if not before:
        return passed
    if before[0][0] == TRIGGER and len(before) == 1 < len(passed):
        return [*_since(passed[:1], before), *passed[1:]]
    found: Passed = []
    old: int | None = None
    for place, (name, count) in enumerate(passed):
        old = before[place][1] if place < len(before) else old
        found.append((name, None if count is None or old is None else count - old))
    return found


def summed(one: Mapping[str, Passed], other: Mapping[str, Passed]) -> dict[str, Passed]:
    """`added` for each rule."""
    return {**one, **{rule: added(one.get(rule, []), passed) for rule, passed in other.items()}}
