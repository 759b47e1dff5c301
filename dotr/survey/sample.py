"""A stretch of a stream to look at: graphs with their times, in order, as many as are worth it."""

from __future__ import annotations

from msgspec import Struct, field

from dotr.events import Clock, Part, Time, all_triples

GRAPHS = 10_000
"""Graphs that are examined, unless stated otherwise."""

FIRST_GRAPHS = 1_000
"""Graphs that a run looks at for rules that had no event."""

_TRIPLES = 1_000_000
"""Triples that are kept, whatever the number of graphs."""


class Sample(Struct):
    """The first graphs of a stream. `full`: no more are taken."""

    clock: Clock = field(default_factory=Clock)
    limit: int = GRAPHS
    graphs: list[tuple[Time, Part]] = field(default_factory=list)
    full: bool = False
    _triples: int = 0

    def add(self, time: Time, graph: Part) -> None:
        self.graphs.append((time, graph))
        self._triples += len(all_triples(graph))
        self.full = len(self.graphs) >= self.limit or self._triples >= _TRIPLES
