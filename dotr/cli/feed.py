"""`dotr feed SOURCE…`: push graphs into a deployment; it goes on where it stopped, exactly once.

Place:   opens the deployment and its outputs, and lets service/feed.py work.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType

import click
from msgspec.structs import replace

from dotr.cli import show
from dotr.cli.given import given_message, given_time
from dotr.cli.options import (
    budget_option,
    deployment_option,
    event_options,
    events_wanted,
    file_name,
    jump_option,
    lateness_options,
    micros,
    program_options,
    source_options,
    summary_options,
)
from dotr.cli.process import POLITE
from dotr.cli.run import chosen_format, outputs_apart, refuse_without_jelly
from dotr.cli.show import Progress, funnel_lines, heading, summary_line, time_as_json
from dotr.collecting import uncollected
from dotr.core.pipeline import Pipeline
from dotr.errors import Diagnostic, UsageError
from dotr.events import Clock
from dotr.io.decode.ntriples import split_triples
from dotr.io.event_formats import formatter
from dotr.io.files.event_sinks import JellySink, TextSink
from dotr.io.files.file_source import FileSource
from dotr.io.files.outputs import Output, StreamOutput, is_device, open_output
from dotr.io.files.rule_texts import read_rules_text
from dotr.io.files.sources import SourceOptions
from dotr.io.output_formats import EVENT_FORMATS
from dotr.io.time_reading import changes, unchanged
from dotr.ir import Program
from dotr.lang import load_program
from dotr.service.appending_files import AppendingFile
from dotr.service.checkpoint_policy import CheckpointPolicy, Idle
from dotr.service.deployment_directory import deployed_program
from dotr.service.event_parts import PART_FORMATS, EventParts
from dotr.service.feed import Feed, refuse_other_unit
from dotr.service.journal import DATABASE, LOCK, Journal
from dotr.service.keeping import Keeping
from dotr.service.records import planned
from dotr.service.resuming import Added, resumed
from dotr.service.sink import FileSink, Sink, StreamSink
from dotr.survey.sample import FIRST_GRAPHS, Sample
from dotr.survey.silent_rules import why_silent

_LOOK = 0.25
"""Seconds between two looks at what is followed."""

_PATIENCE = 2.0
"""Seconds that a feed which is stopped has for the instant it is at."""


@click.command(short_help="Push sources into a deployment; resumes where it stopped, exactly once.")
@click.argument("sources", metavar="[SOURCE...]", nargs=-1)
@deployment_option
@click.option(
    "--insert", metavar="FILE", help="What holds from --at on until it is deleted, instead of SOURCEs."
)
@click.option("--delete", metavar="FILE", help="What no longer holds from --at on.")
@click.option("--at", metavar="TIME", help="When --insert and --delete happen: 12, a dateTime, or now.")
@click.option(
    "--follow", is_flag=True, help="Continue with new files, and with additions to files, until Ctrl-C."
)
@click.option(
    "--keep-open",
    is_flag=True,
    help="Leave the last instant open for the next feed, whose graphs may have the same time.",
)
@click.option(
    "--idle-advance",
    type=micros,
    metavar="DURATION",
    help="Advance time by itself after a silence of this length.",
)
@click.option(
    "--commit-graphs", type=click.IntRange(1), default=10_000, help="Commit after this many graphs."
)
@click.option("--commit-every", type=micros, metavar="DURATION", default="1s", help="Commit after this time.")
@program_options
@source_options
@lateness_options(late="drop")
@jump_option
@budget_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(EVENT_FORMATS)),
    help="How to write (default: by the name of -o).",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    type=file_name,
    metavar="FILE",
    multiple=True,
    help="Write to a file (`-`: standard output); may be repeated; text to .gz and .zst compressed.",
)
@click.option("--overwrite", is_flag=True, help="Overwrite output files.")
@click.option("-q", "--quiet", is_flag=True, help="No progress line, no summary.")
@event_options
@summary_options
def command(
    sources: tuple[str, ...],
    folder: str,
    insert: str | None,
    delete: str | None,
    at: str | None,
    follow: bool,
    keep_open: bool,
    idle_advance: int | None,
    commit_graphs: int,
    commit_every: int,
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
    outputs: tuple[str, ...],
    overwrite: bool,
    quiet: bool,
    only_: tuple[str, ...],
    except_: tuple[str, ...],
    summary_: str,
    verbose: bool,
) -> None:
    """Push SOURCEs into the deployment. What was fed before, unchanged, is not fed again.

    Events go to standard output, or exactly once to each file of -o. Ctrl-C or SIGTERM end it after a commit.
    The end of the SOURCEs closes their last instant, so that its events are reported: a graph of the same
    time in the next feed is late, unless this one has --keep-open.
    With --insert and --delete, which name RDF files, one message is fed: what is said holds or no more from
    --at on. Its time is kept with it.
    """
    files = [path for path in (insert, delete) if path is not None]
    if bool(sources) == bool(files) or bool(files) != (at is not None) or (files and follow):
        raise UsageError.of(
            "D4162",
            "a feed has SOURCEs, or one message with --at",
            hint="dotr feed SOURCE…, or dotr feed --insert FILE --delete FILE --at TIME",
        )
    if idle_advance is not None and not follow and not any(path == "-" for path in sources):
        raise UsageError.of("D4131", "--idle-advance needs a source that may be silent", hint="add --follow")
    for path in (None if path == "-" else path for path in outputs or ["-"]):
        if chosen_format(format_, path, EVENT_FORMATS, "dotr feed") == "jelly":  # refused before all else
            refuse_without_jelly()
    own = [os.path.join(folder, name) for name in (DATABASE, LOCK)]
    outputs_apart(
        outputs, [on_error, late], [*own, *sources, *files, *background, *more_rules], appearing=True
    )
    feed: Feed
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(folder))
        program = deployed_program(journal.deployed())
        if more_rules:
            program = _with_rules(journal, more_rules)
        show.say_all(program.warnings)
        program = events_wanted(program, only_, except_)  # every rule goes on, whoever asks for its events
        begun = time.process_time()
        with uncollected():
            state = journal.snapshot()
        loading = time.process_time() - begun
        with journal.reading():
            stored = Clock(*state["clock"]) if state is not None and state["clock"] is not None else None
        unit = (
            stored.unit if stored is not None and stored.integer and _defaulted("time_unit") else options.unit
        )
        refuse_other_unit(stored, unit, folder)
        options = replace(options, unit=unit)
        progress = Progress(not quiet and sys.stderr.isatty() and not (sys.stdout.isatty() and not outputs))

        def found(finding: Diagnostic) -> None:
            progress.clear()
            show.say(finding)

        pipeline = resumed(
            journal,
            program,
            Added(background, options.base, options.max_document, options.choices),
            lateness=lateness,
            on_late=lambda when, graph: feed.late(when, graph),
            on_refused=lambda when, graphs, error: feed.refused(when, graphs, error),
            on_overworked=lambda rule, error: feed.overworked(rule, error),
            on_finding=found,
            budget=budget,
            materialize_all=materialize == "all",
            verify=verify,
            max_jump=max_jump,
            pause=lambda: feed.pause(),
        )
        if state is not None:
            begun = time.process_time()
            with uncollected(), journal.reading():
                restored = pipeline.restore(state)
            loading += time.process_time() - begun
            if restored.empty and state["clock"] is not None and not quiet:
                show.note(f"start with nothing remembered: {', '.join(restored.empty)}")

        def opened(policy: str) -> AppendingFile | None:
            if not policy.startswith("file="):
                return None
            return AppendingFile(journal, policy.removeprefix("file="), "jsonl", overwrite)

        feed = Feed(
            journal,
            pipeline,
            _sinks(journal, program, outputs, format_, overwrite),
            opened(on_error),
            opened(late),
            on_error == "fail",
            late == "fail",
            CheckpointPolicy(commit_graphs, commit_every / 1_000_000),
            Idle(idle_advance) if idle_advance is not None else None,
            progress=lambda totals, mark: progress.update(
                totals.graphs, totals.events, mark, totals.read, totals.size
            ),
        )
        feed.keeping = keeping_of(journal, pipeline, bool(more_rules or background))
        if pipeline.counters.graphs < FIRST_GRAPHS:
            feed.sample = Sample(limit=FIRST_GRAPHS)
        feed.checkpoints.expect(loading)
        if (plan := journal.plan()) is not None and not more_rules:
            later = events_wanted(deployed_program(planned(plan)), only_, except_)
            feed.plan(plan, later, split_triples(plan.background))
        stack.callback(feed.close)
        feed.resume()
        files_read = FileSource(
            sources, _growing(options) if follow else options, fail=on_error == "fail", follow=follow
        )
        stack.callback(progress.clear)
        if follow and not quiet and not all(sink.exactly_once for sink in feed.sinks):
            show.note(
                "an output that is not a file is at-least-once: after a crash, what followed the last commit "
                "comes again"
            )
        with _stoppable(feed):
            try:
                if at is not None:
                    when, clock = given_time(at, unit, stored)
                    part = given_message(insert, delete, options)
                    feed.give(when, part, clock, " ".join(files), keep_open)
                elif follow:
                    feed.follow(files_read, lambda: time.sleep(_LOOK))
                else:
                    feed.run(files_read, keep_open)
            finally:
                progress.clear()
                show.say_all([*feed.columns_missing.values(), *feed.late_by_an_end()])
                if summary_ == "json":
                    show.json_line(summary_as_json(feed, progress.seconds))
                elif not quiet:
                    report_funnels(feed, folder, every=verbose)
                    show.note(summary(feed, progress.seconds, files_read.changed))


def keeping_of(journal: Journal, pipeline: Pipeline, more: bool) -> Keeping | None:
    """What keeps the messages of a feed, where the deployment asks for it. `more`: rules or background are
    those of one feed, by which nobody could explain anything later.
    """
    length, summary = journal.keeps(), journal.kept_summary()
    if not length or more:
        if more and summary is not None:
            journal.forget_kept()
            show.note("what was kept for explanations goes: this feed has rules or background of its own")
        return None
    keeping = Keeping(pipeline, length, summary is not None, journal.kept_since())
    keeping.begin()
    return keeping


def _growing(options: SourceOptions) -> SourceOptions:
    return replace(options, growing=True)


def _defaulted(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.DEFAULT


def _with_rules(journal: Journal, more: Sequence[str]) -> Program:
    """The deployed program with more rule files, for this feed alone."""
    deployed = journal.deployed()
    texts = deployed.texts or {}
    return load_program(
        [*deployed.files, *more],
        lambda path: texts[path] if path in texts else read_rules_text(path),
        deployed.removed,
    )


def _sinks(
    journal: Journal, program: Program, outputs: Sequence[str], format_: str | None, overwrite: bool
) -> list[Sink]:
    """Every output, opened; standard output where none is named, and for `-`."""
    sinks: list[Sink] = []
    for path in outputs or ["-"]:
        if path == "-":
            name = chosen_format(format_, None, EVENT_FORMATS, "dotr feed")
            sinks.append(_stream_sink(name, program, StreamOutput(sys.stdout.buffer)))
            continue
        name = chosen_format(format_, path, EVENT_FORMATS, "dotr feed")
        if is_device(path):
            sinks.append(_stream_sink(name, program, open_output(path, packed=name not in PART_FORMATS)))
        elif name in PART_FORMATS:
            sinks.append(EventParts(journal, path, overwrite, name))
        else:
            file = AppendingFile(journal, path, name, overwrite, packed=True)
            head, write = formatter(name, program.prefixes, program.rules)
            if file.length:  # what stands there must have the same head
                file.refuse_other_head(head)
            else:
                file.write(head)
            sinks.append(FileSink(write, file))
    return sinks


def _stream_sink(name: str, program: Program, output: Output) -> StreamSink:
    """An output that begins with this feed: standard output, a pipe, a device."""
    if name != "jelly":
        head, write = formatter(name, program.prefixes, program.rules)
        output.write(head)
        return StreamSink(TextSink(write, output))
    from dotr.io.jelly_frames import JellyFrames  # noqa: PLC0415  # an extra

    frames = JellyFrames()
    output.write_bytes(frames.frame(""))  # the stream's options stand at its head, as those of a text do
    return StreamSink(JellySink(output, frames))


@contextmanager
def _stoppable(feed: Feed) -> Iterator[None]:
    """The first Ctrl-C (or a polite signal) lets the feed commit what it has done. A second one ends it at
    once, and so does an instant that takes longer than `_PATIENCE`: the last commit stands, and what followed
    it is done again by the next feed.
    """
    asked: list[int] = []
    ended = threading.Event()

    def stop(number: int, _frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        threading.Thread(target=insist, daemon=True).start()

    def insist() -> None:
        while not ended.wait(_PATIENCE):
            if not feed.saving:
                interrupt_main()  # calls `stop` in the main thread

    feed.stopping = lambda: bool(asked)
    before: list[tuple[int, Callable[[int, FrameType | None], object] | int | None]] = []
    try:
        for number in (signal.SIGINT, *POLITE):
            if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGINT:
                before.append((number, signal.signal(number, stop)))
    except ValueError:  # not in the main thread
        pass
    try:
        yield
    finally:
        ended.set()
        for which, handler in before:
            signal.signal(which, handler)


def summary(feed: Feed, seconds: float, changed: Mapping[str, str]) -> str:
    """One line: what this feed brought."""
    totals = feed.totals
    parts = [show.counted(totals.graphs, "graph"), show.counted(totals.events, "event")]
    if feed.rungs:
        parts.append("time from " + ", ".join(feed.rungs))
    parts += show.beside(feed.beside)
    parts += [f"`{file}` {what} since it was fed: read again" for file, what in changed.items()]
    if totals.late:
        parts.append(f"{totals.late:,} late")
    if totals.refused:
        parts.append(f"{show.counted(totals.refused, 'document')} refused")
    if totals.left_out:
        parts.append(show.left_out(totals.left_out))
    watermark, clock = feed.pipeline.watermark, feed.pipeline.clock
    if watermark is not None and clock is not None:
        parts.append(f"closed up to {clock.text(watermark)}")
    parts.append(f"{show.counted(totals.commits, 'commit')} in {totals.saving:.1f} s")
    return "; ".join(parts) + f"; {seconds:.1f} s"


def report_funnels(feed: Feed, folder: str, *, every: bool) -> None:
    """How far rules without an event came since they were deployed; `every`: all rules."""
    pipeline, counters = feed.pipeline, feed.pipeline.counters
    if pipeline.clock is None:
        return
    program, events = pipeline.program, counters.events
    why: list[Diagnostic] = []
    if feed.sample is not None and not feed.stopping():  # who stops a feed does not wait for reasons
        feed.sample.clock = pipeline.clock
        feed.sample.graphs.sort(key=lambda graph: graph[0])
        why = why_silent(pipeline.deployment, events, feed.sample)
        show.say_all(why)
    lines = funnel_lines(
        program, events, counters.funnel, counters.streams, why, every=every, width=show.width()
    )
    if lines:
        show.plain(heading(folder, counters.graphs, counters.first, counters.last, pipeline.clock))
    for line in lines:
        show.plain(line)


def summary_as_json(feed: Feed, seconds: float) -> str:
    """What this feed brought, and how far rules came since they were deployed, as one line."""
    totals, counters, clock = feed.totals, feed.pipeline.counters, feed.pipeline.clock
    content = {
        "graphs": totals.graphs,
        "events": totals.events,
        "late": totals.late,
        "late_by_an_end": totals.late_by_an_end,
        "refused": totals.refused,
        "times": dict(feed.rungs),
        **({"beside": found} if (found := unchanged(feed.beside)) else {}),
        "changed": changes(feed.beside),
        "watermark": time_as_json(feed.pipeline.watermark, clock),
        "commits": totals.commits,
        "first": time_as_json(counters.first, clock),
        "last": time_as_json(counters.last, clock),
        "queries": counters.streams,
        "seconds": round(seconds, 3),
    }
    return summary_line(content, feed.pipeline.program, counters.events, counters.funnel)
