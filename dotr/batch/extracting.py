"""Enrich and extract one instant: its graphs become rows of facts for the parts that need them.

Place:   the function of a Spark task or of a local process; detecting.py reads what it writes.
Method:  the first half of an instant in core/pipeline.py. It sees no other time, so instants may come in any
         order and anywhere; only the graphs of *one* instant must come together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from dotr.batch.time_gaps import Cutoff
from dotr.batch.verifying import FactOracle
from dotr.core.deployment import Deployment
from dotr.core.fact_batch import FactBatch, Known
from dotr.core.funnel import FactCounts
from dotr.core.instant import Graphs, OnState
from dotr.errors import Diagnostic
from dotr.events import Clock, Fact, Time


class Treatment(Struct, frozen=True):
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

    def several(self, due: Sequence[Instant], known: list[Known]) -> None:
        """Append the facts of instants with graphs to `known`, in order: of all, or up to the first with
        `findings`. They are not counted.

        Raises DataError, ProgramError for the instant after those in `known`; the next one is not affected.
        """
        place, had, since = 0, len(self.findings), None if self._cutoff is None else self._cutoff.since
        while place < len(due) and len(self.findings) == had:
            start, end = len(known), len(due)
            if since is not None:
                end = next((i for i in range(place, end) if due[i][0] >= since), end)
            batch = FactBatch(None, end - place)
            place = self._instants.entered(due, place, batch)  # type: ignore[arg-type]  # graphs
            known += batch.known
            self._check(known[start:])
            if place < len(due):
                known.append(self._one(*due[place]))
                self._check(known[-1:])
                place += 1

    def count(self, known: Iterable[Known]) -> None:
        """Count the facts of instants with graphs."""
        seen = self.counts.seen
        for _, _, facts, _ in known:
            for name, found in facts.items():
                seen[name][0] += len(found)

    def _one(self, time: Time, graphs: Graphs | None) -> Known:
        if self._cutoff is not None and time >= self._cutoff.since:
            raise self._cutoff.error(time, self._clock)
        return self._instants.overlaid(time, graphs)

    def _check(self, known: Iterable[Known]) -> None:
        if self._oracle is not None:
            for time, triples, facts, _ in known:
                self._oracle.check(time, triples, facts)  # type: ignore[arg-type]  # nothing lasts here

    def tick_facts(self, time: Time) -> Mapping[str, Sequence[Fact]]:
        """What the background alone answers at a tick at which no graph came."""
        known = self._one(time, None)
        self._check([known])
        return known[2]
