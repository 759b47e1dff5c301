"""How a program is detected in parallel: which rules by key, which by time, which in one task, and why.

Place:   pure; a deployment holds it (core/deployment.py), `dotr plan` prints it, batch/ executes it.
Method:  the unit of choice is a connected component of chaining: a rule and the rules it takes composites
         from must see the same part of the past. Two cuts are independent. *By key*: every position carries
         an attribute of the trigger (partition_keys.py). *By time*: the component has a horizon, the sum
         along its chains (references.py), and only that can influence it; a slice cannot know what was
         consumed before it, nor earlier events of a rule that reads its own. If neither is possible, streams
         that lack the key may be copied to every part, if they trigger nothing and nothing consumes from
         them. A component without a cut is one task, or one task between any two gaps of the log that are
         longer than its rules keep facts: after such a gap no state is left, whatever was consumed. With
         EVERY, the gap must also contain all ticks that may match after the last graph (silence.py); if ticks
         may match forever, or see facts of the background, it is no cut. Components with compatible cuts
         share their input: every fact is sent once for all of them.
Why not: a choice per rule: a rule downstream of a consuming one would see composites that never happened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from dotr.events import Time
from dotr.ir import Every, Program
from dotr.temporal.partitions import By, Partitioning, RuleComponent, RuleComponentGroup
from dotr.temporal.silences import ENDLESS
from dotr.tesla.held_keys import held_reason
from dotr.tesla.partition_keys import stream_keys, unlinked
from dotr.tesla.references import RuleReach, references, rule_reaches
from dotr.tesla.silence import silence

SIMILAR = 8
"""Groups cut by time hold horizons that differ by at most this factor: the longest determines the slices."""

Standing: TypeAlias = Callable[[], Collection[str]]

CROWDED = "by key, one part needed more than its share of the budget for what holds"


def plan_batch(
    program: Program, by: By = By.AUTO, together: bool = False, standing: Standing | None = None
) -> Partitioning:
    """The plan for a program. Cheap: linear in rules, except for the search of keys in a component.

    `together`: one task computes what holds, whatever its rules allow. `standing`: returns the queries that
    may have facts without a graph; None: unknown.
    """
    reaches = rule_reaches(program)
    components = tuple(
        _component(program, rules, reaches, by, together, standing) for rules in connected(program)
    )
    return Partitioning(components, tuple(_groups(program, components)))


def connected(program: Program) -> list[tuple[int, ...]]:
    """The components of chaining, each in program order, by their first rule."""
    index = {rule.name: i for i, rule in enumerate(program.rules)}
    leader = list(range(len(program.rules)))

    def find(i: int) -> int:
        while leader[i] != i:
            i = leader[i]
        return i

    for i, rule in enumerate(program.rules):
        for name, _strict in references(rule):
            a, b = sorted((find(i), find(index[name])))
            leader[b] = a
    held = [i for i in range(len(program.rules)) if program.has_to_do_with_lars(i)]
    for i in held[1:]:  # what holds is computed once
        a, b = sorted((find(held[0]), find(i)))
        leader[b] = a
    members: dict[int, list[int]] = {}
    for i in range(len(program.rules)):
        members.setdefault(find(i), []).append(i)
    return [tuple(rules) for rules in members.values()]


def _component(
    program: Program,
    rules: tuple[int, ...],
    reaches: Sequence[RuleReach],
    by: By,
    together: bool,
    standing: Standing | None,
) -> RuleComponent:
    reasons: list[str] = []
    holds = any(map(program.has_to_do_with_lars, rules))
    if holds:
        horizon = None
        reasons.append("not by time: all of the past can influence what holds")
        if together:
            reasons.append(f"not by key: {CROWDED}")
            return RuleComponent(rules, None, None, tuple(reasons))
    else:
        horizon = _time_cut(program, rules, reaches, reasons)
    keys = stream_keys(program, rules)
    if keys is None:
        reason = (held_reason(program) if holds else None) or _no_key(program, rules)
        if horizon is None:
            keys = stream_keys(program, rules, copying=True)
        reasons.append(reason if keys is None else reason.replace("not by key:", "not by key alone:", 1))
    if by is By.TIME and horizon is not None:
        keys = None
    if by is By.KEY and keys is not None:
        horizon = None
    gap: Time | None = None
    if keys is None and horizon is None and not holds:
        gap = _gap_cut(program, rules, max(reaches[i].kept for i in rules), standing)
    return RuleComponent(rules, keys, horizon, tuple(reasons), gap)


def _gap_cut(program: Program, rules: Sequence[int], kept: Time, standing: Standing | None) -> Time | None:
    """How long after a graph something may be left of rules that neither key nor horizon cuts; None if there
    is no limit. `kept`: how long they keep facts.
    """
    if not any(isinstance(program.rules[i].trigger, Every) for i in rules):
        return kept
    if standing is None:
        return None
    ticking = silence(program.only(rules), standing()).ticking
    if any(ticks.memory or ticks.reach >= ENDLESS for ticks in ticking):
        return None
    return kept + max((ticks.reach for ticks in ticking), default=0)


def _time_cut(
    program: Program, rules: Sequence[int], reaches: Sequence[RuleReach], reasons: list[str]
) -> Time | None:
    """The horizon if the component can be cut by time; else None, with the reasons."""
    reach: Time | None = 0
    for i in rules:
        influence = reaches[i].influence
        if influence is None and reaches[i].root:
            name = program.rules[i].name
            reasons.append(f"not by time: all of the past can influence `{name}`, since {reaches[i].why}")
        reach = None if influence is None or reach is None else max(reach, influence)
    return reach


def _no_key(program: Program, rules: Sequence[int]) -> str:
    for i in rules:
        rule = program.rules[i]
        if isinstance(rule.trigger, Every):
            return f"not by key: the trigger of `{rule.name}` is EVERY, which has no attributes"
        loose = unlinked(rule)
        if loose:
            return (
                f"not by key: no equation in ON links `{'`, `'.join(loose)}` of `{rule.name}` "
                f"with an attribute of `{rule.trigger.name}`"
            )
    return "not by key: no one attribute of the trigger reaches every event and every chained rule's WITH"


def _groups(program: Program, components: Iterable[RuleComponent]) -> list[RuleComponentGroup]:
    """Components merged if that sends fewer facts; at most one group per component. Linear in components, and
    in groups with the same cut.
    """
    groups: list[_Growing] = []
    alike: dict[tuple[bool, bool, bool], list[_Growing]] = {}
    holders: dict[tuple[str, bool], _Growing] = {}  # (stream, cut at gaps) → the first group of one task
    for component in sorted(components, key=lambda c: (c.horizon or 0, c.rules)):
        new = _group(program, component)
        kind = new.keys is None, new.horizon is None, new.copies
        if new.parallel:
            found = next((group for group in alike.setdefault(kind, []) if group.takes(new)), None)
        else:
            wanted = [(stream, new.gap is None) for stream in new.streams]
            known = [holders[stream] for stream in wanted if stream in holders]
            found = min(known, key=lambda group: group.place, default=None)
        if found is None:
            found = _Growing(len(groups), new)
            groups.append(found)
            alike.setdefault(kind, []).append(found)
        else:
            found.add(new)
        for stream in () if new.parallel else wanted:
            if stream not in holders or holders[stream].place > found.place:
                holders[stream] = found
    made = sorted((group.made() for group in groups), key=lambda group: group.rules)
    return [replace(group, number=number) for number, group in enumerate(made)]


class _Growing:
    """Owns a group while components join it; `place`: the number of groups before it."""

    def __init__(self, place: int, first: RuleComponentGroup) -> None:
        self.place = place
        self._first = first
        self._keys = None if first.keys is None else dict(first.keys)
        self._rules, self._streams, self._ticks = list(first.rules), set(first.streams), set(first.ticks)
        self._horizon, self._holds = first.horizon, first.holds
        self.gap = first.gap

    def takes(self, other: RuleComponentGroup) -> bool:
        """Whether `other`, with the same cuts and a longer horizon, may join: it agrees on every shared
        stream.
        """
        mine, theirs = self._horizon, other.horizon
        if mine is not None and theirs is not None and theirs > SIMILAR * mine > 0:
            return False
        keys = self._keys
        if keys is None or other.keys is None:
            return True
        return all(keys.get(stream, wanted) == wanted for stream, wanted in other.keys.items())

    def add(self, other: RuleComponentGroup) -> None:
        self._rules += other.rules
        self._streams |= other.streams
        self._ticks |= other.ticks
        self._holds = self._holds or other.holds
        if self._keys is not None and other.keys is not None:
            self._keys.update(other.keys)
        if self._horizon is not None and other.horizon is not None:
            self._horizon = max(self._horizon, other.horizon)
        if self.gap is not None and other.gap is not None:
            self.gap = max(self.gap, other.gap)

    def made(self) -> RuleComponentGroup:
        """The group as built so far."""
        return replace(
            self._first,
            rules=tuple(sorted(self._rules)),
            streams=frozenset(self._streams),
            keys=self._keys,
            horizon=self._horizon,
            ticks=frozenset(self._ticks),
            holds=self._holds,
            gap=self.gap,
        )


def _group(program: Program, component: RuleComponent) -> RuleComponentGroup:
    members = [program.rules[i] for i in component.rules]
    streams = {p.stream for rule in members for p in rule.positions if not p.within_instant}
    holds = any(map(program.has_to_do_with_lars, component.rules))
    streams.update(name for name in program.lars.reads if holds and name in program.selects)
    ticks = {rule.trigger.duration for rule in members if isinstance(rule.trigger, Every)}
    return RuleComponentGroup(
        0,
        component.rules,
        frozenset(streams),
        component.keys,
        component.horizon,
        frozenset(ticks),
        holds,
        component.gap,
    )
