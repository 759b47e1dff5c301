"""What a maintained query gives for a change is the difference of its whole answers."""

from __future__ import annotations

from collections import Counter

import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st

from dotr.enrich.maintenance import Maintained
from dotr.extract.full import FullQuery
from dotr.extract.printing import query_text
from dotr.extract.query import MaintainedQuery
from dotr.joins.plan import ALL
from dotr.lang import parse_datalog
from dotr.program import Select
from dotr.rdf.terms import RDF_TYPE, Triple, to_oxigraph
from dotr.reference.enrich import closure
from tests.extract.strategies import graphs, selects
from tests.extract.test_extraction import RULES

_changes = st.lists(st.tuples(graphs, graphs, st.booleans()), min_size=1, max_size=4)


def _asked(query: FullQuery, state: set[Triple]) -> Counter[tuple[str | None, ...]]:
    store = ox.Store()
    store.extend(ox.Quad(*map(to_oxigraph, triple)) for triple in sorted(state))
    return Counter(query.rows(store, '"0"'))


@given(selects(), st.sampled_from(RULES), graphs, _changes)
def test_a_change_gives_the_difference_of_the_answers(
    select: Select, rules: str, start: list[Triple], changes: list[tuple[list[Triple], list[Triple], bool]]
) -> None:
    datalog = parse_datalog(rules)
    kept = Maintained(datalog, start, unions={ALL, RDF_TYPE})
    maintained = MaintainedQuery(select, kept.store)
    literal = FullQuery(select)
    stated = set(start)
    before = _asked(literal, closure(datalog, stated))
    for insert, delete, taken_back in changes:
        kept.open(insert, delete)
        moved = maintained.moved()
        after = _asked(literal, closure(datalog, (stated - set(delete)) | set(insert)))
        difference = Counter(after)
        difference.subtract(before)
        assert dict(moved) == {row: n for row, n in difference.items() if n}, query_text(select)
        back = maintained.settle()
        undo = kept.commit()
        assert Counter(maintained.answers()) == after
        if taken_back:
            back()
            kept.undo(undo)
        else:
            stated, before = (stated - set(delete)) | set(insert), after
        assert Counter(maintained.answers()) == before
