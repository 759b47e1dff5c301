"""Bounds of rows: what is due when, what a deletion or a longer derivation changes, and undoing it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dotr.enrich.expiration import Expiration, may_expire
from dotr.enrich.insertion import Bounds
from dotr.enrich.rules import stratify, translate
from dotr.events import FOREVER
from dotr.program import DatalogRule
from dotr.rdf.index import Overlay
from tests.enrich.programs import aggregate, no, rule

R, A, B, C = "<urn:r>", ("a", "a"), ("b", "b"), ("c", "c")


def bounds(*stated: object) -> Bounds:
    return Bounds(lambda _, key: key in stated)


def state(of: Bounds) -> Any:
    return copy.deepcopy((dict(of.of(R)), dict(of.own(R))))


def test_what_is_due_comes_once_in_order_and_may_be_put_back() -> None:
    found = bounds()
    for key, until in ((A, 5), (B, 3), (C, 9)):
        found.set(R, key, until)
    popped = found.pop_due(5)
    assert popped == [(R, 3, [B]), (R, 5, [A])]
    assert found.pop_due(5) == []
    found.set(R, A, 3)
    found.put_back(popped)
    assert [(due, sorted(keys)) for _, due, keys in found.pop_due(9)] == [(3, [A, B]), (5, [A]), (9, [C])]


def test_a_queue_may_name_rows_that_are_not_due() -> None:
    found = bounds()
    found.set(R, A, 3)
    found.set(R, B, 3)
    found.set(R, A, 7)
    ((_, due, keys),) = found.pop_due(3)
    assert list(found.drop_due(R, due, [*keys, C])) == [B]
    assert found.of(R) == {A: 7}


def test_a_row_that_never_ends_has_no_bound() -> None:
    found = bounds()
    found.beginner(R)({A: 4, B: FOREVER, C: 4})
    assert found.of(R) == {A: 4, C: 4}
    assert found.pop_due(4) == [(R, 4, [A, C])]
    found.set(R, A, FOREVER)
    assert found.of(R) == {C: 4}
    assert (found.drop(R, A), found.drop(R, C), found.of(R)) == (FOREVER, 4, {})


def test_a_stated_row_that_is_derived_for_longer_keeps_the_end_of_its_statement() -> None:
    found = bounds(A)
    found.set(R, A, 3)
    found.derive(R, A, 8)
    found.derive(R, A, 9)
    found.derive(R, B, 6, read=False)
    assert (found.own(R), found.of(R)) == ({A: 3}, {A: 9, B: 6})
    assert found.looked_at == 9, "its consequences keep their bounds; what nothing reads has none"


def test_every_change_is_undone_by_its_log() -> None:
    found = bounds(A)
    found.set(R, A, 3)
    found.set(R, B, 4)
    found.log.clear()
    before = state(found)
    found.derive(R, A, 8)
    found.set(R, C, 5)
    found.set(R, B, FOREVER)
    found.drop(R, A)
    found.set_own(R, A, None)
    found.drop_due(R, 5, [C])
    assert state(found) != before
    found.undo(found.log)
    assert state(found) == before


@pytest.mark.parametrize(
    ("rules", "may"),
    [
        ([], False),
        ([rule("?x q ?y", "?x p ?y")], False),
        ([rule("?x q ?y", "?x p ?y"), rule("?x p ?y", "?y q ?x")], True),
        ([rule("?x q ?z", "?x q ?y", "?y q ?z")], True),
        ([rule("?x q ?y", "?x p ?y", no("?x r ?y"))], False),
        ([rule("?x ?p ?y", "?y ?p ?x")], False),
        ([rule("?x a ?c", "?x p ?c")], False),
        ([rule("?x a C", "?x p ?y"), rule("?x p ?x", "?x a C")], True),
        ([rule("?x a C", "?x p ?y")], False),
        ([rule("?x q ?n", aggregate("x", "COUNT", None, "n", "?x p ?y"))], False),
    ],
)
def test_rows_expire_where_recursive_derivations_alone_say_how_long_they_hold(
    rules: list[DatalogRule], may: bool
) -> None:
    assert may_expire(translate(stratify(rules))) is may


def expiring() -> Expiration:
    return Expiration(lambda *_: True)


def test_a_statement_that_ends_later_is_not_in_doubt_and_one_that_ends_earlier_is() -> None:
    found = expiring()
    found.bounds.set(R, A, 5)
    assert found.move(R, A, 7) is False
    assert found.bounds.of(R)[A] == 7
    assert found.move(R, A, 3) is True
    assert found.end_of(("a", R, "a")) == 3
    assert found.move(R, A, 4) is False, "it was not what made the row hold until 7"
    assert (found.bounds.of(R)[A], found.bounds.own(R)[A]) == (7, 4)


def test_a_derived_row_that_is_stated() -> None:
    found = expiring()
    found.bounds.set(R, A, 5)
    found.begin(R, A, 5)
    assert found.bounds.own(R) == {}
    found.begin(R, A, 3)
    assert (found.end_of(("a", R, "a")), found.bounds.of(R)[A]) == (3, 5)
    found.bounds.set_own(R, A, None)
    found.begin(R, A, FOREVER)
    assert (found.end_of(("a", R, "a")), found.bounds.of(R)) == (FOREVER, {})


def test_ended_statements_leave_in_doubt_what_is_not_due_and_not_derived_for_longer() -> None:
    found = expiring()
    found.bounds.set(R, A, 5)
    found.bounds.set(R, B, 9)
    found.bounds.set_own(R, C, 2)
    assert found.end(R, [A, B, C], 5) == [(R, B)]
    assert found.bounds.own(R) == {}


def test_committing_drops_the_statements_of_removed_rows_and_undo_brings_them_back() -> None:
    found = expiring()
    found.bounds.set(R, A, 5)
    found.bounds.set_own(R, A, 3)
    found.bounds.log.clear()
    overlay = Overlay()
    changes = overlay.changes(R, 2)
    overlay.remove(R, A)
    undo = found.commit([changes])
    assert found.bounds.own(R) == {}
    found.undo(undo)
    assert found.bounds.own(R) == {A: 3}
