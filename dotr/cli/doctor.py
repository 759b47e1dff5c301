"""`dotr doctor`: what works on this machine, how to mend the rest, and whether a server's connections do.

Place:   asks the system, the installed packages and, with `--config`, each source and output of a server
         (serve/connection_trials.py). Exits with 4 when something that `dotr run` or `feed` needs is missing,
         or when something that the configuration names cannot be had.
Method:  extras and what belongs to them are those of the installed package's own metadata.
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
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

import click
from msgspec import Struct, to_builtins

from dotr import __version__
from dotr.cli import options
from dotr.cli.packages import OPTIONAL
from dotr.errors import EngineError
from dotr.io.rules_and_background import KINDS, shipped
from dotr.regex import regex
from dotr.serve.configuration import read_configuration
from dotr.serve.connection_trials import trials

_NEEDED: Final = ("click", "msgspec", "pyoxigraph", "pyyaml", "rdflib", "sortedcontainers", "tzdata")
_OLDEST = (3, 11)


class Finding(Struct, frozen=True):
    """One thing that was examined. `needed`: without it `run` and `feed` do not work."""

    what: str
    works: bool
    found: str
    fix: str = ""
    needed: bool = False


@click.command()
@click.option(
    "--config",
    metavar="FILE",
    help="A dotr.yaml: try to connect to each of its sources and outputs; nothing is sent or taken.",
)
@options.report
def command(config: str | None, format_: str) -> int:
    """Check Python, libraries, extras, Java, memory and disk; with --config the connections of a server."""
    found = list(findings())
    if config is not None:
        found += [
            Finding(one.what, one.works, one.found, one.fix, needed=True)
            for one in trials(read_configuration(config))
        ]
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
    """Everything that is examined, in order."""
    yield Finding("dotr", True, __version__)
    yield Finding(
        "Python",
        sys.version_info[:2] >= _OLDEST,
        f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "install Python 3.11 or newer",
        needed=True,
    )
    for name in (*_NEEDED, *OPTIONAL):
        yield _library(name)
    yield from _extras()
    yield _files()
    yield _state()
    yield _java()
    yield _memory()
    yield _space()


def _library(name: str) -> Finding:
    found = _version(name)
    if name in OPTIONAL:
        fix = f"pip install {name}, for {OPTIONAL[name]}"
        return Finding(name, found is not None, found or "not installed", fix)
    return Finding(name, found is not None, found or "not installed", f"pip install {name}", needed=True)


_REQUIRED = regex(r"([A-Za-z0-9._-]+)(?:\[([a-z]+)\])?.*; *.*extra *== *['\"]([a-z]+)['\"].*")
_FOR_DEVELOPERS: Final = ("docs", "test")


def _required(package: str) -> dict[str, list[str]]:
    """Extra of a package → the packages that it needs, with those that they need for extras of their own."""
    found: dict[str, list[str]] = {}
    for line in requires(package) or ():
        if (match := _REQUIRED.fullmatch(line)) is not None:
            name, inner, extra = match.groups()
            more = _required(name).get(inner, []) if inner and _version(name) is not None else []
            found.setdefault(extra, []).extend([name, *more])
    return found


def _extras() -> Iterator[Finding]:
    """Extras, and the packages that belong to each."""
    for extra, packages in sorted(_required("dotr").items()):
        if extra in _FOR_DEVELOPERS:
            continue
        have = {package: _version(package) for package in dict.fromkeys(packages)}
        missing = [package for package, which in have.items() if which is None]
        what = ", ".join(f"{package} {which}" for package, which in have.items() if which is not None)
        lacks = f"without {', '.join(missing)}"
        yield Finding(
            f"dotr[{extra}]",
            not missing,
            what if not missing else f"{what}, {lacks}" if what else "not installed",
            f"pip install 'dotr[{extra}]'",
        )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


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
        from dotr.batch.spark.session import find_java  # noqa: PLC0415  # pyarrow may not be installed

        java = find_java()
    except ModuleNotFoundError as error:
        return Finding("Java for Spark", False, f"not looked for: {error.name} is not installed", fix)
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
