"""The ticks of EVERY a second time, literally: days are gone through, one after the other.

Place:   tesla.py and explanations ask here; the engine asks dotr/expressions/rhythms.py.
Method:  Python's calendar has the days, and the clock of the zone is read every ten minutes of the time
         around a local time, then every second of ten minutes. Zones are those of tzdata; far from our
         years a day is that of another cycle of 400 years.
Why not: the engine's arithmetic: the two are compared.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache

from dotr.events import Time
from dotr.expressions.calendars import zone
from dotr.program.rules import Calendar, Rhythm

_SECONDS = 1_000_000
_CYCLE = 146_097 * 86_400
_AT_ONCE = 8
_FARTHEST = 16 * 3600
"""No zone was ever further from UTC, in seconds; Manila was 15:56 behind. None left out more than a day."""
_EARLY, _LATE = -50_000_000_000, 200_000_000_000
"""Seconds in the years 385 and 8307."""


def ticks_at(rhythm: Rhythm, time: Time) -> bool:
    """Whether it ticks at a time."""
    return next_at(rhythm, time) == time


def next_at(rhythm: Rhythm, time: Time) -> Time:
    """The first tick at a time or after it."""
    if isinstance(rhythm, int):
        return time if time % rhythm == 0 else (time // rhythm + 1) * rhythm
    days = time // (86_400 * _SECONDS) - 3
    block = days // _AT_ONCE
    while True:
        ticks = _ticks(rhythm, block)
        place = bisect_left(ticks, time)
        if place < len(ticks):
            return ticks[place]
        block += 1


def ticks_in(rhythm: Rhythm, first: Time, last: Time) -> list[Time]:
    """The ticks from `first` to `last`, both included."""
    found: list[Time] = []
    time = next_at(rhythm, first)
    while time <= last:
        found.append(time)
        time = next_at(rhythm, time + 1)
    return found


@lru_cache(maxsize=256)
def _ticks(calendar: Calendar, block: int) -> tuple[Time, ...]:
    """The ticks of some days, in order."""
    there = zone(calendar.zone)
    assert there is not None, "the grammar found it"
    days = range(block * _AT_ONCE, (block + 1) * _AT_ONCE)
    found = {
        _instant(there, day * 86_400 + calendar.at // _SECONDS) for day in days if _is_day(calendar, day)
    }
    return tuple(sorted(second * _SECONDS for second in found))


def _is_day(calendar: Calendar, day: int) -> bool:
    """Whether a day, counted from 1970-01-01, is one of a calendar's."""
    if calendar.days:
        return (day - calendar.day) % calendar.days == 0
    cycles = day // 146_097
    there = date(1970, 1, 1) + timedelta(days=day - cycles * 146_097)
    is_last = (there + timedelta(days=1)).month != there.month
    return there.day == calendar.day or (is_last and there.day < calendar.day)


def _instant(there: tzinfo, local: int) -> int:
    """The first second, counted from 1970-01-01 in UTC, at which the zone's clock shows `local` or later."""
    start = local - _FARTHEST
    for second in range(start, local + 86_400 + _FARTHEST, 600):
        if second + _ahead(there, second) < local:
            start = second
            continue
        # in a change of clocks the last ten minutes may have passed the time and gone back: of those seconds
        # the first counts
        for exact in range(start + 1, second + 1):
            if exact + _ahead(there, exact) >= local:
                return exact
    raise AssertionError("no zone is so far from UTC")


@lru_cache(maxsize=1 << 16)
def _ahead(there: tzinfo, second: int) -> int:
    """The seconds that the clock of a zone is ahead of UTC, without those of less than a minute."""
    cycles = 0
    if second < _EARLY:
        cycles = (second - _EARLY) // _CYCLE
    elif second > _LATE:
        cycles = (second - _LATE) // _CYCLE
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second - cycles * _CYCLE)
    ahead = moment.astimezone(there).utcoffset()
    assert ahead is not None
    minutes = abs(ahead) // timedelta(minutes=1)
    return -60 * minutes if ahead < timedelta() else 60 * minutes
