"""Bytes under a hash a block, tested when something of a block is first read.

Place:   under mapped_columns.py, whose body is such blocks; packed_columns.py and datalog/saved_parts.py
         refuse damaged bytes with it.
Method:  a block is noted as sound together with the one after it, so that whatever is shorter than a block
         needs the note of its first byte alone, whichever blocks it lies in. What is not in memory yet
         (`Filled`) is brought before it is tested.
Why not: one hash of everything: it would be read whole when it is opened. None: damage would be an answer.
Bad input: D5101 damaged, or of another version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from mmap import mmap
from threading import Lock
from typing import Any, Final, Protocol, TypeAlias

from dotr.errors import EngineError

BLOCK: Final = 14
"""The size of a block as a power of two: 16 KiB."""

_SIZE: Final = 1 << BLOCK
_SUM: Final = 8


class Filled(Protocol):
    """A file in memory of this process alone, brought there as it is read (io/files/mapped.py). Slices and
    `find` bring what they read.
    """

    memory: mmap

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> bytes: ...

    def find(self, what: bytes, first: int, last: int, /) -> int: ...

    def fill(self, first: int, last: int) -> None:
        """Bring `memory[first:last]`. Raises EngineError."""

    def damaged(self) -> EngineError:
        """What to raise where it is not what was written."""


Content: TypeAlias = bytes | mmap | Filled
"""Saved bytes: read, mapped, or brought as they are read."""


def damaged() -> EngineError:
    return EngineError.of(
        "D5101", "a saved background is damaged or of another version", hint="close it again"
    )


def refused(content: Content) -> EngineError:
    """What to raise for this content."""
    return damaged() if isinstance(content, bytes | mmap) else content.damaged()


class CheckedBlocks:
    """Owns which blocks of `data[start:end]` were tested. `sums`: their hashes; None: all are tested already.

    `memory`: the bytes; read only what was tested. `sound`: by block, whether it and the next one are sound.
    """

    __slots__ = ("_lock", "_source", "_sums", "_tested", "memory", "sound", "start", "stop")

    def __init__(self, data: Content, start: int, end: int, sums: bytes | None) -> None:
        self._source = data
        self.memory: bytes | mmap = data if isinstance(data, bytes | mmap) else data.memory
        self.start, self.stop = start, end
        count = _blocks(end - start)
        self._sums = sums or b""
        self._tested = bytearray(b"\1" if sums is None else b"\0") * count
        self.sound = bytearray(b"\1" if sums is None else b"\0") * (count + 1)
        self.sound[count] = 1
        self._lock = Lock()

    def damaged(self) -> EngineError:
        return refused(self._source)

    def test(self, block: int) -> None:
        """Test a block and the next one. Raises EngineError D5101, IndexError where there is none."""
        with self._lock:
            self.sound[block]  # IndexError
            for number in (block, block + 1):
                if number < len(self._tested) and not self._tested[number]:
                    first = self.start + (number << BLOCK)
                    last = min(first + _SIZE, self.stop)
                    if not isinstance(self._source, bytes | mmap):
                        self._source.fill(first, last)
                    found = _sum(memoryview(self.memory)[first:last])
                    if found != self._sums[number * _SUM : (number + 1) * _SUM]:
                        raise self.damaged()
                    self._tested[number] = 1
            self.sound[block] = 1

    def need(self, first: int, last: int) -> None:
        """Test what has the bytes from `first` to `last` of the blocks. Raises EngineError D5101."""
        sound = self.sound
        block = first >> BLOCK
        if block < 0 or last > self.stop - self.start:
            raise self.damaged()
        while block <= last >> BLOCK:
            if not sound[block]:
                self.test(block)
            block += 1

    def need_all(self) -> None:
        """Test all blocks."""
        self.need(0, self.stop - self.start)


def sized(data: Content, at: int, end: int, count: int) -> list[tuple[int, int]]:
    """The ranges of so many parts in `data[at:end]`, each after a line with its size. Raises ValueError where
    there are no such parts.
    """
    found: list[tuple[int, int]] = []
    while at < end and len(found) < count:
        first = data.find(b"\n", at, min(at + 20, end)) + 1
        size = data[at : first - 1]
        if not size.isdigit():
            raise ValueError
        at = first + int(size)
        found.append((first, at))
    if len(found) != count or at != end:
        raise ValueError
    return found


def sums_size(size: int) -> int:
    """How many bytes the hashes of so many bytes take."""
    return _blocks(size) * _SUM


def sums_of(parts: Iterable[Any]) -> bytes:
    """The hashes of the blocks of these bytes, one after the other."""
    return b"".join(map(_sum, _cut(parts)))


def _cut(parts: Iterable[Any]) -> Iterator[Any]:
    """Bytes in blocks."""
    rest = bytearray()
    for part in parts:
        view = memoryview(part).cast("B") if memoryview(part).nbytes else memoryview(b"")
        at = 0
        if rest:
            at = _SIZE - len(rest)
            rest += view[:at]
            if len(rest) < _SIZE:
                continue
            yield rest
            rest = bytearray()
        while at + _SIZE <= len(view):
            yield view[at : at + _SIZE]
            at += _SIZE
        rest += view[at:]
    if rest:
        yield rest


def _sum(block: Any) -> bytes:
    return blake2b(block, digest_size=_SUM).digest()


def _blocks(size: int) -> int:
    return -(-size >> BLOCK)
