"""Facts of many instants of one part as one bytes value, which a shuffle moves and sorts.

Place:   used by arrow_batches.py on both sides of a shuffle: rows of an extracting task become bundles, which
         the detecting task turns into rows again, in order.
Method:  a shuffle's cost is per row, and facts repeat: rooms, kinds, states. So the rows of a task are
         collected, some ten thousand at a time; those of one part become one bundle: the distinct texts, and
         for each row its time and the number of its text. Bundles of a part are sorted by their first time.
         In an ordered log they follow each other; otherwise those that overlap are open together, at 12 bytes
         per row and their texts.
Why not: a dictionary of terms instead of whole texts: every value would be looked up and assembled again, and
         Spark's compression of a shuffle gains as much.
"""

from __future__ import annotations

import marshal
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from msgspec import Struct

from dotr.batch.fact_rows import APART, FactRow
from dotr.events import Time

BundleRow: TypeAlias = tuple[int, Time, bytes]
"""(part, the first time in it, the rest of its rows); of parts up to APART: the text of one row."""

Timed: TypeAlias = tuple[Time, str]

GATHERED = 65_536
"""The limit of collected rows."""

CHARACTERS = 8_000_000
"""The approximate limit of their characters."""

_FORMAT = 4
_PART = _TIME = itemgetter(0)


def bundled(rows: Iterable[FactRow]) -> Iterator[list[BundleRow]]:
    """Rows in any order as bundles, several per part; each list is one collection."""
    parts: dict[int, list[Timed]] = {}
    apart: list[BundleRow] = []
    count = size = 0
    for part, time, text in rows:
        if part <= APART:
            apart.append((part, time, text.encode()))
        else:
            found = parts.get(part)
            if found is None:
                found = parts[part] = []
            found.append((time, text))
        count += 1
        size += len(text)
        if count >= GATHERED or size >= CHARACTERS:
            yield [*apart, *(bundle(part, found) for part, found in parts.items())]
            parts, apart, count, size = {}, [], 0, 0
    if count:
        yield [*apart, *(bundle(part, found) for part, found in parts.items())]


def bundle(part: int, rows: list[Timed]) -> BundleRow:
    """Rows of one part, at least one; sorts them."""
    rows.sort(key=_TIME)
    texts: dict[str, int] = {}
    numbers = array("I", [texts.setdefault(text, len(texts)) for _, text in rows])
    times = array("q", [time for time, _ in rows])
    content = list(texts), times.tobytes(), numbers.tobytes()
    return part, times[0], marshal.dumps(content, _FORMAT)


def unbundled(rows: Iterable[BundleRow]) -> Iterator[FactRow]:
    """The rows of bundles that are sorted by part and first time, by part and time."""
    for part, bundles in groupby(rows, key=_PART):
        if part <= APART:
            yield from ((part, time, content.decode()) for _, time, content in bundles)
            continue
        for time, text in _in_order(bundles):
            yield part, time, text


class _Open(Struct):
    """Owns the remaining rows of a bundle, from `place` on, in order."""

    texts: list[str]
    times: array[int]
    numbers: array[int]
    place: int = 0

    def upto(self, bound: Time) -> Iterator[Timed]:
        """Remove and return the rows before `bound`."""
        start, self.place = self.place, bisect_left(self.times, bound, self.place)
        return zip(
            self.times[start : self.place],
            map(self.texts.__getitem__, self.numbers[start : self.place]),
            strict=True,
        )


def _opened(content: bytes) -> _Open:
    texts, kept_times, kept_numbers = marshal.loads(content)  # noqa: S302  # our own bytes, same release
    times, numbers = array("q"), array("I")
    times.frombytes(kept_times)
    numbers.frombytes(kept_numbers)
    return _Open(texts, times, numbers)


_Heap: TypeAlias = list[tuple[Time, int, _Open]]
"""Open bundles by the time of their next row."""


def _in_order(bundles: Iterable[BundleRow]) -> Iterator[Timed]:
    """The rows of one part. Holds the unfinished bundles that begin before the next row."""
    heap: _Heap = []
    for number, (_part, first, content) in enumerate(bundles):
        yield from _before(heap, first)
        heappush(heap, (first, number, _opened(content)))
    yield from _before(heap, 2**63)


def _before(heap: _Heap, bound: Time) -> Iterator[Timed]:
    """Remove and return the rows before `bound`; about GATHERED at a time are sorted."""
    while heap and heap[0][0] < bound:
        first = heap[0][2]
        some = max(1, GATHERED // len(heap))
        until = min(bound, first.times[min(first.place + some, len(first.times)) - 1] + 1)
        rows: list[Timed] = []
        left: list[tuple[Time, int, _Open]] = []
        while heap and heap[0][0] < until:
            _, number, found = heappop(heap)
            rows += found.upto(until)
            if found.place < len(found.times):
                left.append((found.times[found.place], number, found))
        for entry in left:
            heappush(heap, entry)
        rows.sort(key=_TIME)
        yield from rows
