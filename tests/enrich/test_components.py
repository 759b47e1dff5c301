"""What wakes what: triggers, joins that run at once, components of relations, what a change reaches."""

from __future__ import annotations

from dotr.enrich.insertion import DirectTrigger, Triggers
from dotr.enrich.retraction import Components, affected, relations_read, unions_of
from dotr.enrich.rules import Clauses, stratify, translate, without
from dotr.joins.plan import ALL
from dotr.joins.store import EVERYTHING
from dotr.program import DatalogRule, Var
from dotr.rdf.terms import RDF_TYPE
from tests.enrich.programs import aggregate, no, rule, term

P, Q, R, S = map(term, "pqrs")


def clauses(*rules: DatalogRule) -> Clauses:
    return translate(stratify(rules))


def triggers(*rules: DatalogRule) -> Triggers:
    return Triggers.of(clauses(*rules).all)


def test_a_clause_is_woken_by_each_of_its_atoms_and_absences() -> None:
    found = triggers(rule("?x q ?y", "?x p ?y", "?y p ?x", no("?x r ?z")))
    assert [len(found.positive[P, 1]), list(found.positive)] == [2, [(P, 1)]]
    ((absence,),) = found.negative.values()
    assert absence.atom.columns == (Var("x"), Var("not z")), "what is existential in it is bound by nothing"
    assert len(absence.rest) == 3, "it is tested again"
    assert [len(one.rest) for one in found.positive[P, 1]] == [2, 2]


def direct(*rules: DatalogRule, loose: bool = False) -> DirectTrigger:
    of = clauses(*rules)
    return DirectTrigger(Triggers.of(of.all), of.level, loose)


def test_rows_are_joined_at_once_where_nothing_comes_back() -> None:
    found = direct(rule("?x q ?y", "?x p ?y"), rule("?x r ?z", "?x q ?y", "?y r ?z"))
    assert [relation in found for relation in (P, Q, R)] == [True, True, False]
    assert P not in direct(rule("?x q ?y", "?x p ?y"), loose=True)
    above = direct(rule("?x q ?y", "?x p ?y", no("?x r ?y")), rule("?x s ?y", "?x q ?y"))
    assert [P in above, Q in above] == [True, False], "only in the lowest stratum"


def test_calls_are_not_nested_too_deeply() -> None:
    chain = direct(*(rule(f"?x p{n + 1} ?y", f"?x p{n} ?y") for n in range(60)))
    inside = [term(f"p{n}") in chain for n in range(61)]
    assert [n for n, one in enumerate(inside) if not one] == [20], "then they begin anew"


def components(*rules: DatalogRule, loose: bool = False) -> Components:
    of = clauses(*rules)
    return Components(Triggers.of(of.all), of.level, loose)


def test_components_are_relations_that_derive_each_other() -> None:
    found = components(
        rule("?x q ?y", "?x p ?y"),
        rule("?x r ?y", "?x q ?y"),
        rule("?x q ?y", "?y r ?x"),
        rule("?x s ?y", "?x r ?y"),
    )
    assert found.of(Q) is found.of(R)
    assert (found.of(P).cyclic, found.of(Q).cyclic, found.of(S).cyclic) == (False, True, False)
    assert found.of(P).height > found.of(Q).height > found.of(S).height
    again = components(rule("?x q ?z", "?x q ?y", "?y q ?z"))
    assert again.of(Q).cyclic, "one that derives itself"


def test_heights_do_not_depend_on_where_the_search_begins() -> None:
    rules = [rule("?x q ?y", "?x p ?y"), rule("?x r ?y", "?x q ?y"), rule("?x s ?y", "?x p ?y")]
    for order in ((P, Q, R, S), (S, R, Q, P)):
        found = components(*rules)
        assert {one: found.of(one).height for one in order} == {P: 3, Q: 2, R: 1, S: 1}


def test_a_loose_program_has_one_component_a_stratum() -> None:
    found = components(rule("?x q ?y", "?x p ?y"), loose=True)
    assert found.of(P) is found.of(Q)
    assert found.of(P).cyclic


def test_a_change_reaches_what_reads_it_through_unions_too() -> None:
    of = clauses(
        rule("?x q ?y", "?x p ?y"),
        rule("?x r ?n", aggregate("x", "COUNT", None, "n", "?x q ?y")),
        rule("?x s ?x", "?x a ?c"),
    )
    (total,) = of.all_aggregations
    assert affected(of, [P]) == {P, Q, R, total.relation, ALL}
    assert affected(of, [R]) == {R, ALL}
    assert affected(of, []) == frozenset()
    assert affected(of, ["a " + term("C")]) >= {S, RDF_TYPE, ALL}
    assert affected(clauses(rule("?x ?p ?y", "?y ?p ?x")), [P]) is EVERYTHING


def test_unions_of_relations() -> None:
    assert unions_of(P) == (P, ALL)
    assert unions_of("agg 0") == ("agg 0",)


def test_aggregates_are_relations_that_equal_ones_share() -> None:
    count = aggregate("x", "COUNT", None, "n", "?x p ?y")
    other = aggregate("x", "MAX", "y", "n", "?x q ?y")
    of = clauses(rule("?x r ?n", count), rule("?x s ?n", count), rule("?x s ?n", other))
    assert [one.relation for one in of.all_aggregations] == ["agg 0", "agg 1"]
    assert [one.stratum for one in of.all_aggregations] == [1, 1]
    assert [one.arguments for one in of.all_aggregations] == [(), ("y",)]
    before = translate(stratify([rule("?x s ?n", other), rule("?x r ?n", count)]), [rule("?x r ?n", count)])
    assert {one.relation: one.arity for one in before.all_aggregations} == {"agg 0": 2, "agg 1": 2}
    named = {one.relation: one.totals[0].function for one in before.all_aggregations}
    assert named == {"agg 0": "COUNT", "agg 1": "MAX"}, "as they were named before"


def test_heads_that_may_be_no_triple_are_checked_and_those_that_never_are_left_out() -> None:
    ((head,),) = (one.heads for one in clauses(rule("?y q ?x", "?x p ?y")).all)
    assert head.checked_subject
    ((safe,),) = (one.heads for one in clauses(rule("?x q ?y", "?x p ?y")).all)
    assert not safe.checked_subject
    ((both,),) = (one.heads for one in clauses(rule("?s ?o ?s", "?s p ?o")).all)
    assert (both.checked_subject, both.checked_predicate) == (False, True)
    ((known,),) = (one.heads for one in clauses(rule("?p ?p ?o", "?s ?p ?o")).all)
    assert (known.checked_subject, known.checked_predicate) == (False, False)
    assert clauses(rule("1 q ?x", "?x p ?y")).all[0].heads == ()


def test_clauses_without_others_are_compared_head_by_head() -> None:
    one, other = rule("?x q ?y,?x r ?y", "?x p ?y"), rule("?x q ?y", "?x p ?y")
    assert without(clauses(one).all, clauses(one, other).all) == []
    assert len(without(clauses(one).all, clauses(other).all)) == 1
    assert relations_read(clauses(rule("?x q ?y", "?x p ?y", no("?x r ?y"))).all[0].items) == [P, R]
