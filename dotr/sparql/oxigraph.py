"""What the full engine is given: a query whose answers are those of the contract, whatever order it works in.

Place:   between the tree and full.py; the only place that knows pyoxigraph's ways.
Method:  language.md, sec. 1. Aggregates become custom aggregate functions over every candidate, errors
         included (pyoxigraph gives up on a group with one error, adds up in any order, has its own MIN);
         `NOW()` becomes a mark; ORDER BY, LIMIT and OFFSET are taken off, keys come as further columns;
         an alias used in HAVING or in a later SELECT expression of a grouped query is spelled out.
Why not: ordering and cutting there: SPARQL's `<` completed by text is no order, and ties would be arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyoxigraph as ox

from dotr.ir import Aggregate, Call, Const, Expression, Projection, Select, Var
from dotr.rdf.terms import TRUE, Term, to_oxigraph
from dotr.sparql.printing import NOW_MARK
from dotr.sparql.rewriting import Rewriter, spell_out
from dotr.sparql.scope import is_grouped, names, visible
from dotr.sparql.totals import total

_SPACE = "urn:dotr:sparql:"
_NO_VALUE: Term = f"<{_SPACE}no-value>"
_ROW = f"<{_SPACE}row>"
_FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")

OxTerm = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query for pyoxigraph. `order`: columns to sort by, and whether downwards; `width`: how many columns
    are the query's own (they stand first); `limit` and `offset` are still to be applied."""

    select: Select
    width: int
    order: tuple[tuple[int, bool], ...]
    limit: int | None
    offset: int


def prepare(select: Select) -> Prepared:
    """Split a query into what pyoxigraph does and what is left to us."""
    inner = _inner(select)
    if select.ask:
        if not is_grouped(select):
            return Prepared(inner, 0, (), None, 0)
        inner = replace(inner, ask=False, projection=(Projection(_fresh(select, 1)[0], Const(TRUE)),))
    columns = list(inner.projection)
    own = {p.variable.name: i for i, p in enumerate(columns)}
    order: list[tuple[int, bool]] = []
    for key, name in zip(inner.order_by, _fresh(select, len(inner.order_by)), strict=True):
        expression = key.expression
        if isinstance(expression, Var) and expression.name in own:
            order.append((own[expression.name], key.descending))
            continue
        order.append((len(columns), key.descending))
        columns.append(Projection(name, expression))
    bare = replace(inner, projection=tuple(columns), order_by=(), limit=None, offset=0)
    return Prepared(bare, len(select.projection), tuple(order), select.limit, select.offset)


def _inner(select: Select) -> Select:
    """One query or subquery with its aggregates, `NOW()` and aliases rewritten; nested queries as well."""
    if is_grouped(select):
        select = spell_out(select)
    scope = (*visible(select.where), *(k.variable.name for k in select.group_by if k.variable is not None))
    nested = Rewriter(lambda expression: _node(expression, scope), _subquery)
    return replace(nested.select(select), star=False, reduced=False)


def _subquery(select: Select) -> Select:
    """A nested query: its order cannot be seen (it has no LIMIT), so it goes."""
    return replace(_inner(select), order_by=())


def _node(expression: Expression, scope: tuple[str, ...]) -> Expression:
    match expression:
        case Call("NOW", ()):
            return Const(NOW_MARK)
        case Aggregate("COUNT", None, False):
            return expression
        case Aggregate(function, argument, distinct) if function in _FUNCTIONS:
            name = f"<{_SPACE}{function}{'-distinct' if distinct else ''}>"
            if argument is None:
                argument = Call(_ROW, tuple(_or_none(Var(variable)) for variable in scope))
            return Call(name, (_or_none(argument),))
        case _:
            return expression


def _or_none(expression: Expression) -> Expression:
    return Call("COALESCE", (expression, Const(_NO_VALUE)))


def _fresh(select: Select, count: int) -> list[Var]:
    taken = names(select) if count else set()
    prefix = "key"
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return [Var(f"{prefix}{i}") for i in range(count)]


class _Accumulator:
    """Owns the values of one group; `None` stands for an error or an unbound value."""

    __slots__ = ("_distinct", "_function", "_values")

    def __init__(self, function: str, distinct: bool) -> None:
        self._function = function
        self._distinct = distinct
        self._values: list[Term | None] = []

    def accumulate(self, term: OxTerm) -> None:
        text = str(term)
        self._values.append(None if text == _NO_VALUE else text)

    def finish(self) -> OxTerm | None:
        found = total(self._function, self._distinct, self._values)
        return None if found is None else to_oxigraph(found)


def _maker(function: str, distinct: bool) -> Callable[[], _Accumulator]:
    return lambda: _Accumulator(function, distinct)


def _row(*terms: OxTerm) -> ox.Literal:
    """One literal for a whole solution, for `COUNT(DISTINCT *)`."""
    return ox.Literal(" ".join(map(str, terms)))


AGGREGATES: Mapping[ox.NamedNode, Callable[[], _Accumulator]] = {
    ox.NamedNode(f"{_SPACE}{function}{'-distinct' if distinct else ''}"): _maker(function, distinct)
    for function in _FUNCTIONS
    for distinct in (False, True)
}
FUNCTIONS: Mapping[ox.NamedNode, Callable[..., ox.Literal]] = {ox.NamedNode(f"{_SPACE}row"): _row}
