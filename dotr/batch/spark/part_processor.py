"""The stateful operator of a distributed stream: Spark keeps a state for each part of the rules.

Place:   distributed.py puts it after the extraction; live_parts.py does the work.
Method:  a batch calls every part once with its rows (every task of the extraction sends each a mark), and at
         a timer for the next tick that matters. A live part is used if this process holds it in the state
         that Spark has, recognised by a random token; else it is restored. State is two values: the token and
         the bytes. An abandoned attempt leaves a token that occurs nowhere else.
Bad input: errors of live_parts.py cross to the driver as in failures.py.
"""

from __future__ import annotations

import json
import marshal
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from msgspec import Struct
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from dotr.batch.bundles import Row, unpacked_facts
from dotr.batch.job import Shipped
from dotr.batch.live_parts import LivePart, live_parts
from dotr.batch.spark.event_time import EventTime
from dotr.batch.spark.failures import crossing
from dotr.collecting import rarely
from dotr.errors import DotrError
from dotr.events import Time
from dotr.io.event_formats import formatter

OUT_COLUMNS = "part bigint, events bigint, found binary, sizes string"
"""The result of one part: the number of events, the events (`unpacked_events`), and, as JSON, how many facts
it stores by rule.
"""

Found = tuple[Time, str, str, str]
"""(time, rule, id, line) of an event."""

_MARSHAL = 4


class Task(Struct, frozen=True):
    """The operator's arguments. `slots`: what Spark groups by → part. `closing`: the stream ends with this
    run, and no tick after its last instant runs.
    """

    stream: str
    shipped: Shipped
    format_: str
    slots: Mapping[int, int]
    event_time: EventTime
    closing: bool


class PartProcessor(StatefulProcessor):
    """Owns only handles on Spark's state."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def init(self, handle: Any) -> None:
        """Spark's callback."""
        self._handle = handle
        self._token = handle.getValueState("token", "token bigint")
        self._content = handle.getValueState("content", "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: the facts of one part."""
        found: list[Row] = []
        for frame in rows:
            for content in frame["facts"].tolist():
                found += unpacked_facts(content)
        yield self._take(int(key[0]), found, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: a tick is closed for which the part may not have been called."""
        yield self._take(int(key[0]), [], timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Spark's callback."""

    def _take(self, slot: int, rows: Sequence[Row], watermark: int) -> Any:
        try:
            with rarely():
                return self._taken(self._task.slots[slot], rows, watermark)
        except DotrError as error:
            raise RuntimeError(crossing(error)) from None

    def _taken(self, number: int, rows: Sequence[Row], watermark: int) -> Any:
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
        found = [(event.time, event.rule, event.id, write([event], job.clock)) for event in events]
        return pd.DataFrame(
            {
                "part": [number],
                "events": [len(found)],
                "found": [marshal.dumps(found, _MARSHAL)],
                "sizes": [json.dumps(part.sizes())],
            }
        )

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


def unpacked_events(content: bytes) -> list[Found]:
    """The events of a part."""
    return marshal.loads(content)  # type: ignore[no-any-return]  # noqa: S302  # plain values of our own
