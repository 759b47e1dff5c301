"""`dotr convert`, `dotr map` and `dotr times`: sources in another format, as rows of tables, and as times.

Place:   reads as every verb reads and runs no rules; `convert` writes one file through io/conversion.py, an
         archive in parts through io/decode/parquet.py; mappings are proposed by io/tables/; when things
         happened is what io/time_survey.py finds.
Method:  the parts of an archive are stretches of time of bounded size, which is what tasks read in parallel.
Why not: folders named by date, which Spark would take for a column: days differ in size, and every row group
         knows the times in it anyway.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import PurePath
from typing import Any

import click
from msgspec.structs import replace

from dotr import __version__
from dotr.cli import options, show
from dotr.cli.options import SourceOptions, file_name, outputs_apart, size, zone
from dotr.cli.show import Progress, counted, time_as_json
from dotr.errors import UsageError
from dotr.events import Clock, GraphOrMessage, Message, all_triples
from dotr.io.conversion import TARGETS, Conversion, numbered, numbered_part
from dotr.io.decode.documents import MAX_DOCUMENT, decode, read_bytes
from dotr.io.errors import ErrorPolicy
from dotr.io.events import TermFormatter, turtle
from dotr.io.graphs import ReadSoFar, mapping_for
from dotr.io.outputs import FileOutput, StreamOutput, open_output, unwritable
from dotr.io.reader import FileReader
from dotr.io.sources import Sources, TimedGraph, resolve
from dotr.io.tables.mapping import FORMATS, parse_mapping
from dotr.io.tables.proposal import SAMPLE, propose, sample
from dotr.io.time import UNITS
from dotr.io.time_reading import changes, described
from dotr.io.time_survey import Disorder, LikelyTime, TimeSurvey, survey_times
from dotr.program.names import duration_text

ABOUT = "_dotr_archive.json"
"""Stands in every finished folder."""


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=file_name,
    metavar="PATH",
    required=True,
    help=f"What to write: a file {' '.join(TARGETS)} (text also .gz), a folder of Parquet files, or `-`,"
    " standard output, as .jsonl.",
)
@click.option("--overwrite", is_flag=True, help="Replace what exists.")
@click.option(
    "--consolidate",
    is_flag=True,
    help="SOURCEs are JSON lines of a run with --corrections: write the events that remain, in order.",
)
@options.quiet
@options.source()
def command(
    sources: tuple[str, ...],
    output: str,
    overwrite: bool,
    consolidate: bool,
    quiet: bool,
    source: SourceOptions,
) -> None:
    """Write the graphs of SOURCEs, in time order, to a file (its name determines the format) or a folder.

    Parquet is the archive: columns time (with its kind and unit) and graph (N-Triples), and, if messages have
    such parts, insert and delete. A name without an ending, or with a slash at its end, is a folder of
    Parquet files that many tasks read together: the best form of a large log for dotr batch. A .ttl becomes
    an RDF Message Log; `-` is standard output, as JSON lines. Every output can be read as a source again.
    """
    if ":/" in output:  # a URI; the module needs pyarrow, which a lean installation has not
        from dotr.batch.log import is_remote, plain_path  # noqa: PLC0415  # see above

        output = plain_path(output)
        remote = is_remote(output)
    else:
        remote = False
    if remote:
        raise UsageError.of(
            "D4127", f"`{output}` is not on this machine", hint="write it here, then copy it there"
        )
    outputs_apart([output], [source.on_error], sources)
    if consolidate:
        _consolidate(sources, output, overwrite, quiet)
        return
    progress = Progress(not quiet and sys.stderr.isatty())
    with source.letters(overwrite) as dead:
        reader = Sources(sources, source.options, dead.refusals())
        try:
            if output == "-":
                count, what = _to_stdout(reader), "standard output"
            elif output.endswith("/") or not PurePath(output).suffix:
                count, what = _to_folder(reader, output, overwrite, progress)
            else:
                count, what = _to_file(reader, output, overwrite, progress), output
        finally:
            progress.clear()
    show.say_all(list(reader.extractor.columns_missing.values()))
    if not quiet:
        parts = [f"{show.counted(count, 'graph')} to {what}"]
        parts += show.beside(reader.extractor.beside, reader.extractor.first, reader.extractor.time_sources)
        parts += show.losses(refused=reader.refusals.count)
        show.note("; ".join(parts) + f"; {progress.seconds:.1f} s")


def _consolidate(sources: tuple[str, ...], output: str, overwrite: bool, quiet: bool) -> None:
    """Write the events that remain of a log of changes."""
    from dotr.io.changes import consolidated  # noqa: PLC0415  # start-up: few logs are of changes

    if output != "-" and not output.endswith(".jsonl"):
        raise UsageError.of(
            "D4151", "--consolidate writes JSON lines", hint="give the file a name that ends in .jsonl, or -"
        )
    lines = [
        (f"{path}:{number}", line)
        for path in sources
        for number, line in enumerate(decode(read_bytes(path), path).split("\n"), 1)
    ]
    found = consolidated(lines)
    out = open_output(output, overwrite)
    try:
        out.write("".join([f"{line}\n" for line in found]))
    except BaseException:
        out.abandon()
        raise
    out.finish()
    if not quiet:
        show.note(f"{counted(len(found), 'event')} to {'standard output' if output == '-' else output}")


def _to_file(reader: Sources, output: str, overwrite: bool, progress: Progress) -> int:
    """Returns the number of graphs; a conversion that fails leaves nothing."""
    out = FileOutput(output, overwrite)
    try:
        conversion = Conversion(output, str(out.part), out)
        behind = _behind(reader, progress)
        for graph in reader:
            clock = reader.clock
            assert clock is not None
            try:
                conversion.add(graph.time, graph.triples, clock)
            except OSError as error:
                raise unwritable(output, error) from None
            _report(progress, conversion.count, clock.text(graph.time), behind, graph)
        try:
            conversion.close()
        except OSError as error:
            raise unwritable(output, error) from None
        out.finish()
    except BaseException:
        out.discard()
        raise
    return conversion.count


def _to_stdout(reader: Sources) -> int:
    """As `_to_file`, as JSON lines."""
    out = StreamOutput(sys.stdout.buffer)
    conversion = Conversion("stdout.jsonl", "", out)
    for graph in reader:
        assert reader.clock is not None
        conversion.add(graph.time, graph.triples, reader.clock)
    conversion.close()
    out.finish()
    return conversion.count


def _behind(reader: Sources, progress: Progress) -> ReadSoFar | None:
    return ReadSoFar(resolve(reader.paths, reader.options.mappings)) if progress.shown else None


def _report(progress: Progress, count: int, time: str, behind: ReadSoFar | None, graph: TimedGraph) -> None:
    if behind is not None:
        behind.passed(graph)
        progress.update(count, -1, time, behind.done, behind.total)


def _to_folder(reader: Sources, output: str, overwrite: bool, progress: Progress) -> tuple[int, str]:
    """As `_to_file`, and what it made."""
    from dotr.batch.runs import OutputFolder  # noqa: PLC0415  # start-up
    from dotr.io.decode.parquet import ArchiveParts  # noqa: PLC0415  # start-up: Arrow takes a third of a second

    out = OutputFolder(output, overwrite, ABOUT, "dotr convert")
    folder = out.open()
    count = 0
    try:
        archive: ArchiveParts | None = None
        behind = _behind(reader, progress)
        for count, graph in enumerate(reader, 1):
            clock = reader.clock
            assert clock is not None
            archive = archive or ArchiveParts(folder, clock)
            try:
                archive.add(graph.time, numbered_part(graph.triples))
            except OSError as error:
                raise unwritable(output, error) from None
            _report(progress, count, clock.text(graph.time), behind, graph)
        archive = archive or ArchiveParts(folder, Clock())
        try:
            archive.close()
        except OSError as error:
            raise unwritable(output, error) from None
        about = {"dotr": __version__, "graphs": count, "files": len(archive.files)}
        out.finish(archive.files, json.dumps(about, indent=2) + "\n")
    except BaseException:
        out.abandon()
        raise
    return count, f"{show.counted(len(archive.files), 'file')} in {output}"


_PREFIX = re.compile(r"^\s*@?prefix\s+([\w.-]*):\s*<([^<>\s]*)>", re.IGNORECASE | re.MULTILINE)


@click.group()
def mappings() -> None:
    """Mappings make graphs of the rows of tables: CSV, TSV, JSON and JSON lines, Parquet, Arrow.

    `new` proposes one for a table, `check` shows what one makes of it; `--map FILE` of run, feed, batch and
    convert reads tables through it. See dotr help data.
    """


@mappings.command("new", short_help="Propose a mapping for a table.")
@click.argument("table", metavar="TABLE")
@click.option(
    "--time-zone", "zone_", type=zone, metavar="ZONE", default="", help="The zone of its local times."
)
def new(table: str, zone_: str) -> None:
    """Print a mapping for TABLE, from a sample of its rows. Read it before you use it."""
    found = sample(table, SAMPLE)
    click.echo(propose(found.columns, found.rows, found.settings, zone_, found.arrays, found.way), nl=False)


@mappings.command("check", short_help="Show what a mapping makes of the first rows of a table.")
@click.argument("mapping", metavar="MAPPING")
@click.argument("table", metavar="TABLE")
@options.source_value
@click.option("--rows", type=click.IntRange(0), default=3, help="Number of rows to show (default: 3).")
@click.option(
    "--of", "most", type=click.IntRange(1), default=10_000, help="Number of rows to read (default: 10000)."
)
@click.option(
    "--time-zone", "zone", type=zone, metavar="ZONE", default="", help="The zone of dateTimes without one."
)
@click.option("--time-unit", type=click.Choice(list(UNITS)), default="s", help="What integer times count.")
@click.option(
    "--max-document",
    type=size,
    metavar="SIZE",
    default=MAX_DOCUMENT,
    help="Largest document that is read whole or decompressed, as in dotr run.",
)
@options.reading
def check_mapping(mapping: str, table: str, rows: int, most: int, source: SourceOptions) -> int:
    """Show the first rows of TABLE as graphs, and count what is refused.

    The exit code is 3 when a row is refused, and 1 when there is no row.
    """
    text = decode(read_bytes(mapping), mapping)
    parsed = parse_mapping(text, mapping)
    if mapping_for(table, [parsed]) is None:
        listed = ", ".join(parsed.files) or f"tables: {', '.join(FORMATS)}"
        hint = "its line `# files:` or `# format:` says what it is for"
        raise UsageError.of("D4152", f"`{mapping}` is not for `{table}`", label=listed, hint=hint)
    read = replace(source.options, mappings=(parsed,))
    extractor = read.extractor()
    notation = TermFormatter(dict(_PREFIX.findall(text)))
    refused: Counter[str] = Counter()
    graphs = triples = 0
    items = FileReader(table, read, extractor, ErrorPolicy(fail=False)).items()
    for item in items:
        if isinstance(item, TimedGraph):
            graphs += 1
            triples += len(all_triples(item.triples))
            if graphs <= rows:
                assert extractor.clock is not None
                click.echo("\n".join(shown(item, extractor.clock, notation)))
        elif item.error is not None:
            code = item.error.diagnostics[0].code
            refused[code] += 1
            if refused[code] <= 3:
                show.errors(item.error)
        if graphs + refused.total() >= most:
            break
    if isinstance(items, Generator):
        items.close()  # of what was read, too, columns are missing
    show.say_all(list(extractor.columns_missing.values()))
    counts = "".join(f", {count:,} refused for {code}" for code, count in sorted(refused.items()))
    show.note(f"{show.counted(graphs, 'row')} as graphs of {show.counted(triples, 'triple')}{counts}")
    return 3 if refused else 0 if graphs else 1


def shown(graph: TimedGraph, clock: Clock, notation: TermFormatter) -> Iterator[str]:
    """A graph as Turtle below a comment that says where it comes from and when it holds."""
    yield f"# {graph.place} @ {clock.text(graph.time)}"
    for name, part in _parts(graph.triples):
        if name:
            yield f"# {name}"
        yield (
            turtle(tuple(numbered(part)), notation).replace("; ", ";\n    ").replace(". _:", ".\n_:").rstrip()
            + " ."
        )
    yield ""


def _parts(part: GraphOrMessage) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    if not isinstance(part, Message):
        yield "", part
        return
    yield from ((name, triples) for name, triples in part._asdict().items() if triples is not None)


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@options.report
@options.source()
def times(sources: tuple[str, ...], format_: str, source: SourceOptions) -> int:
    """Show the times of SOURCEs, where they were found, and what is out of order.

    For documents without a time it lists the values that could be one. Exit code 1 when a document is
    refused.
    """
    survey = survey_times(resolve(sources, source.options.mappings), source.options)
    if format_ == "json":
        click.echo(json.dumps(as_json(survey), ensure_ascii=False))
    else:
        click.echo("\n".join(as_text(survey)))
    return 1 if survey.refused else 0


def as_json(survey: TimeSurvey) -> dict[str, Any]:
    """The survey as a value. Durations are in microseconds, times in the data's form."""
    refused = [
        {"code": code, "documents": count, "first": str(survey.first_errors[code])}
        for code, count in sorted(survey.refused.items())
    ]
    likely = [
        {
            "property": one.name,
            "kind": one.kind,
            "unit": one.unit or None,
            "values": one.values,
            "examples": list(one.examples),
            "reads": one.reads or None,
            "classes": list(one.classes),
        }
        for one in survey.likely
    ]
    head: dict[str, Any] = {
        "files": survey.files,
        "graphs": survey.graphs,
        "found": dict(survey.time_sources),
    }
    head["changed"] = changes(survey.beside)
    clock = survey.clock
    if survey.graphs and clock is not None:
        first, last = survey.range()
        distinct, most = survey.instants()
        time = partial(time_as_json, clock=clock)
        median, gaps = survey.steps()
        within, across = survey.within(), survey.across()
        head |= {
            "kind": "integer" if clock.integer else "dateTime",
            "first": time(first),
            "last": time(last),
            "instants": distinct,
            "most_at_once": most,
            "median_step": median,
            "gaps": [
                {"length": gap.length, "after": time(gap.after), "until": time(gap.until)} for gap in gaps
            ],
            "order": {"within_files": _order(within), "across_files": _order(across)},
            "lateness": within.most,
        }
    return head | {"refused": refused, "likely": likely}


def _order(disorder: Disorder) -> dict[str, int]:
    return {"out_of_order": disorder.graphs, "most": disorder.most, "ninety_nine_percent": disorder.usual}


def as_text(survey: TimeSurvey) -> Iterator[str]:
    """The survey as lines."""
    yield f"{counted(survey.graphs, 'graph')} in {counted(survey.files, 'file')}"
    clock = survey.clock
    if survey.graphs and clock is not None:
        yield from _times(survey, clock)
    for code, count in sorted(survey.refused.items()):
        first = survey.first_errors[code].diagnostics[0]
        yield f"refused    {counted(count, 'document')} for {code}: {first.message} ({first.place})"
        if first.hint:
            yield f"           {first.hint}"
    for one in survey.likely:
        yield from _likely(one)


def _times(survey: TimeSurvey, clock: Clock) -> Iterator[str]:
    first, last = survey.range()
    distinct, most = survey.instants()
    median, gaps = survey.steps()
    yield "found in   " + ", ".join(
        f"{time_source} ({count:,})" for time_source, count in survey.time_sources.items()
    )
    for changed in described(survey.beside, survey.first):
        yield f"changed    {changed}"
    yield f"range      {clock.text(first)} to {clock.text(last)} ({duration_text(last - first)})"
    shared = f", up to {most:,} graphs at one" if most > 1 else ""
    yield f"instants   {distinct:,} different{shared}"
    if distinct > 1:
        yield f"step       {duration_text(median)} (median)"
    for gap in gaps:
        yield f"gap        {duration_text(gap.length)} after {clock.text(gap.after)}"
    within, across = survey.within(), survey.across()
    yield f"order      {_ordered(within, survey.graphs)}"
    if survey.files > 1:
        yield f"files      {_ordered(across, survey.graphs)} when read in the order of their names"
    if within.graphs:
        hint = f"--lateness {_argument(within.most)}"
        if within.usual < within.most // 2:
            hint += f" (or {_argument(within.usual)}, and 1 graph in 100 is late)"
        yield f"suggested  {hint}"


def _ordered(disorder: Disorder, graphs: int) -> str:
    if not disorder.graphs:
        return "in order"
    share = f"{disorder.graphs / graphs:.1%}" if disorder.graphs * 1000 >= graphs else "fewer than 0.1%"
    return f"{disorder.graphs:,} ({share}) out of order, by up to {duration_text(disorder.most)}"


def _argument(micros: int) -> str:
    return duration_text(micros).replace(" ", "")


def _likely(one: LikelyTime) -> Iterator[str]:
    examples = ", ".join(f"`{example}`" for example in one.examples)
    yield f"could be   {one.name}: {examples}"
    if one.kind == "epoch" and one.unit == "ns":
        yield f"           in ns that is {one.reads}: a mapping reads it by epoch(ns)"
    elif one.kind == "epoch":
        yield f"           in {one.unit} that is {one.reads}: --time-path {one.name} --time-unit {one.unit}"
    elif one.kind == "local":
        yield f"           without a zone: --time-path {one.name} --time-zone Europe/Berlin, if it is that"
    elif one.kind == "day":
        day, zone = one.examples[0][:10], one.examples[0][10:] or "Z"
        yield "           a day, not an instant: choose one and write it as an xsd:dateTime: its beginning"
        yield f"           {day}T00:00:00{zone}, its end {day}T24:00:00{zone}, or when the graph was known"
    else:
        yield f"           --time-path {one.name}"
