"""Values of terms: the Python value of a literal, the order of terms, and the validity of literals.

Place:   above terms.py; below sums.py (totals) and expressions/ (operators). MIN, MAX, ORDER BY, the order of
         facts and the selections LAST and FIRST use the canonical order, in every engine.
Method:  an xsd:integer is an int, a decimal a Decimal, a double a float, an xsd:float a `Single`, a boolean a
         bool, a plain string a str; every other term is an object that keeps its text. The type of the Python
         value is the type of the RDF value, so operators dispatch on `type(value)`. Integers are exact and of
         any size up to DIGITS digits; decimals have as many before their point and 18 after it, where longer
         ones are cut.
         Canonical order: one total order on terms that breaks every tie. A term's key is (class, what orders
         the class …, text); Python compares int, Decimal and float by exact value, so keys of numbers of
         mixed types need no conversion (language.md, sec. 1).
         Validity: whether a literal's text is valid for its datatype, for OWL 2 RL (dt-not-type); to SPARQL
         an ill-typed literal is a term like any other. XSD 1.1, part 2: patterns and ranges; calendar types
         are checked by the SPARQL engine, which casts valid strings only; XML is parsed. Also the datatypes
         of OWL 2 (Structural Specification, sec. 4).
         Data values: which literals are one value in OWL 2 (Structural Specification, sec. 4, and XML Schema
         1.1, part 2), for its rules over datatypes (the function DATA_VALUE of expressions/functions.py). A
         value is written as one literal that stands for it, whatever its datatypes are: an integer for
         "1.0"^^xsd:decimal, a plain string for "a"^^xsd:token, xsd:dateTime for xsd:dateTimeStamp. Identity,
         not equality, decides: +0 and -0 are two, NaN is itself, one moment in two time zones is two. The
         value spaces of double, float and decimal are disjoint, and so are those of other primitive
         datatypes.
Why not: rdflib's or pyoxigraph's literal classes: neither decodes decimals and instants exactly. SPARQL's `<`
         completed by text as the order: it is not an order, 9 < 10 < "5" < 9. SPARQL's `=` for data values:
         it compares across numeric kinds, and is an error for most datatypes.
"""

from __future__ import annotations

import re
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from math import gcd, inf
from typing import Any, Final, TypeAlias

import pyoxigraph as ox
from msgspec import Struct

from dotr.budget import DIGITS
from dotr.errors import DataError
from dotr.rdf.terms import (
    FALSE,
    FRACTION,
    OWL,
    RDF,
    TRUE,
    XSD,
    XSD_BOOLEAN,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    Memo,
    Term,
    TextMemo,
    canonical,
    double_text,
    literal,
    literal_parts,
    members,
)
from dotr.regex import regex

BEYOND: int = 10**DIGITS
"""The least number that is too long."""
EXACT = Context(prec=2 * (DIGITS + 2 * FRACTION), Emin=-4 * DIGITS, Emax=4 * DIGITS, traps=[])
"""Decimal arithmetic that never raises, nor rounds a sum or product of two decimals."""
_STORED = EXACT.scaleb(Decimal(2**127), -18)
"""The range of the full engine's decimals."""
TICKS = 10**18
"""Ticks of an instant per second: as fine as a decimal."""


class Single(float):
    """An xsd:float: a double that a 32-bit float can hold. Make one with `single`."""

    __slots__ = ()


def single(value: float) -> Single:
    """The xsd:float nearest to a double; ±INF beyond the range."""
    return Single(array("f", (value,))[0])


class Resource(Struct, frozen=True):
    """An IRI or a blank node."""

    term: Term


class LanguageString(Struct, frozen=True):
    text: str
    language: str
    term: Term


class DateTime(Struct, frozen=True):
    """A well-typed xsd:dateTime: `ticks` of 10⁻¹⁸ s since 1970 (UTC if it has no zone)."""

    ticks: int
    zoned: bool
    term: Term


class Duration(Struct, frozen=True):
    """A well-typed duration: `months`, and `ticks` of 10⁻¹⁸ s, of one sign. `datatype` is the IRI itself."""

    months: int
    ticks: int
    datatype: str
    term: Term

    @property
    def seconds(self) -> Decimal:
        """The part that is no months, in seconds."""
        return EXACT.scaleb(Decimal(self.ticks), -18)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where it ends from each of the four dates by which XSD 1.1 compares durations, in ticks."""
        if not self.months:
            return (self.ticks,) * len(_STARTS)
        found = []
        for year, month in _STARTS:
            years, months = divmod(month - 1 + self.months, 12)
            passed = day_number(year + years, months + 1, 1) - day_number(year, month, 1)
            found.append(passed * 86_400 * TICKS + self.ticks)
        return tuple(found)


class Opaque(Struct, frozen=True, gc=False):
    """Any other literal: dates, times of day, ill-typed and unknown ones. `datatype` is the IRI itself."""

    lexical: str
    datatype: str
    term: Term


Number: TypeAlias = int | Decimal | float
Value: TypeAlias = (
    int | Decimal | float | bool | str | Resource | LanguageString | DateTime | Duration | Opaque
)
"""`float` is an xsd:double unless it is a `Single`; `int` never means `bool`."""


def decode(term: Term) -> Value:
    """The value of a term, canonical or not. Never raises. Cost: one table look-up for a known term."""
    return values[term]


def number(term: Term) -> Number | None:
    """The value of a well-typed numeric literal (an xsd:float as a float), None for every other term."""
    value = values[term]
    return value if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) else None


def instant(term: Term) -> int | None:
    """Microseconds since 1970 of a well-typed xsd:dateTime, None for every other term.

    A missing zone counts as UTC; fractions of a microsecond are cut towards the past.
    """
    value = values[term]
    return value.ticks // (TICKS // 1_000_000) if isinstance(value, DateTime) else None


def _decode(term: Term) -> Value:
    if term[0] != '"':
        return Resource(term)
    end = term.rfind('"^^<')
    if end > 0:
        if term.endswith(_GEOMETRIES):
            return _shapes[term]
        read = _READERS.get(term[end:])
        value = read(term[1:end]) if read is not None else None
        if value is not None:
            return value
        try:
            known = canonical(term)
        except DataError:  # a number that is too long
            known = term
        if known != term:
            return _decode(known)
    lexical, datatype, language = literal_parts(term)
    if datatype == XSD_STRING:
        return lexical
    if language:
        return LanguageString(lexical, language.lower(), canonical(term))
    read_other = _OTHER_READERS.get(datatype)
    other = None if read_other is None else read_other(lexical, term)
    return Opaque(lexical, datatype, term) if other is None else other


_GEOMETRIES = tuple(f"opengis.net/ont/geosparql#{name}>" for name in ("wktLiteral", "geoJSONLiteral"))


def _shape(term: Term) -> Opaque:
    lexical, datatype, _ = literal_parts(term)
    return Opaque(lexical, datatype, term)  # which has one form only


_shapes: TextMemo[Opaque] = TextMemo(_shape)
"""Literals of geometries: longer than what `values` keeps, and asked for again and again."""


_INTEGER = regex(r"-?[1-9][0-9]*|0")
_DECIMAL = regex(r"[+-]?(?=\.?[0-9])0*+([0-9]*)(?:\.([0-9]*))?")
_FLOATING = regex(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|INF)|NaN")
_DATETIME = regex(
    r"(-?)([0-9]{4}|[1-9][0-9]{4,})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,18}))?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))?"
)


def _integer(lexical: str) -> int | None:
    return int(lexical) if _INTEGER.fullmatch(lexical) and len(lexical.lstrip("-")) <= DIGITS else None


def _decimal(lexical: str) -> Decimal | None:
    found = _DECIMAL.fullmatch(lexical)
    if found is None or len(found[1]) > DIGITS:
        return None
    too_fine = len(found[2] or "") - FRACTION
    return Decimal(lexical[:-too_fine] if too_fine > 0 else lexical)


def _double(lexical: str) -> float | None:
    return float(lexical) if _FLOATING.fullmatch(lexical) else None


def _single(lexical: str) -> Single | None:
    """The engine's reading of a decimal text as a 32-bit float, rounded once."""
    term = f'"{lexical}"^^<{XSD_FLOAT}>'
    return single(float(lexical)) if _FLOATING.fullmatch(lexical) and canonical(term) == term else None


_READERS: dict[str, Callable[[str], Value | None]] = {
    f'"^^<{XSD_INTEGER}>': _integer,
    f'"^^<{XSD_DECIMAL}>': _decimal,
    f'"^^<{XSD_DOUBLE}>': _double,
    f'"^^<{XSD_FLOAT}>': _single,
    f'"^^<{XSD_BOOLEAN}>': {"true": True, "false": False}.get,
}


def _datetime(lexical: str, term: Term) -> DateTime | None:
    """An instant by the proleptic Gregorian calendar, with year 0 (XSD 1.1), None if ill-typed."""
    found = _DATETIME.fullmatch(lexical)
    if not found:
        return None
    minus, years, *rest, fraction, zulu, sign, zone_hours, zone_minutes = found.groups()
    if len(years) > _MOST_DIGITS:
        return None
    month, day, hour, minute, second = map(int, rest)
    year = -int(years) if minus else int(years)
    offset = int(zone_hours) * 60 + int(zone_minutes) if sign else 0
    if not (1 <= month <= 12 and 1 <= day <= _month_length(year, month) and hour < 24 and minute < 60):
        return None
    if second >= 60 or offset > 14 * 60 or (sign and int(zone_minutes) >= 60):
        return None
    if sign == "-":
        offset = -offset
    seconds = day_number(year, month, day) * 86_400 + hour * 3_600 + (minute - offset) * 60 + second
    ticks = seconds * TICKS + (int(fraction.ljust(18, "0")) if fraction else 0)
    if not -(2**127) <= ticks < 2**127:
        return None
    return DateTime(ticks, zulu is not None or sign is not None, term)


_DURATION = regex(
    r"(-?)P(?=.)(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=.)(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,18}))?S)?)?"
)
DURATION, DAY_TIME, YEAR_MONTH = (XSD + name for name in ("duration", "dayTimeDuration", "yearMonthDuration"))
_STARTS = ((1696, 9), (1697, 2), (1903, 3), (1903, 7))
"""Year and month of the dates of XSD 1.1, sec. 3.3.6.2."""

_MOST_DIGITS = 4_000
"""Digits of a part of a time, zeros in front included: more are beyond every limit, or not meant."""

MOST_MONTHS, MOST_TICKS = 2**63 - 1, 2**127 - 1
"""What a duration holds at most, as in the full engine."""


def _duration(lexical: str, term: Term) -> Duration | None:
    found = _DURATION.fullmatch(lexical)
    if not found or any(len(part or "") > _MOST_DIGITS for part in found.groups()):
        return None
    years, months, days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:7])
    sign = -1 if found[1] else 1
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    ticks = whole * TICKS + int((found[8] or "").ljust(18, "0"))
    datatype = literal_parts(term)[1]
    in_months = years * 12 + months
    if (datatype == DAY_TIME and any(found.groups()[1:3])) or (
        datatype == YEAR_MONTH and any(found.groups()[3:7])
    ):
        return None
    if in_months > MOST_MONTHS or ticks > MOST_TICKS:
        return None
    return Duration(sign * in_months, sign * ticks, datatype, term)


_OTHER_READERS: dict[str, Callable[[str, Term], Value | None]] = {
    XSD_DATETIME: _datetime,
    **dict.fromkeys((DURATION, DAY_TIME, YEAR_MONTH), _duration),
}
"""Datatype → its reader of a lexical form and its term; None if ill-typed."""


def duration(months: int, ticks: int, datatype: str) -> Duration | None:
    """The duration of a datatype; None beyond its limits. One of its parts is 0, or both have one sign."""
    if abs(months) > MOST_MONTHS or abs(ticks) > MOST_TICKS:
        return None
    return Duration(months, ticks, datatype, literal(duration_text(months, ticks, datatype), datatype))


def duration_text(months: int, ticks: int, datatype: str) -> str:
    """The canonical lexical form: `P1Y2M`, `P1DT2H0.5S`; of nothing `PT0S`, of no months `P0M`."""
    years, over = divmod(abs(months), 12)
    whole, fraction = divmod(abs(ticks), TICKS)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    date = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (over, "M"), (days, "D")) if n)
    time = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    if fraction:
        time += f"{seconds}.{fraction:018}".rstrip("0") + "S"
    elif seconds:
        time += f"{seconds}S"
    if not date and not time:
        return "P0M" if datatype == YEAR_MONTH else "PT0S"
    return f"{'-' if months < 0 or ticks < 0 else ''}P{date}{'T' if time else ''}{time}"


def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01: years of 365.2425 days counted from March, so that leap days come last."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


values: Memo[Term, Value] = Memo(_decode)
"""The table behind `decode`, for code that cannot afford a call: `values[term]`."""


def to_double(value: Number) -> float:
    """A number as xsd:double, rounded like the engine: a decimal is its digits over a power of ten. Past the
    greatest double it is ±INF.
    """
    if isinstance(value, Decimal):
        if len(str(value)) <= 16:  # 15 digits at most: both are exact, and one division rounds once
            return float(value) or 0.0
        if not -_STORED <= value < _STORED:
            return float(value)
        places, digits = 18, int(EXACT.scaleb(value, 18))
        while places and digits % 10 == 0:
            digits, places = digits // 10, places - 1
        return float(digits) / float(10**places)
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def encode(value: Value) -> Term:
    """The canonical term of a value: the inverse of `decode` on canonical terms."""
    return _ENCODERS[type(value)](value)


def decimal_text(value: Decimal) -> str:
    """The canonical lexical form of an xsd:decimal: no exponent, no zeros at the end of a fraction."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _single_term(value: float) -> Term:
    return canonical(f'"{double_text(float(value))}"^^<{XSD_FLOAT}>')


_ENCODERS: dict[type, Callable[[Any], Term]] = {
    int: lambda value: f'"{value}"^^<{XSD_INTEGER}>',
    Decimal: lambda value: f'"{decimal_text(value)}"^^<{XSD_DECIMAL}>',
    float: lambda value: f'"{double_text(value)}"^^<{XSD_DOUBLE}>',
    Single: _single_term,
    bool: lambda value: TRUE if value else FALSE,
    str: literal,
    Resource: lambda value: value.term,
    LanguageString: lambda value: value.term,
    DateTime: lambda value: value.term,
    Duration: lambda value: value.term,
    Opaque: lambda value: value.term,
}


TermKey: TypeAlias = tuple[Any, ...]

_UNBOUND: TermKey = (0,)


def term_key(term: Term | None) -> TermKey:
    """The place of a term in the canonical order; None is an unbound value. Compare keys with `<` and `==`.

    Unbound < blank nodes < IRIs by code points < numbers by exact value, NaN last < strings by code points <
    false < true < dateTimes by instant (no zone = UTC) < durations by where they end < all other literals;
    remaining ties, and the last class, by N-Triples text; lists last, member by member. Equal keys mean equal
    terms. Cost: one table look-up for a known term.
    """
    return _UNBOUND if term is None else _keys[term]


def values_key(row: tuple[Term | None, ...]) -> tuple[TermKey, ...]:
    """The key of a row among rows of the same width: by its values from left to right."""
    keys = _keys
    return tuple([_UNBOUND if term is None else keys[term] for term in row])


def _key(term: Term) -> TermKey:
    if term[0] == "_":
        return (1, term)
    if term[0] == "[":
        return (9, *[_keys[member] for member in members(term)])
    if term[0] != '"':
        return (2, term[1:-1])
    value = decode(term)
    if isinstance(value, bool):
        return (5, value, term)
    if isinstance(value, (int, float, Decimal)):
        return (3, 1, 0, term) if value != value else (3, 0, value, term)
    if isinstance(value, str):
        return (4, value, term)
    if isinstance(value, DateTime):
        return (6, value.ticks, term)
    if isinstance(value, Duration):
        return (7, *value.ends, term)
    return (8, term)


_keys: Memo[Term, TermKey] = Memo(_key)


_WELL_TYPED_INTEGER = re.compile(r"[+-]?[0-9]+")
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
        if not _WELL_TYPED_INTEGER.fullmatch(lexical):
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
    read = _VALUE_READERS.get(datatype)
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


def _duration_value(lexical: str, datatype: str) -> Term:
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
_VALUE_READERS: Final[Mapping[str, _Reader]] = {
    **{XSD + name: _number for name in (*_INTEGERS, "decimal")},
    **{XSD + name: _string for name in _STRINGS},
    **{XSD + name: _by_canonical_form for name in _OF_ONE_FORM},
    **{XSD + name: _duration_value for name in ("duration", "dayTimeDuration", "yearMonthDuration")},
    XSD_STRING: _string,
    XSD + "hexBinary": _hex,
    XSD + "base64Binary": _base64,
    XSD + "anyURI": _itself,
    RDF + "PlainLiteral": _plain,
    RDF + "XMLLiteral": _xml,
    OWL + "rational": _rational,
}
