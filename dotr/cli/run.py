"""`dotr run RULES SOURCE…`: compile, replay the sources in time order, print composite events.

Place:   drives one Pipeline in this process; nothing outlives it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import click
from msgspec import Struct

from dotr.cli import show
from dotr.cli.dead_letters import DeadLetters
from dotr.cli.given import given_time
from dotr.cli.jobs import jobs_option, parsing
from dotr.cli.options import (
    budget_option,
    event_options,
    events_wanted,
    jump_option,
    lateness_options,
    output_options,
    program_options,
    source_options,
    state_option,
    summary_options,
)
from dotr.cli.show import Progress, funnel_lines, heading, summary_line, time_as_json
from dotr.collecting import rarely
from dotr.core.deployment import Deployment, Settings
from dotr.core.parts import Part
from dotr.core.pipeline import Pipeline
from dotr.errors import DataError, Diagnostic, DotrError, ProgramError, UsageError
from dotr.events import Clock, Time
from dotr.io.enriched_graphs import StateFile, refuse_name
from dotr.io.event_formats import Formatter, formatter, late_line
from dotr.io.files.background_documents import BackgroundFiles, read_background
from dotr.io.files.event_sinks import EventSink, JellySink, ParquetSink, TextSink
from dotr.io.files.outputs import FileOutput, is_device, open_output
from dotr.io.files.overlap import refuse_overlap
from dotr.io.files.read_so_far import ReadSoFar
from dotr.io.files.rule_texts import RuleTexts
from dotr.io.files.sources import Mark, Sources, TimedGraph, live, resolve
from dotr.io.graphs import GraphRun, SourceOptions
from dotr.io.lineage import Lineage, with_places
from dotr.io.output_formats import EVENT_FORMATS, NEVER_PACKED, format_of_name, packing_of, refused
from dotr.io.time_reading import changes, unchanged
from dotr.ir import Program
from dotr.ir.private_rules import needed
from dotr.lang import load_program
from dotr.rdf.terms import Triple
from dotr.survey.sample import FIRST_GRAPHS, Sample


@click.command(short_help="Replay sources through rules and print composite events.")
@click.argument("rules", metavar="RULES")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@program_options
@source_options
@lateness_options(late="fail")
@jump_option
@budget_option
@output_options(EVENT_FORMATS)
@event_options
@summary_options
@click.option(
    "--then",
    type=(str, str),
    multiple=True,
    metavar="TIME RULES",
    help="From TIME on these RULES hold, and their background; may be repeated.",
)
@state_option
@jobs_option
@click.option("--explain", is_flag=True, help='Put the proof of each event into its JSON line: "because".')
def command(
    rules: str,
    sources: tuple[str, ...],
    background: tuple[str, ...],
    more_rules: tuple[str, ...],
    materialize: str,
    verify: bool,
    options: SourceOptions,
    on_error: str,
    lateness: int,
    late: str,
    max_jump: int | None,
    budget: int,
    format_: str | None,
    output: str | None,
    overwrite: bool,
    quiet: bool,
    only_: tuple[str, ...],
    except_: tuple[str, ...],
    summary_: str,
    verbose: bool,
    then: tuple[tuple[str, str], ...],
    explain: bool,
    states: str | None,
    jobs: int,
) -> None:
    """Replay SOURCEs in time order through RULES and print composite events.

    A SOURCE is an RDF file (Turtle, N-Triples: one graph; TriG, N-Quads, JSON lines, RDF Message Log:
    many), a folder, a glob, or - for standard input; each may be compressed (.gz .bz2 .zst .zip).
    """
    format_ = chosen_format(format_, output, EVENT_FORMATS, "dotr run")
    texts = RuleTexts()
    program = load_program([rules, *more_rules], texts)
    documents = [*program.background, *background]
    if states is not None and states != "-":
        refuse_name(states, "dotr run")
    written = [output or "-", *([states] if states else [])]
    outputs_apart(written, [on_error, late], [*texts.read_files, *documents, *sources])
    if only_ or except_:
        program = needed(events_wanted(program, only_, except_))
    show.say_all(program.warnings)
    triples = BackgroundFiles(
        documents, options.base, options.max_document, named=program.named, choices=options.choices
    )
    everything = materialize == "all" or states is not None
    deployment = Deployment(program, triples, Settings(materialize_all=everything, budget=budget))
    enriched = None if states is None else StateFile(states, overwrite, lambda: replay.pipeline.clock)
    make: Callable[..., Pipeline] = Pipeline
    write: Formatter | None = None
    if explain:
        from dotr.cli.explain import Recording, refuse_format  # noqa: PLC0415  # start-up: most runs explain nothing

        refuse_format(format_)
        record = Recording(documents, verify)
        make, write = record.pipeline, record.write
    with (
        DeadLetters(on_error, overwrite) as dead,
        DeadLetters(late, overwrite) as delayed,
        parsing(jobs, options.base) as workers,
    ):
        replay: Replay = Replay(
            Sources(sources, options, dead.refusals(), workers=workers),
            make(
                deployment,
                lateness=lateness,
                on_late=lambda time, graph: replay.late(time, graph),
                on_refused=lambda time, graphs, error: replay.refused(time, graphs, error),
                on_overworked=lambda _rule, error: replay.overworked(error),
                on_finding=lambda finding: replay.found(finding),
                verify=verify,
                max_jump=max_jump,
                on_state=None if enriched is None else enriched.write,
            ),
            delayed,
            SummaryStyle(os.path.basename(rules), quiet, verbose, summary_ == "json"),
            enriched,
        )
        for at, later in then:
            when, clock = given_time(at, options.unit, None, "--then")
            again = load_program([later, *more_rules], texts)
            if only_ or except_:
                again = events_wanted(again, only_, except_)
            facts = read_background(
                [*again.background, *background],
                options.base,
                options.max_document,
                named=again.named,
                choices=options.choices,
            )
            replay.replace(when, clock, again, facts)
        replay.run(open_sink(format_, output, overwrite, program, write), output)


def chosen_format(format_: str | None, output: str | None, can: Sequence[str], verb: str) -> str:
    """The format asked for, else that of the output's name, text on a terminal and JSON lines elsewhere.

    Raises UsageError D4151 for a format of the name that the verb does not write, for Parquet anywhere but
    in a file, and for Parquet and Jelly in a file whose name says that its text is compressed.
    """
    if format_ == "parquet" and (output is None or is_device(output)):
        raise refused("Parquet to a stream", [name for name in can if name != "parquet"], verb)
    if format_ in NEVER_PACKED and output is not None and packing_of(output):
        raise refused(f"{format_} to `{output}`", [name for name in can if name not in NEVER_PACKED], verb)
    if format_ is not None:
        return format_
    if output is None:
        return "text" if sys.stdout.isatty() else "jsonl"
    return format_of_name(output, can, verb, packed=True) or "jsonl"


def refuse_without_jelly() -> None:
    """Raise UsageError D2413 where Jelly cannot be written."""
    from dotr.io.jelly_frames import JellyFrames  # noqa: PLC0415  # an extra

    JellyFrames()


def open_sink(
    format_: str, output: str | None, overwrite: bool, program: Program, own: Formatter | None = None
) -> TextSink | JellySink | ParquetSink:
    """Where the events of a run go, opened, with what stands at its head; `own` writes them instead."""
    if format_ == "parquet":
        assert output is not None, "chosen_format asks for a file"
        return ParquetSink(FileOutput(output, overwrite))
    if format_ == "jelly":
        from dotr.io.jelly_frames import JellyFrames  # noqa: PLC0415  # an extra

        frames = JellyFrames()  # before anything is opened
        return JellySink(open_output(output, overwrite), frames)
    head, write = formatter(format_, program.prefixes, program.rules)
    out = open_output(output, overwrite, packed=True)
    out.write(head)
    return TextSink(own or write, out)


def _stdout() -> int | None:
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):  # something in memory stands in for it
        return None


def outputs_apart(
    outputs: Sequence[str], policies: Sequence[str], inputs: Sequence[str], appearing: bool = False
) -> None:
    """Refuse outputs, the `file=PATH` of policies among them, that are one file, or that are read as well.

    Without `outputs` data go to standard output, which is `-`, too. Raises UsageError D4113, RefusedError
    D5002.
    """
    letters = [policy.removeprefix("file=") for policy in policies if policy.startswith("file=")]
    written = [*(outputs or ["-"]), *letters]
    if written.count("-") > 1:
        raise UsageError.of("D4113", "two outputs go to standard output", hint="give each its own")
    files = [path for path in written if path != "-"]
    paths = [os.path.realpath(path) for path in files]
    refuse_overlap(files, inputs, _stdout() if "-" in written else None, appearing)
    for path in paths:
        if paths.count(path) > 1 and (os.path.isfile(path) or not os.path.exists(path)):
            raise UsageError.of("D4113", f"two outputs go to one file, `{path}`", hint="give each its own")


AHEAD, ALONE = 256, 4
"""Graphs of files are run when so many have been read; one read alone, which may be large, counts as four."""


class SummaryStyle(Struct, frozen=True):
    """How much a summary says. `rules`: the name that its table begins with; `every`: all rules in it; not
    `table`: there is none.
    """

    rules: str
    quiet: bool = False
    every: bool = False
    json: bool = False
    table: bool = True


@dataclass(slots=True)
class Replay:
    """Owns one run: sources into the pipeline, events out to one output."""

    sources: Sources
    pipeline: Pipeline
    delayed: DeadLetters
    style: SummaryStyle
    states: StateFile | None = None
    lineage: Lineage = field(init=False)
    _graph: TimedGraph | None = field(default=None, init=False)
    _progress: Progress = field(default_factory=lambda: Progress(False), init=False)
    _running: bool = field(default=False, init=False)
    _sample: Sample = field(default_factory=lambda: Sample(limit=FIRST_GRAPHS), init=False)

    def __post_init__(self) -> None:
        self.lineage = Lineage(lambda: self.pipeline.settled)

    def replace(self, time: Time, clock: Clock, program: Program, background: Sequence[Triple]) -> None:
        """From a time on another program holds; how times are written is settled then."""
        if self.pipeline.clock is None:
            self.pipeline.begin(clock)
            self.sources.extractor.clock = clock
        elif self.pipeline.clock != clock:
            hint = "write all of them as integers, or as dateTimes"
            raise DataError.of("D2102", "the times of --then are of two kinds", hint=hint)
        self.pipeline.replace(time, program, background)

    def run(self, sink: TextSink | JellySink | ParquetSink, output: str | None) -> None:
        """Replay everything. What was emitted before an error or Ctrl-C is written, and stays."""
        style = self.style
        self._progress = progress = Progress(
            not style.quiet and sys.stderr.isatty() and (output is not None or not sys.stdout.isatty())
        )
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
        if style.json:
            self._report_json(progress.seconds)
        elif not style.quiet:
            self._report_funnels()
            show.note(self.summary(progress.seconds))

    def _report_funnels(self) -> None:
        """How far rules without an event came, and why; `every`: all rules."""
        pipeline, counters = self.pipeline, self.pipeline.counters
        events, program = counters.events, pipeline.program
        if pipeline.clock is None or not self.style.table:
            return
        why: list[Diagnostic] = []
        if not all(events.get(r.name) for r in program.rules if not r.private):
            from dotr.survey.silent_rules import why_silent  # noqa: PLC0415  # start-up: most runs have events

            self._sample.clock = pipeline.clock
            why = why_silent(pipeline.deployment, events, self._sample)
            show.say_all(why)
        every = self.style.every
        lines = funnel_lines(
            program, events, counters.funnel, counters.streams, why, every=every, width=show.width()
        )
        if lines:
            graphs, first, last = counters.graphs, counters.first, counters.last
            show.plain(heading(self.style.rules, graphs, first, last, pipeline.clock))
        for line in lines:
            show.plain(line)

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
            "times": dict(sources.extractor.rungs),
            **({"beside": found} if (found := unchanged(sources.extractor.beside)) else {}),
            "changed": changes(sources.extractor.beside),
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
                graph = item.last if isinstance(item, GraphRun) else item
                if behind is not None:
                    behind.passed(graph)
                if isinstance(item, Mark):
                    lineage.passed(item)
                    if item.error is not None:
                        self._write(sink)  # its letters come before this one
                        sources.refusals.take(item.error, item.content)
                    continue
                if isinstance(item, GraphRun):
                    count += len(item.times)
                    waiting += len(item.times)
                    self._take_run(item)
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
                        time, events = pipeline.clock.text(graph.time), pipeline.events_so_far()  # type: ignore[arg-type]  # a graph has one
                        progress.update(count, events, time, behind.done, behind.total)
        except DataError:
            if not self._running:  # an error of the sources: what was closed before is detected
                self._write(sink)
            raise
        pipeline.close_all()
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

    def _take_run(self, run: GraphRun) -> None:
        if self._sample.full and self.pipeline.accept_run(run.times, run.graphs):
            self.lineage.note_run(run)
            return
        for graph in run.items():
            self._take(graph)

    def _write(self, sink: EventSink) -> None:
        """Run what is closed; write its events."""
        clock = self.pipeline.clock
        self._running = True
        for events in self.pipeline.drain():
            if events:
                assert clock is not None
                sink.write(events, clock)
        self._running = False

    def refused(self, time: Time, graphs: Sequence[Part], error: DotrError) -> None:
        """The policy for an instant that is in error."""
        clock = self.pipeline.clock
        assert clock is not None
        if self.sources.refusals.fail:
            raise with_places(error, self.lineage.places(time, len(graphs)))
        self.sources.refusals.set_aside(self.lineage.letters(time, graphs, error, clock))
        self.lineage.settle(time)

    def overworked(self, error: ProgramError) -> None:
        """The policy for a fact that takes a rule too much work."""
        if self.sources.refusals.fail:
            raise error

    def found(self, finding: Diagnostic) -> None:
        """Say something about an instant that is not in error."""
        self._progress.clear()
        show.say(finding)

    def late(self, time: Time, graph: Part) -> None:
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
                notes=("the stream is not in time order",),
                hint="allow for disorder with --lateness, or drop such graphs with --late drop",
            )
        self.delayed.keep(lambda: late_line(time, graph, clock))

    def summary(self, seconds: float) -> str:
        """One line: what came in, what went out, how times were found, what was left out."""
        counters, sources = self.pipeline.counters, self.sources
        total = sum(counters.events.values())
        parts = [
            f"{show.counted(counters.graphs, 'graph')} at {show.counted(counters.instants, 'instant')}",
            show.counted(total, "event") + (f" ({show.by_name(counters.events)})" if total else ""),
        ]
        if sources.extractor.rungs:
            parts.append("time from " + ", ".join(sources.extractor.rungs))
        parts += show.beside(sources.extractor.beside, sources.extractor.first)
        if counters.late:
            parts.append(f"{counters.late:,} late")
        if sources.refusals.count:
            parts.append(f"{show.counted(sources.refusals.count, 'document')} refused")
        if counters.useless_deletes:
            useless = show.counted(counters.useless_deletes, "deletion")
            parts.append(f"{useless} of what was not stated")
        if counters.overlooked:
            overlooked = show.counted(counters.overlooked, "instant")
            parts.append(f"{overlooked} in error without a message")
        if counters.left_out:
            parts.append(show.left_out(counters.left_out))
        if counters.dropped:
            parts.append(f"{show.counted(counters.dropped, 'match', 'matches')} without a valid graph")
        return "; ".join(parts) + f"; {seconds:.1f} s"
