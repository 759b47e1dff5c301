"""A set of triples that can be matched with a pattern: the plain data structure under the oracle.

Place:   used by oracle.py and by schema.py, where clarity counts and speed does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dotr.ir import Atom, Node, Var
from dotr.joins.graph_relations import is_anonymous
from dotr.rdf.terms import Term, Triple

Binding = Mapping[str, Term]


class TripleSet:
    """Owns a growing set of triples, found by predicate, predicate and subject, or predicate and object."""

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        self.all: set[Triple] = set()
        self._by: dict[tuple[Term | None, Term | None, Term | None], dict[Triple, None]] = {}
        for triple in triples:
            self.add(triple)

    def add(self, triple: Triple) -> bool:
        """Whether it is new."""
        if triple in self.all:
            return False
        self.all.add(triple)
        s, p, o = triple
        for key in ((None, p, None), (s, p, None), (None, p, o)):
            self._by.setdefault(key, {})[triple] = None
        return True

    def matches(self, atom: Atom, binding: Binding) -> Iterator[dict[str, Term]]:
        """Every extension of `binding` that puts the atom in the set. A predicate that nothing binds is an
        IRI: triples of anonymous properties are found by name only.
        """
        s, p, o = (_value(node, binding) for node in (atom.subject, atom.predicate, atom.object))
        candidates: Iterable[Triple]
        if p is None:
            candidates = (triple for triple in self.all if not is_anonymous(triple[1]))
        elif s is not None and o is not None:
            candidates = ((s, p, o),) if (s, p, o) in self.all else ()
        else:
            candidates = self._by.get((s, p, o), ())
        for triple in candidates:
            extended = _extend(atom, triple, binding)
            if extended is not None:
                yield extended

    def holds(self, atom: Atom, binding: Binding) -> bool:
        """Whether some extension of `binding` puts the atom in the set."""
        return next(self.matches(atom, binding), None) is not None


def _value(node: Node, binding: Binding) -> Term | None:
    return binding.get(node.name) if isinstance(node, Var) else node


def _extend(atom: Atom, triple: Triple, binding: Binding) -> dict[str, Term] | None:
    extended = dict(binding)
    for node, term in zip((atom.subject, atom.predicate, atom.object), triple, strict=True):
        if isinstance(node, Var):
            if extended.setdefault(node.name, term) != term:
                return None
        elif node != term:
            return None
    return extended
