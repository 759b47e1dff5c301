"""Rewriting of query trees, expansion of property paths, and the scope of variables.

Method:  values in, values out. A `Rewriter` applies one function to every expression and one to every
         subquery.
         Paths, the first pass over a query for both engines (SPARQL 1.1, sec. 18.2.2.4 and 18.4): sequences
         become joins, inverses are swapped, alternatives become unions. A sequence of n steps gets n − 1 new
         variables, whose names start with a dot like those of blank nodes. `!( )` outside a repetition is a
         pattern and a filter, one solution per triple. `*`, `+` and `?` stay.
         Which variables a part binds: SPARQL 1.1, sec. 18.2.1 "Variable Scope"; used by lang (SELECT *), too.
         Names that start with a dot are never in scope.
Why not: leaving paths to pyoxigraph: it finds each pair of ends of an alternative once, the standard once per
         branch; and those of `!( )` once or once per triple, depending on its joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from dotr import program
from dotr.expressions.functions import CASTS, FUNCTIONS, Signature
from dotr.program.own_functions import OWN


def _itself(variable: program.Var) -> program.Var:
    return variable


def _unchanged(expression: program.Expression) -> program.Expression:
    return expression


def _same(triples: program.Triples) -> tuple[program.Element, ...]:
    return (triples,)


class Rewriter(Struct, frozen=True):
    """`node` gets every expression, its parts already rewritten; `subquery` every nested query, unchanged;
    `triples` every block of patterns, which it may replace by several elements; `variable` every variable
    that is set or selected (others are in patterns and expressions); `condition` what a FILTER or HAVING
    tests, rewritten already."""

    node: Callable[[program.Expression], program.Expression]
    subquery: Callable[[program.Select], program.Select]
    triples: Callable[[program.Triples], Iterable[program.Element]] = _same
    variable: Callable[[program.Var], program.Var] = _itself
    condition: Callable[[program.Expression], program.Expression] = _unchanged

    def expression(self, expression: program.Expression) -> program.Expression:
        match expression:
            case program.Call(_, arguments):
                return self.node(replace(expression, arguments=tuple(map(self.expression, arguments))))
            case program.Aggregate(function, argument, distinct, separator, span):
                inner = None if argument is None else self.expression(argument)
                return self.node(program.Aggregate(function, inner, distinct, separator, span))
            case program.Exists(pattern, negated, span):
                return self.node(program.Exists(self.group(pattern), negated, span))
            case program.Const() | program.Var() | program.Attribute() | program.TimeOf():
                return self.node(expression)
            case _:
                assert_never(expression)

    def group(self, group: program.GroupPattern) -> program.GroupPattern:
        found: list[program.Element] = []
        for element in group.elements:
            found.extend(
                self.triples(element) if isinstance(element, program.Triples) else (self.element(element),)
            )
        return program.GroupPattern(tuple(found), group.span)

    def element(self, element: program.Element) -> program.Element:
        match element:
            case program.Filter(condition, span):
                return program.Filter(self.condition(self.expression(condition)), span)
            case program.Bind(expression, variable, span):
                return program.Bind(self.expression(expression), self.variable(variable), span)
            case program.Values():
                return self.values(element)
            case program.Triples():
                return element
            case program.Union(branches):
                return program.Union(tuple(map(self.group, branches)))
            case program.OptionalGroup(group):
                return program.OptionalGroup(self.group(group))
            case program.Minus(group):
                return program.Minus(self.group(group))
            case program.SubSelect(select):
                return program.SubSelect(self.subquery(select))
            case program.GroupPattern():
                return self.group(element)
            case _:
                assert_never(element)

    def values(self, values: program.Values) -> program.Values:
        return program.Values(tuple(map(self.variable, values.variables)), values.rows, values.span)

    def select(self, select: program.Select) -> program.Select:
        """All expressions of one query; its nested queries go through `subquery`."""
        return replace(
            select,
            projection=tuple(
                program.Projection(
                    self.variable(p.variable), None if p.expression is None else self.expression(p.expression)
                )
                for p in select.projection
            ),
            where=self.group(select.where),
            group_by=tuple(
                program.GroupKey(
                    self.expression(k.expression), None if k.variable is None else self.variable(k.variable)
                )
                for k in select.group_by
            ),
            having=tuple(self.condition(self.expression(one)) for one in select.having),
            order_by=tuple(
                program.OrderKey(self.expression(k.expression), k.descending) for k in select.order_by
            ),
            values=None if select.values is None else self.values(select.values),
        )


def spell_out(select: program.Select) -> program.Select:
    """Aliases used in later SELECT expressions, HAVING and ORDER BY, replaced by their expressions."""
    known: dict[str, program.Expression] = {}
    swap = Rewriter(
        lambda e: known.get(e.name, e) if isinstance(e, program.Var) else e, lambda nested: nested
    )
    projection: list[program.Projection] = []
    for p in select.projection:
        expression = None if p.expression is None else swap.expression(p.expression)
        projection.append(program.Projection(p.variable, expression))
        if expression is not None:
            known[p.variable.name] = expression
    return replace(
        select,
        projection=tuple(projection),
        having=tuple(map(swap.expression, select.having)),
        order_by=tuple(
            key
            if isinstance(key.expression, program.Var)
            else replace(key, expression=swap.expression(key.expression))
            for key in select.order_by
        ),
    )


def with_known_functions(select: program.Select) -> program.Select:
    """Calls of unknown functions replaced by an error, including nested queries."""

    def node(expression: program.Expression) -> program.Expression:
        if (
            isinstance(expression, program.Call)
            and expression.function.startswith("<")
            and expression.function.endswith(">")
            and not _is_known(expression.function, len(expression.arguments))
        ):
            return program.Call("COALESCE", (), expression.span)
        return expression

    walk = Rewriter(node, lambda nested: walk.select(nested))
    return walk.select(select)


def _is_known(function: str, arguments: int) -> bool:
    if function in CASTS:
        return arguments == 1
    if function in OWN:
        return OWN[function].wrong(arguments) is None
    known: Signature | None = FUNCTIONS.get(function)
    return known is not None and known.least <= arguments and known.most in (None, arguments)


def spelled_out(pattern: program.TriplePattern, fresh: Callable[[], program.Var]) -> list[program.Element]:
    """The elements equivalent to one pattern; `fresh` makes variables."""
    match pattern.predicate:
        case str() | program.Var() | program.Repeat():
            return [program.Triples((pattern,))]
        case program.NegatedSet(excluded, ()):
            between = fresh()
            step = program.Triples((replace(pattern, predicate=between),))
            other = program.Filter(program.Call("NOT-IN", (between, *map(program.Const, excluded))))
            return [program.GroupPattern((step, other))]
        case program.NegatedSet((), inverse):
            return spelled_out(
                replace(pattern, predicate=program.Inverse(program.NegatedSet(inverse, ()))), fresh
            )
        case program.NegatedSet(forward, inverse):
            parts = (program.NegatedSet(forward, ()), program.NegatedSet((), inverse))
            return spelled_out(replace(pattern, predicate=program.Alternative(parts)), fresh)
        case program.Inverse(path):
            turned = program.TriplePattern(pattern.object, path, pattern.subject, pattern.span)
            return spelled_out(turned, fresh)
        case program.Sequence(paths):
            nodes: list[program.Node] = [pattern.subject, *(fresh() for _ in paths[1:]), pattern.object]
            found: list[program.Element] = []
            for path, start, end in zip(paths, nodes[:-1], nodes[1:], strict=True):
                found += spelled_out(program.TriplePattern(start, path, end, pattern.span), fresh)
            return found
        case program.Alternative(paths):
            steps = (
                program.TriplePattern(pattern.subject, path, pattern.object, pattern.span) for path in paths
            )
            return [
                program.Union(tuple(program.GroupPattern(tuple(spelled_out(step, fresh))) for step in steps))
            ]
        case _:
            assert_never(pattern.predicate)


def may_be_empty(path: program.Path) -> bool:
    """Whether the path may have length zero."""
    match path:
        case str() | program.NegatedSet():
            return False
        case program.Inverse(inner):
            return may_be_empty(inner)
        case program.Sequence(paths):
            return all(map(may_be_empty, paths))
        case program.Alternative(paths):
            return any(map(may_be_empty, paths))
        case program.Repeat(inner, minimum):
            return minimum == 0 or may_be_empty(inner)
        case _:
            assert_never(path)


def visible(group: program.GroupPattern) -> tuple[str, ...]:
    """Names of the variables in scope at the end of `group`, in order of first appearance."""
    return tuple(dict.fromkeys(name for element in group.elements for name in _element(element)))


def _element(element: program.Element) -> Iterator[str]:
    match element:
        case program.Triples(patterns):
            for pattern in patterns:
                for node in (pattern.subject, pattern.predicate, pattern.object):
                    if isinstance(node, program.Var) and node.name[0] != ".":
                        yield node.name
        case program.Filter() | program.Minus():
            pass
        case program.Bind(_, variable):
            yield variable.name
        case program.Values(variables, _):
            yield from (variable.name for variable in variables)
        case program.Union(branches):
            for branch in branches:
                yield from visible(branch)
        case program.OptionalGroup(group):
            yield from visible(group)
        case program.SubSelect(select):
            yield from select.variables
        case program.GroupPattern():
            yield from visible(element)
        case _:
            assert_never(element)


def subexpressions(expression: program.Expression) -> Iterator[program.Expression]:
    """The expression and its subexpressions, parents first; without the patterns of EXISTS."""
    yield expression
    match expression:
        case program.Call(_, arguments):
            for argument in arguments:
                yield from subexpressions(argument)
        case program.Aggregate(_, argument):
            if argument is not None:
                yield from subexpressions(argument)
        case program.Const() | program.Var() | program.Attribute() | program.TimeOf() | program.Exists():
            pass
        case _:
            assert_never(expression)


def solution_expressions(select: program.Select) -> Iterator[program.Expression]:
    """The expressions of SELECT, HAVING and ORDER BY of one query (not of its pattern or GROUP BY)."""
    for projection in select.projection:
        if projection.expression is not None:
            yield projection.expression
    yield from select.having
    for key in select.order_by:
        yield key.expression


def is_grouped(select: program.Select) -> bool:
    """Whether solutions are grouped: GROUP BY, or an aggregate anywhere (SPARQL 1.1, sec. 18.2.4.1)."""
    return bool(select.group_by) or any(
        isinstance(part, program.Aggregate)
        for expression in solution_expressions(select)
        for part in subexpressions(expression)
    )


def names(select: program.Select) -> set[str]:
    """Every variable name in the query, in scope or not."""
    found = set(select.variables)
    for projection in select.projection:
        found |= _names_of(projection.expression)
    for key in select.group_by:
        found |= _names_of(key.expression) | ({key.variable.name} if key.variable else set())
    for condition in select.having:
        found |= _names_of(condition)
    for order in select.order_by:
        found |= _names_of(order.expression)
    if select.values is not None:
        found.update(variable.name for variable in select.values.variables)
    return found | names_of_group(select.where)


def names_of_group(group: program.GroupPattern) -> set[str]:
    """Every variable name in a group, including blank nodes."""
    found: set[str] = set()
    for element in group.elements:
        match element:
            case program.Triples(patterns):
                for pattern in patterns:
                    nodes = (pattern.subject, pattern.predicate, pattern.object)
                    found.update(node.name for node in nodes if isinstance(node, program.Var))
            case program.Filter(condition):
                found |= _names_of(condition)
            case program.Bind(expression, variable):
                found |= _names_of(expression) | {variable.name}
            case program.Values(variables, _):
                found.update(variable.name for variable in variables)
            case program.Union(branches):
                for branch in branches:
                    found |= names_of_group(branch)
            case program.OptionalGroup(inner) | program.Minus(inner):
                found |= names_of_group(inner)
            case program.SubSelect(select):
                found |= names(select)
            case program.GroupPattern():
                found |= names_of_group(element)
            case _:
                assert_never(element)
    return found


def _names_of(expression: program.Expression | None) -> set[str]:
    found: set[str] = set()
    if expression is not None:
        for part in subexpressions(expression):
            if isinstance(part, program.Var):
                found.add(part.name)
            elif isinstance(part, program.Exists):
                found |= names_of_group(part.pattern)
    return found
