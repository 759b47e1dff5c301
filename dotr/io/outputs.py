"""Outputs: files finished or absent, and compression.

Method:  an output file grows under `NAME.part` and takes its name when the run is done, so that no
         half-written file passes as finished; what an unfinished run emitted stays readable in the part.
         Existing files are overwritten only on request. Pipes and devices are written directly.
         `Packer` cuts content into blocks of equal size, which one thread compresses in order while the
         caller continues (both libraries release the interpreter lock). The caller of `add` gets the bytes
         compressed so far and writes them, so write errors are raised where they are without compression, and
         only a few blocks are in memory. The bytes depend on the content alone, not on time, name or calls.
         `write_whole` is for files whose unfinished content nobody may find: knowledge bases, closed
         backgrounds, checkpoints, formatted rules. A file beside the target, with a name made by this call
         alone (so that threads, processes and containers on one volume never share one), is synced and moved
         there; after an error it is removed.
Why not: compressing in the calling thread: gzip made a run a third longer.
"""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from dotr.errors import EngineError, RefusedError
from dotr.io.arrow import pa
from dotr.regex import regex

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

_PACKED: Final = ("gz", "zst")
"""Endings of the names of compressed outputs."""


def packing_of(path: str) -> str:
    """How an output of this name is compressed: "gz", "zst" or "" for not at all."""
    ending = ending_of(path)
    return ending if ending in _PACKED else ""


def ending_of(path: str) -> str:
    return PurePath(path).suffix.lower().removeprefix(".")


_BUFFER = 1 << 16

_OBEYED: Final = regex(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
)
"""In UTF-8: control characters but for line ends and tabs (C0 and DEL; C1), and what reverses or breaks
lines (U+2028 to U+202E, U+2066 to U+2069).
"""


class Output(Protocol):
    """Takes text in order; `flush` makes it visible, `finish` ends it well, `abandon` ends it otherwise."""

    def write(self, text: str) -> None: ...

    def write_bytes(self, content: bytes, /) -> None: ...

    def flush(self) -> None: ...

    def finish(self) -> None: ...

    def abandon(self) -> None: ...


class StreamOutput:
    """Owns the buffer in front of a byte stream (standard output). A terminal gets control characters as
    `\\u009b`, which strings of JSON and of RDF read back. Raises BrokenPipeError when nobody listens.
    """

    def __init__(
        self, stream: IO[bytes], name: str = "standard output", packer: Packer | None = None
    ) -> None:
        self._stream = stream
        self._name = name
        self._packer = packer
        self._packed = False  # whether a member is complete
        self._terminal = packer is None and stream.isatty()
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, text: str) -> None:
        self.write_bytes(text.encode())

    def write_bytes(self, content: bytes) -> None:
        """As `write`, for what is bytes already."""
        if self._packer is not None:
            content = self._packer.add(content)
        self._parts.append(content)
        self._size += len(content)
        if self._size >= _BUFFER:
            self._put()

    def flush(self) -> None:
        self._put()

    def _put(self) -> None:
        content = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if self._terminal:
            content = _OBEYED.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), content)
        try:
            rest = memoryview(content)
            while rest:  # a raw file may take a part only
                rest = rest[self._stream.write(rest) :]
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise unwritable(self._name, error) from None

    def finish(self) -> None:
        self._complete()

    def abandon(self) -> None:
        if not self._stream.closed:
            with suppress(EngineError, BrokenPipeError):  # what ends the run is reported already
                self._complete()

    def _complete(self) -> None:
        """Everything that was written is out."""
        if self._packer is not None:
            if rest := self._packer.end(always=not self._packed):
                self._parts.append(rest)
            self._packed = True
            self._packer.close()
        self._put()


class DeviceOutput(StreamOutput):
    """Owns an open pipe or device. What is compressed is a member from one `flush` to the next."""

    def flush(self) -> None:
        if self._packer is not None and (member := self._packer.end()):
            self._parts.append(member)
            self._packed = True
        super().flush()

    def finish(self) -> None:
        try:
            self._complete()
        finally:
            self._stream.close()

    def abandon(self) -> None:
        super().abandon()
        self._stream.close()


class FileOutput(StreamOutput):
    """Owns `path.part` until `finish` gives it the name `path`.

    Raises RefusedError D5001 if `path` or its part exists and `overwrite` is not set, EngineError D4201 if it
    cannot be written.
    """

    def __init__(self, path: str, overwrite: bool = False, packer: Packer | None = None) -> None:
        self.path = Path(path)
        self.part = self.path.with_name(self.path.name + ".part")
        self._overwrite = overwrite
        for there in (self.path, self.part):
            if os.path.lexists(there) and not overwrite:
                raise _exists(there, unfinished=there == self.part)
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if overwrite else os.O_EXCL)
        try:
            self._file = os.fdopen(os.open(self.part, flags, 0o666), "wb", buffering=0)
        except FileExistsError:
            raise _exists(self.part, unfinished=True) from None
        except OSError as error:
            raise unwritable(path, error) from None
        super().__init__(self._file, path, packer)

    def finish(self) -> None:
        self._complete()
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            if self._overwrite:
                keep_mode(self.path, self.part)
                os.replace(self.part, self.path)
            else:
                _rename_new(self.part, self.path)
        except OSError as error:
            raise unwritable(str(self.path), error) from None

    def abandon(self) -> None:
        super().abandon()
        self._file.close()

    def discard(self) -> None:
        """Remove what was written: of no use unfinished."""
        self._parts.clear()
        self._file.close()
        with suppress(OSError):
            os.unlink(self.part)


def keep_mode(path: str | os.PathLike[str], new: str | os.PathLike[str]) -> None:
    """Give the file `new` the permissions of the one that it is to replace, if there is one."""
    try:
        mode = os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return
    if os.stat(new).st_mode & 0o777 != mode:
        os.chmod(new, mode)


def _rename_new(part: Path, path: Path) -> None:
    """Give `part` the name `path` unless somebody else took it meanwhile."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise _exists(path, unfinished=False) from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise _exists(path, unfinished=False) from None
        os.rename(part, path)
    else:
        os.unlink(part)


def is_device(path: str) -> bool:
    """Whether a path is a pipe or device: something to write to that is not a file."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def open_output(path: str | None, overwrite: bool = False, *, packed: bool = False) -> Output:
    """The output for `-o PATH`; standard output where there is none, and for `-`. `packed`: compressed by its
    name.
    """
    if not path or path == "-":
        return StreamOutput(sys.stdout.buffer)
    packer = packer_for(path) if packed else None
    if is_device(path):
        try:
            return DeviceOutput(open(path, "wb", buffering=0), path, packer)  # open until the run ends
        except OSError as error:
            raise unwritable(path, error) from None
    if os.path.isdir(path):
        raise unwritable(path, IsADirectoryError(21, "is a directory"))
    return FileOutput(path, overwrite, packer)


def packer_for(path: str) -> Packer | None:
    """What compresses an output of this name; None where it says nothing of that."""
    if not (kind := packing_of(path)):
        return None

    return Packer(kind)


def unwritable(path: str, error: OSError) -> EngineError:
    reason = error.strerror or str(error)
    if error.errno and "[errno" in reason:  # Arrow has more words for it
        reason = os.strerror(error.errno)
    reason, hint = reason.lower(), "free space, or write elsewhere"
    folder = os.path.dirname(path)
    if isinstance(error, FileNotFoundError) and folder and not os.path.isdir(folder):
        reason, hint = f"there is no folder `{folder}`", f"make it first: mkdir -p {folder}"
    return EngineError.of("D4201", f"cannot write {path}: {reason}", place=path, hint=hint)


def _exists(path: Path, unfinished: bool) -> RefusedError:
    what = "was left by a run that did not finish" if unfinished else "exists"
    return RefusedError.of(
        "D5001", f"`{path}` {what}", place=str(path), hint="give another name, or --overwrite"
    )


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


ENDING = ".new"
"""How a file is called while it is written, after random digits."""


def write_whole(path: str | os.PathLike[str], parts: Iterable[Any]) -> None:
    """Write bytes to a file, which replaces one that is there and has its permissions; a new one has what the
    process gives to new files.

    Raises EngineError D4201 where the disk does not take it, or the path is a folder, a pipe or a device.
    """
    path = os.fspath(path)
    if is_device(path):
        raise unwritable(path, OSError(22, "is not a file"))
    beside = ""
    try:
        name = os.path.join(os.path.dirname(path), f".dotr-{os.urandom(8).hex()}{ENDING}")
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        beside = name
        with open(file, "wb") as output:
            output.writelines(parts)
            output.flush()
            os.fsync(output.fileno())
        keep_mode(path, beside)
        os.replace(beside, path)
        beside = ""
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        if beside:
            with suppress(OSError):
                os.unlink(beside)
