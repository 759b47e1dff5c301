"""Enriched graphs as JSON lines: what holds at an instant beside the background.

Place:   `--emit-state` of `dotr run` and `dotr batch`; a line is a graph of a stream, which dotr reads again.
Method:  the triples of an instant that are not of the background alone, stated or derived, sorted, blank
         nodes as the run labelled them: one line an instant, the same whichever runner wrote it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from uuid import uuid4

from dotr.events import Clock, Time
from dotr.io.files.outputs import Output, open_output, unwritable
from dotr.io.output_formats import format_of_name
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
