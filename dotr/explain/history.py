"""A run up to an event that is to be explained, or up to an instant.

Place:   drives a recorded pipeline as `dotr run` does; matches.py explains what it found.
Method:  what an explanation needs is kept by record.py; of an event that is wanted, one horizon before it
         stays while the run goes on. Memory: two horizons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from dotr.core.deployment import Deployment, Settings
from dotr.events import Clock, Time
from dotr.explain.record import Arrival, Graph, KeptEvent, Record, RecordedPipeline
from dotr.ir import Program
from dotr.rdf.terms import Triple

AHEAD = 63
"""Graphs are run when so many have been taken, and one more: a mask."""


class History(Record):
    """Owns a run and what of it is kept. `wanted` says which event is explained: the last one it is true of;
    with `first`, the run ends at the first. `until`: nothing later is looked at. `also`: an instant that is
    kept, too. `everything`: what no query reaches is kept in the instants, too. `reads_on`: graphs that come
    too late for the instant `until` are noted.
    """

    def __init__(
        self,
        program: Program,
        background: Collection[Triple],
        *,
        wanted: Callable[[KeptEvent], bool] = lambda event: True,
        first: bool = False,
        until: Time | None = None,
        also: Time | None = None,
        lateness: int = 0,
        everything: bool = False,
        reads_on: bool = False,
    ) -> None:
        super().__init__(program, background)
        deployment = Deployment(program, background, Settings(materialize_all=everything))
        self._run = RecordedPipeline(deployment, self, lateness=lateness, on_overworked=lambda *_: None)
        self.wanted_event: KeptEvent | None = None
        self.wanted_program = program
        """That of the event's time."""
        self.pinned = None if also is None else (also, also)
        self._wanted, self._first, self._until = wanted, first, until
        self._lateness, self._reads_on = lateness, reads_on

    def go_on(self, state: Mapping[str, Any], clock: Clock) -> None:
        """Go on from a state that a feed kept, instead of from nothing."""
        self._run.restore(state)
        if self._run.clock is None:
            self._run.begin(clock)

    def replace(self, time: Time, clock: Clock, program: Program, background: Collection[Triple]) -> None:
        """From a time on another program holds. Raises UsageError D4161, ProgramError."""
        if self._run.clock is None:
            self._run.begin(clock)
        self._run.replace(time, program, background)

    def run(self, graphs: Iterable[Arrival], clock: Callable[[], Clock | None]) -> None:
        """Take graphs up to their end, or to what was asked for."""
        pipeline, graphs, take = self._run, iter(graphs), self._run.take
        bound = None if self._until is None else self._until + self._lateness
        for count, graph in enumerate(graphs, 1):
            time = graph.time
            if bound is not None and time > bound:
                break
            if pipeline.clock is None:
                begun = clock()
                assert begun is not None, "a graph has a time, and so the run has a clock"
                pipeline.begin(begun)
            pipeline.place = graph
            take(time, graph.part)
            if not count & AHEAD and self._drained():
                return
        if self._until is not None and pipeline.clock is not None:
            pipeline.close_up_to(self._until)
        pipeline.close_all()
        self._drained()
        if self._reads_on:
            for graph in graphs:
                if graph.time == self._until:
                    self.come_too_late(Graph(graph.time, graph.part, graph.place))

    def _drained(self) -> bool:
        """Run what is closed; whether what was asked for is found."""
        for _ in self._run.drain():
            pass
        return self._first and self.wanted_event is not None

    def found(self, event: KeptEvent) -> None:
        super().found(event)
        if not (self._first and self.wanted_event is not None) and self._wanted(event):
            self.wanted_event, self.wanted_program = event, self.program
            self.pinned = event.time - self.reach, event.time
