"""What is kept of a run for explanations: the horizon's graphs, facts of what lasts, composites, statements.

Place:   a RecordedPipeline fills it while it runs; history.py drives one up to an event, `Engine(keep=…)` has
         one that goes along; instants.py opens any instant that is kept.
Method:  composites are given, never computed again: a horizon bounds what a rule remembers, not what has
         influenced it. Where nothing lasts, facts are extracted again from the graphs, only where an
         explanation looks; where something does, the facts of each instant are kept as they were found.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dotr.core.deployment import Deployment
from dotr.core.jumps import Jump
from dotr.core.open_instants import LateGraph, RefusedInstant
from dotr.core.parts import Part
from dotr.core.pipeline import Pipeline
from dotr.errors import DotrError
from dotr.events import Clock, Fact, Message, RawMatch, Time, in_order
from dotr.explain.held_statements import RunStatements
from dotr.explain.proofs import OF_BACKGROUND
from dotr.ir import Program, Rule
from dotr.lars.reach import horizon
from dotr.rdf.terms import Term, Triple
from dotr.reference.tesla import fact_key
from dotr.temporal.identity import match_hash
from dotr.temporal.silences import ENDLESS
from dotr.tesla.digest import rule_digests, timeline_digest
from dotr.tesla.references import depths, horizons
from dotr.tesla.state import Restored

TRIM = 63
"""What is too old is forgotten when so many graphs have come, and one more: a mask."""


Item = TypeVar("Item")


class Arrival(Protocol):
    """What came with one message, which can say where it stands."""

    @property
    def time(self) -> Time: ...
    @property
    def part(self) -> Part: ...
    @property
    def place(self) -> str: ...


class Graph(NamedTuple):
    """What came with one message and where it stands."""

    time: Time
    part: Part
    place: str = ""

    @property
    def triples(self) -> list[Triple]:
        """Those of its graph."""
        return (self.part.graph or []) if isinstance(self.part, Message) else self.part


class KeptEvent(Struct, frozen=True):
    """A composite that was found: the place of its rule, what it matched, and the fact that it is."""

    rule: int
    id: str
    facts: tuple[Fact, ...]
    bindings: tuple[Term, ...]
    fact: Fact

    @property
    def time(self) -> Time:
        return self.fact[0]


class _KeptItems(dict[Time, Item]):
    """What is kept by time, in the order in which it came; and what is older and pinned."""

    def __init__(self) -> None:
        super().__init__()
        self.pinned: dict[Time, Item] = {}

    def trim(self, low: Time, pinned: tuple[Time, Time] | None) -> None:
        """Drop what is older than `low` and not pinned."""
        start, end = pinned or (low, low)
        for time in [time for time in self.pinned if not start <= time <= end]:
            del self.pinned[time]
        while self and (time := next(iter(self))) < low:
            item = self.pop(time)
            if start <= time <= end:
                self.pinned[time] = item

    def at(self, time: Time) -> Item | None:
        return self.get(time) or self.pinned.get(time)

    def times(self) -> set[Time]:
        return {*self, *self.pinned}


class Record:
    """Owns what is kept of one run. `reach`: how far back, in µs; None: the longest horizon."""

    def __init__(self, program: Program, background: Collection[Triple], reach: Time | None = None) -> None:
        self.program = program
        self.background = frozenset(background)
        self.programs: list[tuple[Time, Program]] = []
        """Those that held before, each with the time from which on it held no more."""
        self.events: list[KeptEvent] = []
        self.begun: dict[str, Time] = {}
        """Rule that a change of rules brought or changed → when: it saw nothing before."""
        self.held_begun: Time | None = None
        """When a change of rules changed those of .lars files: what holds began again then."""
        self.gone: dict[str, list[Fact]] = {}
        """Events, as facts, of rules that a change of rules changed, by name: .lars rules may see them."""
        self.backgrounds: dict[Time, frozenset[Triple]] = {}
        """Time of a change of rules → the background from then on."""
        self.statements: RunStatements | None = None
        self._earliest: Time | None = None
        self.pipeline: Pipeline | None = None
        self.reach = reach if reach is not None else reach_of(program)
        self.pinned: tuple[Time, Time] | None = None
        """What lies between these times, both inclusive, is not forgotten, however old."""
        self.jumps: _KeptItems[Jump] = _KeptItems()
        self._arrived: deque[tuple[Time, Part, str | Arrival]] = deque()
        """What came and was not looked for yet: most graphs come and are forgotten."""
        self._graphs: _KeptItems[list[Graph]] = _KeptItems()
        self._left_out: _KeptItems[list[Graph]] = _KeptItems()
        self.note = self._arrived.append
        """A graph came: its time, what came, and its place, or what can say it."""

    @property
    def clock(self) -> Clock:
        return (None if self.pipeline is None else self.pipeline.clock) or Clock()

    # -- filled by a run

    @property
    def first_instant(self) -> Time | None:
        """The first instant at which a graph came, forgotten or not."""
        self._index()
        return self._earliest

    def _index(self) -> None:
        """Put what came in its place by time."""
        for time, part, place in self._arrived:
            self._graphs.setdefault(time, []).append(_placed(time, part, place))
            if self._earliest is None or time < self._earliest:
                self._earliest = time
        self._arrived.clear()

    def _drop(self, low: Time, pinned: tuple[Time, Time]) -> None:
        """Forget what came, was not looked for, is older than `low` and not pinned."""
        arrived, first = self._arrived, self._earliest
        start, end = pinned
        while arrived and (time := arrived[0][0]) < low:
            came = arrived.popleft()
            if first is None or time < first:
                first = time
            if start <= time <= end:
                self._graphs.pinned.setdefault(time, []).append(_placed(*came))
        self._earliest = first

    def leave_out(self, time: Time, parts: Sequence[Part]) -> None:
        """Graphs were late or refused."""
        self._index()
        gone = {id(part) for part in parts}
        graphs = self._graphs.get(time, [])
        self._left_out.setdefault(time, []).extend(graph for graph in graphs if id(graph.part) in gone)
        self._graphs[time] = [graph for graph in graphs if id(graph.part) not in gone]
        if not self._graphs[time]:
            del self._graphs[time]

    def come_too_late(self, graph: Graph) -> None:
        """A graph comes for an instant that is closed."""
        self._left_out.setdefault(graph.time, []).append(graph)

    def note_jump(self, time: Time, jump: Jump) -> None:
        """An instant of what lasts has its facts."""
        if self.statements is None:
            self.statements = RunStatements(self.background, self.program.holds)
        if jump.program is not None:
            self._renew(time, jump.program)
        self._index()
        graphs = self._graphs.get(time, ())
        self.statements.take(time, jump.messages, [graph.place for graph in graphs])
        if jump.program is not None:
            self._reconcile(time)
        if jump.seen:
            self.jumps[time] = jump

    def note_matches(self, time: Time, matches: Sequence[RawMatch]) -> None:
        counts: Counter[tuple[int, tuple[Term, ...]]] = Counter()
        for rule, (_, _, facts, bindings) in in_order(matches):
            name = f"urn:dotr:{self.program.rules[rule].name}:{match_hash(time, facts)}"
            fact: Fact = (time, bindings, counts[rule, bindings], name)
            counts[rule, bindings] += 1
            self.found(KeptEvent(rule, name, facts, bindings, fact))

    def found(self, event: KeptEvent) -> None:
        self.events.append(event)

    def resume(self, saved: Sequence[Sequence[Any]]) -> None:
        """A snapshot was restored: what it says is stated began before what is kept."""
        self.statements = RunStatements(self.background, self.program.holds)
        self.statements.load(saved)

    def program_at(self, time: Time) -> Program:
        """The program that holds at a time."""
        return next((program for until, program in self.programs if time < until), self.program)

    def _renew(self, time: Time, program: Program) -> None:
        """Another program holds. Facts have happened; rules that are the same keep the events they had."""
        assert self.statements is not None
        before, self.program = self.program, program
        self.programs.append((time, before))
        self.reach = max(self.reach, reach_of(program))
        self.statements.declare(program.holds)
        old = dict(zip(rule_digests(before), before.rules, strict=True))
        same: dict[int, int] = {}
        for place, digest in enumerate(rule_digests(program)):
            rule = program.rules[place]
            if digest in old and old[digest].name == rule.name:
                same[before.rule_index(rule.name)] = place
            else:
                self.begun[rule.name] = time
        if timeline_digest(before) != timeline_digest(program):
            self.held_begun, self.gone = time, {}
        for event in self.events:
            if event.rule not in same:
                self.gone.setdefault(before.rules[event.rule].name, []).append(event.fact)
        kept = [event for event in self.events if event.rule in same]
        self.events = [replace(event, rule=same[event.rule]) for event in kept]

    def _reconcile(self, time: Time) -> None:
        """A change of rules has deleted and inserted the difference of the backgrounds."""
        assert self.statements is not None
        assert self.pipeline is not None
        now = self.pipeline.lasting()
        known = self.statements.basic(time) | self.statements.held(time)
        for triple in known - now:
            self.statements.delete(triple, time)
        for triple in now - known:
            self.statements.insert(triple, time, OF_BACKGROUND)

    # -- what is forgotten

    def trim(self) -> None:
        """Forget what lies further back than can matter."""
        settled = None if self.pipeline is None else self.pipeline.settled
        if settled is None:
            return
        low, pinned = settled - self.reach, self.pinned
        self._drop(low, pinned or (low, low))
        for kept in (self._graphs, self._left_out, self.jumps):
            kept.trim(low, pinned)
        start, end = pinned or (low, low)
        for facts in self.gone.values():
            facts[:] = [fact for fact in facts if fact[0] >= min(start, low)]
        if len(self.events) > 4096 and self.events[0].time < min(start, low):
            self.events = [e for e in self.events if e.time >= low or start <= e.time <= end]
        if self.statements is not None:
            self.statements.forget(low, start, end)

    # -- asked by explanations

    def times(self) -> list[Time]:
        """The instants that are kept, in order."""
        self._index()
        return sorted(self._graphs.times() | self.jumps.times())

    def graphs(self, time: Time) -> Sequence[Graph]:
        """The graphs of an instant that is kept."""
        self._index()
        return self._graphs.at(time) or ()

    def left_out(self, time: Time) -> Sequence[Graph]:
        """Those that were late or refused."""
        return self._left_out.at(time) or ()

    def facts(self, time: Time) -> Mapping[str, Sequence[Fact]] | None:
        """The facts of an instant of what lasts; None where they are to be extracted again."""
        if self.statements is None:
            return None
        jump = self.jumps.at(time)
        return None if jump is None else jump.facts

    def event(self, name: str) -> KeptEvent | None:
        """The composite of that name, if it was kept."""
        return next((event for event in reversed(self.events) if event.id == name), None)

    def consumer(self, rule: int, position: int, fact: Fact, trigger: Fact) -> KeptEvent | None:
        """The event that consumed a fact at a positive position before a trigger fact had its turn."""
        turn = fact_key(trigger)
        for event in self.events:
            if event.rule == rule and event.facts[position] == fact and fact_key(event.facts[0]) < turn:
                return event
        return None


class RecordedPipeline(Pipeline):
    """A pipeline that keeps a record."""

    def __init__(
        self,
        deployment: Deployment,
        record: Record,
        *,
        on_late: LateGraph | None = None,
        on_refused: RefusedInstant | None = None,
        **options: Any,
    ) -> None:
        self.record = record
        self._count = 0
        self._accept, self._note = super().accept, record.note
        record.pipeline = self

        def late(time: Time, part: Part) -> None:
            record.leave_out(time, [part])
            if on_late is not None:
                on_late(time, part)

        def refused(time: Time, parts: Sequence[Part], error: DotrError) -> None:
            record.leave_out(time, parts)
            assert on_refused is not None
            on_refused(time, parts, error)

        super().__init__(
            deployment,
            on_late=late,
            on_refused=None if on_refused is None else refused,
            on_matches=record.note_matches,
            on_jump=record.note_jump,
            **options,
        )

    def accept(self, time: Time, graph: Part) -> None:
        self._note((time, graph, self.place))
        self._count += 1
        if not self._count & TRIM:
            self.record.trim()
        self._accept(time, graph)

    def accept_run(self, times: Sequence[Time], graphs: Sequence[Part]) -> bool:
        """Never: each is noted by itself."""
        return False

    def replace(self, time: Time, program: Program, background: Collection[Triple]) -> None:
        super().replace(time, program, background)
        self.record.backgrounds[time] = frozenset(background)

    def restore(self, state: Mapping[str, Any]) -> Restored:
        restored = super().restore(state)
        for time, parts in self._open.waiting():
            for part in parts or ():
                self._note((time, part, ""))
        if state.get("lasting") is not None:
            self.record.resume(state["lasting"]["stated"])
        return restored


def _placed(time: Time, part: Part, place: str | Arrival) -> Graph:
    return Graph(time, part, place if isinstance(place, str) else place.place)


def reach_of(program: Program) -> Time:
    """How far back explanations of a program's rules look, in µs; what holds may depend on everything."""
    if program.lars.rules:
        back, _ = horizon(program.lars)
        if back is None:
            return ENDLESS
        step = program.lars.step or 1_000_000
        return max(map(_reach, horizons(program), program.rules), default=0) + back + 2 * step
    return max(map(_reach, horizons(program), program.rules), default=0)


def _reach(horizon: Time | None, rule: Rule) -> Time:
    """How far back an explanation of a rule looks; on a cycle of references, one turn of it."""
    return horizon if horizon is not None else max(depths(rule).values())
