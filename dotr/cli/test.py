"""`dotr test FILE…`: tests of rules, with what they cover; and `dotr compare OLD NEW LOG…`: what two versions
of rules, or several values of a parameter, find in one log.

Place:   over dotr/testing. Dots and the summary go to standard error, failures and coverage to standard
         output. Exit code 1 of `compare` when two versions differ, as diff has it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import click

from dotr.cli import options, show
from dotr.cli.options import OutputOptions, SourceOptions, SparkOptions, file_name
from dotr.core.deployment import Deployment
from dotr.errors import DataError, DotrError, UsageError
from dotr.events import Clock
from dotr.io.outputs import open_output
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import Sources, resolve
from dotr.io.time import UNITS
from dotr.io.yaml_nodes import Scalar
from dotr.lang import load_program
from dotr.service.comparison import Comparing, Difference, RunComparison, Version
from dotr.source import Source, Span
from dotr.testing.cases import Bench, CaseOutcome, recorded
from dotr.testing.compare import (
    as_json,
    compared_batches,
    html,
    reasons,
    text,
)
from dotr.testing.coverage_page import coverage_page
from dotr.testing.reports import SuiteReport, coverage_text, failure_text, junit, run_suite
from dotr.testing.suite import Suite, read_suite

ENDINGS = (".test.yaml", ".test.yml")
_PAUSE = 0.5
Stamp: TypeAlias = tuple[int, int] | None
"""(when a file was last written, in nanoseconds; its size); None: it is not there."""


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1)
@click.option("--coverage", is_flag=True, help="List the parts of rules that no test made true, or false.")
@click.option(
    "--coverage-html",
    "page",
    type=file_name,
    metavar="FILE",
    help="Write the rules as a page that marks what no test made true, or false.",
)
@click.option("--junit", "junit_", type=file_name, metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--overwrite", is_flag=True, help="Replace the files that exist.")
@click.option("--watch", is_flag=True, help="Run again whenever a file changes, until Ctrl-C.")
@click.option(
    "--record",
    type=file_name,
    multiple=True,
    metavar="SOURCE",
    help="Print a test file that expects what the RULES given as FILE find in SOURCE now.",
)
@click.option(
    "--map", "mapping", type=file_name, metavar="FILE", help="With --record of tables: their mapping."
)
@click.option(
    "--time-unit",
    type=click.Choice(list(UNITS)),
    default="s",
    help="With --record: what integer times count.",
)
@options.functions
def command(
    files: tuple[str, ...],
    coverage: bool,
    page: str | None,
    junit_: str | None,
    overwrite: bool,
    watch: bool,
    record: tuple[str, ...],
    mapping: str | None,
    time_unit: str,
) -> int:
    """Run the tests of *.test.yaml files (in a folder: all below it); the exit code is 1 when one fails.

    A failure is explained: why an event happened that should not have, or why an expected one did not.
    """
    if not files:
        raise click.UsageError("name one or more test files, or a folder of them")
    if mapping is not None and not record:
        raise click.UsageError("--map is for --record; in a test file write `{ from: TABLE, map: FILE }`")
    if record:
        sys.stdout.write(_recorded(files, record, mapping, time_unit))
        return 0
    written = [path for path in (junit_, page) if path is not None]
    if len(set(written)) < len(written):
        raise click.UsageError("--junit and --coverage-html name one file")
    for path in written:
        if not overwrite and os.path.exists(path):
            open_output(path, overwrite=False)  # refuses it, before anything runs
    seen: list[str] = []
    while True:
        begun, before = time.time_ns(), {path: _stamp(path) for path in seen}
        seen = []
        reports, refused = _run(files, coverage, seen)
        if junit_ is not None:
            _write(junit_, junit(reports, refused))
        if page is not None:
            _write(page, coverage_page(reports))
        if not watch:
            if refused:
                raise _all_refused(refused)
            return 1 if any(report.failed for report in reports) else 0
        for error in refused.values():
            show.errors(error)  # in the middle of an edit
        show.note("waiting for a change; Ctrl-C ends")
        await_change(seen, before, begun)


def _write(path: str, content: str) -> None:
    out = open_output(path, overwrite=True)
    out.write(content)
    out.finish()


def _all_refused(refused: Mapping[str, DotrError]) -> DotrError:
    """What is wrong with test files that could not run, as one error; of several kinds, the first one's."""
    errors = list(refused.values())
    return type(errors[0])([one for error in errors for one in error.diagnostics])


def _recorded(rules: Sequence[str], sources: Sequence[str], mapping: str | None, unit: str) -> str:
    source = Source("<record>", "rules: …")
    span = Span(source, 0, 1)
    suite = Suite(source, tuple(Scalar(path, span) for path in rules), unit=UNITS[unit])
    return recorded(rules, sources, mapping, unit, suite, f"recorded from {', '.join(sources)}")


def _run(
    files: Sequence[str], coverage: bool, seen: list[str]
) -> tuple[list[SuiteReport], dict[str, DotrError]]:
    """All suites, and files that could not run by their path; every file that was read is added to `seen`."""
    reports: list[SuiteReport] = []
    refused: dict[str, DotrError] = {}
    for path in test_files(files):
        seen.append(path)
        try:
            bench = Bench(read_suite(Source(path, _text(path))))
            try:
                reports.append(run_suite(bench, _dot))
            finally:
                seen += bench.read_files
        except DotrError as error:
            refused[path] = error
            sys.stderr.write("E")
    sys.stderr.write("\n")
    for report in reports:
        for outcome in report.outcomes:
            if not outcome.passed:
                sys.stdout.write(show.visible(failure_text(report.bench, outcome)) + "\n\n")
    if coverage:
        for report in reports:
            sys.stdout.write(show.visible(coverage_text(report)) + "\n")
    tests, failed = sum(len(r.outcomes) for r in reports), sum(r.failed for r in reports)
    parts = [
        f"{show.counted(tests, 'test')}, {failed} failed"
        if failed
        else f"{show.counted(tests, 'test')} passed"
    ]
    if refused:
        parts.append(f"{show.counted(len(refused), 'file')} refused")
    if reports or len(refused) > 1:
        show.note("; ".join(parts))
    return reports, refused


def _dot(outcome: CaseOutcome) -> None:
    sys.stderr.write("." if outcome.passed else "E" if outcome.error is not None else "F")
    sys.stderr.flush()


def _text(path: str) -> str:
    try:
        return read_rules_text(path)
    except OSError as error:
        raise DataError.of(
            "D2003", f"cannot read `{path}`: {error.strerror}", place=path, hint="name a test file"
        ) from None


def test_files(paths: Iterable[str]) -> list[str]:
    """The test files that paths name, those below a folder in order of their names. Raises UsageError
    D4404.
    """
    found: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            found.append(path)
            continue
        below = sorted(str(file) for file in Path(path).rglob("*") if file.name.endswith(ENDINGS))
        if not below:
            raise UsageError.of(
                "D4404", f"there is no test file below `{path}`", hint="their names end in .test.yaml"
            )
        found += below
    return list(dict.fromkeys(found))


def await_change(files: Iterable[str], before: Mapping[str, Stamp], begun: int) -> None:
    """Return when one of the files has changed since the run that read them began. `before`: what files of
    the run before were like then; of others their time decides, in nanoseconds.
    """
    now = {path: _stamp(path) for path in sorted(set(files))}
    read = {path: before.get(path, stamp) for path, stamp in now.items()}
    if any(stamp and path not in before and stamp[0] > begun for path, stamp in now.items()):
        return
    while {path: _stamp(path) for path in read} == read:
        time.sleep(_PAUSE)


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


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
@options.functions
@options.source(late="drop")
def compare(
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
            found,
            found.differences[: min(explained, most)],
            sources,
            source.options,
            source.lateness,
            page=output.format_ == "html",
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
    return Version(name, program, background, resolve(program.background))


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
    from dotr.cli.batch_run import listed_log  # noqa: PLC0415  # start-up

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
