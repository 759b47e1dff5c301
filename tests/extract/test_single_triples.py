"""What one triple gives over the background alone is what an overlay with that triple gives."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import dotr
from dotr.budget import Exhausted
from dotr.detect.thresholds import sizes
from dotr.events import Fact
from dotr.extract.extractor import Extractor
from dotr.extract.printing import query_text
from dotr.extract.rewriting import visible
from dotr.program import GroupPattern, Projection, Select, TriplePattern, Triples, Union, Var
from dotr.rdf.terms import Term, Triple
from tests.extract.states import closed, enter
from tests.extract.strategies import LITERALS, PREDICATES, RESOURCES, ex, selects, triples
from tests.extract.test_extraction import number, query, variants

_names = st.sampled_from(["x", "y", "z"]).map(Var)
_lengths = st.integers(0, 2)


@st.composite
def branches(draw: st.DrawFn) -> GroupPattern:
    """A pattern of the first predicate, and some of others that its variables join, mostly."""
    first = TriplePattern(
        Var("x"), PREDICATES[0], draw(st.sampled_from([Var("y")] * 5 + [Var("x"), Var("z")]))
    )
    others = [
        TriplePattern(draw(_names), draw(st.sampled_from(PREDICATES[1:])), draw(_names))
        for _ in range(draw(_lengths))
    ]
    return GroupPattern((Triples((first, *others)),))


@st.composite
def families(draw: st.DrawFn) -> dict[str, Select]:
    """Joins and unions of joins in variants, sometimes beside any monotone query."""
    found: dict[str, Select] = {}
    for place in range(draw(st.integers(1, 2))):
        where = draw(branches())
        if draw(st.integers(0, 3)) == 0:
            where = GroupPattern((Union((where, draw(branches()))),))
        scope = visible(where)
        names = draw(st.lists(st.sampled_from(scope), min_size=1, max_size=3, unique=True))
        distinct = draw(st.booleans())
        base = Select(tuple(Projection(Var(name)) for name in names), where, distinct)
        found |= draw(variants(f"Q{place}", base))
    return found | draw(variants("Any", draw(selects(monotone=True)))) if draw(st.booleans()) else found


@given(
    families(),
    st.lists(triples, max_size=12, unique=True),
    st.lists(st.tuples(st.sampled_from(RESOURCES), st.sampled_from([*RESOURCES, *LITERALS])), min_size=1),
    st.booleans(),
)
def test_an_entry_gives_the_facts_of_an_overlay(
    queries: dict[str, Select],
    background: list[Triple],
    rows: list[tuple[Term, Term]],
    shared: bool,
) -> None:
    predicate = PREDICATES[0]
    store = closed([triple for triple in background if triple[1] != predicate])
    extractor = Extractor(queries, store, shares=sizes if shared else None)
    entry = extractor.entry(predicate)
    event("has an entry" if entry is not None else "has none")
    gathered: defaultdict[str, list[Fact]] = defaultdict(list)
    everything: dict[str, list[Fact]] = {}
    for time, (subject, object_) in enumerate(rows if entry is not None else []):
        assert entry is not None
        entry(subject, object_, time, gathered)
        enter(store, [(subject, predicate, object_)])
        wanted = extractor.facts(time, number(time))
        event("has facts" if wanted else "has no facts")
        for name, facts in wanted.items():
            everything[name] = [*everything.get(name, []), *facts]
        assert gathered == everything, [query_text(q) for q in queries.values()]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("SELECT ?s ?v { ?s :p ?v }", 1),
        ("SELECT ?s ?v { ?s :p ?v FILTER(?v > 5) }", 0),
        ("SELECT ?s ?r { ?s :p ?v . ?s :in ?r }", 2),
        ("SELECT ?s { { ?s :p ?v } UNION { ?s :p ?w . ?s :in ?r } }", 3),
        ("SELECT DISTINCT ?s { { ?s :p ?v } UNION { ?s :p ?w . ?s :in ?r } }", 1),
    ],
)
def test_an_entry_counts_like_an_overlay(text: str, facts: int) -> None:
    store = closed([(ex("s"), ex("in"), ex("r")), (ex("s"), ex("in"), ex("q"))])
    entry = Extractor({"Q": query(text)}, store).entry(ex("p"))
    assert entry is not None
    found: defaultdict[str, list[Fact]] = defaultdict(list)
    entry(ex("s"), number(3), 7, found)
    assert {name: len(some) for name, some in found.items()} == ({"Q": facts} if facts else {})


def test_an_entry_leaves_nothing_when_it_is_too_much_work() -> None:
    background = [(ex("s"), ex("in"), ex(f"r{i}")) for i in range(5_000)]
    extractor = Extractor(
        {"Q": query("SELECT ?r { ?s :p ?v . ?s :in ?r }")}, closed(background), patience=100
    )
    entry = extractor.entry(ex("p"))
    assert entry is not None
    found: defaultdict[str, list[Fact]] = defaultdict(list)
    with pytest.raises(Exhausted):
        entry(ex("s"), number(3), 7, found)
    entry(ex("t"), number(3), 8, found)
    assert found == {}


@pytest.mark.parametrize("materialize", ["needed", "all"])
@pytest.mark.parametrize("count", [5, 6, 7, 100, 101, 1_000])
def test_too_many_independent_triples_are_refused_as_in_an_overlay(count: int, materialize: str) -> None:
    """Each is a unit of work of its query, whether or not an overlay holds it."""
    text = (
        "RULE R DEFINE { dotr_x a <urn:R> } FROM A := { SELECT ?v WHERE { ?s <urn:p> ?v } } "
        "AND NOT B := { SELECT ?v WHERE { ?s <urn:q> ?v } } WITHIN 1 s BEFORE A"
    )
    engine = dotr.Engine.from_text(text, budget=100, materialize=materialize)
    engine.push("".join(f"<urn:s> <urn:p> {n} ." for n in range(count)), at=1)
    if count <= 100:
        assert len(engine.finish()) == count
    else:
        with pytest.raises(dotr.ProgramError, match="D4132"):
            engine.finish()
