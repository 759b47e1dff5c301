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

from dotr.ir import (
    Alternative,
    Call,
    Const,
    Element,
    Filter,
    GroupPattern,
    Inverse,
    NegatedSet,
    Node,
    Path,
    Repeat,
    Sequence,
    TriplePattern,
    Triples,
    Union,
    Var,
)
from dotr.late import replace


def spelled_out(pattern: TriplePattern, fresh: Callable[[], Var]) -> list[Element]:
    """The elements equivalent to one pattern; `fresh` makes variables."""
    match pattern.predicate:
        case str() | Var() | Repeat():
            return [Triples((pattern,))]
        case NegatedSet(excluded, ()):
            between = fresh()
            step = Triples((replace(pattern, predicate=between),))
            other = Filter(Call("NOT-IN", (between, *map(Const, excluded))))
            return [GroupPattern((step, other))]
        case NegatedSet((), inverse):
            return spelled_out(replace(pattern, predicate=Inverse(NegatedSet(inverse, ()))), fresh)
        case NegatedSet(forward, inverse):
            parts = (NegatedSet(forward, ()), NegatedSet((), inverse))
            return spelled_out(replace(pattern, predicate=Alternative(parts)), fresh)
        case Inverse(path):
            turned = TriplePattern(pattern.object, path, pattern.subject, pattern.span)
            return spelled_out(turned, fresh)
        case Sequence(paths):
            nodes: list[Node] = [pattern.subject, *(fresh() for _ in paths[1:]), pattern.object]
            found: list[Element] = []
            for path, start, end in zip(paths, nodes[:-1], nodes[1:], strict=True):
                found += spelled_out(TriplePattern(start, path, end, pattern.span), fresh)
            return found
        case Alternative(paths):
            steps = (TriplePattern(pattern.subject, path, pattern.object, pattern.span) for path in paths)
            return [Union(tuple(GroupPattern(tuple(spelled_out(step, fresh))) for step in steps))]
        case _:
            assert_never(pattern.predicate)


def may_be_empty(path: Path) -> bool:
    """Whether the path may have length zero."""
    match path:
        case str() | NegatedSet():
            return False
        case Inverse(inner):
            return may_be_empty(inner)
        case Sequence(paths):
            return all(map(may_be_empty, paths))
        case Alternative(paths):
            return any(map(may_be_empty, paths))
        case Repeat(inner, minimum):
            return minimum == 0 or may_be_empty(inner)
        case _:
            assert_never(path)
