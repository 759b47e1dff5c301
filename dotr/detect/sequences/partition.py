"""What partitions of every pattern have in common."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from dotr.events import FOREVER, NEVER, Time


class Limits(Struct, frozen=True):
    """How far the rows of a mapping may be apart, and which matches there are: see `RowPattern`."""

    within: Time
    gap: Time | None
    overlapping: bool
    skip_to: str | None


class Partition:
    """Rows with equal PER. `count`: how many came, which numbers them; `last`: the time of the last one;
    `before`: the last row, or the last ones, the newest first, as far as PREV asks for them. `due`: the time
    under which it is in the queue of deadlines. `work`: the units of work at the instant of the last row; a
    negative number if that was too much. `closes`: none of its mappings ends before, if rows come. `need`,
    `cost`: the elements that the next row is tested for, as bits, and the units of that.
    """

    __slots__ = ("before", "closes", "cost", "count", "due", "key", "last", "need", "work")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.count = 0
        self.last: Time = NEVER
        self.before: Any = None
        self.due: Time | None = None
        self.work = 0
        self.closes: Time = FOREVER
        self.need = self.cost = 0

    @property
    def open(self) -> bool:
        """Whether a mapping is."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """How many rows it keeps."""
        raise NotImplementedError

    def follow(self, row: Any, before: int) -> None:
        """A row is the last one; `before`: how many PREV asks for."""
        self.count += 1
        self.last = row[0]
        if before == 1:
            self.before = row
        elif before:
            self.before = (row, *self.before[: before - 1])


Found: TypeAlias = tuple[Partition, Any, tuple[Any, ...]]
"""A match: (partition, first row, registers)."""
