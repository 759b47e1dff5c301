"""What a Python user holds: rule files in, composite events out, over one Pipeline.

Place:   the public surface. Reads files through io/; of the files that a rule text names, only those of its
         own prologue (BACKGROUND, RULES, IMPORT).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dotr.budget import BUDGET, CORRECTIONS, LEAST_CORRECTIONS, MOST_CORRECTIONS
from dotr.core.deployment import Deployment, Settings
from dotr.core.instants import LateGraph, RefusedInstant
from dotr.core.pipeline import AHEAD, TOGETHER, Counters, Pipeline, PipelineObserver, drive
from dotr.detect.state import Restored
from dotr.emit.events import InstantEvents
from dotr.errors import NOT_WRITTEN, DataError, DotrError, EngineError, UsageError
from dotr.events import Clock, Composite, GraphOrMessage, Time, message_of
from dotr.io.decode.documents import Format
from dotr.io.decode.rdf import parse_triples
from dotr.io.errors import LateGraphs
from dotr.io.event_frames import frame_of
from dotr.io.python_events import (
    NO_EVENTS,
    Event,
    Events,
    Funnels,
    Plan,
    engine_picture,
    keeps,
)
from dotr.io.python_values import (
    EngineErrors,
    GraphLike,
    PairReader,
    absolute_iri,
    asked,
    checked_budget,
    duration,
    fits,
    late_policy,
    not_a_pair,
    parse_choices,
    time_of,
    triples_of,
    turtle_of,
)
from dotr.io.rules_and_background import BackgroundFiles, read_background, read_rules_text
from dotr.io.show import read_term
from dotr.io.sources import SourceOptions, Sources, live, resolve
from dotr.io.tables.mapping import read_mapping
from dotr.io.tables.rows import FrameSource
from dotr.io.time import UNITS
from dotr.io.time_reading import Notes, time_reading
from dotr.lang import load_program
from dotr.program import Program
from dotr.program.own_functions import register
from dotr.rdf.terms import Triple

if TYPE_CHECKING:
    import rdflib
    import rdflib.term

    from dotr.explain.explanation import Explaining, Explanation

__all__ = ["Engine", "Event", "Events", "checked_budget", "duration", "frame_of"]

_IN_ORDER = 'sort by time before, as by frame.sort_values("ts"), or keep instants open: lateness="{}"'


class Engine:
    """Rules deployed in this process: push graphs, get composite events.

    `rules`: path of a .dotr file, or several (.dlog too; the paths in them are relative to them), or a
    checked program. `background`: further RDF, as paths or as one graph. `time_unit` ("s", "ms", "us") is
    what integer times count, `time_path` the property that holds the time of a graph in `feed`.
    `sub_microsecond`: digits of times beyond the microsecond are "cut" or "refuse"d; `interval`: of times
    written `begin/end` the "begin" or "end" is taken, or they are "refuse"d. `rdf12`: terms of RDF 1.2 are
    "refuse"d, or documents are read for their "plain" triples; `contexts`: IRI → file of contexts that
    documents of JSON-LD name. `lateness`:
    how much out of order the stream may be. `late`: what happens to a graph for a closed instant: "drop"
    (counted), "fail" (DataError D2301), or a function of its time and triples. `max_jump`: how far ahead of
    the last graph the next one may be stamped (else DataError D2106). `corrections`: graphs
    that come late are taken up to so much behind the watermark; what they change is among the events that a
    call returns, with `Event.change` -1 for what is taken back. `corrections_budget`: the largest share of
    the work that this may be, 0.05 to 0.95; late graphs wait until then, or until `finish`. `on_error`: what
    happens to documents of `feed` that cannot be read and to instants in error: "fail" (raised), "skip"
    (counted in `refused`), or a function called with the error; unless it raises, the run continues. `base`
    resolves relative IRIs in documents. `materialize`: "needed" or "all". `functions`: IRI →
    function of Python, which rules and queries of this process can call from then on (D4155). `budget`:
    units of work for an instant's Datalog, for a query at it, and for a rule at one trigger fact. More is
    ProgramError D4003, D4132, D4010; D4010 is raised after its instant, whose other events the next call
    returns. `verify` runs the literal reading of the language beside the engine and stops at the first
    difference. `keep`: how much of the run is kept for `Event.explain()` and `why_not`, "horizon" or a time
    that may be longer. `snapshot` is what an earlier engine's `snapshot()` returned. `diagnostics` holds
    the warnings about the rules, about instants that were not in error, and about what a `feed` dropped
    because it came late (D2301). Raises ProgramError for the rules, DataError for the background.
    """

    def __repr__(self) -> str:
        counters, clock = self.counters, self.clock
        rules = sum(not rule.private for rule in self.program.rules)
        at = "" if clock is None or counters.last is None else f", at {clock.text(counters.last)}"
        events = sum(counters.events.values())
        return f"<dotr.Engine: {rules:,} rules, {counters.graphs:,} graphs, {events:,} events{at}>"

    def _repr_html_(self) -> str:
        """The rules and how far each got, for notebooks."""
        return engine_picture(repr(self)[1:-1], self.program, self.counters)

    def __init__(
        self,
        rules: str | Path | Sequence[str | Path] | Program,
        *,
        background: Sequence[str | Path] | GraphLike = (),
        time_unit: str = "s",
        time_path: str | None = None,
        sub_microsecond: str = "cut",
        interval: str = "refuse",
        rdf12: str = "refuse",
        contexts: Mapping[str, str | Path] = MappingProxyType({}),
        lateness: timedelta | str | None = None,
        late: str | LateGraph = "drop",
        max_jump: timedelta | str | None = None,
        corrections: timedelta | str | None = None,
        corrections_budget: float = CORRECTIONS,
        on_error: str | Callable[[DotrError], None] = "fail",
        base: str | None = None,
        materialize: str = "needed",
        functions: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        budget: int = BUDGET,
        verify: bool = False,
        keep: timedelta | str | None = None,
        snapshot: bytes | None = None,
    ) -> None:
        register(functions)
        program = rules if isinstance(rules, Program) else _loaded(rules)
        if time_unit not in UNITS:
            raise UsageError.of("D4102", f"`{time_unit}` is not a time unit", hint="use s, ms or us")
        if materialize not in ("needed", "all"):
            raise UsageError.of(
                "D4103", f"`{materialize}` is not a way to materialize", hint="use needed or all"
            )
        reading = time_reading(sub_microsecond=sub_microsecond, interval=interval)
        self._options = SourceOptions(
            unit=UNITS[time_unit], reading=reading, choices=parse_choices(rdf12, contexts)
        )
        self.times_changed: dict[str, int] = {}
        if time_path is not None:
            self._options = replace(self._options, time_path=f"<{absolute_iri(time_path)}>")
        if base is not None:
            self._options = replace(self._options, base=absolute_iri(base))
        self._unit, self._base = self._options.unit, self._options.base
        self._pairs = PairReader(self._unit, self._base)
        further = self._further(background)
        files = BackgroundFiles(
            program.background, self._base, named=program.named, choices=self._options.choices
        )
        self._more = further
        self.diagnostics = list(program.warnings)
        self._dropped = LateGraphs()
        settings = Settings(materialize_all=materialize == "all", budget=checked_budget(budget))
        self.explaining: Explaining | None = None
        deployment = Deployment(program, lambda: [*files(), *further()], settings)
        make: Callable[..., Pipeline] = Pipeline
        if corrections is not None:
            make = self._correcting(deployment, duration(corrections), corrections_budget, lateness, keep)
        elif keep is not None:
            make = self._recorded(program, deployment, keep)
        self.pipeline = make(
            deployment,
            PipelineObserver(
                late=late_policy(late, lambda: self.clock) or self._drop,
                refused=self._error_policy(on_error),
                finding=self.diagnostics.append,
            ),
            lateness=duration(lateness),
            max_jump=None if max_jump is None else duration(max_jump),
            verify=verify,
        )
        if snapshot is not None:
            self.restore(snapshot)

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        datalog: str = "",
        background: Sequence[str | Path] | GraphLike = (),
        name: str = "<text>.dotr",
        time_unit: str = "s",
        time_path: str | None = None,
        sub_microsecond: str = "cut",
        interval: str = "refuse",
        rdf12: str = "refuse",
        contexts: Mapping[str, str | Path] = MappingProxyType({}),
        lateness: timedelta | str | None = None,
        late: str | LateGraph = "drop",
        max_jump: timedelta | str | None = None,
        corrections: timedelta | str | None = None,
        corrections_budget: float = CORRECTIONS,
        on_error: str | Callable[[DotrError], None] = "fail",
        base: str | None = None,
        materialize: str = "needed",
        functions: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        budget: int = BUDGET,
        verify: bool = False,
        keep: timedelta | str | None = None,
        snapshot: bytes | None = None,
    ) -> Engine:
        """An engine for rules given as text, with Datalog as text. Files it names are relative to `name`.

        Everything else is as for rules in files.
        """
        register(functions)
        given = {name: text}
        if datalog:
            given[f"{name}.dlog"] = datalog
        program = load_program(
            list(given), lambda path: given[path] if path in given else read_rules_text(path)
        )
        return cls(
            program,
            background=background,
            time_unit=time_unit,
            time_path=time_path,
            sub_microsecond=sub_microsecond,
            interval=interval,
            rdf12=rdf12,
            contexts=contexts,
            lateness=lateness,
            late=late,
            max_jump=max_jump,
            corrections=corrections,
            corrections_budget=corrections_budget,
            on_error=on_error,
            base=base,
            materialize=materialize,
            budget=budget,
            verify=verify,
            keep=keep,
            snapshot=snapshot,
        )

    def _recorded(
        self, program: Program, deployment: Deployment, keep: timedelta | str
    ) -> Callable[..., Pipeline]:
        """A factory of pipelines that keep what explanations need."""
        from dotr.explain.explanation import Explaining  # noqa: PLC0415  # start-up: few engines explain
        from dotr.explain.record import Record, RecordedPipeline, reach_of  # noqa: PLC0415  # see above
        from dotr.io.errors import places_of  # noqa: PLC0415  # see above

        longest = 0 if keep == "horizon" else duration(keep)
        record = Record(program, deployment.background, max(longest, reach_of(program)))
        self.explaining = Explaining(record, places_of(record, resolve(program.background)))
        return lambda deployment, observer, **more: RecordedPipeline(deployment, record, observer, **more)

    def _correcting(
        self,
        deployment: Deployment,
        period: Time,
        share: float,
        lateness: timedelta | str | None,
        keep: timedelta | str | None,
    ) -> Callable[..., Pipeline]:
        """A factory of pipelines that correct what they reported, and keep what explanations need."""
        from dotr.core.corrections import (  # noqa: PLC0415  # start-up: few engines correct
            CorrectingPipeline,
            too_short,
        )

        if period <= duration(lateness):
            raise too_short(period, duration(lateness))
        if not LEAST_CORRECTIONS <= share <= MOST_CORRECTIONS:
            hint = f"a share of the work, from {LEAST_CORRECTIONS} to {MOST_CORRECTIONS}"
            raise UsageError.of("D4108", f"{share!r} is not a budget of corrections", hint=hint)
        if keep is None:
            return partial(CorrectingPipeline, period=period, share=share)
        from dotr.explain.corrected import (  # noqa: PLC0415  # start-up: few engines explain
            RememberingPipeline,
            explaining_corrections,
        )

        longest = 0 if keep == "horizon" else duration(keep)
        explaining = explaining_corrections(deployment.program, deployment.background, longest)
        self.explaining = explaining
        return lambda *given, **more: explaining.watch(
            RememberingPipeline(*given, period=period, share=share, **more)
        )

    def why_not(self, rule: str, *, at: int | datetime | str, **where: Any) -> Explanation:
        """How far a rule got at an instant, for each trigger fact; the proof of its event where it fired.

        `where`: only with these values of attributes: rdflib terms, numbers, or text as in Turtle with the
        program's prefixes (room=":room23"). Raises UsageError D4172 for an unknown rule, D4174, and D4176 for
        an engine without `keep`.
        """
        time, _ = time_of(at, self._unit)
        prefixes = self.program.prefixes
        terms = {name: read_term(turtle_of(value), prefixes, name) for name, value in where.items()}
        return keeps(self.explaining).why_not(rule, time, terms)

    def _further(self, background: Sequence[str | Path] | GraphLike) -> Callable[[], list[Triple]]:
        if isinstance(background, Path):
            background = [background]
        if isinstance(background, list | tuple) and all(isinstance(b, str | Path) for b in background):
            return BackgroundFiles(
                [str(path) for path in background], self._options.base, choices=self._options.choices
            )
        triples = self._triples(background)
        return lambda: triples

    def replace(self, rules: str | Path | Sequence[str | Path], at: int | datetime | str) -> None:
        """Replace the rules from `at` on, with the background that the new ones name.

        Unchanged rules keep their state; stated triples keep the lifetimes they were stated with. The
        difference between the BACKGROUND files is deleted and inserted at `at`; the `background` argument of
        the engine stays. Raises ProgramError, DataError, and UsageError D4161 for a time that has closed. A
        snapshot does not hold a replacement that is still ahead: pass it again.
        """
        program = _loaded(rules)
        background = read_background(
            program.background, self._base, named=program.named, choices=self._options.choices
        )
        background += self._more()
        time, integer = time_of(at, self._unit)
        self._begin(Clock(integer, self._unit))
        self.pipeline.replace(time, program, background)

    def snapshot(self) -> bytes:
        """The state of this engine, to continue from in another process; without rules and background."""
        content = json.dumps(self.pipeline.snapshot(), separators=(",", ":"), ensure_ascii=False).encode()
        return b'{"sum":"%s",%s' % (_sum(content[1:]), content[1:])

    def restore(self, blob: bytes) -> Restored:
        """Continue where `blob` was taken; returns which rules kept their state, start empty, or are gone.

        Raises EngineError D5101, D5102 for a snapshot that cannot be read.
        """
        try:
            state = json.loads(blob)
            total = state.pop("sum", None)  # an older dotr wrote none
            if total is not None and total.encode() != _sum(blob[blob.index(b",") + 1 :]):
                raise ValueError("its checksum is not that of its bytes")
            clock = state.get("clock")
            if clock is not None and clock[0] and clock[1] != self._options.unit:
                raise DataError.of(
                    "D2102",
                    f"this snapshot counts time in {clock[1]} µs, this engine in {self._options.unit} µs",
                    hint="give the engine the time_unit that the snapshot was taken with",
                )
            return self.pipeline.restore(state)
        except NOT_WRITTEN as error:
            raise EngineError.of(
                "D5102", "this is not a snapshot, or a damaged one", hint="start again without it"
            ) from error

    def query(
        self, query: str, *, at: int | datetime | str | None = None
    ) -> bool | list[dict[str, rdflib.term.Node]] | rdflib.Graph:
        """Answer a SPARQL query, or a QUERY of the rules by its name, over everything that holds, derived
        included.

        Without `at`: over the background and what lasts now; with it (an engine with `keep`): over a kept
        instant, its graphs included. SELECT gives variable → value for each row, ASK the answer, CONSTRUCT
        and DESCRIBE a graph. The program's prefixes hold. Raises ProgramError D12xx, UsageError D4176 for an
        engine without `keep`, D4178, and D4112 for NOW() without `at`. Cost: everything is derived again.
        """
        program = self.program
        time = None if at is None else time_of(at, self._unit)[0]
        if time is None:
            stated = self.pipeline.lasting() or self.pipeline.deployment.background
        else:
            from dotr.explain.record import KeptInstants  # noqa: PLC0415  # start-up: few engines explain

            stated, _ = KeptInstants(keeps(self.explaining).record).state(time)
        whole = Deployment(program, stated, Settings(materialize_all=True)).enrich
        whole.instant(())
        return asked(query, program, list(whole.state()), time, self.clock or Clock())

    @property
    def program(self) -> Program:
        """The rules that hold now."""
        return self.pipeline.program

    @property
    def plan(self) -> Plan:
        """What each rule looks for and keeps. Cost: compiles the program and closes its background again."""
        deployment = self.pipeline.deployment
        return Plan(Deployment(self.program, deployment.background, deployment.settings))

    @property
    def clock(self) -> Clock | None:
        """How this run writes time; None before the first graph."""
        return self.pipeline.clock

    @property
    def counters(self) -> Counters:
        """What went through so far: `graphs`, `instants`, `facts`, `late`; `events`, `funnel` by rule."""
        return self.pipeline.counters

    def funnel(self) -> Funnels:
        """How far the facts of each rule came until now; notebooks draw it, and so does its `plot()`."""
        return Funnels(self.program, self.counters)

    def push(
        self,
        graph: GraphLike | None,
        at: int | datetime | str,
        *,
        insert: GraphLike | None = None,
        delete: GraphLike | None = None,
    ) -> Events:
        """Take one graph stamped `at`; return the events of the instants that its stamp closes.

        `at`: an int in the run's unit, an aware datetime, or ISO 8601 text with a zone. `insert`: triples
        that hold from then on until they are deleted; `delete`: triples that stop holding. With either,
        `graph` may be None: no graph came. Raises DataError for unreadable input, for a time of another kind
        than the first one's or too far ahead (D2106, D2107), and for an instant in error, which then counts
        as if its messages had never come; the next call returns the events of earlier instants.
        """
        if insert is not None or delete is not None or graph is None:
            return self._push_message(graph, at, insert, delete)
        time, triples = self._taken(graph, at)
        events = self.pipeline.push(time, triples)
        if not events:
            return NO_EVENTS
        assert self.pipeline.clock is not None
        return Events(events, self.pipeline.clock, self.explaining, self.program.prefixes, self.program)

    def _push_message(
        self,
        graph: GraphLike | None,
        at: int | datetime | str,
        insert: GraphLike | None,
        delete: GraphLike | None,
    ) -> Events:
        parts = [None if part is None else self._triples(part) for part in (graph, insert, delete)]
        part = message_of(parts[0], parts[1], parts[2], "<text>")
        time, integer = self._time(at)
        self._begin(Clock(integer, self._unit))
        return self._events(self.pipeline.push_part(time, part))

    def push_all(self, graphs: Iterable[tuple[int | datetime | str, GraphLike]]) -> Iterator[Events]:
        """Take (time, graph) pairs in order; yield the events of each instant that has any.

        Like `push` for each, but faster: up to 256 pairs are taken before their events are yielded, also when
        one of them raises. After leaving early, the next call yields the rest. Use `push` for graphs that
        arrive one by one and cannot wait.
        """
        taking = self._taking_many(graphs) if isinstance(graphs, list | tuple) else self._taking(graphs)
        for emission in drive(self.pipeline, taking):
            assert self.pipeline.clock is not None
            yield Events(emission, self.pipeline.clock, self.explaining, self.program.prefixes, self.program)

    def _taking(self, graphs: Iterable[tuple[int | datetime | str, GraphLike]]) -> Iterator[int]:
        unit, base, accept, integers = self._unit, self._base, self.pipeline.accept, False
        choices = self._options.choices
        for pair in graphs:
            try:
                at, graph = pair
            except (TypeError, ValueError):
                raise not_a_pair(pair) from None
            if integers and type(at) is int and type(graph) is str and fits(time := at * unit):
                accept(time, parse_triples(graph, Format.TURTLE, "<text>", base, choices=choices))
            else:
                accept(*self._taken(graph, at))
                integers = type(at) is int
            yield 1

    def _taking_many(self, pairs: Sequence[tuple[int | datetime | str, GraphLike]]) -> Iterator[int]:
        """Like `_taking`, for a list of pairs that can be read again: many are read before they are taken."""
        reader, pipeline = self._pairs, self.pipeline
        for start in range(0, len(pairs), TOGETHER):
            some = pairs[start : start + TOGETHER]
            integers = pipeline.clock is not None and pipeline.clock.integer
            found = reader.read(some) if integers else None
            if found is None:
                yield from self._taking(some)
            elif pipeline.accept_run(*found):
                yield len(some)
            else:
                for time, graph in zip(*found, strict=True):
                    pipeline.accept(time, graph)
                    yield 1

    def _taken(self, graph: GraphLike, at: int | datetime | str) -> tuple[Time, list[Triple]]:
        """A graph and its stamp as the pipeline takes them. Begins the pipeline if it has not begun."""
        time, integer = self._time(at)
        triples = self._triples(graph)
        clock = self.pipeline.clock
        if clock is None or clock.integer is not integer:
            self._begin(Clock(integer, self._unit))
        return time, triples

    def _time(self, at: int | datetime | str) -> tuple[Time, bool]:
        """The stamp of a graph; what reading it changed is counted."""
        if type(at) is int and fits(time := at * self._unit):
            return time, True
        notes: Notes = set()
        found = time_of(at, self._unit, self._options.reading, notes)
        for note in notes:
            self.times_changed[note] = self.times_changed.get(note, 0) + 1
        return found

    def advance(self, to: int | datetime | str) -> Events:
        """Close everything up to and including `to`; a graph stamped then or earlier is late afterwards.

        Raises DataError D2107, with nothing closed, where that takes too many ticks.
        """
        time, integer = time_of(to, self._unit)
        self._begin(Clock(integer, self._options.unit))
        return self._events(self.pipeline.advance(time))

    def finish(self) -> Events:
        """The end of input: close the last instant."""
        return self._events(self.pipeline.finish())

    def feed(
        self,
        *sources: str | Path | Any,
        mapping: str | Path | None = None,
        time_zone: str = "",
        ambiguous_time: str = "refuse",
        nonexistent_time: str = "refuse",
    ) -> Iterator[Event]:
        """Replay files or folders in time order, then finish; yields events as instants close.

        `mapping`: the mapping file for tables, which are files, pandas frames or Arrow tables. `time_zone`:
        for dateTimes without one. `ambiguous_time`: a local time that came twice is the "earlier" or "later"
        instant, what the order of the rows says ("infer"), or "refuse"d; `nonexistent_time`: one that never
        came is the instant at which clocks went "forward", or "refuse"d. `times_changed` counts what was
        changed of times; graphs that were dropped because they came late are a warning in `diagnostics`
        (D2301) at the end. Raises DataError, UsageError.
        """
        kept = self._options.reading
        reading = time_reading(kept.finer, ambiguous_time, nonexistent_time, kept.interval)
        options = replace(self._options, zone=time_zone, reading=reading)
        if mapping is not None:
            options = replace(options, mappings=(read_mapping(str(mapping), self._base),))
        paths = [str(source) for source in sources if isinstance(source, str | Path)]
        source: Sources | FrameSource = Sources(paths, options, self._refusals)
        if len(paths) < len(sources):
            source = self._frames(sources, options)
        source.extractor.beside = self.times_changed
        for composites in self.replay(source):
            yield from self._events(composites)

    def _frames(self, frames: Sequence[Any], options: SourceOptions) -> FrameSource:
        if not options.mappings or any(isinstance(frame, str | Path) for frame in frames):
            hint = 'engine.feed(frame, mapping="readings.map"), without paths beside it'
            raise UsageError.of("D4153", "a frame is read through a mapping", hint=hint)
        return FrameSource(frames, options.mappings[0], options, self._refusals)

    def replay(self, sources: Sources | FrameSource) -> Iterator[InstantEvents]:
        """Push every graph of `sources`, then finish; yields the composite events of each instant that
        closed."""
        yield from drive(self.pipeline, self._reading(sources), 1 if live(sources.paths) else AHEAD)

    def _reading(self, sources: Sources | FrameSource) -> Iterator[int]:
        pipeline = self.pipeline
        self._dropped = LateGraphs(pipeline.watermark)
        for graph in sources:
            if sources.clock is not pipeline.clock:
                assert sources.clock is not None
                self._begin(sources.clock)
            pipeline.place = graph
            pipeline.take(graph.time, graph.triples)
            yield 1
        pipeline.close_all()
        self.diagnostics += self._dropped.warnings(_IN_ORDER)

    def _drop(self, time: Time, _part: GraphOrMessage) -> None:
        """The policy "drop" for late graphs."""
        self._dropped.take(time, self.pipeline.latest)

    def _begin(self, clock: Clock) -> Clock:
        mine = self.pipeline.clock
        if mine is None:
            self.pipeline.begin(clock)
        elif mine != clock:
            kinds = {True: "integer", False: "dateTime"}
            raise DataError.of(
                "D2102",
                f"this graph has {kinds[clock.integer]} time, those before it {kinds[mine.integer]} time",
                notes=("one run uses one kind of time",),
                hint="restamp one of the sources",
            )
        return clock

    def _triples(self, graph: GraphLike) -> list[Triple]:
        if isinstance(graph, Path):
            return read_background([str(graph)], self._options.base, choices=self._options.choices)
        return triples_of(graph, self._options.base, self._options.choices)

    def _error_policy(self, on_error: str | Callable[[DotrError], None]) -> RefusedInstant | None:
        """What happens to instants in error and to unreadable documents."""
        self._refusals = refusals = EngineErrors.of(on_error)
        return None if refusals.fail else lambda _time, parts, error: refusals.report(error, len(parts))

    @property
    def refused(self) -> int:
        """Unreadable documents and graphs of instants in error, skipped by `on_error`."""
        return self._refusals.count

    def _events(self, composites: Sequence[Composite]) -> Events:
        clock = self.pipeline.clock
        if clock is None:
            return NO_EVENTS
        return Events(composites, clock, self.explaining, self.program.prefixes, self.program)


def _sum(content: bytes) -> bytes:
    """What a snapshot begins with, so that damage is found: 32 hexadecimal digits."""
    return blake2b(content, digest_size=16).hexdigest().encode()


def _loaded(rules: str | Path | Sequence[str | Path]) -> Program:
    paths = [str(rules)] if isinstance(rules, str | Path) else [str(path) for path in rules]
    return load_program(paths, read_rules_text)
