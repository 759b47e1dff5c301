"""Enrich and extract one instant: its graphs become rows of facts for the parts that must see them.

Place:   the function of a Spark task or of a local process; what it writes, detecting.py reads.
Method:  the first half of pipeline.py's instant. It looks at no other time, so instants may come in any
         order and anywhere; only the graphs of *one* instant must come together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dotr.enrich import enricher
from dotr.events import Clock, Fact, Time
from dotr.ir import Program
from dotr.pipeline import instant_triples
from dotr.rdf.terms import Triple
from dotr.sparql.extraction import Extractor


class Extracting:
    """Owns the compiled queries and the closed background of one process.

    Raises ProgramError and DataError as `enricher` and `Extractor` do.
    """

    def __init__(self, program: Program, background: Collection[Triple], clock: Clock) -> None:
        self._clock = clock
        self._enrich = enricher(program, background)
        self._extract = Extractor(program.queries, self._enrich.store)

    def facts(self, time: Time, graphs: Sequence[list[Triple]]) -> Mapping[str, Sequence[Fact]]:
        """Stream name → facts of the instant at which `graphs` came, in canonical order."""
        self._enrich.instant(instant_triples(graphs, time) if graphs else ())
        try:
            return self._extract.facts(time, self._clock.term(time))
        finally:
            self._enrich.forget()

    def tick_facts(self, time: Time) -> Mapping[str, Sequence[Fact]]:
        """What the background alone answers at a tick at which no graph came."""
        return self.facts(time, ())
