"""Local times to instants: time zones by name, from the tz database that comes with dotr.

Place:   under timestamps.py and the templates of tables; the option `--time-zone` names a zone here.
Method:  a local time is tried with both folds of PEP 495. The offsets are equal for nearly all times; where
         they differ the local time came twice (clocks went back), or never (they went forward): what it is
         then is a choice of the run (time_reading.py).
Why not: the zone files of the machine: they differ from machine to machine, and so would events.
Bad input: D2108 a local time that came twice · D2109 one that never came · D2110 no such zone.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING

from dotr.events import Time
from dotr.io.time_reading import EXACT, Notes, TimeReading
from dotr.lang.grammar.base import nearest
from dotr.rdf.memo import Memo
from dotr.regex import regex

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_OFFSET = regex(r"([+-])([01][0-9]):?([0-5][0-9])")
_NAME = regex(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*")
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


class TimeError(ValueError):
    """A text that is not a timestamp. `code` and `message` make the diagnostic."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class RepeatedTimeError(TimeError):
    """A local time that came twice, where the order of the rows says which one it is. `local`: it, as if it
    were UTC.
    """

    def __init__(self, twice: TimeError, local: Time) -> None:
        super().__init__(twice.code, twice.message, twice.hint)
        self.local = local


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """The zone of a name of the tz database, of `UTC`, or of an offset (`+02:00`). Raises TimeError D2110."""
    if name in ("Z", "UTC"):
        return UTC
    if found := _OFFSET.fullmatch(name):
        minutes = int(found[2]) * 60 + int(found[3])
        return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))
    try:
        if not _NAME.fullmatch(name):
            raise FileNotFoundError
        with _database().joinpath("zoneinfo", *name.split("/")).open("rb") as file:
            from zoneinfo import ZoneInfo  # noqa: PLC0415  # start-up: most runs name no zone

            return ZoneInfo.from_file(file, key=name)
    except (OSError, ValueError):
        hint = nearest(name, _names()) or "write Europe/Berlin, UTC or +02:00"
        raise TimeError("D2110", f"`{name}` is not a time zone", hint) from None


def _database() -> Traversable:
    from importlib.resources import files  # noqa: PLC0415  # start-up: most runs name no zone

    return files("tzdata")


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    return tuple(_database().joinpath("zones").read_text("utf-8").split())


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
        option = "say which one it is: --ambiguous-time earlier, later, or infer (by the order of the rows)"
        if chosen != "refuse":
            option = "the order of the rows does not say which one it is: --ambiguous-time earlier, or later"
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
