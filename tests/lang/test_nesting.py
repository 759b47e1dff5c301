"""However deep a text nests, it ends in a finding: no stack, memory or time that grows with the square."""

from __future__ import annotations

import time

import pytest

from dotr.errors import ProgramError
from dotr.lang import parse_datalog, parse_program, parse_query

DEEP = 5_000
PREFIX = "PREFIX : <urn:x:>\n"
EXPRESSIONS = {
    "parentheses": "(" * DEEP + "?v" + ")" * DEEP,
    "not": "!(" * DEEP + "?v" + ")" * DEEP,
    "calls": "IF(true, " * DEEP + "?v" + ", 2)" * DEEP,
    "sums": "?v" + " + ?v" * DEEP,
    "conjunctions": "?v" + " && ?v" * DEEP,
}
BODIES = {
    "blocks": "{ " * DEEP + "?o :v ?v" + " }" * DEEP,
    "queries": "{ SELECT ?v WHERE { " * DEEP + "?o :v ?v" + " } }" * DEEP,
    "exists": "?o :v ?v " + "FILTER EXISTS { ?o :v ?v " * DEEP + " }" * DEEP,
    "optionals": "?o :v ?v " + "OPTIONAL { ?o :v ?v " * DEEP + " }" * DEEP,
    "paths": "?o " + "(" * DEEP + ":v" + ")*" * DEEP + " ?v",
    "alternatives": "?o " + "(:w|" * DEEP + ":v" + ")" * DEEP + " ?v",
    "lists": "?o :v " + "( " * DEEP + "?v" + " )" * DEEP,
    "blank nodes": "?o :v " + "[ :p " * DEEP + "?v" + " ]" * DEEP,
}
SELECTED = {**BODIES, **{name: f"?o :v ?v FILTER({text} > 1)" for name, text in EXPRESSIONS.items()}}
SECONDS = 5.0
"""Of CPU; what copies the rest of a text at every level takes minutes."""


def rule(body: str, where: str = "", value: str = "H.?v") -> str:
    head = "RULE Hot DEFINE { dotr_h :v ?v } FROM H := { SELECT ?v { "
    return f"{PREFIX}{head}{body} }} }} {where} WITH ?v := {value}\n"


@pytest.mark.parametrize("name", SELECTED)
def test_a_query_that_nests_without_end_is_a_finding(name: str) -> None:
    begun = time.process_time()
    for parse, text in (
        (parse_query, f"{PREFIX}SELECT ?v {{ {SELECTED[name]} }}"),
        (parse_program, rule(SELECTED[name])),
    ):
        with pytest.raises(ProgramError, match="D1005"):
            parse(text)
    assert time.process_time() - begun < SECONDS


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_condition_that_nests_without_end_is_a_finding(name: str) -> None:
    text = EXPRESSIONS[name]
    asked = text.replace("?v", "H.?v")
    begun = time.process_time()
    for rules in (rule("?o :v ?v", f"WHERE {asked} > 1"), rule("?o :v ?v", value=asked)):
        with pytest.raises(ProgramError, match="D1005"):
            parse_program(rules)
    for atom in (f"FILTER({text} > 1)", f"BIND({text} AS ?w)"):
        with pytest.raises(ProgramError, match="D1005"):
            parse_datalog(f"{PREFIX}[?x, :a, ?v] :- [?x, :val, ?v], {atom} .")
    assert time.process_time() - begun < SECONDS
