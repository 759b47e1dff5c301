"""What operators of one input charge for a row, and how they are looked up by operators around them."""

from __future__ import annotations

import pytest

from dotr.budget import EXPRESSION, KEPT
from dotr.extract.full import FullQuery
from dotr.extract.query import Query
from dotr.lang import parse_query
from tests.extract.states import closed, enter, whole

NOW = '"2026-01-01T08:00:12Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def triple(subject: int, predicate: str, value: int) -> tuple[str, str, str]:
    return f"<urn:s{subject}>", f"<urn:{predicate}>", f'"{value}"^^<{INTEGER}>'


def used(text: str, rows: int) -> int:
    """Units that a query takes at an instant of so many values, of which every second has a `:q`."""
    store = closed([])
    store.moment.now = NOW
    query = Query(parse_query(f"PREFIX : <urn:> {text}"), store)
    query.static()
    enter(store, [triple(i, "p", i) for i in range(rows)] + [triple(i, "q", 1) for i in range(0, rows, 2)])
    query.meter.open(10**9)
    query.rows()
    return query.meter.used


def a_row(text: str) -> float:
    """Units that a row more costs."""
    return (used(text, 40) - used(text, 20)) / 20


PLAIN = "SELECT * { ?x :p ?v OPTIONAL { ?x :q ?w } }"


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("SELECT * { ?x :p ?v OPTIONAL { ?x :q ?w } FILTER(BOUND(?w) || ?v > 0) }", 1 + EXPRESSION),
        ("SELECT * { ?x :p ?v OPTIONAL { ?x :q ?w } BIND(COALESCE(?w, ?v) AS ?u) }", KEPT + EXPRESSION),
        ("SELECT (COUNT(?w) AS ?n) { ?x :p ?v OPTIONAL { ?x :q ?w } }", 1 + EXPRESSION),
        ("SELECT ?w (COUNT(?v) AS ?n) { ?x :p ?v OPTIONAL { ?x :q ?w } } GROUP BY ?w", 1 + 2 * EXPRESSION),
        ("SELECT * { { ?x :p ?v OPTIONAL { ?x :q ?w } } UNION { ?x :r ?v } }", KEPT),
    ],
    ids=["FILTER", "BIND", "one total", "a key and a total", "UNION"],
)
def test_an_operator_charges_for_every_row_what_the_units_say(text: str, units: int) -> None:
    assert a_row(text) - a_row(PLAIN) == units


BACKGROUND = [triple(i, "p", i) for i in range(4)] + [triple(i, "q", i % 2) for i in range(3)]
COME, GONE = [triple(9, "p", 1), triple(9, "q", 3), triple(3, "q", 0)], [triple(0, "q", 0), triple(1, "p", 1)]


@pytest.mark.parametrize(
    "body",
    [
        "?x :p ?v OPTIONAL { ?x :q ?w BIND(?w + 1 AS ?u) }",
        "?x :p ?v OPTIONAL { ?x :q ?w OPTIONAL { ?x :r ?z } BIND(?w + 1 AS ?u) }",
        "?x :p ?v MINUS { ?x :q ?w BIND(?w + 1 AS ?v) }",
        "?x :p ?v { ?x :q ?w BIND(?w + 1 AS ?v) }",
        "?x :p ?v OPTIONAL { { ?x :q ?w } UNION { ?x :p ?w BIND(?w AS ?u) } }",
        "?x :p ?v OPTIONAL { ?x :q ?w OPTIONAL { ?x :p ?z } FILTER(?w > 0) }",
        "?x :p ?v OPTIONAL { { ?x :q ?w OPTIONAL { ?x :r ?z } FILTER(?w > 0) } }",
        "?x :p ?v { { ?x :q ?w OPTIONAL { ?x :r ?z } } UNION { ?x :r ?w } FILTER(?w > 0) }",
    ],
)
@pytest.mark.parametrize("background", [True, False], ids=["background", "stream alone"])
def test_what_is_looked_up_behind_an_operator_is_what_it_has(body: str, background: bool) -> None:
    select = parse_query(f"PREFIX : <urn:> SELECT * {{ {body} }}")
    known, gone = (BACKGROUND, GONE) if background else ([], [])
    come = COME if background else BACKGROUND
    store = closed(known)
    store.moment.now = NOW
    query = Query(select, store)
    for added, removed in (([], []), (come, gone), (come[:1], []), ([], gone)):
        enter(store, added, removed)
        wanted = FullQuery(select).rows(whole(known, added, removed), NOW)
        assert query.rows() == wanted
        query.forget()


def test_what_a_bind_is_looked_up_by_narrows_what_it_binds_over() -> None:
    text = "SELECT * { ?x :p ?v OPTIONAL { ?x :p ?w OPTIONAL { ?x :r ?z } BIND(?w AS ?v) } }"
    assert used(text, 80) < 3 * used(text, 40)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?x (COUNT(?w) AS ?n) { ?x :p ?v OPTIONAL { ?x :q ?w } } GROUP BY ?x",
        "SELECT (?x AS ?y) (SUM(?w) AS ?n) { ?x :p ?v OPTIONAL { ?x :q ?w } } GROUP BY ?x",
        "SELECT ?u (MAX(?v) AS ?n) { ?x :p ?v OPTIONAL { ?x :q ?w } } GROUP BY (?w + 1 AS ?u)",
        "SELECT ?x { ?x :p ?v OPTIONAL { ?x :q ?w } } GROUP BY ?x HAVING(MAX(?v) > 0)",
        "SELECT (SUM(?v) AS ?n) { ?x :p ?v OPTIONAL { ?x :q ?w } }",
    ],
)
def test_groups_of_the_background_are_there_before_anything_comes(text: str) -> None:
    select = parse_query(f"PREFIX : <urn:> {text}")
    store = closed(BACKGROUND)
    store.moment.now = NOW
    query = Query(select, store)
    for added, removed in (([], []), (COME, GONE), (COME[:1], []), ([], GONE)):
        enter(store, added, removed)
        assert query.rows() == FullQuery(select).rows(whole(BACKGROUND, added, removed), NOW)
        query.forget()


def test_whole_solutions_are_counted() -> None:
    select = parse_query("PREFIX : <urn:> SELECT (COUNT(*) AS ?n) { ?x :p ?v OPTIONAL { ?x :q ?w } }")
    store = closed([])
    query = Query(select, store)
    enter(store, COME)
    assert query.rows() == [(f'"1"^^<{INTEGER}>',)]
