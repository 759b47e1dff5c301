"""A rule evaluated as if nothing were shared, to decide whether a trigger fact takes it too much work.

Place:   network.py uses it when the work of a group of rules exceeds the budget of one.
Method:  the rule is planned without thresholds that others share, and its columns are filled with what the
         group's columns hold for it, like from a snapshot (state.py). Its cost is then the same wherever it
         is deployed, and only that cost decides. A group never costs less than each of its rules alone
         (work.py), so a group within the budget needs no such check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dotr.events import Clock
from dotr.tesla.column_spec import RankedTotal
from dotr.tesla.columns import Column, open_column
from dotr.tesla.compile import Run, compile_rules
from dotr.tesla.past import Past
from dotr.tesla.plan import RulePlan, plan_rule
from dotr.tesla.plan_step import PlanStep
from dotr.tesla.rule_writer import Exceeded, SharedRules
from dotr.tesla.thresholds import Filtered


def run_alone(
    plan: RulePlan,
    columns: Sequence[Column[Any]],
    clock: Clock,
    filtered: Mapping[str, Filtered],
    *,
    budget: int,
    drop: Callable[[Sequence[int]], None],
    exceeded: Callable[[RulePlan, Sequence[Column[Any]]], Exceeded],
) -> Run:
    """The function of one rule of a group. `columns`: the group's, which must not change while it is used.

    Its trigger facts are those that pass the rule's threshold.
    """
    own = plan_rule(plan.index, plan.rule, plan.occasions, epoch=plan.epoch, alone=True)
    steps = zip(own.steps, plan.steps, columns, strict=True)
    kept = [_column(step, shared, column, clock, filtered) for step, shared, column in steps]
    shape = SharedRules([own], kept, exceeded(own, kept))
    return compile_rules([shape], clock, budget=budget, drop=drop)


def _column(
    step: PlanStep, shared: PlanStep, column: Column[Any], clock: Clock, filtered: Mapping[str, Filtered]
) -> Column[Any]:
    """The column that the rule would have alone; the group's column if it is equal."""
    if replace(column.spec, stream=step.column.stream, size=None) == step.column:
        return column
    by = filtered.get(step.conjunct.position.stream)
    own = None if by is None else by.threshold
    if isinstance(column.spec.content, RankedTotal):
        own = shared.threshold
    past = Past(0, own, None)
    made = open_column(step.column, clock, lambda _: None)
    made.retention = column.retention
    made.load([past.facts(column.dump(), step.column)])
    return made
