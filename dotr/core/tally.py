"""Counts of one program: events by rule, facts by query, and the counts before it.

Place:   the pipeline counts in it, and makes a new one when rules are replaced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from dotr.core.ahead import ticks_of
from dotr.core.counters import Counters
from dotr.core.fact_batch import FactBatch
from dotr.core.funnel import FactCounts, Funnel, funnels, joined
from dotr.events import RawMatch, Time
from dotr.ir import Program
from dotr.temporal.stages import Passed

_RUNS: Final = 1_000  # sets of rules that fired together, before they are counted per rule
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


class Tally:
    """Owns the counts. `counts`: earlier counts, and all new ones except events and facts; `gone`: events of
    rules no longer in the program.

    `every`: the distinct durations of EVERY. `fired`: rules that fired together → events not yet counted per
    rule, see `settle`.
    """

    def __init__(
        self, program: Program, counts: Counters | None = None, gone: Mapping[str, int] = _NONE
    ) -> None:
        self.counts = counts or Counters()
        self.facts = FactCounts()
        self.fired: defaultdict[tuple[int, ...], int] = defaultdict(int)
        self._program, self._gone = program, dict(gone)
        self.every = ticks_of(program)
        self._events = [self.counts.events.get(rule.name, 0) for rule in program.rules]

    def begin(self, first: Time | None) -> None:
        """Note the first of the instants that are detected next, if there are any."""
        self.settle()
        if self.counts.first is None:
            self.counts.first = first

    def instants(
        self, batch: FactBatch, start: int, end: int, lasting: bool, heard: Time | None
    ) -> Time | None:
        """Count the detected instants of a range; returns the last with a message, `heard` if there was none.
        `lasting`: whether there may be instants without message and tick.
        """
        counts, every, lars = self.counts, self.every, self._program.lars.rules
        if not (every or lars or lasting):
            counts.instants += batch.instants(start, end)
            return batch.known[end - 1][0] if end > start else heard
        for time, came, _, graph in batch.known[start:end]:
            if graph or came:
                heard = time
                counts.instants += 1
            elif not lars or any(time % duration == 0 for duration in every):
                counts.ticks += 1
        return heard

    def events(self, matches: Sequence[RawMatch]) -> None:
        """Count the events of one instant."""
        fired = self.fired
        for match in matches:
            fired[match[0]] += 1

    def settle(self, most: int = _RUNS) -> None:
        """Count per rule what fired, if that was more than `most` sets of rules."""
        if len(self.fired) <= most:
            return
        for rules, count in self.fired.items():
            for rule in rules:
                self._events[rule] += count
        self.fired.clear()

    def total(self) -> int:
        """The number of events."""
        self.settle(0)
        return sum(self._events) + sum(self._gone.values())

    def counters(self, passed: Mapping[str, Passed] | None, settled: Time | None) -> Counters:
        """All counts as a value. `passed`: the counts of detection, None before the first; `settled`:
        everything up to here has run.
        """
        self.settle(0)
        program, before = self._program, self.counts
        counted = zip(program.rules, self._events, strict=True)
        events = {**self._gone, **{r.name: count for r, count in counted if count or not r.private}}
        now = self.facts.streams(program.queries)
        funnel: dict[str, Funnel] = before.funnel
        if passed is not None:
            found = funnels(program, now, passed, before.first, settled)
            funnel = joined(program, before.funnel, found, events)
        return replace(
            before,
            facts=before.facts + self.facts.total,
            events=events,
            streams={name: count + before.streams.get(name, 0) for name, count in now.items()},
            funnel=funnel,
        )
