"""When statements end that were inserted until a time.

Place:   beside model.py, which knows what is stated; knowledge_base.py deletes what is due.
Method:  of the statements of one triple the last to end stands for all; one without an end is not kept here.
         Ends wait in a heap, whose entries are looked at again when they come up.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from dotr.events import Time
from dotr.rdf.terms import Triple


class Expiry:
    """Owns the ends. `until`: the triples all of whose statements end → when the last one does."""

    def __init__(self, until: dict[Triple, Time] | None = None) -> None:
        self.until = {} if until is None else until
        self._heap = [(end, triple) for triple, end in self.until.items()]
        heapify(self._heap)

    def due(self, time: Time) -> list[Triple]:
        """What no statement holds at `time` any more: periods are half open. Nothing changes."""
        found: dict[Triple, None] = {}
        while self._heap and self._heap[0][0] <= time:
            end, triple = heappop(self._heap)
            if self.until.get(triple) == end:
                found[triple] = None
        for triple in found:
            heappush(self._heap, (self.until[triple], triple))
        return list(found)

    def end(self, triples: Iterable[Triple]) -> None:
        """Every statement of these triples has ended."""
        for triple in triples:
            self.until.pop(triple, None)

    def begin(self, triples: Iterable[Triple], until: Time | None) -> None:
        """These triples, which have no other statement without an end, are stated until then; None: until
        they are deleted.
        """
        for triple in triples:
            if until is None:
                self.until.pop(triple, None)
            elif until > self.until.get(triple, -(2**127)):
                self.until[triple] = until
                heappush(self._heap, (until, triple))
