"""Enrich and extract one instant: its graphs become rows of facts for the parts that must see them.

Place:   the function of a Spark task or of a local process; what it writes, detecting.py reads.
Method:  the first half of pipeline.py's instant. It looks at no other time, so instants may come in any
         order and anywhere; only the graphs of *one* instant must come together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dotr.batch.time_gaps import Cutoff
from dotr.batch.verifying import FactOracle
from dotr.core.deployment import Deployment
from dotr.core.funnel import FactCounts
from dotr.core.instant import OnState
from dotr.errors import Diagnostic
from dotr.events import Clock, Fact, Time
from dotr.late import dataclass
from dotr.rdf.terms import Triple


@dataclass(frozen=True, slots=True)
class Treatment:
    """What is done beside the work: `--verify`, `--on-error`.

    `forgiving`: an instant that is in error is set aside, as `Pipeline` does it, instead of ending the run.
    `shared`: parts of keys share the budget of what holds, and who runs them begins again in one task where a
    part needs more than its share; otherwise each part has all of it.
    """

    verify: bool = False
    forgiving: bool = False
    shared: bool = True


PLAIN = Treatment()


class Extracting:
    """Owns the half of a deployment that finds facts, in one process. Graphs behind `cutoff` are refused.

    Raises ProgramError as `Extractor` does.
    """

    def __init__(
        self,
        deployment: Deployment,
        clock: Clock,
        treatment: Treatment = PLAIN,
        cutoff: Cutoff | None = None,
    ) -> None:
        self.findings: list[Diagnostic] = []
        """What is to be said of instants that are not in error; who passes it on empties it."""
        self.counts = FactCounts()
        """The facts of instants at which graphs came; who passes them on begins again."""
        self._instants = deployment.instants
        self._instants.begin(clock, self.findings.append)
        self._clock, self._cutoff = clock, cutoff
        self._oracle: FactOracle | None = None
        if treatment.verify:
            self._oracle = FactOracle(deployment.program, deployment.background, clock)

    def report_states(self, on_state: OnState | None) -> None:
        """From now on every instant that is not in error is reported with what holds at it."""
        self._instants.on_state = on_state

    def facts(self, time: Time, graphs: Sequence[list[Triple]] | None) -> Mapping[str, Sequence[Fact]]:
        """Stream name → facts of the instant at which `graphs` came, in canonical order; None is a tick.

        Raises DataError, ProgramError for an instant in error; the next one is not touched by it.
        """
        if self._cutoff is not None and time >= self._cutoff.since:
            raise self._cutoff.error(time, self._clock)
        _, triples, facts, _ = self._instants.known(time, graphs)
        if self._oracle is not None:
            self._oracle.check(time, triples, facts)  # type: ignore[arg-type]  # nothing lasts here
        if graphs is not None:
            seen = self.counts.seen
            for name, found in facts.items():
                seen[name] += len(found)
        return facts

    def tick_facts(self, time: Time) -> Mapping[str, Sequence[Fact]]:
        """What the background alone answers at a tick at which no graph came."""
        return self.facts(time, None)
