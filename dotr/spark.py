"""Batch runs: the same events from many processes. The only place that knows Spark.

    import dotr.spark
    spark = dotr.spark.session()
    events = dotr.spark.detect(log, rules="fire.dotr")

Place:   above engine.py, below cli/. plan.py, keys.py and slices.py are pure and cheap to import; what needs
         Arrow or Spark is imported when it is called, since `dotr plan` needs neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING

from dotr.budget import BUDGET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["detect", "register", "session"]


def session(master: str | None = None, **conf: str) -> SparkSession:
    """The running Spark session, or a new one with what dotr needs set; see sessions.py.

    Raises EngineError D4301 without Java, D4302 when Spark does not start.
    """
    from dotr.batch.spark.sessions import session as start  # noqa: PLC0415  # start-up

    return start(master, **conf)


def detect(
    log: DataFrame,
    rules: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    background: Sequence[str | PathLike[str]] = (),
    time_unit: str | None = None,
    by: str = "auto",
    slice_length: timedelta | str | None = None,
    base: str | None = None,
    max_jump: timedelta | str | None = None,
    budget: int = BUDGET,
    parallelism: int | None = None,
) -> DataFrame:
    """The composite events of a log: (time, rule, id, bindings, match, graph), in no order; see
    dataframe.py.
    """
    from dotr.batch.spark.dataframe import detect as run  # noqa: PLC0415  # start-up

    return run(
        log,
        rules,
        background=background,
        time_unit=time_unit,
        by=by,
        slice_length=slice_length,
        base=base,
        max_jump=max_jump,
        budget=budget,
        parallelism=parallelism,
    )


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("dotr")` and `frame.write.format("dotr")` known to a session; see source.py."""
    from dotr.batch.spark.data_source import LogSource  # noqa: PLC0415  # start-up

    spark.dataSource.register(LogSource)
