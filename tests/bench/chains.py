"""Chains of EACH with few matches or none: what a candidate costs, whatever the number of conjuncts.

Place:   the scenario `chains` of __main__.py.
Method:  a rule of `length` EACH, each before the one written before it, over as many kinds of facts that come
         in turns. `none`: every window holds all facts, but the last kind comes after all others, so that
         every candidate is a dead end. `few`: windows behind the first one hold one fact, so that each fact
         of the first kind begins one match. `counted`: every window holds all facts, and a COUNT(*) counts
         what the chain, a PRIVATE rule, finds. The columns are filled, then the trigger comes again and
         again: CPU time of a trigger, divided by the facts in the windows. Detection alone: nothing is parsed
         or written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import process_time
from typing import Any

from dotr.detect.detector import TeslaDetector
from dotr.events import Clock, Fact, RawMatch
from dotr.lang import parse_program
from dotr.program import Program

LENGTHS, WINDOWS = (3, 6, 12, 24), (100, 1_000, 10_000)
SECOND = 1_000_000
MOST = 2.0
"""As many times what a candidate costs in the shortest chain, at most."""
DEAD = (6, 200, 2.0)
"""Length of a chain, facts in its windows, milliseconds of a trigger, at most."""


def program(length: int, window: int, kind: str) -> Program:
    """The rule. `window` in facts, which come one a second."""
    kinds = range(1, length + 1)
    queries = [f"QUERY E{number} := {{ SELECT ?x {{ ?x a <urn:x:E{number}> }} }}" for number in (0, *kinds)]
    inner = length - 1 if kind == "few" else window
    each = [
        f"AND EACH E{number} WITHIN {2 * window if number == 1 else inner} s BEFORE E{number - 1}"
        for number in kinds
    ]
    rule = "RULE Chain DEFINE { dotr_x a <urn:x:Chain> } FROM E0 " + " ".join(each)
    if kind == "counted":
        count = "RULE Many DEFINE { dotr_x a <urn:x:Many> ; <urn:x:n> ?n } FROM E0"
        of = "AND COUNT(*) AS ?n OVER Chain WITHIN 0 s FROM E0 WITH ?n := ?n"
        rule = f"PRIVATE {rule} {count} {of}"
    return parse_program("\n".join([*queries, rule]))


def order(length: int, window: int, kind: str) -> list[int]:
    """The kinds of the facts in the order in which they come."""
    if kind in ("few", "counted"):
        return [length - place % length for place in range(window // length * length)]
    last = max(1, window // length)
    return [1 + place % (length - 1) for place in range(window - last)] + [length] * last


def number_of(count: str) -> int:
    """The value of a count."""
    return int(count.split('"')[1])


class Chain:
    """Owns a detector with full columns."""

    def __init__(self, length: int, window: int, kind: str) -> None:
        self.detector = TeslaDetector(program(length, window, kind), Clock(integer=True))
        self._now, self._counted = 0, kind == "counted"
        for number in order(length, window, kind):
            self._come(number, SECOND)

    def _come(self, number: int, pause: int) -> list[RawMatch]:
        fact: Fact = (self._now, ("<urn:x:x>",), 0, "")
        facts: Mapping[str, list[Fact]] = {f"E{number}": [fact]}
        found = self.detector.detect(self._now, facts)
        self._now += pause
        return found

    def trigger(self) -> int:
        """The number of matches of the next trigger, a microsecond later: windows hold what they held. Of a
        counted chain the number that is counted.
        """
        found = self._come(0, 1)
        return number_of(found[0][3][0]) if self._counted else len(found)


def measured(lengths: Sequence[int], window: int, kind: str, repeats: int) -> Iterator[dict[str, Any]]:
    """A row for each length; they take turns, and the best of each counts."""
    chains = [Chain(length, window, kind) for length in lengths]
    found = [chain.trigger() for chain in chains]
    best = [float("inf") for _ in chains]
    times = max(1, 10_000 // window)
    for _ in range(repeats):
        for place, chain in enumerate(chains):
            start = process_time()
            for _ in range(times):
                chain.trigger()
            best[place] = min(best[place], (process_time() - start) / times)
    for length, matches, seconds in zip(lengths, found, best, strict=True):
        yield {
            "matches": kind,
            "window": window,
            "length": length,
            "found": matches,
            "ms a trigger": seconds * 1e3,
            "µs a candidate": seconds / window * 1e6,
            "of shortest": f"{seconds / best[0]:.2f}",
        }


def rows(quick: bool, repeats: int) -> Iterator[dict[str, Any]]:
    """Each with its ratio to the shortest chain of the same window."""
    for kind in ("none", "few", "counted"):
        for window in WINDOWS[:2] if quick else WINDOWS:
            yield from measured(LENGTHS, window, kind, repeats)
