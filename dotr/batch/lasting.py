"""Batch over what lasts: slices of time that begin with the statements that hold before their overlap.

Place:   called by local.py, whose processes and rounds it uses; spark/cluster.py passes Spark's workers.
Method:  statements are cheap to maintain, their consequences are not: one pass of lasting/periods.py over the
         log's declared triples yields the statements, with their lifetimes, before every slice. A slice is
         then a separate run that begins with them, and yields the events triggered inside it. Rules that
         depend on the whole past run over the whole log. Refused instants state nothing: slices whose
         beginning that changes run again.
         The log is read and sent to buckets, so that the messages of one instant meet and their blank nodes
         get labels. Bucket by bucket its messages go to the slices that read them, and the statements in them
         to the driver, which maintains these.
         The work of maintaining has an allowance for the whole run (budget.py), and a slice begins
         with all of it: if all slices together took more, or one was refused, the log is run again in one.
Cost:    memory for one slice's messages, and in the driver for what is declared, inserted and deleted.
Why not: enrich each instant separately, as if nothing lasted: M depends on earlier instants.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import groupby, islice, pairwise
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.log import Files, graph_columns, load
from dotr.batch.runs import LEAST, MOST, Report, Request, Written, add_counts, write_events
from dotr.batch.time_cuts import Cutoff, balanced_slices
from dotr.batch.work import Treatment, first_of_each, message_of, message_text, packed
from dotr.core.deployment import Deployment, Settings
from dotr.core.instant import AGAIN, OnState
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.detect.partitioning import Partitioning
from dotr.errors import DataError, DotrError, ProgramError
from dotr.events import Clock, Composite, GraphOrMessage, Message, Time, labelled
from dotr.io.errors import dead_letter
from dotr.io.events import late_line
from dotr.io.sinks import StatePart
from dotr.lasting.model import lasting_model
from dotr.lasting.periods import Periods, declared
from dotr.program import Entailment, Hold, Program
from dotr.program.names import Passed, subtracted, summed
from dotr.rdf.terms import Triple

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
"""The statements that a slice begins with, as lasting/periods.py saves them."""


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
    cut: Cutoff | None = None


class SliceDone(Struct):
    """The result of a slice beside its events. `inconsistent`: its beginning contradicts itself, and nothing
    ran. `spent`: the most that it took of what a whole run may spend. `streams`, `passed`: facts by query,
    and how far trigger facts got by rule, for the instants it owns. `states`: the name of the file of its
    enriched graphs.
    """

    dropped: int = 0
    instants: int = 0
    useless: int = 0
    not_held: int = 0
    not_stated: int = 0
    ineffective: int = 0
    refused: set[Time] = field(default_factory=set)
    letters: list[tuple[Time, str]] = field(default_factory=list)
    findings: list[tuple[Time, str]] = field(default_factory=list)
    inconsistent: bool = False
    spent: int = 0
    states: str = ""
    streams: dict[str, int] = field(default_factory=dict)
    passed: dict[str, Passed] = field(default_factory=dict)


def make_lasting_job(deployment: Deployment, content: LastingContent) -> LastingJob:
    """Pack everything. Raises ProgramError, DataError for what cannot run."""
    deployment.compile()
    packed_content = zlib.compress(pickle.dumps(content, pickle.HIGHEST_PROTOCOL), 1)
    return LastingJob(f"{zlib.crc32(packed_content):08x}-{len(packed_content)}", packed_content)


# -- the driver


def lasting_content(
    deployment: Deployment, clock: Clock, treatment: Treatment, first: Time, last: Time, cut: Cutoff | None
) -> LastingContent:
    """What runs from `first` to `last`, or to where times are too far ahead."""
    return LastingContent(
        deployment.program,
        deployment.settings,
        list(deployment.background),
        clock,
        treatment,
        first,
        last if cut is None else cut.last,
        cut,
    )


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
    periods = Periods(content.background, content.program.holds, content.clock)
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
    while (end := periods.next_change()) is not None and end < before:
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

    def events(self, rows: Iterable[Row]) -> Iterator[Composite]:
        """The events that the slice owns; `rows`: the messages it reads, sorted by time, of which those
        before its start are held in memory, and the others a few at a time.
        """
        content, cut, done = self._content, self._slice, self.done
        deployment = _deployment(self._job.key, self._job.content, cut.rules)
        if self._begins_inconsistent(deployment):
            done.inconsistent = True
            return
        forgiving = content.treatment.forgiving
        pipeline = Pipeline(
            deployment,
            PipelineObserver(
                refused=self._refused if forgiving else None,
                overworked=(lambda *_: None) if forgiving else None,
                finding=lambda found: done.findings.append((pipeline.latest or 0, json.dumps(packed(found)))),
                state=None if self._on_state is None else self._state_at,
            ),
            verify=content.treatment.verify,
        )
        pipeline.begin(content.clock)
        self._begin(pipeline)
        far: list[tuple[Time, str]] = []
        rows = self._near(rows, far)
        own: Iterator[Row] = iter(())
        for is_own, found in groupby(rows, lambda row: cut.start is None or row[0] >= cut.start):
            if is_own:
                own = found
                break
            self._take(pipeline, found)
        if cut.start is not None:
            pipeline.close_up_to(cut.start - 1)
            for _ in pipeline.drain():
                pass
        counted, before_own = pipeline.counters, pipeline.passed()
        instants, latest = 0, None
        while some := list(islice(own, _TOGETHER)):
            for time, _ in some:
                instants += time != latest
                latest = time
            self._take(pipeline, some)
            yield from self._own(pipeline)
        last = content.last if cut.end is None else min(content.last, cut.end - 1)
        pipeline.close_up_to(last)
        yield from self._own(pipeline)
        total = pipeline.counters
        done.dropped = total.dropped - counted.dropped
        done.instants = instants - len({time for time, _ in done.letters})
        done.letters += far
        done.refused.update(time for time, _ in far)
        done.streams = {name: count - counted.streams.get(name, 0) for name, count in total.streams.items()}
        done.passed = subtracted(pipeline.passed(), before_own)
        done.spent = pipeline.spent_at_most
        done.useless = total.useless_deletes - counted.useless_deletes
        done.not_held = total.not_held - counted.not_held
        done.not_stated, done.ineffective = total.not_stated, total.ineffective  # then there is one slice

    def _near(self, rows: Iterable[Row], far: list[tuple[Time, str]]) -> Iterator[Row]:
        """The rows that are not too far ahead; `far` gets the others, as dead letters."""
        clock, too_far = self.clock, self._content.cut
        for time, text in rows:
            if too_far is None or time < too_far.since:
                yield time, text
                continue
            line = json.loads(late_line(time, message_of(text), clock))
            far.append((time, dead_letter(too_far.error(time, clock), None, "", line)))

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
        periods = Periods(content.background, deployment.program.holds, content.clock)
        periods.load(self._state)
        try:
            lasting_model(deployment.program, list(periods), content.clock, materialize_all=False).check()
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

    def _refused(self, time: Time, parts: Sequence[GraphOrMessage], error: DotrError) -> None:
        if self._slice.owns(time):
            self.done.refused.add(time)
            clock = self._content.clock
            for part in parts:
                line = json.loads(late_line(time, part, clock))
                self.done.letters.append((time, dead_letter(error, None, "", line)))


_TOGETHER = 64


T = TypeVar("T")

Round = Callable[[str, Callable[[Any], T], Sequence[Any]], list[T]]


class _SlicePart(Struct):
    """A slice with the numbers of the original slices that it merges, and its last run."""

    slice: Slice
    numbers: list[int]
    state: State | None = None
    done: SliceDone | None = None
    written: Written = field(default_factory=lambda: Written(""))


def run_slices(
    request: Request,
    report: Report,
    scratch: str,
    folder: str,
    buckets: int,
    quantiles: Sequence[Time],
    round_: Round[Any],
    too_far: Cutoff | None,
) -> None:
    """Everything after reading the log, whose rows are in `buckets`. `too_far`: where times are too far
    ahead.
    """
    log, treatment = request.log, request.treatment
    assert log.clock is not None
    assert report.first is not None
    assert report.last is not None
    report.ticking = report.first, report.last
    content = lasting_content(request.deployment, log.clock, treatment, report.first, report.last, too_far)
    job = make_lasting_job(request.deployment, content)
    whole = treatment.verify or too_far is not None or request.program.has_effects
    cut = slices(request.plan(), quantiles, report.last, request.slice_length, whole)
    if len(cut) > 1:
        try:
            parts = _run_parts(request, scratch, folder, buckets, round_, content, job, cut)
        except ProgramError as error:
            if error.diagnostics[0].code not in AGAIN:
                raise
        else:
            if sum(part.done.spent for part in parts if part.done) <= request.deployment.settings.budget:
                _sum_up(report, parts)
                return
        cut = [Slice(tuple(range(len(request.program.rules))))]
    _sum_up(report, _run_parts(request, scratch, folder, buckets, round_, content, job, cut, "whole"))


def _run_parts(
    request: Request,
    scratch: str,
    folder: str,
    buckets: int,
    round_: Round[Any],
    content: LastingContent,
    job: LastingJob,
    cut: Sequence[Slice],
    prefix: str = "slice",
) -> list[_SlicePart]:
    """Run slices until refused instants no longer change what one begins with. `prefix`: of their files."""
    round_("sort", partial(_sort, scratch, cut, request.program.holds, prefix), list(range(buckets)))
    rows = load(scratch, "declared-", graph_columns()).sort_by("time").to_pylist()
    said = [(row["time"], row["graph"]) for row in rows]
    parts = [_SlicePart(one, [number]) for number, one in enumerate(cut)]
    waiting = parts
    while waiting:
        refused = {time for part in parts if part.done is not None for time in part.done.refused}
        begins = states(content, said, [part.slice for part in parts], refused)
        for part, state in zip(parts, begins, strict=True):
            if part.done is None or state != part.state:
                part.state, part.done = state, None
        waiting = [part for part in parts if part.done is None]
        work = partial(_run, job, cut, scratch, prefix, folder, request.format_, request.states)
        results = round_("detect", work, [(part.slice, part.numbers, part.state) for part in waiting])
        for part, (written, done) in zip(waiting, results, strict=True):
            part.written, part.done = written, done
        parts = _merged(parts)
        waiting = [part for part in parts if part.done is None or _is_stale(parts, content, said)]
    return parts


def _is_stale(parts: Sequence[_SlicePart], content: LastingContent, said: Sequence[tuple[Time, str]]) -> bool:
    """Whether refused instants change what some slice begins with."""
    refused = {time for part in parts if part.done is not None for time in part.done.refused}
    if not refused:
        return False
    begins = states(content, said, [part.slice for part in parts], refused)
    return any(state != part.state for part, state in zip(parts, begins, strict=True))


def _merged(parts: Sequence[_SlicePart]) -> list[_SlicePart]:
    """Join slices that begin with a contradiction to the ones before them, to run again."""
    found: list[_SlicePart] = []
    for part in parts:
        if part.done is not None and part.done.inconsistent and found:
            before = found[-1]
            before.slice = joined(before.slice, part.slice)
            before.numbers += part.numbers
            before.done = None
        else:
            found.append(part)
    return found


def _sum_up(report: Report, parts: Sequence[_SlicePart]) -> None:
    findings: list[tuple[Time, str]] = []
    refused: set[Time] = set()
    for part in parts:
        assert part.done is not None
        report.parts += 1
        report.dropped += part.done.dropped
        add_counts(report.events, part.written.counts)
        findings += part.done.findings
        if not part.done.refused <= refused:
            report.letters += [letter for _, letter in part.done.letters]
            refused |= part.done.refused
        if part.written.file:
            report.files.append(part.written.file)
        if part.done.states:
            report.states.append(part.done.states)
    # every slice of the rules that are cut counts its instants; rules that are not cut see all of them again
    first = [part for part in parts if part.slice.rules == parts[-1].slice.rules]
    report.instants = sum(part.done.instants for part in first if part.done is not None)
    report.not_held = sum(part.done.not_held for part in first if part.done is not None)
    report.not_stated = sum(part.done.not_stated for part in first if part.done is not None)
    report.ineffective = sum(part.done.ineffective for part in first if part.done is not None)
    report.findings = first_of_each(findings)
    _count(report, parts)


def _count(report: Report, parts: Sequence[_SlicePart]) -> None:
    """How far rules got. Groups of rules that share queries each evaluate them: every query is counted in the
    slices of one group.
    """
    group: dict[str, tuple[int, ...]] = {}
    for part in parts:
        assert part.done is not None
        report.passed = summed(report.passed, part.done.passed)
        own = {
            name: count
            for name, count in part.done.streams.items()
            if group.setdefault(name, part.slice.rules) == part.slice.rules
        }
        add_counts(report.streams, own)


def _sort(scratch: str, cut: Sequence[Slice], holds: Sequence[Hold], prefix: str, bucket: int) -> None:
    """One bucket of instants: rows to the slices that read them, and the statements in them."""
    table = load(scratch, f"graphs-{bucket}-", graph_columns())
    times, texts = table.column("time").to_pylist(), table.column("graph").to_pylist()
    order = sorted(range(len(times)), key=times.__getitem__)
    del table
    files = Files(scratch, f"{prefix}-{{}}-{bucket}", graph_columns())
    said = Files(scratch, f"declared-{{}}-{bucket}", graph_columns())
    is_held = declared(holds)
    for time, rows in groupby(((times[i], texts[i]) for i in order), key=itemgetter(0)):
        came = [text for _, text in rows]
        for number, one in enumerate(cut):
            if one.sees(time):
                for text in came:
                    files.add(number, (time, text), len(text))
        for message in labelled([message_of(text) for text in came], time):
            held = [triple for triple in message.graph or () if is_held(triple)]
            if held or message.insert or message.delete:
                text = message_text(Message(held, message.insert, message.delete))
                said.add(0, (time, text), len(text))
    files.close()
    said.close()


def _run(
    job: LastingJob,
    cut: Sequence[Slice],
    scratch: str,
    prefix: str,
    folder: str,
    format_: str,
    states: str | None,
    task: tuple[Slice, Sequence[int], State | None],
) -> tuple[Written, SliceDone]:
    """One slice: its events to a file of the output."""
    slice_, numbers, state = task
    rows: list[tuple[Time, str]] = []
    for place, number in enumerate(numbers):
        table = load(scratch, f"{prefix}-{number}-", graph_columns()).sort_by("time")
        start = cut[number].start
        times, texts = table.column("time").to_pylist(), table.column("graph").to_pylist()
        own = zip(times, texts, strict=True)
        rows += own if not place or start is None else (row for row in own if row[0] >= start)
    carries = states is not None and slice_.rules == cut[-1].rules  # one slice of each time reports it
    clock = clock_of(job)
    enriched = StatePart(states, clock) if carries and states is not None else None
    run = SliceRun(job, slice_, state, None if enriched is None else enriched.write)
    written = write_events(folder, format_, run.program, run.clock, run.events(rows))
    if enriched is not None:
        run.done.states = enriched.close()
    return written, run.done
