"""Casts: the constructor functions of XSD (`xsd:double(?x)`).

Place:   one table, `CASTS`, from the IRI term of a datatype to a strict function; read by
         evaluate.py and lang/.
Method:  SPARQL 1.1, sec. 17.5. A plain string is cast like the literal of that text; numbers to numbers by
         value; a duration without months to an xsd:decimal of seconds; the rest by the full engine. A string
         of too many digits raises Overlong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite, trunc
from types import NoneType

from dotr.budget import Overlong
from dotr.expressions.arithmetic import to_single
from dotr.expressions.dialect import ask
from dotr.expressions.durations import in_seconds
from dotr.expressions.functions import text_of
from dotr.expressions.value_operators import value_of
from dotr.rdf.canonical import too_long
from dotr.rdf.terms import XSD, Term, literal
from dotr.rdf.values import EXACT, Duration, Number, Resource, Single, Value, decode, encode, to_double

DATA_VALUE: Term = "<urn:dotr:owl:dataValue>"
"""A function of rules over datatypes: the literal that stands for a literal's value (rdf/data_values.py); an
error where nobody knows the value.
"""

Cast = Callable[[Value], Value | None]

_NUMBERS = {"integer": int, "decimal": Decimal, "double": float, "float": Single, "boolean": bool}
_EXACT = (int, Decimal)
_ELSEWHERE = ["dateTime", "date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"]
_ELSEWHERE += ["duration", "dayTimeDuration", "yearMonthDuration"]


def _cast(name: str) -> Cast:
    datatype, kind = XSD + name, _NUMBERS.get(name, NoneType)
    question = f"<{datatype}>(?a)"

    def cast(value: Value) -> Value | None:
        given = type(value)
        if given is kind:
            return value
        if isinstance(value, str) and kind is not NoneType:
            if kind in _EXACT and too_long(value):
                raise Overlong
            read = decode(literal(value, datatype))
            return read if type(read) is kind else None
        if isinstance(value, (int, Decimal, float)) and given is not bool:
            quick = _numeric(value, kind)
            if quick is not None:
                return quick
        if given is Duration and kind is Decimal:
            return in_seconds(value)
        return None if isinstance(value, Resource) else value_of(ask(question, encode(value)))

    return cast


def _numeric(value: Number, kind: type) -> Value | None:
    """A number as another number or as a boolean; None leaves it to the engine."""
    if kind is bool:
        return value != 0 and value == value
    if kind is float:
        return to_double(value)
    if kind is Single:
        return to_single(value)
    if kind is Decimal and type(value) is int:
        return Decimal(value)
    if kind is int and isinstance(value, Decimal):
        return int(value)
    if isinstance(value, float) and isfinite(value):
        return trunc(value) if kind is int else _cut(value) if kind is Decimal else None
    return None


def _cut(value: float) -> Decimal:
    """A double as a decimal: a whole number exactly, else cut like by the engine, through `value * 1e18`."""
    return Decimal(int(value)) if value.is_integer() else EXACT.scaleb(Decimal(int(value * 1e18)), -18)


CASTS: Mapping[Term, Cast] = {
    f"<{XSD}string>": text_of,
    **{f"<{XSD}{name}>": _cast(name) for name in (*_NUMBERS, *_ELSEWHERE)},
}
