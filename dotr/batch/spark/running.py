"""A running stream as its caller sees it, in either mode.

Place:   streams.py (in order) and distributed.py (by part) run it; cli/stream.py waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dotr.batch.spark import failures
from dotr.batch.stream_folder import Taken
from dotr.errors import DotrError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

INPUT, CLOSED, OUTPUT = "dotr", "dotr_closed", "dotr_state"
"""The names of the metrics of input, of late and refused graphs, and of output and state."""

Observed: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Metrics by their name."""

RULES_TOLD = 100
"""The limit of rules whose state is among the metrics."""

_KEPT = 200
"""How many batches keep their metrics; Spark keeps the progress of 100."""

_LOOK = 1
"""Seconds between two checks whether a query has ended."""


@dataclass(frozen=True, slots=True)
class BatchTrigger:
    """`once`: process available data, close the last instant, end. `every`: seconds between two batches."""

    once: bool = False
    every: float | None = None

    def apply(self, writer: Any) -> Any:
        """A DataStreamWriter with its trigger."""
        if self.once:
            return writer.trigger(availableNow=True)
        return writer if self.every is None else writer.trigger(processingTime=f"{self.every} seconds")


@dataclass(frozen=True, slots=True)
class State:
    """The progress of a stream: the greatest time seen, and the watermark, as the stream writes time, ""
    before the first; how many facts each rule stores.
    """

    event_time: str
    watermark: str
    sizes: Mapping[str, int]


OnBatch = Callable[[Taken, State], None]
"""Called with the counts since the last call."""


def ignore_batch(_taken: Taken, _state: State) -> None:
    """Reports nothing."""


class ObservedQuery:
    """Spark's query, with what the driver knows after each batch added to the observed metrics.

    `observe` counts rows of Spark's plan; the state of the driver's engine, and the watermark as the stream
    writes time, are not in a plan. Everything else is the query's own.
    """

    def __init__(self, query: StreamingQuery, observed: Mapping[int, Observed]) -> None:
        self._query, self._metrics = query, observed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    @property
    def lastProgress(self) -> Any:  # noqa: N802  # Spark's name
        """Like the query's."""
        last = self._query.lastProgress
        return None if last is None else self._with(last)

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802  # Spark's name
        """Like the query's."""
        return [self._with(progress) for progress in self._query.recentProgress]

    def _with(self, progress: Any) -> Any:
        from pyspark.sql import Row  # noqa: PLC0415  # start-up

        observed = dict(progress["observedMetrics"] or {})
        for name, metrics in self._metrics.get(progress["batchId"], {}).items():
            known = observed[name].asDict() if name in observed else {}
            observed[name] = Row(**known, **metrics)
        progress["observedMetrics"] = observed
        return progress


class Running:
    """Owns a running query. `totals`: input and output so far in this process; `mode`: how it runs."""

    query: ObservedQuery
    mode: str
    reasons: tuple[str, ...] = ()
    """Why it runs in this mode, if that was chosen."""

    def __init__(self, on_batch: OnBatch, trigger: BatchTrigger) -> None:
        self.totals = Taken(-1)
        self._on_batch, self._trigger = on_batch, trigger
        self._error: DotrError | None = None
        self._metrics: dict[int, Observed] = {}

    def state(self) -> State:
        """Its progress."""
        raise NotImplementedError

    def _looked(self) -> None:
        """Called every second during `wait`, and when a query has ended."""

    def _close(self) -> None:
        """Close the last instant; the query has processed the available data, and ended."""
        raise NotImplementedError

    def _observe(self, batch: int, metrics: Observed) -> None:
        """Add to Spark's metrics of an unfinished batch."""
        self._metrics[batch] = metrics
        for old in sorted(self._metrics)[:-_KEPT]:
            del self._metrics[old]

    def _add(self, taken: Taken) -> None:
        totals = self.totals
        totals.number = max(totals.number, taken.number)
        totals.graphs += taken.graphs
        totals.events += taken.events
        totals.late += taken.late
        totals.refused += taken.refused
        self._on_batch(taken, self.state())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the query; returns whether it has ended. A query that runs once then closes its
        last instant. Raises the error that ended the query, as dotr's own.
        """
        if not self._ended(timeout):
            return False
        if self._trigger.once:
            self._close()
        return True

    def with_observed(self, query: StreamingQuery) -> ObservedQuery:
        """A query of Spark that reports what `_observe` gets."""
        return ObservedQuery(query, self._metrics)

    def _ended(self, timeout: float | None = None) -> bool:
        waited = 0
        try:
            while not self.query.awaitTermination(_LOOK):  # short waits, so that Ctrl-C works
                waited += _LOOK
                self._looked()
                if timeout is not None and waited >= timeout:
                    return False
        except DotrError:
            raise
        except Exception as error:  # Py4J raises anything
            raise self._error or failures.as_own_error(error) from None
        self._looked()
        return True

    def stop(self) -> None:
        """End the query; the output of its last complete batch stays, and it can be started again."""
        self.query.stop()

    def progress(self) -> dict[str, Any]:
        """Counts of this process so far: `mode`, `batch` (its number), `graphs`, `events`, `late` and
        `refused`; `event_time` and `watermark` once known; `state`, how many facts each rule stores;
        `rows_per_second` of Spark's last micro-batch.
        """
        self._looked()
        state, totals = self.state(), self.totals
        known: dict[str, Any] = {
            "mode": self.mode,
            "batch": totals.number,
            "graphs": totals.graphs,
            "events": totals.events,
            "late": totals.late,
            "refused": totals.refused,
            "state": dict(state.sizes),
        }
        for name, time in (("event_time", state.event_time), ("watermark", state.watermark)):
            if time:
                known[name] = time
        last = self.query.lastProgress
        rate = None if last is None else dict(last).get("processedRowsPerSecond")
        return {**known, "rows_per_second": rate}
