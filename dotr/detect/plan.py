"""How a rule is detected: which column serves each conjunct, by which key, shared by which rules.

Place:   between the checked rule and code.py; a value, printable (`dotr plan`), no state. network.py groups
         planned rules; code.py makes one function per group.
Method:  plan_step.py lists what a column can keep; each operator chooses (operators.py). Rules of one shape
         that differ in thresholds are answered together, the DOTR paper's remedy for many rules (section 5,
         "number of rules"): leave filters that differ in a constant out of the queries and apply them here.
         Members of a group are sorted by how easily their thresholds pass, so that those a value passes are
         always a prefix, and a partial match carries a range of members instead of being made for each. The
         thresholds of all positions must rise together; otherwise rules go to different groups.
Why not: a condition per rule: a thousand rules would cost a thousand tests for every fact.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from dotr.detect.analysis import (
    Occasion,
    as_own,
    awaits_graph,
    conjunction,
    depths,
    equality,
    looks_at_time,
    names,
    parts,
)
from dotr.detect.analysis import reach_of_times as reach
from dotr.detect.dead_ends import enumerated, filters
from dotr.detect.operators import DETECTED
from dotr.detect.plan_step import ColumnSpec, Content, FactLog, PlanStep, RunningTotal, for_one
from dotr.detect.scope import faults
from dotr.detect.thresholds import Filtered, Threshold, threshold_of
from dotr.events import Time
from dotr.expressions.functions import makes_text
from dotr.program.names import rhythm_text
from dotr.program.positions import Position
from dotr.program.queries import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.program.rules import After, Between, Choose, Conjunct, Every, Rule, Summarise, Tick, Within
from dotr.program.sequences import RowPattern


class RulePlan(Struct, frozen=True):
    """One rule, planned.

    `stream`: of the trigger's facts ("" for ticks); those that pass `threshold` are triggers. `alone`: no
    other rule can share its function. `referred`: other rules chain on it. `awaited`: the column of the facts
    that an AFTER follows. `counted`: its matches are counted, not listed (counting.py), and others read these
    of its variables.
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
    awaited: ColumnSpec | None = None
    counted: frozenset[str] | None = None

    @property
    def begins(self) -> Hashable:
        """What triggers it, by which rules are grouped."""
        trigger = self.rule.trigger
        if isinstance(trigger, After):
            return trigger.duration, self.awaited
        return trigger.rhythm if isinstance(trigger, Tick) else self.stream

    @property
    def thresholds(self) -> dict[int, Threshold]:
        """Its thresholds by place: 0 for the trigger, else the number of the conjunct."""
        found = [self.threshold, *(step.threshold for step in self.steps)]
        return {place: threshold for place, threshold in enumerate(found) if threshold is not None}

    @property
    def limits(self) -> tuple[int, ...]:
        """The limits of its thresholds, the trigger's first."""
        return tuple(threshold.limit for threshold in self.thresholds.values())

    def describe(self) -> list[str]:
        """One line per position: what is kept, by which key, for how long. Then what is tested while matches
        are enumerated: matches that fail there cost what they cost otherwise.
        """
        trigger = self.rule.trigger
        lines = [f"{trigger.name}: trigger"]
        if isinstance(trigger, Every):
            lines = [f"{trigger.name}: trigger, every {trigger.duration} us"]
        elif isinstance(trigger, Tick):
            lines = [f"{trigger.name}: trigger, every {rhythm_text(trigger.rhythm)}"]
        elif isinstance(trigger, RowPattern):
            lines = [f"{source.name}: rows of {source.stream}" for source in trigger.sources]
        elif self.awaited is not None:
            lines = [
                f"{self.rule.triggering.name}: factlog of {self.awaited.stream}, kept {self.rule.delay} us",
                f"{trigger.name}: trigger, {self.rule.delay} us after {self.rule.triggering.name}",
            ]
        for step in self.steps:
            column = step.column
            kept = type(column.content).__name__.lower()
            keys = f" by {len(column.keys)} key(s)" if column.keys else ""
            tests = len(column.filters) + (column.size is not None)
            own = f", {tests} filter(s)" if tests else ""
            own += ", as intervals" if getattr(column.content, "held", False) else ""
            rest = ", residual condition" if step.residual is not None else ""
            lines.append(
                f"{step.conjunct.position.name}: {kept} of {column.stream}{keys}{own}{rest}, "
                f"kept {step.retention} us"
            )
        return lines + self.ways()

    def ways(self) -> list[str]:
        """How matches are found, where a reader may not expect it."""
        if self.counted is not None:
            return ["matches: counted, not listed"]
        return enumerated(self.rule, self.steps)


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

    `same`: streams that always have the facts of another one → that one. `filtered`: streams whose facts come
    as those of a base. `referred`: other rules chain on this one. `alone`: plan without shared thresholds.
    """
    chains = any(position.within_instant for position in rule.positions)
    alone = alone or chains or bool(rule.consuming) or _names(rule) or isinstance(rule.trigger, RowPattern)
    source = _Sources(same or {}, filtered or {}, occasions, epoch, alone)
    depth = depths(rule)
    steps = _plan_steps(rule, source, depth)
    if any(step.threshold is not None for step in steps) and filters(rule, steps):
        # what a match can be completed from would differ from rule to rule
        steps = _plan_steps(rule, replace(source, alone=True), depth)
    trigger = rule.trigger
    late = _awaited(trigger, source) if isinstance(trigger, After) else None
    stream = trigger.stream if isinstance(trigger, Position) else ""
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
        awaited=late,
    )


def _plan_steps(rule: Rule, source: _Sources, depth: Mapping[str, Time]) -> tuple[PlanStep, ...]:
    return tuple(
        _plan_step(rule, conjunct, source, depth[conjunct.position.name]) for conjunct in rule.conjuncts
    )


def _awaited(trigger: After, source: _Sources) -> ColumnSpec:
    """What keeps the facts that an AFTER follows: of a query those at instants with a graph."""
    position = trigger.position
    seen = frozenset[Occasion](() if awaits_graph(position) or position.chained else (position.stream,))
    return ColumnSpec(
        stream=source.base(position.stream),
        chained=position.within_instant,
        occasions=seen,
        deferred=False,
        keys=(),
        filters=(),
        content=FactLog(),
        size=source.threshold(position.stream),
        epoch=source.epoch,
    )


def without_needless_sharing(plans: Sequence[RulePlan]) -> list[RulePlan]:
    """The plans; where all rules that share a column have the same threshold, that becomes its filter."""
    asked: dict[ColumnSpec, set[Threshold]] = {}
    for plan in plans:
        for step in plan.steps:
            if step.threshold is not None:
                asked.setdefault(step.column, set()).add(step.threshold)

    def settled(step: PlanStep) -> PlanStep:
        if step.threshold is None or len(asked[step.column]) > 1:
            return step
        column = replace(step.column, content=for_one(step.column.content), size=step.threshold)
        return replace(step, column=column, threshold=None)

    return [replace(plan, steps=tuple(map(settled, plan.steps))) for plan in plans]


def _names(rule: Rule) -> bool:
    """Whether a constant of WITH may make the template fail: then each rule has its own check."""
    return any(isinstance(rule.bindings[i].expression, Const) for i in faults(rule).named())


class _Sources(Struct, frozen=True):
    """Where a rule's facts come from. `alone`: as if there were no other rule.

    This depends on the rule alone, so that a snapshot fits whichever other rules there are.
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


def _narrowed(conjunct: Conjunct) -> Conjunct:
    """The conjunct with the parts of ON that bound a candidate's age moved into the window."""
    window, position = conjunct.window, conjunct.position
    if conjunct.on is None or position.of_head or not isinstance(window, Within):
        return conjunct
    rest: list[Expression] = []
    width = window.duration
    for part in parts(conjunct.on):
        most = reach(part, position.name, window.reference)
        if most is None:
            rest.append(part)
        else:
            width = min(width, most)
    return replace(conjunct, window=replace(window, duration=width), on=conjunction(rest))


def _plan_step(rule: Rule, conjunct: Conjunct, source: _Sources, depth: Time) -> PlanStep:
    conjunct = _narrowed(conjunct)
    position = conjunct.position
    own, trigger = position.name, rule.trigger.name
    variables = {name: number for number, name in enumerate(position.variables)}
    keys, tests, residual = _split(conjunct.on, own, of_head=position.of_head)
    size = source.threshold(position.stream)
    filters = [as_own(test, own, variables) for test in tests]
    itself = _itself(conjunct, {p.name: p.stream for p in rule.positions})
    strict, newest = _ends_at_trigger(conjunct, trigger)
    consumed = own in rule.consuming
    operator = DETECTED[conjunct.operator]
    content: Content = FactLog(held=position.of_head)
    if newest and not (residual or itself is not None or consumed):
        content = operator.content(conjunct, variables)
    shared: Threshold | None = None
    held = isinstance(content, FactLog | RunningTotal) and content.held  # intervals are not measured
    shares = None if held else operator.shares(conjunct, content, bool(residual))
    if not source.alone and shares is not None:
        shared, size = size, None
        if shared is None:
            shared = next((t for test in filters if (t := threshold_of(test)) is not None), None)
            filters = [test for test in filters if shared is None or threshold_of(test) != shared]
        if shared is not None:
            content = shares(shared.measure)
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
    on: Expression | None, own: str, of_head: bool
) -> tuple[list[tuple[Expression, Expression]], list[Expression], list[Expression]]:
    """(equations that index, parts about the candidate alone, the rest). `of_head`: facts of a head are kept
    as intervals, without their times.
    """
    keys: list[tuple[Expression, Expression]] = []
    filters: list[Expression] = []
    residual: list[Expression] = []
    for part in parts(on):
        key = equality(part, own)
        if of_head and looks_at_time(part, own):
            residual.append(part)
        elif names(part) <= {own} and not makes_text(part):
            filters.append(part)
        elif key is not None:
            keys.append(key)
        else:
            residual.append(part)
    return keys, filters, residual


def _itself(conjunct: Conjunct, streams: Mapping[str, str]) -> str | None:
    """The reference whose own fact is not a candidate: under FROM, except for aggregates."""
    if DETECTED[conjunct.operator].counts_reference:
        return None
    match conjunct.window:
        case Within(reference=reference, before=False):
            return reference if streams.get(reference) == conjunct.position.stream else None
        case Within() | Between():
            return None
        case _:
            assert_never(conjunct.window)


def _ends_at_trigger(conjunct: Conjunct, trigger: str) -> tuple[bool, bool]:
    """(the window excludes the trigger's own instant, it reaches up to the trigger)."""
    match conjunct.window:
        case Within(reference=reference, before=before):
            return before, reference == trigger
        case Between(end=end):
            return True, end == trigger
        case _:
            assert_never(conjunct.window)


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
    first = plan.threshold and plan.threshold.measure
    bindings = tuple(None if isinstance(b.expression, Const) else plain(b.expression) for b in rule.bindings)
    return plan.begins, plan.occasions, plan.epoch, first, steps, plain(rule.where), bindings, faults(rule)


def beginning(plan: RulePlan) -> Hashable:
    """What rules in one function share beside their trigger: their first steps. None if there is nothing to
    share.
    """
    if plan.alone or not plan.steps:
        return None
    first = plan.threshold and (plan.threshold.measure, plan.threshold.limit)
    return plan.begins, plan.occasions, plan.epoch, first, Numbered(plan).step(plan.steps[0])


class Numbered:
    """Parts of a rule with positions by number, so that rules with other names compare equal."""

    def __init__(self, plan: RulePlan) -> None:
        rule = plan.rule
        self._names = {rule.triggering.name: "", rule.trigger.name: "0"}
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
            tuple(sorted(map(conjunct.position.variables.index, conjunct.per)))
            if isinstance(conjunct, Choose)
            else (),
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
