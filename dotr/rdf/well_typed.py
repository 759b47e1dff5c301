"""Whether a literal's text is valid for its datatype.

Place:   used by checks of datatypes (OWL 2 RL, dt-not-type); to SPARQL an ill-typed literal is a term like
         any other.
Method:  XSD 1.1, part 2: patterns and ranges; calendar types are checked by the SPARQL engine, which casts
         valid texts only; XML is parsed. Also the datatypes of OWL 2 (Structural Specification, sec. 4).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pyoxigraph as ox

from dotr.rdf.terms import OWL, RDF, XSD, Term, literal, literal_parts

_INTEGER = re.compile(r"[+-]?[0-9]+")
_RANGES: Final[dict[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    **{name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in
       (("byte", 8), ("short", 16), ("int", 32), ("long", 64))},
    **{name: (0, 2**bits - 1) for name, bits in
       (("unsignedByte", 8), ("unsignedShort", 16), ("unsignedInt", 32), ("unsignedLong", 64))},
}  # fmt: skip
_NAME = r"[^\W\d][\w.\-·]*"
_PATTERNS: Final = {
    "decimal": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)",
    "double": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN",
    "float": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN",
    "boolean": r"true|false|0|1",
    "hexBinary": r"([0-9A-Fa-f]{2})*",
    "base64Binary": r"(([A-Za-z0-9+/] ?){4})*(([A-Za-z0-9+/] ?){2}(= ?=|[A-Za-z0-9+/] ?=))?",
    "normalizedString": r"[^\t\n\r]*",
    "token": r"([^\t\n\r ]+( [^\t\n\r ]+)*)?",
    "language": r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*",
    "Name": rf":?{_NAME}(:[\w.\-·]+)*",
    "NCName": _NAME,
    "NMTOKEN": r"[\w.\-:·]+",
}
_CALENDAR: Final = (
    *("dateTime", "date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"),
    *("duration", "dayTimeDuration", "yearMonthDuration"),
)
_ZONED = re.compile(r".*(Z|[+-][0-9]{2}:[0-9]{2})").fullmatch
_STORE = ox.Store()


def is_well_typed(term: Term) -> bool:
    """Whether the lexical form of a literal is valid for its datatype; true for unknown datatypes."""
    lexical, datatype, _ = literal_parts(term)
    test = _TESTS.get(datatype)
    return test is None or test(lexical)


def xml_fragment(lexical: str) -> str | None:
    """The canonical form (C14N 2.0) of a piece of XML with its own namespaces; None if it is none."""
    from xml.etree import ElementTree as Xml  # noqa: PLC0415  # start-up: few literals are XML

    try:
        found = Xml.canonicalize(f"<_>{lexical}</_>", with_comments=True)
    except (Xml.ParseError, ValueError):
        return None
    return found[len("<_>") : -len("</_>")]


def _in_range(least: int | None, most: int | None) -> Callable[[str], bool]:
    def test(lexical: str) -> bool:
        if not _INTEGER.fullmatch(lexical):
            return False
        if len(lexical) > 40:  # no value of a bounded type has so many digits, except leading zeros
            sign, digits = ("-" if lexical[0] == "-" else ""), lexical.lstrip("+-").lstrip("0") or "0"
            lexical = sign + digits[:40]
        value = int(lexical)
        return (least is None or value >= least) and (most is None or value <= most)

    return test


def _like(pattern: str) -> Callable[[str], bool]:
    matches = re.compile(pattern).fullmatch
    return lambda lexical: matches(lexical) is not None


def _casts(datatype: str) -> Callable[[str], bool]:
    def test(lexical: str) -> bool:
        text = literal(lexical)
        return bool(_STORE.query(f"ASK {{ BIND(<{datatype}>({text}) AS ?x) FILTER(BOUND(?x)) }}"))

    return test


_TESTS: Final[dict[str, Callable[[str], bool]]] = {
    **{XSD + name: _in_range(*bounds) for name, bounds in _RANGES.items()},
    **{XSD + name: _like(pattern) for name, pattern in _PATTERNS.items()},
    **{XSD + name: _casts(XSD + name) for name in _CALENDAR},
    XSD + "dateTimeStamp": lambda lexical: _ZONED(lexical) is not None and _TESTS[XSD + "dateTime"](lexical),
    RDF + "langString": lambda lexical: True,
    RDF + "XMLLiteral": lambda lexical: xml_fragment(lexical) is not None,
    RDF + "PlainLiteral": _like(r"(?s:.*)@([A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*)?"),
    OWL + "rational": _like(r"[+-]?[0-9]+/0*[1-9][0-9]*"),
    OWL + "real": lambda lexical: False,  # it has values, and no text of its own
}
