"""The query for the full engine: its answers are those of the contract, in whatever order the engine works.

Place:   between the tree and full.py; the only place that knows pyoxigraph's peculiarities.
Method:  language.md, sec. 1. Aggregates become custom aggregate functions over every candidate, errors
         included (pyoxigraph drops a group with an error, sums in any order, has its own MIN); `NOW()`
         becomes a marker; ORDER BY, LIMIT and OFFSET are removed, keys become further columns; paths are
         expanded, blank nodes become variables; operators on numbers become calls of literal ones
         (called_operators.py); an alias used in HAVING or in a later SELECT expression of a
         grouped query is substituted.
Why not: ordering and cutting there: `<` completed by text is not an order, and ties would be arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import TypeVar

import pyoxigraph as ox
from msgspec import Struct
from msgspec.structs import replace

from dotr import ir
from dotr.budget import Overlong
from dotr.expressions.aggregates import AGGREGATES
from dotr.expressions.literal_numbers import summarised
from dotr.joins.automaton import automaton
from dotr.rdf.terms import TRUE, Term, to_oxigraph
from dotr.sparql.bound_variables import is_grouped, names, visible
from dotr.sparql.called_operators import FUNCTIONS as OPERATORS
from dotr.sparql.called_operators import called, condition
from dotr.sparql.path_expansion import may_be_empty, spelled_out
from dotr.sparql.printing import NOW_MARK
from dotr.sparql.rewriting import Rewriter, spell_out, with_known_functions
from dotr.sparql.solution_aggregates import total

_SPACE = "urn:dotr:sparql:"
_NO_VALUE: Term = f"<{_SPACE}no-value>"
_ROW = f"<{_SPACE}row>"
_SAME = f"<{_SPACE}same>"
_Place = TypeVar("_Place")

OxTerm = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


class Prepared(Struct, frozen=True):
    """A query for pyoxigraph. `order`: columns to sort by, and whether downwards; `width`: the number of the
    query's own columns (which come first); `limit` and `offset` are still to be applied; `base`: for
    IRI()."""

    select: ir.Select
    base: Term | None
    width: int
    order: tuple[tuple[int, bool], ...]
    limit: int | None
    offset: int


def prepare(select: ir.Select) -> Prepared:
    """Split a query into what pyoxigraph does and what remains to be done here."""
    inner = _inner(without_paths(with_known_functions(select), _unused(select, "path")), _Nodes(select))
    if select.ask:
        if not is_grouped(select):
            return Prepared(inner, base_of(select), 0, (), None, 0)
        inner = replace(inner, ask=False, projection=(ir.Projection(_fresh(select, 1)[0], ir.Const(TRUE)),))
    columns = list(inner.projection)
    own = {p.variable.name: i for i, p in enumerate(columns)}
    order: list[tuple[int, bool]] = []
    for key, name in zip(inner.order_by, _fresh(select, len(inner.order_by)), strict=True):
        expression = key.expression
        if isinstance(expression, ir.Var) and expression.name in own:
            order.append((own[expression.name], key.descending))
            continue
        order.append((len(columns), key.descending))
        columns.append(ir.Projection(name, expression))
    bare = replace(inner, projection=tuple(columns), order_by=(), limit=None, offset=0)
    width = len(select.projection)
    return Prepared(bare, base_of(select), width, tuple(order), select.limit, select.offset)


def base_of(select: ir.Select) -> Term | None:
    """The BASE against which an IRI() of the query resolves, if any."""
    found: list[Term] = []

    def look(expression: ir.Expression) -> ir.Expression:
        if isinstance(expression, ir.Call) and expression.function == "IRI":
            found.extend(a.term for a in expression.arguments[1:] if isinstance(a, ir.Const))
        return expression

    walk = Rewriter(look, lambda nested: walk.select(nested))
    walk.select(select)
    return found[0] if found else None


def _inner(select: ir.Select, nodes: _Nodes) -> ir.Select:
    """One query or subquery with its aggregates, `NOW()` and aliases rewritten, including nested queries.

    A nested query's order has no effect (it has no LIMIT), so it is dropped.
    """
    if is_grouped(select):
        select = spell_out(select)
    scope = (*visible(select.where), *(k.variable.name for k in select.group_by if k.variable is not None))
    nested = Rewriter(
        lambda expression: _node(expression, scope),
        lambda subquery: replace(_inner(subquery, nodes), order_by=()),
        nodes.completed,
        condition=condition,
    )
    return replace(nested.select(select), star=False, reduced=False)


def _node(expression: ir.Expression, scope: tuple[str, ...]) -> ir.Expression:
    match expression:
        case ir.Call("NOW", ()):
            return ir.Const(NOW_MARK)
        case ir.Aggregate("COUNT", None, False):
            return expression
        case ir.Aggregate(function, argument, distinct) if function in AGGREGATES:
            name = f"<{_SPACE}{function}{'-distinct' if distinct else ''}>"
            if argument is None:
                argument = ir.Call(_ROW, tuple(_or_none(ir.Var(variable)) for variable in scope))
            return ir.Call(name, (_or_none(argument),))
        case _:
            return called(expression)


def without_paths(select: ir.Select, name: str = ".path") -> ir.Select:
    """The query with its paths expanded, including nested queries; new variables are `name` and a number."""
    made = count()

    def fresh() -> ir.Var:
        return ir.Var(f"{name}{next(made)}")

    walk = Rewriter(
        lambda expression: expression,
        lambda nested: walk.select(nested),
        lambda triples: _triples(triples, fresh),
    )
    return walk.select(select)


def _triples(triples: ir.Triples, fresh: Callable[[], ir.Var]) -> list[ir.Element]:
    """Paths expanded: patterns first, unions of alternatives after them."""
    plain: list[ir.TriplePattern] = []
    others: list[ir.Element] = []
    for pattern in triples.patterns:
        for element in spelled_out(pattern, fresh):
            if isinstance(element, ir.Triples):
                plain += element.patterns
            else:
                others.append(element)
    return [*([ir.Triples(tuple(plain))] if plain else []), *others]


class _Nodes:
    """Owns new names for nodes of a query's patterns, and the variables that its expressions mention."""

    def __init__(self, select: ir.Select) -> None:
        self._blank = _unused(select, "blank")
        self._end = _unused(select, "end")
        self._made = count()
        self._mentioned: set[str] = set()
        walk = Rewriter(self._note, lambda nested: walk.select(nested))
        walk.select(select)

    def _note(self, expression: ir.Expression) -> ir.Expression:
        if isinstance(expression, ir.Var):
            self._mentioned.add(expression.name)
        return expression

    def completed(self, triples: ir.Triples) -> list[ir.Element]:
        """Blank nodes as variables (one label may not occur in two blocks), paths of length zero completed.

        pyoxigraph finds a path of length zero from or to a constant only if a triple has that constant. So
        `?x :p* :c` becomes the solution ?x = :c, and all others.
        """
        plain: list[ir.TriplePattern] = []
        others: list[ir.Element] = []
        for pattern in triples.patterns:
            path = self._named(pattern.predicate)
            subject, object_ = self._named(pattern.subject), self._named(pattern.object)
            renamed = ir.TriplePattern(subject, path, object_, pattern.span)
            if isinstance(path, (str, ir.Var)):
                plain.append(renamed)
                continue
            element: ir.Element = ir.Triples((renamed,))
            if isinstance(subject, ir.Var) and subject.name in self._mentioned and _may_leave_literals(path):
                element = self._of_any_kind(subject, object_, renamed)
            if may_be_empty(path) and not (isinstance(subject, ir.Var) and isinstance(object_, ir.Var)):
                others += _zero_length(subject, object_, element)
            else:
                others.append(element)
        return [*([ir.Triples(tuple(plain))] if plain else []), *others]

    def _of_any_kind(self, subject: ir.Var, object_: ir.Node, pattern: ir.TriplePattern) -> ir.SubSelect:
        """A path whose subject may be a literal; pyoxigraph assumes that it is not, and would compare it by
        identity.
        """
        end = ir.Var(f"{self._end}{next(self._made)}")
        known = ir.Bind(ir.Call(_SAME, (end,)), subject)
        inner = replace(pattern, subject=end, object=end if object_ == subject else object_)
        names = dict.fromkeys(node for node in (subject, object_) if isinstance(node, ir.Var))
        where = ir.GroupPattern((ir.Triples((inner,)), known))
        return ir.SubSelect(ir.Select(tuple(map(ir.Projection, names)), where))

    def _named(self, place: _Place) -> _Place | ir.Var:
        if isinstance(place, ir.Var) and place.name[0] == ".":
            return ir.Var(self._blank + place.name[1:])
        return place


def _zero_length(subject: ir.Node, object_: ir.Node, element: ir.Element) -> list[ir.Element]:
    """A path that may be empty from or to a constant: the solution of length zero, or another."""
    if subject == object_:
        return []
    if isinstance(subject, ir.Var) and isinstance(object_, str):
        variable, constant = subject, object_
    elif isinstance(object_, ir.Var) and isinstance(subject, str):
        variable, constant = object_, subject
    else:
        return [element]
    differs = ir.Filter(ir.Call("!", (ir.Call("SAMETERM", (variable, ir.Const(constant))),)))
    zero = ir.Values((variable,), ((constant,),))  # joins, whereas BIND inside EXISTS would overwrite
    return [ir.Union((ir.GroupPattern((zero,)), ir.GroupPattern((element, differs))))]


def _may_leave_literals(path: ir.Path) -> bool:
    """Whether the subject of a pattern with this path may be a literal."""
    found = automaton(path)
    return found.nullable or any(not edge.forward for edge, _ in found.forward.moves[0])


def _or_none(expression: ir.Expression) -> ir.Expression:
    return ir.Call("COALESCE", (expression, ir.Const(_NO_VALUE)))


def _fresh(select: ir.Select, count: int) -> list[ir.Var]:
    prefix = _unused(select, "key") if count else ""
    return [ir.Var(f"{prefix}{i}") for i in range(count)]


def _unused(select: ir.Select, prefix: str) -> str:
    """`prefix`, made longer until no variable of the query begins with it."""
    taken = names(select)
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


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
        try:
            found = total(self._function, self._distinct, self._values, summarised)
        except Overlong:  # an error that only an engine reports
            return None
        return None if found is None else to_oxigraph(found)


def _maker(function: str, distinct: bool) -> Callable[[], _Accumulator]:
    return lambda: _Accumulator(function, distinct)


def _row(*terms: OxTerm) -> ox.Literal:
    """One literal for a whole solution, for `COUNT(DISTINCT *)`."""
    return ox.Literal(" ".join(map(str, terms)))


CUSTOM_AGGREGATES: Mapping[ox.NamedNode, Callable[[], _Accumulator]] = {
    ox.NamedNode(f"{_SPACE}{function}{'-distinct' if distinct else ''}"): _maker(function, distinct)
    for function in AGGREGATES
    for distinct in (False, True)
}


def _same(term: OxTerm) -> OxTerm:
    """The term unchanged; the call hides its kind from pyoxigraph."""
    return term


FUNCTIONS: Mapping[ox.NamedNode, Callable[..., OxTerm | None]] = {
    ox.NamedNode(f"{_SPACE}row"): _row,
    ox.NamedNode(f"{_SPACE}same"): _same,
    **OPERATORS,
}
