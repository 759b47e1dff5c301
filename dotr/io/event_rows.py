"""Composite events as rows of one table, for spreadsheets and data frames.

Place:   one of the formats of event_formats.py.
Method:  columns are time, rule, id, then the WITH variables of all rules in program order, each name once;
         terms as in SPARQL 1.1 CSV results: an IRI or a literal's text bare, what a rule does not bind empty.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from dotr.events import Clock, Composite
from dotr.ir import Rule
from dotr.rdf.memo import Memo
from dotr.rdf.terms import Term, is_literal, literal_parts

_OWN: Final = ("time", "rule", "id")


def csv_columns(rules: Iterable[Rule]) -> list[str]:
    """The header. A variable that is called as one of the first three columns keeps its question mark."""
    names = dict.fromkeys(v for rule in rules if not rule.private for v in rule.variables)
    return [*_OWN, *(f"?{name}" if name in _OWN else name for name in names)]


def csv_formatter(rules: Sequence[Rule]) -> tuple[str, Callable[[Sequence[Composite], Clock], str]]:
    """(the header line, how events are written)."""
    columns = csv_columns(rules)
    place = {name.removeprefix("?"): number for number, name in enumerate(columns) if number >= len(_OWN)}
    places = {rule.name: [place[name] for name in rule.variables] for rule in rules if not rule.private}

    def rows(events: Sequence[Composite], clock: Clock) -> str:
        return _written([_row(event, clock, places[event.rule], len(columns)) for event in events])

    return _written([columns]), rows


def csv_solutions(variables: Sequence[str], rows: Iterable[Sequence[Term | None]]) -> str:
    """The solutions of a query as SPARQL 1.1 CSV results have them, but for line ends: what is unbound is
    empty.
    """
    cells = (["" if term is None else _texts[term] for term in row] for row in rows)
    return _written([list(variables), *cells])


def _row(event: Composite, clock: Clock, places: Sequence[int], width: int) -> list[str]:
    row = [""] * width
    row[:3] = clock.text(event.time), event.rule, event.id
    for place, term in zip(places, event.bound, strict=True):
        row[place] = _texts[term]
    return row


def _written(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _text(term: Term) -> str:
    if is_literal(term):
        return literal_parts(term)[0]
    return term if term[0] == "_" else term[1:-1]


_texts: Memo[Term, str] = Memo(_text)
