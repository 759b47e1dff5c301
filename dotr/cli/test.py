"""`dotr test FILE…`: tests of rules, with what they cover.

Place:   over dotr/testing. Dots and the summary go to standard error, failures and coverage to standard
         output.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import click

from dotr.cli import show
from dotr.cli.options import file_name
from dotr.errors import DataError, DotrError, UsageError
from dotr.io.outputs import open_output
from dotr.io.rules_and_background import read_rules_text
from dotr.io.time import UNITS
from dotr.io.yaml_nodes import Scalar
from dotr.source import Source, Span
from dotr.testing.cases import Bench, CaseOutcome, recorded
from dotr.testing.reports import SuiteReport, coverage_text, failure_text, junit, run_suite
from dotr.testing.suite import Suite, read_suite

ENDINGS = (".test.yaml", ".test.yml")
_PAUSE = 0.5
Stamp: TypeAlias = tuple[int, int] | None
"""(when a file was last written, in nanoseconds; its size); None: it is not there."""


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1)
@click.option("--coverage", is_flag=True, help="List the parts of rules that no test made true, or false.")
@click.option("--junit", "junit_", type=file_name, metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--overwrite", is_flag=True, help="Replace the --junit FILE if it exists.")
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
@click.option("--time-unit", type=click.Choice(list(UNITS)), default="s", help="With --record.")
def command(
    files: tuple[str, ...],
    coverage: bool,
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
    if junit_ is not None and not overwrite and os.path.exists(junit_):
        open_output(junit_, overwrite=False)  # refuses it, before anything runs
    seen: list[str] = []
    while True:
        begun, before = time.time_ns(), {path: _stamp(path) for path in seen}
        seen = []
        reports, refused = _run(files, coverage, seen)
        if junit_ is not None:
            out = open_output(junit_, overwrite=True)
            out.write(junit(reports, refused))
            out.finish()
        if not watch:
            if refused:
                raise _all_refused(refused)
            return 1 if any(report.failed for report in reports) else 0
        for error in refused.values():
            show.errors(error)  # in the middle of an edit
        show.note("waiting for a change; Ctrl-C ends")
        await_change(seen, before, begun)


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
