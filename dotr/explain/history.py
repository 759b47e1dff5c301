"""A run that keeps what an explanation needs: the horizon's graphs, and the composites that were found in it.

Place:   drives a pipeline as `dotr run` does; matches.py asks it for facts and composites.
Method:  composites are given, never computed again: a horizon bounds what a rule remembers, not what has
         influenced it. Facts are extracted again from the graphs that were kept, only where an explanation
         looks. Memory: the graphs of one horizon, and of another one before the last event that is wanted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from dotr.core.deployment import Deployment, Settings
from dotr.core.extract import Extractor
from dotr.core.instant import instant_triples
from dotr.core.pipeline import Pipeline
from dotr.datalog.materialiser import Materialiser
from dotr.events import Clock, Fact, RawMatch, Time, in_order
from dotr.explain.derivations import Derivations
from dotr.ir import Program, Rule
from dotr.rdf.terms import Term, Triple
from dotr.reference.tesla import fact_key
from dotr.tesla.identity import match_hash
from dotr.tesla.references import depths, horizons

AHEAD = 63
"""Graphs are run when so many have been taken, and one more: a mask."""


class Graph(NamedTuple):
    """A graph of the stream and where it stands."""

    time: Time
    triples: list[Triple]
    place: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A composite that was found: the place of its rule, what it matched, and the fact that it is."""

    rule: int
    id: str
    facts: tuple[Fact, ...]
    bindings: tuple[Term, ...]
    fact: Fact

    @property
    def time(self) -> Time:
        return self.fact[0]


class History:
    """Owns a run and what of it is kept. `wanted` says which event is explained: the last one it is true of;
    with `first`, the run ends at the first. `until`: nothing later is looked at. `everything`: what no query
    reaches is kept in the instants, too.
    """

    def __init__(
        self,
        program: Program,
        background: Collection[Triple],
        *,
        wanted: Callable[[Event], bool] = lambda event: True,
        first: bool = False,
        until: Time | None = None,
        lateness: int = 0,
        everything: bool = False,
    ) -> None:
        self.program = program
        self.background = frozenset(background)
        self.found: Event | None = None
        self.events: list[Event] = []
        deployment = Deployment(program, background, Settings(materialize_all=everything))
        self.pipeline = Pipeline(
            deployment, lateness=lateness, on_overworked=lambda *_: None, on_matches=self._note
        )
        self._wanted, self._first, self._until = wanted, first, until
        self._lateness = lateness
        self._reach = max(map(_reach, horizons(program), program.rules), default=0)
        self._graphs: dict[Time, list[Graph]] = {}
        self._held: dict[Time, list[Graph]] = {}
        self._facts: dict[Time, dict[str, list[Fact]]] = {}
        self.first_instant: Time | None = None

    @property
    def clock(self) -> Clock:
        return self.pipeline.clock or Clock()

    def run(self, graphs: Iterable[Graph], clock: Callable[[], Clock | None]) -> None:
        """Take graphs up to their end, or to what was asked for."""
        pipeline = self.pipeline
        for count, graph in enumerate(graphs, 1):
            if self._until is not None and graph.time > self._until + self._lateness:
                break
            if pipeline.clock is None:
                begun = clock()
                assert begun is not None, "a graph has a time, and so the run has a clock"
                pipeline.begin(begun)
            self._graphs.setdefault(graph.time, []).append(graph)
            if self.first_instant is None or graph.time < self.first_instant:
                self.first_instant = graph.time
            pipeline.accept(graph.time, graph.triples)
            if not count & AHEAD and self._drained():
                return
        if self._until is not None and pipeline.clock is not None:
            pipeline.close_up_to(self._until)
        pipeline.close_all()
        self._drained()

    def _drained(self) -> bool:
        """Run what is closed; whether what was asked for is found."""
        for _ in self.pipeline.drain():
            pass
        self._trim()
        return self._first and self.found is not None

    def _note(self, time: Time, matches: Sequence[RawMatch]) -> None:
        counts: Counter[tuple[int, tuple[Term, ...]]] = Counter()
        for rule, (_, _, facts, bindings) in in_order(matches):
            name = f"urn:dotr:{self.program.rules[rule].name}:{match_hash(time, facts)}"
            fact: Fact = (time, bindings, counts[rule, bindings], name)
            counts[rule, bindings] += 1
            event = Event(rule, name, facts, bindings, fact)
            self.events.append(event)
            if not (self._first and self.found is not None) and self._wanted(event):
                self.found = event

    def _trim(self) -> None:
        """Forget what lies further back than can matter, to now or to what was found."""
        settled = self.pipeline.settled
        if settled is None:
            return
        low = settled - self._reach
        found = self.found.time if self.found is not None else None
        oldest = low if found is None else min(low, found - self._reach)
        for time in [t for t in self._held if t < oldest]:
            del self._held[time]
        while self._graphs:
            time = next(iter(self._graphs))
            if time >= low:
                break
            graphs = self._graphs.pop(time)
            if found is not None and found - self._reach <= time <= found:
                self._held[time] = graphs
        if len(self.events) > 4096 and self.events[0].time < oldest:
            self.events = [event for event in self.events if event.time >= oldest]

    def times(self) -> list[Time]:
        """The instants whose graphs are kept, in order."""
        return sorted({*self._graphs, *self._held})

    def graphs(self, time: Time) -> Sequence[Graph]:
        """The graphs of an instant that is kept."""
        return self._graphs.get(time) or self._held.get(time) or ()

    def event(self, name: str) -> Event | None:
        """The composite of that name, if it was kept."""
        return next((event for event in reversed(self.events) if event.id == name), None)

    def consumer(self, rule: int, position: int, fact: Fact, trigger: Fact) -> Event | None:
        """The event that consumed a fact at a positive position before a trigger fact had its turn."""
        turn = fact_key(trigger)
        for event in self.events:
            if event.rule == rule and event.facts[position] == fact and fact_key(event.facts[0]) < turn:
                return event
        return None


def _reach(horizon: Time | None, rule: Rule) -> Time:
    """How far back an explanation of a rule looks; on a cycle of references, one turn of it."""
    return horizon if horizon is not None else max(depths(rule).values())


class KeptInstants:
    """Owns a second store over the same closed background: any instant that was kept can be opened again."""

    def __init__(self, history: History) -> None:
        self._history = history
        closed = history.pipeline.instants.enrich.closed
        self._materialiser = Materialiser(closed.instantiated.rules, closed=closed)
        self._materialiser.store.moment.clock = history.clock
        self._extract = Extractor(history.program.queries, self._materialiser.store)
        self._facts: dict[Time, Mapping[str, list[Fact]]] = {}

    def triples(self, time: Time) -> list[Triple]:
        """What the stream states at an instant, blank nodes labelled."""
        graphs = [graph.triples for graph in self._history.graphs(time)]
        return instant_triples(graphs, time) if graphs else []

    @contextmanager
    def open(self, time: Time) -> Iterator[Derivations]:
        """The instant, to be looked into."""
        stated = self.triples(time)
        moment = self._materialiser.store.moment
        moment.time = time
        self._materialiser.instant(stated)
        try:
            yield Derivations(self._materialiser, self._history.background, stated, time)
        finally:
            self._materialiser.forget()

    def facts(self, time: Time, stream: str) -> Sequence[Fact]:
        """The facts of a query at an instant, in canonical order."""
        if time not in self._facts:
            self._materialiser.instant(self.triples(time))
            try:
                self._facts[time] = self._extract.facts(time)
            finally:
                self._materialiser.forget()
        return self._facts[time].get(stream, ())

    def state(self, time: Time) -> tuple[list[Triple], list[Triple]]:
        """(what background and stream state, what is derived) at an instant, each sorted."""
        with self.open(time):
            holds = set(self._materialiser.state())
        stated = {*self._history.background, *self.triples(time)}
        return sorted(stated), sorted(holds - stated)

    def between(self, stream: str, start: Time, end: Time, extra: Iterable[Time] = ()) -> list[Fact]:
        """The facts of a query at the instants of `[start, end]`, those without a graph in `extra`."""
        times = sorted({t for t in (*self._history.times(), *extra) if start <= t <= end})
        return [fact for time in times for fact in self.facts(time, stream)]
