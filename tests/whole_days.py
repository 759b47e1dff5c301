"""Whole programs whose clocks tick at local times: `whole.py`'s, with days in place of seconds.

Method:  a second becomes eight hours of some year in which the zone of the program has a change of clocks, or
         a day of another length; each EVERY becomes one at local times. Half of the graphs come at whole
         hours, where ticks are.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from random import Random

from msgspec.structs import replace

from tests.whole import Whole, one

CHANGES = (
    ("Europe/Brussels", datetime(2026, 3, 27, tzinfo=UTC)),
    ("Europe/Brussels", datetime(2026, 10, 23, tzinfo=UTC)),
    ("America/New_York", datetime(2027, 11, 5, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 2, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 28, tzinfo=UTC)),
    ("Asia/Kathmandu", datetime(2028, 2, 27, tzinfo=UTC)),
    ("Africa/Monrovia", datetime(1972, 1, 5, tzinfo=UTC)),
    ("-09:30", datetime(1969, 12, 30, tzinfo=UTC)),
    ("Europe/Dublin", datetime(9500, 3, 25, tzinfo=UTC)),
)
HOURS = 8


def in_days(r: Random, whole: Whole) -> Whole:
    """The same program and stream; its times are dateTimes as strings."""
    zone, start = one_of(r)

    def every(_: re.Match[str]) -> str:
        days = one(r, "1 d", "1 d", "1 d", "2 d", "3 d", "MONDAY", "SUNDAY", "friday")
        if r.random() < 0.2:
            days = f"MONTH ON DAY {r.choice((1, 15, 28, 29, 30, 31))}"
        at = one(r, "00:00", "02:15", "02:30", "08:00", "16:00", "23:59:59")
        return f'EVERY {days} AT {at} IN "{zone}" AS'

    rules = re.sub(r"EVERY \d+ s AS", every, whole.rules)
    rules = re.sub(r"\b(\d+) s\b", lambda found: f"{HOURS * int(found[1])} h", rules)
    late = timedelta(minutes=r.choice((0, 0, 30, 77)))

    def moment(time: int) -> str:
        return (start + late + timedelta(hours=HOURS * time)).isoformat()

    return replace(
        whole, rules=rules, stream=[replace(graph, time=moment(graph.time)) for graph in whole.stream]
    )


def one_of(r: Random) -> tuple[str, datetime]:
    """A zone, and when a stream begins there."""
    return r.choice(CHANGES)
