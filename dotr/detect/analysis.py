"""What follows from the shape of a program alone: references, horizons, equations, silences.

Place:   read by the oracle, the engine, the pipeline, the batch and `dotr plan`; values in, values out.
Method:  references: a rule's windows form a tree rooted at the trigger (language.md, section 3); depths add
         up along it, chained rules included.
         Trigger keys: inside a rule, equations of `ON` carry a trigger attribute to the candidates, directly
         or through earlier conjuncts (a condition is applied before selection, so whatever fails it is not a
         candidate, whichever the operator). What `=` equates is in one class (expressions/equal_terms.py);
         classes are transitive, `=` is not. A batch partitions detection by them (partitioning.py), and
         network.py decides by them whether a trigger fact had anything to choose from.
         Conditions: a condition holds iff every part of its `&&` holds (an error counts as false there), so
         the parts are tested separately, each as soon as its inputs are known. A part that bounds how far
         back a candidate lies is a narrower window. Parts that can be an index decide how plan.py stores a
         position.
         Silences: the ticks between two graphs that can matter; a graph before which too many lie is refused.
         In a silence no graph comes, so the only queries with facts are those that the background alone
         answers (`without_graph`). A rule can match only while every window it must choose from may still
         contain a fact, and while what it requires of aggregates alone (in WHERE, in WITH) may still hold.
         How long that is after the last graph, its `reach`, is the greatest solution of

             reach(rule) = min over what it needs of (how far the window looks back + reach of its stream)

         where a query's is 0, or infinite if it is such a one. Ticks whose facts of such queries a later
         instant can still read (`memory`) matter, too. All others match nothing and leave no state.
Why not: inspect the state for silences: runners share and cut it differently, and all must count alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce
from typing import TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import Overlong
from dotr.events import Clock, Fact, Time
from dotr.expressions.aggregates import summarise
from dotr.expressions.equal_terms import equality_class, has_float
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.expressions.functions import makes_text
from dotr.expressions.rhythms import first_tick, is_tick, pace, ticks_between
from dotr.program.positions import Position
from dotr.program.program import Program
from dotr.program.queries import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.program.rules import (
    After,
    Between,
    Calendar,
    CalendarTick,
    Delay,
    Every,
    Rhythm,
    Rule,
    Summarise,
    Tick,
    Trigger,
    Window,
    Within,
)
from dotr.program.sequences import Place, RowPattern
from dotr.rdf.terms import TRUE, XSD_FLOAT, Term
from dotr.rdf.values import EXACT, decode


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

    For `BETWEEN A AND B`, less than A's depth; A's depth is returned. The event of an AFTER lies its duration
    before the trigger; rows of a sequence, and those that PREV reads, before the end of its match.
    """
    found = {rule.trigger.name: 0}
    if isinstance(rule.trigger, After):
        found[rule.trigger.position.name] = rule.delay
    if isinstance(rule.trigger, RowPattern):
        found.update(
            dict.fromkeys([source.name for source in rule.trigger.sources], looks_back(rule.trigger))
        )
    for conjunct in rule.conjuncts:
        found[conjunct.position.name] = reach(conjunct.window, found)
    return found


def looks_back(pattern: RowPattern) -> Time:
    """How long before the time of a match a row of it can lie, or one that PREV reads."""
    reads = [leaf.position for element in pattern.elements for leaf in leaves(element.on)]
    prev = any(dict(pattern.rows)[name].place is Place.PREV for name in reads)
    return 2 * pattern.within if prev else pattern.within


def leaves(expression: Expression | None) -> list[Attribute | TimeOf]:
    """The attributes and times in an expression."""
    match expression:
        case Attribute() | TimeOf():
            return [expression]
        case Call(arguments=arguments):
            return [leaf for argument in arguments for leaf in leaves(argument)]
        case _:
            return []


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

    Strict: the window, or one on the path to the trigger, is BEFORE or BETWEEN, or it is the event of an
    AFTER or measured from it, so that only earlier instants of that rule matter.
    """
    return [(position.stream, strict) for position, strict in strictness(rule) if position.chained]


def strictness(rule: Rule) -> list[tuple[Position, bool]]:
    """The rule's positions in the order written, each with whether it only reads earlier instants."""
    found: list[tuple[Position, bool]] = []
    strict = {rule.trigger.name: False}
    if isinstance(rule.triggering, RowPattern):
        found += ((source, False) for source in rule.triggering.sources)
    elif not isinstance(rule.triggering, Tick):
        strict[rule.triggering.name] = rule.delay > 0
        found.append((rule.triggering, rule.delay > 0))
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


Occasion: TypeAlias = Rhythm | Delay | str
"""What lets a rule see an instant without a graph: a tick of an EVERY of this rhythm, a tick of an AFTER,
or a fact of the stream of this name (changes of what lasts or holds, a head that triggers, a sequence)."""


def occasions_seen(program: Program) -> list[frozenset[Occasion]]:
    """Per rule the occasions at which it sees an instant: its own and those of the rules it chains on."""
    sequences = frozenset(rule.name for rule in program.rules if isinstance(rule.trigger, RowPattern))
    own = [_own_occasions(rule, program, sequences) for rule in program.rules]
    return [frozenset().union(*(own[i] for i in rules)) for rules in reachable(program)]


def _own_occasions(rule: Rule, program: Program, sequences: Collection[str]) -> frozenset[Occasion]:
    ticks = set[Rhythm | Delay]()
    if isinstance(rule.trigger, Tick):
        ticks.add(rule.trigger.rhythm)
    elif isinstance(rule.trigger, After):
        ticks.add(rule.trigger.delay)
    seen = {p.stream for p in rule.positions if p.stream in program.standing}
    for position in rule.positions:  # a head wakes a rule only as its trigger, or as the source of a sequence
        if position.held and (is_triggering(rule, position) or " " in position.stream):
            seen.add(position.stream)
        if position.chained and position.stream in sequences:
            seen.add(position.stream)
    return frozenset(ticks | seen)


def is_triggering(rule: Rule, position: Position) -> bool:
    """Whether a rule's trigger facts, or the rows of a sequence, are facts of a position."""
    if isinstance(rule.trigger, RowPattern):
        return position in rule.trigger.sources
    return position == rule.trigger


def ticks_seen(program: Program) -> list[frozenset[Rhythm]]:
    """Per rule the EVERYs whose ticks it sees: its own and those of the rules it chains on."""
    return [frozenset(o for o in seen if isinstance(o, Rhythm)) for seen in occasions_seen(program)]


def delays_seen(program: Program) -> list[dict[Delay, Position]]:
    """Per rule the AFTERs whose ticks it sees, its own and those of the rules it chains on, each with the
    event that it follows.
    """
    own = [rule.trigger for rule in program.rules]
    found = []
    for rules in reachable(program):
        afters = [t for i in sorted(rules) if isinstance(t := own[i], After)]
        found.append({after.delay: after.position for after in afters})
    return found


def awaits_graph(position: Position) -> bool:
    """Whether AFTER it counts its facts at instants with a graph only: it is a query."""
    return not (position.within_instant or " " in position.stream)


def due(
    time: Time,
    rhythms: Iterable[Rhythm],
    facts: Mapping[str, Sequence[Fact]],
    late: Iterable[Delay] = (),
) -> frozenset[Occasion]:
    """The occasions of an instant: due ticks, `late` those of AFTER, and streams with facts."""
    ticks = (rhythm for rhythm in rhythms if is_tick(rhythm, time))
    return frozenset([*ticks, *late, *(stream for stream, found in facts.items() if found)])


def next_tick(rhythms: Sequence[Rhythm], first: Time | None, after: Time) -> Time | None:
    """The earliest tick of any of `rhythms` that is > `after` and ≥ `first`, or None."""
    if first is None or not rhythms:
        return None
    at_least = max(after + 1, first)
    return min(first_tick(rhythm, at_least) for rhythm in rhythms)


def rule_reaches(program: Program) -> list[RuleReach]:
    """Per rule, what it keeps and what can influence it. O(references).

    Influence is unbounded if a rule reads its own events, directly or through others (each may depend on the
    one before), if facts are consumed (whether one is left depends on every earlier match), and of a
    sequence whose matches do not overlap (where one begins depends on the one before). Rules that read such a
    rule inherit it.
    """
    kept = [max(depths(rule).values()) for rule in program.rules]
    influence = _summed(program, {i for i, rule in enumerate(program.rules) if _depends_on_all(rule)})
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


def _depends_on_all(rule: Rule) -> bool:
    return bool(rule.consuming) or (isinstance(rule.trigger, RowPattern) and not rule.trigger.overlapping)


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
    if isinstance(rule.trigger, RowPattern) and not rule.trigger.overlapping:
        return RuleReach(kept, None, "where a match begins depends on the match before", True)
    if at in endless:
        return RuleReach(kept, None, "it reads its own earlier events", True)
    read = [program.rules[i] for i in sorted(endless)]
    rules = ", ".join(f"`{one.name}`" for one in read if one.kind == "rule")
    whose = [f"the events of {rules}"] * bool(rules)
    whose += [f"sequence `{one.name}`" for one in read if one.kind == "sequence"]
    return RuleReach(kept, None, f"it reads {', '.join(whose)}", at in loops)


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


ENDLESS: Time = 2**127
"""Longer than all of time."""

SLACK = 3
"""How many ticks at local times a distance may have beyond those of their mean pace: zones are at most 27
hours apart, and twice that with a day that a zone leaves out."""


class Ticking(Struct, frozen=True):
    """One rhythm of EVERY, and when its ticks matter in a silence.

    `reach`: how long after the last graph, both ends inclusive. `memory`: how long before the next one.
    `rules`: names of those that may match for longest.
    """

    every: Rhythm
    reach: Time
    memory: Time
    rules: tuple[str, ...]

    def next(self, after: Time, graph: Time | None, bound: Time) -> Time:
        """The earliest tick > `after` that matters; at least `bound` if there is none."""
        tick = first_tick(self.every, after + 1)
        if self.reach < ENDLESS and (graph is None or tick > graph + self.reach):
            tick = max(tick, first_tick(self.every, bound - self.memory))
        return tick

    def count(self, after: Time, graph: Time, bound: Time) -> int:
        """The number of ticks in (after, bound) that matter, or one more; monotone in `bound`. (Of
        local times up to `SLACK` more: days differ in length.)
        """
        reached = max(after, min(bound - 1, graph + self.reach))
        kept = min(ticks_between(self.every, reached, bound - 1), self.kept)
        return ticks_between(self.every, after, reached) + kept

    @property
    def kept(self) -> int:
        """No fewer than the ticks before a graph that matter to it."""
        most = -(-self.memory // pace(self.every))
        return most if isinstance(self.every, int) or not most else most + SLACK

    @property
    def most(self) -> int:
        """No fewer than the ticks in any silence, if they end."""
        slack = 2 if isinstance(self.every, int) else 2 + SLACK
        return (self.reach + self.memory) // pace(self.every) + slack


class IdleTicks(Struct, frozen=True):
    """How a program ticks while no graph comes. `ticking` has the rhythms that can matter."""

    ticking: tuple[Ticking, ...]

    def next(self, after: Time, graph: Time | None, bound: Time) -> Time | None:
        """The earliest tick in (after, bound) that can matter, or None.

        `graph`: the time of the last graph, at or before `after`; None: none whose facts are within reach.
        `bound`: the time of the next one, or up to which time is closed. (Ticks begin with the first instant:
        the caller's `after` is not before it.)
        """
        found = min((ticking.next(after, graph, bound) for ticking in self.ticking), default=bound)
        return found if found < bound else None

    def count(self, after: Time, graph: Time, bound: Time) -> int:
        """The number of ticks in (after, bound) that can matter, up to one more for each EVERY; monotone in
        `bound`. If several EVERY tick at once, each counts.
        """
        return sum(ticking.count(after, graph, bound) for ticking in self.ticking)

    def allows(self, limit: int) -> Time:
        """A distance between two graphs that cannot have more than `limit` ticks; ENDLESS if none can."""
        if sum(ticking.most for ticking in self.ticking) <= limit:
            return ENDLESS
        from fractions import Fraction  # noqa: PLC0415  # start-up: most programs do not tick

        rate = sum((Fraction(1, pace(ticking.every)) for ticking in self.ticking), Fraction())
        slack = sum(2 if isinstance(t.every, int) else 2 + SLACK for t in self.ticking)
        return max(0, int((limit - slack) / rate))

    def worst(self, after: Time, graph: Time, bound: Time) -> Ticking:
        """The rhythm with the most ticks in (after, bound) that can matter."""
        return max(self.ticking, key=lambda ticking: ticking.count(after, graph, bound))


NOW = "NOW()"
"""The name for the trigger's time; no position has parentheses in its name."""

_TRUE = Const(TRUE)
_MIRRORED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}

OWN = ""
"""The name of a column's own fact, so that columns of different rules compare equal."""


def parts(condition: Expression | None) -> list[Expression]:
    """The operands of the outermost `&&`s, from left to right; none for no condition and for `true`."""
    if condition is None or condition == _TRUE:
        return []
    if isinstance(condition, Call) and condition.function == "&&":
        return [part for argument in condition.arguments for part in parts(argument)]
    return [condition]


def conjunction(conditions: Sequence[Expression]) -> Expression | None:
    """The parts as one condition again."""
    if not conditions:
        return None
    return reduce(lambda left, right: Call("&&", (left, right)), conditions)


def names(expression: Expression) -> frozenset[str]:
    """The positions, `?variables` and NOW that an expression reads."""
    match expression:
        case Attribute(position=position) | TimeOf(position=position):
            return frozenset((position,))
        case Var(name=name):
            return frozenset(("?" + name,))
        case Call(function=function, arguments=arguments):
            found = frozenset().union(*map(names, arguments)) if arguments else frozenset[str]()
            return found | {NOW} if function == "NOW" else found
        case _:
            return frozenset()


def looks_at_time(expression: Expression, own: str) -> bool:
    """Whether it reads `own.time`."""
    match expression:
        case TimeOf(position=position):
            return position == own
        case Call(arguments=arguments):
            return any(looks_at_time(argument, own) for argument in arguments)
        case _:
            return False


def reads_time(rule: Rule) -> bool:
    """Whether it reads `X.time`, its own or another's, or NOW()."""
    on = [conjunct.on for conjunct in rule.conjuncts]
    arguments = [c.argument for c in rule.conjuncts if isinstance(c, Summarise)]
    given = [binding.expression for binding in rule.bindings]
    positions = [rule.trigger.name, *(position.name for position in rule.positions)]
    return any(
        NOW in names(expression) or any(looks_at_time(expression, name) for name in positions)
        for expression in (rule.where, *on, *arguments, *given)
        if expression is not None
    )


def reach_of_times(part: Expression, own: str, reference: str) -> Time | None:
    """How many µs before `reference` a fact of `own` may lie, if the part has the form `R.time - X.time <
    30`. None for any other form, or if it may not even lie at the same time.
    """
    if not (isinstance(part, Call) and part.function in _MIRRORED and len(part.arguments) == 2):
        return None
    operator, (between, most) = part.function, part.arguments
    if isinstance(between, Const):
        operator, between, most = _MIRRORED[operator], most, between
    if not (isinstance(between, Call) and between.function == "-" and isinstance(most, Const)):
        return None
    if between.arguments != (TimeOf(reference), TimeOf(own)) or operator not in ("<", "<="):
        return None
    seconds = decode(most.term)
    if isinstance(seconds, bool) or not isinstance(seconds, int | Decimal):
        return None
    micros = EXACT.scaleb(Decimal(seconds), 6)
    whole = int(micros.to_integral_value(ROUND_CEILING if operator == "<" else ROUND_FLOOR))
    width = whole - 1 if operator == "<" else whole
    return width if width >= 0 else None


def equality(part: Expression, own: str) -> tuple[Expression, Expression] | None:
    """(the candidate's side, the other side) of an equation that can be a key of the column of `own`.

    None if a side mixes both, or can be an xsd:float: a float equals many doubles, and no common key of equal
    values is known (language.md, section 1). Also None if the candidate's side makes a string, which may be
    too long: that error belongs to the trigger fact.
    """
    if not (isinstance(part, Call) and part.function == "=" and len(part.arguments) == 2):
        return None
    left, right = part.arguments
    if makes_text(left if names(left) == {own} else right) or _casts_to_float(left) or _casts_to_float(right):
        return None
    in_left, in_right = names(left), names(right)
    if in_left == {own} and own not in in_right:
        return left, right
    if in_right == {own} and own not in in_left:
        return right, left
    return None


def _casts_to_float(expression: Expression) -> bool:
    if isinstance(expression, Const):
        return expression.term.endswith(f"^^<{XSD_FLOAT}>")
    if not isinstance(expression, Call):
        return False
    return expression.function == f"<{XSD_FLOAT}>" or any(map(_casts_to_float, expression.arguments))


def as_own(expression: Expression, own: str, variables: Mapping[str, int]) -> Expression:
    """The expression with attributes of `own` by number, not name, so that equal columns compare equal."""
    match expression:
        case Attribute(position=position, variable=variable) if position == own:
            return Attribute(OWN, str(variables[variable]))
        case TimeOf(position=position) if position == own:
            return TimeOf(OWN)
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(as_own(a, own, variables) for a in arguments))
        case _:
            return expression


Reaches: TypeAlias = Callable[[Position], Time]


def idle_ticks(program: Program, without_graph: Collection[str]) -> IdleTicks:
    """How a program ticks in a silence; `without_graph`: the queries that may have facts without a graph
    (what holds may have some, too).
    """
    without_graph = {*without_graph, *(p.stream for rule in program.rules for p in rule.positions if p.held)}
    reaches = _reaches(program, without_graph)
    seen = ticks_seen(program)
    reach: dict[Rhythm, Time] = {}
    memory: dict[Rhythm, Time] = {}
    rules: dict[Rhythm, list[str]] = {}
    for rule, own, ticks in zip(program.rules, reaches, seen, strict=True):
        kept = _looks_back(rule, without_graph)
        for every in ticks if kept is not None else _triggering(rule, ticks, without_graph):
            if own > reach.get(every, 0):
                rules[every] = []
            reach[every] = max(own, reach.get(every, 0))
            memory[every] = max(kept or 0, memory.get(every, 0))
            if own == reach[every]:
                rules.setdefault(every, []).append(rule.name)
    found = [
        Ticking(every, reach[every], memory[every], tuple(rules.get(every, ())))
        for every in rhythms_in_order(reach)
        if reach[every] or memory[every]
    ]
    return IdleTicks(tuple(one for i, one in enumerate(found) if not _covered(one, found[:i])))


def _covered(one: Ticking, others: Sequence[Ticking]) -> bool:
    """Whether the ticks of a shorter rhythm include these."""
    return any(
        _includes(other.every, one.every) and one.reach <= other.reach and one.memory <= other.memory
        for other in others
    )


def _includes(other: Rhythm, one: Rhythm) -> bool:
    """Whether each tick of `one` is one of `other`. (Of local times that is known of no two.)"""
    return isinstance(one, int) and isinstance(other, int) and one % other == 0


def rhythms_in_order(rhythms: Iterable[Rhythm]) -> list[Rhythm]:
    """Durations, then local times, each by their size."""
    found = list(rhythms)
    durations = [rhythm for rhythm in found if isinstance(rhythm, int)]
    return [*sorted(durations), *sorted(r for r in found if isinstance(r, Calendar))]


def _triggering(rule: Rule, ticks: Collection[Rhythm], without_graph: Collection[str]) -> Collection[Rhythm]:
    """The rhythms at whose ticks the rule's trigger has a fact itself. (A chained one gets it from another
    rule, which is examined too.)
    """
    if isinstance(rule.trigger, Tick):
        return (rule.trigger.rhythm,)
    if isinstance(rule.trigger, After):  # its own ticks are stepped through, all of them
        return ()
    if isinstance(rule.trigger, RowPattern):
        rows = [source for source in rule.trigger.sources if not source.chained]
        return ticks if any(source.stream in without_graph for source in rows) else ()
    return ticks if rule.trigger.stream in without_graph and not rule.trigger.chained else ()


def _looks_back(rule: Rule, without_graph: Collection[str]) -> Time | None:
    """How far back the rule reads facts of such queries; None if it does not."""
    depth = depths(rule)
    positions = [c.position for c in rule.conjuncts]
    return max(
        (depth[p.name] for p in positions if not p.chained and p.stream in without_graph), default=None
    )


# -- reach ------------------------------------------------------------------------------------------


def _reaches(program: Program, without_graph: Collection[str]) -> list[Time]:
    """Per rule, how long after the last graph it may match; by iteration down from ENDLESS."""
    index = {rule.name: i for i, rule in enumerate(program.rules)}
    readers: dict[int, list[int]] = {}
    for i, rule in enumerate(program.rules):
        for name, _strict in references(rule):
            readers.setdefault(index[name], []).append(i)
    found = [ENDLESS] * len(program.rules)

    def of(position: Position) -> Time:
        if position.chained:
            return found[index[position.stream]]
        return ENDLESS if position.stream in without_graph else 0

    todo = dict.fromkeys(range(len(program.rules)))
    while todo:
        at = next(iter(todo))
        del todo[at]
        reach = _reach(program.rules[at], of)
        if reach < found[at]:
            found[at] = reach
            todo.update(dict.fromkeys(readers.get(at, ())))
    return found


def _reach(rule: Rule, of: Reaches) -> Time:
    """How long after the last graph a rule may match, by the reach of its streams."""
    depth = depths(rule)

    def seen(position: Position) -> Time:
        return depth[position.name] + of(position)

    bounds = [ENDLESS, *(seen(conjunct.position) for conjunct in rule.required)]
    bounds.append(_triggered(rule.trigger, of))
    totals = {c.variable: c for c in rule.conjuncts if isinstance(c, Summarise)}
    for variables in _required(rule, totals):
        bounds.append(max((seen(totals[name].position) for name in variables), default=0))
    return min(bounds)


def _triggered(trigger: Trigger, of: Reaches) -> Time:
    """How long after the last graph a trigger may have a fact."""
    match trigger:
        case Every() | CalendarTick():
            return ENDLESS
        case After(position=position, duration=duration):
            return duration + (0 if awaits_graph(position) else of(position))
        case RowPattern(sources=sources, within=within):
            return within + max(of(source) for source in sources)
        case Position():
            return of(trigger)
        case _:
            assert_never(trigger)


def last_late(program: Program, without_graph: Collection[str]) -> Time:
    """How long after the last graph an AFTER may tick, or a deadline of a sequence lie; 0 without one.
    `without_graph`: see `idle_ticks`.
    """
    reaches = dict(zip((rule.name for rule in program.rules), _reaches(program, without_graph), strict=True))

    def of(position: Position) -> Time:
        if position.chained:
            return reaches[position.stream]
        awaits = awaits_graph(position) and position.stream not in without_graph
        return 0 if awaits else ENDLESS

    late = [rule.trigger for rule in program.rules if isinstance(rule.trigger, After | RowPattern)]
    return max((_triggered(trigger, of) for trigger in late), default=0)


def _required(rule: Rule, totals: Mapping[str, Summarise]) -> list[list[str]]:
    """Lists of aggregates, one per condition: not all of a list can be empty if the rule matches."""
    if isinstance(rule.trigger, RowPattern):  # a value of WITH may be unbound
        return []
    empty = {
        name: summarise(c.function, c.distinct, (), star=c.argument is None) for name, c in totals.items()
    }

    def leaf(node: Var | Attribute | TimeOf) -> Callable[[object], Term | None]:
        assert isinstance(node, Var), "nothing else is evaluated here"
        value = empty[node.name]
        return lambda _: value

    def variables(expression: Expression) -> list[str] | None:
        """None if it reads more than aggregates."""
        found = [name.removeprefix("?") for name in sorted(names(expression)) if name.startswith("?")]
        return found if len(found) == len(names(expression)) else None

    def fails(evaluate: Callable[[object], object]) -> bool:
        """Whether it is false, or an error."""
        try:
            return evaluate(()) in (False, None)
        except Overlong:
            return False  # reported by whoever evaluates it

    clock = Clock()
    required: list[list[str]] = []
    for part in parts(rule.where):
        used = variables(part)
        if used is not None and fails(compile_condition(part, leaf, clock=clock, seconds=True)):
            required.append(used)
    for binding in rule.bindings:
        used, value = variables(binding.expression), binding.expression
        if used is not None and fails(compile_expression(value, leaf, clock=clock, seconds=True)):
            required.append(used)
    return required


TriggerKeys = Mapping[tuple[str, str], frozenset[int]]
"""(position, attribute) → the trigger attributes whose value it equals in every candidate."""


def trigger_keys(rule: Rule, computed: Collection[tuple[str, str]] = ()) -> TriggerKeys:
    """What the equations of a rule carry from its trigger to its other positions.

    `computed`: attributes, as (stream, variable), that can be an xsd:float and so carry nothing. Of a
    sequence: PER, which all rows of a match share, as terms; the trigger is its first source.
    """
    trigger = rule.triggering
    if isinstance(trigger, Tick):
        return {}
    if isinstance(trigger, RowPattern):
        places = {name: frozenset((trigger.sources[0].variables.index(name),)) for name in trigger.per}
        rows = [*(source.name for source in trigger.sources), *(name for name, _ in trigger.rows)]
        return {(row, name): place for row in rows for name, place in places.items()}
    streams = {position.name: position.stream for position in rule.positions}
    found = {
        (trigger.name, variable): frozenset((i,))
        for i, variable in enumerate(trigger.variables)
        if (trigger.stream, variable) not in computed
    }
    for conjunct in rule.conjuncts:
        own = conjunct.position.name
        for part in parts(conjunct.on):
            match equality(part, own):
                case Attribute(variable=variable), Attribute(position=other, variable=theirs) if (
                    streams[own],
                    variable,
                ) not in computed:
                    known = found.get((own, variable), frozenset())
                    found[own, variable] = known | found.get((other, theirs), frozenset())
                case _:
                    pass
    return found


def classes(carried: TriggerKeys, position: Position, trigger: Fact) -> list[tuple[int, object]]:
    """(place, equality class) of the attributes that a candidate of a position shares with a trigger fact."""
    found: list[tuple[int, object]] = []
    for place, variable in enumerate(position.variables):
        for root in carried.get((position.name, variable), ()):
            term = trigger[1][root]
            if term is not None and not has_float(term):
                found.append((place, equality_class(term)))
    return found
