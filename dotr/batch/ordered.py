"""Batch input read directly from lines, archives and tables in order of time, by slices.

Place:   local.py runs these tasks before it considers those of archives.py, which sort what they read.
Method:  a few times all over the files are read, at places where a reader can begin. If they ascend, and
         row groups do not overlap by what their file says, the log is taken to be in order, and a slice of
         time begins the horizon after such a place. A task reads from the place on to the end of its slice
         and does what `dotr run` does: no graph and no fact leaves its process, and rows of tables become
         facts as columns (extract/forms.py). It checks the order of all it reads, and that it comes as far as
         the place where the next task begins, so all tasks together know that the log is in order.
Why not: reading all times first: it is most of reading the log. The rounds of local.py for all logs: they
         read, write and sort each graph before anything is extracted from it.
Bad input: what is not in order or not as usual raises `UnorderedError`, any other error its own; for each of
         them the rounds of local.py begin anew, which sort, and report errors as ever.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import le, lt

from msgspec import Struct

from dotr.batch.archives import one_group, opened
from dotr.batch.facts import INSTANTS, Cut, Layout
from dotr.batch.log import (
    LogListing,
    ReadCounts,
    cut_after,
    file_size,
    is_archive,
    rows_are_lines,
    table_header,
)
from dotr.batch.runs import Request, Written, write_runs
from dotr.batch.time_cuts import Span, Uneven
from dotr.batch.work import Worker, packed
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.detect.partitioning import Partitioning
from dotr.emit.events import InstantEvents, together
from dotr.errors import Diagnostic, DotrError
from dotr.events import Time
from dotr.io.arrow import pa, pq
from dotr.io.decode.documents import Format, format_of, is_packed
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import Bookmark, GraphRun, SourceOptions, TimedGraph, WantedForm
from dotr.io.reader import FileReader
from dotr.io.tables.rows import BATCH

SLICES = 2
"""Slices for each process: more of them read more twice, fewer leave processes waiting for the last one."""

FILES = 64
"""The limit of files whose first times are read."""

_TAILS = (1 << 14, 1 << 18)
"""Bytes at the end of a file of which the last time is read: more of them if no graph begins in the first."""
_TAIL_ROWS = 1_024
"""Likewise, rows of an archive or a table of columns."""

_TWICE = 4
"""A slice reads less than this part of what it owns twice."""

_TOGETHER = 1_024
"""Graphs that are taken before what is closed is detected."""


class UnorderedError(Exception):
    """The log is not in order, or not as usual: it cannot be read by slices."""


class Spot(Struct, frozen=True, order=True):
    """Where a reader can begin: the number of a file; of it bytes, or rows of Parquet."""

    file: int
    at: int


class OrderedSlice(Struct, frozen=True):
    """What a task detects: `[start, end)`, and the horizon before, from `since` on; None is no limit.

    It reads from `begin` on, and at least to `reach`, where the next task begins. `span`: of the log.
    """

    number: int
    span: Span
    begin: Spot
    reach: Spot | None
    since: Time | None
    start: Time | None
    end: Time | None


class Ordered(Struct, frozen=True):
    """A log that seems to be in order: its files by their first times, and slices."""

    files: tuple[str, ...]
    layout: Layout
    slices: tuple[OrderedSlice, ...]
    first: Time
    last: Time


def in_order(request: Request, processes: int) -> Ordered | None:
    """The slices of a log in order, for up to `processes`; None where it is not in order as far as is seen,
    a file is of another kind, rules are not cut by time, or too much would be read twice.
    """
    log, groups = request.log, request.plan().groups
    files = list(dict.fromkeys(piece.file for split in log.splits for piece in split.pieces))
    if not log.fail or log.clock is None or not files or any(group.horizon is None for group in groups):
        return None
    if not groups or len(files) > FILES or request.slice_length is not None:
        return None
    spans = sorted(piece.span for split in log.splits for piece in split.pieces if piece.span is not None)
    if any(one[1] > following[0] for one, following in pairwise(spans)):
        return None
    group = one_group(groups)
    assert group.horizon is not None
    if group.ticking or group.sees_all or group.holds or request.treatment.verify:
        return None
    try:
        if not all(_is_plain(file, log.options) for file in files):
            return None
        for file in files:
            if is_archive(file, log.options):
                opened(log, file)  # it has the unit of the others
        begun = sorted((time, file) for file in files if (time := _time_at(log, file, 0)) is not None)
        if not begun:
            return None
        files = [file for _, file in begun]
        spots = _spots(log, files, processes * SLICES)
        found: list[tuple[Spot, Time | None]] = [(spots[0], begun[0][0])]
        found += [(spot, _time_at(log, files[spot.file], spot.at)) for spot in spots[1:]]
        last = _last(log, files[-1])
    except (DotrError, OSError, pa.ArrowException):
        return None  # the rounds report it
    times = [time for _, time in found if time is not None]
    if len(times) < len(found) or last is None or not all(map(le, times, [*times[1:], last])):
        return None
    first = times[0]
    chosen = _chosen(spots, times, group.horizon, last)
    if len(chosen) < 2:
        return None
    starts = tuple(time + group.horizon + 1 for _, time in chosen[1:])
    span = first, request.end(last)
    slices = []
    for number, (spot, time) in enumerate(chosen):
        following = chosen[number + 1][0] if number + 1 < len(chosen) else None
        bounds = [None, *starts, None][number : number + 2]
        slices.append(OrderedSlice(number, span, spot, following, time + 1 if number else None, *bounds))
    plan = Partitioning(request.plan().components, (group,))
    layout = Layout(plan, (Cut(1, Uneven(starts)),), span[1])
    return Ordered(tuple(files), layout, tuple(slices), first, last)


def _is_plain(file: str, options: SourceOptions) -> bool:
    """Whether a file is an archive, JSON lines, or a table whose rows are read one by one, from anywhere."""
    mapping = options.mapping_for(file)
    reading = options.reading if mapping is None else mapping.reading(options.reading)
    if is_packed(file) or reading.ambiguous == "infer" or options.split:
        return False
    if mapping is None:
        return is_archive(file, options) or format_of(file) is Format.JSONLINES
    if mapping.rows is not None:
        return False
    form = mapping.format_of(file)
    return form == "parquet" or (form in ("csv", "tsv", "jsonl") and rows_are_lines(file, mapping))


def _is_columns(file: str, options: SourceOptions) -> bool:
    """Whether places in a file are numbers of rows."""
    if is_archive(file, options):
        return True
    mapping = options.mapping_for(file)
    return mapping is not None and mapping.format_of(file) == "parquet"


def _spots(log: LogListing, files: Sequence[str], count: int) -> list[Spot]:
    """About `count` places where a reader can begin, evenly in bytes, the first one among them."""
    sizes = [max(1, file_size(file)) for file in files]
    before = list(accumulate(sizes, initial=0))
    found = {Spot(0, 0)}
    for i in range(1, count):
        goal = before[-1] * i // count
        number = bisect_right(before, goal) - 1
        file, at = files[number], goal - before[number]
        if _is_columns(file, log.options):
            with pq.ParquetFile(file) as table:
                rows = table.metadata.num_rows * at // sizes[number]
            found.add(Spot(number, _row_begin(file, rows)))
        elif (cut := cut_after(file, at)) < sizes[number]:
            found.add(Spot(number, cut))
    return sorted(found)


def _row_begin(file: str, rows: int) -> int:
    """The number of rows of a Parquet file before those that are read together with the one after `rows`."""
    with pq.ParquetFile(file) as table:
        before = 0
        for group in range(table.num_row_groups):
            many = table.metadata.row_group(group).num_rows
            if before + many > rows:
                return before + (rows - before) // BATCH * BATCH
            before += many
    return before


def _reader(log: LogListing, file: str, at: int, wanted: WantedForm | None = None) -> FileReader:
    mapping = log.options.mapping_for(file)
    how = "graph" if _is_columns(file, log.options) else "byte"
    carried = table_header(file, mapping) if mapping is not None and at and how == "byte" else ""
    extractor, place = log.options.extractor(log.clock), Bookmark(how, at, carried)
    policy = ErrorPolicy(fail=True)  # what has an error is read again: no place is reported
    return FileReader(file, log.options, extractor, policy, bookmark=place, wanted=wanted, numbered=False)


def _time_at(log: LogListing, file: str, at: int) -> Time | None:
    """The time of the first graph from there on; None at the end."""
    return next((run.times[0] for run in _runs_of(_reader(log, file, at))), None)


def _last(log: LogListing, file: str) -> Time | None:
    """The time of the last graph."""
    if _is_columns(file, log.options):
        with pq.ParquetFile(file) as table:
            return _last_from(log, file, max(0, table.metadata.num_rows - _TAIL_ROWS))
    size = file_size(file)
    found = (_last_from(log, file, cut_after(file, size - tail)) for tail in _TAILS if size > tail)
    last = next((time for time in found if time is not None), None)
    return _last_from(log, file, 0) if last is None and size <= _TAILS[-1] else last


def _last_from(log: LogListing, file: str, at: int) -> Time | None:
    """The time of the last graph from there on, if there is one."""
    last: Time | None = None
    for run in _runs_of(_reader(log, file, at)):
        last = run.times[-1]
    return last


def _chosen(
    spots: Sequence[Spot], times: Sequence[Time], horizon: Time, last: Time
) -> list[tuple[Spot, Time]]:
    """Where slices begin to read, and the times there: as many as there can be if little is read twice."""
    count = len(spots)
    ends = [*times, last + 1]
    for many in range(count, 1, -1):
        places = sorted({count * i // many for i in range(many)})
        starts = [times[place] + horizon + 1 for place in places[1:]]
        if starts[-1] > last or not all(map(lt, starts, starts[1:])):
            continue
        twice = [_place_of(start, ends) - place for start, place in zip(starts, places[1:], strict=True)]
        if max(twice) * _TWICE <= count / len(places):
            return [(spots[place], times[place]) for place in places]
    return []


def _place_of(time: Time, ends: Sequence[Time]) -> float:
    """Where a time lies among ascending ones, by what is between two of them."""
    place = bisect_right(ends, time) - 1
    low, high = ends[place], ends[place + 1]
    return place + (time - low) / (high - low)


def write_slice(
    worker: Worker, log: LogListing, files: Sequence[str], folder: str, format_: str, task: OrderedSlice
) -> tuple[Written, ReadCounts]:
    """Detect a slice: the events that it owns to a file of the output, and what it read of its own.

    Raises UnorderedError, and DotrError of any kind.
    """
    slice_ = _Slice(worker, log, files, task)
    job = worker.job
    written = write_runs(folder, format_, job.program, job.clock, slice_.events())
    pipeline, counters = slice_.pipeline, slice_.pipeline.counters
    streams = {name: counters.streams.get(name) for name in job.program.queries}
    written.counts = counters.events
    written.dropped, written.parts = counters.dropped - slice_.dropped, 1
    written.counted = json.dumps([{**streams, INSTANTS: counters.instants}, pipeline.passed()])
    written.findings = slice_.findings
    return written, slice_.counts


class _Slice:
    """Owns the run of a slice: a pipeline, fed from the horizon before it on."""

    def __init__(self, worker: Worker, log: LogListing, files: Sequence[str], task: OrderedSlice) -> None:
        self._log, self._files, self._task = log, files, task
        self._clock = worker.job.clock
        self.pipeline = Pipeline(worker.deployment, PipelineObserver(finding=self._found))
        self.pipeline.begin(self._clock)
        self.findings: list[tuple[Time, str]] = []
        self.counts = ReadCounts()
        self.dropped = 0
        self._latest: Time | None = None  # of what was read
        self._own = task.start is None  # whether what comes belongs to the slice

    def _found(self, finding: Diagnostic) -> None:
        if self._own:
            self.findings.append((self._latest or 0, json.dumps(packed(finding))))

    def events(self) -> Iterator[InstantEvents]:
        """Those that the slice owns, in order."""
        waiting = 0
        for run in self._runs():
            if not self._own:
                assert self._task.start is not None
                own = bisect_left(run.times, self._task.start)
                if own:
                    for _ in self._taken(_part(run, 0, own)):
                        """What another slice owns."""
                if own == len(run.times):
                    continue
                for _ in self._closed():
                    """Likewise."""
                self._begin()
                run = _part(run, own, len(run.times))
            yield from self._taken(run)
            waiting += len(run.times)
            if waiting >= _TOGETHER:
                waiting = 0
                yield from self._detected()
        if not self._own:
            for _ in self._closed():
                """Likewise."""
            self._begin()
        yield from self._closed()

    def _begin(self) -> None:
        self.pipeline.count_anew()
        self.dropped = self.pipeline.counters.dropped
        self._own = True

    def _closed(self) -> Iterator[InstantEvents]:
        self.pipeline.close_all()
        return self._detected()

    def _detected(self) -> Iterator[InstantEvents]:
        return together(list(self.pipeline.drain()))

    def _taken(self, run: GraphRun) -> Iterator[InstantEvents]:
        """Take a run: what it has whole as columns, its last instant as graphs."""
        pipeline, times, start = self.pipeline, run.times, 0
        if run.columns is not None:
            latest = pipeline.latest
            start = 0 if latest is None else bisect_right(times, latest)
            end = bisect_left(times, times[-1])
            self._accept(run.part(0, start))
            if start < end and pipeline.accept_columns(run.columns.part(start, end)):
                yield from self._detected()
                start = end
        self._accept(run.part(start, len(times)) if start else run)

    def _accept(self, run: GraphRun) -> None:
        pipeline = self.pipeline
        if not run.times or pipeline.accept_run(run.times, run.graphs):
            return
        for time, graph in zip(run.times, run.graphs, strict=True):
            pipeline.accept(time, graph)

    def _runs(self) -> Iterator[GraphRun]:
        """What the slice reads, from `since` on."""
        task, reach = self._task, self._task.reach
        for number in range(task.begin.file, len(self._files)):
            at = task.begin.at if number == task.begin.file else 0
            reader = _reader(self._log, self._files[number], at, self.pipeline.takes)
            for run in _runs_of(reader):
                self._check(run)
                _refuse_unusual(reader)
                end = len(run.times) if task.end is None else bisect_left(run.times, task.end)
                begin = 0 if task.since is None else bisect_left(run.times, task.since)
                if begin < end:
                    own = 0 if task.start is None else bisect_left(run.times, task.start)
                    self._count(reader, max(0, end - max(own, begin)))
                    yield run if end - begin == len(run.times) else _part(run, begin, end)
                if end < len(run.times) and (reach is None or Spot(number, run.ends[end]) > reach):
                    return
            _refuse_unusual(reader)

    def _count(self, reader: FileReader, count: int) -> None:
        found = self.counts.time_sources
        sources = list(reader.extractor.time_sources)
        if len(sources) != 1:
            raise UnorderedError
        if count:
            found[sources[0]] = found.get(sources[0], 0) + count
            self.counts.graphs += count

    def _check(self, run: GraphRun) -> None:
        times, latest = run.times, self._latest
        if (latest is not None and times[0] < latest) or not all(map(le, times, times[1:])):
            raise UnorderedError
        if run.columns is None and any(type(graph) is not list for graph in run.graphs):
            raise UnorderedError
        self._latest = times[-1]


def _runs_of(reader: FileReader) -> Iterator[GraphRun]:
    """What a file has, graphs that came by themselves as runs of one."""
    for item in reader.runs():
        if type(item) is GraphRun:
            yield item
        elif type(item) is TimedGraph:
            columns = [item.time], [item.triples], item.file, [item.line], [item.end]
            yield GraphRun(*columns, item.how, item.carried)


def _refuse_unusual(reader: FileReader) -> None:
    """Raise UnorderedError where there is something to report about the times of a file."""
    if reader.extractor.first or reader.extractor.beside:
        raise UnorderedError


def _part(run: GraphRun, begin: int, end: int) -> GraphRun:
    """Some graphs of a run, with their columns."""
    columns = None if run.columns is None else run.columns.part(begin, end)
    return run.part(begin, end)._replace(columns=columns)
