"""What a query over a stream takes and reports: triggers, progress, metrics; topics of Kafka.

Place:   stream_frames.py runs queries; the plans of both modes name their metrics as here.
Method:  events go to `kafka:SERVERS/TOPIC` by Spark's connector: a batch's events are one write, by one task;
         the key is the event's id, the value its JSON line. A repeated batch is sent again with the same ids,
         by which consumers can deduplicate.
Bad input: D4129 a frame that is not a stream · D4303 errors of the Kafka connector · D4309 Spark Connect ·
         D4312 a place that is not a topic.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dotr.batch.log import is_remote, plain_path
from dotr.batch.spark.session import as_own_error
from dotr.batch.stream import Taken
from dotr.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

INPUT, CLOSED, OUTPUT = "dotr", "dotr_closed", "dotr_state"
"""The names of the metrics of input, of late and refused graphs, and of output and state."""

Observed: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Metrics by their name."""

RULES_TOLD = 100
"""The limit of rules whose state is among the metrics."""


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

    `observe` counts rows of Spark's plan; the watermark as the stream writes time is not in a plan.
    Everything else is the query's own.
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


KAFKA = "kafka:"


def topic_of(place: str, format_: str = "jsonl") -> tuple[str, str]:
    """The servers and the topic of `kafka:SERVERS/TOPIC`. Raises UsageError D4312."""
    servers, _, topic = place.removeprefix(KAFKA).rpartition("/")
    if not servers or not topic or format_ != "jsonl":
        raise UsageError.of(
            "D4312",
            f"`{place}` is not a topic that events can go to"
            if format_ == "jsonl"
            else f"events go to Kafka as JSON lines, not as {format_}",
            hint="kafka:HOST:9092/TOPIC, or kafka:HOST:9092,HOST:9092/TOPIC; --format jsonl",
        )
    return servers, topic


def write_topic(records: DataFrame, servers: str, topic: str) -> None:
    """Write records (key, value), in their order, by one task. Raises EngineError D4303."""
    try:
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", servers)
        writer.option("topic", topic).option("kafka.enable.idempotence", "true").save()
    except Exception as error:  # Py4J raises anything
        raise as_own_error(error) from None


def check(frame: DataFrame, checkpoint: str, out: str = "") -> None:
    """Raise UsageError D4129: the frame is not a stream; D4309: over Connect; D4127: a remote folder."""
    if not frame.isStreaming:
        raise not_streaming()
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise UsageError.of(
            "D4309",
            "over Spark Connect `stream` cannot run",
            notes=("the driver follows every batch of a query, and Connect has no driver here",),
            hint="run it with spark-submit; `detect` and `materialize` work over Connect",
        )
    for place in (checkpoint,) if out.startswith(KAFKA) else (out, checkpoint):
        if is_remote(place):
            raise UsageError.of(
                "D4127",
                f"`{place}` is not on this machine",
                hint="give a folder that the driver and all workers open",
            )


def states_of(checkpoint: str) -> str:
    """The folder of dotr's own state of a stream."""
    return os.path.join(plain_path(checkpoint), "dotr")


def folder_of(out: str, checkpoint: str) -> str:
    """The output folder of a stream; beside its state if events go to Kafka."""
    return os.path.join(states_of(checkpoint), "out") if out.startswith(KAFKA) else plain_path(out)


def not_streaming() -> UsageError:
    return UsageError.of(
        "D4129", "the frame is not a stream", hint="dotr.spark.detect takes frames that are complete"
    )


def refuse_streaming(frame: DataFrame) -> None:
    """Raise UsageError D4129 for a stream where a complete frame is required."""
    if frame.isStreaming:
        raise UsageError.of(
            "D4129",
            "the frame is a stream, which is never complete",
            hint="dotr.spark.stream(frame, rules, out=…, checkpoint=…) takes streams",
        )
