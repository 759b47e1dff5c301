"""What a correction takes back and adds: events with a sign, the time it was made at, and its cause.

Place:   core/corrections.py makes them; io/changes.py writes them; every sink takes them as events.
Method:  events stay the same only if everything that a reader sees of them does: rule, facts and values of
         WITH. Two events of one id may differ in their values (an average, say): then one is taken back and
         the other is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from dotr.emit.events import Emitter, InstantEvents, Named
from dotr.events import Composite, Time

Key: TypeAlias = tuple[object, ...]


class Cause(NamedTuple):
    """A graph that came late: its time, and where it was read, "" where nobody knows."""

    time: Time
    place: str


class Correction(NamedTuple):
    """What late graphs changed together. `at`: everything up to here was closed when they were taken."""

    at: Time
    causes: tuple[Cause, ...]


class CorrectedComposite(Composite):
    """An event that a correction takes back (`change` -1) or adds (1)."""

    __slots__ = ("change", "correction")

    change: int
    correction: Correction | None

    def __init__(self, composite: Named, change: int, correction: Correction) -> None:
        template, name, match = composite
        super().__init__(template, template.prefix + name, match)
        self.change = change
        self.correction = correction


class Changes(InstantEvents):
    """Events of one instant that a correction takes back, or adds, in output order."""

    __slots__ = ("_named", "change", "correction")

    change: int
    correction: Correction | None

    def __init__(self, emitter: Emitter, named: Sequence[Named], change: int, correction: Correction) -> None:
        super().__init__(emitter, [match for _, _, match in named])
        self._named = list(named)
        self.change = change
        self.correction = correction

    def named(self) -> list[Named]:
        return self._named

    def composites(self) -> list[Composite]:
        correction = self.correction
        assert correction is not None, "a correction made them"
        return [CorrectedComposite(one, self.change, correction) for one in self._named]


def changes(
    before: Iterable[InstantEvents], after: Iterable[InstantEvents], correction: Correction
) -> Iterator[Changes]:
    """What becomes of the events of instants, both in order of time: at each instant first what is taken
    back, then what is added. An event that is in both is in neither.
    """
    old = {events.time: events for events in before}
    new = {events.time: events for events in after}
    for time in sorted(old.keys() | new.keys()):
        was, now = old.get(time), new.get(time)
        if was is not None and now is not None and was.matches == now.matches:
            continue
        gone, come = _single(was), _single(now)
        kept = Counter(map(_key, gone)) & Counter(map(_key, come))
        for events, named, change in ((was, gone, -1), (now, come, 1)):
            left = Counter(kept)
            changed: list[Named] = []
            for one in named:
                key = _key(one)
                if left[key]:
                    left[key] -= 1
                else:
                    changed.append(one)
            if changed and events is not None:
                yield Changes(events.emitter, changed, change, correction)


def _single(events: InstantEvents | None) -> list[Named]:
    """The events of an instant, the match of each with its own rule alone."""
    return [] if events is None else events.emitter.single(events.matches)


def _key(event: Named) -> Key:
    template, name, (_, time, facts, values) = event
    return template.rule, name, time, facts, values
