"""A Spark session with dotr's settings, for users without their own.

Place:   for `dotr batch` and the example notebooks; `dotr.spark.detect` takes any session.
Method:  everything that must be known before the JVM starts is set here: Java, the workers' Python, UTC.
         Settings of spark-submit, spark-defaults.conf or the environment take precedence.
Bad input: D4128 a setting that Spark does not have · D4301 no Java · D4302 Spark does not start · D4308 an
         option for a running session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dotr.batch.spark.configured import configured, has_logging, is_submitted
from dotr.batch.spark.java import find_java, without_incubator
from dotr.errors import EngineError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For small local jobs: starts and warms up 20–40 % faster."""

_LOGGING = Path(__file__).with_name("log4j2.properties")

_TIMES = {"spark.sql.session.timeZone": "UTC"}
"""Set whatever was configured: otherwise times would change."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The options of a new session, in the form of spark-submit.

    `master` None: as Spark is configured, else all cores of this machine. `parallelism`: tasks that can run
    at once, if Spark does not report that (Connect), or to override it.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    packages: Sequence[str] = ()
    py_files: Sequence[str] = ()
    archives: Sequence[str] = ()
    parallelism: int | None = None

    def settings(self) -> dict[str, str]:
        """The settings for Spark. Raises UsageError D4128 for an unknown one."""
        for name in self.conf:
            if not name.startswith("spark."):
                raise UsageError.of(
                    "D4128",
                    f"`{name}` is not a setting of Spark",
                    notes=("spark-submit would ignore it",),
                    hint=f"did you mean `spark.{name}`?",
                )
        found = dict(self.conf)
        sent = (
            ("spark.jars.packages", self.packages),
            ("spark.submit.pyFiles", self.py_files),
            ("spark.archives", self.archives),
        )
        for name, values in sent:
            if values:
                found[name] = ",".join([*filter(None, [found.get(name)]), *values])
        return found


def session(master: str | None = None, **conf: str) -> SparkSession:
    """The running session, if any, else a new one on `master` (default: as Spark is configured, else all
    cores of this machine).

    `conf`: Spark settings with `_` for `.`, such as `spark_driver_memory="4g"`. `sc://host` is Spark Connect.
    Raises EngineError D4301 without Java, D4302 if Spark does not start; UsageError D4128, D4308.
    """
    return start(SparkOptions(master, {name.replace("_", "."): value for name, value in conf.items()}))


def start(options: SparkOptions) -> SparkSession:
    """See `session`."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  # half a second that other verbs do not need

    running = SparkSession.getActiveSession()
    if running is not None:
        _refuse_late(options, running.conf.get("spark.master", None), "a session runs already")
        return running
    asked = options.settings()
    known = configured()
    if is_submitted():
        _refuse_late(options, known.get("spark.master"), "spark-submit has started Spark already")
    place = (
        options.master or asked.get("spark.master") or asked.get("spark.remote") or known.get("spark.remote")
    )
    place = place or known.get("spark.master") or "local[*]"
    builder: Any = SparkSession.builder.appName(known.get("spark.app.name", "dotr"))
    remote = place.startswith("sc://") or (
        options.master is None and "spark.remote" in {**known, **asked} and "spark.master" not in asked
    )
    if remote:
        builder = builder.remote(place)
    elif options.master is not None:
        builder = builder.master(options.master)
    if not is_submitted() and not place.startswith("sc://"):
        os.environ["JAVA_HOME"] = without_incubator(Path(find_java().home, "bin", "java"))
    if "spark.pyspark.python" not in {**known, **asked}:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    ours = {name: value for name, value in settings_for(place).items() if name not in known}
    for name, value in {**ours, **asked, **_TIMES}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()  # type: ignore[no-any-return]  # the builder is untyped
    except Exception as error:  # Py4J and gRPC raise anything
        raise EngineError.of(
            "D4302",
            f"Spark does not start: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            label=place,
            hint="check --master; `--engine local` does the same work without Spark",
        ) from None


def _refuse_late(options: SparkOptions, master: str | None, why: str) -> None:
    """Raise UsageError D4308 for settings that a running Spark cannot take."""
    given = {
        "master": options.master if options.master != master else None,
        "packages": options.packages,
        "py-files": options.py_files,
        "archives": options.archives,
    }
    late = [name for name, value in given.items() if value]
    if late:
        raise UsageError.of(
            "D4308",
            f"--{late[0]} comes too late: {why}",
            label=f"its master is {master}" if late[0] == "master" and master else "",
            hint=f"give --{late[0]} to spark-submit, or stop the session first",
        )


def settings_for(place: str) -> dict[str, str]:
    """dotr's defaults on a master or remote."""
    common = {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    }
    if place.startswith("sc://"):
        return common
    common["spark.ui.showConsoleProgress"] = "false"
    logging = "" if has_logging() else f'"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"'
    if not place.startswith("local"):
        return {**common, "spark.driver.extraJavaOptions": logging} if logging else common
    cores = local_cores(place)
    return {
        **common,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores * 8),
        "spark.sql.files.minPartitionNum": str(cores * 8),
        "spark.driver.extraJavaOptions": f"{_LOCAL_JVM} {logging}".strip(),
        "spark.sql.warehouse.dir": "file:///nonexistent",
    }


def local_cores(master: str) -> int:
    """The number of cores of `local`, `local[4]` or `local[*]`."""
    inner = master.removeprefix("local").strip("[]").split(",")[0]
    if inner == "*":
        return os.cpu_count() or 1
    return int(inner) if inner.isdigit() else 1
