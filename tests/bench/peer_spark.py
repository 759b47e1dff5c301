"""The events of columns.py's rule by plain PySpark: Spark SQL's functions alone, no Python in the workers.

    python peer_spark.py log|table SOURCE OUT SETTINGS

Place:   started by peers_spark.py; imports nothing of dotr. `SETTINGS`: of the session, as JSON. Writes
         Parquet (time, room, value).
Method:  a log is JSON lines (time, graph): the one triple of a graph is matched by a regular expression.
         The last reading above the threshold is `last` over a window by room in order of time, nulls ignored,
         from its beginning: that frame grows, so that Spark keeps one value; a frame of 60 minutes would be
         read again for each row. What is older than 60 minutes is dropped afterwards.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

ABOVE, WITHIN = 30.0, 3_600
TRIPLE = r'^<http://example\.org/room/([^>]*)> <http://example\.org/(heat|smoke)> "([^"]*)"'


def readings(spark: SparkSession, form: str, source: str) -> DataFrame:
    """(time, kind, room, value)."""
    if form == "table":
        return spark.read.parquet(source).select("time", "kind", "room", "value")
    log = spark.read.schema("time timestamp, graph string").json(source)
    room, kind, value = (f.regexp_extract("graph", TRIPLE, group) for group in (1, 2, 3))
    return log.select("time", kind.alias("kind"), room.alias("room"), value.cast("double").alias("value"))


def alarms(rows: DataFrame) -> DataFrame:
    """(time, room, value)."""
    warm = f.when((f.col("kind") == "heat") & (f.col("value") > ABOVE), f.struct("time", "value"))
    before = Window.partitionBy("room").orderBy("time").rangeBetween(Window.unboundedPreceding, 0)
    found = rows.withColumn("last", f.last(warm, ignorenulls=True).over(before)).where(
        (f.col("kind") == "smoke")
        & (f.col("last.time") >= f.col("time") - f.expr(f"INTERVAL {WITHIN} SECONDS"))
    )
    return found.select("time", "room", f.col("last.value").alias("value"))


if __name__ == "__main__":
    form, source, out, settings = sys.argv[1:]
    builder = SparkSession.builder.appName("plain")
    for name, value in json.loads(settings).items():
        builder = builder.config(name, value)
    alarms(readings(builder.getOrCreate(), form, source)).write.parquet(out)
