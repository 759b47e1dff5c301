"""Compressed outputs: gzip and Zstandard, by the end of a file's name.

Place:   `open_output` and the files of a deployment (service/appending_files.py) write through a Packer.
Method:  content is cut into blocks of equal size, which one thread compresses in order while the caller goes
         on (both libraries release the interpreter lock). The caller of `add` gets the bytes that are
         compressed so far and writes them, so write errors are raised where they are without compression, and
         only a few blocks are in memory. The bytes depend on the content alone, not on time, name or calls.
Why not: compress in the calling thread: gzip made a run a third longer.
"""

from __future__ import annotations

import io
import zlib
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

BLOCK: Final = 1 << 20
_WAITING: Final = 4
"""Blocks that wait or are compressed but not taken, before who adds more has to wait."""


class Member(Protocol):
    """One gzip member or Zstandard frame."""

    def add(self, content: bytes) -> bytes: ...

    def end(self) -> bytes: ...


class GzipMember:
    """Owns a gzip member: no name in its head, and no time."""

    def __init__(self) -> None:
        self._packing = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        self.add = self._packing.compress
        self.end = self._packing.flush


class ZstandardFrame(io.RawIOBase):
    """Owns a Zstandard frame, which Arrow writes here."""

    def __init__(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  # start-up: Arrow takes a third of a second

        self._parts: list[bytes] = []
        self._packing: Any = pa.CompressedOutputStream(pa.PythonFile(self, mode="w"), "zstd")

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        self._parts.append(bytes(content))
        return len(content)

    def add(self, content: bytes) -> bytes:
        self._packing.write(content)
        return self._taken()

    def end(self) -> bytes:
        self._packing.close()
        return self._taken()

    def _taken(self) -> bytes:
        content = b"".join(self._parts)
        self._parts.clear()
        return content


class Packer:
    """Owns the member that is being written, if there is one, and the thread that compresses it."""

    def __init__(self, kind: str) -> None:
        self._make: type[GzipMember | ZstandardFrame] = GzipMember if kind == "gz" else ZstandardFrame
        self._member: Member | None = None
        self._rest = bytearray()
        self._thread: Executor | None = None
        self._blocks: deque[Future[bytes]] = deque()

    def add(self, content: bytes) -> bytes:
        """Add content to the member; what is compressed by now."""
        self._rest += content
        while len(self._rest) >= BLOCK:
            self._start(bytes(self._rest[:BLOCK]))
            del self._rest[:BLOCK]
        found = []
        while self._blocks and (len(self._blocks) > _WAITING or self._blocks[0].done()):
            found.append(self._blocks.popleft().result())
        return b"".join(found)

    def end(self, *, always: bool = False) -> bytes:
        """The rest of the member, which ends; nothing if none was begun, or (`always`) an empty one."""
        found = [block.result() for block in self._blocks]
        self._blocks.clear()
        if self._rest or self._member is not None or always:
            member = self._member or self._make()
            found += [member.add(bytes(self._rest)), member.end()]
        self._rest.clear()
        self._member = None
        return b"".join(found)

    def close(self) -> None:
        """Let go of the thread; content that was not taken is dropped."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)

    def _start(self, block: bytes) -> None:
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # start-up: few outputs need it

            self._thread = ThreadPoolExecutor(1, "compression")
        if self._member is None:
            self._member = self._make()
        self._blocks.append(self._thread.submit(self._member.add, block))
