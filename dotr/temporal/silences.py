"""When ticks matter while no graph comes, as values for runners.

Place:   computed by an engine (tesla/silence.py); the pipeline and the batch get the ticks between two graphs
         from it, and refuse a graph before which too many lie.
"""

from __future__ import annotations

from msgspec import Struct

from dotr.events import Time

ENDLESS: Time = 2**127
"""Longer than all of time."""


class Ticking(Struct, frozen=True):
    """One EVERY duration, and when its ticks matter in a silence.

    `reach`: how long after the last graph, both ends inclusive. `memory`: how long before the next one.
    `rules`: names of those that may match for longest.
    """

    every: Time
    reach: Time
    memory: Time
    rules: tuple[str, ...]

    def next(self, after: Time, graph: Time | None, bound: Time) -> Time:
        """The earliest tick > `after` that matters; at least `bound` if there is none."""
        tick = (after // self.every + 1) * self.every
        if self.reach < ENDLESS and (graph is None or tick > graph + self.reach):
            tick = max(tick, -((self.memory - bound) // self.every) * self.every)
        return tick

    def count(self, after: Time, graph: Time, bound: Time) -> int:
        """The number of ticks in (after, bound) that matter, or one more; monotone in `bound`."""
        every = self.every
        reached = max(after, min(bound - 1, graph + self.reach))
        kept = min((bound - 1) // every - reached // every, -(-self.memory // every))
        return reached // every - after // every + kept


class Silence(Struct, frozen=True):
    """How a program ticks while no graph comes. `ticking` has the durations that can matter."""

    ticking: tuple[Ticking, ...]

    def next(self, after: Time, graph: Time | None, bound: Time) -> Time | None:
        """The earliest tick in (after, bound) that can matter, or None.

        `graph`: the time of the last graph, at or before `after`; None: none whose facts are within reach.
        `bound`: the time of the next one, or up to which time is closed. (Ticks begin with the first instant:
        the caller's `after` is not before it.)
        """
        found = min((ticking.next(after, graph, bound) for ticking in self.ticking), default=bound)
        return found if found < bound else None

    def count(self, after: Time, graph: Time, bound: Time) -> int:
        """The number of ticks in (after, bound) that can matter, up to one more for each EVERY; monotone in
        `bound`. If several EVERY tick at once, each counts.
        """
        return sum(ticking.count(after, graph, bound) for ticking in self.ticking)

    def allows(self, limit: int) -> Time:
        """A distance between two graphs that cannot have more than `limit` ticks; ENDLESS if none can."""
        if sum((t.reach + t.memory) // t.every + 2 for t in self.ticking) <= limit:
            return ENDLESS
        from fractions import Fraction  # noqa: PLC0415  # start-up: most programs do not tick

        rate = sum((Fraction(1, ticking.every) for ticking in self.ticking), Fraction())
        return max(0, int((limit - 2 * len(self.ticking)) / rate))

    def worst(self, after: Time, graph: Time, bound: Time) -> Ticking:
        """The duration with the most ticks in (after, bound) that can matter."""
        return max(self.ticking, key=lambda ticking: ticking.count(after, graph, bound))
