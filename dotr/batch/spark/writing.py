"""`dotr.spark.write`: a frame of graphs as an RDF log, in any of Spark's four modes.

Place:   over the data source `dotr` (data_source.py), to which Spark passes only `append` and `overwrite`.
"""

from __future__ import annotations

import os
from os import PathLike, fspath
from typing import TYPE_CHECKING

from dotr.batch.locations import is_remote, plain_path
from dotr.batch.spark import failures
from dotr.batch.spark.data_source import LogSource
from dotr.errors import RefusedError, UsageError
from dotr.io.decode.parquet import UNIT_NOTE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MODES = ("error", "errorifexists", "ignore", "append", "overwrite")


def write(frame: DataFrame, path: str | PathLike[str], mode: str, form: str, time_unit: str | None) -> bool:
    """Write (time, graph) and, if present, id to `path`; returns whether anything was written.

    Raises UsageError D4123 for another mode, D4122, RefusedError D5001 for a path that exists under "error".
    """
    if mode not in MODES:
        hint = f"one of {', '.join(MODES)}"
        raise UsageError.of("D4123", f"a mode cannot be `{mode}`", hint=hint)
    place = fspath(path)
    here = plain_path(place)
    if mode not in ("append", "overwrite") and not is_remote(place) and _is_taken(here):
        if mode == "ignore":
            return False
        raise RefusedError.of(
            "D5001", f"`{place}` exists", place=place, hint="mode append, overwrite or ignore"
        )
    failures.install()
    frame.sparkSession.dataSource.register(LogSource)
    columns = [name for name in ("time", "graph", "id") if name in frame.columns]
    if not {"time", "graph"} <= set(columns):
        raise UsageError.of(
            "D4122",
            "a log has the columns `time` and `graph`",
            label=", ".join(frame.columns),
            hint="rename them",
        )
    writer = frame.select(*columns).write.format("dotr").option("as", form)
    noted = frame.schema["time"].metadata.get(UNIT_NOTE)
    if time_unit or noted:
        writer = writer.option("timeUnit", time_unit or noted)
    try:
        writer.mode("overwrite" if mode == "overwrite" else "append").save(place)
    except Exception as error:  # Py4J and gRPC raise anything
        raise failures.as_own_error(error) from None
    return True


def _is_taken(path: str) -> bool:
    return os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path))
