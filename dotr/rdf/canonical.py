"""Canonical form: a literal of an XSD value type becomes its value's one text.

Place:   applied where terms enter: background, stream, constants of programs (language.md, sec. 1).
Method:  the form is what a pyoxigraph Store gives back for the literal, so that a query answered by
         the store and one answered here see the same terms. Frequent shapes (plain integers, decimals,
         doubles, booleans, UTC dateTimes) are rewritten here; every other literal of an XSD value type makes
         the round trip through a store. Ill-typed literals stay as they are; language tags become lower-case.
Why not: a store for everything: 10 µs a literal; our own parser for everything: two dialects to keep equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

import pyoxigraph as ox

from dotr.rdf.memo import Memo
from dotr.rdf.terms import FALSE, TRUE, XSD, Term, Triple, to_oxigraph

_SUFFIX = '"^^<' + XSD
_INTEGER_TAIL = _SUFFIX + "integer>"
_VALUE_TYPES = frozenset(
    {"integer", "byte", "short", "int", "long", "unsignedByte", "unsignedShort", "unsignedInt"}
    | {"unsignedLong", "positiveInteger", "negativeInteger", "nonPositiveInteger", "nonNegativeInteger"}
    | {"decimal", "double", "float", "boolean", "dateTime", "dateTimeStamp", "date", "time"}
    | {"gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"}
    | {"duration", "dayTimeDuration", "yearMonthDuration"}
)

_INTEGER = re.compile(r"-?[1-9][0-9]{0,17}|0")
_DECIMAL = re.compile(r"-?[0-9]{1,18}\.[0-9]{1,18}")
_DOUBLE = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_DATETIME = re.compile(
    r"([0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
    r"(\.[0-9]{1,18})?(?:Z|\+00:00)"
)

_PLACE = ox.NamedNode("urn:dotr:canonical")


def canonical(term: Term) -> Term:
    """The canonical form of a term: IRIs, blank nodes and strings are their own. Idempotent; never raises.

    Cost: nothing for IRIs and strings, one table look-up for a literal seen before, at most 10 µs otherwise.
    """
    if term[0] != '"' or term[-1] == '"':
        return term
    return canonical_literals[term]


def canonical_triples(triples: Iterable[Triple]) -> list[Triple]:
    """The triples with canonical objects, in the order given; repeats stay."""
    memo = canonical_literals
    return [(s, p, o if o[0] != '"' or o[-1] == '"' else memo[o]) for s, p, o in triples]


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
    """Of two shortest texts equally near to a value the engine takes the greater, Python the even one.

    Only a value of few binary places and many digits lies half-way: 562949953421312.25 is ….3, not ….2.
    """
    exact, shortest = Decimal(value), Decimal(text)
    if abs(exact) <= abs(shortest):
        return text
    other = str(exact + (exact - shortest)).rstrip("0")
    return other if len(other) == len(text) and float(other) == value else text


_NOT_FINITE = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}


def _canonical(term: Term) -> Term:
    end = term.rindex('"')
    if term[end + 1] == "@":
        return term[: end + 1] + term[end + 1 :].lower()
    if not term.startswith(_SUFFIX, end):
        return term
    name = term[end + len(_SUFFIX) : -1]
    lexical = term[1:end]
    if name not in _VALUE_TYPES or not lexical:
        return term
    return _rewritten(lexical, name) or _round_trip(term)


def _rewritten(lexical: str, name: str) -> Term | None:
    """The canonical form of a frequent shape, None for all others."""
    match name:
        case "integer" | "int" | "long" if _INTEGER.fullmatch(lexical):
            return f'"{lexical}{_INTEGER_TAIL}'
        case "decimal" if _DECIMAL.fullmatch(lexical):
            whole, fraction = lexical.rstrip("0").split(".")
            sign, whole = ("-", whole[1:]) if whole[0] == "-" else ("", whole)
            whole = whole.lstrip("0") or "0"
            text = f"{whole}.{fraction}" if fraction else whole
            return f'"{sign if text != "0" else ""}{text}{_SUFFIX}decimal>'
        case "double" if _DOUBLE.fullmatch(lexical):
            return f'"{double_text(float(lexical))}{_SUFFIX}double>'
        case "boolean":
            return _BOOLEANS.get(lexical)
        case "dateTime" if found := _DATETIME.fullmatch(lexical):
            fraction = (found[2] or "").rstrip("0").rstrip(".")
            return f'"{found[1]}{fraction}Z{_SUFFIX}dateTime>'
    return None


_BOOLEANS = {"true": TRUE, "1": TRUE, "false": FALSE, "0": FALSE}


def _round_trip(term: Term) -> Term:
    store = ox.Store()  # a new one is cheaper than taking the quad out again, and threads share nothing
    store.add(ox.Quad(_PLACE, _PLACE, to_oxigraph(term)))
    return str(next(iter(store)).object)


canonical_literals: Memo[Term, Term] = Memo(_canonical)
"""`canonical` for a literal with a language or datatype, at the price of a subscription."""
