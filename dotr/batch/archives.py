"""Batch input read directly from Parquet archives, by whole instants or by slices of time.

Place:   local.py and spark/read.py run these tasks for logs that are all Parquet.
Method:  the statistics of row groups give the times of a log without reading them: first, last and count are
         in the footers; quantiles assume that the times of a row group are evenly spread. If no two tasks'
         row groups can share a time, every instant is whole in one task; otherwise a scan of the times shows
         which instants are. Whole instants are extracted without exchange between tasks: an instant is
         yielded as soon as all its graphs are read; the column of times gives their number.
         If all rules are cut by time, there is a task per slice, and the statistics show which row groups a
         slice touches. The task does what `dotr run` does, from the horizon before its slice on: instants in
         order, all rules in one detector, the events that the slice owns. No fact leaves its process.
         Instants that two slices read are extracted twice, so there are as many slices as workers, or fewer
         if that is much.
Why not: slices for every program: rules that consume, or look back further than a slice is long, are cut by
         key, and their facts are shuffled (work.py).
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from operator import itemgetter, le, lt

from msgspec import Struct
from msgspec.structs import replace

from dotr.batch.facts import INSTANTS, Cut, Layout
from dotr.batch.log import LogListing, Piece, Split, other_time
from dotr.batch.runs import LEAST, MOST, PARTS, Request
from dotr.batch.time_cuts import Even, Slices, Span, Uneven
from dotr.batch.work import Detecting, Instant, Worker, packed
from dotr.core.instant import InstantFacts
from dotr.detect.partitioning import Partitioning, RuleComponentGroup
from dotr.events import Composite, Message, Time
from dotr.io.arrow import pa, pc
from dotr.io.decode.parquet import ArchiveFile, integers, not_there
from dotr.rdf.terms import Triple


def rows_of(log: LogListing, pieces: Iterable[Piece]) -> Iterator[tuple[Time, str, str]]:
    """(time in µs, N-Triples, place) of the pieces. Raises DataError."""
    for piece in pieces:
        yield from opened(log, piece.file).rows(piece.first, piece.end or None)


def times_of(log: LogListing, pieces: Iterable[Piece]) -> pa.ChunkedArray:
    """The times in µs of the pieces. Raises DataError."""
    chunks = [
        integers(times)
        for piece in pieces
        for times in opened(log, piece.file).times(piece.first, piece.end or None)
    ]
    return pa.chunked_array(chunks, pa.int64())


def opened(log: LogListing, path: str) -> ArchiveFile:
    """An archive of the log. Raises DataError."""
    archive = ArchiveFile(path, log.options.unit, finer=log.options.reading.finer)
    if archive.clock != log.clock:
        raise other_time(path)
    return archive


def graphs_of(
    log: LogListing, pieces: Iterable[Piece]
) -> Iterator[tuple[Sequence[Time], Sequence[list[Triple]]]]:
    """(times in µs, the graph at each) of the pieces, some at a time. Raises DataError."""
    for piece in pieces:
        for times, parts, place in opened(log, piece.file).graphs(piece.first, piece.end or None):
            if type(parts[0]) is Message:
                raise not_there(place)
            yield times, parts  # type: ignore[misc]  # a message is alone


def whole_instants(
    log: LogListing, pieces: Sequence[Piece], again: Collection[Time] = ()
) -> Iterator[Instant]:
    """The instants of the pieces except `again`. Raises DataError."""
    counts = pc.value_counts(times_of(log, pieces))
    found = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    several = {time: count for time, count in found if count > 1}
    waiting: dict[Time, list[list[Triple]]] = {}
    for times, graphs in graphs_of(log, pieces):
        for time, triples in zip(times, graphs, strict=True):
            if time in again:
                continue
            if time not in several:
                yield time, [triples]
                continue
            waiting.setdefault(time, []).append(triples)
            if len(waiting[time]) == several[time]:
                yield time, waiting.pop(time)


Spread = tuple[Time, Time, int]


class KnownTimes(Struct, frozen=True):
    """A log's graphs, first and last time, and (least time, greatest, graphs) of row groups, by time."""

    graphs: int
    first: Time
    last: Time
    spans: tuple[Spread, ...]

    def quantiles(self, count: int) -> tuple[Time, ...]:
        """At most `count` quantiles, ascending."""
        found: set[Time] = set()
        behind = place = 0
        for low, high, graphs in self.spans:
            while place < count and place * self.graphs // count < behind + graphs:
                found.add(low + (high - low) * (place * self.graphs // count - behind) // graphs)
                place += 1
            behind += graphs
        return tuple(sorted(found))

    def between(self, since: Time, until: Time) -> float:
        """The approximate number of graphs in `[since, until)`."""
        found = 0.0
        for low, high, graphs in self.spans:
            inside = min(until, high + 1) - max(since, low)
            if inside > 0:
                found += graphs * inside / (high + 1 - low)
        return found


def known_times(log: Sequence[Split]) -> KnownTimes | None:
    """The times by the footers of a log; None if some footers lack them."""
    pieces = [piece for split in log for piece in split.pieces if piece.graphs]
    if not pieces or None in [piece.span for piece in pieces]:
        return None
    spans = tuple(sorted((*piece.span, piece.graphs) for piece in pieces if piece.span is not None))
    return KnownTimes(
        sum(piece.graphs for piece in pieces), spans[0][0], max(high for _, high, _ in spans), spans
    )


def share_times(tasks: Sequence[Split]) -> bool:
    """Whether two of the tasks, by their row groups, might share a time."""
    spans = sorted(span for split in tasks if (span := _span(split.pieces)) is not None)
    return any(before[1] >= after[0] for before, after in pairwise(spans))


def _span(pieces: Sequence[Piece]) -> tuple[Time, Time] | None:
    known = [piece.span for piece in pieces if piece.span is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


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


def one_group(groups: Sequence[RuleComponentGroup]) -> RuleComponentGroup:
    """Groups that are cut by time as one, for tasks that detect all rules in a slice."""
    return replace(
        groups[0],
        rules=tuple(sorted(rule for group in groups for rule in group.rules)),
        streams=frozenset().union(*(group.streams for group in groups)),
        keys=None,
        horizon=max(group.horizon or 0 for group in groups),
        ticks=frozenset().union(*(group.ticks for group in groups)),
        late=any(group.late for group in groups),
        sees_all=any(group.sees_all for group in groups),
    )


def sliced(request: Request, known: KnownTimes, hands: int) -> tuple[Layout, list[ArchiveSlice]] | None:
    """The layout for slices that tasks read themselves, for up to `hands` workers, and the slices; None if
    rules are cut differently, or too much would be read twice.
    """
    groups = request.plan().groups
    horizons = [group.horizon for group in groups if group.horizon is not None]
    if not groups or len(horizons) < len(groups):
        return None
    horizon = max(horizons)
    group = one_group(groups)
    pieces = [piece for split in request.log.splits for piece in split.pieces if piece.graphs]
    if _side_by_side(pieces) > _SIDE_BY_SIDE:
        return None
    for slices in _choices(request.slice_length, known, hands, horizon):
        found = [one for one in _of_each(slices, known, horizon, pieces) if one.pieces or group.ticking]
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

    def facts(due: Sequence[Instant]) -> list[InstantFacts]:
        known: list[InstantFacts] = []
        while len(known) < len(due):
            extracting.several(due[len(known) :], known)
            done.findings += ((known[-1][0], json.dumps(packed(found))) for found in extracting.findings)
            extracting.findings.clear()
        return known

    def shown() -> Iterator[InstantFacts]:
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
