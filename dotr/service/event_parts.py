"""A deployment's output as a folder of Parquet or Jelly files, one for each commit that has events.

Place:   what `dotr feed -o x.parquet` and `-o x.jelly` write; feed.py prepares it at every commit, as it does
         files.
Method:  the journal records how many files are committed. A file gets its name when it is whole and on disk,
         before the commit; after a crash what is beyond the committed ones is removed at the next start.
Why not: one file that grows: a Parquet file is complete only with its end, and frames of Jelly refer to
         tables that their writer has in memory.
Bad state: D5001 a folder with something else in it · D5206 another format · D5207 a committed file is gone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dotr.errors import EngineError, RefusedError
from dotr.events import Clock, Composite
from dotr.io.files.outputs import unwritable
from dotr.service.journal import Journal
from dotr.service.records import OutputLength

if TYPE_CHECKING:
    from dotr.io.event_table import EventTableWriter
    from dotr.io.jelly_frames import JellyEventWriter

PART_FORMATS = ("parquet", "jelly")
"""Those written so; each is also the ending of its files."""

_ENDINGS = tuple(f".{name}" for name in PART_FORMATS)


class EventParts:
    """Owns one folder of a deployment's events from opening to close; `length` files are committed. See
    `Sink`.
    """

    exactly_once = True

    def __init__(
        self, journal: Journal, path: str, overwrite: bool = False, format_: str = "parquet"
    ) -> None:
        """Raises RefusedError for a folder that is not this deployment's to continue, EngineError D4201."""
        self.path = os.path.realpath(path)
        self._name = path
        self._format = format_
        self._disk = journal.disk
        self._writer: EventTableWriter | JellyEventWriter | None = None
        row = journal.outputs().get(self.path)
        if row is not None and row.format != format_ and not overwrite:
            raise _refused(
                "D5206", path, f"was begun as {row.format}, not as {format_}", f"--format {row.format}"
            )
        if row is None and self._occupied():
            raise _refused(
                "D5001", path, "exists and is not an output of this deployment", "give another name"
            )
        self.length = self._prepared = 0 if row is None or overwrite else row.length
        if row is None or overwrite:
            journal.register_output(self.path, format_)
        self._tidy()

    def _occupied(self) -> bool:
        if not os.path.lexists(self.path):
            return False
        return not os.path.isdir(self.path) or bool(os.listdir(self.path))

    def _tidy(self) -> None:
        """The folder as of the last commit. Raises RefusedError D5207 where it has less than that."""
        try:
            os.makedirs(self.path, exist_ok=True)
            there = set(os.listdir(self.path))
            wanted = {self._part(number) for number in range(self.length)}
            for name in there - wanted:
                if name.startswith(("part-", ".part-")) and name.endswith(_ENDINGS):
                    os.unlink(os.path.join(self.path, name))
        except OSError as error:
            raise unwritable(self._name, error) from None
        if gone := sorted(wanted - there):
            raise _refused(
                "D5207",
                self._name,
                f"has lost `{gone[0]}`, which was committed",
                "put it back, or --overwrite",
            )

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        """Add events; they count from the next commit on. Raises EngineError D4201."""
        try:
            if self._writer is None:
                self._writer = self._opened(clock)
            self._writer.add(events)
        except OSError as error:
            raise unwritable(self._name, error) from None

    def _opened(self, clock: Clock) -> EventTableWriter | JellyEventWriter:
        if self._format == "jelly":
            from dotr.io.jelly_frames import JellyEventWriter  # noqa: PLC0415  # an extra

            return JellyEventWriter(self._growing, clock)
        from dotr.io.event_table import EventTableWriter  # noqa: PLC0415  # start-up: Arrow takes 0.3 s

        return EventTableWriter(self._growing, clock)

    def resume(self, commit: int) -> None:
        """The journal's number of files was enough to go on."""

    def prepare(self, commit: int) -> dict[str, OutputLength]:
        """Everything on disk; the number of files that the journal may record. Raises EngineError D4201."""
        self._prepared = self._settled()
        return {self.path: OutputLength(self._prepared)}

    def confirm(self, commit: int) -> None:
        """The journal has the number."""
        self.length = self._prepared

    def _settled(self) -> int:
        if self._writer is None:
            return self.length
        try:
            self._writer.close()
            self._writer = None
            file = os.open(self._growing, os.O_RDONLY)
            try:
                self._disk.sync(file)
            finally:
                os.close(file)
            os.replace(self._growing, os.path.join(self.path, self._part(self.length)))
        except OSError as error:
            raise unwritable(self._name, error) from None
        return self.length + 1

    @property
    def _growing(self) -> str:
        return os.path.join(self.path, f".{self._part(self.length)}")

    def _part(self, number: int) -> str:
        return f"part-{number:06}.{self._format}"

    def close(self) -> None:
        """Drop what was not committed, as far as the disk lets us; the next start does it anyway."""
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()
            self._writer = None
        with suppress(EngineError, RefusedError):
            self._tidy()


def _refused(code: str, path: str, what: str, hint: str) -> RefusedError:
    return RefusedError.of(code, f"`{path}` {what}", place=path, hint=hint)
