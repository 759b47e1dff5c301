"""Batch over what lasts: slices of time that begin with the statements that hold before their overlap.

Place:   local.py calls `slices`, `states` in its driver and `run_slice` in its processes.
Method:  what is stated is cheap to maintain, what follows from it is not: one pass of core/periods.py over
         the log's declared triples yields the statements, with their lifetimes, before every slice; a slice
         is then a separate run that begins with them, and yields the events triggered inside it. Rules that
         depend on the whole past run over the whole log. Refused instants state nothing: slices whose
         beginning that changes run again.
Why not: enriching each instant separately, as if nothing lasted: M depends on earlier instants.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.arrow_batches import message_of
from dotr.batch.extracting import Treatment
from dotr.batch.findings_as_json import packed
from dotr.batch.runs import LEAST, MOST
from dotr.batch.time_slices import balanced_slices
from dotr.core.deployment import Deployment, Settings
from dotr.core.instant import OnState
from dotr.core.lasting_model import LastingModel
from dotr.core.parts import Part
from dotr.core.periods import Periods
from dotr.core.pipeline import Pipeline
from dotr.errors import DataError, DotrError, ProgramError
from dotr.events import Clock, Composite, Message, Time
from dotr.io.error_policy import dead_letter
from dotr.io.event_formats import late_line
from dotr.ir import Entailment, Program
from dotr.rdf.terms import Triple
from dotr.temporal.partitions import Partitioning
from dotr.temporal.stages import Passed, subtracted

Row = tuple[Time, str]
"""(time, message as `message_text` wrote it)."""


class Slice(NamedTuple):
    """`[start, end)` owns the events triggered in it, None if open; messages are read from `begin` on, None:
    from the first. `rules`: numbers of the rules that run.
    """

    rules: tuple[int, ...]
    begin: Time | None = None
    start: Time | None = None
    end: Time | None = None

    def sees(self, time: Time) -> bool:
        return (self.begin is None or self.begin <= time) and (self.end is None or time < self.end)

    def owns(self, time: Time) -> bool:
        return (self.start is None or self.start <= time) and (self.end is None or time < self.end)


State = list[list[Any]]
"""The statements that a slice begins with, as core/periods.py saves them."""


class LastingJob(Struct, frozen=True):
    """What every slice needs, as bytes of a LastingContent; `key` identifies it."""

    key: str
    content: bytes


class LastingContent(NamedTuple):
    program: Program
    settings: Settings
    background: list[Triple]
    clock: Clock
    treatment: Treatment
    first: Time
    last: Time


class SliceDone(Struct):
    """The result of a slice beside its events. `inconsistent`: its beginning contradicts itself, and nothing
    ran. `spent`: the most that it took of what a whole run may spend. `streams`, `passed`: facts by query,
    and how far trigger facts got by rule, for the instants it owns. `states`: the name of the file of its
    enriched graphs.
    """

    dropped: int = 0
    instants: int = 0
    useless: int = 0
    refused: set[Time] = field(default_factory=set)
    letters: list[str] = field(default_factory=list)
    findings: list[tuple[Time, str]] = field(default_factory=list)
    inconsistent: bool = False
    spent: int = 0
    states: str = ""
    streams: dict[str, int] = field(default_factory=dict)
    passed: dict[str, Passed] = field(default_factory=dict)


def make_lasting_job(
    deployment: Deployment, clock: Clock, treatment: Treatment, first: Time, last: Time
) -> LastingJob:
    """Pack everything. Raises ProgramError, DataError for what cannot run."""
    deployment.compile()
    content = LastingContent(
        deployment.program, deployment.settings, list(deployment.background), clock, treatment, first, last
    )
    packed_content = zlib.compress(pickle.dumps(content, pickle.HIGHEST_PROTOCOL), 1)
    return LastingJob(f"{zlib.crc32(packed_content):08x}-{len(packed_content)}", packed_content)


# -- the driver


def slices(
    plan: Partitioning, quantiles: Sequence[Time], last: Time, length: int | None, whole: bool = False
) -> list[Slice]:
    """How a log is cut: rules with a horizon by time, the others not. `length` overrides the quantiles,
    within LEAST and MOST; `whole`: nothing is cut.
    """
    bounded = [] if whole else [group for group in plan.groups if group.horizon is not None]
    others = tuple(rule for group in plan.groups if group not in bounded for rule in group.rules)
    found = [Slice(others)] if others else []
    if bounded:
        rules = tuple(sorted(rule for group in bounded for rule in group.rules))
        horizon = max(group.horizon or 0 for group in bounded)
        starts: Sequence[Time] = balanced_slices(quantiles, horizon).starts
        if length is not None:
            step = max(length, horizon // LEAST, (last - quantiles[0]) // MOST)
            starts = range(-(-quantiles[0] // step) * step, last + 1, step)
        for start, end in pairwise([None, *starts, None]):
            found.append(Slice(rules, None if start is None else start - horizon, start, end))
    return found or [Slice(())]


def joined(before: Slice, after: Slice) -> Slice:
    """Two consecutive slices as one."""
    return before._replace(end=after.end)


def states(
    content: LastingContent, rows: Iterable[Row], cut: Sequence[Slice], refused: Collection[Time]
) -> list[State | None]:
    """What each slice begins with, None at the start of the log. `rows`, sorted by time, have the declared
    triples of every message, blank nodes labelled; `refused`: refused instants.

    Cost: the statements that begin and end; nothing is derived.
    """
    periods = Periods(content.background, content.program.holds)
    found: dict[Time, State] = {}
    wanted = sorted({one.begin for one in cut if one.begin is not None})
    for time, came in groupby(rows, key=itemgetter(0)):
        while wanted and wanted[0] <= time:
            begin = wanted.pop(0)
            found[begin] = _state(periods, begin)
        _pass_ends(periods, time)
        messages = [_message(text) for _, text in came]
        periods.change(time, () if time in refused else messages)
    for begin in wanted:
        found[begin] = _state(periods, begin)
    return [None if one.begin is None else found[one.begin] for one in cut]


def _message(text: str) -> Message:
    part = message_of(text)
    return part if isinstance(part, Message) else Message(part)


def _state(periods: Periods, begin: Time) -> State:
    _pass_ends(periods, begin)
    return periods.save()


def _pass_ends(periods: Periods, before: Time) -> None:
    while (end := periods.next_end()) is not None and end < before:
        periods.change(end)


# -- a slice


@lru_cache(maxsize=2)
def _content(key: str, content: bytes) -> LastingContent:
    loaded: LastingContent = pickle.loads(zlib.decompress(content))  # noqa: S301  # our own driver's bytes
    return loaded


def clock_of(job: LastingJob) -> Clock:
    """How the log of a job writes time."""
    return _content(job.key, job.content).clock


@lru_cache(maxsize=4)
def _deployment(key: str, content: bytes, rules: tuple[int, ...]) -> Deployment:
    whole = _content(key, content)
    program = whole.program
    names = [rule.name for number, rule in enumerate(program.rules) if number not in rules]
    part = program.without(names)
    read = {position.stream for rule in part.rules for position in rule.positions} | set(part.lars.reads)
    standing = {name: query for name, query in part.standing.items() if name in read}
    return Deployment(replace(part, standing=standing), whole.background, whole.settings)


class SliceRun:
    """Owns the run of one slice: `events` yields them, then `done` has the rest."""

    def __init__(
        self, job: LastingJob, slice_: Slice, state: State | None, on_state: OnState | None = None
    ) -> None:
        self.done = SliceDone()
        self._on_state = on_state
        self._job, self._slice, self._state = job, slice_, state
        self._content = _content(job.key, job.content)
        self.program, self.clock = self._content.program, self._content.clock

    def events(self, rows: Sequence[Row]) -> Iterator[Composite]:
        """The events that the slice owns; `rows`: the messages it reads, sorted by time."""
        content, cut, done = self._content, self._slice, self.done
        deployment = _deployment(self._job.key, self._job.content, cut.rules)
        if self._begins_inconsistent(deployment):
            done.inconsistent = True
            return
        forgiving = content.treatment.forgiving
        pipeline = Pipeline(
            deployment,
            on_refused=self._refused if forgiving else None,
            on_finding=lambda found: done.findings.append((pipeline.latest or 0, json.dumps(packed(found)))),
            on_overworked=(lambda *_: None) if forgiving else None,
            verify=content.treatment.verify,
            on_state=None if self._on_state is None else self._state_at,
        )
        pipeline.begin(content.clock)
        self._begin(pipeline)
        before = [row for row in rows if cut.start is not None and row[0] < cut.start]
        self._take(pipeline, before)
        if cut.start is not None:
            pipeline.close_up_to(cut.start - 1)
            for _ in pipeline.drain():
                pass
        counted, before_own = pipeline.counters, pipeline.passed()
        for place in range(len(before), len(rows), _TOGETHER):
            self._take(pipeline, rows[place : place + _TOGETHER])
            yield from self._own(pipeline)
        last = content.last if cut.end is None else min(content.last, cut.end - 1)
        pipeline.close_up_to(last)
        yield from self._own(pipeline)
        total = pipeline.counters
        done.dropped = total.dropped - counted.dropped
        done.instants = len({time for time, _ in rows[len(before) :]} - done.refused)
        done.streams = {name: count - counted.streams.get(name, 0) for name, count in total.streams.items()}
        done.passed = subtracted(pipeline.passed(), before_own)
        done.spent = pipeline.spent_at_most
        done.useless = total.useless_deletes - counted.useless_deletes

    def _begin(self, pipeline: Pipeline) -> None:
        """Let a pipeline continue from the state before the slice."""
        state = pipeline.snapshot()
        stated: dict[str, Any] = {"stated": [], "consistent": True, "useless": 0, "knowledge": None}
        if self._state is not None:
            begin = self._slice.begin
            assert begin is not None, "it has a state"
            stated["stated"] = self._state
            state["times"] = [begin, begin - 1, begin - 1 if self._content.first < begin else None]
        state["lasting"] = stated
        pipeline.restore(state)

    def _begins_inconsistent(self, deployment: Deployment) -> bool:
        """Whether M just before the slice contradicts itself, so that the kept answers are earlier ones."""
        content = self._content
        if self._state is None or deployment.program.entailment is Entailment.NONE:
            return False
        periods = Periods(content.background, deployment.program.holds)
        periods.load(self._state)
        try:
            LastingModel(deployment.program, list(periods), content.clock, materialize_all=False).check()
        except (DataError, ProgramError):
            return True
        return False

    def _take(self, pipeline: Pipeline, rows: Iterable[Row]) -> None:
        for time, text in rows:
            pipeline.take(time, message_of(text))

    def _own(self, pipeline: Pipeline) -> Iterator[Composite]:
        for emission in pipeline.drain():
            for event in emission:
                if self._slice.owns(event.time):
                    yield event

    def _state_at(self, time: Time, triples: Sequence[Triple]) -> None:
        if self._slice.owns(time) and self._on_state is not None:
            self._on_state(time, triples)

    def _refused(self, time: Time, parts: Sequence[Part], error: DotrError) -> None:
        if self._slice.owns(time):
            self.done.refused.add(time)
            clock = self._content.clock
            for part in parts:
                line = json.loads(late_line(time, part, clock))
                self.done.letters.append(dead_letter(error, None, "", line))


_TOGETHER = 64
