"""Rules of two events by Esper and by dotr: smoke, and a reading of that room above a threshold before.

Place:   called by peers.py; PeerEsper.java, where the statements are, is the other half.
Method:  the stream of by_hand.py: a hundred rooms, a graph a second, one in ten says smoke, the others a
         temperature below 100; the reading at most five minutes before. Rules: `LAST` with one threshold or
         ten, and `EACH`. Matches (rule, second, room, second and value of the reading) must be equal, row
         by row, for every query of Esper's and both ways of dotr's.
         `warm`: facts in memory, matches counted, the best of eight rounds a repeat in both (of 32, too,
         where Esper is quickest: its machine compiles on for long). dotr's detector alone, thresholds in
         ON, as many instants at once as a pipeline gives it; a match that several rules share counts for
         each.
         `alone`: of that, the thread that sends events, without the machine's compiler and collector.
         `dictionary` is a loop by hand over the same facts.
         `files`: from file to file, starts included: Esper from CSV to CSV, dotr from JSON lines with Turtle
         in them to JSON lines with RDF in them. Processor time of the whole process in both, for the Java
         machine compiles and collects in threads of its own. MB: the greatest resident set of those
         processes; the Java machine's heap is as large as it chooses, and once more at most 64 MB.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from dotr.detect.detector import TeslaDetector, waking
from dotr.events import Clock, RawMatch
from dotr.lang import parse_program
from dotr.rdf.terms import integer

from . import by_hand, detect
from .peers_environment import Environment, Result, measured

Row: TypeAlias = tuple[int, int, str, int, int]
"""Threshold's place, second, room, second and value of the reading."""

ROUNDS, MORE_ROUNDS = 8, 32
HEAP = "-Xmx64m"
WAYS = ("plain", "quick")
QUERIES = {"LAST": ("unique", "table"), "EACH": ("each",)}
CASES = (("LAST", 1), ("LAST", 10), ("EACH", 1))
ROOT = Path(__file__).resolve().parents[2]


def facts_of(stream: Path) -> list[tuple[str, str, int, int]]:
    """(kind, room, value, second) of each graph."""
    found = []
    for line in stream.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        room, predicate, value, _ = said["graph"].split(" ")
        smoke = predicate.endswith("smoke>")
        found.append(("S" if smoke else "H", room, 0 if smoke else int(value), said["time"]))
    return found


def write_facts(path: Path, facts: Sequence[tuple[str, str, int, int]]) -> None:
    path.write_text("".join(f"{kind},{room},{v},{at}\n" for kind, room, v, at in facts), encoding="utf-8")


def write_rules(path: Path, selection: str, rules: int) -> None:
    by_hand.write_rules(path, rules)
    path.write_text(
        path.read_text(encoding="utf-8").replace("AND LAST", f"AND {selection}"), encoding="utf-8"
    )


def instants(facts: Sequence[tuple[str, str, int, int]]) -> detect.Instants:
    """As queries give them: equal terms are one object, as readers keep them."""
    made: list[tuple[int, Any]] = []
    for kind, text, value, second in facts:
        time, room = second * detect.SECOND, sys.intern(text)
        fact = (
            {"Smoke": [(time, (room,), 0, "")]}
            if kind == "S"
            else {"Heat": [(time, (room, integer(value)), 0, "")]}
        )
        made.append((time, fact))
    return made


def program(selection: str, rules: int) -> Any:
    """From facts: the thresholds are the rules'."""
    texts = [
        f"RULE Fire{place} DEFINE {{ dotr_id a <urn:x:Fire{place}> }} FROM Smoke AND {selection} Heat "
        f"WITHIN {by_hand.WITHIN} s FROM Smoke {detect.SAME_ROOM} && Heat.?val > {above}"
        for place, above in enumerate(by_hand.thresholds(rules))
    ]
    return parse_program(detect.QUERIES + "\n".join(texts))


def counting(selection: str, rules: int) -> detect.Make:
    """What makes a runner; making it is not timed."""
    return detect.engine(program(selection, rules), of_each_rule)


def of_each_rule(found: Iterable[list[RawMatch]]) -> int:
    """The number of matches; those of several rules count for each."""
    total = 0
    for matches in found:
        for match in matches:
            total += len(match[0])
    return total


def by_dictionary(selection: str, above: int) -> detect.Make:
    """The least that a Python program does for one rule: a dictionary by room, and a tuple a match."""
    width = by_hand.WITHIN * detect.SECOND

    def make(stream: detect.Instants) -> Callable[[], int]:
        given = detect.batches(stream, {"Smoke"})
        hot = {integer(value) for value in range(above + 1, 100)}

        def last() -> int:
            latest: dict[Any, Any] = {}
            found = 0
            for batch in given:
                for time, _, facts, _ in batch:
                    if "Heat" in facts:
                        for fact in facts["Heat"]:
                            values = fact[1]
                            if values[1] in hot:
                                latest[values[0]] = fact
                    if "Smoke" in facts:
                        for fact in facts["Smoke"]:
                            one = latest.get(fact[1][0])
                            if one is not None and one[0] >= time - width:
                                found += len([((0,), time, (fact, one), ())])
            return found

        def each() -> int:
            kept: dict[Any, list[Any]] = {}
            found = 0
            for batch in given:
                for time, _, facts, _ in batch:
                    if "Heat" in facts:
                        for fact in facts["Heat"]:
                            values = fact[1]
                            if values[1] in hot:
                                room = values[0]
                                if room in kept:
                                    kept[room].append(fact)
                                else:
                                    kept[room] = [fact]
                    if "Smoke" in facts:
                        for fact in facts["Smoke"]:
                            several = kept.get(fact[1][0])
                            if several:
                                del several[: bisect_left(several, (time - width,))]
                                found += len([((0,), time, (fact, one), ()) for one in several])
            return found

        return last if selection == "LAST" else each

    return make


def detected(selection: str, rules: int, stream: detect.Instants) -> list[Row]:
    """What the detector alone finds."""
    detector = TeslaDetector(program(selection, rules), Clock())
    found = []
    for matches in detect.detected(detector, detect.batches(stream, waking(detector.network))):
        for places, time, (_, (since, (room, value), *_)), _ in matches:
            number = int(str(value).split('"')[1])
            found += [
                (place, time // detect.SECOND, str(room), since // detect.SECOND, number) for place in places
            ]
    return sorted(found)


def reported_by_dotr(path: Path) -> list[Row]:
    """What events in JSON lines say."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        place = int(event["rule"].removeprefix("Fire"))
        hot = event["match"][f"Hot{place}"]
        values = hot["values"]
        room, value = f"<{values['room']['value']}>", int(values["t"]["value"])
        found.append((place, event["time"], room, hot["time"], value))
    return sorted(found)


def reported_by_esper(path: Path) -> list[Row]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        place, second, room, since, value = line.split(",")
        found.append((int(place), int(second), room, int(since), int(value)))
    return sorted(found)


def two_events(environment: Environment, count: int, repeats: int) -> Result:
    folder = environment.folder
    stream, facts = folder / "in.jsonl", folder / "facts.csv"
    by_hand.write_stream(stream, count)
    known = facts_of(stream)
    write_facts(facts, known)
    result = Result(figures={"facts": count, "esper": environment.peer.requirement.rpartition(":")[2]})
    for selection, rules in CASES:
        warm(environment, selection, rules, instants(known), repeats, result)
    for selection, rules in CASES:
        files(environment, selection, rules, repeats, result)
    result.notes.append(
        "ratio: Esper's / dotr's, more than 1 where dotr takes less; each the best of its repeats"
    )
    return result


def warm(
    environment: Environment,
    selection: str,
    rules: int,
    stream: detect.Instants,
    repeats: int,
    result: Result,
) -> None:
    folder, thresholds = environment.folder, [str(above) for above in by_hand.thresholds(rules)]
    cost, matches = detect.measure(counting(selection, rules), stream, ROUNDS * repeats)
    what = f"{selection}, {rules} rule{'s' * (rules > 1)}, warm"
    result.rows.append({"what": what, "who": "dotr", "matches": matches, "µs a fact": cost})
    if rules == 1:
        loop = by_dictionary(selection, by_hand.thresholds(1)[0])
        least, found = detect.measure(loop, stream, ROUNDS * repeats)
        row = {"what": what, "who": "dictionary", "matches": found, "µs a fact": least}
        result.rows.append({**row, "ratio": least / cost})
    same, mine = [], detected(selection, rules, stream)
    for query in QUERIES[selection]:
        for way in WAYS:
            out = folder / "out.csv"
            for rounds in (ROUNDS, MORE_ROUNDS) if way == "quick" else (ROUNDS,):
                run = ("warm", way, query, str(folder / "facts.csv"), str(out), str(rounds), *thresholds)
                turns = [environment.run(*run) for _ in range(repeats)]
                theirs = min(min(turn["seconds"]) for turn in turns) / len(stream) * 1e6
                who = f"esper {query}, {way}" + (f", {rounds} rounds" if rounds > ROUNDS else "")
                row = {"what": what, "who": who, "matches": turns[0]["matches"], "µs a fact": theirs}
                alone = min(min(turn["alone"]) for turn in turns) / len(stream) * 1e6
                result.rows.append({**row, "ratio": theirs / cost, "µs alone": alone})
                same.append(reported_by_esper(out) == mine)
    result.checks[f"{what}: the same matches, row by row, in {len(same)} runs of Esper"] = all(same)


def files(environment: Environment, selection: str, rules: int, repeats: int, result: Result) -> None:
    folder, thresholds = environment.folder, [str(above) for above in by_hand.thresholds(rules)]
    rules_file, mine, theirs = folder / "rules.dotr", folder / "dotr.jsonl", folder / "out.csv"
    write_rules(rules_file, selection, rules)
    source, facts = folder / "in.jsonl", folder / "facts.csv"
    what = f"{selection}, {rules} rule{'s' * (rules > 1)}, files"
    commands = {
        "dotr": [
            sys.executable,
            "-m",
            "dotr.cli.main",
            "run",
            str(rules_file),
            str(source),
            "-o",
            str(mine),
            "--overwrite",
        ]
    }
    for query in QUERIES[selection]:
        for way in WAYS:
            rest = [way, query, str(facts), str(theirs), "0", *thresholds]
            commands[f"esper {query}, {way}"] = [*environment.command, "files", *rest]
            if way == "quick":
                small = [environment.command[0], HEAP, *environment.command[1:]]
                commands[f"esper {query}, {way}, {HEAP}"] = [*small, "files", *rest]
    best: dict[str, tuple[float, float]] = {}
    same = []
    for _ in range(repeats):
        for who, command in commands.items():
            seconds, size = measured(command, ROOT)
            known = best.get(who, (1e9, 1e9))
            best[who] = min(known[0], seconds), min(known[1], size)
            if who != "dotr":
                same.append(reported_by_esper(theirs) == reported_by_dotr(mine))
    cost, held = best["dotr"]
    for who, (seconds, size) in best.items():
        row: dict[str, Any] = {"what": what, "who": who, "s": seconds, "MB": size}
        if who != "dotr":
            row |= {"ratio": seconds / cost, "MB ratio": size / held}
        result.rows.append(row)
    result.checks[f"{what}: the same matches, row by row, in {len(same)} runs of Esper"] = all(same)
