"""`--engine local` where something lasts: slices of time, each a run from what was stated before.

Place:   called by local.py, whose processes and rounds it uses; lasting_slices.py defines slices.
Method:  the log is read and sent to buckets, so that the messages of one instant meet and their blank nodes
         get labels; bucket by bucket its messages go to the slices that read them, and the statements in them
         to the driver, which maintains these. Memory: one slice's messages, and in the driver what is
         declared, inserted and deleted.
         What maintaining costs is an allowance of the whole run (core/spending.py), and a slice begins with
         all of it: where all slices together took more, or one was refused, the log is run again in one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

from msgspec import Struct, field

from dotr.batch.arrow_batches import message_of, message_text
from dotr.batch.findings_as_json import first_of_each
from dotr.batch.lasting_slices import (
    LastingContent,
    LastingJob,
    Slice,
    SliceDone,
    SliceRun,
    State,
    clock_of,
    joined,
    make_lasting_job,
    slices,
    states,
)
from dotr.batch.output_parts import Written, write_events
from dotr.batch.runs import Report, Request, add_counts
from dotr.batch.scratch import GRAPHS, Files, load
from dotr.core.instant import AGAIN
from dotr.core.parts import labelled
from dotr.core.periods import declared
from dotr.errors import ProgramError
from dotr.events import Message, Time
from dotr.io.enriched_graphs import StatePart
from dotr.ir import Hold
from dotr.temporal.stages import summed

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
) -> None:
    """Everything after reading the log, whose rows are in `buckets`."""
    log, treatment = request.log, request.treatment
    assert log.clock is not None
    assert report.first is not None
    assert report.last is not None
    report.ticking = report.first, report.last
    job = make_lasting_job(request.deployment, log.clock, treatment, report.first, report.last)
    content = LastingContent(
        request.program,
        request.deployment.settings,
        list(request.deployment.background),
        log.clock,
        treatment,
        report.first,
        report.last,
    )
    whole = treatment.verify or request.max_jump is not None
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
    rows = load(scratch, "declared-", GRAPHS).sort_by("time").to_pylist()
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
            report.letters += part.done.letters
            refused |= part.done.refused
        if part.written.file:
            report.files.append(part.written.file)
        if part.done.states:
            report.states.append(part.done.states)
    # every slice of the rules that are cut counts its instants; rules that are not cut see all of them again
    first = [part for part in parts if part.slice.rules == parts[-1].slice.rules]
    report.instants = sum(part.done.instants for part in first if part.done is not None)
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
    table = load(scratch, f"graphs-{bucket}-", GRAPHS)
    times, texts = table.column("time").to_pylist(), table.column("graph").to_pylist()
    order = sorted(range(len(times)), key=times.__getitem__)
    del table
    files = Files(scratch, f"{prefix}-{{}}-{bucket}", GRAPHS)
    said = Files(scratch, f"declared-{{}}-{bucket}", GRAPHS)
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
        table = load(scratch, f"{prefix}-{number}-", GRAPHS).sort_by("time")
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
