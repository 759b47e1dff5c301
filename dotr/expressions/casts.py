"""Casts: the constructor functions of XSD (`xsd:double(?x)`).

Place:   one table, `CASTS`, from the IRI term of a datatype to a strict function; read by
         evaluate.py and lang/.
Method:  SPARQL 1.1, sec. 17.5. A plain string is cast like the literal of that text; numbers to numbers by
         value; a duration without months to an xsd:decimal of seconds; the rest by the full engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from types import NoneType

from dotr.expressions.arithmetic import to_single
from dotr.expressions.dialect import ask
from dotr.expressions.durations import in_seconds
from dotr.expressions.functions import text_of
from dotr.expressions.value_operators import value_of
from dotr.rdf.terms import XSD, Term, literal
from dotr.rdf.values import (
    EXACT,
    INTEGER_MAX,
    INTEGER_MIN,
    TICKS,
    Duration,
    Number,
    Resource,
    Single,
    Value,
    decode,
    encode,
    to_double,
)

Cast = Callable[[Value], Value | None]

_NUMBERS = {"integer": int, "decimal": Decimal, "double": float, "float": Single, "boolean": bool}
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
    """A number as another number in simple cases; None leaves it to the engine."""
    if kind is float:
        return to_double(value)
    if kind is Single:
        return to_single(value)
    if kind is Decimal and type(value) is int:
        return Decimal(value)
    if kind is int and isinstance(value, Decimal) and INTEGER_MIN <= value <= INTEGER_MAX:
        return int(value)
    if isinstance(value, float) and kind in (int, Decimal):
        return _cut(value, kind)
    return None


def _cut(value: float, kind: type) -> int | Decimal | None:
    """A double as a decimal or integer, cut like by the engine: through `value * 1e18`, itself a double."""
    scaled = value * 1e18
    if not -(2.0**127) <= scaled < 2.0**127:
        return None
    ticks = int(scaled)
    if kind is Decimal:
        return EXACT.scaleb(Decimal(ticks), -18)
    whole = abs(ticks) // TICKS
    whole = -whole if ticks < 0 else whole
    return whole if INTEGER_MIN <= whole <= INTEGER_MAX else None


CASTS: Mapping[Term, Cast] = {
    f"<{XSD}string>": text_of,
    **{f"<{XSD}{name}>": _cast(name) for name in (*_NUMBERS, *_ELSEWHERE)},
}
