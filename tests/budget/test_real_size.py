"""What took minutes without a word: at full size and with the budget that users have, answered or refused."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr, dotr, folder  # noqa: F401  # fixtures

HEAD = "PREFIX : <urn:x:>\nRULE Far DEFINE { dotr_f :n ?n } FROM F := { %s } WITH ?n := F.?n\n"
VALUES = "".join(f"<urn:x:n{i}> <urn:x:p> {i} ." for i in range(2_000))
CHAIN = "".join(f"<urn:x:n{i}> <urn:x:p> <urn:x:n{i + 1}> ." for i in range(3_000))
CLIQUE = "".join(f"<urn:x:n{i}> <urn:x:p> <urn:x:n{j}> ." for i in range(150) for j in range(150))
CROSS = "?x :p ?v . ?y :p ?w . ?z :p ?u FILTER(?v + ?w + ?u < 0)"
ROWS = " ".join(map(str, range(3_000)))
INLINE = " ".join(f"VALUES ?v{i} {{ {ROWS} }}" for i in range(3)) + " FILTER(?v0 + ?v1 + ?v2 < 0)"
ALIKE = "[?x, :n, ?v] :- [?x, :p, ?v], [?y, :p, ?w], [?z, :p, ?u], FILTER(?v + ?w + ?u < 0) ."
CLOSED = ":p(?x, ?z) :- :p(?x, ?y), :p(?y, ?z) ."
NUMBERS = "SELECT ?n { ?x :n ?n }"

CASES = {
    "cross product": (f"SELECT (?v AS ?n) {{ {CROSS} }}", "", VALUES, {"D4132"}),
    "not exists": (f"SELECT (1 AS ?n) {{ FILTER NOT EXISTS {{ {CROSS} }} ?a :p 7 }}", "", VALUES, {"D4132"}),
    "count": (f"SELECT (COUNT(*) AS ?n) {{ {CROSS} }}", "", VALUES, {"D4132"}),
    "datalog": (NUMBERS, ALIKE, VALUES, {"D4003"}),
    "inline data": (f"SELECT (?v0 AS ?n) {{ ?x :p 7 {INLINE} }}", "", VALUES, {"D4132"}),
    "path over a clique": ("SELECT (COUNT(*) AS ?n) { ?x (((:p*)*)*)* ?y }", "", CLIQUE, {None}),
    "transitive closure": ("SELECT (COUNT(*) AS ?n) { ?x :p ?y }", CLOSED, CHAIN, {"D4001", "D4003"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_instant_is_answered_or_refused(dotr: Dotr, name: str) -> None:  # noqa: F811  # the fixture
    query, rules, graph, codes = CASES[name]
    Path("r.dotr").write_text(("RULES <d.dlog>\n" if rules else "") + HEAD % query)
    Path("d.dlog").write_text(f"PREFIX : <urn:x:>\n{rules}")
    lines = [{"time": 1, "graph": graph}, {"time": 2, "graph": "<urn:x:a> <urn:x:b> <urn:x:c> ."}]
    Path("s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    begun = time.process_time()
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "file=dead")
    assert ran.code == 0, ran.err
    assert time.process_time() - begun < 60
    letters = [json.loads(line)["code"] for line in Path("dead").read_text().splitlines()]
    if None in codes:
        assert letters == []
        assert json.loads(ran.out.splitlines()[0])["bindings"]["n"]["value"] == "22500"
    else:
        assert len(letters) == 1
        assert letters[0] in codes


def test_four_each_whose_where_never_holds_leave_one_fact_out(dotr: Dotr) -> None:  # noqa: F811  # the fixture
    one = "AND EACH A_ := { SELECT ?v { ?o :p ?v } } WITHIN 1 h FROM H\n"
    each = "".join(one.replace("_", str(i)) for i in range(4))
    Path("r.dotr").write_text(
        "PREFIX : <urn:x:>\nRULE Pairs DEFINE { dotr_p :n ?n } FROM H := { SELECT ?s { ?s a :Smoke } }\n"
        + each
        + "WHERE A0.?v + A1.?v + A2.?v + A3.?v < 0\nWITH ?n := A0.?v\n"
    )
    lines = [{"time": t, "graph": f"<urn:x:o> <urn:x:p> {t} ."} for t in range(400)]
    lines.append({"time": 400, "graph": "<urn:x:o> a <urn:x:Smoke> ."})
    Path("s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    begun = time.process_time()
    ran = dotr("run", "r.dotr", "s.jsonl", "--on-error", "skip")
    assert ran.code == 0, ran.err
    assert time.process_time() - begun < 60
    assert "1 fact left out as too much (Pairs 1)" in ran.err
