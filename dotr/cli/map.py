"""`dotr map new TABLE` and `dotr map check MAPPING TABLE`: mappings proposed, and looked at.

Place:   reads a sample through io/tables/; runs no rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator

import click

from dotr.cli import options, show
from dotr.cli.options import size, zone
from dotr.core.parts import Part, all_triples
from dotr.errors import UsageError
from dotr.events import Clock, Message
from dotr.io.conversion import numbered
from dotr.io.decode.documents import MAX_DOCUMENT, decode, read_bytes
from dotr.io.error_policy import ErrorPolicy
from dotr.io.event_formats import turtle
from dotr.io.files.reader import FileReader
from dotr.io.graphs import SourceOptions, TimedGraph
from dotr.io.tables.mapping import FORMATS, parse_mapping
from dotr.io.tables.proposal import SAMPLE, propose
from dotr.io.tables.samples import sample
from dotr.io.term_formatting import TermFormatter
from dotr.io.time_reading import TimeReading
from dotr.io.timestamps import UNITS

_PREFIX = re.compile(r"^\s*@?prefix\s+([\w.-]*):\s*<([^<>\s]*)>", re.IGNORECASE | re.MULTILINE)


@click.group(short_help="Mappings: what makes graphs of the rows of a table.")
def command() -> None:
    """Mappings make graphs of the rows of tables: CSV, TSV, JSON and JSON lines, Parquet, Arrow.

    `new` proposes one for a table, `check` shows what one makes of it; `--map FILE` of run, feed, batch and
    convert reads tables through it. See dotr help data.
    """


@command.command("new", short_help="Propose a mapping for a table.")
@click.argument("table", metavar="TABLE")
@click.option(
    "--time-zone", "zone_", type=zone, metavar="ZONE", default="", help="The zone of its local times."
)
def new(table: str, zone_: str) -> None:
    """Print a mapping for TABLE, from a sample of its rows. Read it before you use it."""
    found = sample(table, SAMPLE)
    click.echo(propose(found.columns, found.rows, found.settings, zone_, found.arrays), nl=False)


@command.command("check", short_help="Show what a mapping makes of the first rows of a table.")
@click.argument("mapping", metavar="MAPPING")
@click.argument("table", metavar="TABLE")
@click.option("--rows", type=click.IntRange(0), default=3, help="Rows that are shown (default: 3).")
@click.option(
    "--of", "most", type=click.IntRange(1), default=10_000, help="Rows that are read (default: 10000)."
)
@click.option(
    "--time-zone", "zone_", type=zone, metavar="ZONE", default="", help="The zone of dateTimes without one."
)
@click.option("--time-unit", type=click.Choice(list(UNITS)), default="s", help="What integer times count.")
@click.option("--max-document", type=size, metavar="SIZE", default=MAX_DOCUMENT, help="As in dotr run.")
@options.reading
def check(
    mapping: str,
    table: str,
    rows: int,
    most: int,
    zone_: str,
    time_unit: str,
    max_document: int,
    reading: TimeReading,
) -> int:
    """Show the first rows of TABLE as graphs, and count what is refused.

    The exit code is 3 when a row is refused, and 1 when there is no row.
    """
    text = decode(read_bytes(mapping), mapping)
    parsed = parse_mapping(text, mapping)
    if not parsed.fits(table):
        listed = ", ".join(parsed.files) or f"tables: {', '.join(FORMATS)}"
        hint = "its line `# files:` or `# format:` says what it is for"
        raise UsageError.of("D4152", f"`{mapping}` is not for `{table}`", label=listed, hint=hint)
    read = SourceOptions(
        unit=UNITS[time_unit], zone=zone_, reading=reading, mappings=(parsed,), max_document=max_document
    )
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


def _parts(part: Part) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    if not isinstance(part, Message):
        yield "", part
        return
    yield from ((name, triples) for name, triples in part._asdict().items() if triples is not None)
