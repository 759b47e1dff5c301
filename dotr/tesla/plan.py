"""How a rule is going to be detected: which column serves each conjunct, found by which key.

Place:   between the checked rule and compile.py; a value, printable (`dotr plan`), no state.
Method:  TESLA's automaton of columns (Cugola, Margara 2010: T-Rex keeps a column of partial results per
         position), with columns split by the equations of ON. A conjunct gets the smallest memory that its
         meaning allows:
           latest   one fact per key: LAST, and NOT, in a window anchored at the trigger
           total    a running aggregate per key, in a window anchored at the trigger
           stack    per key, what is the latest above some threshold: a latest whose filter compares with
                    a constant, so that rules with other constants share it (thresholds.py)
           ranked   all facts per key above the lowest of several thresholds: EACH, shared as stacks are
           log      all facts per key within reach, in canonical order: everything else
         A window BEFORE the trigger is served by a column that takes the facts of an instant at its end
         (`deferred`), so that "all of the column" is always "all of the window's newer side".
Why not: one memory for all. A log where one fact would do costs the window in space.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from dotr.events import Time
from dotr.expressions.functions import makes_text
from dotr.ir.expressions import Const, Expression
from dotr.ir.rules import Absent, Between, Choose, Conjunct, Every, Rule, Selection, Summarise, Within
from dotr.late import dataclass
from dotr.tesla.conditions import as_own, conjunction, equality, looks_at_time, names, parts
from dotr.tesla.references import Occasion, depths
from dotr.tesla.template_faults import faults
from dotr.tesla.thresholds import CARRIED, Filtered, Measure, Threshold, threshold_of


@dataclass(frozen=True, slots=True)
class LastValue:
    """One fact per key: the greatest in canonical order."""


@dataclass(frozen=True, slots=True)
class FactLog:
    """All facts per key, in canonical order. `held`: of what holds, kept as intervals."""

    held: bool = False


@dataclass(frozen=True, slots=True)
class RunningTotal:
    """A running aggregate per key over the last `duration`; the argument looks at the own fact only. `held`:
    over what holds, kept as intervals.
    """

    function: str
    distinct: bool
    argument: Expression | None
    duration: Time
    held: bool = False


@dataclass(frozen=True, slots=True)
class MonotonicStack:
    """Per key the facts that are the latest above some threshold: no later one measures as much or more."""

    measure: Measure


@dataclass(frozen=True, slots=True)
class Ranked:
    """All facts per key that measure enough for the lowest threshold of the rules that share them."""

    measure: Measure


Content: TypeAlias = LastValue | FactLog | RunningTotal | MonotonicStack | Ranked


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """What a column keeps. Equal specs are one column, whichever rules use it.

    `chained`: its facts are found while rules run. `keys` and `filters` look at the own fact only, which they
    call "", its attributes by number. `size`: what the size that a fact of a base carries must pass (it is
    left off then). `occasions`: whose instants it sees beside those of graphs. `owner`: not "" where a rule
    consumes from it; then it is that rule's alone. `epoch` parts rules deployed at different times: their
    pasts differ.
    """

    stream: str
    chained: bool
    occasions: frozenset[Occasion]
    deferred: bool
    keys: tuple[Expression, ...]
    filters: tuple[Expression, ...]
    content: Content
    size: Threshold | None = None
    owner: str = ""
    epoch: int = 0

    @property
    def fed_by_base(self) -> bool:
        """Whether its facts come with their size."""
        shared = isinstance(self.content, MonotonicStack | Ranked) and self.content.measure.place == CARRIED
        return shared or self.size is not None

    @property
    def carries(self) -> bool:
        """Whether the facts that it keeps have their size with them."""
        return isinstance(self.content, Ranked) and self.content.measure.place == CARRIED


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One conjunct, planned.

    `retention`: how long before now a fact of the column can still be asked for. `probe`: what the column's
    keys must equal. `residual`: what is left of ON. `itself`: the reference whose fact is not a candidate.
    `newest`: the window's newer end is the column's, no upper bound need be sought.
    """

    conjunct: Conjunct
    column: ColumnSpec
    retention: Time
    probe: tuple[Expression, ...]
    residual: Expression | None
    itself: str | None
    newest: bool
    threshold: Threshold | None = None

    @property
    def held(self) -> bool:
        """Whether its candidates are kept as intervals."""
        return isinstance(self.column.content, FactLog) and self.column.content.held

    def every_point(self, trigger: str) -> bool:
        """Whether points at which the same holds may differ for it: it looks at their time, or leaves out the
        fact of one of them (the trigger's is at the newest point, which is apart).
        """
        own = self.conjunct.position.name
        looks = self.residual is not None and looks_at_time(self.residual, own)
        return looks or self.itself not in (None, trigger)

    @property
    def title(self) -> str:
        """For diagnostics: the conjunct as it is written."""
        return f"{self.conjunct.word} {self.conjunct.position.name}"


@dataclass(frozen=True, slots=True)
class RulePlan:
    """One rule, planned.

    `stream`: what brings the trigger's facts ("" for EVERY); of them those that pass `threshold` are
    triggers. `alone`: no other rule can share its function.
    `referred`: other rules chain on it.
    """

    index: int
    rule: Rule
    steps: tuple[PlanStep, ...]
    stream: str
    occasions: frozenset[Occasion]
    epoch: int
    alone: bool
    referred: bool
    threshold: Threshold | None = None

    @property
    def limits(self) -> tuple[int, ...]:
        """The limits of its thresholds, the trigger's first."""
        found = [self.threshold, *(step.threshold for step in self.steps)]
        return tuple(t.limit for t in found if t is not None)

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
            own += ", as intervals" if getattr(column.content, "held", False) else ""
            rest = ", residual condition" if step.residual is not None else ""
            lines.append(
                f"{step.conjunct.position.name}: {kept} of {column.stream}{keys}{own}{rest}, "
                f"kept {step.retention} us"
            )
        return lines


def plan_rule(
    index: int,
    rule: Rule,
    occasions: frozenset[Occasion],
    *,
    epoch: int = 0,
    same: Mapping[str, str] | None = None,
    filtered: Mapping[str, Filtered] | None = None,
    referred: bool = False,
    alone: bool = False,
) -> RulePlan:
    """Plan a rule.

    `same`: streams that always have the facts of another one → that one. `filtered`: streams whose facts
    come as those of a base. `referred`: other rules chain on this one. `alone`: it is planned without
    thresholds that others could share.
    """
    chains = any(position.within_instant for position in rule.positions)
    alone = alone or chains or bool(rule.consuming) or _names(rule)
    source = _Sources(same or {}, filtered or {}, occasions, epoch, alone)
    depth = depths(rule)
    steps = tuple(
        _plan_step(rule, conjunct, source, depth[conjunct.position.name]) for conjunct in rule.conjuncts
    )
    stream = "" if isinstance(rule.trigger, Every) else rule.trigger.stream
    return RulePlan(
        index,
        rule,
        steps,
        stream=source.base(stream),
        occasions=occasions,
        epoch=epoch,
        alone=source.alone or referred,
        referred=referred,
        threshold=source.threshold(stream),
    )


def _names(rule: Rule) -> bool:
    """Whether a constant of WITH stands where the template can fail: then each rule has its own check."""
    subjects, predicates, _ = faults(rule)
    return any(isinstance(rule.bindings[i].expression, Const) for i in subjects | predicates)


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where a rule's facts come from. `alone`: it is planned as if there were no other rule.

    That follows from the rule itself, so that a snapshot fits whatever other rules come and go.
    """

    same: Mapping[str, str]
    filtered: Mapping[str, Filtered]
    occasions: frozenset[Occasion]
    epoch: int
    alone: bool

    def base(self, stream: str) -> str:
        return self.filtered[stream].base if stream in self.filtered else self.same.get(stream, stream)

    def threshold(self, stream: str) -> Threshold | None:
        """What facts of the base must pass."""
        return self.filtered[stream].threshold if stream in self.filtered else None


def _plan_step(rule: Rule, conjunct: Conjunct, source: _Sources, depth: Time) -> PlanStep:
    position = conjunct.position
    own, trigger = position.name, rule.trigger.name
    variables = {name: number for number, name in enumerate(position.variables)}
    keys, tests, residual = _split(conjunct.on, own, bare=position.bare)
    size = source.threshold(position.stream)
    filters = [as_own(test, own, variables) for test in tests]
    itself = _itself(conjunct, {p.name: p.stream for p in rule.positions})
    strict, newest = _ends_at_trigger(conjunct, trigger)
    consumed = isinstance(conjunct, Choose) and own in rule.consuming
    needs_log = bool(residual) or itself is not None or consumed
    content = _content(conjunct, trigger, needs_log, newest, variables)
    shared: Threshold | None = None
    chosen = conjunct.selection if isinstance(conjunct, Choose) and conjunct.k == 1 else None
    ranked = chosen is Selection.EACH or (chosen is Selection.LAST and isinstance(content, FactLog))
    if not source.alone and (isinstance(content, LastValue) or ranked):
        shared, size = size, None
        if shared is None:
            shared = next((t for test in filters if (t := threshold_of(test)) is not None), None)
            filters = [test for test in filters if shared is None or threshold_of(test) != shared]
        if shared is not None:
            content = Ranked(shared.measure) if ranked else MonotonicStack(shared.measure)
    spec = ColumnSpec(
        stream=source.base(position.stream),
        chained=position.within_instant,
        occasions=source.occasions,
        deferred=strict and newest,
        keys=tuple(as_own(mine, own, variables) for mine, _ in keys),
        filters=tuple(filters),
        content=content,
        size=size,
        owner=f"{rule.name}.{own}" if consumed else "",
        epoch=source.epoch,
    )
    return PlanStep(
        conjunct=conjunct,
        column=spec,
        retention=depth,
        probe=tuple(other for _, other in keys),
        residual=conjunction(residual),
        itself=itself,
        newest=newest,
        threshold=shared,
    )


def _split(
    on: Expression | None, own: str, bare: bool
) -> tuple[list[tuple[Expression, Expression]], list[Expression], list[Expression]]:
    """(equations that index, parts about the candidate alone, the rest). `bare`: facts of a head are kept as
    intervals, by what they are and not by when.
    """
    keys: list[tuple[Expression, Expression]] = []
    filters: list[Expression] = []
    residual: list[Expression] = []
    for part in parts(on):
        key = equality(part, own)
        if bare and looks_at_time(part, own):
            residual.append(part)
        elif names(part) <= {own} and not makes_text(part):
            filters.append(part)
        elif key is not None:
            keys.append(key)
        else:
            residual.append(part)
    return keys, filters, residual


def _counts_every_point(conjunct: Summarise) -> bool:
    """Whether an aggregate needs all points of a stretch and has no form of its own there."""
    return not conjunct.distinct and conjunct.function not in ("COUNT", "SUM", "AVG", "MIN", "MAX")


def _itself(conjunct: Conjunct, streams: Mapping[str, str]) -> str | None:
    """The reference whose very fact is not a candidate: under FROM, for all but aggregates."""
    if isinstance(conjunct, Summarise):
        return None
    match conjunct.window:
        case Within(reference=reference, before=False):
            return reference if streams.get(reference) == conjunct.position.stream else None
        case Within() | Between():
            return None
        case _:
            assert_never(conjunct.window)


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
    bare, own = conjunct.position.bare, conjunct.position.name
    if not newest or needs_log:
        return FactLog(held=bare)
    match conjunct:
        case Choose(selection=Selection.LAST, k=1) | Absent():
            return LastValue()
        case Summarise(window=Within(duration=duration), argument=argument) if argument is None or (
            names(argument) <= {own}
            and not makes_text(argument)
            and not (bare and looks_at_time(argument, own))
            and not (bare and _counts_every_point(conjunct))
        ):
            of = None if argument is None else as_own(argument, own, variables)
            # of what is different, the least and the greatest, one point tells for a stretch
            counted = bare and not conjunct.distinct and conjunct.function not in ("MIN", "MAX")
            if counted and conjunct.function not in ("COUNT", "SUM", "AVG"):
                return FactLog(held=True)
            return RunningTotal(conjunct.function, conjunct.distinct, of, duration, held=counted)
        case Choose() | Summarise():
            return FactLog(held=bare)
        case _:
            assert_never(conjunct)
