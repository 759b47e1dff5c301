"""When a feed commits: by count, by time, and never so often that snapshots cost more than a tenth.

Place:   asked by feed.py; beside ready_files.py the only code that reads a clock.
Method:  a commit is due after so many graphs or so much time; and not before twelve times what it will take
         have passed, so that a large state is saved less often, not more slowly. What it will take is what
         the last one took, in proportion more where the state has grown since.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct, field

from dotr.events import Time

SHARE = 12
"""Time between commits, as a multiple of what a commit takes."""

PATIENCE = 60.0
"""Seconds that growth alone puts a commit off: what a crash may have to be done again."""


class CheckpointPolicy(Struct):
    """Owns the moments of one feed. `graphs` and `seconds` make a commit due, `share` puts it off.

    `size` says how much there is to save, in any unit; it is asked rarely.
    """

    graphs: int = 10_000
    seconds: float = 1.0
    share: float = SHARE
    size: Callable[[], int] = lambda: 0
    _count: int = 0
    _last: float = field(default_factory=lambda: time.monotonic())
    _cost: float = 0.0
    _saved: int = 0
    _wait: float = 0.0

    def due(self, graphs: int = 1) -> bool:
        """Count graphs; whether it is time to commit. The clock is looked at every 16th graph."""
        self._count += graphs
        if self._count & 15 and self._count < self.graphs:
            return False
        return self.overdue()

    def touched(self) -> None:
        """Something changed that is not a graph."""
        self._count += 1

    def overdue(self) -> bool:
        """Whether something waits and it is time to commit it."""
        passed = time.monotonic() - self._last
        if passed < self._wait or not self._count:
            return False
        if self._count < self.graphs and passed < self.seconds:
            return False
        if self._cost and self._saved:
            dearer = self.share * self._cost * max(1.0, self.size() / self._saved)
            self._wait = max(self.share * self._cost, min(dearer, PATIENCE))
        return passed >= self._wait

    def expect(self, cost: float) -> None:
        """A state was loaded in so many seconds: to save it takes about as long."""
        self._cost, self._saved, self._wait = cost, self.size(), self.share * cost

    def begun(self) -> float:
        return time.monotonic()

    def done(self, begun: float) -> float:
        """A commit that began then is done; how long it took."""
        self._last = time.monotonic()
        self._cost = self._last - begun
        self._saved = self.size()
        self._wait = self.share * self._cost
        self._count = 0
        return self._cost


class Idle(Struct):
    """`--idle-advance`: after `patience` (µs) without input, event time goes on by itself, `patience` behind.

    The one place where a clock moves the watermark. `seen` notes input; `reached` says up to where silence
    has closed time by now.
    """

    patience: Time
    _since: float = field(default_factory=lambda: time.time())

    def seen(self) -> None:
        self._since = time.time()

    def reached(self, latest: Time) -> Time | None:
        """Everything up to this time is closed by silence, None while there is patience left."""
        silent = round((time.time() - self._since) * 1_000_000)
        return None if silent < self.patience else latest + silent - self.patience
