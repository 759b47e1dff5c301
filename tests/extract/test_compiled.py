"""The compiled engine against the full one, on random graphs and queries."""

from __future__ import annotations

from hypothesis import assume, given

from dotr.budget import Meter
from dotr.extract.full import FullQuery, widened
from dotr.extract.interpreter import InterpretedQuery
from dotr.extract.printing import query_text
from dotr.extract.query import Query
from tests.extract.states import closed, enter, whole
from tests.extract.strategies import World, worlds

NOW = '"2026-01-01T08:00:12Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


@given(worlds)
def test_interpreted_answers_are_those_of_the_full_engine(world: World) -> None:
    select, background, steps = world
    full, store = FullQuery(select), closed(background)
    store.moment.now = NOW
    query = InterpretedQuery(select, store, Meter())
    for added, cut in [([], 0), *steps]:
        new = [triple for triple in added if triple not in set(background)]
        removed = [triple for triple in background[:cut] if triple not in set(added)]
        enter(store, new, removed)
        wanted = full.rows(whole(background, new, removed), NOW)
        assert widened(query.solutions()) == wanted, query_text(select)


@given(worlds)
def test_compiled_answers_are_those_of_the_full_engine(world: World) -> None:
    select, background, steps = world
    full = FullQuery(select)
    store = closed(background)
    store.moment.now = NOW
    query = Query(select, store)
    assume(not query.interpreted)
    for added, cut in [([], 0), *steps]:
        new = [triple for triple in added if triple not in set(background)]
        removed = [triple for triple in background[:cut] if triple not in set(added)]
        enter(store, new, removed)
        wanted = full.rows(whole(background, new, removed), NOW)
        assert query.rows() == wanted, query_text(select)
        query.forget()
