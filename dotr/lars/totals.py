"""Aggregates over pairs of an atom and a point, kept up as pairs come and go.

Place:   the table of an aggregate is read like that of a window atom: rows are the values of PER and the
         total.
Method:  the source is the table of the same window under AT: one row a pair. It notes what begins and ends;
         a group takes that in and out again. Sums are exact, so that taking out leaves no dust; the least and
         greatest value is looked for again when it leaves. Other aggregates are recomputed from all values.
"""

from __future__ import annotations

from collections.abc import Callable

from dotr.budget import EXPRESSION, Meter
from dotr.expressions.aggregates import summarise
from dotr.ir.lars import WindowAggregate
from dotr.lars.window_tables import FOREVER, Agenda, AtomTable, Row
from dotr.rdf.order import term_key
from dotr.rdf.sums import ExactSum
from dotr.rdf.terms import Term, integer

Reading = Callable[[Row], tuple[Row, Term | None] | None]
"""A row of the source → its group and the value aggregated (None: an error); None where it is not meant."""


class Group:
    """Owns a multiset of values as far as one aggregate can tell."""

    __slots__ = ("_counts", "_distinct", "_extreme", "_function", "_size", "_star", "_sum")

    def __init__(self, function: str, distinct: bool, star: bool) -> None:
        self._function, self._distinct, self._star = function, distinct and not star, star
        self._counts: dict[Term | None, int] = {}
        self._size = 0
        self._sum = ExactSum() if function in ("SUM", "AVG") else None
        self._extreme: Term | None = None

    def add(self, term: Term | None) -> None:
        count = self._counts.get(term, 0)
        self._counts[term] = count + 1
        self._size += 1
        if self._sum is not None and not (self._distinct and count):
            self._sum.add(term)
        if count == 0:
            self._extreme = None

    def remove(self, term: Term | None) -> None:
        count = self._counts[term] - 1
        self._size -= 1
        if count:
            self._counts[term] = count
        else:
            del self._counts[term]
            if term == self._extreme:
                self._extreme = None
        if self._sum is not None and not (self._distinct and count):
            self._sum.remove(term)

    def __bool__(self) -> bool:
        return self._size > 0

    def total(self) -> Term | None:
        """The aggregate of at least one pair; None where it has no value."""
        counts = self._counts
        if self._function == "COUNT":
            missing = counts.get(None, 0)
            if self._distinct:
                return integer(len(counts) - (1 if missing else 0))
            return integer(self._size if self._star else self._size - missing)
        if self._sum is not None:
            if self._function == "SUM":
                return self._sum.total()
            return self._sum.mean(len(counts) if self._distinct else self._size)
        if self._function not in ("MIN", "MAX"):
            values = [term for term, count in counts.items() for _ in range(1 if self._distinct else count)]
            return summarise(self._function, self._distinct, values)
        if self._extreme is None:
            present = [term for term in counts if term is not None]
            if present:
                least = self._function == "MIN"
                self._extreme = min(present, key=term_key) if least else max(present, key=term_key)
        return self._extreme


class Totals:
    """Owns the groups of one aggregate and the table of their totals."""

    def __init__(
        self, agenda: Agenda, literal: WindowAggregate, source: AtomTable, reading: Reading, meter: Meter
    ) -> None:
        self.table = AtomTable(agenda)
        self._meter = meter
        self._literal = literal
        self._reading = reading
        self._groups: dict[Row, Group] = {}
        self._shown: dict[Row, Row] = {}
        self._journal: list[tuple[Row, bool]] = []
        self._source = source
        source.journals.append(self._journal)

    def begin(self, now: int, since: int) -> None:
        self.table.expire(now, since)

    def refresh(self) -> None:
        """Take in what came and went in the source since."""
        touched: dict[Row, None] = {}
        self._meter.charge(len(self._journal), f"pairs of {self._literal.atom.name}()", EXPRESSION)
        for row, began in self._journal:
            read = self._reading(row)
            if read is None:
                continue
            key, term = read
            group = self._groups.get(key)
            if group is None:
                literal = self._literal
                group = Group(literal.function, literal.distinct, literal.argument is None)
                self._groups[key] = group
            if began:
                group.add(term)
            else:
                group.remove(term)
            touched[key] = None
        self._journal.clear()
        for key in touched:
            self._show(key)

    def _show(self, key: Row) -> None:
        group = self._groups[key]
        total = group.total() if group else None
        if not group:
            del self._groups[key]
        row = None if total is None else (*key, total)
        before = self._shown.get(key)
        if row == before:
            return
        if before is not None:
            self.table.assign(before, None)
            del self._shown[key]
        if row is not None:
            self.table.extend((row,), FOREVER)
            self._shown[key] = row

    def load(self) -> None:
        """After the source: its rows make the groups."""
        self._journal.clear()
        self._journal += [(row, True) for row in self._source.rows]
        self.refresh()
        self.table.delta = []
        self.table.changed = False
        if self.table.net is not None:
            self.table.net.clear()  # they did not begin now
