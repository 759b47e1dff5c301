"""Local calendars: time zones by name, LOCAL, DAYOFWEEK and DATE.

Place:   functions.py has the functions in its table; io/time.py and the grammar find zones here.
Method:  zones are those of the tz database in the package tzdata. A dateTime is an instant and an offset:
         LOCAL changes the offset, DAYOFWEEK and DATE read the day that is written. xsd:dateTime has offsets
         of whole minutes, so seconds of an offset (local mean times, before 1972) are cut.
Why not: the zone files of the machine: they differ from machine to machine, and so would events.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING

from dotr.expressions.operators import ask
from dotr.rdf.terms import XSD, XSD_DATETIME, literal
from dotr.rdf.values import TICKS, DateTime, Opaque, Value, day_number, decode
from dotr.regex import regex

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_OFFSET = regex(r"([+-])([01][0-9]):?([0-5][0-9])")
_FARTHEST = 14 * 60  # minutes: xsd:dateTime has no offset beyond
_NAME = regex(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_DAY = regex(r'"(-?[0-9]{4,})-([0-9]{2})-([0-9]{2})')
_DATE = f"{XSD}date"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=64)
def zone(name: str) -> tzinfo | None:
    """The zone of a name of the tz database, of `UTC`, or of an offset (`+02:00`, up to 14 hours); None if
    there is none.
    """
    if name in ("Z", "UTC"):
        return UTC
    if found := _OFFSET.fullmatch(name):
        minutes = int(found[2]) * 60 + int(found[3])
        if minutes > _FARTHEST:
            return None
        return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))
    if not _NAME.fullmatch(name):
        return None
    try:
        with _database().joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            from zoneinfo import ZoneInfo  # noqa: PLC0415  # start-up: most runs name no zone

            return ZoneInfo.from_file(file, key=name)
    except (OSError, ValueError):
        return None


def _database() -> Traversable:
    from importlib.resources import files  # noqa: PLC0415  # start-up: most runs name no zone

    return files("tzdata")


@lru_cache(maxsize=1)
def zone_names() -> tuple[str, ...]:
    """The names of the tz database."""
    return tuple(_database().joinpath("zones").read_text("utf-8").split())


def local(time: Value, name: Value) -> Value | None:
    """LOCAL: the dateTime of the same instant in a zone; None of a dateTime without a zone, and outside the
    years 1 to 9999.
    """
    there = zone(name) if type(name) is str else None
    if there is None or not isinstance(time, DateTime) or not time.zoned:
        return None
    seconds, fraction = divmod(time.ticks, TICKS)
    try:
        offset = (_EPOCH + timedelta(seconds=seconds)).astimezone(there).utcoffset()
        minutes = int((offset or timedelta()) / timedelta(minutes=1))
        shown = (_EPOCH + timedelta(seconds=seconds + 60 * minutes)).replace(tzinfo=None)
    except OverflowError:
        return None
    part = f".{fraction:018}".rstrip("0") if fraction else ""
    ahead = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" if minutes else "Z"
    return decode(literal(f"{shown.isoformat()}{part}{ahead}", XSD_DATETIME))


def _day(value: Value) -> tuple[int, int, int] | None:
    """Year, month and day as a dateTime or a date writes them."""
    if isinstance(value, Opaque):
        if value.datatype != _DATE or ask("YEAR(?a)", value.term) is None:
            return None
    elif not isinstance(value, DateTime):
        return None
    found = _DAY.match(value.term)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


def day_of_week(value: Value) -> Value | None:
    """DAYOFWEEK: 1 Monday … 7 Sunday, of the day that a dateTime or a date writes."""
    day = _day(value)
    return None if day is None else (day_number(*day) + 3) % 7 + 1  # 1970-01-01 was a Thursday


def date_of(value: Value) -> Value | None:
    """DATE: the day that a dateTime or a date writes, as an xsd:date without an offset, so that the days of
    a zone are equal whatever its offset was at the time.
    """
    if _day(value) is None:
        return None
    assert isinstance(value, DateTime | Opaque)
    found = _DAY.match(value.term)
    assert found is not None
    return decode(literal(found[0][1:], _DATE))
