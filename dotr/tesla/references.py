"""What follows from the shape of a program alone: references, order, visible instants, horizons.

Place:   read by the oracle, the engine and `dotr plan`; values in, values out.
Method:  a rule's windows form a tree rooted at the trigger (language.md, section 3); depths add up along it,
         chained rules included.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias, assert_never

from msgspec import Struct

from dotr.events import Fact, Time
from dotr.ir.program import Program
from dotr.ir.rules import Between, Every, Position, Rule, Window, Within


class RuleReach(Struct, frozen=True):
    """How far back a rule looks, and how far back its events can depend on the past.

    `kept`: how long facts are stored for it (its horizon): the deepest of its windows. `influence`: how far
    back its events can depend on the past, through the rules that it reads; None: on all of it, `why`;
    `root`: because of the rule itself, not of one that it reads.
    """

    kept: Time
    influence: Time | None
    why: str = ""
    root: bool = False


def depths(rule: Rule) -> dict[str, Time]:
    """Per position name, the trigger first: how long before the trigger its fact can lie, in µs.

    For `BETWEEN A AND B`, less than A's depth; A's depth is returned.
    """
    found = {rule.trigger.name: 0}
    for conjunct in rule.conjuncts:
        found[conjunct.position.name] = reach(conjunct.window, found)
    return found


def reach(window: Window, depth: Mapping[str, Time]) -> Time:
    """How long before the trigger a candidate of `window` can lie, by the depths of its references."""
    match window:
        case Within(duration=duration, reference=reference):
            return depth[reference] + duration
        case Between(start=start):
            return depth[start]
        case _:
            assert_never(window)


def references(rule: Rule) -> list[tuple[str, bool]]:
    """The rules it chains on, as (name, strict), in the order written.

    Strict: the window, or one on the path to the trigger, is BEFORE or BETWEEN, so that only earlier instants
    of that rule matter.
    """
    return [(position.stream, strict) for position, strict in strictness(rule) if position.chained]


def strictness(rule: Rule) -> list[tuple[Position, bool]]:
    """The rule's positions in the order written, each with whether it only reads earlier instants."""
    found: list[tuple[Position, bool]] = []
    if not isinstance(rule.trigger, Every):
        found.append((rule.trigger, False))
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
        found.append((conjunct.position, here))
    return found


def evaluation_order(program: Program) -> tuple[int, ...]:
    """Indices of rules such that every non-strict reference comes first; program order breaks ties.

    `Program.dependencies` if the checker filled it in.
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
"""What lets a rule see an instant without a graph: a tick of an EVERY of this duration, or a fact of the
stream of this name (changes of what lasts or holds, or a head that triggers)."""


def occasions_seen(program: Program) -> list[frozenset[Occasion]]:
    """Per rule the occasions at which it sees an instant: its own and those of the rules it chains on."""
    own = [_own_occasions(rule, program) for rule in program.rules]
    return [frozenset().union(*(own[i] for i in rules)) for rules in reachable(program)]


def _own_occasions(rule: Rule, program: Program) -> frozenset[Occasion]:
    ticks = {rule.trigger.duration} if isinstance(rule.trigger, Every) else set()
    seen = {p.stream for p in rule.positions if p.stream in program.standing}
    for position in rule.positions:  # a head wakes a rule only as its trigger
        if position.held and (position == rule.trigger or " " in position.stream):
            seen.add(position.stream)
    return frozenset(ticks | seen)


def ticks_seen(program: Program) -> list[frozenset[Time]]:
    """Per rule the EVERY durations whose ticks it sees: its own and those of the rules it chains on."""
    return [frozenset(o for o in seen if not isinstance(o, str)) for seen in occasions_seen(program)]


def due(time: Time, durations: Iterable[Time], facts: Mapping[str, Sequence[Fact]]) -> frozenset[Occasion]:
    """The occasions of an instant: due ticks, and streams with facts."""
    ticks = (duration for duration in durations if time % duration == 0)
    return frozenset([*ticks, *(stream for stream, found in facts.items() if found)])


def next_tick(durations: Sequence[Time], first: Time | None, after: Time) -> Time | None:
    """The earliest multiple of any of `durations` that is > `after` and ≥ `first`, or None."""
    if first is None or not durations:
        return None
    at_least = max(after + 1, first)
    return min(-(-at_least // d) * d for d in durations)


def rule_reaches(program: Program) -> list[RuleReach]:
    """Per rule, what it keeps and what can influence it. O(references).

    Influence is unbounded if a rule reads its own events, directly or through others (each may depend on the
    one before), or if facts are consumed (whether one is left depends on every earlier match). Rules that
    read such a rule inherit it.
    """
    kept = [max(depths(rule).values()) for rule in program.rules]
    influence = _summed(program, {i for i, rule in enumerate(program.rules) if rule.consuming})
    index = {rule.name: i for i, rule in enumerate(program.rules)}
    endless = [
        set[int]()
        if influence[i] is not None
        else {at for name, _ in references(rule) if influence[at := index[name]] is None}
        for i, rule in enumerate(program.rules)
    ]
    loops = _loops(endless)
    return [
        RuleReach(kept[i], influence[i])
        if influence[i] is not None
        else _endless(program, i, kept[i], endless[i], loops)
        for i in range(len(program.rules))
    ]


def _loops(reads: Sequence[Collection[int]]) -> frozenset[int]:
    """Rules that read each other's events in a cycle: found by removing rules that no other reads."""
    readers = [0] * len(reads)
    for read in (read for places in reads for read in places):
        readers[read] += 1
    gone = [i for i, count in enumerate(readers) if not count]
    for i in gone:  # grows during the loop
        for read in reads[i]:
            readers[read] -= 1
            if not readers[read]:
                gone.append(read)
    return frozenset(i for i, count in enumerate(readers) if count)


def _endless(
    program: Program, at: int, kept: Time, endless: Collection[int], loops: Collection[int]
) -> RuleReach:
    """A rule that all of the past can influence; `endless`: the rules it reads for which that is true."""
    rule = program.rules[at]
    if rule.consuming:
        return RuleReach(kept, None, f"it consumes {', '.join(f'`{name}`' for name in rule.consuming)}", True)
    if at in endless:
        return RuleReach(kept, None, "it reads its own earlier events", True)
    names = ", ".join(f"`{program.rules[i].name}`" for i in sorted(endless))
    return RuleReach(kept, None, f"it reads the events of {names}", at in loops)


def horizons(program: Program) -> list[Time | None]:
    """Per rule, how far back its oldest reachable fact can lie, through chaining; None if chaining reaches a
    cycle of references.
    """
    return _summed(program, frozenset())


def _summed(program: Program, endless: Collection[int]) -> list[Time | None]:
    """Depths summed along chains, by rule; None for rules that are `endless`, or reach one that is or a
    cycle. O(references).
    """
    index = {rule.name: i for i, rule in enumerate(program.rules)}
    depth = [depths(rule) for rule in program.rules]
    reads = [[(p.name, index[p.stream]) for p in rule.positions if p.chained] for rule in program.rules]
    readers: list[list[int]] = [[] for _ in program.rules]
    for i, places in enumerate(reads):
        for _, read in places:
            readers[read].append(i)
    waits = [len(places) for places in reads]
    known: list[Time | None] = [None] * len(program.rules)
    ready = [i for i, count in enumerate(waits) if not count and i not in endless]
    for i in ready:  # grows during the loop
        chained = [depth[i][name] + below for name, read in reads[i] if (below := known[read]) is not None]
        known[i] = max([*depth[i].values(), *chained])
        for reader in readers[i]:
            waits[reader] -= 1
            if not waits[reader] and reader not in endless:
                ready.append(reader)
    return known
