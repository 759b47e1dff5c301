"""Brute force, V shapes and sessions by Esper's match_recognize, by Flink's and by dotr: what a row costs.

Place:   called by peers.py. `esper-sequences`: PeerSequences.java, with the statements, is the other half;
         `flink-sequences`: peer_sequences.py, with the queries from here.
Method:  the streams of sequences.py, over 1,000 keys; WITHIN holds all of them: Esper's have none.
         As many matches must come of both. dotr: facts in memory, matches counted, the best round.
         Esper, brute force and V shapes: the same, in the processor time of the whole Java machine, whose
         compiler and collector have threads of their own.
         Flink: from CSV to CSV, parallelism 1; the slope of the Java machine's processor time between two
         streams, the second `MORE` times as long, so that no start of a job is in it, less that of a query
         that only reads and writes. A pattern of its cannot end greedily, so a session takes the row that
         begins the next one, and every key gets a last row for both; `SESSION`, its window, needs none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import sequences
from .peers_environment import Environment, Result

KINDS = ("brute force", "V shape")
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
    result = Result(figures={"facts": count, "esper": environment.peer.requirement.rpartition(":")[2]})
    for kind in KINDS:
        rows = sequences.rows(kind, count)
        facts = environment.folder / "facts.csv"
        lines = (f"{stream},{user[1:-1]},{price},{time // 1000}\n" for time, stream, user, price in rows)
        facts.write_text("".join(lines), encoding="utf-8")
        peer = environment.run(kind, str(facts), str(ROUNDS * repeats))
        given = sequences.instants(rows)
        seconds, matches = min(sequences.matches(kind, "30 d", given) for _ in range(ROUNDS))
        theirs = min(peer["cpu_s"])
        result.checks[f"{kind}: {matches:,} matches of both"] = matches == peer["matches"]
        for what, cpu in (("dotr, detection", seconds), ("esper", theirs)):
            row = {
                "what": what,
                "pattern": kind,
                "CPU µs a fact": cpu / count * 1e6,
                "of dotr": cpu / seconds,
            }
            result.rows.append(row)
        result.figures[f"ratio {kind}"] = theirs / seconds
    result.notes.append("esper: an event class, a subscriber; rounds in one warm machine")
    return result


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
