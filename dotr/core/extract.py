"""All queries of a deployment over one store: the facts of an instant.

Place:   the pipeline's second step, between `instant` and `forget` of the first.
Method:  queries of one shape are one unit (sparql/shapes.py, units.py). Units register with the relations
         that can change their answers; an instant calls only those of the relations it touched, and the units
         with answers from the background, whose facts occur at every instant that a rule sees.
Why not: evaluating every query at every instant: a graph would cost the number of rules.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from dotr.budget import BUDGET, SLACK, Exhausted
from dotr.codegen import source_of
from dotr.core.following import Following, Moves
from dotr.core.query_units import SharedQuery, UnitMaker, shared_queries
from dotr.core.spending import Spending
from dotr.events import Fact, Time
from dotr.ir import Select
from dotr.joins.describe import Shorten, describe
from dotr.joins.graph_relations import ALL, Relation
from dotr.joins.join_code import compile_plan
from dotr.joins.store import TripleIndex
from dotr.rdf.terms import Term
from dotr.sparql.algebra import patterns_of
from dotr.sparql.distribution import Distribution, Shares
from dotr.sparql.entries import Entry, entry
from dotr.sparql.full import Explosion
from dotr.sparql.queried_relations import read_by, relations_of
from dotr.sparql.translate import Refused, translate
from dotr.sparql.units import Interpreted, MonotoneDelta, QueryUnit, UnitReader

ANSWER_LIMIT = 1_000_000
"""More answers of one query at one instant are an explosion."""


def needed(queries: Mapping[str, Select]) -> frozenset[Relation]:
    """The relations that the queries read: rules and background may be pruned to them."""
    return frozenset().union(*map(reached, dict.fromkeys(queries.values())))


def reached(select: Select) -> frozenset[Relation]:
    """The relations that the engine of one query reads."""
    try:
        core = translate(select).core
    except Refused:
        return relations_of(select)
    return frozenset(relation for pattern in patterns_of(core) for relation in read_by(pattern))


class QueryPlans(Struct, frozen=True):
    """How queries are evaluated, for `dotr plan`. `engine`: "compiled" or "interpreted"; `streams`: evaluated
    together.
    """

    engine: str
    reason: str
    streams: tuple[str, ...]
    plans: tuple[str, ...]
    sources: tuple[str, ...]


class Extractor:
    """Owns the units of a deployment over one store. Made before the first instant.

    Raises ProgramError D4132 for a query that takes too much work over the background. `limit`: answers of
    one query at one instant beyond which ProgramError D4130 is raised (not counted for a single pattern,
    which has no more than the graph has triples). `budget`: units of work of one query; past a part of it
    (budget.py), or `patience`, ProgramError D4132 is raised, and query_by_query.py decides. With `shares`,
    streams of one shape that differ in a comparison have their facts under one name, each with the compared
    value: `filtered` has the name, operator and constant of each; and streams of equal queries have them
    under one of their names: see `same`. `filtered` takes precedence. `kept`: the background changes through
    the overlay of this store (datalog/maintenance.py).
    """

    def __init__(
        self,
        queries: Mapping[str, Select],
        store: TripleIndex,
        *,
        limit: int = ANSWER_LIMIT,
        budget: int = BUDGET,
        patience: int | None = None,
        shares: Shares | None = None,
        kept: TripleIndex | None = None,
    ) -> None:
        self._shares = shares
        self.same: dict[str, str] = {}
        self.filtered: dict[str, tuple[str, str, Term]] = {}
        self._queries = dict(queries)
        self._store = store
        self._moment = store.moment
        self._touched = store.overlay.touched
        moment = store.moment
        self._maker = UnitMaker(
            store, limit, budget, budget // SLACK if patience is None else patience, lambda: moment.time
        )
        self._woken: list[QueryUnit] = []
        self._readers: dict[int, QueryUnit] = {}
        self.units: list[QueryUnit] = []
        self.shapes: list[tuple[SharedQuery, Distribution]] = []
        for shared in shared_queries(queries):
            self._add(shared)
        self._always = [unit for unit in self.units if unit.always]
        self._following = None if kept is None else Following(self.units, self._maker, kept)

    def follows(self, relation: Relation) -> bool:
        """Whether `moves` must be asked while a change of the relation is open."""
        assert self._following is not None, "made with `kept`"
        return self._following.reads(relation)

    def moves(self, spending: Spending, limit: int) -> Moves:
        """How the open change of the kept background changes its answers; see `Following.moves`."""
        assert self._following is not None, "made with `kept`"
        return self._following.moves(spending, limit)

    def settle(self, moves: Moves) -> None:
        """Apply that change when it is committed; its negative when it is undone."""
        assert self._following is not None, "made with `kept`"
        if not moves:
            return
        self._following.settle(moves)
        self._always = [unit for unit in self.units if unit.always]

    def facts(self, time: Time, now: Term | None = None) -> dict[str, list[Fact]]:
        """Stream → facts, in canonical order, of the store's instant; without streams that have none.

        `now`: the value of NOW(), by default `time` as the clock of `store.moment` writes it. Raises
        ProgramError D4130, D4132 when a query has too many answers or takes too much work.
        """
        self._moment.time = time
        if now is not None:
            self._moment.now = now
        result: dict[str, list[Fact]] = {}
        woken = self._woken
        unit: QueryUnit | None = None
        reader: UnitReader | None = None
        try:
            for changes in self._touched:
                for reader in changes.readers:
                    reader.run()
            reader = None
            for unit in self._always:
                if not unit.woken:
                    unit.facts(time, result)
            for unit in woken:
                unit.facts(time, result)
        except Explosion as explosion:
            self._rest()
            raise self._maker.many_answers(explosion.source or unit, time) from explosion  # type: ignore[arg-type]  # a unit
        except Exhausted as exhausted:
            self._rest()
            source = exhausted.source or unit or self._reading(reader)
            raise self._maker.much_work(exhausted, source, time) from exhausted  # type: ignore[arg-type]  # a unit
        finally:
            woken.clear()
        return result

    def facts_within(self, time: Time, spending: Spending) -> dict[str, list[Fact]]:
        """`facts` over what lasts, where all queries together take no more than is left of `spending`."""
        most = spending.left
        tight = [unit.meter for unit in self.units if most < unit.meter.limit]
        limits = [meter.limit for meter in tight]
        for meter in tight:
            meter.open(most)
        try:
            return self.facts(time)
        finally:
            for unit in self.units:
                spending.spend_of(unit.meter)
                unit.meter.open()
            for meter, limit in zip(tight, limits, strict=True):
                meter.open(limit)

    def standing(self) -> frozenset[str]:
        """Streams that may have facts at an instant without a graph: the background alone answers them."""
        return frozenset(stream for unit in self._always for stream in unit.standing())

    def entry(self, predicate: Term) -> Entry | None:
        """`facts` of an instant with one triple of this predicate, as a function of the rest of the triple
        that adds them to those of earlier instants.

        None if it takes more than that triple and the background. The caller knows that no rule reads it.
        """
        readers = [unit for unit in self.units if not unit.relations.isdisjoint((predicate, ALL))]
        units = [unit for unit in readers if isinstance(unit, MonotoneDelta) and ALL not in unit.relations]
        if self._always or len(units) < len(readers):
            return None
        return entry(units, predicate, self._moment)

    def explain(self, shorten: Shorten = str, code: bool = False) -> dict[str, QueryPlans]:
        """Stream → how its query is evaluated; with `code`, by which functions."""
        found: dict[str, QueryPlans] = {}
        for unit in self.units:
            streams = tuple(stream for group in unit.distribution.groups for stream in group.streams)
            found.update(dict.fromkeys(streams, self._explained(unit, streams, shorten, code)))
        return found

    def _explained(
        self, unit: QueryUnit, streams: tuple[str, ...], shorten: Shorten, code: bool
    ) -> QueryPlans:
        if isinstance(unit, Interpreted):
            return QueryPlans("interpreted", unit.reason, streams, (), ())
        plans = [delta.plan for leaf in unit.leaves for delta in leaf.deltas]  # type: ignore[attr-defined]
        texts = tuple(describe(plan, shorten) for plan in plans)
        sources = tuple(source_of(compile_plan(plan, self._store)) for plan in plans) if code else ()
        return QueryPlans("compiled", "", streams, texts, sources)

    def _add(self, shared: SharedQuery) -> None:
        distribution = shared.distribution(self._shares)
        try:
            unit = self._maker.unit(shared, distribution)
        except Exhausted as exhausted:
            if len(shared.members) == 1:
                raise self._maker.much_background(exhausted, shared) from None
            for member in shared.apart(self._queries):
                self._add(member)
            return
        self.same.update(distribution.same())
        if unit.always and distribution.base:  # standing facts are kept without time and size
            distribution.part()
        for stream, operator, constant in distribution.filters() if distribution.base else ():
            self.filtered[stream] = (distribution.base, operator, constant)
        self.units.append(unit)
        self.shapes.append((shared, distribution))
        for relation, reader in unit.readers(self._woken):
            unit.relations.add(relation)
            self._store.changes(relation).readers.append(reader)
            self._readers[id(reader)] = unit

    def _reading(self, reader: UnitReader | None) -> QueryUnit | None:
        """The unit that this reader belongs to."""
        return self._readers.get(id(reader))

    def _rest(self) -> None:
        """Report the query that ends the instant."""
        for unit in self.units:
            unit.rest()
