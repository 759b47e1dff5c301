"""When an EVERY ticks: at the multiples of a duration, or at local times of a zone.

Place:   detection, the pipeline and the batch ask here for ticks of both kinds alike. dotr/reference/
         calendars.py has a second way, which shares none of this but the zones.
Method:  days are numbered from 1970-01-01, and a calendar's days by their place among its own, so that ticks
         are counted without being made. The tick of a day is the first instant at which the clock of the
         zone shows the local time or a later one. Offsets change at most once in two days (in tzdata every
         seven at most), so it follows from the offsets a day before and after, and from the change between.
         Outside the years that Python's dates have, a zone does what it does 400 years nearer.
Why not: Python's `fold`: it reads a time in a gap by the offset before it, not as the end of the gap.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from dotr.events import Time
from dotr.expressions.calendars import zone
from dotr.program.rules import Calendar, Rhythm
from dotr.rdf.values import day_number

SECOND: Final = 1_000_000
DAY: Final = 86_400 * SECOND
_CYCLE: Final = 146_097
"""Days of 400 years."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = day_number(2, 1, 1), day_number(9998, 1, 1)
_ORDINAL: Final = date(1970, 1, 1).toordinal()


def is_tick(rhythm: Rhythm, time: Time) -> bool:
    """Whether it ticks at a time."""
    if isinstance(rhythm, int):
        return time % rhythm == 0
    return time % SECOND == 0 and first_tick(rhythm, time) == time


def first_tick(rhythm: Rhythm, time: Time) -> Time:
    """The earliest tick that is ≥ `time`."""
    if isinstance(rhythm, int):
        return -(-time // rhythm) * rhythm
    return _tick(rhythm, _ticks_before(rhythm, time))


def ticks_between(rhythm: Rhythm, after: Time, until: Time) -> int:
    """The number of ticks in (after, until]; less than 0 if `until` is before `after`. O(1)."""
    if isinstance(rhythm, int):
        return until // rhythm - after // rhythm
    first, end = _ticks_before(rhythm, after + 1), _ticks_before(rhythm, until + 1)
    twice = (place for place in _repeated(rhythm) if first < place < end) if first < end else ()
    return end - first - sum(1 for _ in twice)


def pace(rhythm: Rhythm) -> Time:
    """The shortest distance of two ticks; of local times but for changes of the zone."""
    if isinstance(rhythm, int):
        return rhythm
    return (rhythm.days or 28) * DAY


def _ticks_before(calendar: Calendar, time: Time) -> int:
    """The place of the earliest tick that is ≥ `time`."""
    place = _place(calendar, (time - calendar.at) // DAY - 2)
    while _tick(calendar, place) < time:
        place += 1
    return place


def _place(calendar: Calendar, day: int) -> int:
    """The place of the last of a calendar's days that is not after `day`, or of the one before it."""
    if calendar.days:
        return (day - calendar.day) // calendar.days
    cycle, rest = divmod(day, _CYCLE)
    found = date.fromordinal(_ORDINAL + rest)
    return cycle * 4800 + found.year * 12 + found.month - 2


def _day(calendar: Calendar, place: int) -> int:
    """The number of the day at a place."""
    if calendar.days:
        return place * calendar.days + calendar.day
    year, month = divmod(place, 12)
    first, following = (
        day_number(year, month + 1, 1),
        day_number(year + (month == 11), (month + 1) % 12 + 1, 1),
    )
    return min(first + calendar.day, following) - 1


@lru_cache(maxsize=1 << 12)
def _tick(calendar: Calendar, place: int) -> Time:
    """The instant of the tick at a place. Never before that of an earlier place."""
    there = zone(calendar.zone)
    assert there is not None, "the grammar found it"
    local = _day(calendar, place) * DAY + calendar.at
    early, late = local // SECOND - 129_600, local // SECOND + 129_600
    before, after = _offset(there, early), _offset(there, late)
    found = local - before * SECOND
    if before == after:
        return found
    while late - early > 1:  # at `early` the offset is still the first, at `late` it is not
        middle = (early + late) // 2
        if _offset(there, middle) == before:
            early = middle
        else:
            late = middle
    change = late * SECOND
    return found if found < change else max(change, local - after * SECOND)


def _offset(there: tzinfo, seconds: int) -> int:
    """Seconds, of whole minutes, that a zone is ahead of UTC at an instant, as LOCAL has them."""
    day = seconds // 86_400
    if not _FIRST <= day < _LAST:
        cycles = -(-(_FIRST - day) // _CYCLE) if day < _FIRST else (_LAST - 1 - day) // _CYCLE
        seconds += cycles * _CYCLE * 86_400
    offset = (_EPOCH + timedelta(seconds=seconds)).astimezone(there).utcoffset()
    return int((offset or timedelta()) / timedelta(minutes=1)) * 60


@lru_cache(maxsize=64)
def _repeated(calendar: Calendar) -> tuple[int, ...]:
    """Places whose tick is also that of the place before: of days that the zone left out."""
    if calendar.days != 1:
        return ()
    there = zone(calendar.zone)
    assert there is not None, "the grammar found it"
    found = []
    weeks = range(day_number(1800, 1, 1), day_number(2100, 1, 1), 7)  # later changes are those of summer time
    offsets = [_offset(there, day * 86_400) for day in weeks]
    for day, before, after in zip(weeks, offsets, offsets[1:], strict=False):
        if after - before > 43_200:
            places = range(_place(calendar, day) - 2, _place(calendar, day) + 10)
            found += [p for p in places if _tick(calendar, p) == _tick(calendar, p - 1)]
    return tuple(found)
