"""All that a sample says about a program, as findings with places, and how far each rule came.

Place:   `dotr check --sample` asks for everything, the end of a run for what concerns rules without facts.
Method:  two runs over the sample: one with every query unfiltered and every rule conjunct by conjunct, one
         more for the pieces of those queries that have no row. Findings of queries come before those of the
         rules that use them; a rule is not blamed for what its queries lack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from dotr.core.deployment import Background
from dotr.errors import Diagnostics, DotrError
from dotr.events import Time
from dotr.ir import Choose, Position, Program, Select, Triples, Var
from dotr.source import Span
from dotr.survey.decided_conditions import ENOUGH, judge, mixed, report_kinds
from dotr.survey.kinds import Kinds, kinds_of, listed
from dotr.survey.pairs import RuleProbe, probe_rule
from dotr.survey.probes import Observed, Probes
from dotr.survey.query_survey import QueryPiece, filters, probe_pieces, unfiltered
from dotr.survey.rows import SolutionTable
from dotr.survey.sample import Sample
from dotr.tesla.conditions import parts


class Survey(Struct, frozen=True):
    """What a sample says. `error`: what ended it early."""

    found: Diagnostics
    error: DotrError | None = None


def survey(
    program: Program,
    background: Background,
    sample: Sample,
    *,
    streams: Collection[str] | None = None,
    rules: Collection[str] | None = None,
    closed: bytes | None = None,
) -> Survey:
    """Look at the queries and rules of a program on a sample.

    `streams`, `rules`: the queries and rules that are looked at; None for all. `closed`: the program's
    closed background, where somebody has it.
    """
    found = Diagnostics()
    if not sample.graphs:
        return Survey(found)
    asked = {n: q for n, q in program.written.items() if streams is None or n in streams}
    probes = Probes(program)
    rows = {name: probes.query(unfiltered(select)) for name, select in asked.items()}
    facts: dict[str, Observed] = {}
    looked = [r for r in program.rules if rules is None or r.name in rules]
    probed = [probe_rule(probes, rule, facts) for rule in looked]
    error = probes.run(background, sample, closed)
    empty = _judge_queries(asked, rows, sample, found)
    if empty and error is None:
        error = _look_for_pieces(program, background, sample, empty, closed, found)
    for probe in probed:
        _judge_rule(probe, sample, found)
    return Survey(found, error)


# -- queries -------------------------------------------------------------------------------------------


def _judge_queries(
    asked: dict[str, Select], rows: dict[str, Observed], sample: Sample, found: Diagnostics
) -> dict[str, Select]:
    """Report filters and mixed values; the queries that have no row even without filters."""
    empty = {}
    for name, select in asked.items():
        table = _answers(select, rows[name], sample)
        if not table.rows:
            if not rows[name].partial:
                empty[name] = select
            continue
        judge(table, filters(select), f"query `{name}`", found)
        _check_mixed(select, name, table, found)
    return empty


def _answers(select: Select, seen: Observed, sample: Sample) -> SolutionTable:
    names = unfiltered(select).variables
    columns = {f"?{name}": place for place, name in enumerate(names)}
    rows = [(facts[0][0], facts[0][1]) for facts, _ in seen.matches]
    return SolutionTable(sample.clock, columns, rows, seen.count, partial=seen.partial)


def _check_mixed(select: Select, name: str, table: SolutionTable, found: Diagnostics) -> None:
    """Report variables whose values are of kinds that never compare."""
    for variable, place in table.columns.items():
        kinds: Kinds = kinds_of(row[1][place] for row in table.rows)
        if mixed(kinds):
            found.warning(
                "D2514",
                f"`{variable}` of query `{name}` is of several kinds",
                _where(select, variable[1:]),
                notes=(f"it is {listed(kinds, 'rows')}",),
                hint="a comparison is true for one kind at most: turn all into one, as xsd:decimal(?v)",
            )


def _where(select: Select, name: str) -> Span | None:
    """The first pattern that has a variable."""
    for element in select.where.elements:
        if isinstance(element, Triples):
            for pattern in element.patterns:
                if Var(name) in (pattern.subject, pattern.predicate, pattern.object):
                    return pattern.span
    return None


def _look_for_pieces(
    program: Program,
    background: Background,
    sample: Sample,
    empty: dict[str, Select],
    closed: bytes | None,
    found: Diagnostics,
) -> DotrError | None:
    """Report which part of each query's pattern has no row."""
    probes = Probes(program)
    progress = {name: probe_pieces(probes, select) for name, select in empty.items()}
    error = probes.run(background, sample, closed)
    needed = _needed(program)
    for name, of_query in progress.items():
        stop = of_query.stop
        if stop is not None:
            decisive = name in needed and len(sample.graphs) >= ENOUGH
            report = found.warning if decisive else found.info
            _report_piece(name, *stop, of_query.pieces, report)
    return error


def _needed(program: Program) -> set[str]:
    """The queries whose facts a rule needs, not only to find none of them, or to count them."""
    needed = {rule.trigger.stream for rule in program.rules if isinstance(rule.trigger, Position)}
    return needed | {choice.position.stream for rule in program.rules for choice in rule.chosen}


def _report_piece(
    name: str, piece: QueryPiece, before: int, pieces: Collection[QueryPiece], report: Callable[..., None]
) -> None:
    if piece is next(iter(pieces)):
        report("D2517", f"nothing matches `{piece.text}` in query `{name}`", piece.span)
        return
    report(
        "D2517",
        f"nothing matches `{piece.text}` beside what stands before it in query `{name}`",
        piece.span,
        notes=(f"what stands before it has {before:,} rows",),
        hint="look at what joins them: the values of the shared variable never meet",
    )


# -- rules ---------------------------------------------------------------------------------------------


def _judge_rule(probe: RuleProbe, sample: Sample, found: Diagnostics) -> None:
    """Report conditions of a rule, and windows in which nothing lies."""
    rule = probe.rule
    where = f"rule `{rule.name}`"
    for number, conjunct in enumerate(rule.conjuncts):
        if not probe.prefixes[number].count or not probe.facts[conjunct.position.stream].count:
            continue
        pairs = probe.pairs(number, sample.clock)
        if pairs.rows:
            judge(pairs, parts(conjunct.on), where, found, chosen=isinstance(conjunct, Choose))
        elif isinstance(conjunct, Choose) and not probe.prefixes[number].partial:
            _report_window(probe, number, found)
    table = probe.before_where(sample.clock)
    if not table.rows:
        return
    judge(table, parts(rule.where), where, found)
    for binding in rule.bindings:
        value = binding.expression
        if not table.knows(value) or any(term is not None for term in table.values(value)):
            continue
        if not report_kinds(table, value, where, found):
            found.warning(
                "D2519",
                f"`?{binding.variable}` never has a value in {where}",
                binding.span,
                notes=("a match without the value of a WITH variable is not an event",),
                hint="use COALESCE where a value may be missing",
            )


def _report_window(probe: RuleProbe, number: int, found: Diagnostics) -> None:
    conjunct = probe.rule.conjuncts[number]
    gap = probe.nearest(number)
    found.warning(
        "D2518",
        f"no `{conjunct.position.name}` lies in its window in rule `{probe.rule.name}`",
        conjunct.window.span,
        notes=("all of them come later" if gap is None else f"the nearest one is {_seconds(gap)} before",),
        hint="a longer window? Are times of one unit?",
    )


def _seconds(micros: Time) -> str:
    return f"{micros / 1_000_000:,.6f}".rstrip("0").rstrip(".") + " s"
