"""Canonical form: a literal of an XSD value type becomes its value's one text.

Place:   applied where terms enter: background, stream, constants of programs (language.md, sec. 1).
Method:  the form is what a pyoxigraph Store returns for the literal, so that a query answered by the store
         and one answered here see the same terms. Frequent shapes (plain integers, decimals, doubles,
         booleans, dateTimes) are rewritten here; every other literal of an XSD value type makes the round
         trip through a store. Ill-typed literals stay as they are; language tags become lower-case.
Why not: a store for everything: 10 µs per literal; our own parser for everything: two dialects to keep equal.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyoxigraph as ox

from dotr.late import regex
from dotr.rdf.memo import Memo
from dotr.rdf.terms import FALSE, TRUE, XSD, Term, to_oxigraph

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
_DECIMAL = regex(r"-?[0-9]{1,18}\.[0-9]{1,18}")
_DOUBLE = regex(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
USUAL_DATETIME = (
    r"[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    r"|(?:0[13578]|1[02])-31)T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
)
"""dateTimes up to the second, except the 29th of February, which some years lack."""

_DATETIME = regex(rf"({USUAL_DATETIME})(\.[0-9]{{1,18}})?(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])?")

_PLACE = ox.NamedNode("urn:dotr:canonical")


def canonical(term: Term) -> Term:
    """The canonical form of a term; IRIs, blank nodes and strings stay. Idempotent; never raises.

    Cost: nothing for IRIs and strings, one table look-up for a known literal, otherwise at most 10 µs.
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


def _integer(lexical: str) -> Term | None:
    return f'"{lexical}{_INTEGER_TAIL}' if _INTEGER.fullmatch(lexical) else None


def _decimal(lexical: str) -> Term | None:
    if not _DECIMAL.fullmatch(lexical):
        return None
    whole, fraction = lexical.rstrip("0").split(".")
    sign, whole = ("-", whole[1:]) if whole[0] == "-" else ("", whole)
    whole = whole.lstrip("0") or "0"
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
    "integer": _integer,
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
