"""What is not wrong and hardly meant: each check by itself, on what it reports and what it lets be."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from dotr.errors import Diagnostics
from dotr.lang import parse_query
from dotr.lang.checks.advice import advise, check_relations
from dotr.lang.checks.comparisons import (
    Sort,
    attribute_sorts,
    check_choices,
    check_comparisons,
    check_possible,
    mismatch,
    sort,
    term_sort,
)
from dotr.lang.checks.lars import check_boxes
from dotr.lang.checks.lasting import Vocabulary, add_heads, check_vocabulary, required_patterns
from dotr.lang.checks.lasting import near_names as near
from dotr.lang.checks.names import Resolver
from dotr.lang.checks.scopes import check_select
from dotr.lang.grammar.cursor import Cursor
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.lang.grammar.sparql import SparqlParser
from dotr.lang.loading import Loader
from dotr.lang.operators import check_aggregates, check_every
from dotr.program import Call, Const, Program, Var
from dotr.rdf.terms import RDF_TYPE, integer, literal
from dotr.source import Source

HEAD = "PREFIX : <urn:>\nQUERY Hot := { SELECT ?s ?v WHERE { ?o :by ?s ; :v ?v } }\n"


def program_of(text: str, **files: str) -> Program:
    found = Diagnostics()
    texts = {"a.dotr": HEAD + text, **{name.replace("_", "."): text for name, text in files.items()}}
    loader = Loader(texts.__getitem__, found)
    loader.paths(["a.dotr"])
    program = Resolver(loader.loaded, found).program()
    assert [one.message for one in found.errors] == []
    return program


def codes(check: Callable[[Program, Diagnostics], None], text: str, **files: str) -> list[str]:
    found = Diagnostics()
    check(program_of(text, **files), found)
    return [one.code for one in found.found]


def rule(behind: str, trigger: str = "Hot", name: str = "R") -> str:
    return f"RULE {name} DEFINE {{ dotr_x a :E }} FROM {trigger} {behind}\n"


def query(body: str) -> str:
    return rule("", f"Q := {{ SELECT ?s WHERE {{ ?o :by ?s ; :v ?v {body} }} }}")


ALIKE = "RULE R DEFINE {{ dotr_x a :E }} FROM Q := {{ SELECT ?a WHERE {{ ?x :w ?a FILTER(?a > {}) }} }}\n"
EACH = "AND EACH A := Hot WITHIN 1 s FROM Hot "


@pytest.mark.parametrize(
    ("text", "impossible"),
    [
        (query("FILTER(?v > 5 && ?v < 5)"), True),
        (query("FILTER(?v >= 5) FILTER(?v <= 5)"), False),
        (query("FILTER(?v >= 5 && ?v < 5)"), True),
        (query("FILTER(?v = 4 && ?v = 5)"), True),
        (query("FILTER(?v > 5 || ?v < 5)"), False),
        (query("OPTIONAL { ?o :w ?w FILTER(?w > 5 && ?w < 5) }"), False),
        (query("FILTER(BOUND(?v) && false)"), True),
        (rule(EACH + "ON A.?v > 9 && A.?v < 1"), True),
        (rule("AND NOT A := Hot WITHIN 1 s FROM Hot ON A.?v > 9 && A.?v < 1"), False),
        (rule("WHERE Hot.?v > 9 && 1 > Hot.?v"), True),
        (rule("", "S") + rule("WHERE Hot.?v > 9 && Hot.?v < 1", "Hot", "S"), True),
        (rule("AND EACH Earlier := R WITHIN 1 s BEFORE Hot"), True),
        (rule("AND NOT Earlier := R WITHIN 1 s BEFORE Hot"), False),
        (rule("", "Q := { SELECT (COUNT(*) AS ?n) WHERE { ?o :v ?v FILTER(?v > 5 && ?v < 5) } }"), False),
        (rule("", "Q := { SELECT ?v WHERE { ?o :v ?v } ORDER BY ?v LIMIT 0 }"), True),
    ],
)
def test_rules_that_can_never_have_an_event(text: str, impossible: bool) -> None:
    assert ("D1328" in codes(check_possible, text)) is impossible


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("Hot.?v > Hot.?v", ["D1323"]),
        ("1 < 2", ["D1324"]),
        ('Hot.?v > "5"', ["D1325"]),
        ('"2026-01-01" < Hot.?v', ["D1325"]),
        ('Hot.time = "2026-01-01T00:00:00Z"', ["D1325"]),
        ('Hot.?v = "5"', []),
        ('Hot.?v > "5"@en', []),
        ('Hot.?v > "a5"', []),
        ("Hot.?v > Hot.?s", []),
    ],
)
def test_comparisons_that_are_decided_or_of_a_text(condition: str, found: list[str]) -> None:
    assert codes(check_comparisons, rule(f"WHERE {condition}")) == found


def test_a_comparison_with_a_parameter_is_let_be() -> None:
    assert codes(check_comparisons, "PARAMETER ?k := 5\n" + rule("WHERE ?k > 3")) == []


@pytest.mark.parametrize(
    ("behind", "found"),
    [
        (EACH, ["D1321"]),
        (EACH + "ON true", []),
        (EACH + "ON A.?s = Hot.?s", []),
        (EACH + "ON A.?v > 5", ["D1321"]),
        (EACH + "ON Hot.?v > 5", ["D1322"]),
        (EACH + "ON A.?v > 5 && A.time > Hot.time", []),
        ("AND EACH A := { SELECT ?w WHERE { ?o :w ?w } } WITHIN 1 s FROM Hot", []),
        (EACH + "ON A.?s = Hot.?s AND NOT B := Hot BETWEEN A AND Hot", ["D1321"]),
    ],
)
def test_events_that_nothing_relates(behind: str, found: list[str]) -> None:
    assert codes(check_relations, rule(behind)) == found


LATER = " AND NOT Later := Hot BETWEEN A AND Tick ON Later.?s = A.?s"


@pytest.mark.parametrize(
    ("chosen", "later", "found"),
    [
        ("LAST A := Hot WITHIN 1 s FROM Tick", LATER, ["D1327"]),
        ("EACH A := Hot WITHIN 1 s FROM Tick", LATER, []),
        ("LAST 2 A := Hot WITHIN 1 s FROM Tick", LATER, []),
        ("LAST A := Hot WITHIN 1 s FROM Tick ON true", LATER, []),
        ("LAST A := Hot WITHIN 1 s FROM Tick ON A.time < Tick.time", LATER, []),
        ("LAST A := Hot WITHIN 1 s FROM Tick", LATER.replace("A.?s", "A.?v"), []),
        ("LAST A := Hot WITHIN 1 s FROM Tick", "", []),
    ],
)
def test_last_where_each_is_meant(chosen: str, later: str, found: list[str]) -> None:
    assert codes(check_choices, rule(f"AND {chosen}{later}", "EVERY 1 s AS Tick")) == found


def test_an_aggregate_that_nothing_reads() -> None:
    count = "AND COUNT(*) AS ?n OVER A := Hot WITHIN 1 s FROM Hot "
    assert codes(check_aggregates, rule(count)) == ["D1326"]
    assert codes(check_aggregates, rule(count + "WHERE ?n > 1")) == []
    assert codes(check_aggregates, rule(count + "AND SUM(?n) AS ?m OVER B := Hot WITHIN 1 s FROM Hot")) == [
        "D1326"
    ]
    assert codes(check_aggregates, rule(count + "WITH ?x := ?n")) == []


@pytest.mark.parametrize(("every", "warned"), [("999 us", True), ("1 ms", False)])
def test_a_tick_of_less_than_a_millisecond(every: str, warned: bool) -> None:
    [one] = program_of(rule("", f"EVERY {every} AS Tick")).rules
    found = Diagnostics()
    check_every(one, found)
    assert bool(found.found) is warned


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (rule("AND EACH A := Hot WITHIN 0 s BEFORE Hot"), ["D1404"]),
        (rule("AND EACH A := Hot WITHIN 0 s FROM Hot"), []),
        (rule("AND EACH A := Hot WITHIN 366 d FROM Hot"), []),
        (rule("AND EACH A := Hot WITHIN 367 d FROM Hot"), ["D1405"]),
        (rule(EACH + "AND NOT B := Hot BETWEEN Hot AND A"), ["D1407"]),
        (rule(EACH + "AND NOT B := Hot BETWEEN A AND Hot"), []),
        (rule("AND NOT B := Hot BETWEEN Hot AND Hot"), ["D1407"]),
        (rule("AND EACH A := Hot WITHIN 0 s FROM Hot AND NOT B := Hot BETWEEN A AND Hot"), ["D1407"]),
        ("RULE R DEFINE { } FROM Hot\n", ["D1311"]),
        ("RULE R DEFINE { } FROM Hot\n" + rule("", "R", "S"), []),
        (rule("WHERE Q.?o > 5", "Q := { SELECT ?o WHERE { ?o :v ?v } }"), ["D1219"]),
        (rule("", "Q := { SELECT ?a ?b WHERE { ?x :by ?a ; :v ?b } }"), ["D1221"]),
        (rule("", "Q := { SELECT ?b ?a WHERE { ?x :by ?a ; :v ?b } }"), []),
        (ALIKE.format(1) + ALIKE.format(2).replace("RULE R", "RULE S"), ["D1222"]),
    ],
)
def test_advice(text: str, found: list[str]) -> None:
    assert codes(advise, text) == found


def test_infos_are_left_out_where_they_are_not_wanted() -> None:
    found = Diagnostics()
    advise(program_of(rule("", "Q := { SELECT ?a ?b WHERE { ?x :by ?a ; :v ?b } }")), found, infos=False)
    assert found.found == []


def test_sorts_of_terms_and_of_what_is_computed() -> None:
    sorts = {"x": Sort.RESOURCE, "n": Sort.NUMBER}.get
    terms = ("<urn:a>", integer(1), literal("a", language="en"), "<urn:dotr:parameter:k>")
    assert [term_sort(t) for t in terms] == [Sort.RESOURCE, Sort.NUMBER, Sort.TEXT, None]
    n, x, unknown = Var("n"), Var("x"), Var("u")
    assert sort(Call("+", (n, n)), sorts) is Sort.NUMBER
    assert sort(Call("+", (n, unknown)), sorts) is None
    assert sort(Call("*", (n, n)), sorts) is Sort.NUMBER
    assert mismatch(Call("=", (x, n)), sorts) == (Sort.RESOURCE, Sort.NUMBER)
    assert mismatch(Call("=", (x, x)), sorts) is None
    assert mismatch(Call("<", (x, x)), sorts) == (Sort.RESOURCE, Sort.RESOURCE)
    assert mismatch(Call("<", (unknown, n)), sorts) is None
    assert mismatch(Call("!=", (x, Const(integer(1)))), sorts) is None
    select = parse_query("SELECT ?s (STR(?s) AS ?t) (COUNT(?v) AS ?c) { ?s <urn:v> ?v } GROUP BY ?s")
    assert attribute_sorts(select) == {"s": Sort.RESOURCE, "t": Sort.TEXT, "c": Sort.NUMBER}


def test_always_that_may_hold_at_once_is_said_once() -> None:
    lars = "h(?v) :- Hot(?s, ?v) ALWAYS WITHIN 5 s .\ng(?v) :- Hot(?s, ?v) ALWAYS WITHIN 9 s .\n"
    assert codes(check_boxes, "LARS <a.lars>\n", a_lars=lars) == ["D1618"]
    assert codes(check_boxes, "LARS <a.lars>\n", a_lars=lars.replace("ALWAYS", "")) == []
    assert codes(check_boxes, "LARS <a.lars>\n", a_lars=re.sub("[59] s", "0 s", lars)) == []


# -- scopes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT ?s ?s { ?s :p ?v }", ["D1212"]),
        ("SELECT ?w { ?s :p ?v }", ["D1217"]),
        ("SELECT (?v AS ?s) { ?s :p ?v }", ["D1208"]),
        ("SELECT (?v AS ?a) (?a AS ?b) { ?s :p ?v }", []),
        ("SELECT ?v (COUNT(?s) AS ?n) { ?s :p ?v }", ["D1210"]),
        ("SELECT ?v (COUNT(?s) AS ?n) { ?s :p ?v } GROUP BY ?v", []),
        ("SELECT (?n + 1 AS ?m) (COUNT(?s) AS ?n) { ?s :p ?v }", ["D1218", "D1210"]),
        ("SELECT (COUNT(?s) AS ?n) (?n + 1 AS ?m) { ?s :p ?v }", []),
        ("SELECT * { ?s :p ?v } GROUP BY ?v", ["D1211"]),
        ("SELECT ?s { ?s :p ?v FILTER(?w > 1) }", ["D1218"]),
        ("SELECT ?s { ?s :p ?v OPTIONAL { ?s :q ?w FILTER(?w > ?v) } }", []),
        ("SELECT ?s { ?s :p ?v MINUS { ?s :q ?w FILTER(?w > ?v) } }", ["D1218"]),
        ("SELECT ?s { ?s :p ?v { ?s :q ?w FILTER(?w > ?v) } }", ["D1218"]),
        ("SELECT ?s { ?s :p ?v FILTER EXISTS { ?s :q ?w FILTER(?w > ?v) } }", []),
        ("SELECT ?s { BIND(?v AS ?w) ?s :p ?v }", ["D1218"]),
        ("SELECT ?s { ?s :p ?v BIND(1 AS ?v) }", ["D1208"]),
    ],
)
def test_variables_have_one_value_where_they_are_read(text: str, found: list[str]) -> None:
    cursor = Cursor(Source("x", "PREFIX : <urn:> " + text))
    select = SparqlParser(cursor, ExpressionParser(cursor, Mode.RULE)).query(ask=False)
    diagnostics = Diagnostics()
    check_select(select, diagnostics)
    assert [one.code for one in diagnostics.found] == found


# -- vocabulary ----------------------------------------------------------------------------------------


def test_the_nearest_word_is_a_slip_and_no_other_thing() -> None:
    words = ["<urn:a#room>", "<urn:a#room1>", "<urn:b#sensor>", '"room"']
    assert near("<urn:a#rom>", words) == "<urn:a#room>"
    assert near("<urn:c#sensor>", words) == "<urn:b#sensor>"
    assert near("<urn:a#room2>", ["<urn:a#room1>"]) == ""
    assert near("<urn:a#Room>", words) == "<urn:a#room>"
    assert near("<urn:a#door>", words) == ""
    assert near("<urn:a#room>", ["<urn:a#room>"]) == ""


@pytest.mark.parametrize(
    ("body", "warned"),
    [
        ("?s :v ?v", False),
        ("?s :w ?v", True),
        ("?s a :C", False),
        ("?s a :D", True),
        ("?s :v ?v OPTIONAL { ?s :w ?w }", False),
        ("{ ?s :w ?v } UNION { ?s :v ?v }", False),
        ("{ ?s :w ?v } UNION { ?s :u ?v }", True),
        ("?s :w* ?v", False),
        ("?s :w+ ?v", True),
        ("?s :v/^:w ?v", True),
        ("?s :v|:w ?v", False),
        ("?s ?p ?v", False),
        ("?s :derived ?v", False),
        ("?s :schema ?v", False),
    ],
)
def test_a_query_that_no_triple_can_match(body: str, warned: bool) -> None:
    text = rule("", f"Q := {{ SELECT ?s WHERE {{ {body} }} }}") + "RULES <r.dlog>\n"
    program = program_of(text, r_dlog="PREFIX : <urn:>\n:derived(?x, ?y) :- :v(?x, ?y) .\n")
    vocabulary = Vocabulary()
    vocabulary.add(
        [
            ("<urn:a>", "<urn:v>", "<urn:b>"),
            ("<urn:a>", "<urn:by>", "<urn:b>"),
            ("<urn:a>", RDF_TYPE, "<urn:C>"),
            ("<urn:schema>", "<http://www.w3.org/2000/01/rdf-schema#domain>", "<urn:C>"),
        ]
    )
    add_heads(program, vocabulary)
    found = Diagnostics()
    check_vocabulary(program, vocabulary, sampled=True, found=found)
    assert [one.code for one in found.found] == ["D1220"] * warned


def test_an_aggregate_over_nothing_needs_no_pattern_and_one_of_groups_does() -> None:
    one = parse_query("SELECT (COUNT(*) AS ?n) { ?s <urn:v> ?v }")
    groups = parse_query("SELECT ?s (COUNT(*) AS ?n) { ?s <urn:v> ?v } GROUP BY ?s")
    assert (len(list(required_patterns(one))), len(list(required_patterns(groups)))) == (0, 1)
