"""Of what sort the values of a variable can be, as far as a query's shape says.

Place:   under advice.py.
Method:  a subject or predicate is a resource; constants and functions have the sort of their result;
         everything else is unknown. Two different sorts never compare: in SPARQL a silent type error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

from dotr import ir
from dotr.errors import Diagnostics
from dotr.expressions.aggregates import AGGREGATES
from dotr.rdf.terms import XSD, Term, is_literal, literal_parts
from dotr.sparql.printing import Writer


class Sort(Enum):
    RESOURCE = "an IRI or blank node"
    NUMBER = "a number"
    TEXT = "a text"
    BOOLEAN = "true or false"
    TIME = "a dateTime"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMERIC: Final = frozenset(
    XSD + name
    for name in _words(
        "integer decimal double float long int short byte nonNegativeInteger positiveInteger "
        "nonPositiveInteger negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte"
    )
)
_NUMBER_CALLS: Final = _words("ABS CEIL FLOOR ROUND STRLEN YEAR MONTH DAY HOURS MINUTES SECONDS")
_TEXT_CALLS: Final = _words(
    "STR LANG CONCAT SUBSTR UCASE LCASE REPLACE STRBEFORE STRAFTER ENCODE_FOR_URI TZ "
    "MD5 SHA1 SHA256 SHA384 SHA512"
)
_BOOLEAN_CALLS: Final = _words(
    "|| && ! = != < > <= >= IN NOT-IN BOUND SAMETERM ISIRI ISBLANK ISLITERAL ISNUMERIC REGEX CONTAINS "
    "STRSTARTS STRENDS LANGMATCHES"
)
_CASTS: Final = {
    **{f"<{datatype}>": Sort.NUMBER for datatype in _NUMERIC},
    f"<{XSD}string>": Sort.TEXT,
    f"<{XSD}boolean>": Sort.BOOLEAN,
    f"<{XSD}dateTime>": Sort.TIME,
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
    if language or datatype == XSD + "string":
        return Sort.TEXT
    if datatype in _NUMERIC:
        return Sort.NUMBER
    return {XSD + "boolean": Sort.BOOLEAN, XSD + "dateTime": Sort.TIME}.get(datatype)


def sort(expression: ir.Expression, leaves: Leaves) -> Sort | None:
    """The sort of every value that an expression can have; None when not known."""
    match expression:
        case ir.Const(term):
            return term_sort(term)
        case ir.Var(name):
            return leaves(name)
        case ir.Attribute(position, variable):
            return leaves(f"{position}.?{variable}")
        case ir.Aggregate(function):
            return Sort.NUMBER if function in AGGREGATES and AGGREGATES[function].number else None
        case ir.Exists():
            return Sort.BOOLEAN
        case ir.Call(function, arguments):
            return _call_sort(function, arguments)
        case ir.TimeOf():
            return None


def _call_sort(function: str, arguments: tuple[ir.Expression, ...]) -> Sort | None:
    if function in _BOOLEAN_CALLS:
        return Sort.BOOLEAN
    if function in _NUMBER_CALLS:
        return Sort.NUMBER
    if function == "-" and all(isinstance(a, ir.TimeOf) for a in arguments):
        return Sort.NUMBER
    if function in ("+", "-", "*", "/", "u-", "u+"):
        return Sort.NUMBER if function in ("*", "/", "u-", "u+") else None  # durations may be added to times
    if function in _TEXT_CALLS:
        return Sort.TEXT
    if function == "IRI":
        return Sort.RESOURCE
    return _CASTS.get(function)


def mismatch(expression: ir.Call, leaves: Leaves) -> tuple[Sort | None, Sort | None] | None:
    """The sorts of a comparison's sides where they say that it never holds."""
    if expression.function not in _COMPARISONS:
        return None
    left, right = (sort(argument, leaves) for argument in expression.arguments)
    resources_in_order = expression.function != "=" and Sort.RESOURCE in (left, right)
    if (left is None or right is None or left is right) and not resources_in_order:
        return None
    return left, right


def check_sorts(expression: ir.Expression, leaves: Leaves, found: Diagnostics) -> None:
    """Warn about every comparison inside an expression whose sides are of different sorts."""
    if not isinstance(expression, ir.Call):
        return
    for argument in expression.arguments:
        check_sorts(argument, leaves, found)
    sides_apart = mismatch(expression, leaves)
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
    found.warning(
        "D1219",
        f"this comparison with `{expression.function}` never holds",
        expression.span,
        hint=hint,
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
