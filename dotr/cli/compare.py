"""`dotr compare OLD NEW LOG…`: what two versions of rules, or several values of a parameter, find in one log.

Place:   over dotr/testing. Exit code 1 when two versions differ, as diff has it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing

import click

from dotr.cli import options, show
from dotr.cli.options import OutputOptions, SourceOptions, SparkOptions
from dotr.core.deployment import Deployment
from dotr.errors import UsageError
from dotr.events import Clock
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import Sources
from dotr.lang import load_program
from dotr.testing.compare import (
    Comparing,
    Difference,
    RunComparison,
    Version,
    as_json,
    compared_batches,
    html,
    reasons,
    text,
)


@click.command()
@click.argument("arguments", metavar="OLD NEW LOG...", nargs=-1, required=True)
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=A,B,…",
    help="Compare values of a PARAMETER of one rule file (RULES LOG… instead of OLD NEW LOG…).",
)
@options.output_value
@click.option("--engine", type=click.Choice(["local", "spark"]), default="local", help="Default: local.")
@click.option("--master", metavar="URL", help="Where Spark runs (with --engine spark).")
@click.option(
    "--format", "format_", type=click.Choice(["text", "json", "html"]), default="text", help="Default: text."
)
@click.option(
    "--show",
    "most",
    type=click.IntRange(0),
    default=10,
    metavar="N",
    help="Number of differences to show (default: 10).",
)
@click.option(
    "--explain",
    "explained",
    type=click.IntRange(0),
    default=2,
    metavar="N",
    help="Number of these to explain (default: 2).",
)
@options.here
@options.replacing
@options.source(late="drop")
def command(
    arguments: tuple[str, ...],
    params: tuple[str, ...],
    engine: str,
    master: str | None,
    most: int,
    explained: int,
    output: OutputOptions,
    source: SourceOptions,
) -> int:
    """Run OLD and NEW rules over LOGs, and show which events appear (+) and disappear (−).

    Events are matched by rule, time and values. With --param, one rule file and several values of a
    parameter: a table of counts, to choose a threshold on last year's log. The exit code is 1 when OLD
    and NEW differ.
    """
    if source.late.startswith("file="):
        raise _usage("late graphs are not written here", "dotr run --late file=PATH")
    if output.output is not None and not output.overwrite and os.path.exists(output.output):
        output.open()  # refuses it, before anything runs
    rules, sources, values = _asked(arguments, params)
    versions = [_version(path, given, source) for path, given in zip(rules, values, strict=True)]
    if engine == "spark":
        found = _by_spark(versions, sources, source, master)
    else:
        found = _here(versions, sources, source)
    why: list[tuple[Difference, str]] = []
    here = not any(_once(path) for path in sources)
    if explained and here and len(versions) == 2:
        why = reasons(
            found, found.differences[: min(explained, most)], sources, source.options, source.lateness
        )
    out = output.open()
    match output.format_:
        case "json":
            out.write(as_json(found, why))
        case "html":
            out.write(html(found, why, most))
        case _:
            out.write(text(found, why, most, None if output.output else show.width(sys.stdout)))
    out.finish()
    left_out = f", {found.refused} refused" if found.refused else ""
    differences = show.counted(found.changed, "difference")
    show.note(f"{show.counted(found.graphs, 'graph')}{left_out}, {differences}")
    return 1 if len(versions) == 2 and not params and found.changed else 0


_VALUES = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^,])+')
"""Values between commas, of which a quoted one may have some."""


def _asked(
    arguments: Sequence[str], params: Sequence[str]
) -> tuple[list[str], list[str], list[dict[str, str]]]:
    """Rule files, logs, and the parameters of each version. Raises UsageError D4406."""
    if not params:
        if len(arguments) < 3:
            raise _usage("two rule files and a log are needed", "dotr compare OLD.dotr NEW.dotr LOG…")
        return list(arguments[:2]), list(arguments[2:]), [{}, {}]
    if len(arguments) < 2 or arguments[1].endswith(".dotr"):
        raise _usage(
            "--param compares values of one rule file", "dotr compare RULES.dotr LOG… --param NAME=A,B"
        )
    values: list[dict[str, str]] = [{}]
    for param in params:
        name, equals, given = param.partition("=")
        parts = [part.strip() for part in _VALUES.findall(given)]
        if not equals or not name.strip() or not parts or not all(parts) or ",," in given:
            raise _usage(f"`--param {param}` is not a list of values", "--param patience=5min,10min,20min")
        key = name.strip().lstrip("?")
        if key in values[0] or len(set(parts)) < len(parts):
            raise _usage(f"`--param {param}` names a parameter or a value twice", "--param limit=50,60,70")
        values = [{**one, key: part} for one in values for part in parts]
    return [arguments[0]] * len(values), list(arguments[1:]), values


def _once(source: str) -> bool:
    """Whether a source can be read once only, or by Spark only."""
    there = os.path.exists(source) and not os.path.isfile(source) and not os.path.isdir(source)
    return source == "-" or "://" in source or there


def _usage(message: str, hint: str) -> UsageError:
    return UsageError.of("D4406", message, hint=hint)


def _version(path: str, given: dict[str, str], source: SourceOptions) -> Version:
    program = load_program([path], read_rules_text, parameters=given)
    background = source.background(program, program.background)
    name = ", ".join(f"{key}={value}" for key, value in given.items()) or path
    return Version(name, program, background)


def _here(versions: Sequence[Version], sources: Sequence[str], source: SourceOptions) -> RunComparison:
    with source.letters() as dead:
        reader = Sources(sources, source.options, dead.refusals())

        def clock() -> Iterator[Clock]:
            assert reader.clock is not None, "there was a graph"
            yield reader.clock

        graphs = ((graph.time, graph.triples) for graph in reader)
        late_fails, forgiving = source.late == "fail", not source.fails
        comparing = Comparing(versions, source.lateness, late_fails, forgiving=forgiving)
        found = comparing.run(graphs, clock())
        found.refused += reader.refusals.count
        return found


def _by_spark(
    versions: Sequence[Version], sources: Sequence[str], source: SourceOptions, master: str | None
) -> RunComparison:
    """A batch for each version, in one session."""
    from dotr.batch.log import plain_path  # noqa: PLC0415  # start-up
    from dotr.batch.runs import Request  # noqa: PLC0415  # start-up
    from dotr.batch.spark.cluster import SparkRunner  # noqa: PLC0415  # start-up
    from dotr.batch.work import Treatment  # noqa: PLC0415  # start-up
    from dotr.cli.batch import listed_log  # noqa: PLC0415  # start-up

    outputs: list[list[str]] = []
    graphs = 0
    with (
        tempfile.TemporaryDirectory(prefix="dotr-compare-") as folder,
        closing(SparkRunner(SparkOptions(master).session())) as runner,
        source.letters(),
    ):
        log = listed_log(runner, [plain_path(path) for path in sources], source)
        for number, version in enumerate(versions):
            out = os.path.join(folder, str(number))
            os.mkdir(out)
            deployment = Deployment(version.program, version.background)
            treatment = Treatment(False, not source.fails)
            report = runner.run(Request(deployment, log, treatment=treatment), out, lambda *_: None)
            graphs = report.graphs
            outputs.append([os.path.join(out, file) for file in report.files])
        found = compared_batches(versions, outputs, source.options.unit)
    found.graphs = graphs
    return found
