"""Brute force and V shapes by Esper's match_recognize and by dotr: what a row costs.

Place:   called by peers.py (`esper-sequences`); PeerSequences.java, with the statements, is the other half.
Method:  the streams of sequences.py, over 1,000 keys; WITHIN holds all of them: Esper's have none.
         As many matches must come of both. Facts in memory, matches counted; processor time of the whole Java
         machine, whose compiler and collector have threads of their own, and of dotr's one; the best round.
"""

from __future__ import annotations

from . import sequences
from .peers_environment import Environment, Result

KINDS = ("brute force", "V shape")
ROUNDS = 6


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
