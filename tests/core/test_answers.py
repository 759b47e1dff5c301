"""One question about a state, and which triples may matter to questions."""

from __future__ import annotations

import pytest

from dotr.core.funnel import answer, graph_of, makes_a_graph
from dotr.errors import ProgramError, UsageError
from dotr.events import Clock
from dotr.lang import parse_datalog, parse_query
from dotr.lasting.model import ConstantsReader as Reader
from dotr.lasting.model import reader_of
from dotr.rdf.terms import RDF_TYPE, Triple, integer, literal

PREFIXES = {"": "urn:x:"}
P, Q = "<urn:x:p>", "<urn:x:q>"
STATE: list[Triple] = [("<urn:x:a>", P, integer(1)), ("<urn:x:a>", Q, "_:b"), ("_:b", P, literal("x"))]


@pytest.mark.parametrize(
    ("text", "graph"),
    [
        ("SELECT ?x WHERE { ?x a :describe }", False),
        ("# CONSTRUCT\nASK { }", False),
        ("PREFIX d: <urn:CONSTRUCT> SELECT ?x { ?x d:DESCRIBE 'CONSTRUCT' }", False),
        ("construct { ?s ?p ?o } WHERE { ?s ?p ?o }", True),
        ("PREFIX select: <urn:> DESCRIBE select:a", True),
        ('SELECT ("""CONSTRUCT""" AS ?x) {}', False),
        ("nothing", False),
    ],
)
def test_which_queries_make_a_graph(text: str, graph: bool) -> None:
    assert makes_a_graph(text) is graph


def test_a_description_goes_on_at_blank_nodes_and_comes_in_order() -> None:
    found = graph_of("DESCRIBE :a", "q", PREFIXES, STATE)
    assert [predicate for _, predicate, _ in found] == [P, Q, P]
    assert [subject[:1] for subject, _, _ in found] == ["<", "<", "_"]
    assert graph_of(
        "CONSTRUCT { ?s :r ?o } WHERE { ?s :p ?o FILTER(isNumeric(?o)) }", "q", PREFIXES, STATE
    ) == [("<urn:x:a>", "<urn:x:r>", integer(1))]


@pytest.mark.parametrize("clause", ["FILTER(NOW() > 1)", "FILTER(RAND() > 1)", "SERVICE :e { ?s ?p ?o }"])
def test_what_would_not_always_be_the_same_is_refused(clause: str) -> None:
    with pytest.raises(UsageError) as raised:
        graph_of(f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o {clause} }}", "q", PREFIXES, STATE)
    assert raised.value.diagnostics[0].code == "D4178"
    graph_of("CONSTRUCT { ?now ?p 'NOW() FROM' } WHERE { ?now ?p ?o }", "q", PREFIXES, STATE)
    with pytest.raises(ProgramError) as unreadable:
        graph_of("CONSTRUCT { ?s }", "q", PREFIXES, STATE)
    assert unreadable.value.diagnostics[0].code == "D1201"


def test_an_answer_is_rows_or_a_bool_compared_on_request() -> None:
    rows = parse_query("SELECT ?o WHERE { ?s :p ?o } ORDER BY ?o", "q", PREFIXES)
    assert answer(rows, STATE, verify=True) == [(integer(1),), (literal("x"),)]
    assert answer(parse_query("ASK { ?s :q ?o }", "q", PREFIXES), STATE, verify=True) is True
    assert answer(parse_query("ASK { ?s :r ?o }", "q", PREFIXES), STATE, verify=True) is False
    now = parse_query("SELECT (NOW() AS ?n) WHERE { }", "q", PREFIXES)
    assert answer(now, STATE, (Clock(), 3_000_000), verify=True) == [(integer(3),)]
    many = [(f"<urn:x:{n}>", P, integer(n)) for n in range(100)]
    wide = parse_query("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", "q", PREFIXES)
    with pytest.raises(ProgramError) as raised:
        answer(wide, many, budget=1)
    assert raised.value.diagnostics[0].code == "D4132"


def reader(*queries: str, rules: str = "") -> Reader | None:
    return reader_of(
        [parse_query(text, "q", PREFIXES) for text in queries], parse_datalog(rules, "r", PREFIXES)
    )


A, B, C = "<urn:x:a>", "<urn:x:b>", "<urn:x:c>"
ALL = [(s, p, o) for p in (P, Q) for s in (A, B, C) for o in (A, B, C)]


def test_only_what_matches_constants_matters() -> None:
    found = reader("SELECT ?x { ?x :p :a . :b :p ?x }", "ASK { :c :p :b }")
    assert found is not None
    kept = [(s, o) for s, p, o in found(ALL) if p == P]
    assert kept == [(A, A), (B, A), (B, B), (B, C), (C, A), (C, B)]
    assert len([p for _, p, _ in found(ALL) if p == Q]) == 9, "nobody limits it"


def test_one_pattern_without_constants_or_a_rule_reads_all_of_a_relation() -> None:
    assert reader("SELECT ?x { ?x :p :a }", "SELECT ?x { ?x :p ?y }") is None
    assert reader("SELECT ?x { ?x :p :a }", rules="[?x, :q, ?y] :- [?x, :p, ?y] .") is None
    assert reader("SELECT ?x { ?x :p :a }", rules="[?x, :q, ?y] :- [?x, :r, ?y] .") is not None
    assert reader("SELECT ?x { ?x :p :a . ?x ?q ?y }") is None
    assert reader("SELECT ?x { ?x a :a }") is None
    assert reader() is None


def test_a_subject_alone_is_wider_than_one_with_its_object() -> None:
    for texts in (
        ("ASK { :a :p :b }", "SELECT ?x { :a :p ?x }"),
        ("SELECT ?x { :a :p ?x }", "ASK { :a :p :b }"),
    ):
        found = reader(*texts)
        assert found is not None
        assert [o for s, p, o in found(ALL) if p == P and s == A] == [A, B, C]
        assert [s for s, p, _ in found(ALL) if p == P and s != A] == []
    kept = reader("ASK { :a :p :b }")
    assert kept is not None
    assert kept([(A, RDF_TYPE, B), (A, P, C), (A, P, B)]) == [(A, RDF_TYPE, B), (A, P, B)]
