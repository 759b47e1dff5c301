"""How a rule is going to be detected: which column serves each conjunct, found by which key.

Place:   between the checked rule and compile.py; a value, printable (`dotr plan`), no state.
Method:  TESLA's automaton of columns (Cugola, Margara 2010: T-Rex keeps a column of partial results per
         position), with columns split by the equations of ON. A conjunct gets the smallest memory that its
         meaning allows:
           latest   one fact per key: LAST, and NOT, in a window anchored at the trigger
           total    a running aggregate per key, in a window anchored at the trigger
           log      all facts per key within reach, in canonical order: everything else
         A window BEFORE the trigger is served by a column that takes the facts of an instant at its end
         (`deferred`), so that "all of the column" is always "all of the window's newer side".
Why not: one memory for all. A log where one fact would do costs the window in space.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from dotr.events import Time
from dotr.ir.expressions import Expression
from dotr.ir.rules import Absent, Between, Choose, Conjunct, Every, Rule, Selection, Summarise, Within
from dotr.tesla.conditions import NOW, as_own, conjunction, equality, names, parts
from dotr.tesla.references import depths


@dataclass(frozen=True, slots=True)
class Latest:
    """One fact per key: the greatest in canonical order."""


@dataclass(frozen=True, slots=True)
class Log:
    """All facts per key, in canonical order."""


@dataclass(frozen=True, slots=True)
class Total:
    """A running aggregate per key over the last `duration`; the argument looks at the own fact only."""

    function: str
    distinct: bool
    argument: Expression | None
    duration: Time


Content: TypeAlias = Latest | Log | Total


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """What a column keeps. Equal specs are one column, whichever rules use it.

    `keys` and `filters` look at the own fact only, which they call "", its attributes by number. `ticks`:
    the EVERY durations whose instants it sees beside those of graphs. `owner`: not "" where a rule consumes
    from it; then it is that rule's alone. `epoch` parts rules deployed at different times: their pasts
    differ.
    """

    stream: str
    chained: bool
    ticks: frozenset[Time]
    deferred: bool
    keys: tuple[Expression, ...]
    filters: tuple[Expression, ...]
    content: Content
    owner: str = ""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One conjunct, planned.

    `retention`: how long before now a fact of the column can still be asked for. `probe`: what the column's
    keys must equal. `residual`: what is left of ON. `itself`: the reference whose own fact is no candidate.
    `newest`: the window's newer end is the column's, no upper bound need be sought.
    """

    conjunct: Conjunct
    column: ColumnSpec
    retention: Time
    probe: tuple[Expression, ...]
    residual: Expression | None
    itself: str | None
    newest: bool


@dataclass(frozen=True, slots=True)
class RulePlan:
    index: int
    rule: Rule
    steps: tuple[Step, ...]

    def describe(self) -> list[str]:
        """One line per position: what is kept of it, by which key, for how long."""
        trigger = self.rule.trigger
        every = isinstance(trigger, Every)
        lines = [f"{trigger.name}: trigger" + (f", every {trigger.duration} us" if every else "")]  # type: ignore[union-attr]  # `every` says so
        for step in self.steps:
            column = step.column
            kept = type(column.content).__name__.lower()
            keys = f" by {len(column.keys)} key(s)" if column.keys else ""
            own = f", {len(column.filters)} filter(s)" if column.filters else ""
            rest = ", residual condition" if step.residual is not None else ""
            lines.append(
                f"{step.conjunct.position.name}: {kept} of {column.stream}{keys}{own}{rest}, "
                f"kept {step.retention} us"
            )
        return lines


def plan_rule(
    index: int,
    rule: Rule,
    ticks: frozenset[Time],
    *,
    epoch: int = 0,
    same: Mapping[str, str] | None = None,
) -> RulePlan:
    """Plan a rule. `same`: streams that always have the facts of another one → that one."""
    streams = {position.name: position.stream for position in rule.positions}
    depth = depths(rule)
    steps = []
    for conjunct in rule.conjuncts:
        steps.append(_plan_step(rule, conjunct, ticks, epoch, same or {}, streams, depth))
    return RulePlan(index, rule, tuple(steps))


def _plan_step(
    rule: Rule,
    conjunct: Conjunct,
    ticks: frozenset[Time],
    epoch: int,
    same: Mapping[str, str],
    streams: Mapping[str, str],
    depth: Mapping[str, Time],
) -> Step:
    position = conjunct.position
    own, trigger = position.name, rule.trigger.name
    variables = {name: number for number, name in enumerate(position.variables)}
    keys, filters, residual = _split(conjunct.on, own)
    itself = _itself(conjunct, streams)
    strict, newest = _ends_at_trigger(conjunct, trigger)
    consumed = isinstance(conjunct, Choose) and own in rule.consuming
    spec = ColumnSpec(
        stream=same.get(position.stream, position.stream),
        chained=position.chained,
        ticks=ticks,
        deferred=strict and newest,
        keys=tuple(as_own(mine, own, variables) for mine, _ in keys),
        filters=tuple(as_own(part, own, variables) for part in filters),
        content=_content(
            conjunct, trigger, bool(residual) or itself is not None or consumed, newest, variables
        ),
        owner=f"{rule.name}.{own}" if consumed else "",
        epoch=epoch,
    )
    return Step(
        conjunct=conjunct,
        column=spec,
        retention=depth[own],
        probe=tuple(other for _, other in keys),
        residual=conjunction(residual),
        itself=itself,
        newest=newest,
    )


def _split(
    on: Expression | None, own: str
) -> tuple[list[tuple[Expression, Expression]], list[Expression], list[Expression]]:
    """(equations that index, parts about the candidate alone, the rest)."""
    keys: list[tuple[Expression, Expression]] = []
    filters: list[Expression] = []
    residual: list[Expression] = []
    for part in parts(on):
        key = equality(part, own)
        if names(part) <= {own}:
            filters.append(part)
        elif key is not None:
            keys.append(key)
        else:
            residual.append(part)
    return keys, filters, residual


def _itself(conjunct: Conjunct, streams: Mapping[str, str]) -> str | None:
    """The reference whose very fact is no candidate: under FROM, for all but aggregates."""
    if isinstance(conjunct, Summarise):
        return None
    match conjunct.window:
        case Within(reference=reference, before=False):
            return reference if streams.get(reference) == conjunct.position.stream else None
        case _:
            return None


def _ends_at_trigger(conjunct: Conjunct, trigger: str) -> tuple[bool, bool]:
    """(the window leaves the trigger's own instant out, it reaches up to the trigger)."""
    match conjunct.window:
        case Within(reference=reference, before=before):
            return before, reference == trigger
        case Between(end=end):
            return True, end == trigger
        case _:
            assert_never(conjunct.window)


def _content(
    conjunct: Conjunct, trigger: str, needs_log: bool, newest: bool, variables: Mapping[str, int]
) -> Content:
    if not newest or needs_log:
        return Log()
    match conjunct:
        case Choose(selection=Selection.LAST, k=1) | Absent():
            return Latest()
        case Summarise(window=Within(duration=duration), argument=argument) if argument is None or names(
            argument
        ) <= {conjunct.position.name}:
            own = None if argument is None else as_own(argument, conjunct.position.name, variables)
            return Total(conjunct.function, conjunct.distinct, own, duration)
        case _:
            return Log()


__all__ = ["NOW", "ColumnSpec", "Content", "Latest", "Log", "RulePlan", "Step", "Total", "plan_rule"]
