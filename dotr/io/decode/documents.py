"""RDF documents: bytes to triples and quads of canonical terms, or a diagnostic.

Place:   the lowest of the connectors; sources.py, background.py and the Python API read through it.
Method:  pyoxigraph parses and writes N-Triples or N-Quads again; splitting its lines gives our terms. That is
         cheaper than reading term by term (one triple: 2.7 µs, of which 2.0 are parsing; 15 triples: 25 and
         13 µs), and every term has the one spelling that rdf/terms.py promises.
Why not: rdflib's parsers are 30 times slower; an own parser is another 3,000 lines to be wrong in.
Bad input: D2001 cannot be read · D2002 no UTF-8 · D2003 no such file · D2004 RDF 1.2 terms · D2005 remote
         context · D2006 too large · D2007 damaged or dangerous · D2008 unknown format.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from enum import Enum
from hashlib import blake2b
from itertools import islice
from os.path import splitext
from typing import IO, Any, NoReturn, Protocol, TypeAlias, cast

import pyoxigraph as ox
from pyoxigraph import parse, serialize

from dotr.errors import DataError, Diagnostic
from dotr.io.decode.ntriples import Run, literals, quad_runs, refuse_rdf12, several_triples
from dotr.rdf.terms import Term, Triple

STREAM_BASE = "urn:dotr:stream"
"""What relative IRIs of stream documents are resolved against unless `--base` says otherwise."""

MAX_DOCUMENT = 256 * 1024 * 1024
"""Bytes of one compressed document, or of one that must be read whole, unless `--max-document` says
otherwise.
"""

Quad: TypeAlias = tuple[Term, Term, Term, Term]
"""Subject, predicate, object, graph name; the name is "" in the default graph."""


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
}

_OXIGRAPH = {
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.NTRIPLES: ox.RdfFormat.N_TRIPLES,
    Format.TRIG: ox.RdfFormat.TRIG,
    Format.NQUADS: ox.RdfFormat.N_QUADS,
    Format.RDFXML: ox.RdfFormat.RDF_XML,
    Format.JSONLD: ox.RdfFormat.JSON_LD,
}

_STREAMED, _ARCHIVED = Format.TURTLE, Format.NTRIPLES  # looked up once: attributes of classes cost
_TURTLE, _N_TRIPLES, _N_QUADS = ox.RdfFormat.TURTLE, ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS
_SHORT = 4096
"""Characters up to which a Turtle document is first read without a base, which is a tenth cheaper, and again
with it when that fails. Only relative IRIs can tell the difference: absolute ones are taken as they stand."""

SUFFIXES = tuple(sorted(_SUFFIXES))
QUAD_FORMATS = frozenset({Format.TRIG, Format.NQUADS, Format.JSONLD})

_POSITION = re.compile(
    r"^Parser error at (?:byte \d+|line \d+ (?:column \d+|between columns \d+ and \d+)|[^:]*): "
)
_TRAILER = re.compile(r" \(line \d+\)$")
_ENTITY = re.compile(r'<!ENTITY\s+([^\s%"]+)\s+"([^"]*)"')
_ENTITY_USE = re.compile(r"&([^\s;&#]+);")
_CHUNK = 4096
_SMALL = 1 << 16


def format_of(path: str) -> Format | None:
    """The format that a file name announces (`.gz` put aside), None for anything else."""
    return _SUFFIXES.get(splitext(plain_name(path))[1].lower())


def plain_name(path: str) -> str:
    """A path without a trailing `.gz`."""
    return path[:-3] if path.lower().endswith(".gz") else path


def unknown_format(path: str) -> DataError:
    return DataError(
        Diagnostic(
            "D2008",
            f"what is written in `{path}` cannot be told from its name",
            place=path,
            hint=f"the name ends in one of {' '.join(SUFFIXES)}, each also with .gz",
        )
    )


class Readable(Protocol):
    """What bytes come out of."""

    def read(self, size: int = -1, /) -> bytes: ...


def open_document(path: str, content: bytes | None = None) -> IO[bytes]:
    """A file for reading, decompressed if it is gzip (by its first bytes). Raises DataError D2003.

    `content`: all of it, where it is in memory already.
    """
    try:
        plain = _opened(path) if content is None else io.BytesIO(content)
        head = plain.getbuffer()[:2] if isinstance(plain, io.BytesIO) else plain.peek(2)[:2]
        if head == b"\x1f\x8b":
            return _Unzipped(plain)  # type: ignore[return-value]  # a GzipFile is a binary reader
        return plain
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
        file.seek(0)  # it grows, or is none of a disk
    return io.BufferedReader(file)


class _Unzipped(gzip.GzipFile):
    """Owns the compressed file it reads: closes it, too."""

    def __init__(self, plain: IO[bytes]) -> None:
        super().__init__(fileobj=plain)
        self._plain = plain

    def close(self) -> None:
        super().close()
        self._plain.close()


def unreadable(path: str, error: OSError) -> DataError:
    """A file the operating system does not give us."""
    return DataError(
        Diagnostic("D2003", f"cannot read `{path}`: {(error.strerror or str(error)).lower()}", place=path)
    )


def read_bytes(path: str, limit: int = MAX_DOCUMENT) -> bytes:
    """All of a file, decompressed; what comes out of gzip is bounded by `limit`. Raises DataError."""
    with open_document(path) as file:
        if not isinstance(file, gzip.GzipFile):
            try:
                return file.read()
            except OSError as error:
                raise unreadable(path, error) from None
        content = read_some(file, limit + 1, path)
    if len(content) > limit:
        raise too_large(path, limit)
    return content


def read_some(file: Readable, size: int, path: str) -> bytes:
    """`file.read(size)`, with a damaged archive or disk told as DataError."""
    try:
        return file.read(size)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            Diagnostic(
                "D2007",
                f"`{path}` is damaged: its gzip data end or break early",
                place=path,
                label=str(error),
            )
        ) from None
    except OSError as error:
        raise unreadable(path, error) from None


def content_hash(content: bytes) -> str:
    """What blank nodes of a file are labelled by, and a deployment knows a file by: 32 hexadecimal digits."""
    return blake2b(content, digest_size=16).hexdigest()


def too_large(path: str, limit: int) -> DataError:
    return DataError(
        Diagnostic(
            "D2006",
            f"`{path}` is larger than one document may be",
            place=path,
            label=f"more than {limit} bytes",
            hint="raise --max-document, or split the file",
        )
    )


def decode(content: bytes, name: str) -> str:
    """UTF-8 to text without a byte order mark. Raises DataError D2002 with line and column."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        raise DataError(
            Diagnostic(
                "D2002",
                f"`{name}` is not UTF-8",
                place=f"{name}:{line}:{column}",
                label=f"the byte 0x{content[error.start]:02X}",
                hint="convert it, for instance with iconv -f latin1 -t utf-8",
            )
        ) from None
    return text[1:] if text.startswith("\ufeff") else text


def parse_triples(
    text: str,
    format_: Format = Format.TURTLE,
    name: str = "<text>",
    base: str | None = STREAM_BASE,
    skipped: int = 0,
) -> list[Triple]:
    """The triples of a document of one graph: canonical terms, document order, no repeats.

    Blank nodes have the document's labels. `skipped` lines at the head of `text` are not the user's and are
    taken off in messages. Raises DataError; in N-Quads, TriG and JSON-LD named graphs are refused.
    """
    if format_ is _STREAMED and len(text) < _SHORT:  # the hot path: one graph of a stream after the other
        try:
            lines = serialize(parse(text, _TURTLE), None, _N_TRIPLES).decode()  # type: ignore[union-attr]
        except (SyntaxError, AttributeError):  # an IRI may be relative; `_ntriples` tells what else there is
            lines = _ntriples(text, format_, name, base, skipped)
        terms = lines.split(" ", 4)
        if len(terms) == 4:  # one triple, without a blank in its object
            subject, predicate, object_, _ = terms
            if object_[0] == '"' and object_[-1] != '"':
                object_ = literals[object_] or refuse_rdf12(object_, name)
            return [(subject, predicate, object_)]
    else:
        lines = _ntriples(text, format_, name, base, skipped)
    return several_triples(lines, name)


def _ntriples(text: str, format_: Format, name: str, base: str | None, skipped: int) -> str:
    """A document of one graph as pyoxigraph writes it in N-Triples. Raises DataError."""
    try:
        if format_ is _ARCHIVED:
            parser = parse(text, _N_TRIPLES)
        elif format_ is _STREAMED:
            parser = parse(text, _TURTLE, base_iri=base)
        else:
            if format_ is Format.RDFXML:
                _refuse_entity_bomb(text, name)
            parser = parse(
                text, _OXIGRAPH[format_], base_iri=base, without_named_graphs=format_ in QUAD_FORMATS
            )
        return serialize(parser, None, _N_TRIPLES).decode()  # type: ignore[union-attr]  # no output: bytes
    except SyntaxError as error:
        _refuse(error, text, format_, name, skipped)
    except AttributeError:  # pyoxigraph asks a text that UTF-8 cannot hold for its `read`
        raise _half_character(text, name) from None


def _half_character(text: str, name: str) -> DataError:
    at = next(place for place, char in enumerate(text) if "\ud800" <= char <= "\udfff")
    line = text.count("\n", 0, at) + 1
    return DataError(
        Diagnostic(
            "D2002",
            f"`{name}` has half a character of UTF-16",
            place=f"{name}:{line}:{at - text.rfind(chr(10), 0, at)}",
            label=f"\\u{ord(text[at]):04X}",
            hint="such escapes stand in pairs in JSON, and nowhere else",
        )
    )


def parse_runs(text: str, format_: Format, name: str, base: str | None = STREAM_BASE) -> list[Run]:
    """The quads of a whole document in document order, as `quad_runs`. Raises DataError."""
    return quad_runs(_nquads(parse(text, _OXIGRAPH[format_], base_iri=base), text, format_, name), name)


def parse_quads(
    text: str, format_: Format, name: str = "<text>", base: str | None = STREAM_BASE
) -> list[Quad]:
    """The quads of a whole document in document order. Raises DataError."""
    return [(s, p, o, g) for g, triples in parse_runs(text, format_, name, base) for s, p, o in triples]


def _nquads(parser: ox.QuadParser, text: str, format_: Format, name: str, skipped: int = 0) -> str:
    try:
        return serialize(parser, None, _N_QUADS).decode()  # type: ignore[union-attr]  # no output: bytes
    except SyntaxError as error:
        _refuse(error, text, format_, name, skipped)


def stream_runs(
    file: Readable, format_: Format, name: str, base: str | None = STREAM_BASE, chunk: int = _CHUNK
) -> Iterator[Run]:
    """The quads of a document as they are read, `chunk` at a time, in bounded memory.

    Quads that stand before an error come out before it is raised.
    """
    parser = parse(cast("IO[bytes]", file), _OXIGRAPH[format_], base_iri=base)
    while True:
        lines = io.BytesIO()
        try:
            serialize(islice(parser, chunk), lines, _N_QUADS)
        except SyntaxError as error:
            yield from quad_runs(lines.getvalue().decode(), name)
            _refuse(error, "", format_, name, 0)
        content = lines.getvalue()
        if not content:
            return
        yield from quad_runs(content.decode(), name)


def parse_with_prefixes(
    text: str, format_: Format, name: str, base: str | None, skipped: int = 0
) -> tuple[str, dict[str, str], str | None]:
    """A document as N-Quads text, with the prefixes and the base that hold at its end. Raises DataError."""
    parser = parse(text, _OXIGRAPH[format_], base_iri=base)
    lines = _nquads(parser, text, format_, name, skipped)
    return lines, parser.prefixes, parser.base_iri


def _refuse(error: SyntaxError, text: str, format_: Format, name: str, skipped: int) -> NoReturn:
    reason = _TRAILER.sub("", _POSITION.sub("", str(error.msg)))
    if "LoadDocumentCallback" in reason:
        raise DataError(
            Diagnostic(
                "D2005",
                f"`{name}` refers to a context that is not in it",
                place=name,
                notes=("dotr never reads from the network",),
                hint="put the content of the context into the document",
            )
        ) from None
    if error.lineno is None:
        raise DataError(
            Diagnostic("D2001", f"`{name}` cannot be read as {format_.value}", place=name, label=reason)
        ) from None
    line = error.lineno - skipped
    place = f"{name}:{line}:{error.offset}"
    excerpt = (
        text.split("\n", error.lineno)[error.lineno - 1].strip()
        if text.count("\n") >= error.lineno - 1
        else ""
    )
    raise DataError(
        Diagnostic(
            "D2001",
            f"`{name}` cannot be read as {format_.value}: {reason}",
            place=place,
            label=excerpt if len(excerpt) < 200 else "",
            hint=_hint(reason),
        )
    ) from None


def _hint(reason: str) -> str:
    if "has not been declared" in reason:
        return "declare it: PREFIX name: <…>"
    if "No scheme found" in reason:
        return "write the IRI in full, or give --base"
    if "named graph" in reason.lower():
        return "a document of one graph has no named graphs; TriG and N-Quads streams may have them"
    return ""


def _refuse_entity_bomb(text: str, name: str) -> None:
    """Raise DataError D2007 when the XML entities of a document would swell beyond any real use."""
    sizes: dict[str, int] = {}
    for entity, value in _ENTITY.findall(text):
        nested = sum(sizes.get(inner, 0) for inner in _ENTITY_USE.findall(value))
        sizes[entity] = len(value) + nested
    total = sum(sizes.get(used, 0) for used in _ENTITY_USE.findall(text)) if sizes else 0
    if total > MAX_DOCUMENT or max(sizes.values(), default=0) > 1_000_000:
        raise DataError(
            Diagnostic(
                "D2007",
                f"the XML entities of `{name}` expand without measure",
                place=name,
                hint="write the IRIs in full",
            )
        )
