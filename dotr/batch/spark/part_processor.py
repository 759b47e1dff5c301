"""The stateful operator of a distributed stream: Spark keeps a state for each part of the rules.

Place:   distributed.py puts it behind the extraction; live_parts.py does the work.
Method:  a batch calls every part once with its rows (every task of the extraction sends each a mark), and
         at a timer for the next tick that matters. The part is taken alive where this process holds it in
         the state that Spark has, recognised by a random token; else it is restored. State is two values: the
         token and the bytes. An attempt that Spark gives up leaves a token that is nowhere else.
Bad input: what live_parts.py raises crosses to the driver as in failures.py.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from dotr.batch.fact_rows import REFUSED
from dotr.batch.job import Shipped
from dotr.batch.live_parts import LivePart, live_parts
from dotr.batch.spark.failures import crossing
from dotr.errors import DotrError
from dotr.events import Composite, Time
from dotr.io.event_formats import formatter
from dotr.late import dataclass

OUT_COLUMNS = "part bigint, time bigint, rule string, id string, line string, sizes string"
"""An event, or what a part remembers: then `time` and the three columns of an event are null."""


@dataclass(frozen=True, slots=True)
class EventTime:
    """How the stream's time, in µs, is written as Spark's event time: `shift` µs later, since Spark drops
    what is not after 1970.
    """

    shift: Time

    def closed(self, watermark: int) -> Time:
        """The last of our times that a watermark of Spark's, in ms, closes."""
        return watermark * 1000 - self.shift

    def timer(self, time: Time) -> int:
        """The first watermark, in ms, that closes `time`."""
        return -((-time - self.shift) // 1000)


@dataclass(frozen=True, slots=True)
class Task:
    """What the operator gets. `slots`: what Spark groups by → part. `closing`: the stream ends with this
    run, and no tick behind its last instant is run.
    """

    stream: str
    shipped: Shipped
    format_: str
    slots: Mapping[int, int]
    event_time: EventTime
    closing: bool


class PartProcessor(StatefulProcessor):
    """Owns nothing but handles on Spark's state."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def init(self, handle: Any) -> None:
        """Spark's callback."""
        self._handle = handle
        self._token = handle.getValueState("token", "token bigint")
        self._content = handle.getValueState("content", "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: the rows of one part."""
        found: list[tuple[Time, str]] = []
        for frame in rows:
            found += zip(frame["time"].tolist(), frame["facts"].tolist(), strict=True)
        if int(key[0]) == REFUSED:
            yield _frame([], REFUSED, "{}", sum(count for count, _ in found))
        else:
            yield from self._take(int(key[0]), found, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: a tick is closed, and the part may not have been called for it."""
        yield from self._take(int(key[0]), [], timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Spark's callback."""

    def _take(self, slot: int, rows: list[tuple[Time, str]], watermark: int) -> Iterator[Any]:
        try:
            yield self._taken(self._task.slots[slot], rows, watermark)
        except DotrError as error:
            raise RuntimeError(crossing(error)) from None

    def _taken(self, number: int, rows: list[tuple[Time, str]], watermark: int) -> Any:
        task = self._task
        parts = live_parts(task.stream, task.shipped)
        token = int(self._token.get()[0]) if self._token.exists() else None
        part = parts.taken(number, token)
        if part is None:
            part = parts.fresh(number)
            part.restore(bytes(self._content.get()[0]))
        events = part.take(rows, None if task.closing else task.event_time.closed(watermark))
        new = secrets.randbits(62)
        self._content.update((part.snapshot(),))
        self._token.update((new,))
        self._wake(part)
        parts.give_back(number, new, part)
        job = task.shipped.worker().job
        _, write = formatter(task.format_, job.program.prefixes, job.program.rules)
        lines = [write([event], job.clock) for event in events]
        return _frame(list(zip(events, lines, strict=True)), number, json.dumps(part.sizes()))

    def _wake(self, part: LivePart) -> None:
        """One timer, for the next tick that matters."""
        due = None if self._task.closing else part.due()
        wanted = None if due is None else self._task.event_time.timer(due)
        known = list(self._handle.listTimers()) if due is not None else []
        for timer in known:
            if timer != wanted:
                self._handle.deleteTimer(timer)
        if wanted is not None and wanted not in known:
            self._handle.registerTimer(wanted)


def _frame(events: Sequence[tuple[Composite, str]], part: int, sizes: str, time: Time | None = None) -> Any:
    """A row an event, with its line, and one for the part."""
    none = [None] * len(events)
    return pd.DataFrame(
        {
            "part": pd.array([part] * (len(events) + 1), dtype="Int64"),
            "time": pd.array([*(event.time for event, _ in events), time], dtype="Int64"),
            "rule": [*(event.rule for event, _ in events), None],
            "id": [*(event.id for event, _ in events), None],
            "line": [*(line for _, line in events), None],
            "sizes": [*none, sizes],
        }
    )
