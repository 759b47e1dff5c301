"""Pages of D14xx: windows and lengths of time.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

_SMOKE = """PREFIX : <http://example.org/>
QUERY Smoke := { SELECT ?room WHERE { ?o a :Smoke ; :room ?room } }
RULE Fire
DEFINE { dotr_x a :Fire }
FROM Smoke
"""
_EARLIER = "AND EACH Earlier := Smoke WITHIN 5 min BEFORE Smoke ON Earlier.?room = Smoke.?room\n"

PAGES: Final = (
    Page(
        "D1401",
        "a length of time has a unit",
        "A number and one of us, ms, s, sec, second(s), min, minute(s), h, hour(s), d, day(s). A single "
        "`m` could be\n"
        "anything; months and years have no fixed length.",
        _SMOKE + "AND EACH Again := Smoke WITHIN 5 m BEFORE Smoke ON Again.?room = Smoke.?room",
        _SMOKE + "AND EACH Again := Smoke WITHIN 5 min BEFORE Smoke ON Again.?room = Smoke.?room",
    ),
    Page(
        "D1402",
        "a length of time is not negative",
        'Windows reach into the past. For "A, and B within 5 min after it" let B be the trigger: when\n'
        "the rule fires, both have happened.",
        _SMOKE + "AND EACH Again := Smoke WITHIN -5 min BEFORE Smoke ON Again.?room = Smoke.?room",
        _SMOKE + "AND EACH Again := Smoke WITHIN 5 min BEFORE Smoke ON Again.?room = Smoke.?room",
    ),
    Page(
        "D1403",
        "EVERY 0 never ends",
        "EVERY ticks at each multiple of a length of time that is more than zero.",
        "PREFIX : <http://example.org/>\nRULE Clock DEFINE { dotr_x a :Tick } FROM EVERY 0 s AS Tick",
        "PREFIX : <http://example.org/>\nRULE Clock DEFINE { dotr_x a :Tick } FROM EVERY 1 min AS Tick",
    ),
    Page(
        "D1404",
        "a window in which nothing can be",
        "`WITHIN 0 s BEFORE` asks for an event that is earlier, but by nothing.",
        _SMOKE + "AND EACH Again := Smoke WITHIN 0 s BEFORE Smoke ON Again.?room = Smoke.?room",
        _SMOKE + "AND EACH Again := Smoke WITHIN 0 s FROM Smoke ON Again.?room = Smoke.?room",
    ),
    Page(
        "D1405",
        "a window or a tick of an absurd length",
        "A window bounds what a rule remembers; one of more than a year is often a wrong unit. A tick "
        "of less than a\n"
        "millisecond makes more instants than any stream.",
        _SMOKE + "AND EACH Again := Smoke WITHIN 30000 d BEFORE Smoke ON Again.?room = Smoke.?room",
        _SMOKE + "AND EACH Again := Smoke WITHIN 30 d BEFORE Smoke ON Again.?room = Smoke.?room",
    ),
    Page(
        "D1406",
        "not a whole number of microseconds, or too long",
        "Time is counted in microseconds. A thousand years is the longest window.",
        _SMOKE + "AND EACH Again := Smoke WITHIN 0.5 us BEFORE Smoke ON Again.?room = Smoke.?room",
        _SMOKE + "AND EACH Again := Smoke WITHIN 0.5 ms BEFORE Smoke ON Again.?room = Smoke.?room",
    ),
    Page(
        "D1407",
        "an interval that ends before it begins",
        "BETWEEN A AND B is what lies after A and before B. Where the windows say that B is never later "
        "than A,\n"
        "nothing does.",
        _SMOKE + _EARLIER + "AND NOT Other := Smoke BETWEEN Smoke AND Earlier ON Other.?room = Smoke.?room",
        _SMOKE + _EARLIER + "AND NOT Other := Smoke BETWEEN Earlier AND Smoke ON Other.?room = Smoke.?room",
    ),
    Page(
        "D1408",
        "LAST k and FIRST k count from one",
        "EACH takes every candidate, not a number of them.",
        _SMOKE + "AND LAST 0 Again := Smoke WITHIN 5 min BEFORE Smoke ON Again.?room = Smoke.?room",
        _SMOKE + "AND LAST 3 Again := Smoke WITHIN 5 min BEFORE Smoke ON Again.?room = Smoke.?room",
    ),
    Page(
        "D1409",
        "a tick, or an end, between two units of time",
        "Where the times of the data are integers of a unit, EVERY and FOR must be multiples of the "
        "unit: else some ticks and ends would have no time. "
        "`--time-unit ms` says that the integers are milliseconds.",
        "RULE Clock DEFINE { dotr_x a <urn:Tick> } FROM EVERY 500 ms AS Tick\n# over a stream with "
        "times 10, 11, 12",
        "dotr run clock.dotr stream.jsonl --time-unit ms",
        PageKind.OTHER,
    ),
    Page(
        "D1411",
        "EACH, LAST and FIRST have a window of WITHIN",
        "BETWEEN is for NOT and aggregates. To choose an event between two others, choose it in a "
        "window and compare\n"
        "times in ON.",
        _SMOKE + _EARLIER + "AND EACH B := Smoke BETWEEN Earlier AND Smoke ON true",
        _SMOKE + _EARLIER + "AND EACH B := Smoke WITHIN 5 min BEFORE Smoke ON B.time > Earlier.time",
    ),
)
