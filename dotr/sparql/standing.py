"""Standing queries: how their answers over what lasts change, by signed deltas.

Place:   made over the index of a maintained state (datalog/maintenance.py), evaluated while a change is open.
Method:  the answers of a continuous query change by the joins of added and removed triples with everything
         else (Gergatsoulis, Damigos 2021; here bags, consolidated). DISTINCT counts; groups and non-monotone
         operators evaluate again what the change touched. ORDER BY with a cut keeps the answers.
Why not: evaluate again and compare: every change would cost all answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Protocol, TypeAlias

from msgspec.structs import replace

from dotr.budget import CHANGED, Meter
from dotr.ir import Select
from dotr.joins.body import View
from dotr.joins.graph_relations import Relation
from dotr.joins.store import TripleIndex
from dotr.sparql.compiled_query import CompiledQuery
from dotr.sparql.distribution import attributes
from dotr.sparql.interpreter import InterpretedQuery
from dotr.sparql.leaves import NO_LIMIT
from dotr.sparql.operator_building import Builder
from dotr.sparql.queried_relations import relations_of
from dotr.sparql.solution_operators import Change, Row, consolidated
from dotr.sparql.translate import Refused, Translated, translate
from dotr.sparql.using_rows import UsingRows

Shown: TypeAlias = Callable[[Row], Row]


def as_it_is(row: Row) -> Row:
    """The answer itself; `attributes` would make it the attributes of a fact."""
    return row


def _nothing() -> None:
    """Nothing to undo: no answer has changed."""


class MaintainedQuery(Protocol):
    """One query over a state that changes. `relations`: those whose changes may change its answers."""

    @property
    def relations(self) -> frozenset[Relation]: ...

    def prime(self) -> None:
        """Find what `moved` has to know of the answers over the last committed state; no change is open."""

    def moved(self) -> list[Change]:
        """How the answers, mapped by `shown`, change by the open change; consolidated."""

    def using(self, relation: Relation) -> UsingRows | None:
        """Finds the answers over the index that use given rows of a relation; None if the change of `answers`
        does not follow from those. Only while no change is open.
        """

    def take(self, lost: Iterable[Row], gained: Iterable[Row]) -> None:
        """The change loses and gains these answers, which `using` found: for `moved` and `settle`."""

    def settle(self) -> Callable[[], None]:
        """The open change is committed. Returns how to undo that."""

    def forget(self) -> None:
        """The open change is abandoned."""

    def answers(self) -> list[Row]:
        """All answers over the last committed state, mapped by `shown`."""


def standing_query(
    select: Select,
    store: TripleIndex,
    limit: int = NO_LIMIT,
    meter: Meter | None = None,
    *,
    shown: Shown = attributes,
) -> MaintainedQuery:
    """A query without NOW(), by deltas if it is compiled, else evaluated again. Work is charged to `meter`,
    which the caller opens, or to the store's. `shown` maps an answer.
    """
    try:
        translated = translate(select)
    except Refused:
        return InterpretedStanding(select, store, limit, meter, shown)
    return CompiledStanding(translated, store, limit, meter, shown)


class CompiledStanding:
    """Owns the deltas of one query; its answers only if DISTINCT or an order needs them."""

    def __init__(
        self,
        translated: Translated,
        store: TripleIndex,
        limit: int,
        meter: Meter | None = None,
        shown: Shown = attributes,
    ) -> None:
        self._shown = shown
        self._cut = bool(translated.order) and (translated.limit is not None or translated.offset > 0)
        bag = translated if self._cut else replace(translated, order=())
        self._query = CompiledQuery(bag, Builder(store, limit, meter=meter))
        self.relations = frozenset(
            relation for watched in self._query.watched for relation in watched.sources
        )
        self._moved: list[Change] | None = None

    def prime(self) -> None:
        if self._cut or self._query.translated.distinct:
            self._query.static()

    def moved(self) -> list[Change]:
        if self._moved is None:
            found = self._query.changes()
            self._query.meter.charge(len(found), "answers that change", CHANGED)
            changes = self._differences() if found else ()
            self._moved = consolidated((self._shown(row), n) for row, n in changes) if changes else []
        return self._moved

    def using(self, relation: Relation) -> UsingRows | None:
        found = self._query.using(relation)
        if found is not None and (self._cut or self._query.translated.distinct):
            self._query.static()  # as they are before anything changes
        return found

    def take(self, lost: Iterable[Row], gained: Iterable[Row]) -> None:
        self._query.take(lost, gained)

    def _differences(self) -> Collection[Change]:
        query = self._query
        if not self._cut:
            return query.moved()
        before, now = Counter(query.standing()), Counter(query.solutions())
        now.subtract(before)
        return now.items()

    def settle(self) -> Callable[[], None]:
        query = self._query
        changes = query.changes()
        self.forget()
        if not changes:
            return _nothing
        query.settle(changes)
        return lambda: query.settle((row, -n) for row, n in changes)

    def forget(self) -> None:
        self._moved = None
        self._query.forget()

    def answers(self) -> list[Row]:
        rows = self._query.standing()
        return list(map(self._shown, dict.fromkeys(rows) if self._query.translated.distinct else rows))


class InterpretedStanding:
    """Owns the answers of a query that is not compiled: evaluated again when it is touched."""

    def __init__(
        self,
        select: Select,
        store: TripleIndex,
        limit: int,
        meter: Meter | None = None,
        shown: Shown = attributes,
    ) -> None:
        self._shown = shown
        self._query = InterpretedQuery(select, store, store.meter if meter is None else meter, limit)
        self.relations = relations_of(select)
        for relation in sorted(self.relations):
            store.changes(relation)
        self._answers: Counter[Row] | None = None
        self._now: Counter[Row] | None = None

    def prime(self) -> None:
        self._kept()

    def moved(self) -> list[Change]:
        before = self._kept()
        if self._now is None:
            self._now = Counter(self._ask(View.NEW))
        changes = Counter(self._now)
        changes.subtract(before)
        return consolidated(changes.items())

    def using(self, relation: Relation) -> None:
        return None

    def take(self, lost: Iterable[Row], gained: Iterable[Row]) -> None:
        raise AssertionError("it is asked again")

    def settle(self) -> Callable[[], None]:
        before = self._answers
        self._answers, self._now = self._now, None

        def undo() -> None:
            self._answers = before

        return undo

    def forget(self) -> None:
        self._now = None

    def answers(self) -> list[Row]:
        return list(self._kept().elements())

    def _kept(self) -> Counter[Row]:
        if self._answers is None:
            self._answers = Counter(self._ask(View.OLD))
        return self._answers

    def _ask(self, view: View) -> list[Row]:
        return list(map(self._shown, self._query.solutions(view)))
