"""Queries that are not compiled, interpreted over K(t): the algebra of SPARQL 1.1 by the letter, metered.

Place:   query.py evaluates by it what algebra.py refuses.
Method:  SPARQL 1.1, sec. 18.2 and 18.5: elements of a group from left to right; a group, a subquery and the
         sides of OPTIONAL, MINUS and UNION are evaluated separately and joined by the variables that all
         their rows have. Triples are looked up with the bound values, the most bound pattern first; paths by
         joins/paths.py. An EXISTS is evaluated with the row's values substituted everywhere (sec.
         18.6). Every row and every expression is charged where the loop begins.
Why not: the full engine: it cannot be interrupted, and a single path in it can fill any memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Final, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import KEPT, Meter
from dotr.expressions.evaluate import (
    Condition,
    Getter,
    compile_condition,
    compile_expression,
    own_calls,
    units,
)
from dotr.extract import operators as aggregates
from dotr.extract.algebra import Pattern, existences
from dotr.extract.full import Explosion, Prepared, ordered, without_paths
from dotr.extract.leaves import NO_LIMIT, body_pattern, in_order
from dotr.extract.operators import apart
from dotr.extract.rewriting import Rewriter, is_grouped, spell_out, visible, with_known_functions
from dotr.joins.plan import BodyPattern, View
from dotr.joins.store import TripleIndex
from dotr.program import (
    Aggregate,
    Attribute,
    Bind,
    Call,
    Element,
    Exists,
    Expression,
    Filter,
    GroupPattern,
    Minus,
    OptionalGroup,
    Projection,
    Select,
    SubSelect,
    TimeOf,
    TriplePattern,
    Triples,
    Union,
    Values,
    Var,
)
from dotr.program.own_functions import OWN
from dotr.rdf.terms import Term, integer

Row: TypeAlias = dict[str, Term]
"""A solution: variable → value, for bound variables."""

_EMPTY: Row = {}


class InterpretedQuery:
    """One query over a store, whose moment it reads. Made before the first instant.

    `schema`: its variables and the keys of its order, the columns of `rows`. Work is charged to `meter`.
    Raises Explosion for more than `limit` answers before a cut, Exhausted.
    """

    def __init__(self, select: Select, store: TripleIndex, meter: Meter, limit: int = NO_LIMIT) -> None:
        select = _based(without_paths(with_known_functions(select)))
        keys = tuple(Projection(Var(f".key{i}"), key.expression) for i, key in enumerate(select.order_by))
        self._select = select
        self._wider = replace(select, projection=(*select.projection, *keys), order_by=())
        self.schema = self._wider.variables
        self._limit = limit
        self._interpreter = _Interpreter(store, meter)
        self._interpreter.declare(select)
        self.timeless = not asks_time(select)
        """Whether the answers do not depend on the instant's time."""

    def rows(self, view: View) -> list[tuple[Term | None, ...]]:
        """The answers over a view before they are ordered and cut, over `schema`."""
        self._interpreter.view = view
        names = self.schema
        found = [
            tuple([row.get(name) for name in names]) for row in self._interpreter.query(self._wider, _EMPTY)
        ]
        if len(found) > self._limit:
            raise Explosion
        return list(dict.fromkeys(found)) if self._select.distinct else found

    def solutions(self) -> list[tuple[Term | None, ...]]:
        """Every answer at this instant, in ORDER BY order and cut if the query has that, else canonical."""
        select = self._select
        width = len(select.projection)
        order = tuple((width + i, key.descending) for i, key in enumerate(select.order_by))
        return ordered(self.rows(View.NEW), Prepared(select, None, width, order, select.limit, select.offset))


class _Lookup(Struct, frozen=True):
    """A pattern as a relation of the store and its columns."""

    item: BodyPattern
    names: tuple[str | None, ...]


class _Interpreter:
    """Owns what was built from a query's parts: look-ups, functions of expressions."""

    def __init__(self, store: TripleIndex, meter: Meter) -> None:
        self._store, self._meter = store, meter
        self.view = View.NEW
        self._lookups: dict[TriplePattern, _Lookup] = {}
        self._getters: dict[Expression, Getter] = {}
        self._conditions: dict[Expression, Condition] = {}

    def declare(self, select: Select) -> None:
        """Make the look-ups of all patterns: the overlay's indexes are declared before the first instant."""

        def look(triples: Triples) -> list[Element]:
            for pattern in triples.patterns:
                self._lookup(pattern)
            return [triples]

        walk = Rewriter(lambda expression: expression, lambda nested: walk.select(nested), look)
        walk.select(select)

    # -- queries

    def query(self, select: Select, given: Row) -> list[Row]:
        """The rows of a SELECT over its projection; with repeats unless it has DISTINCT. Not ordered."""
        rows = self.group(select.where, given)
        if is_grouped(select):
            select = spell_out(select)
            if select.values is not None:
                rows = self._join(rows, self._values(select.values))
            rows, select = self._grouped(rows, select)
        elif select.values is not None:
            rows = self._join(rows, self._values(select.values))
        for condition in select.having:
            rows = self._filtered(rows, condition)
        made = units(*(p.expression for p in select.projection))
        self._charge(len(rows), "rows of a SELECT", KEPT + made)

        def projected(row: Row) -> Row:
            extended = dict(row)
            for p in select.projection:
                if p.expression is not None:
                    self._set(extended, p.variable.name, self._value(p.expression, extended))
            return {n: extended[n] for n in select.variables if n in extended}

        calls = sum(own_calls(p.expression) for p in select.projection if p.expression is not None)
        if calls:
            in_order(projected, calls)(rows)
        found = [projected(row) for row in rows]
        if select.ask:
            return [dict(_EMPTY) for _ in rows]
        if select.distinct:
            found = list({tuple(sorted(row.items())): row for row in found}.values())
        return found

    def _grouped(self, rows: list[Row], select: Select) -> tuple[list[Row], Select]:
        """One row per group, with its keys and aggregates; the query with these as variables."""
        totals: dict[Aggregate, str] = {}
        number = count()

        def swap(expression: Expression) -> Expression:
            if not isinstance(expression, Aggregate):
                return expression
            if expression not in totals:
                totals[expression] = f".total{next(number)}"
            return Var(totals[expression])

        swapped = replace(Rewriter(swap, lambda nested: nested).select(select), where=select.where)
        scope = [*visible(select.where), *(k.variable.name for k in select.group_by if k.variable)]
        keys = []
        for i, key in enumerate(select.group_by):
            plain = key.expression.name if isinstance(key.expression, Var) else f".by{i}"
            keys.append((plain if key.variable is None else key.variable.name, key.expression))
        groups: dict[tuple[Term | None, ...], list[Row]] = {}
        work = units(*(expression for _, expression in keys), *totals)
        self._charge(len(rows), "rows that are grouped", KEPT + work)
        arguments = [total.argument for total in totals if total.argument is not None]
        self._call(rows, *(expression for _, expression in keys), *arguments)
        for row in rows:
            extended = dict(row)
            for name, expression in keys:
                self._set(extended, name, self._value(expression, row))
            groups.setdefault(tuple([extended.get(name) for name, _ in keys]), []).append(extended)
        if not select.group_by and not groups:
            groups[()] = []
        found = []
        for values, members in groups.items():
            result = {name: v for (name, _), v in zip(keys, values, strict=True) if v is not None}
            for aggregate, name in totals.items():
                self._set(result, name, self._total(aggregate, members, scope))
            found.append(result)
        return found, swapped

    def _total(self, aggregate: Aggregate, members: list[Row], scope: Sequence[str]) -> Term | None:
        argument = aggregate.argument
        if argument is not None:
            values = [self._value(argument, row) for row in members]
            return aggregates.aggregate(aggregate.function, aggregate.distinct, values)
        if not aggregate.distinct:
            return integer(len(members))
        return integer(len({tuple([row.get(name) for name in scope]) for row in members}))

    # -- patterns

    def group(self, group: GroupPattern, given: Row) -> list[Row]:
        """The solutions of a group, each extended by `given`."""
        rows: list[Row] = [given]
        filters: list[Expression] = []
        for element in group.elements:
            if isinstance(element, Filter):
                filters.append(element.condition)
            else:
                rows = self._and(rows, element, given)
        for condition in filters:
            rows = self._filtered(rows, condition)
        return rows

    def _and(self, rows: list[Row], element: Element, given: Row) -> list[Row]:
        match element:
            case Triples(patterns):
                return self._triples(rows, patterns)
            case Bind(expression, variable):
                return self._bound(rows, expression, variable.name)
            case Values():
                return self._join(rows, self._values(element))
            case Union(branches):
                return self._join(rows, [row for branch in branches for row in self.group(branch, given)])
            case GroupPattern():
                return self._join(rows, self.group(element, given))
            case SubSelect(select):
                seen = {name: given[name] for name in select.variables if name in given}
                return self._join(rows, self.query(select, seen))
            case OptionalGroup(inner):
                conditions = [e.condition for e in inner.elements if isinstance(e, Filter)]
                bare = GroupPattern(tuple(e for e in inner.elements if not isinstance(e, Filter)))
                return self._optional(rows, self.group(bare, given), conditions)
            case Minus(inner):
                return self._minus(rows, self.group(inner, given))
            case Filter():
                raise AssertionError("filters hold of the whole group")
            case _:
                assert_never(element)

    def _bound(self, rows: list[Row], expression: Expression, name: str) -> list[Row]:
        self._charge(len(rows), f"rows that ?{name} is set for", KEPT + units(expression))
        self._call(rows, expression)
        found = []
        for row in rows:
            extended = dict(row)
            value = self._value(expression, row)
            if value is not None and row.get(name, value) != value:
                continue  # EXISTS has it bound
            self._set(extended, name, value)
            found.append(extended)
        return found

    def _filtered(self, rows: list[Row], condition: Expression) -> list[Row]:
        self._charge(len(rows), "rows that are filtered", units(condition))
        self._call(rows, condition)
        holds = self._condition(condition)
        return [row for row in rows if holds(row)]

    def _values(self, values: Values) -> list[Row]:
        names = [variable.name for variable in values.variables]
        return [
            {name: term for name, term in zip(names, row, strict=True) if term is not None}
            for row in values.rows
        ]

    def _optional(self, rows: list[Row], others: list[Row], conditions: Sequence[Expression]) -> list[Row]:
        tests = [self._condition(condition) for condition in conditions]
        found: list[Row] = []
        pairs = self._matches(rows, others, units(*conditions))
        extended: Iterable[tuple[Row, list[Row]]]
        extended = ((row, [{**row, **other} for other in matches]) for row, matches in pairs)
        if OWN and conditions:
            extended = found_all = list(extended)
            call = in_order(lambda both: all(test(both) for test in tests), _MOST_CALLS)
            apart(self._meter, partial(call, [both for _, merged in found_all for both in merged]))
        for row, merged in extended:
            found += [both for both in merged if all(test(both) for test in tests)] or [row]
        return found

    def _minus(self, rows: list[Row], others: list[Row]) -> list[Row]:
        return [
            row
            for row, matches in self._matches(rows, others)
            if not any(not row.keys().isdisjoint(other) for other in matches)
        ]

    def _join(self, rows: list[Row], others: list[Row]) -> list[Row]:
        if len(rows) == 1 and not rows[0]:
            return others
        return [{**row, **other} for row, matches in self._matches(rows, others) for other in matches]

    def _matches(self, rows: list[Row], others: list[Row], units: int = 0) -> Iterator[tuple[Row, list[Row]]]:
        """Each row with the compatible ones of the others."""
        common = _always(rows) & _always(others) if rows and others else set()
        names = sorted(common)
        table: dict[tuple[Term, ...], list[Row]] = {}
        self._charge(len(others), "rows to join with", KEPT)
        for other in others:
            table.setdefault(tuple([other[name] for name in names]), []).append(other)
        self._charge(len(rows), "rows to join")
        maybe = {n for row in rows for n in row} & {n for row in others for n in row} - common
        for row in rows:
            candidates = table.get(tuple([row[name] for name in names]), [])
            self._charge(len(candidates), "rows joined", KEPT + units)
            if maybe:
                candidates = [other for other in candidates if _agree(row, other, maybe)]
            yield row, candidates

    # -- triples

    def _triples(self, rows: list[Row], patterns: Sequence[TriplePattern]) -> list[Row]:
        left = [self._lookup(pattern) for pattern in patterns]
        bound = _always(rows)
        while left and rows:
            best = min(left, key=lambda lookup: self._weight(lookup, bound))
            left.remove(best)
            rows = self._step(rows, best)
            bound |= {name for name in best.names if name is not None}
        return rows

    def _weight(self, lookup: _Lookup, bound: set[str]) -> tuple[bool, int, int]:
        """Patterns that join with bound variables first, then those with fewer open columns and rows."""
        names = [name for name in lookup.names if name is not None]
        free = sum(name not in bound for name in names)
        apart = bool(bound) and bool(names) and free == len(names) == len(lookup.names)
        return apart, free, self._store.rows(lookup.item.relation)

    def _step(self, rows: list[Row], lookup: _Lookup) -> list[Row]:
        find, relation, columns = self._store.find, lookup.item.relation, lookup.item.columns
        constants = [None if isinstance(node, Var) else node for node in columns]
        names = lookup.names
        found: list[Row] = []
        self._charge(len(rows), "rows to look up")
        for row in rows:
            asked = [c if n is None else row.get(n) for c, n in zip(constants, names, strict=True)]
            triples = find(relation, asked, self.view)
            self._charge(len(triples), "triples", KEPT)
            for triple in triples:
                extended = dict(row)
                for name, term in zip(names, triple, strict=True):
                    if name is not None and extended.setdefault(name, term) != term:
                        break
                else:
                    found.append(extended)
        return found

    def _lookup(self, pattern: TriplePattern) -> _Lookup:
        lookup = self._lookups.get(pattern)
        if lookup is None:
            plain = Pattern(pattern.subject, pattern.predicate, pattern.object)
            item = body_pattern(plain, self._store, self._meter)
            columns = tuple(node.name if isinstance(node, Var) else None for node in item.columns)
            lookup = self._lookups[pattern] = _Lookup(item, columns)
        return lookup

    # -- expressions

    def _call(self, rows: Sequence[Row], *expressions: Expression) -> None:
        """Call functions of one's own for all rows in canonical order, where the expressions have any."""
        for expression in expressions:
            calls = own_calls(expression)
            if OWN and existences(expression):  # it may have any number of them
                call = in_order(partial(self._value, expression), _MOST_CALLS)
                apart(self._meter, partial(call, rows))
            elif calls:
                in_order(partial(self._value, expression), calls)(rows)

    def _value(self, expression: Expression, row: Row) -> Term | None:
        getter = self._getters.get(expression)
        if getter is None:
            moment = self._store.moment
            getter = self._getters[expression] = compile_expression(
                expression, _leaf, clock=moment.clock, now=moment.read, exists=self._exists
            )
        return getter(row)

    def _condition(self, condition: Expression) -> Condition:
        holds = self._conditions.get(condition)
        if holds is None:
            moment = self._store.moment
            holds = self._conditions[condition] = compile_condition(
                condition, _leaf, clock=moment.clock, now=moment.read, exists=self._exists
            )
        return holds

    def _exists(self, asked: Exists) -> Condition:
        return lambda row: bool(self.group(asked.pattern, row))

    @staticmethod
    def _set(row: Row, name: str, value: Term | None) -> None:
        if value is not None:
            row[name] = value

    def _charge(self, rows: int, what: str, units: int = 1) -> None:
        self._meter.charge(rows, what, units)


_MOST_CALLS: Final = 1_000
"""How often rows are evaluated at most to find out what they call, level by level."""


def _leaf(node: Var | Attribute | TimeOf) -> Callable[[Row], Term | None]:
    assert isinstance(node, Var), "a query has no positions"
    name = node.name
    return lambda row: row.get(name)


def _always(rows: Iterable[Row]) -> set[str]:
    """The variables that every row has."""
    found: set[str] | None = None
    for row in rows:
        found = set(row) if found is None else found & row.keys()
        if not found:
            return set()
    return found or set()


def _agree(row: Row, other: Row, names: Iterable[str]) -> bool:
    return all(name not in row or name not in other or row[name] == other[name] for name in names)


def _based(select: Select) -> Select:
    """IRI() under a BASE, by a separate name."""

    def node(expression: Expression) -> Expression:
        if isinstance(expression, Call) and expression.function == "IRI" and len(expression.arguments) == 2:
            return replace(expression, function="IRI-UNDER")
        return expression

    walk = Rewriter(node, lambda nested: walk.select(nested))
    return walk.select(select)


def asks_time(select: Select) -> bool:
    """Whether NOW() occurs anywhere in a query."""
    found: list[Expression] = []

    def look(expression: Expression) -> Expression:
        if isinstance(expression, Call) and expression.function == "NOW":
            found.append(expression)
        return expression

    walk = Rewriter(look, lambda nested: walk.select(nested))
    walk.select(select)
    return bool(found)
