"""What a rule's equations carry, and which parts of its template can fail."""

from __future__ import annotations

from dotr.detect.analysis import trigger_keys
from dotr.detect.scope import faults
from dotr.lang import parse_program
from dotr.program import Rule

HEAD = """PREFIX : <urn:x:>
QUERY A := { SELECT ?x ?y WHERE { ?o :a ?x ; :b ?y } }
QUERY B := { SELECT ?x ?y WHERE { ?o :c ?x ; :d ?y } }
QUERY C := { SELECT ?x WHERE { ?o :e ?x } }
"""


def rule(text: str) -> Rule:
    return parse_program(HEAD + text).rules[0]


def test_equations_carry_the_trigger_directly_and_through_earlier_conjuncts() -> None:
    found = trigger_keys(
        rule(
            "RULE R DEFINE { dotr_x a :R } FROM A AND EACH B WITHIN 1 s FROM A ON B.?x = A.?x && B.?y > A.?y "
            "AND NOT C WITHIN 1 s FROM A ON C.?x = B.?x"
        )
    )
    assert found == {("A", "x"): {0}, ("A", "y"): {1}, ("B", "x"): {0}, ("C", "x"): {0}}


def test_a_tick_and_a_computed_attribute_carry_nothing() -> None:
    assert (
        trigger_keys(rule("RULE R DEFINE { dotr_x a :R } FROM EVERY 1 s AS T AND EACH A WITHIN 1 s FROM T"))
        == {}
    )
    text = "RULE R DEFINE { dotr_x a :R } FROM A AND LAST B WITHIN 1 s FROM A ON B.?x = A.?x"
    assert trigger_keys(rule(text), computed=[("A", "x")]) == {("A", "y"): {1}, ("B", "x"): set()}


def test_subjects_must_not_be_literals_and_predicates_must_be_iris() -> None:
    text = "FROM A WITH ?s := A.?x, ?p := A.?y, ?o := A.?y"
    assert faults(rule(f"RULE R DEFINE {{ ?s ?p ?o }} {text}")) == ({0}, {1}, False, ())
    assert faults(rule(f"RULE R DEFINE {{ dotr_x :p ?o ; :q ?s }} {text}")) == (set(), set(), False, ())
