"""How Spark is configured before dotr runs: by spark-submit, its defaults files, the environment.

Place:   used by sessions.py, which overrides these settings only where dotr requires it.
Method:  under spark-submit the running JVM knows them; else the launcher's inputs are read here, since
         settings of the JVM itself must be known before it starts.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

_LINE = re.compile(r"\s*([^#\s:=][^\s:=]*)\s*(?:[=:]|\s)\s*(.*?)\s*$")


def is_submitted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether spark-submit started this process, so that the JVM already runs."""
    return "PYSPARK_GATEWAY_PORT" in environment


def configured(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings that Spark would start with, including `spark.master` and `spark.remote`."""
    if is_submitted(environment):
        return _of_jvm()
    found = _defaults(environment)
    if "MASTER" in environment:
        found.setdefault("spark.master", environment["MASTER"])
    found |= _submit_arguments(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    if "SPARK_REMOTE" in environment:
        found.setdefault("spark.remote", environment["SPARK_REMOTE"])
    return found


def has_logging() -> bool:
    """Whether the user configured Spark's logging."""
    folder = conf_folder(os.environ)
    return folder is not None and (folder / "log4j2.properties").is_file()


def conf_folder(environment: Mapping[str, str]) -> Path | None:
    """The folder of Spark's configuration; None if no variable names one."""
    if environment.get("SPARK_CONF_DIR"):
        return Path(environment["SPARK_CONF_DIR"])
    if environment.get("SPARK_HOME"):
        return Path(environment["SPARK_HOME"]) / "conf"
    return None


def _of_jvm() -> dict[str, str]:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  # start-up

    SparkContext._ensure_initialized()  # connects to the JVM that started this process
    return dict(SparkConf().getAll())


def _defaults(environment: Mapping[str, str]) -> dict[str, str]:
    folder = conf_folder(environment)
    try:
        text = "" if folder is None else (folder / "spark-defaults.conf").read_text(encoding="utf-8")
    except OSError:
        return {}
    found = (_LINE.match(line) for line in text.splitlines())
    return {line[1]: line[2] for line in found if line is not None}


def _submit_arguments(text: str) -> dict[str, str]:
    """`--master` and `--conf` of PYSPARK_SUBMIT_ARGS."""
    words = shlex.split(text)
    found: dict[str, str] = {}
    for option, value in pairwise(words):
        if option in ("--master", "--remote"):
            found[f"spark.{option[2:]}"] = value
        elif option in ("--conf", "-c") and "=" in value:
            name, _, given = value.partition("=")
            found[name] = given
    return found
