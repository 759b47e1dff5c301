"""Output of a batch: files `part-*`, complete or not there.

Place:   a task writes its own file into the folder of an unfinished run and reports its name; the driver
         gives the folder its name when everything is done.
Method:  a run grows in `DIR.part`; every task attempt has a file name of its own, and only the reported ones
         get their final name, so that an attempt that died or was run twice leaves nothing.
Why not: the engine's own text writer. It knows neither these formats nor what counts as an event's line.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from dotr.errors import Diagnostic, RefusedError
from dotr.events import Clock, Composite
from dotr.io.arrow_columns import column
from dotr.io.files.outputs import unwritable
from dotr.io.sinks import format_graph, format_jsonl, format_match, nquads

SUFFIXES = {"jsonl": "jsonl", "nquads": "nq", "parquet": "parquet"}
"""`--format` → what the files' names end in."""

RUN_FILE = "_dotr_run.json"
"""Says what ran, when, and how much came out; it is in every finished folder."""

UNFINISHED = "_dotr_unfinished"
"""Marks the folder of a run that has not ended, so that only our own leavings are ever removed."""

_ROWS = 4096


def event_schema(clock: Clock) -> pa.Schema:
    """The columns of an event: time in the form of the input, terms of `bindings` as N-Triples."""
    time = pa.int64() if clock.integer else pa.timestamp("us", tz="UTC")
    return pa.schema(
        [
            ("time", time),
            ("rule", pa.string()),
            ("id", pa.string()),
            ("bindings", pa.map_(pa.string(), pa.string())),
            ("match", pa.string()),
            ("graph", pa.string()),
        ]
    )


def event_batch(events: Sequence[Composite], clock: Clock) -> pa.RecordBatch:
    """Events as rows of `event_schema`. Integer times are in the clock's unit."""
    unit = clock.unit if clock.integer else 1
    schema = event_schema(clock)
    columns: list[list[object]] = [
        [event.time // unit for event in events],
        [event.rule for event in events],
        [event.id for event in events],
        [list(event.bindings) for event in events],
        [format_match(event, clock) for event in events],
        [format_graph(event) for event in events],
    ]
    arrays = [column(values, kind.type) for values, kind in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(slots=True)
class Written:
    """What one task wrote. `file` is "" where it had no event."""

    file: str
    counts: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    parts: int = 0


def write_events(folder: str, format_: str, clock: Clock, events: Iterable[Composite]) -> Written:
    """Write a task's events to a file of its own in `folder`; no file without events. Raises EngineError."""
    written = Written("")
    name = f"{uuid4().hex}.{SUFFIXES[format_]}"
    buffer: list[Composite] = []
    save: Callable[[Sequence[Composite]], None] | None = None
    close: Callable[[], None] = lambda: None  # noqa: E731  # nothing is open yet
    path = os.path.join(folder, name)
    try:
        for event in events:
            written.counts[event.rule] = written.counts.get(event.rule, 0) + 1
            buffer.append(event)
            if len(buffer) >= _ROWS:
                if save is None:
                    save, close = _open(path, format_, clock)
                save(buffer)
                buffer = []
        if buffer:
            if save is None:
                save, close = _open(path, format_, clock)
            save(buffer)
        close()
    except OSError as error:
        raise unwritable(path, error) from None
    if save is not None:
        written.file = name
    return written


def _open(
    path: str, format_: str, clock: Clock
) -> tuple[Callable[[Sequence[Composite]], None], Callable[[], None]]:
    """(how to write some events, how to end)."""
    if format_ == "parquet":
        writer = pq.ParquetWriter(path, event_schema(clock), compression="zstd")
        return lambda events: writer.write_batch(event_batch(events, clock)), writer.close
    file = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115  # closed by the caller

    def close() -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def write(events: Sequence[Composite]) -> None:
        file.write(event_text(events, format_, clock))

    return write, close


def event_text(events: Sequence[Composite], format_: str, clock: Clock) -> str:
    """Events in a text format: their lines, with their ends."""
    if format_ == "jsonl":
        return "".join([f"{format_jsonl(event, clock)}\n" for event in events])
    return nquads(events, clock)


def part_name(number: int, of: int, suffix: str) -> str:
    """The name of an output file."""
    return f"part-{number:0{max(5, len(str(of)))}}.{suffix}"


class Folder(Protocol):
    """Where a run's output grows and, when it is complete, gets its name."""

    def open(self) -> str: ...

    def finish(self, files: Sequence[str], run: str) -> None: ...

    def abandon(self) -> None: ...


class OutputFolder:
    """Owns `DIR.part` from the start of a run to `finish`, when it takes the name `DIR`. A finished folder
    is known by its `run_file`.

    Raises RefusedError D5001 at once when DIR or DIR.part has something in it and `overwrite` is not set.
    """

    def __init__(
        self, path: str, overwrite: bool, run_file: str = RUN_FILE, verb: str = "dotr batch"
    ) -> None:
        self._run_file = run_file
        self.path = Path(path)
        if not self.path.name:
            raise _refused(f"`{path}` is no name for an output", self.path, "give another name")
        self.part = self.path.with_name(self.path.name + ".part")
        self._overwrite = overwrite
        for there in (self.path, self.part):
            if not os.path.lexists(there) or _is_empty_folder(there):
                continue
            if not overwrite:
                what = "was left by a run that did not finish" if there == self.part else "exists"
                raise _refused(f"`{there}` {what}", there, "give another name, or --overwrite")
            if not (there / run_file).is_file() and not (there / UNFINISHED).is_file():
                raise _refused(f"`{there}` is no output of `{verb}`", there, "give another name")

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

        What stands at the old name is removed only now.
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
    return RefusedError(Diagnostic("D5001", message, place=str(place), hint=hint))


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
