"""`dotr convert SOURCE… -o PATH`: streams from one format to another, Parquet among them.

Place:   reads as every verb reads, in time order; writes one file through io/conversion.py, an
         archive in parts through io/decode/parquet.py.
Method:  the parts of an archive are stretches of time of bounded size, which is what tasks read in parallel.
Why not: folders named by date, which Spark would take for a column: days differ in size, and every row group
         knows the times in it anyway.
"""

from __future__ import annotations

import json
import sys
from pathlib import PurePath

import click

from dotr import __version__
from dotr.batch.locations import is_remote, plain_path
from dotr.cli import options, show
from dotr.cli.options import SourceOptions, file_name, outputs_apart
from dotr.cli.show import Progress
from dotr.errors import UsageError
from dotr.events import Clock
from dotr.io.conversion import TARGETS, Conversion, numbered_part
from dotr.io.files.outputs import FileOutput, StreamOutput, unwritable
from dotr.io.files.read_so_far import ReadSoFar
from dotr.io.files.sources import Sources, TimedGraph, resolve

ABOUT = "_dotr_archive.json"
"""Stands in every finished folder."""


@click.command(short_help="Convert streams between formats.")
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
@options.quiet
@options.source()
def command(
    sources: tuple[str, ...], output: str, overwrite: bool, quiet: bool, source: SourceOptions
) -> None:
    """Write the graphs of SOURCEs, in time order, to a file (its name determines the format) or a folder.

    Parquet is the archive: columns time (with its kind and unit) and graph (N-Triples), and where messages
    have such parts insert and delete. A name without an ending, or with a slash at its end, is a folder of
    Parquet files that many tasks read together: the best form of a large log for dotr batch. A .ttl becomes
    an RDF Message Log; `-` is standard output, as JSON lines. Whatever is written is a source again.
    """
    output = plain_path(output)
    if is_remote(output):
        raise UsageError.of(
            "D4127", f"`{output}` is not on this machine", hint="write it here, then copy it there"
        )
    outputs_apart([output], [source.on_error], sources)
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
        if reader.extractor.rungs:
            parts.append("time from " + ", ".join(reader.extractor.rungs))
        parts += show.beside(reader.extractor.beside, reader.extractor.first)
        if reader.refusals.count:
            parts.append(f"{show.counted(reader.refusals.count, 'document')} refused")
        show.note("; ".join(parts) + f"; {progress.seconds:.1f} s")


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
    from dotr.batch.output_parts import OutputFolder  # noqa: PLC0415  # start-up
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
