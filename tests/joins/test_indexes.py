"""What a store keeps for plans and paths, and what those who write code for it can ask."""

from __future__ import annotations

import pytest

from dotr.joins.paths import automaton
from dotr.joins.plan import ALL, AbsentPattern, BodyPattern, View, describe, plan, triple_pattern
from dotr.joins.store import TripleIndex
from dotr.program import Repeat, Var
from dotr.rdf.index import Background


def test_a_column_is_single_in_the_direction_in_which_nothing_repeats() -> None:
    store = TripleIndex(Background([("<a>", "<p>", "<b>"), ("<a>", "<p>", "<c>"), ("<d>", "<q>", "<b>")]))
    assert [store.single("<p>", 0), store.single("<p>", 1)] == [False, True]
    assert [store.single("<q>", 0), store.single("<q>", 1)] == [True, True]
    store = TripleIndex(Background([("<a>", "<p>", "<b>"), ("<c>", "<p>", "<b>")]))
    assert [store.single("<p>", 0), store.single("<p>", 1)] == [True, False]


@pytest.mark.parametrize(
    ("pattern", "view", "kept"),
    [
        (("<a>", "<p>", Var("y")), View.NEW, [(0,)]),
        ((Var("x"), "<p>", "<a>"), View.NEW, [(1,)]),
        ((Var("x"), "<p>", "<a>"), View.ADDED, [(1,)]),
        ((Var("x"), "<p>", "<a>"), View.OLD, []),
        (("<a>", "<p>", "<b>"), View.NEW, []),
        ((Var("x"), "<p>", Var("y")), View.NEW, [(0,)]),
        ((Var("x"), "<p>", Var("y")), View.ADDED, []),
        ((Var("x"), Var("p"), Var("y")), View.NEW, []),
        ((Var("x"), Var("p"), "<a>"), View.NEW, [(2,)]),
    ],
)
def test_changes_are_indexed_by_what_a_plan_looks_up_and_by_nothing_else(
    pattern: tuple[str, str, str], view: View, kept: list[tuple[int, ...]]
) -> None:
    store = TripleIndex(Background([]))
    found = triple_pattern(*pattern)
    assert isinstance(found, BodyPattern)
    the_plan = plan([found], [], store, view=view)
    store.prepare(the_plan)
    assert list(store.changes(found.relation).indexes) == kept


def test_a_path_indexes_the_changes_of_what_may_change_at_both_ends() -> None:
    store = TripleIndex(Background([]), static=["<q>"])
    for predicate in ("<p>", "<q>"):
        store.path(predicate, automaton(Repeat(predicate, 1, True)))
    assert list(store.changes("<p>").indexes) == [(0,), (1,)]
    assert list(store.changes("<q>").indexes) == []
    store.path("<p>*", automaton(Repeat("<p>", 0, True)))
    assert list(store.changes(ALL).indexes) == [(0,), (2,)]


def test_an_absence_is_written_with_how_it_is_looked_up() -> None:
    store = TripleIndex(Background([("<a>", "<p>", "<b>")]))
    found, off = (triple_pattern(Var("x"), name, end) for name, end in (("<p>", Var("y")), ("<off>", "<b>")))
    assert isinstance(found, BodyPattern)
    assert isinstance(off, BodyPattern)
    assert describe(plan([found, AbsentPattern(off)], [Var("x")], store)) == (
        "  find ?x <p> ?y   [scan, now]\n  not ?x <off> <b>   [by subject and object, now]\n  → ?x"
    )
