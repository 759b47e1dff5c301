"""Every query by itself within its budget, whichever share a shape."""

from __future__ import annotations

import pytest

from dotr.errors import ProgramError
from dotr.events import Fact
from dotr.extract.extractor import ANSWER_LIMIT, CanonicalExtractor, shared_queries
from dotr.joins.store import TripleIndex
from dotr.lang import parse_query
from dotr.program import Select
from dotr.rdf.index import Background
from dotr.rdf.terms import integer

P, Q = "<urn:x:p>", "<urn:x:q>"
SHARED = {
    f"Q{limit}": f"SELECT ?a ?b WHERE {{ ?a :p ?v . ?b :q ?v FILTER(?v = {limit}) }}" for limit in (1, 2, 3)
}
OTHER = {"Other": "SELECT ?a WHERE { ?a :r ?v }"}


def extracted(rows: int, budget: int, limit: int = ANSWER_LIMIT, **texts: str) -> dict[str, list[Fact]]:
    queries: dict[str, Select] = {
        name: parse_query(text, name, {"": "urn:x:"}) for name, text in (texts or {**SHARED, **OTHER}).items()
    }
    store = TripleIndex(Background())
    shapes = [(shared, shared.distribution()) for shared in shared_queries(queries)]
    of = CanonicalExtractor(queries, shapes, store, limit, budget)
    for n in range(rows):
        for value in (1, 2, 3):
            store.overlay.add(P, (f"<urn:a{n}>", integer(value)))
            store.overlay.add(Q, (f"<urn:b{n}>", integer(value)))
    return of.facts(5)


def test_queries_of_a_shape_get_their_own_facts() -> None:
    found = extracted(2, 10**6)
    assert {name: len(facts) for name, facts in found.items()} == {"Q1": 4, "Q2": 4, "Q3": 4}
    assert [time for time, *_ in found["Q1"]] == [5] * 4


def test_a_shape_past_the_budget_is_tried_member_by_member() -> None:
    budgets = range(100, 20_000, 50)
    enough = next(budget for budget in budgets if _runs(budget))
    assert extracted(20, enough) == extracted(20, 10**7)
    alone = next(budget for budget in budgets if _runs(budget, Q1=SHARED["Q1"]))
    assert alone == enough, "sharing never makes an instant too much for one of them"


def _runs(budget: int, **texts: str) -> bool:
    try:
        extracted(20, budget, **texts)
    except ProgramError:
        return False
    return True


@pytest.mark.parametrize(("budget", "limit", "code"), [(50, ANSWER_LIMIT, "D4132"), (10**6, 3, "D4130")])
def test_the_first_that_is_too_much_by_itself_ends_the_instant(budget: int, limit: int, code: str) -> None:
    with pytest.raises(ProgramError) as raised:
        extracted(20, budget, limit)
    (first, *_) = raised.value.diagnostics
    assert first.code == code
    assert "`Q1`" in first.message
