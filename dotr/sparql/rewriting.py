"""Rewrite trees: one function over every expression, one over every subquery.

Place:   the passes of this package use it; values in, values out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from dotr import ir
from dotr.expressions.casts import CASTS


def _itself(variable: ir.Var) -> ir.Var:
    return variable


def _unchanged(expression: ir.Expression) -> ir.Expression:
    return expression


def _same(triples: ir.Triples) -> tuple[ir.Element, ...]:
    return (triples,)


class Rewriter(Struct, frozen=True):
    """`node` gets every expression, its parts already rewritten; `subquery` every nested query, unchanged;
    `triples` every block of patterns, which it may replace by several elements; `variable` every variable
    that is set or selected (others are in patterns and expressions); `condition` what a FILTER or HAVING
    tests, rewritten already."""

    node: Callable[[ir.Expression], ir.Expression]
    subquery: Callable[[ir.Select], ir.Select]
    triples: Callable[[ir.Triples], Iterable[ir.Element]] = _same
    variable: Callable[[ir.Var], ir.Var] = _itself
    condition: Callable[[ir.Expression], ir.Expression] = _unchanged

    def expression(self, expression: ir.Expression) -> ir.Expression:
        match expression:
            case ir.Call(function, arguments, span):
                return self.node(ir.Call(function, tuple(map(self.expression, arguments)), span))
            case ir.Aggregate(function, argument, distinct, separator, span):
                inner = None if argument is None else self.expression(argument)
                return self.node(ir.Aggregate(function, inner, distinct, separator, span))
            case ir.Exists(pattern, negated, span):
                return self.node(ir.Exists(self.group(pattern), negated, span))
            case ir.Const() | ir.Var() | ir.Attribute() | ir.TimeOf():
                return self.node(expression)
            case _:
                assert_never(expression)

    def group(self, group: ir.GroupPattern) -> ir.GroupPattern:
        found: list[ir.Element] = []
        for element in group.elements:
            found.extend(
                self.triples(element) if isinstance(element, ir.Triples) else (self.element(element),)
            )
        return ir.GroupPattern(tuple(found), group.span)

    def element(self, element: ir.Element) -> ir.Element:
        match element:
            case ir.Filter(condition, span):
                return ir.Filter(self.condition(self.expression(condition)), span)
            case ir.Bind(expression, variable, span):
                return ir.Bind(self.expression(expression), self.variable(variable), span)
            case ir.Values():
                return self.values(element)
            case ir.Triples():
                return element
            case ir.Union(branches):
                return ir.Union(tuple(map(self.group, branches)))
            case ir.OptionalGroup(group):
                return ir.OptionalGroup(self.group(group))
            case ir.Minus(group):
                return ir.Minus(self.group(group))
            case ir.SubSelect(select):
                return ir.SubSelect(self.subquery(select))
            case ir.GroupPattern():
                return self.group(element)
            case _:
                assert_never(element)

    def values(self, values: ir.Values) -> ir.Values:
        return ir.Values(tuple(map(self.variable, values.variables)), values.rows, values.span)

    def select(self, select: ir.Select) -> ir.Select:
        """All expressions of one query; its nested queries go through `subquery`."""
        return replace(
            select,
            projection=tuple(
                ir.Projection(
                    self.variable(p.variable), None if p.expression is None else self.expression(p.expression)
                )
                for p in select.projection
            ),
            where=self.group(select.where),
            group_by=tuple(
                ir.GroupKey(
                    self.expression(k.expression), None if k.variable is None else self.variable(k.variable)
                )
                for k in select.group_by
            ),
            having=tuple(self.condition(self.expression(one)) for one in select.having),
            order_by=tuple(ir.OrderKey(self.expression(k.expression), k.descending) for k in select.order_by),
            values=None if select.values is None else self.values(select.values),
        )


def spell_out(select: ir.Select) -> ir.Select:
    """Aliases used in later SELECT expressions, HAVING and ORDER BY, replaced by their expressions."""
    known: dict[str, ir.Expression] = {}
    swap = Rewriter(lambda e: known.get(e.name, e) if isinstance(e, ir.Var) else e, lambda nested: nested)
    projection: list[ir.Projection] = []
    for p in select.projection:
        expression = None if p.expression is None else swap.expression(p.expression)
        projection.append(ir.Projection(p.variable, expression))
        if expression is not None:
            known[p.variable.name] = expression
    return replace(
        select,
        projection=tuple(projection),
        having=tuple(map(swap.expression, select.having)),
        order_by=tuple(
            key
            if isinstance(key.expression, ir.Var)
            else replace(key, expression=swap.expression(key.expression))
            for key in select.order_by
        ),
    )


def with_known_functions(select: ir.Select) -> ir.Select:
    """Calls of unknown functions replaced by an error, including nested queries."""

    def node(expression: ir.Expression) -> ir.Expression:
        if (
            isinstance(expression, ir.Call)
            and expression.function.startswith("<")
            and expression.function.endswith(">")
            and (expression.function not in CASTS or len(expression.arguments) != 1)
        ):
            return ir.Call("COALESCE", (), expression.span)
        return expression

    walk = Rewriter(node, lambda nested: walk.select(nested))
    return walk.select(select)
