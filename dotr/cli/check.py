"""`dotr check RULES…`: every finding about rule files, in one run.

Place:   over lang; reads background and sample only to say which queries nothing can match.
Method:  all files are read together, as they would be deployed. Findings are data: they go to standard
         output, and the exit code is 1 when one of them is an error, a missing file included.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import islice

import click

from dotr.cli.render import note, visible
from dotr.core.parts import all_triples
from dotr.errors import Diagnostic, Diagnostics, DotrError, Severity, UsageError
from dotr.io.files.rule_texts import read_rules_text
from dotr.ir import Program
from dotr.lang import check_program
from dotr.lang.checks.vocabulary import Vocabulary, add_heads, check_vocabulary
from dotr.lang.explain import explain, similar

_SAMPLE = 10_000
"""Graphs of a sample that are looked at."""


@click.command(short_help="All diagnostics of rule files.")
@click.argument("rules", metavar="RULES...", nargs=-1)
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", help="Default: text."
)
@click.option(
    "--sample", multiple=True, metavar="SOURCE", help="Graphs of the stream: finds queries nothing can match."
)
@click.option(
    "--explain", "code", metavar="CODE", help="What a code means, with a wrong and a right example."
)
def command(rules: tuple[str, ...], format_: str, sample: tuple[str, ...], code: str | None) -> int:
    """Check .dotr and .dlog files together: syntax, names, queries, windows, Datalog.

    Prints all findings; the exit code is 1 when there are errors.
    """
    if code is not None:
        return _explain(code)
    if not rules:
        raise click.UsageError("name one or more rule files, or --explain CODE")
    program, found = check_program(rules, read_rules_text)
    if program is not None and (program.background or sample):
        found += _vocabulary(program, sample)
    if format_ == "json":
        sys.stdout.write(json.dumps({"diagnostics": [as_json(d) for d in found]}, ensure_ascii=False) + "\n")
    else:
        for diagnostic in found:
            sys.stdout.write(visible(diagnostic.render()) + "\n")
        note(_summary(found, len(rules)))
    return 1 if any(d.severity is Severity.ERROR for d in found) else 0


def _explain(code: str) -> int:
    page = explain(code)
    if page is None:
        raise UsageError(Diagnostic("D4135", f"there is no code `{code}`", hint=similar(code)))
    sys.stdout.write(page + "\n")
    return 0


def _summary(found: Sequence[Diagnostic], files: int) -> str:
    counts = [
        f"{number} {severity if severity is Severity.INFO or number == 1 else f'{severity}s'}"
        for severity in Severity
        if (number := sum(d.severity is severity for d in found))
    ]
    return f"{', '.join(counts) or 'nothing to say'} in {files} file{'s' if files != 1 else ''}"


def _vocabulary(program: Program, sample: Sequence[str]) -> list[Diagnostic]:
    """Queries that nothing can match, given background, Datalog heads and a sample."""
    from dotr.io.files.background import read_background  # noqa: PLC0415  # start-up: many programs have none
    from dotr.io.files.sources import Sources  # noqa: PLC0415

    found = Diagnostics()
    vocabulary = Vocabulary()
    try:
        vocabulary.add(read_background(program.background, named=program.named))
        if sample:
            for graph in islice(Sources(sample), _SAMPLE):
                vocabulary.add(all_triples(graph.triples))
    except DotrError as error:
        return list(error.diagnostics)
    add_heads(program, vocabulary)
    check_vocabulary(program, vocabulary, sampled=bool(sample), found=found)
    return found.found


def as_json(diagnostic: Diagnostic) -> dict[str, object]:
    """A diagnostic as `--format json` prints it; lines and columns from 1, `range` null without a place."""
    span = diagnostic.span
    notes = [f"found: {diagnostic.label}"] if diagnostic.label else []
    place: dict[str, object] | None = None
    if span is not None:
        start, end = (span.source.position(offset) for offset in (span.start, span.end))
        place = {
            "start": {"line": start[0], "column": start[1]},
            "end": {"line": end[0], "column": end[1]},
        }
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "file": span.source.name if span is not None else diagnostic.place,
        "range": place,
        "message": diagnostic.message,
        "notes": [*notes, *diagnostic.notes],
        "hint": diagnostic.hint,
    }
