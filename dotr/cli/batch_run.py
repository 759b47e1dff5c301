"""A run of `dotr batch`: a historical log, on Spark or in local processes.

Place:   called by batch.py; reads program and background, chooses the engine, owns the folder of the output.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from time import monotonic
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from dotr import __version__
from dotr.batch.choices import LOG_FORMATS, TYPED
from dotr.batch.log import LogListing, is_remote, open_log, plain_path
from dotr.batch.runs import Folder, OutputFolder, Report, Request, Runner, run_file, warnings
from dotr.batch.spark.session import SparkOptions as Session
from dotr.batch.work import Treatment
from dotr.cli import options, show
from dotr.cli.options import OutputOptions, RuleOptions, SourceOptions, SparkOptions
from dotr.cli.process import without_logging
from dotr.cli.show import Progress, funnel_lines, print_funnels, summary_line, time_as_json
from dotr.core.funnel import matches_lost
from dotr.detect.digest import rule_digests
from dotr.detect.partitioning import By, describe
from dotr.errors import DataError, Diagnostic, UsageError
from dotr.events import Clock
from dotr.io.errors import ErrorPolicy
from dotr.io.events import EVENT_FORMATS, refused
from dotr.io.reader import FileReader
from dotr.io.rules_and_background import RuleTexts
from dotr.io.time_survey import columns_missing
from dotr.io.typed_events import columns_of, refuse_alike
from dotr.program import Program
from dotr.survey.queries import FIRST_GRAPHS, Sample
from dotr.survey.report import why_silent


class Wanted(Struct, frozen=True):
    """What is asked for: rules, logs, and the output with its format. `slice_`: in µs, None: chosen;
    `until`: as it was given.
    """

    path: str
    places: Sequence[str]
    out: str
    engine: str
    format_: str
    by: By
    slice_: int | None
    until: str | None


def detect(
    wanted: Wanted, spark: SparkOptions, rules: RuleOptions, source: SourceOptions, output: OutputOptions
) -> None:
    """Detect, write the folder and report. Raises DotrError."""
    places, out = [plain_path(place) for place in wanted.places], plain_path(wanted.out)
    path, format_, engine = wanted.path, wanted.format_, wanted.engine
    _refuse_at(out, format_)
    texts = RuleTexts()
    program = rules.load(path, texts)
    documents = rules.documents(program)
    program = rules.wanted(program)
    if output.states == "-":
        raise click.BadParameter("a folder is written there, and `-` is standard output")
    given_states = None if output.states is None else plain_path(output.states.rstrip("/"))
    outputs = [out, *([given_states] if given_states is not None else [])]
    options.outputs_apart(_here(outputs), [source.on_error], _here([*texts.read_files, *documents, *places]))
    show.say_all(program.warnings)
    triples = source.background(program, documents)
    deployment = rules.deployment(program, triples, everything=output.states is not None)
    plan = deployment.partitioning(wanted.by)
    session = spark.session()
    if engine == "auto":
        engine, why = options.chosen_engine(session, [*places, out])
        if not output.quiet:
            show.note(f"engine {engine}: {why}")
    with closing(_runner(engine, session, [*places, out])) as runner:
        folder = _folder(runner, out, format_, output.overwrite)
        enriched = None if given_states is None else _states_folder(given_states, output.overwrite)
        with source.letters(output.overwrite) as dead:
            log = listed_log(runner, places, source)
            if not output.quiet:
                for line in (*describe(program, plan), *_read_whole(log)):
                    show.note(line)
            show.say_all(warnings(program, plan))
            if source.options.mappings:
                show.say_all(columns_missing(_here(places), source.options))
            if format_ == TYPED:
                refuse_alike(columns_of(program, log.clock or Clock()))
            treatment = Treatment(rules.verify, not source.fails)
            end = options.until_of(wanted.until, source.options.unit, log.clock)
            request = Request(
                deployment, log, wanted.by, wanted.slice_, format_, treatment, source.max_jump, until=end
            )
            report = _run(request, runner, folder, enriched, output, os.path.basename(path))
            show.say_all(report.findings)
            for letter in report.letters:
                dead.keep(lambda letter=letter: letter)  # type: ignore[misc]  # mypy does not infer defaults


def _refuse_at(out: str, format_: str) -> None:
    """Raise UsageError D4151 for a format that Spark does not write, where only Spark can reach the output,
    and D2413 where Jelly is not installed: before anything is read.
    """
    if is_remote(out) and (format_ == TYPED or not EVENT_FORMATS[format_].remote):
        can = [name for name in LOG_FORMATS if EVENT_FORMATS[name].remote]
        raise refused(f"{format_.capitalize()} at a URI", can, "dotr batch")
    if format_ != TYPED:
        EVENT_FORMATS[format_].require()


def _here(places: Sequence[str]) -> list[str]:
    """Those of this machine."""
    return [place for place in places if not is_remote(place)]


def _runner(engine: str, spark: Session, places: Sequence[str]) -> Runner:
    if engine == "local":
        options.refuse_without_spark(spark)
        for place in filter(is_remote, places):
            raise UsageError.of(
                "D4127",
                f"`{place}` is not on this machine",
                hint="only --engine spark can read it; copy it here, or leave --engine local out",
            )
        from dotr.batch.local import LocalRunner  # noqa: PLC0415  # start-up: Arrow takes a third of a second

        return LocalRunner()
    from dotr.batch.spark.cluster import SparkRunner  # noqa: PLC0415  # start-up: Spark takes seconds

    return SparkRunner(spark)


def _folder(runner: Runner, out: str, format_: str, overwrite: bool) -> Folder:
    """The folder of the output, here or where only Spark can reach it."""
    if not is_remote(out):
        return OutputFolder(out, overwrite)
    from dotr.batch.spark.cluster import RemoteFolder, SparkRunner  # noqa: PLC0415  # start-up

    assert isinstance(runner, SparkRunner)
    return RemoteFolder(runner.session(), out, format_, overwrite)


def _states_folder(path: str, overwrite: bool) -> OutputFolder:
    """The folder of --emit-state. Raises UsageError D4127 where tasks cannot write it themselves."""
    if is_remote(path):
        hint = "write to a folder of this machine, or one that all workers share"
        raise UsageError.of("D4127", f"`{path}` is not on this machine", hint=hint)
    return OutputFolder(path, overwrite)


def listed_log(runner: Runner, places: Sequence[str], source: SourceOptions) -> LogListing:
    """The log, of which some may be here and some where only Spark can reach it."""
    log = open_log([place for place in places if not is_remote(place)], source.options, source.fails)
    remote = [place for place in places if is_remote(place)]
    if not remote:
        return log
    from dotr.batch.spark.cluster import SparkRunner  # noqa: PLC0415  # start-up
    from dotr.batch.spark.read import open_remote  # noqa: PLC0415  # start-up

    assert isinstance(runner, SparkRunner)
    return open_remote(runner.session(), remote, log)


def _read_whole(log: LogListing) -> Iterator[str]:
    """A line a reason why large files are read by one task each."""
    by_reason: dict[str, list[str]] = {}
    for file, why in log.whole:
        by_reason.setdefault(why, []).append(file)
    for why, files in by_reason.items():
        more = f" and {len(files) - 1:,} more are" if len(files) > 1 else " is"
        yield f"`{files[0]}`{more} read by one task{' each' if len(files) > 1 else ''}: {why}"


def _run(
    request: Request,
    runner: Runner,
    folder: Folder,
    states: OutputFolder | None,
    output: OutputOptions,
    title: str,
) -> Report:
    """Run, then give the outputs their names; a run that fails or is stopped leaves nothing. `title`: of the
    table of rules.
    """
    begun, start = datetime.now(UTC), monotonic()
    progress = Progress(not output.quiet and sys.stderr.isatty())
    part = folder.open()
    if states is not None:
        request = replace(request, states=states.open())
    try:
        with without_logging():
            report = runner.run(request, part, progress.stage)
        extra = {**_versions(), **_about(request, runner, begun, monotonic() - start)}
        summary = run_file(request, report, extra)
        if states is not None:
            states.finish(report.states, summary)
        folder.finish(report.files, summary)
    except BaseException:
        progress.clear()
        folder.abandon()
        if states is not None:
            states.abandon()
        raise
    progress.clear()
    if output.summary_ == "json":
        show.json_line(_summary_as_json(request, report, monotonic() - start))
    elif not output.quiet:
        _report_funnels(request, report, title, output.verbose)
        show.note(_summary(request.program, report, monotonic() - start))
    return report


def _report_funnels(request: Request, report: Report, title: str, every: bool) -> None:
    """How far rules without an event came; `every`: all rules."""
    program = request.program
    why: list[Diagnostic] = []
    if not all(report.events.get(rule.name) for rule in program.rules if not rule.private):
        why = why_silent(request.deployment, report.events, _first_graphs(request.log))
        show.say_all(why)
    if report.graphs:
        found, facts = report.funnel(program), report.facts(program)
        lines = funnel_lines(program, report.events, found, facts, why, every=every, width=show.width())
        print_funnels(title, lines, report, request.log.clock)


def _first_graphs(log: LogListing) -> Sample:
    """The first graphs of a log, file by file, by time; none of files that are not of this machine."""
    sample = Sample(log.clock or Clock(), FIRST_GRAPHS)
    for file in dict.fromkeys(piece.file for split in log.splits for piece in split.pieces):
        if is_remote(file):
            continue
        with suppress(DataError):  # what is wrong with it the run has reported
            extractor, policy = log.options.extractor(), ErrorPolicy(fail=False)
            for graph in FileReader(file, log.options, extractor, policy).graphs():
                sample.add(graph.time, graph.triples)
                if sample.full:
                    break
        if sample.full:
            break
    sample.graphs.sort(key=lambda graph: graph[0])
    return sample


def _summary_as_json(request: Request, report: Report, seconds: float) -> str:
    program, clock = request.program, request.log.clock
    content = {
        "graphs": report.graphs,
        "instants": report.instants,
        "first": time_as_json(report.first, clock),
        "last": time_as_json(report.last, clock),
        "refused": len(report.letters),
        "dropped": report.dropped,
        "not_held": report.not_held,
        **show.effects_as_json(report.not_stated, report.ineffective),
        "times": dict(sorted(report.time_sources.items())),
        **show.beside_as_json(report.beside),
        "queries": report.facts(program),
        "seconds": round(seconds, 3),
    }
    return summary_line(content, program, report.events, report.funnel(program))


def _versions() -> Mapping[str, Any]:
    """A library that is not installed, or says no version, has null."""
    found: dict[str, str | None] = {"python": platform.python_version(), "dotr": __version__}
    for name in ("pyspark", "pyarrow", "pyoxigraph"):
        found[name] = None
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return {"versions": found}


def _about(request: Request, runner: Runner, begun: datetime, seconds: float) -> Mapping[str, Any]:
    digests = zip(request.program.rules, rule_digests(request.program), strict=True)
    return {
        "engine": runner.name,
        "begun": begun.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "elapsed": round(seconds, 3),
        "cores": os.cpu_count(),
        "rules": {rule.name: digest for rule, digest in digests},
        "by": request.by.value,
        "format": request.format_,
    }


def _summary(program: Program, report: Report, seconds: float) -> str:
    found = show.came(report.graphs, report.instants, report.events)
    found += show.beside(report.beside, report.changed, times=sorted(report.time_sources))
    found += show.losses(
        refused=len(report.letters),
        not_held=report.not_held,
        not_stated=report.not_stated,
        ineffective=report.ineffective,
        too_much=report.left_out,
        dropped=report.dropped,
        lost=matches_lost(report.funnel(program)),
    )
    rate = report.graphs / max(seconds, 1e-6)
    return "; ".join([*found, f"{seconds:.1f} s, {rate:,.0f} graphs/s"])
