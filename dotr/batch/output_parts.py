"""Output of a batch: files `part-*`, complete or absent.

Place:   a task writes its own file into the folder of an unfinished run and reports its name; the driver
         renames the folder when everything is done.
Method:  a run is written to `DIR.part`; every task attempt has a unique file name, and only the reported
         files get their final names, so that failed or repeated attempts leave nothing.
Why not: Spark's text writer: it supports neither these formats nor lines as events.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from msgspec import Struct, field

from dotr.batch.detecting import Detecting
from dotr.batch.job import Worker
from dotr.batch.skew import Weight
from dotr.errors import RefusedError
from dotr.events import Clock, Composite, Time
from dotr.io.event_formats import formatter
from dotr.io.event_table import ROWS, EventTableWriter
from dotr.io.files.outputs import unwritable
from dotr.io.output_formats import ENDINGS, EVENT_FORMATS
from dotr.ir import Program

FORMATS = tuple(format_ for format_ in EVENT_FORMATS if format_ != "text")
"""The values of `--format`."""

RUN_FILE = "_dotr_run.json"
"""Describes what ran, when, and how much came out; it is in every finished folder."""

UNFINISHED = "_dotr_unfinished"
"""Marks the folder of an unfinished run, so that only dotr's own leftovers are ever removed."""


class Written(Struct):
    """What one task wrote. `file` is "" without events. `counted`: see `Detected.counted`."""

    file: str
    counts: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    findings: list[tuple[Time, str]] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    parts: int = 0
    counted: str = "[{}, {}]"


def write_events(
    folder: str, format_: str, program: Program, clock: Clock, events: Iterable[Composite]
) -> Written:
    """Write a task's events to its own file in `folder`; no file without events. Raises EngineError."""
    written = Written("")
    name = f"{uuid4().hex}.{ENDINGS[format_]}"
    path = os.path.join(folder, name)
    file: _EventFile | None = None
    try:
        for waiting in batched(events):
            if file is None:
                file = _event_file(path, format_, program, clock)
            file.add(waiting)
            for event in waiting:
                written.counts[event.rule] = written.counts.get(event.rule, 0) + 1
        if file is not None:
            file.close()
            written.file = name
    except OSError as error:
        raise unwritable(path, error) from None
    return written


def write_detected(
    folder: str, format_: str, worker: Worker, detecting: Detecting, events: Iterable[Composite]
) -> Written:
    """Like `write_events`, with the other results of `detecting`, the source of the events."""
    written = write_events(folder, format_, worker.job.program, worker.job.clock, events)
    done = detecting.done
    written.dropped, written.parts, written.counted = done.dropped, done.parts, done.counted()
    written.left_out, written.findings = done.left_out, done.findings
    written.weights = done.weights
    return written


def batched(events: Iterable[Composite]) -> Iterator[list[Composite]]:
    """Events in lists of ROWS, the last one shorter; none without events."""
    source = iter(events)
    while waiting := list(islice(source, ROWS)):
        yield waiting


class _EventFile(Protocol):
    """A file that takes events in order and is complete once closed."""

    def add(self, events: Sequence[Composite]) -> None: ...

    def close(self) -> None: ...


def _event_file(path: str, format_: str, program: Program, clock: Clock) -> _EventFile:
    match format_:
        case "parquet":
            return EventTableWriter(path, clock)
        case "jelly":
            from dotr.io.jelly_frames import JellyEventWriter  # noqa: PLC0415  # an extra

            return JellyEventWriter(path, clock)
        case _:
            return _PartFile(path, format_, program, clock)


class _PartFile:
    """Owns one text file of events; `close` completes it. Raises OSError."""

    def __init__(self, path: str, format_: str, program: Program, clock: Clock) -> None:
        head, self._format = formatter(format_, program.prefixes, program.rules)
        self._clock = clock
        self._file = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115  # closed by `close`
        self._file.write(head)

    def add(self, events: Sequence[Composite]) -> None:
        self._file.write(self._format(events, self._clock))

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def part_name(number: int, of: int, suffix: str) -> str:
    """The name of an output file."""
    return f"part-{number:0{max(5, len(str(of)))}}.{suffix}"


class Folder(Protocol):
    """Where a run's output is written and, when complete, renamed."""

    def open(self) -> str: ...

    def finish(self, files: Sequence[str], run: str) -> None: ...

    def abandon(self) -> None: ...


class OutputFolder:
    """Owns `DIR.part` from the start of a run to `finish`, when it is renamed to `DIR`. A finished folder is
    recognised by its `run_file`.

    Raises RefusedError D5001 at once if DIR or DIR.part is not empty and `overwrite` is not set.
    """

    def __init__(
        self, path: str, overwrite: bool, run_file: str = RUN_FILE, verb: str = "dotr batch"
    ) -> None:
        self._run_file = run_file
        self.path = Path(path)
        if not self.path.name:
            raise _refused(f"`{path}` is not a name for an output", self.path, "give another name")
        self.part = self.path.with_name(self.path.name + ".part")
        self._overwrite = overwrite
        for there in (self.path, self.part):
            if not os.path.lexists(there) or _is_empty_folder(there):
                continue
            if not overwrite:
                what = "was left by a run that did not finish" if there == self.part else "exists"
                raise _refused(f"`{there}` {what}", there, "give another name, or --overwrite")
            if not (there / run_file).is_file() and not (there / UNFINISHED).is_file():
                raise _refused(f"`{there}` is not an output of `{verb}`", there, "give another name")

    def open(self) -> str:
        """Make the folder of the unfinished run; returns its absolute path."""
        try:
            if os.path.lexists(self.part):
                _remove(self.part)
            self.part.mkdir(parents=True)
            (self.part / UNFINISHED).touch()
        except OSError as error:
            raise unwritable(str(self.part), error) from None
        return str(self.part.resolve())

    def finish(self, files: Sequence[str], run: str) -> None:
        """Name the reported files, write the run file, and give the folder its name.

        What has that name is removed only now.
        """
        try:
            for number, file in enumerate(files):
                suffix = Path(file).suffix.removeprefix(".")
                (self.part / file).rename(self.part / part_name(number, len(files), suffix))
            for stray in self.part.iterdir():
                if not stray.name.startswith("part-"):
                    _remove(stray)
            (self.part / self._run_file).write_text(run, encoding="utf-8")
            if os.path.lexists(self.path):
                _remove(self.path)
            self.part.rename(self.path)
        except OSError as error:
            raise unwritable(str(self.path), error) from None

    def abandon(self) -> None:
        """Leave nothing of a failed run behind."""
        shutil.rmtree(self.part, ignore_errors=True)


def _refused(message: str, place: Path, hint: str) -> RefusedError:
    return RefusedError.of("D5001", message, place=str(place), hint=hint)


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
