"""What if these had been the rules: versions of a program over one log, and how their events differ.

Place:   `dotr compare`. comparison_reports.py shows what was found.
Method:  one reading of the log, a pipeline for each version. Events are matched by rule, time and the values
         of WITH; an instant is compared as soon as all versions have run it, so that memory does not grow
         with the log, only with what differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from msgspec import Struct, field

from dotr.core.deployment import Deployment
from dotr.core.parts import Part
from dotr.core.pipeline import Pipeline
from dotr.errors import DataError, DotrError
from dotr.events import Clock, Composite, Time
from dotr.ir import Program
from dotr.rdf.terms import Term, Triple

Key: TypeAlias = tuple[str, tuple[tuple[str, Term], ...]]
"""(rule, its WITH): what an event is matched by, at its time."""

_AHEAD = 63
_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

KEPT = 1_000
"""Differences that are kept; all are counted."""


class Version(Struct, frozen=True):
    """One of the programs that are compared."""

    name: str
    program: Program
    background: Sequence[Triple]


class Difference(Struct, frozen=True):
    """Events of an instant that a version has and the first one has not (`change` > 0), or the converse."""

    version: int
    change: int
    time: Time
    rule: str
    bindings: tuple[tuple[str, Term], ...]


class RunComparison(Struct):
    """What came of a comparison. `refused`: documents, and graphs of instants in error.

    `counts`: (rule, day) → events by version; `added`, `removed`: likewise, against the first one.
    """

    versions: Sequence[Version]
    clock: Clock = field(default_factory=Clock)
    graphs: int = 0
    refused: int = 0
    counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    added: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    removed: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """How many events differ."""
        return sum(map(sum, self.added.values())) + sum(map(sum, self.removed.values()))

    def total(self, rule: str) -> list[int]:
        """The events of a rule by version."""
        return self._sum(self.counts, rule)

    def _sum(self, counts: dict[tuple[str, str], list[int]], rule: str) -> list[int]:
        sums = [0] * len(self.versions)
        for (name, _), values in counts.items():
            if name == rule:
                sums = [a + b for a, b in zip(sums, values, strict=True)]
        return sums

    @property
    def rules(self) -> list[str]:
        """The rules of all versions, in the order of the first that has them."""
        names = [rule.name for v in self.versions for rule in v.program.rules if not rule.private]
        return list(dict.fromkeys(names))

    @property
    def days(self) -> list[str]:
        return sorted({day for _, day in self.counts}, key=_by_day)

    def at(self, time: Time, found: Sequence[Counter[Key]]) -> None:
        """Take the events of all versions at an instant."""
        day = day_of(time, self.clock)
        for version, events in enumerate(found):
            for (rule, _), number in events.items():
                self._slot(self.counts, rule, day)[version] += number
        first = found[0]
        for version, events in enumerate(found[1:], 1):
            if events == first:
                continue
            for key in sorted({*events, *first}):
                change = events[key] - first[key]
                if change:
                    counts = self.added if change > 0 else self.removed
                    self._slot(counts, key[0], day)[version] += abs(change)
                    if len(self.differences) < KEPT:
                        self.differences.append(Difference(version, change, time, *key))

    def _slot(self, counts: dict[tuple[str, str], list[int]], rule: str, day: str) -> list[int]:
        return counts.setdefault((rule, day), [0] * len(self.versions))


def _by_day(day: str) -> tuple[int, str]:
    """Days of integer time in order of their numbers, dates as they are written."""
    return (int(day.removeprefix("day ")), "") if day.startswith("day ") else (0, day)


def day_of(time: Time, clock: Clock) -> str:
    """The day of a time in UTC; of integer time, how many days of that unit have gone by."""
    if clock.integer:
        return f"day {time // _DAY}"
    try:
        return (_EPOCH + timedelta(microseconds=time)).strftime("%Y-%m-%d")
    except OverflowError:
        return clock.text(time)


class Comparing:
    """Owns the pipelines of the versions while they run. `lateness` as of `dotr run`; late graphs are left
    out by all versions alike, or with `fails` raise DataError D2301. `forgiving`: an instant that is in error
    for a version is left out by it, and counted.
    """

    def __init__(
        self, versions: Sequence[Version], lateness: Time = 0, fails: bool = False, forgiving: bool = False
    ) -> None:
        self.found = RunComparison(versions)
        self._pipelines = [
            Pipeline(
                Deployment(v.program, v.background),
                lateness=lateness,
                on_late=self._late if fails else None,
                on_refused=self._refused if forgiving else None,
                on_overworked=(lambda *_: None) if forgiving else None,
            )
            for v in versions
        ]
        self._waiting: list[dict[Time, Counter[Key]]] = [{} for _ in versions]

    def run(self, graphs: Iterable[tuple[Time, Part]], clock: Iterator[Clock]) -> RunComparison:
        """Take all graphs, in order. `clock` is asked once, at the first. Raises what a run does."""
        for count, (time, part) in enumerate(graphs):
            if not count:
                self.found.clock = next(clock)
                for pipeline in self._pipelines:
                    pipeline.begin(self.found.clock)
            for pipeline in self._pipelines:
                pipeline.take(time, part)
            if not count & _AHEAD:
                self._drain()
            self.found.graphs += 1
        for pipeline in self._pipelines:
            pipeline.close_all()
        self._drain(everything=True)
        return self.found

    def _late(self, time: Time, _part: Part) -> None:
        text = self.found.clock.text(time)
        message = f"this graph is for {text}, an instant that is already closed"
        hint = "allow for disorder with --lateness, or drop such graphs with --late drop"
        raise DataError.of("D2301", message, hint=hint)

    def _refused(self, _time: Time, graphs: Sequence[Part], _error: DotrError) -> None:
        self.found.refused += len(graphs)

    def _drain(self, everything: bool = False) -> None:
        for pipeline, waiting in zip(self._pipelines, self._waiting, strict=True):
            for emission in pipeline.drain():
                for event in emission:
                    waiting.setdefault(event.time, Counter())[key_of(event)] += 1
        settled = [pipeline.settled for pipeline in self._pipelines]
        for time in sorted({time for waiting in self._waiting for time in waiting}):
            if everything or all(one is not None and time <= one for one in settled):
                self.found.at(time, [waiting.pop(time, Counter()) for waiting in self._waiting])


def key_of(event: Composite) -> Key:
    """What an event is matched by."""
    return event.rule, tuple(sorted(event.bindings))
