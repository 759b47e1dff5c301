"""Rows of a shape to the facts of its members.

Place:   last step of extraction: who gets which row, in which order, with which ordinal.
Method:  language.md, sec. 1, "Canonical order of facts". One index for the first comparison; what it lets
         through is tested for the others. Members with the same constants share one list of facts. Where the
         reader can compare by itself (`Shares`), members have a base: the facts of all of them, made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from dotr.events import Fact, Time
from dotr.expressions.operators import Truth
from dotr.rdf.memo import Memo
from dotr.rdf.order import values_key
from dotr.rdf.terms import XSD_FLOAT, Term
from dotr.rdf.values import Value, decode, number, single
from dotr.sparql.comparison_index import HOLDS, ComparisonIndex
from dotr.sparql.full import widened
from dotr.sparql.operators import Row
from dotr.sparql.shapes import Comparison

_FLOAT = f'"^^<{XSD_FLOAT}>'


def facts_of(rows: Iterable[Row], time: Time) -> list[Fact]:
    """Rows as facts in canonical order, numbered from 0 among equal ones."""
    facts: list[Fact] = []
    last: Row | None = None
    ordinal = 0
    for row in sorted(rows, key=values_key):
        ordinal = ordinal + 1 if row == last else 0
        last = row
        facts.append((time, row, ordinal, ""))
    return facts


def attributes(row: Row) -> Row:
    """A row as a fact has it: an xsd:float is the xsd:double of the same value."""
    for term in row:
        if term is not None and term[0] == '"' and term.endswith(_FLOAT):
            return widened([row])[0]
    return row


Shares: TypeAlias = Callable[[str, Term], bool]
"""Whether who reads the facts can itself tell those that pass `operator constant`."""


def _survives_widening(constant: Term) -> bool:
    """Whether comparing an xsd:float with it is comparing the xsd:double that the float becomes in a fact."""
    value = number(constant)
    return value is not None and single(float(value)) == value


class AmbiguousError(Exception):
    """A row that a base cannot stand for: as an xsd:float it passes other constants than as the xsd:double
    that it becomes in a fact. `distribution`: whose row it is.
    """

    def __init__(self, distribution: Distribution) -> None:
        super().__init__(distribution)
        self.distribution = distribution


class ShapeGroup:
    """Streams that get the same facts: same shape, same constants. `told`: those they are given under."""

    __slots__ = ("constants", "rows", "streams", "told")

    def __init__(self, constants: tuple[Term, ...], streams: Sequence[str], shared: bool) -> None:
        self.constants = constants
        self.streams = tuple(streams)
        self.told = self.streams[:1] if shared else self.streams
        self.rows: list[Row] = []


class Distribution:
    """Owns the members of one shape. Rows come in over the shape's columns, members' own columns first."""

    def __init__(
        self,
        members: Mapping[tuple[Term, ...], Sequence[str]],
        comparisons: Sequence[Comparison],
        columns: Sequence[str],
        width: int,
        *,
        distinct: bool = False,
        shares: Shares | None = None,
    ) -> None:
        self.base = ""
        self._fragile = False
        shared = shares is not None
        self.groups = [ShapeGroup(constants, streams, shared) for constants, streams in members.items()]
        self._width = width
        self._distinct = distinct
        self._places = [columns.index(c.variable) for c in comparisons]
        first = min(range(len(comparisons)), key=lambda i: (comparisons[i].operator != "=", i), default=None)
        self.index: ComparisonIndex | None = None
        self._others: list[tuple[int, Callable[[Value, Value], Truth], list[Value]]] = []
        if first is not None:
            self.first = comparisons[first]
            self._place = self._places[first]
            self.index = ComparisonIndex(self.first.operator, [g.constants[first] for g in self.groups])
            self._others = [
                (self._places[i], HOLDS[c.operator], [decode(g.constants[i]) for g in self.groups])
                for i, c in enumerate(comparisons)
                if i != first
            ]
            if shares is not None and not self._others and self._place < width == len(columns):
                operator = self.first.operator
                constants = [group.constants[0] for group in self.groups]
                if all(shares(operator, constant) for constant in constants):
                    self.base = f"{self.groups[0].streams[0]}|any"
                    self._fragile = not all(map(_survives_widening, constants))
        self._address()
        self._streams: Memo[Term, tuple[str, ...]] = Memo(
            self._streams_for, limit=max(256, (1 << 21) // max(1, len(self._everybody)))
        )

    def _address(self) -> None:
        """Say who gets every row as it is, if no row must be looked at for that: `everybody`."""
        self._everybody = tuple(stream for group in self.groups for stream in group.told)
        if self.base:
            self._everybody = (self.base,)
        self.everybody = self._everybody if self.base or self.index is None else ()

    def unshare(self) -> None:
        """Give every member its own facts from now on."""
        self.base = ""
        self._address()
        self._streams.clear()

    def attributes(self, row: Row) -> Row:
        """A row as a fact has it. Raises AmbiguousError."""
        wide = attributes(row)
        if wide is not row and self.base and self._fragile and self.index is not None:
            before, after = row[self._place], wide[self._place]
            if self.index.passing(before) != self.index.passing(after):
                raise AmbiguousError(self)
        return wide

    def _streams_for(self, term: Term) -> tuple[str, ...]:
        """The streams that get a row with this value at the compared place, if nothing else is compared."""
        if self.index is None or self.base:
            return self._everybody
        return tuple(s for member in self.index.passing(term) for s in self.groups[member].told)

    def same(self) -> Iterator[tuple[str, str]]:
        """(stream, the one under which its facts are given) of streams that get none under their own name."""
        for group in self.groups:
            for stream in group.streams[len(group.told) :]:
                yield stream, group.told[0]

    def filters(self) -> Iterator[tuple[str, int, str, Term]]:
        """With a base: (stream, the attribute compared, operator, constant) of each member."""
        for group in self.groups:
            for stream in group.streams:
                yield stream, self._place, self.first.operator, group.constants[0]

    @property
    def streams(self) -> tuple[str, ...]:
        """Every member."""
        return tuple(stream for group in self.groups for stream in group.streams)

    def reached(self, rows: Iterable[Row]) -> list[str]:
        """The members that get some of the rows."""
        return [stream for group, _ in self.share(rows) for stream in group.streams]

    def share(self, rows: Iterable[Row]) -> list[tuple[ShapeGroup, list[Row]]]:
        """Each group that gets something, with its rows over its own columns, as they came."""
        if self.index is None:
            rows = list(rows)
            return [(group, rows) for group in self.groups if rows]
        touched: list[ShapeGroup] = []
        passing, place, width, others = self.index.passing, self._place, self._width, self._others
        for row in rows:
            own = row[:width]
            for member in passing(row[place]):
                if others and not self._passes(row, member):
                    continue
                group = self.groups[member]
                if not group.rows:
                    touched.append(group)
                group.rows.append(own)
        found = [(group, group.rows) for group in touched]
        for group in touched:
            group.rows = []
        return found

    def _passes(self, row: Row, member: int) -> bool:
        for place, holds, constants in self._others:
            term = row[place]
            if term is None or holds(decode(term), constants[member]) is not True:
                return False
        return True

    def split(self, rows: Iterable[Row]) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
        """Lists of rows as attributes and the streams that get them; no list is empty."""
        if self.base:
            found = [(self._everybody, list(rows))]
        else:
            found = [(group.told, own) for group, own in self.share(rows)]
        for streams, own in found:
            if own:
                own = list(dict.fromkeys(own)) if self._distinct else own
                yield streams, list(map(self.attributes, own))

    def facts(self, rows: Sequence[Row], time: Time, result: dict[str, list[Fact]]) -> None:
        """Put the facts of every member that has some into `result`; with a base, the base's alone.

        Members may get the same list.
        """
        if len(rows) == 1 and not self._others:
            self._one(rows[0], time, result)
            return
        if self.base:
            if rows:
                result[self.base] = self._made(rows, time)
            return
        for group, own in self.share(rows):
            facts = self._made(own, time)
            for stream in group.told:
                result[stream] = facts

    def _one(self, row: Row, time: Time, result: dict[str, list[Fact]]) -> None:
        streams = self._everybody
        if self.index is not None and not self.base:
            term = row[self._place]
            if term is None:
                return
            streams = self._streams[term]
            row = row[: self._width]
        facts = [(time, self.attributes(row), 0, "")]
        for stream in streams:
            result[stream] = facts

    def _made(self, rows: Sequence[Row], time: Time) -> list[Fact]:
        if self._distinct:
            rows = list(dict.fromkeys(rows))
        return facts_of(map(self.attributes, rows), time)
