"""Facts of several instants in order, on their way from extraction to detection.

Place:   core/pipeline.py makes a batch, core/instant.py puts instants into it, the detector goes through it.
Method:  an instant whose facts trigger no rule only adds to what is remembered. So its facts, which have
         their own times, wait for the next instant that triggers some, and the detector goes through those
         alone.
Why not: every instant by itself, always: most streams have few triggers, and making and reading a dictionary
         for one fact takes longer than to remember the fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

from dotr.events import Fact, Message, Time
from dotr.rdf.terms import Triple

Facts: TypeAlias = Mapping[str, Sequence[Fact]]

Known: TypeAlias = tuple[Time, Sequence[Triple] | Sequence[Message], Facts, bool]
"""(time, input, stream → facts, whether a graph came) of an instant; the input is triples, or messages where
something lasts."""


class FactBatch:
    """Owns the facts of instants until they are detected.

    `waking`: the streams whose facts trigger rules (`Detector.waking`); None: nothing waits. `most`: how many
    instants it takes, `size`: how many came, `first` and `last`: their times. `known`: those to detect, in
    order, each with the facts that waited for it. `waiting`: stream → facts of those after the last `known`.
    """

    __slots__ = ("_ends", "first", "known", "last", "most", "size", "waiting", "waking")

    def __init__(self, waking: Set[str] | None, most: int) -> None:
        self.waking, self.most = waking, most
        self.known: list[Known] = []
        self.size = 0
        self.first: Time | None = None
        self.last: Time | None = None
        self.waiting: defaultdict[str, list[Fact]] = defaultdict(list)
        self._ends: list[int] = []

    @property
    def room(self) -> int:
        """How many more instants it takes."""
        return self.most - self.size

    @classmethod
    def of(cls, known: Known) -> FactBatch:
        """One instant."""
        batch = cls(None, 1)
        batch.put(known)
        return batch

    def put(self, known: Known) -> None:
        """Take an instant; its facts may wait."""
        time, came, facts, graph = known
        self.came(time, time, 1)
        if self.waking is not None and (self.waiting or self.waking.isdisjoint(facts)):
            for name, found in facts.items():
                self.waiting[name] += found
            if self.waking.isdisjoint(facts):
                return
            facts, self.waiting = self.waiting, defaultdict(list)
        self.known.append((time, came, facts, graph))
        self._ends.append(self.size)

    def came(self, first: Time, last: Time, many: int) -> None:
        """Count instants that were added to `known` or `waiting`."""
        if self.first is None:
            self.first = first
        self.last = last
        self.size += many

    def withdraw(self, time: Time) -> None:
        """Drop what waits of the instant at `time`, the last one."""
        for name, facts in list(self.waiting.items()):
            facts[:] = [fact for fact in facts if fact[0] < time]
            if not facts:
                del self.waiting[name]

    def wake(self, time: Time, came: Sequence[Triple], end: int) -> defaultdict[str, list[Fact]]:
        """All that waits is detected at `time`, of instant number `end`, for which `came` is the input;
        returns the new, empty `waiting`.
        """
        self.known.append((time, came, self.waiting, True))
        self._ends.append(end)
        self.waiting = defaultdict(list)
        return self.waiting

    def close(self) -> None:
        """What waits is detected at the time of the last instant."""
        if self.last is not None and self.size > self.instants(0, len(self.known)):
            self.wake(self.last, (), self.size)

    def instants(self, start: int, end: int) -> int:
        """How many instants a range of `known` stands for."""
        ends = self._ends
        return (ends[end - 1] if end else 0) - (ends[start - 1] if start else 0)
