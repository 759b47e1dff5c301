"""Enrich and extract one instant: its graphs become rows of facts for the parts that need them.

Place:   the function of a Spark task or of a local process; detecting.py reads what it writes.
Method:  the first half of an instant in core/pipeline.py. It sees no other time, so instants may come in any
         order and anywhere; only the graphs of *one* instant must come together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from dotr.batch.time_gaps import Cutoff
from dotr.batch.verifying import FactOracle
from dotr.core.deployment import Deployment
from dotr.core.funnel import FactCounts
from dotr.core.instant import Graphs, Known, OnState
from dotr.errors import Diagnostic
from dotr.events import Clock, Fact, Time
from dotr.late import dataclass
from dotr.rdf.terms import Triple


@dataclass(frozen=True, slots=True)
class Treatment:
    """Options of the work: `--verify`, `--on-error`.

    `forgiving`: an instant in error is skipped, as by `Pipeline`, instead of ending the run. `shared`: parts
    of keys share the budget of what holds, and the runner restarts in one task if a part needs more than its
    share; otherwise each part has all of it.
    """

    verify: bool = False
    forgiving: bool = False
    shared: bool = True


PLAIN = Treatment()

Instant: TypeAlias = tuple[Time, Graphs]
"""A time and its graphs."""


class Extracting:
    """Owns the half of a deployment that finds facts, in one process. Graphs after `cutoff` are refused.

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
        """Warnings about instants that are not in error; the caller that passes them on empties it."""
        self.counts = FactCounts()
        """The number of facts at instants with graphs; the caller that passes them on resets it."""
        self._instants = deployment.instants
        self._instants.begin(clock, self.findings.append)
        self._clock, self._cutoff = clock, cutoff
        self._oracle: FactOracle | None = None
        if treatment.verify:
            self._oracle = FactOracle(deployment.program, deployment.background, clock)

    def report_states(self, on_state: OnState | None) -> None:
        """Report every instant that is not in error with what holds at it."""
        self._instants.on_state = on_state

    def facts(self, time: Time, graphs: Sequence[list[Triple]] | None) -> Mapping[str, Sequence[Fact]]:
        """Stream name → facts of the instant at which `graphs` came, in canonical order; None is a tick.

        Raises DataError, ProgramError for an instant in error; the next one is not affected.
        """
        if self._cutoff is not None and time >= self._cutoff.since:
            raise self._cutoff.error(time, self._clock)
        facts = self._checked(self._instants.known(time, graphs))
        if graphs is not None:
            seen = self.counts.seen
            for name, found in facts.items():
                seen[name] += len(found)
        return facts

    def several(self, due: Sequence[Instant], known: list[Known]) -> int:
        """Append to `known` the facts of instants with graphs, in order, up to the first with a finding;
        returns how many were taken. Neither counted nor cut off. Raises as `facts`.
        """
        place, had = 0, len(self.findings)
        while place < len(due) and len(self.findings) == had:
            start = len(known)
            place = self._instants.entered(due, place, len(due) - place, known)  # type: ignore[arg-type]  # graphs
            if place < len(due):
                known.append(self._instants.overlaid(*due[place]))
                place += 1
            if self._oracle is not None:
                for one in known[start:]:
                    self._checked(one)
        return place

    def _checked(self, known: Known) -> Mapping[str, Sequence[Fact]]:
        time, triples, facts, _ = known
        if self._oracle is not None:
            self._oracle.check(time, triples, facts)  # type: ignore[arg-type]  # nothing lasts here
        return facts

    def tick_facts(self, time: Time) -> Mapping[str, Sequence[Fact]]:
        """The background's own facts at a tick without a graph."""
        return self.facts(time, None)
