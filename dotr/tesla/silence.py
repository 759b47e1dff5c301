"""Which ticks of a silence can matter: the others are skipped.

Place:   the pipeline and the batch get the ticks between two graphs from it, and refuse a graph before which
         too many lie.
Method:  in a silence no graph comes, so the only queries with facts are those that the background alone
         answers (`standing`). A rule can match only while every window it must choose from may still hold a
         fact, and while what it requires of aggregates alone (in WHERE, in WITH) may still hold. How long
         that is after the last graph, its `reach`, is the greatest solution of

             reach(rule) = min over what it needs of (how far the window looks back + reach of its stream)

         where a query's is 0, or infinite if it is standing. Ticks whose standing facts a later instant can
         still read (`memory`) matter, too. All others match nothing and leave no state.
Why not: inspecting the state: runners share and cut it differently, and all must count alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from dotr.budget import Overlong
from dotr.events import Clock, Time
from dotr.expressions.aggregates import summarise
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.ir import Attribute, Every, Expression, Position, Program, Rule, Summarise, TimeOf, Var
from dotr.rdf.terms import Term
from dotr.temporal.silences import ENDLESS, Silence, Ticking
from dotr.tesla.conditions import names, parts
from dotr.tesla.references import depths, references, ticks_seen

Reaches: TypeAlias = Callable[[Position], Time]


def silence(program: Program, standing: Collection[str]) -> Silence:
    """How a program ticks in a silence; `standing`: the queries that may have facts without a graph (what
    holds may have some, too).
    """
    standing = {*standing, *(p.stream for rule in program.rules for p in rule.positions if p.held)}
    reaches = _reaches(program, standing)
    seen = ticks_seen(program)
    reach: dict[Time, Time] = {}
    memory: dict[Time, Time] = {}
    rules: dict[Time, list[str]] = {}
    for rule, own, ticks in zip(program.rules, reaches, seen, strict=True):
        kept = _looks_back(rule, standing)
        for every in ticks if kept is not None else _triggering(rule, ticks, standing):
            if own > reach.get(every, 0):
                rules[every] = []
            reach[every] = max(own, reach.get(every, 0))
            memory[every] = max(kept or 0, memory.get(every, 0))
            if own == reach[every]:
                rules.setdefault(every, []).append(rule.name)
    found = [
        Ticking(every, reach[every], memory[every], tuple(rules.get(every, ())))
        for every in sorted(reach)
        if reach[every] or memory[every]
    ]
    return Silence(tuple(one for i, one in enumerate(found) if not _covered(one, found[:i])))


def _covered(one: Ticking, others: Sequence[Ticking]) -> bool:
    """Whether the ticks of a shorter duration include these."""
    return any(
        one.every % other.every == 0 and one.reach <= other.reach and one.memory <= other.memory
        for other in others
    )


def _triggering(rule: Rule, ticks: Collection[Time], standing: Collection[str]) -> Collection[Time]:
    """The durations at whose ticks the rule's trigger has a fact itself. (A chained one gets it from another
    rule, which is examined too.)
    """
    if isinstance(rule.trigger, Every):
        return (rule.trigger.duration,)
    return ticks if rule.trigger.stream in standing and not rule.trigger.chained else ()


def _looks_back(rule: Rule, standing: Collection[str]) -> Time | None:
    """How far back the rule reads facts of standing queries; None if it does not."""
    depth = depths(rule)
    positions = [c.position for c in rule.conjuncts]
    return max((depth[p.name] for p in positions if not p.chained and p.stream in standing), default=None)


# -- reach ------------------------------------------------------------------------------------------


def _reaches(program: Program, standing: Collection[str]) -> list[Time]:
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
        return ENDLESS if position.stream in standing else 0

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

    bounds = [ENDLESS, *(seen(conjunct.position) for conjunct in rule.chosen)]
    if not isinstance(rule.trigger, Every):
        bounds.append(of(rule.trigger))
    totals = {c.variable: c for c in rule.conjuncts if isinstance(c, Summarise)}
    for variables in _required(rule, totals):
        bounds.append(max((seen(totals[name].position) for name in variables), default=0))
    return min(bounds)


def _required(rule: Rule, totals: Mapping[str, Summarise]) -> list[list[str]]:
    """Lists of aggregates, one per condition: not all of a list can be empty if the rule matches."""
    empty = {
        name: summarise(c.function, c.distinct, (), star=c.argument is None) for name, c in totals.items()
    }

    def leaf(node: Var | Attribute | TimeOf) -> Callable[[object], Term | None]:
        assert isinstance(node, Var), "nothing else is looked at here"
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
