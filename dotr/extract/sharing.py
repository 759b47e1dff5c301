"""Sharing between queries that differ only in names and in compared constants.

Method:  Shapes: before compilation, variables are renamed in order of first appearance. A top-level filter
         that compares a variable with a constant (`?v > 60`) is extracted, and the shape also selects `?v`.
         One shape is compiled and evaluated once for all its members; an index of the members' constants
         decides who gets a row, as in publish/subscribe systems.
         Comparison index: for `<` and similar, constants of one type of value are sorted, and those that a
         value passes are a prefix or a suffix, found by bisection with the operator itself, so that its
         typing and rounding are exact. For `=`, constants are hashed by a key that equal values share (for
         numbers the nearest single), and the operator decides among the few found. Types without an order
         (durations, unknown types) and `!=` are lists. A known value costs one table look-up.
         Distribution: which member gets which row, in which order, with which ordinal (language.md, sec. 1,
         "Canonical order of facts"). The index serves the first comparison; rows that pass are tested for the
         others. Members with the same constants share one list of facts. If the reader can compare itself
         (`Shares`), members have a base: the facts of all of them, made once.
Why not: sharing parts of queries: hand-written rules repeat whole queries, or change a threshold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dotr import program
from dotr.codegen import Names, row_of
from dotr.events import Fact, Time
from dotr.expressions.operators import Truth, at_most, equal, less, to_single
from dotr.extract.algebra import conjuncts
from dotr.extract.full import widened
from dotr.extract.operators import Row
from dotr.extract.rewriting import Rewriter, is_grouped, visible
from dotr.rdf.terms import XSD_FLOAT, Memo, Term
from dotr.rdf.values import (
    DateTime,
    Duration,
    LanguageString,
    Opaque,
    Resource,
    Single,
    TermKey,
    Value,
    decode,
    values_key,
)

_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Comparison(Struct, frozen=True):
    """`variable operator constant`, the constant left open."""

    variable: str
    operator: str


class Shape(Struct, frozen=True):
    """A query without its comparisons; `query` selects `width` projected variables, then the compared
    ones."""

    query: program.Select
    width: int
    comparisons: tuple[Comparison, ...]


def shape_of(select: program.Select) -> tuple[Shape, tuple[Term, ...]]:
    """The shape of a query and its constants, one per comparison."""
    comparisons: list[Comparison] = []
    constants: list[Term] = []
    elements: list[program.Element] = []
    divisible = not (is_grouped(select) or select.order_by or select.ask or select.values is not None)
    scope = set(visible(select.where)) if divisible else set()
    for element in select.where.elements:
        if not isinstance(element, program.Filter):
            elements.append(element)
            continue
        for part in conjuncts(element.condition):
            found = _comparison(part)
            if found is None or found[0].variable not in scope:
                elements.append(program.Filter(part))
            else:
                comparisons.append(found[0])
                constants.append(found[1])
    renamer = Renamer()
    have = select.variables
    asked = dict.fromkeys(c.variable for c in comparisons if c.variable not in have)
    bare = replace(
        select,
        where=program.GroupPattern(tuple(elements)),
        projection=(*select.projection, *(program.Projection(program.Var(name)) for name in asked)),
        star=False,
        reduced=False,
        span=None,
    )
    shape = Shape(
        renamer.select(bare),
        len(select.projection),
        tuple(Comparison(renamer.name(c.variable), c.operator) for c in comparisons),
    )
    return shape, tuple(constants)


def _comparison(condition: program.Expression) -> tuple[Comparison, Term] | None:
    if isinstance(condition, program.Call) and condition.function in _MIRRORED:
        left, right = condition.arguments
        if isinstance(left, program.Var) and isinstance(right, program.Const):
            return Comparison(left.name, condition.function), right.term
        if isinstance(left, program.Const) and isinstance(right, program.Var):
            return Comparison(right.name, _MIRRORED[condition.function]), left.term
    return None


class Renamer:
    """Owns the new names of one query's variables, in order of first appearance."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._walk = Rewriter(self._node, self.select, self._triples, self._var)

    def select(self, select: program.Select) -> program.Select:
        """The query under the new names."""
        return self._walk.select(select)

    def name(self, name: str) -> str:
        new = self._names.get(name)
        if new is None:
            new = self._names[name] = f"{'.b' if name[0] == '.' else 'v'}{len(self._names)}"
        return new

    def _var(self, variable: program.Var) -> program.Var:
        return program.Var(self.name(variable.name))

    def _node(self, expression: program.Expression) -> program.Expression:
        return self._var(expression) if isinstance(expression, program.Var) else expression

    def _triples(self, triples: program.Triples) -> list[program.Element]:
        return [program.Triples(tuple(map(self._pattern, triples.patterns)))]

    def _pattern(self, pattern: program.TriplePattern) -> program.TriplePattern:
        s, p, o = pattern.subject, pattern.predicate, pattern.object
        return program.TriplePattern(
            self._var(s) if isinstance(s, program.Var) else s,
            self._var(p) if isinstance(p, program.Var) else p,
            self._var(o) if isinstance(o, program.Var) else o,
        )


Members = tuple[int, ...]
"""Places of members, ascending."""


def _differs(a: Value, b: Value) -> Truth:
    same = equal(a, b)
    return None if same is None else not same


HOLDS: Final[dict[str, Callable[[Value, Value], Truth]]] = {
    "=": equal,
    "!=": _differs,
    "<": less,
    ">": lambda a, b: less(b, a),
    "<=": at_most,
    ">=": lambda a, b: at_most(b, a),
}
"""`value operator constant`: True, False, or None for an error."""


class ComparisonIndex:
    """Owns the constants of one comparison, one per member. `members`: the table of `passing` and `any`."""

    def __init__(self, operator: str, constants: Sequence[Term]) -> None:
        holds = HOLDS[operator]
        if operator == "=":
            find = _equality(constants)
        elif operator == "!=":
            find = _listed(holds, [(decode(c), i) for i, c in enumerate(constants)])
        else:
            find = _thresholds(operator, constants)
        self.members: Memo[Term, Members] = Memo(find, limit=max(256, (1 << 21) // max(1, len(constants))))

    def passing(self, term: Term | None) -> Members:
        """The members whose comparison is true of a value; empty for an unbound one."""
        return () if term is None else self.members[term]

    def any(self, term: Term) -> bool:
        """Whether there is such a member: a guard for the join."""
        return self.members[term] != ()


def _listed(
    holds: Callable[[Value, Value], Truth], constants: Iterable[tuple[Value, int]]
) -> Callable[[Term], Members]:
    pairs = list(constants)

    def find(term: Term) -> Members:
        value = decode(term)
        return tuple(member for constant, member in pairs if holds(value, constant) is True)

    return find


def _thresholds(operator: str, constants: Sequence[Term]) -> Callable[[Term], Members]:
    """Sorted constants per type. Those passed are a prefix for `>` and `>=`, a suffix for `<` and `<=`."""
    holds = HOLDS[operator]
    upward = operator in (">", ">=")
    sorted_: dict[object, list[tuple[Value, int]]] = {}
    rest: list[tuple[Value, int]] = []
    for member, constant in enumerate(constants):
        value = decode(constant)
        kind = _order(value)
        if kind is None or value != value:  # NaN has no place in the order
            rest.append((value, member))
        else:
            sorted_.setdefault(kind, []).append((value, member))
    for pairs in sorted_.values():
        pairs.sort(key=lambda pair: (_key(pair[0]), pair[1]))
    listed = _listed(holds, rest)

    def find(term: Term) -> Members:
        value = decode(term)
        found: list[int] = list(listed(term)) if rest else []
        for pairs in sorted_.values():
            if upward:
                end = bisect_left(pairs, True, key=lambda pair: holds(value, pair[0]) is not True)
                found += [member for _, member in pairs[:end]]
            else:
                start = bisect_left(pairs, True, key=lambda pair: holds(value, pair[0]) is True)
                found += [member for _, member in pairs[start:]]
        found.sort()
        return tuple(found)

    return find


def _order(value: Value) -> object:
    """What the constants of one sorted list have in common; None without an order."""
    if isinstance(value, DateTime):
        return DateTime, value.zoned
    kind = type(value)
    return kind if kind in (int, Decimal, float, Single, str) else None


def _key(value: Value) -> object:
    return value.ticks if isinstance(value, DateTime) else value


def _equality(constants: Sequence[Term]) -> Callable[[Term], Members]:
    buckets: dict[object, list[tuple[Value, int]]] = {}
    for member, constant in enumerate(constants):
        value = decode(constant)
        buckets.setdefault(_bucket(value), []).append((value, member))

    def find(term: Term) -> Members:
        value = decode(term)
        candidates = buckets.get(_bucket(value), ())
        return tuple(member for constant, member in candidates if equal(value, constant) is True)

    return find


def _bucket(value: Value) -> object:
    """Equal values have equal buckets: for numbers the nearest single, which no promotion separates."""
    if isinstance(value, (Resource, LanguageString)):
        return value.term
    if isinstance(value, DateTime):
        return DateTime, value.ticks
    if isinstance(value, Duration):
        return Duration, value.months, value.ticks
    if isinstance(value, Opaque):
        return Opaque
    if isinstance(value, (bool, str)):
        return type(value), value
    return to_single(value)


_FLOAT = f'"^^<{XSD_FLOAT}>'


def facts_of(
    rows: Iterable[Row], time: Time, key: Callable[[Row], tuple[TermKey, ...]] = values_key
) -> list[Fact]:
    """Rows as facts in canonical order, equal ones numbered from 0. `key`: that of a literal reading."""
    found = list(rows)
    if len(found) == 1:
        return [(time, found[0], 0, "")]
    facts: list[Fact] = []
    last: Row | None = None
    ordinal = 0
    for row in sorted(found, key=key):
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
            self._streams_for, limit=max(256, (1 << 21) // max(1, len(self._all_streams)))
        )

    def _address(self) -> None:
        """Set `unfiltered`, the members that get every row as it is, if no row must be tested for that."""
        self._all_streams = tuple(stream for group in self.groups for stream in group.fed)
        self.unfiltered = self._all_streams if self.index is None else ()

    def part(self) -> None:
        """Give every member its own facts instead of a base. Before the first row."""
        self.base, self._sizes = "", None

    def _streams_for(self, term: Term) -> tuple[str, ...]:
        """The streams that get a row with this value at the compared place, without further comparisons."""
        if self.index is None:
            return self._all_streams
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
        streams = self._all_streams
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
        if self.index is None and len(self._all_streams) == 1:
            return [f"result[{names.bind(self._all_streams[0], 'STREAM')}].append({fact})"]
        streams = names.bind(self._all_streams if self.index is None else self._streams, "STREAMS")
        chosen = "" if self.index is None else f"[{columns[self._place]}]"
        return [f"fact = {fact}", f"for stream in {streams}{chosen}: result[stream].append(fact)"]


def _attribute(column: str, names: Names) -> str:
    """Source of a value in the form of a fact. (Testing one character costs a third of `endswith`.)"""
    widen, float_ = names.bind(_widen, "WIDE"), names.bind(_FLOAT, "FLOAT")
    return f"({widen}({column}) if {column}[-2] == 't' and {column}.endswith({float_}) else {column})"


def _widen(term: Term) -> Term | None:
    return attributes((term,))[0]
