"""Open files as they are read: counted, bounded, and kept where a graph may be refused.

Place:   under reader.py and dump_reader.py.
Bad input: D2006 more than a document may have without a graph coming of it.
"""

from __future__ import annotations

import os
import sys
from typing import IO, TYPE_CHECKING

from dotr.errors import DataError
from dotr.io.decode.documents import Format, Readable, read_bytes, read_some, too_large
from dotr.io.decode.quads import WHOLE, QuadBlock
from dotr.io.decode.sniffing import SNIFF, is_jelly, undecided
from dotr.rdf.terms import Term

if TYPE_CHECKING:
    from dotr.io.decode.raw_bytes import RawBytes


_REFUSED = 1 << 12
"""Bytes that a refused document, or a message that says nothing, is counted for beside its own."""


class Tap:
    """Owns the count of bytes read from a file, and reads no further than `limit` (0: to the end).

    `read` may give less than asked before the end: what a pipe has now is read now. It raises DataError D2006
    when more than `fence` bytes came since `settled` was called (0: never).
    """

    def __init__(self, file: Readable, name: str, count: int = 0, limit: int = 0, fence: int = 0) -> None:
        self._file = file
        self._some = getattr(file, "read1", file.read)
        self.count = count
        self.tape: RawBytes | None = None
        self.ended = False
        self._limit = limit
        self.fence = fence
        self.name, self._settled = name, count

    def settled(self) -> None:
        """A graph came of what was read."""
        self._settled = self.count

    def refused(self) -> None:
        """Nothing came of what was read, which costs more than its bytes say."""
        self._settled -= _REFUSED

    def read(self, size: int = -1) -> bytes:
        content: bytes = self._some(size) if size > 0 and not self._limit else self._limited(size)
        self.count += len(content)
        self.ended = not content
        if self.fence and self.count - self._settled > self.fence:
            raise too_large(self.name, self.fence)
        if self.tape is not None:
            self.tape.take(content)
        return content

    def _limited(self, size: int) -> bytes:
        allowed = self._allowed(size)
        return self._file.read() if allowed < 0 else self._some(allowed)

    def _allowed(self, size: int) -> int:
        if not self._limit:
            return size
        left = max(0, self._limit - self.count)
        return left if size < 0 else min(size, left)


def first_bytes(tap: Tap, file: str) -> bytes:
    """The first bytes of a file: enough to see how it is written, a first line at least."""
    head = b""
    while len(head) < SNIFF and not is_jelly(head) and undecided(head, file):
        try:
            more = tap.read(SNIFF)
        except (OSError, EOFError):
            more = read_some(tap, 1, tap.name)  # raises what says what is wrong
        if not more:
            break
        head += more
    return head


class Headed:
    """Owns the first bytes of a file that were read already, in front of the rest."""

    def __init__(self, head: bytes, file: Tap) -> None:
        self._head, self._file = head, file

    def read(self, size: int = -1, /) -> bytes:
        if not self._head:
            return self._file.read(size)
        found = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(found) :]
        return found


class Originals:
    """Owns what is needed to find the original bytes of a refused graph of a quad document."""

    def __init__(self, tap: Tap, head: bytes, format_: Format, name: str, base: str) -> None:
        from dotr.io.decode.raw_bytes import RawBytes  # noqa: PLC0415  # start-up: most runs refuse nothing

        self._before = tap.count - len(head)
        self._tape = tap.tape = RawBytes(self._before, WHOLE if format_ is Format.TRIG else 0)
        self._tape.take(head)
        self._tap = tap
        self._pieces: dict[Term, bytes] | None = None
        self._document = format_, name, base

    def passed(self, block: QuadBlock) -> None:
        """A block is through."""
        if not block.whole:
            self._before = block.end
            self._tape.passed(block.end)

    def of(self, block: QuadBlock) -> bytes | None:
        """The bytes of a block, None if they cannot be separated from others, or the document is too long."""
        if not block.whole:
            return self._tape.between(self._before, block.end)
        if self._pieces is None and self._tap.ended:
            from dotr.io.decode.raw_bytes import pieces  # noqa: PLC0415  # start-up: see above

            content = self._tape.everything()
            self._pieces = {} if content is None else pieces(content, *self._document)
        return (self._pieces or {}).get(block.name)


def original_of(block: QuadBlock, originals: Originals | None) -> bytes:
    """The bytes of a refused graph as they stand in its document, else the graph as N-Quads."""
    found = None if originals is None else originals.of(block)
    return block.text().encode("utf-8", "surrogateescape") if found is None else found


def all_of(file: str, content: bytes | None, limit: int) -> bytes:
    """All of a refused file, as far as one document may go; `content` where it is in memory."""
    if content is not None:
        return content
    try:
        return read_bytes(file, limit) if os.path.isfile(file) else b""
    except DataError:
        return b""


def standard_input() -> IO[bytes]:
    """Standard input without a buffer, whose lock a reading thread would keep at the end of the process."""
    try:
        return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)
    except (OSError, ValueError):  # something in memory stands in for it
        return sys.stdin.buffer
