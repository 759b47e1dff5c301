"""Canonical form: a literal of an XSD value type becomes its value's one text.

Place:   applied where terms enter: background, stream, constants of programs (language.md, sec. 1).
Method:  the form is what a pyoxigraph Store returns for the literal, so that a query answered by the store
         and one answered here see the same terms; integers past its 64 bits and decimals past its 128 have
         the same form here. Frequent shapes (plain integers, decimals, doubles, booleans, dateTimes) are
         rewritten here; every other literal of an XSD value type makes the round trip through a store.
         Ill-typed literals stay as they are, as do decimals of more than 18 fractional digits; language tags
         become lower-case.
Why not: a store for everything: 10 µs per literal; our own parser for everything: two dialects to keep equal.
Bad input: D2409 a number of more than 4,096 digits.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

import pyoxigraph as ox

from dotr.budget import DIGITS
from dotr.errors import DataError
from dotr.rdf.memo import Memo
from dotr.rdf.terms import FALSE, TRUE, XSD, Term, to_oxigraph
from dotr.regex import regex

_SUFFIX = '"^^<' + XSD
_INTEGER_TAIL = _SUFFIX + "integer>"
_VALUE_TYPES = frozenset(
    {"integer", "byte", "short", "int", "long", "unsignedByte", "unsignedShort", "unsignedInt"}
    | {"unsignedLong", "positiveInteger", "negativeInteger", "nonPositiveInteger", "nonNegativeInteger"}
    | {"decimal", "double", "float", "boolean", "dateTime", "dateTimeStamp", "date", "time"}
    | {"gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"}
    | {"duration", "dayTimeDuration", "yearMonthDuration"}
)

_INTEGER = regex(r"-?[1-9][0-9]{0,17}|0")
_ANY_INTEGER = regex(r"([+-]?)0*+([0-9]+)")
_UNBOUNDED: Final[dict[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, 2**64 - 1),
}
"""The least and the greatest value of the types that reach past 64 bits."""

_DECIMAL = regex(r"-?[0-9]{1,18}\.[0-9]{1,18}")
_ANY_DECIMAL = regex(r"([+-]?)(?=\.?[0-9])0*+([0-9]*)(?:\.([0-9]*))?")
FRACTION: Final = 18
"""Fractional digits of a decimal."""
_DOUBLE = regex(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
USUAL_DATETIME = (
    r"[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    r"|(?:0[13578]|1[02])-31)T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
)
"""dateTimes up to the second, except the 29th of February, which some years lack."""

_DATETIME = regex(rf"({USUAL_DATETIME})(\.[0-9]{{1,18}})?(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])?")

_PLACE = ox.NamedNode("urn:dotr:canonical")


def canonical(term: Term) -> Term:
    """The canonical form of a term; IRIs, blank nodes and strings stay. Idempotent.

    Raises DataError D2409 for a number of more than DIGITS digits. Cost: nothing for IRIs and strings, one
    table look-up for a known literal, otherwise at most 10 µs.
    """
    if term[0] != '"' or term[-1] == '"':
        return term
    return canonical_literals[term]


def double_text(value: float) -> str:
    """The canonical lexical form of an xsd:double: shortest digits, never an exponent, INF, -INF, NaN."""
    text = repr(value)
    if text.endswith(".0"):
        return text[:-2]
    if "e" in text:
        return format(Decimal(text), "f")
    if text[-1] in "fn":
        return _NOT_FINITE[text]
    return _tie_upwards(value, text) if len(text) > 15 and (value * 8).is_integer() else text


def _tie_upwards(value: float, text: str) -> str:
    """Of two equally near shortest texts the engine takes the greater, Python the even one.

    Only a value of few binary places and many digits lies half-way: 562949953421312.25 is ….3, not ….2.
    """
    exact, shortest = Decimal(value), Decimal(text)
    if abs(exact) <= abs(shortest):
        return text
    other = str(exact + (exact - shortest)).rstrip("0")
    return other if len(other) == len(text) and float(other) == value else text


_NOT_FINITE = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}


def canonical_literal(term: Term) -> Term:
    """`canonical` for a literal with a language or datatype, recomputed."""
    if term.endswith(_INTEGER_TAIL):  # the most frequent in streams
        digits = term[1 : -len(_INTEGER_TAIL)]
        if digits.isdigit() and digits[0] != "0" and len(digits) < 19 and digits.isascii():
            return term
    end = term.rindex('"')
    suffix = term[end:]
    rewrite = _REWRITERS.get(suffix)
    if rewrite is None:
        return f"{term[:end]}{suffix.lower()}" if suffix[1] == "@" else term
    return term if end == 1 else rewrite(term[1:end]) or _round_trip(term)


def too_long(lexical: str) -> bool:
    """Whether a text is that of an integer or decimal of more than DIGITS digits before the point."""
    if len(lexical) <= DIGITS:
        return False
    found = _ANY_DECIMAL.fullmatch(lexical)
    return found is not None and len(found[2]) > DIGITS


def _refuse(lexical: str) -> None:
    if too_long(lexical):
        raise DataError.of(
            "D2409",
            f"a number has more than {DIGITS:,} digits",
            label=f"`{lexical[:40]}…`",
            hint="write it as a string, or as an xsd:double",
        )


def _integer(lexical: str) -> Term | None:
    return f'"{lexical}{_INTEGER_TAIL}' if _INTEGER.fullmatch(lexical) else None


def _reaching(name: str) -> Callable[[str], Term | None]:
    """For a type of integers that reaches past 64 bits."""
    least, most = _UNBOUNDED[name]

    def integer(lexical: str) -> Term | None:
        if len(lexical) < 19:
            return _integer(lexical)
        found = _ANY_INTEGER.fullmatch(lexical)
        if found is None or len(found[2]) < 19:
            return None
        _refuse(lexical)
        value = -int(found[2]) if found[1] == "-" else int(found[2])
        if -(2**63) <= value < 2**63:
            return None  # the store has the form, whatever the type
        if (least is not None and value < least) or (most is not None and value > most):
            return f'"{lexical}{_SUFFIX}{name}>'
        return f'"{value}{_INTEGER_TAIL}'

    return integer


def _decimal(lexical: str) -> Term | None:
    if _DECIMAL.fullmatch(lexical):
        whole, fraction = lexical.rstrip("0").split(".")
        sign, whole = ("-", whole[1:]) if whole[0] == "-" else ("", whole)
        whole = whole.lstrip("0") or "0"
    else:
        found = _ANY_DECIMAL.fullmatch(lexical)
        if found is None:
            return None
        _refuse(lexical)
        sign, whole, fraction = found[1].strip("+"), found[2] or "0", (found[3] or "").rstrip("0")
        if len(fraction) > FRACTION:
            return f'"{lexical}{_SUFFIX}decimal>'
    text = f"{whole}.{fraction}" if fraction else whole
    return f'"{sign if text != "0" else ""}{text}{_SUFFIX}decimal>'


def _double(lexical: str) -> Term | None:
    return f'"{double_text(float(lexical))}{_SUFFIX}double>' if _DOUBLE.fullmatch(lexical) else None


def _datetime(lexical: str) -> Term | None:
    found = _DATETIME.fullmatch(lexical)
    if found is None:
        return None
    fraction = (found[2] or "").rstrip("0").rstrip(".")
    zone = found[3] or ""
    return f'"{found[1]}{fraction}{"Z" if zone[1:] == "00:00" else zone}{_SUFFIX}dateTime>'


_BOOLEANS = {"true": TRUE, "1": TRUE, "false": FALSE, "0": FALSE}

_FREQUENT: dict[str, Callable[[str], Term | None]] = {
    **{name: _reaching(name) for name in _UNBOUNDED},
    "int": _integer,
    "long": _integer,
    "decimal": _decimal,
    "double": _double,
    "boolean": _BOOLEANS.get,
    "dateTime": _datetime,
}
_REWRITERS: dict[str, Callable[[str], Term | None]] = {
    f"{_SUFFIX}{name}>": _FREQUENT.get(name, lambda _lexical: None) for name in sorted(_VALUE_TYPES)
}
"""Suffix of the lexical form → the canonical form of a frequent shape, None for all others."""


def _round_trip(term: Term) -> Term:
    store = ox.Store()  # a new one is cheaper than removing the quad, and threads share nothing
    store.add(ox.Quad(_PLACE, _PLACE, to_oxigraph(term)))
    return str(next(iter(store)).object)


canonical_literals: Memo[Term, Term] = Memo(canonical_literal)
"""`canonical` for a literal with a language or datatype, at the cost of a subscription."""
