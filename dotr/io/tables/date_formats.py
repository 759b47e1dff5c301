"""Dates and times as tables write them: formats of strptime, compiled.

Place:   the filter `datetime` of cells.py.
Method:  the format becomes one regular expression, whose groups are numbers. Where it ends in a time of day,
         the hour before it is looked up in a bounded table, since neighbouring rows share it; elsewhere the
         minute is; the offset of the zone is local_time.py's.
Why not: datetime.strptime: 8 µs a cell, names of months by the machine's locale, and no word about times that
         a zone has twice.
Bad input: D2105 not such a time · D2108, D2109 local times that came twice or never · D2103 no zone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, tzinfo
from typing import Final

from dotr.events import Time
from dotr.io.local_time import TimeError, to_instant
from dotr.io.time_reading import EXACT, Notes, TimeReading
from dotr.io.timestamps import too_fine
from dotr.rdf.memo import Memo

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
"""How a format goes on behind the hour → what that adds to it, in order, and where it begins in a text."""


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
            raise TimeError("D2105", f"the format `{self.text}` has no year", "every instant has one: %Y")
        if not self._zoned and zone is None:
            hint = f'say which it is: datetime("{self.text}", "Europe/Berlin"), or --time-zone'
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
        """The instant that a text says, in microseconds since 1970; what was changed is added to `notes`.
        Raises TimeError.
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
        """The beginning of the hour that a text without its tail says. Raises KeyError if it is none, or one
        in which the zone changes.
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
        raise TimeError("D2105", f"`{part}` is not known in formats of time", f"one of {known}, or iso")
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
