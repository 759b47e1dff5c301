"""Corrections: a graph that comes late changes what was reported.

Place:   a Pipeline that takes graphs up to `period` behind the watermark; its callers get the events that
         these add and take back (emit/changes.py) among the others.
Method:  the graphs of the period are kept in order of time, the events that were reported, and a snapshot at
         every eighth of the period. Late graphs wait until `drain`; then the newest snapshot before the first
         of them is restored, the graphs after it run again, now in order of time with the late ones among
         them, and the events of both runs are compared, instant by instant. So whatever follows from an
         event (consumption, chains, effects, LARS, sequences) follows from its correction, and the
         consolidated events of a run are those of a run over the same graphs in order of time. An instant
         is extracted once, unless a late graph changes it or something lasts: a replay detects.
         A replay runs as many graphs as lie behind its snapshot, and late graphs wait until the last one is
         paid for by graphs that came in their turn: so replays take at most `share` of the work, by counts
         and without a clock. A replayed graph is taken as half of one that comes, since it is neither
         read nor extracted again; as a whole one where something lasts, which changes again. No graph waits
         longer than the period, or than the end of input.
         Graphs of an instant in error are dead letters: they are not kept, so that a replay neither reports
         them again nor sees them.
         Other rules from a time on: the graph that closes that time has the late ones taken that wait, and
         the period begins anew: what is earlier than that graph is late. A deployment has only the rules that
         hold, so one that starts again could not run those before; and whether it did is not to be seen.
Why not: a retraction of every fact through detection: each kind of state would need its inverse (consumed
         facts come back, sequences begin elsewhere), and a second executor would have every clause's ties.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from dotr.budget import CORRECTIONS
from dotr.core.deployment import Deployment
from dotr.core.instant import Facts, Graphs, InstantFacts
from dotr.core.pipeline import NOBODY, Pipeline, PipelineObserver, _effects
from dotr.detect.state import Restored
from dotr.emit.changes import Cause, Changes, Correction, changes
from dotr.emit.events import InstantEvents
from dotr.errors import Diagnostic, DotrError, UsageError
from dotr.events import Clock, GraphOrMessage, Time, part_of, plain
from dotr.extract.forms import Form
from dotr.lasting.periods import Entry
from dotr.program import Program
from dotr.program.names import duration_text
from dotr.rdf.terms import Triple

PARTS: Final = 8
"""Snapshots in a period."""

CHEAPER: Final = 2
"""A graph that comes costs as much as so many that are replayed; as one where something lasts."""

_TOGETHER: Final = 256
"""Graphs that a replay takes before they are run."""


class Corrected(Struct):
    """What corrections did. `replayed`: graphs that ran again; `waiting`: late graphs that wait for one."""

    corrections: int = 0
    late: int = 0
    added: int = 0
    withdrawn: int = 0
    replayed: int = 0
    waiting: int = 0


class Late(Struct, frozen=True):
    """A graph that waits for a correction; `bound`: everything before it was closed when the graph came."""

    time: Time
    part: GraphOrMessage
    place: str
    bound: Time


class _Snapshot(Struct, frozen=True):
    """A state without open graphs: everything before `bound` has run in it, None where nothing has."""

    bound: Time | None
    state: Mapping[str, Any]


class Watcher(Protocol):
    """Gets to know which graphs wait for a correction, and what each correction took and changed."""

    def waits(self, part: GraphOrMessage) -> None: ...
    def corrected(self, at: Time, late: Sequence[Late], changed: Sequence[Changes]) -> None: ...


Entered: TypeAlias = tuple[Time, tuple[GraphOrMessage, ...], bool]
"""Graphs of a time that came, or, where the last is True, all that there are of that time from now on."""


class PeriodChange(NamedTuple):
    """How the graphs of the period changed: `anew`: what was there is void; then these entries, JSON-able
    (`Entered`), and what is older than `low` is not needed any more.
    """

    anew: bool
    entries: Sequence[Any]
    low: Time | None


def graphs_of(entries: Sequence[Any], low: Time | None) -> list[tuple[Time, Any]]:
    """The graphs of the period that entries leave, in order of time, those of one time as they came."""
    found: dict[Time, list[Any]] = {}
    for time, parts, whole in entries:
        if low is not None and time < low:
            continue
        if whole:
            found[time] = list(parts)
        else:
            found.setdefault(time, []).extend(parts)
    return [(time, part) for time in sorted(found) for part in found[time]]


class CorrectingPipeline(Pipeline):
    """Owns the graphs, events and snapshots of a period, beside the state of a run.

    `period` in µs, more than `lateness`; `share`: how much of the work may be replays; `key`: of the rules
    and the background, since what others reported is not corrected. `logs`: somebody calls `period` at each
    commit and stores what it gives, so a snapshot for one has no graphs of the period.
    """

    def __init__(
        self,
        deployment: Deployment,
        observer: PipelineObserver = NOBODY,
        *,
        period: Time,
        share: float = CORRECTIONS,
        key: str = "",
        logs: bool = False,
        **more: Any,
    ) -> None:
        self._when_late, self._when_found = observer.late, observer.finding
        finding = None if observer.finding is None else self._found_once
        super().__init__(deployment, replace(observer, late=self._come_late, finding=finding), **more)
        self._done = Corrected()
        self._known: dict[Time, Facts] = {}  # what was extracted of the graphs of the period
        if self._oracle is None:  # which looks at the graphs
            self._look = self._looked_up
        self._key = key
        self._told: dict[Triple, Entry] = {}  # what `stated` gave so far
        self._restated = False  # whether what is stated changed by a replay since then
        self._period, self._earned = period, share / (1 - share)
        self._owed = 0.0  # replays that are not paid for, in graphs that come
        self._times: list[Time] = []  # of the graphs of the period, in order
        self._parts: list[GraphOrMessage] = []  # those graphs
        self._log: list[Entered] | None = [] if logs else None  # how they changed since `period`
        self._anew = False  # whether what was logged before is void
        self._events: list[InstantEvents] = []  # what was reported of the period
        self._snapshots: list[_Snapshot] = []
        self._waiting: list[Late] = []
        self._plans: list[tuple[Time, Deployment]] = []  # programs that hold from a time on
        self._under = deployment  # what the snapshots are of
        self.later_key = key
        """The key once the program that is planned holds."""
        self._lost: list[tuple[Time, GraphOrMessage, str]] = []  # waited under other rules, and are late
        self._changes: deque[InstantEvents] = deque()  # not given to the caller yet
        self._late = False  # whether the graph that is taken is late
        self._ending = self._replaying = False
        self._resuming = False  # whether what runs was run before a snapshot
        self._said: set[tuple[Time | None, str]] = set()  # what a replay does not report again
        self.watcher: Watcher | None = None

    @property
    def corrected(self) -> Corrected:
        """What corrections did so far."""
        return replace(self._done, waiting=len(self._waiting))

    def final(self) -> tuple[Time | None, Mapping[str, Any]]:
        """A state that no correction can reach any more, without open graphs, and up to when all has run in
        it; None: nothing has.
        """
        if not self._snapshots:  # before the first graph
            return None, self.snapshot()
        bound = self._snapshots[0].bound
        return None if bound is None else bound - 1, self._snapshots[0].state

    @property
    def background(self) -> Collection[Triple]:
        """That of the program which holds."""
        return self._under.background

    def graphs(self) -> list[tuple[Time, GraphOrMessage]]:
        """The graphs of the period, in order of time."""
        return list(zip(self._times, self._parts, strict=True))

    # -- graphs in

    def begin(self, clock: Clock) -> None:
        super().begin(clock)
        if not self._snapshots and not self._replaying:
            self._remember()

    def accept(self, time: Time, graph: GraphOrMessage) -> None:
        self._late = self._ending = False
        self._open.accept(time, graph)
        latest = self._open.latest  # a graph too far ahead does not change it
        if not self._late and not self._replaying and latest is not None and time <= latest:
            self._keep(time, graph)
        if self._plans and not self._replaying:
            self._pass_plan()

    def accept_run(self, times: Sequence[Time], graphs: Sequence[GraphOrMessage]) -> bool:
        if (self._plans and not self._replaying) or not super().accept_run(times, graphs):
            return False
        self._ending = False
        self._owed -= self._earned * len(times)
        if self._log is not None:
            self._log += [(time, (graph,), False) for time, graph in zip(times, graphs, strict=True)]
        self._times += times  # after all that came
        self._parts += graphs
        return True

    def takes(self, form: Form) -> bool:  # graphs are kept, columns are not
        return False

    def _keep(self, time: Time, graph: GraphOrMessage) -> None:
        self._owed -= self._earned
        times = self._times
        if self._log is not None:
            self._log.append((time, (graph,), False))
        if not times or times[-1] <= time:
            times.append(time)
            self._parts.append(graph)
        else:
            self._put(time, graph)

    def _insert(self, time: Time, graph: GraphOrMessage) -> None:
        if self._log is not None:
            self._log.append((time, (graph,), False))
        self._put(time, graph)

    def _put(self, time: Time, graph: GraphOrMessage) -> None:
        self._known.pop(time, None)
        place = bisect_right(self._times, time)
        self._times.insert(place, time)
        self._parts.insert(place, graph)

    def _looked_up(self, time: Time, graphs: Graphs | None) -> InstantFacts:
        """The facts of an instant; a replay finds what was extracted of the same graphs before."""
        if self._replaying and graphs is not None:
            found = self._known.get(time)
            if found is not None:
                return time, (), found, True
        instant = self.instants.overlaid(time, graphs)
        if graphs is not None:
            self._known[time] = instant[2]
        return instant

    def _come_late(self, time: Time, graph: GraphOrMessage) -> None:
        """Let a graph wait for a correction, or pass it on as late."""
        bound, self._late = self._open.bound, True
        assert bound is not None, "nothing is late before something is closed"
        if time >= bound - 1 - self._period and self._before(time) is not None:
            self._open.late -= 1
            late = Late(time, graph, _place_of(self.place), bound)
            self._waiting.append(late)
            if self.watcher is not None:
                self.watcher.waits(graph)
        elif self._when_late is not None:
            self._when_late(time, graph)

    def _raised(self, time: Time, parts: Sequence[GraphOrMessage], error: DotrError) -> DotrError | None:
        """As of a pipeline; the graphs of an instant in error are not kept."""
        if not parts:
            key = time, error.diagnostics[0].code
            if self._replaying and key in self._said:
                return None
            self._said.add(key)
        if self._resuming:
            return None
        raised = super()._raised(time, parts, error)
        start, end = bisect_left(self._times, time), bisect_right(self._times, time)
        gone = {id(part) for part in parts}
        kept = [part for part in self._parts[start:end] if id(part) not in gone]
        if self._log is not None and len(kept) < end - start:
            self._log.append((time, tuple(kept), True))
        self._times[start:end], self._parts[start:end] = [time] * len(kept), kept
        return raised

    def _found_once(self, finding: Diagnostic) -> None:
        """Report a finding, once: a replay finds it again."""
        assert self._when_found is not None
        key = None, f"{finding.code} {finding.message}"
        known = self._replaying and key in self._said
        self._said.add(key)
        if not known and not self._resuming:
            self._when_found(finding)

    # -- events out

    def drain(self) -> Iterator[InstantEvents]:
        yield from self.given()
        while self._lost:
            time, part, self.place = self._lost.pop(0)
            self._open.late += 1
            if self._when_late is not None:
                self._when_late(time, part)
        if self._plans:
            self._pass_plan()
            yield from self.given()
        for events in super().drain():
            self._events.append(events)
            yield events
        if self._waiting and self._is_due():
            self._changes += self._correct()
        self._remember_if_due()
        yield from self.given()

    def given(self) -> Iterator[InstantEvents]:
        """What was found and not returned yet; nothing runs."""
        while self._changes:
            yield self._changes.popleft()

    def close_all(self) -> None:
        super().close_all()
        self._ending = True

    def _is_due(self) -> bool:
        """Whether graphs that wait are taken now."""
        bound = self._open.bound
        assert bound is not None, "nothing is late before something is closed"
        return self._ending or self._owed <= 0 or bound - self._waiting[0].bound > self._period

    def _before(self, time: Time) -> _Snapshot | None:
        """The newest snapshot that knows nothing of `time` or later."""
        return next((s for s in reversed(self._snapshots) if s.bound is None or s.bound <= time), None)

    def _correct(self, ran: bool = True) -> list[Changes]:
        """Take the graphs that wait; what becomes of the events. If a replay with them fails, they count as
        if they had never come, and its error is raised. `ran`: whether everything that is closed has run.
        """
        late = sorted(self._waiting, key=lambda one: one.time)
        self._waiting = []
        watermark, lost = self.watermark, self._open.late
        snapshot = self._before(late[0].time)
        assert watermark is not None, "nothing is late before something is closed"
        assert snapshot is not None, "no graph waits without one"
        start = self._first_event(snapshot)
        before, times, parts = self._events[start:], self._times[:], self._parts[:]
        logged = None if self._log is None else self._log[:]
        for one in late:
            self._insert(one.time, one.part)
        upto = watermark + 1 if ran else self._ran_before(snapshot)
        try:
            replayed = self._replay(snapshot, upto, watermark + 1)
        except DotrError:
            self._times, self._parts, self._log = times, parts, logged
            for one in late:
                self._known.pop(one.time, None)
            self._replay(snapshot, upto, watermark + 1)
            self._open.late = lost
            raise
        self._open.late = lost
        self._owed = replayed / (CHEAPER if self._lasting is None else 1)
        correction = Correction(watermark, tuple(Cause(one.time, one.place) for one in late))
        found = list(changes(before, self._events[start:], correction))
        done = self._done
        done.corrections += 1
        done.late += len(late)
        done.replayed += replayed
        done.added += sum(len(one) for one in found if one.change > 0)
        done.withdrawn += sum(len(one) for one in found if one.change < 0)
        if self.watcher is not None:
            self.watcher.corrected(watermark, late, found)
        return found

    def _ran_before(self, snapshot: _Snapshot) -> Time | None:
        """What is before this has run; None: nothing has."""
        last = self._open.last
        known = [time for time in (snapshot.bound, None if last is None else last + 1) if time is not None]
        return max(known, default=None)

    def _first_event(self, snapshot: _Snapshot) -> int:
        """How many instants of the period had their events before a snapshot."""
        return 0 if snapshot.bound is None else bisect_left(self._events, snapshot.bound, key=_instant)

    def _replay(self, snapshot: _Snapshot, ran: Time | None, bound: Time) -> int:
        """Run the graphs that are kept again, from a snapshot on, as far as `ran` (None: none of them); the
        rest up to `bound` is closed, and runs at the next `drain`. How many are kept from there on.
        """
        self._snapshots = self._snapshots[: self._snapshots.index(snapshot) + 1]
        self._events = self._events[: self._first_event(snapshot)]
        at = 0 if snapshot.bound is None else bisect_left(self._times, snapshot.bound)
        times, parts = self._times[at:], self._parts[at:]
        end = 0 if ran is None else bisect_left(times, ran)
        self._replaying = self._restated = True
        pause, self._pause = self._pause, None  # half a replay is no state
        try:
            self._lasting = None  # a snapshot of a time before anything lasted has none
            self._planned = [(time, one.program, one.background) for time, one in self._plans]
            if self.program is not self._under.program:
                self._switch()
            Pipeline.restore(self, snapshot.state)
            start = 0
            while start < end:
                upto = min(self._end_of_run(times, start), end)
                self._take_again(times[start:upto], parts[start:upto])
                self._rerun()
                start = upto
            if ran is not None:
                self._open.close_before(ran)
                self._rerun()
            if start < len(times):
                self._take_again(times[start:], parts[start:])
            self._open.close_before(bound)
        finally:
            self._replaying, self._pause = False, pause
        return len(times)

    def _end_of_run(self, times: Sequence[Time], start: int) -> int:
        """Up to where graphs are taken before they are run: whole instants, up to the next snapshot."""
        last = self._snapshots[-1].bound
        due = times[start] if last is None else last + self._period // PARTS
        end = min(start + _TOGETHER, bisect_left(times, due, start))
        return bisect_right(times, times[max(start, end - 1)])

    def _take_again(self, times: Sequence[Time], parts: Sequence[GraphOrMessage]) -> None:
        if set(map(type, parts)) != {list} or not Pipeline.accept_run(self, times, parts):
            for time, part in zip(times, parts, strict=True):
                self.take(time, part)

    def _rerun(self) -> None:
        self._events += Pipeline.drain(self)
        self._remember_if_due()

    def _is_snapshot_due(self) -> bool:
        bound, last = self._open.bound, self._snapshots[-1].bound if self._snapshots else None
        return bound is not None and (last is None or bound - last >= self._period // PARTS)

    def _remember_if_due(self) -> None:
        if self._is_snapshot_due():
            self._remember()
            self._forget()

    def _remember(self) -> None:
        """Take a snapshot."""
        state = Pipeline.snapshot(self)
        state["counters"]["graphs"] -= sum(len(parts) for _, parts in state["pending"])
        state["pending"] = []
        self._snapshots.append(_Snapshot(self._open.bound, state))

    def _forget(self) -> None:
        """Forget what no graph can reach any more."""
        bound = self._open.bound
        assert bound is not None, "something was closed"
        reach = min([bound - 1 - self._period, *(late.time for late in self._waiting)])
        oldest = None if self._replaying else self._before(reach)
        if oldest is None or oldest.bound is None:
            return
        self._snapshots = self._snapshots[self._snapshots.index(oldest) :]
        del self._events[: self._first_event(oldest)]
        graphs = bisect_left(self._times, oldest.bound)
        for time in self._times[:graphs]:
            self._known.pop(time, None)
        del self._times[:graphs], self._parts[:graphs]
        if self._log is not None and len(self._log) > 2 * len(self._times):
            self._log = [entry for entry in self._log if entry[0] >= oldest.bound]
        self._said = {key for key in self._said if key[0] is None or key[0] >= oldest.bound}

    # -- snapshots

    def stated(self) -> dict[Triple, Entry | None]:
        changed = super().stated()
        if self._restated:
            now = {} if self._lasting is None else self._lasting.entries()
            old = self._told
            changed = {
                triple: now.get(triple)
                for triple in sorted(old.keys() | now.keys())
                if old.get(triple) != now.get(triple)
            }
            self._restated = False
        for triple, entry in changed.items():
            if entry is None:
                self._told.pop(triple, None)
            else:
                self._told[triple] = entry
        return changed

    def period(self) -> PeriodChange:
        """How the graphs of the period changed since the last call."""
        log, anew = self._log or [], self._anew
        self._log, self._anew = [], False
        entries = [[time, [plain(part) for part in parts], whole] for time, parts, whole in log]
        low = self._snapshots[0].bound if self._snapshots else None
        return PeriodChange(anew, entries, low)

    def snapshot(self, stated: bool = True) -> dict[str, Any]:
        """As that of a pipeline, with the graphs of the period, or without where these are logged and what is
        stated is stored, too; and with the oldest snapshot: from these the others and the events come again.
        """
        found = super().snapshot(stated)
        kept = None
        if stated or self._log is None:
            kept = [[time, plain(part)] for time, part in zip(self._times, self._parts, strict=True)]
        first = self._snapshots[0] if self._snapshots else None
        found["corrections"] = {
            "key": self._key,
            "from": None if first is None else first.state,
            "bound": None if first is None else first.bound,
            "closed": self._open.bound,
            "graphs": kept,
            "late": [[one.time, plain(one.part), one.place, one.bound] for one in self._waiting],
            "owed": self._owed,
            "done": to_builtins(self._done),
        }
        return found

    def restore(self, state: Mapping[str, Any]) -> Restored:
        """Continue where `state` was taken: the graphs of the period run again. Where other rules or another
        background reported what is there, nothing of it is corrected, and graphs that wait are late.
        """
        saved, late = state.get("corrections"), state["counters"]["late"]
        lasting = state.get("lasting")
        told = () if lasting is None else lasting["stated"]
        self._told = {(s, p, o): tuple(entry) for s, p, o, *entry in told}
        restored = super().restore(state)
        self._snapshots, self._events, self._times, self._parts = [], [], [], []
        self._known = {}
        waiting = [] if saved is None else saved["late"]
        if (
            saved is None
            or saved["from"] is None
            or saved["key"] != self._key
            or restored.empty
            or restored.gone
        ):
            self._log, self._anew = None if self._log is None else [], True
            if self.clock is not None:
                self._begin_again()
            self._lost = [(time, part_of(value), place) for time, value, place, _ in waiting]
            return restored
        graphs = saved["graphs"]
        if graphs is None:
            graphs = graphs_of(saved["log"], saved["bound"])
        self._times = [time for time, _ in graphs]
        self._parts = [part_of(value) for _, value in graphs]
        if self._log is not None:
            self._anew = saved["graphs"] is not None
            kept = zip(self._times, self._parts, strict=True) if self._anew else ()
            self._log = [(time, (part,), False) for time, part in kept]
        self._snapshots = [_Snapshot(saved["bound"], saved["from"])]
        if saved["closed"] is not None:
            oldest, self._resuming = self._snapshots[0], True
            try:  # what was closed and had not run is reported yet
                self._replay(oldest, self._ran_before(oldest), saved["closed"])
            finally:
                self._resuming = False
        self._open.late = late
        self._waiting = [Late(time, part_of(value), *more) for time, value, *more in waiting]
        self._owed, self._done = saved["owed"], Corrected(**saved["done"])
        return restored

    def _begin_again(self) -> None:
        """Keep the graphs of open instants of a state that knew of no corrections."""
        for time, parts in self._open.waiting():
            for part in parts or ():
                self._keep(time, part)
        self._remember()

    # -- other rules

    def replace(self, time: Time, program: Program, background: Collection[Triple]) -> None:
        """As of a pipeline. Once `time` has passed, a graph from before it is late."""
        super().replace(time, program, background)
        self._plans = [one for one in self._plans if one[0] != time]
        self._plans.append((time, Deployment(program, background, self.deployment.settings)))
        self._plans.sort(key=lambda plan: plan[0])

    def _pass_plan(self) -> None:
        """Where the graph that came last closed the time from which other rules hold, run up to there: what
        is late from then on does not depend on when graphs are run.
        """
        bound = self._open.bound
        if bound is None or self._plans[0][0] >= bound:
            return
        pause, self._pause = self._pause, None  # the graph is taken, whoever wants to stop
        try:
            if self._waiting:
                self._changes += self._correct(ran=False)
            for events in super().drain():
                self._events.append(events)
                self._changes.append(events)
        finally:
            self._pause = pause
        self._begin_under_others(bound)

    def _begin_under_others(self, bound: Time) -> None:
        """Other rules hold: what those before reported stays."""
        while self._plans and self._plans[0][0] < bound:
            self._under = self._plans.pop(0)[1]
        at = bisect_left(self._times, bound)
        self._times, self._parts = self._times[at:], self._parts[at:]
        if self._log is not None:
            kept = zip(self._times, self._parts, strict=True)
            self._anew, self._log = True, [(time, (part,), False) for time, part in kept]
        self._events, self._snapshots, self._known, self._key = [], [], {}, self.later_key
        self._remember()

    def _switch(self) -> None:
        """Let the program of the snapshots take the place of the one that was there at first."""
        self.deployment, self.program = self._under, self._under.program
        self.instants, self._emit = self._under.instants, self._under.emitter
        self._effects = _effects(self.program)
        self._oracle = None if self._oracle is None else self._under.oracle()
        self._open.limit(self._tick())


def too_short(period: Time, lateness: Time) -> UsageError:
    """UsageError D4167: nothing comes later than `lateness` and within the period."""
    return UsageError.of(
        "D4167",
        f"corrections of {duration_text(period)} take nothing that a lateness of {duration_text(lateness)}"
        " does not wait for",
        hint="make the corrections longer than the lateness",
    )


def uncorrected(folder: str) -> UsageError:
    """UsageError D4165: a deployment that was fed with corrections is fed without."""
    return UsageError.of(
        "D4165",
        f"`{folder}` was fed with corrections, and is not fed without them",
        notes=("late graphs may wait for a correction, which would be lost",),
        hint="use --corrections DURATION, as before",
    )


def refused(verb: str, reason: str, hint: str) -> UsageError:
    """UsageError D4165: a verb has no corrections."""
    return UsageError.of("D4165", f"{verb} makes no corrections", notes=(reason,), hint=hint)


def with_corrections(what: str) -> UsageError:
    """UsageError D4165: what a run with corrections does not do."""
    return UsageError.of("D4165", f"{what} in a run with corrections", hint="leave one of both out")


def _instant(events: InstantEvents) -> Time:
    return events.time


def _place_of(place: Any) -> str:
    """Where the graph that is taken was read."""
    found = place() if callable(place) else place
    return str(getattr(found, "place", found))
