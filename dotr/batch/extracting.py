"""Enrich and extract one instant: its graphs become rows of facts for the parts that must see them.

Place:   the function of a Spark task or of a local process; what it writes, detecting.py reads.
Method:  the first half of pipeline.py's instant. It looks at no other time, so instants may come in any
         order and anywhere; only the graphs of *one* instant must come together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dotr.batch.verifying import FactOracle
from dotr.core.enrich import reopened
from dotr.core.extract import Extractor
from dotr.core.pipeline import instant_triples
from dotr.errors import DataError, Diagnostic, DotrError
from dotr.events import Clock, Fact, Time
from dotr.ir import Entailment, Program
from dotr.rdf.terms import Triple


@dataclass(frozen=True, slots=True)
class Treatment:
    """How the work is done, whatever is computed: `--materialize all`, `--verify`, `--on-error`.

    `forgiving`: an instant that is in error is set aside, as `Pipeline` does it, instead of ending the run.
    """

    materialize_all: bool = False
    verify: bool = False
    forgiving: bool = False


PLAIN = Treatment()


class Extracting:
    """Owns the compiled queries and the closed background of one process.

    `closed`: what `Materialiser.closed.save` of the driver gave. `background`: its explicit triples, which
    only `--verify` looks at. Raises ProgramError as `Extractor` does.
    """

    def __init__(
        self,
        program: Program,
        closed: bytes,
        background: Collection[Triple],
        clock: Clock,
        treatment: Treatment = PLAIN,
    ) -> None:
        self._clock = clock
        self._enrich = reopened(program, closed, treatment.materialize_all)
        self._enrich.store.moment.clock = clock
        self._ontology = program.entailment is not Entailment.NONE
        self._extract = Extractor(program.queries, self._enrich.store)
        self._oracle = FactOracle(program, background, clock) if treatment.verify else None

    def facts(self, time: Time, graphs: Sequence[list[Triple]]) -> Mapping[str, Sequence[Fact]]:
        """Stream name → facts of the instant at which `graphs` came, in canonical order.

        Raises DataError, ProgramError for an instant in error; the next one is not touched by it.
        """
        triples = instant_triples(graphs, time) if graphs else []
        try:
            self._enrich.instant(triples)
        except DotrError as error:
            raise type(error)(self._placed(error.diagnostics, time)) from None
        try:
            facts = self._extract.facts(time)
            if self._ontology and (clashes := self._enrich.clashes()):
                raise DataError(self._placed(clashes, time))
        finally:
            self._enrich.forget()
        if self._oracle is not None:
            self._oracle.check(time, triples, facts)
        return facts

    def _placed(self, found: Iterable[Diagnostic], time: Time) -> list[Diagnostic]:
        """Findings about an instant, with its time for a place."""
        return [one if one.place else replace(one, place=f"@ {self._clock.text(time)}") for one in found]

    def tick_facts(self, time: Time) -> Mapping[str, Sequence[Fact]]:
        """What the background alone answers at a tick at which no graph came."""
        return self.facts(time, ())
