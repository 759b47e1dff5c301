"""Cells to parts of terms: filters, datatypes, escaping, dates and times.

Place:   compiled.py calls one function per cell; nothing here knows rows or files.
Method:  a cell is a string; filters map it to a string, each a closure; the result is escaped as its term
         needs: percent-encoded in an IRI as in R2RML (all but `iunreserved` of RFC 3987), escaped as in
         N-Triples in a literal. A typed literal must be in the lexical space of its datatype.
         The filter `datetime` compiles a format of strptime to one regular expression, whose groups are
         numbers. Where it ends in a time of day, the hour before it is looked up in a bounded table, since
         neighbouring rows share it; elsewhere the minute is. The zone's offset comes from io/time.py.
Why not: datetime.strptime: 8 µs a cell, names of months by the machine's locale, and no report of times that
         a zone has twice.
Bad input: D2404 outside a datatype, or what a filter cannot read · D2105 not such a time · D2108, D2109 local
         times that came twice or never · D2103 no zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, tzinfo
from decimal import ROUND_FLOOR, Context, Decimal, Inexact
from functools import lru_cache
from math import floor
from typing import Final, TypeAlias

import pyoxigraph as ox
from msgspec import Struct

from dotr.budget import DIGITS
from dotr.events import Clock, Time
from dotr.io.tables.mapping import Argument, Cell, ColumnFilter, wrong
from dotr.io.time import (
    UNITS,
    RepeatedTimeError,
    TimeError,
    parse_datetime,
    plain_datetimes,
    to_instant,
    too_fine,
    zone_of,
)
from dotr.io.time_reading import EXACT, Notes, TimeReading
from dotr.lang.grammar.cursor import nearest
from dotr.rdf.terms import XSD, Memo, escape, too_long
from dotr.regex import regex

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG: Final = "January|February|March|April|May|June|July|August|September|October|November|December"
_PATTERNS: Final[Mapping[str, str]] = {
    "Y": r"(?P<year>[0-9]{4})",
    "y": r"(?P<short>[0-9]{2})",
    "m": r"(?P<month>[0-9]{1,2})",
    "b": rf"(?P<name>{'|'.join(m.capitalize() for m in _MONTHS)})",
    "B": rf"(?P<name>{_LONG})",
    "d": r"(?P<day>[0-9]{1,2})",
    "H": r"(?P<hour>[0-9]{1,2})",
    "I": r"(?P<hour>[0-9]{1,2})",
    "p": r"(?P<half>[AaPp])\.?[Mm]\.?",
    "M": r"(?P<minute>[0-9]{1,2})",
    "S": r"(?P<second>[0-9]{1,2})",
    "f": r"(?P<fraction>[0-9]+)",
    "z": r"(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})",
    "A": r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day",
    "a": r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)",
    "%": "%",
}
_SHORTHANDS: Final[Mapping[str, str]] = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y"}
_EPOCH: Final = date(1970, 1, 1).toordinal()
_MINUTE: Final = 60_000_000
_TAILS: Final[Mapping[str, tuple[dict[str, Time], int]]] = {
    ":%M": ({f":{minute:02}": minute * _MINUTE for minute in range(60)}, -3),
    ":%M:%S": (
        {f":{second // 60:02}:{second % 60:02}": second * 1_000_000 for second in range(3600)},
        -6,
    ),
}
"""How a format goes on after the hour → what that adds to it, in order, and where it begins in a string."""


class DateFormat:
    """Owns the compiled form of one format and the minutes that it saw.

    `zone` is that of texts without `%z`; None refuses the format unless it has one. Raises TimeError D2103
    for that, D2105 for a directive that is not known.
    """

    def __init__(self, text: str, zone: tzinfo | None, reading: TimeReading = EXACT) -> None:
        self.text, self._zone, self._reading = text, zone, reading
        text = re.sub("%(.)", lambda found: _SHORTHANDS.get(found[1], found[0]), text, flags=re.DOTALL)
        self._pattern = re.compile(_regular(text), re.ASCII | re.IGNORECASE)
        groups = self._pattern.groupindex
        self._zoned = "zone" in groups
        if "year" not in groups and "short" not in groups:
            raise TimeError("D2105", f"the format `{self.text}` has no year", "add it: %Y")
        if not self._zoned and zone is None:
            hint = f'name it: datetime("{self.text}", "Europe/Berlin"), or --time-zone'
            raise TimeError("D2103", f"times of the format `{self.text}` have no zone", hint)
        rest = [name for name in groups if name not in ("second", "fraction", "zone")]
        self._names = rest
        self._places = tuple(groups[name] for name in rest)
        self._second, self._fraction = groups.get("second", 0), groups.get("fraction", 0)
        self._minutes: Memo[tuple[str, ...], Time] = Memo(self._minute, limit=1 << 12)
        none: tuple[dict[str, Time], int] = {}, 0
        self._tails, self._end = _TAILS.get(text[text.find("%H") + 2 :], none) if "%H" in text else none
        self._hours: Memo[str, Time] = Memo(self._hour, limit=1 << 12)

    def micros(self, text: str, notes: Notes | None = None) -> Time:
        """The instant that a string denotes, in microseconds since 1970; what was changed is added to
        `notes`. Raises TimeError.
        """
        found = self.usual((text,))
        return self._exactly(text, notes) if found is None else found[0]

    def usual(self, texts: Sequence[str]) -> list[Time] | None:
        """The instants of texts that all end in minutes or seconds of two digits, within hours at which the
        zone does not change; None of others.
        """
        tails, hours, end = self._tails, self._hours, self._end
        if not tails:
            return None
        try:
            return [hours[text[:end]] + tails[text[end:]] for text in texts]
        except KeyError:
            return None

    def _hour(self, head: str) -> Time:
        """The beginning of the hour that a string without its tail says. Raises KeyError if it is none, or
        one in which the zone changes.
        """
        first, last = next(iter(self._tails)), next(reversed(self._tails))
        notes: Notes = set()
        try:
            start, final = self._exactly(head + first, notes), self._exactly(head + last, notes)
        except TimeError:
            raise KeyError(head) from None
        if notes or final - start != self._tails[last]:
            raise KeyError(head)
        return start

    def _exactly(self, text: str, notes: Notes | None) -> Time:
        found = self._pattern.fullmatch(text)
        if found is None:
            hint = "check the format, or the cell"
            raise TimeError("D2105", f"`{text[:60]}` is not a time written as {self.text}", hint)
        places = self._places
        key = found.group(*places) if len(places) > 1 else (found[places[0]],)
        try:
            time = self._minutes[key]
            if self._second:
                second = int(found[self._second])
                if second > 59:
                    raise TimeError("D2105", f"`{text}` has {second} seconds", "they go to 59")
                time += second * 1_000_000
            if self._fraction:
                time += self._fraction_of(found[self._fraction], text, notes)
            if self._zoned:
                return time - _offset(found["zone"])
            if self._zone is not None:
                return to_instant(time, self._zone, text, self._reading, notes)
        except TimeError as error:
            if _STOOD not in error.message:
                raise
            message = error.message.replace(_STOOD, text)
            raise TimeError(error.code, message, error.hint) from None
        return time

    def _minute(self, key: tuple[str, ...]) -> Time:
        """A minute as if its zone were UTC."""
        parts = dict(zip(self._names, key, strict=True))
        hour = int(parts.get("hour", "0"))
        if half := parts.get("half"):
            if not 1 <= hour <= 12:
                raise TimeError("D2105", f"`{_STOOD}` has no such hour", "%I goes from 1 to 12")
            hour = hour % 12 + (12 if half in "pP" else 0)
        minute = int(parts.get("minute", "0"))
        if hour > 23 or minute > 59:
            raise TimeError("D2105", f"`{_STOOD}` is not a time of day", "hours go to 23, minutes to 59")
        try:
            days = date(_year(parts), _month(parts), int(parts.get("day", "1"))).toordinal() - _EPOCH
        except ValueError as error:
            raise TimeError("D2105", f"`{_STOOD}` is not a day: {error}", "check the format") from None
        return ((days * 24 + hour) * 60 + minute) * _MINUTE

    def _fraction_of(self, digits: str, text: str, notes: Notes | None) -> Time:
        """The microseconds of a fraction; finer digits are cut off."""
        if digits[6:].strip("0"):
            if self._reading.finer == "refuse":
                raise too_fine(text)
            if notes is not None:
                notes.add("cut")
        return int(digits[:6].ljust(6, "0"))


_STOOD: Final = "\0"
"""Stands for the whole text in messages about its minute."""


def _regular(text: str) -> str:
    """The regular expression of a format without shorthands, whose groups are the parts of a time."""
    said: dict[str, str] = {}
    patterns = []
    for part in re.split(r"(%.)", text, flags=re.DOTALL):
        pattern = _pattern(part)
        if (group := _GROUP.match(pattern)) is not None:
            if group[1] in said:
                both = " and ".join(f"`{one}`" for one in (said[group[1]], part))
                message = f"a format has the {_SPOKEN.get(group[1], group[1])} twice: {both}"
                raise TimeError("D2105", message, "leave one of them out")
            said[group[1]] = part
        patterns.append(pattern)
    return "".join(patterns)


_GROUP: Final = re.compile(r"\(\?P<([a-z]+)>")
_SPOKEN: Final[Mapping[str, str]] = {"short": "year", "name": "month", "half": "half of the day"}


def _pattern(part: str) -> str:
    if part.isspace():
        return r"\s+"
    if part.endswith("%") and part != "%%":
        raise TimeError("D2105", "the format ends in a single `%`", "a percent sign is written %%")
    if part[:1] != "%":
        return re.escape(part)
    if part[1] not in _PATTERNS:
        known = " ".join(f"%{letter}" for letter in (*_PATTERNS, *_SHORTHANDS) if letter != "%")
        raise TimeError("D2105", f"`{part}` is not known in time formats", f"one of {known}, or iso")
    return _PATTERNS[part[1]]


def _year(parts: Mapping[str, str]) -> int:
    if "year" in parts:
        return int(parts["year"])
    short = int(parts["short"])
    return short + (2000 if short < 69 else 1900)  # as POSIX has it


def _month(parts: Mapping[str, str]) -> int:
    if "name" in parts:
        return _MONTHS.index(parts["name"][:3].lower()) + 1
    return int(parts.get("month", "1"))


def _offset(text: str) -> int:
    if text in "Zz":
        return 0
    hours, minutes = int(text[1:3]), int(text[-2:])
    if minutes > 59 or hours * 60 + minutes > 14 * 60:
        raise TimeError("D2105", f"`{_STOOD}` has a zone beyond 14:00", "check the zone")
    minutes += hours * 60
    return (-minutes if text[0] == "-" else minutes) * _MINUTE


Convert: TypeAlias = Callable[[str], str]


class CellError(ValueError):
    """A cell that cannot be what its place asks for. `code` and `message` make the diagnostic."""

    def __init__(self, message: str, hint: str = "", code: str = "D2404") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint
        self.column = ""
        """Said by who knows it."""


_ISO = Clock(integer=False)
_REMEMBERED: Final = 1 << 14
_SHOWN: Final = 60


def excerpt(text: str) -> str:
    """A cell as messages show it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# ------------------------------------------------------------------ filters


Texts: TypeAlias = Sequence[str]


class DateTimes(Struct):
    """How the last filter of a cell reads instants, in µs. `one` raises CellError; `usual` gives those of
    texts that are all written in the usual way, None of others.
    """

    one: Memo[str, int]
    before: Convert | None
    usual: Callable[[Texts], list[int] | None]
    noting: Callable[[str, Notes], int]
    """As `one`, and what was changed is added. Raises CellError."""
    changes: bool = False
    """Whether some text was changed so far."""

    def of(self, texts: Texts) -> list[int]:
        """The instants of a column. Raises CellError for some text of it."""
        found = self.usual(texts if self.before is None else list(map(self.before, texts)))
        return list(map(self.one.__getitem__, texts)) if found is None else found

    def written(self, texts: Texts) -> list[str]:
        """The instants of a column as xsd:dateTimes. Raises CellError for some text of it."""
        times, hours, rest = self.of(texts), _hours, _REST
        try:
            return [hours[time // _HOUR] + rest[time % _HOUR] for time in times]
        except KeyError:  # fractions of seconds
            return list(map(_iso, times))

    def note(self, text: str, notes: Notes) -> None:
        """Add what reading a string changed."""
        with suppress(CellError):
            self.noting(text, notes)


class RepeatedCellError(CellError):
    """A cell with a local time that came twice, which the order of the rows decides. `local`: it, as if it
    were UTC.
    """

    def __init__(self, error: RepeatedTimeError) -> None:
        super().__init__(error.message, error.hint, error.code)
        self.local = error.local


def time_error(error: TimeError, hint: str | None = None) -> CellError:
    """What is wrong with a time as what is wrong with its cell."""
    if isinstance(error, RepeatedTimeError):
        return RepeatedCellError(error)
    return CellError(error.message, error.hint if hint is None else hint, error.code)


def instants_of(cell: Cell, zone: str, place: str, reading: TimeReading = EXACT) -> DateTimes | None:
    """How the last filter reads an instant; None where it reads none. Raises DataError D2401."""
    last = cell.filters[-1] if cell.filters else None
    if last is None or last.name not in ("datetime", "epoch"):
        return None
    return _instants(cell, last, zone, place, reading)


@lru_cache(maxsize=64)
def _instants(cell: Cell, last: ColumnFilter, zone: str, place: str, reading: TimeReading) -> DateTimes:
    """One table, since the time of a row mostly stands in its graph, too."""
    before = text_filter(Cell(cell.column, cell.filters[:-1]), zone, place, reading)
    make = _datetime if last.name == "datetime" else _epoch
    read, usual = make(last, zone, place, reading)

    def noting(text: str, notes: Notes) -> int:
        try:
            return read(before(text), notes)
        except TimeError as error:
            raise time_error(error) from None

    def instant(text: str) -> int:
        notes: Notes = set()
        time = noting(text, notes)
        if notes:
            found.changes = True
        return time

    found = DateTimes(Memo(instant, limit=_REMEMBERED), None if before is _same else before, usual, noting)
    return found


def _hour(hour: int) -> str:
    return _ISO.text(hour * _HOUR)[:-7]


_HOUR: Final = 3_600_000_000
_hours: Memo[int, str] = Memo(_hour, limit=1 << 12)
_REST: Final = {second * 1_000_000: f":{second // 60:02}:{second % 60:02}Z" for second in range(3600)}
"""µs after the hour → how an xsd:dateTime ends."""


def _iso(time: int) -> str:
    """An instant as an xsd:dateTime."""
    return _ISO.text(time) if time % 1_000_000 else _hours[time // _HOUR] + _REST[time % _HOUR]


def text_filter(cell: Cell, zone: str, place: str, reading: TimeReading = EXACT) -> Convert:
    """All filters of a cell, one after the other. Raises DataError D2401 for one that is not known."""
    read = instants_of(cell, zone, place, reading)
    if read is not None:
        return lambda text: _iso(read.one[text])
    steps = [_step(one, place) for one in cell.filters if one.name not in ("iri", "default")]
    if not steps:
        return _same
    if len(steps) == 1:
        return steps[0]

    def chained(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return chained


def texts_filter(
    cell: Cell, zone: str, place: str, reading: TimeReading = EXACT
) -> Callable[[Texts], Texts] | None:
    """As `text_filter`, for a column at once; None where there are no filters."""
    read, one = instants_of(cell, zone, place, reading), text_filter(cell, zone, place, reading)
    if read is not None:
        return read.written
    return None if one is _same else lambda texts: list(map(one, texts))


def _same(text: str) -> str:
    return text


def kind_of(cell: Cell) -> str:
    """What a cell is by its last filter: `dateTime`, `double`, `iri`, or "" for a string."""
    name = cell.filters[-1].name if cell.filters else ""
    if name in ("datetime", "epoch"):
        return "dateTime"
    return "double" if name in _ARITHMETIC else "iri" if name == "iri" else ""


def default_of(cell: Cell) -> str | None:
    """The value for a missing cell; None: there is none."""
    return next((_text(one.arguments[0]) for one in cell.filters if one.name == "default"), None)


def _text(argument: Argument) -> str:
    return f"{argument:g}" if isinstance(argument, float) else argument


def _step(one: ColumnFilter, place: str) -> Convert:
    arity, make = _STEPS.get(one.name, (0, None))
    if make is None:
        known = [*_STEPS, "datetime", "epoch", "iri", "default"]
        if one.name in known:
            raise wrong(f"`{one.name}` is not the last filter", place, "put it last")
        hint = nearest(one.name, known) or f"one of {', '.join(sorted(known))}"
        raise wrong(f"there is no filter `{one.name}`", place, hint)
    _refuse_arity(one, arity, place)
    return make(*one.arguments)


def _refuse_arity(one: ColumnFilter, arity: int, place: str, most: int | None = None) -> None:
    if not arity <= len(one.arguments) <= (arity if most is None else most):
        raise wrong(f"`{one.name}` has {len(one.arguments)} arguments", place, _USAGE[one.name])
    if one.name in _ARITHMETIC and not isinstance(one.arguments[0], float):
        raise wrong(f"`{one.arguments[0]}` is not a number", place, _USAGE[one.name])


def _replace(old: Argument, new: Argument) -> Convert:
    return lambda text: text.replace(_text(old), _text(new))


def _arithmetic(operation: Callable[[float, float], float]) -> Callable[..., Convert]:
    def make(argument: float) -> Convert:
        def convert(text: str) -> str:
            try:
                return repr(operation(float(text), argument))
            except (ValueError, OverflowError, ZeroDivisionError):
                raise CellError(f"`{excerpt(text)}` is not a number to calculate with") from None

        return convert

    return make


_ARITHMETIC: Final[Mapping[str, Callable[..., Convert]]] = {
    "plus": _arithmetic(lambda a, b: a + b),
    "minus": _arithmetic(lambda a, b: a - b),
    "times": _arithmetic(lambda a, b: a * b),
    "divide": _arithmetic(lambda a, b: a / b),
}

_STEPS: Final[Mapping[str, tuple[int, Callable[..., Convert]]]] = {
    "strip": (0, lambda: str.strip),
    "lower": (0, lambda: str.lower),
    "upper": (0, lambda: str.upper),
    "replace": (2, _replace),
    **{name: (1, make) for name, make in _ARITHMETIC.items()},
}

_USAGE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("strip", "lower", "upper", "iri"), "it takes none"),
    **{name: f"write {name}(1.5)" for name in _ARITHMETIC},
    "replace": 'write replace(",", ".")',
    "default": 'write default("unknown")',
    "datetime": 'write datetime("%d/%m/%Y %H:%M", "Europe/Berlin")',
    "epoch": "write epoch(s), epoch(ms), epoch(us) or epoch(ns)",
}


def check_filters(cell: Cell, place: str) -> None:
    """Raise DataError D2401 where `default` or `iri` is written wrongly."""
    for number, one in enumerate(cell.filters):
        if one.name == "default":
            _refuse_arity(one, 1, place)
        if one.name == "iri":
            _refuse_arity(one, 0, place)
            if number != len(cell.filters) - 1:
                raise wrong("`iri` is not the last filter", place, "put it last")


Reading: TypeAlias = tuple[Callable[[str, Notes], int], Callable[[Texts], list[int] | None]]
"""What reads an instant, adding what it changed, and what reads those of texts in their usual form."""


def _datetime(one: ColumnFilter, zone: str, place: str, reading: TimeReading) -> Reading:
    _refuse_arity(one, 1, place, most=2)
    form, *named = map(_text, one.arguments)
    try:
        local = zone_of(named[0] if named else zone) if named or zone else None
        if form.lower() == "iso":
            return (lambda text, notes: parse_datetime(_joined(text), local, reading, notes)), _usual_iso(
                local
            )
        format_ = DateFormat(form, local, reading)
    except TimeError as error:
        raise wrong(error.message, place, error.hint) from None
    return format_.micros, format_.usual


def _joined(text: str) -> str:
    """An ISO text, or an interval of two, with `T` between day and time."""
    return "/".join(part.replace(" ", "T", 1) for part in text.split("/"))


def _usual_iso(local: tzinfo | None) -> Callable[[Texts], list[int] | None]:
    """Seconds of UTC, and local ones where there is a zone for them."""
    format_ = None if local is None else DateFormat("%Y-%m-%dT%H:%M:%S", local)

    def usual(texts: Texts) -> list[int] | None:
        joined = [text.replace(" ", "T", 1) for text in texts]
        if format_ is not None and all(len(text) == 19 for text in joined):
            return format_.usual(joined)
        return plain_datetimes(joined)

    return usual


def _epoch(one: ColumnFilter, _zone: str, place: str, reading: TimeReading) -> Reading:
    _refuse_arity(one, 1, place)
    named = _text(one.arguments[0])
    unit = UNITS.get(named, 0)
    if not unit and named != "ns":
        raise wrong(f"`{one.arguments[0]}` is not a unit of epochs", place, _USAGE["epoch"])

    def micros(text: str, notes: Notes) -> int:
        try:
            if not text.isascii() or "_" in text:
                raise ValueError(text)
            value, towards_past = Decimal(text), Context(prec=2 * _DIGITS, rounding=ROUND_FLOOR)
            if not value.is_finite() or value.adjusted() > _DIGITS:
                raise ValueError(text)
            exact = towards_past.multiply(value, Decimal(unit) if unit else _NANO)
            if not _FIRST_YEAR <= exact < _LAST_YEAR:
                raise ValueError(text)
        except (ValueError, ArithmeticError):
            raise CellError(f"`{excerpt(text)}` is not an epoch in {one.arguments[0]}") from None
        whole = floor(exact)
        if whole != exact or towards_past.flags[Inexact]:
            if reading.finer == "refuse":
                raise too_fine(excerpt(text))
            notes.add("cut")
        return whole

    if not unit:
        return micros, _usual_nanoseconds
    usual = re.compile(rf"[0-9]{{1,{18 - len(str(unit))}}}").fullmatch
    return micros, lambda texts: [int(text) * unit for text in texts] if all(map(usual, texts)) else None


def _usual_nanoseconds(texts: Texts) -> list[int] | None:
    """Nanoseconds that are whole microseconds."""
    if not all(map(_WHOLE_MICROS.fullmatch, texts)):
        return None
    return [int(text[:-3]) for text in texts]


_NANO: Final = Decimal("0.001")
"""Microseconds of a nanosecond."""

_WHOLE_MICROS = regex(r"[0-9]{1,16}000")
_DIGITS: Final = 24
"""Digits before the point beyond which no number is an instant in any unit."""

_FIRST_YEAR: Final = -62_135_596_800_000_000
_LAST_YEAR: Final = 253_402_300_800_000_000


# ------------------------------------------------------------------ escaping

UNRESERVED_CHARACTERS = (
    "A-Za-z0-9._~\\-\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    "\U00010000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd\U00040000-\U0004fffd"
    "\U00050000-\U0005fffd\U00060000-\U0006fffd\U00070000-\U0007fffd\U00080000-\U0008fffd"
    "\U00090000-\U0009fffd\U000a0000-\U000afffd\U000b0000-\U000bfffd\U000c0000-\U000cfffd"
    "\U000d0000-\U000dfffd\U000e1000-\U000efffd"
)
"""`iunreserved` of RFC 3987, as they stand in the brackets of a regular expression."""

UNRESERVED = regex(f"[{UNRESERVED_CHARACTERS}]+")
PLAIN = regex(r"[ !#-\[\]-~]*")
"""ASCII strings that a literal contains unchanged."""

_UNSAFE = regex('["\\\\\x00-\x1f\x7f]')


def in_iri(text: str) -> str:
    """A string as part of an IRI."""
    if UNRESERVED.fullmatch(text):
        return text
    try:
        return "".join(
            c if UNRESERVED.fullmatch(c) else "".join(f"%{byte:02X}" for byte in c.encode()) for c in text
        )
    except UnicodeEncodeError:
        raise half_character(text) from None


def in_literal(text: str) -> str:
    """A string as part of a literal."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise half_character(text) from None
    return escape(text) if _UNSAFE.search(text) else text


def half_character(text: str) -> CellError:
    return CellError(f"`{excerpt(text)!a}` has half of a UTF-16 surrogate pair")


def whole_iri(text: str) -> str:
    """A cell that is an IRI already, or one with cells in its first part, checked. Raises CellError."""
    try:
        ox.NamedNode(text)
    except ValueError:
        hint = "without the filter `iri` a cell is percent-encoded into the IRI around it"
        raise CellError(f"`{excerpt(text)}` is not an absolute IRI", hint) from None
    if "\\" in text or _UNSAFE.search(text):
        raise CellError(f"`{excerpt(text)}` is not an absolute IRI")
    return text


# ------------------------------------------------------------------ datatypes

_ZONE = r"(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
_DATE = r"-?(?:[1-9][0-9]{4,}|[0-9]{4})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?|24:00:00(?:\.0+)?"
_FLOATING = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN"
_LEXICAL: Final[Mapping[str, str]] = {
    "decimal": r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)",
    "double": _FLOATING,
    "float": _FLOATING,
    "boolean": "true|false|0|1",
    "dateTime": rf"{_DATE}T(?:{_CLOCK}){_ZONE}",
    "dateTimeStamp": rf"{_DATE}T(?:{_CLOCK}){_ZONE[:-1]}",
    "date": rf"{_DATE}{_ZONE}",
    "time": rf"(?:{_CLOCK}){_ZONE}",
    "gYear": rf"-?[0-9]{{4,}}{_ZONE}",
    "gYearMonth": rf"-?[0-9]{{4,}}-(?:0[1-9]|1[0-2]){_ZONE}",
    "hexBinary": "(?:[0-9A-Fa-f]{2})*",
    "duration": r"-?P(?=[0-9T])(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?",
}
_RANGES: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
}
_INTEGER = regex(r"[+-]?[0-9]+")


def checked(datatype: str) -> Convert | None:
    """A function that gives a string back if it is in the lexical space of a datatype, else raises CellError.

    None for datatypes whose space is not known.
    """
    name = datatype.removeprefix(XSD)
    if name == datatype:
        return None
    if name in _RANGES:
        return _in_range(name, *_RANGES[name])
    if name not in _LEXICAL:
        return None
    fits = regex(_LEXICAL[name], re.ASCII).fullmatch

    def check(text: str) -> str:
        if fits(text) is None:
            raise _outside(text, name)
        return text

    return check


def lexical_space(datatype: str) -> Callable[[str], object] | None:
    """What tells quickly that a string is in the lexical space of a datatype; None where nothing does."""
    name = datatype.removeprefix(XSD)
    if name == "integer":
        return _SHORT_INTEGER.fullmatch
    return regex(_LEXICAL[name], re.ASCII).fullmatch if name in _LEXICAL else None


_SHORT_INTEGER = regex(r"[+-]?[0-9]{1,18}")


def _in_range(name: str, least: int | None, most: int | None) -> Convert:
    def check(text: str) -> str:
        if not _INTEGER.fullmatch(text):
            raise _outside(text, name)
        if too_long(text):
            raise CellError(f"`{excerpt(text)}` has more than {DIGITS:,} digits", code="D2409")
        if (least is not None and int(text) < least) or (most is not None and int(text) > most):
            raise _outside(text, name)
        return text

    return check


def _outside(text: str, name: str) -> CellError:
    hint = ""
    if text != text.strip():
        hint = "it has blanks around it: {column|strip}"
    elif re.fullmatch(r"[+-]?[0-9.]*,[0-9]+", text):
        hint = 'if the comma is a decimal one: {column|replace(",", ".")}'
    elif name == "boolean":
        hint = "write true, false, 1 or 0"
    elif name in ("dateTime", "dateTimeStamp"):
        hint = 'give its format: {column|datetime("%d/%m/%Y %H:%M", "Europe/Berlin")}'
    elif name in _RANGES and _INTEGER.fullmatch(text) is None and re.fullmatch(_LEXICAL["decimal"], text):
        hint = "xsd:decimal has fractions"
        if re.fullmatch(r"[+-]?[0-9]+\.0+", text):
            hint += '; pandas makes integers with missing values so: astype("Int64") keeps them'
    if not hint:
        hint = f"if it means that there is no value, add to the mapping: # missing: {excerpt(text)}"
    return CellError(f"`{excerpt(text)}` is not an xsd:{name}", hint)
