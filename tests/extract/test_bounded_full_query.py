"""What `--verify` asks a second time ends: work that cannot be foreseen is not given to the full engine."""

from __future__ import annotations

import time

import pyoxigraph as ox
import pytest

from dotr.errors import ProgramError
from dotr.extract.full import BoundedFullQuery, FullQuery, most_rows
from dotr.lang import parse_query
from dotr.rdf.terms import Triple
from tests.extract.states import whole

NOW = '"2026-01-01T08:00:12Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
CPU = 30.0
"""Seconds; the full engine takes minutes for the least of these, or all memory."""


def select(text: str) -> str:
    return f"PREFIX : <urn:> {text}"


def clique(nodes: int) -> ox.Store:
    edges = [(f"<urn:n{i}>", "<urn:e>", f"<urn:n{j}>") for i in range(nodes) for j in range(nodes) if i != j]
    return whole(edges, (), ())


@pytest.mark.parametrize(
    ("body", "answers"),
    [
        ("?x (((:e*)*)*)* ?y", 400),
        ("?x (:e/:e)+ ?y", 400),
        ("?x (:e|^:e)+ ?y", 400),
        ("?x :e ?a . ?a :e ?b . ?b :e ?c . ?c :e ?d . ?d :e ?f . ?f :e ?g FILTER(?g = ?nobody)", None),
        ("?x :e ?y FILTER NOT EXISTS { ?y (((:e*)*)*)* ?x }", 0),
        ("{ SELECT ?x ?y { ?x (((:e*)*)*)* ?y } }", 400),
        ("?x :e ?y MINUS { ?x (((:e*)*)*)* ?y }", 0),
    ],
)
def test_a_second_reading_ends(body: str, answers: int | None) -> None:
    store = clique(20)
    query = parse_query(select(f"SELECT * {{ {body} }}"))
    assert most_rows(query, store) > 10**4
    checked = BoundedFullQuery(query, 10**4, 2 * 10**6)
    begun = time.process_time()
    if answers is None:
        with pytest.raises(ProgramError, match="D4091"):
            checked.solutions(store, NOW)
    else:
        assert len(checked.solutions(store, NOW)) == answers
    assert time.process_time() - begun < CPU


def test_what_takes_no_time_is_asked_of_the_full_engine() -> None:
    """A chain, a star and a join over thousands of triples are foreseen to be small."""
    chain: list[Triple] = [(f"<urn:n{i}>", "<urn:e>", f"<urn:n{i + 1}>") for i in range(1000)]
    star: list[Triple] = [(f"<urn:n{i}>", f"<urn:p{j}>", f'"{i}"') for i in range(1000) for j in range(3)]
    store = whole(chain + star, (), ())
    for body in (
        "?x :p0 ?a ; :p1 ?b ; :p2 ?c",
        "?x :e ?y . ?y :e ?z OPTIONAL { ?z :p1 ?v } FILTER NOT EXISTS { ?z :e ?x }",
        ":n1 :e+ ?y",
        ":n1 :e+/:p1 ?y",
        "{ ?x :p0 ?v } UNION { ?x :p1 ?v } VALUES ?w { 1 2 3 }",
    ):
        assert most_rows(parse_query(select(f"SELECT * {{ {body} }}")), store) < 10**7


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x ?y { ?x :e+ ?y } ORDER BY DESC(?y) LIMIT 7",
        "SELECT (COUNT(*) AS ?n) { ?x :e ?y FILTER EXISTS { ?y :e ?x } }",
        "SELECT DISTINCT ?x (NOW() AS ?t) { { ?x :e ?y } UNION { ?y :e ?x } }",
        "SELECT ?x (COUNT(?y) AS ?n) { ?x :e/:e ?y OPTIONAL { ?y :f ?z } } GROUP BY ?x",
        "ASK { ?x :e ?x }",
        "ASK { ?x :e+ ?x }",
    ],
)
def test_either_way_of_asking_says_the_same(text: str) -> None:
    store, query = clique(5), parse_query(select(text))
    full, other = FullQuery(query), BoundedFullQuery(query, budget=0)
    if query.ask:
        assert other.ask(store, NOW) == full.ask(store, NOW) == BoundedFullQuery(query).ask(store, NOW)
        return
    assert other.rows(store, NOW) == full.rows(store, NOW) == BoundedFullQuery(query).rows(store, NOW)
