"""The languages: .dotr, .dlog, embedded SPARQL. Text → checked program, all findings in one run.

Place:   above enrich/ and extract/, whose checks it calls, and below core/. Reads no file: a function
         `path → text` is passed in.
Method:  loading.py (files, libraries) → grammar/ (a parser for each language; all hold one cursor over
         tokens) → checks/names.py → the checked `Program`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from dotr.collecting import uncollected
from dotr.enrich.rules import check_rules
from dotr.errors import Diagnostic, Diagnostics, ProgramError, Severity
from dotr.lang.checks.advice import advise, check_relations
from dotr.lang.checks.comparisons import check_choices, check_comparisons, check_possible
from dotr.lang.checks.effects import check_cycles
from dotr.lang.checks.lars import check_boxes
from dotr.lang.checks.lasting import check_repeats
from dotr.lang.checks.names import Resolver
from dotr.lang.checks.sequences import check_sequences
from dotr.lang.grammar.cursor import Cursor, Skip
from dotr.lang.grammar.dlog import DatalogParser
from dotr.lang.grammar.expressions import ExpressionParser, Mode
from dotr.lang.grammar.sparql import SparqlParser
from dotr.lang.loading import Loader, Reader
from dotr.lang.operators import check_aggregates
from dotr.program import DatalogRule, Program, Select
from dotr.source import Source, Span

CHECKS: Final = (
    check_relations,
    check_comparisons,
    check_aggregates,
    check_choices,
    check_possible,
    check_repeats,
    check_cycles,
    check_sequences,
)
"""What is not wrong but hardly meant: functions of a program whose rules are right, in this order."""

__all__ = [
    "Reader",
    "check_program",
    "load_program",
    "parse_datalog",
    "parse_program",
    "parse_query",
    "parse_query_and_prefixes",
]


def check_program(
    paths: Sequence[str], read: Reader, removed: Collection[tuple[str, str]] = ()
) -> tuple[Program | None, list[Diagnostic]]:
    """The program of all files together, or None, and everything found, errors, warnings and infos.

    The program is None when there are errors, and when a file is a library whose parameters have no value.
    `removed`: rules to pass over, as (file of `paths`, name).
    """
    found = Diagnostics()
    loader = Loader(read, found, removed)
    loader.paths(paths)
    program = _resolve(loader, found)
    loader.unused_prefixes()
    _advise(program, found)
    if found.errors or loader.loaded.open_parameters:
        return None, _sorted(found.found)
    return program, _sorted(found.found)


def load_program(
    paths: Sequence[str],
    read: Reader,
    removed: Collection[tuple[str, str]] = (),
    parameters: Mapping[str, str] | None = None,
) -> Program:
    """The program of all files together, without `removed`. Raises ProgramError with every error.

    `parameters`: name → value as text, for value parameters that the files themselves declare.
    """
    found = Diagnostics()
    with uncollected():
        loader = Loader(read, found, removed, parameters)
        loader.paths(paths)
        loader.check_parameters()
        return _finish(loader, found, bool(removed))


def parse_program(text: str, name: str = "<text>", read: Reader | None = None) -> Program:
    """The program of one text. Without `read` it may name no other file of rules. Raises ProgramError."""
    found = Diagnostics()
    with uncollected():
        loader = Loader(read, found)
        loader.program(Source(name, text))
        return _finish(loader, found)


def parse_query(
    text: str,
    name: str = "<query>",
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    *,
    canonical: bool = False,
) -> Select:
    """One SELECT or ASK. `prefixes` hold unless the query declares its own. `canonical`: whoever answers it
    orders answers canonically, so that LIMIT needs no ORDER BY. Raises ProgramError.
    """
    return parse_query_and_prefixes(text, name, prefixes, base, canonical=canonical)[0]


def parse_query_and_prefixes(
    text: str,
    name: str = "<query>",
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    *,
    canonical: bool = False,
) -> tuple[Select, dict[str, str]]:
    """As `parse_query`, with the prefixes that hold in the query."""
    found = Diagnostics()
    cursor = Cursor(Source(name, text), found)
    cursor.prefixes.update(prefixes or {})
    cursor.base, cursor.code = base, "D1201"
    expressions = ExpressionParser(cursor, Mode.QUERY, deployed=False)
    parser = SparqlParser(cursor, expressions, canonical=canonical)
    select: Select | None = None
    try:
        select = parser.query(ask=True)
        if cursor.key != "end":
            cursor.fail("the end of the query")
    except Skip:
        pass
    found.raise_errors()
    assert select is not None, "a query that was not read left an error"
    return select, parser.held


def parse_datalog(
    text: str, name: str = "<rules>", prefixes: Mapping[str, str] | None = None
) -> tuple[DatalogRule, ...]:
    """The rules of one .dlog text, not yet checked for safety and strata. `prefixes` hold unless the text
    declares its own. Raises ProgramError.
    """
    found = Diagnostics()
    parser = DatalogParser(Source(name, text), found)
    parser.cursor.prefixes.update(prefixes or {})
    rules = parser.rules()
    found.raise_errors()
    return rules


def _resolve(loader: Loader, found: Diagnostics) -> Program:
    program = Resolver(loader.loaded, found).program()
    found.found += check_rules(program.datalog)
    return program


def _finish(loader: Loader, found: Diagnostics, removed: bool = False) -> Program:
    program = _resolve(loader, found)
    if found.errors:
        raise ProgramError([d for d in _sorted(found.found) if d.severity is Severity.ERROR])
    if loader.loaded.open_parameters:
        raise ProgramError(
            [
                Diagnostic(
                    "D1111",
                    f"the parameter `{parameter.name.text}` has no value",
                    parameter.span,
                    hint="this file is a library: IMPORT it, and give the parameter there",
                )
                for parameter in loader.loaded.open_parameters
            ]
        )
    loader.unused_prefixes()
    _advise(program, found, infos=False)
    return replace(program, warnings=warnings_of(found.found, removed))


def _advise(program: Program, found: Diagnostics, infos: bool = True) -> None:
    """Record what is not wrong and hardly meant."""
    advise(program, found, infos)
    if infos:
        check_boxes(program, found)
    sound = _sound(program, found.errors)
    for check in CHECKS:
        check(sound, found)


def warnings_of(found: list[Diagnostic], removed: bool = False) -> tuple[Diagnostic, ...]:
    """The warnings among findings; where rules were left out, none about queries that only they read."""
    warned = (d for d in _sorted(found) if d.severity is Severity.WARNING)
    return tuple(d for d in warned if not (removed and d.code == "D1117"))


def _sound(program: Program, errors: Sequence[Diagnostic]) -> Program:
    """The program without the rules that have an error in them: what else they say may follow from that."""
    wrong = [error.span for error in errors if error.span is not None]
    rules = tuple(rule for rule in program.rules if not any(_inside(span, rule.span) for span in wrong))
    return replace(program, rules=rules)


def _inside(span: Span, whole: Span | None) -> bool:
    return whole is not None and span.source == whole.source and whole.start <= span.start < whole.end


def _sorted(found: list[Diagnostic]) -> list[Diagnostic]:
    """By file in the order met, then by place; what has no place first."""
    files: dict[str, int] = {}
    for diagnostic in found:
        if diagnostic.span is not None:
            files.setdefault(diagnostic.span.source.name, len(files))
    return sorted(
        found,
        key=lambda d: (-1, 0, 0) if d.span is None else (files[d.span.source.name], d.span.start, d.span.end),
    )
