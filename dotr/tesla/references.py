"""What follows from the shape of a program alone: references, order, visible instants, horizons.

Place:   read by the oracle, the engine and `dotr plan`; values in, values out.
Method:  a rule's windows form a tree rooted at the trigger (language.md, section 3); depths add up along it,
         chained rules included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, assert_never

from dotr.events import Fact, Time
from dotr.ir.program import Program
from dotr.ir.rules import Between, Every, Rule, Window, Within


def depths(rule: Rule) -> dict[str, Time]:
    """Per position name, the trigger's first: how long before the trigger its fact can lie at most, in µs.

    For `BETWEEN A AND B` that is less than A's depth; A's depth is given.
    """
    found = {rule.trigger.name: 0}
    for conjunct in rule.conjuncts:
        found[conjunct.position.name] = reach(conjunct.window, found)
    return found


def reach(window: Window, depth: Mapping[str, Time]) -> Time:
    """How long before the trigger a candidate of `window` can lie, given the depths of what it refers to."""
    match window:
        case Within(duration=duration, reference=reference):
            return depth[reference] + duration
        case Between(start=start):
            return depth[start]
        case _:
            assert_never(window)


def references(rule: Rule) -> list[tuple[str, bool]]:
    """The rules it chains on, as (name, strict), in the order written.

    Strict: the window, or one between it and the trigger, is BEFORE or BETWEEN, so that only earlier
    instants of that rule matter.
    """
    found: list[tuple[str, bool]] = []
    if not isinstance(rule.trigger, Every) and rule.trigger.chained:
        found.append((rule.trigger.stream, False))
    strict = {rule.trigger.name: False}
    for conjunct in rule.conjuncts:
        match conjunct.window:
            case Within(reference=reference, before=before):
                here = before or strict[reference]
            case Between():
                here = True
            case _:
                assert_never(conjunct.window)
        strict[conjunct.position.name] = here
        if conjunct.position.chained:
            found.append((conjunct.position.stream, here))
    return found


def evaluation_order(program: Program) -> tuple[int, ...]:
    """Indices of rules such that every non-strict reference comes first; program order breaks ties.

    `Program.dependencies` where the checker filled it in.
    """
    if len(program.dependencies) == len(program.rules):
        return program.dependencies
    index = {rule.name: i for i, rule in enumerate(program.rules)}
    waits = [{index[name] for name, strict in references(rule) if not strict} for rule in program.rules]
    order: list[int] = []
    done: set[int] = set()
    while len(order) < len(program.rules):
        ready = next(i for i in range(len(program.rules)) if i not in done and waits[i] <= done)
        order.append(ready)
        done.add(ready)
    return tuple(order)


def reachable(program: Program) -> list[frozenset[int]]:
    """Per rule: itself and every rule it chains on, directly or through others."""
    index = {rule.name: i for i, rule in enumerate(program.rules)}
    direct = [{index[name] for name, _ in references(rule)} for rule in program.rules]
    found: list[frozenset[int]] = []
    for start in range(len(program.rules)):
        seen, todo = {start}, [start]
        while todo:
            new = direct[todo.pop()] - seen
            seen |= new
            todo += new
        found.append(frozenset(seen))
    return found


Occasion: TypeAlias = Time | str
"""What lets a rule see an instant at which no graph came: a tick of an EVERY of this duration, or a fact of
the ISTREAM or DSTREAM stream of this name."""


def occasions_seen(program: Program) -> list[frozenset[Occasion]]:
    """Per rule the occasions at which it sees an instant: its own and those of the rules it chains on."""
    own = [_own_occasions(rule, program) for rule in program.rules]
    return [frozenset().union(*(own[i] for i in rules)) for rules in reachable(program)]


def _own_occasions(rule: Rule, program: Program) -> frozenset[Occasion]:
    ticks = {rule.trigger.duration} if isinstance(rule.trigger, Every) else set()
    return frozenset(ticks | {p.stream for p in rule.positions if p.stream in program.standing})


def ticks_seen(program: Program) -> list[frozenset[Time]]:
    """Per rule the EVERY durations whose ticks it sees: its own and those of the rules it chains on."""
    return [frozenset(o for o in seen if not isinstance(o, str)) for seen in occasions_seen(program)]


def due(time: Time, durations: Iterable[Time], facts: Mapping[str, Sequence[Fact]]) -> frozenset[Occasion]:
    """The occasions of an instant: ticks that are due, and streams that have facts."""
    ticks = (duration for duration in durations if time % duration == 0)
    return frozenset([*ticks, *(stream for stream, found in facts.items() if found)])


def next_tick(durations: Sequence[Time], first: Time | None, after: Time) -> Time | None:
    """The earliest multiple of any of `durations` that is > `after` and ≥ `first`; None if there is none."""
    if first is None or not durations:
        return None
    at_least = max(after + 1, first)
    return min(-(-at_least // d) * d for d in durations)


def horizons(program: Program) -> list[Time | None]:
    """Per rule, how far back what it depends on can lie, through chaining; None on a cycle of references.

    A rule on a cycle, or one that reaches a cycle, is influenced by the whole past.
    """
    index = {rule.name: i for i, rule in enumerate(program.rules)}
    known: dict[int, Time | None] = {}

    def through(at: int, path: frozenset[int]) -> Time | None:
        if at in known:
            return known[at]
        if at in path:
            return None
        rule, inside = program.rules[at], path | {at}
        depth = depths(rule)
        total = max(depth.values())
        for position in rule.positions:
            if position.chained:
                below = through(index[position.stream], inside)
                if below is None:
                    return None
                total = max(total, depth[position.name] + below)
        known[at] = total
        return total

    return [through(i, frozenset()) for i in range(len(program.rules))]
