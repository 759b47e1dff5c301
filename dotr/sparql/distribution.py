"""Rows of a shape to the facts of its members.

Place:   last step of extraction: which member gets which row, in which order, with which ordinal.
Method:  language.md, sec. 1, "Canonical order of facts". One index for the first comparison; passing rows are
         tested for the others. Members with the same constants share one list of facts. If the reader can
         compare itself (`Shares`), members have a base: the facts of all of them, made once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from dotr.codegen import Names, row_of
from dotr.events import Fact, Time
from dotr.expressions.value_operators import Truth
from dotr.rdf.memo import Memo
from dotr.rdf.order import TermKey, values_key
from dotr.rdf.terms import XSD_FLOAT, Term
from dotr.rdf.values import Value, decode
from dotr.sparql.comparison_index import HOLDS, ComparisonIndex
from dotr.sparql.full import widened
from dotr.sparql.shapes import Comparison
from dotr.sparql.solution_operators import Row

_FLOAT = f'"^^<{XSD_FLOAT}>'


def facts_of(
    rows: Iterable[Row], time: Time, key: Callable[[Row], tuple[TermKey, ...]] = values_key
) -> list[Fact]:
    """Rows as facts in canonical order, equal ones numbered from 0. `key`: that of a literal reading."""
    facts: list[Fact] = []
    last: Row | None = None
    ordinal = 0
    for row in sorted(rows, key=key):
        ordinal = ordinal + 1 if row == last else 0
        last = row
        facts.append((time, row, ordinal, ""))
    return facts


def attributes(row: Row) -> Row:
    """A row in the form of a fact: an xsd:float becomes the xsd:double of the same value."""
    for term in row:
        if term is not None and term.endswith(_FLOAT) and term[0] == '"':
            return widened([row])[0]
    return row


Sizes: TypeAlias = Callable[[Term | None], int | None]
"""The measure of a term; None if it passes no constant."""

Shares: TypeAlias = Callable[[str, Sequence[Term]], Sizes | None]
"""(operator, constants) → the measure by which the reader of the facts can decide which terms pass, or None.
A term of greater measure passes every constant that the other passes."""


class ShapeGroup:
    """Streams that get the same facts: same shape, same constants. `fed`: the names of the facts."""

    __slots__ = ("constants", "fed", "rows", "streams")

    def __init__(self, constants: tuple[Term, ...], streams: Sequence[str], shared: bool) -> None:
        self.constants = constants
        self.streams = tuple(streams)
        self.fed = self.streams[:1] if shared else self.streams
        self.rows: list[Row] = []


class Distribution:
    """Owns the members of one shape. Rows have the shape's columns, members' own columns first."""

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
        self._sizes: Sizes | None = None
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
                self._sizes = shares(self.first.operator, [group.constants[0] for group in self.groups])
                if self._sizes is not None:
                    self.base = f"{self.groups[0].streams[0]}|any"
        self._address()
        self._streams: Memo[Term, tuple[str, ...]] = Memo(
            self._streams_for, limit=max(256, (1 << 21) // max(1, len(self._everybody)))
        )

    def _address(self) -> None:
        """Set `everybody`, the members that get every row as it is, if no row must be tested for that."""
        self._everybody = tuple(stream for group in self.groups for stream in group.fed)
        self.everybody = self._everybody if self.index is None else ()

    def part(self) -> None:
        """Give every member its own facts instead of a base. Before the first row."""
        self.base, self._sizes = "", None

    def _streams_for(self, term: Term) -> tuple[str, ...]:
        """The streams that get a row with this value at the compared place, without further comparisons."""
        if self.index is None:
            return self._everybody
        return tuple(s for member in self.index.passing(term) for s in self.groups[member].fed)

    def same(self) -> Iterator[tuple[str, str]]:
        """(stream, the one under whose name its facts are passed), if not its own."""
        for group in self.groups:
            for stream in group.streams[len(group.fed) :]:
                yield stream, group.fed[0]

    def filters(self) -> Iterator[tuple[str, str, Term]]:
        """With a base: (stream, operator, constant) of each member."""
        for group in self.groups:
            for stream in group.streams:
                yield stream, self.first.operator, group.constants[0]

    @property
    def streams(self) -> tuple[str, ...]:
        """Every member."""
        return tuple(stream for group in self.groups for stream in group.streams)

    def reached(self, rows: Iterable[Row]) -> list[str]:
        """The members that get any of the rows."""
        return [stream for group, _ in self.share(rows) for stream in group.streams]

    def share(self, rows: Iterable[Row]) -> list[tuple[ShapeGroup, list[Row]]]:
        """Each group that gets rows, with these over its own columns, in order of arrival."""
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
        """Non-empty lists of rows as attributes, and the streams that get them. Without a base."""
        for group, own in self.share(rows):
            yield group.fed, list(map(attributes, dict.fromkeys(own) if self._distinct else own))

    def facts(self, rows: Sequence[Row], time: Time, result: dict[str, list[Fact]]) -> None:
        """Put the facts of every member into `result`; with a base, only the base's.

        Members may share a list.
        """
        if self._sizes is not None:
            facts = self._sized(rows, time, self._sizes)
            if facts:
                result[self.base] = facts
        elif len(rows) == 1 and not self._others:
            self._one(rows[0], time, result)
        else:
            for group, own in self.share(rows):
                facts = facts_of(map(attributes, dict.fromkeys(own) if self._distinct else own), time)
                for stream in group.fed:
                    result[stream] = facts

    def _sized(self, rows: Sequence[Row], time: Time, size_of: Sizes) -> list[Fact]:
        """Facts of the base, each with its measure. Those that no member takes are left out; among equal ones
        greater measures come first, so that they are numbered like each member's own facts.
        """
        place = self._place
        if self._distinct:
            rows = list(dict.fromkeys(rows))
        sized = [(attributes(row), size) for row in rows if (size := size_of(row[place])) is not None]
        if len(sized) > 1:
            sized.sort(key=lambda one: (values_key(one[0]), -one[1]))
        facts = []
        last: Row | None = None
        ordinal = 0
        for values, size in sized:
            ordinal = ordinal + 1 if values == last else 0
            last = values
            facts.append((time, values, ordinal, "", size))
        return facts  # type: ignore[return-value]  # see Filtered

    def _one(self, row: Row, time: Time, result: dict[str, list[Fact]]) -> None:
        streams = self._everybody
        if self.index is not None:
            term = row[self._place]
            if term is None:
                return
            streams = self._streams[term]
            row = row[: self._width]
        facts = [(time, attributes(row), 0, "")]
        for stream in streams:
            result[stream] = facts

    def add(self, rows: Sequence[Row], time: Time, result: defaultdict[str, list[Fact]]) -> None:
        """Add the facts of every member to those of earlier instants."""
        found: dict[str, list[Fact]] = {}
        self.facts(rows, time, found)
        for stream, facts in found.items():
            result[stream] += facts

    def lines_of_one(self, columns: Sequence[str], literal: Sequence[bool], names: Names) -> list[str]:
        """Source lines of `add` for one row, over `time` and `result`. Takes the names of its values, none
        unbound, and whether each may be a literal.
        """
        if self._others:
            return [f"{names.bind(self.add, 'FACTS')}([{row_of(columns)}], time, result)"]
        own = columns[: self._width]
        row = row_of([_attribute(c, names) if may else c for c, may in zip(own, literal, strict=False)])
        if self._sizes is not None:
            size = f"size = {names.bind(self._sizes, 'SIZE')}({columns[self._place]})"
            fact = f"(time, {row}, 0, '', size)"
            return [size, f"if size is not None: result[{names.bind(self.base, 'BASE')}].append({fact})"]
        fact = f"(time, {row}, 0, '')"
        if self.index is None and len(self._everybody) == 1:
            return [f"result[{names.bind(self._everybody[0], 'STREAM')}].append({fact})"]
        streams = names.bind(self._everybody if self.index is None else self._streams, "STREAMS")
        chosen = "" if self.index is None else f"[{columns[self._place]}]"
        return [f"fact = {fact}", f"for stream in {streams}{chosen}: result[stream].append(fact)"]


def _attribute(column: str, names: Names) -> str:
    """Source of a value in the form of a fact. (Testing one character costs a third of `endswith`.)"""
    widen, float_ = names.bind(_widen, "WIDE"), names.bind(_FLOAT, "FLOAT")
    return f"({widen}({column}) if {column}[-2] == 't' and {column}.endswith({float_}) else {column})"


def _widen(term: Term) -> Term | None:
    return attributes((term,))[0]
