"""Expansion of property paths: sequences as joins, inverses swapped, alternatives as unions.

Place:   first pass over a query, for both engines.
Method:  SPARQL 1.1, sec. 18.2.2.4 and 18.4; a sequence of n steps gets n − 1 new variables, whose names start
         with a dot like those of blank nodes. `!( )` outside a repetition is a pattern and a filter, one
         solution per triple. `*`, `+` and `?` stay.
Why not: leave it to pyoxigraph: it finds each pair of ends of an alternative once, the standard once per
         branch; and those of `!( )` once or once per triple, depending on its joins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from dotr import ir


def spelled_out(pattern: ir.TriplePattern, fresh: Callable[[], ir.Var]) -> list[ir.Element]:
    """The elements equivalent to one pattern; `fresh` makes variables."""
    match pattern.predicate:
        case str() | ir.Var() | ir.Repeat():
            return [ir.Triples((pattern,))]
        case ir.NegatedSet(excluded, ()):
            between = fresh()
            step = ir.Triples((replace(pattern, predicate=between),))
            other = ir.Filter(ir.Call("NOT-IN", (between, *map(ir.Const, excluded))))
            return [ir.GroupPattern((step, other))]
        case ir.NegatedSet((), inverse):
            return spelled_out(replace(pattern, predicate=ir.Inverse(ir.NegatedSet(inverse, ()))), fresh)
        case ir.NegatedSet(forward, inverse):
            parts = (ir.NegatedSet(forward, ()), ir.NegatedSet((), inverse))
            return spelled_out(replace(pattern, predicate=ir.Alternative(parts)), fresh)
        case ir.Inverse(path):
            turned = ir.TriplePattern(pattern.object, path, pattern.subject, pattern.span)
            return spelled_out(turned, fresh)
        case ir.Sequence(paths):
            nodes: list[ir.Node] = [pattern.subject, *(fresh() for _ in paths[1:]), pattern.object]
            found: list[ir.Element] = []
            for path, start, end in zip(paths, nodes[:-1], nodes[1:], strict=True):
                found += spelled_out(ir.TriplePattern(start, path, end, pattern.span), fresh)
            return found
        case ir.Alternative(paths):
            steps = (ir.TriplePattern(pattern.subject, path, pattern.object, pattern.span) for path in paths)
            return [ir.Union(tuple(ir.GroupPattern(tuple(spelled_out(step, fresh))) for step in steps))]
        case _:
            assert_never(pattern.predicate)


def may_be_empty(path: ir.Path) -> bool:
    """Whether the path may have length zero."""
    match path:
        case str() | ir.NegatedSet():
            return False
        case ir.Inverse(inner):
            return may_be_empty(inner)
        case ir.Sequence(paths):
            return all(map(may_be_empty, paths))
        case ir.Alternative(paths):
            return any(map(may_be_empty, paths))
        case ir.Repeat(inner, minimum):
            return minimum == 0 or may_be_empty(inner)
        case _:
            assert_never(path)
