"""What can be read off a query for the check of its answers.

Place:   under checker.py.
"""

from __future__ import annotations

from typing import Final

from dotr.ir import Aggregate, Call, Exists, Expression, Filter, Minus, Projection, Select, Var
from dotr.late import replace
from dotr.rdf.terms import Term
from dotr.rdf.values import decode

_ROWS: Final = Var("dotr_rows")


def is_aggregate(select: Select) -> bool:
    """Whether it groups its solutions."""
    values = [one.expression for one in select.projection]
    return bool(select.group_by) or any(map(_aggregates, [*values, *select.having]))


def _aggregates(expression: Expression | None) -> bool:
    match expression:
        case Aggregate():
            return True
        case Call(arguments=arguments):
            return any(map(_aggregates, arguments))
        case _:
            return False


def with_rows(select: Select) -> Select:
    """The query of groups, with the number of solutions in each as one column more, the last."""
    counted = Projection(_ROWS, Aggregate("COUNT", None))
    return replace(select, projection=(*select.projection, counted), order_by=())


def row_count(term: Term | None) -> int:
    """The number that such a column has."""
    value = None if term is None else decode(term)
    assert isinstance(value, int), "a count is an integer"
    return value


def excluded(select: Select) -> int:
    """How many MINUS and NOT EXISTS every solution of a query must pass."""
    found = 0
    for element in select.where.elements:
        if isinstance(element, Minus):
            found += 1
        elif isinstance(element, Filter):
            condition = element.condition
            found += isinstance(condition, Exists) and condition.negated
    return found
