"""Which variables a query's parts bind, and other static properties of a tree.

Place:   used by lang (SELECT *), by the passes of this package and by the compiler.
Method:  SPARQL 1.1, sec. 18.2.1 "Variable Scope". Names of blank nodes start with a dot: never in scope.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from dotr import ir


def visible(group: ir.GroupPattern) -> tuple[str, ...]:
    """Names of the variables in scope at the end of `group`, in order of first appearance."""
    return tuple(dict.fromkeys(name for element in group.elements for name in _element(element)))


def _element(element: ir.Element) -> Iterator[str]:
    match element:
        case ir.Triples(patterns):
            for pattern in patterns:
                for node in (pattern.subject, pattern.predicate, pattern.object):
                    if isinstance(node, ir.Var) and node.name[0] != ".":
                        yield node.name
        case ir.Filter() | ir.Minus():
            pass
        case ir.Bind(_, variable):
            yield variable.name
        case ir.Values(variables, _):
            yield from (variable.name for variable in variables)
        case ir.Union(branches):
            for branch in branches:
                yield from visible(branch)
        case ir.OptionalGroup(group):
            yield from visible(group)
        case ir.SubSelect(select):
            yield from select.variables
        case ir.GroupPattern():
            yield from visible(element)
        case _:
            assert_never(element)


def subexpressions(expression: ir.Expression) -> Iterator[ir.Expression]:
    """The expression and its subexpressions, parents first; without the patterns of EXISTS."""
    yield expression
    match expression:
        case ir.Call(_, arguments):
            for argument in arguments:
                yield from subexpressions(argument)
        case ir.Aggregate(_, argument):
            if argument is not None:
                yield from subexpressions(argument)
        case ir.Const() | ir.Var() | ir.Attribute() | ir.TimeOf() | ir.Exists():
            pass
        case _:
            assert_never(expression)


def solution_expressions(select: ir.Select) -> Iterator[ir.Expression]:
    """The expressions of SELECT, HAVING and ORDER BY of one query (not of its pattern or GROUP BY)."""
    for projection in select.projection:
        if projection.expression is not None:
            yield projection.expression
    yield from select.having
    for key in select.order_by:
        yield key.expression


def is_grouped(select: ir.Select) -> bool:
    """Whether solutions are grouped: GROUP BY, or an aggregate anywhere (SPARQL 1.1, sec. 18.2.4.1)."""
    return bool(select.group_by) or any(
        isinstance(part, ir.Aggregate)
        for expression in solution_expressions(select)
        for part in subexpressions(expression)
    )


def names(select: ir.Select) -> set[str]:
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


def names_of_group(group: ir.GroupPattern) -> set[str]:
    """Every variable name in a group, including blank nodes."""
    found: set[str] = set()
    for element in group.elements:
        match element:
            case ir.Triples(patterns):
                for pattern in patterns:
                    nodes = (pattern.subject, pattern.predicate, pattern.object)
                    found.update(node.name for node in nodes if isinstance(node, ir.Var))
            case ir.Filter(condition):
                found |= _names_of(condition)
            case ir.Bind(expression, variable):
                found |= _names_of(expression) | {variable.name}
            case ir.Values(variables, _):
                found.update(variable.name for variable in variables)
            case ir.Union(branches):
                for branch in branches:
                    found |= names_of_group(branch)
            case ir.OptionalGroup(inner) | ir.Minus(inner):
                found |= names_of_group(inner)
            case ir.SubSelect(select):
                found |= names(select)
            case ir.GroupPattern():
                found |= names_of_group(element)
            case _:
                assert_never(element)
    return found


def _names_of(expression: ir.Expression | None) -> set[str]:
    found: set[str] = set()
    if expression is not None:
        for part in subexpressions(expression):
            if isinstance(part, ir.Var):
                found.add(part.name)
            elif isinstance(part, ir.Exists):
                found |= names_of_group(part.pattern)
    return found
