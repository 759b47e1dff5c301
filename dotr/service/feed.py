"""Feed sources into a deployment: graphs in, events out, everything committed together.

Place:   what `dotr feed` runs; drives one Pipeline, reads any source (io/feeds.py), writes to any sink
         (outputs.py), commits through journal.py. Beside io/feeds.py the only code that reads a clock.
Method:  a graph's position, the engine's state after it and the length of every output are one commit. Bad
         documents and late graphs go to files that the journal keeps like any other output. The journal also
         has the position of every source; only the source knows what a position means.
         Commits: one is due after so many graphs or so much time, and not before twelve times its expected
         cost has passed, so that snapshots take less than a tenth of the time and a large state is saved less
         often, not more slowly. The expected cost is that of the last commit, in proportion more where the
         state has grown since.
         Keeping: for `dotr explain --dir`, where the deployment asks for it, the messages as they came, and
         the engine's state before the first of them and after every further quarter of what is kept. A run
         from such a state over the messages after it repeats the original run.
Why not: a commit per graph: a snapshot of 20 MB takes 0.3 s. Reading the sources again to explain: they
         change and disappear. Keeping only the events: what they consumed, and what held, would have to be
         kept with each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import partial
from itertools import repeat
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, to_builtins

from dotr.budget import BUDGET, CORRECTIONS
from dotr.collecting import uncollected
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.emit.events import InstantEvents
from dotr.errors import DataError, Diagnostic, DotrError, ProgramError, RefusedError, Severity
from dotr.events import Clock, GraphOrMessage, Time, plain
from dotr.io.errors import LateGraphs, Lineage, dead_letter, with_places
from dotr.io.events import late_line
from dotr.io.feeds import DocumentSource, GraphSource
from dotr.io.graphs import DocumentRun, Item, ReadEvent, TimedGraph
from dotr.io.time_reading import late_by_choice
from dotr.program import Program
from dotr.rdf.terms import Triple
from dotr.service.deployment import NOTHING_ADDED, Added, resumed
from dotr.service.journal import (
    Commit,
    Deployed,
    Journal,
    KeptChange,
    KeptCorrection,
    KeptMessage,
    KeptRow,
    PlannedProgram,
    digest_of,
    planned,
)
from dotr.service.outbox import Outcomes
from dotr.service.outputs import CommittedOutput, LetterOutput, Sink
from dotr.survey.queries import Sample

if TYPE_CHECKING:
    from dotr.core.corrections import Late  # start-up: few feeds correct
    from dotr.emit.changes import Changes

_STRETCHES = 4
"""Into so many stretches what is kept is parted, at least."""

_RUN, _SHARE = 1_000, 4
"""A stretch has no more messages than the first, or as many times the facts of a state as the second: to run
it again takes as long as to load its state, and states take a part of what is kept.
"""

_LOOK = 63
"""So many messages, and one more, come between two looks at the time: a mask."""


@dataclass(slots=True)
class Keeping:
    """Owns what came since the last commit. `length`: how long messages are kept, in µs; `begun`: whether the
    journal has a state to begin with; `since`: the time of the last state that is kept.

    Where corrections are made, states are those that none of them can reach any more, and so messages are
    kept for the period of corrections at least; late ones are kept by the correction that takes them.
    """

    pipeline: Pipeline
    length: Time
    begun: bool = False
    since: Time | None = None
    _rows: list[KeptRow] = dataclass_field(default_factory=list)
    _came: list[tuple[Time, GraphOrMessage, str, bool] | KeptCorrection] = dataclass_field(
        default_factory=list
    )
    _count: int = 0
    _replaces: bool = False
    _stretch: int = 0
    """Messages since the last state."""
    _lasting: bool = False
    """Whether that has what lasts, of which nobody says how much it is."""

    def begin(self) -> None:
        """A feed begins; its state is the first to be kept where none is."""
        if self._corrects:
            self.pipeline.watcher = self  # type: ignore[attr-defined]  # of one that corrects
        if not self.begun:
            self._replaces = True
            self._keep_state()

    def came(self, time: Time, part: GraphOrMessage, place: str) -> None:
        """A message comes, and is not taken yet."""
        if not self._count & _LOOK:
            self.look()
        self._count += 1
        self._stretch += 1
        self._came.append((time, part, place, False))

    def came_run(self, run: DocumentRun) -> None:
        """Messages came and were taken, after `look`."""
        self._count += len(run.times)
        self._stretch += len(run.times)
        places = [f"{file}:1" for file in run.files]
        self._came += zip(run.times, run.graphs, places, repeat(False), strict=False)

    def leave_out(self, parts: Sequence[GraphOrMessage]) -> None:
        """The message that came last is not taken."""
        last = self._came[-1] if self._came else None
        if type(last) is tuple and any(part is last[1] for part in parts):
            self._came[-1] = (*last[:3], True)

    def waits(self, part: GraphOrMessage) -> None:
        """The message that came last waits for a correction."""
        last = self._came[-1] if self._came else None
        if type(last) is tuple and last[1] is part:
            self._came.pop()

    def corrected(self, at: Time, late: Sequence[Late], changed: Sequence[Changes]) -> None:
        """A correction took late messages."""
        messages = [KeptMessage(one.time, plain(one.part), one.place) for one in late]
        named = [(events.change, event.id, event.time) for events in changed for event in events]
        self._came.append(KeptCorrection(at, messages, named))

    @property
    def _corrects(self) -> bool:
        return hasattr(self.pipeline, "final")

    def _state(self) -> tuple[Time | None, Mapping[str, Any]]:
        """A state to begin with, and up to when it holds."""
        final = getattr(self.pipeline, "final", None)
        return (self.pipeline.settled, self.pipeline.snapshot()) if final is None else final()

    def look(self) -> None:
        """Begin another stretch where the last one is long enough; forget those that are too old."""
        settled = self._state()[0] if self._corrects else self.pipeline.settled
        if settled is None or not (self._is_long() or self._has_passed(settled)):
            return
        if self._corrects and settled == self.since:
            return
        self._keep_messages()
        self._keep_state()
        low = settled - self.length
        old = [n for n, row in enumerate(self._rows) if row.state is not None and _before(row, low)]
        if old and old[-1] and not self._corrects:
            del self._rows[: old[-1]]
            self._replaces = True  # whatever the journal has is older

    def _has_passed(self, settled: Time) -> bool:
        return self.since is None or settled - self.since > self.length // _STRETCHES

    def _is_long(self) -> bool:
        if self._stretch < _RUN or self._lasting:
            return False
        return self._stretch >= _SHARE * sum(self.pipeline.sizes().values())

    def _keep_state(self) -> None:
        settled, state = self._state()
        self._rows.append(KeptRow(settled, dict(state)))
        self.since, self._stretch, self._lasting = settled, 0, state.get("lasting") is not None

    def _keep_messages(self) -> None:
        if not self._came:
            return
        came = [
            one if isinstance(one, KeptCorrection) else KeptMessage(one[0], plain(one[1]), *one[2:])
            for one in self._came
        ]
        settled = self.pipeline.settled
        if self._corrects:
            settled = max(one.at if isinstance(one, KeptCorrection) else one.time for one in came)
        self._rows.append(KeptRow(settled, None, came))
        self._came = []

    def _open_messages(self) -> list[tuple[Time, GraphOrMessage, str, bool] | KeptCorrection]:
        """What a state that no correction can reach does not have, with the places that are known."""
        places = {id(one[1]): one[2] for one in self._came if type(one) is tuple}
        graphs = self.pipeline.graphs()  # type: ignore[attr-defined]  # of one that corrects
        return [(time, part, places.get(id(part), ""), False) for time, part in graphs]

    def changes(self, adopted: bool) -> KeptChange:
        """What the next commit changes. `adopted`: other rules hold now, and what came before goes."""
        settled = self.pipeline.settled
        if adopted:
            open_ = self._open_messages() if self._corrects else []
            self._rows, self._came, self._replaces = [], open_, True
            self._keep_state()
        self._keep_messages()
        return KeptChange(
            self._replaces, list(self._rows), None if settled is None else settled - self.length
        )

    def committed(self) -> None:
        """The changes are in the journal."""
        self._rows, self._replaces, self.begun = [], False, True


def _before(row: KeptRow, low: Time) -> bool:
    return row.time is not None and row.time < low


SHARE = 12
"""Time between commits, as a multiple of what a commit takes."""

PATIENCE = 60.0
"""Seconds that growth alone puts a commit off: what a crash may have to be done again."""


class CheckpointPolicy(Struct):
    """Owns the moments of one feed. `graphs` and `seconds` make a commit due, `share` puts it off.

    `size` says how much there is to save, in any unit; it is asked rarely.
    """

    graphs: int = 10_000
    seconds: float = 1.0
    share: float = SHARE
    size: Callable[[], int] = lambda: 0
    _count: int = 0
    _last: float = field(default_factory=lambda: time.monotonic())
    _cost: float = 0.0
    _saved: int = 0
    _wait: float = 0.0

    def due(self, graphs: int = 1) -> bool:
        """Count graphs; whether it is time to commit. The clock is read at every 16th graph."""
        self._count += graphs
        if self._count & 15 and self._count < self.graphs:
            return False
        return self.overdue()

    def touched(self) -> None:
        """Something changed that is not a graph."""
        self._count += 1

    def overdue(self) -> bool:
        """Whether something waits and it is time to commit it."""
        passed = time.monotonic() - self._last
        if passed < self._wait or not self._count:
            return False
        if self._count < self.graphs and passed < self.seconds:
            return False
        if self._cost and self._saved:
            dearer = self.share * self._cost * max(1.0, self.size() / self._saved)
            self._wait = max(self.share * self._cost, min(dearer, PATIENCE))
        return passed >= self._wait

    def expect(self, cost: float) -> None:
        """A state was loaded in so many seconds: to save it takes about as long."""
        self._cost, self._saved, self._wait = cost, self.size(), self.share * cost

    def begun(self) -> float:
        return time.monotonic()

    def done(self, begun: float) -> float:
        """A commit that began then is done; how long it took."""
        self._last = time.monotonic()
        self._cost = self._last - begun
        self._saved = self.size()
        self._wait = self.share * self._cost
        self._count = 0
        return self._cost


class Idle(Struct):
    """`--idle-advance`: after `patience` (µs) without input, event time goes on by itself, `patience` behind.

    The one place where a clock moves the watermark. `seen` notes input; `reached` says up to where silence
    has closed time by now.
    """

    patience: Time
    _since: float = field(default_factory=lambda: time.time())

    def seen(self) -> None:
        self._since = time.time()

    def reached(self, latest: Time) -> Time | None:
        """Everything up to this time is closed by silence, None while there is patience left."""
        silent = round((time.time() - self._since) * 1_000_000)
        return None if silent < self.patience else latest + silent - self.patience


_NOT_TAKEN = ("D2106", "D2107")
"""What is found wrong with a graph when it comes, not with its instant."""

_ENDED = "the end of a feed closes its last instant, so that its events are reported"
_IN_ORDER = (
    "feed in order of time, or keep instants open with --lateness {}; --late file=PATH keeps late graphs"
)
_KEEP_OPEN = "feed with --keep-open where the next feed may have graphs of the same time"

_TOGETHER = 63
"""Graphs of files are run when so many have been read, and one more: a mask."""


class FeedTotals(Struct):
    """What one feed did, for its summary line."""

    graphs: int = 0
    events: int = 0
    late: int = 0
    late_by_an_end: int = 0
    """Of them, those that only the end of an earlier feed made late."""
    refused: int = 0
    left_out: dict[str, int] = {}
    """Rule → trigger facts that took it too much work."""
    read: int = 0
    size: int | None = None
    """Bytes of the files of now, and how many there are; None: not known."""
    commits: int = 0
    saving: float = 0.0
    """Seconds that the commits took."""
    running: float = 0.0
    writing: float = 0.0
    """Seconds that instants took to run, and their events to be written."""


@dataclass(slots=True)
class Feed:
    """Owns one feed of a deployment, from its last commit to the next ones.

    `dead_letters` and `delayed` take refused documents (and the graphs of refused instants) and late graphs,
    None drops them; `fail_on_error` and `fail_on_late` end the feed instead. `stopping` is asked between
    graphs, and between steps of the pipeline: then what was done is committed and KeyboardInterrupt raised.
    `progress` is called now and then.
    """

    journal: Journal
    pipeline: Pipeline
    sinks: Sequence[Sink] = ()
    dead_letters: LetterOutput | None = None
    delayed: LetterOutput | None = None
    fail_on_error: bool = True
    fail_on_late: bool = False
    checkpoints: CheckpointPolicy = dataclass_field(default_factory=CheckpointPolicy)
    idle: Idle | None = None
    stopping: Callable[[], bool] = lambda: False
    progress: Callable[[FeedTotals, str], None] = lambda _totals, _watermark: None
    keeping: Keeping | None = None
    outcomes: Outcomes | None = None
    sample: Sample | None = None
    """Takes what comes until it is full."""
    forgotten: Sequence[str] = ()
    """Rules that begin with nothing remembered, because they are new or changed."""
    committed: Callable[[], None] = lambda: None
    """Called after each commit."""
    status_at_commit: Mapping[str, Any] = dataclass_field(default_factory=dict)
    commands: SimpleQueue[Callable[[], None]] = dataclass_field(default_factory=SimpleQueue)
    """What other threads ask for: each is called between two graphs, or while nothing comes."""
    totals: FeedTotals = dataclass_field(default_factory=FeedTotals, init=False)
    time_sources: dict[str, int] = dataclass_field(default_factory=dict, init=False)
    beside: dict[str, int] = dataclass_field(default_factory=dict, init=False)
    columns_missing: dict[str, Diagnostic] = dataclass_field(default_factory=dict, init=False)
    lineage: Lineage = dataclass_field(init=False)
    saving: bool = dataclass_field(default=False, init=False)
    """Whether a commit is on its way: whoever stops the feed by force waits for it."""
    _sources: list[GraphSource] = dataclass_field(default_factory=list, init=False)
    _commit: int = dataclass_field(init=False)
    _status: dict[str, Any] = dataclass_field(init=False)
    _item: Item | None = dataclass_field(default=None, init=False)
    _given: list[str] = dataclass_field(default_factory=list, init=False)
    _planned: bool = dataclass_field(default=False, init=False)
    _ended: tuple[Time, Time] | None = dataclass_field(default=None, init=False)
    """What the end of an earlier feed closed: after the first time, up to the second."""
    _dropped: LateGraphs = dataclass_field(init=False)

    def __post_init__(self) -> None:
        self._status = self.journal.status()
        self.lineage = Lineage(lambda: self.pipeline.settled)
        self._dropped = LateGraphs(self.pipeline.watermark)
        self.checkpoints.size = lambda: sum(self.pipeline.sizes().values())
        with self.journal.reading():
            self._commit = int(self._status.pop("commit", 0))
            self._status.setdefault("last", {}).keys()
            self._status["refused"] = int(self._status.get("refused", 0))
            ended = self._status.pop("ended", None)
            self._ended = None if ended is None else (ended[0], ended[1])
            self.lineage.restore(self._status.pop("origins", ()))

    # ------------------------------------------------------------------ the loop

    def run(self, source: GraphSource, keep_open: bool = False) -> None:
        """Feed what a source has, to its end; then close the last instant, unless it is kept open.

        On an error of the source, or Ctrl-C, what was fed before is committed first.
        """
        with _Orderly(self):
            self._begin(source)
            self._consume(source)
            self._finish(keep_open)

    def give(
        self, time: Time, part: GraphOrMessage, clock: Clock, name: str, keep_open: bool = False
    ) -> None:
        """Take one message that came with the command, called `name`, and keep it with its time."""
        with _Orderly(self):
            mine = self.pipeline.clock
            if mine is not None and mine != clock:
                kind = "integers" if mine.integer else "dateTimes"
                raise DataError.of("D2102", f"the times of this deployment are {kind}", hint="--at")
            self._given.append(late_line(time, part, clock))
            self._accept(TimedGraph(time, part, name, how="given"), clock)
            self._finish(keep_open)

    def plan(self, plan: PlannedProgram, program: Program, background: Sequence[Triple]) -> None:
        """From a time on that has not come yet another program holds."""
        if self.pipeline.clock is None:
            self.pipeline.begin(Clock(*plan.clock))
        if hasattr(self.pipeline, "later_key"):
            self.pipeline.later_key = _key_of(planned(plan))
        self.pipeline.replace(plan.time, program, background)
        self._planned = True

    def _finish(self, keep_open: bool = False) -> None:
        if not keep_open:
            latest, closed = self.pipeline.latest, self.pipeline.watermark
            if latest is not None and (self._ended is None or self._ended[1] != latest):
                self._ended = (latest - 1 if closed is None else closed, latest)
            self.pipeline.close_all()
            self._drain()
        self.commit()

    def follow(self, source: GraphSource, wait: Callable[[], None]) -> None:
        """Feed what is there and what comes, until Ctrl-C, which is raised again after a commit, or until
        nothing more can come.

        `wait` is called between two looks. Instants are closed by later graphs, or by silence if asked.
        """
        with _Orderly(self):
            self._begin(source)
            while True:
                self._consume(source)
                if source.over:
                    self._finish()
                    return
                self._waits()
                wait()

    def _begin(self, source: GraphSource) -> None:
        self._sources.append(source)
        for extractor in source.extractors:
            extractor.time_sources, extractor.beside = self.time_sources, self.beside
            extractor.columns_missing = self.columns_missing

    def _consume(self, source: GraphSource) -> None:
        """Everything that a source has now."""
        if self.pipeline.clock is not None:  # else the first graph fixes it, and may wait for another source
            for extractor in source.extractors:
                extractor.clock = self.pipeline.clock
        runs = source.runs if isinstance(source, DocumentSource) else source.items
        for item in runs(self.journal.position):
            self.lineage.begin(source.begun())
            self.totals.read, self.totals.size = source.done, source.total
            if item is None:  # a live source is silent
                self._waits()
            elif type(item) is not DocumentRun:
                self._take(item, source)  # type: ignore[arg-type]  # one item
            elif self._accept_run(item):
                source.consumed(item)  # type: ignore[arg-type]  # it gave it
                self._drain()
                self._pass(len(item.times))
            else:
                for one in item.items():
                    self._take(one, source)
        self._drain()

    def _take(self, item: Item, source: GraphSource) -> None:
        """One graph, or what else a source gives."""
        self._item = item
        if isinstance(item, ReadEvent):
            if self.outcomes is not None:
                self.outcomes.passed(item.file, item.error)
            if item.error is not None:
                self._refuse(item.error, item.content)
            self.lineage.passed(item)
            source.consumed(item)
        else:
            self._accept(item, source.extractors[0].clock)
            source.consumed(item)  # the pipeline has it, even if a stop comes while it is run
            if source.live or not self.totals.graphs & _TOGETHER:
                self._drain()
        self._pass(1)

    def _pass(self, graphs: int) -> None:
        """So many are taken."""
        if self.checkpoints.due(graphs):
            self.commit()
        self._obey()
        self.pause()

    def _waits(self) -> None:
        """Nothing has come for a while."""
        self._drain()
        self._silence()
        if self.checkpoints.overdue():
            self.commit()
        self._obey()
        self.pause()

    def _obey(self) -> None:
        while not self.commands.empty():
            self.commands.get()()

    def _accept(self, graph: TimedGraph, clock: Clock | None) -> None:
        pipeline = self.pipeline
        if pipeline.clock is None:
            assert clock is not None
            pipeline.begin(clock)
        self.lineage.note(graph)
        if self.keeping is not None:
            self.keeping.came(graph.time, graph.triples, graph.place)
        if self.outcomes is not None:
            self.outcomes.taken(graph.file, graph.time)
        pipeline.place = graph
        pipeline.take(graph.time, graph.triples)
        if self.sample is not None and not self.sample.full:
            self.sample.add(graph.time, graph.triples)
        self.totals.graphs += 1
        if self.idle is not None:
            self.idle.seen()
        if not self.totals.graphs & 63 and pipeline.clock is not None:
            self.progress(self.totals, pipeline.clock.text(graph.time))

    def _accept_run(self, run: DocumentRun) -> bool:
        """Take graphs that follow one another at once; False, and none is taken, where one may need more."""
        pipeline, count = self.pipeline, len(run.times)
        if pipeline.clock is None or (self.sample is not None and not self.sample.full):
            return False
        if self.keeping is not None:
            self.keeping.look()
        if not pipeline.accept_run(run.times, run.graphs):
            return False
        self.lineage.note_documents(run)
        if self.keeping is not None:
            self.keeping.came_run(run)
        if self.outcomes is not None:
            self.outcomes.taken_run(run.files, run.times)
        before = self.totals.graphs
        self.totals.graphs += count
        if self.idle is not None:
            self.idle.seen()
        if before >> 6 != self.totals.graphs >> 6:
            self.progress(self.totals, pipeline.clock.text(run.times[-1]))
        return True

    def _drain(self) -> None:
        clock, totals = self.pipeline.clock, self.totals
        begun = time.perf_counter()
        for events in self.pipeline.drain():
            assert clock is not None
            ran = time.perf_counter()
            totals.running += ran - begun
            self._emit(events, clock)
            begun = time.perf_counter()
            totals.writing += begun - ran
        totals.running += time.perf_counter() - begun

    def _emit(self, events: InstantEvents, clock: Clock) -> None:
        if not events:
            return
        for sink in self.sinks:
            sink.write(events, clock)
        last, time = self._status["last"], events.matches[0][1]
        for rule in events.rules():
            last[self.pipeline.program.rules[rule].name] = time
        self.totals.events += len(events)

    def _silence(self) -> None:
        """Let time go on without input, if asked and patience is over; what waits for another source is no
        silence.
        """
        latest = self.pipeline.latest
        if self.idle is None or latest is None:
            return
        if any(source.waiting for source in self._sources):
            self.idle.seen()
        reached = self.idle.reached(latest)
        if reached is not None and reached > (self.pipeline.watermark or -(2**63)):
            self.pipeline.close_up_to(reached)
            self._drain()
            self.checkpoints.touched()

    def close_up_to(self, time: Time) -> None:
        """Close the instants up to a time, and commit."""
        self.pipeline.close_up_to(time)
        self.checkpoints.touched()
        self.commit()

    def late(self, time: Time, graph: GraphOrMessage) -> None:
        """The policy for a graph whose instant is closed; the pipeline calls it."""
        clock = self.pipeline.clock
        assert clock is not None
        self.totals.late += 1
        by_an_end = self._only_ended(time)
        self.totals.late_by_an_end += by_an_end
        if self.keeping is not None:
            self.keeping.leave_out([graph])
        place = ""
        if isinstance(self._item, TimedGraph):
            self.lineage.withdraw(self._item)
            place = self._item.place
            if self.outcomes is not None:
                self.outcomes.late(self._item.file, time)
        if self.fail_on_late:
            raise DataError.of(
                "D2301",
                f"this graph is for {clock.text(time)}, an instant that is already closed",
                place=place,
                notes=(_ENDED,) if by_an_end else (),
                hint=_KEEP_OPEN
                if by_an_end
                else "allow for disorder with --lateness, or drop such graphs with --late drop"
                + late_by_choice(self.beside),
            )
        if self.delayed is not None:
            self.delayed.letter(late_line(time, graph, clock), place, time)
        elif not by_an_end:
            self._dropped.take(time, self.pipeline.latest)

    def _only_ended(self, time: Time) -> bool:
        """Whether a late graph would be in time had the feed before left its last instants open."""
        ended = self._ended
        return ended is not None and ended[0] < time and self.pipeline.latest == ended[1]

    def late_warnings(self) -> list[Diagnostic]:
        """Warnings about late graphs: by the end of an earlier feed alone, and others that were dropped."""
        return [*self._late_by_an_end(), *self._dropped.warnings(_IN_ORDER, late_by_choice(self.beside))]

    def _late_by_an_end(self) -> list[Diagnostic]:
        """A warning where graphs were late for no other reason."""
        many, clock = self.totals.late_by_an_end, self.pipeline.clock
        if not many or self._ended is None or clock is None:
            return []
        which = "1 graph is" if many == 1 else f"{many:,} graphs are"
        return [
            Diagnostic(
                "D2302",
                f"{which} late only because the end of an earlier feed closed {clock.text(self._ended[1])}",
                notes=(_ENDED,),
                hint=_KEEP_OPEN,
                severity=Severity.WARNING,
            )
        ]

    def _refuse(self, error: DataError, content: bytes) -> None:
        self._drain()  # letters of instants that were closed before come first, whenever they are run
        self.totals.refused += 1
        self._status["refused"] += 1
        if self.dead_letters is not None:
            self.dead_letters.letter(dead_letter(error, content))

    def refused(self, time: Time, graphs: Sequence[GraphOrMessage], error: DotrError) -> None:
        """The policy for an instant that is in error; the pipeline calls it."""
        clock = self.pipeline.clock
        assert clock is not None
        if self.keeping is not None and error.diagnostics[0].code in _NOT_TAKEN:
            self.keeping.leave_out(graphs)
        if self.fail_on_error:
            places = self.lineage.places(time, len(graphs))
            self.lineage.settle(time)
            raise with_places(error, places)
        self.totals.refused += len(graphs)
        self._status["refused"] += len(graphs)
        if self.outcomes is not None:
            for place in self.lineage.places(time, len(graphs)):
                self.outcomes.refused(place, error)
        if self.dead_letters is not None:
            for letter in self.lineage.letters(time, graphs, error, clock):
                self.dead_letters.letter(letter, time=time)
        if graphs:
            self.lineage.settle(time)

    def overworked(self, rule: str, error: ProgramError) -> None:
        """The policy for a fact that takes a rule too much work; the pipeline calls it."""
        if self.fail_on_error:
            raise error
        self.totals.left_out[rule] = self.totals.left_out.get(rule, 0) + 1

    def pause(self) -> None:
        """Raise Stopped if that was asked; the pipeline calls it between two steps."""
        if self.stopping():
            raise Stopped

    # ------------------------------------------------------------------ commits

    @property
    def _outputs(self) -> list[CommittedOutput]:
        others = (self.dead_letters, self.delayed, self.outcomes)
        return [*self.sinks, *(output for output in others if output is not None)]

    def resume(self) -> None:
        """The outputs are opened: they go on behind the last commit."""
        for output in self._outputs:
            output.resume(self._commit)

    def commit(self) -> None:
        """Run what is closed, settle the outputs, record all in one transaction. Raises EngineError."""
        self._drain()
        self.save()

    def save(self) -> None:
        """As `commit`; what is closed and has not run yet is left to the next feed."""
        self.saving = True
        try:
            self._save()
        finally:
            self.saving = False

    def _save(self) -> None:
        clock = self.pipeline.clock
        for events in self.pipeline.given() if hasattr(self.pipeline, "given") else ():
            assert clock is not None, "what was found has a time"
            self._emit(events, clock)  # no snapshot has it
        begun = self.checkpoints.begun()
        number = self._commit + 1
        outputs = [output.prepare(number) for output in self._outputs]
        with uncollected():
            snapshot, stated = self.pipeline.snapshot(stated=False), self.pipeline.stated()
            given, self._given = self._given, []
            adopted = self._planned and self.pipeline.replaced
            changes = {key: at for source in self._sources for key, at in source.changes().items()}
            kept = None if self.keeping is None else self.keeping.changes(adopted)
            status = self._status_at(number)
            logged = getattr(self.pipeline, "period", None)
            period = None if logged is None else logged()
            self.journal.commit(
                Commit(snapshot, status, changes, outputs, stated, given, adopted, kept, period)
            )
            if self.keeping is not None:
                self.keeping.committed()
        self._commit = number
        for output in self._outputs:
            output.confirm(number)
        for source in self._sources:
            source.committed()
        self._planned = self._planned and not adopted
        self.totals.commits += 1
        self.totals.saving += self.checkpoints.done(begun)
        self.status_at_commit = status
        self.committed()

    def _status_at(self, commit: int) -> dict[str, Any]:
        """What `dotr status` shows."""
        pipeline = self.pipeline
        clock = pipeline.clock
        counters = pipeline.counters
        corrected = getattr(pipeline, "corrected", None)
        return {
            **self._status,
            **({} if corrected is None else {"corrections": to_builtins(corrected)}),
            "commit": commit,
            "clock": None if clock is None else [clock.integer, clock.unit],
            "watermark": pipeline.watermark,
            "settled": pipeline.settled,
            "latest": pipeline.latest,
            "graphs": counters.graphs,
            "instants": counters.instants,
            "late": counters.late,
            "useless_deletes": counters.useless_deletes,
            "not_held": counters.not_held,
            "not_stated": counters.not_stated,
            "ineffective": counters.ineffective,
            "overlooked": counters.overlooked,
            "dropped": counters.dropped,
            "left_out": counters.left_out,
            "events": dict(counters.events),
            "funnel": counters.funnel,
            "queries": counters.streams,
            "sizes": pipeline.sizes(),
            "origins": self.lineage.save(),
            "ended": self._ended,
            "partitions": [list(state) for source in self._sources for state in source.partitions()],
        }

    def close(self) -> None:
        """Cut what was not committed off the outputs, and let them go."""
        for output in self._outputs:
            output.close()


class Stopped(KeyboardInterrupt):
    """Ctrl-C, between two graphs or steps. (What interrupts anywhere else is a plain KeyboardInterrupt.)"""


class _Orderly:
    """Commits what was fed before an error of the sources or Ctrl-C ends the feed."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """An error inside the pipeline, or an interrupt anywhere, leaves no state to be saved: the last
        commit stands.
        """
        if isinstance(error, Stopped):
            self._feed.save()
        elif isinstance(error, DataError) and error.diagnostics[0].code.startswith(("D20", "D21")):
            self._feed.commit()


def refuse_other_unit(stored: Clock | None, unit: int, folder: str) -> None:
    """Raise RefusedError D5208 when integer time was counted in another unit so far."""
    if stored is not None and stored.integer and stored.unit != unit:
        raise RefusedError.of(
            "D5208",
            f"the deployment in `{folder}` counts time in units of {stored.unit} µs, not {unit}",
            place=folder,
            hint="leave --time-unit out, or deploy with another --dir",
        )


def keeping_of(journal: Journal, pipeline: Pipeline) -> Keeping | None:
    """What keeps the messages of a feed, where the deployment asks for it."""
    length = journal.keeps()
    if not length:
        return None
    begun = journal.kept_summary() is not None
    if hasattr(pipeline, "final") and "corrections" not in journal.status():
        begun = False  # what was kept so far is in order of arrival
    keeping = Keeping(pipeline, length, begun, journal.kept_since())
    keeping.begin()
    return keeping


class FeedOptions(Struct, frozen=True):
    """How a deployment is fed. `unit`: microseconds of one unit of integer time, None: as before; the rest
    as `Pipeline`, `Deployment` and `Feed` have it.
    """

    added: Added = NOTHING_ADDED
    unit: int | None = None
    lateness: Time = 0
    max_jump: Time | None = None
    budget: int = BUDGET
    materialize_all: bool = False
    verify: bool = False
    fail_on_error: bool = True
    fail_on_late: bool = False
    corrections: Time | None = None
    corrections_share: float = CORRECTIONS


def _key_of(deployed: Deployed) -> str:
    """The rules and the background that report something, for those who may correct it."""
    return f"{digest_of(deployed)} {deployed.background}"


def _pipelines(
    journal: Journal, options: FeedOptions, state: Mapping[str, Any] | None
) -> Callable[..., Pipeline]:
    """What makes the pipeline of a feed. Raises UsageError D4165, D4167."""
    if options.corrections is None and (state is None or state.get("corrections") is None):
        return Pipeline
    from dotr.core.corrections import (  # noqa: PLC0415  # start-up: few deployments are corrected
        CorrectingPipeline,
        too_short,
        uncorrected,
    )

    if options.corrections is None:
        raise uncorrected(str(journal.folder))
    if options.corrections <= options.lateness:
        raise too_short(options.corrections, options.lateness)
    return partial(
        CorrectingPipeline,
        period=options.corrections,
        share=options.corrections_share,
        key=_key_of(journal.deployed()),
        logs=True,
    )


def open_feed(
    journal: Journal,
    program: Program,
    options: FeedOptions,
    checkpoints: CheckpointPolicy,
    on_finding: Callable[[Diagnostic], None],
) -> Feed:
    """A feed of the program from the last commit on, without outputs: who gives it some calls `resume`.

    Raises ProgramError, DataError, EngineError, RefusedError.
    """
    begun = time.process_time()
    with uncollected():
        state = journal.snapshot()
    loading = time.process_time() - begun
    with journal.reading():
        stored = Clock(*state["clock"]) if state is not None and state["clock"] is not None else None
    if options.unit is not None:
        refuse_other_unit(stored, options.unit, str(journal.folder))
    feed: Feed
    pipeline = resumed(
        journal,
        program,
        options.added,
        make=_pipelines(journal, options, state),
        budget=options.budget,
        materialize_all=options.materialize_all,
        observer=PipelineObserver(
            late=lambda when, graph: feed.late(when, graph),
            refused=lambda when, graphs, error: feed.refused(when, graphs, error),
            overworked=lambda rule, error: feed.overworked(rule, error),
            finding=on_finding,
        ),
        lateness=options.lateness,
        verify=options.verify,
        max_jump=options.max_jump,
        pause=lambda: feed.pause(),
    )
    forgotten: Sequence[str] = ()
    if state is not None:
        begun = time.process_time()
        with uncollected(), journal.reading():
            restored = pipeline.restore(state)
        loading += time.process_time() - begun
        forgotten = restored.empty if state["clock"] is not None else ()
    feed = Feed(journal, pipeline, fail_on_error=options.fail_on_error, fail_on_late=options.fail_on_late)
    feed.checkpoints, feed.forgotten = checkpoints, forgotten
    checkpoints.size = lambda: sum(pipeline.sizes().values())
    checkpoints.expect(loading)
    return feed
