"""Rules as functions of one new row: which heads they add, and which are no triples."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dotr.enrich.insertion import Bounds, DeltaRules, RowCode, Triggers
from dotr.enrich.rules import stratify, translate
from dotr.events import FOREVER
from dotr.joins.plan import ALL, class_relation
from dotr.joins.store import EVERYTHING, TripleIndex
from dotr.program import DatalogRule
from dotr.rdf.index import Background
from dotr.rdf.terms import RDF_TYPE
from tests.enrich.programs import rule, term, triples

A, B, C, P, Q, R = map(term, "defpqr")


class Rules:
    """Owns a rule over a background, and the rows that it added."""

    def __init__(self, background: str, of: DatalogRule, bounds: Bounds | None = None) -> None:
        self.rows: list[tuple[object, ...]] = []
        self.store = TripleIndex(
            Background(sorted(triples(background))), volatile=EVERYTHING, general=EVERYTHING
        )
        clauses = translate(stratify([of]))
        self.triggers = [one for found in Triggers.of(clauses.all).positive.values() for one in found]
        self.rules = DeltaRules(self.store, self._adder, bounds)

    def _adder(self, relation: str) -> Callable[..., None]:
        return lambda *row: self.rows.append((relation, *row))

    def come(self, place: int, *row: object) -> list[tuple[object, ...]]:
        self.rows.clear()
        self.rules.delta_rule(self.triggers[place])(*row)
        return self.rows


def test_a_row_is_joined_with_the_rest_of_the_body() -> None:
    found = Rules("e r d . e r f", rule("?x q ?z", "?x p ?y", "?y r ?z"))
    assert sorted(found.come(0, A, B)) == [(Q, A, A), (Q, A, C)]  # type: ignore[type-var]  # texts
    assert found.come(0, A, C) == []
    assert found.come(1, B, C) == [], "nothing is of p"


def test_all_heads_of_a_rule_are_added_but_not_what_is_no_triple() -> None:
    found = Rules("", rule("?y q ?x,?x r ?y,?y a K", "?x p ?y"))
    assert found.come(0, A, B) == [(Q, B, A), (R, A, B), (class_relation(term("K")), B)]
    assert found.come(0, A, term("1")) == [(R, A, term("1"))], "a literal is no subject"
    loose = Rules("", rule("?x ?y ?x", "?x p ?y"))
    assert loose.come(0, A, B) == [(ALL, A, B, A)]
    assert loose.come(0, A, "_:b") == []


def test_with_bounds_a_head_holds_as_long_as_all_it_is_derived_from() -> None:
    bounds = Bounds(lambda *_: True)
    bounds.set(R, (B, C), 7)
    found = Rules("e r d . e r f", rule("?x q ?z", "?x p ?y", "?y r ?z"), bounds)
    until = {row[2]: row[3] for row in found.come(0, A, B, 9)}
    assert until == {A: 9, C: 7}
    assert {row[2]: row[3] for row in found.come(0, A, B, FOREVER)} == {A: FOREVER, C: 7}


@pytest.mark.parametrize("kept", [frozenset[str](), frozenset({ALL}), frozenset({ALL, RDF_TYPE})])
def test_rows_go_into_the_unions_that_are_kept(kept: frozenset[str]) -> None:
    code = RowCode(TripleIndex(Background()), kept, None)
    assert code.unions_of(P) == [one for one in (ALL,) if one in kept]
    assert code.unions_of(class_relation(C)) == [one for one in (RDF_TYPE, ALL) if one in kept]
    assert code.waiting(P) == "s, o"
    assert code.waiting(class_relation(C)) == "s, None"
    bounded = RowCode(TripleIndex(Background()), kept, Bounds(lambda *_: True))
    assert (bounded.waiting(P), bounded.waiting(class_relation(C))) == ("k, e0", "s, e0")
