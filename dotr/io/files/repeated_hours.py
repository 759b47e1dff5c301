"""Local times that came twice, by the order of the rows: `--ambiguous-time infer`.

Place:   between the readers of one file and who takes its graphs (reader.py, frames.py).
Method:  rows that stand together with times of a repeated hour wait until one comes whose time is not. If
         they go back once, or none goes back and one stands still, those before are of the first pass of the
         hour and the others of the second; else the order does not say it, and each is refused. That is what
         pandas infers, and beside it the pass of rows that share their times. What a row was is carried on in
         its bookmark, so reading that goes on in the middle of the hour comes to the same.
Why not: decide by the row before the hour: where rows of one pass are missing, the other is taken for it.
Memory:  the rows of a repeated hour; more than LONGEST of them are refused.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from dotr.events import Time
from dotr.io.graphs import BEGUN, Bookmark, GraphRun, Item, Mark
from dotr.io.timestamps import TimestampExtractor

Pass: TypeAlias = str
"""Which pass of the hour a time is of: `earlier`, `later`, or `undecided`."""

Begun: TypeAlias = dict[str, tuple[Pass, Time]]
"""Of each column, in whose repeated hour reading stands: the pass and the local time of its last row."""

LONGEST: Final = 1 << 19
"""Rows of one repeated hour that may wait."""


class Undecided(NamedTuple):
    """A graph with local times that came twice, in µs as if they were UTC, by the column in which they stand.
    `make` gives what it is when the pass of each is known.
    """

    locals: Mapping[str, Time]
    make: Callable[[Mapping[str, Pass]], Item]
    end: int


def undecided(local: Time, make: Callable[[], Item], extractor: TimestampExtractor, end: int) -> Undecided:
    """A graph that says its time itself, which `make` finds."""
    return Undecided({"": local}, lambda passes: extractor.taking(passes[""], make), end)


def begun_at(bookmark: Bookmark) -> tuple[Bookmark, Begun]:
    """A bookmark as readers have it, and the repeated hours in which it stands."""
    carried, _, begun = bookmark.carried.partition(BEGUN)
    if not begun:
        return bookmark, {}
    stored = json.loads(begun)
    return bookmark._replace(carried=carried), {
        column: (word, time) for column, (word, time) in stored.items()
    }


def decided(
    items: Iterable[Item | GraphRun | Undecided], bookmark: Bookmark, begun: Begun, growing: bool
) -> Iterator[Item | GraphRun]:
    """The items, in their order, once it is known what all of their times are.

    `growing`: at the end of the file rows that wait are left for the next reading, which begins at them.
    """
    hours = _OpenHours(bookmark, begun)
    for item in items:
        if type(item) is Undecided:
            hours.add(item)
        elif growing and hours.queue and isinstance(item, Mark) and item.error is None:
            yield hours.left(item)
            return
        else:
            hours.pass_on(item)  # type: ignore[arg-type]  # it is none that is undecided
        yield from hours.ready()
    hours.close(())
    yield from hours.ready()


def passes_of(locals_: Sequence[Time], begun: tuple[Pass, Time] | None = None) -> list[Pass]:
    """The passes of the times of one repeated hour, in the order of their rows; `begun`: the row before."""
    if begun is None:
        return _passes(locals_)
    word, last = begun
    found = _passes([last, *locals_])[1:]
    if word == "earlier" and found:
        return found
    backwards = any(b < a for a, b in pairwise([last, *locals_]))
    return ["undecided" if backwards else word] * len(locals_)


def _passes(locals_: Sequence[Time]) -> list[Pass]:
    steps = list(enumerate(pairwise(locals_), 1))
    back = [at for at, (a, b) in steps if b < a] or [at for at, (a, b) in steps if b == a]
    if len(back) != 1:
        return ["undecided"] * len(locals_)
    return ["earlier"] * back[0] + ["later"] * (len(locals_) - back[0])


class _Row(Struct):
    """One item that waits, and the passes of its columns as far as they are known."""

    item: Item | GraphRun | Undecided
    passes: dict[str, Pass] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        return type(self.item) is not Undecided or len(self.passes) == len(self.item.locals)


class _OpenHours:
    """Owns what waits, in order, and the rows of the repeated hours that are open, by column."""

    def __init__(self, bookmark: Bookmark, begun: Begun) -> None:
        self.queue: deque[_Row] = deque()
        self._hours: dict[str, list[_Row]] = {}
        self._begun = dict(begun)
        """The row before those of an hour."""
        self._passed = dict(begun)
        """Of the hours in which the last item stands that went out, what bookmarks carry."""
        self._bookmark = bookmark

    def add(self, item: Undecided) -> None:
        """The next row, with times of a repeated hour. Those of other columns end."""
        self.close(item.locals)
        row = _Row(item)
        self.queue.append(row)
        for column, local in item.locals.items():
            hour = self._hours.setdefault(column, [])
            hour.append(row)
            if len(hour) >= LONGEST:
                self._begun[column] = "undecided", local
                self._decide(column)

    def pass_on(self, item: Item | GraphRun) -> None:
        """The next item without such times: unless it was refused, all hours end."""
        if not isinstance(item, Mark) or item.error is None:
            self.close(())
        self.queue.append(_Row(item))

    def close(self, but: Collection[str]) -> None:
        """The hours of all columns but these are over."""
        for column in [*self._hours, *self._begun]:
            if column not in but:
                self._decide(column)
                self._begun.pop(column, None)

    def _decide(self, column: str) -> None:
        rows = self._hours.pop(column, [])
        times = [row.item.locals[column] for row in rows if type(row.item) is Undecided]
        for row, word in zip(rows, passes_of(times, self._begun.get(column)), strict=True):
            row.passes[column] = word

    def ready(self) -> Iterator[Item | GraphRun]:
        """What need not wait any more."""
        while self.queue and self.queue[0].known:
            row = self.queue.popleft()
            item = row.item
            if type(item) is Undecided:
                self._passed = {column: (row.passes[column], item.locals[column]) for column in item.locals}
                item = item.make(row.passes)
            elif not isinstance(item, Mark) or item.error is None:
                self._passed = {}
            yield self._bookmarked(item)  # type: ignore[arg-type]  # it is none that is undecided

    def _bookmarked(self, item: Item | GraphRun) -> Item | GraphRun:
        """An item whose bookmark carries the hours in which it stands."""
        if isinstance(item, GraphRun):
            self._bookmark = Bookmark(item.how, item.ends[-1], item.carried)
            return item
        if self._passed and item.how != "whole":
            item = item._replace(carried=f"{item.carried}{BEGUN}{json.dumps(self._passed)}")
        self._bookmark = Bookmark(item.how, item.end, item.carried)
        return item

    def left(self, end: Mark) -> Mark:
        """The mark of the end where rows wait: reading goes on before them."""
        how, at, carried, _ = self._bookmark
        return end._replace(how=how, end=at, carried=carried)
