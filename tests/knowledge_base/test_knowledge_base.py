"""What a Python program sees of a knowledge base."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pyoxigraph as ox
import pytest
import rdflib
from rdflib.namespace import RDF, RDFS

from dotr import DataError, EngineError, KnowledgeBase, ProgramError, UsageError
from dotr.enrich import maintenance
from dotr.knowledge_base import ContradictionError
from dotr.knowledge_base.model import Model
from dotr.rdf import index

PREFIXES = {
    "": "http://e/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
}
E = rdflib.Namespace("http://e/")
NOT_STRATIFIED = "[?x, :p, ?x] :- [?x, :in, ?y], NOT [?x, :p, ?y] ."
WITHIN = "[?x, :within, ?y] :- [?x, :in, ?y] . [?x, :within, ?z] :- [?x, :within, ?y], [?y, :within, ?z] ."


def base(text: str = "", **options: object) -> KnowledgeBase:
    kb = KnowledgeBase(prefixes=PREFIXES, **options)  # type: ignore[arg-type]  # options of the tests
    if text:
        kb.insert(text)
    return kb


def test_files_graphs_and_triples_are_one_background(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("<http://e/a> <http://e/in> <http://e/b> .", encoding="utf-8")
    (tmp_path / "within.dlog").write_text(f"PREFIX : <http://e/>\n{WITHIN}", encoding="utf-8")
    graph = rdflib.Graph()
    graph.add((E.b, E["in"], E.c))
    quad = ox.Quad(ox.NamedNode("http://e/c"), ox.NamedNode("http://e/in"), ox.NamedNode("http://e/d"))
    kb = KnowledgeBase(
        tmp_path / "a.ttl", graph, [quad], [(E.d, E["in"], E.e)], [("<http://e/e>", "<http://e/in>", "<http://e/f>")],
        rules=tmp_path / "within.dlog",
    )  # fmt: skip
    assert len(kb) == 5 + 15
    assert (E.a, E.within, E.f) in kb
    assert {row.x for row in kb.query("SELECT ?x { :a :within ?x }")} == {E.b, E.c, E.d, E.e, E.f}
    assert len(kb.graph("stated")) == 5
    assert set(kb.graph()) == set(kb)


def test_rules_and_schema_change_without_closing_anew() -> None:
    kb = base(" ".join(f":n{i} a :Room ; :in :n{i // 2} ." for i in range(1, 200)), entailment="owl2rl")
    kb.insert(":in rdfs:domain :Thing .")
    with patch.object(Model, "_close_anew", side_effect=AssertionError):
        assert len(kb.add_rules("[?x, :top, ?y] :- [?x, :in, ?y], NOT [?y, :in, ?z] .").added) == 1
        assert kb.insert(":Room rdfs:subClassOf :Place .").added[0] == (E.Room, RDFS.subClassOf, E.Place)
        assert (E.n7, RDF.type, E.Place) in kb
        change = kb.add_rules(
            "[?y, :rooms, ?n] :- AGGREGATE([?x, :in, ?y], [?x, a, :Place] ON ?y BIND COUNT(?x) AS ?n) ."
        )
        assert (E.n3, E.rooms, rdflib.Literal(2)) in change.added
        change = kb.delete(":Room rdfs:subClassOf :Place .")
        assert (E.n3, E.rooms, rdflib.Literal(2)) in change.removed
        assert (E.n7, RDF.type, E.Place) in change.removed
        with pytest.raises(ProgramError):
            kb.add_rules(NOT_STRATIFIED)
        assert len(kb.remove_rules(kb.rules[0]).removed) == 1
    assert len(kb.rules) == 1


def test_a_change_has_what_came_and_went_stated_or_derived() -> None:
    kb = base(":a :in :b . :b :in :c .")
    change = kb.add_rules(WITHIN)
    assert change.added == ((E.a, E.within, E.b), (E.a, E.within, E.c), (E.b, E.within, E.c))
    change = kb.update(insert=":b :in :d .", delete=":b :in :c . :x :in :y .")
    assert change.added == ((E.a, E.within, E.d), (E.b, E["in"], E.d), (E.b, E.within, E.d))
    assert change.removed == ((E.a, E.within, E.c), (E.b, E["in"], E.c), (E.b, E.within, E.c))
    assert change.useless_deletes == 1
    assert not kb.update(insert=":b :in :d .", delete=":b :in :d .")
    change = kb.remove_rules(
        "[?one, :within, ?other] :- [?one, :in, ?other] . [?x, :not, ?x] :- [?x, :in, ?x] ."
    )
    assert len(change.removed) == 3
    assert change.useless_removals == 1
    assert len(kb.rules) == 1


@pytest.mark.parametrize(
    ("update", "error", "code"),
    [
        ({"insert": ":x :in :y", "delete": ":a :in :b ."}, DataError, "D2001"),
        ({"insert": ":x :in :y .", "add_rules": "[?x, :p, ?z] :- [?x, :in, ?y] ."}, ProgramError, "D3001"),
        ({"insert": ":x :in :y .", "add_rules": "[?x, :p, ?y :- "}, ProgramError, "D30"),
        ({"insert": ":x :in :y .", "add_rules": NOT_STRATIFIED}, ProgramError, "D3"),
        ({"insert": ":b a :Cold .", "remove_rules": WITHIN}, ContradictionError, "D3101"),
        ({"insert": ":Room owl:disjointWith :Cold . :a a :Room, :Cold ."}, ContradictionError, "cax-dw"),
        ({"insert": ":x :in :y .", "delete": "[] :in :b ."}, DataError, "D2202"),
        ({"insert": [("a", "b", "c")], "delete": ":a :in :b ."}, UsageError, "D4105"),
        ({"insert": ":x :in :y .", "until": 3}, UsageError, "D4184"),
        ({"insert": ":x :in :y .", "until": "2026-01-01T00:00:00Z"}, DataError, "D2102"),
        ({"insert": ":x :in :y .", "add_rules": 42}, UsageError, "D4181"),
        ({"delete": ":l a :List .", "insert": ":x owl:intersectionOf :nowhere ."}, DataError, "D3102"),
    ],
)  # fmt: skip
def test_a_transaction_that_fails_changes_nothing(update: dict, error: type, code: str) -> None:  # type: ignore[type-arg]
    kb = base(":a :in :b . :b a :Hot . :Hot owl:disjointWith :Cold . :l a :List .", entailment="owl2rl")
    kb.add_rules(WITHIN)
    kb.advance(3)
    watch = kb.watch("SELECT ?x { ?x a ?y }")
    before, stated, rules, answers = set(kb), set(kb.triples(which="stated")), kb.rules, list(watch.answers)
    with pytest.raises(error, match=code):
        kb.update(**update)
    assert (set(kb), set(kb.triples(which="stated")), kb.rules) == (before, stated, rules)
    assert list(watch.answers) == answers
    assert kb.insert(":c a :Hot .").of(watch) == [((E.c,), 1)]


def test_what_explodes_is_refused_and_leaves_nothing() -> None:
    kb = base("".join(f":p{n} :in :room . " for n in range(300)), budget=20_000)
    near = "[?x, :near, ?y] :- [?x, :in, ?r], [?y, :in, ?r] ."
    before = set(kb)
    with pytest.raises(ProgramError, match="D4003"):
        kb.add_rules(near)
    assert set(kb) == before
    small = base(budget=20_000)
    small.add_rules(near)
    with pytest.raises(ProgramError, match="D4003"):
        small.insert("".join(f":p{n} :in :room . " for n in range(800)))
    assert len(small) == 0
    assert len(small.insert(":a :in :room . :b :in :room .").added) == 6


def test_a_watched_query_that_takes_too_much_refuses_the_change() -> None:
    kb = base("".join(f":p{n} :in :room . " for n in range(300)), budget=20_000)
    watch = kb.watch("SELECT ?a ?b ?c { ?a :in ?x . ?b :in ?y . ?c :in ?z }")
    for rules in ("", "[?x, :near, ?y] :- [?x, :in, ?r], [?y, :next, ?r] ."):  # plain, and through an overlay
        kb.add_rules(rules)
        with pytest.raises(ProgramError, match="`watched` takes more than"):
            kb.insert(":q :in :room .")
        with pytest.raises(ProgramError, match="D4132"):
            _ = watch.answers
        assert len(kb) == 300
    kb.unwatch(watch)
    assert kb.insert(":q :in :room .").added == ((E.q, E["in"], E.room),)


def test_a_contradiction_is_reported_with_its_proof() -> None:
    text = ":Room owl:disjointWith :Floor . :Hall rdfs:subClassOf :Room . :a a :Hall ."
    kb = base(text, entailment="owl2rl")
    with pytest.raises(ContradictionError) as caught:
        kb.insert(":a a :Floor .")
    (found,) = caught.value.contradictions
    assert (found.rule, found.subject) == ("cax-dw", "<http://e/a>")
    assert ":a a :Hall   stated" in str(found.proof)
    assert kb.contradictions() == []
    lax = base(text, entailment="owl2rl", contradictions="keep")
    lax.insert(":a a :Floor .")
    assert [(one.rule, one.subject) for one in lax.contradictions()] == [("cax-dw", "<http://e/a>")]
    assert "stated" in str(lax.contradictions()[0])
    lax.delete(":a a :Floor .")
    assert lax.contradictions() == []
    with pytest.raises(ContradictionError):
        KnowledgeBase([(E.a, rdflib.RDF.type, rdflib.OWL.Nothing)], entailment="owl2rl")


def test_datatypes_are_checked_where_that_is_asked_for() -> None:
    ill = ':a :size "big"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    two = ":size a owl:FunctionalProperty . :a :size 1, 2 ."
    same = ":size a owl:FunctionalProperty . :a :size 1, 1.0 ."
    assert len(base(ill, entailment="owl2rl")) == 1
    checked = base(entailment="owl2rl", datatypes=True)
    for text, rule in ((ill, "dt-not-type"), (two, "dt-diff")):
        with pytest.raises(ContradictionError, match=rule):
            checked.insert(text)
    checked.insert(same)
    kept = base(ill, entailment="owl2rl", datatypes=True, contradictions="keep")
    assert [one.rule for one in kept.contradictions()] == ["dt-not-type"]
    kept.delete(ill)
    assert kept.contradictions() == []


def test_statements_end_at_their_time() -> None:
    kb = base()
    kb.insert(":a :in :b .", until=5)
    kb.insert(":a :in :b .", until=3)
    kb.insert(":c :in :d .", until=3)
    kb.insert(":e :in :f .")
    kb.insert(":e :in :f .", until=3)
    assert [t[0] for t in kb.advance(3).removed] == [E.c]
    assert ":a :in :b" in kb
    with pytest.raises(UsageError, match="D4184"):
        kb.insert(":g :in :h .", until=3)
    with pytest.raises(UsageError, match="D4183"):
        kb.advance(2)
    kb.insert(":a :in :b .")
    assert not kb.advance(9)
    assert not kb.query("SELECT ?x { ?x :in ?y FILTER(NOW() > 9) }")
    assert len(kb.query("SELECT ?x { ?x :in ?y FILTER(NOW() = 9) }")) == 2
    dated = base()
    with pytest.raises(UsageError, match="D4112"):
        dated.query("SELECT (NOW() AS ?now) { }")
    dated.insert(":a :in :b .", until=datetime(2026, 1, 1, tzinfo=UTC))
    assert len(dated.advance("2026-01-01T00:00:00Z").removed) == 1


def test_a_blank_node_is_of_its_call_and_may_be_handed_back() -> None:
    kb = base("_:x :in :b .")
    kb.insert("_:x :in :c .")
    nodes = {row.x for row in kb.query("SELECT ?x { ?x :in ?y }")}
    assert len(nodes) == 2
    node = kb.query("SELECT ?x { ?x :in :b }")[0].x
    kb.insert([(node, E.name, rdflib.Literal("one"))])
    assert kb.ask('ASK { ?x :in :b ; :name "one" }')
    assert kb.query("SELECT ?n { ?x :name ?n }", x=node)[0].n == rdflib.Literal("one")
    with pytest.raises(DataError, match="D2202"):
        kb.delete([(rdflib.BNode("elsewhere"), E["in"], E.b)])
    assert len(kb.delete([(node, E["in"], E.b)]).removed) == 1
    other = rdflib.BNode("elsewhere")
    kb.insert([(other, E.p, E.q), (other, E.p, E.r)])
    assert len({row.x for row in kb.query("SELECT ?x { ?x :p ?y }")}) == 1


def test_queries_have_canonical_order_values_and_rows_by_name() -> None:
    kb = base(":b :in :r . :a :in :r . :c :in :s .")
    assert [row.x for row in kb.query("SELECT ?x { ?x :in ?y } LIMIT 2")] == [E.a, E.b]
    row = kb.query("SELECT ?x ?z { ?x :in :s OPTIONAL { ?x :q ?z } }")[0]
    assert (row[0], row["x"], row.z, row.asdict()) == (E.c, E.c, None, {"x": E.c})
    asked = kb.prepare("SELECT ?x { ?x :in ?room }")
    assert [len(asked(room=E.r)), len(asked(room=E.s)), len(asked())] == [2, 1, 3]
    kb.insert(":d :in :s .")
    assert len(asked(room=E.s)) == 2
    assert kb.ask("ASK { ?x :in ?y }", y=E.r)
    assert not kb.ask("ASK { ?x :in ?y }", y=E.t)
    union = "SELECT ?x { { ?x :in ?room } UNION { ?room :in ?x } }"
    assert len(kb.query(union, room=E.s)) == 2
    full = "SELECT ?x { ?x :in ?y FILTER(REGEX(STR(?x), 'd$')) FILTER EXISTS { SELECT ?y { ?x :in ?y } } }"
    assert [row.x for row in kb.query(full)] == [E.d]
    with pytest.raises(UsageError, match="D4180"):
        kb.query("SELECT ?x { ?x :in ?y }", z=E.a)
    with pytest.raises(UsageError, match="D4186"):
        kb.query("ASK { ?x :in ?y }")
    with pytest.raises(ProgramError, match="D1202"):
        kb.query("CONSTRUCT { ?x :in ?y } WHERE { ?x :in ?y }")


def test_a_proof_and_a_missing_one() -> None:
    kb = base(":a :in :b . :b :in :c .")
    kb.add_rules(WITHIN)
    proof = kb.explain(":a :within :c")
    assert proof
    assert str(proof).count("stated") == 2
    assert len(proof.to_rdf()) > 5
    assert proof.to_dict()["premises"]
    missing = kb.explain((E.a, E.within, E.d))
    assert not missing
    assert "lacks" in str(missing)


@pytest.mark.parametrize("large", [0, 1_000])
def test_saved_and_opened_it_goes_on_as_it_was(
    tmp_path: Path, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.rdf.index.LARGE", large)
    kb = base("_:x :in :b . :b :in :c . :in rdfs:domain :Thing .", entailment="rdfs")
    kb.add_rules(WITHIN + ' [?x, :label, "a \\"b\\" ?c"] :- [?x, :in, :b], NOT [?x, :out, ?y] .')
    kb.insert(":t :in :b .", until=5)
    kb.advance(1)
    path = tmp_path / "saved.kb"
    kb.save(path)
    other = KnowledgeBase.open(path)
    assert set(other) == set(kb)
    assert other.rules == kb.rules
    node = other.query("SELECT ?x { ?x :in :b }")[0].x
    for one in (kb, other):
        assert len(one.advance(5).removed) == 6
        assert len(one.delete(":b :in :c .").removed) == 5
        one.insert("[] :in :c .")
    assert set(other) == set(kb)
    assert other.explain((node, E.within, E.b))
    kb.save(path)
    assert set(KnowledgeBase.open(path)) == set(kb)


@pytest.mark.parametrize("size", [0, 3, 1_000])
def test_marks_are_of_the_rows_whatever_the_index_became(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small and loaded into dicts, then large and mapped, changed, saved as it is, opened again."""
    path = tmp_path / "saved.kb"
    kb = base(" ".join(f":n{i % 7} :in :m{i % 5} . :m{i % 5} :in :n{i} ." for i in range(12)))
    kb.add_rules(WITHIN)
    kb.insert(":n3 :within :m4 .")
    for change in (
        lambda _: None,
        lambda one: one.delete(":n3 :in :m3 ."),
        lambda one: one.insert(":q :in :n1 ."),
    ):
        kb.save(path)
        opened = KnowledgeBase.open(path)
        monkeypatch.setattr("dotr.rdf.index.LARGE", size)
        opened.save(path)
        other = KnowledgeBase.open(path)
        for one in (kb, other):
            change(one)
        assert set(other) == set(kb)
        assert set(other.graph("stated")) == set(kb.graph("stated"))
        other.save(path)
        assert set(KnowledgeBase.open(path).graph("derived")) == set(kb.graph("derived"))


def test_a_large_base_that_became_small_is_saved_as_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "saved.kb"
    kb = base(" ".join(f":n{i} :in :m{i % 5} . :m{i % 5} :in :o ." for i in range(12)))
    kb.add_rules(WITHIN)
    monkeypatch.setattr("dotr.rdf.index.LARGE", len(kb))
    kb.save(path)
    opened = KnowledgeBase.open(path)
    for one in (kb, opened):
        one.delete(":n3 :in :m3 .")
        one.insert(":q :in :o .")
    opened.save(path)
    found = KnowledgeBase.open(path)
    assert len(found) < index.LARGE
    assert set(found) == set(kb)
    assert set(found.graph("stated")) == set(kb.graph("stated"))


@pytest.mark.parametrize("large", [0, 1_000])
def test_a_damaged_file_is_refused_with_its_code(
    tmp_path: Path, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.rdf.index.LARGE", large)
    version = b"base 2\n" if large == 0 else b"base 1\n"
    path = tmp_path / "saved.kb"
    base(":a :in :b . :b :in :c .", entailment="rdfs").save(path)
    good = path.read_bytes()
    for damaged in (
        good[:-1],
        good[:40],
        b"",
        b"<a> <b> <c> .",
        good[:100] + b"x" + good[101:],
        good + b"1\nx",
    ):
        path.write_bytes(damaged)
        with pytest.raises(EngineError, match="D5103"):
            KnowledgeBase.open(path)
    path.write_bytes(good.replace(version, b"base 9\n", 1))
    with pytest.raises(EngineError, match="D5104"):
        KnowledgeBase.open(path)
    with pytest.raises(DataError, match="D2003"):
        KnowledgeBase.open(tmp_path / "nowhere.kb")
    with pytest.raises(EngineError, match="D4201"):
        base().save(tmp_path / "no" / "folder.kb")


def test_readers_see_whole_transactions() -> None:
    """Each transaction moves a token, and a derived copy with it: a reader that sees none, two, or a token
    without its copy, saw half a transaction.
    """
    kb = base(":token :at :p0 .")
    kb.add_rules("[?x, :seen, ?y] :- [?x, :at, ?y] .")
    wrong: list[object] = []
    done = threading.Event()

    def read(number: int) -> None:
        while not done.is_set():
            with kb.reading():
                at = kb.query("SELECT ?p { :token :at ?p }").rows
                seen = kb.query("SELECT ?p { :token :seen ?p }").rows
                triples = [triple for triple in kb if triple[0] == E.token]
            if len(at) != 1 or at != seen or len(triples) != 2:
                wrong.append((number, at, seen, triples))
            if (
                len(kb.query(f"SELECT ?p {{ :token :at ?p . :token :seen ?p . FILTER(?p != {number}) }}"))
                != 1
            ):
                wrong.append(number)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(150):
            kb.update(insert=f":token :at :p{number + 1} .", delete=f":token :at :p{number} .")
            if number % 50 == 20:
                kb.update(insert=f":c{number} :q :d .", add_rules="[?x, :p, ?x] :- [?x, :q, ?y] .")
                kb.update(delete=f":c{number} :q :d .", remove_rules="[?x, :p, ?x] :- [?x, :q, ?y] .")
    except BaseException as error:
        wrong.append(error)
        raise
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    assert wrong == []


def test_writers_wait_for_each_other_and_a_reader_may_not_write() -> None:
    kb = base()

    def write(name: str) -> None:
        for number in range(50):
            kb.insert(f":{name} :n {number} .")

    threads = [threading.Thread(target=write, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(kb) == 200
    with kb.reading(), pytest.raises(UsageError, match="D4185"):
        kb.insert(":a :b :c .")


def test_what_is_watched_may_be_closed() -> None:
    kb = base()
    first, second = kb.watch("SELECT ?x { ?x :in ?y }"), kb.watch("SELECT ?x { ?x :in ?y }")
    everything = kb.watch("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
    change = kb.insert(":a :in :b, :c .")
    assert change.of(first) == change.of(second) == [((E.a,), 2)]
    assert [(int(row.n), n) for row, n in change.of(everything)] == [(0, -1), (2, 1)]
    first.close()
    assert kb.delete(":a :in :b .").of(second) == [((E.a,), -1)]
    second.close()
    assert kb.insert(":a :in :b .").of(second) == []
    with pytest.raises(UsageError, match="D4112"):
        kb.watch("SELECT (NOW() AS ?n) { ?x :in ?y }")


@pytest.mark.parametrize(
    ("options", "code"),
    [({"terms": "text"}, "D4187"), ({"entailment": "owl"}, "D4182"), ({"time_unit": "h"}, "D4102"),
     ({"contradictions": "maybe"}, "D4187")],
)  # fmt: skip
def test_options_that_are_none_are_reported(options: dict[str, str], code: str) -> None:
    with pytest.raises(UsageError, match=code):
        KnowledgeBase(**options)  # type: ignore[arg-type]  # wrong on purpose


def test_a_reader_is_not_held_up_by_a_writer_that_waits_for_it(tmp_path: Path) -> None:
    kb = base(":a :in :b .")
    watch = kb.watch("SELECT ?x { ?x :in ?y }")
    begun, done = threading.Event(), threading.Event()

    def write() -> None:
        begun.set()
        kb.insert(":c :in :d .")

    def read() -> None:
        with kb.reading():
            writer.start()
            begun.wait(10)
            threading.Event().wait(0.2)  # until the writer waits for us
            assert len(watch.answers) == len(kb.query("SELECT ?x { ?x :in ?y }")) == 1
            kb.save(tmp_path / "saved.kb")
            assert kb.explain(":a :in :b")
            assert kb.contradictions() == []
        done.set()

    writer = threading.Thread(target=write, daemon=True)
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert done.wait(30), "reader and writer wait for each other"
    writer.join(30)
    assert len(kb) == 2
    assert len(KnowledgeBase.open(tmp_path / "saved.kb")) == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?a :in ?x . ?b :in ?y . ?c :in ?z FILTER(?a = ?b && ?b = ?c && ?a != ?c) }",
        "SELECT ?a { ?a :in ?x { SELECT ?b { ?b :in ?y . ?c :in ?z . ?d :in ?u } } FILTER(?a != ?a) }",
        "ASK { ?a :in ?x { SELECT ?b { ?b :in ?y . ?c :in ?z . ?d :in ?u } } FILTER(?a != ?a) }",
    ],
    ids=["compiled", "interpreted", "asked"],
)
def test_a_query_that_takes_too_much_is_refused_and_the_next_one_answered(query: str) -> None:
    kb = base("".join(f":p{n} :in :room . " for n in range(300)), budget=20_000)
    for _ in range(2):
        with pytest.raises(ProgramError, match="D4132"):
            kb.ask(query) if query.startswith("ASK") else kb.query(query)
        assert len(kb.query("SELECT ?p { ?p :in :room }")) == 300


def test_taking_most_away_closes_what_is_left_and_gives_the_same() -> None:
    chains = [(f"<urn:{n}>", "<urn:in>", f"<urn:{n + 1}>") for n in range(2_000) if n % 4]
    rules = "[?x, <urn:in>, ?z] :- [?x, <urn:in>, ?y], [?y, <urn:in>, ?z] ."
    gone = [triple for number, triple in enumerate(chains) if number % 5]
    reported = []
    for few in (0, 10**9):
        kb = KnowledgeBase(chains, terms="canonical")
        kb.update(add_rules=rules)
        watch = kb.watch("SELECT ?x { ?x <urn:in> ?y }")
        with (
            patch.object(maintenance, "_FEW", few),
            patch.object(Model, "_close_anew", autospec=True, side_effect=Model._close_anew) as anew,
        ):
            change = kb.update(delete=[*gone, ("<urn:a>", "<urn:in>", "<urn:b>")])
        assert anew.called == (few == 0)
        reported.append((change.added, change.removed, sorted(change.of(watch)), sorted(kb)))
    assert reported[0] == reported[1]
    assert reported[0][1]
