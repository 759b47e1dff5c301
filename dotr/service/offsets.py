"""How far every source is consumed, by the journal; what a position means, only the source knows.

Place:   between feed.py and the journal.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from dotr.io.graph_source import GraphSource, Position, PositionOf
from dotr.service.journal import Journal


class Offsets(Struct, frozen=True):
    """The positions of sources, by the names of source and partition."""

    journal: Journal

    def of(self, source: GraphSource) -> PositionOf:
        """Partition → its position at the last commit."""
        return lambda partition: self.journal.position(source.name, partition)

    def changes(self, sources: list[GraphSource]) -> Mapping[tuple[str, str], Position]:
        """What the next commit records. Raises DataError."""
        return {(s.name, part): position for s in sources for part, position in s.changes().items()}
