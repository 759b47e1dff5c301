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
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from dotr.cli import options, show
from dotr.cli.live import LastEvents, LiveView, Look, SourceLine, watched
from dotr.cli.options import CorrectionOptions, OutputOptions, RuleOptions, SourceOptions
from dotr.cli.process import POLITE
from dotr.cli.show import Progress, funnels, summary_line, time_as_json
from dotr.errors import DataError, Diagnostic, UsageError
from dotr.events import GraphOrMessage, Time, message_of
from dotr.io.decode.documents import Format, decode, format_of, read_bytes, unknown_format
from dotr.io.decode.rdf import parse_triples, split_triples
from dotr.io.events import BINARY, EVENT_FORMATS, Formatter, open_sink
from dotr.io.feeds import GraphSource
from dotr.io.graphs import SourceOptions as ReadingOptions
from dotr.io.outputs import is_device, open_output
from dotr.io.rules_and_background import read_rules_text
from dotr.lang import load_program
from dotr.program import Program
from dotr.rdf.terms import Triple
from dotr.service.deployment import Added, deployed_program
from dotr.service.feed import CheckpointPolicy, Feed, FeedOptions, FeedTotals, Idle, keeping_of, open_feed
from dotr.service.journal import DATABASE, LOCK, Journal, planned
from dotr.service.outputs import AppendingFile, Sink, StreamSink
from dotr.service.schemes import (
    FILE,
    NO_CONNECTORS,
    Connectors,
    OutputRequest,
    output_of,
    scheme_of,
    source_of,
)
from dotr.survey.queries import FIRST_GRAPHS, Sample
from dotr.survey.report import why_silent

if TYPE_CHECKING:
    from dotr.serve.feeding import FeedConnectors

_GRACE = 1.0
"""Seconds that outputs have after Ctrl-C for what was committed."""

_LOOK = 0.25
"""Seconds between two looks at what is followed."""

_PATIENCE = 2.0
"""Seconds that a feed which is stopped has for the instant it is at."""


@click.command()
@click.argument("sources", metavar="[SOURCE...]", nargs=-1)
@options.deployment
@click.option(
    "--insert",
    metavar="FILE",
    help="Triples that hold from --at on until they are deleted, instead of SOURCEs.",
)
@click.option("--delete", metavar="FILE", help="Triples that end at --at.")
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
    type=options.micros,
    metavar="DURATION",
    help="Advance time after a silence of this length.",
)
@click.option(
    "--commit-graphs", type=click.IntRange(1), default=10_000, help="Commit after this many graphs."
)
@click.option(
    "--commit-every", type=options.micros, metavar="DURATION", default="1s", help="Commit after this time."
)
@options.output_value
@options.rules
@options.materialize
@options.source(late="drop", jumps=True)
@options.corrections
@options.budget
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
    type=options.file_name,
    metavar="FILE",
    multiple=True,
    help="Write to a file (`-`: standard output); may be repeated; text to .gz and .zst compressed.",
)
@click.option("--overwrite", is_flag=True, help="Overwrite output files.")
@options.plain
@options.quiet
@options.events
@options.summary
def command(
    sources: tuple[str, ...],
    folder: str,
    plain: bool,
    insert: str | None,
    delete: str | None,
    at: str | None,
    follow: bool,
    keep_open: bool,
    idle_advance: int | None,
    commit_graphs: int,
    commit_every: int,
    rules: RuleOptions,
    source: SourceOptions,
    corrections: CorrectionOptions,
    outputs: tuple[str, ...],
    output: OutputOptions,
) -> None:
    """Push SOURCEs into the deployment. What was fed before, unchanged, is not fed again.

    Events go to standard output, or exactly once to each file of -o. Ctrl-C or SIGTERM end the feed after a
    commit. With --follow on a terminal, a view of the feed and its last events replaces their lines; --plain,
    NO_COLOR, --format or -o - keep the lines.

    A SOURCE may be a broker, mqtt://HOST/TOPIC, which is read until Ctrl-C. An output may be a topic
    there, or webhook:https://HOST/PATH; it gets each event at least once, and at the end the feed waits until
    every event is delivered. Keys of the configuration of `dotr serve` follow as ?KEY=VALUE&KEY=VALUE.

    The end of the SOURCEs closes their last instant, so that its events are reported. A graph of the same
    time in the next feed is then late, unless this feed has --keep-open. --insert and --delete name RDF files
    and feed one message: from --at on, its inserted triples hold, and its deleted triples do not.
    """
    files = [path for path in (insert, delete) if path is not None]
    if bool(sources) == bool(files) or bool(files) != (at is not None) or (files and follow):
        raise UsageError.of(
            "D4162",
            "a feed has SOURCEs, or one message with --at",
            hint="dotr feed SOURCE…, or dotr feed --insert FILE --delete FILE --at TIME",
        )
    lives = any(path == "-" or scheme_of(path) != FILE for path in sources)
    if idle_advance is not None and not follow and not lives:
        raise UsageError.of("D4131", "--idle-advance needs a source that may be silent", hint="add --follow")
    for path in outputs or ["-"]:
        EVENT_FORMATS[_format(path, output)].require()  # before all else
    apart = "-" not in outputs if outputs else not sys.stdout.isatty()
    lasts = follow or any(scheme_of(path) != FILE for path in sources)
    in_view = lasts and not outputs and output.format_ is None  # where events are not read as lines
    view = LiveView(lasts and not output.quiet and (apart or in_view) and watched(plain), fresh=True)
    progress = Progress(not output.quiet and sys.stderr.isatty() and apart and not view.shown)

    def found(finding: Diagnostic) -> None:
        progress.clear()
        with view.aside():
            show.say(finding)

    connected = None
    _refuse_paths(sources, outputs)
    if any(scheme_of(uri) != FILE for uri in (*sources, *outputs)):
        connected = _connectors(sources, outputs, found, corrections.period)
    own = [os.path.join(folder, name) for name in (DATABASE, LOCK)]
    paths = [uri.removeprefix("file://") for uri in sources if scheme_of(uri) == FILE]
    inputs = [*own, *paths, *files, *rules.background, *rules.more_rules]
    written = [uri for uri in outputs if scheme_of(uri) == FILE] if outputs else outputs
    options.outputs_apart(written, source.policies, inputs, appearing=True)
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(folder))
        if connected is None and journal.cursors():  # of outputs that this feed does not name
            connected = _connectors((), (), found)
        program = deployed_program(journal.deployed())
        if rules.more_rules:
            program = _with_rules(journal, rules.more_rules)
        show.say_all(program.warnings)
        program = rules.wanted(program, whole=True)  # every rule goes on, whoever asks for its events
        unit = None if options.defaulted("time_unit") else source.options.unit
        read = source.options
        feed = open_feed(
            journal,
            program,
            FeedOptions(
                Added(rules.background, read.base, read.max_document, read.choices),
                unit,
                max(source.lateness, 0 if connected is None else connected.lateness),
                source.max_jump,
                rules.budget,
                rules.materialize == "all",
                rules.verify,
                source.fails,
                source.late == "fail",
                corrections.period,
                corrections.share,
            ),
            CheckpointPolicy(commit_graphs, commit_every / 1_000_000),
            found,
        )
        pipeline, stored = feed.pipeline, feed.pipeline.clock
        if feed.forgotten and not output.quiet:
            show.note(f"start with nothing remembered: {', '.join(feed.forgotten)}")
        if unit is None:
            unit = stored.unit if stored is not None and stored.integer else read.unit
        read = replace(read, unit=unit, growing=follow)

        def opened(policy: str) -> AppendingFile | None:
            if not policy.startswith("file="):
                return None
            return AppendingFile(journal, policy.removeprefix("file="), "jsonl", output.overwrite)

        stack.callback(feed.close)
        connectors = NO_CONNECTORS
        if connected is not None:
            stack.callback(connected.close)
            connectors = connected.open(journal)
            feed.committed = connected.committed
        last = LastEvents(program.prefixes)
        feed.sinks = (
            []
            if view.shown and not apart
            else _sinks(journal, program, outputs, output, connectors, corrections.period is not None)
        )
        feed.sinks = [*feed.sinks, last] if view.shown else feed.sinks
        feed.dead_letters, feed.delayed = opened(source.on_error), opened(source.late)
        if idle_advance is not None:
            feed.idle = Idle(idle_advance)

        def seen() -> Look:
            return look_of(feed, folder, fed, last, {"late": source.late, "refused": source.on_error})

        def progressed(totals: FeedTotals, mark: str) -> None:
            progress.update(totals.graphs, totals.events, mark, totals.read, totals.size)
            view.look(seen)

        feed.progress = progressed
        if not rules.more_rules and not rules.background:
            feed.keeping = keeping_of(journal, pipeline)
        elif journal.kept_summary() is not None:
            journal.forget_kept()  # by rules and background of one feed nobody could explain anything later
            show.note(
                "what was kept for explanations is deleted: this feed has rules or a background of its own"
            )
        if pipeline.counters.graphs < FIRST_GRAPHS:
            feed.sample = Sample(limit=FIRST_GRAPHS)
        if (plan := journal.plan()) is not None and not rules.more_rules:
            later = rules.wanted(deployed_program(planned(plan)), whole=True)
            feed.plan(plan, later, split_triples(plan.background))
        feed.resume()
        fed = source_of(sources, read, fail=source.fails, follow=follow, connectors=connectors)
        stack.callback(progress.clear)
        stack.callback(view.close)
        if follow and not output.quiet and not all(sink.exactly_once for sink in feed.sinks):
            show.note(
                "an output that is not a file is at-least-once: after a crash, what followed the last commit "
                "is repeated"
            )
        if view.shown and not apart:
            show.note("events are in the view alone: -o FILE writes them, --plain prints them")
        with _stoppable(feed):
            try:
                if connected is not None:
                    connected.begin(folder, feed.stopping)
                if at is not None:
                    when, clock = options.given_time(at, unit, stored)
                    part = given_message(insert, delete, read)
                    feed.give(when, part, clock, " ".join(files), keep_open)
                elif connected is not None and (follow or connected.reads):
                    feed.follow(fed, partial(_wait, view, seen, partial(connected.wait, _LOOK)))
                elif follow:
                    feed.follow(fed, partial(_wait, view, seen, partial(time.sleep, _LOOK)))
                else:
                    feed.run(fed, keep_open)
                view.close()
                if connected is not None:
                    connected.finish(progress.waiting)
                    feed.pause()
            except KeyboardInterrupt:
                if connected is not None:
                    connected.finish(progress.waiting, seconds=_GRACE)
                raise
            finally:
                progress.clear()
                view.close()
                show.say_all([*feed.columns_missing.values(), *feed.late_warnings()])
                if output.summary_ == "json":
                    show.json_line(summary_as_json(feed, progress.seconds))
                elif not output.quiet:
                    report_funnels(feed, folder, every=output.verbose)
                    show.note(summary(feed, progress.seconds, fed.changed()))


def _wait(view: LiveView, look: Callable[[], Look], wait: Callable[[], object]) -> None:
    """Nothing is there now."""
    view.look(look)
    wait()


def look_of(
    feed: Feed, folder: str, source: GraphSource, last: LastEvents, policies: Mapping[str, str]
) -> Look:
    """What there is to see of a feed. `policies`: what becomes of late graphs and refused documents."""
    totals, clock, program = feed.totals, feed.pipeline.clock, feed.pipeline.program

    def text(moment: Time | None) -> str:
        return "" if moment is None or clock is None else clock.text(moment)

    def letters(kind: str) -> str:
        path = policies[kind].removeprefix("file=")
        return kind if path == policies[kind] else f"{kind} (`{path}`)"

    return Look(
        title=f"dotr feed {folder}",
        watermark=text(feed.pipeline.watermark),
        graphs=totals.graphs,
        events=totals.events,
        sources=[
            SourceLine(
                one.source if one.partition in ("", one.source) else f"{one.source}/{one.partition}",
                text(one.latest),
                one.graphs,
                "idle" if one.idle else "",
            )
            for one in source.partitions()
        ],
        last=last.lines(),
        rules=[rule.name for rule in program.rules],
        letters={
            letters(name): many for name, many in (("refused", totals.refused), ("late", totals.late)) if many
        },
        more=[show.counted(totals.commits, "commit")],
    )


_STREAMS = frozenset({Format.JSONLINES, Format.PATCH, Format.PARQUET, Format.JELLY})


def given_message(insert: str | None, delete: str | None, read: ReadingOptions) -> GraphOrMessage:
    """The message that two files make, of which one may be missing. Raises DataError."""
    parts = [None if path is None else _triples(path, read) for path in (insert, delete)]
    return message_of(None, parts[0], parts[1], delete or insert or "")


def _triples(path: str, read: ReadingOptions) -> list[Triple]:
    format_ = format_of(path)
    if format_ is None:
        raise unknown_format(path)
    if format_ in _STREAMS:
        raise DataError.of(
            "D2010",
            f"`{path}` is a stream, not a graph",
            place=path,
            hint="feed it as a SOURCE: it has times",
        )
    text = decode(read_bytes(path, read.max_document), path)
    return parse_triples(text, format_, path, read.base, choices=read.choices)


def _with_rules(journal: Journal, more: Sequence[str]) -> Program:
    """The deployed program with more rule files, for this feed alone."""
    deployed = journal.deployed()
    texts = deployed.texts or {}
    return load_program(
        [*deployed.files, *more],
        lambda path: texts[path] if path in texts else read_rules_text(path),
        deployed.removed,
    )


def _format(path: str, output: OutputOptions) -> str:
    name = None if path == "-" else path
    return options.chosen_format(output.format_, name, tuple(EVENT_FORMATS), "dotr feed")


def _refuse_paths(sources: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse URIs without an address, which would be names of files."""
    if any(":" in uri and scheme_of(uri) == FILE for uri in (*sources, *outputs)):
        from dotr.serve.uris import OUTPUT_SCHEMES, SOURCE_SCHEMES, refuse_path  # noqa: PLC0415  # start-up

        for uri in sources:
            refuse_path(uri, SOURCE_SCHEMES)
        for uri in outputs:
            refuse_path(uri, OUTPUT_SCHEMES)


def _connectors(
    sources: Sequence[str],
    outputs: Sequence[str],
    say: Callable[[Diagnostic], None],
    corrections: int | None = None,
) -> FeedConnectors:
    """What a feed connects to beside files. Raises DotrError."""
    from dotr.serve.feeding import FeedConnectors  # noqa: PLC0415  # start-up: most feeds have files alone

    return FeedConnectors(sources, outputs, say, corrections)


def _with_changes(name: str, program: Program) -> tuple[str, Formatter]:
    from dotr.io.changes import changes_formatter  # noqa: PLC0415  # start-up: few feeds correct

    return changes_formatter(name, program.prefixes, program.rules)


def _sinks(
    journal: Journal,
    program: Program,
    outputs: Sequence[str],
    output: OutputOptions,
    connectors: Connectors,
    changes: bool,
) -> list[Sink]:
    """Every output, opened, each once; standard output where none is named, and for `-`. `changes`: events
    have a sign.
    """
    sinks: list[Sink] = []
    for path in outputs or ["-"]:
        name = _format(path, output)
        if path == "-" or is_device(path):
            opened = partial(open_output, path, packed=name not in BINARY)
            head, write = _with_changes(name, program) if changes else (None, None)
            sinks.append(StreamSink(open_sink(name, opened, program, write, live=True, head=head)))
        else:
            request = OutputRequest(path, journal, program, name, output.overwrite, changes)
            sinks.append(output_of(request, connectors))
    return list({id(sink): sink for sink in sinks}.values())  # kept outputs have one


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
    parts += show.beside(feed.beside, times=feed.time_sources)
    parts += [f"`{file}` {what} since it was fed: read again" for file, what in changed.items()]
    parts += show.losses(totals.late, totals.refused, too_much=totals.left_out)
    corrected = show.corrections_of(feed.pipeline)
    if corrected is not None and corrected["late"]:
        parts.append(show.corrected(corrected))
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
    why: list[Diagnostic] = []
    if feed.sample is not None and not feed.stopping():  # who stops a feed does not wait for reasons
        feed.sample.clock = pipeline.clock
        feed.sample.graphs.sort(key=lambda graph: graph[0])
        why = why_silent(pipeline.deployment, counters.events, feed.sample)
        show.say_all(why)
    funnels(folder, pipeline, why, every)


def summary_as_json(feed: Feed, seconds: float) -> str:
    """What this feed brought, and how far rules came since they were deployed, as one line."""
    totals, counters, clock = feed.totals, feed.pipeline.counters, feed.pipeline.clock
    content = {
        "graphs": totals.graphs,
        "events": totals.events,
        "late": totals.late,
        "late_by_an_end": totals.late_by_an_end,
        "refused": totals.refused,
        **show.effects_as_json(counters.not_stated, counters.ineffective),
        "times": dict(feed.time_sources),
        **show.beside_as_json(feed.beside),
        **show.corrected_as_json(show.corrections_of(feed.pipeline)),
        "watermark": time_as_json(feed.pipeline.watermark, clock),
        "commits": totals.commits,
        "first": time_as_json(counters.first, clock),
        "last": time_as_json(counters.last, clock),
        "queries": counters.streams,
        "seconds": round(seconds, 3),
    }
    return summary_line(content, feed.pipeline.program, counters.events, counters.funnel)
