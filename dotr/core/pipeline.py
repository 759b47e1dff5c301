"""START HERE. One instant at a time: enrich → extract → detect → emit.

Place:   the core that every runner drives: api.py in process, the deployment's feed, Spark's workers.
         It is fed by its caller and has no clock, file, thread or randomness: time is an argument.
Method:  DOTR (Margara, Cugola, Collavini, Dell'Aglio 2018), fig. 3. Enrich and extract see one instant only;
         detect sees many instants, but facts only. An instant is closed by a later timestamp (with a lateness
         d: more than d later), `advance`, or the end of input.
           drive            takes graphs several dozen at a time, then runs the instants they closed
           Counters, RunCounts  what a run counts, for its summary line and `status`; and the counts of one
                            program (events by rule, facts by query), a new one when rules are replaced
           SkippedTriggers  trigger facts that take a rule too much work (D4010), also of a batch. The
                            detector continues without the matches of such a fact, and nothing is consumed.
                            After the instant the error is raised, and ends the run, or the fact is counted
                            under its rule and the first of every rule is reported.
           refuse_closed    new rules may hold from a time that is not closed (a run, `dotr deploy --from`)
           refuse_version   which snapshots this version reads
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import le, lt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace
from msgspec.structs import replace as replace_fields

from dotr.core.deployment import Deployment
from dotr.core.funnel import FactCounts, Funnel, funnels, joined
from dotr.core.instant import (
    REFUSABLE,
    FactBatch,
    Facts,
    Finding,
    Findings,
    InstantFacts,
    OnState,
    is_refusable,
)
from dotr.core.instants import (
    JumpLimit,
    LateGraph,
    OpenInstants,
    RefusedInstant,
    ahead,
    check_units,
    ticks_of,
)
from dotr.detect.analysis import idle_ticks
from dotr.detect.detector import TeslaDetector
from dotr.detect.state import Restored
from dotr.emit.events import Emitter, InstantEvents
from dotr.errors import DataError, DotrError, EngineError, ProgramError, Severity, UsageError
from dotr.events import Clock, Composite, Fact, GraphOrMessage, Instant, RawMatch, Time
from dotr.expressions.rhythms import is_tick
from dotr.lasting.periods import Entry
from dotr.program import After, Program
from dotr.program.names import Passed
from dotr.program.rules import Rule
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Memo, Triple

if TYPE_CHECKING:
    from dotr.emit.effects import Effects
    from dotr.extract.forms import Form, FormExtractor, FormRun
    from dotr.lasting.instants import LastingInstant, LastingRun

VERSION = 2
"""The version of snapshots. Version 1, in which nothing lasts, is read; others are refused."""


def refuse_version(state: Mapping[str, Any]) -> None:
    """Raise EngineError D5101 for a snapshot of another version."""
    if state.get("version") not in (1, VERSION):
        raise EngineError.of(
            "D5101",
            f"this snapshot has version {state.get('version')!r}",
            notes=(f"this dotr reads version {VERSION}",),
            hint="restore it with the dotr that wrote it, or start again",
        )


def refuse_closed(time: Time, watermark: Time | None, clock: Clock) -> None:
    """Raise UsageError D4161 for a time up to `watermark`, naming the first possible one."""
    if watermark is None or time > watermark:
        return
    first = watermark + 1
    if clock.integer:
        first = -(-first // clock.unit) * clock.unit
    raise UsageError.of(
        "D4161",
        f"{clock.text(time)} is closed: what was reported until then does not change",
        notes=(f"the first time that is not closed is {clock.text(first)}",),
        hint=f"let the new program hold from {clock.text(first)} on",
    )


class Counters(Struct):
    """What was processed. `graphs`: all messages, with a graph or without; `instants`: those with a message;
    `ticks`: those without one that a rule was evaluated at. `useless_deletes`: deletions of triples that were
    not stated. `not_held`: triples that a HOLD does not hold by the times of their graphs. `not_stated`:
    triples of INSERT that are none. `ineffective`: events whose effects were left out (D2604). `overlooked`:
    instants in error without a message. `left_out`: rule → trigger facts that took too much work.
    """

    graphs: int = 0
    instants: int = 0
    ticks: int = 0
    facts: int = 0
    late: int = 0
    dropped: int = 0
    useless_deletes: int = 0
    not_held: int = 0
    not_stated: int = 0
    ineffective: int = 0
    overlooked: int = 0
    events: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    first: Time | None = None
    last: Time | None = None
    streams: dict[str, int] = field(default_factory=dict)
    funnel: dict[str, Funnel] = field(default_factory=dict)


_RUNS: Final = 1_000  # sets of rules that fired together, before they are counted per rule
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


class RunCounts:
    """Owns the counts. `counts`: earlier counts, and all new ones except events and facts; `gone`: events of
    rules no longer in the program.

    `every`: the distinct rhythms of EVERY. `fired`: rules that fired together → events not yet counted per
    rule, see `settle`.
    """

    def __init__(
        self, program: Program, counts: Counters | None = None, gone: Mapping[str, int] = _NONE
    ) -> None:
        self.counts = counts or Counters()
        self.facts = FactCounts()
        self.fired: defaultdict[tuple[int, ...], int] = defaultdict(int)
        self._program, self._gone = program, dict(gone)
        self.every = ticks_of(program)
        self.late = any(isinstance(rule.trigger, After | RowPattern) for rule in program.rules)
        self.late_tick: Time | None = None
        """The last instant at which an AFTER ticked, or a deadline lay, without a graph."""
        self._events = [self.counts.events.get(rule.name, 0) for rule in program.rules]

    def begin(self, first: Time | None) -> None:
        """Note the first of the instants that are detected next, if there are any."""
        if len(self.fired) > _RUNS:
            self.settle()
        if self.counts.first is None:
            self.counts.first = first

    def instants(
        self, batch: FactBatch, start: int, end: int, lasting: bool, last_graph_time: Time | None
    ) -> Time | None:
        """Count the detected instants of a range; returns the last with a message, or
        `last_graph_time`. `lasting`: whether there may be instants without message and tick.
        """
        counts, every, lars = self.counts, self.every, self._program.lars.rules
        if not (every or self.late or lars or lasting):
            counts.instants += batch.instants(start, end)
            return batch.known[end - 1][0] if end > start else last_graph_time
        for time, came, _, graph in batch.known[start:end]:
            if graph or came:
                last_graph_time = time
                counts.instants += 1
            elif not lars or time == self.late_tick or any(is_tick(rhythm, time) for rhythm in every):
                counts.ticks += 1
        return last_graph_time

    def events(self, matches: Sequence[RawMatch]) -> None:
        """Count the events of one instant."""
        fired = self.fired
        for match in matches:
            fired[match[0]] += 1

    def settle(self) -> None:
        """Count per rule what fired."""
        for rules, count in self.fired.items():
            for rule in rules:
                self._events[rule] += count
        self.fired.clear()

    def total(self) -> int:
        """The number of events."""
        self.settle()
        return sum(self._events) + sum(self._gone.values())

    def counters(self, passed: Mapping[str, Passed] | None, settled: Time | None) -> Counters:
        """All counts as a value. `passed`: the counts of detection, None before the first; `settled`:
        everything up to here has run.
        """
        self.settle()
        program, before = self._program, self.counts
        counted = zip(program.rules, self._events, strict=True)
        events = {**self._gone, **{r.name: count for r, count in counted if count or not r.private}}
        now = self.facts.streams(program.queries)
        funnel: dict[str, Funnel] = before.funnel
        if passed is not None:
            found = funnels(program, now, passed, before.first, settled)
            funnel = joined(program, before.funnel, found, events)
        return replace_fields(
            before,
            facts=before.facts + self.facts.total,
            events=events,
            streams={name: count + before.streams.get(name, 0) for name, count in now.items()},
            funnel=funnel,
        )


Overworked: TypeAlias = Callable[[str, ProgramError], None]
"""(name of a rule, D4010). What it raises ends the run after the instant."""

_KEPT = (
    "its graphs were accepted and are not dead letters: fed again, they would give other rules' events twice"
)


class SkippedTriggers:
    """Owns the facts left out at the instant in progress, and their number by rule.

    Without `on_overwork` the error is raised; with it, `say` is called with the first of every rule.
    """

    def __init__(self, on_overwork: Overworked | None = None, say: Finding | None = None) -> None:
        self._on_overwork = on_overwork
        self._findings = None if say is None else Findings(say)
        self._errors: list[ProgramError] = []
        self.facts: list[tuple[int, Fact]] = []
        """(number of a rule, trigger fact), at this instant."""
        self.counts: dict[str, int] = {}

    def take(self, rule: int, fact: Fact, error: ProgramError) -> None:
        """Record that the detector leaves a fact out; see `RefusedTrigger`."""
        self.facts.append((rule, fact))
        self._errors.append(error)

    def settle(self, time: Time, rules: Sequence[Rule], clock: Clock) -> DotrError | None:
        """End the instant; returns what to raise after it, if anything."""
        failed: DotrError | None = None
        for (rule, _), error in zip(self.facts, self._errors, strict=True):
            name = rules[rule].name
            self.counts[name] = self.counts.get(name, 0) + 1
            try:
                self._report(name, error, time, clock)
            except DotrError as raised:
                failed = failed or raised
        self.forget()
        return failed

    def forget(self) -> None:
        """Drop what was left out at this instant: another caller reports it."""
        self.facts.clear()
        self._errors.clear()

    def _report(self, name: str, error: ProgramError, time: Time, clock: Clock) -> None:
        if self._on_overwork is None:
            raise error
        self._on_overwork(name, error)
        if self._findings is not None:
            found = error.diagnostics[0]
            notes = (
                *found.notes,
                "it has no match of this rule; the summary counts such facts",
                _KEPT,
            )
            self._findings.found([found._replace(severity=Severity.WARNING, notes=notes)], time, clock)


Observer = Callable[[Time, Sequence[RawMatch]], None]
FactsAt = Callable[[Time, Facts, bool], Facts]
TOGETHER = 256
"""How many instants are extracted, and their facts held in memory, before they are detected."""


class PipelineObserver(Struct, frozen=True):
    """What is called while a pipeline runs; None: nobody.

    `late`: with every late graph, which then is counted and dropped. `refused`: with an instant in error
    (REFUSABLE), or a graph that lies too far ahead (D2106, D2107): its time, its graphs and the error. Unless
    it raises, the run continues as if those graphs had never come; without it the error ends the run.
    `overworked`: with a rule and the error (D4010) of a trigger fact that takes it too much work: unless it
    raises, the run continues without that rule's matches of the fact; without it the error is raised after
    the instant. `finding`: with warnings about instants that are not in error. `matches`: with the matches of
    each instant that has any, including those of PRIVATE rules. `facts`: with the facts of each instant and
    whether a graph came; returns those to detect. `lasting`: with each instant of what lasts, before it is
    detected. `state`: with every instant with a message, and the triples that hold at it and not by the
    background alone, sorted (all materialised).
    """

    late: LateGraph | None = None
    refused: RefusedInstant | None = None
    overworked: Overworked | None = None
    finding: Finding | None = None
    matches: Observer | None = None
    facts: FactsAt | None = None
    lasting: Callable[[Time, LastingInstant], None] | None = None
    state: OnState | None = None


NOBODY: Final = PipelineObserver()


class Pipeline:
    """Owns the state of one run: graphs not yet closed, the detector's memory, counters.

    `deployment` is what runs. `lateness` is in microseconds. `verify` runs the literal reading beside.
    `max_jump` (µs): how far ahead of the last one a graph may lie. `pause` is called between two steps; what
    it raises ends the call there, and the next call continues.
    """

    def __init__(
        self,
        deployment: Deployment,
        observer: PipelineObserver = NOBODY,
        *,
        lateness: int = 0,
        verify: bool = False,
        max_jump: Time | None = None,
        pause: Callable[[], None] | None = None,
    ) -> None:
        self.deployment = deployment
        self.program = deployment.program
        self.instants = deployment.instants
        self._look = deployment.instants.overlaid
        self.clock: Clock | None = None
        self._observer = observer
        self._left_out = SkippedTriggers(observer.overworked, observer.finding)
        self._findings = None if observer.finding is None else Findings(observer.finding)  # of what lasts
        self._detect: TeslaDetector | None = None
        self._oracle = deployment.oracle() if verify else None
        self._emit, self._run_counts = deployment.emitter, RunCounts(self.program)
        self._effects = _effects(self.program)
        self._lasting: LastingRun | None = None  # where something lasts
        self._planned: list[tuple[Time, Program, Collection[Triple]]] = []  # `replace` before anything lasts
        self.place: Any = ""
        """The place of the next message, or a function that returns it, for records of the run."""
        self.replaced = False
        """Whether a `replace` has taken effect."""
        self._max_jump, self._pause = max_jump, pause
        self._open = OpenInstants(lateness, observer.late, observer.refused, self._tick())
        self._unreturned: list[InstantEvents] = []  # what a call that raised would have returned
        self._columns: tuple[Sequence[Time], Mapping[str, list[Fact]]] | None = None  # to run in `drain`
        self._forms: Memo[Form, FormExtractor | str] = Memo(self.instants.of_form)
        self._last_graph_time: Time | None = None  # last instant at which a graph came

    def begin(self, clock: Clock) -> None:
        """Fix how this run writes time; called once, before the first graph.

        Raises ProgramError D1409 when an EVERY or a FOR is not a multiple of the unit of integer time.
        """
        check_units(self.program, clock)
        self.clock = self._open.clock = clock
        self.instants.begin(clock, self._observer.finding)
        self.instants.on_state = self._observer.state
        self._detect = self._new_detector(clock)
        if self._oracle is not None:
            self._oracle.begin(clock)
        if self.program.lasting or self._planned:
            self._last_from_now()

    def _tick(self) -> JumpLimit:
        """How the program ticks while no graph comes, and how far ahead a graph may lie."""
        program = self.program
        self._run_counts.every = ticks_of(program)
        self._run_counts.late = any(isinstance(r.trigger, After | RowPattern) for r in program.rules)
        lasts = self._lasting is not None  # what lasts may answer any of its queries
        self._idle_ticks = idle_ticks(program, program.selects) if lasts else self.deployment.idle_ticks
        later = {} if self._lasting is None else self._lasting.ahead
        ticks_ahead = {time: idle_ticks(p, p.selects) for time, (p, _) in later.items()}
        return ahead(self._idle_ticks, self._max_jump, ticks_ahead)

    def _new_detector(self, clock: Clock) -> TeslaDetector:
        if self._lasting is not None:
            self._run_counts.facts = FactCounts(standing=self.program.standing)
            deployment = self.deployment.detecting(self.program)
        else:
            self._run_counts.facts = self.deployment.fact_counts()
            deployment = self.deployment
        return deployment.detector(clock, self._left_out.take, listed=self._observer.matches is not None)

    @property
    def watermark(self) -> Time | None:
        """Everything up to here is closed; None before anything is."""
        return self._open.watermark

    @property
    def settled(self) -> Time | None:
        """Everything up to here has run; None before anything has."""
        return self._open.settled

    def due(self, bound: Time) -> Time | None:
        """The next instant before `bound` that matters although no message comes, once all that came has
        run: of what lasts, or an AFTER.
        """
        change = None if self._lasting is None else self._lasting.next()
        until = bound if change is None else min(change, bound)
        tick = self._next_tick(until) if self._run_counts.every or self._run_counts.late else None
        found = until if tick is None else tick
        return found if found < bound else None

    @property
    def latest(self) -> Time | None:
        """The greatest timestamp seen; None before the first graph."""
        return self._open.latest

    def sizes(self) -> dict[str, int]:
        """Rule → how many facts are remembered for it."""
        return {} if self._detect is None else self._detect.sizes()

    @property
    def counters(self) -> Counters:
        """What was processed so far, as a value."""
        detect, lasting, opened = self._detect, self._lasting, self._open
        return replace(
            self._run_counts.counters(None if detect is None else detect.passed(), opened.settled),
            graphs=opened.graphs,
            late=opened.late,
            dropped=0 if detect is None else detect.dropped,
            useless_deletes=0 if lasting is None else lasting.useless,
            not_held=0 if lasting is None else lasting.unheld,
            not_stated=0 if lasting is None else lasting.unstated,
            ineffective=0 if lasting is None else lasting.ineffective,
            left_out=dict(self._left_out.counts),
            last=opened.last,
        )

    def events_so_far(self) -> int:
        """The number of events; cheaper than `counters`."""
        return self._run_counts.total()

    def passed(self) -> dict[str, Passed]:
        """Rule → how far its trigger facts got, since this detector was made (program/names.py)."""
        return {} if self._detect is None else dict(self._detect.passed())

    def count_anew(self) -> None:
        """Forget what was counted so far, except graphs and facts that were dropped. Nothing may last."""
        self._run_counts = RunCounts(self.program)
        self._run_counts.facts = self.deployment.fact_counts()
        if self._detect is not None:
            self._detect.forget_passed()

    def push(self, time: Time, triples: Iterable[Triple]) -> Sequence[Composite]:
        """Take one graph; return the events of the instants that its timestamp closes.

        `triples` are canonical terms, blank nodes as the document had them. If an instant is in error, the
        next call returns the events of those before it.
        """
        self.accept(time, triples if isinstance(triples, list) else list(triples))
        return self._drained()

    def push_part(self, time: Time, part: GraphOrMessage) -> Sequence[Composite]:
        """Like `push`, also for a message that may insert, delete, or bring no graph."""
        self.take(time, part)
        return self._drained()

    def _drained(self) -> Sequence[Composite]:
        emissions: list[InstantEvents] = []
        try:
            emissions.extend(self.drain())
        except DotrError:
            self._unreturned = emissions  # what came before the error
            raise
        return emissions[0] if len(emissions) == 1 else [event for events in emissions for event in events]

    def advance(self, time: Time) -> Sequence[Composite]:
        """Close everything up to and including `time`; later graphs stamped so are late. Raises D2107."""
        self.close_up_to(time)
        return self._drained()

    def finish(self) -> Sequence[Composite]:
        """The end of input: close everything up to the last timestamp."""
        self.close_all()
        return self._drained()

    def close_up_to(self, time: Time) -> None:
        """Like `advance`, without running what it closes: see `drain`."""
        error = self._open.refuses_tick(time + 1)
        if error is not None:
            raise error
        self._open.close_before(time + 1)

    def close_all(self) -> None:
        """The end of input, without running what it closes: see `drain`."""
        latest = self._open.latest
        if latest is not None:
            last = latest if self._detect is None else self._detect.covering(latest)
            self._open.close_before(last + 1)

    def take(self, time: Time, part: GraphOrMessage) -> None:
        """Like `accept`, also for a message that may insert, delete, or bring no graph."""
        if type(part) is not list and self._lasting is None:
            self._last_from_now()
        self.accept(time, part)

    def accept(self, time: Time, graph: GraphOrMessage) -> None:
        """Take one graph without running what its timestamp closes: see `drain`."""
        self._open.accept(time, graph)

    def accept_run(self, times: Sequence[Time], graphs: Sequence[GraphOrMessage]) -> bool:
        """Like `accept` for many graphs, none a message; False if none was taken; see OpenInstants."""
        return self._open.accept_run(times, graphs)

    def accept_columns(self, run: FormRun) -> bool:
        """Take graphs of one form, at instants after all that came; `drain` must follow. False if none was
        taken: then their graphs are accepted as any. Those of the last instant must not come again.
        """
        found, times = self._forms[run.form], run.times
        if isinstance(found, str) or not self.takes(run.form) or not all(map(le, times, times[1:])):
            return False
        facts = found.facts(run)
        if facts is None or not self._open.pass_over(times[0], times[-1], len(times)):
            return False
        self._columns = times, facts
        return True

    def takes(self, form: Form) -> bool:
        """Whether graphs of a form may be accepted as columns from now on."""
        detect = self._detect
        ready = self._plain and detect is not None and detect.waking is not None
        return ready and not isinstance(self._forms[form], str)

    @property
    def _plain(self) -> bool:
        """Whether instants are extracted and detected alone: nothing lasts or ticks, nobody looks at them."""
        observer, counts = self._observer, self._run_counts
        return not (
            self._lasting is not None
            or self._planned
            or self._oracle is not None
            or self._pause is not None
            or counts.every
            or counts.late
            or self.program.lars.rules
            or observer.facts is not None
            or observer.matches is not None
            or observer.lasting is not None
            or observer.state is not None
        )

    def _run_columns(self, times: Sequence[Time], facts: Mapping[str, list[Fact]]) -> Iterator[InstantEvents]:
        """Detect instants whose facts are known."""
        assert self._detect is not None
        instants = times if all(map(lt, times, times[1:])) else list(dict.fromkeys(times))
        batch = FactBatch(self._detect.waking, len(instants))
        waking = batch.waking or frozenset()
        wakes = sorted({fact[0] for name, found in facts.items() if name in waking for fact in found})
        streams = [(name, found, [fact[0] for fact in found]) for name, found in facts.items()]
        begun = dict.fromkeys(facts, 0)
        end = 0
        for time in wakes:
            waiting = batch.waiting
            for name, found, at in streams:
                start = begun[name]
                if start < len(at) and at[start] <= time:
                    begun[name] = upto = bisect_right(at, time, start)
                    waiting[name] = found[start:upto]
            end = bisect_left(instants, time, end) + 1
            batch.wake(time, (), end)
        for name, found, _ in streams:
            if begun[name] < len(found):
                batch.waiting[name] = found[begun[name] :]
        batch.came(instants[0], instants[-1], len(instants))
        yield from self._found(batch.closed())

    def drain(self) -> Iterator[InstantEvents]:
        """Run the closed instants that have not run, in time order; yields the events of each that has any.

        Several instants are enriched and extracted first, then detected: the halves are independent. An error
        at an instant ends the iteration there; the next call continues after it, as after a caller that stops
        early. A snapshot may be taken between two steps.
        """
        while self._unreturned:
            yield self._unreturned.pop(0)
        bound = self._open.bound
        if bound is None:
            return
        due = self._open.closed()
        if self._lasting is not None:
            yield from self._leap(due, bound)
        elif self._deadlines_alone():
            yield from self._run(due)
            yield from self._idle_before(bound)
        elif self._run_counts.every or self._run_counts.late or self.program.lars.rules:
            for instant in due:
                yield from self._idle_before(instant[0])
                yield from self._run([instant])
            yield from self._idle_before(bound)
        else:
            yield from self._run(due)
        self._open.done()
        if self._columns is not None:
            columns, self._columns = self._columns, None
            yield from self._run_columns(*columns)

    def _deadlines_alone(self) -> bool:
        """Whether only sequences see instants without a graph, and nothing but them has facts there: then
        their deadlines are found while a batch is detected.
        """
        counts = self._run_counts
        if not counts.late or counts.every or self.program.lars.rules:
            return False
        if self._oracle is not None or self._observer.facts is not None or self.deployment.without_graph:
            return False
        return not any(isinstance(rule.trigger, After) for rule in self.program.rules)

    def _between(self, known: list[InstantFacts]) -> Iterator[InstantFacts]:
        """The instants of a batch, and between them the deadlines of sequences, which become part of it."""
        detector = self._detect
        assert detector is not None, "begin() comes before the first graph"
        now, place = detector.now, 0
        while place < len(known):
            due = None if now is None else detector.next_late(now, known[place][0])
            if due is not None:
                known.insert(place, (due, (), {}, False))
            yield known[place]
            now = known[place][0]
            place += 1

    def _run(self, due: Sequence[Instant]) -> Iterator[InstantEvents]:
        """Both halves over instants in order, up to an error."""
        pause, look = self._pause, self._look
        batch = self._batch()
        failed: DotrError | None = None
        place = 0
        while place < len(due):
            if not batch.room:
                yield from self._found(batch.closed())
                batch = self._batch()
            if pause is not None:
                pause()
            graphs = due[place][1]
            if graphs is not None and len(graphs) == 1 == len(graphs[0]):
                place = self.instants.entered(due, place, batch)
                if place == len(due) or not batch.room:
                    continue
            instant = due[place]
            place += 1
            try:
                batch.put(look(*instant))  # type: ignore[arg-type]  # where nothing lasts all are graphs
            except (DataError, ProgramError) as error:
                refusable = instant[1] is not None and error.diagnostics[0].code in REFUSABLE
                self._open.failed.add(instant[0])
                failed = self._raised(instant[0], instant[1] or (), error) if refusable else error
                if failed is not None:
                    break
        try:
            yield from self._found(batch.closed())
        except DotrError:
            if failed is not None:  # it comes later, and is found again
                self._open.failed.discard(instant[0])
            raise
        if failed is not None:
            raise failed

    def _batch(self) -> FactBatch:
        """For the next instants; facts wait for a trigger unless somebody looks at every instant."""
        detect, watched = self._detect, self._oracle is not None or self._observer.facts is not None
        waking = None if watched or detect is None else detect.waking
        return FactBatch(waking, 1 if self._open.last is None else TOGETHER)  # the first instant by itself

    def stated(self) -> dict[Triple, Entry | None]:
        """The triples whose statements changed since the last call, as journals keep them."""
        return {} if self._lasting is None else self._lasting.changed()

    def lasting(self) -> set[Triple]:
        """Every triple stated now, where something lasts."""
        return set() if self._lasting is None else set(self._lasting.stated())

    @property
    def spent_at_most(self) -> int:
        """The most that maintaining what lasts took of what the whole run may spend (budget.py)."""
        return 0 if self._lasting is None else self._lasting.spent_at_most

    def snapshot(self, stated: bool = True) -> dict[str, Any]:
        """Everything that the next push depends on, as a JSON value that shares nothing with the state.

        One part per rule, under the rule's digest, and the graphs of open instants. Without `stated`, the
        triples of `stated()` are left out.
        """
        return {
            "version": VERSION,
            "clock": None if self.clock is None else [self.clock.integer, self.clock.unit],
            **self._open.snapshot(),
            "counters": to_builtins(self.counters),
            "detect": None if self._detect is None else self._detect.snapshot(),
            "oracle": None if self._oracle is None else self._oracle.snapshot(),
            "lasting": None if self._lasting is None else self._lasting.snapshot(stated),
        }

    def restore(self, state: Mapping[str, Any]) -> Restored:
        """Continue where `state` was taken. Returns which rules kept their state, start empty, or are gone.

        Raises EngineError D5101 for a snapshot of another version.
        """
        refuse_version(state)
        counts = Counters(**state["counters"])
        self._run_counts = RunCounts(self.program, counts)
        self._open.graphs, self._open.late = counts.graphs, counts.late
        self._left_out.counts = dict(counts.left_out)
        self._open.restore(state)
        self._last_graph_time = self._open.last  # or earlier: then a few more ticks are stepped through
        self._unreturned = []
        if state["clock"] is None:
            return Restored((), tuple(rule.name for rule in self.program.rules), ())
        integer, unit = state["clock"]
        self.begin(Clock(integer, unit))
        if (lasting := state.get("lasting")) is not None:
            if self._lasting is None:
                self._last_from_now()
            assert self._lasting is not None
            self._lasting.restore(lasting)
        assert self._detect is not None
        assert self.clock is not None
        if self._oracle is not None and state["oracle"] is not None:
            self._oracle.restore(state["oracle"])
        restored = self._detect.restore(state["detect"])
        if self._lasting is not None and (restored.empty or restored.gone):
            self._lasting.rest()
        return restored

    # -- what lasts

    def replace(self, time: Time, program: Program, background: Collection[Triple]) -> None:
        """From `time` on another program holds, with another background; earlier events stay.

        Unchanged rules keep their state. Raises UsageError D4161 for a time that is closed, naming the first
        possible one, and ProgramError.
        """
        if self.clock is not None:
            refuse_closed(time, self.watermark, self.clock)
            check_units(program, self.clock)
        Deployment(program, background, self.deployment.settings).compile()  # what cannot run is reported now
        self._planned.append((time, program, background))
        if self._lasting is None and self.clock is not None:
            self._last_from_now()
        elif self._lasting is not None:
            self._schedule()

    def _last_from_now(self) -> None:
        """Treat every instant from now on as one of what lasts."""
        assert self.clock is not None, "begin() comes first"
        states = self._observer.state is not None
        self._lasting = self.deployment.lasting_run(
            self.program, self.clock, self._raised, self._oracle, states=states
        )
        if self._detect is not None:
            self._renew(self.program)
        self._schedule()

    def _schedule(self) -> None:
        assert self._lasting is not None
        for time, program, background in self._planned:
            self._lasting.replace(time, program, background)
        self._planned = []
        self._open.limit(self._tick())

    def _renew(self, program: Program) -> None:
        """A new detector for `program`; unchanged rules keep their state."""
        assert self._detect is not None
        assert self.clock is not None
        state, counts = self._detect.snapshot(), self.counters
        names = {rule.name for rule in program.rules}
        self.program, self._emit, self._effects = program, Emitter(program), _effects(program)
        self._run_counts = RunCounts(
            program, counts, {n: c for n, c in counts.events.items() if n not in names}
        )
        self._open.limit(self._tick())
        self._detect = self._new_detector(self.clock)
        self._detect.restore(state)

    def _leap(self, due: Sequence[Instant], bound: Time) -> Iterator[InstantEvents]:
        """Run instants of what lasts, in order, and what is due between and after them."""
        assert self._lasting is not None
        observer, counts = self._observer, self._run_counts
        if counts.every or counts.late or self.program.lars.rules or self._lasting.ahead:
            instants = self._lasting.instants(due, bound, self._next_tick, self._is_tick, self._is_clocked)
        else:  # nobody looks at a clock
            instants = self._lasting.instants(due, bound)
        for time, instant, failed in instants:
            if instant.program is not None:
                self._renew(instant.program)
                self.replaced = True
            self._open.last = time
            if self._findings is not None and instant.findings:
                assert self.clock is not None, "begin() comes first"
                self._findings.found(instant.findings, time, self.clock)
            if observer.lasting is not None:
                observer.lasting(time, instant)
            if observer.state is not None and instant.messages:
                observer.state(time, instant.state)
            if instant.seen:
                yield from self._found(FactBatch.of((time, instant.messages, instant.facts, instant.graph)))
            if failed is not None:
                raise failed
            if self._pause is not None:
                self._pause()
        if self._detect is not None:
            self._detect.pass_over(bound)

    def _next_tick(self, bound: Time) -> Time | None:
        """The next tick or timeline point after the last instant, before `bound`, that can matter."""
        last = self._open.last
        if last is None or self._detect is None:
            return None
        return self._detect.next_idle(self._idle_ticks, last, self._last_graph_time, bound)

    def _is_tick(self, time: Time) -> bool:
        """Whether the rules that hold at an instant may see it although nothing came."""
        assert self._lasting is not None
        program = self._lasting.program_from(time) or self.program
        return bool(program.lars.rules) or self._is_clocked(time)

    def _is_clocked(self, time: Time) -> bool:
        """Whether an EVERY or an AFTER of the rules that hold at an instant is due."""
        assert self._lasting is not None
        program, counts = self._lasting.program_from(time), self._run_counts
        if counts.late and self._detect is not None and self._detect.next_late(time - 1) == time:
            return True
        every = counts.every if program is None or program is self.program else ticks_of(program)
        return bool(every) and any(is_tick(rhythm, time) for rhythm in every)

    def _raised(self, time: Time, parts: Sequence[GraphOrMessage], error: DotrError) -> DotrError | None:
        """Report an instant that is in error; returns what to raise after what came before, if anything."""
        refused = self._observer.refused
        if refused is None or not is_refusable(error):
            return error
        try:
            refused(time, parts, error)
        except DotrError as raised:
            return raised
        if not parts and error.diagnostics[0].code != "D2604":
            self._run_counts.counts.overlooked += 1
        return None

    def _idle_before(self, bound: Time) -> Iterator[InstantEvents]:
        """Run the ticks and points that can matter after the last instant and before `bound`; no graph came
        there.
        """
        last, detect = self._open.last, self._detect
        if last is not None and detect is not None:
            for time in detect.idle(self._idle_ticks, last, self._last_graph_time, bound):
                if detect.next_late(time - 1) == time:
                    self._run_counts.late_tick = time
                yield from self._run([(time, None)])

    def _found(self, batch: FactBatch) -> Iterator[InstantEvents]:
        """Detect the instants of a closed batch, in order; yields the events of each that has any."""
        assert self._detect is not None, "begin() comes before the first graph"
        assert self.clock is not None
        detector, oracle, left_out = self._detect, self._oracle, self._left_out
        run_counts, emitter, counted, observe = self._run_counts, self._emit, 0, self._observer.facts
        on_matches = self._observer.matches
        known = batch.known
        run_counts.begin(batch.first)
        instants: Iterable[InstantFacts] = known
        if run_counts.late and len(known) > 1:
            instants = self._between(known)
        if observe is not None:
            instants = ((time, came, observe(time, facts, here), here) for time, came, facts, here in known)
        try:
            found = detector.detected(
                instants, run_counts.facts.seen, run_counts.facts.quiet, every=oracle is not None
            )
            for place, matches in found:
                time, came, _, graph = known[place]
                self._ran(batch, counted, place + 1)
                counted = place + 1
                if oracle is not None:
                    oracle.check(time, came, graph, matches, left_out.facts, detector.counted)
                failed = left_out.settle(time, self.program.rules, self.clock) if left_out.facts else None
                if matches and on_matches is not None:
                    on_matches(time, matches)
                if self._effects is not None and matches:
                    assert self._lasting is not None, "effects last"
                    if effects := self._effects.of(matches):
                        self._lasting.happen(time, effects)
                if leaving := emitter.public(matches):
                    run_counts.events(leaving)
                    yield InstantEvents(emitter, leaving)
                if failed is not None:
                    raise failed
        except (Exception, KeyboardInterrupt):  # what was detected is not detected again
            now = detector.now
            self._ran(batch, counted, sum(now is not None and one[0] <= now for one in known))
            raise
        if counted < len(known):
            self._ran(batch, counted, len(known))

    def _ran(self, batch: FactBatch, start: int, end: int) -> None:
        """Count the instants of a range as detected, if there are any."""
        if end > start:
            self._open.last, lasting = batch.known[end - 1][0], self._lasting is not None
            self._last_graph_time = self._run_counts.instants(
                batch, start, end, lasting, self._last_graph_time
            )


def _effects(program: Program) -> Effects | None:
    """What the events of a program state and end; None where none does."""
    if not program.has_effects:
        return None
    from dotr.emit.effects import Effects  # noqa: PLC0415  # start-up: most programs have none

    return Effects(program)


AHEAD: Final = 64
"""How many graphs are taken before they are run, unless they cannot wait."""


def drive(pipeline: Pipeline, taking: Iterator[int], ahead: int = AHEAD) -> Iterator[InstantEvents]:
    """Yields the emission of each instant that closes. `taking` has the pipeline take graphs, and yields how
    many at each step.

    An error of `taking` is raised after the emissions of what was closed before it; an instant's error at its
    place. After leaving early, the pipeline's next call returns the rest.
    """
    waiting, running = 0, False
    try:
        for taken in taking:
            waiting += taken
            if waiting >= ahead:
                waiting, running = 0, True
                yield from pipeline.drain()
                running = False
    except DotrError:
        if not running:
            yield from pipeline.drain()
        raise
    yield from pipeline.drain()
