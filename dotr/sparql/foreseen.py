"""The second reading of a query, in bounded time: the full engine if its work can be foreseen.

Place:   between `--verify` and full.py; tests ask full.py itself.
Method:  the full engine cannot be interrupted. So the rows that it may visit are bounded before it starts: a
         joined pattern visits at most as many as one value has, a repeated path visits every node from every
         node. Past the budget the metered interpreter answers, which shares its look-ups with the checked
         engine, and can be stopped.
Why not: a process to kill: it needs a copy of the state for every query and instant.
Bad input: D4091 work beyond the budget of the interpreter, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

import pyoxigraph as ox
from msgspec import Struct

from dotr.budget import BUDGET, Exhausted, Meter
from dotr.errors import ProgramError
from dotr.events import Values as Row
from dotr.ir import Minus, OptionalGroup, Select, SubSelect, TriplePattern, Union, Values, Var
from dotr.ir.queries import Alternative, Inverse, NegatedSet, Path, Repeat, Sequence
from dotr.rdf.terms import Term, to_oxigraph
from dotr.sparql.full import FullQuery, widened

PATHS = (Inverse, Sequence, Alternative, Repeat, NegatedSet)
LARGEST = 2 * BUDGET
"""Units that the interpreter may take instead of the full engine."""


class ForeseenQuery:
    """Like FullQuery, over states of any size. Raises ProgramError D1290, D4091."""

    def __init__(self, select: Select, budget: int = BUDGET, largest: int = LARGEST) -> None:
        self._select, self._full = select, FullQuery(select)
        self._budget, self._largest = budget, largest

    def rows(self, store: ox.Store, now: Term) -> list[Row]:
        """The answers as attributes of facts."""
        return widened(self.solutions(store, now))

    def solutions(self, store: ox.Store, now: Term) -> list[Row]:
        """Every answer, in ORDER BY order and cut if the query has that, else canonical."""
        if foreseen(self._select, store) <= self._budget:
            return self._full.solutions(store, now)
        return self._interpreted(store, now)

    def ask(self, store: ox.Store, now: Term) -> bool:
        """The answer of an ASK query."""
        if foreseen(self._select, store) <= self._budget:
            return self._full.ask(store, now)
        return bool(self._interpreted(store, now))

    def _interpreted(self, store: ox.Store, now: Term) -> list[Row]:
        # literal readings use no engine: this one is loaded only if they cannot answer
        from dotr.joins.store import TripleIndex  # noqa: PLC0415
        from dotr.rdf.background import Background  # noqa: PLC0415
        from dotr.sparql.interpreter import InterpretedQuery  # noqa: PLC0415

        index = TripleIndex(Background([_terms(quad) for quad in store]))
        index.moment.now = now
        try:
            return InterpretedQuery(self._select, index, Meter(self._largest)).solutions()
        except Exhausted:
            raise ProgramError.of(
                "D4091",
                "this query takes more work to check than to answer",
                self._select.span,
                label=f"more than {self._largest:,} units in the literal reading",
                hint="run without --verify, or over a smaller state",
            ) from None


def _terms(quad: ox.Quad) -> tuple[Term, Term, Term]:
    return str(quad.subject), str(quad.predicate), str(quad.object)


def foreseen(select: Select, store: ox.Store) -> float:
    """The most rows that a query may visit when patterns are joined in order. O(state)."""
    return _Estimate(store).of(select, set())


class _Estimate:
    """Owns counts of a store: the rows of a predicate, and the most of one end."""

    def __init__(self, store: ox.Store) -> None:
        self._store = store
        self._counted: dict[Term | None, tuple[int, int, int]] = {}
        self._nodes: int | None = None

    def of(self, node: object, bound: set[str]) -> float:
        """The rows of any part of a query; adds to `bound` the variables that it binds."""
        match node:
            case TriplePattern():
                return max(1.0, self._pattern(node, bound))
            case Union(branches=branches):
                return sum(self.of(branch, set(bound)) for branch in branches)
            case Values(rows=rows):
                return max(1.0, len(rows))
            case OptionalGroup(group=group) | Minus(group=group):  # what they bind may be unbound after them
                return self.of(group, set(bound))
            case SubSelect(select=select):
                return self.of(select, set())
            case tuple():
                return prod(self.of(part, bound) for part in node)
            case Struct():
                return prod(self.of(getattr(node, n), bound) for n in node.__struct_fields__ if n != "span")
            case _:
                return 1.0

    def _pattern(self, pattern: TriplePattern, bound: set[str]) -> float:
        ends = [not isinstance(e, Var) or e.name in bound for e in (pattern.subject, pattern.object)]
        bound.update(e.name for e in (pattern.subject, pattern.object) if isinstance(e, Var))
        if not isinstance(pattern.predicate, Var):
            rows, out, into = self._path(pattern.predicate)
        else:
            rows, out, into = self._predicate(None)
            bound.add(pattern.predicate.name)
        match ends:
            case [True, True]:
                return min(out, into) if isinstance(pattern.predicate, PATHS) else 1
            case [True, False]:
                return out
            case [False, True]:
                return into
            case _:
                return rows

    def _path(self, path: Path) -> tuple[float, float, float]:
        """Nodes visited (from everywhere, from one node forwards, and backwards), at most."""
        match path:
            case Inverse(path=inner):
                rows, out, into = self._path(inner)
                return rows, into, out
            case Sequence(paths=paths):
                first, *more = (self._path(part) for part in paths)
                outs = prod(part[1] for part in more)
                return first[0] * outs, first[1] * outs, first[2] * prod(part[2] for part in more)
            case Alternative(paths=paths):
                rows, out, into = (sum(column) for column in zip(*map(self._path, paths), strict=True))
                return rows, out, into
            case Repeat(path=inner):
                _rows, out, into = self._path(inner)
                nodes = self._count_nodes()
                return nodes * nodes * max(out, 1), nodes * max(out, 1), nodes * max(into, 1)
            case NegatedSet():
                return self._predicate(None)
            case _:
                return self._predicate(path)

    def _predicate(self, predicate: Term | None) -> tuple[int, int, int]:
        if predicate not in self._counted:
            subjects: Counter[object] = Counter()
            objects: Counter[object] = Counter()
            for quad in self._quads(predicate):
                subjects[quad.subject] += 1
                objects[quad.object] += 1
            most = [max(ends.values(), default=0) for ends in (subjects, objects)]
            self._counted[predicate] = subjects.total(), most[0], most[1]
        return self._counted[predicate]

    def _quads(self, predicate: Term | None) -> Iterator[ox.Quad]:
        named = None if predicate is None else to_oxigraph(predicate)
        return self._store.quads_for_pattern(None, named, None, None)  # type: ignore[arg-type]  # an IRI

    def _count_nodes(self) -> int:
        if self._nodes is None:
            self._nodes = len({end for quad in self._quads(None) for end in (quad.subject, quad.object)})
        return self._nodes
