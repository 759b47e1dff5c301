"""What a sample shows about a program, as findings with places, and how far each rule came.

Place:   `dotr check --sample` asks for everything; the end of `dotr run` asks why rules had no event: what
         their queries and conditions lacked on the first graphs, by one pass over a bounded sample.
Method:  two runs over the sample: one with every query unfiltered and every rule conjunct by conjunct, one
         more for the pieces of those queries that have no row. Findings of queries come before those of the
         rules that use them; a rule is not blamed for what its queries lack.
         Of an unfiltered query the outermost FILTERs are taken off and all variables selected, so that the
         rows are what the filters were asked about. Where it has none, its pattern is asked for piece by
         piece, each next to what it shares a variable with: the first piece that brings the number to nothing
         is the one to look at.
         Times of the sample: where they come from, what else could be one, and whether the unit is right;
         io/time.py determines how a time is found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from dotr import program
from dotr.core.deployment import Background, Deployment
from dotr.core.funnel import Funnel
from dotr.detect.analysis import parts
from dotr.errors import Diagnostic, Diagnostics, DotrError, Severity
from dotr.events import Time, all_triples
from dotr.expressions.rhythms import ticks_between
from dotr.extract.printing import Writer
from dotr.extract.rewriting import visible
from dotr.program import Choose, Position, Program, Rule, Select, Tick, Triples, Var
from dotr.rdf.terms import Term, is_literal, literal_parts
from dotr.regex import regex
from dotr.source import Span
from dotr.survey.conditions import (
    ENOUGH,
    Kinds,
    RuleProbe,
    SolutionTable,
    asks_a_graph,
    is_time,
    judge,
    kinds_of,
    listed,
    mixed,
    probe_rule,
    report_kinds,
)
from dotr.survey.queries import Observed, Probes, Sample
from dotr.survey.sequences import count_sequence, judge_sequence


def unfiltered(select: program.Select) -> program.Select:
    """The query with all its variables and without the filters that `filters` gives."""
    kept = tuple(
        e for e in select.where.elements if not (isinstance(e, program.Filter) and _is_judged(e.condition))
    )
    return all_variables(program.GroupPattern(kept), select)


def filters(select: program.Select) -> list[program.Expression]:
    """The parts of a query's outermost filters, those apart that ask the graph again."""
    conditions = [e.condition for e in select.where.elements if isinstance(e, program.Filter)]
    return [part for condition in conditions if _is_judged(condition) for part in parts(condition)]


def _is_judged(condition: program.Expression) -> bool:
    return not asks_a_graph(condition)


def all_variables(where: program.GroupPattern, select: program.Select) -> program.Select:
    """SELECT of every variable that a group binds; a trailing VALUES of the query is kept."""
    names = dict.fromkeys(
        (*visible(where), *(v.name for v in (select.values.variables if select.values else ())))
    )
    return program.Select(
        tuple(program.Projection(program.Var(name)) for name in names), where, values=select.values
    )


class QueryPiece(Struct, frozen=True):
    """A part of a query's pattern that can bring the number of rows to nothing."""

    text: str
    span: Span | None
    elements: tuple[program.Element, ...]


class PieceCounts(Struct, frozen=True):
    """How many rows a query has up to each of its pieces."""

    pieces: Sequence[QueryPiece]
    seen: Sequence[Observed]

    @property
    def stop(self) -> tuple[QueryPiece, int] | None:
        """The first piece without a row, and how many there were before it (0 where it is the first); None
        where that is not known.
        """
        before = 0
        for piece, observed in zip(self.pieces, self.seen, strict=True):
            if not observed.count:
                return None if observed.partial else (piece, before)
            before = observed.count
        return None


def probe_pieces(probes: Probes, select: program.Select) -> PieceCounts:
    """Look at a query's pattern piece by piece."""
    pieces = ordered(list(_pieces(select.where)))
    seen = []
    elements: list[program.Element] = []
    for piece in pieces:
        elements += piece.elements
        seen.append(probes.query(all_variables(program.GroupPattern(tuple(elements)), select)))
    return PieceCounts(pieces, seen)


def _pieces(group: program.GroupPattern) -> Iterator[QueryPiece]:
    for element in group.elements:
        match element:
            case program.Triples(patterns):
                for pattern in patterns:
                    yield QueryPiece(_text(pattern), pattern.span, (program.Triples((pattern,)),))
            case program.Filter(condition) if not _is_judged(condition):
                yield QueryPiece("FILTER EXISTS", condition.span, (element,))
            case program.Filter() | program.Bind() | program.OptionalGroup():
                continue  # takes no row away (a filter is judged by itself)
            case program.GroupPattern(span=span):
                yield QueryPiece("a group", span, (element,))
            case _:
                name = type(element).__name__
                yield QueryPiece({"SubSelect": "a subquery"}.get(name, name.upper()), None, (element,))


def _text(pattern: program.TriplePattern) -> str:
    span = pattern.span
    return "a pattern" if span is None else " ".join(span.source.text[span.start : span.end].split())


def ordered(pieces: list[QueryPiece]) -> list[QueryPiece]:
    """The pieces as written, but each next to one that it shares a variable with, where there is one: else
    every row of the one would be paired with every row of the other.
    """
    left, found = list(pieces), list[QueryPiece]()
    known: set[str] = set()
    while left:
        names = [set(visible(program.GroupPattern(piece.elements))) for piece in left]
        chosen = next((i for i, own in enumerate(names) if not known or own & known or not own), 0)
        known |= names[chosen]
        found.append(left.pop(chosen))
    return found


class Survey(Struct, frozen=True):
    """The findings of a sample. `error`: what ended it early. `counts`: of each sequence."""

    found: Diagnostics
    error: DotrError | None = None
    counts: Mapping[str, Funnel] = {}


def survey(
    program: Program,
    background: Background,
    sample: Sample,
    *,
    streams: Collection[str] | None = None,
    rules: Collection[str] | None = None,
    closed: bytes | None = None,
) -> Survey:
    """Check the queries and rules of a program on a sample.

    `streams`, `rules`: the queries and rules that are examined; None for all. `closed`: the program's closed
    background, if it is known.
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
    counts: dict[str, Funnel] = {}
    for probe in probed:
        _judge_rule(probe, sample, found)
        if probe.rule.kind == "sequence":
            counts[probe.rule.name] = count_sequence(probe.rule, probe.facts, sample.clock)
    return Survey(found, error, counts)


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
    needed = {t.stream for rule in program.rules if isinstance(t := rule.triggering, Position)}
    return needed | {choice.position.stream for rule in program.rules for choice in rule.required}


_NUMBER_AT_END: Final = regex(r"\s([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)$")
"""The object of a pattern that is a number."""


def _report_piece(
    name: str, piece: QueryPiece, before: int, pieces: Collection[QueryPiece], report: Callable[..., None]
) -> None:
    constant = _NUMBER_AT_END.search(piece.text)
    by_value = None
    if constant is not None:
        compared = f"`?n FILTER(?n = {constant[1]})`"
        by_value = f"1 and 1.0 are two terms: {compared} compares values, whatever their datatype"
    if piece is next(iter(pieces)):
        report("D2517", f"nothing matches `{piece.text}` in query `{name}`", piece.span, hint=by_value)
        return
    report(
        "D2517",
        f"nothing matches `{piece.text}` together with the patterns before it in query `{name}`",
        piece.span,
        notes=(f"the patterns before it have {before:,} row{'' if before == 1 else 's'}",),
        hint=by_value or "check what joins them: the shared variable has no value in common",
    )


# -- rules ---------------------------------------------------------------------------------------------


def _judge_rule(probe: RuleProbe, sample: Sample, found: Diagnostics) -> None:
    """Report conditions of a rule, and windows in which nothing lies."""
    rule = probe.rule
    if rule.kind == "sequence":
        judge_sequence(rule, probe.facts, sample.clock, found)
        return
    where = f"rule `{rule.name}`"
    for number, conjunct in enumerate(rule.conjuncts):
        if not probe.prefixes[number].count or not probe.facts[conjunct.position.stream].count:
            continue
        pairs = probe.pairs(number, sample.clock)
        if pairs.rows:
            judge(pairs, parts(conjunct.on), where, found, chosen=isinstance(conjunct, Choose))
        elif conjunct in rule.required and not probe.prefixes[number].partial:
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
        hint="write a longer window, or check that all times have the same unit",
    )


def _seconds(micros: Time) -> str:
    return f"{micros / 1_000_000:,.6f}".rstrip("0").rstrip(".") + " s"


_CAUSES: Final = frozenset(("D2511", "D2512", "D2517", "D2518", "D2519"))

_MOST_TICKS: Final = 10_000
"""Ticks of a sample up to which a rule that they trigger is evaluated."""

_MOST: Final = 20
"""Rules without an event that are evaluated conjunct by conjunct."""


def why_silent(deployment: Deployment, events: Mapping[str, int], sample: Sample) -> list[Diagnostic]:
    """Why rules without an event had none: what their queries and conditions lacked."""
    program = deployment.program
    silent = [rule for rule in program.rules if not events.get(rule.name) and not rule.private]
    silent = [rule for rule in silent if _ticks(rule, sample) <= _MOST_TICKS]
    read = {position.stream for rule in silent for position in rule.positions}
    silent += [rule for rule in program.rules if rule.kind == "sequence" and rule.name in read]
    needed: set[str] = set()
    for rule in silent:
        first = [t] if isinstance(t := rule.triggering, Position) else []
        first += rule.positions if rule.kind == "sequence" else ()
        needed |= {p.stream for p in (*first, *(choice.position for choice in rule.required))}
    streams = needed & program.written.keys()
    if not silent or not sample.graphs:
        return []
    seen = survey(
        program,
        deployment.background,
        sample,
        streams=streams,
        rules=[rule.name for rule in silent[:_MOST]],
        closed=deployment.closed_background().save(),
    )
    causes = [d for d in seen.found.found if d.code in _CAUSES]
    likely = [d for d in causes if d.severity is Severity.WARNING]
    return likely or [d for d in causes if d.severity is Severity.INFO]  # of few facts, if there is no better


def _ticks(rule: Rule, sample: Sample) -> int:
    if not isinstance(rule.trigger, Tick) or not sample.graphs:
        return 0
    times = [time for time, _ in sample.graphs]
    return ticks_between(rule.trigger.rhythm, min(times), max(times))


_YEAR_5000: Final = 95_617_584_000 * 1_000_000
"""Microseconds from 1970: integer times beyond it are hardly seconds."""

_MILLIS: Final = re.compile(r"1[0-9]{12}")
_TEXT_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}.*")


def check_times(
    sample: Sample, time_sources: Mapping[str, int], prefixes: Mapping[str, str], found: Diagnostics
) -> None:
    """Report integer times that are not what they count, D2516, and other properties of times, D2515.

    `time_sources`: how the times of graphs were found, and how often.
    """
    _check_unit(sample, found)
    writer = Writer(prefixes)
    used = ", ".join(time_sources)
    for predicate, count, example, kind in _like_times(sample):
        shown = writer.term(predicate)
        name = predicate[1:-1].replace("#", "/").rpartition("/")[2]  # sources have prefixes that all know
        ends = shown.split(":")[-1], f":{name}"
        if predicate[1:-1] in used or any(time_source.endswith(ends) for time_source in time_sources):
            continue
        found.info(
            "D2515",
            f"{shown} has {kind}, in {count:,} graphs, such as {example}",
            notes=(f"the time of a graph is taken from: {used}",) if used else (),
            hint=f"--time-path {predicate[1:-1]}, if that is the time of a graph",
        )


def _check_unit(sample: Sample, found: Diagnostics) -> None:
    clock = sample.clock
    if not clock.integer or not sample.graphs:
        return
    time = sample.graphs[len(sample.graphs) // 2][0]
    if abs(time) < _YEAR_5000:
        return
    unit = {1_000_000: "seconds", 1_000: "milliseconds"}.get(clock.unit)
    if unit is None:
        return
    digits = len(str(abs(time // clock.unit)))
    better = "ms" if digits <= 14 else "us"
    found.warning(
        "D2516",
        f"times such as {clock.text(time)}, counted in {unit}, lie beyond the year 5000",
        notes=(f"they have {digits} digits",),
        hint=f"--time-unit {better}: then windows are as long as they are written",
    )


def _like_times(sample: Sample) -> list[tuple[Term, int, Term, str]]:
    """(property, graphs that have it, one of its values, what that looks like), the commonest first."""
    counts: Counter[Term] = Counter()
    examples: dict[Term, tuple[Term, str]] = {}
    for _, part in sample.graphs:
        seen = set()
        for _, predicate, value in all_triples(part):
            kind = _kind(value)
            if kind and predicate not in seen:
                seen.add(predicate)
                examples.setdefault(predicate, (value, kind))
        counts.update(seen)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(predicate, count, *examples[predicate]) for predicate, count in ranked[:5]]


def _kind(value: Term) -> str:
    if not is_literal(value):
        return ""
    if is_time(value):
        return "times"
    lexical, datatype, _ = literal_parts(value)
    if _TEXT_TIME.fullmatch(lexical):
        return "strings that look like times"
    return (
        "integers of 13 digits (milliseconds?)"
        if _MILLIS.fullmatch(lexical) and "integer" in datatype
        else ""
    )
