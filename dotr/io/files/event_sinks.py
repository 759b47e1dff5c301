"""Where the events of a run go: text to any output, a stream of Jelly, or a Parquet file.

Place:   `dotr run` opens one; formats come from event_formats.py and event_table.py, outputs from outputs.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from dotr.errors import EngineError
from dotr.events import Clock, Composite
from dotr.io.event_formats import Formatter, nquads
from dotr.io.files.outputs import FileOutput, Output, unwritable

if TYPE_CHECKING:
    from dotr.io.event_table import EventTableWriter
    from dotr.io.jelly_frames import JellyFrames


class EventSink(Protocol):
    """Takes events in order; `flush` makes them visible, `finish` ends it well, `abandon` otherwise."""

    def write(self, events: Sequence[Composite], clock: Clock) -> None: ...

    def flush(self) -> None: ...

    def finish(self) -> None: ...

    def abandon(self) -> None: ...


class TextSink(Struct):
    """Events as text."""

    format: Formatter
    output: Output

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self.output.write(self.format(events, clock))

    def flush(self) -> None:
        self.output.flush()

    def finish(self) -> None:
        self.output.finish()

    def abandon(self) -> None:
        self.output.abandon()


class JellySink(Struct):
    """Events as frames of Jelly, those that are written together in one."""

    output: Output
    frames: JellyFrames

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self.output.write_bytes(self.frames.frame(nquads(events, clock)))

    def flush(self) -> None:
        self.output.flush()

    def finish(self) -> None:
        self.output.write_bytes(self.frames.frame(""))  # the options, where nothing else was written
        self.output.finish()

    def abandon(self) -> None:
        self.output.abandon()


class ParquetSink(Struct):
    """Events as rows of a Parquet file, which grows beside its name as every output does."""

    output: FileOutput
    _writer: EventTableWriter | None = None
    _broken: bool = False

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        try:
            self._opened(clock).add(events)
        except OSError as error:
            raise self._unwritable(error) from None

    def flush(self) -> None:
        """Rows of a Parquet file are there when it is complete."""

    def finish(self) -> None:
        self._close()
        self.output.finish()

    def abandon(self) -> None:
        """What was emitted so far can be read, unless the file could not be written: nobody can read a
        Parquet file without its end.
        """
        if not self._broken:
            with suppress(EngineError):  # what ends the run is reported already
                self._close()
        if self._broken:
            self.output.discard()
        else:
            self.output.abandon()

    def _opened(self, clock: Clock) -> EventTableWriter:
        if self._writer is None:
            from dotr.io.event_table import EventTableWriter  # noqa: PLC0415  # start-up: Arrow takes 0.3 s

            self._writer = EventTableWriter(str(self.output.part), clock)
        return self._writer

    def _close(self) -> None:
        try:
            self._opened(Clock()).close()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> EngineError:
        self._broken = True
        return unwritable(str(self.output.path), error)
