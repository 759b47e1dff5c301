"""Rules of one shape that differ in thresholds, answered together.

Place:   network.py groups planned rules with it; compile.py makes one function per group.
Method:  the paper's own remedy for many rules (section 5, "number of rules"): leave filters that differ in a
         constant out of the queries and apply them here. Members of a group are sorted by how easily their
         thresholds pass, so that those a value passes are always a prefix, and a partial match carries a
         range of members instead of being made for each. The thresholds of all positions must rise together;
         otherwise rules go to different groups.
Why not: a condition per rule: a thousand rules would cost a thousand tests for every fact.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from msgspec.structs import replace

from dotr.ir.expressions import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.ir.rules import Between, Conjunct, Every, Summarise
from dotr.tesla.plan import RulePlan
from dotr.tesla.plan_step import PlanStep
from dotr.tesla.template_faults import faults


def groups(plans: Sequence[RulePlan]) -> list[list[RulePlan]]:
    """Partition rules into groups that one function can answer, each sorted by its thresholds.

    Rules that consume or chain, or are chained on (`alone`), are groups of their own. Groups are in the order
    of their first rule.
    """
    found: list[list[RulePlan]] = []
    open_: dict[Hashable, list[RulePlan]] = {}
    for plan in plans:
        if plan.alone:
            found.append([plan])
            continue
        key = _shape(plan)
        if key not in open_:
            open_[key] = []
            found.append(open_[key])
        open_[key].append(plan)
    return [chain for group in found for chain in _chains(group)]


def _chains(group: list[RulePlan]) -> list[list[RulePlan]]:
    """Sorted by thresholds; split if one position's thresholds fall while another's rise."""
    if len(group) == 1:
        return [group]
    chains: list[list[RulePlan]] = []
    for plan in sorted(group, key=lambda plan: (plan.limits, plan.index)):
        for chain in chains:
            if all(a <= b for a, b in zip(chain[-1].limits, plan.limits, strict=True)):
                chain.append(plan)
                break
        else:
            chains.append([plan])
    return chains


def _shape(plan: RulePlan) -> Hashable:
    """What two rules must agree in to share a function: all except names, limits and constants of WITH."""
    rule, numbered = plan.rule, Numbered(plan)
    plain = numbered.expression
    steps = tuple(map(numbered.step, plan.steps))
    trigger = rule.trigger.duration if isinstance(rule.trigger, Every) else plan.stream
    first = plan.threshold and plan.threshold.measure
    bindings = tuple(None if isinstance(b.expression, Const) else plain(b.expression) for b in rule.bindings)
    return trigger, plan.occasions, plan.epoch, first, steps, plain(rule.where), bindings, faults(rule)


def beginning(plan: RulePlan) -> Hashable:
    """What rules in one function share beside their trigger: their first steps. None if there is nothing to
    share.
    """
    if plan.alone or not plan.steps:
        return None
    first = plan.threshold and (plan.threshold.measure, plan.threshold.limit)
    trigger = plan.rule.trigger.duration if isinstance(plan.rule.trigger, Every) else plan.stream
    return trigger, plan.occasions, plan.epoch, first, Numbered(plan).step(plan.steps[0])


class Numbered:
    """Parts of a rule with positions by number, so that rules with other names compare equal."""

    def __init__(self, plan: RulePlan) -> None:
        rule = plan.rule
        self._names = {rule.trigger.name: "0"}
        self._variables = {position.name: position.variables for position in rule.positions}
        for number, conjunct in enumerate(rule.conjuncts, 1):
            self._names[conjunct.position.name] = str(number)
            if isinstance(conjunct, Summarise):
                self._names["?" + conjunct.variable] = str(number)

    def expression(self, expression: Expression | None) -> Expression | None:
        return None if expression is None else _renamed(expression, self._names, self._variables)

    def step(self, step: PlanStep) -> Hashable:
        """A conjunct with its column, without its threshold's limit."""
        conjunct, plain = step.conjunct, self.expression
        return (
            conjunct.word,
            isinstance(conjunct, Summarise) and conjunct.distinct,
            _window(conjunct, self._names),
            step.column,
            tuple(map(plain, step.probe)),
            plain(step.residual),
            plain(conjunct.argument) if isinstance(conjunct, Summarise) else None,
            step.itself and self._names[step.itself],
            step.threshold and step.threshold.measure,
        )


def _window(conjunct: Conjunct, names: Mapping[str, str]) -> Hashable:
    window = conjunct.window
    if isinstance(window, Between):
        return names[window.start], names[window.end]
    return window.duration, window.before, names[window.reference]


def _renamed(
    expression: Expression, names: Mapping[str, str], variables: Mapping[str, Sequence[str]]
) -> Expression:
    """The expression with positions and variables by number."""
    match expression:
        case Attribute(position=position, variable=variable):
            return Attribute(names[position], str(variables[position].index(variable)))
        case TimeOf(position=position):
            return TimeOf(names[position])
        case Var(name=name):
            return Var(names["?" + name])
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(_renamed(a, names, variables) for a in arguments))
        case _:
            return expression
