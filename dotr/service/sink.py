"""Where a feed's events go, and how that agrees with its commits.

Place:   feed.py writes, prepares and confirms; files are in appending_files.py and event_parts.py.
Method:  two phases, as Flink's sinks have them. `prepare` makes everything safe that was written since the
         last commit, without anybody seeing it; then the journal commits; `confirm` makes it visible. A crash
         between the two leaves a prepared commit: at the next start `resume` says which commit the journal
         has, and what was prepared for it is confirmed, what was prepared for a later one is dropped. So a
         queue or a database with transactions is exactly-once as files are; what has none says that it is
         at-least-once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from dotr.events import Clock, Composite
from dotr.io.event_formats import Formatter
from dotr.io.files.event_sinks import EventSink
from dotr.service.appending_files import AppendingFile
from dotr.service.records import OutputLength


class CommittedOutput(Protocol):
    """What grows by commits, which are numbered from 1."""

    exactly_once: bool
    """False: after a crash what followed the last commit may come again."""

    def resume(self, commit: int) -> None:
        """A feed begins; the journal has commits up to this one. Confirms it, drops what is later."""

    def prepare(self, commit: int) -> dict[str, OutputLength]:
        """Everything that was written is safe; what the journal is to record, by path, for files. May be
        called again with the same number after a commit that failed. Raises EngineError.
        """

    def confirm(self, commit: int) -> None:
        """The journal has the commit. May be called twice."""

    def close(self) -> None:
        """Let go; what no commit has is dropped."""


class Sink(CommittedOutput, Protocol):
    """Takes events, in order."""

    def write(self, events: Sequence[Composite], clock: Clock) -> None: ...


class FileSink(Struct):
    """Events as text in a file."""

    format: Formatter
    file: AppendingFile
    exactly_once: bool = True

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self.file.write(self.format(events, clock))

    def resume(self, commit: int) -> None:
        self.file.resume(commit)

    def prepare(self, commit: int) -> dict[str, OutputLength]:
        return self.file.prepare(commit)

    def confirm(self, commit: int) -> None:
        self.file.confirm(commit)

    def close(self) -> None:
        self.file.close()


class StreamSink(Struct):
    """Events in what cannot take anything back: standard output, a pipe, a device."""

    sink: EventSink
    exactly_once: bool = False

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self.sink.write(events, clock)

    def resume(self, commit: int) -> None:
        """Nothing can be taken back."""

    def prepare(self, commit: int) -> dict[str, OutputLength]:
        self.sink.flush()
        return {}

    def confirm(self, commit: int) -> None:
        """It is out already."""

    def close(self) -> None:
        """Whoever opened it closes it."""
