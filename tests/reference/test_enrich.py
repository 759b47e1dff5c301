"""The naive closure reads section 4 of the contract literally."""

import pytest

from dotr.errors import ProgramError
from dotr.program import BindAtom, DatalogRule, FilterAtom, Var
from dotr.reference.enrich import closure
from tests.enrich.programs import aggregate, call, no, rule, triples


def derived(rules: list[DatalogRule], text: str) -> set[tuple[str, str, str]]:
    given = triples(text)
    return closure(rules, given) - given


def test_the_papers_recursive_rule() -> None:
    rules = [rule("?a in ?b", "?a at ?c", "?c in ?b")]
    assert derived(rules, "s at x . x in room . t at s") == triples("s in room . t in room")


def test_a_fact_holds_without_data() -> None:
    assert closure([rule("a p b")], set()) == triples("a p b")


def test_several_heads() -> None:
    assert derived([rule("?x p ?y, ?y q ?x", "?x r ?y")], "a r b") == triples("a p b . b q a")


def test_not_sees_what_lower_strata_derive() -> None:
    rules = [rule("?x a Quiet", "?x a Room", no("?x a Loud")), rule("?x a Loud", "?x noise ?n")]
    assert derived(rules, "r a Room . q a Room . q noise n") == triples("r a Quiet . q a Loud")


def test_each_not_has_its_own_existential_variable() -> None:
    rules = [rule("?x a Free", "?x a Room", no("?x has ?y"), no("?z in ?x"))]
    assert derived(rules, "r a Room . q a Room . q has t . p a Room . t in p") == triples("r a Free")


def test_filter_and_bind_wherever_they_stand() -> None:
    double = BindAtom(call("*", "?v", 2), Var("w"))
    rules = [rule("?x w ?w", FilterAtom(call(">", "?w", 10)), double, "?x v ?v")]
    assert derived(rules, "a v 5 . b v 6 . c v word") == triples("b w 12")


def test_aggregate_counts_a_group_and_leaves_out_empty_ones() -> None:
    rules = [rule("?r load ?n", aggregate("r", "COUNT", "p", "n", "?p in ?r"))]
    assert derived(rules, "x in r . y in r . x in q . s a Room") == triples("r load 2 . q load 1")


def test_total_without_a_value_derives_nothing() -> None:
    rules = [rule("?r sum ?n", aggregate("r", "SUM", "v", "n", "?r val ?v"))]
    assert derived(rules, "r val 1 . r val word . q val 2 . q val 3") == triples("q sum 5")


def test_literal_subject_is_not_derived() -> None:
    assert derived([rule("?y of ?x", "?x has ?y")], "a has 5 . a has b") == triples("b of a")


def test_variable_predicate_derives_no_triple_without_an_iri() -> None:
    assert derived([rule("?x ?p ?y", "?x says ?p", "?x sees ?y")], "a says 5 . a sees b") == set()


def test_rules_over_a_schema_stand_beside_not() -> None:
    rules = [
        rule("?x ?q ?y", "?p spo ?q", "?x ?p ?y"),
        rule("?p spo ?r", "?p spo ?q", "?q spo ?r"),
        rule("?x a Lone", "?x a Thing", no("?x knows ?y")),
    ]
    given = "loves spo likes . likes spo knows . a loves b . a a Thing . b a Thing"
    assert derived(rules, given) == triples("loves spo knows . a likes b . a knows b . b a Lone")


def test_schema_derived_by_an_instance_is_instantiated_again() -> None:
    rules = [
        rule("?x ?q ?y", "?p spo ?q", "?x ?p ?y"),
        rule("?x a ?d", "?c sco ?d", "?x a ?c"),
        rule("?x a Odd", "?x a Room", no("?x a Even")),
    ]
    assert derived(
        rules, "equivalent spo sco . Two equivalent Even . r a Room . r a Two . q a Room"
    ) == triples("Two sco Even . r a Even . q a Odd")


def test_rule_that_derives_schema_from_the_stream_is_refused() -> None:
    rules = [
        rule("?x a ?d", "?c sco ?d", "?x a ?c"),
        rule("?c sco Big", "?c weighs ?w"),
        rule("?x a Odd", "?x a Room", no("?x a Even")),
    ]
    with pytest.raises(ProgramError, match="D3006"):
        closure(rules, set())


def test_unsafe_rules_are_refused() -> None:
    with pytest.raises(ProgramError, match="D3001"):
        closure([rule("?x p ?z", "?x q ?y")], set())
