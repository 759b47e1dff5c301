"""Aggregates of windows by Esper and by dotr: at smoke, of the readings of its room.

Place:   called by peers.py; PeerEsper.java, where the statements are, is the other half; the stream is that
         of peers_esper.py.
Method:  `STDDEV` and `MEDIAN` of the last five minutes; the average of the last ten readings, Esper's
         `#groupwin(room)#length(10)`, dotr's `OVER LAST 10`. All facts are in memory, matches are counted,
         the best of eight rounds a repeat in both. Rows (second, room, value) must be the same, values to
         nine digits: dotr's come from exact sums and Esper's from doubles that are added and subtracted.
"""

from __future__ import annotations

from math import isclose
from pathlib import Path
from typing import Any, TypeAlias

from dotr.detect.detector import TeslaDetector, waking
from dotr.events import Clock
from dotr.lang import parse_program
from dotr.rdf.values import decode

from . import by_hand, detect
from .peers_environment import Environment, Result
from .peers_esper import MORE_ROUNDS, ROUNDS, WAYS, facts_of, instants, write_facts

Row: TypeAlias = tuple[int, str, float]

LENGTH = 10
OVER = {
    "stddev": f"STDDEV(Heat.?val) AS ?x OVER Heat WITHIN {by_hand.WITHIN} s",
    "median": f"MEDIAN(Heat.?val) AS ?x OVER Heat WITHIN {by_hand.WITHIN} s",
    "length": f"AVG(Heat.?val) AS ?x OVER LAST {LENGTH} Heat WITHIN 1 d",
}
"""What dotr says for a query of PeerEsper.java. The last readings of a room are never a day old."""


def program(query: str) -> Any:
    rule = (
        f"RULE Total DEFINE {{ dotr_id a <urn:x:Total> ; <urn:x:is> ?x }} FROM Smoke AND {OVER[query]} "
        f"FROM Smoke {detect.SAME_ROOM} WITH ?x := ?x"
    )
    return parse_program(detect.QUERIES + rule)


def detected(query: str, stream: detect.Instants) -> list[Row]:
    """What the detector finds."""
    detector = TeslaDetector(program(query), Clock())
    found = []
    for matches in detect.detected(detector, detect.batches(stream, waking(detector.network))):
        for _, time, facts, (value,) in matches:
            number: Any = decode(value)
            found.append((time // detect.SECOND, str(facts[0][1][0]), float(number)))
    return sorted(found)


def reported(path: Path) -> list[Row]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        _, second, room, value = line.split(",")
        found.append((int(second), room, float(value)))
    return sorted(found)


def equal(mine: list[Row], theirs: list[Row]) -> bool:
    """Whether rows are the same. A deviation of equal values is 0; what Esper's has instead is the root of
    what its sums of squares have gathered.
    """
    return len(mine) == len(theirs) and all(
        a[:2] == b[:2] and isclose(a[2], b[2], rel_tol=1e-9, abs_tol=1e-5)
        for a, b in zip(mine, theirs, strict=True)
    )


def windows(environment: Environment, count: int, repeats: int) -> Result:
    folder = environment.folder
    source, facts, out = folder / "in.jsonl", folder / "facts.csv", folder / "out.csv"
    by_hand.write_stream(source, count)
    known = facts_of(source)
    write_facts(facts, known)
    stream = instants(known)
    result = Result(figures={"facts": count, "esper": environment.peer.requirement.rpartition(":")[2]})
    for query in OVER:
        cost, matches = detect.measure(detect.engine(program(query)), stream, ROUNDS * repeats)
        result.rows.append({"what": query, "who": "dotr", "matches": matches, "µs a fact": cost})
        same, mine = [], detected(query, stream)
        for way in WAYS:
            for rounds in (ROUNDS, MORE_ROUNDS) if way == "quick" else (ROUNDS,):
                run = ("warm", way, query, str(facts), str(out), str(rounds), "0")
                turns = [environment.run(*run) for _ in range(repeats)]
                theirs = min(min(turn["seconds"]) for turn in turns) / len(stream) * 1e6
                alone = min(min(turn["alone"]) for turn in turns) / len(stream) * 1e6
                who = f"esper, {way}" + (f", {rounds} rounds" if rounds > ROUNDS else "")
                row = {"what": query, "who": who, "matches": turns[0]["matches"], "µs a fact": theirs}
                result.rows.append({**row, "ratio": theirs / cost, "µs alone": alone})
                same.append(equal(mine, reported(out)))
        result.checks[f"{query}: the same matches, row by row, in {len(same)} runs of Esper"] = all(same)
    result.notes.append(
        "ratio: Esper's / dotr's, more than 1 where dotr takes less; each the best of its repeats"
    )
    return result
