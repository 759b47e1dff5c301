"""Options that several verbs share, and the values they parse to.

Place:   decorators for `run`, `feed`, `query`, `convert`; parsing errors are usage errors (exit code 2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from dotr.budget import BUDGET
from dotr.errors import UsageError
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE, decode, read_bytes
from dotr.io.decode.parse_choices import RDF12, ParseChoices
from dotr.io.files.sources import SourceOptions
from dotr.io.local_time import TimeError, zone_of
from dotr.io.output_formats import EVENT_FORMATS
from dotr.io.time_reading import AMBIGUOUS, FINER, INTERVAL, NONEXISTENT, TimeReading
from dotr.io.timestamps import UNITS
from dotr.ir import Program
from dotr.ir.private_rules import only
from dotr.lang.grammar.base import WELL_KNOWN, nearest
from dotr.regex import regex
from dotr.temporal.durations import duration

if TYPE_CHECKING:
    from dotr.io.tables.mapping import TableMapping

F = TypeVar("F", bound=Callable[..., Any])

_IRI = regex(r"[A-Za-z][A-Za-z0-9+.-]*:[^<>\"{}|^`\\\s]*")
_SIZE = regex(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def iri(value: str) -> str:
    """An absolute IRI, with or without brackets."""
    text = value.removeprefix("<").removesuffix(">")
    if not _IRI.fullmatch(text):
        raise click.BadParameter(f"`{value}` is not an absolute IRI")
    return text


def size(value: str | int) -> int:
    """A number of bytes: 1000000, 64k, 256m, 2g."""
    found = _SIZE.fullmatch(str(value).strip())
    if found is None or int(found[1]) == 0:
        raise click.BadParameter(f"`{value}` is not a size: write 1000000, 64k, 256m or 2g")
    return int(found[1]) << (10 * _POWERS[found[2].lower()])


def number(value: str | int) -> int:
    """A number of things: 1000, 10k, 2m."""
    found = re.fullmatch(r"([0-9]+)([km]?)", str(value).strip().lower().replace("_", ""))
    if found is None or int(found[1]) == 0:
        raise click.BadParameter(f"`{value}` is not a number: write 1000, 10k or 2m")
    return int(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2]]


def file_name(value: str) -> str:
    """The name of a file or folder to write, which is not empty."""
    if not value:
        raise click.BadParameter("an empty text is not the name of a file")
    return value


def written_file(value: str) -> str | None:
    """The name of a file to write; None for `-`, standard output."""
    return None if value == "-" else file_name(value)


def written_folder(value: str) -> str:
    """The name of a folder to write, which standard output cannot be."""
    if value == "-":
        raise click.BadParameter("a folder is written there, and `-`, standard output, is none")
    return file_name(value)


def micros(value: str | int) -> int:
    """A duration in microseconds: "5 min", 5min, PT5M."""
    if isinstance(value, int):
        return value
    try:
        return duration(value)
    except ValueError:
        raise click.BadParameter(f"`{value}` is not a duration: write 5min, '90 s' or PT5M") from None


def policy(*words: str) -> Callable[[str], str]:
    """One of some words, or `file=PATH`."""

    def parse(value: str) -> str:
        if value not in words and not (value.startswith("file=") and len(value) > 5):
            raise click.BadParameter(f"`{value}` is not one of {', '.join(words)}, file=PATH")
        return value

    return parse


def deployment_option(function: F) -> F:
    """`--dir`: which deployment."""
    option = click.option(
        "--dir",
        "folder",
        type=file_name,
        metavar="FOLDER",
        default=".dotr",
        help="The deployment (default: .dotr).",
    )
    return option(function)


def zone(value: str) -> str:
    """The name of a time zone, or "" for none."""
    try:
        zone_of(value) if value else None
    except TimeError as error:
        raise click.BadParameter(f"{error.message}; {error.hint}") from None
    return value


def class_or_property(value: str) -> str:
    """The term of an absolute IRI, or of a name with a prefix that everybody knows."""
    prefix, _, local = value.partition(":")
    if prefix in WELL_KNOWN and not local.startswith("//"):
        return f"<{WELL_KNOWN[prefix]}{local}>"
    if re.fullmatch(r"[A-Za-z][\w-]*:[\w-]+", value) and prefix not in ("urn", "tag"):
        raise click.BadParameter(f"`{prefix}:` is not a prefix that dotr knows: write the IRI in full")
    return f"<{iri(value)}>"


def context(value: str) -> tuple[str, str]:
    """The IRI of a context of JSON-LD, and the text of the file that is named for it."""
    name, equals, path = value.rpartition("=")
    if not equals or not path:
        raise click.BadParameter(f"`{value}` is not IRI=FILE")
    return iri(name), decode(read_bytes(path), path)


def mapping(path: str) -> TableMapping:
    """A mapping file, read."""
    from dotr.io.tables.mapping import read_mapping  # noqa: PLC0415  # start-up: most runs have no tables

    return read_mapping(path)


def finer_option(function: F) -> F:
    """`--sub-microsecond`."""
    option = click.option(
        "--sub-microsecond",
        type=click.Choice(list(FINER)),
        default="cut",
        help="What happens to digits of a time beyond the microsecond (default: cut, and counted).",
    )
    return option(function)


def rdf12_option(function: F) -> F:
    """`--rdf12`."""
    option = click.option(
        "--rdf12",
        type=click.Choice(list(RDF12)),
        default="refuse",
        help="Documents with triple terms or annotations of RDF 1.2: refuse, or read the plain triples in"
        " them (default: refuse).",
    )
    return option(function)


def interval_option(function: F) -> F:
    """`--interval`."""
    option = click.option(
        "--interval",
        type=click.Choice(list(INTERVAL)),
        default="refuse",
        help="Which end of a time written `begin/end` is taken (default: refuse).",
    )
    return option(function)


def reading_options(function: F) -> F:
    """What is done about times that are no instant as they stand, as one argument `reading`."""

    @wraps(function)
    def with_reading(
        *,
        sub_microsecond: str,
        ambiguous_time: str,
        nonexistent_time: str,
        interval: str,
        **others: Any,
    ) -> Any:
        reading = TimeReading(sub_microsecond, ambiguous_time, nonexistent_time, interval)
        return function(reading=reading, **others)

    options = (
        click.option(
            "--ambiguous-time",
            type=click.Choice(list(AMBIGUOUS)),
            default="refuse",
            help="What a local time that came twice is, as clocks went back: the earlier or later instant, or"
            " what the order of the rows says (default: refuse).",
        ),
        click.option(
            "--nonexistent-time",
            type=click.Choice(list(NONEXISTENT)),
            default="refuse",
            help="What a local time that never came is, as clocks went forward: the instant at which they did"
            " (default: refuse).",
        ),
        finer_option,
        interval_option,
    )
    return _decorated(cast(F, with_reading), options)


def source_options(function: F) -> F:
    """How sources are read, as one argument `options`, and `--on-error`."""

    @wraps(function)
    def with_options(
        *,
        base: str,
        time_path: str | None,
        time_unit: str,
        zone: str,
        reading: TimeReading,
        rdf12: str,
        contexts: tuple[tuple[str, str], ...],
        split: str | None,
        shared: bool,
        mappings: tuple[TableMapping, ...],
        max_document: int,
        **others: Any,
    ) -> Any:
        read = SourceOptions(
            base=base,
            time_path=f"<{time_path}>" if time_path else None,
            unit=UNITS[time_unit],
            zone=zone,
            reading=reading,
            choices=ParseChoices(rdf12, dict(contexts)),
            split=split or "",
            shared=shared,
            mappings=mappings,
            max_document=max_document,
        )
        return function(options=read, **others)

    options = (
        click.option(
            "--base", type=iri, metavar="IRI", default=STREAM_BASE, help="Resolve relative IRIs against this."
        ),
        click.option(
            "--time-path", type=iri, metavar="IRI", help="The property that holds the time of a graph."
        ),
        click.option(
            "--time-unit",
            type=click.Choice(list(UNITS)),
            default="s",
            help="What integer times count (default: s).",
        ),
        click.option(
            "--time-zone",
            "zone",
            type=zone,
            default="",
            metavar="ZONE",
            help="The zone of dateTimes without one.",
        ),
        reading_options,
        rdf12_option,
        click.option(
            "--context",
            "contexts",
            type=context,
            multiple=True,
            metavar="IRI=FILE",
            help="The context of JSON-LD that documents name by this IRI, beside those that dotr knows;"
            " repeatable. None is fetched.",
        ),
        click.option(
            "--split",
            type=class_or_property,
            metavar="IRI",
            help="Split dumps: a graph for each subject of this class, or with this property.",
        ),
        click.option(
            "--with-shared", "shared", is_flag=True, help="With --split: also what several subjects share."
        ),
        click.option(
            "--map",
            "mappings",
            type=mapping,
            multiple=True,
            metavar="FILE",
            help="Read tables (CSV, TSV, JSON lines, Parquet, Arrow) through this mapping; repeatable.",
        ),
        click.option(
            "--max-document",
            type=size,
            metavar="SIZE",
            default=MAX_DOCUMENT,
            help="Largest document that is read whole or decompressed (default: 256m).",
        ),
        click.option(
            "--on-error",
            type=policy("fail", "skip"),
            metavar="fail|skip|file=PATH",
            default="fail",
            help="What happens to documents that cannot be read and instants in error (default: fail).",
        ),
    )
    return _decorated(cast(F, with_options), options)


def lateness_options(late: str) -> Callable[[F], F]:
    """`--lateness --late`, the latter with its default."""
    options = (
        click.option(
            "--lateness",
            type=micros,
            metavar="DURATION",
            default=0,
            help="How far out of order the stream may be, such as 5min (default: not at all).",
        ),
        click.option(
            "--late",
            type=policy("drop", "fail"),
            metavar="drop|fail|file=PATH",
            default=late,
            help=f"What happens to a graph for a closed instant (default: {late}).",
        ),
    )
    return lambda function: _decorated(function, options)


def jump_option(function: F) -> F:
    """`--max-jump`."""
    option = click.option(
        "--max-jump",
        type=micros,
        metavar="DURATION",
        help="Refuse a graph stamped further ahead of the last one than this (default: no limit).",
    )
    return option(function)


def budget_option(function: F) -> F:
    """`--budget`."""
    option = click.option(
        "--budget",
        type=number,
        metavar="N",
        default=BUDGET,
        help="Units of work of an instant's Datalog, of a query at it, and of a rule for one fact that"
        " triggers it (default: 10m).",
    )
    return option(function)


def output_options(formats: tuple[str, ...] = EVENT_FORMATS) -> Callable[[F], F]:
    """`--format -o --overwrite --quiet`."""
    options = (
        click.option(
            "--format",
            "format_",
            type=click.Choice(list(formats)),
            help="How to write (default: by the name of -o, text on a terminal, else jsonl).",
        ),
        click.option(
            "-o",
            "--output",
            type=written_file,
            metavar="FILE",
            help="Write to a file instead of standard output (which is `-`, too); text to .gz and .zst"
            " compressed.",
        ),
        click.option("--overwrite", is_flag=True, help="Let -o replace a file that exists."),
        click.option("-q", "--quiet", is_flag=True, help="No progress line, no summary."),
    )
    return lambda function: _decorated(function, options)


def state_option(function: F) -> F:
    """`--emit-state`."""
    option = click.option(
        "--emit-state",
        "states",
        type=file_name,
        metavar="FILE",
        help="Write enriched graphs there, too: what holds at each instant beside the background.",
    )
    return option(function)


def summary_options(function: F) -> F:
    """`--summary --verbose`."""
    options = (
        click.option(
            "--summary",
            "summary_",
            type=click.Choice(["text", "json"]),
            default="text",
            help="How the summary is written; as JSON it is one line, the last on standard error.",
        ),
        click.option(
            "-v", "--verbose", is_flag=True, help="Show how far every rule came, not only silent ones."
        ),
    )
    return _decorated(function, options)


def event_options(function: F) -> F:
    """`--only --except`."""
    options = (
        click.option(
            "--only",
            "only_",
            multiple=True,
            metavar="NAME,…",
            help="Events of these rules alone; repeatable.",
        ),
        click.option(
            "--except",
            "except_",
            multiple=True,
            metavar="NAME,…",
            help="No events of these rules; repeatable.",
        ),
    )
    return _decorated(function, options)


def events_wanted(program: Program, only_: Sequence[str], except_: Sequence[str]) -> Program:
    """The program with all rules private whose events are not wanted. Raises UsageError D4150."""
    public = [rule.name for rule in program.rules if not rule.private]
    chosen = _names(program, only_, "--only")
    left_out = _names(program, except_, "--except")
    return only(program, [n for n in public if (not chosen or n in chosen) and n not in left_out])


def _names(program: Program, values: Sequence[str], option: str) -> set[str]:
    """The names of an option's values, each of a public rule."""
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    public = {rule.name: rule.private for rule in program.rules}
    for name in names:
        if public.get(name, True):
            shown = [n for n, private in public.items() if not private]
            what = "is private: its events never leave" if name in public else "is not a rule"
            hint = nearest(name, shown) or f"rules with events: {', '.join(shown) or 'none'}"
            raise UsageError.of("D4150", f"`{name}` of {option} {what}", hint=hint)
    return set(names)


def rules_options(function: F) -> F:
    """`--background --rules --verify`."""
    options = (
        click.option(
            "--background", multiple=True, metavar="FILE", help="More RDF that holds at every instant."
        ),
        click.option(
            "--rules", "more_rules", multiple=True, metavar="FILE", help="More rules, beside those named."
        ),
        click.option(
            "--verify", is_flag=True, help="Run the literal oracle beside the engine; stop at a difference."
        ),
    )
    return _decorated(function, options)


def program_options(function: F) -> F:
    """`--background --rules --verify --materialize`."""
    option = click.option(
        "--materialize",
        type=click.Choice(["needed", "all"]),
        default="needed",
        help="Derive what queries can reach, or everything (default: needed).",
    )
    return rules_options(option(function))


def _decorated(function: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        function = option(function)
    return function
