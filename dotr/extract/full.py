"""The full SPARQL engine, pyoxigraph over a store that holds K(t), as the oracle for queries.

Place:   a second reading of what extract/ compiles or interprets: for `--verify`, the checker of proofs, and
         tests.
Method:  language.md, sec. 1: pyoxigraph finds the solutions; numbers, aggregates, order and limit are
         computed here, literally. The query is prepared once; the instant's time is inserted as a term.
         Preparation: aggregates become custom aggregate functions over every candidate, errors included
         (pyoxigraph drops a group with an error, sums in any order, has its own MIN); `NOW()` becomes a
         marker; ORDER BY, LIMIT and OFFSET are removed, and keys become further columns; paths are expanded,
         blank nodes become variables; operators on numbers become calls of literal ones
         (called_operators.py); an alias used in HAVING or in a later SELECT expression of a grouped query is
         substituted.
         Bounded time: the full engine cannot be interrupted, so `most_rows` bounds the rows that it may visit
         before it starts: a joined pattern visits at most as many rows as one value has, a repeated path
         visits every node from every node. Past the budget the metered interpreter answers, which shares its
         look-ups with the checked engine, and can be stopped. Tests call the full engine itself.
Why not: ordering and cutting in pyoxigraph: `<` completed by text is not an order, and ties would be
         arbitrary. A process to kill: it needs a copy of the state for every query and instant.
Bad input: D4091 work beyond the budget of the interpreter, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from math import prod
from typing import Any, TypeVar

import pyoxigraph as ox
from msgspec import Struct
from msgspec.structs import replace

from dotr import program
from dotr.budget import BUDGET, Exhausted, Meter, Overlong
from dotr.errors import ProgramError
from dotr.events import Values
from dotr.events import Values as Row
from dotr.expressions.aggregates import AGGREGATES, word_of
from dotr.expressions.literal_numbers import order_key, summarised
from dotr.extract.called_operators import FUNCTIONS as OPERATORS
from dotr.extract.called_operators import called, condition, own_calls
from dotr.extract.operators import aggregate as total
from dotr.extract.printing import NOW_MARK, query_text
from dotr.extract.rewriting import (
    Rewriter,
    is_grouped,
    may_be_empty,
    names,
    spell_out,
    spelled_out,
    visible,
    with_known_functions,
)
from dotr.joins.paths import automaton
from dotr.program import Minus, OptionalGroup, Select, SubSelect, TriplePattern, Union, Var
from dotr.program import Values as RowValues
from dotr.program.own_functions import OWN
from dotr.program.queries import Alternative, Inverse, NegatedSet, Path, Repeat, Sequence
from dotr.rdf.terms import TRUE, XSD_DOUBLE, XSD_FLOAT, Term, canonical, to_oxigraph
from dotr.rdf.values import Single, TermKey, decode, term_key

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

    select: program.Select
    base: Term | None
    width: int
    order: tuple[tuple[int, bool], ...]
    limit: int | None
    offset: int


def prepare(select: program.Select) -> Prepared:
    """Split a query into what pyoxigraph does and what remains to be done here."""
    inner = _inner(without_paths(with_known_functions(select), _unused(select, "path")), _Nodes(select))
    if select.ask:
        if not is_grouped(select):
            return Prepared(inner, base_of(select), 0, (), None, 0)
        inner = replace(
            inner, ask=False, projection=(program.Projection(_fresh(select, 1)[0], program.Const(TRUE)),)
        )
    columns = list(inner.projection)
    own = {p.variable.name: i for i, p in enumerate(columns)}
    order: list[tuple[int, bool]] = []
    for key, name in zip(inner.order_by, _fresh(select, len(inner.order_by)), strict=True):
        expression = key.expression
        if isinstance(expression, program.Var) and expression.name in own:
            order.append((own[expression.name], key.descending))
            continue
        order.append((len(columns), key.descending))
        columns.append(program.Projection(name, expression))
    bare = replace(inner, projection=tuple(columns), order_by=(), limit=None, offset=0)
    width = len(select.projection)
    return Prepared(bare, base_of(select), width, tuple(order), select.limit, select.offset)


def base_of(select: program.Select) -> Term | None:
    """The BASE against which an IRI() of the query resolves, if any."""
    found: list[Term] = []

    def look(expression: program.Expression) -> program.Expression:
        if isinstance(expression, program.Call) and expression.function == "IRI":
            found.extend(a.term for a in expression.arguments[1:] if isinstance(a, program.Const))
        return expression

    walk = Rewriter(look, lambda nested: walk.select(nested))
    walk.select(select)
    return found[0] if found else None


def _inner(select: program.Select, nodes: _Nodes) -> program.Select:
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


def _node(expression: program.Expression, scope: tuple[str, ...]) -> program.Expression:
    match expression:
        case program.Call("NOW", ()):
            return program.Const(NOW_MARK)
        case program.Aggregate("COUNT", None, False):
            return expression
        case program.Aggregate(function, argument, distinct) if word_of(function) in AGGREGATES:
            name = f"{_SPACE}{function.replace(' ', '-')}{'-distinct' if distinct else ''}"
            CUSTOM_AGGREGATES.setdefault(ox.NamedNode(name), _maker(function, distinct))
            if argument is None:
                argument = program.Call(_ROW, tuple(_or_none(program.Var(variable)) for variable in scope))
            return program.Call(f"<{name}>", (_or_none(argument),))
        case _:
            return called(expression)


def without_paths(select: program.Select, name: str = ".path") -> program.Select:
    """The query with its paths expanded, including nested queries; new variables are `name` and a number."""
    made = count()

    def fresh() -> program.Var:
        return program.Var(f"{name}{next(made)}")

    walk = Rewriter(
        lambda expression: expression,
        lambda nested: walk.select(nested),
        lambda triples: _triples(triples, fresh),
    )
    return walk.select(select)


def _triples(triples: program.Triples, fresh: Callable[[], program.Var]) -> list[program.Element]:
    """Paths expanded: patterns first, unions of alternatives after them."""
    plain: list[program.TriplePattern] = []
    others: list[program.Element] = []
    for pattern in triples.patterns:
        for element in spelled_out(pattern, fresh):
            if isinstance(element, program.Triples):
                plain += element.patterns
            else:
                others.append(element)
    return [*([program.Triples(tuple(plain))] if plain else []), *others]


class _Nodes:
    """Owns new names for nodes of a query's patterns, and the variables that its expressions mention."""

    def __init__(self, select: program.Select) -> None:
        self._blank = _unused(select, "blank")
        self._end = _unused(select, "end")
        self._made = count()
        self._mentioned: set[str] = set()
        walk = Rewriter(self._note, lambda nested: walk.select(nested))
        walk.select(select)

    def _note(self, expression: program.Expression) -> program.Expression:
        if isinstance(expression, program.Var):
            self._mentioned.add(expression.name)
        return expression

    def completed(self, triples: program.Triples) -> list[program.Element]:
        """Blank nodes as variables (one label may not occur in two blocks), paths of length zero completed.

        pyoxigraph finds a path of length zero from or to a constant only if a triple has that constant. So
        `?x :p* :c` becomes the solution ?x = :c, and all others.
        """
        plain: list[program.TriplePattern] = []
        others: list[program.Element] = []
        for pattern in triples.patterns:
            path = self._named(pattern.predicate)
            subject, object_ = self._named(pattern.subject), self._named(pattern.object)
            renamed = program.TriplePattern(subject, path, object_, pattern.span)
            if isinstance(path, (str, program.Var)):
                plain.append(renamed)
                continue
            element: program.Element = program.Triples((renamed,))
            if (
                isinstance(subject, program.Var)
                and subject.name in self._mentioned
                and _may_leave_literals(path)
            ):
                element = self._of_any_kind(subject, object_, renamed)
            if may_be_empty(path) and not (
                isinstance(subject, program.Var) and isinstance(object_, program.Var)
            ):
                others += _zero_length(subject, object_, element)
            else:
                others.append(element)
        return [*([program.Triples(tuple(plain))] if plain else []), *others]

    def _of_any_kind(
        self, subject: program.Var, object_: program.Node, pattern: program.TriplePattern
    ) -> program.SubSelect:
        """A path whose subject may be a literal; pyoxigraph assumes that it is not, and would compare it by
        identity.
        """
        end = program.Var(f"{self._end}{next(self._made)}")
        known = program.Bind(program.Call(_SAME, (end,)), subject)
        inner = replace(pattern, subject=end, object=end if object_ == subject else object_)
        names = dict.fromkeys(node for node in (subject, object_) if isinstance(node, program.Var))
        where = program.GroupPattern((program.Triples((inner,)), known))
        return program.SubSelect(program.Select(tuple(map(program.Projection, names)), where))

    def _named(self, place: _Place) -> _Place | program.Var:
        if isinstance(place, program.Var) and place.name[0] == ".":
            return program.Var(self._blank + place.name[1:])
        return place


def _zero_length(
    subject: program.Node, object_: program.Node, element: program.Element
) -> list[program.Element]:
    """A path that may be empty from or to a constant: the solution of length zero, or another."""
    if subject == object_:
        return []
    if isinstance(subject, program.Var) and isinstance(object_, str):
        variable, constant = subject, object_
    elif isinstance(object_, program.Var) and isinstance(subject, str):
        variable, constant = object_, subject
    else:
        return [element]
    differs = program.Filter(
        program.Call("!", (program.Call("SAMETERM", (variable, program.Const(constant))),))
    )
    zero = program.Values((variable,), ((constant,),))  # joins, whereas BIND inside EXISTS would overwrite
    return [program.Union((program.GroupPattern((zero,)), program.GroupPattern((element, differs))))]


def _may_leave_literals(path: program.Path) -> bool:
    """Whether the subject of a pattern with this path may be a literal."""
    found = automaton(path)
    return found.nullable or any(not edge.forward for edge, _ in found.forward.moves[0])


def _or_none(expression: program.Expression) -> program.Expression:
    return program.Call("COALESCE", (expression, program.Const(_NO_VALUE)))


def _fresh(select: program.Select, count: int) -> list[program.Var]:
    prefix = _unused(select, "key") if count else ""
    return [program.Var(f"{prefix}{i}") for i in range(count)]


def _unused(select: program.Select, prefix: str) -> str:
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


CUSTOM_AGGREGATES: dict[ox.NamedNode, Callable[[], _Accumulator]] = {
    ox.NamedNode(f"{_SPACE}{function}{'-distinct' if distinct else ''}"): _maker(function, distinct)
    for function in AGGREGATES
    for distinct in (False, True)
}
"""By name; a PERCENTILE gets one for each share when a query with it is prepared."""


def _same(term: OxTerm) -> OxTerm:
    """The term unchanged; the call hides its kind from pyoxigraph."""
    return term


FUNCTIONS: Mapping[ox.NamedNode, Callable[..., OxTerm | None]] = {
    ox.NamedNode(f"{_SPACE}row"): _row,
    ox.NamedNode(f"{_SPACE}same"): _same,
    **OPERATORS,
}


_FLOAT = f'"^^<{XSD_FLOAT}>'
_NOT_FINITE = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}
_TRIAL = ox.Store()


def _calls() -> Mapping[str, Any]:
    functions = {**FUNCTIONS, **own_calls()} if OWN else FUNCTIONS
    return {"custom_functions": functions, "custom_aggregate_functions": CUSTOM_AGGREGATES}


def widen(term: Term | None) -> Term | None:
    """An xsd:float as the xsd:double of the same value; every other term as it is."""
    if term is None or not term.endswith(_FLOAT):
        return term
    value = decode(term)
    if not isinstance(value, Single):
        return term  # ill-typed stays as it is
    text = repr(float(value))
    return canonical(f'"{_NOT_FINITE.get(text, text)}"^^<{XSD_DOUBLE}>')


def widened(rows: list[Values]) -> list[Values]:
    """Rows as attributes of facts: every xsd:float as an xsd:double."""
    return [tuple(map(widen, row)) if _has_float(row) else row for row in rows]


def _has_float(row: Values) -> bool:
    return any(term is not None and term.endswith(_FLOAT) for term in row)


class Explosion(Exception):  # noqa: N818  # becomes a diagnostic once query and time are known
    """More answers than the limit. `source`: the query, if the raiser knew it."""

    def __init__(self, source: object = None) -> None:
        super().__init__(source)
        self.source = source


class FullQuery:
    """One query, prepared: text, columns to sort by. Holds nothing of any store.

    Raises ProgramError D1290 when pyoxigraph cannot run it.
    """

    def __init__(self, select: Select) -> None:
        self._prepared: Prepared = prepare(select)
        base = self._prepared.base
        text = query_text(self._prepared.select)
        self._parts = (text if base is None else f"BASE {base}\n{text}").split(NOW_MARK)
        try:
            _TRIAL.query(self.text('"0"'), **_calls())
        except (SyntaxError, ValueError) as problem:
            raise ProgramError.of(
                "D1290",
                "the full SPARQL engine cannot run this query",
                select.span,
                notes=(f"it says: {' '.join(str(problem).split())[:300]}",),
            ) from problem

    def text(self, now: Term) -> str:
        """The query that pyoxigraph runs."""
        return self._parts[0] if len(self._parts) == 1 else now.join(self._parts)

    @property
    def timeless(self) -> bool:
        """Whether the answers do not depend on the instant's time."""
        return len(self._parts) == 1

    def solutions(self, store: ox.Store, now: Term, limit: int = 2**62) -> list[Values]:
        """Every answer as in SPARQL, in ORDER BY order and cut if the query has that, else canonical.

        Raises Explosion for more than `limit` before the cut.
        """
        found = store.query(self.text(now), **_calls())
        if not isinstance(found, ox.QuerySolutions):
            raise TypeError("an ASK query has no solutions: use ask()")
        rows: list[Values] = []
        for solution in found:
            rows.append(tuple([None if term is None else str(term) for term in solution]))
            if len(rows) > limit:
                raise Explosion
        return ordered(rows, self._prepared, order_key)

    def rows(self, store: ox.Store, now: Term) -> list[Values]:
        """The answers as attributes of facts: like `solutions`, with every xsd:float as an xsd:double."""
        return widened(self.solutions(store, now))

    def ask(self, store: ox.Store, now: Term) -> bool:
        """The answer of an ASK query."""
        found = store.query(self.text(now), **_calls())
        return bool(found) if isinstance(found, ox.QueryBoolean) else next(iter(found), None) is not None


def ordered(
    rows: list[Values], prepared: Prepared, key: Callable[[Term | None], TermKey] = term_key
) -> list[Values]:
    """Sort by the order columns, then by the whole row; drop the key columns; cut. `rows` is consumed."""
    width = prepared.width
    rows.sort(key=lambda row: tuple(map(key, row[:width])))
    for column, descending in reversed(prepared.order):
        rows.sort(key=lambda row: key(row[column]), reverse=descending)
    if rows and len(rows[0]) > width:
        rows = [row[:width] for row in rows]
        if prepared.select.distinct:
            rows = list(dict.fromkeys(rows))
    end = None if prepared.limit is None else prepared.offset + prepared.limit
    return rows[prepared.offset : end]


PATHS = (Inverse, Sequence, Alternative, Repeat, NegatedSet)
LARGEST = 2 * BUDGET
"""Units that the interpreter may take instead of the full engine."""


class BoundedFullQuery:
    """Like FullQuery, over states of any size. Raises ProgramError D1290, D4091."""

    def __init__(self, select: Select, budget: int = BUDGET, largest: int = LARGEST) -> None:
        self._select, self._full = select, FullQuery(select)
        self._budget, self._largest = budget, largest

    def rows(self, store: ox.Store, now: Term) -> list[Row]:
        """The answers as attributes of facts."""
        return widened(self.solutions(store, now))

    def solutions(self, store: ox.Store, now: Term) -> list[Row]:
        """Every answer, in ORDER BY order and cut if the query has that, else canonical."""
        if most_rows(self._select, store) <= self._budget:
            return self._full.solutions(store, now)
        return self._interpreted(store, now)

    def ask(self, store: ox.Store, now: Term) -> bool:
        """The answer of an ASK query."""
        if most_rows(self._select, store) <= self._budget:
            return self._full.ask(store, now)
        return bool(self._interpreted(store, now))

    def _interpreted(self, store: ox.Store, now: Term) -> list[Row]:
        # literal readings use no engine: this one is loaded only if they cannot answer
        from dotr.extract.interpreter import InterpretedQuery  # noqa: PLC0415
        from dotr.joins.store import TripleIndex  # noqa: PLC0415
        from dotr.rdf.index import Background  # noqa: PLC0415

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


def most_rows(select: Select, store: ox.Store) -> float:
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
            case RowValues(rows=rows):
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
