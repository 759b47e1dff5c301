"""A dump taken apart: one graph for each subject of a class, or with a property.

Place:   files/dump_reader.py gives it the triples of a document and finds the times of what comes out.
Method:  a dump is in no order and its blank nodes lie anywhere, so it is stored on disk, in a database of
         SQLite. The subjects wanted are the roots. The nodes of their graphs are the answers of a recursive
         query: what triples of a node lead to belongs to the owner of the node, and a root to no other graph.
         A blank node that was reached also has the triples that say what it is of (`:room :temperature _:b`),
         and upwards from one blank node to the next until there is an IRI, by a second recursive query; of
         such a subject nothing else. What was not reached is counted. Memory: pages of the database, and the
         triples of one graph.
Why not: an index of the dump in memory: it is larger than the dump.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Final

from dotr.io.graphs import MEMORY
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
            self._database = sqlite3.connect(os.path.join(folder, "dump"), isolation_level=None)
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
    """Says of a full disk what the system says of it. Raises OSError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        number = _SYSTEM.get(error.sqlite_errorcode & 0xFF)
        if number is None:
            raise
        raise OSError(number, os.strerror(number)) from error
