"""How fast a server is, over the last hour: rates and latencies, a sample every few seconds.

Place:   `GET /v1/samples`, for the charts of the console; what Prometheus would keep, where there is none.
Method:  a ring of an hour in memory. Rates are differences of counts between two samples; of latencies the
         median and the 99th percentile of those since the last sample.
Why not: a table on disk: it is gone with the server, as it should, and costs no commit.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from dotr.serve.engine import Engine
from dotr.serve.metrics import Metrics
from dotr.serve.streaming import Broadcast
from dotr.service.inbox import Inbox

EVERY: Final = 5.0
"""Seconds between two samples."""

KEPT: Final = 720
"""Samples: an hour."""


class Sample(NamedTuple):
    """Rates a second; seconds, None where nothing was; and rows that wait."""

    time: float
    documents: float
    graphs: float
    events: float
    p50: float | None
    p99: float | None
    commit: float | None
    waiting: int


class Samples:
    """Owns the ring."""

    def __init__(self, engine: Engine, inbox: Inbox, broadcast: Broadcast, metrics: Metrics) -> None:
        self._engine, self._inbox, self._broadcast, self._metrics = engine, inbox, broadcast, metrics
        self._ring: deque[Sample] = deque(maxlen=KEPT)
        self._before: tuple[float, int, int, int] | None = None

    async def run(self) -> None:
        """Take samples, until it is cancelled."""
        while True:
            self.take(time.monotonic(), time.time())
            await asyncio.sleep(EVERY)

    def take(self, monotonic: float, now: float) -> None:
        """Take one sample; the first is that from which the next one counts."""
        counts = (
            self._metrics.accepted,
            int(self._engine.status.get("graphs", 0)),
            self._broadcast.last,
        )
        latencies, commits = self._metrics.recent()
        if self._before is not None:
            began, *old = self._before
            seconds = max(monotonic - began, 0.001)
            documents, graphs, events = [
                max(0, new - was) / seconds for new, was in zip(counts, old, strict=True)
            ]
            waiting = sum(one.rows for one in self._inbox.counts().values())
            p50, p99, commit = quantile(latencies, 0.5), quantile(latencies, 0.99), quantile(commits, 0.5)
            self._ring.append(Sample(now, documents, graphs, events, p50, p99, commit, waiting))
        self._before = (monotonic, *counts)

    def values(self) -> dict[str, Any]:
        """Columns of the ring, oldest first, JSON-able."""
        rows = list(self._ring)
        columns = {name: [_rounded(row[n]) for row in rows] for n, name in enumerate(Sample._fields)}
        return {"every": EVERY, **columns}


def quantile(values: Sequence[float], part: float) -> float | None:
    """The value below which a part of them is; None of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
