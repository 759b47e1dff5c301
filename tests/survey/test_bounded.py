"""A look at a sample ends, whatever the rules, and claims no more than it saw."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest

from tests.cli.conftest import Dotr

EACH = "AND EACH A{} := {{ SELECT ?v {{ ?o :val ?v }} }} WITHIN 1 h FROM H\n"
JOINED = (
    "PREFIX : <urn:x:>\nRULE Hot DEFINE { dotr_h :v ?v } FROM H := { SELECT ?v { ?o :val ?v } }\n"
    + "".join(map(EACH.format, range(4)))
    + "WHERE A0.?v + A1.?v + A2.?v + A3.?v < 0\nWITH ?v := H.?v\n"
)
CROSSED = (
    "PREFIX : <urn:x:>\nRULE Hot DEFINE { dotr_h :v ?v } FROM H := { SELECT ?v { "
    "?o :val ?v . ?p :val ?w . ?q :val ?u FILTER(?v + ?w + ?u < 0) } } WITH ?v := H.?v\n"
)
SECONDS = 60
"""Of CPU; without a bound either look takes hours."""


def write(folder: Path, rules: str, graphs: int, values: int) -> None:
    (folder / "r.dotr").write_text(rules, encoding="utf-8")
    triples = "".join(f"<urn:x:o{i}> <urn:x:val> {i} . " for i in range(values))
    lines = (json.dumps({"time": time, "graph": triples}) for time in range(graphs))
    (folder / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize(("rules", "graphs", "values"), [(JOINED, 400, 2), (CROSSED, 1_000, 60)])
def test_a_look_at_a_sample_that_would_take_hours_ends(
    dotr: Dotr, folder: Path, rules: str, graphs: int, values: int
) -> None:
    write(folder, rules, graphs, values)
    begun = process_time()
    ran = dotr("check", "r.dotr", "--sample", "a.jsonl")
    assert process_time() - begun < SECONDS
    assert "< 0` is true in none of the first " in ran.out


def test_a_run_with_a_small_budget_says_why_a_rule_was_silent_and_ends(dotr: Dotr, folder: Path) -> None:
    write(folder, JOINED, 400, 2)
    begun = process_time()
    ran = dotr("run", "r.dotr", "a.jsonl", "--budget", "100", "--on-error", "skip")
    assert process_time() - begun < SECONDS
    assert ran.code == 0
    assert "D4010" in ran.err


def test_a_condition_is_said_to_be_never_true_of_the_rows_that_were_looked_at(
    dotr: Dotr, folder: Path
) -> None:
    """Of 12,000 rows the last ones are above the threshold."""
    query = "SELECT ?v { ?o :val ?v FILTER(?v > 11) }"
    write(folder, f"PREFIX : <urn:x:>\nRULE Hot DEFINE {{ dotr_h :v 1 }} FROM H := {{ {query} }}", 1_000, 12)
    with (folder / "a.jsonl").open("a", encoding="utf-8") as log:
        log.write('\n{"time": 1000, "graph": "<urn:x:o> <urn:x:val> 12 ."}')
    ran = dotr("check", "r.dotr", "--sample", "a.jsonl")
    assert "is true in none of the first 5,000 of 12,001 rows of query `Hot.H`" in ran.out


HELD = """
near(?a, ?b) :- p(?a, ?x) WITHIN 100 s, p(?b, ?y) WITHIN 100 s, FILTER(?x + ?y < 0) .
going() :- p(?a, ?x) WITHIN 10000 d .
seen() :- away() AT ?t WITHIN 2 s .
away() :- NOT near(?a, ?b) .
"""


@pytest.mark.parametrize(("graphs", "values", "apart"), [(1_000, 100, 1), (300, 5, 5_000), (3, 2, 10**9)])
def test_a_look_at_what_holds_ends(dotr: Dotr, folder: Path, graphs: int, values: int, apart: int) -> None:
    """Joins that explode at each point, and points of long silences at which something happens."""
    (folder / "h.lars").write_text("STEP 1 s" + HELD, encoding="utf-8")
    (folder / "r.dotr").write_text(
        "LARS <h.lars>\nQUERY p := { SELECT ?a ?x { ?a <urn:x:val> ?x } }\n"
        "RULE Near DEFINE { dotr_x a <urn:x:N> } FROM ISTREAM near\n"
        "RULE Seen DEFINE { dotr_x a <urn:x:S> } FROM ISTREAM seen\n"
        "RULE Going DEFINE { dotr_x a <urn:x:G> } FROM going WHERE going.time < 0\n",
        encoding="utf-8",
    )
    triples = "".join(f"<urn:x:o{i}> <urn:x:val> {i} . " for i in range(values))
    lines = (json.dumps({"time": number * apart, "graph": triples}) for number in range(graphs))
    (folder / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    begun = process_time()
    ran = dotr("check", "r.dotr", "--sample", "a.jsonl")
    assert process_time() - begun < SECONDS
    assert "D4011" not in ran.out + ran.err
