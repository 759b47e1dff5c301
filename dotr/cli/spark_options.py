"""Options of verbs that start Spark: where it runs, its settings, and what is sent along.

Place:   decorators for `batch` and `stream`; they are those of spark-submit, and mean the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from dotr.batch.locations import is_remote
from dotr.batch.spark.configured import configured, is_submitted
from dotr.batch.spark.sessions import SparkOptions
from dotr.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def spark_options(function: F) -> F:
    """`--master --conf --packages --py-files --archives`."""
    options = (
        click.option(
            "--master",
            metavar="URL",
            help="Where Spark runs: local[4], spark://…, yarn, sc://… (default: as Spark is configured, else "
            "local[*]).",
        ),
        click.option("--conf", metavar="K=V", multiple=True, help="A setting of Spark; repeatable."),
        click.option(
            "--packages", metavar="G:A:V,…", multiple=True, help="Maven packages that Spark fetches."
        ),
        click.option("--py-files", metavar="FILE,…", multiple=True, help="Python files sent to workers."),
        click.option(
            "--parallelism",
            type=click.IntRange(min=1),
            metavar="N",
            help="Tasks that can run at once (default: as Spark reports; Spark Connect does not).",
        ),
        click.option(
            "--archives", metavar="FILE#NAME,…", multiple=True, help="Archives sent to workers, unpacked."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def asked_of_spark(
    master: str | None,
    conf: Sequence[str],
    packages: Sequence[str],
    py_files: Sequence[str],
    archives: Sequence[str],
    parallelism: int | None = None,
) -> SparkOptions:
    """The options as a value. Raises UsageError D4128 for a setting that Spark does not have."""
    settings: dict[str, str] = {}
    for given in conf:
        name, equals, value = given.partition("=")
        if not equals or not name.strip():
            raise UsageError.of(
                "D4128", f"`{given}` is not a setting of Spark", hint="--conf spark.executor.memory=4g"
            )
        settings[name.strip()] = value
    asked = SparkOptions(
        master, settings, _listed(packages), _listed(py_files), _listed(archives), parallelism
    )
    asked.settings()  # what is wrong with them is reported before anything is read
    return asked


def chosen_engine(
    asked: SparkOptions, places: Sequence[str], environment: Mapping[str, str] = os.environ
) -> tuple[str, str]:
    """(engine, why): Spark where only it can do the work, or where it was set up for more than this machine;
    else local processes, which need no JVM and take less time on the same cores.
    """
    remote = next(filter(is_remote, places), None)
    if remote is not None:
        return "spark", f"only Spark can follow {remote}"
    given = next((option for option, value in _given(asked).items() if value), None)
    if given is not None:
        return "spark", f"{given} is given"
    if is_submitted(environment):
        return "spark", "spark-submit started this process"
    known = configured(environment)
    place = known.get("spark.remote") or known.get("spark.master") or "local"
    if not place.startswith("local"):
        return "spark", f"it is configured for {place}"
    return "local", "everything is on this machine; --engine spark takes Spark all the same"


def refuse_without_spark(asked: SparkOptions) -> None:
    """Raise UsageError D4121 for options of Spark where it does not run."""
    for option, value in _given(asked).items():
        if value:
            raise UsageError.of("D4121", f"{option} is for --engine spark", hint=f"leave {option} out")


def _given(asked: SparkOptions) -> dict[str, object]:
    return {
        "--master": asked.master,
        "--conf": asked.conf,
        "--packages": asked.packages,
        "--py-files": asked.py_files,
        "--archives": asked.archives,
        "--parallelism": asked.parallelism,
    }


def _listed(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
