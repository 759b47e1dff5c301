"""Step 1, literally: K(t) closed from nothing at every instant.

Place:   the measure of core/enrich.py, for tests, `--verify` and `dotr query`.
Method:  the naive, stratified closure (reference/datalog.py) over everything that holds at t, put into a
         pyoxigraph store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyoxigraph as ox

from dotr.ir import DatalogRule
from dotr.rdf.terms import Triple, to_oxigraph
from dotr.reference.datalog import LiteralStates


def quad(triple: Triple) -> ox.Quad:
    """A triple of ours as a pyoxigraph quad of the default graph."""
    subject, predicate, object_ = (to_oxigraph(term) for term in triple)
    return ox.Quad(subject, predicate, object_)  # type: ignore[arg-type]  # subjects are never literals


class LiteralEnricher:
    """Owns one store that holds K(t) between `open` and `close`, and K of the empty instant otherwise.

    Without rules K(t) is a union; with rules the closure is computed from nothing at every instant. The store
    only sees the difference to the closed background, which is a matter of cost, not of meaning.
    """

    def __init__(self, rules: Sequence[DatalogRule], background: Collection[Triple]) -> None:
        self._states = LiteralStates(rules, background) if rules else None
        self._closed = frozenset(background) if self._states is None else self._states.closed
        self.store = ox.Store()
        self.store.bulk_extend(quad(triple) for triple in sorted(self._closed))
        self._added: list[ox.Quad] = []
        self._removed: list[ox.Quad] = []

    def state(self, triples: Iterable[Triple]) -> frozenset[Triple]:
        """K(t) as a set, for `dotr query` and for comparison. O(closure of everything)."""
        instant = frozenset(triples)
        return self._closed | instant if self._states is None else frozenset(self._states.at(instant))

    def open(self, triples: Iterable[Triple]) -> ox.Store:
        """Put the store into K(t). The caller calls `close` before the next instant."""
        instant = frozenset(triples)
        if instant:
            state = self.state(instant)
            self._removed = [quad(triple) for triple in self._closed if triple not in state]
            self._added = [quad(triple) for triple in state if triple not in self._closed]
        for old in self._removed:
            self.store.remove(old)
        self.store.extend(self._added)
        return self.store

    def close(self) -> None:
        """Forget the instant."""
        for new in self._added:
            self.store.remove(new)
        self.store.extend(self._removed)
        self._added, self._removed = [], []
