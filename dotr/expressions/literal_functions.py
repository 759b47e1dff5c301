"""Functions of one's own, called literally: terms in, a term out.

Place:   evaluate.py takes `called_literally` in a literal reading; extract/called_operators.py gives calls of
         terms to the full engine.
Method:  the function is the same, for there is no second implementation, but arguments and results are
         converted independently of own_functions.py: from the text of a term, and to it. Nothing is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from dotr.budget import DIGITS, TEXT
from dotr.expressions.literal_numbers import DECIMAL, DOUBLE, INTEGER, Number, read, write
from dotr.program.own_functions import OwnFunction
from dotr.rdf.rdflib_terms import is_rdflib, of_rdflib, rdflib_term
from dotr.rdf.terms import FALSE, TRUE, XSD, XSD_DATETIME, Term, canonical, literal, literal_parts
from dotr.rdf.values import Value, decode, encode


def called_literally(own: OwnFunction) -> Callable[..., Value | None]:
    """The function on values, by way of their terms."""

    def call(*values: Value) -> Value | None:
        found = call_of_terms(own, [encode(value) for value in values])
        return None if found is None else decode(found)

    return call


def call_of_terms(own: OwnFunction, terms: Sequence[Term]) -> Term | None:
    """One call; None is an error."""
    given = [_read(term) for term in terms]
    try:
        term = _written(own.function(*given))
        if term is None or (term[0] == "_" and term not in terms):
            return None
        term.encode()
    except (Exception, SystemExit):  # code of others: an error of the expression
        return None
    return term


_DATETIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_LENGTH: Final = re.compile(r"(-?)P(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9.]+)S)?)?")


def _read(term: Term) -> Any:
    number = read(term)
    if number is not None:
        if number.kind == DECIMAL:
            return Decimal(literal_parts(write(number))[0])
        return number.value if number.kind == INTEGER else float(number.value)
    if term in (TRUE, FALSE):
        return term == TRUE
    found: Any = None
    if term[0] == '"':
        text, datatype, language = literal_parts(term)
        if datatype == f"{XSD}string" and not language:
            return text
        if datatype == XSD_DATETIME and _DATETIME.fullmatch(text):
            found = _time(text)
        elif datatype in (f"{XSD}dayTimeDuration", f"{XSD}duration"):
            found = _length(text)
    return rdflib_term(term) if found is None else found


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    offset = found.utcoffset()
    return found if offset is None or abs(offset) <= timedelta(hours=14) else None


def _length(text: str) -> timedelta | None:
    parts = _LENGTH.fullmatch(text)
    if parts is None or not any(parts.groups()[1:]):
        return None
    sign, *counts = parts.groups()
    micros = sum(
        Fraction(count) * unit * 1_000_000
        for count, unit in zip(counts, (86_400, 3_600, 60, 1), strict=True)
        if count
    )
    if micros % 1:
        return None
    try:
        return timedelta(microseconds=int(-micros if sign else micros))
    except OverflowError:
        return None


def _written(found: Any) -> Term | None:
    """What a function returned, as a term; None if it is none."""
    match found:
        case bool():
            return TRUE if found else FALSE
        case _ if is_rdflib(found):
            term = of_rdflib(found)
            return None if len(term) > TEXT else term
        case str():
            return None if len(found) > TEXT else literal("".join(found))
        case int():
            return write(Number(INTEGER, int.__index__(found)))
        case float():
            return write(Number(DOUBLE, float.__add__(found, -0.0)))
        case Decimal():
            if not found.is_finite() or (found and abs(found.adjusted()) > 2 * DIGITS):
                tiny = found.is_finite() and found.adjusted() < 0
                return write(Number(DECIMAL, 0)) if tiny else None
            return write(Number(DECIMAL, int(Fraction(found) * 10**18)))
        case datetime():
            offset = found.utcoffset()
            if offset is not None and (
                offset.total_seconds() % 60 or abs(offset).total_seconds() > 14 * 3600
            ):
                found = found.astimezone(UTC)
            return canonical(literal(datetime.isoformat(found).replace("+00:00", "Z"), XSD_DATETIME))
        case timedelta():
            micros = (found.days * 24 * 60 * 60 + found.seconds) * 10**6 + found.microseconds
            seconds = f"{abs(micros) // 10**6}.{abs(micros) % 10**6:06}"
            return canonical(literal(f"{'-' if micros < 0 else ''}PT{seconds}S", f"{XSD}dayTimeDuration"))
        case _:
            return None
