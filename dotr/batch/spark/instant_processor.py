"""The stateful operator that holds instants until they are closed, and then makes their facts.

Place:   distributed.py groups the bundles of bundling.py by slot for it; its rows go to part_processor.py.
Method:  a slot's state is one bundle of all graphs of its open instants, and the time closed so far. It is
         called with every batch that has graphs, and by a timer just after the watermark whenever that moves,
         so that all slots have closed time up to the same point. Graphs for a closed instant are late,
         counted, and dropped.
Why not: groupBy(instant).agg(collect_list): a row of state for each instant (bundles.py has the cost).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
from msgspec import Struct
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from dotr.batch.bundles import drained, packed, packed_facts
from dotr.batch.fact_rows import APART, LETTER, REFUSED, FactRow
from dotr.batch.live_parts import marks_of
from dotr.batch.spark.event_time import EventTime
from dotr.batch.spark.failures import crossing
from dotr.batch.spark.frame_stages import Extract
from dotr.collecting import rarely
from dotr.errors import DotrError

FACT_COLUMNS = "slot bigint, facts binary, late bigint, refused bigint"
"""A part's facts of many instants; or, if `slot` is null, counts of what was skipped."""


class InstantTask(Struct, frozen=True):
    """The operator's arguments. `slots`: part → what Spark groups its facts by."""

    extract: Extract
    slots: Mapping[int, int]
    event_time: EventTime


class InstantProcessor(StatefulProcessor):
    """Owns only handles on Spark's state."""

    def __init__(self, task: InstantTask) -> None:
        self._task = task

    def init(self, handle: Any) -> None:
        """Spark's callback."""
        self._handle = handle
        self._open = handle.getValueState("open", "closed bigint, bundle binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: the rows of one slot."""
        found = [bundle for frame in rows for bundle in frame["bundle"].tolist() if bundle]
        yield self._called(found, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803  # Spark's names
        """Spark's callback: the watermark has moved without rows."""
        yield self._called([], timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Spark's callback."""

    def _called(self, bundles: Iterable[bytes], watermark: int) -> Any:
        try:
            with rarely():
                return self._taken(bundles, watermark)
        except DotrError as error:
            raise RuntimeError(crossing(error)) from None

    def _taken(self, bundles: Iterable[bytes], watermark: int) -> Any:
        task = self._task
        unit = task.extract.unit
        closed = task.event_time.closed(watermark) // unit
        before, known = None, b""
        if self._open.exists():
            before, content = self._open.get()
            known = bytes(content)
        found = drained([known, *bundles], before, closed)
        self._open.update((closed, packed(found.open)))
        self._wake(watermark)
        rows: list[FactRow] = []
        refused = 0
        for row in task.extract.rows(found.instants):
            if row[0] > APART:
                rows.append(row)
            else:
                refused += row[0] in (REFUSED, LETTER)
        if found.instants:
            first, last = found.instants[0][0], found.instants[-1][0]
            rows += marks_of(task.slots, first * unit, last * unit)
        return self._frame(packed_facts(rows), found.late, refused)

    def _wake(self, watermark: int) -> None:
        """One timer, after the watermark."""
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(watermark + 1)

    def _frame(self, parts: Mapping[int, bytes], late: int, refused: int) -> Any:
        none = [0] * len(parts)
        slots = [self._task.slots[part] for part in parts]
        return pd.DataFrame(
            {
                "slot": pd.array([*slots, None], dtype="Int64"),
                "facts": [*parts.values(), None],
                "late": [*none, late],
                "refused": [*none, refused],
            }
        )
