"""A program without some of its rules, and what of it is asked at each instant."""

from __future__ import annotations

from dotr.lang import parse_program
from dotr.program import Program

TEXT = """PREFIX : <urn:>
QUERY Hot := { SELECT ?s WHERE { ?s :v ?v } }
QUERY Up := ISTREAM Hot
RULE A DEFINE { dotr_x a :A } FROM B
RULE B DEFINE { dotr_x a :B } FROM Q := { SELECT ?s WHERE { ?s :w ?v } }
RULE C DEFINE { dotr_x a :C } FROM Up
"""


def test_a_program_without_a_rule_has_none_of_its_own_queries() -> None:
    program = parse_program(TEXT)
    assert program.dependencies == (1, 0, 2)
    assert program.without([]) is program
    left = program.without(["A", "B"])
    assert [rule.name for rule in left.rules] == ["C"]
    assert left.dependencies == (0,)
    assert list(left.queries) == ["Hot"]
    kept = program.only([2, 1])
    assert [rule.name for rule in kept.rules] == ["B", "C"]
    assert kept.dependencies == (0, 1)
    assert (program.rule_index("C"), kept.rule_index("C")) == (2, 1)


def test_a_query_of_which_only_changes_are_read_is_not_asked() -> None:
    program = parse_program(TEXT)
    assert set(program.asked) == {"B.Q"}
    assert set(program.selects) == {"Hot", "B.Q", "ISTREAM Hot"}
    assert set(program.written) == {"Hot", "B.Q"}
    read = parse_program(TEXT + "RULE D DEFINE { dotr_x a :D } FROM Hot\n")
    assert set(read.asked) == {"Hot", "B.Q"}
    assert program.lasting
    assert not program.only([0, 1]).holds


def test_programs_that_do_the_same_have_one_fingerprint() -> None:
    program = parse_program(TEXT)
    assert program.fingerprint == parse_program("# a comment\n" + TEXT).fingerprint
    assert program.fingerprint != parse_program(TEXT.replace(":w ?v", ":u ?v")).fingerprint
    assert repr(program) == "<dotr program: 3 rules, 2 queries>"
    assert repr(Program({}, ())) == "<dotr program: empty>"
