"""Facts of an instant: sharing, waking and counting of work; every answer as if each query ran alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.detect.thresholds import sizes
from dotr.enrich.materialiser import Materialiser
from dotr.errors import ProgramError
from dotr.events import Clock
from dotr.extract.algebra import Uncompiled, translate
from dotr.extract.extractor import Extractor, needed
from dotr.extract.printing import query_text
from dotr.extract.rewriting import visible
from dotr.lang import parse_datalog, parse_query
from dotr.program import Call, Const, Filter, GroupPattern, Select, Var
from dotr.rdf.terms import RDF_TYPE, XSD_DOUBLE, XSD_FLOAT, Triple
from dotr.reference.enrich import LiteralEnricher
from dotr.reference.extract import LiteralExtractor
from tests.extract.states import closed, enter, whole
from tests.extract.strategies import LITERALS, RESOURCES, World, ex, graphs, selects, worlds

PREFIXES = {"": "http://example.org/"}
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def why_interpreted(select: Select) -> str | None:
    """Why a query is interpreted; None if it is compiled."""
    core = translate(select).core
    return core.reason if isinstance(core, Uncompiled) else None


def query(text: str) -> Select:
    return parse_query(text, prefixes=PREFIXES)


def number(value: int) -> str:
    return f'"{value}"^^<{INTEGER}>'


@st.composite
def variants(draw: st.DrawFn, name: str, base: Select) -> dict[str, Select]:
    """One query whose last filters compare the same variables with other constants."""
    compared = draw(
        st.lists(
            st.tuples(
                st.sampled_from(visible(base.where) or ("x",)),
                st.sampled_from(["=", "!=", "<", ">", "<=", ">="]),
            ),
            max_size=2,
        )
    )
    found: dict[str, Select] = {}
    for number in range(draw(st.integers(1, 3))):
        filters = tuple(
            Filter(Call(op, (Var(name), Const(draw(st.sampled_from([*LITERALS, *RESOURCES]))))))
            for name, op in compared
        )
        where = GroupPattern((*base.where.elements, *filters))
        found[f"{name}{number}"] = replace(base, where=where)
    return found


@st.composite
def families(draw: st.DrawFn) -> dict[str, Select]:
    """A query or two, each in variants."""
    found = draw(variants("Q0", draw(selects())))
    return found | draw(variants("Q1", draw(selects()))) if draw(st.booleans()) else found


@st.composite
def family_worlds(draw: st.DrawFn) -> tuple[dict[str, Select], World]:
    """Variants of the query of a world, and sometimes of another, over its background and stream."""
    world = draw(worlds)
    found = draw(variants("Q0", world.select))
    return found | draw(variants("Q1", draw(selects()))) if draw(st.booleans()) else found, world


@given(family_worlds(), st.booleans())
def test_facts_are_those_of_each_query_alone(family: tuple[dict[str, Select], World], volatile: bool) -> None:
    queries, (_, background, steps) = family
    store = closed(background if volatile else ())
    if not volatile:
        background = []
    literal = LiteralExtractor(queries)
    extractor = Extractor(queries, store)
    clock = Clock()
    for time, (added, cut) in enumerate([([], 0), *steps]):
        new = [triple for triple in added if triple not in set(background)]
        removed = [triple for triple in background[:cut] if triple not in set(added)]
        enter(store, new, removed)
        now = clock.term(time * 1_000_000)
        wanted = literal.facts(whole(background, new, removed), time, now)
        assert extractor.facts(time, now) == wanted, [query_text(q) for q in queries.values()]


def test_a_thousand_thresholds_are_one_unit_and_one_look_at_the_value() -> None:
    queries = {
        f"Hot{i}": query(f"SELECT ?s ?v {{ ?o :sensor ?s ; :value ?v FILTER(?v > {i}) }}")
        for i in range(1000)
    }
    store = closed([], counting=True)
    extractor = Extractor(queries, store)
    assert len(extractor.units) == 1
    enter(store, [(ex("o"), ex("sensor"), ex("s")), (ex("o"), ex("value"), number(-1))])
    assert extractor.facts(0, number(0)) == {}
    enter(store, [(ex("o"), ex("sensor"), ex("s")), (ex("o"), ex("value"), number(3))])
    fact = (1, (ex("s"), number(3)), 0, "")
    assert extractor.facts(1, number(1)) == {"Hot0": [fact], "Hot1": [fact], "Hot2": [fact]}


@pytest.mark.parametrize("rules", [1, 1000])
def test_a_graph_that_no_query_can_match_costs_nothing(rules: int) -> None:
    queries = {
        f"Hot{i}": query(f"SELECT ?s {{ ?o :sensor{i} ?s ; :value ?v FILTER(?v > 5) }}") for i in range(rules)
    }
    background = [(ex(f"s{i}"), ex("in"), ex("room")) for i in range(100)]
    store = closed(background, counting=True)
    extractor = Extractor(queries, store)
    store.visits[0] = 0
    for i in range(10):
        enter(store, [(ex("a"), ex("other"), number(i)), (ex("s1"), ex("in"), ex(f"room{i}"))])
        assert extractor.facts(i, number(i)) == {}
    assert store.visits[0] == 0


def test_an_exploding_query_is_stopped_with_its_name_and_time() -> None:
    queries = {"Pairs": query("SELECT ?a ?b { ?a :p ?x . ?b :q ?y }")}
    store = closed([])
    extractor = Extractor(queries, store, limit=50)
    graph = [(ex(f"s{i}"), ex(p), number(i)) for i in range(8) for p in ("p", "q")]
    enter(store, graph)
    with pytest.raises(ProgramError, match=r"D4130.*`Pairs` has more than 50 answers at 7"):
        extractor.facts(7_000_000, number(7))
    enter(store, graph[:4])
    assert len(extractor.facts(8_000_000, number(8))["Pairs"]) == 4


def test_the_reason_for_the_full_engine_is_reported() -> None:
    assert (
        why_interpreted(query("SELECT ?x { ?x :p/:q|^:r ?y OPTIONAL { ?x :s ?z } FILTER(?y > 3) }")) is None
    )
    assert why_interpreted(query("SELECT ?x { ?x :p ?y { SELECT ?y {} } }")) == "a subquery"
    assert why_interpreted(query("SELECT ?x { { SELECT ?x { ?x :p ?y } } }")) == "a subquery"
    assert why_interpreted(query("SELECT ?x { ?x :p ?y FILTER(?y < NOW()) }")) is None


def test_queries_that_ask_for_the_time_are_answered_anew_at_every_instant() -> None:
    text = "SELECT ?x ?late { ?x :until ?y BIND(NOW() - ?y AS ?late) FILTER(?y < NOW()) }"
    for full in (False, True):
        queries = {"Due": query(text.replace("?x :until", "?x :until+" if full else "?x :until"))}
        store = closed([(ex("a"), ex("until"), number(5))])
        extractor = Extractor(queries, store)
        enter(store, [])
        assert extractor.facts(5, number(5)) == {}
        assert extractor.facts(7, number(7)) == {"Due": [(7, (ex("a"), number(2)), 0, "")]}


RULES = [
    "",
    "PREFIX : <http://example.org/> [?x, :r, ?y] :- [?x, :p, ?y] .",
    "PREFIX : <http://example.org/> [?x, :q, ?y] :- [?x, :p, ?y], NOT [?y, :r, ?x] .",
    """PREFIX : <http://example.org/>
    :C(?x) :- :D(?x), NOT :p(?x, ?y) .
    :p(?x, ?z) :- :q(?x, ?y), :q(?y, ?z) .""",
]


@given(families(), st.sampled_from(RULES), graphs, st.lists(graphs, min_size=1, max_size=3))
def test_facts_over_a_materialised_instant_are_those_of_each_query_alone(
    queries: dict[str, Select], rules: str, background: list[Triple], stream: list[list[Triple]]
) -> None:
    datalog = parse_datalog(rules)
    materialiser = Materialiser(datalog, background, needed=needed(queries))
    extractor = Extractor(queries, materialiser.store)
    enricher = LiteralEnricher(datalog, background)
    literal = LiteralExtractor(queries)
    for time, graph in enumerate([[], *stream]):
        now = number(time)
        materialiser.instant(graph)
        found = extractor.facts(time, now)
        materialiser.forget()
        wanted = literal.facts(enricher.open(graph), time, now)
        enricher.close()
        assert found == wanted, [query_text(q) for q in queries.values()]


@pytest.mark.parametrize("path", [":p", ":p+"])
def test_an_unknown_function_is_an_error_for_every_row(path: str) -> None:
    text = f"SELECT ?x (<urn:f>(?y) AS ?z) {{ ?x {path} ?y FILTER(?y = 1 || <urn:f>(?y)) }}"
    store = closed([])
    extractor = Extractor({"Q": query(text)}, store)
    enter(store, [(ex("a"), ex("p"), number(1)), (ex("b"), ex("p"), number(2))])
    assert extractor.facts(0, number(0)) == {"Q": [(0, (ex("a"), None), 0, "")]}


ROOMS = [(ex(f"room{i}"), RDF_TYPE, ex("Room")) for i in range(500)]


def test_minus_looks_at_constants_of_inline_data() -> None:
    text = "SELECT ?y ?x { ?y :q ?x MINUS { VALUES ?x { :a } BIND(?x AS ?u) } }"
    store = closed([])
    extractor = Extractor({"Q": query(text)}, store)
    enter(store, [(ex("b"), ex("q"), number(0)), (ex("b"), ex("q"), ex("a"))])
    assert extractor.facts(0, number(0)) == {"Q": [(0, (ex("b"), number(0)), 0, "")]}


def test_static_facts_are_merged_with_what_an_instant_changes_and_come_back() -> None:
    text = "SELECT ?room ?v { ?room a :Room OPTIONAL { ?o :in ?room ; :val ?v } }"
    store = closed(ROOMS)
    extractor = Extractor({"Q": query(text)}, store)
    enter(store, [])
    before = extractor.facts(0, number(0))["Q"]
    enter(store, [(ex("o"), ex("in"), ex("room7")), (ex("o"), ex("val"), number(1))])
    during = extractor.facts(0, number(0))["Q"]
    assert [f for f in during if f not in before] == [(0, (ex("room7"), number(1)), 0, "")]
    assert [f for f in before if f not in during] == [(0, (ex("room7"), None), 0, "")]
    enter(store, [])
    assert extractor.facts(0, number(0))["Q"] == before


def test_optional_over_a_background_looks_at_the_rows_an_instant_touches() -> None:
    text = "SELECT ?room ?v { ?room a :Room OPTIONAL { ?o :in ?room ; :val ?v } }"
    store = closed(ROOMS, counting=True)
    extractor = Extractor({"Q": query(text)}, store)
    graph = [(ex("o"), ex("in"), ex("room7")), (ex("o"), ex("val"), number(1))]
    for _ in range(2):
        enter(store, graph)
        store.visits[0] = 0
        assert len(extractor.facts(0, number(0))["Q"]) == len(ROOMS)
    assert store.visits[0] < 20


def test_a_right_side_wakes_nothing_that_the_background_has_no_left_side_for() -> None:
    text = "SELECT ?o ?u { ?o :val ?v OPTIONAL { ?o :unit ?u } }"
    store = closed([])
    extractor = Extractor({"Q": query(text)}, store)
    assert store.changes(ex("unit")).readers == []
    assert len(store.changes(ex("val")).readers) == 1
    enter(store, [(ex("o"), ex("val"), number(1)), (ex("o"), ex("unit"), ex("C"))])
    assert extractor.facts(0, number(0)) == {"Q": [(0, (ex("o"), ex("C")), 0, "")]}


def test_a_bind_with_the_time_does_not_see_what_is_bound_behind_it() -> None:
    text = "SELECT ?x ?v { ?x :p ?y BIND(COALESCE(?z, NOW()) AS ?v) OPTIONAL { ?x :q ?z } }"
    assert why_interpreted(query(text)) == "NOW() in a BIND that reads a variable bound after it"
    store = closed([])
    extractor = Extractor({"Q": query(text)}, store)
    enter(store, [(ex("a"), ex("p"), ex("b")), (ex("a"), ex("q"), ex("c"))])
    assert extractor.facts(3, number(3)) == {"Q": [(3, (ex("a"), number(3)), 0, "")]}


@pytest.mark.parametrize("constants", [(60, 45), (16777216, 16777217)])
def test_what_a_float_passes_is_known_before_it_is_a_double(constants: tuple[int, int]) -> None:
    queries = {f"Hot{c}": query(f"SELECT ?o ?v {{ ?o :val ?v FILTER(?v >= {c}) }}") for c in constants}
    store = closed([])
    extractor = Extractor(queries, store, shares=sizes)
    base = f"Hot{constants[0]}|any"
    assert {filtered[0] for filtered in extractor.filtered.values()} == {base}
    value = f'"16777216"^^<{XSD_FLOAT}>'  # as a float it is 16777217, too
    wide = f'"16777216"^^<{XSD_DOUBLE}>'
    enter(store, [(ex("a"), ex("val"), value)])
    most = max(constants) * 10**18
    assert extractor.facts(3, number(3)) == {base: [(3, (ex("a"), wide), 0, "", most)]}


def test_equal_facts_of_a_base_are_numbered_as_those_that_pass_are() -> None:
    queries = {f"Hot{c}": query(f"SELECT ?v {{ ?o :val ?v FILTER(?v >= {c}) }}") for c in (1, 16777217)}
    store = closed([])
    extractor = Extractor(queries, store, shares=sizes)
    narrow, wide = f'"16777216"^^<{XSD_FLOAT}>', f'"16777216"^^<{XSD_DOUBLE}>'
    enter(store, [(ex("a"), ex("val"), wide), (ex("b"), ex("val"), narrow)])
    (facts,) = extractor.facts(3, number(3)).values()
    assert facts == [(3, (wide,), 0, "", 16777217 * 10**18), (3, (wide,), 1, "", 10**18)]
