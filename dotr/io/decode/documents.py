"""Documents: files to bytes to text, and the formats that their names announce.

Place:   the lowest of io; what a text says is read by parsing.py.
Bad input: D2002 no UTF-8 · D2003 no such file · D2006 too large · D2007 damaged · D2008 unknown format ·
           D2023 blanks and comments without end (quiet_bytes.py).
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from enum import Enum
from hashlib import blake2b
from os.path import splitext
from typing import IO, Any, Protocol

from dotr.errors import DataError
from dotr.io.decode import jelly
from dotr.io.decode.compression import ENDINGS, HEAD, Unpacked, plain_name, unpacked
from dotr.io.decode.quiet_bytes import QuietBytes

STREAM_BASE = "urn:dotr:stream"
"""What relative IRIs of stream documents are resolved against unless `--base` says otherwise."""

MAX_DOCUMENT = 256 * 1024 * 1024
"""Bytes of one compressed document, or of one that must be read whole, unless `--max-document` says
otherwise.
"""


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


def unknown_format(path: str) -> DataError:
    hint = f"the name ends in one of {' '.join(SUFFIXES)}, each also with {' '.join(ENDINGS)}"
    if plain_name(path).lower().endswith(".json"):
        hint = f"JSON is read through a mapping: dotr map new {path} > readings.map proposes one; then add "
        hint += "--map readings.map. JSON-LD ends in .jsonld, a graph a line in .jsonl"
    return DataError.of(
        "D2008", f"what is written in `{path}` cannot be inferred from its name", place=path, hint=hint
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
