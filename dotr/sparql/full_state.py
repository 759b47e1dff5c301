"""K(t) in pyoxigraph, for queries of a knowledge base that are not compiled.

Place:   one per knowledge base with such queries; filled from the same background and overlay as everything.
Cost:    the background is loaded once, when the first query asks; an instant costs what it touched of the
         relations that these queries look at, and nothing when none of them is woken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyoxigraph as ox

from dotr.joins.relations import ALL, Relation, holding, is_class
from dotr.joins.store import TripleIndex
from dotr.rdf.overlay import Changes
from dotr.rdf.terms import RDF_TYPE, Term, Triple, to_oxigraph


class FullState:
    """Owns a pyoxigraph store: the background, or K(t) between `enter` and `leave`."""

    def __init__(self, store: TripleIndex) -> None:
        self._source = store
        self._relations: set[Relation] = set()
        self._store: ox.Store | None = None
        self._added: list[ox.Quad] = []
        self._removed: list[ox.Quad] = []
        self._entered = False

    def look_at(self, relations: Iterable[Relation]) -> None:
        """Say, before the first instant, which relations queries will ask for."""
        self._relations.update(relations)
        for relation in self._relations:
            self._source.changes(relation)

    @property
    def now(self) -> Term:
        """What NOW() is."""
        return self._source.moment.now or '""'

    @property
    def store(self) -> ox.Store:
        if self._store is None:
            self._store = ox.Store()
            self._store.bulk_extend(map(_quad, self._background()))
        return self._store

    def _background(self) -> Iterator[Triple]:
        background = self._source.background
        if ALL in self._relations:
            yield from background
            return
        for relation in sorted(self._relations):
            if is_class(relation):
                for member in self._source.members(relation):
                    yield member, RDF_TYPE, relation[2:]
            else:
                for subject, object_ in self._source.background_rows(relation, (None, None)):
                    yield subject, relation, object_

    def enter(self) -> None:
        """Be K(t) of the store's instant."""
        if self._entered:
            return
        store = self.store
        relations = {ALL} if ALL in self._relations else self._relations
        for changes in self._source.overlay.touched:
            if changes.relation in relations:
                self._added += (_quad(triple) for triple in _triples(changes, changes.added))
                self._removed += (_quad(triple) for triple in _triples(changes, changes.removed))
        for quad in self._removed:
            store.remove(quad)
        store.extend(self._added)
        self._entered = True

    def settle(self, added: Iterable[Triple], removed: Iterable[Triple]) -> None:
        """The background has changed by these triples, of whatever relations."""
        self.leave()
        if self._store is not None:
            for triple in removed:
                self._store.remove(_quad(triple))
            self._store.extend(_quad(triple) for triple in added if self._looks_at(triple))

    def _looks_at(self, triple: Triple) -> bool:
        return not self._relations.isdisjoint(holding(triple))

    def leave(self) -> None:
        """Be the background again."""
        if not self._entered:
            return
        for quad in self._added:
            self.store.remove(quad)
        self.store.extend(self._removed)
        self._added, self._removed = [], []
        self._entered = False


def _triples(changes: Changes, rows: Iterable[object]) -> Iterator[Triple]:
    """Rows of a relation as triples."""
    relation = changes.relation
    for row in rows:
        if relation == ALL:
            yield row  # type: ignore[misc]  # three columns
        elif is_class(relation):
            yield row, RDF_TYPE, relation[2:]  # type: ignore[misc]  # a bare term
        else:
            yield row[0], relation, row[1]  # type: ignore[index]  # two columns


def _quad(triple: Triple) -> ox.Quad:
    subject, predicate, object_ = (to_oxigraph(term) for term in triple)
    return ox.Quad(subject, predicate, object_)  # type: ignore[arg-type]  # subjects are no literals
