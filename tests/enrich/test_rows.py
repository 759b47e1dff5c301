"""Rows of an instant: added once, refused, withdrawn, counted by group; statements that begin and end."""

from __future__ import annotations

import pytest

from dotr.enrich.closing import fixed_rules
from dotr.enrich.evaluation import GroupTotals, StratumEvaluator
from dotr.enrich.maintenance import CommittedRows, OpenStatements
from dotr.enrich.owl import (
    SAME_AS,
    Restrictions,
    TripleSet,
    checked,
    is_data,
    is_vocabulary,
    replaces,
    written_out,
)
from dotr.enrich.rules import Clauses, Marks, place_of, row_of, rows_in_order, stratify, translate, triples_in
from dotr.joins.plan import ALL, class_relation
from dotr.joins.store import EVERYTHING, Table, TripleIndex
from dotr.program import DatalogRule
from dotr.rdf.index import Background, Changes
from dotr.rdf.terms import RDF_TYPE, Triple, integer
from tests.enrich.programs import aggregate, no, rule, term, triples

A, B, C, P, Q, R = map(term, "defpqr")
CLASS = class_relation(term("K"))
MANY = 10**6


class FullError(Exception):
    """A relation has too many rows."""


class Instant:
    """Owns one instant over a background in which everything may change."""

    def __init__(self, background: str, *rules: DatalogRule, limit: int = MANY, **more: object) -> None:
        self.clauses: Clauses = translate(stratify(rules))
        self.index = Background(sorted(triples(background)))
        general = more.pop("general", EVERYTHING)
        arities = {one.relation: one.arity for one in self.clauses.all_aggregations}
        self.store = TripleIndex(self.index, volatile=EVERYTHING, general=general, arities=arities)

        def overflow(_: Changes) -> None:
            raise FullError

        self.stated: set[Triple] = set()
        self.evaluator = StratumEvaluator(
            self.clauses,
            self.store,
            unions=more.pop("unions", frozenset()),  # type: ignore[arg-type]  # tests
            known=more.pop("known", None),  # type: ignore[arg-type]  # tests
            limit=limit,
            overflow=overflow,
            stated=lambda _: lambda _: False,
            **more,  # type: ignore[arg-type]  # tests
        )

    def add(self, text: str) -> None:
        for subject, predicate, object_ in sorted(triples(text)):
            self.evaluator.inserters.adder(ALL)(subject, predicate, object_)
        self.evaluator.run()

    def enqueue(self, relation: str, *row: str) -> None:
        self.evaluator.retraction.enqueuer(relation)(*row)
        self.evaluator.run_all()

    def added(self, relation: str) -> list[object]:
        return list(self.store.changes(relation).added)

    def removed(self, relation: str) -> list[object]:
        return list(self.store.changes(relation).removed)


def test_a_row_that_is_there_is_not_added_again_and_new_ones_are_joined() -> None:
    found = Instant("d p e", rule("?x q ?z", "?x p ?y", "?y p ?z"))
    found.add("d p e . e p f")
    assert found.added(P) == [(B, C)]
    assert found.added(Q) == [(A, C)]
    found.add("e p f")
    assert len(found.added(P)) == 1


def test_recursion_comes_to_its_end() -> None:
    found = Instant("d q e", rule("?x q ?z", "?x q ?y", "?y q ?z"))
    found.add("e q f . f q d")
    assert len(found.added(Q)) == 8, "all pairs but the one of the background"


def test_a_relation_with_too_many_rows_is_reported() -> None:
    found = Instant("", rule("?x q ?y", "?x p ?y"), limit=2)
    found.add("d p e . e p f")
    with pytest.raises(FullError):
        found.add("f p d")


def test_restrictions_refuse_check_and_meet() -> None:
    calls: list[object] = []

    def refuse(*row: str) -> None:
        raise FullError

    restrictions = Restrictions({Q: refuse}, {P: lambda *row: calls.append(row)}, calls.append)
    found = Instant(
        "",
        rule("?x q ?y", "?x r ?y"),
        rule("?x q ?y", "?x p ?y", "?y p ?x"),
        general=frozenset(),
        restrictions=restrictions,
        known=frozenset({P, Q, R}),
        unions=frozenset({ALL}),
    )
    found.add("d p e")
    assert calls == [(A, B)]
    found.add("d unknown e")
    assert calls == [(A, B), term("unknown")]
    assert found.added(ALL)[-1] == (A, term("unknown"), B)
    with pytest.raises(FullError):
        found.add("d r e")
    said: list[str] = []
    checked(lambda *_: said.append("check"), lambda *_: said.append("add"))(A)
    assert said == ["check", "add"]


def test_a_derived_row_falls_with_its_last_derivation() -> None:
    rules = [rule("?x q ?y", "?x p ?y"), rule("?x q ?y", "?x r ?y"), rule("?x a K", "?x q ?y")]
    found = Instant("d p e . d r e . f p e . d q e . f q e . d a K . f a K", *rules)
    found.store.overlay.remove(P, (A, B))
    found.store.overlay.remove(P, (C, B))
    found.enqueue(Q, A, B)
    assert found.removed(Q) == [], "r derives it still"
    found.enqueue(Q, C, B)
    assert found.removed(Q) == [(C, B)]
    assert found.removed(CLASS) == [C]


def test_rows_that_derive_each_other_fall_together() -> None:
    rules = [rule("?y q ?x", "?x q ?y"), rule("?x q ?y", "?x p ?y")]
    found = Instant("d p e . d q e . e q d . f p f . f q f", *rules)
    found.store.overlay.remove(P, (A, B))
    found.enqueue(Q, A, B)
    assert sorted(found.removed(Q)) == [(A, B), (B, A)]  # type: ignore[type-var]  # pairs
    found.enqueue(Q, C, C)
    assert len(found.removed(Q)) == 2, "it has a derivation from outside"


def test_what_stands_under_a_not_falls_and_comes() -> None:
    found = Instant("d p e . e p f . d q e . e q f", rule("?x q ?y", "?x p ?y", no("?x r ?y")))
    found.add("d r e . f p d . f r d . e p d")
    assert found.removed(Q) == [(A, B)]
    assert found.added(Q) == [(B, A)]


def test_groups_are_counted_again_where_a_row_changes_them() -> None:
    count = aggregate("x", "SUM", "y", "n", "?x p ?y")
    found = Instant("d p 1 . d p 2 . e p 5", rule("?x q ?n", count))
    (clause,) = found.clauses.all_aggregations
    totals = GroupTotals(clause, found.store)
    assert sorted(totals.all()) == [(A, integer(3)), (B, integer(5))]
    assert totals.affected([]) == []
    found.store.tables[clause.relation] = Table([(A, integer(3)), (B, integer(5))])
    found.store.overlay.add(P, (A, integer(7)))
    found.store.overlay.remove(P, (B, integer(5)))
    touched = found.store.overlay.touched
    assert sorted(totals.affected(touched)) == [(A,), (B,)]
    assert (totals.before((A,)), totals.now((A,))) == ((A, integer(3)), (A, integer(10)))
    assert (totals.before((B,)), totals.now((B,))) == ((B, integer(5)), None)
    assert totals.before((C,)) is None


def test_a_total_without_a_value_is_no_row() -> None:
    found = Instant("d p e . e p 1", rule("?x q ?n", aggregate("x", "SUM", "y", "n", "?x p ?y")))
    (clause,) = found.clauses.all_aggregations
    assert GroupTotals(clause, found.store).all() == [(B, integer(1))]


# -- statements


def index_of(text: str) -> Background:
    return Background(sorted(triples(text)))


def test_a_row_is_stated_unless_it_is_only_derived_or_ends() -> None:
    marks = Marks(index_of("d p e . d p f"))
    assert marks.get(P) is None
    statements = marks.of(P)
    assert marks.of(P) is statements is marks.get(P)
    stated = statements.test()
    statements.derived.add((A, B))
    statements.ended[A, C] = None
    assert [stated((A, B)), stated((A, C)), stated((B, B))] == [False, False, True]
    statements.begun[A, B] = None
    assert stated((A, B))


def test_marks_are_saved_by_the_order_of_rows() -> None:
    index = index_of("d p e . d p f . e p f . d a K . e a K")
    marks = Marks(index)
    marks.of(P).derived.update({(A, C), (B, C)})
    marks.of(CLASS).derived.add(B)
    saved = marks.save(index)
    again = Marks(index, saved)
    assert again.derived() == 3, "counted without reading them"
    assert (again.of(P).derived, again.of(CLASS).derived) == ({(A, C), (B, C)}, {B})
    assert again.derived() == 3
    assert Marks(index, saved).save(index_of("e p f . d p f . d p e . e a K . d a K"))
    assert rows_in_order(index, P) == [(B, C), (A, B), (A, C)], "subjects of one value first"
    assert rows_in_order(index, CLASS) == [A, B]


def test_triples_and_their_places() -> None:
    triple: Triple = (A, RDF_TYPE, term("K"))
    assert place_of(triple) == (CLASS, A)
    assert place_of((A, P, B)) == (P, (A, B))
    assert (row_of(A), row_of((A, B))) == ((A,), (A, B))
    index = index_of("d p e . d a K . d q e")
    assert sorted(triples_in(index, lambda relation: relation != Q)) == sorted(triples("d p e . d a K"))


def opened(text: str) -> tuple[OpenStatements, Marks]:
    index = index_of(text)
    marks = Marks(index)
    return OpenStatements(index, marks, lambda triple: triple[1] != R), marks


def test_what_a_change_begins_and_ends() -> None:
    found, marks = opened("d p e . d p f . e a K")
    marks.of(P).derived.add((A, C))
    gone = [(A, P, B), (A, P, C), (A, P, A), (B, RDF_TYPE, term("K"))]
    come = [(C, P, C), (A, P, C), (B, RDF_TYPE, term("K")), (A, R, A), (A, Q, A)]
    assert found.note(come, gone) == (2, 7, True), "useless: one derived, one unknown"
    of_p = found.relations[P]
    assert (list(of_p.ended), list(of_p.begun)) == ([(A, B)], [(C, C), (A, C)])
    assert not found.relations[CLASS].ended, "it ends and begins"
    assert R not in found.relations, "nothing reads it"
    assert found.relations[Q].begun
    found.forget()
    assert (found.relations, of_p.begun, of_p.ended) == ({}, {}, {})
    assert found.note([(A, P, B)], []) == (0, 1, False)
    assert found.relations == {}, "it is stated already"


def test_rows_are_grouped_by_what_reads_them() -> None:
    found, _ = opened("")
    come = {(A, P, B): 5, (A, P, C): 6, (B, RDF_TYPE, term("K")): 7, (A, R, B): 8}
    assert found.ends_by_relation(come) == {P: {(A, B): 5, (A, C): 6}, CLASS: {B: 7}}
    assert found.by_relation(come) == {P: [(A, B), (A, C)], CLASS: [B]}


def test_a_committed_change_is_undone_with_its_marks() -> None:
    found = Instant("d p e . d q e . f a K")
    marks = Marks(found.index)
    marks.of(Q).derived.add((A, B))
    rows = CommittedRows(found.index, {}, marks, None)
    before = set(found.index)
    overlay = found.store.overlay
    overlay.remove(P, (A, B))
    overlay.remove(Q, (A, B))
    overlay.add(Q, (B, B))
    overlay.add(P, (B, C))
    statements = marks.of(P)
    statements.ended[A, B] = None
    statements.begun[B, C] = None
    undo = rows.commit(overlay.touched, [statements], found.store.changes)
    assert set(found.index) == triples("e p f . e q e . f a K")
    assert marks.of(Q).derived == {(B, B)}, "what was not stated is marked"
    assert marks.of(P).derived == set()
    rows.undo(undo)
    assert set(found.index) == before
    assert marks.of(Q).derived == {(A, B)}


def test_a_statement_of_a_derived_row_that_ends_leaves_the_row_marked() -> None:
    found = Instant("d p e . e p f")
    marks = Marks(found.index)
    marks.of(P).derived.add((B, C))
    statements = marks.of(P)
    statements.ended[A, B] = None
    statements.begun[B, C] = None
    rows = CommittedRows(found.index, {}, marks, None)
    undo = rows.commit([], [statements], found.store.changes)
    assert statements.derived == {(A, B)}
    rows.undo(undo)
    assert statements.derived == {(B, C)}
    rows.exchange({CLASS: ([A], []), P: ([], [(A, B)])})
    assert set(found.index) == triples("e p f . d a K")


# -- equality

COPIES = rule("?y ?p ?o", "?x sameAs ?y", "?x ?p ?o")
OF_PREDICATES = rule("?s ?q ?o", "?p sameAs ?q", "?s ?p ?o")


def test_rules_that_copy_between_equal_terms_are_written_out_for_known_relations() -> None:
    plain = rule("?x q ?y", "?x sameAs ?y")
    assert [replaces(one) for one in (COPIES, OF_PREDICATES, plain, rule("?x q ?y", "?x p ?y"))] == [
        True,
        True,
        False,
        False,
    ]
    assert fixed_rules([COPIES, plain]) == [plain]
    known = TripleSet([(P, SAME_AS, Q)])
    found = written_out([COPIES], [P, CLASS, ALL, SAME_AS], known)
    assert [one.heads[0].predicate for one in found] == [P, SAME_AS, RDF_TYPE]
    assert found[2].heads[0].object == term("K")
    assert [one.heads[0].predicate for one in written_out([OF_PREDICATES], [P, R], known)] == [Q]


def test_what_is_about_individuals_and_what_is_vocabulary() -> None:
    relations = (P, CLASS, ALL, RDF_TYPE, SAME_AS, "agg 0")
    assert [is_data(one) for one in relations][:4] == [True, True, False, False]
    assert not is_data("agg 0")
    subclass = term("sco")
    assert not is_data(subclass)
    assert [is_vocabulary(one, {P}) for one in (P, Q, RDF_TYPE, subclass)] == [True, False, True, True]
