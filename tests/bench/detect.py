"""The temporal engine alone: facts a second through detect/, without parsing, queries or output.

Run:     python -m tests.bench.detect [--facts N] [--json]
Place:   beside the end-to-end scenarios, for work on detect/; facts are made before the clock starts.
Method:  one fact an instant, a fifth of them triggers, ten rooms, windows of 300 s; as many instants at once
         as a pipeline gives the detector, facts that trigger nothing with the next trigger. Processor time,
         best of three. `dict` is the least that any Python program does for the first row: one dictionary by
         room, one tuple a match, no engine.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from time import process_time

from dotr.core.instant import FactBatch, InstantFacts
from dotr.core.pipeline import TOGETHER
from dotr.detect.detector import TeslaDetector, waking
from dotr.events import Clock, Fact, RawMatch
from dotr.lang import parse_program
from dotr.program import Program
from dotr.program.names import counts
from dotr.rdf.terms import integer

Instants = Sequence[tuple[int, Mapping[str, Sequence[Fact]]]]

SECOND = 1_000_000
ROOMS = [f"<http://example.org/room{i}>" for i in range(10)]
QUERIES = """
QUERY Smoke := { SELECT ?room WHERE { ?room a <urn:x:Smoke> } }
QUERY Heat  := { SELECT ?room ?val WHERE { ?room <urn:x:heat> ?val } }
"""
SAME_ROOM = "ON Heat.?room = Smoke.?room"
CONJUNCTS = {
    "last": f"AND LAST Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
    "last before": f"AND LAST Heat WITHIN 300 s BEFORE Smoke {SAME_ROOM}",
    "last, residual": f"AND LAST Heat WITHIN 300 s FROM Smoke {SAME_ROOM} && Heat.time < Smoke.time",
    "last, consuming": f"AND LAST Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
    "each (30 a trigger)": f"AND EACH Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
    "not": f"AND NOT Heat WITHIN 5 s FROM Smoke {SAME_ROOM}",
    "average": f"AND AVG(Heat.?val) AS ?mean OVER Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
    "deviation": f"AND STDDEV(Heat.?val) AS ?sd OVER Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
    "variance": f"AND VARIANCE(Heat.?val) AS ?var OVER Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
    "median": f"AND MEDIAN(Heat.?val) AS ?middle OVER Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
    "percentile": f"AND PERCENTILE(Heat.?val, 0.95) AS ?high OVER Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
    "collect (30 a trigger)": f"AND COLLECT(Heat.?val) AS ?all OVER Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
    "maximum": f"AND MAX(Heat.?val) AS ?most OVER Heat WITHIN 300 s FROM Smoke {SAME_ROOM}",
}


def rules(name: str, count: int = 1) -> Program:
    consuming = " CONSUMING Heat" if "consuming" in name else ""
    texts = [
        f"RULE Fire{i} DEFINE {{ dotr_id a <urn:x:Fire{i}> }} FROM Smoke {CONJUNCTS[name]}{consuming}"
        for i in range(count)
    ]
    return parse_program(QUERIES + "\n".join(texts))


def thresholds(count: int, step: int) -> Program:
    """Rules that differ in a constant: `step` 0, all pass; large, none does."""
    texts = [
        f"RULE Fire{i} DEFINE {{ dotr_id a <urn:x:Fire{i}> }} FROM Smoke {CONJUNCTS['last']} "
        f"&& Heat.?val > {-1 - i if step == 0 else step + i}"
        for i in range(count)
    ]
    return parse_program(QUERIES + "\n".join(texts))


def stream(facts: int) -> Instants:
    instants: list[tuple[int, Mapping[str, Sequence[Fact]]]] = []
    for i in range(facts):
        time = i * SECOND
        if i % 5 == 4:
            instants.append((time, {"Smoke": [(time, (ROOMS[i * 7 % 10],), 0, "")]}))
        else:
            instants.append((time, {"Heat": [(time, (ROOMS[i * 3 % 10], integer(i % 97)), 0, "")]}))
    return instants


def floor(instants: Instants) -> int:
    """The least that the first row takes."""
    latest: dict[str | None, Fact] = {}
    matches = 0
    for time, facts in instants:
        for fact in facts.get("Heat", ()):
            latest[fact[1][0]] = fact
        for fact in facts.get("Smoke", ()):
            found = latest.get(fact[1][0])
            if found is not None and found[0] >= time - 300 * SECOND:
                matches += len([(0, time, (fact, found), ())])
    return matches


Batches = Sequence[Sequence[InstantFacts]]
Make = Callable[[Instants], Callable[[], int]]
"""What makes a runner that counts matches; making it is not timed."""


def batches(instants: Instants, waking: Set[str] | None = None) -> Batches:
    """As a pipeline gives instants to the detector, which waits for facts of `waking`."""
    found = []
    for start in range(0, len(instants), TOGETHER):
        batch = FactBatch(waking if start else None, TOGETHER)
        for time, facts in instants[start : start + TOGETHER]:
            batch.put((time, (), facts, True))
        found.append(batch.closed().known)
    return found


def detected(detector: TeslaDetector, given: Batches) -> Iterator[list[RawMatch]]:
    """The matches of each instant that has some."""
    seen, quiet = counts(), counts()
    for batch in given:
        for _, matches in detector.detected(batch, seen, quiet):
            yield matches


def matched(found: Iterable[list[RawMatch]]) -> int:
    """The number of matches; those of several rules are one."""
    return sum(map(len, found))


def engine(program: Program, count: Callable[[Iterable[list[RawMatch]]], int] = matched) -> Make:
    """`count`: of the matches of all instants."""

    def make(instants: Instants) -> Callable[[], int]:
        detector = TeslaDetector(program, Clock())
        given = batches(instants, waking(detector.network))
        return lambda: count(detected(detector, given))

    return make


def measure(make: Make, instants: Instants, repeats: int = 3) -> tuple[float, int]:
    """(best µs a fact, matches)."""
    best, matches = float("inf"), 0
    for _ in range(repeats):
        run = make(instants)
        gc.collect()
        start = process_time()
        matches = run()
        best = min(best, process_time() - start)
    return best / len(instants) * 1e6, matches


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--facts", type=int, default=1_000_000)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    instants = stream(given.facts)
    runs: dict[str, Make] = {"dict": lambda instants: partial(floor, instants)}
    runs |= {name: engine(rules(name)) for name in CONJUNCTS}
    few = instants[: max(1_000, given.facts // 20)]
    rare = {
        "1000 rules, one column": engine(rules("last", 1000)),
        "1000 thresholds, all pass": engine(thresholds(1000, 0)),
        "1000 thresholds, none passes": engine(thresholds(1000, 1000)),
    }
    figures = {}
    for name, run in [*runs.items(), *rare.items()]:
        part = few if name in rare else instants
        cost, matches = measure(run, part)
        figures[name] = {"us_per_fact": round(cost, 3), "facts_per_s": round(1e6 / cost), "matches": matches}
        if not given.json:
            print(f"{name:30} {cost:8.3f} us a fact {1e6 / cost:12,.0f} facts/s {matches:12,} matches")
    if given.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
