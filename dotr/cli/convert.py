"""`dotr convert SOURCE… -o PATH`: streams from one format to another, Parquet among them.

Place:   reads as every verb reads, in time order; writes through connectors/converting.py.
"""

from __future__ import annotations

import sys

import click

from dotr.cli import render
from dotr.cli.options import reading, source_options
from dotr.cli.run import Letters
from dotr.connectors.converting import TARGETS, Conversion
from dotr.connectors.outputs import FileOutput
from dotr.connectors.sources import Sources


@click.command(short_help="Convert streams between formats.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    required=True,
    help=f"What to write: {' '.join(TARGETS)} (text also .gz).",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
@click.option("-q", "--quiet", is_flag=True, help="No progress line, no summary.")
@source_options
def command(
    sources: tuple[str, ...],
    output: str,
    overwrite: bool,
    quiet: bool,
    base: str,
    time_path: str | None,
    time_unit: str,
    max_document: int,
    on_error: str,
) -> None:
    """Write the graphs of SOURCEs, in time order, to one file; its name says the format.

    Parquet is the archive: columns time (with its kind and unit) and graph (N-Triples). A .ttl becomes an RDF
    Message Log. Whatever is written is a source again.
    """
    options = reading(base, time_path, time_unit, max_document)
    progress = render.Progress(not quiet and sys.stderr.isatty())
    with Letters(on_error, overwrite) as dead:
        reader = Sources(sources, options, dead.refusals())
        out = FileOutput(output, overwrite)
        try:
            conversion = Conversion(output, str(out.part), out)
            for graph in reader:
                clock = reader.clock
                assert clock is not None
                conversion.add(graph.time, graph.triples, clock)
                progress.update(conversion.count, 0, clock.text(graph.time))
            conversion.close()
            out.finish()
        except BaseException:
            out.discard()
            raise
        finally:
            progress.clear()
    if not quiet:
        parts = [f"{render.counted(conversion.count, 'graph')} to {output}"]
        if reader.ladder.rungs:
            parts.append("time from " + ", ".join(reader.ladder.rungs))
        if reader.refusals.count:
            parts.append(f"{render.counted(reader.refusals.count, 'document')} refused")
        render.note("; ".join(parts) + f"; {progress.seconds:.1f} s")
