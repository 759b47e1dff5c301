"""What a run keeps for explanations: the horizon's graphs, lasting facts, composites, statements.

RecordedPipeline   a pipeline that fills a `Record` while it runs
RunStatements      which statements hold when, what made each and what ends it: the leaves of proofs
History            a run up to the event or the instant to be explained
KeptInstants       any recorded instant, opened again, with the reasons of its statements

Method:  composites are given, never computed again: a horizon bounds what a rule remembers, not what has
         influenced it. Where nothing lasts, facts are extracted again from the graphs, and only where an
         explanation needs them; where something lasts, the facts of each instant are kept as they were found.
         Statements (language.md, "What lasts"): an ended one is remembered as long as an explanation may look
         back, a holding one as long as it holds. A background triple is looked up, never copied; its deletion
         is recorded. An effect is as a message, at the moment after its event, with the event for a place.
         An instant is opened over the same closed background, as an overlay like in a run. Where something
         lasts, what background and insertions state at the instant is closed, and what graphs made lasting is
         opened over it with the instant's own graph; schema among these statements is closed, too.
Why not: lasting/periods.py: it keeps what is needed to go on, neither since when a triple holds nor why.
Cost:    memory: two horizons, while a run goes on past the event to be explained.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dotr.core.deployment import Deployment, Settings
from dotr.core.instant import instant_triples
from dotr.core.pipeline import NOBODY, Pipeline, PipelineObserver
from dotr.detect.analysis import ENDLESS, Occasion, depths, horizons, occasions_seen
from dotr.detect.digest import rule_digests, timeline_digest
from dotr.detect.state import Restored
from dotr.enrich.materialiser import Materialiser
from dotr.enrich.owl import rules_over
from dotr.errors import DataError, DotrError
from dotr.events import (
    Clock,
    Effect,
    Fact,
    GraphOrMessage,
    Message,
    Pattern,
    RawMatch,
    Time,
    in_order,
    labelled,
)
from dotr.explain.derivations import Derivations, SchemaPremises
from dotr.explain.proofs import (
    OF_BACKGROUND,
    Ending,
    EventLeaf,
    InBackground,
    InStream,
    Lasting,
    NotThen,
    Of,
    TripleProof,
)
from dotr.extract.extractor import Extractor, wanted
from dotr.lasting.effects import Form, StatedIndex, fits, forms_of, time_before
from dotr.lasting.instants import LastingInstant
from dotr.lasting.periods import later_of, predicates_of_times
from dotr.lasting.validity import NotHeld, Times, period, times_of
from dotr.program import Delay, Entailment, Hold, Program, Rule
from dotr.program.names import match_hash
from dotr.rdf.terms import RDF_TYPE, Term, Triple
from dotr.rdf.values import values_key
from dotr.reference.calendars import ticks_at
from dotr.reference.tesla import fact_key
from dotr.windows.building import horizon

_FOREVER: Time = 2**127
_TRIPLE = attrgetter("triple")


class LatestStatement(Struct):
    """A triple that a message made last. `hold`: by which line; None of an insertion. `start`: when it
    begins, None: earlier than what was kept. `until`: when it ends by time alone. `over`: when something ends
    it before that, how. `came`: the time of its graph. `stated_by`, `ended_by`: events whose effects did so.
    """

    triple: Triple
    start: Time | None
    until: Time
    hold: Hold | None
    place: str = ""
    over: Time | None = None
    ending: Ending = Ending.OPEN
    came: Time | None = None
    stated_by: EventLeaf | None = None
    ended_by: EventLeaf | None = None

    def holds(self, time: Time) -> bool:
        return (self.start is None or self.start <= time) and time < self.end

    @property
    def end(self) -> Time:
        return self.until if self.over is None else self.over

    def proof(self, now: Time) -> Lasting:
        """The statement as it was known at `now`."""
        inserted, by = self.hold is None, self.stated_by
        if self.over is not None and self.over <= now:
            ended = self.ending, inserted, self.place, by, self.ended_by
            return Lasting(self.triple, self.start, self.over, *ended)
        until = None if self.until == _FOREVER else self.until
        ending = Ending.TIME if until is not None else Ending.OPEN
        if self.hold is not None and self.hold.latest:
            ending = Ending.NEXT_VALUE
        return Lasting(self.triple, self.start, until, ending, inserted, self.place, by)


class RunStatements:
    """Owns the statements of one run. `forms`: of the patterns of effects."""

    def __init__(
        self,
        background: Collection[Triple],
        holds: Sequence[Hold],
        clock: Clock,
        forms: Collection[Form] = (),
    ) -> None:
        self._clock = clock
        self._background = background if isinstance(background, frozenset) else frozenset(background)
        self._deleted: dict[Triple, Time] = {}  # of the background
        self._deleted_by: dict[Triple, EventLeaf] = {}
        self._made: dict[Triple, list[LatestStatement]] = {}
        self._latest: dict[tuple[Term, Term], list[LatestStatement]] = {}
        self._ends: dict[Time, list[Triple]] = {}
        self._never: deque[tuple[Time, NotThen]] = deque()  # by the time at which they came
        self._aside: set[Triple] = set()  # of which something ended before what is kept
        self.declare(holds, forms)

    def declare(self, holds: Sequence[Hold], forms: Collection[Form] = ()) -> None:
        """What graphs and effects state from now on lasts as these say."""
        self._index = StatedIndex(forms, chain(self._background, self._made) if forms else ())
        self._predicates = {hold.predicate: hold for hold in holds if hold.class_ is None}
        self._classes = {hold.class_: hold for hold in holds if hold.class_ is not None}
        self._rest = self._predicates.pop(None, None)
        self._timely = predicates_of_times(holds)

    def take(
        self,
        time: Time,
        messages: Sequence[Message],
        places: Sequence[str] = (),
        effects: Sequence[Effect] = (),
    ) -> None:
        """What comes at `time`: deletions, then insertions, graphs, and what effects state. Times never
        decrease. Of what an event and a message end, or replace, it is the event that did.
        """
        named = places if len(places) == len(messages) else [""] * len(messages)
        events = [(effect, self._event_of(effect, time)) for effect in effects]
        for triple, event in self._matched(events, time):
            self.delete(triple, time, event)
        for message in messages:
            for triple in message.delete or ():
                self.delete(triple, time)
        graphs = [triple for message in messages for triple in message.graph or ()]
        graphs += [triple for effect in effects for triple in effect.insert]
        times = times_of(graphs, self._timely) if self._timely else {}
        found: list[tuple[Triple, str, EventLeaf | None]] = []
        found += [(triple, "", event) for effect, event in events for triple in effect.insert]
        found += [
            (triple, place, None)
            for message, place in zip(messages, named, strict=True)
            for triple in message.graph or ()
        ]
        made: list[LatestStatement] = []
        values: dict[tuple[Term, Term], tuple[Time, EventLeaf | None]] = {}
        for triple, place, by in found:
            statement = self._statement(triple, time, times, place, by)
            start = time if statement is None or statement.start is None else statement.start
            if triple[:2] not in values or start < values[triple[:2]][0]:
                values[triple[:2]] = start, by
            made += [] if statement is None else [statement]
        for value in values.keys() & self._latest.keys():
            for statement in self._latest[value]:
                self._end(statement, values[value][0], Ending.REPLACED, values[value][1])
            self._latest[value] = [s for s in self._latest[value] if s.end > time]
        for message, place in zip(messages, named, strict=True):
            for triple in message.insert or ():
                self.insert(triple, time, place)
        for statement in made:
            self._add(statement)

    def _event_of(self, effect: Effect, time: Time) -> EventLeaf:
        """The event whose effect happens at a time."""
        return EventLeaf(effect.rule, effect.id, time_before(time, self._clock))

    def _matched(
        self, events: Sequence[tuple[Effect, EventLeaf]], time: Time
    ) -> Iterator[tuple[Triple, EventLeaf]]:
        """The triples stated just before `time` that effects delete, each with the first event that does."""
        patterns: dict[Pattern, EventLeaf] = {}
        for effect, event in events:
            for pattern in effect.delete:
                patterns.setdefault(pattern, event)
        found: dict[Triple, EventLeaf] = {}
        for pattern, event in patterns.items():
            subject, predicate, object_ = pattern
            near: Iterable[Triple] | None
            if isinstance(subject, str) and isinstance(predicate, str) and isinstance(object_, str):
                near = [(subject, predicate, object_)]
            elif (near := self._index.candidates(pattern)) is None:
                near = chain(self._background, self._made)
            for triple in near:
                if fits(triple, pattern) and self.leaf(triple, time - 1, time - 1) is not None:
                    found.setdefault(triple, event)
        yield from found.items()

    def _statement(
        self, triple: Triple, time: Time, times: Times, place: str, by: EventLeaf | None
    ) -> LatestStatement | None:
        """What a triple of a graph or of an effect makes, where it lasts."""
        hold = self._hold_of(triple)
        if hold is None and by is not None:
            return LatestStatement(triple, time, _FOREVER, Hold(triple[1]), place, stated_by=by)
        if hold is None or hold.duration == 0:
            return None
        found = period(triple, hold, time, times, self._clock)
        if isinstance(found, NotHeld):
            self._never.append((time, NotThen(triple, None, None, found.reason, found.term, place)))
            return None
        start, until = found
        return LatestStatement(triple, start, until, hold, place, came=time, stated_by=by)

    def insert(self, triple: Triple, time: Time | None, place: str = "") -> None:
        self._add(LatestStatement(triple, time, _FOREVER, None, place))

    def delete(self, triple: Triple, time: Time, by: EventLeaf | None = None) -> None:
        """End every statement of a triple that holds, or begins later."""
        if triple in self._background and triple not in self._deleted:
            self._deleted[triple] = time
            if by is not None:
                self._deleted_by[triple] = by
        for statement in self._made.get(triple, ()):
            self._end(statement, time, Ending.DELETED, by)

    def load(self, saved: Iterable[Sequence[Any]]) -> None:
        """Take what lasting/periods.py saved: since when it holds is not known."""
        for subject, predicate, object_, deleted, inserted, until, latest, *later in saved:
            triple = subject, predicate, object_
            if deleted:
                self._deleted[triple] = -_FOREVER
            if inserted:
                self.insert(triple, None)
            for end, of_latest in ((until, False), (latest, True)):
                if end is not None:
                    hold = Hold(predicate, latest=of_latest)
                    self._add(LatestStatement(triple, None, _FOREVER if end == "" else end, hold))
            for one in later_of(*later):
                self._add(LatestStatement(triple, one.start, one.until, Hold(predicate, latest=one.latest)))

    def _add(self, statement: LatestStatement) -> None:
        self._made.setdefault(statement.triple, []).append(statement)
        self._index.put(statement.triple)
        if statement.hold is not None and statement.hold.latest:
            self._latest.setdefault(statement.triple[:2], []).append(statement)
        if statement.until != _FOREVER:
            self._ends.setdefault(statement.until, []).append(statement.triple)

    def _end(
        self, statement: LatestStatement, time: Time, ending: Ending, by: EventLeaf | None = None
    ) -> None:
        if time < statement.end:
            statement.over, statement.ending, statement.ended_by = time, ending, by
            self._ends.setdefault(time, []).append(statement.triple)

    def _hold_of(self, triple: Triple) -> Hold | None:
        _, predicate, object_ = triple
        if predicate == RDF_TYPE:
            return self._classes.get(object_, self._rest)
        return self._predicates.get(predicate, self._rest)

    # -- what holds

    def basic(self, time: Time) -> frozenset[Triple]:
        """What the background and insertions state at a time: what changes rarely."""
        gone = {triple for triple, over in self._deleted.items() if over <= time}
        inserted = {
            s.triple for made in self._made.values() for s in made if s.hold is None and s.holds(time)
        }
        return ((self._background - gone) | inserted) if gone or inserted else self._background

    def held(self, time: Time) -> set[Triple]:
        """What graphs made last, at a time."""
        return {
            s.triple for made in self._made.values() for s in made if s.hold is not None and s.holds(time)
        }

    def not_then(self, time: Time) -> list[NotThen]:
        """What graphs up to `time` state under FROM or UNTIL that does not hold then, by its triple."""
        found = [one for came, one in self._never if came <= time]
        for one in (one for made in self._made.values() for one in made):
            timed = one.hold is not None and (one.hold.start or one.hold.until)
            if timed and one.came is not None and one.came <= time and not one.holds(time):
                end = None if one.end == _FOREVER else one.end
                found.append(NotThen(one.triple, one.start, end, place=one.place))
        return sorted(found, key=lambda one: values_key(one.triple))

    def leaf(self, triple: Triple, time: Time, now: Time) -> TripleProof | None:
        """Why a triple is stated at `time`, as known at `now`; None where it is not. Of several statements
        the background's, then the one that lasts longest, then the first.
        """
        if triple in self._background and time < self._deleted.get(triple, _FOREVER):
            over = self._deleted.get(triple)
            return self._of_background(triple) if over is not None and over <= now else InBackground(triple)
        found = [s for s in self._made.get(triple, ()) if s.holds(time)]
        return max(found, key=_lasts).proof(now) if found else None

    def moved(self, time: Time, *, ended: bool) -> tuple[Lasting | InBackground, ...]:
        """The statements that ended, or began, at a time: those of the background, then in the order of their
        triples.
        """
        gone = sorted(triple for triple, over in self._deleted.items() if ended and over == time)
        made = (s for of in self._made.values() for s in of if s.start is None or s.start < s.end)
        found = sorted((s for s in made if (s.end if ended else s.start) == time), key=_TRIPLE)
        return *map(self._of_background, gone), *(s.proof(time) for s in found)

    def _of_background(self, triple: Triple) -> InBackground:
        """A triple of the background that was deleted."""
        return InBackground(triple, self._deleted[triple], self._deleted_by.get(triple))

    def gone(self, nodes: Sequence[Term | None], time: Time) -> tuple[Lasting | InBackground, ...]:
        """Of the statements that ended by `time` and have these terms (None: any) those that ended last, in
        the order of their triples.
        """

        def fits_nodes(triple: Triple) -> bool:
            return all(node is None or node == term for node, term in zip(nodes, triple, strict=True))

        ends: dict[Triple, tuple[Time, Lasting | InBackground]] = {}
        for triple, over in self._deleted.items():
            if -_FOREVER < over <= time and fits_nodes(triple):
                ends[triple] = over, self._of_background(triple)
        for triple in filter(fits_nodes, self._made):
            for s in self._made[triple]:
                begun = s.start is None or s.start < s.end
                if begun and s.end <= time and (triple not in ends or ends[triple][0] < s.end):
                    ends[triple] = s.end, s.proof(time)
        last = max((end for end, _ in ends.values()), default=time)
        return tuple(ends[triple][1] for triple in sorted(ends) if ends[triple][0] == last)

    def forget(self, low: Time, start: Time, end: Time) -> None:
        """Drop what ended before `low` and did not hold between `start` and `end`. Cost: what ended since the
        last time, and what is kept for `start` and `end`.
        """
        while self._never and self._never[0][0] < min(low, start):
            self._never.popleft()
        for time in [time for time in self._ends if time < low]:
            self._aside.update(self._ends.pop(time))
        still: set[Triple] = set()
        for triple in self._aside:
            made = self._made.get(triple, [])
            old = [s for s in made if s.end < low]
            pinned = [s for s in old if s.end >= start and (s.start is None or s.start <= end)]
            kept = [s for s in made if s.end >= low or s in pinned]
            if kept:
                self._made[triple] = kept
            else:
                self._made.pop(triple, None)
                if triple not in self._background:
                    self._index.discard(triple)
            if pinned:
                still.add(triple)
            of_latest = [s for s in self._latest.get(triple[:2], ()) if s.end >= low]
            if of_latest:
                self._latest[triple[:2]] = of_latest
            else:
                self._latest.pop(triple[:2], None)
        self._aside = still


def _lasts(statement: LatestStatement) -> tuple[Time, Time]:
    return statement.end, -(statement.start if statement.start is not None else -_FOREVER)


TRIM = 63
"""What is too old is forgotten when so many graphs have come, and one more: a mask."""


Item = TypeVar("Item")


class Arrival(Protocol):
    """What came with one message, which can find its place."""

    @property
    def time(self) -> Time: ...
    @property
    def part(self) -> GraphOrMessage: ...
    @property
    def place(self) -> str: ...


class Graph(NamedTuple):
    """What came with one message, and its place."""

    time: Time
    part: GraphOrMessage
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
        self.effects: dict[Time, tuple[EventLeaf, ...]] = {}
        """Time → the events whose effects happened then, of those that are kept."""
        self.low: Time | None = None
        """What is older was forgotten, unless it is pinned."""
        self.backgrounds: dict[Time, frozenset[Triple]] = {}
        """Time of a change of rules → the background from then on."""
        self.statements: RunStatements | None = None
        self._earliest: Time | None = None
        self.pipeline: Pipeline | None = None
        self.reach = reach if reach is not None else reach_of(program)
        self._reach_of_rules: tuple[Program, Sequence[Time]] | None = None
        self.pinned: tuple[Time, Time] | None = None
        """What lies between these times, both inclusive, is not forgotten, however old."""
        self.lasting: _KeptItems[LastingInstant] = _KeptItems()
        self._arrived: deque[tuple[Time, GraphOrMessage, str | Arrival]] = deque()
        """What came and was not looked for yet: most graphs come and are forgotten."""
        self._graphs: _KeptItems[list[Graph]] = _KeptItems()
        self._left_out: _KeptItems[list[Graph]] = _KeptItems()
        self.note = self._arrived.append
        """A graph came: its time, what came, and its place, or what can say it."""

    @property
    def clock(self) -> Clock:
        return (None if self.pipeline is None else self.pipeline.clock) or Clock()

    @property
    def closed(self) -> Time:
        """Up to when time is closed; 0 before the first instant."""
        return (None if self.pipeline is None else self.pipeline.watermark) or 0

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

    def leave_out(self, time: Time, parts: Sequence[GraphOrMessage]) -> None:
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

    def note_lasting(self, time: Time, instant: LastingInstant) -> None:
        """An instant of what lasts has its facts."""
        if self.statements is None:
            self.statements = self._new_statements()
        if instant.program is not None:
            self._renew(time, instant.program)
        self._index()
        graphs = self._graphs.get(time, ())
        self.statements.take(time, instant.messages, [graph.place for graph in graphs], instant.effects)
        if instant.effects:
            before = time_before(time, self.clock)
            self.effects[time] = tuple(EventLeaf(one.rule, one.id, before) for one in instant.effects)
        if instant.program is not None:
            self._reconcile(time)
        if instant.seen:
            self.lasting[time] = instant

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
        """A snapshot was restored: its statements began before what is kept."""
        self.statements = self._new_statements()
        self.statements.load(saved)

    def _new_statements(self) -> RunStatements:
        program = self.program
        return RunStatements(self.background, program.holds, self.clock, forms_of(program.rules))

    def program_at(self, time: Time) -> Program:
        """The program that holds at a time."""
        return next((program for until, program in self.programs if time < until), self.program)

    def _renew(self, time: Time, program: Program) -> None:
        """Another program holds. Facts have happened; rules that are the same keep the events they had."""
        assert self.statements is not None
        before, self.program = self.program, program
        self.programs.append((time, before))
        self.reach = max(self.reach, reach_of(program))
        self.statements.declare(program.holds, forms_of(program.rules))
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
        self.low = low
        self._drop(low, pinned or (low, low))
        for kept in (self._graphs, self._left_out, self.lasting):
            kept.trim(low, pinned)
        start, end = pinned or (low, low)
        for facts in self.gone.values():
            facts[:] = [fact for fact in facts if fact[0] >= min(start, low)]
        if len(self.events) > 4096 and self.events[0].time < min(start, low):
            self.events = [e for e in self.events if e.time >= low or start <= e.time <= end]
        if self.statements is not None:
            self.statements.forget(low, start, end)
        for time in [time for time in self.effects if time < min(start, low)]:
            del self.effects[time]

    # -- asked by explanations

    def times(self) -> list[Time]:
        """The instants that are kept, in order."""
        self._index()
        return sorted(self._graphs.times() | self.lasting.times())

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
        instant = self.lasting.at(time)
        return None if instant is None else instant.facts

    def event(self, name: str) -> KeptEvent | None:
        """The composite of that name, if it was kept."""
        return next((event for event in reversed(self.events) if event.id == name), None)

    def opens(self, event: KeptEvent) -> bool:
        """Whether everything that an event's proof needs was kept."""
        if self.low is None:
            return True
        since = event.time - self._reaches()[event.rule]
        start, end = self.pinned or (self.low, self.low)
        return since >= self.low or start <= since <= event.time <= end

    def _reaches(self) -> Sequence[Time]:
        if self._reach_of_rules is None or self._reach_of_rules[0] is not self.program:
            self._reach_of_rules = self.program, reaches_of(self.program)
        return self._reach_of_rules[1]

    def consumed(self, rule: int, position: int, trigger: Fact) -> dict[Fact, KeptEvent]:
        """The facts consumed at a positive position before a trigger fact had its turn → the first event that
        did.
        """
        turn, found = fact_key(trigger), dict[Fact, KeptEvent]()
        for event in self.events:
            if event.rule == rule and fact_key(event.facts[0]) < turn:
                found.setdefault(event.facts[position], event)
        return found


class RecordedPipeline(Pipeline):
    """A pipeline that keeps a record."""

    def __init__(
        self,
        deployment: Deployment,
        record: Record,
        observer: PipelineObserver = NOBODY,
        **options: Any,
    ) -> None:
        self.record = record
        self._count = 0
        self._accept, self._note = super().accept, record.note
        record.pipeline = self

        def late(time: Time, part: GraphOrMessage) -> None:
            record.leave_out(time, [part])
            if observer.late is not None:
                observer.late(time, part)

        def refused(time: Time, parts: Sequence[GraphOrMessage], error: DotrError) -> None:
            record.leave_out(time, parts)
            assert observer.refused is not None
            observer.refused(time, parts, error)

        recording = replace(
            observer,
            late=late,
            refused=None if observer.refused is None else refused,
            matches=record.note_matches,
            lasting=record.note_lasting,
        )
        super().__init__(deployment, recording, **options)

    def accept(self, time: Time, graph: GraphOrMessage) -> None:
        self._note((time, graph, self.place))
        self._count += 1
        if not self._count & TRIM:
            self.record.trim()
        self._accept(time, graph)

    def accept_run(self, times: Sequence[Time], graphs: Sequence[GraphOrMessage]) -> bool:
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


def _placed(time: Time, part: GraphOrMessage, place: str | Arrival) -> Graph:
    return Graph(time, part, place if isinstance(place, str) else place.place)


def reach_of(program: Program) -> Time:
    """How far back explanations of a program's rules look, in µs; what holds may depend on everything."""
    return max(reaches_of(program), default=0)


def reaches_of(program: Program) -> list[Time]:
    """`reach_of`, by rule."""
    more = 0
    if program.lars.rules:
        back, _ = horizon(program.lars)
        if back is None:
            return [ENDLESS for _ in program.rules] or [ENDLESS]
        more = back + 2 * (program.lars.step or 1_000_000)
    return [_reach(*one) + more for one in zip(horizons(program), program.rules, strict=True)] or [more]


def whole_reach_of(program: Program) -> Time:
    """How far back proofs of a program's events look that are complete: an event may have stated long ago
    what lasts.
    """
    return ENDLESS if any(rule.has_effects for rule in program.rules) else reach_of(program)


def _reach(horizon: Time | None, rule: Rule) -> Time:
    """How far back an explanation of a rule looks; on a cycle of references, one turn of it."""
    return horizon if horizon is not None else max(depths(rule).values())


AHEAD = 63
"""Graphs are run when so many have been taken, and one more: a mask."""


class History(Record):
    """Owns a run and what of it is kept. `wanted` says which event is explained: the last one it is true of;
    with `first`, the run ends at the first. `until`: nothing later is evaluated. `also`: an instant that is
    kept, too. `everything`: what no query reaches is kept in the instants, too. `reads_on`: graphs that come
    too late for the instant `until` are noted.
    """

    def __init__(
        self,
        program: Program,
        background: Collection[Triple],
        *,
        wanted: Callable[[KeptEvent], bool] = lambda event: True,
        first: bool = False,
        until: Time | None = None,
        also: Time | None = None,
        lateness: int = 0,
        everything: bool = False,
        reads_on: bool = False,
    ) -> None:
        super().__init__(program, background, whole_reach_of(program))
        deployment = Deployment(program, background, Settings(materialize_all=everything))
        observer = PipelineObserver(overworked=lambda *_: None)
        self._run = RecordedPipeline(deployment, self, observer, lateness=lateness)
        self.wanted_event: KeptEvent | None = None
        self.wanted_program = program
        """That of the event's time."""
        self.pinned = None if also is None else (also, also)
        self._wanted, self._first, self._until = wanted, first, until
        self._lateness, self._reads_on = lateness, reads_on

    def go_on(self, state: Mapping[str, Any], clock: Clock, since: Time | None = None) -> None:
        """Go on from a state that a feed kept, instead of from nothing. `since`: up to when instants had run
        then.
        """
        self._run.restore(state)
        self._earliest = since
        if self._run.clock is None:
            self._run.begin(clock)

    def replace(self, time: Time, clock: Clock, program: Program, background: Collection[Triple]) -> None:
        """From a time on another program holds. Raises UsageError D4161, ProgramError."""
        if self._run.clock is None:
            self._run.begin(clock)
        self._run.replace(time, program, background)
        self.reach = max(self.reach, whole_reach_of(program))

    def run(self, graphs: Iterable[Arrival], clock: Callable[[], Clock | None]) -> None:
        """Take graphs up to their end, or to what is to be explained."""
        pipeline, graphs, take = self._run, iter(graphs), self._run.take
        bound = None if self._until is None else self._until + self._lateness
        for count, graph in enumerate(graphs, 1):
            time = graph.time
            if bound is not None and time > bound:
                break
            if pipeline.clock is None:
                begun = clock()
                assert begun is not None, "a graph has a time, and so the run has a clock"
                pipeline.begin(begun)
            pipeline.place = graph
            take(time, graph.part)
            if not count & AHEAD and self._drained():
                return
        if self._until is not None and pipeline.clock is not None:
            pipeline.close_up_to(self._until)
        pipeline.close_all()
        self._drained()
        if self._reads_on:
            for graph in graphs:
                if graph.time == self._until:
                    self.come_too_late(Graph(graph.time, graph.part, graph.place))

    def _drained(self) -> bool:
        """Run what is closed; whether what was asked for is found."""
        for _ in self._run.drain():
            pass
        return self._first and self.wanted_event is not None

    def found(self, event: KeptEvent) -> None:
        super().found(event)
        if not (self._first and self.wanted_event is not None) and self._wanted(event):
            self.wanted_event, self.wanted_program = event, self.program
            self.pinned = event.time - self.reach, event.time


class _Base(NamedTuple):
    """A closed store, for a program, over what it was closed. `origins`: of its rules."""

    program: Program
    basic: frozenset[Triple]
    materialiser: Materialiser
    origins: SchemaPremises


class KeptInstants:
    """Owns a store beside the one of the run, and the facts that were extracted again."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._base: _Base | None = None
        self._extract: tuple[_Base, Extractor] | None = None
        self._facts: dict[Time, Mapping[str, Sequence[Fact]]] = {}
        self._occasions: tuple[Program, list[frozenset[Occasion]]] | None = None

    def triples(self, time: Time) -> list[Triple]:
        """What graphs of the stream state at an instant, blank nodes labelled."""
        record = self._record
        if (instant := record.lasting.at(time)) is not None:
            return [triple for message in instant.messages for triple in message.graph or ()]
        graphs = [graph.part for graph in record.graphs(time)]
        if record.statements is not None:
            return [triple for message in labelled(graphs, time) for triple in message.graph or ()]
        return instant_triples([graph.triples for graph in record.graphs(time)], time) if graphs else []

    @contextmanager
    def open(self, time: Time, of: Of = Of.INSTANT, now: Time | None = None) -> Iterator[Derivations]:
        """An instant, to be looked into; ends of statements are given as they were known at `now`."""
        record = self._record
        graph = self.triples(time) if of is Of.INSTANT else []
        moment = time - 1 if of is Of.BEFORE else time
        background, statements = record.background, record.statements
        held: frozenset[Triple] = frozenset()
        if statements is not None:
            background, held = frozenset(statements.basic(moment)), frozenset(statements.held(moment))
        program = record.program_at(moment)
        materialiser = self._opened(program, background, held, graph)
        materialiser.store.moment.time = time
        own = frozenset(graph)
        known = time if now is None else now

        def leaf(triple: Triple) -> TripleProof | None:
            if triple in own:
                return InStream(triple, time)
            if statements is not None:
                return statements.leaf(triple, moment, known)
            return InBackground(triple) if triple in background else None

        base = self._base
        assert base is not None, "an instant is open"
        with_schema = base.origins.leaves(leaf)
        try:
            origins, clauses = base.origins, materialiser.clauses.all
            yield Derivations(
                materialiser.store,
                clauses,
                with_schema,
                origins.of,
                origins.inverse_of,
                partial(statements.not_then, moment) if statements is not None else tuple,
            )
        finally:
            materialiser.forget()

    def _opened(
        self, program: Program, basic: frozenset[Triple], held: frozenset[Triple], graph: Collection[Triple]
    ) -> Materialiser:
        """A store over `basic` in which what is held and a graph are open."""
        materialiser = self._over(program, basic)
        overlay = dict.fromkeys([*sorted(held), *graph])
        try:
            materialiser.instant(overlay)
            if not (held and materialiser.findings()):
                return materialiser
            materialiser.forget()
        except DataError as error:
            if error.diagnostics[0].code != "D2601" or self._record.statements is None:
                raise
        materialiser = self._over(program, basic | held)  # it has schema, or the schema of equal individuals
        materialiser.instant(graph)
        return materialiser

    def _over(self, program: Program, basic: frozenset[Triple]) -> Materialiser:
        record, base = self._record, self._base
        if base is None or base.program is not program or base.basic != basic:
            made = self._made(program, basic)
            lists = program.entailment is Entailment.OWL2RL
            origins = SchemaPremises(program.datalog, basic, made.closed, lists)
            base = self._base = _Base(program, basic, made, origins)
        base.materialiser.store.moment.clock = record.clock
        return base.materialiser

    def _made(self, program: Program, basic: frozenset[Triple]) -> Materialiser:
        record = self._record
        pipeline = record.pipeline
        assert pipeline is not None, "a record is filled by a pipeline"
        deployment = pipeline.deployment
        if basic == record.background and deployment.program is program:
            closed = pipeline.instants.enrich.closed
            return Materialiser(closed.instantiated.rules, closed=closed)
        needed = wanted(program, deployment.settings.materialize_all)
        return Materialiser(rules_over(program, basic), basic, needed=needed)

    def facts(self, time: Time, stream: str) -> Sequence[Fact]:
        """The facts of a query, or of a stream of changes, at an instant, in canonical order."""
        if self._record.statements is not None:
            return (self._record.facts(time) or {}).get(stream, ())
        if time not in self._facts:
            record = self._record
            materialiser = self._opened(record.program, record.background, frozenset(), self.triples(time))
            try:
                self._facts[time] = self._extractor().facts(time)
            finally:
                materialiser.forget()
        return self._facts[time].get(stream, ())

    def _extractor(self) -> Extractor:
        base = self._base
        assert base is not None, "an instant is open"
        if self._extract is None or self._extract[0] is not base:
            self._extract = base, Extractor(self._record.program.queries, base.materialiser.store)
        return self._extract[1]

    def state(self, time: Time) -> tuple[list[Triple], list[Triple]]:
        """(what background, messages and stream state, what is derived) at an instant, each sorted."""
        statements = self._record.statements
        stated: Collection[Triple] = self._record.background
        if statements is not None:
            stated = statements.basic(time) | statements.held(time)
        with self.open(time):
            assert self._base is not None, "an instant is open"
            holds = set(self._base.materialiser.state())
        stated = {*stated, *self.triples(time)}
        return sorted(stated), sorted(holds - stated)

    def between(
        self, rule: int, stream: str, start: Time, end: Time, ticks: Iterable[Time] = ()
    ) -> list[Fact]:
        """The facts of a stream at the instants of `[start, end]` that a rule sees; `ticks`: those without a
        graph.
        """
        record = self._record
        if record.statements is not None:
            times = [t for t in sorted(record.lasting.times()) if start <= t <= end and self._sees(rule, t)]
        else:
            times = sorted({t for t in (*record.times(), *ticks) if start <= t <= end})
        return [fact for time in times for fact in self.facts(time, stream)]

    def _sees(self, rule: int, time: Time) -> bool:
        """Whether a rule sees an instant of what lasts."""
        instant, program = self._record.lasting.at(time), self._record.program
        assert instant is not None, "it is kept"
        if self._occasions is None or self._occasions[0] is not program:
            self._occasions = program, occasions_seen(program)
        return instant.graph or any(
            self._is_due(occasion, instant, time) for occasion in self._occasions[1][rule]
        )

    def _is_due(self, occasion: Occasion, instant: LastingInstant, time: Time) -> bool:
        if isinstance(occasion, Delay):
            return self._is_late(occasion, time - occasion.duration)
        if isinstance(occasion, str):
            return bool(instant.facts.get(occasion)) or self._is_event(occasion, time)
        return ticks_at(occasion, time)

    def _is_late(self, delay: Delay, when: Time) -> bool:
        """Whether an AFTER of this stream follows a fact at `when`."""
        record, stream = self._record, delay.stream
        if stream in {rule.name for rule in record.program.rules}:
            return self._is_event(stream, when)
        instant = record.lasting.at(when)
        return instant is not None and (instant.graph or " " in stream) and bool(instant.facts.get(stream))

    def _is_event(self, stream: str, time: Time) -> bool:
        """Whether a rule or a sequence of this name has an event at `time`."""
        record = self._record
        names = {rule.name: place for place, rule in enumerate(record.program.rules)}
        place = names.get(stream)
        return place is not None and any(e.rule == place and e.time == time for e in record.events)

    def forget(self, before: Time) -> None:
        """Drop facts that were extracted again and are not looked at any more."""
        for time in [time for time in self._facts if time < before]:
            del self._facts[time]
