"""Units: the queries of one shape, evaluated together at an instant.

MonotoneDelta     unions of conjunctions without background answers: the answers are the kernel's rows
IncrementalView   static answers and changes, any operators
Interpreted       queries that are not compiled
entry             facts of single triples over the background alone: a generated function per predicate

Place:   made and driven by extract/extractor.py; core/instant.py calls entries.
Method:  a unit names the relations that can change its answers, and a change in one of them wakes it.
         Entries: the queries that read a predicate are known beforehand, so a triple starts the plan of each,
         over the background (joins/code.py). They serve instants of triples that no rule reads and no query
         joins with each other. For an instant of one triple, facts are written where they are found; for
         several, rows are collected first.
Why not: filling an overlay, finding what was touched, and emptying it, where an entry serves: nothing else
         reads the overlay, and it is two thirds of the cost of a small graph.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from dotr.budget import Exhausted, Meter
from dotr.codegen import Names, make, row_of
from dotr.events import Fact, Time
from dotr.extract.full import Explosion
from dotr.extract.leaves import Delta, Lazy, Leaf, bounded
from dotr.extract.operators import Change, Row, consolidated, gained
from dotr.extract.query import Query
from dotr.extract.sharing import Distribution, attributes, facts_of
from dotr.joins.code import CodeBlock, Collect, RowSink
from dotr.joins.filters import Moment
from dotr.joins.nearby import NearbyRelation
from dotr.joins.paths import PathRelation
from dotr.joins.plan import BodyPattern, Check, JoinPlan, Relation, View, plan
from dotr.program import Node, Select, Var
from dotr.rdf.terms import Term
from dotr.rdf.values import TermKey, values_key


class UnitReader(Protocol):
    """`run()` processes what the instant added to a relation."""

    @property
    def run(self) -> Callable[[], None]: ...


class EdbFacts(Struct, frozen=True):
    """A reader that is a plain function."""

    run: Callable[[], None]


Woken: TypeAlias = "list[QueryUnit]"


class QueryUnit:
    """Owns the facts of the members of one shape at an instant. `select` is evaluated for all of them;
    `relations`: those it is registered with. Its work is charged to `meter`.
    """

    always = False
    """Whether it may have facts at instants that touch none of its relations."""
    number = 0
    """Its place among the units of a program."""

    def __init__(self, name: str, select: Select, distribution: Distribution, meter: Meter) -> None:
        self.name = name
        self.meter = meter
        self.select = select
        self.distribution = distribution
        self.woken = False
        self.relations: set[Relation] = set()

    def readers(self, woken: Woken) -> Iterable[tuple[Relation, UnitReader]]:
        """Readers to call when an instant touched a relation; a reader puts its unit on the list, once."""
        raise NotImplementedError

    def facts(self, time: Time, result: dict[str, list[Fact]]) -> None:
        """Put the facts of every member into `result`, and sleep again."""
        raise NotImplementedError

    def without_graph(self) -> Iterable[str]:
        """Streams that may have facts at instants that touch none of its relations."""
        return ()

    def rest(self) -> None:
        """Sleep, whatever happened."""
        self.woken = False

    def _wake(self, woken: Woken) -> UnitReader:
        def wake() -> None:
            if not self.woken:
                self.woken = True
                woken.append(self)

        return EdbFacts(wake)


class OncePerInstant:
    """A reader of what a path gains and loses, run once per instant, whichever source was touched first."""

    def __init__(self, path: PathRelation | NearbyRelation, reader: UnitReader) -> None:
        self._path = path
        self._reader = reader
        self._turn = 0

    def run(self) -> None:
        self._path.run()
        if self._turn != self._path.turn:
            self._turn = self._path.turn
            self._reader.run()


class MonotoneDelta(QueryUnit):
    """Conjunctions that the background alone does not answer and that no instant can remove answers from."""

    def __init__(
        self,
        name: str,
        select: Select,
        distribution: Distribution,
        meter: Meter,
        leaves: list[Leaf],
        limit: int,
    ) -> None:
        super().__init__(name, select, distribution, meter)
        self.leaves = leaves
        self._rows: list[Row] = []
        self.limit = limit

    def readers(self, woken: Woken) -> Iterable[tuple[Relation, UnitReader]]:
        for leaf in self.leaves:
            for delta in leaf.deltas:
                reader = self._reader(leaf, delta, woken)
                if delta.path is not None:
                    reader = OncePerInstant(delta.path, reader)
                for source in delta.sources:
                    yield source, reader

    def _reader(self, leaf: Leaf, delta: Delta, woken: Woken) -> UnitReader:
        """Append the delta's rows to this unit's; the function is made on its first call."""
        if leaf.finish is None:
            most = None if leaf.single else self.limit
            sink = Collect(self._rows, self, woken, most, self._explode)
            return Lazy(delta.plan, leaf.store, sink, self.meter)
        return self._finishing(leaf, delta, woken)

    def _finishing(self, leaf: Leaf, delta: Delta, woken: Woken) -> UnitReader:
        rows, finish = self._rows, leaf.finish
        out = bounded(rows, self.limit)

        def read() -> None:
            before = len(rows)
            try:
                delta.run(out)
            except Explosion:
                self._explode()
            if finish is not None and len(rows) > before:
                rows[before:] = finish(rows[before:])
            if rows and not self.woken:
                self.woken = True
                woken.append(self)

        return EdbFacts(read)

    def _explode(self) -> None:
        raise Explosion(self)

    def facts(self, time: Time, result: dict[str, list[Fact]]) -> None:
        self.woken = False
        self._take(self._rows, time, result)

    def _take(self, rows: list[Row], time: Time, result: dict[str, list[Fact]]) -> None:
        """The facts of the rows, which are then dropped."""
        unfiltered = self.distribution.unfiltered
        if len(rows) == 1 and unfiltered:  # the common case
            facts: list[Fact] = [(time, attributes(rows.pop()), 0, "")]
            for stream in unfiltered:
                result[stream] = facts
            return
        try:
            self.distribution.facts(rows, time, result)
        finally:
            rows.clear()

    def rest(self) -> None:
        self.woken = False
        self._rows.clear()


class IncrementalView(QueryUnit):
    """A query with answers from the background, or with non-monotone operators."""

    def __init__(
        self,
        name: str,
        select: Select,
        distribution: Distribution,
        query: Query,
    ) -> None:
        super().__init__(name, select, distribution, query.meter)
        self.query = query
        self.leaves = query.leaves
        self.always = bool(query.static())
        self._static: StaticFacts | None = None
        plain = not (query.translated.distinct and distribution.index is not None)
        self._mergeable = plain and not query.translated.order

    def readers(self, woken: Woken) -> Iterable[tuple[Relation, UnitReader]]:
        for relation in self.query.relations:
            yield relation, self._wake(woken)

    def facts(self, time: Time, result: dict[str, list[Fact]]) -> None:
        woken, self.woken = self.woken, False
        query = self.query
        changes = query.changes() if woken else []
        if query.timeless and (not changes or (self.always and self._mergeable)):
            if self._static is None:
                self._static = StaticFacts(self.distribution, query.static_answers())
            self._static.facts(time, query.moved() if changes else (), result)
        else:
            self.distribution.facts(query.answers(), time, result)
        query.forget()

    def settle(self, changes: Iterable[Change]) -> None:
        """The background has changed, and its answers by these."""
        self.query.settle(changes)
        self.always = bool(self.query.static())
        self._static = None

    def without_graph(self) -> Iterable[str]:
        query, distribution = self.query, self.distribution
        if not query.timeless:
            return distribution.streams if self.always else ()
        return distribution.reached(query.static_answers())

    def rest(self) -> None:
        self.woken = False
        self.query.forget()


class StaticFacts:
    """Owns the static facts of a unit, without their time: per list of streams, sorted, with ordinals."""

    def __init__(self, distribution: Distribution, rows: list[Row]) -> None:
        self._distribution = distribution
        self._lists = {
            streams: [(values, ordinal) for _, values, ordinal, _ in facts_of(own, 0)]
            for streams, own in distribution.split(rows)
        }
        self._keys: dict[tuple[str, ...], list[tuple[TermKey, ...]]] = {}

    def facts(self, time: Time, changes: Iterable[Change], result: dict[str, list[Fact]]) -> None:
        """The facts at an instant that adds and removes rows."""
        moved = self._moved(changes) if changes else {}
        for streams, pairs in self._lists.items():
            facts: list[Fact] = [(time, values, ordinal, "") for values, ordinal in pairs]
            if streams in moved:
                self._merge(streams, facts, time, moved.pop(streams))
            if facts:
                for stream in streams:
                    result[stream] = facts
        for streams, counts in moved.items():
            facts = facts_of(gained(consolidated(counts.items())), time)
            for stream in streams if facts else ():
                result[stream] = facts

    def _moved(self, changes: Iterable[Change]) -> dict[tuple[str, ...], dict[Row, int]]:
        """Changes by the streams they reach, over attributes."""
        moved: dict[tuple[str, ...], dict[Row, int]] = {}
        for sign in (1, -1):
            rows = (row for row, n in changes for _ in range(n * sign))
            for streams, own in self._distribution.split(rows):
                counts = moved.setdefault(streams, {})
                for row in own:
                    counts[row] = counts.get(row, 0) + sign
        return moved

    def _merge(
        self, streams: tuple[str, ...], facts: list[Fact], time: Time, counts: Mapping[Row, int]
    ) -> None:
        """Put the changed rows where they belong, from the last to the first, so that places stay valid."""
        keys = self._keys.get(streams)
        if keys is None:
            keys = self._keys[streams] = [values_key(values) for values, _ in self._lists[streams]]
        for key, row in sorted(((values_key(row), row) for row in counts), reverse=True):
            start, end = bisect_left(keys, key), bisect_right(keys, key)
            number = end - start + counts[row]
            facts[start:end] = [(time, row, ordinal, "") for ordinal in range(number)]


class Interpreted(QueryUnit):
    """A query that is not compiled. Its answers over the background alone are computed on demand, within
    `background` units.
    """

    def __init__(
        self,
        name: str,
        select: Select,
        distribution: Distribution,
        query: Query,
        background: int,
    ) -> None:
        super().__init__(name, select, distribution, query.meter)
        self.query = query
        self._background = background
        self._static: StaticFacts | None = None
        self.always = True

    def readers(self, woken: Woken) -> Iterable[tuple[Relation, UnitReader]]:
        for relation in self.query.relations:
            yield relation, self._wake(woken)

    def facts(self, time: Time, result: dict[str, list[Fact]]) -> None:
        woken, self.woken = self.woken, False
        if woken or not self.query.timeless:
            self.distribution.facts(self.query.solutions(), time, result)
            return
        if self._static is None:
            self._static = StaticFacts(self.distribution, self._alone())
        self._static.facts(time, (), result)

    def settle(self) -> None:
        """The background has changed."""
        self._static = None

    def without_graph(self) -> Iterable[str]:
        if not self.query.timeless:
            return self.distribution.streams
        try:
            return self.distribution.reached(self._alone())
        except (Explosion, Exhausted):
            return self.distribution.streams

    def _alone(self) -> list[Row]:
        """The answers while no instant touches what it reads."""
        limit = self.meter.limit
        self.meter.open(self._background)
        try:
            return self.query.solutions()
        finally:
            self.meter.open(limit)


SingleTripleReader: TypeAlias = Callable[[Term, Term, Time, defaultdict[str, list[Fact]]], None]
"""(subject, object, time) of the only triple of an instant, and where to add its facts, by stream. If it
raises Exhausted or Explosion, some may have been added.
"""


class _Start(Struct, frozen=True):
    """A plan that the triple starts."""

    leaf: Leaf
    plan: JoinPlan

    @property
    def subjects(self) -> frozenset[str]:
        """Variables that are never literals."""
        nodes = [pattern.columns[0] for pattern in self.leaf.patterns]
        return frozenset(node.name for node in nodes if isinstance(node, Var))


class _FactLines(Struct, frozen=True):
    """Write the facts of a query's only row into `result`."""

    unit: MonotoneDelta
    subjects: frozenset[str]
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, block: CodeBlock) -> list[str]:
        literal = [not (isinstance(node, Var) and node.name in self.subjects) for node in outputs]
        columns = [block.value(node) for node in outputs]
        return self.unit.distribution.lines_of_one(columns, literal, block.names)

    def tail(self, names: Names) -> list[str]:
        return []


class _RowLines(Struct, frozen=True):
    """Write every row into the list of this name; `most`: its limit."""

    rows: str
    most: int
    parameters: tuple[str, ...] = ()
    found: bool = False

    def lines(self, outputs: Sequence[Node], annotation: str, block: CodeBlock) -> list[str]:
        row = row_of([block.value(node) for node in outputs])
        names = block.names
        most = names.bind(self.most, "MOST")
        return [
            f"{self.rows}.append({row})",
            f"if LEN({self.rows}) > {most}: {names.bind(_explode, 'EXPLODE')}()",
        ]

    def tail(self, names: Names) -> list[str]:
        return []


def _explode() -> None:
    raise Explosion


def entry(units: Iterable[MonotoneDelta], predicate: Relation, moment: Moment) -> SingleTripleReader | None:
    """The function for an instant of one triple of this predicate, which no rule and no union reads, over the
    units that read it. None if a query takes more than the triple and the background.

    Cost of a call: the plans. It raises Exhausted and Explosion if a query takes too much; then nothing is
    left behind but facts in the result.
    """
    names = Names()
    lines = ["def entry(r0, r1, time, result):", f"    {names.bind(moment, 'MOMENT')}.time = time"]
    for number, unit in enumerate(units):
        starts = _starts(unit, predicate)
        if starts is None:
            return None
        rows = f"rows{number}"
        lines += _one_row(unit, predicate, names) or _rows(unit, starts, rows, names)
    return make("entry", "\n".join([*lines, "    return", ""]), names)


def _starts(unit: MonotoneDelta, relation: Relation, *, checked: bool = True) -> list[_Start] | None:
    """The plans that a row of the relation starts; None if it may start others, too. With `checked` they test
    early whether any member wants a row.
    """
    found: list[_Start] = []
    for leaf in unit.leaves:
        places = [i for i, item in enumerate(leaf.items) if getattr(item, "relation", "") == relation]
        if len(places) > 1 or leaf.finish is not None or leaf.follows(relation):
            return None
        for place in places:
            item, rest = leaf.items[place], leaf.items[:place] + leaf.items[place + 1 :]
            assert isinstance(item, BodyPattern)
            if not checked:
                rest = tuple(other for other in rest if not isinstance(other, Check))
            made = plan(rest, leaf.outputs, leaf.store, trigger=item, view=View.OLD)
            leaf.store.prepare(made)
            found.append(_Start(leaf, made))
    return found


def _one_row(unit: MonotoneDelta, predicate: Relation, names: Names) -> list[str]:
    """The lines of a unit that finds at most one row; empty if it may find more. Whether any member wants the
    row is tested where its facts are made.
    """
    starts = _starts(unit, predicate, checked=False)
    if starts is None or len(starts) != 1:
        return []
    block = _block(unit, starts[0], _FactLines(unit, starts[0].subjects), names)
    return [] if block.looping else block.lines


def _rows(unit: MonotoneDelta, starts: Sequence[_Start], rows: str, names: Names) -> list[str]:
    """The lines of a unit whose rows are collected first."""
    lines = [f"    {rows} = []"]
    for start in starts:
        lines += _block(unit, start, _RowLines(rows, unit.limit), names).lines
    return [*lines, f"    if {rows}: {names.bind(unit.distribution.add, 'FACTS')}({rows}, time, result)"]


def _block(unit: MonotoneDelta, start: _Start, sink: RowSink, names: Names) -> CodeBlock:
    block = CodeBlock(start.leaf.store, names, sink, stable=True, meter=unit.meter)
    block.write(start.plan, ("r0", "r1"))
    return block
