"""Step 2: extract. Every embedded query is asked of K(t); its solutions are the facts of the instant.

Place:   called by pipeline.py between enrich and detect.
Method:  paper, sec. 4, "runtime (2)": queries run over the knowledge that holds at t; multiset semantics;
         facts of a query in canonical order (language.md, sec. 1), numbered among equals.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyoxigraph as ox

from dotr.events import Fact, Time
from dotr.expressions.literal_numbers import row_key
from dotr.extract.full import BoundedFullQuery
from dotr.extract.sharing import facts_of
from dotr.program import Select
from dotr.rdf.terms import Term


class LiteralExtractor:
    """Asks the full SPARQL engine every query at every instant, where its work can be foreseen."""

    def __init__(self, queries: Mapping[str, Select]) -> None:
        self._queries = {name: BoundedFullQuery(select) for name, select in queries.items()}

    def facts(self, store: ox.Store, time: Time, now: Term) -> dict[str, list[Fact]]:
        """Stream name → facts at `time`; streams without facts are left out."""
        found = {
            name: facts_of(query.rows(store, now), time, row_key) for name, query in self._queries.items()
        }
        return {name: facts for name, facts in found.items() if facts}
