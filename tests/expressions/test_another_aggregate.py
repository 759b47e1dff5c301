"""What the map says of a new aggregate is all it takes: one row of a table, and every language has it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

WITH_MIDDLE = """
from dotr.expressions.aggregates import AGGREGATES, Aggregator
from dotr.rdf.values import term_key


def median(terms):
    present = sorted([term for term in terms if term is not None], key=term_key)
    return present[(len(present) - 1) // 2] if present else None


AGGREGATES["MIDDLE"] = Aggregator(median, number=True)

import sys

from dotr.cli.main import run

sys.exit(run(sys.argv[1:]))
"""

RULES = """
PREFIX : <urn:x:>
RULES <half.dlog>
LARS <held.lars>
QUERY heat := { SELECT ?room ?v { ?o :celsius ?v ; :room ?room } }

RULE Sliding
DEFINE { dotr_e :window ?m ; :least ?least ; :at ?room }
FROM Ask := { SELECT ?room { ?o :ask ?room } }
AND MIDDLE(Any.?v) AS ?m OVER Any := heat WITHIN 4 s FROM Ask ON Any.?room = Ask.?room
AND MIDDLE(DISTINCT Other.?v) AS ?least OVER Other := heat WITHIN 1 min FROM Ask ON Other.?room = Ask.?room
WITH ?m := ?m, ?least := ?least, ?room := Ask.?room

RULE Asked
DEFINE { dotr_e :query ?m }
FROM Of := { SELECT (MIDDLE(?v) AS ?m) { ?o :celsius ?v } HAVING (COUNT(?v) > 0) }
WITH ?m := Of.?m

RULE Derived
DEFINE { dotr_e :derived ?m }
FROM Half := { SELECT ?m { :all :half ?m } }
WITH ?m := Half.?m

RULE Held
DEFINE { dotr_e :held ?m }
FROM ISTREAM half
WITH ?m := half.?m

RULE OfHeld
DEFINE { dotr_e :of ?m }
FROM Again := { SELECT ?room { ?o :ask ?room } }
AND MIDDLE(half.?m) AS ?m OVER half WITHIN 3 s FROM Again
WITH ?m := ?m
"""

HALF = "[:all, :half, ?m] :- AGGREGATE([?o, :celsius, ?v] BIND MIDDLE(?v) AS ?m) .\n"
HELD = "STEP 1 s\nhalf(?room, ?m) :- MIDDLE(?v) AS ?m OVER heat(?room, ?v) WITHIN 3 s PER ?room .\n"


def readings(time: int, *values: int, ask: bool = False) -> str:
    graph = " ".join(
        f"<urn:x:o{time}{n}> <urn:x:celsius> {value} ; <urn:x:room> <urn:x:r> ."
        for n, value in enumerate(values)
    )
    graph += " <urn:x:q> <urn:x:ask> <urn:x:r> ." if ask else ""
    return f'{{"time": {time}, "graph": "{graph}"}}\n'


def test_a_row_of_the_table_is_an_aggregate_of_every_language(tmp_path: Path) -> None:
    (tmp_path / "median.py").write_text(WITH_MIDDLE)
    (tmp_path / "r.dotr").write_text(RULES)
    (tmp_path / "half.dlog").write_text("PREFIX : <urn:x:>\n" + HALF)
    (tmp_path / "held.lars").write_text(HELD)
    lines = [readings(1, 5), readings(2, 9, 7, 9), readings(4, 1, ask=True), readings(9, 3, ask=True)]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    for verb in (["check"], ["run", "--verify"]):
        source = ["in.jsonl"] if verb[0] == "run" else []
        done = subprocess.run(
            [sys.executable, "median.py", verb[0], "r.dotr", *source, *verb[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    values: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        event = json.loads(line)
        for name in ("m", "least"):
            if name in event["bindings"]:
                values.setdefault(f"{event['rule']} {name}", []).append(event["bindings"][name]["value"])
    assert values == {
        "Sliding m": ["7", "3"],
        "Sliding least": ["5", "5"],
        "Asked m": ["5", "9", "1", "3"],
        "Derived m": ["5", "9", "1", "3"],
        "Held m": ["5", "7", "5", "7", "1", "3"],
        "OfHeld m": ["5", "1"],
    }
