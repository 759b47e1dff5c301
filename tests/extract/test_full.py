"""The full engine's answers where pyoxigraph alone would give others, or none that last."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from dotr.errors import ProgramError
from dotr.extract.full import FullQuery
from dotr.lang import parse_query
from dotr.program import Aggregate, GroupPattern, Projection, Select, Var

TURTLE = b"""
@prefix : <http://example.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a :p 1, 2, 3 ; :q "x", 4 .
:b :p 1.5, "5"^^xsd:float, 1e0 .
:c :q "y", 9, 10 .
:d :p 9223372036854775807, 1 .
:e :r 1e16, 1.0e0, -1e16 .
"""
NOW = '"12"^^<http://www.w3.org/2001/XMLSchema#integer>'


@pytest.fixture(scope="module")
def store() -> ox.Store:
    store = ox.Store()
    store.load(TURTLE, format=ox.RdfFormat.TURTLE)
    return store


def short(term: str | None) -> str:
    if term is None:
        return "-"
    text = term.replace("http://example.org/", ":").replace("^^<http://www.w3.org/2001/XMLSchema#", "^")
    return text.replace("<:", ":").rstrip(">")


def answers(store: ox.Store, text: str) -> list[str]:
    select = parse_query(text, prefixes={"": "http://example.org/"})
    return [" ".join(map(short, row)) for row in FullQuery(select).rows(store, NOW)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT (SUM(?v) AS ?t) { :a :nothing ?v }", ['"0"^integer']),
        ("SELECT (AVG(?v) AS ?t) { :a :nothing ?v }", ['"0"^integer']),
        ("SELECT (MIN(?v) AS ?t) (COUNT(?v) AS ?n) { :a :nothing ?v }", ['- "0"^integer']),
        ("SELECT ?s (SUM(?v) AS ?t) { ?s :nothing ?v } GROUP BY ?s", []),
        ("SELECT (SUM(?v) AS ?t) (AVG(?v) AS ?m) { :a :q ?v }", ["- -"]),
        ("SELECT (COUNT(?v + 1) AS ?n) (MIN(?v + 1) AS ?t) { :a :q ?v }", ['"1"^integer "5"^integer']),
        ("SELECT (SUM(?v) AS ?t) { :d :p ?v }", ['"9223372036854775808"^integer']),
        ("SELECT (SUM(?v) AS ?t) { :e :r ?v }", ['"1"^double']),
        ("SELECT (MAX(?v) AS ?t) { :c :q ?v }", ['"y"']),
        ("SELECT ?v { :c :q ?v } ORDER BY DESC(?v) LIMIT 2", ['"y"', '"10"^integer']),
        ("SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s HAVING(?n < 3)", [':d "2"^integer']),
        ("SELECT (COUNT(*) AS ?n) (?n * 2 AS ?m) { :a :p ?v }", ['"3"^integer "6"^integer']),
        ("SELECT (COUNT(DISTINCT *) AS ?n) { ?s :p [] }", ['"3"^integer']),
        ("SELECT DISTINCT ?s { ?s :p|:q ?v } ORDER BY DESC(?v) ?s LIMIT 2", [":c", ":a"]),
        ("SELECT DISTINCT ?s { ?s :p|:q ?v } ORDER BY ?v LIMIT 2 OFFSET 1", [":a", ":d"]),
        ("SELECT ?v { :b :p ?v }", ['"1"^double', '"1.5"^decimal', '"5"^double']),
        ("SELECT ?n { { SELECT (COUNT(*) AS ?n) { ?s :p ?v FILTER(?v < NOW()) } } }", ['"7"^integer']),
        ("SELECT ?s ?v { ?s :p|:p ?v FILTER(?v = 2) }", [':a "2"^integer', ':a "2"^integer']),
        ("SELECT ?x { ?x :p* :nowhere }", [":nowhere"]),
        ("SELECT ?x { :nowhere :p? ?x }", [":nowhere"]),
        ("SELECT ?x { _:b :p* :nowhere . ?x :q 9 }", [":c"]),
        ("SELECT (SUM(?n) AS ?t) {{ SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s }}", ['"8"^integer']),
    ],
)  # fmt: skip
def test_the_answers_of(store: ox.Store, text: str, wanted: list[str]) -> None:
    assert answers(store, text) == wanted


def test_ask_may_count_its_groups(store: ox.Store) -> None:
    text = "ASK {{ ?s ?p ?v }} GROUP BY ?s HAVING (COUNT(*) > {})"
    assert FullQuery(parse_query(text.format(4))).ask(store, NOW)
    assert not FullQuery(parse_query(text.format(5))).ask(store, NOW)


def test_a_query_that_the_engine_cannot_run_is_refused() -> None:
    projection = (Projection(Var("x"), Aggregate("COUNT", None)), Projection(Var("y")))
    with pytest.raises(ProgramError, match="D1290"):
        FullQuery(Select(projection, GroupPattern(())))
