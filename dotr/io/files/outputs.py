"""Where output goes: standard output, or a file that is finished or does not have its name.

Place:   the command line opens one for `-o`; bytes come from event_formats.py.
Method:  a file grows under `NAME.part` and takes its name when the run is done, so that no half-written file
         passes as finished; what an unfinished run emitted stays readable in the part. Nothing that is
         there is overwritten unless asked. Pipes and devices are written straight.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from dotr.errors import EngineError, RefusedError
from dotr.io.output_formats import packing_of

if TYPE_CHECKING:
    from dotr.io.files.packing import Packer

_BUFFER = 1 << 16


class Output(Protocol):
    """Takes text in order; `flush` makes it visible, `finish` ends it well, `abandon` ends it otherwise."""

    def write(self, text: str) -> None: ...

    def write_bytes(self, content: bytes, /) -> None: ...

    def flush(self) -> None: ...

    def finish(self) -> None: ...

    def abandon(self) -> None: ...


class StreamOutput:
    """Owns the buffer in front of a byte stream (standard output). Raises BrokenPipeError when nobody
    listens.
    """

    def __init__(
        self, stream: IO[bytes], name: str = "standard output", packer: Packer | None = None
    ) -> None:
        self._stream = stream
        self._name = name
        self._packer = packer
        self._packed = False  # whether a member is complete
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
    from dotr.io.files.packing import Packer  # noqa: PLC0415  # start-up: few outputs are compressed

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
