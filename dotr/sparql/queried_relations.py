"""Which relations a query reads.

Place:   what no query reaches is pruned from rules and background; an interpreted query is evaluated again
         only when an instant touched one of its relations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from dotr import ir
from dotr.joins.graph_relations import ALL, Relation, relation_of
from dotr.sparql.algebra import Pattern
from dotr.sparql.path_expansion import may_be_empty
from dotr.sparql.rewriting import Rewriter


def relations_of(select: ir.Select) -> frozenset[Relation]:
    """The relations of all patterns, including nested queries and EXISTS; `ALL` if any triple may matter."""
    found: set[Relation] = set()

    def look(triples: ir.Triples) -> list[ir.Element]:
        for pattern in triples.patterns:
            found.update(read_by(pattern))
        return [triples]

    def same(expression: ir.Expression) -> ir.Expression:
        return expression

    walk = Rewriter(same, lambda nested: walk.select(nested), look)
    walk.select(select)
    return frozenset(found)


def read_by(pattern: ir.TriplePattern | Pattern) -> Iterator[Relation]:
    """The relations that one pattern reads."""
    predicate = pattern.predicate
    if isinstance(predicate, (str, ir.Var)):
        yield relation_of(pattern.subject, predicate, pattern.object)
        return
    yield from _of_path(predicate)
    both = isinstance(pattern.subject, ir.Var) and isinstance(pattern.object, ir.Var)
    if both and may_be_empty(predicate):
        yield ALL  # a path of length zero joins every node of the graph with itself


def _of_path(path: ir.Path) -> Iterator[Relation]:
    match path:
        case str():
            yield path
        case ir.Inverse(inner):
            yield from _of_path(inner)
        case ir.Sequence(paths) | ir.Alternative(paths):
            for step in paths:
                yield from _of_path(step)
                if len(paths) > 1 and may_be_empty(step):
                    yield ALL  # its ends are new variables
        case ir.Repeat(inner):
            yield from _of_path(inner)
        case ir.NegatedSet():
            yield ALL
        case _:
            assert_never(path)
