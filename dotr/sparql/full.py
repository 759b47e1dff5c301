"""The full SPARQL engine behind the compiled one: pyoxigraph over a store that holds K(t).

Place:   the oracle for what sparql/ compiles or interprets: for `--verify`, the checker of proofs, and tests.
Method:  language.md, sec. 1: pyoxigraph finds the solutions; numbers, aggregates, order and limit are
         computed here, literally.
         The text is built once; the instant's time is inserted as a term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyoxigraph as ox

from dotr.errors import ProgramError
from dotr.events import Values
from dotr.expressions.literal_numbers import order_key
from dotr.ir import Select
from dotr.rdf.canonical import canonical
from dotr.rdf.order import TermKey, term_key
from dotr.rdf.terms import XSD_DOUBLE, XSD_FLOAT, Term
from dotr.rdf.values import Single, decode
from dotr.sparql.oxigraph import CUSTOM_AGGREGATES, FUNCTIONS, Prepared, prepare
from dotr.sparql.printing import NOW_MARK, query_text

_FLOAT = f'"^^<{XSD_FLOAT}>'
_NOT_FINITE = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}
_TRIAL = ox.Store()
_CALLS: Mapping[str, Any] = {"custom_functions": FUNCTIONS, "custom_aggregate_functions": CUSTOM_AGGREGATES}


def widen(term: Term | None) -> Term | None:
    """An xsd:float as the xsd:double of the same value; every other term as it is."""
    if term is None or not term.endswith(_FLOAT):
        return term
    value = decode(term)
    if not isinstance(value, Single):
        return term  # ill-typed stays as it is
    text = repr(float(value))
    return canonical(f'"{_NOT_FINITE.get(text, text)}"^^<{XSD_DOUBLE}>')


def widened(rows: list[Values]) -> list[Values]:
    """Rows as attributes of facts: every xsd:float as an xsd:double."""
    return [tuple(map(widen, row)) if _has_float(row) else row for row in rows]


def _has_float(row: Values) -> bool:
    return any(term is not None and term.endswith(_FLOAT) for term in row)


class Explosion(Exception):  # noqa: N818  # becomes a diagnostic once query and time are known
    """More answers than the limit. `source`: the query, if the raiser knew it."""

    def __init__(self, source: object = None) -> None:
        super().__init__(source)
        self.source = source


class FullQuery:
    """One query, prepared: text, columns to sort by. Holds nothing of any store.

    Raises ProgramError D1290 when pyoxigraph cannot run it.
    """

    def __init__(self, select: Select) -> None:
        self._prepared: Prepared = prepare(select)
        base = self._prepared.base
        text = query_text(self._prepared.select)
        self._parts = (text if base is None else f"BASE {base}\n{text}").split(NOW_MARK)
        try:
            _TRIAL.query(self.text('"0"'), **_CALLS)
        except (SyntaxError, ValueError) as problem:
            raise ProgramError.of(
                "D1290",
                "the full SPARQL engine cannot run this query",
                select.span,
                notes=(f"it says: {' '.join(str(problem).split())[:300]}",),
            ) from problem

    def text(self, now: Term) -> str:
        """The query that pyoxigraph runs."""
        return self._parts[0] if len(self._parts) == 1 else now.join(self._parts)

    @property
    def timeless(self) -> bool:
        """Whether the answers do not depend on the instant's time."""
        return len(self._parts) == 1

    def solutions(self, store: ox.Store, now: Term, limit: int = 2**62) -> list[Values]:
        """Every answer as in SPARQL, in ORDER BY order and cut if the query has that, else canonical.

        Raises Explosion for more than `limit` before the cut.
        """
        found = store.query(self.text(now), **_CALLS)
        if not isinstance(found, ox.QuerySolutions):
            raise TypeError("an ASK query has no solutions: use ask()")
        rows: list[Values] = []
        for solution in found:
            rows.append(tuple([None if term is None else str(term) for term in solution]))
            if len(rows) > limit:
                raise Explosion
        return ordered(rows, self._prepared, order_key)

    def rows(self, store: ox.Store, now: Term) -> list[Values]:
        """The answers as attributes of facts: like `solutions`, with every xsd:float as an xsd:double."""
        return widened(self.solutions(store, now))

    def ask(self, store: ox.Store, now: Term) -> bool:
        """The answer of an ASK query."""
        found = store.query(self.text(now), **_CALLS)
        return bool(found) if isinstance(found, ox.QueryBoolean) else next(iter(found), None) is not None


def ordered(
    rows: list[Values], prepared: Prepared, key: Callable[[Term | None], TermKey] = term_key
) -> list[Values]:
    """Sort by the order columns, then by the whole row; drop the key columns; cut. `rows` is consumed."""
    width = prepared.width
    rows.sort(key=lambda row: tuple(map(key, row[:width])))
    for column, descending in reversed(prepared.order):
        rows.sort(key=lambda row: key(row[column]), reverse=descending)
    if rows and len(rows[0]) > width:
        rows = [row[:width] for row in rows]
        if prepared.select.distinct:
            rows = list(dict.fromkeys(rows))
    end = None if prepared.limit is None else prepared.offset + prepared.limit
    return rows[prepared.offset : end]
