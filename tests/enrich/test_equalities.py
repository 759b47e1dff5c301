"""Equalities of instants: when dormant rules join, and which equalities are refused or reported."""

from __future__ import annotations

import pytest

from dotr.enrich.closing import Closed, awake, close_background
from dotr.enrich.materialiser import Equalities, JoiningError
from dotr.enrich.owl import SAME_AS, may_join_anything, mentioned, vocabulary
from dotr.errors import DataError
from dotr.joins.plan import ALL, class_relation
from dotr.joins.store import TripleIndex
from dotr.program import DatalogRule
from tests.enrich.entailment import rules_for
from tests.enrich.programs import term, triples

I1, I2, C, D, P = map(term, ("i1", "i2", "C", "D", "p"))
SCHEMA = "C sco D . p domain C . i1 p i2"


def closed(text: str = SCHEMA, *more: DatalogRule) -> Closed:
    stated = sorted(triples(text))
    return close_background([*rules_for("owl2rl", stated), *more], stated)


def equalities(of: Closed) -> Equalities:
    return Equalities(of, TripleIndex(of.index))


def test_the_first_equality_of_a_stream_lets_dormant_rules_join() -> None:
    of = closed()
    found = equalities(of)
    with pytest.raises(JoiningError):
        found.state(I1, I2)
    assert len(found.join().all) > len(of.clauses.all)
    assert found.joined
    found.state(I1, I2)


def test_an_unknown_relation_joins_once_and_only_where_rules_run() -> None:
    found = equalities(closed())
    found.meet(term("new"))
    found.join()
    with pytest.raises(JoiningError):
        found.meet(term("newer"))
    found.meet(term("newer"))
    found.meet(term("sco"))
    widened = {head.pattern.relation for clause in found.join().all for head in clause.heads}
    assert term("newer") in widened
    assert term("new") not in widened


@pytest.mark.parametrize("pair", [(C, I1), (I1, P), (term("a"), I1), (C, D), (term("sco"), I1)])
def test_classes_and_properties_are_equal_to_nothing_new(pair: tuple[str, str]) -> None:
    found = equalities(closed())
    with pytest.raises(DataError) as raised:
        found.check(*pair)
    assert raised.value.diagnostics[0].code == "D2601"
    found.check(C, C)
    found.check(I1, I2)
    found.check(I1, term("stranger"))


def test_what_the_background_states_may_be_stated_again() -> None:
    found = equalities(closed(f"{SCHEMA} . C sameAs D"))
    found.check(C, D)
    with pytest.raises(DataError):
        found.check(C, I1)


def test_an_equality_of_what_the_schema_mentions_is_reported_once_a_pair() -> None:
    of = closed("i1 sco D . i2 p i2")
    store = TripleIndex(of.index)
    found = Equalities(of, store)
    for row in ((I2, term("i3")), (term("i3"), I1), (I1, term("i3"))):
        store.overlay.add(SAME_AS, row)
    (one,) = found.findings()
    assert (one.code, one.label) == ("D2602", f"{I1} owl:sameAs {term('i3')}")


def test_vocabulary_is_what_rules_and_schema_have() -> None:
    of = closed()
    known = vocabulary(of.instantiated, [class_relation(term("Asked")), term("q")])
    assert {C, D, term("Asked"), term("q"), term("sco")} <= known
    assert not {I1, I2} & known
    assert {C, D} <= mentioned(of.instantiated)
    assert I2 not in mentioned(of.instantiated)


def test_rules_that_derive_equality_from_data_may_join_anything() -> None:
    assert not may_join_anything(closed().instantiated)
    of = closed("p a Functional . i1 p i2")
    assert not of.instantiated.dormant, "a rule has equalities: they are awake"


def test_all_rules_awake_copy_in_the_relations_that_only_a_stream_has() -> None:
    of = closed()
    for met in ((), (term("met"),)):
        found, clauses = awake(of.instantiated, of.index, [ALL], [], met)
        heads = {head.pattern.relation for clause in clauses.all for head in clause.heads}
        assert (term("met") in heads) is (term("met") in met)
        assert {P, class_relation(C)} <= heads, "of rules and background"
        assert SAME_AS in found.relations
