"""A conjunction over a store: its answers, its changes, its bounds, and the solutions that use given rows."""

from __future__ import annotations

import pytest

from dotr.extract.algebra import BasicGraphPattern, Pattern
from dotr.extract.full import Explosion
from dotr.extract.leaves import NO_LIMIT, ExistsLeaf, Leaf, bounded, without
from dotr.extract.operators import aggregate as total
from dotr.extract.query import UsingRows, may_use
from dotr.joins.plan import View
from dotr.program import Bind, Call, Const, Filter, Repeat, Var
from dotr.rdf.terms import RDF_TYPE, Triple, integer
from tests.extract.states import closed, enter

P, Q = "<urn:p>", "<urn:q>"
X, Y, Z, W = Var("x"), Var("y"), Var("z"), Var("w")
CHAIN = BasicGraphPattern((Pattern(X, P, Y), Pattern(Y, Q, Z)))


def edge(subject: str, predicate: str, object_: str) -> Triple:
    return f"<urn:{subject}>", predicate, f"<urn:{object_}>"


BACKGROUND = [edge("a", P, "b"), edge("b", Q, "c")]


def test_a_row_beyond_the_limit_explodes() -> None:
    rows: list[tuple[str | None, ...]] = []
    out = bounded(rows, 1)
    out(("a",))
    with pytest.raises(Explosion):
        out(("b",))
    free = bounded(rows, NO_LIMIT)
    free(("c",))
    leaf = Leaf(BasicGraphPattern((Pattern(X, P, Y),)), closed([*BACKGROUND, edge("c", P, "d")]), limit=1)
    with pytest.raises(Explosion):
        leaf.rows(View.OLD, {})


def test_an_unknown_variable_is_an_error_in_an_expression() -> None:
    assert without(Call("=", (X, W)), ["x"]) == Call("=", (X, Call("COALESCE", ())))


def test_answers_of_the_background_and_what_an_instant_adds_and_takes() -> None:
    store = closed(BACKGROUND)
    leaf = Leaf(CHAIN, store)
    row = ("<urn:a>", "<urn:b>", "<urn:c>")
    assert leaf.schema == ("x", "y", "z")
    assert leaf.rows(View.OLD, {}) == [row]
    assert leaf.rows(View.OLD, {"x": "<urn:z>"}) == []
    assert leaf.any()
    enter(store, [edge("d", P, "b"), edge("b", Q, "e")], [edge("a", P, "b")])
    added = [("<urn:d>", "<urn:b>", f"<urn:{name}>") for name in "ce"]
    assert sorted(leaf.changes()) == [(row, -1), (added[0], 1), (added[1], 1)]
    assert not leaf.additive


def test_binds_come_after_the_plan_and_filters_over_them_after_that() -> None:
    text = Call("STR", (Y,))
    steps = (Bind(text, W), Filter(Call("=", (W, Const('"urn:b"')))))
    leaf = Leaf(BasicGraphPattern((Pattern(X, P, Y),), steps), closed([*BACKGROUND, edge("c", P, "d")]))
    assert leaf.schema == ("w", "x", "y")
    assert leaf.rows(View.OLD, {}) == [('"urn:b"', "<urn:a>", "<urn:b>")]
    assert leaf.certain == {"x", "y"}
    assert leaf.rows(View.OLD, {"w": '"urn:d"'}) == []
    assert leaf.binds("xy")
    assert not leaf.binds("xw")


def test_an_exists_is_asked_with_the_values_that_a_row_has() -> None:
    store = closed(BACKGROUND)
    branches = [BasicGraphPattern((Pattern(X, Q, Y),))]
    leaf = ExistsLeaf(branches, store, ("x", "y"), frozenset(), store.meter)
    assert leaf.found(View.OLD, ("<urn:b>", None))
    assert leaf.found(View.OLD, (None, None))
    assert not leaf.found(View.OLD, ("<urn:b>", "<urn:x>"))


def test_solutions_that_use_given_rows_of_a_relation() -> None:
    store = closed([*BACKGROUND, edge("d", P, "b"), edge("d", P, "x")])
    using = UsingRows(Leaf(CHAIN, store), P)
    assert using([("<urn:d>", "<urn:b>"), ("<urn:d>", "<urn:x>")]) == [("<urn:d>", "<urn:b>", "<urn:c>")]
    assert using([]) == []


def test_which_conjunctions_are_sets_of_rows_of_one_relation_each() -> None:
    store = closed(BACKGROUND)
    assert may_use(Leaf(CHAIN, store))
    assert not may_use(Leaf(CHAIN, store, limit=5))
    assert not may_use(Leaf(BasicGraphPattern((Pattern(X, W, Y),)), store))
    assert not may_use(Leaf(BasicGraphPattern((Pattern(X, RDF_TYPE, Y),)), store))
    assert not may_use(Leaf(BasicGraphPattern((Pattern(X, Repeat(P, 1, unbounded=True), Y),)), store))


def test_the_average_of_nothing_is_zero_in_queries() -> None:
    assert total("AVG", False, []) == integer(0)
    assert total("MIN", False, []) is None
    assert total("SUM", True, [integer(2), integer(2)]) == integer(2)
