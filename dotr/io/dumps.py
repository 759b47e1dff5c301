"""Dumps taken apart: a graph for each subject of a class or with a property, for `--split`.

Method:  a dump is in no order and its blank nodes lie anywhere, so its triples go into a database of
         SQLite in a temporary folder, which sorts and joins on disk. The wanted subjects are the roots;
         recursive queries follow the triples from them through blank nodes. A root belongs to no other
         graph. A blank node that was reached also has the triples whose object it is (`:room :temperature
         _:b`), upwards from one blank node to the next until there is an IRI; of such a subject nothing
         else. One more query counts what no graph has. Every graph gets its time by the extractor (the
         file name is not used) and is sorted by it on disk, too. The output is in the order of time,
         whatever the order of the dump, so feeding counts graphs.
Why not: an index of the dump in memory: it is larger than the dump.
Bad input: D2410 nothing there to split by · what parsers and times report.
Cost:    memory: the cache of SQLite, and the triples of one node and of one graph. Disk: the dump, in a
         private temporary folder; SQLite sorts in the folder that TMPDIR names, else in /var/tmp.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from msgspec import Struct

from dotr.errors import DataError
from dotr.events import Time
from dotr.io.decode.documents import Format, Readable, decode, read_some, too_large
from dotr.io.decode.rdf import parse_runs, stream_runs
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import MEMORY, Bookmark, Item, ReadEvent, SourceOptions, TimedGraph
from dotr.io.time import TimestampExtractor
from dotr.lang.grammar.cursor import WELL_KNOWN
from dotr.rdf.terms import RDF_TYPE, Term, Triple

_CLASSES = 100

_SYSTEM: Final = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_CANTOPEN: errno.EIO,
}

_TABLES: Final = """
CREATE TABLE triple (number INTEGER PRIMARY KEY, subject TEXT, predicate TEXT, object TEXT);
CREATE TABLE root (node TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID;
CREATE TABLE reached (node TEXT, owner INTEGER, own INTEGER, PRIMARY KEY (node, owner)) WITHOUT ROWID;
CREATE TABLE found (owner INTEGER, number INTEGER, PRIMARY KEY (owner, number)) WITHOUT ROWID;
CREATE TABLE timed (time INTEGER, number INTEGER, root TEXT, terms TEXT);
BEGIN;
"""

_INDEX: Final = """
CREATE INDEX by_subject ON triple (subject);
CREATE INDEX by_object ON triple (object) WHERE object BETWEEN '_' AND '_~';
"""

_ROOTS: Final = """
INSERT INTO root SELECT subject, min(number) FROM triple
WHERE subject IN (
    SELECT subject FROM triple WHERE predicate = :wanted OR (predicate = :type AND object = :wanted)
) GROUP BY subject
"""

_REACHED: Final = """
WITH RECURSIVE node (node, owner, own) AS (
    SELECT node, number, 1 FROM root
    UNION
    SELECT object, owner, coalesce((SELECT number = owner FROM root WHERE root.node = object), 0)
    FROM node CROSS JOIN triple ON subject = node
    WHERE (object BETWEEN '_' AND '_~' OR (:shared AND object BETWEEN '<' AND '='))
    AND (own OR node NOT IN (SELECT node FROM root))
) INSERT OR IGNORE INTO reached SELECT node, owner, own FROM node
"""
"""`own`: the node is the owner's root. Other roots are reached, and lead no further."""

_FOUND: Final = """
INSERT OR IGNORE INTO found SELECT owner, number FROM reached CROSS JOIN triple ON subject = node
WHERE own OR node NOT IN (SELECT node FROM root)
"""

_LEADING: Final = """
WITH RECURSIVE up (node, owner, own) AS (
    SELECT node, owner, own FROM reached
    WHERE node BETWEEN '_' AND '_~' AND (own OR node NOT IN (SELECT node FROM root))
    UNION
    SELECT subject, owner, own FROM up CROSS JOIN triple ON object = node AND object BETWEEN '_' AND '_~'
    WHERE subject BETWEEN '_' AND '_~' AND subject NOT IN (SELECT node FROM root)
    AND (own OR subject NOT IN (SELECT node FROM reached))
) INSERT OR IGNORE INTO found
SELECT owner, number FROM up CROSS JOIN triple ON object = node AND object BETWEEN '_' AND '_~'
WHERE own OR subject NOT IN (SELECT node FROM reached)
"""
"""To a root, and to what is above it (`own`), triples lead from anywhere; to other nodes not from a node of
some graph: what that says is its own, or is there already."""

_BESIDE: Final = """
SELECT count(DISTINCT subject) FROM triple WHERE subject NOT IN (SELECT node FROM reached)
"""

_BESIDE_SHARED: Final = """
SELECT count(DISTINCT subject) FROM triple
WHERE subject NOT IN (SELECT node FROM reached) AND subject IN (
    SELECT object FROM reached CROSS JOIN triple ON subject = node
WHERE object BETWEEN '<' AND '=' AND (own OR node NOT IN (SELECT node FROM root))
)
"""

_GRAPHS: Final = """
SELECT owner, number, subject, predicate, object FROM found CROSS JOIN triple USING (number)
ORDER BY owner, number
"""


class SubjectGraphs:
    """Owns one dump on its way into a database in `folder`. `wanted`: a class or property. `shared`:
    descriptions that several graphs refer to by IRI go into each of them.
    """

    def __init__(self, folder: str, wanted: Term, shared: bool = False, memory: int = MEMORY) -> None:
        self.classes: dict[Term, int] = {}
        """Subjects of the classes that were seen, of some of them."""
        self.beside = 0
        """Subjects in no graph, once these were given."""
        self.beside_shared = 0
        """Those of them that graphs refer to: with `shared` they would be in these."""
        self._asked = {"wanted": wanted, "type": RDF_TYPE, "shared": shared}
        with _disk():
            self._database = sqlite3.connect(
                os.path.join(folder, "dump"), isolation_level=None, check_same_thread=False
            )
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
                self._database.execute(f"PRAGMA {pragma}")
            self._database.execute(f"PRAGMA cache_size = -{max(memory // 4096, 64)}")
            self._database.executescript(_TABLES)

    def add(self, triples: Iterable[Triple]) -> None:
        """More triples of the dump, in its order."""
        with _disk():
            self._database.executemany("INSERT INTO triple VALUES (NULL, ?, ?, ?)", self._counted(triples))

    def _counted(self, triples: Iterable[Triple]) -> Iterator[Triple]:
        for triple in triples:
            _, predicate, object_ = triple
            if predicate == RDF_TYPE and (object_ in self.classes or len(self.classes) < _CLASSES):
                self.classes[object_] = self.classes.get(object_, 0) + 1
            yield triple

    def graphs(self) -> Iterator[tuple[Term, list[Triple]]]:
        """(root, triples of its graph in the dump's order), the roots in the dump's order."""
        with _disk():
            self._database.executescript(_INDEX)
            self._database.execute("BEGIN")
            for step in (_ROOTS, _REACHED, _FOUND, _LEADING):
                self._database.execute(step, self._asked)
            self.beside = self._count(_BESIDE)
            if self.beside:
                self.beside_shared = self._count(_BESIDE_SHARED)
            rows = self._database.execute(_GRAPHS)
            for owner, lines in groupby(rows, key=lambda row: row[0]):
                triples: dict[Triple, None] = {}
                root = ""
                for _, number, *triple in lines:
                    root = triple[0] if number == owner else root
                    triples[tuple(triple)] = None
                yield root, list(triples)

    def _count(self, query: str) -> int:
        found: int = self._database.execute(query).fetchone()[0]
        return found

    def keep(self, time: int | None, number: int, root: Term, triples: list[Triple]) -> None:
        """Keep a graph for `by_time`; None for the time of one in error."""
        terms = "\t".join([term for triple in triples for term in triple])
        with _disk():
            self._database.execute("INSERT INTO timed VALUES (?, ?, ?, ?)", (time, number, root, terms))

    def by_time(self) -> Iterator[tuple[int | None, Term, list[Triple]]]:
        """The kept graphs in order of time, those in error first; equal ones in order of their numbers."""
        with _disk():
            for time, root, text in self._database.execute(
                "SELECT time, root, terms FROM timed ORDER BY time, number"
            ):
                terms = text.split("\t")
                yield time, root, list(zip(terms[::3], terms[1::3], terms[2::3], strict=True))

    def close(self) -> None:
        self._database.close()


@contextmanager
def _disk() -> Iterator[None]:
    """Reports a full disk as the system does, with the folder. Raises OSError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        number = _SYSTEM.get(error.sqlite_errorcode & 0xFF)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), tempfile.gettempdir()) from error


WHOLE = (Format.RDFXML, Format.JSONLD)
"""Formats whose documents are read whole."""


@dataclass(slots=True)
class DumpReader:
    """Owns the taking apart of one dump. `name`: the file as messages call it."""

    name: str
    options: SourceOptions
    extractor: TimestampExtractor
    refusals: ErrorPolicy
    bookmark: Bookmark
    _last: Time | None = field(default=None, init=False)

    def items(self, file: Readable, format_: Format) -> Iterator[Item]:
        """Its graphs in time order, refused ones first, then the mark of the end. Raises DataError."""
        skip = self.bookmark.end if self.bookmark.how == "graph" else 0
        number = 0
        counted = _CountedBytes(file)
        with tempfile.TemporaryDirectory(prefix="dotr-split-") as folder:
            try:
                options = self.options
                with closing(
                    SubjectGraphs(folder, options.split, options.shared, options.split_memory)
                ) as parts:
                    self._fill(parts, counted, format_)
                    self._keep(parts)
                    for number, (time, root, triples) in enumerate(parts.by_time(), 1):
                        item = self._item(time, root, triples, number)
                        if number > skip:
                            yield item
            except DataError as error:
                if self.refusals.fail:
                    raise
                yield ReadEvent(self._last, self.name, "whole", counted.count, "", error, b"")
                return
        yield ReadEvent(self._last, self.name, "graph", number, size=counted.count)

    def _fill(self, parts: SubjectGraphs, file: _CountedBytes, format_: Format) -> None:
        options = self.options
        if format_ in WHOLE:
            content = read_some(file, options.max_document + 1, self.name)
            while len(content) <= options.max_document and (more := read_some(file, 1 << 20, self.name)):
                content += more
            if len(content) > options.max_document:
                raise too_large(self.name, options.max_document)
            runs = iter(
                parse_runs(decode(content, self.name), format_, self.name, options.base, options.choices)
            )
        else:
            runs = stream_runs(file, format_, self.name, options.base, choices=options.choices)
        for _graph, triples in runs:
            parts.add(triples)

    def _keep(self, parts: SubjectGraphs) -> None:
        """Find the time of every graph; none for those in error."""
        number = 0
        for number, (root, triples) in enumerate(parts.graphs(), 1):
            time: Time | None = None
            try:
                time = self._time(root, triples)
            except DataError:
                if self.refusals.fail:
                    raise
            parts.keep(time, number, root, triples)
        if not number:
            raise self._nothing(parts)
        for what, triples_beside in (("all", parts.beside), ("shared", parts.beside_shared)):
            self.extractor.beside[what] = self.extractor.beside.get(what, 0) + triples_beside

    def _time(self, root: Term, triples: list[Triple]) -> Time:
        return self.extractor.time(triples, "", f"{self.name}, {root}")

    def _item(self, time: Time | None, root: Term, triples: list[Triple], number: int) -> Item:
        if time is None:
            content = "".join(f"{s} {p} {o} .\n" for s, p, o in triples).encode()
            try:
                time = self._time(root, triples)
            except DataError as error:
                return ReadEvent(None, self.name, "graph", number, "", error, content)
        self._last = time
        return TimedGraph(time, triples, self.name, 0, "graph", number)

    def _nothing(self, parts: SubjectGraphs) -> DataError:
        wanted = short(self.options.split)
        classes = sorted(parts.classes, key=lambda one: (-parts.classes[one], one))[:5]
        listed = ", ".join(f"{short(one)} ({parts.classes[one]:,})" for one in classes)
        return DataError.of(
            "D2410",
            f"nothing in `{self.name}` is of the class {wanted} or has that property",
            place=self.name,
            label=f"it has {listed}" if listed else "it has no classes",
            hint=f"--split {short(classes[0])}" if classes else "--split takes a property, too",
        )


class _CountedBytes(Struct):
    """Owns the count of bytes read of a file."""

    file: Readable
    count: int = 0

    def read(self, size: int = -1, /) -> bytes:
        part = self.file.read(size)
        self.count += len(part)
        return part


def short(term: Term) -> str:
    """An IRI as `--split` takes it: with a prefix that everybody knows, else in full."""
    iri = term[1:-1]
    return next((f"{p}:{iri[len(ns) :]}" for p, ns in WELL_KNOWN.items() if iri.startswith(ns)), iri)
