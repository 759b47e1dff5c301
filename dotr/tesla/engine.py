"""The TESLA engine: facts of an instant in, matches out, in output order.

Place:   step 3 of the pipeline (detect.py); same interface as the literal oracle beside it.
Method:  streams know the columns they fill and the rules they wake; a rule is awake only while every column
         it must choose from has something, so rules that cannot match cost nothing. An instant: fill the
         columns, run what woke in dependency order (composites of chained rules fill and wake in turn), then
         fill the deferred columns. Rules are compiled when they first run.
Why not: partial matches carried from event to event (an automaton's runs): TESLA chooses backwards from the
         trigger, so nothing need be built before it comes.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, TypeAlias

from dotr.errors import DataError, Diagnostic, EngineError
from dotr.events import Clock, Fact, Match, RawMatch, Time
from dotr.ir.program import Program
from dotr.ir.rules import Choose, Every, Rule
from dotr.rdf.order import values_key
from dotr.rdf.terms import Term
from dotr.tesla.columns import Column, open_column
from dotr.tesla.compile import Run, compile_rule
from dotr.tesla.digest import rule_digests
from dotr.tesla.identity import match_hash
from dotr.tesla.plan import ColumnSpec, RulePlan, plan_rule
from dotr.tesla.references import evaluation_order, next_tick, ticks_seen

NEVER: Time = 2**127
"""Later than every time."""

MATCH_LIMIT = 1_000_000
"""Matches of one rule at one instant that are an explosion."""

VERSION = 1
"""Of snapshots. A change of what columns hold, or of how rules are planned, is a new one."""

_RANK = itemgetter(0)
_RULE = itemgetter(0)


@dataclass(slots=True, eq=False)
class _RuleState:
    """Owns what one rule is at run time. `rank`: its place in dependency order. `missing`: empty columns."""

    plan: RulePlan
    rank: int
    ticks: frozenset[Time]
    epoch: int
    columns: list[Column[Any]] = field(default_factory=list)
    missing: int = 0
    dropped: int = 0
    run: Run | None = None
    referred: bool = False

    def drop(self) -> None:
        self.dropped += 1


_Pending: TypeAlias = tuple[Callable[[Sequence[Fact]], None], Sequence[Fact]]
_Woken: TypeAlias = tuple[int, _RuleState, Sequence[Fact]]


@dataclass(slots=True, eq=False)
class _Stream:
    """What a stream's facts do: fill columns now, fill columns at the instant's end, wake rules."""

    fills: list[Callable[[Sequence[Fact]], None]] = field(default_factory=list)
    defers: list[Callable[[Sequence[Fact]], None]] = field(default_factory=list)
    columns: list[Column[Any]] = field(default_factory=list)
    triggers: bool = False
    awake: list[tuple[int, _RuleState]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Restored:
    """What a snapshot gave: rules that kept their state, rules that start empty, rules no longer there."""

    kept: tuple[str, ...]
    empty: tuple[str, ...]
    gone: tuple[str, ...]


class TeslaDetector:
    """Owns the columns of a program's rules and the time.

    `limit`: matches of one rule at one instant beyond which ProgramError D4001 is raised; the detector is
    then in no state to go on from. `same`: streams that always have the facts of another (equal queries) →
    that other, under which alone `at` is given them. `digests`: what each rule's state belongs to, where the
    caller knows better than digest.py.
    """

    def __init__(
        self,
        program: Program,
        clock: Clock,
        *,
        limit: int = MATCH_LIMIT,
        same: Mapping[str, str] | None = None,
        digests: Sequence[str] | None = None,
    ) -> None:
        self.program = program
        self._clock = clock
        self._limit = limit
        self._same = dict(same or {})
        self._digests = None if digests is None else tuple(digests)
        self._first: Time | None = None
        self._now: Time | None = None
        self._order = evaluation_order(program)
        self._ticks_seen = ticks_seen(program)
        referred = {p.stream for rule in program.rules for p in rule.positions if p.chained}
        self._referred = [rule.name in referred for rule in program.rules]
        self._reorders = self._order != tuple(range(len(program.rules)))
        self._every = sorted({r.trigger.duration for r in program.rules if isinstance(r.trigger, Every)})
        self._plain = not self._every and not any(self._referred) and not self._reorders
        self._build([0] * len(program.rules))

    # ------------------------------------------------------------------ structure

    def _build(self, epochs: Sequence[int]) -> None:
        """Empty columns and rule states for rules deployed at `epochs`."""
        self._streams: dict[str, _Stream] = {}
        self._clocks: dict[Time, _Stream] = {duration: _Stream() for duration in self._every}
        self._columns: dict[ColumnSpec, Column[Any]] = {}
        self._users: dict[Column[Any], list[_RuleState]] = {}
        self._sweeps: list[tuple[Time, int, Column[Any]]] = []
        self._sweep_at = NEVER
        self._numbers: dict[Column[Any], int] = {}
        self._rules: list[_RuleState] = []
        ranks = {index: rank for rank, index in enumerate(self._order)}
        for index, rule in enumerate(self.program.rules):
            ticks = self._ticks_seen[index]
            plan = plan_rule(index, rule, ticks, epoch=epochs[index], same=self._same)
            state = _RuleState(plan, ranks[index], ticks, epochs[index], referred=self._referred[index])
            self._rules.append(state)
            self._trigger(rule).triggers = True
            for step in plan.steps:
                column = self._column(step.column)
                column.retention = max(column.retention, step.retention)
                state.columns.append(column)
            needed = self._needed(state)
            state.missing = len(needed)
            for column in needed:
                self._users[column].append(state)
            if state.referred:
                self._stream(rule.name)
            if not needed:
                self._wake(state)

    def _column(self, spec: ColumnSpec) -> Column[Any]:
        column = self._columns.get(spec)
        if column is None:
            column = self._columns[spec] = open_column(spec, self._clock, self._filled)
            self._numbers[column] = len(self._numbers)
            self._users[column] = []
            stream = self._stream(spec.stream)
            (stream.defers if spec.deferred else stream.fills).append(column.insert)
            stream.columns.append(column)
        return column

    def _stream(self, name: str) -> _Stream:
        return self._streams.setdefault(name, _Stream())

    @staticmethod
    def _needed(state: _RuleState) -> list[Column[Any]]:
        """The columns that must have something before the rule runs; those of rules may fill in between."""
        steps = zip(state.plan.steps, state.columns, strict=True)
        chosen = [column for step, column in steps if isinstance(step.conjunct, Choose)]
        return [column for column in dict.fromkeys(chosen) if not column.spec.chained]

    def _trigger(self, rule: Rule) -> _Stream:
        if isinstance(rule.trigger, Every):
            return self._clocks[rule.trigger.duration]
        return self._stream(self._same.get(rule.trigger.stream, rule.trigger.stream))

    def _wake(self, state: _RuleState) -> None:
        insort(self._trigger(state.plan.rule).awake, (state.rank, state))

    def _filled(self, column: Column[Any]) -> None:
        """A column has its first fact: rules that waited for it alone are awake, and a sweep is due."""
        for state in self._users[column]:
            state.missing -= 1
            if not state.missing:
                self._wake(state)
        now = self._now if self._now is not None else 0
        self._schedule(column, now)

    def _schedule(self, column: Column[Any], now: Time) -> None:
        heappush(self._sweeps, (now + column.retention + 1, self._numbers[column], column))
        self._sweep_at = self._sweeps[0][0]

    def _sweep(self, now: Time) -> None:
        """Sweep the columns whose oldest facts have gone out of reach, once per retention."""
        while self._sweeps and self._sweeps[0][0] <= now:
            _, _, column = heappop(self._sweeps)
            column.sweep(now)
            if len(column.index):
                self._schedule(column, now)
            else:
                self._emptied(column)
        self._sweep_at = self._sweeps[0][0] if self._sweeps else NEVER

    def _emptied(self, column: Column[Any]) -> None:
        column.filled = False
        for state in self._users[column]:
            if not state.missing:
                self._trigger(state.plan.rule).awake.remove((state.rank, state))
            state.missing += 1

    # ------------------------------------------------------------------ an instant

    def at(self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool = True) -> list[Match]:
        """The matches at `time`, in output order; times strictly increase from call to call.

        `facts`: stream → its facts of this instant in canonical order; streams without facts may be left
        out. `graph` False: only a tick is due, and only rules that see it are touched.
        Raises DataError D4002 when time does not increase, ProgramError D4001 when a rule explodes.
        Cost: the facts, the rules they wake, and the matches; nothing per rule or stream that has none.
        """
        return [Match(*raw) for raw in self.detect(time, facts, graph)]

    def detect(self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool = True) -> list[RawMatch]:
        """As `at`, with matches as plain tuples (rule, time, facts, bindings), a third of the price."""
        if self._now is None:
            self._first = time
        elif time <= self._now:
            raise DataError(Diagnostic("D4002", f"time runs backwards: {time} after {self._now}"))
        elif self._every:
            due = next_tick(self._every, self._first, self._now)
            if due is not None and due < time:
                raise AssertionError(f"the tick at {due} was passed over on the way to {time}")
        self._now = time
        if time >= self._sweep_at:
            self._sweep(time)
        if not graph:
            return self._at_tick(time, facts)
        streams = self._streams
        triggers: list[tuple[_Stream, Sequence[Fact]]] = []
        defers: list[tuple[_Stream, Sequence[Fact]]] = []
        for name, new in facts.items():
            if name in streams and new:
                stream = streams[name]
                for fill in stream.fills:
                    fill(new)
                if stream.triggers:
                    triggers.append((stream, new))
                if stream.defers:
                    defers.append((stream, new))
        if self._plain and len(triggers) <= 1:
            out: list[RawMatch] = []
            for stream, new in triggers:
                for _, state in stream.awake:
                    (state.run or self._compile(state))(time, new, out)
            if defers:
                for stream, new in defers:
                    for fill in stream.defers:
                        fill(new)
            return out
        deferred = [(fill, new) for stream, new in defers for fill in stream.defers]
        agenda = [(rank, state, new) for stream, new in triggers for rank, state in stream.awake]
        for duration in self._every:
            if time % duration == 0:
                agenda += self._ticked(time, duration)
        out = self._run(time, agenda, deferred) if agenda else []
        for fill, new in deferred:
            fill(new)
        return out

    def _at_tick(self, time: Time, facts: Mapping[str, Sequence[Fact]]) -> list[RawMatch]:
        """An instant without a graph: whoever does not see one of the due ticks is not touched."""
        due = frozenset(duration for duration in self._every if time % duration == 0)
        agenda: list[_Woken] = []
        deferred: list[_Pending] = []
        known = [(self._streams[name], new) for name, new in facts.items() if name in self._streams and new]
        for stream, new in known:
            for column in stream.columns:
                if not column.spec.ticks.isdisjoint(due):
                    if column.spec.deferred:
                        deferred.append((column.insert, new))
                    else:
                        column.insert(new)
        for stream, new in known:
            agenda += [(rank, state, new) for rank, state in stream.awake if not state.ticks.isdisjoint(due)]
        for duration in sorted(due):
            agenda += self._ticked(time, duration)
        out = self._run(time, agenda, deferred)
        for fill, new in deferred:
            fill(new)
        return out

    def _ticked(self, time: Time, duration: Time) -> list[_Woken]:
        tick: list[Fact] = [(time, (), 0, "")]
        return [(rank, state, tick) for rank, state in self._clocks[duration].awake]

    def _run(self, time: Time, agenda: list[_Woken], deferred: list[_Pending]) -> list[RawMatch]:
        """Run what woke, and what its composites wake, in dependency order; matches in output order."""
        out: list[RawMatch] = []
        agenda.sort(key=_RANK)
        place = 0
        while place < len(agenda):
            _, state, new = agenda[place]
            place += 1
            start = len(out)
            (state.run or self._compile(state))(time, new, out)
            if state.referred and len(out) > start:
                stream = self._streams[state.plan.rule.name]
                composites = _as_facts(state.plan.rule.name, out[start:])
                for fill in stream.fills:
                    fill(composites)
                deferred += [(fill, composites) for fill in stream.defers]
                for rank, woken in stream.awake:
                    insort(agenda, (rank, woken, composites), lo=place, key=_RANK)
        if self._reorders:
            out.sort(key=_RULE)
        return out

    def _compile(self, state: _RuleState) -> Run:
        state.run = compile_rule(state.plan, state.columns, self._clock, limit=self._limit, drop=state.drop)
        return state.run

    def next_tick(self, after: Time) -> Time | None:
        """The earliest due tick > `after`; None without EVERY rules or before the first instant."""
        return next_tick(self._every, self._first, after)

    # ------------------------------------------------------------------ what it holds

    @property
    def dropped(self) -> int:
        """Matches that had no graph: a literal as subject, or no IRI as predicate."""
        return sum(state.dropped for state in self._rules)

    def sizes(self) -> dict[str, int]:
        """Rule → how many facts are remembered for it; a column that rules share counts for each of them."""
        if self._now is not None:
            self._sweep_all(self._now)
        size = {column: column.size() for column in self._columns.values()}
        return {
            state.plan.rule.name: sum(size[column] for column in dict.fromkeys(state.columns))
            for state in self._rules
        }

    def describe(self) -> dict[str, list[str]]:
        """Rule → its plan, one line per position."""
        return {state.plan.rule.name: state.plan.describe() for state in self._rules}

    def _sweep_all(self, now: Time) -> None:
        for column in self._columns.values():
            if column.filled:
                column.sweep(now)

    def snapshot(self) -> dict[str, Any]:
        """Everything the future depends on, as a value that JSON can hold, one part per rule digest.

        Rules that share a column refer to it by number. Shares nothing with the live state.
        """
        if self._now is not None:
            self._sweep_all(self._now)
        number = {column: i for i, column in enumerate(self._columns.values())}
        digests = self._rule_digests()
        rules = {
            digests[index]: {
                "rule": state.plan.rule.name,
                "epoch": state.epoch,
                "dropped": state.dropped,
                "columns": [number[column] for column in state.columns],
            }
            for index, state in enumerate(self._rules)
        }
        columns = [{"kept": column.retention, "facts": column.dump()} for column in self._columns.values()]
        return {
            "version": VERSION,
            "first": self._first,
            "now": self._now,
            "epochs": 1 + max((state.epoch for state in self._rules), default=0),
            "rules": rules,
            "columns": columns,
        }

    def restore(self, state: Mapping[str, Any]) -> Restored:
        """Take over a snapshot of any program: rules unchanged since keep their state, others start empty.

        Raises EngineError D5010 for a snapshot of a version this detector does not read.
        """
        if state.get("version") != VERSION:
            found = state.get("version")
            raise EngineError(
                Diagnostic(
                    "D5010",
                    f"the detector's state has version {found}, this dotr reads {VERSION}",
                    hint="replay the stream from the start, or use the dotr that wrote it",
                )
            )
        digests, parts = self._rule_digests(), state["rules"]
        self._first, self._now = state["first"], state["now"]
        self._build([parts[d]["epoch"] if d in parts else state["epochs"] for d in digests])
        wanted: dict[Column[Any], int] = {}
        for digest, rule in zip(digests, self._rules, strict=True):
            if digest not in parts:
                continue
            rule.dropped = parts[digest]["dropped"]
            for column, old in zip(rule.columns, parts[digest]["columns"], strict=True):
                best = wanted.get(column)
                if best is None or state["columns"][old]["kept"] > state["columns"][best]["kept"]:
                    wanted[column] = old
        for column, old in wanted.items():
            column.load(state["columns"][old]["facts"])
        names = [rule.name for rule in self.program.rules]
        kept = [name for name, digest in zip(names, digests, strict=True) if digest in parts]
        empty = [name for name, digest in zip(names, digests, strict=True) if digest not in parts]
        gone = [part["rule"] for digest, part in parts.items() if digest not in digests]
        return Restored(tuple(kept), tuple(empty), tuple(name for name in gone if name not in names))

    def _rule_digests(self) -> tuple[str, ...]:
        if self._digests is None:
            self._digests = rule_digests(self.program)
        return self._digests


def _as_facts(rule: str, matches: Iterable[RawMatch]) -> list[Fact]:
    """Chaining: composites with equal WITH values are separate facts, ordinal = output order."""
    counts: dict[tuple[Term, ...], int] = {}
    found: list[Fact] = []
    for _, time, facts, bindings in matches:
        ordinal = counts.get(bindings, 0)
        counts[bindings] = ordinal + 1
        found.append((time, bindings, ordinal, f"urn:dotr:{rule}:{match_hash(time, facts)}"))
    found.sort(key=lambda fact: (values_key(fact[1]), fact[2]))
    return found
