"""What is wrong with how a query uses its variables.

Place:   called by sparql.py with every query it has read; extract/rewriting.py determines which
         variables a part binds.
Method:  SPARQL 1.1, sec. 18.2.1 (scope), 11.4 (grouped queries), 18.2.4.1 (assignment).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import assert_never

from dotr import program
from dotr.enrich.analysis import near
from dotr.errors import Diagnostics
from dotr.extract.rewriting import visible


def variables(expression: program.Expression, *, aggregated: bool = True) -> Iterator[program.Var]:
    """The variables an expression reads, left to right; without those inside aggregates if not `aggregated`.

    Inside EXISTS nothing is read: its pattern has a scope of its own.
    """
    match expression:
        case program.Var():
            yield expression
        case program.Call(_, arguments):
            for argument in arguments:
                yield from variables(argument, aggregated=aggregated)
        case program.Aggregate(_, argument):
            if aggregated and argument is not None:
                yield from variables(argument)
        case program.Const() | program.Attribute() | program.TimeOf() | program.Exists():
            return
        case _:
            assert_never(expression)


def has_aggregate(expression: program.Expression) -> bool:
    match expression:
        case program.Aggregate():
            return True
        case program.Call(_, arguments):
            return any(map(has_aggregate, arguments))
        case _:
            return False


def existences(expression: program.Expression) -> Iterator[program.Exists]:
    """The EXISTS inside an expression."""
    match expression:
        case program.Exists():
            yield expression
        case program.Call(_, arguments):
            for argument in arguments:
                yield from existences(argument)
        case program.Aggregate(_, argument) if argument is not None:
            yield from existences(argument)
        case _:
            return


def check_select(select: program.Select, found: Diagnostics, given: Collection[str] = ()) -> None:
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


def _is_grouped(select: program.Select) -> bool:
    expressions = [p.expression for p in select.projection if p.expression is not None]
    expressions += [*select.having, *(key.expression for key in select.order_by)]
    return bool(select.group_by or select.having) or any(map(has_aggregate, expressions))


def _check_projection(select: program.Select, known: Collection[str], found: Diagnostics) -> None:
    selected: dict[str, None] = {}
    for projection in select.projection:
        variable = projection.variable
        if variable.name in selected:
            found.error(
                "D1212",
                f"`?{variable.name}` is selected twice",
                variable.span,
                hint="every attribute needs a name of its own",
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


def _check_grouping(select: program.Select, found: Diagnostics) -> None:
    if select.star:
        found.error(
            "D1211",
            "SELECT * cannot be grouped",
            select.span,
            hint="select the variables of GROUP BY and aggregates",
        )
        return
    keys = {key.expression.name for key in select.group_by if isinstance(key.expression, program.Var)}
    keys |= {key.variable.name for key in select.group_by if key.variable is not None}
    for projection in select.projection:
        read: Iterable[program.Var] = (
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


def _check_new(variable: program.Var, known: Collection[str], found: Diagnostics) -> None:
    if variable.name in known:
        found.error(
            "D1208",
            f"`?{variable.name}` has a value already",
            variable.span,
            hint="assign to a new variable, and compare with FILTER",
        )


def _check_reads(expression: program.Expression, known: Collection[str], found: Diagnostics) -> None:
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


def _check_group(group: program.GroupPattern, outer: frozenset[str], found: Diagnostics) -> None:
    """`outer`: what FILTER may read besides the group's own variables (OPTIONAL, EXISTS)."""
    own = frozenset(visible(group))
    known: dict[str, None] = {}
    for element in group.elements:
        match element:
            case program.Filter(condition):
                _check_reads(condition, own | outer, found)
            case program.Bind(expression, variable):
                _check_new(variable, known, found)
                _check_reads(expression, known.keys() | outer, found)
            case program.OptionalGroup(inner):
                _check_group(inner, own | outer, found)
            case program.Minus(inner):
                _check_group(inner, frozenset(), found)
            case program.GroupPattern():
                _check_group(element, frozenset(), found)
            case program.Union(branches):
                for branch in branches:
                    _check_group(branch, frozenset(), found)
            case program.SubSelect(select):
                check_select(select, found)
            case program.Triples() | program.Values():
                pass
            case _:
                assert_never(element)
        known.update(dict.fromkeys(visible(program.GroupPattern((element,)))))
