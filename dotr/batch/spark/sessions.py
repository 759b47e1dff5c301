"""A Spark session that fits dotr's work, for those who do not bring their own.

Place:   `dotr batch` and the example notebooks; `dotr.spark.detect` takes any session.
Method:  everything that must be known before the JVM starts is set here: Java, the workers' Python, UTC.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dotr.batch.spark.java import find_java
from dotr.errors import Diagnostic, EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For small local jobs: starts and warms up 20–40 % quicker."""

_LOGGING = Path(__file__).with_name("log4j2.properties")


def session(master: str | None = None, **conf: str) -> SparkSession:
    """The running session if there is one, else a new one on `master` (default: all cores of this machine).

    `conf`: Spark settings with `_` for `.`, such as `spark_driver_memory="4g"`. `sc://host` is Spark Connect.
    Raises EngineError D4301 without Java, D4302 when Spark does not start.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415  # half a second that other verbs do not need

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    master = master or "local[*]"
    builder: Any = SparkSession.builder.appName("dotr")
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        java = find_java()
        os.environ["JAVA_HOME"] = java.home
        builder = builder.master(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    for name, value in {**_settings(master), **{k.replace("_", "."): v for k, v in conf.items()}}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()  # type: ignore[no-any-return]  # the builder is untyped
    except Exception as error:  # Py4J and gRPC raise what they like
        raise EngineError(
            Diagnostic(
                "D4302",
                f"Spark does not start: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
                label=master,
                hint="check --master; `--engine local` does the same work without Spark",
            )
        ) from None


def _settings(master: str) -> dict[str, str]:
    common = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    }
    if not master.startswith("local"):
        return common
    cores = local_cores(master)
    return {
        **common,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(cores * 8),
        "spark.sql.files.minPartitionNum": str(cores * 8),
        "spark.driver.extraJavaOptions": f'{_LOCAL_JVM} "-Dlog4j2.configurationFile={_LOGGING.as_uri()}"',
        "spark.sql.warehouse.dir": "file:///nonexistent",
    }


def local_cores(master: str) -> int:
    """How many cores `local`, `local[4]` or `local[*]` names."""
    inner = master.removeprefix("local").strip("[]").split(",")[0]
    if inner == "*":
        return os.cpu_count() or 1
    return int(inner) if inner.isdigit() else 1
