"""Where the enriched graphs of a run go, and outputs that are inputs of the same run.

Place:   `--emit-state` of `dotr run` and `dotr batch` writes enriched graphs.
Method:  an enriched graph is what holds at an instant besides the background, one JSON line per instant,
         which dotr reads again as a graph of a stream: the triples that are not of the background alone,
         stated or derived, sorted, with blank nodes as the run labelled them. The line is the same
         whichever runner wrote it.
         `refuse_overlap` runs before an output is opened. A file is known by its device and number, which
         hard and symbolic links share; an output folder by its path. `NAME.part` counts as the output.
Bad input: D5002 an output that the same run reads.
"""

from __future__ import annotations

import glob
import json
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from itertools import product
from typing import TypeAlias
from uuid import uuid4

from dotr.errors import DataError, RefusedError
from dotr.events import Clock, Time
from dotr.io.decode.documents import format_of
from dotr.io.events import format_of_name
from dotr.io.outputs import Output, open_output, unwritable
from dotr.io.sources import resolve
from dotr.rdf.terms import Triple

FORMATS = ("jsonl",)


def state_line(time: Time, triples: Sequence[Triple], clock: Clock) -> str:
    """The line of an instant, with its end; `triples` are sorted."""
    graph = "".join([f"{s} {p} {o} .\n" for s, p, o in triples])
    stamp: int | str = int(clock.text(time)) if clock.integer else clock.text(time)
    return f"{json.dumps({'time': stamp, 'graph': graph}, ensure_ascii=False, separators=(',', ':'))}\n"


def refuse_name(path: str, verb: str) -> None:
    """Raise UsageError D4151 for the name of a file that JSON lines do not fit."""
    format_of_name(path, FORMATS, f"{verb} --emit-state")


class StateFile:
    """Owns the file of a run's enriched graphs. Raises RefusedError D5001 where it is there."""

    def __init__(self, path: str, overwrite: bool, clock: Callable[[], Clock | None]) -> None:
        self._out: Output = open_output(path, overwrite)
        self._clock = clock

    def write(self, time: Time, triples: Sequence[Triple]) -> None:
        """One instant."""
        clock = self._clock()
        assert clock is not None, "an instant has a time"
        self._out.write(state_line(time, triples, clock))

    def finish(self) -> None:
        self._out.finish()

    def abandon(self) -> None:
        self._out.abandon()


class StatePart:
    """Owns one file among those of a folder, made with its first line; `close` gives its name, or ""."""

    def __init__(self, folder: str, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._lines: list[str] = []
        self._name = ""

    def write(self, time: Time, triples: Sequence[Triple]) -> None:
        """One instant."""
        self._lines.append(state_line(time, triples, self._clock))
        if len(self._lines) >= _LINES:
            self._flush()

    def close(self) -> str:
        """Complete the file. Raises EngineError."""
        self._flush()
        return self._name

    def _flush(self) -> None:
        if not self._lines:
            return
        self._name = self._name or f"{uuid4().hex}.jsonl"
        path = os.path.join(self._folder, self._name)
        try:
            with open(path, "a", encoding="utf-8", newline="\n") as file:
                file.writelines(self._lines)
        except OSError as error:
            raise unwritable(path, error) from None
        self._lines = []


_LINES = 1000


Identity: TypeAlias = tuple[int, int]


def refuse_overlap(
    outputs: Sequence[str], inputs: Sequence[str], stdout: int | None = None, appearing: bool = False
) -> None:
    """Raise RefusedError D5002 if one of the outputs is one of the inputs, or has it inside.

    `inputs`: files, folders, globs and "-"; what is not there is passed over. `stdout`: the descriptor of
    standard output where data go there. `appearing`: files that come into being meanwhile are read, too.
    """
    for output, path in product(outputs, inputs) if appearing else ():
        if not os.path.exists(output) and _would_be_read(os.path.realpath(output), os.path.realpath(path)):
            raise _refused(output, output)
    files: dict[Identity, str] = {}
    folders: dict[str, str] = {}
    for output in outputs:
        plain = output.rstrip("/") or output
        for there in (plain, f"{plain}.part"):
            if os.path.isdir(there):
                folders[os.path.realpath(there) + os.sep] = output
            elif (found := _identity(there)) is not None:
                files[found] = output
    if stdout is not None and (found := _identity(stdout)) is not None:
        files[found] = "standard output"
    if not files and not folders:
        return
    for file in _files(inputs):
        name = files.get(_identity(0 if file == "-" else file) or (-1, -1))
        if name is None and folders:
            real = os.path.realpath(file)
            name = next((folders[folder] for folder in folders if real.startswith(folder)), None)
        if name is not None:
            raise _refused(name, file)


def _identity(file: str | int) -> Identity | None:
    """What a regular file is known by; None for anything else."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _would_be_read(output: str, path: str) -> bool:
    """Whether a file that is not there yet would be among those of a folder or glob."""
    if not glob.has_magic(path):
        return format_of(output) is not None and output.startswith(path + os.sep)
    if "**" in path:  # which stands for no folder, too
        return fnmatch(output, path) or fnmatch(output, path.replace("**/", ""))
    parts, patterns = output.split(os.sep), path.split(os.sep)
    return len(parts) == len(patterns) and all(map(fnmatch, parts, patterns))


def _files(inputs: Sequence[str]) -> Iterator[str]:
    for path in inputs:
        with suppress(DataError):  # reported by whoever reads it
            yield from resolve([path])


def _refused(output: str, file: str) -> RefusedError:
    return RefusedError.of(
        "D5002",
        f"`{output}` is also read by this run",
        place=file,
        notes=("what is read would be lost, or what is written would be read again",),
        hint="give the output another name",
    )
