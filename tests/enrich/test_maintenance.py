"""A maintained state is the closure of what is stated; what a change gives is the difference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.enrich.maintenance import Maintained
from dotr.enrich.materialiser import Limits, Materialiser
from dotr.errors import ProgramError
from dotr.joins.plan import holding, is_clash
from dotr.program import Atom, DatalogRule, Var
from dotr.rdf.terms import RDF_TYPE, Triple
from dotr.reference.enrich import closure
from tests.enrich.programs import aggregate, no, rule, term, triples
from tests.enrich.test_materialiser import _ALL, _PREDICATES, _graphs, _programs, _shown

_changes = st.lists(st.tuples(_graphs, _graphs), min_size=1, max_size=5)


def check(
    kept: Maintained, rules: list[DatalogRule], stated: set[Triple], before: set[Triple]
) -> set[Triple]:
    """The state after a change is the closure, and the change is the difference."""
    expected = closure(rules, stated)
    change = kept.changed()
    kept.commit()
    state = set(kept)
    assert state == expected, (
        f"{_shown(rules)}\nmissing {expected - state}\nextra {state - expected}\nbefore {before}\n{stated}"
    )
    assert len(kept) == len(state)
    assert set(change.added) == expected - before
    assert set(change.removed) == before - expected
    assert {triple for triple in state if kept.states(triple)} == stated
    return expected


@given(_programs(), _graphs, _changes)
def test_after_every_change_holds_the_closure_of_what_is_stated(
    rules: list[DatalogRule], start: set[Triple], changes: list[tuple[set[Triple], set[Triple]]]
) -> None:
    kept = Maintained(rules, sorted(start))
    stated, before = set(start), closure(rules, start)
    for insert, delete in changes:
        useless = kept.open(sorted(insert), sorted(delete))
        assert useless == len(delete - stated)
        stated = (stated - delete) | insert
        before = check(kept, rules, stated, before)


@given(_programs(), _graphs, _changes)
def test_an_abandoned_change_leaves_nothing(
    rules: list[DatalogRule], start: set[Triple], changes: list[tuple[set[Triple], set[Triple]]]
) -> None:
    kept = Maintained(rules, sorted(start))
    stated, before = set(start), closure(rules, start)
    for number, (insert, delete) in enumerate(changes):
        kept.open(sorted(insert), sorted(delete))
        kept.abandon()
        assert not kept.changed()
        assert set(kept) == before
        if number % 2:
            kept.open(sorted(delete), sorted(insert))
            stated = (stated - insert) | delete
            before = check(kept, rules, stated, before)


def test_a_change_that_explodes_leaves_nothing() -> None:
    rules = [rule("?x near ?y", "?x in ?r", "?y in ?r")]
    start = triples("a in r . b in r")
    kept = Maintained(rules, sorted(start), limits=Limits(instant=10))
    before = set(kept)
    crowd = [(term(f"p{n}"), term("in"), term("r")) for n in range(9)]
    with pytest.raises(ProgramError, match="D4001"):
        kept.open(crowd, triples("a in r"))
    assert not kept.changed()
    assert set(kept) == before
    assert kept.open(crowd[:1], triples("a in r")) == 0
    kept.commit()
    assert set(kept) == closure(rules, {*triples("b in r"), crowd[0]})


def test_inconsistencies_come_and_go() -> None:
    rules = [rule("?x a Clash", "?x a Cat", "?x a Dog")]
    head = Atom(Var("x"), "<urn:dotr:clash:cax-dw>", Var("x"))
    rules = [replace(rules[0], heads=(head,))]
    kept = Maintained(rules, triples("tom a Cat . rex a Dog . rex a Cat"))
    rex, tom = ((term(name), "<urn:dotr:clash:cax-dw>", term(name)) for name in ("rex", "tom"))
    assert kept.clashes() == [rex]
    kept.open(triples("tom a Dog"), triples("rex a Cat"))
    assert kept.clashes() == [tom]
    assert not any(map(is_clash, (p for _, p, _ in kept.changed().added)))
    kept.commit()
    assert kept.clashes() == [tom]
    kept.open((), triples("tom a Dog"))
    kept.commit()
    assert kept.clashes() == []


def _visits(rules: list[DatalogRule], stated: list[Triple], insert: set[Triple], delete: set[Triple]) -> int:
    kept = Maintained(rules, stated, counting=True)
    kept.store.visits[0] = 0
    kept.open(insert, delete)
    kept.commit()
    kept.open(delete, insert)
    kept.commit()
    return kept.store.visits[0]


def test_a_change_over_a_hundred_thousand_triples_looks_at_a_few_rows() -> None:
    rules = [
        rule("?x within ?y", "?x in ?y"),
        rule("?x within ?z", "?x within ?y", "?y within ?z"),
        rule("?r a Quiet", "?r a Room", no("?x in ?r")),
        rule("?r load ?n", aggregate("r", "COUNT", "x", "n", "?x in ?r")),
    ]
    found: list[Triple] = []
    for n in range(25_000):
        found.append((term(f"p{n}"), term("in"), term(f"room{n // 4}")))
    for n in range(7_000):
        found.append((term(f"room{n}"), RDF_TYPE, term("Room")))
        found.append((term(f"room{n}"), term("in"), term(f"floor{n // 20}")))
    move = triples("p7 in room6999"), triples("p7 in room1")
    assert len(Maintained(rules, found)) > 100_000
    assert _visits(rules, found, *move) < 300


def test_rows_in_doubt_are_decided_in_their_own_stratum_where_a_head_may_be_of_any_class() -> None:
    rules = [
        rule("?n a ?m", aggregate("m", "SUM", "g", "n", "?x q ?g", "?g q ?m")),
        rule("?y a A", "?y q ?y"),
        rule("?x q ?x", "?x p ?z"),
    ]
    kept = Maintained(rules, triples("n2 p n2 . n2 a A"))
    kept.open((), triples("n2 p n2 . n2 a A"))
    kept.commit()
    assert set(kept) == set()


@given(_programs(), _graphs, _changes)
def test_a_committed_change_is_taken_back_without_a_trace(
    rules: list[DatalogRule], start: set[Triple], changes: list[tuple[set[Triple], set[Triple]]]
) -> None:
    kept = Maintained(rules, sorted(start))
    stated, before = set(start), closure(rules, start)
    for insert, delete in changes:
        kept.open(sorted(insert), sorted(delete))
        kept.undo(kept.commit())
        assert set(kept) == before
        assert {triple for triple in before if kept.states(triple)} == stated
        kept.open(sorted(insert), sorted(delete))
        stated = (stated - delete) | insert
        before = check(kept, rules, stated, before)


@given(_programs(), _graphs, _graphs, st.sets(st.sampled_from(_ALL), max_size=3), _changes)
def test_with_some_relations_that_change_and_instants_over_them(
    rules: list[DatalogRule],
    start: set[Triple],
    graph: set[Triple],
    names: set[str],
    changes: list[tuple[set[Triple], set[Triple]]],
) -> None:
    changing = {term(n) if n in _PREDICATES else "a " + term(n) for n in names}
    kept = Maintained(rules, sorted(start), changing=changing)
    instants = Materialiser(rules, closed=kept.closed, ground=kept.ground)
    stated, before = set(start), closure(rules, start)
    for insert, delete in changes:
        insert, delete = ({t for t in part if holding(t)[0] in changing} for part in (insert, delete))
        kept.open(sorted(insert), sorted(delete))
        stated = (stated - delete) | insert
        before = check(kept, rules, stated, before)
        instants.instant(sorted(graph))
        assert set(instants.state()) == closure(rules, stated | graph), _shown(rules)
        instants.forget()
        assert set(instants.state()) == before
