"""What a deployment relies on: saved backgrounds, limits, pruning, K(t) after failures."""

from __future__ import annotations

import pytest

from dotr.enrich.analysis import reach
from dotr.enrich.closing import close_background, fingerprint, load_background, saved_lists
from dotr.enrich.materialiser import Limits, Materialiser
from dotr.enrich.owl import list_rules
from dotr.errors import DataError, EngineError, ProgramError
from dotr.joins.plan import ALL
from dotr.program import BindAtom, FilterAtom, Var
from dotr.rdf.terms import RDF_TYPE, Triple, integer
from tests.enrich import entailment
from tests.enrich.programs import aggregate, call, no, rule, term, triples
from tests.enrich.test_entailment import turtle

_QUIET = [
    rule("?x a Loud", "?x noise ?n"),
    rule("?r a Quiet", "?r a Room", no("?r a Loud")),
    rule("?b load ?n", aggregate("b", "COUNT", "r", "n", "?r in ?b")),
]
_HOUSE = triples("r a Room . q a Room . q noise n . r in b . q in b . s a Quiet")


def test_saved_background_behaves_as_the_one_that_was_closed() -> None:
    fresh = Materialiser(_QUIET, sorted(_HOUSE))
    loaded = Materialiser(_QUIET, closed=load_background(_QUIET, fresh.closed.save()))
    for graph in ("", "r noise n", "s noise n", "t in b . t in c", "q a Quiet . q noise m"):
        for materialiser in (fresh, loaded):
            materialiser.instant(sorted(triples(graph)))
        assert set(loaded.state()) == set(fresh.state())
        for materialiser in (fresh, loaded):
            materialiser.forget()


def test_saved_ontology_brings_its_lists_along() -> None:
    ontology = turtle(":C owl:unionOf (:D :E) . :F rdfs:subClassOf :D . :C owl:disjointWith :G")
    saved = entailment.materialise("owl2rl", ontology).closed.save()
    rules = [*entailment.rule_set("owl2rl"), *list_rules(saved_lists(saved))]
    loaded = Materialiser(rules, closed=load_background(rules, saved))
    loaded.instant(turtle(":a a :F, :G"))
    assert set(turtle(":a a :C")) <= set(loaded.state())
    assert len(loaded.clashes()) == 1


def test_saving_and_loading_a_pruned_background() -> None:
    needed = {"a " + term("Quiet")}
    fresh = Materialiser(_QUIET, sorted(_HOUSE), needed=needed)
    assert not any(predicate == term("in") for _, predicate, _ in fresh.background)
    loaded = Materialiser(_QUIET, closed=load_background(_QUIET, fresh.closed.save(), needed))
    loaded.instant(sorted(triples("r noise n")))
    assert (term("r"), RDF_TYPE, term("Quiet")) not in set(loaded.state())


@pytest.mark.parametrize("cut", [0, 5, 40, -1])
def test_damaged_bytes_are_refused(cut: int) -> None:
    saved = close_background(_QUIET, sorted(_HOUSE)).save()
    with pytest.raises(EngineError, match="D5101"):
        load_background(_QUIET, saved[:cut])


def test_fingerprint_distinguishes_programs_backgrounds_and_needs() -> None:
    house = sorted(_HOUSE)
    same = fingerprint(_QUIET, house, None)
    assert fingerprint(list(_QUIET), house[::-1], None) == same
    others = [
        fingerprint(_QUIET[:2], house, None),
        fingerprint(_QUIET, house[1:], None),
        fingerprint(_QUIET, house, []),
        fingerprint(_QUIET, house, ["a " + term("Quiet")]),
    ]
    assert len({same, *others}) == 5


def test_rule_set_that_explodes_is_stopped_and_named() -> None:
    pairs = rule("?x pair ?y", "?x a Thing", "?y a Thing")
    things = [(term(f"t{n}"), RDF_TYPE, term("Thing")) for n in range(60)]
    with pytest.raises(ProgramError, match=r"D4001.*more than 1000 facts of .*pair"):
        Materialiser([pairs], things, limits=Limits(background=1_000))
    materialiser = Materialiser([pairs], [], limits=Limits(instant=1_000))
    with pytest.raises(ProgramError, match="D4001"):
        materialiser.instant(things)
    assert set(materialiser.state()) == set()
    materialiser.instant(things[:3])
    assert len(list(materialiser.state())) == 3 + 9


def test_instant_that_is_refused_leaves_the_background() -> None:
    materialiser = entailment.materialise("rdfs", turtle(":C rdfs:subClassOf :D"))
    before = set(materialiser.state())
    with pytest.raises(DataError, match="D2601"):
        materialiser.instant(turtle(":a a :C . :C rdfs:subClassOf :E"))
    assert set(materialiser.state()) == before


def test_what_an_instant_in_error_stated_is_not_stated_at_the_next() -> None:
    quiet = rule("?r a Quiet", "?r a Room", no("?r a Noisy"))
    materialiser = entailment.materialise("rdfs", turtle(":C rdfs:subClassOf :D . :r a :Room"), quiet)
    with pytest.raises(DataError, match="D2601"):
        materialiser.instant(turtle(":r a :Quiet . :C rdfs:subClassOf :E"))
    materialiser.instant(turtle(":r a :Noisy"))
    assert set(turtle(":r a :Quiet")).isdisjoint(materialiser.state())


def test_long_chains_need_no_deep_calls() -> None:
    steps = [rule(f"?x s{n + 1} ?y", f"?x s{n} ?y") for n in range(3_000)]
    materialiser = Materialiser(steps, [])
    materialiser.instant([(term("a"), term("s0"), term("b"))])
    assert len(list(materialiser.state())) == 3_001
    path = [(term(f"n{n}"), term("next"), term(f"n{n + 1}")) for n in range(1_500)]
    reached = Materialiser([rule("?x a Reached", "?y a Reached", "?y next ?x")], path)
    reached.instant([(term("n0"), RDF_TYPE, term("Reached"))])
    assert sum(p == RDF_TYPE for _, p, _ in reached.state()) == 1_501


def test_computed_values_join_like_any_other() -> None:
    double = rule("?x double ?w", "?x val ?v", BindAtom(call("*", "?v", 2), Var("w")))
    same = rule("?x like ?y", "?x double ?v", "?y val ?v")
    materialiser = Materialiser([double, same], sorted(triples("a val 2 . b val 4")))
    assert triples("a like b") <= set(materialiser.background)
    materialiser.instant(sorted(triples("c val 1 . d val 8")))
    assert triples("c like a . b like d") <= set(materialiser.state())


def test_reach_follows_heads_to_bodies_and_drops_heads_nobody_needs() -> None:
    both = rule("?x p ?y, ?y q ?x", "?x r ?y")
    other = rule("?x s ?y", "?x t ?y")
    found = reach([both, other], [term("p")])
    assert found.rules == (rule("?x p ?y", "?x r ?y"),)
    assert found.relations == {term("p"), term("r")}
    assert found.keeps((term("a"), term("r"), term("b")))
    assert not found.keeps((term("a"), term("t"), term("b")))
    assert reach([both, other], [ALL]).rules == (both, other)
    assert reach([rule("?x a C", "?x u ?y")], [RDF_TYPE]).relations == {RDF_TYPE, term("u")}
    assert reach([rule("?x a ?c", "?x u ?c")], ["a " + term("C")]).relations == {"a " + term("C"), term("u")}


def test_program_describes_its_plans() -> None:
    materialiser = Materialiser([rule("?a in ?b", "?a at ?c", "?c in ?b")], sorted(triples("x in room")))
    text = materialiser.describe(lambda t: t.removeprefix("<http://example.org/").rstrip(">"))
    assert text.splitlines()[:3] == [
        "stratum 0: when ?a at ?c",
        "  find ?c in ?b   [by subject, now]",
        "  → ?a ?b",
    ]


def _chain(length: int) -> list[Triple]:
    return [(term(f"n{i:04}"), term("next"), term(f"n{i + 1:04}")) for i in range(length)]


def test_a_long_chain_closed_transitively_is_refused_in_seconds() -> None:
    rules = [rule("?x reach ?y", "?x next ?y"), rule("?x reach ?z", "?x next ?y", "?y reach ?z")]
    materialiser = Materialiser(rules, [])
    with pytest.raises(
        ProgramError, match=r"D4003.*the rules at an instant take more than 10000000 units"
    ) as at:
        materialiser.instant(_chain(3_000))
    assert "facts of <http://example.org/reach>" in at.value.diagnostics[0].notes[-1]
    assert set(materialiser.state()) == set()
    materialiser.instant(_chain(10))
    assert len(list(materialiser.state())) == 10 + 55
    with pytest.raises(ProgramError, match=r"D4003.*over the background alone take more than 10300000"):
        Materialiser(rules, _chain(3_000))


def test_a_cross_product_that_no_filter_passes_is_refused_with_its_step_and_factors() -> None:
    below = FilterAtom(call("<", call("+", "?v", call("+", "?w", "?u")), 0))
    pairs = rule("?x pair ?y", "?x val ?v", "?y val ?w", "?z val ?u", below)
    values = [(term(f"t{n}"), term("val"), integer(n)) for n in range(2_000)]
    with pytest.raises(ProgramError, match="D4003") as found:
        Materialiser([pairs], values)
    notes = " ".join(found.value.diagnostics[0].notes)
    assert "it had reached ?z " in notes
    assert notes.count("2000 rows") == 2
    materialiser = Materialiser([pairs], [])
    with pytest.raises(ProgramError, match="D4003"):
        materialiser.instant(values)
