"""Events to a topic of Kafka, by Spark's connector.

Place:   used by streams.py and distributed.py, if `out` is `kafka:SERVERS/TOPIC`.
Method:  a batch's events are one write, in order, by one task: the key is the event's id, the value its JSON
         line. A repeated batch is sent again with the same ids, by which consumers can deduplicate.
Bad input: D4312 a place that is not a topic · D4303 errors of the connector.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from dotr.batch.spark.failures import as_own_error
from dotr.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KAFKA = "kafka:"

Send = Callable[[str], None]


def sender(spark: SparkSession, place: str, format_: str) -> Send | None:
    """A sender of a batch's JSON lines to `place`; None for a folder. Raises UsageError D4312."""
    if not place.startswith(KAFKA):
        return None
    servers, _, topic = place.removeprefix(KAFKA).rpartition("/")
    if not servers or not topic or format_ != "jsonl":
        raise UsageError.of(
            "D4312",
            f"`{place}` is not a topic that events can go to"
            if format_ == "jsonl"
            else f"events go to Kafka as JSON lines, not as {format_}",
            hint="kafka:HOST:9092/TOPIC, or kafka:HOST:9092,HOST:9092/TOPIC; --format jsonl",
        )

    def send(lines: str) -> None:
        rows = [(json.loads(line)["id"], line) for line in lines.splitlines()]
        if not rows:
            return
        try:
            frame = spark.createDataFrame(rows, "key string, value string").coalesce(1)
            writer = frame.write.format("kafka").option("kafka.bootstrap.servers", servers)
            writer.option("topic", topic).option("kafka.enable.idempotence", "true").save()
        except Exception as error:  # Py4J raises anything
            raise as_own_error(error) from None

    return send
