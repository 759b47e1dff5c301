"""Queries without their filters, and pattern by pattern: how far they come on a sample.

Place:   probed by report.py; what the filters make of the rows says conditions.py.
Method:  the outermost FILTERs are taken off and all variables selected, so that the rows are what the filters
         were asked about. Where there is none, the pattern is asked for piece by piece, each next to what it
         shares a variable with: the first piece that brings the number to nothing is the one to look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from dotr import program
from dotr.detect.analysis import parts
from dotr.extract.rewriting import visible
from dotr.source import Span
from dotr.survey.conditions import asks_a_graph
from dotr.survey.queries import Observed, Probes


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
