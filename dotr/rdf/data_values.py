"""The data value of a literal, as OWL 2 has it: which literals are one value, which are two.

Place:   beside canonical.py, whose form is one text for each value *of a datatype*; used by the rules of OWL
         2 RL over datatypes (the function DATA_VALUE of expressions/casts.py).
Method:  OWL 2 Structural Specification, sec. 4, and XML Schema 1.1, part 2. A value is written as one literal
         that stands for it, whatever its datatypes are: an integer for "1.0"^^xsd:decimal, a plain string for
         "a"^^xsd:token, xsd:dateTime for xsd:dateTimeStamp. Identity, not equality, decides: +0 and -0 are
         two, NaN is itself, one moment in two time zones is two. The value spaces of double, float and
         decimal are disjoint, and so are those of other primitive datatypes.
Why not: SPARQL's `=`: it compares across numeric kinds, and is an error for most datatypes.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from math import gcd
from typing import Final

from dotr.rdf.canonical import canonical
from dotr.rdf.memo import Memo
from dotr.rdf.terms import OWL, RDF, XSD, XSD_DECIMAL, XSD_INTEGER, XSD_STRING, Term, literal, literal_parts
from dotr.rdf.well_typed import is_well_typed, xml_fragment

_LONGEST = 4_000
"""Digits of a rational number's parts; a longer one is nobody's value. (Python converts 4,300.)"""


def data_value(term: Term) -> Term | None:
    """The literal that stands for a literal's value. None for an IRI or a blank node, an ill-typed literal,
    and one of a datatype that nobody knows: of their values nothing is known. Idempotent.
    """
    return data_values[term] if term[0] == '"' else None


def _data_value(term: Term) -> Term | None:
    lexical, datatype, language = literal_parts(term)
    if language:
        return canonical(term)
    read = _READERS.get(datatype)
    return read(lexical, datatype) if read is not None and is_well_typed(term) else None


data_values: Memo[Term, Term | None] = Memo(_data_value)
"""`data_value` for literals, at the cost of a subscription."""

_Reader = Callable[[str, str], Term | None]


def _number(lexical: str, datatype: str) -> Term:
    """A decimal of any size and precision; an integer where it is one."""
    whole, _, fraction = lexical.lstrip("+-").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    text = f"{whole}.{fraction}" if fraction else whole
    sign = "-" if lexical[0] == "-" and text != "0" else ""
    return literal(sign + text, XSD_DECIMAL if fraction else XSD_INTEGER)


def _rational(lexical: str, datatype: str) -> Term | None:
    """A quotient: a decimal where it has finitely many digits, and not too many, else in lowest terms."""
    if len(lexical) > _LONGEST:
        return None
    over, under = map(int, lexical.split("/"))
    common = gcd(over, under)
    over, under = over // common, under // common
    rest, places = under, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        places = max(places, count)
    if rest > 1 or places > _LONGEST - len(lexical):
        return literal(f"{over}/{under}", datatype)
    digits = str(abs(over) * 10**places // under).rjust(places + 1, "0")
    cut = len(digits) - places
    return _number(f"{'-' if over < 0 else ''}{digits[:cut]}.{digits[cut:]}", XSD_DECIMAL)


def _string(lexical: str, datatype: str) -> Term:
    return literal(lexical)


def _plain(lexical: str, datatype: str) -> Term:
    """rdf:PlainLiteral: `text@language`, or `text@`."""
    text, _, language = lexical.rpartition("@")
    return literal(text, language=language)


def _by_canonical_form(lexical: str, datatype: str) -> Term:
    return canonical(literal(lexical, datatype))


def _duration(lexical: str, datatype: str) -> Term:
    return canonical(literal(lexical, XSD + "duration"))


def _hex(lexical: str, datatype: str) -> Term:
    return literal(lexical.upper(), datatype)


def _base64(lexical: str, datatype: str) -> Term:
    return literal(b64encode(b64decode(lexical.replace(" ", ""))).decode(), datatype)


def _xml(lexical: str, datatype: str) -> Term | None:
    found = xml_fragment(lexical)
    return None if found is None else literal(found, datatype)


def _itself(lexical: str, datatype: str) -> Term:
    return literal(lexical, datatype)


_INTEGERS: Final = (
    *("integer", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
    *("byte", "short", "int", "long", "unsignedByte", "unsignedShort", "unsignedInt", "unsignedLong"),
)
_STRINGS: Final = ("normalizedString", "token", "language", "Name", "NCName", "NMTOKEN")
_OF_ONE_FORM: Final = (
    *("double", "float", "boolean", "dateTime", "dateTimeStamp", "date", "time"),
    *("gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"),
)
_READERS: Final[Mapping[str, _Reader]] = {
    **{XSD + name: _number for name in (*_INTEGERS, "decimal")},
    **{XSD + name: _string for name in _STRINGS},
    **{XSD + name: _by_canonical_form for name in _OF_ONE_FORM},
    **{XSD + name: _duration for name in ("duration", "dayTimeDuration", "yearMonthDuration")},
    XSD_STRING: _string,
    XSD + "hexBinary": _hex,
    XSD + "base64Binary": _base64,
    XSD + "anyURI": _itself,
    RDF + "PlainLiteral": _plain,
    RDF + "XMLLiteral": _xml,
    OWL + "rational": _rational,
}
