"""The two halves of a batch's work over Arrow batches: graphs to facts, facts to events.

Place:   called by Spark's mapInArrow and by the processes of local.py alike.
Method:  plain columns in, plain columns out; a batch of rows amortises the crossing between JVM and Python.
           Extracting   enrich and extract one instant: its graphs become rows of facts (facts.py) for the
                        parts that need them. It sees no other time, so instants may come in any order and
                        anywhere; only the graphs of *one* instant must come together.
           Detecting    rows of facts, sorted by part and time, become composite events. A part has a
                        detector of its group's rules, fed as by the pipeline: instants in time order, between
                        them due ticks, from the horizon before the slice on. It keeps the matches whose
                        trigger its slice owns. In memory there is one part's detector at a time.
           Job          what a worker needs to know; the driver ships it as bytes, identified by the hash of
                        its content (program, background, clock, layout).
           Worker       built once per process, which keeps the workers of its last few jobs, so that its
                        thousands of tasks find the closed background and the compiled queries ready. A large
                        background is a file that the processes of a machine map: it is in memory once.
           FactOracle, MatchOracle   `--verify`: each half beside its literal reading, as reference/oracle.py
                        does for a run: facts against the full SPARQL engine over the naive closure, instant
                        by instant; matches against enumeration over the input of a part.
           Weighing     keys with so many facts that one task has most of the work while the others wait: rows
                        of a part are counted, and the keys of some of them sampled. There is no automatic
                        remedy: a key belongs to one detector, in order; another equation, or cutting by time,
                        helps.
         Diagnostics cross between worker and driver as JSON, without the text they point at: rows of facts
         carry warnings about instants, Spark's exceptions the error of a task.
Why not: a closure over the compiled program: it is unpickled for every task.
"""

from __future__ import annotations

import json
import os
import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from hashlib import blake2b
from itertools import chain, groupby, islice, zip_longest
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.facts import (
    COUNTED,
    FINDING,
    LETTER,
    MARK,
    REFUSED,
    VERSION,
    BundleRow,
    FactReader,
    FactRow,
    GraphRouter,
    Layout,
    Router,
    bundled,
    unbundled,
)
from dotr.batch.time_cuts import Cutoff, Span
from dotr.core.deployment import Deployment, Settings
from dotr.core.funnel import FactCounts
from dotr.core.instant import REFUSABLE, FactBatch, Graphs, InstantFacts, OnState
from dotr.core.pipeline import SkippedTriggers
from dotr.detect.analysis import idle_ticks
from dotr.detect.detector import TeslaDetector
from dotr.detect.partitioning import RuleComponentGroup, StreamKeys, bucket
from dotr.enrich.owl import rules_over
from dotr.errors import (
    DataError,
    Diagnostic,
    DotrError,
    EngineError,
    ProgramError,
    Severity,
    UnsupportedError,
)
from dotr.events import Clock, Composite, Fact, GraphOrMessage, Message, RawMatch, Time, in_order
from dotr.io.arrow import pa
from dotr.io.decode.parquet import column
from dotr.io.errors import dead_letter
from dotr.io.events import late_line
from dotr.io.outputs import write_whole
from dotr.io.rules_and_background import content_name, mapped
from dotr.program import Program
from dotr.program.names import Passed, summed
from dotr.rdf.terms import Triple
from dotr.reference.enrich import LiteralEnricher
from dotr.reference.extract import LiteralExtractor


class FactOracle:
    """Owns the literal reading of enrich and extract."""

    def __init__(self, program: Program, background: Collection[Triple], clock: Clock) -> None:
        self._clock = clock
        self._enrich = LiteralEnricher(rules_over(program, background), background)
        self._extract = LiteralExtractor(program.queries)

    def check(self, time: Time, triples: Sequence[Triple], found: Mapping[str, Sequence[Fact]]) -> None:
        """Raise EngineError D4090 unless `found` are the facts of the instant."""
        store = self._enrich.open(triples)
        try:
            expected = self._extract.facts(store, time, self._clock.term(time))
        finally:
            self._enrich.close()
        for stream in sorted({*expected, *found}):
            pairs = zip_longest(expected.get(stream, ()), found.get(stream, ()))
            for right, ours in pairs:
                if right != ours:
                    raise _difference(f"query `{stream}` at {self._clock.text(time)}", "fact", right, ours)


class MatchOracle:
    """Owns the literal reading of one part's rules."""

    def __init__(self, deployment: Deployment, clock: Clock) -> None:
        self._program, self._clock = deployment.program, clock
        self._detect = deployment.literal_detector(clock)

    def check(
        self,
        time: Time,
        facts: Mapping[str, Sequence[Fact]],
        graph: bool,
        found: Sequence[RawMatch],
        left_out: Collection[tuple[int, Fact]] = (),
        counted: Collection[int] = (),
    ) -> None:
        """Raise EngineError D4090 unless `found` are the matches of the instant. `left_out`: (number of a
        rule, trigger fact) that take too much work. `counted`: rules whose matches are not in `found`.
        """
        engine = [(rule, *match[1:]) for rule, match in in_order(found)]
        literal = [
            match for match in self._detect.at(time, facts, graph, left_out) if match[0] not in counted
        ]
        for right, ours in zip_longest(literal, engine):
            if right != ours:
                rule = self._program.rules[(right or ours)[0]]
                raise _difference(
                    f"{rule.kind} `{rule.name}` at {self._clock.text(time)}", "match", right, ours
                )


def _difference(where: str, what: str, right: Any, ours: Any) -> EngineError:
    return EngineError.of(
        "D4090",
        f"{where}: engine and literal reading differ",
        notes=(f"{what}, literally: {right}", f"{what}, engine:    {ours}"),
        hint="this is a bug of dotr: please report rules and input",
    )


class Treatment(Struct, frozen=True):
    """Options of the work: `--verify`, `--on-error`.

    `forgiving`: an instant in error is skipped, as by `Pipeline`, instead of ending the run. `shared`: parts
    of keys share the budget of what holds, and the runner restarts in one task if a part needs more than its
    share; otherwise each part has all of it.
    """

    verify: bool = False
    forgiving: bool = False
    shared: bool = True


PLAIN = Treatment()

Instant: TypeAlias = tuple[Time, Graphs]
"""A time and its graphs."""


class Extracting:
    """Owns the half of a deployment that finds facts, in one process. Graphs after `cutoff` are refused.

    Raises ProgramError as `Extractor` does.
    """

    def __init__(
        self,
        deployment: Deployment,
        clock: Clock,
        treatment: Treatment = PLAIN,
        cutoff: Cutoff | None = None,
    ) -> None:
        self.findings: list[Diagnostic] = []
        """Warnings about instants that are not in error; the caller that passes them on empties it."""
        self.counts = FactCounts()
        """The number of facts at instants with graphs; the caller that passes them on resets it."""
        self._instants = deployment.instants
        self._instants.begin(clock, self.findings.append)
        self._clock, self._cutoff = clock, cutoff
        self._oracle: FactOracle | None = None
        if treatment.verify:
            self._oracle = FactOracle(deployment.program, deployment.background, clock)

    def report_states(self, on_state: OnState | None) -> None:
        """Report every instant that is not in error with what holds at it."""
        self._instants.on_state = on_state

    def several(self, due: Sequence[Instant], known: list[InstantFacts]) -> None:
        """Append the facts of instants with graphs to `known`, in order: of all, or up to the first with
        `findings`. They are not counted.

        Raises DataError, ProgramError for the instant after those in `known`; the next one is not affected.
        """
        place, had, since = 0, len(self.findings), None if self._cutoff is None else self._cutoff.since
        while place < len(due) and len(self.findings) == had:
            start, end = len(known), len(due)
            if since is not None:
                end = next((i for i in range(place, end) if due[i][0] >= since), end)
            batch = FactBatch(None, end - place)
            place = self._instants.entered(due, place, batch)  # type: ignore[arg-type]  # graphs
            known += batch.known
            self._check(known[start:])
            if place < len(due):
                known.append(self._one(*due[place]))
                self._check(known[-1:])
                place += 1

    def count(self, known: Iterable[InstantFacts]) -> None:
        """Count the facts of instants with graphs."""
        seen = self.counts.seen
        for _, _, facts, _ in known:
            for name, found in facts.items():
                seen[name][0] += len(found)

    def _one(self, time: Time, graphs: Graphs | None) -> InstantFacts:
        if self._cutoff is not None and time >= self._cutoff.since:
            raise self._cutoff.error(time, self._clock)
        return self._instants.overlaid(time, graphs)

    def _check(self, known: Iterable[InstantFacts]) -> None:
        if self._oracle is not None:
            for time, triples, facts, _ in known:
                self._oracle.check(time, triples, facts)  # type: ignore[arg-type]  # nothing lasts here

    def tick_facts(self, time: Time) -> Mapping[str, Sequence[Fact]]:
        """What the background alone answers at a tick at which no graph came."""
        known = self._one(time, None)
        self._check([known])
        return known[2]


Weight: TypeAlias = tuple[int, int, str, float]
"""(part, rows, their most frequent key, its share), a JSON value."""

LEAST = 5_000
"""Rows of one part below which skew does not matter."""

HEAVY = 4
"""A part is reported if it has this multiple of the others' average rows."""

_EVERY = 16
_KEYS = 1_000


class Weighing:
    """Owns the count of one part's rows, which pass through it."""

    def __init__(self, part: int, keys: StreamKeys, reader: FactReader, program: Program) -> None:
        self._part, self._keys, self._reader, self._program = part, keys, reader, program
        self._rows = 0
        self._found: Counter[str] = Counter()

    def through(self, rows: Iterable[FactRow]) -> Iterator[FactRow]:
        for row in rows:
            if row[1] != MARK:
                if self._rows % _EVERY == 0 and len(self._found) < _KEYS:
                    self._look(row)
                self._rows += 1
            yield row

    def _look(self, row: FactRow) -> None:
        for stream, facts in self._reader.read(row[2], row[1]).items():
            places = self._keys.get(stream, ())
            names = self._program.queries[stream].variables
            for fact in facts if places else ():
                self._found[", ".join(f"?{names[i]} = {fact[1][i] or 'unbound'}" for i in places)] += 1

    @property
    def weight(self) -> Weight:
        if not self._found:
            return self._part, self._rows, "", 0.0
        key, count = min(self._found.most_common(), key=lambda pair: (-pair[1], pair[0]))
        return self._part, self._rows, key, count / self._found.total()


def skewed(program: Program, layout: Layout, weights: Iterable[Weight]) -> list[Diagnostic]:
    """The warnings about parts of a run: the heaviest of each group, if too heavy."""
    groups: dict[int, list[Weight]] = {}
    for weight in weights:
        groups.setdefault(layout.owner(weight[0])[0], []).append(weight)
    found = []
    for number in sorted(groups):
        parts = groups[number]
        total = sum(rows for _, rows, _, _ in parts)
        heaviest = max(parts, key=lambda weight: (weight[1], weight[0]))
        others = (total - heaviest[1]) / max(1, layout.cuts[number].buckets - 1)
        if heaviest[1] >= LEAST and heaviest[1] > HEAVY * others:
            rules = [program.rules[i].name for i in layout.plan.groups[number].rules]
            found.append(_diagnosed(rules, heaviest, total))
    return found


def _diagnosed(rules: list[str], weight: Weight, total: int) -> Diagnostic:
    _part, rows, key, share = weight
    return Diagnostic(
        "D4136",
        f"one task has {rows / total:.0%} of the input of `{'`, `'.join(rules)}`",
        label=f"{key} in {share:.0%} of it" if key else "",
        notes=(f"{rows:,} of {total:,} instants with facts lie in one part, for which the other tasks wait",),
        hint="another equation with the trigger in ON splits it further; so does --by time, if possible",
        severity=Severity.WARNING,
    )


def packed(found: Diagnostic) -> dict[str, Any]:
    """Everything except the span, as a JSON value."""
    return {
        "code": found.code,
        "message": found.message,
        "label": found.label,
        "notes": list(found.notes),
        "hint": found.hint,
        "severity": str(found.severity),
        "place": found.place,
    }


def unpacked(found: Mapping[str, Any]) -> Diagnostic:
    """The inverse of `packed`."""
    return Diagnostic(**{**found, "notes": tuple(found["notes"]), "severity": Severity(found["severity"])})


def first_of_each(found: Iterable[tuple[Time, str]]) -> list[Diagnostic]:
    """Merge (time, JSON of `packed`) of workers: each finding once, at its earliest instant, by time."""
    first: dict[tuple[str, str], tuple[Time, Diagnostic]] = {}
    for time, text in found:
        one = unpacked(json.loads(text))
        about = (one.message, one.label)
        if about not in first or time < first[about][0]:
            first[about] = time, one
    return [one for _, one in sorted(first.values(), key=lambda pair: (pair[0], pair[1].label))]


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
    from batch to batch: stream.py, which uses what belongs to a group.)

    `whole`: there is one group, of all rules, and facts are those of `deployment`.
    """

    def __init__(
        self,
        deployment: Deployment,
        layout: Layout,
        clock: Clock,
        tick_facts: TickFacts,
        without_graph: Collection[str] = (),
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
        self.idle_ticks = [idle_ticks(part.program, without_graph) for part in self.deployments]
        self.emitters = [part.emitter for part in self.deployments]
        self.done = Detected()
        self._left_out = SkippedTriggers(self._overworked if treatment.forgiving else None, self._say)
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

    def slice(self, number: int, span: Span, known: Iterable[InstantFacts]) -> Iterator[Composite]:
        """The composite events of a slice of `whole`; `known`: its instants, in order; `span`: the first and
        the last of the log. Facts are counted.
        """
        self.done.parts += 1
        group = self._layout.plan.groups[0]
        counts = self.deployments[0].fact_counts()
        ticking = span if group.ticking else None
        yield from self._composites(0, self._matches(number, ticking, known, counts))
        found, streams = counts.streams(self._program.queries), self.done.streams
        for name in self._program.queries:
            had = streams.get(name, 0)
            streams[name] = None if had is None or name not in found else had + found[name]

    def _composites(self, group: int, found: Iterable[Sequence[RawMatch]]) -> Iterator[Composite]:
        emitter = self.emitters[group]
        for matches in found:
            matches = emitter.public(matches)
            self.done.events += sum(len(match[0]) for match in matches)
            if matches:
                yield from emitter.composites(matches)

    def _read(self, rows: Iterator[FactRow]) -> tuple[Span | None, Iterator[InstantFacts]]:
        """A part's facts by instant, and the content of the row before those with facts."""
        read, first = self.reader.read, next(rows)
        if first[1] == MARK:
            begun, ended = map(int, first[2].split(" "))
            return (begun, ended), ((time, (), read(text, time), True) for _part, time, text in rows)
        known = chain([first], rows)
        return None, ((time, (), read(text, time), True) for _part, time, text in known)

    def _matches(
        self, number: int, span: Span | None, known: Iterable[InstantFacts], counts: FactCounts | None = None
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
            known = self._with_idle(
                group, detector, (start, end), known, span, self.tick_facts_of(group, bucket_)
            )
        shown, waiting, dropped = iter(known), list[InstantFacts](), 0
        instant: InstantFacts

        def before(bound: Time | None) -> Iterator[InstantFacts]:
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
                    oracle.check(time, facts, graph, matches, left_out.facts, detector.counted)
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

    def _with_idle(
        self,
        group: RuleComponentGroup,
        detector: TeslaDetector,
        bounds: tuple[Time | None, Time | None],
        known: Iterable[InstantFacts],
        span: Span,
        tick_facts: TickFacts,
    ) -> Iterator[InstantFacts]:
        """The instants of a part, and the ticks and points between and after them; `span` is the log's. The
        first instant is included for a timeline, which begins with it, whatever its keys.
        """
        (first, last), (start, end) = span, bounds
        done = (first if start is None else max(first, start - (group.horizon or 0))) - 1
        stop = last if end is None else min(last, end - 1)
        beginning = first if group.holds else None
        last_graph_time: Time | None = None
        for instant in known:
            time = instant[0]
            if beginning is not None and beginning < time:
                yield beginning, (), {}, True
                done = last_graph_time = beginning
            beginning = None
            yield from self.idle(group, detector, done, last_graph_time, time, tick_facts)
            yield instant
            done = last_graph_time = time
        if beginning is not None:
            yield beginning, (), {}, True
            done = last_graph_time = beginning
        yield from self.idle(group, detector, done, last_graph_time, detector.covering(stop) + 1, tick_facts)

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

    def idle(
        self,
        group: RuleComponentGroup,
        detector: TeslaDetector,
        after: Time,
        last_graph_time: Time | None,
        bound: Time,
        tick_facts: TickFacts,
    ) -> Iterator[InstantFacts]:
        """The ticks and points in (after, bound) that can matter, after the graph at `last_graph_time`."""
        for time in detector.idle(self.idle_ticks[group.number], after, last_graph_time, bound):
            yield time, (), tick_facts(time), False


_KEPT = 2


class Placed(Protocol):
    """A file that the driver wrote for workers."""

    def path(self) -> str:
        """Its path on this machine."""


Place: TypeAlias = Callable[[str, Sequence[Any]], Placed]
"""Writes a file of this name with these contents, which every worker can find."""


class InFolder(Struct, frozen=True):
    """A file at the same path for all."""

    file: str

    def path(self) -> str:
        return self.file


def into_folder(folder: str, name: str, parts: Sequence[Any]) -> InFolder:
    """A `Place`, once the folder is bound. Raises EngineError if the disk refuses it."""
    path = os.path.join(folder, name)
    write_whole(path, parts)
    return InFolder(path)


class Job(Struct, frozen=True):
    """One batch run, as shipped; `key` is the hash of everything.

    `whole`: each slice has all rules, and the detecting task reads it (archives.py). `closed` is the
    closed and indexed background, compressed, or the file with it; `background` its explicit triples as
    compressed N-Triples, empty unless verifying or something lasts. `without_graph`: the queries that it
    alone answers. `cutoff`: the time from which the log is too far ahead.
    """

    program: Program
    settings: Settings
    closed: bytes | Placed
    background: bytes
    clock: Clock
    layout: Layout
    treatment: Treatment
    without_graph: frozenset[str]
    cutoff: Cutoff | None
    whole: bool
    key: str

    def deployment(self) -> Deployment:
        """Load what the driver compiled: nothing is closed again."""
        explicit: Collection[Triple] = split_lines(zlib.decompress(self.background).decode())
        if self.layout.graphs is not None:
            explicit = frozenset(explicit)  # which all parts share
        kept = self.closed
        closed = zlib.decompress(kept) if isinstance(kept, bytes) else mapped(kept.path())
        return Deployment(self.program, explicit, self.settings, closed=closed)


def make_job(
    deployment: Deployment,
    clock: Clock,
    layout: Layout,
    treatment: Treatment = PLAIN,
    cut: Cutoff | None = None,
    place: Place | None = None,
    *,
    whole: bool = False,
) -> Job:
    """Close the background and pack everything. `place` takes a large background; `whole`: see Job.

    Raises ProgramError for the rules, DataError D3101 for a background that contradicts its ontology.
    """
    program, settings = deployment.program, replace(deployment.settings, apart=treatment.verify or not whole)
    closed, without_graph = deployment.closed_background(), deployment.without_graph
    contents = closed.contents()
    explicit = deployment.background if treatment.verify or layout.graphs is not None else ()
    text = "".join([f"{s} {p} {o} .\n" for s, p, o in sorted(explicit)]).encode()
    parts = (
        VERSION,
        program.fingerprint,
        settings,
        clock,
        layout,
        treatment,
        sorted(without_graph),
        cut,
        whole,
    )
    hashed = blake2b(repr(parts).encode(), digest_size=16)
    for content in contents:
        hashed.update(content)
    hashed.update(text)
    kept: bytes | Placed
    if closed.index.large and place is not None:
        kept = place(f"background-{content_name(contents)}", contents)
    else:
        kept = zlib.compress(b"".join(contents), 1)
    return Job(
        program,
        settings,
        kept,
        zlib.compress(text, 1),
        clock,
        layout,
        treatment,
        without_graph,
        cut,
        whole,
        hashed.hexdigest(),
    )


def split_lines(text: str) -> list[Triple]:
    """The triples of N-Triples text written by dotr: one per line, single blanks."""
    triples: list[Triple] = []
    for line in text.split("\n"):
        if line:
            subject, predicate, rest = line.split(" ", 2)
            triples.append((subject, predicate, rest[:-2]))
    return triples


class Worker:
    """Owns what a process builds once per job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.router = Router(job.program, job.layout)
        self.deployment = job.deployment()
        group = job.layout.graphs
        self.graphs = None if group is None else GraphRouter(job.layout, group)
        """Where graphs are divided instead of facts."""

    @cached_property
    def extracting(self) -> Extracting:
        """Finds facts, where facts are divided."""
        job = self.job
        return Extracting(self.deployment, job.clock, job.treatment, job.cutoff)

    def detecting(self) -> Detecting:
        """Fresh counters for each task; the rules are cheap to build beside the background."""
        job = self.job
        facts, treatment = self.extracting.tick_facts, job.treatment
        return Detecting(
            self.deployment, job.layout, job.clock, facts, job.without_graph, treatment, whole=job.whole
        )


class Shipped(Struct, frozen=True):
    """A shipped job: opened only by a process that does not have it yet."""

    key: str
    content: bytes

    def worker(self) -> Worker:
        """The worker of this process for the job; built on the first call."""
        found = _WORKERS.pop(self.key, None)
        if found is None:
            while len(_WORKERS) >= _KEPT:
                del _WORKERS[next(iter(_WORKERS))]
            found = Worker(pickle.loads(self.content))  # noqa: S301  # our own driver's bytes, same release
        _WORKERS[self.key] = found
        return found


_WORKERS: dict[str, Worker] = {}


def ship(job: Job) -> Shipped:
    return Shipped(job.key, pickle.dumps(job, pickle.HIGHEST_PROTOCOL))


@cache
def fact_columns() -> pa.Schema:
    """BundleRow by column."""
    return pa.schema([("part", pa.int64()), ("time", pa.int64()), ("facts", pa.binary())])


_TOGETHER = 256
"""Instants whose facts are in memory."""


def extract(worker: Worker, instants: Iterable[Instant]) -> Iterator[FactRow]:
    """Distinct instants, in any order, to rows of facts; on request, those in error to rows of dead letters.
    The last row has the number of facts. Where graphs are divided, to rows of graphs.
    """
    if worker.graphs is not None:
        for time, graphs in instants:
            yield from worker.graphs.rows(time, graphs)
        return
    extracting, route = worker.extracting, worker.router.rows
    findings = extracting.findings
    extracting.counts = FactCounts()  # left by an aborted attempt
    forgiving = worker.job.treatment.forgiving
    source = iter(instants)
    while due := list(islice(source, _TOGETHER)):
        while due:
            known: list[InstantFacts] = []
            try:
                extracting.several(due, known)
                due = due[len(known) :]
            except (DataError, ProgramError) as error:
                if not forgiving or error.diagnostics[0].code not in REFUSABLE:
                    raise
                (time, graphs), due = due[len(known)], due[len(known) + 1 :]
                yield from _letters(time, graphs, error, worker.job.clock)
            extracting.count(known)
            if findings:
                yield from ((FINDING, known[-1][0], json.dumps(packed(finding))) for finding in findings)
                findings.clear()
            for time, _, facts, _ in known:
                yield from route(time, facts)
    counts, extracting.counts = extracting.counts, FactCounts()
    if counts.seen:
        yield COUNTED, 0, json.dumps({name: count for name, (count,) in counts.seen.items()})


def _letters(time: Time, graphs: Sequence[list[Triple]], error: DotrError, clock: Clock) -> Iterator[FactRow]:
    """A dead letter per graph, with time and graph like a line of a source."""
    for graph in graphs:
        yield REFUSED, time, dead_letter(error, None, "", json.loads(late_line(time, graph, clock)))


def fact_batches(rows: Iterable[FactRow]) -> Iterator[pa.RecordBatch]:
    """Rows of facts as batches with `fact_columns`."""
    for bundles in bundled(rows):
        columns = zip(*bundles, strict=True)
        arrays = [column(values, field.type) for values, field in zip(columns, fact_columns(), strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=fact_columns())


def fact_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[FactRow]:
    """Batches of `fact_batches`, sorted by part and time, as rows in that order."""
    return unbundled(_bundle_rows(batches))


def _bundle_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[BundleRow]:
    for batch in batches:
        yield from zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)


def graph_text(triples: GraphOrMessage) -> str:
    """A graph as in the column `graphs`. Raises UnsupportedError D4160 for a message with other parts."""
    if isinstance(triples, Message):
        raise UnsupportedError.of(
            "D4160",
            "a message inserts or deletes, and here a graph is all that a row can have",
            hint="run it on this machine: `dotr run`, or `dotr batch --engine local`",
        )
    return "".join([f"{s} {p} {o} .\n" for s, p, o in triples])


def message_text(part: GraphOrMessage) -> str:
    """A message in a row: a graph as N-Triples, other messages as JSON of their parts."""
    if not isinstance(part, Message):
        return _lines(part)
    parts = part._asdict().items()
    return json.dumps({name: _lines(triples) for name, triples in parts if triples is not None})


def message_of(text: str) -> GraphOrMessage:
    """The inverse of `message_text`, with new lists."""
    if not text.startswith("{"):
        return split_lines(text)
    return Message(**{name: split_lines(lines) for name, lines in json.loads(text).items()})


def _lines(triples: Iterable[Triple]) -> str:
    return "".join([f"{s} {p} {o} .\n" for s, p, o in triples])


def instants(rows: Iterable[tuple[Time, str]]) -> Iterator[Instant]:
    """Instants from graphs sorted by time, in the form of `graph_text`."""
    for time, graphs in groupby(rows, key=itemgetter(0)):
        yield time, [split_lines(graph) for _time, graph in graphs]


def events(worker: Worker, batches: Iterable[pa.RecordBatch]) -> Iterator[Composite]:
    """Batches of `fact_batches`, sorted by part and time, to composite events."""
    return worker.detecting().events(fact_rows(batches))
