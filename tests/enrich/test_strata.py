"""Rejected rules say what is wrong, and accepted ones get the strata they need."""

import pytest

from dotr.enrich.rules import check_rules, strata
from dotr.errors import Diagnostic, ProgramError
from dotr.program import BindAtom, DatalogRule, FilterAtom, Var
from tests.enrich.programs import aggregate, atom, call, no, rule, term


def codes(*rules: DatalogRule) -> list[str]:
    return [diagnostic.code for diagnostic in check_rules(rules)]


def only(*rules: DatalogRule) -> Diagnostic:
    found = check_rules(rules)
    assert len(found) == 1, [d.render() for d in found]
    return found[0]


def test_head_variable_without_an_atom_is_unsafe() -> None:
    found = only(rule("?x p ?z", "?x q ?y"))
    assert found.code == "D3001"
    assert "`?z` of the head" in found.message


def test_variable_that_only_a_not_mentions_is_unsafe_in_the_head() -> None:
    found = only(rule("?x p ?z", "?x q ?y", no("?x r ?z")))
    assert found.code == "D3001"
    assert any("occurs only in a NOT" in note for note in found.notes)


def test_variable_that_only_a_not_mentions_is_fine_inside_it() -> None:
    assert codes(rule("?x a Quiet", "?x a Room", no("?x noise ?n"))) == []


def test_filter_on_an_unbound_variable_is_unsafe_and_a_near_name_is_proposed() -> None:
    found = only(rule("?x a Hot", "?x val ?value", FilterAtom(call(">", "?valeu", 60))))
    assert found.code == "D3001"
    assert found.hint == "did you mean `?value`?"


def test_bind_may_stand_before_the_atom_it_reads() -> None:
    assert codes(rule("?x f ?f", BindAtom(call("*", "?c", 2), Var("f")), "?x c ?c")) == []


def test_binds_that_wait_for_each_other_are_unsafe() -> None:
    first = BindAtom(call("+", "?b", 1), Var("a"))
    second = BindAtom(call("+", "?a", 1), Var("b"))
    assert codes(rule("?x p ?a", "?x q ?y", first, second)) == ["D3001", "D3001"]


def test_bind_cannot_bind_again() -> None:
    assert codes(rule("?x p ?y", "?x q ?y", BindAtom(call("+", "?y", 1), Var("y")))) == ["D3007"]


def test_group_and_argument_of_an_aggregate_come_from_its_own_body() -> None:
    assert codes(rule("?r load ?n", aggregate("r", "COUNT", "p", "n", "?p in ?r"))) == []
    outside = rule("?r load ?n", "?r a Room", aggregate("r", "COUNT", "p", "n", "?p in ?q"))
    assert codes(outside) == ["D3001"]


def test_time_and_chance_have_no_place_in_datalog() -> None:
    assert codes(rule("?x at ?n", "?x a Room", BindAtom(call("NOW"), Var("n")))) == ["D3008"]


def test_literal_as_subject_of_a_head_is_an_error_and_in_a_body_a_warning() -> None:
    assert only(rule("5 p ?x", "?x q ?y")).severity == "error"
    assert only(rule("?x p ?x", "5 q ?x")).severity == "warning"


def test_recursion_through_not_prints_the_cycle() -> None:
    found = only(
        rule("?x a Quiet", "?x a Room", no("?x a Loud")),
        rule("?x a Loud", "?x next ?y", "?y a Busy"),
        rule("?x a Busy", "?x a Quiet"),
    )
    assert found.code == "D3002"
    quiet, loud, busy = (term(name) for name in ("Quiet", "Loud", "Busy"))
    assert found.notes == (f"the cycle: {quiet} ← NOT {loud} ← {busy} ← {quiet}",)


def test_recursion_through_an_aggregate_is_refused() -> None:
    load = aggregate("r", "SUM", "n", "m", "?r part ?q", "?q load ?n")
    found = only(rule("?r load ?m", load))
    assert found.code == "D3003"


def test_strata_of_rdf_type_are_by_class() -> None:
    assert codes(rule("?x a Quiet", "?x a Room", no("?x a Loud")), rule("?x a Loud", "?x noise ?n")) == []


def test_variable_predicate_in_a_head_is_refused_beside_not() -> None:
    found = only(
        rule("?x ?q ?y", "?x ?p ?y", "?p alias ?q"), rule("?x a Quiet", "?x a Room", no("?x a Loud"))
    )
    assert found.code == "D3005"


def test_variable_class_in_a_head_is_refused_beside_not() -> None:
    found = only(rule("?x a ?c", "?x kind ?c"), rule("?x a Quiet", "?x a Room", no("?x a Loud")))
    assert found.code == "D3005"


def test_variable_predicate_in_a_body_alone_stands_beside_not() -> None:
    known = rule("?x a Known", "?x ?p ?y")
    assert codes(known, rule("?x quiet ?y", "?x next ?y", no("?y a Loud"))) == []


def test_rules_over_a_schema_are_judged_when_the_schema_is_known() -> None:
    sub = rule("?x ?q ?y", "?p spo ?q", "?x ?p ?y")
    assert codes(sub, rule("?x a Quiet", "?x a Room", no("?x a Loud"))) == []


def test_bind_that_feeds_itself_is_refused() -> None:
    step = rule("?y depth ?m", "?x next ?y", "?x depth ?n", BindAtom(call("+", "?n", 1), Var("m")))
    assert only(step).code == "D3004"


def test_bind_that_feeds_itself_through_other_rules_is_refused() -> None:
    one = rule("?x f ?m", "?x c ?n", BindAtom(call("+", "?n", 1), Var("m")))
    other = rule("?x c ?n", "?x f ?n")
    assert only(one, other).code == "D3004"


def test_bind_in_a_recursive_rule_may_compute_from_what_does_not_recurse() -> None:
    label = rule(
        "?y label ?u", "?x next ?y", "?x label ?l", "?y name ?n", BindAtom(call("UCASE", "?n"), Var("u"))
    )
    assert codes(label) == []


def test_bind_that_copies_is_no_new_value() -> None:
    assert codes(rule("?y depth ?m", "?x next ?y", "?x depth ?n", BindAtom(Var("n"), Var("m")))) == []


def test_strata_are_as_few_as_negation_needs() -> None:
    base = rule("?x a Loud", "?x noise ?n")
    quiet = rule("?x a Quiet", "?x a Room", no("?x a Loud"))
    free = rule("?x a Free", "?x a Room", no("?x a Taken"))
    sleepy = rule("?x a Sleepy", "?x a Free", "?x a Quiet")
    never = rule("?x a Never", "?x a Room", no("?x a Sleepy"))
    assert strata([never, sleepy, free, quiet, base]) == [[base], [sleepy, free, quiet], [never]]


def test_heads_of_different_strata_are_parted() -> None:
    both = rule("?x a Loud, ?x a Odd", "?x noise ?n")
    odd = rule("?x a Odd", "?x a Room", no("?x a Loud"))
    first, second = strata([both, odd])
    assert [r.heads for r in first] == [(atom("?x a Loud"),)]
    assert [r.heads for r in second] == [(atom("?x a Odd"),), (atom("?x a Odd"),)]


def test_strata_of_unstratifiable_rules_raise() -> None:
    with pytest.raises(ProgramError, match="D3002"):
        strata([rule("?x a A", "?x a B", no("?x a A"))])
