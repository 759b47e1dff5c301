"""Compare versions of a program over one log: how their events differ.

Place:   under `dotr compare` (testing/compare.py, which shows it and says why) and `dotr serve`, which tries
         rules so.
Method:  one reading of the log, a pipeline for each version. Events are matched by rule, time and the values
         of WITH; an instant is compared as soon as all versions have run it, so that memory does not grow
         with the log, only with what differs.
Bad input: D2301 a late graph, where that is an error.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeAlias

from msgspec import Struct, field

from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.errors import DataError, DotrError
from dotr.events import Clock, Composite, GraphOrMessage, Time
from dotr.io.events import json_terms
from dotr.program import Program
from dotr.rdf.terms import Term, Triple

Key: TypeAlias = tuple[str, tuple[tuple[str, Term], ...]]
"""(rule, its WITH): what an event is matched by, at its time."""

_AHEAD = 63
_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

KEPT = 1_000
"""Differences that are kept; all are counted."""


class Version(Struct, frozen=True):
    """One of the programs that are compared. `files`: of its background."""

    name: str
    program: Program
    background: Sequence[Triple]
    files: Sequence[str] = ()


class Difference(Struct, frozen=True):
    """Events of an instant that a version has and the first one has not (`change` > 0), or the converse."""

    version: int
    change: int
    time: Time
    rule: str
    bindings: tuple[tuple[str, Term], ...]


class RunComparison(Struct, dict=True):  # for what is computed once
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
            for key in sorted({*events, *first}, key=self._place):
                change = events[key] - first[key]
                if change:
                    counts = self.added if change > 0 else self.removed
                    self._slot(counts, key[0], day)[version] += abs(change)
                    if len(self.differences) < KEPT:
                        self.differences.append(Difference(version, change, time, *key))

    def _place(self, key: Key) -> tuple[int, Key]:
        """At one time a rule comes before those that are written after it, which may read its events."""
        return self._places.get(key[0], len(self._places)), key

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.rules)}

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
        observer = PipelineObserver(
            late=self._late if fails else None,
            refused=self._refused if forgiving else None,
            overworked=(lambda *_: None) if forgiving else None,
        )
        self._pipelines = [
            Pipeline(Deployment(v.program, v.background), observer, lateness=lateness) for v in versions
        ]
        self._waiting: list[dict[Time, Counter[Key]]] = [{} for _ in versions]

    def run(self, graphs: Iterable[tuple[Time, GraphOrMessage]], clock: Iterator[Clock]) -> RunComparison:
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

    def _late(self, time: Time, _part: GraphOrMessage) -> None:
        text = self.found.clock.text(time)
        message = f"this graph is for {text}, an instant that is already closed"
        hint = "allow for disorder with --lateness, or drop such graphs with --late drop"
        raise DataError.of("D2301", message, hint=hint)

    def _refused(self, _time: Time, graphs: Sequence[GraphOrMessage], _error: DotrError) -> None:
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


def moves(differences: Sequence[Difference]) -> dict[Difference, Difference]:
    """Events that are the same at another time: what went → what came for it, the nearest first.

    Of one event at a time each; what happens more often at one time is left out.
    """
    gone: dict[object, list[Difference]] = {}
    come: dict[object, list[Difference]] = {}
    for one in differences:
        if abs(one.change) == 1:
            side = come if one.change > 0 else gone
            side.setdefault((one.version, one.rule, one.bindings), []).append(one)
    found: dict[Difference, Difference] = {}
    for key, left in gone.items():
        pairs = sorted(
            ((abs(a.time - b.time), a.time, b.time, a, b) for a in left for b in come.get(key, ())),
            key=lambda pair: pair[:3],
        )
        taken: set[Difference] = set()
        for _, _, _, a, b in pairs:
            if a not in found and b not in taken:
                found[a] = b
                taken.add(b)
    return found


def key_of(event: Composite) -> Key:
    """What an event is matched by."""
    return event.rule, tuple(sorted(event.bindings))


def compared_values(found: RunComparison, why: Mapping[Difference, str] | None = None) -> dict[str, Any]:
    """What came of a comparison, JSON-able: versions, events by rule and day, and the differences that were
    kept, with the reasons of some.
    """
    why = why or {}
    days = [
        {
            "rule": rule,
            "day": day,
            "events": counts,
            "added": found.added.get((rule, day), [0] * len(counts)),
            "removed": found.removed.get((rule, day), [0] * len(counts)),
        }
        for rule in found.rules
        for day in found.days
        if (counts := found.counts.get((rule, day)))
    ]
    differences = [
        {
            "version": found.versions[one.version].name,
            "change": one.change,
            "rule": one.rule,
            "time": one.time // found.clock.unit if found.clock.integer else found.clock.text(one.time),
            "bindings": {name: json.loads(json_terms[term]) for name, term in one.bindings},
            **({"because": why[one]} if one in why else {}),
        }
        for one in found.differences
    ]
    return {
        "versions": [version.name for version in found.versions],
        "graphs": found.graphs,
        "changed": found.changed,
        "days": days,
        "differences": differences,
    }
