"""Open instants: when they close, which graphs are late or too far ahead, and how time is counted.

Place:   pipeline.py runs closed instants, and refuses a graph that is too far ahead before it closes any; a
         batch run finds the first such graph in a log. The time unit is checked once the first graph has
         fixed it, and by batch/ before it splits a log.
Method:  graphs wait for their instants to close, by a later timestamp or the end of input. Everything before
         `bound` is closed; with a lateness d the bound stays d behind the latest timestamp, otherwise it
         equals it. A graph before the bound is late.
         A program's lengths of time must fit how the stream counts time (language.md): with integer time,
         EVERY, FOR and STEP are multiples of the unit, since otherwise a tick or an end would lie between two
         times.
Why not: take a graph that is far ahead and run every tick up to it: one wrong clock would close every
         source's instants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from operator import itemgetter, le, lt
from typing import Any, TypeAlias

from msgspec import Struct

from dotr.detect.analysis import ENDLESS, IdleTicks
from dotr.errors import DataError, Diagnostic, DotrError, ProgramError
from dotr.events import Clock, GraphOrMessage, Instant, Time, part_of, plain
from dotr.program import After, CalendarTick, Every, Program, Rhythm, Tick
from dotr.program.names import duration_text, rhythm_text
from dotr.program.sequences import RowPattern
from dotr.source import Span

TICKS = 1_000_000
"""The limit of ticks between two instants that have to be stepped through."""


class JumpLimit(Struct, frozen=True):
    """How far ahead of an instant the next one may lie.

    `max_jump`: in µs, ENDLESS for no limit. `stride`: a distance that always passes. `later`: (time from
    which it holds, how it ticks) of later programs, in order.
    """

    ticks: IdleTicks
    max_jump: Time
    stride: Time
    later: tuple[tuple[Time, IdleTicks], ...] = ()

    def refused(self, now: Time, latest: Time, time: Time, clock: Clock) -> DataError | None:
        """D2106 or D2107 for a graph at `time`; the last one came at `latest`, time is at `now` ≥ it."""
        if time - now <= self.stride:
            return None
        if time - now > self.max_jump:
            return _jumped(now, time, self.max_jump, clock)
        return self.ticked(now, latest, time, clock)

    def ticked(self, now: Time, latest: Time, bound: Time, clock: Clock) -> DataError | None:
        """D2107 if too many ticks of the programs that hold there lie between `now` and `bound`."""
        ticks, since = self.ticks, now
        for time, other in (*self.later, (bound, self.ticks)):
            until = min(time, bound)
            if since < until and (error := _ticked(ticks, since, latest, until, clock)):
                return error
            ticks, since, latest = other, max(now, time), max(latest, time)
        return None

    def began(self, time: Time, clock: Clock) -> DataError | None:
        """D2107 if too many ticks of a program lie before the first graph, at `time`."""
        first = self.later[0][0] if self.later else time
        return self.ticked(first, first, time, clock) if first < time else None


def _ticked(ticks: IdleTicks, now: Time, latest: Time, bound: Time, clock: Clock) -> DataError | None:
    if ticks.count(now, latest, bound) <= TICKS:
        return None
    worst = ticks.worst(now, latest, bound)
    named = ", ".join(f"`{name}`" for name in worst.rules[:5]) + (", …" if worst.rules[5:] else "")
    return DataError.of(
        "D2107",
        f"more than {TICKS:,} ticks lie between {clock.text(now)} and {clock.text(bound)}",
        place=f"@ {clock.text(bound)}",
        notes=(f"at each tick of `EVERY {rhythm_text(worst.every)}` something can match: {named}",),
        hint="correct the clock of the source (--max-jump refuses such graphs), tick less often, or "
        "let the rule choose a fact of the stream from a window",
    )


def ahead(
    ticks: IdleTicks, max_jump: Time | None = None, later: Mapping[Time, IdleTicks] | None = None
) -> JumpLimit:
    """The distances for a program; `max_jump` in µs, None for no limit."""
    most = ENDLESS if max_jump is None else max_jump
    others = tuple((time, (later or {})[time]) for time in sorted(later or {}))
    stride = min(most, ticks.allows(TICKS), *(other.allows(TICKS) for _, other in others))
    return JumpLimit(ticks, most, stride, others)


def _jumped(now: Time, time: Time, max_jump: Time, clock: Clock) -> DataError:
    return DataError.of(
        "D2106",
        f"this graph is for {clock.text(time)}, more than {duration_text(max_jump)} ahead",
        place=f"@ {clock.text(time)}",
        notes=(f"time is at {clock.text(now)}, set by the last graph that was accepted",),
        hint="correct the clock of the source; or raise --max-jump, if it is right",
    )


def ticks_of(program: Program) -> list[Rhythm]:
    """The distinct rhythms of EVERY."""
    return list({rule.trigger.rhythm: None for rule in program.rules if isinstance(rule.trigger, Tick)})


LateGraph: TypeAlias = Callable[[Time, GraphOrMessage], None]
RefusedInstant: TypeAlias = Callable[[Time, Sequence[GraphOrMessage], DotrError], None]

_TIME = itemgetter(0)


class OpenInstants:
    """Owns the graphs of instants that have not run, and counts those that came.

    `lateness` in µs; `on_late` and `on_refused`: see Pipeline. `ahead` and `clock` are set before the first
    graph. `last` is set to the last instant that ran, `failed` to those in error.
    """

    def __init__(
        self, lateness: Time, on_late: LateGraph | None, on_refused: RefusedInstant | None, ahead: JumpLimit
    ) -> None:
        self.lateness = lateness
        self.clock: Clock | None = None
        self.bound: Time | None = None
        """Everything before it is closed; None before the first graph."""
        self.latest: Time | None = None
        """The greatest timestamp seen."""
        self.last: Time | None = None
        self.failed: set[Time] = set()
        self.graphs = self.late = 0
        self._on_late, self._on_refused = on_late, on_refused
        self._ahead, self._stride = ahead, ahead.stride
        self._in_order = lateness == 0
        self._newest: list[GraphOrMessage] = []  # graphs of the latest instant, while it is open
        self._pending: dict[Time, list[GraphOrMessage]] = {}  # those of earlier instants, likewise
        self._times: list[Time] = []  # heap of the keys of _pending
        self._due: list[Instant] = []  # closed by the next graph, not run yet (without lateness)
        self._taken: list[Instant] = []  # by an unfinished run

    def limit(self, ahead: JumpLimit) -> None:
        """Set how far ahead graphs may lie from now on."""
        self._ahead, self._stride = ahead, ahead.stride

    @property
    def watermark(self) -> Time | None:
        """Everything up to here is closed; None before anything is."""
        return None if self.bound is None else self.bound - 1

    @property
    def settled(self) -> Time | None:
        """Everything up to here has run; None before anything has."""
        waits = [time for time, _ in (*self._left()[:1], *self._due[:1])] + self._times[:1]
        if not waits and self._newest and self.latest is not None:
            waits = [self.latest]
        return min(waits) - 1 if waits else self.watermark

    def accept(self, time: Time, graph: GraphOrMessage) -> None:
        """Take one graph. Raises D2106, D2107 for one too far ahead, without `on_refused`."""
        latest, graphs, stride = self.latest, self._newest, self._stride
        if graphs and self._in_order and self.bound == latest < time <= latest + stride:  # type: ignore[operator]  # graphs have a time
            # the common case: close the one open instant and open a new one
            self._due.append((latest, graphs))  # type: ignore[arg-type]
            self._newest = [graph]
            self.latest = self.bound = time
            self.graphs += 1
            return
        if self.bound is not None and time < self.bound:
            self.late += 1
            if self._on_late is not None:
                self._on_late(time, graph)
            return
        if (latest is None or time > latest + stride) and self._is_refused(latest, time, graph):
            return
        self.graphs += 1
        if latest is None or time > latest:
            if graphs:
                self._await(latest, graphs)  # type: ignore[arg-type]
            self.latest, self._newest = time, [graph]
            self.close_before(time - self.lateness)
        elif time == latest and graphs:
            graphs.append(graph)
        elif time in self._pending:
            self._pending[time].append(graph)
        else:
            self._await(time, [graph])

    def accept_run(self, times: Sequence[Time], graphs: Sequence[GraphOrMessage]) -> bool:
        """Take many graphs at once, if they are in order, the first starts a new instant after everything
        that came or was closed, and none is too far ahead; else return False with none taken.
        """
        latest, newest, bound = self.latest, self._newest, self.bound
        if latest is None or bound is None or not self._in_order or (newest and bound > latest):
            return False
        if not latest < times[0] >= bound or times[-1] - latest > self._stride:
            return False
        if all(map(lt, times, times[1:])):
            *taken, last = [[graph] for graph in graphs]
            due: Iterable[Instant] = zip(times, taken, strict=False)
        elif all(map(le, times, times[1:])):
            together: dict[Time, list[GraphOrMessage]] = {}
            for time, graph in zip(times, graphs, strict=True):
                together.setdefault(time, []).append(graph)
            _, last = together.popitem()
            due = together.items()
        else:
            return False
        if newest:
            self._due.append((latest, newest))
        self._due += due
        self._newest = last
        self.latest = self.bound = times[-1]
        self.graphs += len(graphs)
        return True

    def pass_over(self, first: Time, last: Time, graphs: int) -> bool:
        """Close the open instant, as for graphs of instants from `first` to `last` that are run elsewhere;
        False if they do not come after everything else, or lie too far ahead.
        """
        latest, newest, bound = self.latest, self._newest, self.bound
        if latest is None or bound is None or not self._in_order or (newest and bound > latest):
            return False
        if not latest < first >= bound or last - latest > self._stride:
            return False
        if newest:
            self._due.append((latest, newest))
        self._newest = []
        self.latest, self.bound = last, last + 1
        self.graphs += graphs
        return True

    def _is_refused(self, latest: Time | None, time: Time, graph: GraphOrMessage) -> bool:
        """Whether a graph lies too far ahead; `on_refused` is called with it."""
        assert self.clock is not None, "begin() comes before the first graph"
        if latest is None:
            error = self._ahead.began(time, self.clock)
        else:
            error = self._ahead.refused(self._reached(latest), latest, time, self.clock)
        if error is not None and self._on_refused is None:
            raise error
        if error is not None and self._on_refused is not None:
            self._on_refused(time, [graph], error)
            self.graphs += 1
        return error is not None

    def refuses_tick(self, bound: Time) -> DataError | None:
        """D2107 where too many ticks lie before `bound`."""
        if self.latest is None or self.clock is None:
            return None
        return self._ahead.ticked(self._reached(self.latest), self.latest, bound, self.clock)

    def _reached(self, latest: Time) -> Time:
        """The current time: of the last graph, or what it was advanced to."""
        return latest if self.bound is None else max(latest, self.bound - 1)

    def _await(self, time: Time, graphs: list[GraphOrMessage]) -> None:
        self._pending[time] = graphs
        heappush(self._times, time)

    def close_before(self, bound: Time) -> None:
        """Close everything before `bound`; a later bound stays."""
        if self.bound is None or bound > self.bound:
            self.bound = bound

    def closed(self) -> list[Instant]:
        """The closed instants that have not run, in order. Until `done` is called, those that still have not
        run are returned again.
        """
        bound = self.bound
        due, self._due = self._due, []
        times, earlier = self._times, self._left() if self._taken else []
        while bound is not None and times and times[0] < bound:
            time = heappop(times)
            earlier.append((time, self._pending.pop(time)))
        if earlier:
            due = sorted(earlier + due, key=_TIME)
        if self._newest and self.latest is not None and bound is not None and self.latest < bound:
            due.append((self.latest, self._newest))
            self._newest = []
        self._taken = due
        return due

    def done(self) -> None:
        """Everything that was closed has run."""
        self._taken = []
        self.failed.clear()

    def _left(self) -> list[Instant]:
        """What an earlier run took and did not reach."""
        last, failed = self.last, self.failed
        left = [i for i in self._taken if i[0] not in failed and (last is None or i[0] > last)]
        self.failed = set()
        self._taken = left
        return left[:]

    def waiting(self) -> list[Instant]:
        """Instants that have not run, in order, each with its graphs."""
        latest = [] if self.latest is None or not self._newest else [(self.latest, self._newest)]
        return sorted([*self._pending.items(), *self._left(), *self._due], key=_TIME) + latest

    def snapshot(self) -> dict[str, Any]:
        """What `restore` takes, as JSON values."""
        waiting = [[time, [plain(part) for part in parts or ()]] for time, parts in self.waiting()]
        return {"times": [self.bound, self.latest, self.last], "pending": waiting}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        self.bound, self.latest, self.last = state["times"]
        self._pending = {time: [part_of(value) for value in parts] for time, parts in state["pending"]}
        self._newest = [] if self.latest is None else self._pending.pop(self.latest, [])
        self._times = sorted(self._pending)
        self._due, self._taken = [], []


def check_units(program: Program, clock: Clock) -> None:
    """Raise ProgramError D1409 with every length of time that is not a multiple of the unit of integer time,
    D1347 with every EVERY at local times where times are integers, D1609 where there are dates and LARS rules
    without a STEP.
    """
    if not clock.integer:
        _check_step(program)
        return
    found = [
        Diagnostic(
            "D1409",
            f"{what} is not a multiple of the unit of this stream's time",
            span,
            f"{duration} µs",
            (f"times are integers of {clock.unit} µs",),
            "use a multiple, or a finer --time-unit",
        )
        for what, duration, span in _durations(program)
        if duration % clock.unit
    ]
    for rule in program.rules:
        if isinstance(rule.trigger, CalendarTick):
            found.append(_without_days(rule.name, rule.trigger))
    if found:
        raise ProgramError(found)


def _without_days(rule: str, tick: CalendarTick) -> Diagnostic:
    return Diagnostic(
        "D1347",
        f"`EVERY {rhythm_text(tick.rhythm)}` of rule `{rule}` needs times with days",
        tick.span,
        "",
        ("the times of this stream are integers",),
        "give the stream dateTimes, or write a length of time: `EVERY 1 h`",
    )


def _check_step(program: Program) -> None:
    if program.lars.rules and program.lars.step is None:
        raise ProgramError.of(
            "D1609",
            "the times of this stream are dateTimes, and these rules have no STEP",
            program.lars.span,
            hint="write `STEP 1 s` into a .lars file: the distance of its points",
            notes=("with integer times a point is one unit",),
        )


def _durations(program: Program) -> Iterator[tuple[str, Time, Span | None]]:
    for rule in program.rules:
        if isinstance(rule.trigger, Every):
            yield f"`EVERY` of rule `{rule.name}`", rule.trigger.duration, rule.trigger.span
        elif isinstance(rule.trigger, After):
            yield f"`AFTER` of rule `{rule.name}`", rule.trigger.duration, rule.trigger.span
        elif isinstance(rule.trigger, RowPattern):
            yield f"`WITHIN` of sequence `{rule.name}`", rule.trigger.within, rule.trigger.span
            if rule.trigger.gap is not None:
                yield f"`GAP` of sequence `{rule.name}`", rule.trigger.gap, rule.trigger.span
    for hold in program.holds:
        if hold.duration is not None:
            yield "`FOR` of this HOLD", hold.duration, hold.span
    if program.lars.step is not None:
        yield "STEP", program.lars.step, program.lars.span
    else:
        for lars in program.lars.rules:
            for duration, span in lars.durations:
                yield "this", duration, span
