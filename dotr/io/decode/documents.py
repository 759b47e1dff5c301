"""Documents: files to bytes to text, compression, and formats by name or by content.

Method:  Compression (gzip, bzip2, Zstandard, ZIP archives of one file) is recognised by the first bytes.
         Every kind is a reader that returns what is available now and can go forward; damage raises
         DamagedError, whichever library decompresses. Zstandard is Arrow's. The size of the result is bounded
         here.
         Formats of standard input and pipes, which have no telling name: frames of Jelly begin with the
         options of their stream; an object is JSON lines; a line of four terms is N-Quads; anything else is
         TriG, which includes Turtle and N-Triples. Our own N-Quads begin with a line that is a plain triple,
         so lines are read until one decides.
         Blocks of whole lines take linear time however long a line is: the parts of a line that goes on are
         kept apart until its end is there.
Why not: joining the rest of a block with the next one: a line of n blocks is copied n times.
Bad input: D2002 no UTF-8 · D2003 no such file · D2006 too large · D2007 damaged · D2008 unknown format ·
         D2023 blanks and comments without end (limits.py) · D2411 a ZIP archive of several files.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from enum import Enum
from hashlib import blake2b
from os.path import splitext
from typing import IO, Any, Protocol, TypeAlias

from dotr.errors import DataError
from dotr.io.arrow import pa
from dotr.io.decode import jelly
from dotr.io.decode.limits import QuietBytes
from dotr.regex import regex

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
        hint="unpack it into a folder and give the folder as the source",
    )


def is_packed(path: str) -> bool:
    """Whether a name is that of a compressed file."""
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


STREAM_BASE = "urn:dotr:stream"
"""What relative IRIs of stream documents are resolved against unless `--base` says otherwise."""

MAX_DOCUMENT = 256 * 1024 * 1024
"""Bytes of one compressed document, or of one that must be read whole, unless `--max-document` says
otherwise.
"""


_SIZE = regex(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size_of(text: str) -> int:
    """The bytes of `1000000`, `64k`, `256m`, `2GB`: units are powers of 1,024. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise ValueError(f"{text!r} is not a size")
    return int(found[1]) << (10 * _POWERS[found[2].lower()])


class Format(Enum):
    """How a document is written. The value is the name messages use."""

    TURTLE = "Turtle"
    NTRIPLES = "N-Triples"
    TRIG = "TriG"
    NQUADS = "N-Quads"
    RDFXML = "RDF/XML"
    JSONLD = "JSON-LD"
    JSONLINES = "JSON lines"
    PATCH = "RDF Patch"
    PARQUET = "Parquet"
    JELLY = "Jelly"


_SUFFIXES = {
    ".ttl": Format.TURTLE,
    ".turtle": Format.TURTLE,
    ".n3": Format.TURTLE,
    ".nt": Format.NTRIPLES,
    ".ntriples": Format.NTRIPLES,
    ".trig": Format.TRIG,
    ".nq": Format.NQUADS,
    ".nquads": Format.NQUADS,
    ".rdf": Format.RDFXML,
    ".owl": Format.RDFXML,
    ".xml": Format.RDFXML,
    ".jsonld": Format.JSONLD,
    ".jsonl": Format.JSONLINES,
    ".ndjson": Format.JSONLINES,
    ".rdfp": Format.PATCH,
    ".parquet": Format.PARQUET,
    ".jelly": Format.JELLY,
}

SUFFIXES = tuple(sorted(_SUFFIXES))
QUAD_FORMATS = frozenset({Format.TRIG, Format.NQUADS, Format.JSONLD})

_SMALL = 1 << 16


def format_of(path: str) -> Format | None:
    """The format that a file name announces (`.gz` and the like put aside), None for anything else."""
    dot = path.rfind(".")
    if dot > 0 and path[dot - 1] not in "./" and path[dot:] in _SUFFIXES:  # the usual names, at a third
        return _SUFFIXES[path[dot:]]
    return _SUFFIXES.get(splitext(plain_name(path))[1].lower())


def unknown_format(path: str, *, streamed: bool = False) -> DataError:
    """`streamed`: where a table could stand, too."""
    hint = f"the name ends in one of {' '.join(SUFFIXES)}, each also with {' '.join(ENDINGS)}"
    if streamed:
        hint += f"; a table of another name needs --map (dotr map new {path} proposes one), and in "
        hint += "the mapping `# format: csv`, or jsonl"
    if plain_name(path).lower().endswith(".json"):
        hint = f"JSON is read through a mapping: dotr map new {path} > readings.map proposes one; then add "
        hint += "--map readings.map. JSON-LD ends in .jsonld, a graph a line in .jsonl"
    return DataError.of(
        "D2008", f"the format of `{path}` cannot be inferred from its name", place=path, hint=hint
    )


class Readable(Protocol):
    """What bytes come out of."""

    def read(self, size: int = -1, /) -> bytes: ...


def open_document(path: str, content: bytes | None = None) -> IO[bytes]:
    """A file for reading, decompressed if it is compressed (by its first bytes), Jelly as text. Raises
    DataError D2003, D2412.

    `content`: all of it, where it is in memory already.
    """
    try:
        plain = _opened(path) if content is None else io.BytesIO(content)
        head = bytes(plain.getbuffer()[:HEAD]) if isinstance(plain, io.BytesIO) else plain.peek(HEAD)[:HEAD]
        content_of = unpacked(plain, head, path)
        file: Any = plain if content_of is None else content_of  # it reads, seeks, closes
        if format_of(path) is not Format.JELLY:
            return file  # type: ignore[no-any-return]  # so does what follows
        try:
            return jelly.JellyText(file, path)  # type: ignore[return-value]
        except BaseException:
            file.close()
            raise
    except OSError as error:
        raise unreadable(path, error) from None


def _opened(path: str) -> io.BytesIO | io.BufferedReader[Any]:
    """An open file; a small regular one is read at once, which takes half as long."""
    file = open(path, "rb", buffering=0)  # noqa: SIM115  # handed on, or closed
    found = os.fstat(file.fileno())
    if found.st_size <= _SMALL and stat.S_ISREG(found.st_mode):
        content = file.read(_SMALL + 1)
        if content is not None and len(content) == found.st_size:
            file.close()
            return io.BytesIO(content)
        file.seek(0)  # it grows, or is not on a disk
    return io.BufferedReader(file)


def unreadable(path: str, error: OSError) -> DataError:
    """A file the operating system does not give us."""
    return DataError.of(
        "D2003", f"cannot read `{path}`: {(error.strerror or str(error)).lower()}", place=path
    )


def is_named_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a pipe with a name of its own: opening it waits until somebody writes. The pipes that
    a shell makes for a process (`<(…)`) are none.
    """
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode) and not os.fspath(path).startswith(("/dev/", "/proc/"))
    except (OSError, ValueError):
        return False


def read_bytes(path: str, limit: int = MAX_DOCUMENT) -> bytes:
    """All of a file, decompressed; of a compressed one at most `limit` bytes. Raises DataError."""
    with open_document(path) as file:
        if not isinstance(file, Unpacked | jelly.JellyText):
            try:
                return file.read()
            except OSError as error:
                raise unreadable(path, error) from None
        return read_bounded(file, path, limit, format_of(path))


def read_some(file: Readable, size: int, path: str) -> bytes:
    """`file.read(size)`, with a damaged archive or disk reported as DataError."""
    try:
        return file.read(size)
    except EOFError as error:
        raise DataError.of(
            "D2007",
            f"`{path}` is damaged: its compressed data end or break early",
            place=path,
            label=str(error),
        ) from None
    except OSError as error:
        raise unreadable(path, error) from None


_PART = 1 << 20
_COMMENTS = {Format.RDFXML: "<!--", Format.JSONLD: "{}"}


def read_bounded(file: Readable, name: str, limit: int, format_: Format | None, taken: int = 0) -> bytes:
    """The rest of a document of which `taken` bytes were read, part by part, so that nobody holds more of it
    than `limit`. Raises DataError D2006, and D2023 where it goes on and says nothing.
    """
    quiet = QuietBytes(name, limit, _COMMENTS.get(format_, "#") if format_ is not None else "#")
    parts: list[bytes] = []
    while part := read_some(file, _PART, name):
        parts.append(quiet.take(part))
        taken += len(part)
        if taken > limit:
            raise too_large(name, limit)
    return b"".join(parts)


def content_hash(content: bytes) -> str:
    """What blank nodes of a file are labelled by, and a deployment knows a file by: 32 hexadecimal digits."""
    return blake2b(content, digest_size=16).hexdigest()


def too_large(path: str, limit: int) -> DataError:
    return DataError.of(
        "D2006",
        f"`{path}` is larger than one document may be",
        place=path,
        label=f"more than {limit} bytes",
        hint="raise --max-document, or split the file",
    )


def decode(content: bytes, name: str) -> str:
    """UTF-8 to text without a byte order mark. Raises DataError D2002 with line and column."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        raise DataError.of(
            "D2002",
            f"`{name}` is not UTF-8",
            place=f"{name}:{line}:{column}",
            label=f"the byte 0x{content[error.start]:02X}",
            hint="convert it, for instance with iconv -f latin1 -t utf-8",
        ) from None
    return text[1:] if text.startswith("\ufeff") else text


def parts_of(file: IO[bytes], end: int, name: str) -> Iterator[bytes]:
    """The first `end` bytes of a file, in parts."""
    while end > 0 and (part := read_some(file, min(end, 1 << 20), name)):
        end -= len(part)
        yield part


def line_at(path: str, start: int, name: str, content: bytes | None = None) -> int:
    """The number of the line at byte `start`. Reads what is before it."""
    if not start:
        return 1
    with open_document(path, content) as file:
        return 1 + sum(part.count(b"\n") for part in parts_of(file, start, name))


SNIFF = 1 << 16
_THREE_TERMS = (
    rb'^[ \t]*(?:<[^<>"\s]*>|_:[^\s<]+)[ \t]*<[^<>"\s]*>[ \t]*'
    rb'(?:<[^<>"\s]*>|_:[^\s<]+|"(?:[^"\\\n]|\\.)*"(?:@[\w-]+|\^\^<[^<>"\s]*>)?)[ \t]*'
)
_TRIPLE_LINE = regex(_THREE_TERMS + rb"\.\s*(?:#.*)?$")
_QUAD_LINE = regex(_THREE_TERMS + rb'(?:<[^<>"\s]*>|_:[^\s<]+)[ \t]*\.\s*$', re.MULTILINE)


def undecided(head: bytes, file: str) -> bool:
    """Whether more must be seen: a line at least, and without a name a line that is not also a plain
    triple.
    """
    head = head.lstrip()
    if b"\n" not in head or format_of(file) is not None:
        return b"\n" not in head
    lines = head.split(b"\n")[:-1]
    return all(not line.strip() or line.lstrip()[:1] == b"#" or _TRIPLE_LINE.match(line) for line in lines)


def is_jelly(head: bytes) -> bool:
    """Whether a document begins with a frame of Jelly, its length before it or not. Its first row is the
    stream's options, and the lengths of the row and of the options in it fit: no text of RDF begins so.
    """
    return _options_row(head) or _options_row(head[_varint(head, 0)[1] :])


def _options_row(frame: bytes) -> bool:
    """Whether a frame (rows are its field 1, options field 1 of a row) begins with a row of options."""
    row, at = _varint(frame, 1)
    options, end = _varint(frame, at + 1)
    return frame[:1] == b"\n" and frame[at : at + 1] == b"\n" and options > 0 and row == options + end - at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """(a number of protobuf, where it ends); (0, the end of the content) where it is cut off."""
    value = 0
    for shift, byte in enumerate(content[at : at + 5]):
        value |= (byte & 127) << 7 * shift
        if byte < 128:
            return value, at + shift + 1
    return 0, len(content)


def guess(head: bytes) -> Format:
    """How standard input is written: JSON lines, N-Quads, or some Turtle (read as TriG)."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb'\{\s*(?:"|\})', start):
        return Format.JSONLINES
    return line_format(head)


def line_format(head: bytes) -> Format:
    """N-Quads when a line has a graph name, else TriG, of which Turtle and N-Triples are part."""
    return Format.NQUADS if _QUAD_LINE.search(head) else Format.TRIG


Read: TypeAlias = Callable[[int], bytes]
"""The next bytes of a file, at most so many; none at its end."""


def line_blocks(
    read: Read, size: int, head: bytes, limit: int, too_long: Callable[[], Exception]
) -> Iterator[bytes]:
    """What `read` gives after `head`, cut after line ends; the last block may lack its end.

    `head` is examined before the first read, which may have to wait. Raises what `too_long` makes for a line
    of more than `limit` bytes.
    """
    begun: list[bytes] = []  # parts of a line that goes on
    length = 0
    block = head or read(size)
    while block:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((*begun, block[:cut])) if begun else block[:cut]
            begun, length = [], 0
        if cut < len(block):
            begun.append(block[cut:])
            length += len(block) - cut
            if length > limit:
                raise too_long()
        block = read(size)
    if begun:
        yield b"".join(begun)
