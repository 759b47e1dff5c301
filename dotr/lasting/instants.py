"""What lasts, from instant to instant: which instants occur, each all or nothing, and those in error.

Place:   core/pipeline.py, which closes instants and detects, uses it for a program in which something lasts,
         that asks for changes, or whose messages insert or delete; it replaces enriching and extracting each
         instant by itself. periods.py knows what is stated when; model.py has what follows. Tested against
         reference/lasting.py and, as a second engine, against recomputation after each change.
Method:  language.md, "What lasts". M(t) changes, K(t) is over it, and answers begin and end.
           LastingRun  beside the instants of messages: ticks, ends of periods, and changes of rules, each
             once, in order. An instant is all or nothing: what is stated advances, what follows from it is
             maintained, the queries are evaluated; if any of these fails, everything is as before. An instant
             calls `change` of Maintenance with the change of what is stated, `facts` if a rule sees it, and
             then `keep`; or `abandon` if one of them raised. Then the instant is repeated with the ends of
             periods alone, as if its messages had never come; if that is in error, too, what is stated
             advances (`overlook`) and the instant has no facts.
           Maintenance  M is updated incrementally, standing answers by signed deltas. A change is
             committed when it is stated, and undone when it is abandoned. New rules, a change of schema over
             which rules were instantiated, and the end of most stated triples cause M to be recomputed. While
             M contradicts itself its answers change unseen: the difference is kept for the next consistent M.
           watching  `dotr watch`: the answers of one query, as they begin and end, by a program with DSTREAM
             and ISTREAM of the query, each with a rule, so that answers that end at an instant are reported
             before those that begin (signed answers of a continuous query over a dynamic graph: Gergatsoulis,
             Damigos 2021). Undeclared relations are held until deleted, unless rules have effects: these run,
             and see what they see in a run.
           AnswerPeriods  `dotr watch --periods`: over which maximal periods each answer held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import ANSWER, BUDGET, SLACK, Spending
from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import is_schema, rules_over, stream_schema, while_held
from dotr.errors import DataError, Diagnostic, DotrError, ProgramError, Severity
from dotr.events import (
    Clock,
    Composite,
    Effect,
    Fact,
    GraphOrMessage,
    Instant,
    Message,
    Time,
    Values,
    labelled,
)
from dotr.extract.extractor import MUCH_WORK, wanted
from dotr.extract.operators import Row
from dotr.extract.sharing import facts_of
from dotr.joins.plan import relation_of
from dotr.lasting.effects import (
    DEEPEST,
    LONGEST,
    Pending,
    forms_of,
    loaded,
    next_moment,
    saved,
)
from dotr.lasting.model import MaintainedModel, SchemaChange, lasting_model
from dotr.lasting.periods import Entry, Periods, StatedChange
from dotr.program import (
    Const,
    Fresh,
    Hold,
    LarsProgram,
    Position,
    Program,
    Projection,
    RelationToStream,
    Rule,
    Select,
    StandingQuery,
    TemplateTriple,
    Var,
)
from dotr.program.program import needed, only
from dotr.program.queries import AggregateAtom
from dotr.rdf.terms import RDF_TYPE, TRUE, Triple
from dotr.rdf.values import values_key

if TYPE_CHECKING:
    from dotr.reference.oracle import Oracle


Facts: TypeAlias = dict[str, list[Fact]]
"""Stream → its facts of one instant in canonical order; streams without facts are left out."""

Bags: TypeAlias = Mapping[Select, dict[Row, int]]
"""Standing query → a bag of rows, or of signed changes."""


class _State(NamedTuple):
    """The state to which an open change is undone.

    `model` None: none can be made; then `answers` are those of the last consistent one. `owed`: how the
    answers changed since M was last `consistent`.
    """

    program: Program
    model: MaintainedModel | None
    answers: Bags = MappingProxyType({})
    owed: Bags = MappingProxyType({})
    consistent: bool = True


class Maintenance:
    """Owns M, the least model of the rules over what is stated, the standing answers over it, and how to undo
    the open change. Stated triples that nothing reads are in `periods` alone.

    Times never decrease from call to call. At most one change is open. What is stated is closed when the
    first change is opened; a contradiction in it is not an error here. The periods advance before `change`
    is called, and are undone after the change is.
    """

    def __init__(
        self,
        program: Program,
        periods: Periods,
        clock: Clock,
        materialize_all: bool = False,
        budget: int = BUDGET,
        spending: Spending | None = None,
    ) -> None:
        self._model = partial(lasting_model, clock=clock, materialize_all=materialize_all, budget=budget)
        self._budget, self._spending, self._periods = budget, spending, periods
        self._first = list(periods), periods.ends()
        self._now = self._kept = _State(program, None)
        self._begun = False
        self.findings: list[Diagnostic] = []
        """Warnings about the open change and what `facts` took: D2602. Again for what was reported before."""
        self._closing: int | None = None
        self._undo: Callable[[], None] | None = None

    def change(self, time: Time, stated: StatedChange, program: Program | None = None) -> Facts:
        """Open the change from M(t⁻) to M(t); returns the facts of all ISTREAM and DSTREAM streams that have
        any.

        They are the bag difference between a query's answers and those kept last, ordinals counted within it.
        With `stated` empty, an inconsistent M is still reported. `program`: its rules hold from `time` on,
        and its queries are evaluated, also over M(t⁻) under the earlier rules. Raises DataError or
        ProgramError when M(t) contradicts itself, explodes, or has a schema that makes the rules invalid;
        then nothing is open and the earlier program stays.
        """
        first = not self._begun and self._begin()
        if self.findings:
            self.findings = []
        if program is None and not first and self._now.consistent and not self._matters(stated):
            return {}
        try:
            self._refuse_schema(stated)
            moved = self._go(time, stated, program, check=True)
        except BaseException:
            self.abandon()
            raise
        if self._now.owed or not self._now.consistent:
            self._now = self._now._replace(owed={}, consistent=True)
        return _facts(self._now.program, moved, time)

    def facts(self, time: Time, graph: Sequence[Triple]) -> Facts:
        """The facts of all other streams over K(t), with the open change.

        `graph`: the triples of the instant's graphs, labelled. K(t) is dropped afterwards.
        Raises DotrError as `change` does, and D2601; the change stays open.
        """
        model = self._now.model
        assert model is not None, "a change was opened"
        model.findings = []
        found = model.facts(graph, time)
        if model.findings:
            self.findings = [*self.findings, *model.findings]
        return found

    def state(self, graph: Sequence[Triple]) -> set[Triple]:
        """K(t) with the open change, as far as it is materialised. Raises as `facts` does."""
        assert self._now.model is not None, "a change was opened"
        return {*self._periods, *self._now.model.state(graph)}

    def keep(self) -> None:
        """Commit the open change: the next change is compared with its answers."""
        self._kept, self._undo = self._now, None

    def abandon(self) -> None:
        """Undo the open change, if any."""
        if self._undo is not None:
            self._undo()
        self._now, self._undo = self._kept, None

    def put_aside(self) -> Callable[[], None]:
        """Commit the open change for now: others are opened over it. Returns what undoes it, after these."""
        undo, kept = self._undo, self._kept
        self.keep()

        def back() -> None:
            if undo is not None:
                undo()
            self._now = self._kept = kept

        return back

    def overlook(self, time: Time, stated: StatedChange, program: Program | None = None) -> None:
        """Commit a change without messages for which `change` raised.

        The answers kept last stay, to be compared with the next consistent M; `facts` is not called before
        then.
        """
        self._begin()
        try:
            owed = _sum({}, self._go(time, stated, program, check=False))
            self._now = self._now._replace(owed=owed, consistent=False)
        except DotrError:
            self.abandon()
            self._now = self._without_model(stated, program)
        self.keep()

    def snapshot(self) -> Any:
        """What a new one over what is stated now cannot derive, as a JSON value, or None. Called between
        instants.
        """
        state = self._kept
        if state.consistent or not self._begun:
            return None
        kind, bags = ("owed", state.owed) if state.model is not None else ("answers", state.answers)
        rows = (bags.get(select, _NONE) for select in _standing(state.program))
        return [kind, [[[list(row), n] for row, n in sorted(bag.items(), key=repr)] for bag in rows]]

    def restore(self, state: Any) -> None:
        """Restore a `snapshot` in a new one."""
        self._closing = SLACK * self._budget  # what was maintained step by step is not refused now
        if state is None:
            return
        kind, found = state
        bags = (Counter({tuple(row): n for row, n in bag}) for bag in found)
        by_query = dict(zip(_standing(self._now.program), bags, strict=True))
        if kind == "owed":
            self._begin()
            self._now = self._now._replace(owed=by_query, consistent=False)
        else:
            self._begun = True
            self._now = self._now._replace(answers=by_query, consistent=False)
        self._kept = self._now

    # -- advancing

    def _begin(self) -> bool:
        """Close what is stated at first; returns whether this call did."""
        if self._begun:
            return False
        now = self._now
        stated, ends = self._first
        model = self._model(now.program, stated, ends=ends, spending=self._spending, closing=self._closing)
        self._begun, self._first, self._closing = True, ([], {}), None
        self._now = self._kept = _State(now.program, model)
        return True

    def _matters(self, stated: StatedChange) -> bool:
        """Whether M must process the change."""
        model = self._now.model
        if stated.begun or stated.ended:
            return True
        return bool(stated.moved) and model is not None and model.kept.expires

    def _go(self, time: Time, stated: StatedChange, program: Program | None, *, check: bool) -> _Moved:
        """Advance to M(t); returns how its answers changed since M was last consistent."""
        now, model = self._now, self._now.model
        if program is None and model is not None and not model.mostly_ends(stated.ended):
            try:
                settled = model.change(
                    stated.begun,
                    stated.ended,
                    time,
                    stated.moved,
                    check=(lambda _: model.check()) if check else None,
                )
            except SchemaChange:
                pass
            else:
                self._undo = settled.undo
                return _sum(now.owed, settled.differences) if now.owed else settled.differences
        return self._close_anew(stated, program or now.program, check)

    def _close_anew(self, stated: StatedChange, program: Program, check: bool) -> Bags:
        """Make a new model; compare the answers of both."""
        now = self._now
        after, ends = set(self._periods), self._periods.ends()
        model = self._model(program, after, ends=ends, spending=self._spending, closing=self._closing)
        if check:
            model.check()
            self._look_at_held(program, model, after, stated)
        before = self._before(program, stated)
        self._now = _State(program, model)
        found: dict[Select, Counter[Row]] = {}
        for select in before:
            bag = found[select] = Counter(model.answers(select))
            bag.subtract(before[select])
        return _sum(now.owed if now.model is not None else {}, found)

    def _before(self, program: Program, stated: StatedChange) -> Bags:
        """All answers that a program's queries are compared with: of M(t⁻), or of the last M kept."""
        now, wanted = self._now, _standing(program)
        if now.model is None:
            return {select: now.answers[select] for select in wanted if select in now.answers}
        known = set(_standing(now.program))
        found = {select: now.model.answers(select) for select in wanted if select in known}
        if now.consistent and len(found) < len(wanted):  # the old rules over what the new queries read
            mixed = replace(program, datalog=now.program.datalog, entailment=now.program.entailment)
            before = set(self._periods).difference(stated.begun).union(stated.ended)
            model = self._model(mixed, before)
            found |= {select: model.answers(select) for select in wanted if select not in known}
        return found

    def _without_model(self, stated: StatedChange, program: Program | None) -> _State:
        """Advance what is stated although no model can be made of it."""
        now = self._now
        program = program or now.program
        answers = {}
        for select, bag in self._before(program, stated).items():
            answers[select] = Counter(bag)
            if now.model is not None:
                answers[select].subtract(now.owed.get(select, _NONE))
        return _State(program, None, answers, consistent=False)

    # -- schema

    def _refuse_schema(self, stated: StatedChange) -> None:
        """Raise DataError D2601 for schema in a graph that would be held."""
        model = self._now.model
        if model is not None and model.over_schema:
            for triple in stated.held:
                if is_schema(relation_of(*triple)):
                    raise DataError(stream_schema(triple))

    def _look_at_held(
        self, program: Program, model: MaintainedModel, after: set[Triple], stated: StatedChange
    ) -> None:
        """What a graph makes last is to it as to any graph: schema must not follow from it (DataError D2601),
        and equalities of individuals that the schema mentions are reported (D2602).
        """
        if stated.held and model.over_schema:
            others = after.difference(stated.held)
            without = self._model(program, others)
            without.beside(stated.held)
            self.findings = [*self.findings, *map(while_held, without.findings)]


_NONE: Counter[Row] = Counter()


def _standing(program: Program) -> list[Select]:
    """The distinct queries of ISTREAM and DSTREAM."""
    return list(dict.fromkeys(standing.select for standing in program.standing.values()))


_Changes: TypeAlias = Sequence[tuple[Row, int]] | dict[Row, int]
"""Signed changes of one query, each row once."""

_Moved: TypeAlias = Mapping[Select, _Changes]
"""Standing query → how its answers change."""


def _items(changes: _Changes) -> Iterable[tuple[Row, int]]:
    return changes.items() if isinstance(changes, dict) else changes


def _sum(owed: Bags, more: _Moved) -> Bags:
    """The sum of signed changes, without queries that have none."""
    if not owed:
        bags = {select: {row: n for row, n in _items(changes) if n} for select, changes in more.items()}
        return {select: bag for select, bag in bags.items() if bag}
    total = {select: Counter(bag) for select, bag in owed.items()}
    for select, changes in more.items():
        bag = total.setdefault(select, Counter())
        for row, n in _items(changes):
            bag[row] += n
    found = {select: Counter({row: n for row, n in bag.items() if n}) for select, bag in total.items()}
    return {select: bag for select, bag in found.items() if bag}


def _facts(program: Program, changes: _Moved, time: Time) -> Facts:
    """The facts of the streams: what their queries gained or lost."""
    if not changes:
        return {}
    found: dict[str, list[Fact]] = {}
    for stream, standing in program.standing.items():
        moved = changes.get(standing.select)
        if moved:
            sign = 1 if standing.operator is RelationToStream.ISTREAM else -1
            rows = [row for row, n in _items(moved) for _ in range(n * sign)]
            if rows:
                found[stream] = facts_of(rows, time)
    return found


class Replacement(NamedTuple):
    """A new program, with its background, from a time on."""

    program: Program
    background: frozenset[Triple]


class LastingInstant(Struct, frozen=True):
    """One instant of what lasts. `graph`: whether a graph came; `tick`: whether an EVERY is due; `program`:
    the new program from this instant on; `state`: if messages came and it is requested, K(t) without what
    follows from the background alone; `findings`: warnings; `effects`: those that happened at it.
    """

    facts: Facts
    messages: Sequence[Message] = ()
    graph: bool = False
    tick: bool = False
    program: Program | None = None
    state: Sequence[Triple] = ()
    findings: Sequence[Diagnostic] = ()
    effects: Sequence[Effect] = ()

    @property
    def seen(self) -> bool:
        """Whether a rule may see it, or it is the first instant of a run or program."""
        return bool(self.tick or self.facts or self.messages or self.program)


OnRefused: TypeAlias = Callable[[Time, Sequence[GraphOrMessage], DotrError], DotrError | None]
"""Handles an instant in error: returns what to raise after it, None to continue."""

Leap: TypeAlias = "tuple[Time, LastingInstant, DotrError | None]"
"""(time, what happened, what to raise after it)."""


def _fail(time: Time, parts: Sequence[GraphOrMessage], error: DotrError) -> DotrError:
    """No error is survived."""
    return error


class LastingRun:
    """Owns what is stated, what follows from it, and the later programs; drives the literal reading beside
    them if verifying. `states`: report what holds at each instant; everything must be materialised.
    """

    def __init__(
        self,
        program: Program,
        background: Collection[Triple],
        clock: Clock,
        *,
        materialize_all: bool = False,
        budget: int = BUDGET,
        states: bool = False,
        on_refused: OnRefused = _fail,
        oracle: Oracle | None = None,
    ) -> None:
        self.program = program
        self.useless = 0
        """Deletions of triples that were not stated."""
        self.unheld = 0
        """Declared triples of graphs that do not last, by FROM and UNTIL."""
        self.consistent = True
        """Whether the last M was a consistent model: not after `overlook`."""
        self._background = frozenset(background)
        self._periods = Periods(self._background, program.holds, clock, forms_of(program.rules))
        self._pending: Pending | None = None
        self._depth = 0  # of events of the last instant
        self._chain: tuple[str, ...] = ()  # the rules whose effects led to it
        self._points = 0  # since the last message, from the first that effects made
        self._next_tick: Callable[[Time], Time | None] | None = None
        self._is_tick: Callable[[Time], bool] | None = None
        self._is_clocked: Callable[[Time], bool] | None = None
        self._left_out: list[Diagnostic] = []  # at this instant
        self.unstated = 0
        """Triples of INSERT that are none, or have a blank node."""
        self.ineffective = 0
        """Events whose effects contradict what lasts."""
        self._states = states
        self._given: frozenset[Triple] | None = None  # what follows from the background alone
        self.clock, self._all, self._budget = clock, materialize_all, budget
        self._moment = next_moment(0, clock)
        self._spending = Spending(budget)
        self._readers = _readers(program)
        self._knowledge = self._opened()
        self.ahead: dict[Time, Replacement] = {}
        """The later programs, by the times from which they hold."""
        self._on_refused, self._oracle = on_refused, oracle
        if oracle is not None:
            oracle.last_from_now()

    def _opened(self) -> Maintenance:
        return Maintenance(self.program, self._periods, self.clock, self._all, self._budget, self._spending)

    def replace(self, time: Time, program: Program, background: Collection[Triple]) -> None:
        """Schedule a program, with its background, to hold from `time` on, which lies ahead."""
        self.ahead[time] = Replacement(program, frozenset(background))
        if self._oracle is not None:
            self._oracle.replace(time, program, background)

    def program_from(self, time: Time) -> Program | None:
        """The new program that holds from exactly this time on, or None."""
        found = self.ahead.get(time)
        return None if found is None else found.program

    def next(self) -> Time | None:
        """When what lasts next changes without a message, or None."""
        found = self._periods.next_change()
        if self._pending is not None and (found is None or self._pending.time < found):
            found = self._pending.time
        if self.ahead:
            found = min([*self.ahead, *([] if found is None else [found])])
        return found

    def happen(self, time: Time, effects: tuple[Effect, ...]) -> None:
        """The events of an instant have effects, at least one: they are stated at the next moment."""
        rules: tuple[str, ...] = (effects[0].rule,)
        if self._chain or len(effects) > 1:
            rules = tuple(sorted({*self._chain, *[effect.rule for effect in effects]}))
        self._pending = Pending(time + self._moment, self._depth, effects, rules)
        for effect in effects:
            self.unstated += effect.lost

    def instants(
        self,
        due: Sequence[Instant],
        bound: Time,
        next_tick: Callable[[Time], Time | None] | None = None,
        is_tick: Callable[[Time], bool] | None = None,
        is_clocked: Callable[[Time], bool] | None = None,
    ) -> Iterator[Leap]:
        """The instants `due`, and those between and after them that lie before `bound`. `next_tick`: the next
        tick that can matter before a time; `is_tick`: whether a rule may see a time although nothing came;
        `is_clocked`: whether an EVERY or an AFTER is due at it. None where nobody looks at a clock.

        The caller finishes one instant before it takes the next, so that `next_tick` knows of it.
        """
        self._next_tick, self._is_tick, self._is_clocked = next_tick, is_tick, is_clocked
        for time, parts in due:
            while (between := self._next_before(time)) is not None:
                yield self._leap(between, ())
            yield self._leap(time, parts or ())
        while (between := self._next_before(bound)) is not None:
            yield self._leap(between, ())

    def _next_before(self, bound: Time) -> Time | None:
        """The next change or tick before `bound`."""
        change = self.next()
        if self._next_tick is None:
            return None if change is None or change >= bound else change
        until = bound if change is None or change > bound else change
        if (tick := self._next_tick(until)) is not None:
            until = tick  # before the change, if any
        return until if until < bound else None

    def _leap(self, time: Time, parts: Sequence[GraphOrMessage]) -> Leap:
        tick = self._is_tick is not None and self._is_tick(time)
        self._begin_moment(time, parts, tick)
        try:
            return time, self.at(time, parts, tick), None
        except (DataError, ProgramError) as error:
            return time, *self._without(time, parts, tick, self._placed(error, time))

    def _begin_moment(self, time: Time, parts: Sequence[GraphOrMessage], tick: bool) -> None:
        """Set how deep the events of an instant are. Raises ProgramError D4013 where effects follow effects
        without an end.
        """
        pending = self._pending
        if pending is not None and pending.time != time:
            pending = None
        self._depth, self._chain = 0, ()
        if parts:
            self._points = 0
        elif (pending is not None or self._points) and not (
            tick and self._is_clocked is not None and self._is_clocked(time)
        ):
            self._points += 1  # of effects, and of periods that end behind them
            if pending is not None and time not in self.ahead and self._periods.next_change() != time:
                self._depth, self._chain = pending.depth + 1, pending.rules
        if pending is not None and (self._depth > DEEPEST or self._points > LONGEST):
            raise _endless(pending, self._depth, self.clock.text(time))

    def _happens(self, time: Time) -> bool:
        """Whether effects are due at an instant."""
        return self._pending is not None and self._pending.time == time

    def _without(
        self, time: Time, parts: Sequence[GraphOrMessage], tick: bool, error: DotrError
    ) -> tuple[LastingInstant, DotrError | None]:
        """The instant without its messages, which are refused, or without effects that contradict what
        lasts.
        """
        oracle = self._oracle
        if oracle is not None:
            oracle.refuse(time, labelled(parts, time), error)
        failed: DotrError | None = None
        if self._happens(time) and self._error_of(time, self._effects(time)) is not None:
            failed = self._leave_out(time)
            try:
                return self.at(time, parts, tick), failed
            except (DataError, ProgramError) as again:
                error = self._placed(again, time)
        if parts or self.consistent:
            failed = failed or self._on_refused(time, parts, error)
        if parts:
            try:
                return self.at(time, (), tick), failed
            except (DataError, ProgramError) as again:
                if self.consistent:
                    failed = failed or self._on_refused(time, (), self._placed(again, time))
        if oracle is not None:
            oracle.overlook(time)
        return self.overlook(time, tick), failed

    def _effects(self, time: Time) -> tuple[Effect, ...]:
        """The effects that happen at an instant."""
        return self._pending.effects if self._pending is not None and self._pending.time == time else ()

    def _leave_out(self, time: Time) -> DotrError | None:
        """Keep the effects of events, in output order, as far as they contradict neither what lasts nor
        those kept; returns what to raise after the instant, if anything.
        """
        assert self._pending is not None
        kept: list[Effect] = []
        failed: DotrError | None = None
        for effect, error in self._judged(time, self._pending.effects):
            if error is None:
                kept.append(effect)
                continue
            self.ineffective += 1
            found = _left_out(effect, error, self.clock.text(time))
            raised = self._on_refused(time, (), found)
            if raised is None:
                self._left_out.append(found.diagnostics[0]._replace(severity=Severity.WARNING))
            failed = failed or raised
        self._pending = replace(self._pending, effects=tuple(kept))
        if self._oracle is not None:
            self._oracle.leave_out(time)
        return failed

    def _judged(self, time: Time, effects: Sequence[Effect]) -> list[tuple[Effect, DotrError | None]]:
        """Each effect in output order, with what it contradicts, given those before it that contradict
        nothing. Nothing changes. O(what the effects change), unless the instant is in error without any of
        them, begins other rules, or spends too much.
        """
        found = None if time in self.ahead else self._judged_one_by_one(time, effects)
        if found is not None:
            return found
        found, kept = [], list[Effect]()
        for effect in effects:
            error = self._error_of(time, (*kept, effect))
            found.append((effect, error))
            kept += [effect] if error is None else []
        return found

    def _judged_one_by_one(
        self, time: Time, effects: Sequence[Effect]
    ) -> list[tuple[Effect, DotrError | None]] | None:
        """`_judged`, where each effect changes what those before it left; None where that cannot be."""
        given = self._periods.gathering(time, effects)
        if given is None:
            return None
        found: list[tuple[Effect, DotrError | None]] = []
        undo: list[Callable[[], None]] = []
        try:
            if self._refused(time, given.change, ()) is not None:
                self._periods.undo()
                return None
            undo += [self._periods.taking_back(), self._knowledge.put_aside()]
            for number, effect in enumerate(effects):
                change = self._periods.extended(given, number, effect)
                error = self._refused(time, change, (effect,))
                if error is None:
                    undo += [self._periods.take_in(given, number, effect), self._knowledge.put_aside()]
                    found.append((effect, None))
                    continue
                self._periods.undo()
                if not _contradicts(error):
                    return None
                found.append((effect, error))
            return found
        finally:
            for back in reversed(undo):
                back()

    def _refused(self, time: Time, change: StatedChange, effects: Sequence[Effect]) -> DotrError | None:
        """Open a change; the error of it, which then is not open."""
        self._spending.begin(_triples_of(effects), self._periods.statements, self._readers)
        try:
            self._knowledge.change(time, change)
        except (DataError, ProgramError) as error:
            return error
        finally:
            self._spending.end()
        return None

    def _error_of(self, time: Time, effects: Sequence[Effect]) -> DotrError | None:
        """How an instant of effects alone contradicts itself or has schema that it must not; None where it
        does not. Nothing changes.
        """
        self._spending.begin(_triples_of(effects), self._periods.statements, self._readers)
        try:
            self._knowledge.change(
                time, self._stated(time, (), self.ahead.get(time), effects), self.program_from(time)
            )
        except (DataError, ProgramError) as error:
            return error if _contradicts(error) else None
        finally:
            self._spending.end()
            self._undo(time)
        return None

    def _undo(self, time: Time) -> None:
        """Undo the open change of an instant."""
        self._knowledge.abandon()
        self._periods.undo()
        if time in self.ahead:
            self._declare(self.program)

    def _declare(self, program: Program) -> None:
        self._periods.declare(program.holds, forms_of(program.rules))

    def _placed(self, error: DotrError, time: Time) -> DotrError:
        """An error of an instant, with its time for a place."""
        place = f"@ {self.clock.text(time)}"
        return type(error)([one if one.place else one._replace(place=place) for one in error.diagnostics])

    # -- one instant

    def at(self, time: Time, parts: Sequence[GraphOrMessage], tick: bool = False) -> LastingInstant:
        """Advance to an instant; no change lies before it.

        `parts`: all messages, blank nodes as in the documents. Raises DataError and ProgramError for an
        instant in error; what lasts is then as before.
        """
        messages: Sequence[Message] = ()
        graphs: list[list[Triple]] = []
        graph: Sequence[Triple] = ()
        come = 0
        if parts:
            messages = labelled(parts, time)
            come = sum([len(triples) for message in messages for triples in message if triples])
            graphs = [message.graph for message in messages if message.graph is not None]
            graph = graphs[0] if len(graphs) == 1 else [triple for one in graphs for triple in one]
        came = bool(graphs)
        effects: tuple[Effect, ...] = ()
        if self._pending is not None and self._pending.time == time:
            effects = self._pending.effects
            come += _triples_of(effects)
        self._spending.begin(come, self._periods.statements, self._readers)
        replacement = self.ahead.get(time)
        stated = self._stated(time, messages, replacement, effects)
        knowledge = self._knowledge
        program = None if replacement is None else replacement.program
        state: Sequence[Triple] = ()
        try:
            facts = knowledge.change(time, stated, program)
            if came or tick or facts:
                facts = {**knowledge.facts(time, graph), **facts}
                self._answered(facts)
            if self._states and messages:
                state = sorted(knowledge.state(graph) - self._background_alone(replacement))
        except BaseException as error:
            self._undo(time)
            if isinstance(error, ProgramError):
                raise self._spending.explained(error) from None
            raise
        finally:
            self._spending.end()
        knowledge.keep()
        self._settle(time, stated, replacement)
        self.consistent = True
        findings: Sequence[Diagnostic] = knowledge.findings
        if stated.unheld or self._left_out:
            findings = [*findings, *(one.finding(self.clock) for one in stated.unheld), *self._left_out]
            self._left_out = []
        return LastingInstant(facts, messages, came, tick, program, state, findings, effects)

    def _answered(self, facts: Facts) -> None:
        """Spend what rules may do with the facts of an instant. Raises ProgramError D4132."""
        if not facts:
            return
        spending, units = self._spending, ANSWER * sum([len(found) for found in facts.values()])
        most = spending.limit(units)
        spending.spend(most)
        if units > most:
            name = max(facts, key=lambda stream: (len(facts[stream]), stream))
            changes = name.startswith(("ISTREAM ", "DSTREAM "))
            instead = "" if changes else "read ISTREAM in place of all answers, "
            raise ProgramError.of(
                MUCH_WORK,
                f"query `{name}` takes more than {most} units of work over what lasts",
                notes=(f"it has {len(facts[name]):,} answers at once, of {ANSWER} units each",),
                hint=f"join patterns through shared variables, {instead}or raise --budget",
            )

    def _background_alone(self, replacement: Replacement | None) -> frozenset[Triple]:
        """What follows from the background and the rules without any message."""
        if self._given is None or replacement is not None:
            program, background = replacement or (self.program, self._background)
            rules = rules_over(program, background)
            closed = Materialiser(rules, background, needed=wanted(program, materialize_all=True))
            self._given = frozenset(closed.state())
        return self._given

    def overlook(self, time: Time, tick: bool) -> LastingInstant:
        """Advance to an instant that is in error without its messages: it has no facts."""
        replacement = self.ahead.get(time)
        effects = self._effects(time)
        stated = self._stated(time, (), replacement, effects)
        program = self.program_from(time)
        self._knowledge.overlook(time, stated, program)
        self._settle(time, stated, replacement)
        self.consistent = False
        return LastingInstant({}, tick=tick, program=program, effects=effects)

    def rest(self) -> None:
        """Other rules hold than those whose effects wait: a chain of effects begins anew."""
        self._points = 0
        if self._pending is not None:
            self._pending = replace(self._pending, depth=0, rules=())

    def stated(self) -> list[Triple]:
        """Every triple stated now."""
        return list(self._periods)

    def _stated(
        self,
        time: Time,
        messages: Sequence[Message],
        replacement: Replacement | None,
        effects: Sequence[Effect] = (),
    ) -> StatedChange:
        if replacement is None:
            return self._periods.change(time, messages, effects=effects)
        self._declare(replacement.program)
        old, new = self._background, replacement.background
        return self._periods.change(time, messages, sorted(old - new), sorted(new - old), effects)

    def _settle(self, time: Time, stated: StatedChange, replacement: Replacement | None) -> None:
        if self._pending is not None and self._pending.time == time:
            self._pending = None
        self.useless += stated.useless
        self.unheld += len(stated.unheld)
        if replacement is not None:
            del self.ahead[time]
            self.program, self._background = replacement
            self._readers = _readers(self.program)
            self._periods.rebase(self._background)

    @property
    def spent_at_most(self) -> int:
        """The most that was ever missing of what a run may spend (budget.py)."""
        return self._spending.deepest

    def changed(self) -> dict[Triple, Entry | None]:
        return self._periods.changed()

    def entries(self) -> dict[Triple, Entry]:
        """Every triple of which a snapshot says something, with what `changed` gives for it."""
        return self._periods.entries()

    def snapshot(self, stated: bool = True) -> dict[str, Any]:
        """What is stated beside the background, as a JSON value; between instants. A caller that keeps the
        values of `changed` leaves `stated` out.
        """
        return {
            "stated": self._periods.save() if stated else [],
            "consistent": self.consistent,
            "useless": self.useless,
            "unheld": self.unheld,
            "spent": self._spending.spent,
            "knowledge": self._knowledge.snapshot(),
            "effects": [saved(self._pending), self._points, self.unstated, self.ineffective],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a `snapshot`, over the current program and background."""
        self._periods.load(state["stated"])
        self.consistent, self.useless = state["consistent"], state["useless"]
        self.unheld = state.get("unheld", 0)
        self._spending.restore(state.get("spent", 0))
        pending, self._points, self.unstated, self.ineffective = state.get("effects", (None, 0, 0, 0))
        self._pending = loaded(pending)
        self._knowledge = self._opened()
        self._knowledge.restore(state["knowledge"])


def _triples_of(effects: Iterable[Effect]) -> int:
    """How many triples and patterns effects have."""
    found = 0
    for effect in effects:
        found += len(effect.insert) + len(effect.delete)
    return found


def _contradicts(error: DotrError) -> bool:
    """Whether an instant contradicts itself, or has schema that it must not."""
    return error.diagnostics[0].code.startswith(("D26", "D30", "D31"))


def _endless(pending: Pending, depth: int, at: str) -> ProgramError:
    how = (
        f"{depth:,} instants follow one another"
        if depth > DEEPEST
        else f"{LONGEST:,} instants lie between two messages"
    )
    return ProgramError.of(
        "D4013",
        f"effects make effects without an end: {', '.join(f'`{name}`' for name in pending.rules)} at {at}",
        notes=(f"{how}, each made by effects of events of the one before",),
        hint="let a rule state what does not trigger the rule that undoes it",
    )


def _left_out(effect: Effect, error: DotrError, at: str) -> DotrError:
    found = error.diagnostics[0]
    return DataError.of(
        "D2604",
        f"the effects of an event of `{effect.rule}` are left out: {found.message}",
        place=f"@ {at}",
        notes=(f"the event is {effect.id}", f"the reason has code {found.code}"),
        hint="the event stays; let its rule state what agrees with what lasts",
    )


def _readers(program: Program) -> int:
    """The number of queries, and of Datalog rules with an AGGREGATE, that look at what lasts."""
    totals = sum(any(isinstance(atom, AggregateAtom) for atom in rule.body) for rule in program.datalog)
    return max(1, len(program.asked) + len(program.standing) + totals)


ENDED, BEGUN = "ended", "begun"

_SIGNS: Final = {ENDED: -1, BEGUN: 1}


class SignedAnswer(NamedTuple):
    """Equal rows, `change` of them, that begin (> 0) or end at a time. `values` in projection order."""

    time: Time
    change: int
    values: Values


def watching(program: Program, select: Select) -> Program:
    """The prologue of `program`, its rules that have effects and those that they read, and the query, which
    has no NOW(). Only the query has events.
    """
    query = _with_a_row(select)
    if program.has_effects:
        acting = needed(only(program, ()))
    else:
        acting = replace(program, queries={}, rules=(), dependencies=(), standing={}, lars=LarsProgram())
        if not any(hold.predicate is None and hold.class_ is None for hold in program.holds):
            acting = replace(acting, holds=(*program.holds, Hold()))
    known = {*acting.selects, *(rule.name for rule in acting.rules), *acting.lars.attributes}
    operators = {_free(ENDED, known): RelationToStream.DSTREAM, _free(BEGUN, known): RelationToStream.ISTREAM}
    first = len(acting.rules)
    return replace(
        acting,
        rules=(*acting.rules, *(_rule(name, query) for name in operators)),
        dependencies=(*acting.dependencies, *range(first, first + len(operators))),
        standing={
            **acting.standing,
            **{name: StandingQuery(operator, query) for name, operator in operators.items()},
        },
    )


def _free(name: str, known: Container[str]) -> str:
    """A name that a program does not have."""
    while name in known:
        name += "_"
    return name


def watched(program: Program) -> Select:
    """The query of a program of `watching`: for an ASK one that has a row while the answer is yes."""
    return program.standing[program.rules[-1].name].select


def signed(events: Sequence[Composite], ask: bool = False) -> Iterator[SignedAnswer]:
    """The events of one instant of a program of `watching` as answers: those that end, then those that begin,
    each in canonical order, equal rows merged. `ask`: the query was an ASK, whose row is empty.
    """
    for (rule, time, values), equal in groupby(events, _content):
        yield SignedAnswer(time, _SIGNS[rule.rstrip("_")] * len(list(equal)), () if ask else values)


class AnswerPeriod(NamedTuple):
    """An answer held over `[start, until)`. `start` None: from the beginning; `until` None: it holds on."""

    start: Time | None
    until: Time | None
    values: Values


class AnswerPeriods:
    """Owns the answers that hold, each since when. `first`: those from the beginning."""

    def __init__(self, first: Iterable[SignedAnswer] = ()) -> None:
        self._held: dict[Values, tuple[Time | None, int]] = {
            one.values: (None, one.change) for one in first if one.change
        }

    def take(self, answers: Iterable[SignedAnswer]) -> Iterator[AnswerPeriod]:
        """The periods that end with the signed answers of one instant, in their order. Of equal rows the
        first begins a period, and the last ends it.
        """
        for time, change, values in answers:
            start, count = self._held.get(values, (time, 0))
            if count + change:
                self._held[values] = start, count + change
            else:
                self._held.pop(values, None)
                yield AnswerPeriod(start, time, values)

    def open(self) -> list[AnswerPeriod]:
        """Those without an end so far, by their beginnings, then in canonical order."""
        found = [AnswerPeriod(start, None, values) for values, (start, _) in self._held.items()]
        return sorted(found, key=lambda one: (one.start is not None, one.start or 0, values_key(one.values)))


def _content(event: Composite) -> tuple[str, Time, Values]:
    _, values, _, _ = event.facts[0]
    return event.rule, event.time, values


def _rule(name: str, select: Select) -> Rule:
    template = (TemplateTriple(Fresh("dotr_answer"), RDF_TYPE, f"<urn:dotr:{name}>"),)
    return Rule(name, template, Position(name, name, select.variables), (), None, (), ())


def _with_a_row(select: Select) -> Select:
    """An ASK as a SELECT that has one row where it is true."""
    if not select.ask:
        return select
    name, text = "yes", repr(select)
    while f"'{name}'" in text:
        name += "_"
    projection = (Projection(Var(name), Const(TRUE)),)
    return replace(select, ask=False, distinct=True, projection=projection)
