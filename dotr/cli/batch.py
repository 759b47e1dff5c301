"""`dotr batch RULES --log PATH… --out DIR`: a historical log, on Spark or in local processes.

Place:   the options, without Arrow, so that every installation has their help; batch_run.py does the work.
"""

from __future__ import annotations

import click

from dotr.batch.choices import LOG_FORMATS, TYPED
from dotr.cli import options
from dotr.cli.options import OutputOptions, RuleOptions, SourceOptions, SparkOptions
from dotr.detect.partitioning import By
from dotr.errors import UsageError
from dotr.io.events import format_of_name, refused


@click.command()
@click.argument("path", metavar="RULES")
@click.option(
    "--log",
    "logs",
    metavar="PATH",
    multiple=True,
    help="As LOG: a file, folder or glob, or a URI that Spark knows (hdfs://…, s3a://…); repeatable.",
)
@click.argument("more_logs", metavar="[LOG...]", nargs=-1)
@click.option(
    "--out",
    type=options.written_folder,
    metavar="DIR",
    required=True,
    help="The folder to write, or its URI; must not exist.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "local"]),
    default="auto",
    help="Spark, or local processes (default: auto, which gives the reason).",
)
@options.output_value
@options.spark
@options.choice("--by", (b.value for b in By), "Prefer to divide detection by key or by time", "auto")
@click.option(
    "--slice",
    "slice_",
    type=options.micros,
    metavar="DUR",
    help="Length of a slice of time, at least a 16th of what rules look back (default: chosen).",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(LOG_FORMATS),
    help="How to write (default: by the name of DIR, else jsonl).",
)
@options.schema
@click.option("--overwrite", is_flag=True, help="Replace an earlier output.")
@options.quiet
@options.rules
@options.materialize
@options.source(jumps=True)
@options.budget
@options.events
@options.summary
@options.until
@options.state
@options.no_corrections(
    "dotr batch",
    "a batch sorts its log by time: a graph that came late is in its place",
    "leave --corrections out",
)
def command(
    path: str,
    logs: tuple[str, ...],
    more_logs: tuple[str, ...],
    out: str,
    engine: str,
    spark: SparkOptions,
    by: str,
    slice_: int | None,
    rules: RuleOptions,
    source: SourceOptions,
    output: OutputOptions,
    until: str | None,
    schema: str,
) -> None:
    """Detect composite events in an existing log; the events are those of `dotr run`.

    A log is RDF of any form `dotr run` reads, or Parquet with the columns time and graph (see `dotr
    convert`), in any order. The output is a folder of part-* files and _dotr_run.json. With `--schema typed`
    Parquet has columns of structs, as in the manual (`dotr help spark`), in folders by rule and day.
    """
    from dotr.cli.batch_run import Wanted, detect  # noqa: PLC0415  # a lean installation has no Arrow

    if slice_ == 0:
        raise UsageError.of("D4120", "--slice is empty", hint="give a duration such as 1h")
    places = [*logs, *more_logs]
    if not places:
        raise click.UsageError("name one or more logs: dotr batch RULES LOG… --out DIR")
    format_ = output.format_ or format_of_name(out.rstrip("/"), LOG_FORMATS, "dotr batch") or "jsonl"
    if schema == "typed":
        if format_ != "parquet":
            raise refused(f"a typed schema of {format_}", ["parquet"], "dotr batch")
        format_ = TYPED
    wanted = Wanted(path, places, out, engine, format_, By(by), slice_, until)
    detect(wanted, spark, rules, source, output)
