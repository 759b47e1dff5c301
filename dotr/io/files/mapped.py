"""Files that are read as they are needed: mapped into memory, or brought into memory of this process alone.

Place:   batch/, service/ and knowledge_base/ write (whole_files.py) and open what rdf/mapped_columns.py makes
         of an index.
Method:  what dotr keeps in folders of its own is mapped: it is never changed afterwards, and all processes
         share it. A file that a user names may be overwritten in place by anybody, which ends a process that
         has it mapped (SIGBUS): its blocks are copied when they are first needed, and tested then.
Why not: reading all of a user's file at once: opening two million triples would take a second.
"""

from __future__ import annotations

import mmap as mmap_module
import os
import stat
import sys
from collections.abc import Iterable
from hashlib import blake2b
from mmap import ACCESS_READ, mmap
from threading import Lock
from typing import Any
from weakref import finalize

from dotr.errors import EngineError
from dotr.io.decode.documents import unreadable
from dotr.rdf.checked_blocks import damaged

if sys.platform != "win32":
    from mmap import MAP_ANONYMOUS, MAP_PRIVATE

_BLOCK = 14
"""The size of what is copied at once, as a power of two."""


def mapped(path: str) -> mmap:
    """The content of a file. Raises DataError D2003, EngineError D5101 for an empty one."""
    try:
        with open(path, "rb") as file:
            return mmap(file.fileno(), 0, access=ACCESS_READ)
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:  # nothing can be mapped of an empty file
        raise damaged() from None


class CopiedFile:
    """Owns a file and the memory that its blocks are copied into, each once, when it is first read; see
    `dotr.rdf.checked_blocks.Filled`. Any number of threads may read.

    `error`: what is raised where the file is not what was opened. Raises DataError D2003.
    """

    def __init__(self, path: str, error: EngineError) -> None:
        self._path, self._error = path, error
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for whoever writes
                raise OSError(22, "is not a file")
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            finalize(self, os.close, self._file)
            self._size = os.fstat(self._file).st_size
        except OSError as failure:
            raise unreadable(path, failure) from None
        if not self._size:
            raise error
        self.memory = _memory(self._size)
        self._there = bytearray(-(-self._size >> _BLOCK))
        self._lock = Lock()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: slice, /) -> bytes:
        first, last, _ = place.indices(self._size)
        self.fill(first, last)
        return self.memory[first:last]

    def find(self, what: bytes, first: int, last: int, /) -> int:
        self.fill(first, last)
        return self.memory.find(what, first, last)

    def fill(self, first: int, last: int) -> None:
        """Copy what was not yet copied of `memory[first:last]`. Raises EngineError, DataError."""
        last = min(last, self._size)
        there = self._there
        if first >= last or there.find(0, first >> _BLOCK, (last - 1 >> _BLOCK) + 1) < 0:
            return
        with self._lock:
            at = there.find(0, first >> _BLOCK, (last - 1 >> _BLOCK) + 1)
            while at >= 0:
                begin, end = at << _BLOCK, min(at + 1 << _BLOCK, self._size)
                try:
                    content = _read(self._file, end - begin, begin)
                except OSError as failure:
                    raise unreadable(self._path, failure) from None
                if len(content) != end - begin:
                    raise self._error
                self.memory[begin:end] = content
                there[at] = 1
                at = there.find(0, at, (last - 1 >> _BLOCK) + 1)

    def damaged(self) -> EngineError:
        return self._error


def _memory(size: int) -> mmap:
    """So many bytes, none of which takes room before it is written."""
    if sys.platform == "win32":
        return mmap(-1, size)
    return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS | getattr(mmap_module, "MAP_NORESERVE", 0))


def _read(file: int, size: int, at: int) -> bytes:
    """Bytes of a file from a place on; fewer where it ends."""
    if sys.platform != "win32":
        return os.pread(file, size, at)  # processes that have the file from their parent share its position
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, size)


def content_name(parts: Iterable[Any]) -> str:
    """A name for bytes: 32 hexadecimal digits."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.hexdigest()
