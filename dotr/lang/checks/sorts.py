"""Of what sort the values of a variable can be, as far as a query's shape says.

Place:   under advice.py.
Method:  a subject or predicate is a resource; constants and functions have the sort of their result;
         everything else is unknown. Which sorts go together says kinds.py: for others a comparison or sum
         is a type error, which SPARQL is silent about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dotr import ir
from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES
from dotr.lang.checks.kinds import ARITHMETIC, NoValueError, Sort, comparable, remedy, result
from dotr.rdf.terms import XSD, Term, is_literal, literal_parts
from dotr.sparql.printing import Writer


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMERIC: Final = frozenset(
    XSD + name
    for name in _words(
        "integer decimal double float long int short byte nonNegativeInteger positiveInteger "
        "nonPositiveInteger negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte"
    )
)
_NUMBER_CALLS: Final = _words("ABS CEIL FLOOR ROUND STRLEN YEAR MONTH DAY DAYS HOURS MINUTES SECONDS")
_TEXT_CALLS: Final = _words(
    "STR LANG CONCAT SUBSTR UCASE LCASE REPLACE STRBEFORE STRAFTER ENCODE_FOR_URI TZ "
    "MD5 SHA1 SHA256 SHA384 SHA512"
)
_BOOLEAN_CALLS: Final = _words(
    "|| && ! = != < > <= >= IN NOT-IN BOUND SAMETERM ISIRI ISBLANK ISLITERAL ISNUMERIC REGEX CONTAINS "
    "STRSTARTS STRENDS LANGMATCHES"
)
_DATATYPES: Final = {
    **dict.fromkeys(_NUMERIC, Sort.NUMBER),
    XSD + "string": Sort.TEXT,
    XSD + "boolean": Sort.BOOLEAN,
    XSD + "dateTime": Sort.TIME,
    XSD + "date": Sort.DATE,
    XSD + "time": Sort.CLOCK,
    XSD + "dayTimeDuration": Sort.SECONDS,
    XSD + "yearMonthDuration": Sort.MONTHS,
    XSD + "duration": Sort.DURATION,
}
_COMPARISONS: Final = frozenset(("=", "<", ">", "<=", ">="))

STAND_IN: Final = "<urn:dotr:parameter:"
"""How the term begins that stands for a parameter without a value while its file is checked alone."""

Leaves = Callable[[str], Sort | None]
"""`x` of a query variable ?x, or `Event.?x` → its sort, None when not known."""


def term_sort(term: Term) -> Sort | None:
    """The sort of a constant; None for literals of other types and for a parameter without a value."""
    if not is_literal(term):
        return None if term.startswith(STAND_IN) else Sort.RESOURCE
    _, datatype, language = literal_parts(term)
    return Sort.TEXT if language else _DATATYPES.get(datatype)


def sort(expression: ir.Expression, leaves: Leaves, *, rule: bool = False) -> Sort | None:
    """The sort of every value that an expression has, None when not known. `rule`: in ON, WHERE, WITH."""
    match expression:
        case ir.Const(term):
            return term_sort(term)
        case ir.Var(name):
            return leaves(name)
        case ir.Attribute(position, variable):
            return leaves(f"{position}.?{variable}")
        case ir.Aggregate(function):
            if function == "COUNT":
                return Sort.NUMBER
            return Sort.AMOUNT if function in AGGREGATES and AGGREGATES[function].number else None
        case ir.Exists():
            return Sort.BOOLEAN
        case ir.Call(function, arguments):
            return _call_sort(function, arguments, leaves, rule)
        case ir.TimeOf():
            return Sort.STAMP


def _call_sort(
    function: str, arguments: tuple[ir.Expression, ...], leaves: Leaves, rule: bool
) -> Sort | None:
    if function in _BOOLEAN_CALLS:
        return Sort.BOOLEAN
    if function in _NUMBER_CALLS:
        return Sort.NUMBER
    if function in ARITHMETIC:
        try:
            return result(function, tuple(sort(a, leaves, rule=rule) for a in arguments), rule=rule)
        except NoValueError:
            return None
    if function == "NOW" and rule:
        return Sort.STAMP
    if function in _TEXT_CALLS:
        return Sort.TEXT
    if function == "IRI":
        return Sort.RESOURCE
    return _DATATYPES.get(function[1:-1])


def mismatch(
    expression: ir.Call, leaves: Leaves, *, rule: bool = False
) -> tuple[Sort | None, Sort | None] | None:
    """The sorts of a comparison's sides where they say that it never holds."""
    if expression.function not in _COMPARISONS:
        return None
    left, right = (sort(argument, leaves, rule=rule) for argument in expression.arguments)
    resources_in_order = expression.function != "=" and Sort.RESOURCE in (left, right)
    if comparable(left, right, rule=rule) and not resources_in_order:
        return None
    return left, right


def check_sorts(expression: ir.Expression, leaves: Leaves, found: Diagnostics, *, rule: bool = False) -> None:
    """Warn about every comparison and every sum inside an expression whose sides are of sorts that do not go
    together.
    """
    if not isinstance(expression, ir.Call):
        return
    for argument in expression.arguments:
        check_sorts(argument, leaves, found, rule=rule)
    if expression.function in ARITHMETIC:
        _check_arithmetic(expression, leaves, found, rule)
    sides_apart = mismatch(expression, leaves, rule=rule)
    if sides_apart is None:
        return
    left, right = sides_apart
    pairs = zip(expression.arguments, (left, right), strict=True)
    sides = [f"`{_text(argument)}` is {known.value}" for argument, known in pairs if known is not None]
    hint = "compare resources with `=` only" if left is right or len(sides) == 1 else ""
    if Sort.TEXT in (left, right) and Sort.NUMBER in (left, right):
        hint = "write the number without quotation marks, or turn the text into one: xsd:decimal(…)"
    elif Sort.RESOURCE in (left, right) and not hint:
        hint = "follow a property of the resource to its value: `?x :value ?v`"
    elif not hint:
        hint = remedy(expression.function, left, right, rule=rule)
    found.warning(
        "D1219",
        f"this comparison with `{expression.function}` never holds",
        expression.span,
        hint=hint,
        notes=(" and ".join(sides),),
    )


def _check_arithmetic(call: ir.Call, leaves: Leaves, found: Diagnostics, rule: bool) -> None:
    operands = tuple(sort(argument, leaves, rule=rule) for argument in call.arguments)
    try:
        result(call.function, operands, rule=rule)
    except NoValueError:
        sides = [
            f"`{_text(argument)}` is {known.value}"
            for argument, known in zip(call.arguments, operands, strict=True)
            if known is not None
        ]
        found.warning(
            "D1224",
            f"this `{call.function.removeprefix('u')}` never has a value",
            call.span,
            hint=remedy(call.function, operands[0], operands[-1], rule=rule),
            notes=(" and ".join(sides),),
        )


def _text(expression: ir.Expression) -> str:
    """An expression as it was written."""
    span = expression.span
    return span.source.text[span.start : span.end] if span is not None else Writer().expression(expression)


def attribute_sorts(select: ir.Select) -> dict[str, Sort]:
    """Projected variable → the sort of all its values, where it is known."""
    inner = variable_sorts(select.where)
    found: dict[str, Sort] = {}
    for projection in select.projection:
        expression = projection.expression or projection.variable
        known = sort(expression, inner.get)
        if known is not None:
            found[projection.variable.name] = known
    return found


def variable_sorts(group: ir.GroupPattern) -> dict[str, Sort]:
    """Variable → sort, from the places it takes in a group and the groups inside."""
    found: dict[str, Sort] = {}
    for element in group.elements:
        match element:
            case ir.Triples(patterns):
                for pattern in patterns:
                    for place in (pattern.subject, pattern.predicate):
                        if isinstance(place, ir.Var):
                            found[place.name] = Sort.RESOURCE
            case ir.Bind(expression, variable):
                known = sort(expression, found.get)
                if known is not None:
                    found.setdefault(variable.name, known)
            case ir.GroupPattern():
                found |= variable_sorts(element)
            case _:
                continue
    return found


def expressions_of(select: ir.Select) -> Iterator[tuple[ir.Expression, dict[str, Sort]]]:
    """Every FILTER, BIND, HAVING, ORDER BY and selected expression, with the sorts of what it sees."""
    for group in _groups(select.where):
        sorts = variable_sorts(group)
        for element in group.elements:
            if isinstance(element, ir.Filter):
                yield element.condition, sorts
            elif isinstance(element, ir.Bind):
                yield element.expression, sorts
            elif isinstance(element, ir.SubSelect):
                yield from expressions_of(element.select)
    sorts = variable_sorts(select.where)
    yield from ((p.expression, sorts) for p in select.projection if p.expression is not None)
    yield from ((having, sorts) for having in select.having)
    yield from ((key.expression, sorts) for key in select.order_by)


def _groups(group: ir.GroupPattern) -> Iterator[ir.GroupPattern]:
    """A group and all inside, without those of subqueries."""
    yield group
    for element in group.elements:
        match element:
            case ir.OptionalGroup(inner) | ir.Minus(inner):
                yield from _groups(inner)
            case ir.GroupPattern():
                yield from _groups(element)
            case ir.Union(branches):
                for branch in branches:
                    yield from _groups(branch)
            case _:
                continue


def filters_of(select: ir.Select) -> Iterator[tuple[ir.Expression, dict[str, Sort]]]:
    """Every FILTER of a query with the sorts of the variables that it sees."""
    yield from _filters(select.where)


def _filters(group: ir.GroupPattern) -> Iterator[tuple[ir.Expression, dict[str, Sort]]]:
    sorts = variable_sorts(group)
    for element in group.elements:
        match element:
            case ir.Filter(condition):
                yield condition, sorts
            case ir.OptionalGroup(inner) | ir.Minus(inner):
                yield from _filters(inner)
            case ir.GroupPattern():
                yield from _filters(element)
            case ir.Union(branches):
                for branch in branches:
                    yield from _filters(branch)
            case ir.SubSelect(select):
                yield from _filters(select.where)
            case _:
                continue
