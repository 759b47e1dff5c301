"""`--engine local`: the batch in processes of this machine, without Spark and without Java.

Place:   beside spark/cluster.py, which does the same on Spark; both run the functions of work.py.
Method:  three rounds over files in a scratch folder: read the log and send graphs to buckets by time, so that
         those of one instant meet; extract bucket by bucket and send facts to tasks by part; detect task by
         task. Every round sorts its input, so order in the log does not matter. Parquet whose statistics show
         that no two tasks share a time (archives.py) skips the first round: it is extracted from its row
         groups.
         Processes are forks (Linux) where no other thread of Python runs: they start with what is loaded, in
         0.02 s instead of 0.25. No request to end is taken meanwhile, which a fork would lose. Arrow's thread
         pools begin anew in a fork (ARROW-2963).
         A process asks the system to be ended when its parent ends (Linux), or waits for that in a thread
         (elsewhere); without either, a task would continue and write into the folder of a new run. The parent
         handles Ctrl-C: it ends the processes at once, whatever they are doing.
Cost:    memory for one bucket, or for one task's facts.
Why not: extract where the graphs are read: two files can have graphs of one instant.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from gc import set_threshold
from multiprocessing import get_context, parent_process
from threading import Thread, active_count
from time import monotonic
from typing import Any, TypeVar
from warnings import catch_warnings, simplefilter

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.archives import (
    ArchiveSlice,
    known_times,
    share_times,
    slice_events,
    sliced,
    times_of,
    whole_instants,
)
from dotr.batch.facts import COUNTED, FINDING, INSTANTS, REFUSED, FactRow, Layout, bundled, marks
from dotr.batch.lasting import run_slices
from dotr.batch.log import (
    ARCHIVE_TIME,
    Files,
    LogListing,
    ReadCounts,
    Split,
    file_size,
    graph_columns,
    is_archive,
    load,
    packed,
    read_split,
    spread,
)
from dotr.batch.ordered import OrderedSlice, UnorderedError, in_order, write_slice
from dotr.batch.runs import (
    PARTS,
    OnProgress,
    Report,
    Request,
    Written,
    add_counts,
    lay_out,
    run_again,
    write_detected,
)
from dotr.batch.time_cuts import MANY_GAPS, Cutoff, Gap, Span, Spans, cutoff, gaps, spans_for
from dotr.batch.work import (
    Instant,
    Shipped,
    extract,
    fact_columns,
    fact_rows,
    first_of_each,
    instants,
    into_folder,
    make_job,
    ship,
    skewed,
)
from dotr.collecting import RARELY
from dotr.core.instants import JumpLimit, check_units
from dotr.errors import DotrError, EngineError, UnsupportedError
from dotr.events import Time
from dotr.io.decode.documents import is_packed
from dotr.io.decode.parquet import SUFFIX
from dotr.io.outputs import unwritable
from dotr.io.sinks import StatePart

_PR_SET_PDEATHSIG = 1

STOPS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What ends a process from outside, besides Ctrl-C and SIGKILL."""


@contextmanager
def _forking() -> Iterator[None]:
    """Processes start within it. Signals that end this one wait until it ends: an exception that a handler
    raises in one of the functions that Python calls at a fork would be lost.
    """
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *STOPS}) if masks else set()
    try:
        with catch_warnings():
            simplefilter("ignore", DeprecationWarning)  # of threads, which are Arrow's
            yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin() -> None:
    """What a process of the pool does first."""
    set_threshold(*RARELY)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stop in STOPS:
        if callable(signal.getsignal(stop)):  # the parent's, after a fork
            signal.signal(stop, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    parent = parent_process()
    if parent is None or _ended_by_the_system():
        if parent is not None and os.getppid() != parent.pid:  # it ended before we asked
            os._exit(1)
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _ended_by_the_system() -> bool:
    """Whether the system promises to end this process with its parent."""
    if sys.platform != "linux":
        return False
    from ctypes import CDLL  # noqa: PLC0415  # of these processes alone

    try:
        return bool(CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def end(pool: Executor) -> None:
    """End a pool and its processes, whatever they are doing."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):  # threads have none
        process.kill()
    pool.shutdown(wait=True, cancel_futures=True)


BUCKET = 64 * 1024 * 1024
"""Approximate bytes of graphs that one task extracts."""

ALONE = 2 * 1024 * 1024
"""Bytes of graphs for which another process is not worth starting."""

_SAMPLE = 2_000

T = TypeVar("T")


class _Read(Struct):
    """What a reading task found. `sample`: evenly picked times. Gaps between `spans` may be too wide; rules
    can be cut at gaps between `cells`.
    """

    counts: ReadCounts = field(default_factory=ReadCounts)
    first: Time | None = None
    last: Time | None = None
    sample: list[Time] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    cells: list[Span] = field(default_factory=list)


class _Extracted(Struct, frozen=True):
    """The result of an extracting task: its instants not in error, and dead letters of the others; findings
    by time; facts by query; the name of the file of enriched graphs.
    """

    instants: int
    first: Time | None
    letters: list[str]
    findings: list[tuple[Time, str]]
    counted: str
    states: str = ""


class LocalRunner:
    """Runs on `processes` processes (default: one per core, fewer for a small log), or on any executor."""

    name = "local"

    def __init__(
        self, processes: int | None = None, executor: Callable[[int], Executor] | None = None
    ) -> None:
        self._processes = processes
        self._executor = executor or _pool

    def close(self) -> None:
        """Nothing outlives a run."""

    def run(self, request: Request, folder: str, on_progress: OnProgress) -> Report:
        """See `Runner.run`. Uses scratch space beside the output, about the size of the uncompressed log."""
        return run_again(request, lambda request: self._once(request, folder, on_progress))

    def _once(self, request: Request, folder: str, on_progress: OnProgress) -> Report:
        report = Report()
        if request.log.clock is None:
            return report
        check_units(request.program, request.log.clock)
        scratch = tempfile.mkdtemp(prefix="_scratch-", dir=folder)
        try:
            weight = sum(map(_weight, request.log.splits))
            processes = self._processes or min(os.cpu_count() or 1, 1 + weight // ALONE)
            with self._executor(processes) as pool:
                try:
                    with _forking():  # they start while the first round is planned
                        for _ in range(processes):
                            pool.submit(_started)
                    run = _LocalRun(request, report, pool, processes, folder, scratch, on_progress)
                    try:
                        run.run(request.program.lasting)
                    except UnsupportedError as error:
                        if request.program.lasting or error.diagnostics[0].code != "D4160":
                            raise
                        run.scratch = os.path.join(scratch, "lasting")  # it inserts or deletes; tasks that
                        os.mkdir(run.scratch)  # have begun may go on writing for a while
                        report = run.report = Report()
                        run.run(True)
                except BaseException:
                    end(pool)
                    raise
        except BrokenExecutor:
            raise EngineError.of(
                "D4304",
                "a process of the local engine died",
                notes=("most likely memory ran out and the system ended it",),
                hint="shorter slices (--slice) or a keyed rule need less memory at once",
            ) from None
        except OSError as error:
            raise unwritable(folder, error) from None
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return report


def _started() -> None:
    """Nothing: submitting it starts a process."""


def _pool(processes: int) -> Executor:
    forks = sys.platform == "linux" and hasattr(os, "fork") and active_count() == 1
    context = get_context("fork" if forks else "spawn")
    return ProcessPoolExecutor(processes, mp_context=context, initializer=begin)


class _LocalRun(Struct):
    """Owns one run's rounds."""

    request: Request
    report: Report
    pool: Executor
    processes: int
    folder: str
    scratch: str
    on_progress: OnProgress

    def run(self, lasting: bool) -> None:
        request, report, log = self.request, self.report, self.request.log
        if not lasting and (self._ordered() or self._archives()):
            return
        splits = spread(log.splits, self.processes * PARTS)
        buckets = max(self.processes * PARTS, sum(map(_weight, splits)) * 2 // BUCKET)
        ahead = request.deployment.ahead(request.max_jump)
        gap = None if lasting else request.plan().gap
        read = partial(_read, log, self.scratch, buckets, ahead, lasting, gap)
        found = self._round("read", read, list(enumerate(splits)))
        sample = self._sum_up(found)
        if report.first is None or report.last is None:
            return
        quantiles = _quantiles(sample, self.processes * PARTS)
        assert log.clock is not None
        spans = (span for read in found for span in read.spans)
        cut = cutoff(ahead, gaps(spans, ahead.stride), log.clock, request.treatment.forgiving)
        if lasting:
            last, report.last = report.last, request.end(report.last)
            run_slices(request, report, self.scratch, self.folder, buckets, quantiles, self._round, cut)
            report.last = last
            return
        found_gaps = [] if gap is None else list(gaps((cell for read in found for cell in read.cells), gap))
        self._extract_and_detect(list(range(buckets)), _Bucket, quantiles, cut, found_gaps)

    def _archives(self) -> bool:
        """Run a log of row groups whose statistics show that no two tasks share a time: without a reading
        round and without intermediate files of graphs. Returns False for other logs.
        """
        request, report, log = self.request, self.report, self.request.log
        if not log.fail or not all(is_archive(p.file, log.options) for s in log.splits for p in s.pieces):
            return False
        known = known_times(log.splits)
        if known is None or known.last - known.first > request.deployment.ahead(request.max_jump).stride:
            return False
        ended = replace(known, last=request.end(known.last))
        found = sliced(request, ended, self.processes) if request.states is None else None
        tasks = packed(log.splits, self.processes * PARTS)
        if found is None and share_times(tasks):
            return False
        report.graphs, report.first, report.last = known.graphs, known.first, known.last
        report.time_sources = {ARCHIVE_TIME: known.graphs}
        log, found_gaps = replace(log, splits=()), list[Gap]()
        if found is not None:
            self._detect_slices(log, *found)
            return True
        gap = request.plan().gap
        if gap is not None:
            cells = self._round("gaps", partial(_cells, log, gap), tasks)
            found_gaps = list(gaps((cell for found in cells for cell in found), gap))
        self._extract_and_detect(
            tasks, partial(_RowGroups, log), known.quantiles(self.processes * PARTS), None, found_gaps
        )
        return True

    def _ordered(self) -> bool:
        """Run a log in order of time whose rules are cut by time: in one round. Returns False for other logs,
        and where anything is not as usual: the rounds for all logs report it.
        """
        request = self.request
        found = in_order(request, self.processes) if request.states is None else None
        if found is None or found.last - found.first > request.deployment.ahead(request.max_jump).stride:
            return False
        report, log = self.report, replace(request.log, splits=())
        assert log.clock is not None
        place = partial(into_folder, self.scratch)
        job = make_job(
            request.deployment, log.clock, found.layout, request.treatment, place=place, whole=True
        )
        work = partial(_detect_ordered, ship(job), log, found.files, self.folder, request.format_)
        try:
            done = self._round("detect", work, found.slices)
        except (UnorderedError, DotrError):
            return False
        report.first, report.last, report.ticking = found.first, found.last, found.slices[0].span
        for _, counts in done:
            report.graphs += counts.graphs
            add_counts(report.time_sources, counts.time_sources)
        self._sum_up_written([written for written, _ in done], [], found.layout)
        report.instants = report.streams.pop(INSTANTS, 0)
        return True

    def _detect_slices(self, log: LogListing, layout: Layout, slices: Sequence[ArchiveSlice]) -> None:
        """The only round of slices that tasks read themselves."""
        request, report = self.request, self.report
        assert log.clock is not None
        place = partial(into_folder, self.scratch)
        job = make_job(request.deployment, log.clock, layout, request.treatment, place=place, whole=True)
        report.ticking = slices[0].span
        work = partial(_detect_slice, ship(job), log, self.folder, request.format_)
        self._sum_up_written(self._round("detect", work, slices), [], layout)
        report.instants = report.streams.pop(INSTANTS, 0)

    def _extract_and_detect(
        self,
        sources: Sequence[Any],
        opened: Callable[[Any], _Instants],
        quantiles: Sequence[Time],
        cut: Cutoff | None,
        gaps: Sequence[Gap],
    ) -> None:
        """Rounds 2 and 3; `opened` maps a source of instants to what a task reads. `gaps`: see `lay_out`."""
        request, report, clock = self.request, self.report, self.request.log.clock
        plan = request.plan()
        assert clock is not None
        assert report.last is not None
        last = request.end(report.last) if cut is None else cut.last
        layout = lay_out(plan, self.processes, quantiles, last, request.slice_length, gaps)
        place = partial(into_folder, self.scratch)
        shipped = ship(make_job(request.deployment, clock, layout, request.treatment, cut, place))
        tasks = self.processes * PARTS * 2
        extract_ = partial(_extract, shipped, self.scratch, tasks, request.states)
        found = [(number, opened(source)) for number, source in enumerate(sources)]
        done = self._round("extract", extract_, found)
        report.states = [extracted.states for extracted in done if extracted.states]
        report.instants = sum(extracted.instants for extracted in done)
        report.letters += [letter for extracted in done for letter in extracted.letters]
        findings = [found for extracted in done for found in extracted.findings]
        for extracted in done:
            report.add_counted(f"[{extracted.counted}, {{}}]")
        firsts = [extracted.first for extracted in done if extracted.first is not None]
        _spill(self.scratch, tasks, "marks", marks(layout, min(firsts)) if firsts else [])
        report.ticking = (min(firsts), last) if firsts else None
        work = partial(_detect, shipped, self.scratch, self.folder, request.format_)
        self._sum_up_written(self._round("detect", work, list(range(tasks))), findings, layout)

    def _sum_up_written(
        self, done: Sequence[Written], findings: Sequence[tuple[Time, str]], layout: Layout
    ) -> None:
        """Add what tasks wrote to the report; `findings`: further findings."""
        report = self.report
        for written in done:
            report.parts += written.parts
            report.dropped += written.dropped
            report.add_counted(written.counted)
            add_counts(report.events, written.counts)
            add_counts(report.left_out, written.left_out)
            if written.file:
                report.files.append(written.file)
        weights = [weight for written in done for weight in written.weights]
        found = [*findings, *(finding for written in done for finding in written.findings)]
        report.findings = [*first_of_each(found), *skewed(self.request.program, layout, weights)]

    def _sum_up(self, found: Iterable[_Read]) -> list[Time]:
        """Add the counts of all reading tasks to the report; returns a sorted sample of the log's times."""
        report = self.report
        sample: list[Time] = []
        for read in found:
            report.graphs += read.counts.graphs
            report.letters += read.counts.letters
            for time_source, count in read.counts.time_sources.items():
                report.time_sources[time_source] = report.time_sources.get(time_source, 0) + count
            for what, count in read.counts.beside.items():
                report.beside[what] = report.beside.get(what, 0) + count
            report.changed = {**read.counts.changed, **report.changed}
            sample += read.sample
            if read.first is not None and read.last is not None:
                report.first = read.first if report.first is None else min(report.first, read.first)
                report.last = read.last if report.last is None else max(report.last, read.last)
        return sorted(sample)

    def _round(self, stage: str, function: Callable[[Any], T], tasks: Sequence[Any]) -> list[T]:
        """Run a function over all tasks; results are in the tasks' order. The first error ends the run."""
        start = monotonic()
        self.on_progress(stage, 0, len(tasks), 0)
        futures = {self.pool.submit(function, task): number for number, task in enumerate(tasks)}
        results: dict[int, T] = {}
        try:
            for future in as_completed(futures):
                results[futures[future]] = future.result()
                done = self._graphs_done(results.values(), len(tasks))
                self.on_progress(stage, len(results), len(tasks), done)
        finally:
            for future in futures:
                future.cancel()
        self.report.seconds[stage] = monotonic() - start
        return [results[number] for number in range(len(tasks))]

    def _graphs_done(self, results: Collection[object], of: int) -> int:
        """The number of graphs a round has processed: counted while reading, later by share of tasks."""
        if self.report.graphs:
            return self.report.graphs * len(results) // of
        return sum(result.counts.graphs for result in results if isinstance(result, _Read))


def _weight(split: Split) -> int:
    """Approximate bytes of graphs in a split."""
    total = 0
    for piece in split.pieces:
        size = file_size(piece.file)
        if piece.file.lower().endswith(SUFFIX):
            total += piece.size or size * 8 // max(1, piece.end)
        elif piece.end:
            total += piece.end - piece.first
        else:
            total += size * (8 if is_packed(piece.file) else 1)
    return total


def _quantiles(sample: Sequence[Time], pieces: int) -> list[Time]:
    return [sample[len(sample) * i // pieces] for i in range(pieces)]


def _read(
    log: LogListing,
    scratch: str,
    buckets: int,
    ahead: JumpLimit,
    lasting: bool,
    gap: Time | None,
    task: tuple[int, Split],
) -> _Read:
    """Round 1, one task: graphs, or messages where something lasts, to files by bucket of time. `gap`: the
    gap at which rules are cut, if any.
    """
    number, split = task
    found = _Read()
    spans = spans_for(ahead)
    cells = None if gap is None else Spans(gap, MANY_GAPS)
    files = Files(scratch, f"graphs-{{}}-{number}", graph_columns())
    step = 1
    for time, graph in read_split(log, split, found.counts, lasting):
        files.add(_bucket(time, buckets), (time, graph), len(graph))
        if spans is not None:
            spans.add(time)
        if cells is not None:
            cells.add(time)
        found.first = time if found.first is None else min(found.first, time)
        found.last = time if found.last is None else max(found.last, time)
        if found.counts.graphs % step == 0:
            found.sample.append(time)
            if len(found.sample) > _SAMPLE:
                found.sample = found.sample[::2]
                step *= 2
    files.close()
    if spans is not None:
        found.spans = spans.joined()
    if cells is not None:
        found.cells = cells.joined()
    return found


def _cells(log: LogListing, gap: Time, split: Split) -> list[Span]:
    """The times of a task's row groups as spans between gaps."""
    cells = Spans(gap, MANY_GAPS)
    for time in times_of(log, split.pieces).unique().to_pylist():
        cells.add(time)
    return cells.joined()


def _bucket(time: Time, buckets: int) -> int:
    """Equal times get one bucket, neighbours different ones: a busy hour is spread over all."""
    return (time * 0x9E3779B97F4A7C15 >> 20) % buckets


class _Bucket(Struct, frozen=True):
    """The graphs of a bucket that round 1 wrote."""

    number: int

    def instants(self, scratch: str) -> Iterator[Instant]:
        table = load(scratch, f"graphs-{self.number}-", graph_columns())
        times, graphs = table.column("time").to_pylist(), table.column("graph").to_pylist()
        order = sorted(range(len(times)), key=times.__getitem__)
        del table
        yield from instants((times[i], graphs[i]) for i in order)


class _RowGroups(Struct, frozen=True):
    """Row groups that share no time with those of other tasks."""

    log: LogListing
    split: Split

    def instants(self, _scratch: str) -> Iterator[Instant]:
        return whole_instants(self.log, self.split.pieces)


_Instants = _Bucket | _RowGroups


def _extract(
    shipped: Shipped, scratch: str, tasks: int, states: str | None, task: tuple[int, _Instants]
) -> _Extracted:
    """Round 2, one task: facts to files by task of round 3."""
    number, source = task
    worker = shipped.worker()
    seen: list[Time] = []
    letters: list[str] = []
    refused: set[Time] = set()
    findings: list[tuple[Time, str]] = []
    counted = "{}"
    enriched = None if states is None else StatePart(states, worker.job.clock)
    worker.extracting.report_states(None if enriched is None else enriched.write)

    def noted() -> Iterator[Instant]:
        for instant in source.instants(scratch):
            seen.append(instant[0])
            yield instant

    def accepted() -> Iterator[FactRow]:
        nonlocal counted
        for row in extract(worker, noted()):
            if row[0] == REFUSED:
                letters.append(row[2])
                refused.add(row[1])
            elif row[0] == FINDING:
                findings.append((row[1], row[2]))
            elif row[0] == COUNTED:
                counted = row[2]
            else:
                yield row

    _spill(scratch, tasks, str(number), accepted())
    known = set(seen) - refused
    written = "" if enriched is None else enriched.close()
    return _Extracted(len(known), min(known, default=None), letters, findings, counted, written)


def _spill(scratch: str, tasks: int, name: str, rows: Iterable[tuple[int, Time, str]]) -> None:
    """Write rows of facts to files by task, as bundles; all of a part go to the same task."""
    files = Files(scratch, f"facts-{{}}-{name}", fact_columns())
    for bundles in bundled(rows):
        for row in bundles:
            files.add(row[0] % tasks, row, len(row[2]))
    files.close()


def _detect(shipped: Shipped, scratch: str, folder: str, format_: str, task: int) -> Written:
    """Round 3, one task's parts: events to a file of the output."""
    table = load(scratch, f"facts-{task}-", fact_columns()).sort_by(
        [("part", "ascending"), ("time", "ascending")]
    )
    worker = shipped.worker()
    detecting = worker.detecting()
    events = detecting.events(fact_rows(table.to_batches(max_chunksize=64)))
    return write_detected(folder, format_, worker, detecting, events)


def _detect_slice(
    shipped: Shipped, log: LogListing, folder: str, format_: str, task: ArchiveSlice
) -> Written:
    """One slice: its events to a file of the output."""
    worker = shipped.worker()
    detecting = worker.detecting()
    return write_detected(folder, format_, worker, detecting, slice_events(worker, detecting, log, task))


def _detect_ordered(
    shipped: Shipped, log: LogListing, files: Sequence[str], folder: str, format_: str, task: OrderedSlice
) -> tuple[Written, ReadCounts]:
    """One slice of a log in order: its events to a file of the output, and what it read of its own."""
    return write_slice(shipped.worker(), log, files, folder, format_, task)
