"""Slices of time read directly from Parquet archives, each by the task that detects it.

Place:   local.py and spark/archives.py run a task per slice, if all rules are cut by time and the statistics
         of row groups show which of them a slice touches.
Method:  a task does what `dotr run` does, from the horizon before its slice on: instants in order, all rules
         in one detector, the events that the slice owns. No fact leaves its process. What two slices read is
         extracted twice, so there are as many slices as workers, or fewer if that is much.
Why not: always: rules that consume, or look back further than a slice is long, are cut by key, and facts are
         shuffled (arrow_batches.py).
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter, le, lt

from msgspec import Struct
from msgspec.structs import replace

from dotr.batch.archive_instants import opened
from dotr.batch.archive_times import KnownTimes
from dotr.batch.detecting import Detecting
from dotr.batch.extracting import Instant
from dotr.batch.fact_rows import INSTANTS, Cut, Layout
from dotr.batch.findings_as_json import packed
from dotr.batch.job import Worker
from dotr.batch.log_splits import LogListing, Piece
from dotr.batch.runs import LEAST, MOST, PARTS, Request
from dotr.batch.time_gaps import Span
from dotr.batch.time_slices import Even, Slices, Uneven
from dotr.core.fact_batch import Known
from dotr.events import Composite, Message, Time
from dotr.io.decode.parquet import ArchiveFile, not_there
from dotr.rdf.terms import Triple
from dotr.temporal.partitions import Partitioning

_LITTLE, _MUCH = 20, 4
"""The most of the graphs to extract twice, if that lets each worker have a slice; and otherwise."""

_TOUCHED = 16
"""The limit of rows whose times are read, as a multiple of the log's."""

_SIDE_BY_SIDE = 64 * 1024 * 1024
"""Bytes of row groups that must be in memory together, since their times overlap."""

_TOGETHER = 256
"""How many instants have their facts in memory."""


class ArchiveSlice(Struct, frozen=True):
    """What a task detects: the slice of this number, read from row groups in order of time; `span`: the log's
    first and last time. `lead`: the interval it reads that another slice owns.
    """

    number: int
    span: Span
    lead: Span
    end: Time
    pieces: tuple[Piece, ...]

    def text(self) -> str:
        """The input of `slice_of`."""
        pieces = [[p.file, p.first, p.end, p.graphs, p.size, p.span] for p in self.pieces]
        return json.dumps([self.number, self.span, self.lead, self.end, pieces])


def slice_of(text: str) -> ArchiveSlice:
    """The inverse of `ArchiveSlice.text`."""
    number, span, lead, end, pieces = json.loads(text)
    found = tuple(replace(Piece(*piece[:5]), span=tuple(piece[5])) for piece in pieces)
    return ArchiveSlice(number, tuple(span), tuple(lead), end, found)


def sliced(request: Request, known: KnownTimes, hands: int) -> tuple[Layout, list[ArchiveSlice]] | None:
    """The layout for slices that tasks read themselves, for up to `hands` workers, and the slices; None if
    rules are cut differently, or too much would be read twice.
    """
    groups = request.plan().groups
    horizons = [group.horizon for group in groups if group.horizon is not None]
    if not groups or len(horizons) < len(groups):
        return None
    horizon = max(horizons)
    group = replace(
        groups[0],
        rules=tuple(sorted(rule for group in groups for rule in group.rules)),
        streams=frozenset().union(*(group.streams for group in groups)),
        keys=None,
        horizon=horizon,
        ticks=frozenset().union(*(group.ticks for group in groups)),
    )
    pieces = [piece for split in request.log.splits for piece in split.pieces if piece.graphs]
    if _side_by_side(pieces) > _SIDE_BY_SIDE:
        return None
    for slices in _choices(request.slice_length, known, hands, horizon):
        found = [one for one in _of_each(slices, known, horizon, pieces) if one.pieces or group.ticks]
        if sum(piece.graphs for one in found for piece in one.pieces) <= _TOUCHED * known.graphs:
            plan = Partitioning(request.plan().components, (group,))
            return Layout(plan, (Cut(1, slices),), known.last), found
    return None


def _choices(length: Time | None, known: KnownTimes, hands: int, horizon: Time) -> Iterator[Slices]:
    """Numbers of slices with little read twice, descending."""

    def twice(slices: Slices) -> float:
        numbers = range(slices.seen_by(known.first, 0).start, slices.seen_by(known.last, 0).start + 1)
        starts = (slices.bounds(number)[0] for number in numbers[1:])
        return sum(known.between(start - horizon, start) for start in starts if start is not None)

    if length is not None:
        even = Even(max(length, horizon // LEAST, (known.last - known.first) // MOST))
        if twice(even) * _MUCH <= known.graphs:
            yield even
        return
    for share, part in ((share, _LITTLE if share else _MUCH) for share in range(PARTS, -1, -1)):
        found = Uneven(known.quantiles(max(1, share) * hands)[1:])
        if twice(found) * part <= known.graphs:
            yield found


def _side_by_side(pieces: Sequence[Piece]) -> int:
    """The most bytes of row groups that share times, or follow each other."""
    ends = [(span[0], piece.size) for piece in pieces if (span := piece.span) is not None]
    ends += [(span[1] + 1, -piece.size) for piece in pieces if (span := piece.span) is not None]
    return max(accumulate(size for _, size in sorted(ends)), default=0)


def _of_each(slices: Slices, known: KnownTimes, horizon: Time, pieces: Sequence[Piece]) -> list[ArchiveSlice]:
    found = []
    for number in range(slices.seen_by(known.first, 0).start, slices.seen_by(known.last, 0).start + 1):
        start, end = slices.bounds(number)
        start = known.first if start is None else max(start, known.first)
        end = known.last + 1 if end is None else min(end, known.last + 1)
        lead = max(known.first, start - horizon), start
        seen = [p for p in pieces if p.span is not None and p.span[0] < end and lead[0] <= p.span[1]]
        found.append(ArchiveSlice(number, (known.first, known.last), lead, end, tuple(seen)))
    return found


def slice_events(
    worker: Worker, detecting: Detecting, log: LogListing, task: ArchiveSlice
) -> Iterator[Composite]:
    """The events that a slice owns, in order; `detecting`, a worker's, counts its instants as INSTANTS.

    Raises DataError, ProgramError.
    """
    done, extracting, count = detecting.done, worker.extracting, 0

    def facts(due: Sequence[Instant]) -> list[Known]:
        known: list[Known] = []
        while len(known) < len(due):
            extracting.several(due[len(known) :], known)
            done.findings += ((known[-1][0], json.dumps(packed(found))) for found in extracting.findings)
            extracting.findings.clear()
        return known

    def shown() -> Iterator[Known]:
        nonlocal count
        for due in instants_between(log, task.pieces, *task.lead):
            yield from facts(due)
        for due in instants_between(log, task.pieces, task.lead[1], task.end):
            count += len(due)
            yield from facts(due)

    yield from detecting.slice(task.number, task.span, shown())
    done.streams[INSTANTS] = (done.streams.get(INSTANTS) or 0) + count


def instants_between(
    log: LogListing, pieces: Sequence[Piece], since: Time, until: Time
) -> Iterator[list[Instant]]:
    """The instants in `[since, until)` in order, in groups; `pieces` are row groups with their spans.

    Raises DataError, UnsupportedError D4160 for messages that insert or delete. Memory: some instants, and
    row groups that are unordered or overlap.
    """
    found = [(span, piece) for piece in pieces if (span := piece.span) is not None]
    chosen = sorted((one for one in found if one[0][0] < until and since <= one[0][1]), key=itemgetter(0))
    files: dict[str, ArchiveFile] = {}
    times: list[Time] = []
    graphs: list[list[Triple]] = []
    for number, (_, piece) in enumerate(chosen):
        archive = files.get(piece.file)
        if archive is None:
            archive = files[piece.file] = opened(log, piece.file)
        bound = chosen[number + 1][0][0] if number + 1 < len(chosen) else until
        ordered = all(all(map(le, some, some[1:])) for some in archive.times(piece.first, piece.end))
        for more, parts, place in archive.graphs(piece.first, piece.end, (since, until)):
            if type(parts[0]) is Message:
                raise not_there(place)
            times += more
            graphs += parts  # type: ignore[arg-type]  # a message is alone
            if ordered and len(times) >= _TOGETHER:
                times, graphs, due = _closed(times, graphs, min(more[-1], bound))
                if due:
                    yield due
        times, graphs, due = _closed(times, graphs, bound)
        for start in range(0, len(due), _TOGETHER):
            yield due[start : start + _TOGETHER]


def _closed(
    times: list[Time], graphs: list[list[Triple]], bound: Time
) -> tuple[list[Time], list[list[Triple]], list[Instant]]:
    """What came before `bound` as instants in order, and the rest."""
    if not all(map(le, times, times[1:])):
        order = sorted(range(len(times)), key=times.__getitem__)
        times, graphs = [times[i] for i in order], [graphs[i] for i in order]
    end = bisect_left(times, bound)
    if all(map(lt, times[:end], times[1:end])):
        due: list[Instant] = [(time, [graph]) for time, graph in zip(times[:end], graphs, strict=False)]
    else:
        rows = groupby(zip(times[:end], graphs, strict=False), key=itemgetter(0))
        due = [(time, [graph for _, graph in some]) for time, some in rows]
    return times[end:], graphs[end:], due
