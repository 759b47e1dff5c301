"""What one triple gives over the background alone is what an overlay with that triple gives."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from dotr.budget import Exhausted
from dotr.core.extract import Extractor
from dotr.ir import GroupPattern, Projection, Select, TriplePattern, Triples, Union, Var
from dotr.rdf.terms import Term, Triple
from dotr.sparql.bound_variables import visible
from dotr.sparql.printing import query_text
from dotr.tesla.thresholds import sizes
from tests.sparql.states import closed, enter
from tests.sparql.strategies import LITERALS, PREDICATES, RESOURCES, ex, selects, triples
from tests.sparql.test_extraction import number, query, variants

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
    enter_row = extractor.entry(predicate)
    event("has an entry" if enter_row is not None else "has none")
    for time, (subject, object_) in enumerate(rows if enter_row is not None else []):
        assert enter_row is not None
        found = enter_row(subject, object_, time)
        enter(store, [(subject, predicate, object_)])
        wanted = extractor.facts(time, number(time))
        event("has facts" if wanted else "has no facts")
        assert found == wanted, [query_text(q) for q in queries.values()]


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
    enter_row = Extractor({"Q": query(text)}, store).entry(ex("p"))
    assert enter_row is not None
    assert Counter({name: len(found) for name, found in enter_row(ex("s"), number(3), 7).items()}) == Counter(
        {"Q": facts}
    )


def test_an_entry_leaves_nothing_when_it_is_too_much_work() -> None:
    background = [(ex("s"), ex("in"), ex(f"r{i}")) for i in range(5_000)]
    extractor = Extractor(
        {"Q": query("SELECT ?r { ?s :p ?v . ?s :in ?r }")}, closed(background), patience=100
    )
    enter_row = extractor.entry(ex("p"))
    assert enter_row is not None
    with pytest.raises(Exhausted):
        enter_row(ex("s"), number(3), 7)
    assert enter_row(ex("t"), number(3), 8) == {}
