"""Sequences: what a row costs in brute force, a V shape and sessions, whatever the window; what is kept.

Place:   the scenario `sequences` of __main__.py; peers_sequences.py takes patterns and streams from here.
Method:  facts one a second over `KEYS` keys, as many instants at once as a pipeline gives the detector, and
         the deadlines between them. Detection alone: nothing is parsed or written. Processor time, the best
         of the repeats, windows in turns. One session of 10⁵ and of 10⁶ clicks: what the detector keeps.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from time import process_time
from typing import Any

from dotr.collecting import rarely
from dotr.detect.detector import TeslaDetector
from dotr.events import Clock, Fact, RawMatch, Time
from dotr.lang import parse_program
from dotr.program import Program
from dotr.program.names import counts
from dotr.rdf.terms import integer

SECOND = 1_000_000
KEYS = 1_000
TOGETHER = 256
PACE = 100
"""Facts a second."""
WINDOWS = ("100 s", "1 d")
SAME = 1.35
"""As many times what a row costs in the narrow window, at most."""

QUERIES = """
QUERY Failure := { SELECT ?user WHERE { ?l a <urn:x:Failure> ; <urn:x:user> ?user } }
QUERY Success := { SELECT ?user WHERE { ?l a <urn:x:Success> ; <urn:x:user> ?user } }
QUERY Quote := { SELECT ?user ?price WHERE { ?l <urn:x:price> ?price ; <urn:x:user> ?user } }
"""
PATTERNS: Mapping[str, str] = {
    "brute force": "SEQUENCE S := Fail{5,} Ok OF Fail := Failure, Ok := Success PER ?user WITHIN %s "
    "WITH ?user := Ok.?user, ?n := COUNT(Fail), ?began := FIRST(Fail).time",
    "V shape": "SEQUENCE S := Start Down+ Up{2} OF Quote PER ?user AND Down ON Down.?price < PREV.?price "
    "AND Up ON Up.?price > PREV.?price WITHIN %s "
    "WITH ?user := Start.?user, ?n := LAST(Down).?price, ?began := Start.time",
    "session": "SEQUENCE S := Click+ OF Click := Failure PER ?user WITHIN %s GAP 30 s "
    "WITH ?user := FIRST(Click).?user, ?n := COUNT(Click), ?began := FIRST(Click).time",
}
RULE = "RULE R DEFINE { dotr_x a <urn:x:R> ; <urn:x:user> ?u ; <urn:x:n> ?n ; <urn:x:began> ?b } FROM S "
RULE += "WITH ?u := S.?user, ?n := S.?n, ?b := S.?began"

Instants = Sequence[tuple[Time, Mapping[str, Sequence[Fact]]]]


def program(kind: str, window: str) -> Program:
    return parse_program(QUERIES + PATTERNS[kind] % window + "\n" + RULE)


def rows(kind: str, count: int, pace: int = PACE, keys: int = KEYS) -> list[tuple[Time, str, str, int]]:
    """(time, stream, user, price) of each fact."""
    random = Random(1)
    users = [f'"u{number}"' for number in range(keys)]
    found = []
    for number in range(count):
        stream = "Quote" if kind == "V shape" else "Failure"
        if kind == "brute force" and random.random() < 0.15:
            stream = "Success"
        time = number * SECOND // pace
        found.append((time, stream, users[random.randrange(keys)], random.randrange(100)))
    return found


def instants(given: Sequence[tuple[Time, str, str, int]]) -> Instants:
    """One fact an instant."""
    prices = [integer(price) for price in range(100)]
    made: list[tuple[Time, Mapping[str, Sequence[Fact]]]] = []
    for time, stream, user, price in given:
        values = (user, prices[price]) if stream == "Quote" else (user,)
        made.append((time, {stream: [(time, values, 0, "")]}))
    return made


def detected(detector: TeslaDetector, given: Instants) -> Iterator[list[RawMatch]]:
    """The matches of each instant that has some, deadlines included, as a pipeline gives instants."""

    def between(batch: Instants) -> Iterator[tuple[Time, object, Mapping[str, Sequence[Fact]], bool]]:
        now = detector.now
        for time, facts in batch:
            while now is not None and (due := detector.next_late(now, time)) is not None:
                yield due, (), {}, False
                now = due
            yield time, (), facts, True
            now = time

    seen, quiet = counts(), counts()
    for start in range(0, len(given), TOGETHER):
        for _, matches in detector.detected(between(given[start : start + TOGETHER]), seen, quiet):
            yield matches


def matches(kind: str, window: str, given: Instants) -> tuple[float, int]:
    """(seconds of processor time, matches of the sequence)."""
    detector = TeslaDetector(program(kind, window), Clock())
    gc.collect()
    with rarely():  # as `dotr run` does
        start = process_time()
        found = sum(len(some) for some in detected(detector, given))
        return process_time() - start, found // 2  # a match of the rule for each


def figures(count: int, repeats: int) -> Iterator[dict[str, Any]]:
    """A row for each pattern and window; windows take turns, and the best of each counts."""
    for kind in PATTERNS:
        given = instants(rows(kind, count))
        best = {window: (float("inf"), 0) for window in WINDOWS}
        for _ in range(repeats):
            for window in WINDOWS:
                best[window] = min(best[window], matches(kind, window, given))
        first = best[WINDOWS[0]][0]
        for window in WINDOWS:
            seconds, found = best[window]
            yield {
                "pattern": kind,
                "window": window,
                "matches": found,
                "µs a fact": seconds / count * 1e6,
                "of narrow": seconds / first,
            }


def kept(clicks: int) -> int:
    """How many rows the detector keeps of one session."""
    detector = TeslaDetector(program("session", "30 d"), Clock())
    given = instants(rows("session", clicks, pace=1, keys=1))
    assert not list(detected(detector, given)), "the session goes on"
    return detector.sizes()["S"]
