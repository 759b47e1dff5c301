"""Enrich and extract one instant: its graphs become rows of facts for the parts that must see them.

Place:   the function of a Spark task or of a local process; what it writes, detecting.py reads.
Method:  the first half of pipeline.py's instant. It looks at no other time, so instants may come in any
         order and anywhere; only the graphs of *one* instant must come together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dotr.batch.time_gaps import Cutoff
from dotr.batch.verifying import FactOracle
from dotr.budget import BUDGET
from dotr.core.enrich import reopened
from dotr.core.instant import Instants
from dotr.errors import Diagnostic
from dotr.events import Clock, Fact, Time
from dotr.ir import Program
from dotr.rdf.terms import Triple


@dataclass(frozen=True, slots=True)
class Treatment:
    """How the work is done, whatever is computed: `--materialize all`, `--verify`, `--on-error`, `--budget`.

    `forgiving`: an instant that is in error is set aside, as `Pipeline` does it, instead of ending the run.
    """

    materialize_all: bool = False
    verify: bool = False
    forgiving: bool = False
    budget: int = BUDGET


PLAIN = Treatment()


class Extracting:
    """Owns the compiled queries and the closed background of one process.

    `closed`: what `Materialiser.closed.save` of the driver gave. `background`: its explicit triples, which
    only `--verify` looks at. Graphs behind `cutoff` are refused. Raises ProgramError as `Extractor` does.
    """

    def __init__(
        self,
        program: Program,
        closed: bytes,
        background: Collection[Triple],
        clock: Clock,
        treatment: Treatment = PLAIN,
        cutoff: Cutoff | None = None,
    ) -> None:
        self.findings: list[Diagnostic] = []
        """What is to be said of instants that are not in error; who passes it on empties it."""
        enrich = reopened(program, closed, treatment.materialize_all, treatment.budget)
        self._instants = Instants(program, enrich, budget=treatment.budget, on_finding=self.findings.append)
        self._instants.begin(clock)
        self._clock, self._cutoff = clock, cutoff
        self._oracle = FactOracle(program, background, clock) if treatment.verify else None

    def facts(self, time: Time, graphs: Sequence[list[Triple]] | None) -> Mapping[str, Sequence[Fact]]:
        """Stream name → facts of the instant at which `graphs` came, in canonical order; None is a tick.

        Raises DataError, ProgramError for an instant in error; the next one is not touched by it.
        """
        if self._cutoff is not None and time >= self._cutoff.since:
            raise self._cutoff.error(time, self._clock)
        _, triples, facts, _ = self._instants.known(time, graphs)
        if self._oracle is not None:
            self._oracle.check(time, triples, facts)  # type: ignore[arg-type]  # nothing lasts here
        return facts

    def tick_facts(self, time: Time) -> Mapping[str, Sequence[Fact]]:
        """What the background alone answers at a tick at which no graph came."""
        return self.facts(time, None)
