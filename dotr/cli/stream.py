"""`dotr stream RULES --source files DIR …`: Structured Streaming, exactly once; `dotr spark`.

Place:   reads program and background, starts Spark, and lets batch/spark/stream_frames.py work. `dotr spark
         entry-point` writes what spark-submit needs to run every verb on a cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from dotr.batch.choices import AUTO, DISTRIBUTED, MODES, STREAM_FORMATS
from dotr.cli import options, show
from dotr.cli.options import RuleOptions, SourceOptions, SparkOptions
from dotr.cli.process import without_logging
from dotr.cli.show import Progress
from dotr.core.deployment import Deployment
from dotr.events import Clock
from dotr.io.graphs import SourceOptions as ReadingOptions
from dotr.io.outputs import open_output
from dotr.io.rules_and_background import RuleTexts, read_background

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dotr.batch.spark.session import SparkOptions as Session
    from dotr.batch.spark.stream_frames import FrameStream
    from dotr.batch.spark.stream_sources import StreamSource
    from dotr.batch.stream import StreamOptions, Taken


_RULES = 10
"""Rules whose memory is shown at the end, at most."""

_RULES_SHOWN = 3
"""Likewise, while a stream runs."""

_PLACES = {"files": ("DIR",), "kafka": ("SERVERS", "TOPIC"), "rate": ()}


@click.command()
@click.argument("path", metavar="RULES")
@options.rules_value
@options.source_value
@click.option(
    "--source",
    "kind",
    type=click.Choice(list(_PLACES)),
    required=True,
    help="files DIR, kafka SERVERS TOPIC, or rate (a graph with every tick of a clock).",
)
@click.argument("places", metavar="[DIR | SERVERS TOPIC]", nargs=-1)
@click.option(
    "--checkpoint",
    type=options.written_folder,
    metavar="DIR",
    required=True,
    help="Where the stream keeps its state.",
)
@click.option(
    "--out",
    type=options.written_folder,
    metavar="DIR|kafka:SERVERS/TOPIC",
    required=True,
    help="The folder of the events, or a topic that they go to.",
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default=AUTO,
    help="In order in one engine, or distributed: by part on all workers (default: auto, with the reason).",
)
@click.option("--once", is_flag=True, help="Process the available input, close the last instant, and end.")
@click.option(
    "--change-rules",
    is_flag=True,
    help="Let a checkpoint of other rules go on with these; rules that are the same keep their state.",
)
@click.option("--every", type=options.micros, metavar="DUR", help="Interval between batches (default: none).")
@click.option(
    "--most",
    type=options.number,
    metavar="N",
    help="Largest number of files or records of a batch, or (rate) of graphs a second.",
)
@click.option(
    "--lateness",
    type=options.micros,
    metavar="DURATION",
    default=0,
    help="How far out of order the stream may be.",
)
@options.choice(
    "--late",
    ("drop", "keep", "fail"),
    "What happens to a graph for a closed instant; keep: in OUT/_late",
    "drop",
)
@options.choice(
    "--on-error",
    ("fail", "skip", "keep"),
    "What happens to documents and instants in error; keep: in OUT/_letters",
    "fail",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(STREAM_FORMATS),
    default="jsonl",
    help="How to write (default: jsonl).",
)
@options.no_corrections(
    "dotr stream",
    "events of a micro-batch are committed with it, and Spark's sinks take nothing back",
    "use --lateness, or dotr feed --corrections",
)
@options.background
@options.more_rules
@options.functions
@click.option(
    "--time-path",
    type=options.property_iri,
    metavar="IRI",
    help="The property that holds the time of a graph.",
)
@options.time_unit
@options.finer
@options.interval
@options.rdf12
@options.quiet
@options.jump
@options.events
@options.spark
def command(
    path: str,
    kind: str,
    places: tuple[str, ...],
    checkpoint: str,
    out: str,
    mode: str,
    once: bool,
    change_rules: bool,
    every: int | None,
    most: int | None,
    source: SourceOptions,
    format_: str,
    rules: RuleOptions,
    quiet: bool,
    spark: SparkOptions,
) -> None:
    """Detect composite events in the files of a folder, or in Kafka; the events are those of `dotr run`.

    OUT has a file for every micro-batch with events. In the order of their names they are what `dotr run`
    prints, whatever was killed and started again in between.
    """
    if len(places) != len(_PLACES[kind]):
        raise click.UsageError(f"--source {kind} {' '.join(_PLACES[kind])}".strip())
    if once and kind == "rate":
        raise click.UsageError("--once with a source that never ends: leave --once or rate out")
    from dotr.batch.stream import StreamOptions  # noqa: PLC0415  # a lean installation has no Arrow

    session = spark.session()
    program = rules.wanted(rules.load(path, RuleTexts()))
    show.say_all(program.warnings)
    triples = read_background(rules.documents(program), named=program.named)
    deployment = rules.deployment(program, triples)
    taken = StreamOptions(
        format_, source.lateness, source.late, source.on_error, source.max_jump, change_rules
    )
    progress = Progress(not quiet and sys.stderr.isatty())
    trigger = (once, None if every is None else every / 1e6)
    wanted = _Wanted(kind, places, source.options, taken, most, mode)
    query = _start(session, wanted, deployment, (out, checkpoint), trigger, progress)
    if not quiet:
        show.note(f"{query.mode}: {'; '.join(query.reasons)}")
    _run(query, quiet, progress)


class _Wanted(Struct, frozen=True):
    """What is read, and how."""

    kind: str
    places: Sequence[str]
    given: ReadingOptions
    options: StreamOptions
    most: int | None
    mode: str

    def open(self, spark: SparkSession) -> StreamSource:
        from dotr.batch.spark import stream_sources  # noqa: PLC0415  # start-up

        policy = self.options.on_error
        if self.kind == "files":
            return stream_sources.files(spark, self.places[0], self.given, policy, self.most)
        if self.kind == "kafka":
            servers, topic = self.places
            return stream_sources.kafka(spark, servers, topic, self.given, policy, self.most)
        return stream_sources.rate(spark, self.most or 10)


def _start(
    asked: Session,
    wanted: _Wanted,
    deployment: Deployment,
    folders: tuple[str, str],
    trigger: tuple[bool, float | None],
    progress: Progress,
) -> FrameStream:
    from dotr.batch.spark import distributed, stream_frames  # noqa: PLC0415  # start-up
    from dotr.batch.spark import stream as streams  # noqa: PLC0415  # start-up
    from dotr.batch.spark.frame_stages import parallelism  # noqa: PLC0415  # start-up
    from dotr.batch.spark.session import start as start_session  # noqa: PLC0415  # start-up
    from dotr.batch.spark.stream import BatchTrigger, State  # noqa: PLC0415  # start-up
    from dotr.batch.stream import choose, known_mode, known_notes, no_clock  # noqa: PLC0415  # start-up

    session = start_session(asked)
    found = wanted.open(session)
    graphs = events = 0

    def on_batch(taken: Taken, state: State) -> None:
        nonlocal graphs, events
        graphs, events = graphs + taken.graphs, events + taken.events
        if state.watermark:
            at = (
                f"{state.event_time}, closed up to {state.watermark}" if state.event_time else state.watermark
            )
            progress.update(graphs, events, at, remembered=_most(state.sizes))

    taken, states = wanted.options, streams.states_of(folders[1])
    cores = parallelism(session, asked.parallelism)
    choice = choose(wanted.mode, known_mode(states), deployment, taken, cores)
    noted = known_notes(states).get("clock")
    clock = Clock(*noted) if noted else found.sampled()
    if clock is None and choice.mode == DISTRIBUTED:
        choice = no_clock(wanted.mode)
    distributed.quiet(session)
    query = stream_frames.start(
        choice.mode, found.graphs(clock), deployment, *folders, taken, BatchTrigger(*trigger), on_batch, cores
    )
    query.reasons = choice.reasons
    return query


@without_logging()
def _run(query: FrameStream, quiet: bool, progress: Progress) -> None:
    try:
        query.wait()
    except KeyboardInterrupt:
        query.stop()
        raise
    finally:
        progress.clear()
        if not quiet:
            show.note(_summary(query.totals))
            _remembered(query)


def _remembered(query: FrameStream) -> None:
    """How many facts each rule remembers."""
    sizes = query.state().sizes
    if any(sizes.values()):
        show.note(f"remembered facts: {_most(sizes, _RULES)}")


def _most(sizes: Mapping[str, int], rules: int = _RULES_SHOWN) -> str:
    """How many facts rules remember, those with most of them."""
    held = sorted((rule for rule, count in sizes.items() if count), key=lambda rule: -sizes[rule])
    shown = [f"{rule} {sizes[rule]:,}" for rule in held[:rules]]
    return f"{', '.join(shown)}{', …' if held[rules:] else ''}"


def _summary(totals: Taken) -> str:
    parts = [show.counted(totals.graphs, "graph"), show.counted(totals.events, "event")]
    return "; ".join([*parts, *show.losses(totals.late, totals.refused)])


ENTRY_POINT = '''\
"""dotr under spark-submit: the arguments are those of `dotr`.

    spark-submit --master yarn dotr-submit.py batch fire.dotr --log hdfs:///log --out hdfs:///fires
"""

import sys

try:
    from dotr.cli.main import run
except ImportError:
    sys.exit(f"the driver's Python, {sys.executable}, has no dotr: install it, or send an environment along")

code = run()
if code:
    sys.exit(code)
'''


@click.group()
def spark() -> None:
    """What Spark's own commands need to run dotr."""


@spark.command("entry-point", short_help="Write the file that spark-submit starts.")
@click.option(
    "-o",
    "--output",
    type=options.file_name,
    metavar="FILE",
    default="dotr-submit.py",
    help="The file to write (default: dotr-submit.py; `-`: standard output).",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
def entry_point(output: str, overwrite: bool) -> None:
    """Write a Python file that spark-submit starts: spark-submit … dotr-submit.py VERB …"""
    file = open_output(output, overwrite)
    file.write(ENTRY_POINT)
    file.finish()
    output = "dotr-submit.py" if output == "-" else output
    show.note(f"{output}: spark-submit … {output} batch RULES LOG… --out DIR")
