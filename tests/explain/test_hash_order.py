"""Of several proofs the same one is given, whatever the hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RULES = """PREFIX : <urn:>
RULES <d.dlog>
LARS <h.lars>
BACKGROUND <b.ttl>
QUERY a := { SELECT ?x ?y WHERE { ?x :p/:in* ?y } }
RULE Paired DEFINE { dotr_b a :Paired ; :of ?x } FROM ISTREAM pair WITH ?x := pair.?x
RULE Busy DEFINE { dotr_n a :Busy ; :sum ?n } FROM N := ISTREAM busy WITH ?n := N.?n
RULE Beside DEFINE { dotr_o a :Beside } FROM S := { SELECT ?x WHERE { ?x a :Seen } }
"""
HELD = """
seen(?x)       :- a(?x, ?y) WITHIN 3 s .
pair(?x)        :- a(?x, ?y) WITHIN 3 s, a(?x, ?z) WITHIN 3 s, FILTER(?y != ?z) .
pair(?x)        :- seen(?x) ALWAYS WITHIN 2 s, seen(?w) AT ?t WITHIN 3 s .
busy(?n)        :- SUM(?v) AS ?n OVER weight(?x, ?v) WITHIN 5 s .
weight(?x, ?v)  :- seen(?x), a(?y, ?z) WITHIN 2 s, BIND(STRLEN(STR(?x)) + 0.1 AS ?v) .
"""
DATALOG = """PREFIX : <urn:>
:near(?x, ?y) :- :p(?x, ?z), :p(?y, ?z) .
:Seen(?x) :- :near(?x, ?y), :near(?x, ?z), FILTER(?y != ?z) .
"""


def test_every_proof_of_a_run_is_the_same_under_every_hash_seed(tmp_path: Path) -> None:
    (tmp_path / "h.dotr").write_text(RULES)
    (tmp_path / "h.lars").write_text(HELD)
    (tmp_path / "d.dlog").write_text(DATALOG)
    (tmp_path / "b.ttl").write_text("".join(f"<urn:m{n}> <urn:in> <urn:m{n + 1}> .\n" for n in range(4)))
    graph = " ".join(f"<urn:x{x}> <urn:p> <urn:m{x % 3}> , <urn:m{x % 2}> ." for x in range(6))
    lines = [{"time": time, "graph": graph} for time in (1, 2, 4)]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [sys.executable, "-m", "dotr.cli.main", "run", "h.dotr", "s.jsonl", "--explain"]
    outputs = {
        subprocess.run(
            [*command, "--format", "jsonl"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(outputs) == 1
    events = [json.loads(line) for line in outputs.pop().splitlines()]
    assert {event["rule"] for event in events} == {"Paired", "Busy", "Beside"}
    assert all(event["because"] for event in events)
