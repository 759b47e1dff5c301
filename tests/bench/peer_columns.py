"""The events of columns.py by Polars and by DuckDB. Runs in the environment that peers_environment.py makes.

    python peer_columns.py TABLE EVENTS THRESHOLD,…

`EVENTS` are those of dotr, as typed Parquet. Prints JSON: of each peer processor seconds, from reading the
table to having the events in memory, and whether they are the same events.
"""

from __future__ import annotations

import json
import sys
from time import process_time

import duckdb
import polars as pl

TABLE, EVENTS, BOUNDS = sys.argv[1], sys.argv[2], [float(bound) for bound in sys.argv[3].split(",")]


def with_polars() -> pl.DataFrame:
    table = pl.read_parquet(TABLE).sort("time")
    alarms = table.filter(pl.col("kind") == "smoke").select("time", "room")
    heat = table.filter(pl.col("kind") == "heat").select("time", "room", "value")
    found = [
        alarms.join_asof(
            heat.filter(pl.col("value") > bound), on="time", by="room", tolerance="60m", strategy="backward"
        )
        .drop_nulls("value")
        .with_columns(pl.lit(f"Alarm{number}").alias("rule"))
        for number, bound in enumerate(BOUNDS)
    ]
    return pl.concat(found).select("rule", "time", "room", "value")


def with_duckdb() -> pl.DataFrame:
    parts = [
        f"SELECT 'Alarm{number}' AS rule, s.time, s.room, h.value"  # noqa: S608  # our own numbers
        " FROM (SELECT * FROM t WHERE kind = 'smoke') s"
        f" ASOF JOIN (SELECT * FROM t WHERE kind = 'heat' AND value > {bound}) h"
        " ON s.room = h.room AND s.time >= h.time WHERE s.time - h.time <= INTERVAL 60 MINUTES"
        for number, bound in enumerate(BOUNDS)
    ]
    duckdb.sql("SET TimeZone = 'UTC'")
    duckdb.sql(f"CREATE OR REPLACE TEMP TABLE t AS SELECT * FROM read_parquet('{TABLE}')")  # noqa: S608  # as above
    return pl.from_arrow(duckdb.sql(" UNION ALL ".join(parts)).arrow())


def ordered(frame: pl.DataFrame) -> pl.DataFrame:
    columns = [pl.col("rule"), pl.col("time").dt.epoch("us"), pl.col("room"), pl.col("value")]
    return frame.select(columns).sort("rule", "time", "room")


dotr = pl.read_parquet(EVENTS)
wanted = dotr.select(
    "rule",
    "time",
    pl.col("room").str.strip_prefix("http://example.org/room/"),
    pl.col("v").cast(pl.Float64).alias("value"),
)
result = {}
for name, run in (("polars", with_polars), ("duckdb", with_duckdb)):
    run()  # what is loaded once
    start = process_time()
    events = run()
    seconds = process_time() - start
    result[name] = {
        "seconds": seconds,
        "events": len(events),
        "same": ordered(events).equals(ordered(wanted)),
    }
print(json.dumps(result))
