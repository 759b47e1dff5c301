"""A background and an instant by hand, for the compiled engine (a Store) and the full one (pyoxigraph)."""

from __future__ import annotations

from collections.abc import Collection

import pyoxigraph as ox

from dotr.joins.plan import ALL, holding
from dotr.joins.store import TripleIndex
from dotr.rdf.index import Background
from dotr.rdf.terms import RDF_TYPE, Triple, to_oxigraph


def closed(background: Collection[Triple], *, counting: bool = False) -> TripleIndex:
    """A store that may lose rows of any relation."""
    volatile = {relation for triple in background for relation in holding(triple)}
    return TripleIndex(Background(background), volatile=volatile, counting=counting)


def enter(store: TripleIndex, added: Collection[Triple], removed: Collection[Triple] = ()) -> None:
    """Put the store's overlay into an instant: `added` less what the background has, and `removed`."""
    store.overlay.forget()
    for triple in added:
        if triple not in store.background:
            for relation, row in _rows(triple):
                store.overlay.add(relation, row)
    for triple in removed:
        for relation, row in _rows(triple):
            store.overlay.remove(relation, row)


def _rows(triple: Triple) -> list[tuple[str, tuple[str, ...]]]:
    subject, predicate, object_ = triple
    rows: dict[str, tuple[str, ...]] = {ALL: triple, predicate: (subject, object_)}
    if predicate == RDF_TYPE:
        rows["a " + object_] = (subject,)
    return list(rows.items())


def whole(background: Collection[Triple], added: Collection[Triple], removed: Collection[Triple]) -> ox.Store:
    """K(t) in pyoxigraph."""
    store = ox.Store()
    state = (set(background) - set(removed)) | set(added)
    store.extend(ox.Quad(*map(to_oxigraph, triple)) for triple in sorted(state))
    return store
