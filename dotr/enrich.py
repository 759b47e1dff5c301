"""Step 1: enrich. The triples of one instant become K(t), the least model over background and instant.

Place:   called by pipeline.py once per instant; what it opens, extract.py reads; knows no other time.
Method:  paper, sec. 4, "knowledge inference", without its deletions: the background is closed and indexed
         once, an instant is an overlay over it that is thrown away (datalog/materialiser.py). The literal
         reading beside it closes the rules over everything that holds at t, anew at each t.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyoxigraph as ox

from dotr.datalog.closing import load_background, saved_lists
from dotr.datalog.materialiser import Materialiser
from dotr.datalog.oracle import closure
from dotr.datalog.owl_lists import list_rules
from dotr.errors import DataError
from dotr.ir import DatalogRule, Entailment, Program
from dotr.joins.relations import ALL, Relation
from dotr.rdf.terms import Triple, to_oxigraph
from dotr.sparql.extraction import needed


def enricher(program: Program, background: Collection[Triple], materialize_all: bool = False) -> Materialiser:
    """The program's rules over its background, closed and indexed: `instant` opens K(t), `forget` drops it.

    Unless `materialize_all`, what no query can reach is neither derived nor kept.
    Raises ProgramError for the rules, DataError D3101 for a background that contradicts its ontology.
    """
    relations = wanted(program, materialize_all)
    materialiser = Materialiser(rules_over(program, background), background, needed=relations)
    clashes = materialiser.clashes()
    if clashes:
        raise DataError(clashes)
    return materialiser


def reopened(program: Program, saved: bytes, materialize_all: bool = False) -> Materialiser:
    """The enricher whose `closed.save()` gave these bytes, for the same program: nothing is closed again.

    Raises EngineError D5101 for bytes that are damaged or of another version.
    """
    relations = wanted(program, materialize_all)
    rules = rules_over(program, saved_lists(saved))
    return Materialiser(rules, (), needed=relations, closed=load_background(rules, saved, relations))


def wanted(program: Program, materialize_all: bool) -> frozenset[Relation]:
    """The relations that the program's queries read; with `materialize_all`, all."""
    relations = needed(program.queries)
    return relations | {ALL} if materialize_all else relations


def rules_over(program: Program, background: Collection[Triple]) -> tuple[DatalogRule, ...]:
    """All rules that hold over a background: the program's, and under OWL 2 RL those its lists stand for."""
    if program.entailment is not Entailment.OWL2RL:
        return program.datalog
    return (*program.datalog, *list_rules(background))


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
        self._rules = tuple(rules)
        self._explicit = frozenset(background)
        self._closed = frozenset(closure(self._rules, self._explicit)) if self._rules else self._explicit
        self.store = ox.Store()
        self.store.bulk_extend(quad(triple) for triple in sorted(self._closed))
        self._added: list[ox.Quad] = []
        self._removed: list[ox.Quad] = []

    def state(self, triples: Iterable[Triple]) -> frozenset[Triple]:
        """K(t) as a set, for `dotr query` and for comparison. O(closure of everything)."""
        instant = frozenset(triples)
        if not self._rules:
            return self._closed | instant
        return frozenset(closure(self._rules, self._explicit | instant))

    def open(self, triples: Iterable[Triple]) -> ox.Store:
        """Put the store into K(t). The caller calls `close` before the next instant."""
        instant = frozenset(triples)
        if instant:
            if self._rules:
                state = closure(self._rules, self._explicit | instant)
                self._removed = [quad(triple) for triple in self._closed if triple not in state]
                self._added = [quad(triple) for triple in state if triple not in self._closed]
            else:
                self._added = [quad(triple) for triple in instant if triple not in self._closed]
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
