"""The triples along a property path: a shortest walk from one node to another.

Place:   solutions.py asks for the premises of a path that repeats (`*`, `+`, `?`) or is a negated set.
Method:  breadth first over the path's parts; SPARQL 1.1, sec. 9.3: a path of length zero joins a node with
         itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from dotr.ir import Alternative, Inverse, NegatedSet, Path, Repeat, Var
from dotr.ir import Sequence as SequencePath
from dotr.joins.body import View, triple_pattern
from dotr.joins.graph_relations import ALL
from dotr.joins.store import TripleIndex
from dotr.rdf.terms import Term, Triple

Walks: TypeAlias = dict[Term, tuple[Triple, ...]]
"""Node → the triples of a shortest walk to it."""


def walks(path: Path, start: Term, store: TripleIndex, backwards: bool = False) -> Walks:
    """The nodes that a path leads to from `start` (`backwards`: from which it leads there)."""
    match path:
        case str():
            return {
                (s if backwards else o): ((s, path, o),) for s, o in _pairs(path, start, store, backwards)
            }
        case Inverse(inner):
            return walks(inner, start, store, not backwards)
        case SequencePath(paths):
            found: Walks = {start: ()}
            for part in reversed(paths) if backwards else paths:
                found = _extended(found, part, store, backwards)
            return found
        case Alternative(paths):
            found = {}
            for part in paths:
                _keep(found, walks(part, start, store, backwards).items())
            return found
        case Repeat(inner, minimum, unbounded):
            found = {start: ()} if minimum == 0 else {}
            frontier: Walks = {start: ()}
            while frontier:
                reached = _extended(frontier, inner, store, backwards)
                frontier = {node: walk for node, walk in reached.items() if node not in found}
                found |= frontier
                if not unbounded:
                    break
            return found
        case NegatedSet(forward, inverse):
            found = {}
            if forward or not inverse:
                _keep(found, _others(frozenset(forward), start, store, backwards))
            if inverse:
                _keep(found, _others(frozenset(inverse), start, store, not backwards))
            return found
        case _:
            assert_never(path)


def _extended(found: Walks, path: Path, store: TripleIndex, backwards: bool) -> Walks:
    longer: Walks = {}
    for node, walk in found.items():
        _keep(longer, ((n, (*walk, *more)) for n, more in walks(path, node, store, backwards).items()))
    return longer


def _keep(found: Walks, more: Iterable[tuple[Term, tuple[Triple, ...]]]) -> None:
    """The shorter walk to each node."""
    for node, walk in more:
        if node not in found or len(walk) < len(found[node]):
            found[node] = walk


def _pairs(predicate: Term, start: Term, store: TripleIndex, backwards: bool) -> list[tuple[Term, Term]]:
    pattern = triple_pattern(Var("s"), predicate, Var("o"))
    row = [None, start] if backwards else [start, None]
    return [(s, o) for s, o in store.find(pattern.relation, row, View.NEW)]


def _others(
    excluded: frozenset[Term], start: Term, store: TripleIndex, backwards: bool
) -> list[tuple[Term, tuple[Triple, ...]]]:
    """One triple of any predicate but some."""
    row = [None, None, start] if backwards else [start, None, None]
    triples = sorted((s, p, o) for s, p, o in store.find(ALL, row, View.NEW) if p not in excluded)
    return [((s if backwards else o), ((s, p, o),)) for s, p, o in triples]


def nodes(store: TripleIndex) -> list[Term]:
    """Every subject and object that holds now, in order."""
    rows = store.find(ALL, [None, None, None], View.NEW)
    return sorted({term for s, _, o in rows for term in (s, o)})
