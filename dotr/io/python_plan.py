"""How the rules of an engine are detected, for people to look at, and what notebooks show of an engine.

Place:   under api.py; `dotr plan` shows more, from the same plans.
"""

from __future__ import annotations

from html import escape
from typing import Final, assert_never

from dotr.core.counters import Counters
from dotr.core.deployment import Deployment
from dotr.core.funnel import shown
from dotr.ir import Every, Program
from dotr.temporal.durations import duration_text
from dotr.tesla.column_spec import (
    FactLog,
    LastValue,
    MonotonicStack,
    Ranked,
    RankedTotal,
    RunningTotal,
)
from dotr.tesla.plan import RulePlan
from dotr.tesla.plan_step import PlanStep


def engine_table(title: str, program: Program, counters: Counters) -> str:
    """A table of the rules, with how many events each had and how far it came, under a title."""
    rows = [
        (rule.name, f"{counters.events.get(rule.name, 0):,}", shown(counters.funnel.get(rule.name, ())))
        for rule in program.rules
    ]
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return (
        f"<p>{escape(title)}</p><table><thead><tr><th>rule</th><th>events</th><th>how far</th></tr></thead>"
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"
    )


SHOWN: Final = 20
"""Rules that are shown."""

_Row = tuple[str, str, str]


class Plan:
    """The plan of every rule of a program, in its order: `rules`, as it was when this was made."""

    __slots__ = ("rules",)

    def __init__(self, deployment: Deployment) -> None:
        self.rules: tuple[RulePlan, ...] = tuple(deployment.rule_plans())

    def __repr__(self) -> str:
        lines = [f"<dotr plan: {len(self.rules):,} rule{'' if len(self.rules) == 1 else 's'}>"]
        for plan in self.rules[:SHOWN]:
            lines.append(plan.rule.name)
            lines += ["  " + "  ".join(filter(None, row)) for row in _rows(plan)]
        more = len(self.rules) - SHOWN
        return "\n".join([*lines, *([f"… {more:,} more"] if more > 0 else [])])

    def _repr_html_(self) -> str:
        """A table with a line for every position of every rule, for notebooks."""
        lines = []
        for plan in self.rules[:SHOWN]:
            for number, row in enumerate(_rows(plan)):
                cells = (plan.rule.name if number == 0 else "", *row)
                lines.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
        head = "".join(f"<th>{name}</th>" for name in ("rule", "position", "of", "keeps"))
        more = len(self.rules) - SHOWN
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>" + (
            f"<p>and {more:,} more</p>" if more > 0 else ""
        )


def _rows(plan: RulePlan) -> list[_Row]:
    """(position, stream, what is kept of it) of the trigger and of every conjunct."""
    trigger = plan.rule.trigger
    if isinstance(trigger, Every):
        first: _Row = (trigger.name, f"every {duration_text(trigger.duration)}", "")
    else:
        first = (trigger.name, f"each fact of {trigger.stream}", "")
    return [first, *((step.title, f"of {step.conjunct.position.stream}", kept(step)) for step in plan.steps)]


def kept(step: PlanStep) -> str:
    """What bounds the state of a conjunct."""
    content = step.column.content
    match content:
        case LastValue():
            what = "the last fact"
        case FactLog(held=held):
            what = "all facts, as intervals" if held else "all facts"
        case RunningTotal(function):
            what = f"a running {function}"
        case MonotonicStack():
            what = "the facts that are last above some threshold"
        case RankedTotal(function=function):
            what = f"a running {function} above each of several thresholds"
        case Ranked():
            what = "all facts above some threshold"
        case _:
            assert_never(content)
    return f"{what}{' of each key' if step.column.keys else ''}, for {duration_text(step.retention)}"
