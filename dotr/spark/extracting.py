"""Enrich and extract one instant: its graphs become rows of facts for the parts that must see them.

Place:   the function of a Spark task or of a local process; what it writes, detecting.py reads.
Method:  the first half of pipeline.py's instant. It looks at no other time, so instants may come in any
         order and anywhere; only the graphs of *one* instant must come together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dotr.enrich import LiteralEnricher
from dotr.events import Clock, Fact, Time
from dotr.extract import LiteralExtractor
from dotr.ir import Program
from dotr.rdf.blanks import label_stream
from dotr.rdf.terms import Triple


class Extracting:
    """Owns the compiled queries and the closed background of one process."""

    def __init__(self, program: Program, background: Collection[Triple], clock: Clock) -> None:
        self._clock = clock
        self._enrich = LiteralEnricher(program.datalog, background)
        self._extract = LiteralExtractor(program.queries)

    def facts(self, time: Time, graphs: Sequence[Sequence[Triple]]) -> Mapping[str, Sequence[Fact]]:
        """Stream name → facts of the instant at which `graphs` came, in canonical order."""
        labelled = label_stream(graphs, time)
        store = self._enrich.open(triple for graph in labelled for triple in graph)
        try:
            return self._extract.facts(store, time, self._clock.term(time))
        finally:
            self._enrich.close()

    def tick_facts(self, time: Time) -> Mapping[str, Sequence[Fact]]:
        """What the background alone answers at a tick at which no graph came."""
        return self.facts(time, ())
