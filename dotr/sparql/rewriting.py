"""Rewrite trees: one function over every expression, one over every subquery.

Place:   the passes of this package use it; values in, values out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from dotr.expressions.casts import CASTS
from dotr.ir import (
    Aggregate,
    Attribute,
    Bind,
    Call,
    Const,
    Element,
    Exists,
    Expression,
    Filter,
    GroupKey,
    GroupPattern,
    Minus,
    OptionalGroup,
    OrderKey,
    Projection,
    Select,
    SubSelect,
    TimeOf,
    Triples,
    Union,
    Values,
    Var,
)
from dotr.late import dataclass, replace


def _itself(variable: Var) -> Var:
    return variable


def _same(triples: Triples) -> tuple[Element, ...]:
    return (triples,)


@dataclass(frozen=True, slots=True)
class Rewriter:
    """`node` gets every expression, its parts already rewritten; `subquery` every nested query, unchanged;
    `triples` every block of patterns, which it may replace by several elements; `variable` every variable
    that is set or selected (others are in patterns and expressions)."""

    node: Callable[[Expression], Expression]
    subquery: Callable[[Select], Select]
    triples: Callable[[Triples], Iterable[Element]] = _same
    variable: Callable[[Var], Var] = _itself

    def expression(self, expression: Expression) -> Expression:
        match expression:
            case Call(function, arguments, span):
                return self.node(Call(function, tuple(map(self.expression, arguments)), span))
            case Aggregate(function, argument, distinct, separator, span):
                inner = None if argument is None else self.expression(argument)
                return self.node(Aggregate(function, inner, distinct, separator, span))
            case Exists(pattern, negated, span):
                return self.node(Exists(self.group(pattern), negated, span))
            case Const() | Var() | Attribute() | TimeOf():
                return self.node(expression)
            case _:
                assert_never(expression)

    def group(self, group: GroupPattern) -> GroupPattern:
        found: list[Element] = []
        for element in group.elements:
            found.extend(self.triples(element) if isinstance(element, Triples) else (self.element(element),))
        return GroupPattern(tuple(found), group.span)

    def element(self, element: Element) -> Element:
        match element:
            case Filter(condition, span):
                return Filter(self.expression(condition), span)
            case Bind(expression, variable, span):
                return Bind(self.expression(expression), self.variable(variable), span)
            case Values():
                return self.values(element)
            case Triples():
                return element
            case Union(branches):
                return Union(tuple(map(self.group, branches)))
            case OptionalGroup(group):
                return OptionalGroup(self.group(group))
            case Minus(group):
                return Minus(self.group(group))
            case SubSelect(select):
                return SubSelect(self.subquery(select))
            case GroupPattern():
                return self.group(element)
            case _:
                assert_never(element)

    def values(self, values: Values) -> Values:
        return Values(tuple(map(self.variable, values.variables)), values.rows, values.span)

    def select(self, select: Select) -> Select:
        """All expressions of one query; its nested queries go through `subquery`."""
        return replace(
            select,
            projection=tuple(
                Projection(
                    self.variable(p.variable), None if p.expression is None else self.expression(p.expression)
                )
                for p in select.projection
            ),
            where=self.group(select.where),
            group_by=tuple(
                GroupKey(
                    self.expression(k.expression), None if k.variable is None else self.variable(k.variable)
                )
                for k in select.group_by
            ),
            having=tuple(map(self.expression, select.having)),
            order_by=tuple(OrderKey(self.expression(k.expression), k.descending) for k in select.order_by),
            values=None if select.values is None else self.values(select.values),
        )


def spell_out(select: Select) -> Select:
    """Aliases used in later SELECT expressions, HAVING and ORDER BY, replaced by their expressions."""
    known: dict[str, Expression] = {}
    swap = Rewriter(lambda e: known.get(e.name, e) if isinstance(e, Var) else e, lambda nested: nested)
    projection: list[Projection] = []
    for p in select.projection:
        expression = None if p.expression is None else swap.expression(p.expression)
        projection.append(Projection(p.variable, expression))
        if expression is not None:
            known[p.variable.name] = expression
    return replace(
        select,
        projection=tuple(projection),
        having=tuple(map(swap.expression, select.having)),
        order_by=tuple(
            key
            if isinstance(key.expression, Var)
            else replace(key, expression=swap.expression(key.expression))
            for key in select.order_by
        ),
    )


def with_known_functions(select: Select) -> Select:
    """Calls of unknown functions replaced by an error, including nested queries."""

    def node(expression: Expression) -> Expression:
        if (
            isinstance(expression, Call)
            and expression.function.startswith("<")
            and expression.function.endswith(">")
            and (expression.function not in CASTS or len(expression.arguments) != 1)
        ):
            return Call("COALESCE", (), expression.span)
        return expression

    walk = Rewriter(node, lambda nested: walk.select(nested))
    return walk.select(select)
