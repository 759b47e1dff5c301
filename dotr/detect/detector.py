"""The TESLA engine: facts of an instant in, matches out, in output order.

Place:   step 3 of the pipeline (core/deployment.py opens it); same interface as the literal oracle beside it.
Method:  at an instant: fill the columns (network.py), run the rules that woke in dependency order (composites
         of chained rules fill and wake in turn), then fill the columns that exclude the instant itself. Rules
         are planned and grouped by shape (plan.py), and compiled when they first run (code.py).
         If rules are independent, one generated function per network does this in a loop over the instants of
         a batch. Which columns a stream fills, and whether it triggers rules, is fixed for a network. So the
         loop tests for each stream in turn and contains the code that fills its columns (columns.py): a fact
         needs no call. Awake rules are called once per instant. Facts that trigger no rule may come with a
         later instant: they only fill columns, each with its own time. Rare cases are calls: an instant
         without a graph or out of order, a sweep, a new key. If there are many streams, testing for each
         takes longer than a call: then each set of streams that an instant has gets a function, written at
         its first use. Rules that depend on each other, on a clock or on what holds go to the detector.
Why not: partial matches carried from event to event (an automaton's runs): TESLA chooses backwards from the
         trigger, so nothing needs to be built before it comes. The code of rules in the loop, too: their call
         is a twentieth of the cost of an instant with a trigger, and rules that never wake would have to be
         compiled.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from operator import itemgetter
from typing import Any, TypeAlias

from msgspec import Struct, field

from dotr.budget import BUDGET, EVENT, Overlong
from dotr.codegen import CodeSource
from dotr.detect import state as states
from dotr.detect.analysis import IdleTicks, Occasion, due, next_tick
from dotr.detect.columns import Column
from dotr.detect.digest import rule_digests
from dotr.detect.network import NEVER, Network, Options, RuleBundle, StreamWiring
from dotr.detect.state import Restored
from dotr.detect.thresholds import Filtered
from dotr.detect.timeline import Timeline
from dotr.errors import DataError, Diagnostic, ProgramError
from dotr.events import FOREVER, Clock, Fact, Match, RawMatch, Time, in_order
from dotr.expressions.rhythms import is_tick
from dotr.program.names import Counts, Passed, RefusedTrigger, counts, fail, match_hash, overlong_facts
from dotr.program.program import Program
from dotr.rdf.terms import Term
from dotr.rdf.values import values_key

LOOKS = 8
"""The greatest number of tests for streams in the loop."""

SETS = 64
"""The greatest number of sets of streams that get a function; instants with others go to the detector."""

Instants: TypeAlias = Iterable[tuple[Time, object, Mapping[str, Sequence[Fact]], bool]]

BatchLoop: TypeAlias = Callable[[Instants, Counts, Counts, bool], Iterator[tuple[int, list[RawMatch]]]]
"""See `TeslaDetector.detected`."""


def waking(network: Network) -> frozenset[str] | None:
    """The streams whose facts trigger rules, if the loop takes facts of other streams with a later instant;
    None if it needs every instant by itself.
    """
    if network.clocks or network.late or network.sequences or network.chains:
        return None
    if len(_looks(network)) > LOOKS:
        return None
    return frozenset(name for name, stream in network.streams.items() if stream.triggers)


def write_loop(
    network: Network,
    instant: Callable[[Time, Mapping[str, Sequence[Fact]], bool], list[RawMatch]],
    refused: Sequence[int],
    *,
    plain: bool,
) -> BatchLoop:
    """Write the loop. `instant` processes any instant; without `plain`, every one. `refused[0]`: the number
    of refused trigger facts.
    """
    source = CodeSource()
    in_loop = _sequences_in_loop(network) if network.sequences and plain else None
    looks = _looks(network) if plain and not network.sequences else []
    many = _Sets(looks, network) if len(looks) > LOOKS else None
    if many is not None:
        looks = []
    net, nothing = source.name("network", network), source.name("nothing", [])
    counts: dict[str, str] = {}
    counted = [look.name for look in looks if look.first] if in_loop is None else network.queries
    for name in counted:
        stream = source.name("stream", name)
        counts[name] = f"n_{stream}"
        source.line(f"n_{stream} = seen[{stream}]")
    failed = f"{source.name('refused', refused)}[0]"

    source.line(f"idle = [] if every else {nothing}")
    source.line(f"now, was = {net}.now, {failed}")
    source.line(f"if now is None: now = {source.name('never', NEVER)}")
    with source.block("for place, (time, _, facts, graph) in enumerate(instants)"):
        depth = source.depth
        if many is not None:
            source.line(f"run = {source.name('sets', many)}[tuple(facts)] if graph and now < time else None")
        if looks or many is not None or in_loop is not None:
            with source.block("if graph and now < time" if many is None else "if run is not None"):
                source.line("out = idle")
                source.line(f"{net}.now = now = time")
                source.line(f"if time >= {net}.sweep_at: {net}.sweep(time)")
                if in_loop is not None:
                    in_loop(source, network, _as_facts)
                for look in looks:
                    with source.block(f"if {source.name('stream', look.name)} in facts"):
                        source.line(f"new = facts[{source.name('stream', look.name)}]")
                        if look.first:
                            source.line(f"{counts[look.name]}[0] += len(new)")
                        look.write(source, network)
                if many is not None:
                    source.line("out = run(time, facts, idle, seen)")
            source.open("else")
        source.line("counted = seen if graph else quiet")
        source.line("for name in facts: counted[name][0] += len(facts[name])")
        source.line(f"out = {source.name('instant', instant)}(time, facts, graph)")
        source.line("now = time")
        source.resume(depth)
        with source.block(f"if out is not {nothing} and (out or every or {failed} != was)"):
            source.line(f"was = {failed}")
            source.line("yield place, out")
    return source.function("instants, seen, quiet, every")


def _sequences_in_loop(network: Network) -> Callable[..., None] | None:
    """What writes an instant with sequences, if that can be in the loop."""
    from dotr.detect.sequences.loop import in_loop, write_instant  # noqa: PLC0415  # start-up: few have one

    return write_instant if in_loop(network) else None


class _Sets(dict[tuple[str, ...], Any]):
    """Owns a function for each set of streams that an instant has: (time, facts, no matches, counts by
    stream) → matches; None for a set beyond the first ones.
    """

    def __init__(self, looks: Sequence[_Look], network: Network) -> None:
        super().__init__()
        self._looks, self._network = looks, network

    def __missing__(self, names: tuple[str, ...]) -> Callable[..., list[RawMatch]] | None:
        if len(self) >= SETS:
            return None
        source = CodeSource()
        source.line("out = idle")
        for look in self._looks:
            if look.name in names:
                stream = source.name("stream", look.name)
                source.line(f"new = facts[{stream}]")
                if look.first:
                    source.line(f"seen[{stream}][0] += len(new)")
                look.write(source, self._network)
        source.line("return out")
        self[names] = run = source.function("time, facts, idle, seen")
        return run


class _Look(Struct):
    """What the loop does with a stream's facts after one test for it. `first`: the first such test."""

    name: str
    stream: StreamWiring
    first: bool
    fills: Sequence[Column[object]] = ()
    runs: bool = False
    defers: Sequence[Column[object]] = ()

    def write(self, source: CodeSource, network: Network) -> None:
        """Write it for the facts in the local `new`; matches go to `out`."""
        for column in self.fills:
            column.write_insert(source, "new")
        if self.first and self.stream.defers:
            with source.block("if new and new[0][0] < time"):
                source.line(f"old = new[:{source.name('bisect', bisect_left)}(new, (time,))]")
                for column in self.stream.defers:
                    column.write_insert(source, "old")
        if self.runs:
            awake = source.name("awake", self.stream.awake)
            with source.block(f"if {awake} and new"):
                source.line("if out is idle: out = []")
                with source.block(f"for _, bundle in {awake}"):
                    compile_ = source.name("compile", network.compile)
                    source.line(f"(bundle.run or {compile_}(bundle))(time, new, out)")
        if self.defers:
            with source.block("if new and new[0][0] < time"):
                source.line(f"new = new[{source.name('bisect', bisect_left)}(new, (time,)):]")
            for column in self.defers:
                column.write_insert(source, "new")


def _looks(network: Network) -> list[_Look]:
    """The steps of an instant, in order; adjacent steps of one stream are joined. Streams that no rule reads
    are included, to count their facts.
    """
    streams = {name: StreamWiring() for name in network.queries} | network.streams
    order = sorted(streams, key=lambda name: streams[name].triggers)
    looks: list[_Look] = []

    def look(name: str, first: bool) -> _Look:
        if not looks or looks[-1].name != name:
            looks.append(_Look(name, streams[name], first))
        return looks[-1]

    for name in order:
        look(name, True).fills = streams[name].fills
    for name in reversed(order):
        if streams[name].triggers:
            look(name, False).runs = True
    for name in order:
        if streams[name].defers:
            look(name, False).defers = streams[name].defers
    return looks


_RANK = itemgetter(0)

_Pending: TypeAlias = tuple[Column[Any], Sequence[Fact]]
_Woken: TypeAlias = tuple[float, RuleBundle, Sequence[Fact]]

__all__ = ["Filtered", "RefusedTrigger", "Restored", "TeslaDetector"]


class TeslaDetector:
    """Owns the columns of a program's rules and the time.

    `budget`: units of work (budget.py) of a rule at one trigger fact. Past it the fact has no match of the
    rule and nothing is consumed; `on_refused` gets the rule, the fact, and ProgramError D4010. If that is
    raised, as it is without `on_refused`, the detector cannot continue. `same`: streams that always have the
    facts of another (equal queries) → that other; `detect` gets them under its name only. `filtered`: streams
    whose facts are those of a base that pass a comparison with a constant; `detect` gets the base's facts,
    under its name. `timeline`: of the program's LARS rules. `listed`: all matches are wanted, also those
    of private rules that others only count.
    """

    def __init__(
        self,
        program: Program,
        clock: Clock,
        *,
        budget: int = BUDGET,
        on_refused: RefusedTrigger = fail,
        same: Mapping[str, str] | None = None,
        filtered: Mapping[str, Filtered] | None = None,
        timeline: Timeline | None = None,
        listed: bool = False,
    ) -> None:
        self.program = program
        self.timeline = timeline
        self._on_refused = on_refused
        self._spent = [0]
        spent = None if timeline is None else self._spent
        self._options = Options(
            clock, budget, self._refuse, dict(same or {}), dict(filtered or {}), spent, listed
        )
        self._digests: tuple[str, ...] | None = None
        self._first: Time | None = None
        self._refused = [0]
        self._uncounted = counts()
        self._each_still: list[
            tuple[list[int], list[int]]
        ] = []  # counts, and what a still point adds to each
        self._take(self._network([0] * len(program.rules), None))

    def _network(self, epochs: Sequence[int], now: Time | None) -> Network:
        return Network(self.program, self._options, epochs, now)

    def _refuse(self, rule: int, fact: Fact, error: ProgramError) -> None:
        self._refused[0] += 1
        self._on_refused(rule, fact, error)

    def _take(self, network: Network) -> None:
        self.network = network
        self._streams = network.streams
        self._every = list(network.clocks)
        self._late = list(network.late.values())
        self._due = None if network.now is None else self._next_every(network.now)
        self._sequences = list(network.sequences.values())
        self._deadlines = [one.sequence for one in self._sequences if one.sequence is not None]
        self._plain = not (self._every or self._late or self._sequences or network.chains)
        self._seen_alone = _seen_alone(network) if self._plain else frozenset()
        self._waking = None if self.timeline is not None else waking(network)
        self._loop: BatchLoop | None = None

    def at(self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool = True) -> list[Match]:
        """The matches at `time`, in output order; see `detect`."""
        return [Match(rule, *raw[1:]) for rule, raw in in_order(self.detect(time, facts, graph))]

    def detect(self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool = True) -> list[RawMatch]:
        """The matches at `time` as plain tuples, to be sorted by `in_order`; times increase over calls.

        `facts`: stream → its facts of this instant in canonical order; streams without facts may be left out.
        `graph` False: no graph came, and only rules that still see the instant are touched. Raises DataError
        D4002 when time does not increase, and what `on_refused` raises.
        Cost: the facts, the rules they wake, and the matches; nothing per rule without any.
        """
        one = ((time, None, facts, graph),)
        _, found = next(self.detected(one, self._uncounted, self._uncounted, every=True))
        return found

    def _instant(self, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool) -> list[RawMatch]:
        """An instant that the loop does not process itself."""
        network = self.network
        now = network.now
        if now is None:
            self._first = time
            self._due = self._next_every(time - 1)
        elif time <= now:
            raise DataError(Diagnostic("D4002", f"time runs backwards: {time} after {now}"))
        network.now = time
        if time >= network.sweep_at:
            network.sweep(time)
        if self.timeline is not None:
            return self._with_timeline(self.timeline, time, facts, graph)
        if not graph and not self._seen_alone.issuperset(facts):
            return self._without_graph(time, facts)
        streams = self._streams
        known = [(streams[name], new) for name, new in facts.items() if new and name in streams]
        for stream, new in known:
            for column in stream.fills:
                column.insert(new)
        if self._plain:  # rules are independent
            out: list[RawMatch] = []
            for stream, new in known:
                for _, group in stream.awake:
                    (group.run or network.compile(group))(time, new, out)
            for stream, new in known:
                for column in stream.defers:
                    column.insert(new)
            return out
        deferred = [(column, new) for stream, new in known for column in stream.defers]
        agenda = [(rank, group, new) for stream, new in known for rank, group in stream.awake]
        if self._due is not None and time >= self._due:
            agenda += self._ticked(time)
        if self._late or self._sequences:
            agenda += self._awaited(time)
        return self._run(time, agenda, deferred)

    def detected(
        self,
        instants: Instants,
        seen: Counts,
        quiet: Counts,
        *,
        every: bool = False,
    ) -> Iterator[tuple[int, list[RawMatch]]]:
        """`detect` for a sequence of (time, anything, facts, graph): yields place and matches of those that
        have any, or a trigger fact that took too much; with `every`, of all. `seen` and `quiet` count the
        facts of streams with and without a graph.

        Instants after a yielded one are not detected before the next item is requested; `now` is the last one
        detected. An instant may bring facts of earlier ones, see `waking`. Raises ProgramError D4133 for a
        number that is too long where it is computed before any fact triggers the rule.
        """
        loop = self._loop
        if loop is None:
            plain = (self._plain or bool(self._sequences)) and self.timeline is None
            loop = self._loop = write_loop(self.network, self._instant, self._refused, plain=plain)
        try:
            yield from loop(instants, seen, quiet, every)
        except Overlong as overlong:
            raise overlong_facts(overlong) from None

    @property
    def now(self) -> Time | None:
        """The last instant that was detected; None before the first."""
        return self.network.now

    @property
    def waking(self) -> frozenset[str] | None:
        """The streams whose facts trigger rules, if instants without any need not be detected by themselves:
        their facts come, in order, with the next instant that is. None before the first instant, and if every
        one must be.
        """
        return None if self.network.now is None else self._waking

    def _without_graph(self, time: Time, facts: Mapping[str, Sequence[Fact]]) -> list[RawMatch]:
        """Rules that see neither a due tick nor a fact of an ISTREAM or DSTREAM are not touched."""
        agenda, deferred = self._seen(facts, self._occasions(time, facts), frozenset())
        if self._due is not None:
            agenda += self._ticked(time)
        if self._late or self._sequences:
            agenda += self._awaited(time)
        return self._run(time, agenda, deferred)

    def _occasions(self, time: Time, facts: Mapping[str, Sequence[Fact]]) -> frozenset[Occasion]:
        if not (self._every or self._late or self._sequences):
            return frozenset([stream for stream, found in facts.items() if found])
        late = [delay for late in self._late if late.facts(time) for delay in late.delays]
        found = due(time, self._every, facts, late)
        if self._sequences:
            return found.union(one.name for one in self._sequences if one.due(time))
        return found

    def _seen(
        self, facts: Mapping[str, Sequence[Fact]], new: Set[Occasion], old: Set[Occasion]
    ) -> tuple[list[_Woken], list[_Pending]]:
        """Fill the columns that see an instant without a graph for a `new` occasion, and did not for an `old`
        one; returns what wakes, and what to fill at the end of the instant.
        """
        agenda: list[_Woken] = []
        deferred: list[_Pending] = []
        known = [
            (self._streams[name], found) for name, found in facts.items() if name in self._streams and found
        ]
        for stream, found in known:
            for column in stream.fills:
                if _begins(column.spec.occasions, new, old):
                    column.insert(found)
            deferred += [(c, found) for c in stream.defers if _begins(c.spec.occasions, new, old)]
        for stream, found in known:
            agenda += [(rank, g, found) for rank, g in stream.awake if _begins(g.occasions, new, old)]
        return agenda, deferred

    def _with_timeline(
        self, timeline: Timeline, time: Time, facts: Mapping[str, Sequence[Fact]], graph: bool
    ) -> list[RawMatch]:
        """An instant of a program with LARS rules, which may be a point of their timeline."""
        self.pass_over(time)
        still = timeline.stillness(time, facts, graph)
        before = {id(counts): counts[:] for counts in self._looked_at(timeline)} if still else None
        refused, dropped = self._refused[0], self.dropped
        instant = _Instant(time, facts, None if graph else self._occasions(time, facts))
        if instant.seen is None:
            known = [
                (self._streams[name], new) for name, new in facts.items() if name in self._streams and new
            ]
            for stream, new in known:
                for column in stream.fills:
                    column.insert(new)
            instant.deferred += [(column, new) for stream, new in known for column in stream.defers]
            instant.agenda += [(rank, group, new) for stream, new in known for rank, group in stream.awake]
        else:
            agenda, deferred = self._seen(facts, instant.seen, frozenset())
            instant.agenda += agenda
            instant.deferred += deferred
        if self._due is not None and time >= self._due:
            instant.agenda += self._ticked(time)
        instant.agenda += self._awaited(time)
        timeline.take(time, facts, graph)
        self._spent[0] = 0
        layers = deque(timeline.begin(time))
        instant.agenda.sort(key=_RANK)
        out: list[RawMatch] = []
        while layers or instant.place < len(instant.agenda):
            if layers and (
                instant.place == len(instant.agenda) or instant.agenda[instant.place][0] >= layers[0][0]
            ):
                self._held(timeline.evaluate(layers.popleft()[1]), instant)
                continue
            _, group, new = instant.agenda[instant.place]
            instant.place += 1
            start = len(out)
            (group.run or self.network.compile(group))(time, new, out)
            if group.referred and len(out) > start:
                composites = _as_facts(group.name, out[start:])  # of LARS rules' programs all are listed
                timeline.events(group.name, composites)
                self._enter(self._streams[group.name], composites, instant)
        for column, new in instant.deferred:
            column.insert(new)
        timeline.end(self._spent[0] + EVENT * len(out))
        if out or self._refused[0] != refused or self.dropped != dropped:
            timeline.stirred(time)
        elif before is not None and timeline.stillness(time, facts, graph) and time % timeline.step == 0:
            self._each_still.clear()
            for counts in self._looked_at(timeline):
                was = before.get(id(counts), [0] * len(counts))
                more = [now - then for now, then in zip(counts, was, strict=True)]
                self._each_still.append((counts, more))
            timeline.rest()
        return out

    def pass_over(self, bound: Time) -> None:
        """Called if there is no further instant before `bound` and none is due: take what held at the points
        there, and what rules would have counted.
        """
        if self.timeline is None:
            return
        points, stretches = self.timeline.passed(bound)
        for name, stretch in stretches.items():
            stream = self._streams.get(name)
            for column in (*stream.fills, *stream.defers) if stream is not None else ():
                column.pass_over(stretch)
        if points:
            for counts, each in self._each_still:
                counts[:] = [count + points * more for count, more in zip(counts, each, strict=True)]

    def _looked_at(self, timeline: Timeline) -> list[list[int]]:
        """The counts of rules that heads trigger."""
        heads = timeline.triggers
        groups = [group for group in self.network.connected if group.plans[0].stream in heads]
        counts = [count for group in groups for count in (*group.stages.counts, group.stages.triggers)]
        return list({id(count): count for count in counts if count}.values())  # groups may share counts

    def _held(self, changes: Mapping[str, Sequence[Fact]], instant: _Instant) -> None:
        """Take the facts that a layer shows to rules."""
        known = {name: new for name, new in changes.items() if name in self._streams}
        if instant.seen is not None and not known.keys() <= instant.seen:
            agenda, deferred = self._seen(instant.facts, known.keys(), instant.seen)
            for woken in agenda:
                insort(instant.agenda, woken, lo=instant.place, key=_RANK)
            instant.deferred += deferred
            instant.seen = frozenset({*instant.seen, *known})
        for name, new in known.items():
            self._enter(self._streams[name], new, instant)

    def _enter(self, stream: StreamWiring, new: Sequence[Fact], instant: _Instant) -> None:
        """Take facts found while the rules of an instant run."""
        for column in stream.fills:
            column.insert(new)
        instant.deferred += [(column, new) for column in stream.defers]
        for rank, woken in stream.awake:
            insort(instant.agenda, (rank, woken, new), lo=instant.place, key=_RANK)

    def _ticked(self, time: Time) -> list[_Woken]:
        """The groups whose tick is due. (Ticks before it were skipped: they could not match.)"""
        self._due = self._next_every(time)
        tick: list[Fact] = [(time, (), 0, "")]
        clocks = self.network.clocks.items()
        return [
            (rank, g, tick) for every, stream in clocks if is_tick(every, time) for rank, g in stream.awake
        ]

    def _awaited(self, time: Time) -> list[_Woken]:
        """The groups whose AFTER ticks, each with the facts that it follows; the sequences that are due."""
        found = [(late, facts) for late in self._late if (facts := late.facts(time))]
        due_: list[_Woken] = [(one.rank, one, ()) for one in self._sequences if one.due(time)]
        return [(rank, g, facts) for late, facts in found for rank, g in late.wiring.awake] + due_

    def _run(self, time: Time, agenda: list[_Woken], deferred: list[_Pending]) -> list[RawMatch]:
        """Run the woken bundles, and those that their composites wake, in dependency order."""
        out: list[RawMatch] = []
        network = self.network
        agenda.sort(key=_RANK)
        place = 0
        while place < len(agenda):
            _, group, new = agenda[place]
            place += 1
            start = len(out)
            (group.run or network.compile(group))(time, new, out)
            if group.referred and len(out) > start:
                stream = self._streams[group.name]
                composites = _as_facts(group.name, out[start:])
                if group.counted:
                    del out[start:]
                for column in stream.fills:
                    column.insert(composites)
                deferred += [(column, composites) for column in stream.defers]
                for rank, woken in stream.awake:
                    insort(agenda, (rank, woken, composites), lo=place, key=_RANK)
        for column, new in deferred:
            column.insert(new)
        return out

    def due(self, bound: Time) -> Time | None:
        """The next point of LARS rules before `bound` (the next instant) that must be evaluated without a
        graph.
        """
        return None if self.timeline is None else self.timeline.due(bound)

    def next_idle(
        self, ticks: IdleTicks, after: Time, last_graph_time: Time | None, bound: Time
    ) -> Time | None:
        """The next tick or point in (after, bound) that can matter, after the graph at `last_graph_time`."""
        tick = ticks.next(after, last_graph_time, bound) if ticks.ticking else None
        waits = self._late or self._sequences
        if waits and (late := self.next_late(after, bound)) is not None:
            tick = late if tick is None else min(tick, late)
        point = self.due(bound if tick is None else tick)
        return tick if point is None else point

    def idle(
        self, ticks: IdleTicks, after: Time, last_graph_time: Time | None, bound: Time
    ) -> Iterator[Time]:
        """The ticks and points in (after, bound) that can matter; each is detected before the next is asked
        for.
        """
        while (time := self.next_idle(ticks, after, last_graph_time, bound)) is not None:
            yield time
            after = time
        self.pass_over(bound)

    def covering(self, time: Time) -> Time:
        """The time up to which what happens at `time` is visible: that of its point, under LARS rules."""
        return time if self.timeline is None else self.timeline.point(time)

    def next_tick(self, after: Time) -> Time | None:
        """The earliest due tick > `after`; None if there is none, or before the first instant."""
        found = [self._next_every(after), self.next_late(after)]
        return min((tick for tick in found if tick is not None), default=None)

    def _next_every(self, after: Time) -> Time | None:
        return next_tick(self._every, self._first, after)

    def next_late(self, after: Time, bound: Time = FOREVER) -> Time | None:
        """The earliest tick > `after` of an AFTER whose fact has come, or deadline of a sequence at which it
        has a match if no row comes, before `bound`. None of them is ever skipped.
        """
        found: Time | None = None
        for late in self._late:
            tick = late.next(after)
            if tick is not None and tick < bound:
                found = bound = tick
        for sequence in self._deadlines:
            queue = sequence.queue
            if queue and queue[0][0] < bound and (tick := sequence.next(bound)) is not None:
                found = bound = tick
        return found

    @property
    def counted(self) -> frozenset[int]:
        """The rules whose matches are counted and not listed, by number."""
        return frozenset(plan.index for plan in self.network.plans if plan.counted is not None)

    @property
    def dropped(self) -> int:
        """Matches without a valid graph: a literal as subject, or a predicate that is not an IRI."""
        return sum(self.network.dropped)

    def sizes(self) -> dict[str, int]:
        """Rule → how many facts are stored for it; a shared column counts for each of its rules."""
        self.network.sweep_all()
        network = self.network
        size = {column: column.size() for column in network.columns.values()}
        found: dict[str, int] = {}
        for plan in network.plans:
            columns, awaited = network.columns_of[plan.index], network.awaited(plan)
            own = dict.fromkeys(columns if awaited is None else [*columns, awaited])
            found[plan.rule.name] = sum(size[column] for column in own)
        for one in self._sequences:
            if one.sequence is not None:
                if network.now is not None:
                    one.sequence.sweep(network.now)
                found[one.name] = one.sequence.sizes()
        return found

    def passed(self) -> dict[str, Passed]:
        """Rule → how many partial matches each step of it left, in the order of evaluation.

        Counts begin at 0 after a restore. A rule that was never evaluated, since a stream that it must choose
        from had nothing within reach, has no step.
        """
        return self.network.passed()

    def forget_passed(self) -> None:
        """Count from 0 again."""
        self.network.forget_passed()

    def describe(self) -> dict[str, list[str]]:
        """Rule → its plan, one line per position."""
        return {plan.rule.name: plan.describe() for plan in self.network.plans}

    def snapshot(self) -> dict[str, Any]:
        """Everything that later results depend on, as a JSON value, one part per rule digest.

        Rules refer to their columns by number. Shares nothing with the live state.
        """
        state = states.save(self.program, self.network, self._rule_digests(), self._first)
        return state if self.timeline is None else {**state, "timeline": self.timeline.snapshot()}

    def restore(self, state: Mapping[str, Any]) -> Restored:
        """Restore a snapshot of any program: unchanged rules keep their state, others start empty.

        Raises EngineError D5010 for a snapshot of a version this detector does not read; the detector is then
        unchanged.
        """
        network, restored = states.load(self.program, self._rule_digests(), state, self._network)
        self._first = state["first"]
        self._take(network)  # which computes the next tick
        if self.timeline is not None:
            self.timeline.restore(state.get("timeline"))
        return restored

    def _rule_digests(self) -> tuple[str, ...]:
        if self._digests is None:
            self._digests = rule_digests(self.program)
        return self._digests


class _Instant(Struct):
    """An instant while its rules run. `seen`: its occasions, None with a graph; `place`: how much of the
    agenda, sorted by rank, has run.
    """

    time: Time
    facts: Mapping[str, Sequence[Fact]]
    seen: Set[Occasion] | None
    agenda: list[_Woken] = field(default_factory=list)
    deferred: list[_Pending] = field(default_factory=list)
    place: int = 0


def _seen_alone(network: Network) -> frozenset[str]:
    """The streams whose facts all that looks at them sees without a graph, too, whatever else comes."""
    seen = [(spec.stream, spec.occasions) for spec in network.columns]
    seen += [(plan.stream, plan.occasions) for plan in network.plans]
    return frozenset(network.streams).difference(stream for stream, found in seen if stream not in found)


def _begins(occasions: Set[Occasion], new: Set[Occasion], old: Set[Occasion]) -> bool:
    return not occasions.isdisjoint(new) and occasions.isdisjoint(old)


def _as_facts(rule: str, matches: Sequence[RawMatch]) -> list[Fact]:
    """Chaining: composites with equal WITH values are distinct facts, with the output order as ordinal."""
    if len(matches) == 1:
        _, time, facts, bindings = matches[0]
        return [(time, bindings, 0, f"urn:dotr:{rule}:{match_hash(time, facts)}")]
    counts: dict[tuple[Term, ...], int] = {}
    found: list[Fact] = []
    for _, time, facts, bindings in matches:
        ordinal = counts.get(bindings, 0)
        counts[bindings] = ordinal + 1
        found.append((time, bindings, ordinal, f"urn:dotr:{rule}:{match_hash(time, facts)}"))
    found.sort(key=lambda fact: (values_key(fact[1]), fact[2]))
    return found
