"""What a running stream is to whoever started it, in whichever mode.

Place:   streams.py (in order) and distributed.py (by part) run it; cli/stream.py waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dotr.batch.spark import failures
from dotr.batch.stream_folder import Taken
from dotr.errors import DotrError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK = 1
"""Seconds between two looks at whether a query has ended."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`once`: take what is there, close the last instant, and end. `every`: seconds between two batches."""

    once: bool = False
    every: float | None = None

    def apply(self, writer: Any) -> Any:
        """A DataStreamWriter with its trigger."""
        if self.once:
            return writer.trigger(availableNow=True)
        return writer if self.every is None else writer.trigger(processingTime=f"{self.every} seconds")


@dataclass(frozen=True, slots=True)
class State:
    """How far a stream is: the greatest time seen, and the watermark, as the stream writes time, "" before
    there is one; how many facts each rule remembers.
    """

    event_time: str
    watermark: str
    sizes: Mapping[str, int]


OnBatch = Callable[[Taken, State], None]
"""Gets what came since the last time."""


def ignore_batch(_taken: Taken, _state: State) -> None:
    """Reports nothing."""


class Running:
    """Owns a running query. `totals` says what came and went so far in this process; `mode` how it runs."""

    query: StreamingQuery
    mode: str
    reasons: tuple[str, ...] = ()
    """Why it runs in this mode, where that was chosen."""

    def __init__(self, on_batch: OnBatch, pace: Pace) -> None:
        self.totals = Taken(-1)
        self._on_batch, self._pace = on_batch, pace
        self._error: DotrError | None = None

    def state(self) -> State:
        """How far it is."""
        raise NotImplementedError

    def _looked(self) -> None:
        """Called every second while somebody waits, and when a query has ended."""

    def _close(self) -> None:
        """Close the last instant; the query has taken what was there, and ended."""
        raise NotImplementedError

    def _add(self, taken: Taken) -> None:
        totals = self.totals
        totals.number = max(totals.number, taken.number)
        totals.graphs += taken.graphs
        totals.events += taken.events
        totals.late += taken.late
        totals.refused += taken.refused
        self._on_batch(taken, self.state())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the query; whether it came. A query that runs once closes its last instant
        then. Raises what ended the query otherwise, as dotr's own error.
        """
        if not self._ended(timeout):
            return False
        if self._pace.once:
            self._close()
        return True

    def _ended(self, timeout: float | None = None) -> bool:
        waited = 0
        try:
            while not self.query.awaitTermination(_LOOK):  # short looks, so that Ctrl-C is heard
                waited += _LOOK
                self._looked()
                if timeout is not None and waited >= timeout:
                    return False
        except DotrError:
            raise
        except Exception as error:  # Py4J raises what it likes
            raise self._error or failures.as_own_error(error) from None
        self._looked()
        return True

    def stop(self) -> None:
        """End the query; what its last complete batch wrote stands, and it can be started again."""
        self.query.stop()

    def progress(self) -> dict[str, Any]:
        """What came and went in this process so far: `mode`, `batch` (its number), `graphs`, `events`, `late`
        and `refused`; `event_time` and `watermark` once there are any; `state`, how many facts each rule
        remembers; `rows_per_second`, as Spark counts them in its last micro-batch.
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
