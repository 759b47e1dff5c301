"""`dotr check RULES…`: every finding about rule files, in one run; `dotr fmt RULES…`: their canonical text.

Place:   over lang; reads background and sample only to find queries that nothing can match.
Method:  all files are checked together, as they would be deployed. Findings are data: they go to standard
         output, and the exit code is 1 when one of them is an error, a missing file included. Files are
         rewritten in place, each whole or not at all; `-` reads standard input and writes standard output.
         Comments are kept. A file with errors is left alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dotr.cli import options
from dotr.cli.options import SourceOptions, number
from dotr.cli.show import funnel_as_json, note, painted, plain
from dotr.errors import (
    DataError,
    Diagnostic,
    Diagnostics,
    DotrError,
    ProgramError,
    Severity,
    UsageError,
    as_json,
)
from dotr.io.outputs import write_whole
from dotr.io.rules_and_background import read_rules_text, read_standard_input
from dotr.lang import check_program
from dotr.lang.checks.effects import check_stated
from dotr.lang.checks.lasting import Vocabulary, add_heads, check_vocabulary
from dotr.lang.explain import PAGES, explain, similar
from dotr.lang.printer import format_text
from dotr.program import Program
from dotr.rdf.terms import Term, Triple
from dotr.source import Source
from dotr.survey.queries import GRAPHS, Sample

if TYPE_CHECKING:
    from dotr.core.funnel import Funnel
    from dotr.io.sources import Sources


@click.command()
@click.argument("rules", metavar="RULES...", nargs=-1)
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", help="Default: text."
)
@click.option(
    "--sample",
    multiple=True,
    metavar="SOURCE",
    help="Graphs of the stream: reports queries that nothing can match.",
)
@click.option(
    "--graphs",
    type=number,
    metavar="N",
    default=GRAPHS,
    help="Number of graphs of the sample, such as 10k (default: 10k).",
)
@click.option(
    "--explain",
    "code",
    metavar="CODE",
    help="What a code means, with a wrong and a right example; --explain --list: all codes.",
)
@options.functions
@options.source()
def command(
    rules: tuple[str, ...],
    format_: str,
    sample: tuple[str, ...],
    graphs: int,
    code: str | None,
    source: SourceOptions,
) -> int:
    """Check .dotr, .dlog and .lars files together: syntax, names, queries, windows, Datalog.

    Prints all findings; the exit code is 1 when there are errors.
    """
    if code in ("--list", "list"):
        for page in PAGES.values():
            sys.stdout.write(f"{page.code}  {page.title}\n")
        return 0
    if code is not None:
        return _explain(code)
    if not rules:
        raise click.UsageError("name one or more rule files, or --explain CODE")
    program, found = check_program(rules, read_rules_text)
    counts: dict[str, Funnel] = {}
    if program is not None and (program.background or program.has_effects or sample):
        from dotr.io.errors import ErrorPolicy  # noqa: PLC0415  # start-up
        from dotr.io.sources import Sources  # noqa: PLC0415  # start-up

        reader = Sources(sample, source.options, ErrorPolicy(source.fails)) if sample else None
        found = without_followers([*found, *_data_checks(program, reader, graphs, counts)])
    if format_ == "json":
        report: dict[str, Any] = {"diagnostics": [as_json(d) for d in found]}
        if counts:
            report["sequences"] = {name: funnel_as_json(funnel) for name, funnel in counts.items()}
        sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")
    else:
        for diagnostic in found:
            sys.stdout.write(painted(diagnostic, sys.stdout) + "\n")
        if counts:
            from dotr.core.funnel import shown  # noqa: PLC0415  # start-up

            for name, funnel in counts.items():
                plain(f"sequence {name}: {shown(funnel)}")
        note(_summary(found, len(rules)))
    return 1 if any(d.severity is Severity.ERROR for d in found) else 0


def _explain(code: str) -> int:
    page = explain(code)
    if page is None:
        raise UsageError.of("D4135", f"there is no code `{code}`", hint=similar(code))
    sys.stdout.write(page + "\n")
    return 0


def _summary(found: Sequence[Diagnostic], files: int) -> str:
    counts = [
        f"{number} {severity if severity is Severity.INFO or number == 1 else f'{severity}s'}"
        for severity in Severity
        if (number := sum(d.severity is severity for d in found))
    ]
    return f"{', '.join(counts) or 'no findings'} in {files} file{'s' if files != 1 else ''}"


def _data_checks(
    program: Program, reader: Sources | None, graphs: int, counts: dict[str, Funnel]
) -> list[Diagnostic]:
    """What background and sample say about the program. `counts` gets what was counted of each sequence."""
    from dotr.io.rules_and_background import read_background  # noqa: PLC0415  # start-up: many programs have none
    from dotr.survey.queries import check_terms  # noqa: PLC0415  # start-up

    found = Diagnostics()
    vocabulary = Vocabulary()
    try:
        background = read_background(program.background, named=program.named)
        vocabulary.add(background)
        sampled: set[Term] = set()
        if reader is not None:
            sampled = _look_at_sample(program, background, reader, graphs, vocabulary, found, counts)
    except DotrError as error:
        return [*found.found, *error.diagnostics]
    integer = reader is not None and reader.clock is not None and reader.clock.integer
    check_stated(program, background, sampled, integer, found)
    add_heads(program, vocabulary)
    check_vocabulary(program, vocabulary, sampled=reader is not None, found=found)
    if reader is not None:
        check_terms(program, vocabulary, found)
    return found.found


_FOLLOWS = {"D1325": ("D2511",), "D2517": ("D1220", "D2501")}
"""A code, and those that report the same with the reason."""


def without_followers(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings without those whose place has a more informative one."""

    def is_reported(one: Diagnostic) -> bool:
        better = (other for other in found if other.code in _FOLLOWS.get(one.code, ()))
        return any(_covers(other, one) for other in better)

    return [one for one in found if not is_reported(one)]


def _covers(other: Diagnostic, one: Diagnostic) -> bool:
    a, b = other.span, one.span
    return a is not None and b is not None and a.source == b.source and a.start < b.end and b.start < a.end


def _look_at_sample(
    program: Program,
    background: list[Triple],
    reader: Sources,
    graphs: int,
    vocabulary: Vocabulary,
    found: Diagnostics,
    counts: dict[str, Funnel],
) -> set[Term]:
    """Run the program over the first graphs of the sources; returns the predicates of the graphs."""
    from dotr.events import Message, all_triples  # noqa: PLC0415  # start-up
    from dotr.survey.report import check_times, survey  # noqa: PLC0415  # start-up

    sample = Sample(limit=graphs)
    predicates: set[Term] = set()
    for graph in reader:
        vocabulary.add(all_triples(graph.triples))
        came = graph.triples.graph if isinstance(graph.triples, Message) else graph.triples
        predicates.update(predicate for _, predicate, _ in came or ())
        sample.add(graph.time, graph.triples)
        if sample.full:
            break
    sample.clock = reader.clock or sample.clock
    check_times(sample, reader.extractor.time_sources, program.prefixes, found)
    seen = survey(program, background, sample)
    found.found += seen.found.found
    counts.update(seen.counts)
    if seen.error is not None:
        found.found += seen.error.diagnostics
    return predicates


@click.command()
@click.argument("rules", metavar="RULES...", nargs=-1, required=True)
@click.option(
    "--check", "only_check", is_flag=True, help="Change nothing; exit with 1 if a file would change."
)
@click.option("--stdout", "to_stdout", is_flag=True, help="Print the text instead of changing the file.")
def fmt(rules: tuple[str, ...], only_check: bool, to_stdout: bool) -> int:
    """Rewrite .dotr, .dlog and .lars files in canonical form. `-` is standard input, read as .dotr."""
    errors: list[Diagnostic] = []
    changed = 0
    for path in rules:
        try:
            old = read_standard_input() if path == "-" else _read(path)
            new = format_text(Source("<stdin>" if path == "-" else path, old))
        except DotrError as error:
            errors += error.diagnostics
            continue
        differs = new != old
        changed += differs
        if only_check:
            if differs:
                sys.stdout.write(f"{path}\n")
        elif to_stdout or path == "-":
            sys.stdout.write(new)
        elif differs:
            _replace(path, new)
            note(f"{path} rewritten")
    if errors:
        raise ProgramError(errors)
    if only_check:
        note(f"{changed} of {len(rules)} files would change" if changed else "nothing would change")
    return 1 if only_check and changed else 0


def _read(path: str) -> str:
    try:
        return read_rules_text(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError.of("D2003", f"cannot read `{path}`: {reason}", place=path) from None


def _replace(path: str, text: str) -> None:
    """Put a string in place of a file, at once: nobody ever sees half of it."""
    write_whole(Path(path).resolve(), [text.encode()])
