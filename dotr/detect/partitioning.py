"""How a program is detected in parallel: which rules by key, by time, or in one task, and why.

Place:   pure; a deployment holds the plan (core/deployment.py), `dotr plan` prints it, batch/ executes it;
         batch/facts.py distributes facts by key.
Method:  the unit of choice is a connected component of chaining: a rule and the rules it takes composites
         from must see the same part of the past. Two cuts are independent.
         *By key*: every position carries an attribute of the trigger, so that all facts of a match carry the
         trigger's key. Equations of `ON` carry it to the candidates, directly or through earlier conjuncts
         (analysis.py). Every stream has one key for all rules, so that a stream that two positions share, and
         a composite that other rules chain on, is in the same part for all of them. LARS rules are
         partitioned by the variable that all their atoms share (windows/building.py), together with the rules
         that read what holds: what holds for a part of the keys then does not depend on the others. A head,
         its ISTREAM and its DSTREAM have their key in the same place.
         *By time*: the component has a horizon, the sum along its chains, and only that can influence it; a
         slice cannot know what was consumed before it, nor earlier events of a rule that reads its own.
         If neither is possible, streams that lack the key may be copied to every part, if they trigger
         nothing and nothing consumes from them. A component without a cut is one task, or one task between
         any two gaps of the log that are longer than its rules keep facts: after such a gap no state is left,
         whatever was consumed. With EVERY, the gap must also contain all ticks that may match after the last
         graph; if ticks may match forever, or see facts of the background, it is no cut. With AFTER, the
         trigger whose key a match carries is the event that it follows. At its ticks no graph may come, and
         then queries that the background alone answers have their facts; other parts do not know when. So
         rules that read such a query are not cut by key, and a slice begins earlier by as much as they look
         back to it. Components with compatible cuts share their input: every fact is sent once for all of
         them.
Why not: a choice per rule: a rule downstream of a consuming one would see composites that never happened.
         `WHERE` as an equation: it is tested after the choice; `LAST` over all keys differs from `LAST` of
         one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from dotr.detect.analysis import (
    ENDLESS,
    RuleReach,
    depths,
    idle_ticks,
    last_late,
    references,
    rule_reaches,
    trigger_keys,
)
from dotr.events import Time, Values
from dotr.expressions.equal_terms import equality_class
from dotr.program import (
    After,
    Attribute,
    Choose,
    LarsRule,
    Position,
    Program,
    Rhythm,
    Rule,
    Tick,
    WindowAggregate,
    WindowAtom,
)
from dotr.program.names import duration_text
from dotr.program.queries import Var
from dotr.program.sequences import RowPattern


def parted_name(position: Position) -> str:
    """The name whose key a position's facts have: the same for a head and its changes."""
    return position.stream.rpartition(" ")[2] if position.held else position.stream


def triggering(rule: Rule) -> Position:
    """What a rule's trigger facts are facts of; of a sequence its first source. It has no EVERY."""
    found = rule.triggering
    assert not isinstance(found, Tick), "a tick is of nothing"
    return found.sources[0] if isinstance(found, RowPattern) else found


def streams_of(rule: Rule) -> list[str]:
    """The names whose keys are related in a rule."""
    return [rule.name, *(parted_name(position) for position in rule.positions)]


def computed_heads(program: Program, computed: Collection[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Attributes of heads, as (stream, variable), that may differ from those of query facts, given those
    known to be computed. Like those of WITH, they can be an xsd:float.
    """
    lars = program.lars
    if not lars.rules:
        return
    attributes = {name: select.variables for name, select in program.selects.items()}
    attributes |= {rule.name: tuple(b.variable for b in rule.bindings) for rule in program.rules}
    attributes |= lars.attributes

    def given(rule: LarsRule, variable: str) -> bool:
        for literal in rule.body:
            match literal:
                case WindowAtom(negated=False, atom=atom):
                    meant = {Var(variable)}
                case WindowAggregate(atom=atom, group=group):
                    meant = {Var(variable)} & set(group)
                case _:
                    continue
            for place, argument in enumerate(atom.arguments):
                if argument in meant and (atom.name, attributes[atom.name][place]) not in computed:
                    return True
        return False

    for rule in lars.rules:
        head = rule.head.atom
        for place, argument in enumerate(head.arguments):
            if not (isinstance(argument, Var) and given(rule, argument.name)):
                for stream in (head.name, f"ISTREAM {head.name}", f"DSTREAM {head.name}"):
                    yield stream, attributes[head.name][place]


def names(rule: LarsRule) -> Sequence[str]:
    """`names` of windows/building.py."""
    from dotr.windows import building as reach  # noqa: PLC0415  # start-up: most programs have no such rules

    return reach.names(rule)


def keys_of(rule: LarsRule, parted: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """`rule_keys` of windows/building.py."""
    from dotr.windows import building as reach  # noqa: PLC0415  # start-up: most programs have no such rules

    return reach.rule_keys(rule, parted)


def held_reason(program: Program) -> str | None:
    """Why what holds cannot be partitioned by key, as far as one LARS rule shows it."""
    from dotr.windows.building import whole_reason  # noqa: PLC0415  # start-up: most programs have no such rules

    for rule in program.lars.rules:
        reason = whole_reason(rule)
        if reason is not None:
            return f"not by key: in a rule for `{rule.head.atom.name}` {reason}"
    return None


StreamKeys = Mapping[str, tuple[int, ...]]
"""Stream → the attributes (places in a fact's values) of its key, one for each part of the key; empty if all
of its facts go to every part.
"""

RelationKeys: TypeAlias = Mapping[str, int | None]
"""Relation of triples (joins/plan.py) → where its triples have the key: 0 the subject, 1 the object; None:
each part gets all of them. Triples of other relations go nowhere.
"""


class By(StrEnum):
    """The user's choice: `--by`."""

    AUTO = "auto"
    KEY = "key"
    TIME = "time"


class RuleComponent(Struct, frozen=True):
    """Rules connected by chaining, in program order, and how they may be partitioned.

    `keys` None: not by key. `horizon` None: not by time. `gap`: if neither is possible, the width in µs of
    gaps beyond which it is cut; None: not there either. `reasons`: why, one sentence each.
    """

    rules: tuple[int, ...]
    keys: StreamKeys | None
    horizon: Time | None
    reasons: tuple[str, ...]
    gap: Time | None = None


class RuleComponentGroup(Struct, frozen=True):
    """Components that share their input; `streams` are the queries whose facts they need.

    `ticks` are the rhythms of EVERY in its rules; `late`: one of them has an AFTER, or is a sequence;
    `sees_all`: its parts must know every instant with a graph. `holds`: it includes the LARS rules.
    `relations`: where graphs go by part, and with them what lasts (lasting/keys.py); None: facts do.
    """

    number: int
    rules: tuple[int, ...]
    streams: frozenset[str]
    keys: StreamKeys | None
    horizon: Time | None
    ticks: frozenset[Rhythm]
    holds: bool = False
    gap: Time | None = None
    late: bool = False
    sees_all: bool = False
    relations: RelationKeys | None = None

    @property
    def ticking(self) -> bool:
        """Whether instants without a graph may matter to it, beside points of LARS rules."""
        return bool(self.ticks) or self.late

    @property
    def parallel(self) -> bool:
        return self.keys is not None or self.horizon is not None

    @property
    def copies(self) -> bool:
        """Whether every part gets all facts of some stream."""
        return self.keys is not None and () in self.keys.values()


class Partitioning(Struct, frozen=True):
    components: tuple[RuleComponent, ...]
    groups: tuple[RuleComponentGroup, ...]

    @property
    def gap(self) -> Time | None:
        """The narrowest gap of a log that cuts a group; None: no group is cut at gaps."""
        return min((group.gap for group in self.groups if group.gap is not None), default=None)


def describe(program: Program, plan: Partitioning) -> list[str]:
    """The choice and its reasons as text: one line per component, its reasons indented below."""
    lines: list[str] = []
    for component in plan.components:
        names = ", ".join(f"`{program.rules[i].name}`" for i in component.rules)
        lines.append(f"{names}: {strategy(program, component)}")
        lines += [f"    {reason}" for reason in component.reasons]
    return lines


def strategy(program: Program, component: RuleComponent) -> str:
    """`by key ?room and by time (overlap 5 min)`, `one task between gaps longer than 5 min`, `one task`."""
    cuts: list[str] = []
    if component.keys is not None:
        trigger = triggering(program.rules[component.rules[0]])
        names = " ".join(f"?{trigger.variables[place]}" for place in component.keys[trigger.stream])
        copied = ", ".join(f"`{stream}`" for stream, places in component.keys.items() if not places)
        cuts.append(f"by key {names}" + (f", each part with all of {copied}" if copied else ""))
    if component.horizon is not None:
        cuts.append(f"by time (overlap {duration_text(component.horizon)})")
    if cuts:
        return " and ".join(cuts)
    gap = component.gap
    return "one task" + (f" between gaps longer than {duration_text(gap)}" if gap is not None else "")


def sequential(program: Program, plan: Partitioning) -> list[str]:
    """Names of the rules that run in a single task per group, for a warning."""
    return [program.rules[i].name for group in plan.groups if not group.parallel for i in group.rules]


def bucket(values: Values, places: Sequence[int], buckets: int) -> int:
    """The part, of `buckets`, to which a fact belongs: equal for keys that `=` equates; any for unbound keys.

    A function of the values alone: it agrees between processes and machines.
    """
    text = "\n".join([_class_text(values[place]) for place in places])
    return crc32(text.encode()) % buckets


def _class_text(term: str | None) -> str:
    if term is None:
        return ""
    if term[0] != '"' or term[-1] != ">":
        return term
    found = equality_class(term)
    return repr(found + 0.0) if isinstance(found, float) else str(found)


def computed_attributes(program: Program, rules: Sequence[Rule]) -> frozenset[tuple[str, str]]:
    """WITH variables, as (rule, variable), that are not plain attributes of query facts, and such variables
    of heads of .lars files.

    `rules` include all that they refer to. The variables can be an xsd:float, which equals many numbers that
    need not equal each other.
    """
    found: set[tuple[str, str]] = set()
    grown = True
    while grown:
        grown = False
        for rule in rules:
            streams = _streams(rule)
            for binding in rule.bindings:
                match binding.expression:
                    case Attribute(position=position, variable=variable):
                        computed = any((stream, variable) in found for stream in streams[position])
                    case _:
                        computed = True
                if computed and (rule.name, binding.variable) not in found:
                    found.add((rule.name, binding.variable))
                    grown = True
        heads = set(computed_heads(program, found)) - found
        found |= heads
        grown = grown or bool(heads)
    return frozenset(found)


def _streams(rule: Rule) -> dict[str, list[str]]:
    """Position → the streams that its facts may be of: of a row of a sequence those of all sources."""
    found = {position.name: [position.stream] for position in rule.positions}
    if isinstance(rule.trigger, RowPattern):
        all_ = [source.stream for source in rule.trigger.sources]
        found.update((name, all_) for name, _ in rule.trigger.rows)
    return found


def unlinked(rule: Rule) -> list[str]:
    """Positions that no equation links with an attribute of the trigger; the trigger itself if it has no
    attribute.
    """
    if isinstance(rule.trigger, Tick):
        return [rule.trigger.name]
    if isinstance(rule.trigger, RowPattern):
        return [] if rule.trigger.per else [rule.name]
    known = trigger_keys(rule)
    return [
        c.position.name
        for c in rule.conjuncts
        if not any(known.get((c.position.name, variable)) for variable in c.position.variables)
    ]


def stream_keys(program: Program, rules: Sequence[int], copying: bool = False) -> StreamKeys | None:
    """A key for every stream of a component of rules, as wide as possible, or None.

    `rules` are indices into `program.rules`. Each part of the key is a separate solution: a choice of one
    attribute per stream such that, in every rule, every position's attribute equals the trigger's. `copying`:
    as few query streams as possible may have an empty key, if no rule is triggered by them or consumes from
    them: every part gets all of their facts.
    """
    members = [program.rules[i] for i in rules]
    if any(isinstance(rule.trigger, Tick) for rule in members):
        return None
    holds = program.lars.rules if any(map(program.has_to_do_with_lars, rules)) else ()
    copyable = _copyable(members, holds) if copying else frozenset()
    search = _Search(members, holds, computed_attributes(program, members), copyable)
    first = triggering(members[0])
    start = parted_name(first)
    solutions = (next(search.solve(0, {start: place}), None) for place in range(len(first.variables)))
    columns = [solution for solution in solutions if solution is not None]
    if not columns:
        return None
    fewest = min(map(_copied, columns), key=len)
    chosen = [column for column in columns if _copied(column) == fewest]
    keys = {
        stream: tuple(place for column in chosen if (place := column[stream]) is not None)
        for stream in chosen[0]
    }
    held = {p.stream: keys[parted_name(p)] for rule in members for p in rule.positions if p.held}
    return keys | held


Choice: TypeAlias = Mapping[str, int | None]
"""Stream → the attribute chosen for it; None: all of its facts go to every part."""


class KeyColumn(Struct, frozen=True):
    """One attribute per stream, in which every match has one key. `carrying`: rule → the variables of its
    WITH that have this key, too.
    """

    places: Choice
    carrying: Mapping[str, frozenset[str]]


def key_columns(
    program: Program, rules: Sequence[int], allowed: Mapping[str, Collection[int]]
) -> Iterator[KeyColumn]:
    """The keys of one attribute that the streams of a component of rules can have. `allowed`: stream → the
    attributes to choose from, where not all.
    """
    members = [program.rules[i] for i in rules]
    if any(isinstance(rule.trigger, Tick) for rule in members):
        return
    search = _Search(members, (), computed_attributes(program, members), (), allowed)
    first = triggering(members[0])
    for place in allowed.get(first.stream, range(len(first.variables))):
        for found in search.solve(0, {parted_name(first): place}):
            yield KeyColumn(found, {rule.name: search.carrying(rule, found) for rule in members})


def _copied(column: Choice) -> list[str]:
    return sorted(stream for stream, place in column.items() if place is None)


def _copyable(rules: Sequence[Rule], holds: Sequence[LarsRule]) -> frozenset[str]:
    """Streams whose facts several parts may read: none triggers a rule there or is consumed, and what holds
    does not depend on them.
    """
    looked_at = {p.stream for rule in rules for p in rule.positions if not p.within_instant}
    looked_at -= {name for rule in holds for name in names(rule)}
    triggers = {triggering(rule).stream for rule in rules}
    triggers.update(p.stream for r in rules if isinstance(r.trigger, RowPattern) for p in r.trigger.sources)
    consumed = {p.stream for rule in rules for p in rule.positions if p.name in rule.consuming}
    return frozenset(looked_at - triggers - consumed)


_Demand: TypeAlias = tuple[Rule, str, str, int] | LarsRule
"""(rule, position, stream, number of attributes), or all atoms of a LARS rule."""


NO_LIMITS: Final[Mapping[str, Collection[int]]] = MappingProxyType({})


class _Search:
    """Chooses attributes by backtracking; rules are few and their equations determine almost everything."""

    def __init__(
        self,
        rules: Sequence[Rule],
        holds: Sequence[LarsRule],
        computed: Collection[tuple[str, str]],
        copyable: Collection[str],
        allowed: Mapping[str, Collection[int]] = NO_LIMITS,
    ) -> None:
        self._rules = rules
        self._copyable, self._allowed = copyable, allowed
        self._trigger_keys = {rule.name: trigger_keys(rule, computed) for rule in rules}
        self._demands: list[_Demand] = []
        for rule in _connected(rules, holds):
            if isinstance(rule, LarsRule):
                self._demands.append(rule)
            else:
                self._demands += (
                    (rule, position.name, parted_name(position), len(position.variables))
                    for position in rule.positions
                )

    def solve(self, at: int, chosen: Choice) -> Iterator[Choice]:
        """All solutions that extend the first `at` demands and the attributes chosen so far."""
        known = [r for r in self._rules if r.name in chosen and parted_name(triggering(r)) in chosen]
        if not all(self._carries(rule, chosen) for rule in known):
            return
        if at == len(self._demands):
            yield chosen
            return
        demand = self._demands[at]
        if isinstance(demand, LarsRule):
            parted = {stream: place for stream, place in chosen.items() if place is not None}
            for keys in keys_of(demand, parted):
                yield from self.solve(at + 1, {**chosen, **keys})
            return
        rule, position, stream, width = demand
        free = self._allowed.get(stream, range(width))
        places: list[int | None] = [chosen[stream]] if stream in chosen else list(free)
        if stream in self._copyable and stream not in chosen:
            places.append(None)
        for place in places:
            if place is None or self._fits(rule, position, place, chosen):
                yield from self.solve(at + 1, {**chosen, stream: place})

    def _fits(self, rule: Rule, position: str, place: int, chosen: Choice) -> bool:
        """Whether attribute `place` of a position equals the trigger's chosen one."""
        if position == rule.triggering.name:
            return True
        variable = next(p for p in rule.positions if p.name == position).variables[place]
        trigger = chosen.get(parted_name(triggering(rule)))
        if trigger is None:  # of a sequence, whose first source is this one or comes later
            trigger = (
                triggering(rule).variables.index(variable) if variable in triggering(rule).variables else -1
            )
        return trigger in self._trigger_keys[rule.name].get((position, variable), ())

    def _carries(self, rule: Rule, chosen: Choice) -> bool:
        """Whether the composites of a rule carry its trigger's key in the attribute chosen for them."""
        place = chosen[rule.name]
        assert place is not None
        return rule.bindings[place].variable in self.carrying(rule, chosen)

    def carrying(self, rule: Rule, chosen: Choice) -> frozenset[str]:
        """The variables of WITH that have the trigger's key."""
        trigger = triggering(rule)
        key, known = chosen[parted_name(trigger)], self._trigger_keys[rule.name]
        in_match = {trigger.name, *(c.position.name for c in rule.conjuncts if isinstance(c, Choose))}
        if isinstance(rule.trigger, RowPattern):
            in_match = {name for name, _ in rule.trigger.rows}
        return frozenset(
            binding.variable
            for binding in rule.bindings
            if isinstance(given := binding.expression, Attribute)
            and given.position in in_match
            and key in known.get((given.position, given.variable), ())
        )


def _connected(rules: Sequence[Rule], holds: Sequence[LarsRule]) -> list[Rule | LarsRule]:
    """The rules in an order in which each, if possible, shares a stream with an earlier one."""
    order: list[Rule | LarsRule] = [rules[0]]
    left: list[Rule | LarsRule] = [*holds, *rules[1:]]
    seen = set(streams_of(rules[0]))
    while left:
        nearest = next((rule for rule in left if not seen.isdisjoint(_names(rule))), left[0])
        left.remove(nearest)
        order.append(nearest)
        seen.update(_names(nearest))
    return order


def _names(rule: Rule | LarsRule) -> Sequence[str]:
    return names(rule) if isinstance(rule, LarsRule) else streams_of(rule)


SIMILAR = 8
"""Groups cut by time hold horizons that differ by at most this factor: the longest determines the slices."""

WithoutGraph: TypeAlias = Callable[[], Collection[str]]

CROWDED = "by key, one part needed more than its share of the budget for what holds"


def plan_batch(
    program: Program, by: By = By.AUTO, together: bool = False, without_graph: WithoutGraph | None = None
) -> Partitioning:
    """The plan for a program. Cheap: linear in rules, except for the search of keys in a component.

    `together`: one task computes what holds, whatever its rules allow. `without_graph`: returns the queries
    that may have facts without a graph; None: unknown.
    """
    reaches = rule_reaches(program)
    components = tuple(
        _component(program, rules, reaches, by, together, without_graph) for rules in connected(program)
    )
    return Partitioning(components, tuple(_groups(program, components, without_graph)))


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
    for i in range(1, len(program.rules)) if program.has_effects else ():
        a, b = sorted((find(0), find(i)))  # events state what all rules may look at
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
    without_graph: WithoutGraph | None,
) -> RuleComponent:
    stating = [f"`{program.rules[i].name}`" for i in rules if program.rules[i].has_effects]
    if stating:  # then all rules are in one component
        reason = f"in one piece: events of {', '.join(stating)} state what all rules look at"
        return RuleComponent(rules, None, None, (reason,))
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
    seen = _seen_at_ticks(program, rules, without_graph)
    if horizon is not None:
        horizon += max(seen.values(), default=0)
    keys = None if seen else stream_keys(program, rules)
    if seen:
        reasons.append(f"not by key: `{next(iter(seen))}` may have facts at ticks without a graph")
    elif keys is None:
        reason = (held_reason(program) if holds else None) or no_key(program, rules)
        if horizon is None:
            keys = stream_keys(program, rules, copying=True)
        reasons.append(reason if keys is None else reason.replace("not by key:", "not by key alone:", 1))
    if by is By.TIME and horizon is not None:
        keys = None
    if by is By.KEY and keys is not None:
        horizon = None
    gap: Time | None = None
    if keys is None and horizon is None and not holds:
        gap = _gap_cut(program, rules, max(reaches[i].kept for i in rules), without_graph)
    return RuleComponent(rules, keys, horizon, tuple(reasons), gap)


def _seen_at_ticks(
    program: Program, rules: Sequence[int], without_graph: WithoutGraph | None
) -> dict[str, Time]:
    """Queries that rules with an AFTER or a sequence among them read, and that may have facts without a
    graph → how far back these facts may lie; empty without either. The event that an AFTER follows
    counts at graphs only.
    """
    members = [program.rules[i] for i in rules]
    if not any(isinstance(rule.trigger, After | RowPattern) for rule in members):
        return {}
    known = None if without_graph is None else without_graph()
    found: dict[str, Time] = {}
    for rule in members:
        depth = depths(rule)
        followed = rule.triggering if isinstance(rule.trigger, After) else None
        for position in rule.positions:
            if position is followed:
                continue
            if not position.within_instant and (known is None or position.stream in known):
                found[position.stream] = max(depth[position.name], found.get(position.stream, 0))
    return found


def _gap_cut(
    program: Program, rules: Sequence[int], kept: Time, without_graph: WithoutGraph | None
) -> Time | None:
    """How long after a graph something may be left of rules that neither key nor horizon cuts; None if there
    is no limit. `kept`: how long they keep facts.
    """
    if not any(isinstance(program.rules[i].trigger, Tick | After | RowPattern) for i in rules):
        return kept
    if without_graph is None:
        return None
    alone, always = program.only(rules), without_graph()
    ticking, late = idle_ticks(alone, always).ticking, last_late(alone, always)
    if late >= ENDLESS or any(ticks.memory or ticks.reach >= ENDLESS for ticks in ticking):
        return None
    return kept + max([late, *(ticks.reach for ticks in ticking)])


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


def no_key(program: Program, rules: Sequence[int]) -> str:
    """Why rules have no key, as far as it shows."""
    for i in rules:
        rule = program.rules[i]
        if isinstance(rule.trigger, Tick):
            return f"not by key: the trigger of `{rule.name}` is EVERY, which has no attributes"
        loose = unlinked(rule)
        if loose and isinstance(rule.trigger, RowPattern):
            return f"not by key: `{rule.name}` has no PER"
        if loose:
            return (
                f"not by key: no equation in ON links `{'`, `'.join(loose)}` of `{rule.name}` "
                f"with an attribute of `{rule.triggering.name}`"
            )
    return "not by key: no single attribute of the trigger reaches every event and every chained rule's WITH"


def _groups(
    program: Program, components: Iterable[RuleComponent], without_graph: WithoutGraph | None
) -> list[RuleComponentGroup]:
    """Components merged if that sends fewer facts; at most one group per component. Linear in components, and
    in groups with the same cut.
    """
    groups: list[_Growing] = []
    alike: dict[tuple[bool, bool, bool], list[_Growing]] = {}
    holders: dict[tuple[str, bool], _Growing] = {}  # (stream, cut at gaps) → the first group of one task
    for component in sorted(components, key=lambda c: (c.horizon or 0, c.rules)):
        new = _group(program, component, bool(_seen_at_ticks(program, component.rules, without_graph)))
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
        self._late, self._sees_all = first.late, first.sees_all
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
        self._late, self._sees_all = self._late or other.late, self._sees_all or other.sees_all
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
            late=self._late,
            sees_all=self._sees_all,
        )


def _group(program: Program, component: RuleComponent, sees_all: bool) -> RuleComponentGroup:
    members = [program.rules[i] for i in component.rules]
    streams = {p.stream for rule in members for p in rule.positions if not p.within_instant}
    holds = any(map(program.has_to_do_with_lars, component.rules))
    streams.update(name for name in program.lars.reads if holds and name in program.selects)
    ticks = {rule.trigger.rhythm for rule in members if isinstance(rule.trigger, Tick)}
    return RuleComponentGroup(
        0,
        component.rules,
        frozenset(streams),
        component.keys,
        component.horizon,
        frozenset(ticks),
        holds,
        component.gap,
        any(isinstance(rule.trigger, After | RowPattern) for rule in members),
        sees_all,
    )
