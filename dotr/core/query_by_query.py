"""The canonical way of extracting an instant: every query by itself, within its budget.

Place:   beside extract.py, whose work instant.py abandons when it takes too long; over another store, in
         which the instant's triples were entered in order.
Method:  units run in turn, each with its own meter. A shape within the budget for all its members is within
         it for each: alone a member finds fewer rows. Past it, members run one by one, and the first that
         exceeds the budget by itself ends the instant. So refusal does not depend on which queries share, on
         the order of graphs, or on how far an earlier attempt got.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dotr.budget import UNLIMITED, Exhausted
from dotr.core.query_units import SharedQuery, UnitMaker
from dotr.errors import ProgramError
from dotr.events import Fact, Time
from dotr.ir import Select
from dotr.joins.graph_relations import Relation
from dotr.joins.store import TripleIndex
from dotr.sparql.distribution import Distribution
from dotr.sparql.full import Explosion
from dotr.sparql.leaves import NO_LIMIT
from dotr.sparql.units import QueryUnit, UnitReader


class _Reading:
    """Owns a unit, and which of its readers read which relation."""

    def __init__(self, unit: QueryUnit) -> None:
        self.unit = unit
        self._readers: dict[Relation, list[UnitReader]] = {}
        for relation, reader in unit.readers([]):
            self._readers.setdefault(relation, []).append(reader)

    def facts(self, touched: Sequence[Relation], time: Time) -> dict[str, list[Fact]]:
        """Raises Exhausted, Explosion."""
        unit = self.unit
        found: dict[str, list[Fact]] = {}
        unit.meter.open()
        try:
            for relation in touched:
                for reader in self._readers.get(relation, ()):
                    reader.run()
            if unit.always or unit.woken:
                unit.facts(time, found)
        finally:
            unit.rest()
        return found


class _Apart(Struct, frozen=True):
    """Readings of the members of a shape, each alone, and of all together without limit."""

    members: list[_Reading]
    whole: _Reading


class CanonicalExtractor:
    """Owns units over the canonical store: of shapes, and of members that ran alone.

    `shapes`: what the quick extractor evaluates, and for whom.
    """

    def __init__(
        self,
        queries: Mapping[str, Select],
        shapes: Sequence[tuple[SharedQuery, Distribution]],
        store: TripleIndex,
        limit: int,
        budget: int,
    ) -> None:
        self._queries = queries
        self._store = store
        self._maker = UnitMaker(store, limit, budget, budget)
        self._unlimited = UnitMaker(store, NO_LIMIT, UNLIMITED, UNLIMITED)
        self._shapes = shapes
        self._readings = [_Reading(self._maker.unit(*shape)) for shape in shapes]
        self._parted: dict[int, _Apart] = {}

    def facts(self, time: Time) -> dict[str, list[Fact]]:
        """Like `Extractor.facts`. Its ProgramError D4130 and D4132 are final."""
        self._store.moment.time = time
        touched = [changes.relation for changes in self._store.overlay.touched]
        result: dict[str, list[Fact]] = {}
        for number, reading in enumerate(self._readings):
            try:
                result |= reading.facts(touched, time)
            except (Exhausted, Explosion) as refusal:
                if len(self._shapes[number][0].members) == 1:
                    raise self._refused(reading.unit, refusal, time) from None
                result |= self._apart(number, touched, time)
        return result

    def _apart(self, number: int, touched: Sequence[Relation], time: Time) -> dict[str, list[Fact]]:
        """Evaluate a shape, with each member's limits as if it ran alone."""
        if number not in self._parted:
            self._parted[number] = self._part(*self._shapes[number])
        parted = self._parted[number]
        for reading in parted.members:
            try:
                reading.facts(touched, time)
            except (Exhausted, Explosion) as refusal:
                raise self._refused(reading.unit, refusal, time) from None
        return parted.whole.facts(touched, time)

    def _refused(self, unit: QueryUnit, refusal: Exhausted | Explosion, time: Time) -> ProgramError:
        if isinstance(refusal, Exhausted):
            return self._maker.much_work(refusal, unit, time)
        return self._maker.many_answers(unit, time)

    def _part(self, shared: SharedQuery, distribution: Distribution) -> _Apart:
        members = [self._maker.unit(member, member.distribution()) for member in shared.apart(self._queries)]
        return _Apart(
            [_Reading(unit) for unit in members], _Reading(self._unlimited.unit(shared, distribution))
        )
