"""The time of a graph: timestamps as microseconds, local times, and how choices are resolved.

Place:   every reader calls it; it knows terms and names, no files.
Method:  first hit wins (cli.md, "Sources"): `--time-path` · the line's own time · prov:generatedAtTime of the
         graph name or of `<>` · the one distinct value of five usual properties · the file name · error
         D2101.
         Local times (time zones by name, from the tz database shipped with dotr): each is tried with both
         folds of PEP 495. The offsets are equal for nearly all times; where they differ the local time came
         twice (clocks went back) or never (they went forward), and the run's choice decides.
         Choices (`TimeReading`, one value per run): each is a word. `refuse` is always one of them, and the
         default wherever an instant would have to be guessed. Digits below the microsecond are no guess: they
         are cut off, towards the past on both sides of 1970, so that the order of times stays (two may become
         one). A change is added to `notes` by its word, and counted by whoever reads a graph.
Why not: datetime.fromisoformat: it knows no 24:00:00, does not report the digits that it cuts off, and
         forgives too much. The zone files of the machine: they differ from machine to machine, and so would
         events. Rounding: it may give a time after the end of a window, a second, or a day that the text lies
         in.
Bad input: D2101 no time · D2102 two kinds of time in one run · D2103 no zone · D2104 several times · D2105 no
         timestamp at all · D2108 a local time that came twice · D2109 one that never came · D2110 no such
         zone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from os.path import basename
from typing import Any, TypeVar

from dotr.errors import DataError, Diagnostic
from dotr.events import DELETION, INSERTION, Clock, Time
from dotr.expressions.calendars import zone, zone_names
from dotr.io.decode.documents import plain_name
from dotr.io.time_reading import EXACT, Notes, TimeReading
from dotr.lang.grammar.cursor import WELL_KNOWN, nearest
from dotr.rdf.terms import (
    PROV_GENERATED_AT_TIME,
    RDF_TYPE,
    XSD,
    XSD_DATETIME,
    XSD_INTEGER,
    XSD_STRING,
    Memo,
    Term,
    Triple,
    is_literal,
    literal_parts,
)
from dotr.regex import regex

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class TimeError(ValueError):
    """A string that is not a timestamp. `code` and `message` make the diagnostic."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class RepeatedTimeError(TimeError):
    """A local time that came twice, where the order of the rows decides which one it is. `local`: it, as if
    it were UTC.
    """

    def __init__(self, twice: TimeError, local: Time) -> None:
        super().__init__(twice.code, twice.message, twice.hint)
        self.local = local


def zone_of(name: str) -> tzinfo:
    """The zone of a name of the tz database, of `UTC`, or of an offset (`+02:00`). Raises TimeError D2110."""
    found = zone(name)
    if found is None:
        hint = nearest(name, zone_names()) or "write Europe/Berlin, UTC or +02:00"
        raise TimeError("D2110", f"`{name}` is not a time zone", hint)
    return found


def to_instant(
    local: Time, zone: tzinfo, text: str, reading: TimeReading = EXACT, notes: Notes | None = None
) -> Time:
    """Microseconds since 1970 in UTC of a local time, which is given as if it were UTC.

    `text` is how the data write it. Raises TimeError D2108, D2109 where `reading` refuses such times, and
    D2105 outside the years 1 to 9999; RepeatedTimeError where it infers.
    """
    offset = _hours[zone, local // _HOUR]
    if offset is not None:
        return local - offset
    return _exactly(local, zone, text, reading, notes)


def _offset_of_hour(key: tuple[tzinfo, int]) -> int | None:
    """The offset in µs that holds through an hour of local time, with one on either side; None where it
    changes.
    """
    zone, hour = key
    try:
        moments = [_EPOCH + timedelta(hours=hour + step) for step in (-1, 0, 1, 2)]
    except OverflowError:
        return None
    found = {moment.replace(tzinfo=zone, fold=fold).utcoffset() for moment in moments for fold in (0, 1)}
    offset = found.pop()
    return None if found or offset is None else offset // _MICROSECOND


_HOUR = 3_600_000_000
_hours: Memo[tuple[tzinfo, int], int | None] = Memo(_offset_of_hour, limit=1 << 12)


def _exactly(local: Time, zone: tzinfo, text: str, reading: TimeReading, notes: Notes | None) -> Time:
    try:
        naive = _EPOCH + timedelta(microseconds=local)
        first = naive.replace(tzinfo=zone).utcoffset()
        second = naive.replace(tzinfo=zone, fold=1).utcoffset()
    except OverflowError:
        raise TimeError("D2105", f"`{text}` lies outside the years 1 to 9999", "check the year") from None
    assert first is not None
    assert second is not None, "zones know their offsets"
    if first == second:
        return local - first // _MICROSECOND
    chosen = reading.ambiguous if first > second else reading.nonexistent
    if chosen in ("earlier", "later", "forward"):
        if notes is not None:
            notes.add(chosen)
        if chosen == "forward":
            return _change(local - first // _MICROSECOND, local - second // _MICROSECOND, zone)
        return local - (first if chosen == "earlier" else second) // _MICROSECOND
    if first > second:
        option = "choose one: --ambiguous-time earlier, later, or infer (by the order of the rows)"
        if chosen != "refuse":
            option = "the order of the rows does not show which one it is: --ambiguous-time earlier, or later"
        twice = TimeError(
            "D2108",
            f"`{text}` came twice in {zone}: clocks went back",
            f"{option}; or write its offset: {_signed(first)} before the change, {_signed(second)} after it",
        )
        raise RepeatedTimeError(twice, local) if chosen == "infer" else twice
    raise TimeError(
        "D2109",
        f"`{text}` never came in {zone}: clocks went forward",
        "check the zone, or write times with their offset; --nonexistent-time forward takes the instant at "
        "which clocks went forward",
    )


def _change(one: Time, other: Time, zone: tzinfo) -> Time:
    """The instant at which clocks went forward: the only change of the offset between two instants, which
    lie on either side of it or at it.
    """
    low, high = min(one, other), max(one, other)
    before = _offset_at(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset_at(middle, zone) == before:
            low = middle
        else:
            high = middle
    return high


def _offset_at(time: Time, zone: tzinfo) -> timedelta | None:
    return (_EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=time)).astimezone(zone).utcoffset()


def _signed(offset: timedelta) -> str:
    minutes = abs(offset // timedelta(minutes=1))
    return f"{'-' if offset < timedelta() else '+'}{minutes // 60:02}:{minutes % 60:02}"


__all__ = [
    "UNITS",
    "TimeError",
    "TimestampExtractor",
    "parse_datetime",
    "parse_integer",
    "parse_term",
    "parse_text",
    "time_in_name",
]

T = TypeVar("T")

UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}
"""`--time-unit`: microseconds of one unit of integer time."""

USUAL_PROPERTIES: dict[Term, str] = {
    "<http://www.w3.org/ns/sosa/resultTime>": "sosa:resultTime",
    "<http://www.w3.org/ns/sosa/phenomenonTime>": "sosa:phenomenonTime",
    "<http://purl.oclc.org/NET/ssnx/ssn#observationResultTime>": "ssn:observationResultTime",
    "<https://saref.etsi.org/core/hasTimestamp>": "saref:hasTimestamp",
    "<https://www.w3.org/ns/activitystreams#published>": "as:published",
}
"""In the order in which they are tried. Older spellings of a namespace are listed in `_ALIASES`."""

_ALIASES: dict[Term, Term] = {
    "<http://www.w3.org/ns/ssn/observationResultTime>": (
        "<http://purl.oclc.org/NET/ssnx/ssn#observationResultTime>"
    ),
    "<https://w3id.org/saref#hasTimestamp>": "<https://saref.etsi.org/core/hasTimestamp>",
    "<http://www.w3.org/ns/activitystreams#published>": "<https://www.w3.org/ns/activitystreams#published>",
}
TIMELY = frozenset({PROV_GENERATED_AT_TIME, *USUAL_PROPERTIES, *_ALIASES})

_INTEGER = regex(r"[+-]?[0-9]{1,30}")
_MOMENT = r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9:.-]{6,}(?:Z|[+-][0-9]{2}[:-]?[0-9]{2})?"
_DATETIME = regex(
    r"(?P<year>-?[0-9]{4,})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"T(?P<hour>[0-9]{2})[:-](?P<minute>[0-9]{2})[:-](?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
    r"(?P<zone>Z|[+-][0-9]{2}[:-]?[0-9]{2})?"
)
_INTERVAL = regex(rf"{_MOMENT}/{_MOMENT}")
_LIKE_AN_INTERVAL = regex(rf"(?:{_MOMENT}|P[0-9A-Z.]+|\.\.)/(?:{_MOMENT}|P[0-9A-Z.]+|\.\.|[0-9T:.Z+-]*)")
"""Intervals of ISO 8601 in all its forms."""
_READ_INTERVALS = (
    "write begin/end, both as dateTimes, such as 2026-01-01T08:00:00Z/2026-01-01T08:05:00Z; of these "
    "--interval begin|end takes one"
)
_LIKE_A_TIME = regex(r'"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:|[0-9]{10}(?:[0-9]{3}){0,2}")')
_DATE_ALONE = regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ZONE = regex(r"(?:Z|[+-][0-9]{2}:[0-9]{2})?")
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_LARGEST = 2**63 - 1
_DAY = 86_400_000_000


XSD_DATE = XSD + "date"
_WHOLE_NUMBERS = frozenset(
    XSD + name
    for name in (
        *("long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
        *("nonPositiveInteger", "negativeInteger"),
    )
)
_INTEGER_TAIL = f'"^^<{XSD_INTEGER}>'
_DATETIME_TAIL = f'"^^<{XSD_DATETIME}>'
_INTEGERS = regex(rf'(?:"[0-9]{{1,11}}"\^\^<{re.escape(XSD_INTEGER)}>(?:\n|\Z))*+')
_MINUTE = regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}")
_SECONDS = {f"{second:02}Z": second * 1_000_000 for second in range(60)}


def parse_datetime(
    text: str, local: tzinfo | None = None, reading: TimeReading = EXACT, notes: Notes | None = None
) -> Time:
    """An xsd:dateTime with a zone as microseconds since 1970-01-01T00:00:00Z.

    Also takes the form of file names, `-` for `:`. `local` is the zone of those without one. Finer digits are
    cut off, which is towards the past. What was changed, as `reading` has it, is added to `notes`. Raises
    TimeError: D2103 without a zone, D2105 for what is not a dateTime, lies outside the years 1 to 9999, or is
    refused by `reading`; D2108, D2109 as to_instant.
    """
    plain = _plain_datetime(text)
    if plain is not None:
        return plain
    found = _DATETIME.fullmatch(text)
    if found is None:
        if _INTERVAL.fullmatch(text):
            return _of_interval(text, local, reading, notes)
        if _LIKE_AN_INTERVAL.fullmatch(text):
            raise TimeError(
                "D2105", f"`{text}` is an interval in a form that dotr does not read", _READ_INTERVALS
            )
        if _DATE_ALONE.fullmatch(text[:10]) and _ZONE.fullmatch(text[10:]):
            raise _a_day(text)
        raise TimeError("D2105", f"`{text}` is not a timestamp", "write 2026-01-01T08:00:12Z, or an integer")
    year, month, day, hour, minute, second = (
        int(found[part]) for part in ("year", "month", "day", "hour", "minute", "second")
    )
    zone, fraction = found["zone"], found["fraction"] or ""
    if zone is None and local is None:
        hint = f"write {text}Z if it is UTC, or give its zone: --time-zone Europe/Berlin"
        raise TimeError("D2103", f"`{text}` has no time zone", hint)
    finer = bool(fraction[6:].strip("0"))
    if finer and reading.finer == "refuse":
        raise too_fine(text)
    micros = int(fraction[:6].ljust(6, "0"))
    shift = 0
    if zone is not None and zone != "Z":
        shift_hours, shift_minutes = int(zone[1:3]), int(zone[-2:])
        shift = (shift_hours * 60 + shift_minutes) * (-1 if zone[0] == "-" else 1)
        if shift_minutes > 59 or abs(shift) > 14 * 60:
            raise TimeError("D2105", f"`{text}` has a zone beyond 14:00", "check the zone")
    midnight = hour == 24 and minute == second == micros == 0 and not finer
    if minute > 59 or second > 59 or (hour > 23 and not midnight):
        raise TimeError(
            "D2105", f"`{text}` is not a time of day", "hours go to 23, minutes and seconds to 59"
        )
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError as error:
        raise TimeError("D2105", f"`{text}` is not a day: {error}", "years go from 0001 to 9999") from None
    time = days * _DAY + ((hour * 60 + minute - shift) * 60 + second) * 1_000_000 + micros
    if zone is None and local is not None:
        time = to_instant(time, local, text, reading, notes)
    if not _FIRST <= time <= _FINAL:
        raise TimeError("D2105", f"`{text}` lies outside the years 1 to 9999 of UTC", "check the year")
    if finer and notes is not None:
        notes.add("cut")
    return time


def too_fine(text: str) -> TimeError:
    """A time with digits that time in microseconds does not hold, which are not to be cut off."""
    return TimeError(
        "D2105",
        f"`{text}` is finer than a microsecond",
        "round it where it is written, or let it be cut: --sub-microsecond cut",
    )


def _of_interval(text: str, local: tzinfo | None, reading: TimeReading, notes: Notes | None) -> Time:
    """The beginning or the end of `begin/end`, which both are instants."""
    if reading.interval == "refuse":
        raise TimeError(
            "D2105",
            f"`{text}` is an interval, not an instant",
            "choose the end that is the time: --interval begin, or --interval end",
        )
    times: list[tuple[Time, Notes]] = []
    for part in text.split("/"):
        changed: Notes = set()
        times.append((parse_datetime(part, local, reading, changed), changed))
    time, changed = times[0 if reading.interval == "begin" else 1]
    if notes is not None:
        notes |= changed
    return time


def is_day(text: str) -> bool:
    """Whether a string is a day without a zone."""
    return _DATE_ALONE.fullmatch(text) is not None


def _a_day(text: str) -> TimeError:
    """An xsd:date: the choice is the user's."""
    day, zone = text[:10], text[10:] or "Z"
    return TimeError(
        "D2105",
        f"`{text}` is a day, not an instant",
        f"choose one and write it as an xsd:dateTime: its beginning {day}T00:00:00{zone}, "
        f"its end {day}T24:00:00{zone}, or when the graph was known",
    )


def _plain_datetime(text: str) -> Time | None:
    """`parse_datetime` for whole seconds of UTC in years of four digits, the usual form; None for others."""
    second = _SECONDS.get(text[17:])
    minute = _minutes[text[:16]] if second is not None and text[16] == ":" else None
    return None if minute is None or second is None else minute + second


def plain_datetimes(texts: Sequence[str]) -> list[Time] | None:
    """`parse_datetime` of texts that are all whole seconds of UTC in years of four digits; None of others."""
    try:
        return [_starts[text[:17]] + _SECONDS[text[17:]] for text in texts]
    except KeyError:
        return None


def _minute(text: str) -> Time | None:
    """`2026-01-01T08:00` in microseconds, None if that is not a minute."""
    try:
        return parse_datetime(f"{text}:00+00:00") if _MINUTE.fullmatch(text) else None
    except TimeError:
        return None


_minutes: Memo[str, Time | None] = Memo(_minute, limit=1 << 10)


def _start(text: str) -> Time:
    """`2026-01-01T08:00:` in microseconds. Raises KeyError if that is not a minute."""
    found = _minutes[text[:16]] if text[16:] == ":" else None
    if found is None:
        raise KeyError(text)
    return found


_starts: Memo[str, Time] = Memo(_start, limit=1 << 12)

_FIRST = (date(1, 1, 1).toordinal() - _EPOCH_DAY) * _DAY
_FINAL = (date(9999, 12, 31).toordinal() - _EPOCH_DAY + 1) * _DAY - 1


def parse_integer(text: str | int, unit: int) -> Time:
    """Integer time of `unit` microseconds as microseconds. Raises TimeError D2105 beyond 64 bits."""
    time = int(text) * unit if isinstance(text, int) or len(text) < _LONG else _LARGEST + 1
    if abs(time) > _LARGEST:
        shown = str(text)[:_LONG]
        raise TimeError("D2105", f"`{shown}` lies beyond 64 bits of microseconds", "check --time-unit")
    return time


_LONG = 40
"""Characters of an integer that is no time, however many zeros it begins with."""


def parse_text(
    text: str,
    unit: int,
    local: tzinfo | None = None,
    reading: TimeReading = EXACT,
    notes: Notes | None = None,
) -> tuple[Time, bool]:
    """A timestamp written as bare text: (microseconds, whether it is an integer). Raises TimeError."""
    if _INTEGER.fullmatch(text):
        return parse_integer(text, unit), True
    return parse_datetime(text, local, reading, notes), False


def parse_term(
    term: Term,
    unit: int,
    local: tzinfo | None = None,
    reading: TimeReading = EXACT,
    notes: Notes | None = None,
    named: bool = False,
) -> tuple[Time, bool]:
    """A timestamp literal: (microseconds, whether it is an integer). Raises TimeError.

    `named`: the user named its property, so strings and other datatypes are read, too.
    """
    if term.endswith(_INTEGER_TAIL):
        digits = term[1 : -len(_INTEGER_TAIL)]
        if len(digits) < 12 and digits.isdigit() and digits.isascii():
            return int(digits) * unit, True
    elif term.endswith(_DATETIME_TAIL):
        time = _plain_datetime(term[1 : -len(_DATETIME_TAIL)])
        if time is not None:
            return time, False
    if not is_literal(term):
        raise TimeError("D2105", f"{term} is not a literal", "a time is an xsd:dateTime or an xsd:integer")
    lexical, datatype, language = literal_parts(term)
    if datatype == XSD_INTEGER and _INTEGER.fullmatch(lexical):
        return parse_integer(lexical, unit), True
    if datatype in (XSD_DATETIME, XSD_DATETIME + "Stamp"):
        return parse_datetime(lexical, local, reading, notes), False
    if datatype == XSD_DATE and _DATE_ALONE.fullmatch(lexical[:10]):
        raise _a_day(lexical)
    if named and datatype in _WHOLE_NUMBERS and _INTEGER.fullmatch(lexical):
        return parse_integer(lexical, unit), True
    own = not language and (datatype == XSD_STRING or not datatype.startswith(XSD))
    if own and (named or (reading.interval != "refuse" and _INTERVAL.fullmatch(lexical))):
        return parse_text(lexical, unit, local, reading, notes)
    hint = "a time is an xsd:dateTime with a zone, or an xsd:integer"
    if own and _LIKE_AN_INTERVAL.fullmatch(lexical) and not _INTERVAL.fullmatch(lexical):
        hint = _READ_INTERVALS
    elif own and _INTERVAL.fullmatch(lexical):
        hint = "choose the end that is the time: --interval begin, or --interval end"
    elif own and (_DATETIME.fullmatch(lexical) or _INTEGER.fullmatch(lexical)):
        hint += "; a string, or a datatype of your own, is a time if --time-path names its property"
    raise TimeError("D2105", f"{term} is not a timestamp", hint)


def time_in_name(
    name: str,
    unit: int,
    local: tzinfo | None = None,
    reading: TimeReading = EXACT,
    notes: Notes | None = None,
) -> tuple[Time, bool] | None:
    """The time that a file name carries (`12.ttl`, `smoke@12.ttl`, `2026-01-01T08-00-12Z.ttl`), or None.

    Raises TimeError for a dateTime without a zone and for one that does not exist.
    """
    stem = basename(plain_name(name))
    stem = stem[: stem.rindex(".")] if "." in stem else stem
    stem = stem.rpartition("@")[2]
    if _INTEGER.fullmatch(stem):
        return parse_integer(stem, unit), True
    if _DATETIME.fullmatch(stem):
        return parse_datetime(stem, local, reading, notes), False
    return None


_PREDICATES = 8
"""Entries of `beside` from which on no further predicate is counted by itself."""


class UndecidedTimeError(DataError):
    """A local time that came twice, which the order of the rows decides. `local`: it, as if it were UTC."""

    local: Time = 0


def _refused(error: TimeError, place: str) -> DataError:
    """What is wrong with the time of a graph."""
    if not isinstance(error, RepeatedTimeError):
        return DataError.of(error.code, error.message, place=place, hint=error.hint)
    undecided = UndecidedTimeError.of(error.code, error.message, place=place, hint=error.hint)
    undecided.local = error.local
    return undecided


@dataclass(slots=True)
class TimestampExtractor:
    """Owns how one run finds times: the sources that hit, and the kind of time that the first graph fixed.

    `time_path` is an IRI term or None. `clock` is None until a graph had a time.
    """

    time_path: Term | None = None
    unit: int = UNITS["s"]
    base: str = "urn:dotr:stream"
    clock: Clock | None = None
    time_sources: dict[str, int] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)
    """What is in no graph. Subjects of dumps that are in none of the graphs these were taken apart into:
    "all" of them, and those that are "shared". "said": triples that a default graph says about graph names
    and that are no stamps; "said <p>": those of a predicate, of the first few. Beside these, what
    reading changed, by the words of time_reading.py.
    """
    columns_missing: dict[str, Diagnostic] = field(default_factory=dict)
    """Warnings about columns of mappings that no row of a table had, by their messages."""
    zone: str = ""
    """The zone of dateTimes without one; "" refuses them."""
    reading: TimeReading = EXACT
    first: dict[str, str] = field(default_factory=dict)
    """Where each change was made first."""
    given: str = ""
    """The time of all graphs, whatever they state; "": their own."""
    arrival: Time | None = None
    """The time of graphs without one, in microseconds since 1970."""
    by_name: bool = True
    """Whether files have names that may be times; what a queue calls a document is none."""
    _local: tzinfo | None = field(default=None, init=False)
    _notes: Notes = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._local = zone_of(self.zone) if self.zone else None

    def time(
        self,
        triples: Sequence[Triple],
        file: str,
        place: str,
        own: tuple[str, str | int] | None = None,
        about: Sequence[Triple] = (),
        names: Sequence[Term] = (),
        mapped: bool = False,
    ) -> Time:
        """The time of one graph, in microseconds; counts its source and fixes or checks the kind of time.

        `own` is the time that the line itself gives, and its name; `about` are triples beside the graph (the
        default graph's, about `names`). The name of `file` is tried last. `mapped`: a mapping made the graph
        of a row. Raises DataError.
        """
        try:
            time_source, time, integer = self._find(triples, file, own, about, names, place, mapped)
        except TimeError as error:
            self._notes.clear()
            raise _refused(error, place) from None
        if self._notes:
            self.note(self._notes, place)
            self._notes.clear()
        clock = self.clock
        if clock is None or clock.integer is not integer:
            self.accept(integer, place)
        self.time_sources[time_source] = self.time_sources.get(time_source, 0) + 1
        if about:
            self._count_said(about)
        return time

    @property
    def elsewhere(self) -> bool:
        """Whether times stand elsewhere than where a format has them."""
        return self.time_path is not None or bool(self.given)

    def _count_said(self, about: Sequence[Triple]) -> None:
        """Count what a default graph says about a graph, beyond its time and what it does."""
        for _s, predicate, object_ in about:
            if predicate in TIMELY or predicate == self.time_path:
                continue
            if predicate == RDF_TYPE and object_ in (INSERTION, DELETION):
                continue
            beside = self.beside
            beside["said"] = beside.get("said", 0) + 1
            key = f"said {predicate}"
            if key in beside or len(beside) < _PREDICATES:
                beside[key] = beside.get(key, 0) + 1

    def stamped(self, about: Sequence[Triple], name: Term) -> Time | None:
        """As `time` for a graph whose one stamp is an integer, as our own output has it; None for all
        others.
        """
        clock = self.clock
        if len(about) != 1 or clock is None or not clock.integer or self.elsewhere:
            return None
        subject, predicate, stamp = about[0]
        if predicate != PROV_GENERATED_AT_TIME or subject != name or not stamp.endswith(_INTEGER_TAIL):
            return None
        digits = stamp[1 : -len(_INTEGER_TAIL)]
        if len(digits) >= 12 or not digits.isdigit() or not digits.isascii():
            return None
        self.time_sources["prov:generatedAtTime"] = self.time_sources.get("prov:generatedAtTime", 0) + 1
        return int(digits) * self.unit

    def stamped_times(
        self, stamps: Sequence[Term], time_source: str = "prov:generatedAtTime"
    ) -> list[Time] | None:
        """As `time` for each of many graphs that have one stamp each, plain ones of the kind of the graphs
        before; None where one is not: then each is asked for by itself.
        """
        clock = self.clock
        if clock is None or self.elsewhere:
            return None
        times: list[Time] | None
        if clock.integer:
            if _INTEGERS.fullmatch("\n".join(stamps)) is None:
                return None
            unit, end = self.unit, -len(_INTEGER_TAIL)
            times = [int(stamp[1:end]) * unit for stamp in stamps]
        else:
            end = -len(_DATETIME_TAIL)
            if not all(stamp.endswith(_DATETIME_TAIL) for stamp in stamps):
                return None
            times = plain_datetimes([stamp[1:end] for stamp in stamps])
        if times is not None:
            self.hit(time_source, len(times))
        return times

    def own_times(self, time_source: str, said: Sequence[str | int | None]) -> list[Time] | None:
        """As `time` for each of many graphs whose lines say their times, plain ones of the kind of the graphs
        before; None where one is not: then each is asked for by itself.
        """
        clock, unit = self.clock, self.unit
        if clock is None or self.elsewhere:
            return None
        kinds = set(map(type, said))
        times: list[Any] | None
        if clock.integer and kinds == {int}:
            times = [time * unit for time in said]  # type: ignore[operator]  # all are integers
            if max(times) > _LARGEST or min(times) < -_LARGEST:
                return None
        elif not clock.integer and kinds == {str}:
            times = plain_datetimes(said)  # type: ignore[arg-type]  # all are texts
        else:
            return None
        if times is None:
            return None
        self.time_sources[time_source] = self.time_sources.get(time_source, 0) + len(times)
        return times

    def hit(self, time_source: str, count: int = 1) -> None:
        """Count that times were found there."""
        self.time_sources[time_source] = self.time_sources.get(time_source, 0) + count

    def taking(self, word: str, read: Callable[[], T]) -> T:
        """What `read` gives while a local time that came twice is the `earlier` or `later` one, or refused as
        `undecided`.
        """
        kept = self.reading
        self.reading = kept._replace(ambiguous=word)
        try:
            return read()
        finally:
            self.reading = kept

    def note(self, notes: Iterable[str], place: str, count: int = 1) -> None:
        """Count what reading the times of so many graphs, the first of them at `place`, changed."""
        for note in notes:
            self.beside[note] = self.beside.get(note, 0) + count
            self.first.setdefault(note, place)

    def accept(self, integer: bool, place: str) -> None:
        """Fix the kind of time, or raise DataError D2102 when it is not the kind of the graphs before."""
        if self.clock is None:
            self.clock = Clock(integer, self.unit)
        elif self.clock.integer is not integer:
            mine, theirs = ("integer", "dateTime") if integer else ("dateTime", "integer")
            raise DataError.of(
                "D2102",
                f"this graph has {mine} time, the graphs before it {theirs} time",
                place=place,
                notes=("one run uses one kind of time",),
                hint="restamp one of the sources, or give --time-path the property that all of them have",
            )

    def _find(
        self,
        triples: Sequence[Triple],
        file: str,
        own: tuple[str, str | int] | None,
        about: Sequence[Triple],
        names: Sequence[Term],
        place: str,
        mapped: bool,
    ) -> tuple[str, Time, bool]:
        if self.given:
            return ("given time", *parse_text(self.given, self.unit, self._local, self.reading, self._notes))
        path = self.time_path
        if path is not None:
            values = [o for _s, p, o in (*about, *triples) if p == path]
            if values:
                return (f"--time-path {path}", *self._one(values, "--time-path", place, named=True))
        if own is not None:
            time_source, text = own
            if isinstance(text, int):
                return time_source, parse_integer(text, self.unit), True
            return (time_source, *parse_text(text, self.unit, self._local, self.reading, self._notes))
        timely = [t for t in triples if t[1] in TIMELY]
        if about:
            timely = [t for t in about if t[1] in TIMELY] + timely
        elif len(timely) == 1:
            _s, property_, value = timely[0]
            if property_ in USUAL_PROPERTIES and value[0] == '"':
                time, integer = self._read(value)
                return USUAL_PROPERTIES[property_], time, integer
        looked: list[str] = []
        several: list[tuple[str, list[Term]]] = []
        if timely:
            stamps = [(s, o) for s, p, o in timely if p == PROV_GENERATED_AT_TIME]
            values = [o for s, o in stamps if s in names] or [o for s, o in stamps if s == f"<{self.base}>"]
            if values:
                return ("prov:generatedAtTime", *self._one(values, "prov:generatedAtTime", place))
            for iri, short in USUAL_PROPERTIES.items():
                values = [o for _s, p, o in timely if (p == iri or _ALIASES.get(p) == iri) and o[0] == '"']
                times = {self._read(value) for value in values}
                if len(times) == 1:
                    return (short, *times.pop())
                if times:
                    several.append((short, values))
                looked.append(f"{short}: {len(times)} different times" if times else f"{short}: none")
        named = None
        if self.by_name:
            named = time_in_name(file, self.unit, self._local, self.reading, self._notes)
        if named is not None:
            return ("file name", *named)
        if self.arrival is not None and not several:
            return "arrival", self.arrival, False
        if several:
            short, values = several[0]
            return (short, *self._one(values, short, place, triples))
        looked = looked or [f"{short}: none" for short in USUAL_PROPERTIES.values()]
        raise DataError(self._missing(looked, file, place, (*about, *triples), mapped))

    def _one(
        self,
        values: Iterable[Term],
        what: str,
        place: str,
        triples: Sequence[Triple] = (),
        named: bool = False,
    ) -> tuple[Time, bool]:
        times = {self._read(value, named) for value in values}
        if len(times) > 1:
            raise DataError.of(
                "D2104",
                f"one graph has {len(times)} times of {what}",
                place=place,
                label=" ".join(sorted(set(values))[:5]),
                hint=_split_hint(triples, set(values))
                or "a graph holds at one instant: write a graph for each, with its own time",
            )
        return times.pop()

    def _read(self, value: Term, named: bool = False) -> tuple[Time, bool]:
        return parse_term(value, self.unit, self._local, self.reading, self._notes, named)

    def _missing(
        self, looked: list[str], file: str, place: str, triples: Sequence[Triple], mapped: bool
    ) -> Diagnostic:
        likely = _likely_times(triples)
        if self.time_path:
            path = f"--time-path {self.time_path}: none"
        else:
            path = f"{'# time: of the mapping' if mapped else '--time-path'}: not given"
        if mapped and not self.time_path:
            hint = "write `# time: COLUMN` in the mapping, with the column that holds the time"
        elif likely:
            hint = f"--time-path {likely[0][0][1:-1]}, if that is its time"
        else:
            hint = f"stamp it{', name the file like 12.ttl' if file and self.by_name else ''}, "
            hint += "or give --time-path the property that holds the time"
        return Diagnostic(
            "D2101",
            "this graph has no time",
            place=place,
            notes=(
                "looked for, in this order:",
                path,
                "prov:generatedAtTime of the graph name or of <>: none",
                *looked,
                *([f"the file name `{basename(file)}`: no timestamp"] if file and self.by_name else ()),
                *(f"it has {predicate} {value}" for predicate, value in likely or _values(triples)),
            ),
            hint=hint,
        )


def _split_hint(triples: Sequence[Triple], times: set[Term]) -> str:
    """How a dump of many is taken apart: by the class of what has the times, else by their property."""
    stamped = {s: p for s, p, o in triples if o in times and (p in USUAL_PROPERTIES or p in _ALIASES)}
    if not stamped:
        return ""
    classes = Counter(o for s, p, o in triples if p == RDF_TYPE and s in stamped)
    most = max(classes, key=lambda kind: (classes[kind], kind)) if classes else next(iter(stamped.values()))
    iri = most[1:-1]
    known = next((f"{p}:{iri[len(ns) :]}" for p, ns in WELL_KNOWN.items() if iri.startswith(ns)), iri)
    return f"a graph holds at one instant; --split {known} makes one of each"


def _values(triples: Iterable[Triple]) -> list[tuple[Term, Term]]:
    """(property, the first of its values) of a graph's properties that have literals; at most five."""
    found: dict[Term, Term] = {}
    for _, predicate, value in triples:
        if value[0] == '"':
            found.setdefault(predicate, value)
    return sorted(found.items())[:5]


def _likely_times(triples: Iterable[Triple]) -> list[tuple[Term, Term]]:
    """(property, one of its values) of a graph's properties whose values look like times; at most five."""
    return _values(triple for triple in triples if _LIKE_A_TIME.match(triple[2]))
