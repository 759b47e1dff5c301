"""How far every file is consumed, and for which bytes that is true.

Place:   the positions of file_source.py, and of what reads again what was fed.
Method:  a file is known by its path and the hash of the bytes consumed (decompressed); while those are
         unchanged, feeding goes on behind them, else it is a new file. Of a stream that is read by the byte
         only what was added since the last commit is hashed; other documents are hashed once, whole.
Why not: size and modification time: a copy changes them, an edit in place need not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from msgspec import Struct, field

from dotr.errors import EngineError
from dotr.io.decode.compression import is_packed
from dotr.io.decode.documents import open_document, parts_of, read_some
from dotr.io.graph_source import Position, PositionOf
from dotr.io.graphs import START, Bookmark, Item, Mark

_PART = 1 << 20


def _hash() -> blake2b:
    return blake2b(digest_size=16)


class FilePosition(NamedTuple):
    """A position in one file: a bookmark, and the size and hash of the bytes that it is true for."""

    how: str
    end: int
    carried: str
    size: int
    hash: str
    finished: bool

    @classmethod
    def of(cls, stored: Position) -> FilePosition:
        """What was stored of one. Raises EngineError D5105."""
        try:
            how, end, carried, size, hash_, finished = stored
            if [*map(type, (how, end, carried, size, hash_))] != [str, int, str, int, str]:
                raise TypeError
        except (TypeError, ValueError):
            raise EngineError.of(
                "D5105",
                "what is stored of a file says no position in it",
                hint="deploy again with another --dir, and feed again from the start",
            ) from None
        return cls(how, end, carried, size, hash_, bool(finished))


class ResumePlan(Struct):
    """What is left to read of some files: where to go on, and what is done."""

    files: list[str] = field(default_factory=list)
    bookmarks: dict[str, Bookmark] = field(default_factory=dict)
    limited: bool = False
    """Whether a file has more than this reading takes: read again afterwards."""


class FilePositions(Struct):
    """Owns the positions that the next commit records, and the hashes of files that are being read.

    Only regular files are kept; standard input and pipes cannot be read again.
    """

    changed: dict[str, str] = field(default_factory=dict)
    """Files that are read from their beginning again → what became of the bytes that were fed."""
    _latest: dict[str, Item] = field(default_factory=dict)
    _growing: dict[str, tuple[blake2b, int]] = field(default_factory=dict)
    """Files read by the byte → hash of the first so many bytes."""
    _whole: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Other files being read → size and hash of all of it, as it was when reading began."""

    def plan(self, files: Sequence[str], position_of: PositionOf) -> ResumePlan:
        """What to read of `files`. Hashes the consumed bytes of each again. Raises DataError."""
        plan = ResumePlan()
        for file in files:
            position = self._position(file, position_of) if os.path.isfile(file) else None
            rest = START if position is None else self._rest(file, position)
            if rest is None:
                continue
            plan.files.append(file)
            plan.bookmarks[file] = rest
            plan.limited = plan.limited or bool(rest.limit)
        return plan

    def _position(self, file: str, position_of: PositionOf) -> FilePosition | None:
        """How far a file is consumed: by what is not committed yet, if anything, else by the last commit."""
        if file in self._latest:
            return self._row(file, self._latest[file])
        stored = position_of(_key(file))
        return None if stored is None else FilePosition.of(stored)

    def _rest(self, file: str, row: FilePosition) -> Bookmark | None:
        """Where to go on in a file that was read before; None when there is nothing left of it."""
        hashed, size = _hash(), 0
        with open_document(file) as document:
            for part in parts_of(document, row.size, file):
                hashed.update(part)
                size += len(part)
            more = bool(read_some(document, 1, file))
        if size != row.size or hashed.hexdigest() != row.hash or (row.how == "whole" and more):
            self.changed[file] = "changed"
            if size < row.size:
                self.changed[file] = "shrank" if size else "was emptied"
            return START
        if row.finished and not more:
            return None
        if row.how == "byte" and row.end == size:
            self._growing[file] = (hashed, size)
        elif not row.finished:
            self._whole[file] = (row.size, row.hash)
        limit = row.size if more and not row.finished and row.how != "byte" else 0
        return Bookmark(row.how, row.end, row.carried, limit)

    def consumed(self, item: Item) -> None:
        """Everything up to and with this item is consumed."""
        if item.file != "<stdin>":
            self._latest[item.file] = item

    def changes(self) -> Mapping[str, Position]:
        """The positions of the next commit. Reads what was consumed since the last one. Raises DataError."""
        rows = ((file, self._row(file, item)) for file, item in self._latest.items() if os.path.isfile(file))
        return {_key(file): row for file, row in rows}

    def _row(self, file: str, item: Item) -> FilePosition:
        how, end, carried = item.how, item.end, item.carried
        if how == "whole" and carried:  # the reader had all of it in hand
            return FilePosition(how, end, "", end, carried, finished=True)
        if how == "whole":  # the rest of a stream was refused
            size, digest = self._measured(file)
            return FilePosition("byte", size, "", size, digest, finished=True)
        finished = isinstance(item, Mark) and item.error is None
        if how == "byte" and not is_packed(file):
            return FilePosition(how, end, carried, end, self._grown(file, end), finished)
        if isinstance(item, Mark) and finished and self._whole.get(file, (0, ""))[0] != item.size:
            self._whole.pop(file, None)  # it grew while it was read
        if file not in self._whole:
            self._whole[file] = self._measured(file)
        return FilePosition(how, end, carried, *self._whole[file], finished)

    def committed(self) -> None:
        """The changes are in the journal."""
        for file, item in self._latest.items():
            if item.how == "whole" or (isinstance(item, Mark) and item.error is None):
                self._growing.pop(file, None)
                self._whole.pop(file, None)
        self._latest.clear()

    def _grown(self, file: str, end: int) -> str:
        """The hash of the first `end` bytes, from that of fewer."""
        hashed, upto = self._growing.get(file, (_hash(), 0))
        if upto < end:
            with open_document(file) as document:
                document.seek(upto)
                for part in parts_of(document, end - upto, file):
                    hashed.update(part)
        self._growing[file] = (hashed, end)
        return hashed.hexdigest()

    def _measured(self, file: str) -> tuple[int, str]:
        """Size and hash of a whole file, decompressed."""
        hashed, size = _hash(), 0
        with open_document(file) as document:
            while part := read_some(document, _PART, file):
                hashed.update(part)
                size += len(part)
        return size, hashed.hexdigest()


def _key(file: str) -> str:
    return os.path.realpath(file)


def is_as_fed(file: str, position: FilePosition) -> bool:
    """Whether a file has the bytes that its position is true for."""
    hashed, size = _hash(), 0
    with open_document(file) as document:
        for part in parts_of(document, position.size, file):
            hashed.update(part)
            size += len(part)
    return size == position.size and hashed.hexdigest() == position.hash
