"""Detection part by part: rows of facts, sorted by part and time, become composite events.

Place:   the function of a Spark task or of a local process; rows come from fact_rows.py through a shuffle.
Method:  a part has a detector of its group's rules, fed like by the pipeline: instants in time order, between
         them due ticks, from the horizon before the slice on. It keeps the matches whose trigger its slice
         owns.
Memory:  one part's detector at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter

from msgspec import Struct, field

from dotr.batch.extracting import PLAIN, Treatment
from dotr.batch.fact_rows import COUNTED, FINDING, LETTER, MARK, REFUSED, FactReader, FactRow, Layout
from dotr.batch.findings_as_json import packed
from dotr.batch.skew import Weighing, Weight
from dotr.batch.time_gaps import Span
from dotr.batch.verifying import MatchOracle
from dotr.core.deployment import Deployment
from dotr.core.fact_batch import Known
from dotr.core.funnel import FactCounts
from dotr.core.overwork import LeftOut
from dotr.errors import Diagnostic, ProgramError
from dotr.events import Clock, Composite, Fact, RawMatch, Time
from dotr.temporal.partitions import RuleComponentGroup, bucket
from dotr.temporal.stages import Passed, summed
from dotr.tesla.detector import TeslaDetector

TickFacts = Callable[[Time], Mapping[str, Sequence[Fact]]]
"""What the background alone answers at an instant without a graph."""


class Detected(Struct):
    """The result of one task, and what was sent to it: findings, dead letters of the instants `refused`, and
    the number of facts by query. `passed`: how far trigger facts that the task owns got, by rule. `left_out`:
    rule → trigger facts that took it too much work.
    """

    events: int = 0
    dropped: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    parts: int = 0
    letters: list[str] = field(default_factory=list)
    refused: set[Time] = field(default_factory=set)
    findings: list[tuple[Time, str]] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    streams: dict[str, int | None] = field(default_factory=dict)
    passed: dict[str, Passed] = field(default_factory=dict)

    def counted(self) -> str:
        """The counts for funnels, as JSON."""
        return json.dumps([self.streams, self.passed])


class Detecting:
    """Owns the compiled rules of every group of a layout; runs parts, one at a time. (Parts that continue
    from batch to batch: live_parts.py, which uses what belongs to a group.)

    `whole`: there is one group, of all rules, and facts are those of `deployment`.
    """

    def __init__(
        self,
        deployment: Deployment,
        layout: Layout,
        clock: Clock,
        tick_facts: TickFacts,
        standing: Collection[str] = (),
        treatment: Treatment = PLAIN,
        *,
        whole: bool = False,
    ) -> None:
        self._treatment = treatment
        self._layout = layout
        self._clock = clock
        self._program = deployment.program
        self.reader = FactReader(deployment.program)
        self._tick_facts = tick_facts
        self.deployments = (
            [deployment] if whole else [deployment.part(group.rules) for group in layout.plan.groups]
        )
        self.silences = [part.silent(part.program, standing) for part in self.deployments]
        self.emitters = [part.emitter for part in self.deployments]
        self.done = Detected()
        self._left_out = LeftOut(self._overworked if treatment.forgiving else None, self._say)
        self._time: Time = 0

    def events(self, rows: Iterable[FactRow]) -> Iterator[Composite]:
        """The composite events of all parts in `rows`, part by part, in time order within each.

        `rows` are sorted by part and time; a part is never split between calls.
        """
        for number, part in groupby(rows, key=itemgetter(0)):
            if number == REFUSED:
                for _part, time, letter in part:
                    self.done.letters.append(letter)
                    self.done.refused.add(time)
                continue
            if number == LETTER:
                self.done.letters += (letter for _part, _time, letter in part)
                continue
            if number == FINDING:
                self.done.findings += ((time, text) for _part, time, text in part)
                continue
            if number == COUNTED:
                for _part, _time, text in part:
                    for stream, count in json.loads(text).items():
                        self.done.streams[stream] = (self.done.streams.get(stream) or 0) + count
                continue
            self.done.parts += 1
            group, _, _ = self._layout.owner(number)
            weighing = None
            keys = self._layout.plan.groups[group].keys
            if keys is not None and self._layout.cuts[group].buckets > 1:
                weighing = Weighing(number, keys, self.reader, self._program)
                part = weighing.through(part)
            span, known = self._read(part)
            yield from self._composites(group, self._matches(number, span, known))
            if weighing is not None:
                self.done.weights.append(weighing.weight)

    def slice(self, number: int, span: Span, known: Iterable[Known]) -> Iterator[Composite]:
        """The composite events of a slice of `whole`; `known`: its instants, in order; `span`: the first and
        the last of the log. Facts are counted.
        """
        self.done.parts += 1
        group = self._layout.plan.groups[0]
        counts = self.deployments[0].fact_counts()
        ticking = span if group.ticks else None
        yield from self._composites(0, self._matches(number, ticking, known, counts))
        found, streams = counts.streams(self._program.queries), self.done.streams
        for name in self._program.queries:
            had = streams.get(name, 0)
            streams[name] = None if had is None or name not in found else had + found[name]

    def _composites(self, group: int, found: Iterable[Sequence[RawMatch]]) -> Iterator[Composite]:
        emitter = self.emitters[group]
        for matches in found:
            if emitter.hides:
                matches = emitter.public(matches)
            self.done.events += sum(len(match[0]) for match in matches)
            if matches:
                yield from emitter.composites(matches)

    def _read(self, rows: Iterator[FactRow]) -> tuple[Span | None, Iterator[Known]]:
        """A part's facts by instant, and the content of the row before those with facts."""
        read, first = self.reader.read, next(rows)
        if first[1] == MARK:
            begun, ended = map(int, first[2].split(" "))
            return (begun, ended), ((time, (), read(text, time), True) for _part, time, text in rows)
        known = chain([first], rows)
        return None, ((time, (), read(text, time), True) for _part, time, text in known)

    def _matches(
        self, number: int, span: Span | None, known: Iterable[Known], counts: FactCounts | None = None
    ) -> Iterator[Sequence[RawMatch]]:
        """The matches that a part owns (triggered inside its slice), instant by instant. `counts` gets the
        facts of the instants it owns.
        """
        of, bucket_, slice_ = self._layout.owner(number)
        group = self._layout.plan.groups[of]
        part = self.deployments[of]
        left_out = self._left_out
        shared = group.holds and group.keys is not None and self._treatment.shared
        parts = self._layout.cuts[of].buckets if shared else 1
        detector = part.detector(self._clock, left_out.take, parts)
        oracle = MatchOracle(part, self._clock) if self._treatment.verify else None
        slices = self._layout.cuts[of].slices
        start, end = (None, None) if slices is None else slices.bounds(slice_)
        if span is not None:
            known = self._with_silence(
                group, detector, (start, end), known, span, self.tick_facts_of(group, bucket_)
            )
        shown, waiting, dropped = iter(known), list[Known](), 0
        instant: Known

        def before(bound: Time | None) -> Iterator[Known]:
            nonlocal instant
            for instant in chain(waiting, shown):
                if bound is not None and instant[0] >= bound:
                    waiting.append(instant)
                    return
                yield instant

        for bound in (None,) if start is None else (start, None):
            owned, counted = bound is None, FactCounts()
            if owned and start is not None:
                if not waiting:
                    return
                detector.forget_passed()
                dropped = detector.dropped
            if owned and counts is not None:  # others are counted where they are extracted
                counted = counts
            found = detector.detected(before(bound), counted.seen, counted.quiet, every=oracle is not None)
            for _, matches in found:
                time, _, facts, graph = instant
                if oracle is not None:
                    oracle.check(time, facts, graph, matches, left_out.facts)
                if not owned:
                    left_out.forget()  # the slice before reports it
                    continue
                if left_out.facts:
                    self._time = time
                    failed = left_out.settle(time, part.program.rules, self._clock)
                    if failed is not None:
                        raise failed
                if matches:
                    yield matches
        self.done.dropped += detector.dropped - dropped
        self.done.passed = summed(self.done.passed, detector.passed())

    def _overworked(self, rule: str, error: ProgramError) -> None:
        counts = self.done.left_out
        counts[rule] = counts.get(rule, 0) + 1

    def _say(self, finding: Diagnostic) -> None:
        self.done.findings.append((self._time, json.dumps(packed(finding))))

    def _with_silence(
        self,
        group: RuleComponentGroup,
        detector: TeslaDetector,
        bounds: tuple[Time | None, Time | None],
        known: Iterable[Known],
        span: Span,
        tick_facts: TickFacts,
    ) -> Iterator[Known]:
        """The instants of a part, and the ticks and points between and after them; `span` is the log's. The
        first instant is included for a timeline, which begins with it, whatever its keys.
        """
        (first, last), (start, end) = span, bounds
        done = (first if start is None else max(first, start - (group.horizon or 0))) - 1
        stop = last if end is None else min(last, end - 1)
        beginning = first if group.holds else None
        heard: Time | None = None
        for instant in known:
            time = instant[0]
            if beginning is not None and beginning < time:
                yield beginning, (), {}, True
                done = heard = beginning
            beginning = None
            yield from self.silent(group, detector, done, heard, time, tick_facts)
            yield instant
            done = heard = time
        if beginning is not None:
            yield beginning, (), {}, True
            done = heard = beginning
        yield from self.silent(group, detector, done, heard, detector.covering(stop) + 1, tick_facts)

    def tick_facts_of(self, group: RuleComponentGroup, bucket_: int) -> TickFacts:
        """The background's own facts, of a part's keys."""
        keys, buckets = group.keys, self._layout.cuts[group.number].buckets
        if keys is None or buckets == 1:
            return self._tick_facts

        def mine(time: Time) -> Mapping[str, Sequence[Fact]]:
            found = self._tick_facts(time)
            return {
                name: [f for f in facts if not keys[name] or bucket(f[1], keys[name], buckets) == bucket_]
                for name, facts in found.items()
                if name in keys
            }

        return mine

    def silent(
        self,
        group: RuleComponentGroup,
        detector: TeslaDetector,
        after: Time,
        heard: Time | None,
        bound: Time,
        tick_facts: TickFacts,
    ) -> Iterator[Known]:
        """The ticks and points in (after, bound) that can matter; the last graph came at `heard`."""
        silence_ = self.silences[group.number]
        while True:
            tick = silence_.next(after, heard, bound)
            point = detector.due(bound if tick is None else tick)
            time = tick if point is None else point
            if time is None:
                detector.pass_over(bound)
                return
            yield time, (), tick_facts(time), False
            after = time
