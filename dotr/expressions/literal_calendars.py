"""LOCAL, DAYOFWEEK and DATE a second time, over the text of literals, for literal readings.

Place:   literal_numbers.py gives rules in a literal reading these functions; extract/called_operators.py
         gives them to the full engine.
Method:  the text of a dateTime is taken apart, and Python's own calendar does the rest. A weekday is that
         of the same day in another cycle of 400 years.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Final

from dotr.expressions.calendars import zone
from dotr.rdf.terms import XSD, Term, canonical, literal, literal_parts

_FORM: Final = re.compile(
    r"(-?(?:[1-9]\d{4,}|\d{4}))-(\d\d)-(\d\d)"
    r"(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,18}))?)?(Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)
_DATE, _DATETIME = f"{XSD}date", f"{XSD}dateTime"
_ORIGINS: Final = {_DATE: date(1, 1, 1).toordinal(), _DATETIME: date(1970, 1, 1).toordinal()}


def _read(term: Term, *datatypes: str) -> re.Match[str] | None:
    """The parts of a well-typed literal of one of these datatypes."""
    if term[0] != '"':
        return None
    text, datatype, _ = literal_parts(term)
    found = _FORM.fullmatch(text) if datatype in datatypes else None
    if found is None or (found[4] is None) is (datatype == _DATETIME):
        return None
    day, clock, fraction, ahead = found.group(1, 2, 3), found.group(4, 5, 6), found[7], found[8] or "Z"
    hours, minutes = (0, 0) if ahead == "Z" else (int(ahead[1:3]), int(ahead[4:]))
    try:
        cycles = int(day[0]) // 400 - 5
        days = _in_cycle(found).toordinal() + cycles * 146_097 - _ORIGINS[datatype]
        hour, minute, second = (int(part or 0) for part in clock)
        time(hour, minute, second)  # raises ValueError
    except ValueError:
        return None
    if minutes >= 60 or 60 * hours + minutes > 14 * 60:
        return None
    offset = (-60 if ahead[0] == "-" else 60) * (60 * hours + minutes)
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset
    # an instant is a whole number of 10⁻¹⁸ seconds, in 128 bits: since 1970 or, of a date, since year 1
    units = seconds * 10**18 + int((fraction or "").ljust(18, "0"))
    return found if -(2**127) <= units < 2**127 else None


def _in_cycle(found: re.Match[str]) -> date:
    return date(2000 + int(found[1]) % 400, int(found[2]), int(found[3]))


def local(at: Term, name: Term) -> Term | None:
    found = _read(at, _DATETIME)
    there = zone(literal_parts(name)[0]) if name[0] == name[-1] == '"' else None
    if found is None or found[8] is None or there is None:
        return None
    head, fraction = f"{found[1]}-{found[2]}-{found[3]}T{found[4]}:{found[5]}:{found[6]}", found[7]
    try:
        moment = datetime.fromisoformat(head + found[8].replace("Z", "+00:00"))
        offset = moment.astimezone(there).utcoffset()
        assert offset is not None
        minutes = abs(offset) // timedelta(minutes=1)
        sign = "-" if offset < timedelta() else "+"
        naive = (moment - moment.utcoffset()).replace(tzinfo=None)  # type: ignore[operator]  # it has a zone
        shown = naive - timedelta(minutes=minutes) if sign == "-" else naive + timedelta(minutes=minutes)
    except (OverflowError, ValueError):
        return None
    day = f"{shown.year:04}-{shown.month:02}-{shown.day:02}"
    clock = f"{shown.hour:02}:{shown.minute:02}:{shown.second:02}{'.' + fraction if fraction else ''}"
    return canonical(literal(f"{day}T{clock}{sign}{minutes // 60:02}:{minutes % 60:02}", _DATETIME))


def day_of_week(value: Term) -> Term | None:
    found = _read(value, _DATE, _DATETIME)
    return None if found is None else literal(str(_in_cycle(found).isoweekday()), f"{XSD}integer")


def date_of(value: Term) -> Term | None:
    found = _read(value, _DATE, _DATETIME)
    return None if found is None else canonical(literal(f"{found[1]}-{found[2]}-{found[3]}", _DATE))


CALENDARS: Final[Mapping[str, Callable[..., Term | None]]] = {
    "LOCAL": local,
    "DAYOFWEEK": day_of_week,
    "DATE": date_of,
}
"""By name, over canonical terms."""
