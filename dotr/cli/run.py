"""`dotr run RULES SOURCE…`: compile, replay the sources in time order, print composite events.

Place:   drives one Pipeline in this process; nothing outlives it.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from dotr.cli import options, show
from dotr.cli.options import (
    CorrectionOptions,
    DeadLetters,
    OutputOptions,
    RuleOptions,
    SourceOptions,
    given_time,
    parsing,
    until_of,
)
from dotr.cli.show import Progress, funnels, summary_line, time_as_json
from dotr.collecting import rarely
from dotr.core.deployment import Deployment
from dotr.core.funnel import matches_lost
from dotr.core.pipeline import NOBODY, Pipeline, PipelineObserver
from dotr.emit.events import InstantEvents, together
from dotr.errors import DataError, Diagnostic, DotrError, ProgramError
from dotr.events import Clock, GraphOrMessage, Time
from dotr.io.errors import Lineage, with_places
from dotr.io.events import BINARY, EVENT_FORMATS, EventSink, Formatter, late_line, open_sink
from dotr.io.graphs import GraphRun, ReadSoFar
from dotr.io.outputs import FileOutput, open_output
from dotr.io.rules_and_background import RuleTexts
from dotr.io.sinks import StateFile, refuse_name
from dotr.io.sources import ReadEvent, Sources, TimedGraph, live, resolve
from dotr.io.time_reading import late_by_choice
from dotr.program import Program
from dotr.rdf.terms import Triple
from dotr.survey.queries import FIRST_GRAPHS, Sample

if TYPE_CHECKING:
    from dotr.cli.picture import RunPage
    from dotr.extract.forms import Form


@click.command()
@click.argument("path", metavar="RULES")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@options.rules
@options.materialize
@options.source(late="fail", jumps=True)
@options.corrections
@options.budget
@options.output(EVENT_FORMATS)
@options.events
@options.schema
@options.summary
@options.then
@options.until
@options.state
@options.jobs
@click.option(
    "--show", "picture", type=options.file_name, metavar="PAGE", help="Also write a page: see dotr show."
)
@click.option("--explain", is_flag=True, help='Put the proof of each event into its JSON line: "because".')
def command(
    path: str,
    sources: tuple[str, ...],
    rules: RuleOptions,
    source: SourceOptions,
    corrections: CorrectionOptions,
    output: OutputOptions,
    schema: str,
    then: tuple[tuple[str, str], ...],
    until: str | None,
    jobs: int,
    picture: str | None,
    explain: bool,
) -> None:
    """Replay SOURCEs in time order through RULES and print composite events.

    A SOURCE is an RDF file (Turtle, N-Triples: one graph; TriG, N-Quads, JSON lines, RDF Message Log:
    many), a folder, a glob, or - for standard input; each may be compressed (.gz .bz2 .zst .zip).
    """
    format_ = output.format(tuple(EVENT_FORMATS), "dotr run")
    if corrections.period is not None:
        _refuse_beside(output.states is not None, explain, picture is not None, schema == "typed")
    texts, states = RuleTexts(), output.states
    program = rules.load(path, texts)
    documents = rules.documents(program)
    if states is not None and states != "-":
        refuse_name(states, "dotr run")
    inputs = [*texts.read_files, *documents, *sources]
    output.apart(source.policies, inputs)
    if picture is not None:
        options.outputs_apart([picture, output.output or "-"], source.policies, inputs)
    program = rules.wanted(program)
    show.say_all(program.warnings)
    triples = source.background_files(program, documents)
    deployment = rules.deployment(program, triples, everything=states is not None)
    enriched = None if states is None else StateFile(states, output.overwrite, lambda: replay.pipeline.clock)
    make: Callable[..., Pipeline] = Pipeline
    write: Formatter | None = None
    head: str | None = None
    drawn: RunPage | None = None
    if explain or picture is not None:
        from dotr.cli.explain import Recording, refuse_format  # noqa: PLC0415  # start-up: most runs explain nothing

        record = Recording(documents, rules.verify)
        make = record.pipeline
        if explain:
            refuse_format(format_)
            write = record.write
        if picture is not None:
            from dotr.cli.picture import RunPage  # noqa: PLC0415  # likewise

            page = open_output(picture, output.overwrite)
            drawn = RunPage(os.path.basename(path), program, record)
    if corrections.period is not None:
        make, write, head = _correcting(
            corrections.period, corrections.share, source.lateness, format_, program
        )
    with (
        source.letters(output.overwrite) as dead,
        source.delayed(output.overwrite) as delayed,
        parsing(jobs, source.options.base) as workers,
    ):
        reader = Sources(sources, source.options, dead.refusals(), workers=workers)
        until_of(until, source.options.unit, None)
        replay: Replay = Replay(reader, delayed, output, os.path.basename(path), enriched, until)
        on_state = None if enriched is None else enriched.write
        observer = PipelineObserver(overworked=replay.overworked, state=on_state)
        replay.prepare(deployment, source, rules, make, observer)
        reader.wanted = replay.wants
        columns = [*program.rules]
        for at, later in then:
            when, clock = given_time(at, source.options.unit, None, "--then")
            again = rules.wanted(rules.load(later, texts), whole=True)
            columns += again.rules
            replay.replace(when, clock, again, source.background(again, rules.documents(again)))
        replay.apart = explain
        typed = columns if schema == "typed" else None
        sink = open_sink(
            format_, lambda: output.open(format_ not in BINARY), program, write, head=head, typed=typed
        )
        if drawn is None:
            replay.run(sink)
        else:
            drawn.run(replay, sink, page, texts, sources)


def _correcting(
    period: int, share: float, lateness: int, format_: str, program: Program
) -> tuple[Callable[..., Pipeline], Formatter, str]:
    """How a run with corrections is made: its pipeline, how events are written, what stands before them."""
    from dotr.core.corrections import CorrectingPipeline, too_short  # noqa: PLC0415  # start-up: few runs correct
    from dotr.io.changes import changes_formatter  # noqa: PLC0415  # likewise

    if period <= lateness:
        raise too_short(period, lateness)
    head, write = changes_formatter(format_, program.prefixes, program.rules)
    return partial(CorrectingPipeline, period=period, share=share), write, head


def _refuse_beside(states: bool, explain: bool, picture: bool, typed: bool) -> None:
    """Raise UsageError D4165 for what a run with corrections does not do."""
    from dotr.core.corrections import with_corrections  # noqa: PLC0415  # start-up: few runs correct

    for asked, what in (
        (states, "--emit-state is not written"),
        (explain, "--explain is not answered"),
        (picture, "--show draws no page"),
        (typed, "--schema typed is not written"),
    ):
        if asked:
            raise with_corrections(what)


TOGETHER = 1024
"""Matches of several instants that are written at once, at least."""

AHEAD, ALONE = 256, 4
"""Graphs of files are run when so many have been read; one read alone, which may be large, counts as four."""


@dataclass(slots=True)
class Replay:
    """Owns one run: sources into the pipeline, events out to one output. `title`: the name that the table of
    its summary begins with; "": there is no table. `until`: up to when time goes on, as written.
    """

    sources: Sources
    delayed: DeadLetters
    output: OutputOptions
    title: str
    states: StateFile | None = None
    until: str | None = None
    apart: bool = False
    """Whether the events of each instant are written before the next one runs."""
    pipeline: Pipeline = field(init=False)
    lineage: Lineage = field(init=False)
    _graph: TimedGraph | None = field(default=None, init=False)
    _progress: Progress = field(default_factory=lambda: Progress(False), init=False)
    _running: bool = field(default=False, init=False)
    _sample: Sample = field(default_factory=lambda: Sample(limit=FIRST_GRAPHS), init=False)

    def __post_init__(self) -> None:
        self.lineage = Lineage(lambda: self.pipeline.settled)

    def prepare(
        self,
        deployment: Deployment,
        source: SourceOptions,
        rules: RuleOptions,
        make: Callable[..., Pipeline] = Pipeline,
        observer: PipelineObserver = NOBODY,
    ) -> None:
        """Make the pipeline; called once, before the others."""
        self.pipeline = make(
            deployment,
            replace(observer, late=self.late, refused=self.refused, finding=self.found),
            lateness=source.lateness,
            verify=rules.verify,
            max_jump=source.max_jump,
        )

    def replace(self, time: Time, clock: Clock, program: Program, background: Sequence[Triple]) -> None:
        """From a time on another program holds; how times are written is settled then."""
        if self.pipeline.clock is None:
            self.pipeline.begin(clock)
            self.sources.extractor.clock = clock
        elif self.pipeline.clock != clock:
            hint = "write all of them as integers, or as dateTimes"
            raise DataError.of("D2102", "the times of --then are of two kinds", hint=hint)
        self.pipeline.replace(time, program, background)

    def run(self, sink: EventSink) -> None:
        """Replay everything. What was emitted before an error or Ctrl-C is written, and stays."""
        output = self.output
        apart = output.output is not None or not sys.stdout.isatty()
        self._progress = progress = Progress(not output.quiet and sys.stderr.isatty() and apart)
        try:
            with rarely():
                self._replay(sink, progress)
            sink.finish()
            if self.states is not None:
                self.states.finish()
        except BrokenPipeError:
            raise
        except BaseException:
            progress.clear()
            sink.abandon()
            if self.states is not None:
                self.states.abandon()
            if isinstance(sink.output, FileOutput) and sink.output.part.exists():
                show.note(f"what was emitted so far is in {sink.output.part}")
            raise
        progress.clear()
        show.say_all(list(self.sources.extractor.columns_missing.values()))
        if output.summary_ == "json":
            self._report_json(progress.seconds)
        elif not output.quiet:
            self._report_funnels()
            show.note(self.summary(progress.seconds))

    def _report_funnels(self) -> None:
        """How far rules without an event came, and why; `every`: all rules."""
        pipeline, counters = self.pipeline, self.pipeline.counters
        events, program = counters.events, pipeline.program
        if pipeline.clock is None or not self.title:
            return
        why: list[Diagnostic] = []
        if not all(events.get(r.name) for r in program.rules if not r.private):
            from dotr.survey.report import why_silent  # noqa: PLC0415  # start-up: most runs have events

            self._sample.clock = pipeline.clock
            why = why_silent(pipeline.deployment, events, self._sample)
            show.say_all(why)
        funnels(self.title, pipeline, why, self.output.verbose)

    def _report_json(self, seconds: float) -> None:
        counters, clock, sources = self.pipeline.counters, self.pipeline.clock, self.sources
        content = {
            "graphs": counters.graphs,
            "instants": counters.instants,
            "first": time_as_json(counters.first, clock),
            "last": time_as_json(counters.last, clock),
            "late": counters.late,
            "refused": sources.refusals.count,
            "dropped": counters.dropped,
            **show.effects_as_json(counters.not_stated, counters.ineffective),
            "times": dict(sources.extractor.time_sources),
            **show.beside_as_json(sources.extractor.beside),
            **show.corrected_as_json(show.corrections_of(self.pipeline)),
            "queries": counters.streams,
            "seconds": round(seconds, 3),
        }
        show.json_line(summary_line(content, self.pipeline.program, counters.events, counters.funnel))

    def _replay(self, sink: EventSink, progress: Progress) -> None:
        sources, pipeline, lineage = self.sources, self.pipeline, self.lineage
        at_once = live(sources.paths)
        behind = ReadSoFar(resolve(sources.paths, sources.options.mappings)) if progress.shown else None
        ahead = 1 if at_once else AHEAD
        count = waiting = 0
        try:
            for item in sources.runs():
                if behind is not None:
                    behind.passed(item.last if isinstance(item, GraphRun) else item)
                if isinstance(item, ReadEvent):
                    lineage.passed(item)
                    if item.error is not None:
                        self._write(sink)  # its letters come before this one
                        sources.refusals.take(item.error, item.content)
                    continue
                if isinstance(item, GraphRun):
                    count += len(item.times)
                    waiting += len(item.times)
                    if item.columns is None:
                        self._take_run(item)
                    else:
                        self._take_columns(item, sink)
                else:
                    count += 1
                    waiting += ALONE
                    self._take(item)
                if waiting >= ahead:
                    waiting = 0
                    self._write(sink)
                    if at_once:
                        sink.flush()
                    if behind is not None and pipeline.clock is not None:  # what it shows is worth counting
                        time = pipeline.clock.text(pipeline.latest or 0)
                        events = pipeline.events_so_far()
                        progress.update(count, events, time, behind.done, behind.total)
        except DataError:
            if not self._running:  # an error of the sources: what was closed before is detected
                self._write(sink)
            raise
        pipeline.close_all()
        end = until_of(self.until, sources.options.unit, pipeline.clock) if pipeline.clock else None
        if end is not None:
            self._write(sink)
            pipeline.close_up_to(end)
        self._write(sink)

    def _take(self, graph: TimedGraph) -> None:
        pipeline, sample = self.pipeline, self._sample
        self._graph = graph
        if pipeline.clock is None:
            assert self.sources.clock is not None
            pipeline.begin(self.sources.clock)
        self.lineage.note(graph)
        pipeline.place = graph
        pipeline.take(graph.time, graph.triples)
        if not sample.full:
            sample.add(graph.time, graph.triples)

    def wants(self, form: Form) -> bool:
        """Whether graphs of a form are taken as columns now."""
        return self._sample.full and self.pipeline.takes(form)

    def _take_columns(self, run: GraphRun, sink: EventSink) -> None:
        """Take the instants of a run that it has whole as columns, and the others as graphs."""
        times, columns, latest = run.times, run.columns, self.pipeline.latest
        assert columns is not None
        start = 0 if latest is None else bisect_right(times, latest)
        end = bisect_left(times, times[-1])
        for graph in run.part(0, start).items():
            self._take(graph)
        if start < end and self.pipeline.accept_columns(columns.part(start, end)):
            self._write(sink)  # their facts are known: nobody asks for their places
            start = end
        if start < len(times):
            self._take_run(run.part(start, len(times)))

    def _take_run(self, run: GraphRun) -> None:
        if self._sample.full and self.pipeline.accept_run(run.times, run.graphs):
            self.lineage.note_run(run)
            return
        for graph in run.items():
            self._take(graph)

    def _write(self, sink: EventSink) -> None:
        """Run what is closed; write its events, those of several instants together where nobody asks about
        one that is being written.
        """
        clock = self.pipeline.clock
        most = 1 if self.apart else TOGETHER
        found: list[InstantEvents] = []
        count = 0
        self._running = True
        try:
            for events in self.pipeline.drain():
                assert clock is not None
                found.append(events)
                count += len(events.matches)
                if count >= most:
                    written, found, count = found, [], 0
                    for run in together(written):
                        sink.write(run, clock)
        finally:
            if clock is not None:
                for run in together(found):
                    sink.write(run, clock)
        self._running = False

    def refused(self, time: Time, graphs: Sequence[GraphOrMessage], error: DotrError) -> None:
        """The policy for an instant that is in error."""
        clock = self.pipeline.clock
        assert clock is not None
        if self.sources.refusals.fail:
            raise with_places(error, self.lineage.places(time, len(graphs)))
        if graphs:
            self.sources.refusals.set_aside(self.lineage.letters(time, graphs, error, clock))
            self.lineage.settle(time)

    def overworked(self, _rule: str, error: ProgramError) -> None:
        """The policy for a fact that takes a rule too much work."""
        if self.sources.refusals.fail:
            raise error

    def found(self, finding: Diagnostic) -> None:
        """Say something about an instant that is not in error."""
        self._progress.clear()
        show.say(finding)

    def late(self, time: Time, graph: GraphOrMessage) -> None:
        """The policy for a graph whose instant is closed."""
        clock = self.pipeline.clock
        assert clock is not None
        assert self._graph is not None
        self.lineage.withdraw(self._graph)
        if self.delayed.fails:
            raise DataError.of(
                "D2301",
                f"this graph is for {clock.text(time)}, an instant that is already closed",
                place=self._graph.place,
                notes=("the stream is not in time order: `dotr times` reports by how much",),
                hint="allow for disorder with --lateness, or drop such graphs with --late drop"
                + late_by_choice(self.sources.extractor.beside),
            )
        self.delayed.keep(lambda: late_line(time, graph, clock))

    def summary(self, seconds: float) -> str:
        """One line: what came in, what went out, how times were found, what was left out."""
        counters, extractor = self.pipeline.counters, self.sources.extractor
        lost = show.losses(
            counters.late,
            self.sources.refusals.count,
            counters.useless_deletes,
            counters.not_held,
            counters.overlooked,
            counters.left_out,
            counters.dropped,
            counters.not_stated,
            counters.ineffective,
            matches_lost(counters.funnel),
        )
        found = show.came(counters.graphs, counters.instants, counters.events)
        found += show.beside(extractor.beside, extractor.first, extractor.time_sources)
        corrected = show.corrections_of(self.pipeline)
        if corrected is not None and corrected["late"]:
            found.append(show.corrected(corrected))
        return "; ".join([*found, *lost, f"{seconds:.1f} s"])
