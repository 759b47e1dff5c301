"""Compressed files: gzip, bzip2, Zstandard, and ZIP archives of one file, known by their first bytes.

Place:   under documents.py, which bounds what comes out.
Method:  every kind is a reader that gives what is there now and can go forward; what breaks in it is
         DamagedError, whoever decompresses. Zstandard is Arrow's.
Bad input: D2007 damaged · D2411 a ZIP archive of several files.
"""

from __future__ import annotations

import os
import zlib
from typing import IO, Any

from dotr.errors import DataError

ENDINGS = (".gz", ".bz2", ".zst", ".zip")
"""What names of compressed files end in."""

HEAD = 10
"""First bytes that show how a file is compressed."""

_STEP = 1 << 20


class DamagedError(EOFError):
    """Compressed data that end or break early."""


def _damage(error: Exception) -> bool:
    """Whether what unpacks says so that the data are damaged."""
    import zipfile  # noqa: PLC0415  # start-up: most runs unpack nothing

    return isinstance(error, (OSError, EOFError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile))


class Unpacked:
    """Owns a compressed file and gives what is in it. Raises DamagedError."""

    def __init__(self, plain: IO[bytes], source: Any) -> None:
        self._plain, self._source = plain, source
        self._at = 0

    def read(self, size: int = -1, /) -> bytes:
        try:
            content: bytes = self._source.read(size) if size >= 0 else self._source.read()
        except Exception as error:
            if not _damage(error):
                raise
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DamagedError(str(error).splitlines()[0][:200] if str(error) else "it ends early") from None
        self._at += len(content)
        return content

    read1 = read

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go forward."""
        assert whence == 0
        assert offset >= self._at
        while self._at < offset and self.read(min(_STEP, offset - self._at)):
            pass
        return self._at

    def close(self) -> None:
        self._source.close()
        self._plain.close()

    def __enter__(self) -> Unpacked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def unpacked(plain: IO[bytes], head: bytes, path: str) -> Unpacked | None:
    """What is in a compressed file, by its first bytes; None for a file that is not compressed.

    Raises DataError for a ZIP archive that is damaged or has several files.
    """
    if head.startswith(b"\x1f\x8b"):
        import gzip  # noqa: PLC0415  # start-up: see above

        return Unpacked(plain, gzip.GzipFile(fileobj=plain))
    if head[:3] == b"BZh" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):  # a block, or the end of none
        import bz2  # noqa: PLC0415  # start-up: see above

        return Unpacked(plain, bz2.BZ2File(plain))
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        import pyarrow as pa  # noqa: PLC0415  # start-up: Arrow takes a third of a second

        return Unpacked(plain, pa.CompressedInputStream(pa.PythonFile(plain, mode="r"), "zstd"))
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Unpacked(plain, _only_member(plain, path))
    return None


def _only_member(plain: IO[bytes], path: str) -> IO[bytes]:
    import zipfile  # noqa: PLC0415  # start-up: see above

    try:
        archive = zipfile.ZipFile(plain)
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) == 1:
            return archive.open(members[0])
    except (OSError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise DataError.of(
            "D2007", f"`{path}` is damaged: it cannot be unpacked", place=path, label=str(error)
        ) from None
    raise DataError.of(
        "D2411",
        f"`{path}` has {len(members)} files",
        place=path,
        label=", ".join(member.filename for member in members[:5]),
        hint="unpack it into a folder and name that",
    )


def is_packed(path: str) -> bool:
    """Whether a name says that a file is compressed."""
    return path.lower().endswith(ENDINGS)


def plain_name(path: str) -> str:
    """A path without the ending of a compressed file; of a ZIP archive whose name does not say what is in it,
    the name of its file.
    """
    if not is_packed(path):
        return path
    stem, ending = os.path.splitext(path)
    if ending.lower() == ".zip" and not os.path.splitext(stem)[1] and os.path.isfile(path):
        import zipfile  # noqa: PLC0415  # start-up: see above

        try:
            with zipfile.ZipFile(path) as archive:
                names = [member.filename for member in archive.infolist() if not member.is_dir()]
        except (OSError, ValueError, zipfile.BadZipFile):
            return stem
        return os.path.join(os.path.dirname(path), os.path.basename(names[0])) if len(names) == 1 else stem
    return stem
