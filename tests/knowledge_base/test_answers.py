"""What a knowledge base hands back: changes, answers, contradictions, proofs, and itself as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dotr.errors import EngineError, UsageError
from dotr.knowledge_base import KnowledgeBase
from dotr.knowledge_base.knowledge_base import as_user_has, read
from dotr.knowledge_base.model import ContradictionError, is_ill_typed, rule_name
from dotr.knowledge_base.prepared_queries import Answers, Solution
from dotr.rdf.terms import RDF_TYPE, integer, literal

P, Q = "<urn:p>", "<urn:q>"
RULE = "[?x, <urn:q>, ?y] :- [?x, <urn:p>, ?y] ."


def base(**options: object) -> KnowledgeBase:
    kb = KnowledgeBase(entailment="none", terms="canonical", **options)
    kb.add_rules(RULE)
    return kb


def fact(subject: str, value: int = 1, predicate: str = P) -> tuple[str, str, str]:
    return f"<urn:{subject}>", predicate, integer(value)


def test_a_change_is_the_net_of_a_transaction_in_canonical_order() -> None:
    kb = base()
    change = kb.insert([fact("b"), fact("a")])
    assert change.added == (fact("a"), fact("a", predicate=Q), fact("b"), fact("b", predicate=Q))
    assert not kb.insert([fact("a")])
    gone = kb.delete([fact("a"), fact("c")])
    assert gone.removed == (fact("a"), fact("a", predicate=Q))
    assert gone.useless_deletes == 1
    assert kb.remove_rules(RULE.replace(P, "<urn:r>")).useless_removals == 1


@pytest.mark.parametrize(
    ("rules", "derived"),
    [
        (RULE, [fact("b", predicate=Q)]),
        (RULE + "[?x, <urn:r>, ?y] :- [?x, <urn:q>, ?y] .", [fact("b", predicate=q) for q in (Q, "<urn:r>")]),
        ("[?x, <urn:q>, ?y] :- [?x, <urn:p>, ?y], NOT [?x, <urn:no>, ?y] .", [fact("b", predicate=Q)]),
        (
            "[?x, <urn:q>, ?n] :- AGGREGATE([?x, <urn:p>, ?y] ON ?x BIND COUNT(?y) AS ?n) .",
            [fact("b", predicate=Q)],
        ),
    ],
)
def test_what_the_last_rules_derived_goes_with_them(rules: str, derived: list[tuple[str, str, str]]) -> None:
    kb = KnowledgeBase(entailment="none", terms="canonical")
    kb.add_rules(rules)
    kb.insert([fact("b")])
    assert len(kb) == 1 + len(derived)
    assert kb.remove_rules(rules).removed == tuple(derived)
    assert (len(kb), kb.rules) == (1, ())
    assert kb.add_rules(rules).added == tuple(derived)


def test_a_watched_query_says_what_went_before_what_came() -> None:
    kb = base()
    watch = kb.watch("SELECT (COUNT(*) AS ?n) { ?x <urn:q> ?v }")
    asked = kb.watch("ASK { ?x <urn:q> 1 }")
    change = kb.insert([fact("a")])
    assert change.of(watch) == [((integer(0),), -1), ((integer(1),), 1)]
    assert change.of(asked) == [((), 1)]
    assert list(watch.answers) == [(integer(1),)]
    assert kb.insert([fact("a", predicate="<urn:other>")]).of(watch) == []


def test_answers_are_cut_in_canonical_order_and_take_values() -> None:
    kb = base()
    kb.insert([fact("a", 3), fact("b", 1), fact("c", 2)])
    assert [row.v for row in kb.query("SELECT ?v { ?x <urn:q> ?v } ORDER BY DESC(?v) LIMIT 2")] == [
        integer(3),
        integer(2),
    ]
    prepared = kb.prepare("SELECT ?x ?v { ?x <urn:q> ?v } LIMIT 1 OFFSET 1")
    assert list(prepared()) == [("<urn:b>", integer(1))]
    assert list(prepared(v=integer(2))) == []
    every = kb.prepare("SELECT ?x { ?x <urn:q> ?v }")
    assert [row["?x"] for row in every(v=integer(2))] == ["<urn:c>"]
    assert kb.prepare("ASK { ?x <urn:q> ?v }").ask(v=integer(3))
    assert not kb.prepare("ASK { ?x <urn:q> ?v }").ask(v=integer(4))
    for wrong, code in (
        (lambda: every(w=integer(1)), "D4180"),
        (lambda: kb.prepare("ASK { ?x <urn:q> ?v }")(), "D4186"),
        (lambda: kb.query("SELECT ?x { ?x <urn:q> ?v FILTER(NOW() > 1) }"), "D4112"),
        (lambda: kb.watch("SELECT ?x { ?x <urn:q> ?v FILTER(NOW() > 1) }"), "D4112"),
    ):
        with pytest.raises(UsageError) as raised:
            wrong()
        assert raised.value.diagnostics[0].code == code


def test_a_row_is_read_by_place_and_by_name() -> None:
    row = Solution((1, None), ("a", "b"))
    assert (row[0], row["a"], row["?b"], row.a, row.asdict()) == (1, 1, None, 1, {"a": 1})
    with pytest.raises(KeyError):
        row["c"]
    with pytest.raises(AttributeError):
        _ = row.c
    rows = Answers(("a",), [("<x>",), ("<y>",)], False)
    assert (len(rows), rows[-1], rows[1:]) == (2, ("<y>",), [("<y>",)])
    assert rows == [("<x>",), ("<y>",)]
    assert rows != Answers(("b",), rows.rows, False)


def test_triples_are_given_as_the_user_has_them() -> None:
    assert as_user_has(fact("a"), False) == fact("a")
    assert [str(term) for term in as_user_has(fact("a"), True)] == ["urn:a", "urn:p", "1"]


def test_what_contradicts_itself_changes_nothing_and_is_proved() -> None:
    kb = KnowledgeBase(entailment="owl2rl", terms="canonical")
    disjoint = "<http://www.w3.org/2002/07/owl#disjointWith>"
    kb.insert([("<urn:C>", disjoint, "<urn:D>"), ("<urn:a>", RDF_TYPE, "<urn:C>")])
    before = len(kb)
    with pytest.raises(ContradictionError) as raised:
        kb.insert([("<urn:a>", RDF_TYPE, "<urn:D>")])
    [one] = raised.value.contradictions
    assert (one.rule, one.subject) == ("cax-dw", "<urn:a>")
    assert str(one).startswith("cax-dw: <urn:a>\n")
    assert bool(one.proof)
    assert len(kb) == before
    assert is_ill_typed(("<urn:a>", P, literal("x", "http://www.w3.org/2001/XMLSchema#integer")))
    assert not is_ill_typed(("<urn:a>", P, "<urn:x>"))
    assert rule_name(f"{one.proof.triple[1]}") == "cax-dw"


def test_a_proof_is_true_of_what_holds_and_says_of_the_rest_what_it_lacks() -> None:
    kb = base()
    kb.insert([fact("a")])
    holds, lacks = kb.explain(fact("a", predicate=Q)), kb.explain(fact("b", predicate=Q))
    assert (bool(holds), bool(lacks)) == (True, False)
    assert [one["triple"] for one in holds.to_dict()["premises"]] == [list(fact("a"))]
    assert lacks.to_dict()["attempts"][0]["lacks"] == ["<urn:b>", P, integer(1)]
    assert repr(lacks) == f"<no proof of <urn:b> <urn:q> {integer(1)}>"
    used = [o for _, p, o in holds.to_rdf() if str(p).endswith("prov#used")]
    assert len(used) == 1


def test_a_saved_base_is_opened_as_it_was_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    kb = base()
    kb.insert([fact("a"), ("_:x", P, integer(2))])
    path = tmp_path / "kb"
    kb.save(path)
    again = KnowledgeBase.open(path, terms="canonical")
    assert sorted(again) == sorted(kb)
    assert again.is_stated(fact("a"))
    assert not again.is_stated(fact("a", predicate=Q))
    assert again.delete([fact("a")]).removed == (fact("a"), fact("a", predicate=Q))
    data = path.read_bytes()
    for damaged, code in (
        (data[:-1], "D5103"),
        (data[:-1] + bytes([data[-1] ^ 1]), "D5103"),
        (data.replace(b"base 1\n", b"base 9\n", 1), "D5104"),
        (b"", "D5103"),
        (b"x" + data, "D5103"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(EngineError) as raised:
            read(str(path))
        assert raised.value.diagnostics[0].code == code
