"""What is wrong with how a query uses its variables.

Place:   called by sparql.py with every query it has read; which variables a part binds says
         sparql/bound_variables.py.
Method:  SPARQL 1.1, sec. 18.2.1 (scope), 11.4 (grouped queries), 18.2.4.1 (assignment).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import assert_never

from dotr import ir
from dotr.datalog.safety import near
from dotr.errors import Diagnostics
from dotr.sparql.bound_variables import visible


def variables(expression: ir.Expression, *, aggregated: bool = True) -> Iterator[ir.Var]:
    """The variables an expression reads, left to right; without those inside aggregates if not `aggregated`.

    Inside EXISTS nothing is read: its pattern has a scope of its own.
    """
    match expression:
        case ir.Var():
            yield expression
        case ir.Call(_, arguments):
            for argument in arguments:
                yield from variables(argument, aggregated=aggregated)
        case ir.Aggregate(_, argument):
            if aggregated and argument is not None:
                yield from variables(argument)
        case ir.Const() | ir.Attribute() | ir.TimeOf() | ir.Exists():
            return
        case _:
            assert_never(expression)


def has_aggregate(expression: ir.Expression) -> bool:
    match expression:
        case ir.Aggregate():
            return True
        case ir.Call(_, arguments):
            return any(map(has_aggregate, arguments))
        case _:
            return False


def existences(expression: ir.Expression) -> Iterator[ir.Exists]:
    """The EXISTS inside an expression."""
    match expression:
        case ir.Exists():
            yield expression
        case ir.Call(_, arguments):
            for argument in arguments:
                yield from existences(argument)
        case ir.Aggregate(_, argument) if argument is not None:
            yield from existences(argument)
        case _:
            return


def check_select(select: ir.Select, found: Diagnostics, given: Collection[str] = ()) -> None:
    """Record what a query and its subqueries get wrong about variables. `given` have values from outside."""
    _check_group(select.where, frozenset(), found)
    inner = list(visible(select.where))
    if select.values is not None:
        inner += [variable.name for variable in select.values.variables if variable.name not in inner]
    known = dict.fromkeys([*inner, *given])
    for key in select.group_by:
        _check_reads(key.expression, known, found)
        if key.variable is not None:
            _check_new(key.variable, known, found)
            known[key.variable.name] = None
    _check_projection(select, known, found)
    for expression in (*select.having, *(key.expression for key in select.order_by)):
        _check_reads(expression, [*known, *select.variables], found)
    if _is_grouped(select):
        _check_grouping(select, found)


def _is_grouped(select: ir.Select) -> bool:
    expressions = [p.expression for p in select.projection if p.expression is not None]
    expressions += [*select.having, *(key.expression for key in select.order_by)]
    return bool(select.group_by or select.having) or any(map(has_aggregate, expressions))


def _check_projection(select: ir.Select, known: Collection[str], found: Diagnostics) -> None:
    selected: dict[str, None] = {}
    for projection in select.projection:
        variable = projection.variable
        if variable.name in selected:
            found.error(
                "D1212",
                f"`?{variable.name}` is selected twice",
                variable.span,
                hint="attributes have names of their own",
            )
        elif projection.expression is not None:
            _check_new(variable, known, found)
            _check_reads(projection.expression, [*known, *selected], found)
        elif variable.name not in known:
            found.warning(
                "D1217",
                f"nothing in the query binds `?{variable.name}`",
                variable.span,
                hint=near(variable.name, known),
                notes=("it will be unbound in every fact",),
            )
        selected[variable.name] = None


def _check_grouping(select: ir.Select, found: Diagnostics) -> None:
    if select.star:
        found.error(
            "D1211",
            "SELECT * cannot be grouped",
            select.span,
            hint="select the variables of GROUP BY and aggregates",
        )
        return
    keys = {key.expression.name for key in select.group_by if isinstance(key.expression, ir.Var)}
    keys |= {key.variable.name for key in select.group_by if key.variable is not None}
    for projection in select.projection:
        read: Iterable[ir.Var] = (
            (projection.variable,)
            if projection.expression is None
            else variables(projection.expression, aggregated=False)
        )
        for variable in read:
            if variable.name not in keys:
                found.error(
                    "D1210",
                    f"`?{variable.name}` has no single value in a group",
                    variable.span,
                    hint=f"add `?{variable.name}` to GROUP BY, or take MIN(?{variable.name})",
                )
        keys.add(projection.variable.name)


def _check_new(variable: ir.Var, known: Collection[str], found: Diagnostics) -> None:
    if variable.name in known:
        found.error(
            "D1208",
            f"`?{variable.name}` has a value already",
            variable.span,
            hint="assign to a new variable, and compare with FILTER",
        )


def _check_reads(expression: ir.Expression, known: Collection[str], found: Diagnostics) -> None:
    """Warn about variables that have no value where the expression stands."""
    for variable in variables(expression):
        if variable.name not in known:
            found.warning(
                "D1218",
                f"`?{variable.name}` has no value here",
                variable.span,
                hint=near(variable.name, known),
                notes=("nothing in this group binds it, so the expression is an error for every solution",),
            )
    for exists in existences(expression):
        _check_group(exists.pattern, frozenset(known), found)


def _check_group(group: ir.GroupPattern, outer: frozenset[str], found: Diagnostics) -> None:
    """`outer`: what FILTER may read besides the group's own variables (OPTIONAL, EXISTS)."""
    own = frozenset(visible(group))
    known: dict[str, None] = {}
    for element in group.elements:
        match element:
            case ir.Filter(condition):
                _check_reads(condition, own | outer, found)
            case ir.Bind(expression, variable):
                _check_new(variable, known, found)
                _check_reads(expression, known.keys() | outer, found)
            case ir.OptionalGroup(inner):
                _check_group(inner, own | outer, found)
            case ir.Minus(inner):
                _check_group(inner, frozenset(), found)
            case ir.GroupPattern():
                _check_group(element, frozenset(), found)
            case ir.Union(branches):
                for branch in branches:
                    _check_group(branch, frozenset(), found)
            case ir.SubSelect(select):
                check_select(select, found)
            case ir.Triples() | ir.Values():
                pass
            case _:
                assert_never(element)
        known.update(dict.fromkeys(visible(ir.GroupPattern((element,)))))
