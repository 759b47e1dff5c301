"""Brute force, V shapes and sessions by Esper's match_recognize, by Flink's and by dotr: what a row costs.

Place:   called by peers.py. `esper-sequences`: PeerSequences.java, with the statements, is the other half;
         `flink-sequences`: peer_sequences.py, with the queries from here.
Method:  the streams of sequences.py, over 1,000 keys; WITHIN holds all of them: Esper's have none.
         dotr, detection: facts in memory, matches counted, the best round.
         Esper, brute force and V shapes. `warm`: the same, in the processor time of the whole Java machine,
         whose compiler and collector have threads of their own; its first round, too. `files`: from file to
         file, starts included, Esper from CSV to CSV, dotr from JSON lines with Turtle in them to JSON lines
         with RDF in them; a second a fact. The matches (user, number, time of the first row) must be equal,
         row by row, in both.
         Flink, of which as many matches must come as of dotr: from CSV to CSV, parallelism 1; the slope of
         the Java machine's processor time between two streams, the second `MORE` times as long, so that no
         start of a job is in it, less that of a query that only reads and writes. A pattern of its cannot end
         greedily, so a session takes the row that begins the next one, and every key gets a last row for
         both; `SESSION`, its window, needs none.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from time import process_time
from typing import Any

from dotr.collecting import rarely
from dotr.detect.detector import TeslaDetector
from dotr.detect.scope import small
from dotr.events import Clock
from dotr.program.names import match_hash

from . import sequences
from .peers_environment import Environment, Result, measured

KINDS = ("brute force", "V shape")
ROOT = Path(__file__).resolve().parents[2]
FILES = """
QUERY Failure := { SELECT ?user WHERE { ?user <urn:x:is> "Failure" } }
QUERY Success := { SELECT ?user WHERE { ?user <urn:x:is> "Success" } }
QUERY Quote := { SELECT ?user ?price WHERE { ?user <urn:x:is> ?price FILTER(isNumeric(?price)) } }
"""
"""The facts of graphs of one triple."""
ROUNDS = 6
MORE = 10
"""How many times longer the second stream of Flink is."""

RECOGNISE = (
    "SELECT who, n, began FROM {facts} MATCH_RECOGNIZE (PARTITION BY who ORDER BY ts MEASURES %s "
    "ONE ROW PER MATCH AFTER MATCH SKIP %s PATTERN (%s) %s DEFINE %s)"
)
FLINK: Mapping[str, tuple[str, str]] = {
    "read": ("", "SELECT who, CAST(price AS BIGINT), ms FROM {facts} WHERE price = 0"),
    "brute force": (
        "brute force",
        RECOGNISE
        % (
            "COUNT(F.ms) AS n, FIRST(F.ms) AS began",
            "PAST LAST ROW",
            "F{5,} S",
            "WITHIN INTERVAL '30' DAY",
            "F AS F.kind = 'Failure', S AS S.kind = 'Success'",
        ),
    ),
    "V shape": (
        "V shape",
        RECOGNISE
        % (
            "CAST(LAST(D.price) AS BIGINT) AS n, A.ms AS began",
            "PAST LAST ROW",
            "A D+ U V",
            "WITHIN INTERVAL '30' DAY",
            (
                "D AS D.price < COALESCE(LAST(D.price, 1), A.price), U AS U.price > LAST(D.price), "
                "V AS V.price > U.price"
            ),
        ),
    ),
    "session": (
        "session",
        RECOGNISE
        % (
            "COUNT(C.ms) + 1 AS n, A.ms AS began",
            "TO LAST N",
            "A C* N",
            "WITHIN INTERVAL '30' DAY",
            (
                "C AS C.ms <= COALESCE(LAST(C.ms, 1), A.ms) + 30000, "
                "N AS N.ms > COALESCE(LAST(C.ms), A.ms) + 30000"
            ),
        ),
    ),
    "session, window": (
        "session",
        (
            "SELECT who, COUNT(*), MIN(ms) FROM TABLE(SESSION(TABLE {facts} PARTITION BY who, "
            "DESCRIPTOR(ts), INTERVAL '30' SECOND)) GROUP BY who, window_start, window_end"
        ),
    ),
}
"""Flink's query → the pattern that says the same, and its text."""


def recognised(environment: Environment, count: int, repeats: int) -> Result:
    """Esper's match_recognize beside dotr, warm and from file to file."""
    result = Result(figures={"facts": count, "esper": environment.peer.requirement.rpartition(":")[2]})
    for kind in KINDS:
        warm(environment, kind, count, repeats, result)
    for kind in KINDS:
        files(environment, kind, count, repeats, result)
    result.notes.append("esper: an event class, a subscriber; `warm`: rounds in one machine")
    return result


def warm(environment: Environment, kind: str, count: int, repeats: int, result: Result) -> None:
    rows = sequences.rows(kind, count)
    facts, out = environment.folder / "facts.csv", environment.folder / "out.csv"
    lines = (f"{stream},{user[1:-1]},{price},{time // 1000}\n" for time, stream, user, price in rows)
    facts.write_text("".join(lines), encoding="utf-8")
    peer = environment.run("warm", kind, str(facts), str(out), str(ROUNDS * repeats))
    given = sequences.instants(rows)
    seconds = min(sequences.matches(kind, "30 d", given)[0] for _ in range(ROUNDS))
    found = _detected(kind, given)
    result.checks[f"{kind}: the same {len(found):,} matches, row by row"] = found == _reported(out)
    theirs = min(peer["cpu_s"])
    costs = {"dotr, detection": seconds, "esper": theirs, "esper, first round": peer["cpu_s"][0]}
    if kind == "V shape":
        least, matches = min(v_shapes(given) for _ in range(ROUNDS))
        costs["loop by hand"] = least
        result.checks[f"{kind}: as many matches of the loop by hand"] = matches == len(found)
    for who, cpu in costs.items():
        row = {"what": who, "pattern": kind, "CPU µs a fact": cpu / count * 1e6, "of dotr": cpu / seconds}
        result.rows.append(row)
    result.figures[f"ratio {kind}"] = theirs / seconds


def v_shapes(given: sequences.Instants) -> tuple[float, int]:
    """(seconds of processor time, matches) of the least that a Python program does for the V shape: one
    mapping a key, which either goes on, ends, or begins again. Matches have values and names.
    """
    gc.collect()
    with rarely():
        start = process_time()
        clock, found = Clock().term, 0
        known: dict[Any, list[Any]] = {}  # user → rows so far, first row, last row, its price
        for time, facts in given:
            for fact in facts["Quote"]:
                user, term = fact[1]
                price = small[term]
                one = known.get(user)
                if one is None:
                    known[user] = [START, fact, fact, fact, price]
                    continue
                rows, first, last, low, before = one
                if price < before:
                    one[:] = DOWN, first if rows == DOWN else last, fact, fact, price
                elif price == before or rows == START:
                    one[:] = START, fact, fact, fact, price
                elif rows == DOWN:
                    one[:] = UP, first, fact, low, price
                else:
                    del known[user]
                    values = first[1][0], low[1][1], clock(first[0])
                    match = ((1,), time, ((time, values, 0, match_hash(time, (first,))),), values)
                    found += len([match])
        return process_time() - start, found


START, DOWN, UP = range(3)
"""How far a V shape has come."""


def files(environment: Environment, kind: str, count: int, repeats: int, result: Result) -> None:
    folder = environment.folder
    rules, source, mine = folder / "rules.dotr", folder / "in.jsonl", folder / "dotr.jsonl"
    facts, theirs = folder / "facts.csv", folder / "out.csv"
    rules.write_text(FILES + sequences.PATTERNS[kind] % "30 d" + "\n" + sequences.RULE, encoding="utf-8")
    with source.open("w", encoding="utf-8") as graphs, facts.open("w", encoding="utf-8") as table:
        for time, stream, user, price in sequences.rows(kind, count, pace=1):
            second, said = time // sequences.SECOND, price if stream == "Quote" else f'"{stream}"'
            graphs.write(
                json.dumps({"time": second, "graph": f"<urn:x:{user[1:-1]}> <urn:x:is> {said} ."}) + "\n"
            )
            table.write(f"{stream},{user[1:-1]},{price},{second}\n")
    commands = {
        "dotr": [
            sys.executable,
            "-m",
            "dotr.cli.main",
            "run",
            str(rules),
            str(source),
            "-o",
            str(mine),
            "--overwrite",
        ],
        "esper": [*environment.command, "files", kind, str(facts), str(theirs), "0"],
    }
    best = dict.fromkeys(commands, (1e9, 1e9))
    for _ in range(repeats):
        for who, command in commands.items():
            seconds, size = measured(command, ROOT)
            best[who] = min(best[who][0], seconds), min(best[who][1], size)
    events = [json.loads(line)["bindings"] for line in mine.read_text(encoding="utf-8").splitlines()]
    found = sorted(
        (event["u"]["value"].removeprefix("urn:x:"), int(event["n"]["value"]), int(event["b"]["value"]))
        for event in events
    )
    result.checks[f"{kind}, files: the same {len(found):,} matches, row by row"] = found == _reported(theirs)
    cost, _ = best["dotr"]
    for who, (seconds, size) in best.items():
        row = {
            "what": f"{who}, files",
            "pattern": kind,
            "CPU µs a fact": seconds / count * 1e6,
            "of dotr": seconds / cost,
        }
        result.rows.append({**row, "s": seconds, "MB": size})
    result.figures[f"ratio {kind}, files"] = best["esper"][0] / cost


def _detected(kind: str, given: sequences.Instants) -> list[tuple[str, int, int]]:
    """(user, number, millisecond of the first row) of each match of dotr's detector."""
    detector = TeslaDetector(sequences.program(kind, "30 d"), Clock(unit=1000))
    rule = [one.name for one in detector.program.rules].index("R")
    bound = [m[3] for some in sequences.detected(detector, given) for m in some if rule in m[0]]
    return sorted((user[1:-1], _number(n), _number(began)) for user, n, began in bound)


def _number(term: str) -> int:
    return int(term.split('"')[1])


def _reported(path: Path) -> list[tuple[str, int, int]]:
    """The same of Esper's, as it has written them."""
    parts = (line.split(",") for line in path.read_text(encoding="utf-8").splitlines())
    return sorted((user, int(n), int(began)) for user, n, began in parts)


def matched(environment: Environment, count: int, repeats: int) -> Result:
    """The slopes of Flink's jobs beside dotr."""
    sizes = count // MORE, count
    jobs: list[dict[str, Any]] = []
    given = {(kind, size): _ended(kind, size) for kind in sequences.PATTERNS for size in sizes}
    for (kind, size), rows in given.items():
        lines = (f"{stream},{user[1:-1]},{price},{time // 1000}\n" for time, stream, user, price in rows)
        _facts(environment, kind, size).write_text("".join(lines), encoding="utf-8")
    for name, (kind, query) in FLINK.items():
        for size in (sizes[0], *sizes * repeats):  # the first warms the code of the query up
            jobs.append(
                {
                    "name": name,
                    "size": size,
                    "query": query,
                    "columns": "kind STRING, who STRING, price INT",
                    "result": "who STRING, n BIGINT, began BIGINT",
                    "facts": str(_facts(environment, kind or "V shape", size)),
                    "out": str(environment.folder / f"out{len(jobs)}"),
                }
            )
    listed = environment.folder / "jobs.json"
    listed.write_text(json.dumps(jobs), encoding="utf-8")
    peer = environment.run(str(listed))
    result = Result(figures={"facts": count, "flink": peer["version"]})
    result.figures["flink_first_job_cpu_s"] = peer["first_cpu_s"]
    slopes = {name: _slope(name, sizes, jobs, peer["runs"]) for name in FLINK}
    for kind in sequences.PATTERNS:
        instants = sequences.instants(given[kind, count])
        seconds, found = min(sequences.matches(kind, "30 d", instants) for _ in range(ROUNDS))
        own = seconds / count * 1e6
        result.rows.append({"what": "dotr, detection", "pattern": kind, "CPU µs a fact": own, "of dotr": 1.0})
        for name in [name for name, (of, _) in FLINK.items() if of == kind]:
            window = name != kind
            theirs = [
                _written(Path(job["out"])) for job in jobs if job["name"] == name and job["size"] == count
            ]
            same = {many - sequences.KEYS * window for many in theirs} == {found}
            result.checks[f"{name}: {found:,} matches of both"] = same
            for what, cpu in (("flink", slopes[name]), ("flink less CSV", slopes[name] - slopes["read"])):
                row = {"what": what, "pattern": name, "CPU µs a fact": cpu, "of dotr": cpu / own}
                result.rows.append(row)
            result.figures[f"ratio {name}"] = (slopes[name] - slopes["read"]) / own
    result.notes.append(
        f"flink: processor time of the first job of {sizes[0]:,} facts, the start of the machine included: "
        f"{peer['first_cpu_s']:.1f} s; CSV alone, in and out: {slopes['read']:.2f} µs a fact"
    )
    return result


def _facts(environment: Environment, kind: str, size: int) -> Path:
    return environment.folder / f"{kind.replace(' ', '')}{size}.csv"


def _ended(kind: str, size: int) -> list[tuple[int, str, str, int]]:
    """The facts of a pattern; of sessions with one of each key behind them, when all have ended."""
    rows = sequences.rows(kind, size)
    if kind == "session":
        last = rows[-1][0] + 60 * sequences.SECOND
        users = [f'"u{number}"' for number in range(sequences.KEYS)]
        rows += [(last + number * 1000, "Failure", user, 0) for number, user in enumerate(users)]
    return rows


def _slope(
    name: str, sizes: tuple[int, int], jobs: list[dict[str, Any]], runs: list[dict[str, float]]
) -> float:
    """µs of processor time a fact."""
    own = [(job["size"], ran["cpu_s"]) for job, ran in zip(jobs, runs, strict=True) if job["name"] == name]
    few, many = (min(cpu for at, cpu in own[1:] if at == size) for size in sizes)
    return (many - few) / (sizes[1] - sizes[0]) * 1e6


def _written(folder: Path) -> int:
    """How many matches a job has written."""
    return sum(
        len(part.read_text(encoding="utf-8").splitlines()) for part in folder.rglob("*") if part.is_file()
    )
