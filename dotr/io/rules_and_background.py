"""Rule files, background documents, and files mapped into memory.

Method:  Rules: `RuleTexts` is the Reader that lang gets for programs and their imports; nothing else opens a
         rule file. `shipped` finds `<dotr:rules/…>`, `<dotr:patterns/…>` and the files of `dotr demo`: in
         `dotr/_shipped` of an installed wheel, at the top level of a checkout.
         Background, the RDF that holds at every instant, is read once, at deployment. Every file is one
         document: Turtle, N-Triples, RDF/XML, JSON-LD (no remote contexts), `.gz` of any. Blank nodes are
         labelled by their statements, so that every run agrees, two files never join through `_:b0`, and a
         changed line leaves the labels of all others. Relative IRIs are resolved as in the stream (`--base`),
         never against a path: `<#roomA>` is one thing in background and stream.
         Mapped files hold what rdf/mapped.py makes of an index, for batch/, service/ and knowledge_base/.
         What dotr keeps in its own folders is mapped: it never changes afterwards, and all processes share
         it. A file that a user names may be overwritten in place by anybody, which ends a process that has it
         mapped (SIGBUS): its blocks are copied, and checked, when they are first needed.
Why not: reading all of a user's file at once: opening two million triples would take a second.
"""

from __future__ import annotations

import mmap as mmap_module
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from mmap import ACCESS_READ, mmap
from pathlib import Path
from threading import Lock
from typing import Any, Final
from weakref import finalize

import pyoxigraph as ox

from dotr.errors import DataError, EngineError
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    content_hash,
    decode,
    format_of,
    is_named_pipe,
    open_document,
    read_bytes,
    read_some,
    unknown_format,
    unreadable,
)
from dotr.io.decode.limits import no_memory
from dotr.io.decode.rdf import ParseChoices, parse_triples
from dotr.io.sources import resolve
from dotr.rdf.blanks import label_background
from dotr.rdf.mapped import damaged
from dotr.rdf.terms import Triple
from dotr.source import Span

_PACKAGE = Path(__file__).resolve().parents[1]
SCHEME = "dotr:"
KINDS = ("rules", "patterns", "examples")


def shipped(path: str) -> Path:
    """The file or folder of `rules/rdfs.dlog`, `patterns/…`, `examples/…`. Raises FileNotFoundError.

    A path that leads out of these folders is not found.
    """
    for top in (_PACKAGE / "_shipped", _PACKAGE.parent):
        found = (top / path).resolve()
        if any(found.is_relative_to(top / kind) for kind in KINDS) and found.exists():
            return found
    raise FileNotFoundError(2, "dotr ships no such file", path)


_LARGEST = 64 * 1024 * 1024


class RuleTexts:
    """Owns the texts of the rule files that were read through it, imported ones included, by their paths."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    @property
    def read_files(self) -> list[str]:
        """Their paths."""
        return list(self.texts)

    def __call__(self, path: str) -> str:
        self.texts[path] = read_rules_text(path)
        return self.texts[path]


def read_rules_text(path: str) -> str:
    """The text of a rule file; `dotr:patterns/…` and `dotr:rules/…` are those of the package.

    Raises OSError, also for a pipe that has a name (opening one waits until somebody writes), and DataError
    D2002 for what is not UTF-8.
    """
    file = shipped(path.removeprefix(SCHEME)) if path.startswith(SCHEME) else path
    if is_named_pipe(path):
        raise OSError(22, "is a pipe; a file is needed", str(path))
    with open(file, "rb") as reader:
        content = reader.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise OSError(27, "file too large for a program", str(path))
    return decode(content, path).replace("\r\n", "\n")


def read_standard_input() -> str:
    """A program or a query that comes by standard input. Raises DataError D2002, D2003."""
    text = decode(read_some(sys.stdin.buffer, -1, "<stdin>"), "<stdin>")
    return text.replace("\r\n", "\n")


_NOWHERE: Final[Mapping[str, Span]] = {}


def _files(paths: Sequence[str], named: Mapping[str, Span]) -> Iterator[str]:
    for path in paths:
        try:
            yield from resolve([path])
        except DataError as error:
            if path not in named:
                raise
            raise DataError([d._replace(span=named[path], place="") for d in error.diagnostics]) from None


def read_background(
    paths: Sequence[str],
    base: str = STREAM_BASE,
    limit: int = MAX_DOCUMENT,
    *,
    named: Mapping[str, Span] = _NOWHERE,
    choices: ParseChoices | None = None,
) -> list[Triple]:
    """The triples of all files below `paths`, canonical, without repeats, in the order of the files.

    `named`: where a program names some of the paths; one that leads nowhere is reported there. `choices`:
    what documents may say beyond RDF 1.1 and beyond themselves; None: nothing, where nobody can choose.

    Raises DataError: D2003, D2008, D2009, D2010 for a stream where a background is wanted, and what parsing
    says.
    """
    triples: dict[Triple, None] = {}
    said: dict[str, int] = {}
    read: set[tuple[str, Format]] = set()
    for path in _files(paths, named):
        format_ = format_of(path)
        if format_ is None:
            raise unknown_format(path)
        if format_ in (Format.JSONLINES, Format.PATCH, Format.PARQUET):
            raise DataError.of(
                "D2010",
                f"`{path}` is a stream, not a background",
                place=path,
                hint="give it as a SOURCE; a background has no time",
            )
        if is_named_pipe(path):
            raise unreadable(path, OSError(22, "is a pipe, and a file is needed"))
        try:
            content = read_bytes(path, limit)
            known = len(read)
            read.add((content_hash(content), format_))
            if len(read) == known:
                continue  # the same document again
            if format_ is Format.JELLY:
                format_ = Format.NQUADS
            text = decode(content, path)
            del content
            parsed = _parsed(text, format_, path, base, choices)
            del text
        except MemoryError:
            raise no_memory(path) from None
        if any(s[0] == "_" or o[0] == "_" for s, _p, o in parsed):
            parsed = label_background(parsed, said)
        triples.update(dict.fromkeys(parsed))
    return list(triples)


_NO_CHOICE: Final = {
    "D2004": "write RDF 1.1: give the statement a node of its own, leave the direction out",
    "D2005": "write the context into the document, in place of its IRI",
}
"""Hints where there is no option to name."""


def _parsed(text: str, format_: Format, path: str, base: str, choices: ParseChoices | None) -> list[Triple]:
    if choices is not None:
        return parse_triples(text, format_, path, base, choices=choices)
    try:
        return parse_triples(text, format_, path, base)
    except DataError as error:
        hints = [d._replace(hint=_NO_CHOICE.get(d.code, d.hint)) for d in error.diagnostics]
        raise DataError(hints) from None


_WITH_PREFIXES: Final = {
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.TRIG: ox.RdfFormat.TRIG,
    Format.RDFXML: ox.RdfFormat.RDF_XML,
}


def with_declared(prefixes: Mapping[str, str], files: Iterable[str]) -> dict[str, str]:
    """Prefixes of a program, and those that files of its background declare before their first triple.

    What the program says counts: of a name that it has, and of a namespace that it names. Then the first file
    counts. Files that cannot be read, or have no prefixes, add none. Cost: the heads of the files.
    """
    found, named = dict(prefixes), set(prefixes.values())
    for file in files:
        for name, space in _declared(file).items():
            if name not in found and space not in named and space:
                found[name] = space
                named.add(space)
    return found


def _declared(file: str) -> Mapping[str, str]:
    """The prefixes at the head of a file."""
    format_ = format_of(file)
    if format_ not in _WITH_PREFIXES or is_named_pipe(file):
        return {}
    try:
        with open_document(file) as content:
            parser = ox.parse(content, format=_WITH_PREFIXES[format_], base_iri=STREAM_BASE)
            next(iter(parser), None)
            return dict(parser.prefixes)
    except (DataError, OSError, SyntaxError, ValueError):  # whoever reads all of it reports that
        return {}


class BackgroundFiles:
    """Owns how to read a background again, as long as its files are what they were.

    What was read is not kept: where nothing lasts, the closed index of it is all that is needed.
    """

    def __init__(
        self,
        paths: Sequence[str],
        base: str = STREAM_BASE,
        limit: int = MAX_DOCUMENT,
        *,
        named: Mapping[str, Span] = _NOWHERE,
        choices: ParseChoices | None = None,
    ) -> None:
        self._paths, self._base, self._limit, self._named = list(paths), base, limit, named
        self._choices = choices
        self._seen = self._stamps()

    def _stamps(self) -> list[tuple[str, int, int]]:
        """Each file, its size, and when it was written."""
        files = _files(self._paths, self._named)
        found = [(path, os.stat(path)) for path in files if os.path.exists(path)]
        return [(path, stat.st_size, stat.st_mtime_ns) for path, stat in found]

    def __call__(self) -> list[Triple]:
        """As `read_background`. Raises DataError D2203 when a file was written since this was made."""
        triples = read_background(
            self._paths, self._base, self._limit, named=self._named, choices=self._choices
        )
        now = self._stamps()
        if now != self._seen:
            changed = min({path for path, _, _ in set(now) ^ set(self._seen)})
            raise DataError.of(
                "D2203",
                f"`{changed}` changed while a run was using it",
                place=changed,
                notes=("insertions and deletions apply to the background that was deployed",),
                hint="start again, or replace the program and its background from a time on",
            )
        return triples


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
    `dotr.rdf.mapped.Filled`. Any number of threads may read.

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
