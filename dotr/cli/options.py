"""Options that several verbs share: a group of them is a value, with a decorator that adds and passes it.

Place:   for the verbs. What cannot be parsed is a usage error (exit code 2).
Method:  a value takes every option below its decorator that it has a field for, so that the order of `--help`
         and the groups are independent. What verbs do with the options of a group are methods of its value.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from msgspec import Struct

from dotr.budget import BUDGET, CORRECTIONS, LEAST_CORRECTIONS, MOST_CORRECTIONS
from dotr.errors import UsageError
from dotr.events import Clock, Time
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE, decode, read_bytes, size_of
from dotr.io.decode.rdf import RDF12, ParseChoices
from dotr.io.events import BINARY, EVENT_FORMATS, format_of_name, refused
from dotr.io.outputs import Output, is_device, open_output, packing_of
from dotr.io.time import UNITS, TimeError, parse_text, zone_of
from dotr.io.time_reading import AMBIGUOUS, FINER, INTERVAL, NONEXISTENT, TimeReading
from dotr.lang.grammar.cursor import WELL_KNOWN, nearest
from dotr.program.names import duration
from dotr.regex import regex

if TYPE_CHECKING:
    from dotr.batch.spark.session import SparkOptions as Session
    from dotr.core.deployment import Deployment
    from dotr.io.errors import ErrorPolicy
    from dotr.io.graphs import SourceOptions as ReadingOptions
    from dotr.io.parse_workers import ParseWorkers
    from dotr.io.rules_and_background import BackgroundFiles, RuleTexts
    from dotr.io.tables.mapping import TableMapping
    from dotr.program import Program
    from dotr.rdf.terms import Triple

Decorator: TypeAlias = Callable[[Any], Any]

# -- values of options

_IRI = regex(r"[A-Za-z][A-Za-z0-9+.-]*:[^<>\"{}|^`\\\s]*")


def iri(value: str) -> str:
    """An absolute IRI, with or without brackets."""
    text = value.removeprefix("<").removesuffix(">")
    if not _IRI.fullmatch(text):
        raise click.BadParameter(f"`{value}` is not an absolute IRI")
    return text


def size(value: str | int) -> int:
    """A number of bytes: 1000000, 64k, 256m, 2g."""
    try:
        return size_of(str(value))
    except ValueError:
        raise click.BadParameter(f"`{value}` is not a size: write 1000000, 64k, 256m or 2g") from None


def number(value: str | int) -> int:
    """A number of things: 1000, 10k, 2m."""
    found = re.fullmatch(r"([0-9]+)([km]?)", str(value).strip().lower().replace("_", ""))
    if found is None or int(found[1]) == 0:
        raise click.BadParameter(f"`{value}` is not a number: write 1000, 10k or 2m")
    return int(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2]]


def file_name(value: str) -> str:
    """The name of a file or folder to write, which is not empty."""
    if not value:
        raise click.BadParameter("an empty string is not the name of a file")
    return value


def written_file(value: str) -> str | None:
    """The name of a file to write; None for `-`, standard output."""
    return None if value == "-" else file_name(value)


def written_folder(value: str) -> str:
    """The name of a folder to write, which standard output cannot be."""
    if value == "-":
        raise click.BadParameter("a folder is written there, and `-` is standard output")
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


def property_iri(value: str) -> str:
    """An absolute IRI, also by a prefix that everybody knows."""
    return class_or_property(value)[1:-1]


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


def instant_of(text: str, unit: int, option: str = "--at") -> tuple[Time, bool]:
    """A time in µs, and whether it is an integer. Raises UsageError D4111."""
    try:
        return parse_text(text, unit)
    except TimeError as error:
        raise UsageError.of("D4111", f"{option}: {error.message}", hint=error.hint) from None


def given_time(text: str, unit: int, clock: Clock | None, option: str = "--at") -> tuple[Time, Clock]:
    """A time in µs, and how it is written; `now` is written as `clock` does, else a dateTime.

    The wall clock is read here and nowhere else, and only on a user's request; its value is data from then
    on. Raises UsageError D4111.
    """
    if text == "now":
        now = time.time_ns() // 1000
        written = clock or Clock(False, unit)
        return (now // written.unit * written.unit if written.integer else now), written
    when, integer = instant_of(text, unit, option)
    return when, Clock(integer, unit)


def defaulted(name: str) -> bool:
    """Whether a parameter of the running command has its default."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.DEFAULT


# -- groups


def passing(name: str, make: Callable[..., Any], *options: Decorator) -> Decorator:
    """Add options. Of those, and of others below, that `make` has parameters or fields for, what it makes is
    passed as one parameter.
    """

    def decorate(function: Any) -> Any:
        @wraps(function)
        def with_value(**given: Any) -> Any:
            own = {key: given.pop(key) for key in make.__annotations__ if key in given}
            return function(**{name: make(**own)}, **given)

        return decorated(with_value, *options)

    return decorate


def decorated(function: Any, *options: Decorator) -> Any:
    """A function with options, in the order of its help."""
    for option in reversed(options):
        function = option(function)
    return function


def choice(name: str, words: Iterable[str], what: str, default: str = "refuse") -> Decorator:
    """An option that takes one of some words; its help names the default."""
    kind, text = click.Choice(list(words)), f"{what} (default: {default})."
    return click.option(name, type=kind, default=default, help=text)


# -- sources

finer = click.option(
    "--sub-microsecond",
    type=click.Choice(list(FINER)),
    default="cut",
    help="What happens to digits of a time beyond the microsecond (default: cut, and counted).",
)
interval = choice("--interval", INTERVAL, "Which end of a time written `begin/end` is taken")
rdf12 = choice(
    "--rdf12",
    RDF12,
    "Documents with triple terms or annotations of RDF 1.2: refuse, or read the plain triples in them",
)
_TIME_READING = (
    choice(
        "--ambiguous-time",
        AMBIGUOUS,
        "How to read a local time that occurred twice as clocks went back: as the earlier or later instant,"
        " or as the order of the rows implies",
    ),
    choice(
        "--nonexistent-time",
        NONEXISTENT,
        "How to read a local time that did not occur as clocks went forward: as the instant of the change",
    ),
    finer,
    interval,
)


def reading(function: Any) -> Any:
    """What is done about times that are not an instant as written."""
    return decorated(function, *_TIME_READING)


class SourceOptions(Struct, frozen=True):
    """How sources are read, and what is done about errors in them and about disorder. `max_jump` None: no
    limit.
    """

    options: ReadingOptions
    on_error: str = "fail"
    lateness: int = 0
    late: str = "drop"
    max_jump: int | None = None

    @property
    def fails(self) -> bool:
        return self.on_error == "fail"

    @property
    def policies(self) -> list[str]:
        return [self.on_error, self.late]

    def letters(self, overwrite: bool = False) -> DeadLetters:
        """Where documents go that are refused."""
        return DeadLetters(self.on_error, overwrite)

    def delayed(self, overwrite: bool = False) -> DeadLetters:
        """Where graphs go that came late."""
        return DeadLetters(self.late, overwrite)

    def background(self, program: Program, documents: Sequence[str]) -> list[Triple]:
        """The triples of documents, read as the sources are. Raises DataError."""
        from dotr.io.rules_and_background import read_background  # noqa: PLC0415  # start-up

        read = self.options
        return read_background(
            documents, read.base, read.max_document, named=program.named, choices=read.choices
        )

    def background_files(self, program: Program, documents: Sequence[str]) -> BackgroundFiles:
        """The same, which can be read again."""
        from dotr.io.rules_and_background import BackgroundFiles  # noqa: PLC0415  # start-up

        read = self.options
        return BackgroundFiles(
            documents, read.base, read.max_document, named=program.named, choices=read.choices
        )


def _source(
    *,
    base: str = STREAM_BASE,
    time_path: str | None = None,
    time_unit: str = "s",
    zone: str = "",
    sub_microsecond: str = "cut",
    ambiguous_time: str = "refuse",
    nonexistent_time: str = "refuse",
    interval: str = "refuse",
    rdf12: str = "refuse",
    contexts: tuple[tuple[str, str], ...] = (),
    split: str | None = None,
    shared: bool = False,
    mappings: tuple[TableMapping, ...] = (),
    max_document: int = MAX_DOCUMENT,
    on_error: str = "fail",
    lateness: int = 0,
    late: str = "drop",
    max_jump: int | None = None,
) -> SourceOptions:
    from dotr.io.graphs import SourceOptions as ReadingOptions  # noqa: PLC0415  # start-up

    options = ReadingOptions(
        base=base,
        time_path=f"<{time_path}>" if time_path else None,
        unit=UNITS[time_unit],
        zone=zone,
        reading=TimeReading(sub_microsecond, ambiguous_time, nonexistent_time, interval),
        choices=ParseChoices(rdf12, dict(contexts)),
        split=split or "",
        shared=shared,
        mappings=mappings,
        max_document=max_document,
    )
    return SourceOptions(options, on_error, lateness, late, max_jump)


time_unit = choice("--time-unit", UNITS, "What integer times count", "s")
base = click.option(
    "--base", type=iri, metavar="IRI", default=STREAM_BASE, help="Resolve relative IRIs against this IRI."
)
_SOURCE = (
    base,
    click.option(
        "--time-path", type=property_iri, metavar="IRI", help="The property that holds the time of a graph."
    ),
    time_unit,
    click.option(
        "--time-zone",
        "zone",
        type=zone,
        default="",
        metavar="ZONE",
        help="The zone of dateTimes without one.",
    ),
    *_TIME_READING,
    rdf12,
    click.option(
        "--context",
        "contexts",
        type=context,
        multiple=True,
        metavar="IRI=FILE",
        help="A file for the JSON-LD context that documents name by this IRI, besides those that dotr knows;"
        " repeatable. Nothing is fetched.",
    ),
    click.option(
        "--split",
        type=class_or_property,
        metavar="IRI",
        help="Split dumps: a graph for each subject of this class, or with this property.",
    ),
    click.option(
        "--with-shared",
        "shared",
        is_flag=True,
        help="With --split: add what several subjects share to each of their graphs.",
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
jump = click.option(
    "--max-jump",
    type=micros,
    metavar="DURATION",
    help="Refuse a graph stamped further ahead of the last one than this (default: no limit).",
)
jobs = click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    help="Processes: one for the rules, others parse JSON lines ahead of it (default: 1). The output"
    " is the same.",
)


def source(late: str = "", jumps: bool = False) -> Decorator:
    """How sources are read, as one argument `source`; with `--lateness --late`, where `late` is its default,
    and with `--max-jump`.
    """
    disorder = (
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
    return passing("source", _source, *_SOURCE, *(disorder if late else ()), *([jump] if jumps else ()))


until = click.option(
    "--until",
    metavar="TIME",
    help="Let time go on after the last graph, up to TIME: ticks, ends of periods and deadlines happen.",
)


def until_of(text: str | None, unit: int, clock: Clock | None) -> Time | None:
    """The time of `--until`, which is written as the stream's times are. `clock` None: they are not known.

    Raises UsageError D4111.
    """
    if text is None:
        return None
    when, written = given_time(text, unit, clock, "--until")
    if clock is not None and written != clock:
        hint = f"write it as the times of the stream are written, such as {clock.text(0)}"
        raise UsageError.of("D4111", f"`{text}` is of another kind than the times of the stream", hint=hint)
    return when


CORRECTIONS_NEED = "--corrections-budget needs --corrections"


class CorrectionOptions(Struct, frozen=True):
    """How far behind the watermark graphs are taken, in µs, None: not at all; the share of replays."""

    period: int | None = None
    share: float = CORRECTIONS


def _corrections(corrections: int | None, corrections_budget: float | None) -> CorrectionOptions:
    if corrections is None and corrections_budget is not None:
        raise click.UsageError(CORRECTIONS_NEED)
    return CorrectionOptions(corrections, CORRECTIONS if corrections_budget is None else corrections_budget)


corrections = passing(
    "corrections",
    _corrections,
    click.option(
        "--corrections",
        type=micros,
        metavar="DURATION",
        help="Take late graphs up to this much older than the watermark, such as 1h: events are added and"
        " taken back.",
    ),
    click.option(
        "--corrections-budget",
        type=click.FloatRange(LEAST_CORRECTIONS, MOST_CORRECTIONS),
        metavar="SHARE",
        help="Largest share of the work that corrections may take before late graphs wait"
        f" (default: {CORRECTIONS}).",
    ),
)


def no_corrections(verb: str, reason: str, hint: str) -> Decorator:
    """`--corrections`, for those who look for it: D4165 with the reason."""

    def refuse(_context: click.Context, _option: click.Parameter, value: str | None) -> None:
        if value is not None:
            from dotr.core.corrections import refused  # noqa: PLC0415  # start-up: nobody asks as a rule

            raise refused(verb, reason, hint)

    return click.option("--corrections", hidden=True, expose_value=False, callback=refuse)


source_value = passing("source", _source)
"""The same value of options that a verb adds itself."""


class DeadLetters(Struct):
    """Owns the file of a policy `file=PATH`: documents that were refused, or graphs that came late."""

    policy: str
    overwrite: bool = False
    _file: Output | None = None

    def __enter__(self) -> DeadLetters:
        if self.policy.startswith("file="):
            self._file = open_output(self.policy.removeprefix("file="), self.overwrite)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is not None:
            self._file.finish()  # what was refused was refused, however the run ended

    def write(self, line: str) -> None:
        assert self._file is not None
        self._file.write(f"{line}\n")
        self._file.flush()

    @property
    def fails(self) -> bool:
        return self.policy == "fail"

    def refusals(self) -> ErrorPolicy:
        """The policy as the sources want it."""
        from dotr.io.errors import ErrorPolicy  # noqa: PLC0415  # start-up

        return ErrorPolicy(self.fails, self.write if self._file is not None else None)

    def keep(self, line: Callable[[], str]) -> None:
        """Write a letter if the policy has a file."""
        if self._file is not None:
            self.write(line())


@contextmanager
def parsing(jobs: int, base: str | None) -> Iterator[ParseWorkers | None]:
    """What parses for a run of so many processes; None where the process of the rules does."""
    if jobs == 1:
        yield None
        return
    from dotr.io.parse_workers import ParseWorkers  # noqa: PLC0415  # start-up: most runs need one process

    with ParseWorkers(jobs - 1, base) as workers:
        yield workers


# -- rules


class RuleOptions(Struct, frozen=True):
    """What belongs to rules besides their files, and how they are run."""

    background: tuple[str, ...] = ()
    more_rules: tuple[str, ...] = ()
    verify: bool = False
    materialize: str = "needed"
    budget: int = BUDGET
    only_: tuple[str, ...] = ()
    except_: tuple[str, ...] = ()

    def load(self, rules: str, texts: RuleTexts) -> Program:
        """The program of all rule files. Raises ProgramError."""
        from dotr.lang import load_program  # noqa: PLC0415  # start-up

        return load_program([rules, *self.more_rules], texts)

    def documents(self, program: Program) -> list[str]:
        """The files of the background."""
        return [*program.background, *self.background]

    def wanted(self, program: Program, *, whole: bool = False) -> Program:
        """The program for the events that are wanted; `whole`: with rules that they do not need, too."""
        if not self.only_ and not self.except_:
            return program
        from dotr.program.program import needed  # noqa: PLC0415  # start-up

        program = events_wanted(program, self.only_, self.except_)
        return program if whole else needed(program)

    def deployment(
        self, program: Program, background: Sequence[Triple] | BackgroundFiles, *, everything: bool = False
    ) -> Deployment:
        """The program compiled; `everything` is derived, whatever --materialize says."""
        from dotr.core.deployment import Deployment, Settings  # noqa: PLC0415  # start-up

        everything = everything or self.materialize == "all"
        return Deployment(program, background, Settings(materialize_all=everything, budget=self.budget))


def _import(_context: click.Context, _option: click.Parameter, modules: tuple[str, ...]) -> None:
    from dotr.program.own_functions import import_functions  # noqa: PLC0415  # start-up

    for module in modules:
        import_functions(module)


functions = click.option(
    "--functions",
    multiple=True,
    metavar="MODULE",
    is_eager=True,
    expose_value=False,
    callback=_import,
    help="Import functions that rules and queries call: the FUNCTIONS of this Python module; repeatable.",
)
"""Imports them before anything is read."""

background = click.option(
    "--background", multiple=True, metavar="FILE", help="More RDF that holds at every instant."
)
more_rules = click.option(
    "--rules", "more_rules", multiple=True, metavar="FILE", help="More rules, besides those named."
)
rules_value = passing("rules", RuleOptions)
"""The value of options that a verb adds itself."""

rules = passing(
    "rules",
    RuleOptions,
    background,
    more_rules,
    functions,
    click.option(
        "--verify", is_flag=True, help="Run the literal reading beside the engine; stop at a difference."
    ),
)
"""`--background --rules --functions --verify`, and what of a RuleOptions stands below."""

materialize = choice(
    "--materialize", ("needed", "all"), "Derive what queries can reach, or everything", "needed"
)
budget = click.option(
    "--budget",
    type=number,
    metavar="N",
    default=BUDGET,
    help="Units of work of an instant's Datalog, of a query at it, and of a rule for one fact that triggers"
    " it (default: 10m).",
)
then = click.option(
    "--then",
    type=(str, str),
    multiple=True,
    metavar="TIME RULES",
    help="Replace the rules and their background by these RULES from TIME on; may be repeated.",
)
deployment = click.option(
    "--dir",
    "folder",
    type=file_name,
    metavar="FOLDER",
    default=".dotr",
    help="The deployment (default: .dotr).",
)


def events(function: Any) -> Any:
    """`--only --except`."""
    return decorated(
        function,
        click.option(
            "--only",
            "only_",
            multiple=True,
            metavar="NAME,…",
            help="Only events of these rules; repeatable.",
        ),
        click.option(
            "--except",
            "except_",
            multiple=True,
            metavar="NAME,…",
            help="No events of these rules; repeatable.",
        ),
    )


def events_wanted(program: Program, only_: Sequence[str], except_: Sequence[str]) -> Program:
    """The program with all rules private whose events are not wanted. Raises UsageError D4150."""
    from dotr.program.program import only  # noqa: PLC0415  # start-up

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
            what = "is private: its events are never output" if name in public else "is not a rule"
            hint = nearest(name, shown) or f"rules with events: {', '.join(shown) or 'none'}"
            raise UsageError.of("D4150", f"`{name}` of {option} {what}", hint=hint)
    return set(names)


# -- outputs


class OutputOptions(Struct, frozen=True):
    """What is written where, and what is reported besides it. `output` None: standard output."""

    format_: str | None = None
    output: str | None = None
    overwrite: bool = False
    quiet: bool = False
    summary_: str = "text"
    verbose: bool = False
    states: str | None = None

    def format(self, can: Sequence[str], verb: str) -> str:
        """The format of what is written. Raises UsageError D4151."""
        return chosen_format(self.format_, self.output, can, verb)

    def open(self, packed: bool = False) -> Output:
        return open_output(self.output, self.overwrite, packed=packed)

    def apart(self, policies: Sequence[str], inputs: Sequence[str]) -> None:
        """Refuse outputs that are one file, or that are read as well."""
        outputs_apart([self.output or "-", *([self.states] if self.states else [])], policies, inputs)


plain = click.option(
    "--plain", is_flag=True, help="Lines alone on a terminal, too: no view that is drawn again and again."
)
quiet = click.option("-q", "--quiet", is_flag=True, help="No progress line, no summary.")
report = click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", help="How to write."
)
here = click.option(
    "-o", "--output", type=written_file, metavar="FILE", help="Write here instead of standard output (`-`)."
)
replacing = click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
state = click.option(
    "--emit-state",
    "states",
    type=file_name,
    metavar="FILE",
    help="Also write the enriched graphs, to this file: what holds at each instant besides the background.",
)


def output(formats: Iterable[str] = EVENT_FORMATS) -> Decorator:
    """`--format -o --overwrite --quiet`, with others of an OutputOptions below, as one argument `output`."""
    return passing(
        "output",
        OutputOptions,
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
        quiet,
    )


output_value = passing("output", OutputOptions)
"""The same value of options that a verb adds itself."""


def written(*formats: str) -> Decorator:
    """`--format -o --overwrite` of a verb that writes one document, by default in the first format."""
    kind = click.Choice(formats)
    format_ = click.option(
        "--format", "format_", type=kind, default=formats[0], help=f"Default: {formats[0]}."
    )
    return passing("output", OutputOptions, format_, here, replacing)


schema = click.option(
    "--schema",
    type=click.Choice(["terms", "typed"]),
    default="terms",
    help="Columns of a Parquet file: bindings as N-Triples, or a column of its own type for each variable of"
    " WITH.",
)


def summary(function: Any) -> Any:
    """`--summary --verbose`."""
    return decorated(
        function,
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


def chosen_format(format_: str | None, output: str | None, can: Sequence[str], verb: str) -> str:
    """The requested format, else that of the output's name, text on a terminal and JSON lines elsewhere.

    Raises UsageError D4151 for a format of the name that the verb does not write, for one that is not
    streamed anywhere but in a file, and for a binary one in a file whose name says that its text is
    compressed.
    """
    whole = [name for name, known in EVENT_FORMATS.items() if not known.streamed]
    if format_ is None and output is not None and is_device(output):
        format_ = format_of_name(output, can, verb, packed=True)
    if format_ in whole and (output is None or is_device(output)):
        streamed = [name for name in can if name not in whole]
        raise refused(f"{format_.capitalize()} to a stream", streamed, verb)
    if format_ in BINARY and output is not None and packing_of(output):
        raise refused(f"{format_} to `{output}`", [name for name in can if name not in BINARY], verb)
    if format_ is not None:
        return format_
    if output is None:
        return "text" if sys.stdout.isatty() else "jsonl"
    return format_of_name(output, can, verb, packed=True) or "jsonl"


def _stdout() -> int | None:
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):  # something in memory stands in for it
        return None


def outputs_apart(
    outputs: Sequence[str], policies: Sequence[str], inputs: Sequence[str], appearing: bool = False
) -> None:
    """Refuse outputs, the `file=PATH` of policies among them, that are one file, or that are read as well.

    Without `outputs` data go to standard output, which is `-`, too. Raises UsageError D4113, RefusedError
    D5002.
    """
    from dotr.io.sinks import refuse_overlap  # noqa: PLC0415  # start-up

    letters = [policy.removeprefix("file=") for policy in policies if policy.startswith("file=")]
    written = [*(outputs or ["-"]), *letters]
    if written.count("-") > 1:
        raise UsageError.of("D4113", "two outputs go to standard output", hint="give each its own")
    files = [path for path in written if path != "-"]
    paths = [os.path.realpath(path) for path in files]
    refuse_overlap(files, inputs, _stdout() if "-" in written else None, appearing)
    for path in paths:
        if paths.count(path) > 1 and (os.path.isfile(path) or not os.path.exists(path)):
            raise UsageError.of("D4113", f"two outputs go to one file, `{path}`", hint="give each its own")


# -- Spark


class SparkOptions(Struct, frozen=True):
    """Where Spark runs, its settings, and what is sent along; they mean what spark-submit means by them."""

    master: str | None = None
    conf: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    parallelism: int | None = None

    def session(self) -> Session:
        """The options of a session. Raises UsageError D4128 for a setting that Spark does not have."""
        from dotr.batch.spark.session import SparkOptions as Session  # noqa: PLC0415  # start-up

        settings: dict[str, str] = {}
        for given in self.conf:
            name, equals, value = given.partition("=")
            if not equals or not name.strip():
                raise UsageError.of(
                    "D4128", f"`{given}` is not a setting of Spark", hint="--conf spark.executor.memory=4g"
                )
            settings[name.strip()] = value
        packages, files, archives = map(_listed, (self.packages, self.py_files, self.archives))
        asked = Session(self.master, settings, packages, files, archives, self.parallelism)
        asked.settings()  # what is wrong with them is reported before anything is read
        return asked


spark = passing(
    "spark",
    SparkOptions,
    click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[4], spark://…, yarn, sc://… (default: as Spark is configured, else "
        "local[*]).",
    ),
    click.option("--conf", metavar="K=V", multiple=True, help="A setting of Spark; repeatable."),
    click.option("--packages", metavar="G:A:V,…", multiple=True, help="Maven packages that Spark fetches."),
    click.option("--py-files", metavar="FILE,…", multiple=True, help="Python files sent to workers."),
    click.option(
        "--parallelism",
        type=click.IntRange(min=1),
        metavar="N",
        help="Tasks that can run at once (default: as Spark reports; Spark Connect does not).",
    ),
    click.option(
        "--archives", metavar="FILE#NAME,…", multiple=True, help="Archives sent to workers, unpacked."
    ),
)


def chosen_engine(
    asked: Session, places: Sequence[str], environment: Mapping[str, str] = os.environ
) -> tuple[str, str]:
    """(engine, why): Spark where only it can do the work, or where it was set up for more than this machine;
    else local processes, which need no JVM and take less time on the same cores.
    """
    from dotr.batch.log import is_remote  # noqa: PLC0415  # start-up
    from dotr.batch.spark.session import configured, is_submitted  # noqa: PLC0415  # start-up

    remote = next(filter(is_remote, places), None)
    if remote is not None:
        return "spark", f"only Spark can read {remote}"
    given = next((option for option, value in _given(asked).items() if value), None)
    if given is not None:
        return "spark", f"{given} is given"
    if is_submitted(environment):
        return "spark", "spark-submit started this process"
    known = configured(environment)
    place = known.get("spark.remote") or known.get("spark.master") or "local"
    if not place.startswith("local"):
        return "spark", f"it is configured for {place}"
    return "local", "everything is on this machine; --engine spark uses Spark nevertheless"


def refuse_without_spark(asked: Session) -> None:
    """Raise UsageError D4121 for options of Spark where it does not run."""
    for option, value in _given(asked).items():
        if value:
            raise UsageError.of("D4121", f"{option} is for --engine spark", hint=f"leave {option} out")


def _given(asked: Session) -> dict[str, object]:
    return {f"--{name.replace('_', '-')}": getattr(asked, name) for name in SparkOptions.__annotations__}


def _listed(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())
