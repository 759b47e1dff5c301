"""Pages of D2108 to D2110: local times and time zones.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

PAGES: Final = (
    Page(
        "D2108",
        "a local time that came twice",
        "When clocks go back, an hour comes twice, and a time without an offset is two instants. Nobody can "
        "tell which one is meant, so the document, or the row of a table, is refused.",
        "2026-10-25T02:30:00   # with --time-zone Europe/Berlin",
        "2026-10-25T02:30:00+02:00",
        PageKind.OTHER,
    ),
    Page(
        "D2109",
        "a local time that never came",
        "When clocks go forward, an hour is left out. A time in it says that the zone is another, or that "
        "a clock did not change.",
        "2026-03-29T02:30:00   # with --time-zone Europe/Berlin",
        "2026-03-29T02:30:00   # with --time-zone +01:00",
        PageKind.OTHER,
    ),
    Page(
        "D2110",
        "no such time zone",
        "Zones are named as in the tz database, which comes with dotr; a fixed offset is one, too.",
        "dotr run fire.dotr readings.ttl --time-zone CEST",
        "dotr run fire.dotr readings.ttl --time-zone Europe/Berlin",
        PageKind.OTHER,
    ),
)
