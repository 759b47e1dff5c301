"""Streams, columns and groups of rules, wired together: what fills and what wakes what.

Place:   detector.py drives it instant by instant; state.py reads and fills its columns.
Method:  a stream knows the columns its facts fill and the bundles they trigger. A bundle is one function for
         groups of rules with a common beginning that need the same columns. It is awake while every column it
         must choose from is not empty: rules that cannot match are not evaluated. Columns are swept when
         their oldest possible fact is out of reach, from a heap by due time.
         When the work of a group of rules exceeds the budget of one, each rule is evaluated alone, as if
         nothing were shared, to decide whether a trigger fact takes it too much work. It is planned without
         thresholds that others share, and its columns are filled with what the group's columns hold for it,
         as from a snapshot (state.py). Its cost is then the same wherever it is deployed, and only that cost
         decides. A group never costs less than each of its rules alone (scope.py), so a group within the
         budget needs no such check.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import Exhausted
from dotr.detect.analysis import (
    Occasion,
    classes,
    evaluation_order,
    occasions_seen,
    rhythms_in_order,
    trigger_keys,
)
from dotr.detect.code import Exceeded, Run, SharedRules, compile_rules, ranged
from dotr.detect.columns import Column, open_column
from dotr.detect.digest import FormerColumn
from dotr.detect.plan import RulePlan, beginning, groups, plan_rule, without_needless_sharing
from dotr.detect.plan_step import ColumnSpec, MonotonicStack, PlanStep, Ranked, RankedTotal
from dotr.detect.scope import StageCounts
from dotr.detect.thresholds import CARRIED, Filtered
from dotr.events import Clock, Fact, RawMatch, Time
from dotr.program.names import Passed, RefusedTrigger, overworked
from dotr.program.positions import Position
from dotr.program.program import Program
from dotr.program.rules import After, Choose, Delay, Rhythm, Tick
from dotr.program.sequences import RowPattern

if TYPE_CHECKING:
    from dotr.detect.sequences.sequence import SequenceRun


def run_alone(
    plan: RulePlan,
    columns: Sequence[Column[Any]],
    clock: Clock,
    filtered: Mapping[str, Filtered],
    *,
    budget: int,
    drop: Callable[..., None],
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
    past = FormerColumn(0, own, None)
    made = open_column(step.column, clock, lambda _: None)
    made.retention = column.retention
    made.load([past.facts(column.dump(), step.column)])
    return made


NEVER: Time = 2**127
"""Later than every time."""


@dataclass(slots=True, eq=False)
class RuleGroup:
    """Owns the run-time state of rules of one shape, answered together; most groups are one rule."""

    plans: list[RulePlan]
    columns: list[Column[Any]]
    stages: StageCounts = field(init=False)

    def __post_init__(self) -> None:
        many = len(self.plans)
        self.stages = StageCounts(many, ranged=ranged(self.plans))
        if self.plans[0].threshold is not None:
            self.stages.triggers = [0] * (many + 1)

    @property
    def shares(self) -> bool:
        """Whether it reads more than one of its rules would read alone."""
        contents = [column.spec.content for column in self.columns]
        return len(self.plans) > 1 or any(
            isinstance(c, MonotonicStack | Ranked | RankedTotal) for c in contents
        )


class RuleBundle(Struct, eq=False):
    """Owns the function of groups with a common beginning that wake together; most bundles are one group.

    `rank`: the place in dependency order. `missing`: how many of its needed columns are empty. `referred`:
    its only rule's composites are facts of other rules. `asleep`: counts its trigger facts while it sleeps,
    if nothing else does.
    """

    groups: list[RuleGroup]
    rank: float
    occasions: frozenset[Occasion]
    referred: bool
    missing: int = 0
    run: Run | None = None
    asleep: RuleBundle | None = None

    @property
    def plan(self) -> RulePlan:
        """One of its rules: all have one trigger."""
        return self.groups[0].plans[0]

    @property
    def counted(self) -> bool:
        """Whether the matches of its only rule are counted, not listed."""
        return bool(self.groups) and self.plan.counted is not None

    @property
    def name(self) -> str:
        """The name of its only rule, if it has one."""
        return self.plan.rule.name


class SequenceBundle(RuleBundle, eq=False):
    """Owns a sequence, and the rows of an instant that wait for its turn. It is on the agenda behind its
    sources, which have bundles of their own: they run right before it, in the order of OF.
    """

    sequence: SequenceRun | None = None
    sources: list[tuple[int, str, int | None]] = []
    """(its number, stream, what facts must pass if it is a base)."""
    rows: list[tuple[int, Sequence[Fact]]] = []

    @property
    def name(self) -> str:
        assert self.sequence is not None, "its network made it"
        return self.sequence.rule.name

    def due(self, time: Time) -> bool:
        """Whether it has a match at a time, if no row comes."""
        assert self.sequence is not None, "its network made it"
        return self.sequence.next(time + 1) == time


MANY = 256
"""The limit of groups in one function: it is compiled when one of them first wakes."""


class StreamWiring(Struct, eq=False):
    """What a stream's facts do: fill columns now, or at the instant's end, and trigger groups.

    `awake`: (rank, bundle) in order of rank. `triggers`: whether any bundle has it as trigger.
    """

    fills: list[Column[Any]] = []
    defers: list[Column[Any]] = []
    triggers: bool = False
    awake: list[tuple[float, RuleBundle]] = []


class Late(Struct, eq=False):
    """The ticks of AFTERs of one duration over one column of awaited facts. `delays`: for occasions, of all
    streams that the column stands for.
    """

    duration: Time
    column: Column[Any]
    wiring: StreamWiring
    delays: list[Delay] = []

    def facts(self, time: Time) -> Sequence[Fact]:
        """The facts whose tick is at `time`, in canonical order. O(log(facts kept))."""
        log, when = self._log(), time - self.duration
        first = bisect_left(log, (when,))
        return log[first : bisect_left(log, (when + 1,), first)] if first < len(log) else ()

    def next(self, after: Time) -> Time | None:
        """The earliest tick > `after`."""
        log = self._log()
        first = bisect_left(log, (after + 1 - self.duration,))
        return log[first][0] + self.duration if first < len(log) else None

    def _log(self) -> list[Fact]:
        found: list[Fact] = next((log for _, log in self.column.index.items()), [])
        return found


class Options(Struct, frozen=True):
    """Settings of a detector; see TeslaDetector. `spent`: its item adds up the units of all trigger facts.
    `listed`: somebody wants to see every event.
    """

    clock: Clock
    budget: int
    on_refused: RefusedTrigger
    same: Mapping[str, str]
    filtered: Mapping[str, Filtered]
    spent: list[int] | None = None
    listed: bool = False


class Network:
    """Owns the streams, columns and groups of a program whose rules were deployed at `epochs`.

    `now` is the time of the instant being processed. `columns_of`: the columns of each rule's conjuncts.
    """

    def __init__(self, program: Program, options: Options, epochs: Sequence[int], now: Time | None) -> None:
        self.now = now
        self.epochs = tuple(epochs)
        bases = {name: by.base for name, by in options.filtered.items()}
        of_queries = [bases.get(name, options.same.get(name, name)) for name in program.queries]
        self.queries = tuple(dict.fromkeys(of_queries))  # the streams under which their facts arrive
        self.streams: dict[str, StreamWiring] = {}
        self.columns: dict[ColumnSpec, Column[Any]] = {}
        self.columns_of: list[list[Column[Any]]] = [[] for _ in program.rules]
        self.dropped = [0] * len(program.rules)
        # streams whose facts are counted as they are found: not what holds (timeline.py), nor where something
        # lasts, since facts then also come without a graph, and count for the rules that see them
        self._counted = () if program.lasting else program.queries
        self.connected: list[RuleGroup] = []
        self.sweep_at = NEVER
        self.options = options
        self._sweeps: list[tuple[Time, int, Column[Any]]] = []
        self._numbers: dict[Column[Any], int] = {}
        self._users: dict[Column[Any], list[RuleBundle]] = {}
        rhythms = {r.trigger.rhythm for r in program.rules if isinstance(r.trigger, Tick)}
        self.clocks: dict[Rhythm, StreamWiring] = {
            rhythm: StreamWiring() for rhythm in rhythms_in_order(rhythms)
        }
        self.late: dict[tuple[Time, ColumnSpec], Late] = {}
        self.sequences: dict[int, SequenceBundle] = {}  # by the number of their rule
        order = evaluation_order(program)
        self.plans = self._plan(program, order)
        self.groups = groups([p for p in self.plans if not isinstance(p.rule.trigger, RowPattern)])
        self.chains = any(p.within_instant for rule in program.rules for p in rule.positions)
        ranks = {index: rank for rank, index in enumerate(order)}
        bundles: dict[Hashable, list[RuleGroup]] = {}
        for number, plans in enumerate(self.groups):
            group = self._group(plans)
            alike = self._alike(group)
            key: Hashable = number if alike is None else alike
            if len(bundles.get(key, ())) == MANY:
                bundles[number] = bundles.pop(key)
            bundles.setdefault(key, []).append(group)
        for of_bundle in bundles.values():
            self._connect(of_bundle, min(ranks[p.index] for group in of_bundle for p in group.plans))
        for plan in self.plans:
            if isinstance(plan.rule.trigger, RowPattern):
                self._sequence(plan, plan.rule.trigger, ranks[plan.index])

    def _plan(self, program: Program, order: Sequence[int]) -> list[RulePlan]:
        occasions = occasions_seen(program)
        referred = {p.stream for rule in program.rules for p in rule.positions if p.chained}
        referred.update(program.lars.reads)
        options = self.options
        plans = [
            plan_rule(
                index,
                rule,
                occasions[index],
                epoch=self.epochs[index],
                same=options.same,
                filtered=options.filtered,
                referred=rule.name in referred,
            )
            for index, rule in enumerate(program.rules)
        ]
        plans = without_needless_sharing(plans)
        if options.listed or not any(rule.private for rule in program.rules):
            return plans
        from dotr.detect.counting import countable  # noqa: PLC0415  # start-up: few have a private rule

        counted = countable(program, plans)
        return [replace(p, counted=counted[p.index]) if p.index in counted else p for p in plans]

    def _group(self, plans: list[RulePlan]) -> RuleGroup:
        """Make a group of planned rules and its columns, and connect them to streams."""
        plan = plans[0]
        columns = [self._column(step.column) for step in plan.steps]
        for other in plans:
            self.columns_of[other.index] = columns
            for step, column in zip(other.steps, columns, strict=True):
                column.retention = max(column.retention, step.retention)
                if step.threshold is not None:
                    column.share(step.threshold)
        group = RuleGroup(plans, columns)
        self.connected.append(group)
        for other in plans:
            self._await(other)
        trigger = plan.rule.trigger
        if isinstance(trigger, After) or (
            isinstance(trigger, Position) and not trigger.chained and trigger.stream not in self._counted
        ):
            group.stages.triggers = [0] * (len(plans) + 1)
        return group

    def _await(self, plan: RulePlan) -> None:
        """Keep the facts that the rule's AFTER follows."""
        trigger = plan.rule.trigger
        if plan.awaited is None or not isinstance(trigger, After):
            return
        column = self._column(plan.awaited)
        column.retention = max(column.retention, trigger.duration)
        key = trigger.duration, plan.awaited
        late = self.late.setdefault(key, Late(trigger.duration, column, StreamWiring()))
        if trigger.delay not in late.delays:
            late.delays.append(trigger.delay)

    def awaited(self, plan: RulePlan) -> Column[Any] | None:
        """The column of the facts that the rule's AFTER follows."""
        return None if plan.awaited is None else self.columns[plan.awaited]

    def _alike(self, group: RuleGroup) -> Hashable:
        """What groups of one bundle have in common; None if a group shares with no other."""
        plan = group.plans[0]
        begins = beginning(plan)
        if begins is None:
            return None
        limits = tuple(plan.limits for plan in group.plans) if group.stages.ranged else None
        return begins, frozenset(map(id, self._needed(group))), limits, group.stages.triggers is None

    def _needed(self, group: RuleGroup) -> list[Column[Any]]:
        """The columns that must not be empty for it to match. Those over rules may fill between its waking
        and its turn, so they do not keep it asleep.
        """
        steps = zip(group.plans[0].steps, group.columns, strict=True)
        return list(
            dict.fromkeys(
                column
                for step, column in steps
                if isinstance(c := step.conjunct, Choose) and not c.optional and not column.spec.chained
            )
        )

    def _connect(self, groups: list[RuleGroup], rank: int) -> None:
        """Make a bundle of groups, asleep until the columns that it needs have facts."""
        plan = groups[0].plans[0]
        own = self._stream(plan.rule.name) if plan.referred else None
        bundle = RuleBundle(groups, rank, plan.occasions, own is not None)
        triggers = groups[0].stages.triggers
        if triggers is not None:
            triggers = [0] * (1 + max(len(group.plans) for group in groups))
            for group in groups:
                group.stages.triggers = triggers
        self._trigger(bundle).triggers = True
        needed = self._needed(groups[0])
        bundle.missing = len(needed)
        for column in needed:
            self._users[column].append(bundle)
        if not needed:
            self._wake(bundle)
        elif triggers is not None:
            bundle.asleep = RuleBundle(groups, rank, plan.occasions, referred=False)
            bundle.asleep.run = _counting(groups[0].plans, triggers)
            insort(self._trigger(bundle).awake, (rank, bundle.asleep))

    def _sequence(self, plan: RulePlan, pattern: RowPattern, rank: int) -> None:
        """Make a sequence, and what its sources wake."""
        from dotr.detect.sequences.sequence import SequenceRun  # noqa: PLC0415  # start-up: few have one

        options, rule = self.options, plan.rule

        def exceeded(fact: Fact, exhausted: Exhausted) -> None:
            error = overworked(rule, fact, exhausted, options.clock, options.budget)
            options.on_refused(plan.index, fact, error)

        self._stream(rule.name)
        sequence = SequenceRun(plan.index, rule, options.clock, options.budget, exceeded)
        rows: list[tuple[int, Sequence[Fact]]] = []

        def run(time: Time, _: Sequence[Fact], out: list[RawMatch]) -> None:
            out += sequence.run(time, rows)
            rows.clear()

        bundle = SequenceBundle([], rank + 0.5, plan.occasions, True, 0, run, None, sequence, [], rows)
        self.sequences[plan.index] = bundle
        for number, source in enumerate(pattern.sources):
            by = options.filtered.get(source.stream)
            base = by.base if by is not None else options.same.get(source.stream, source.stream)
            least = None if by is None else by.threshold.least
            bundle.sources.append((number, base, least))
            taking = RuleBundle([], rank + number / (2 * len(pattern.sources)), plan.occasions, False)
            taking.run = _taking(number, least, rows)
            stream = self._stream(base)
            stream.triggers = True
            stream.awake += [(taking.rank, taking), (bundle.rank, bundle)]
            stream.awake.sort(key=_RANK)

    def _column(self, spec: ColumnSpec) -> Column[Any]:
        column = self.columns.get(spec)
        if column is None:
            column = self.columns[spec] = open_column(spec, self.options.clock, self._filled)
            self._numbers[column] = len(self._numbers)
            self._users[column] = []
            stream = self._stream(spec.stream)
            (stream.defers if spec.deferred else stream.fills).append(column)
        return column

    def _stream(self, name: str) -> StreamWiring:
        return self.streams.setdefault(name, StreamWiring())

    def _trigger(self, bundle: RuleBundle) -> StreamWiring:
        trigger = bundle.plan.rule.trigger
        if isinstance(trigger, Tick):
            return self.clocks[trigger.rhythm]
        if isinstance(trigger, After) and bundle.plan.awaited is not None:
            return self.late[trigger.duration, bundle.plan.awaited].wiring
        return self._stream(bundle.plan.stream)

    def compile(self, bundle: RuleBundle) -> Run:
        """Make the bundle's function, when it first runs."""
        options = self.options
        together = len(bundle.groups) > 1
        shapes = [
            SharedRules(
                group.plans,
                group.columns,
                self._apart(group)
                if together or group.shares
                else self._refusal(group.plans[0], group.columns),
                group.stages,
            )
            for group in bundle.groups
        ]
        bundle.run = compile_rules(
            shapes, options.clock, budget=options.budget, drop=self._drop, spent=options.spent
        )
        return bundle.run

    def passed(self) -> dict[str, Passed]:
        """Rule → the number of partial matches after each of its steps."""
        found = {
            plan.rule.name: group.stages.of(number)
            for group in self.connected
            for number, plan in enumerate(group.plans)
        }
        return {
            **found,
            **{one.name: one.sequence.passed() for one in self.sequences.values() if one.sequence},
        }

    def forget_passed(self) -> None:
        """Count from 0 again."""
        for group in self.connected:
            group.stages.forget()
        for one in self.sequences.values():
            if one.sequence is not None:
                one.sequence.forget_passed()

    def _refusal(self, plan: RulePlan, columns: Sequence[Column[Any]]) -> Exceeded:
        """The handler of a trigger fact that takes a rule too much work.

        It does nothing if a position had no fact to choose: then the rule might as well have been asleep.
        """
        options = self.options
        carried = trigger_keys(plan.rule)

        def could_choose(fact: Fact) -> bool:
            return all(
                column.reaches(
                    fact[0] + plan.rule.delay - step.retention, classes(carried, step.conjunct.position, fact)
                )
                for column, step in zip(columns, plan.steps, strict=True)
                if isinstance(c := step.conjunct, Choose) and not c.optional and not c.position.within_instant
            )

        def refuse(
            time: Time, fact: Fact, exhausted: Exhausted, out: list[RawMatch], lo: int, hi: int
        ) -> None:
            if could_choose(fact):
                error = overworked(plan.rule, fact, exhausted, options.clock, options.budget)
                options.on_refused(plan.index, fact, error)

        return refuse

    def _apart(self, group: RuleGroup) -> Exceeded:
        """The handler of a trigger fact that takes a group too much work: each rule is tried alone."""
        options = self.options
        runs: dict[int, Run] = {}
        at: list[Time] = []

        def apart(
            time: Time, fact: Fact, exhausted: Exhausted, out: list[RawMatch], lo: int, hi: int
        ) -> None:
            if at != [time]:  # the columns have changed since
                at[:] = [time]
                runs.clear()
            for number in range(lo, hi):
                if number not in runs:
                    runs[number] = run_alone(
                        group.plans[number],
                        group.columns,
                        options.clock,
                        options.filtered,
                        budget=options.budget,
                        drop=self._drop,
                        exceeded=self._refusal,
                    )
                runs[number](time, [fact], out)

        return apart

    def _drop(self, rules: Sequence[int], many: int = 1) -> None:
        for rule in rules:
            self.dropped[rule] += many

    # ------------------------------------------------------------------ waking and sweeping

    def _wake(self, bundle: RuleBundle) -> None:
        awake = self._trigger(bundle).awake
        if bundle.asleep is not None:
            awake.remove((bundle.rank, bundle.asleep))
        insort(awake, (bundle.rank, bundle))

    def _filled(self, column: Column[Any]) -> None:
        """A column gets its first fact: wake bundles that waited only for it, and schedule a sweep."""
        for bundle in self._users[column]:
            bundle.missing -= 1
            if not bundle.missing:
                self._wake(bundle)
        self._schedule(column, self.now or 0)

    def _schedule(self, column: Column[Any], now: Time) -> None:
        """A column was swept, or got its first fact: sweep it when that may be out of reach."""
        heappush(self._sweeps, (now + column.retention + 1, self._numbers[column], column))
        self.sweep_at = self._sweeps[0][0]

    def sweep(self, now: Time) -> None:
        """Sweep the columns whose oldest facts may be out of reach; rules whose columns are empty sleep."""
        while self._sweeps and self._sweeps[0][0] <= now:
            column = heappop(self._sweeps)[2]
            column.sweep(now)
            if len(column.index):
                self._schedule(column, now)
            else:
                self._emptied(column)
        self.sweep_at = self._sweeps[0][0] if self._sweeps else NEVER

    def sweep_all(self) -> None:
        """Sweep every column, due or not: what remains can still be read."""
        if self.now is not None:
            for column in self.columns.values():
                column.sweep(self.now)

    def _emptied(self, column: Column[Any]) -> None:
        column.filled = False
        for bundle in self._users[column]:
            if not bundle.missing:
                awake = self._trigger(bundle).awake
                awake.remove((bundle.rank, bundle))
                if bundle.asleep is not None:
                    insort(awake, (bundle.rank, bundle.asleep))
            bundle.missing += 1


def _taking(number: int, least: int | None, rows: list[tuple[int, Sequence[Fact]]]) -> Run:
    """Keep the facts of a source for the turn of its sequence. `least`: of facts of a base, what passes."""

    def run(_time: Time, facts: Sequence[Fact], _out: list[RawMatch]) -> None:
        if least is not None:
            facts = [fact[:4] for fact in facts if fact[4] >= least]  # type: ignore[misc]  # of a base
        rows.append((number, facts))

    return run


_RANK = itemgetter(0)


def _counting(plans: Sequence[RulePlan], triggers: list[int]) -> Run:
    """Count how many facts of a stream are trigger facts of the members of a group."""
    threshold = plans[0].threshold
    if threshold is None:
        return lambda _time, facts, _out: triggers.__setitem__(-1, triggers[-1] + len(facts))
    assert threshold.measure.place == CARRIED
    cut = bisect_right if threshold.measure.inclusive else bisect_left
    if not ranged(plans):
        least = threshold.least
        return lambda _time, facts, _out: triggers.__setitem__(
            -1,
            triggers[-1] + sum([fact[4] >= least for fact in facts]),  # type: ignore[misc]  # of a base
        )
    limits = [plan.threshold.limit for plan in plans if plan.threshold is not None]

    def run(_time: Time, facts: Sequence[Fact], _out: list[RawMatch]) -> None:
        for fact in facts:
            triggers[cut(limits, fact[4])] += 1  # type: ignore[misc]  # facts of a base carry their size

    return run
