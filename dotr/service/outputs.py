"""Where a feed's events go, and how that agrees with its commits: files, folders of files, sinks.

Place:   feed.py writes, prepares and confirms; lengths and numbers of files are in the journal.
Method:  two phases, as in Flink's sinks. `prepare` makes everything written since the last commit safe,
         without making it visible; then the journal commits; `confirm` makes it visible. A crash between the
         two leaves a prepared commit: at the next start `resume` learns which commit the journal has; what
         was prepared for it is confirmed, what was prepared for a later one is dropped. So a queue or a
         database with transactions is exactly-once as files are; a sink without them reports that it is
         at-least-once.
         Files: they grow by commits. A file is registered before it is created; only a file of this
         deployment is continued. At a commit its bytes are synced before the journal records its length and a
         hash of the last of them; at a start it is cut to that length, and must have that end.
         Folders: one Parquet or Jelly file for each commit that has events (`dotr feed -o x.parquet`,
         `-o x.jelly`). The journal records how many are committed. A file gets its name when it is complete
         and on disk, before the commit; after a crash, files beyond the committed ones are removed at the
         next start.
Why not: one Parquet or Jelly file that grows: a Parquet file is complete only with its end, and frames of
         Jelly refer to tables that their writer has in memory.
Bad state: D5001 a foreign file, or a folder with something else in it · D5206 another format · D5207 shorter
           than what was committed, or a committed file is gone · D5212 another head · D5213 other bytes than
           were committed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct

from dotr.errors import EngineError, RefusedError
from dotr.events import Clock, Composite, Time
from dotr.io.decode.documents import HEAD, DamagedError, unpacked
from dotr.io.events import BINARY, ENDINGS, EVENT_FORMATS, EventFile, EventSink, Formatter
from dotr.io.outputs import packer_for, packing_of, unwritable
from dotr.service.journal import Journal, OutputLength, Prepared

_BUFFER = 1 << 16
_TAIL = 1 << 16
"""Bytes of the end of a file that are hashed."""


class AppendingFile:
    """Owns one output file of a deployment from opening to close. See `CommittedOutput`."""

    exactly_once = True

    def __init__(
        self, journal: Journal, path: str, format_: str, overwrite: bool = False, *, packed: bool = False
    ) -> None:
        """`packed`: compressed as the name says, each commit as a gzip member or Zstandard frame of its own.
        Raises RefusedError for a file that is not this deployment's to continue, EngineError D4201.
        """
        self.path = os.path.realpath(path)
        self._name = path
        self._disk = journal.disk
        self._packer = packer_for(path) if packed else None
        if self._packer is not None:
            format_ = f"{format_}.{packing_of(path)}"
        self._parts: list[str] = []
        self._size = self._prepared = 0
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            folder = os.path.isdir(self.path)
            number, what = (21, "a folder") if folder else (22, "not a file")
            raise unwritable(path, OSError(number, f"is {what}"))
        row = journal.outputs().get(self.path)
        if row is not None and row.format != format_ and not overwrite:
            begun = row.format.partition(".")[0]
            other = "" if begun == format_.partition(".")[0] else f"--format {begun}, "
            raise RefusedError.of(
                "D5206",
                f"`{path}` was begun as {row.format}, not as {format_}",
                place=path,
                hint=f"give {other}another file, or --overwrite",
            )
        if row is not None and not overwrite:
            self.length, self.tail = row.length, row.tail
            self._file = self._reopened()
        else:
            self.length, self.tail = 0, ""
            self._file = self._created(journal, format_, overwrite)

    def _created(self, journal: Journal, format_: str, overwrite: bool) -> int:
        if os.path.lexists(self.path) and not overwrite:
            raise self._foreign()
        journal.register_output(self.path, format_)
        try:
            if overwrite:
                with suppress(FileNotFoundError):
                    os.unlink(self.path)
            return self._disk.create(self.path)
        except FileExistsError:
            journal.forget_output(self.path)
            raise self._foreign() from None
        except OSError as error:
            with suppress(EngineError):  # else a file that somebody puts here later would pass as ours
                journal.forget_output(self.path)
            raise unwritable(self._name, error) from None

    def _reopened(self) -> int:
        """The file, cut back to its committed length."""
        try:
            if not self.length and not os.path.lexists(self.path):
                return self._disk.create(self.path)
            file = os.open(self.path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            raise self._shorter("it is gone") from None
        except OSError as error:
            raise unwritable(self._name, error) from None
        try:
            size = os.fstat(file).st_size
            if size < self.length:
                raise self._shorter(f"it has {size} of {self.length} bytes")
            if self.tail and _tail(file, self.length) != self.tail:
                raise self._replaced()
            self._disk.truncate(file, self.length)
            os.lseek(file, self.length, os.SEEK_SET)
        except OSError as error:
            os.close(file)
            raise unwritable(self._name, error) from None
        except RefusedError:
            os.close(file)
            raise
        return file

    def _foreign(self) -> RefusedError:
        return RefusedError.of(
            "D5001",
            f"`{self._name}` exists and is not an output of this deployment",
            place=self._name,
            hint="give another name, or --overwrite",
        )

    def _shorter(self, found: str) -> RefusedError:
        return RefusedError.of(
            "D5207",
            f"`{self._name}` has lost output that was committed",
            place=self._name,
            label=found,
            hint="restore it, or give --overwrite to begin the file again with the events to come",
        )

    def _replaced(self) -> RefusedError:
        return RefusedError.of(
            "D5213",
            f"`{self._name}` has other bytes than were committed",
            place=self._name,
            notes=("it is as long as before, or longer, but its end is not the same",),
            hint="restore it, or give --overwrite to begin the file again with the events to come",
        )

    def refuse_other_head(self, head: str) -> None:
        """Raise RefusedError D5212 where a file that goes on does not begin with `head`: what follows would
        not be read as it is meant.
        """
        wanted = head.encode()
        try:
            with open(self.path, "rb") as file:
                packed = None if self._packer is None else unpacked(file, file.read(HEAD), self._name)
                file.seek(0)
                found = (packed or file).read(len(wanted) + 200)
        except DamagedError:
            found = b""
        except OSError as error:
            raise unwritable(self._name, error) from None
        if not found.startswith(wanted):
            first = found.decode("utf-8", "replace").split("\n")[0]
            raise RefusedError.of(
                "D5212",
                f"the head of `{self._name}` is not that of these rules",
                place=self._name,
                label=first,
                notes=(f"it would be: {head.splitlines()[0]}",),
                hint="give another name, or --overwrite to begin the file again with the events to come",
            )

    def write(self, text: str) -> None:
        """Append text; it counts from the next commit on."""
        self._parts.append(text)
        self._size += len(text)
        if self._size >= _BUFFER:
            self.flush()

    def letter(self, line: str, place: str = "", time: Time | None = None) -> None:
        """Append a dead letter, or a late graph. See `LetterOutput`."""
        self.write(f"{line}\n")

    def flush(self) -> None:
        """Hand what was written to the operating system. Raises EngineError D4201."""
        content = "".join(self._parts).encode()
        self._parts.clear()
        self._size = 0
        self._put(content if self._packer is None else self._packer.add(content))

    def _put(self, content: bytes) -> None:
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[self._disk.write(self._file, bytes(rest)) :]
        except OSError as error:
            raise unwritable(self._name, error) from None

    def resume(self, commit: int) -> None:
        """The journal's length was enough to go on."""

    def prepare(self, commit: int) -> Prepared:
        """Everything on disk; the length and the tail that the journal may record. Raises D4201."""
        self._prepared = self._settled()
        return Prepared({self.path: OutputLength(self._prepared, self.tail)})

    def confirm(self, commit: int) -> None:
        """The journal has the length."""
        self.length = self._prepared

    def _settled(self) -> int:
        self.flush()
        if self._packer is not None:
            self._put(self._packer.end())
        try:
            self._disk.sync(self._file)
            length = os.lseek(self._file, 0, os.SEEK_CUR)
            if length != self.length or not self.tail:
                self.tail = _tail(self._file, length)
            return length
        except OSError as error:
            raise unwritable(self._name, error) from None

    def close(self) -> None:
        """Drop what was not committed, as far as the disk lets us; the next start does it anyway."""
        self._parts.clear()
        if self._packer is not None:
            self._packer.close()
        with suppress(OSError):
            self._disk.truncate(self._file, self.length)
        os.close(self._file)


def _tail(file: int, length: int) -> str:
    """The hash of the last bytes of the first `length`, behind which the file stands afterwards."""
    hashed = blake2b(digest_size=16)
    os.lseek(file, max(0, length - _TAIL), os.SEEK_SET)
    left = min(length, _TAIL)
    while left and (part := os.read(file, left)):
        hashed.update(part)
        left -= len(part)
    os.lseek(file, length, os.SEEK_SET)
    return hashed.hexdigest()


_ENDINGS = tuple(f".{ENDINGS[name]}" for name in BINARY)


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
        file = EVENT_FORMATS[format_].file
        assert file is not None, "a text grows instead"
        self._file, self._ending = file, ENDINGS[format_]
        self._disk = journal.disk
        self._writer: EventFile | None = None
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
                "restore it, or give --overwrite",
            )

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        """Add events; they count from the next commit on. Raises EngineError D4201."""
        try:
            if self._writer is None:
                self._writer = self._file(self._growing, clock)
            self._writer.add(events)
        except OSError as error:
            raise unwritable(self._name, error) from None

    def resume(self, commit: int) -> None:
        """The journal's number of files was enough to go on."""

    def prepare(self, commit: int) -> Prepared:
        """Everything on disk; the number of files that the journal may record. Raises EngineError D4201."""
        self._prepared = self._settled()
        return Prepared({self.path: OutputLength(self._prepared)})

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
        return f"part-{number:06}.{self._ending}"

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


class CommittedOutput(Protocol):
    """What grows by commits, which are numbered from 1."""

    @property
    def exactly_once(self) -> bool:
        """False: after a crash what followed the last commit may come again."""

    def resume(self, commit: int) -> None:
        """A feed begins; the journal has commits up to this one. Confirms it, drops what is later."""

    def prepare(self, commit: int) -> Prepared:
        """Everything that was written is safe, but for rows that the journal is to take over. May be called
        again with the same number after a commit that failed. Raises EngineError.
        """

    def confirm(self, commit: int) -> None:
        """The journal has the commit. May be called twice."""

    def close(self) -> None:
        """Let go; what no commit has is dropped."""


class Sink(CommittedOutput, Protocol):
    """Takes events, in order."""

    def write(self, events: Sequence[Composite], clock: Clock) -> None: ...


class LetterOutput(CommittedOutput, Protocol):
    """Takes dead letters, or late graphs, as JSON lines without ends. `place`: where a graph comes from, if
    its line does not say so; `time`: of the graph, if it has one.
    """

    def letter(self, line: str, place: str = "", time: Time | None = None) -> None: ...


class FileSink(Struct):
    """Events as text in a file."""

    format: Formatter
    file: AppendingFile
    exactly_once: bool = True

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self.file.write(self.format(events, clock))

    def resume(self, commit: int) -> None:
        self.file.resume(commit)

    def prepare(self, commit: int) -> Prepared:
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

    def prepare(self, commit: int) -> Prepared:
        self.sink.flush()
        return Prepared()

    def confirm(self, commit: int) -> None:
        """It is out already."""

    def close(self) -> None:
        """Whoever opened it closes it."""


class SinkOfRules(Struct):
    """The events of some rules alone, in another sink."""

    sink: Sink
    rules: frozenset[str]

    @property
    def exactly_once(self) -> bool:
        return self.sink.exactly_once

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self.sink.write([event for event in events if event.rule in self.rules], clock)

    def resume(self, commit: int) -> None:
        self.sink.resume(commit)

    def prepare(self, commit: int) -> Prepared:
        return self.sink.prepare(commit)

    def confirm(self, commit: int) -> None:
        self.sink.confirm(commit)

    def close(self) -> None:
        self.sink.close()
