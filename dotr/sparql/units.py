"""Units: the queries of one shape, evaluated together at an instant.

Place:   made and driven by core/extract.py.
Method:  a unit names the relations that can change its answers and is woken by them. `MonotoneDelta`: unions
         of conjunctions without answers from the background: the kernel's rows are the answers.
         `IncrementalView`: static answers and changes, any operators. `Interpreted`: not compiled.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias

from msgspec import Struct

from dotr.budget import Exhausted, Meter
from dotr.events import Fact, Time
from dotr.ir import Select
from dotr.joins.graph_relations import Relation
from dotr.joins.join_code import Collect
from dotr.joins.path_relations import PathRelation
from dotr.rdf.order import TermKey, values_key
from dotr.sparql.compiled_query import CompiledQuery
from dotr.sparql.distribution import Distribution, attributes, facts_of
from dotr.sparql.full import Explosion
from dotr.sparql.interpreter import InterpretedQuery
from dotr.sparql.leaves import Delta, Lazy, Leaf, bounded
from dotr.sparql.solution_operators import Change, Row, consolidated, gained


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

    def standing(self) -> Iterable[str]:
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

    def __init__(self, path: PathRelation, reader: UnitReader) -> None:
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
        everybody = self.distribution.everybody
        if len(rows) == 1 and everybody:  # the common case
            facts: list[Fact] = [(time, attributes(rows.pop()), 0, "")]
            for stream in everybody:
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
        meter: Meter,
        query: CompiledQuery,
        leaves: list[Leaf],
    ) -> None:
        super().__init__(name, select, distribution, meter)
        self.query = query
        self.leaves = leaves
        self.always = bool(query.static())
        self._standing: StaticFacts | None = None
        plain = not (query.translated.distinct and distribution.index is not None)
        self._mergeable = plain and not query.translated.order

    def readers(self, woken: Woken) -> Iterable[tuple[Relation, UnitReader]]:
        for relation in dict.fromkeys(source for watched in self.query.watched for source in watched.sources):
            yield relation, self._wake(woken)

    def facts(self, time: Time, result: dict[str, list[Fact]]) -> None:
        woken, self.woken = self.woken, False
        query = self.query
        changes = query.changes() if woken else []
        if query.timeless and (not changes or (self.always and self._mergeable)):
            if self._standing is None:
                self._standing = StaticFacts(self.distribution, query.standing())
            self._standing.facts(time, query.moved() if changes else (), result)
        else:
            self.distribution.facts(query.answers(), time, result)
        query.forget()

    def settle(self, changes: Iterable[Change]) -> None:
        """The background has changed, and its answers by these."""
        self.query.settle(changes)
        self.always = bool(self.query.static())
        self._standing = None

    def standing(self) -> Iterable[str]:
        query, distribution = self.query, self.distribution
        if not query.timeless:
            return distribution.streams if self.always else ()
        return distribution.reached(query.standing())

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
    """A query that is not compiled, for a `reason`. Its answers over the background alone are computed on
    demand, within `background` units.
    """

    def __init__(
        self,
        name: str,
        select: Select,
        distribution: Distribution,
        meter: Meter,
        query: InterpretedQuery,
        relations: Iterable[Relation],
        reason: str,
        background: int,
    ) -> None:
        super().__init__(name, select, distribution, meter)
        self.query = query
        self.reason = reason
        self._relations = tuple(relations)
        self._background = background
        self._standing: StaticFacts | None = None
        self.always = True

    def readers(self, woken: Woken) -> Iterable[tuple[Relation, UnitReader]]:
        for relation in self._relations:
            yield relation, self._wake(woken)

    def facts(self, time: Time, result: dict[str, list[Fact]]) -> None:
        woken, self.woken = self.woken, False
        if woken or not self.query.timeless:
            self.distribution.facts(self.query.solutions(), time, result)
            return
        if self._standing is None:
            self._standing = StaticFacts(self.distribution, self._alone())
        self._standing.facts(time, (), result)

    def settle(self) -> None:
        """The background has changed."""
        self._standing = None

    def standing(self) -> Iterable[str]:
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
