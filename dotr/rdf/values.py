"""Values of terms: the meaning of a literal, as a Python value.

Place:   below order.py (comparison), sums.py (totals) and expressions/ (operators); above canonical.py.
Method:  an xsd:integer is an int, a decimal a Decimal, a double a float, an xsd:float a `Single`, a boolean a
         bool, a plain string a str; every other term is an object that keeps its text. The type of the Python
         value is the type of the RDF value, so operators dispatch on `type(value)`. Integers are exact and of
         any size up to DIGITS digits; decimals have as many before their point and 18 behind it, where longer
         ones are cut.
Why not: rdflib's or pyoxigraph's literal classes: neither decodes decimals and instants exactly.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from decimal import Context, Decimal
from math import inf
from typing import Any, TypeAlias

from msgspec import Struct

from dotr.budget import DIGITS
from dotr.errors import DataError
from dotr.rdf.canonical import FRACTION, canonical, double_text
from dotr.rdf.memo import Memo
from dotr.rdf.terms import (
    FALSE,
    TRUE,
    XSD,
    XSD_BOOLEAN,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    Term,
    literal,
    literal_parts,
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


class Opaque(Struct, frozen=True):
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
