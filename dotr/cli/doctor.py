"""`dotr doctor`: what works on this machine, and how to fix the rest.

Place:   asks the system; changes nothing. Exit code 4 when something that `dotr run` or `feed` needs is
         missing.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
from msgspec import Struct, to_builtins

from dotr import __version__
from dotr.batch.spark.java import find_java
from dotr.errors import EngineError
from dotr.io.files.rule_texts import KINDS, shipped

_LIBRARIES = ("pyoxigraph", "rdflib", "click", "pyarrow", "pandas", "pyspark", "rich", "pyyaml")
_OLDEST = (3, 11)


class Finding(Struct, frozen=True):
    """One thing that was looked at. `needed`: without it `run` and `feed` do not work."""

    what: str
    works: bool
    found: str
    fix: str = ""
    needed: bool = False


@click.command(short_help="What works on this machine, and how to fix the rest.")
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to write."
)
def command(format_: str) -> int:
    """Look at Python, libraries, Java, Spark, memory and disk."""
    found = list(findings())
    if format_ == "json":
        click.echo(json.dumps({"findings": [to_builtins(finding) for finding in found]}, ensure_ascii=False))
    else:
        width = max(len(finding.what) for finding in found)
        for finding in found:
            click.echo(f"{'ok ' if finding.works else 'no '} {finding.what.ljust(width)}  {finding.found}")
            if finding.fix and not finding.works:
                click.echo(f"    {' ' * width}  to fix: {finding.fix}")
    return 4 if any(finding.needed and not finding.works for finding in found) else 0


def findings() -> Iterator[Finding]:
    """Everything that is looked at, in order."""
    yield Finding("dotr", True, __version__)
    yield Finding(
        "Python",
        sys.version_info[:2] >= _OLDEST,
        f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "install Python 3.11 or newer",
        needed=True,
    )
    for name in _LIBRARIES:
        yield _library(name)
    yield _files()
    yield _state()
    yield _java()
    yield _memory()
    yield _space()


def _library(name: str) -> Finding:
    needed = name in ("pyoxigraph", "rdflib", "click")
    try:
        return Finding(name, True, version(name), needed=needed)
    except PackageNotFoundError:
        return Finding(name, False, "not installed", f"pip install {name}", needed)


def _files() -> Finding:
    try:
        for kind in KINDS:
            shipped(kind)
    except FileNotFoundError as error:
        return Finding("dotr's files", False, f"{error.filename} is missing", "install dotr again")
    return Finding("dotr's files", True, ", ".join(KINDS))


def _state() -> Finding:
    """Whether a deployment's database works here: SQLite with a write-ahead log."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            connection = sqlite3.connect(Path(folder) / "x.db")
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.close()
    except (OSError, sqlite3.Error) as error:
        return Finding(
            "SQLite", False, str(error), "make the folder for temporary files writable", needed=True
        )
    return Finding(
        "SQLite",
        mode == "wal",
        f"{sqlite3.sqlite_version}, journal {mode}",
        "use a local file system",
        needed=True,
    )


def _java() -> Finding:
    fix = "install Java 17 or newer, or pip install 'dotr[java]'; batch --engine local needs none"
    try:
        java = find_java()
    except EngineError as error:
        return Finding("Java for Spark", False, "; ".join(error.diagnostics[0].notes) or "none", fix)
    return Finding("Java for Spark", True, f"{java.release}, from {java.found}")


def _memory() -> Finding:
    total = _asked(lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    if total is None:
        return Finding("memory", True, "unknown")
    cores = os.cpu_count() or 1
    return Finding(
        "memory",
        total >= 1 << 30,
        f"{total / (1 << 30):.1f} GiB, {cores} cores",
        "large backgrounds want more",
    )


def _space() -> Finding:
    free = _asked(lambda: shutil.disk_usage(".").free)
    if free is None:
        return Finding("disk here", False, "cannot be asked", "change to a folder that exists")
    writable = os.access(".", os.W_OK)
    found = f"{free / (1 << 30):.1f} GiB free" + ("" if writable else ", not writable")
    return Finding(
        "disk here", free >= 1 << 28 and writable, found, "free space, or change to another folder"
    )


def _asked(question: Callable[[], int]) -> int | None:
    try:
        return question()
    except (OSError, ValueError, AttributeError):
        return None
