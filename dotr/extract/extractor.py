"""All queries of a deployment over one store: the facts of an instant.

Place:   the pipeline's second step, between `instant` and `forget` of the first.
Method:  queries of one shape share one executable unit (extract/sharing.py), of the fastest kind that the
         query and the background allow (extract/units.py). Units register with the relations that can change
         their answers; an instant calls only those of the relations it touched, and the units with answers
         from the background, whose facts occur at every instant that a rule sees. A unit's meter has the
         limit of deployment while it is made, since the background alone is queried then, and afterwards that
         of an instant.
         The canonical way, when instant.py abandons this work because it takes too long: units run in turn
         over another store, in which the instant's triples were entered in order, each with its own meter. A
         shape within the budget for all its members is within it for each: alone a member finds fewer rows.
         Past it, members run one by one, and the first that exceeds the budget by itself ends the instant. So
         refusal does not depend on which queries share, on the order of graphs, or on how far an earlier
         attempt got.
         Answers from the background alone are maintained while the background changes
         (enrich/maintenance.py): a unit with such answers also evaluates its query over the overlay of every
         change; the signed delta is added to its standing answers on commit and subtracted on undo.
         Interpreted queries are evaluated again.
Why not: evaluate every query at every instant: a graph would cost the number of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from dotr.budget import (
    BUDGET,
    CHANGED,
    OVERLONG,
    SLACK,
    UNLIMITED,
    Exhausted,
    Meter,
    Overlong,
    Spending,
    at_deployment,
)
from dotr.codegen import source_of
from dotr.errors import ProgramError
from dotr.events import Fact, Time
from dotr.extract.algebra import (
    BasicGraphPattern,
    Translated,
    Uncompiled,
    branches_of,
    pattern_names,
    reached,
    translate,
)
from dotr.extract.full import Explosion
from dotr.extract.leaves import NO_LIMIT, Leaf
from dotr.extract.operators import Change
from dotr.extract.query import Query
from dotr.extract.sharing import Comparison, Distribution, Shape, Shares, shape_of
from dotr.extract.units import (
    IncrementalView,
    Interpreted,
    MonotoneDelta,
    QueryUnit,
    SingleTripleReader,
    UnitReader,
    entry,
)
from dotr.joins.code import compile_plan
from dotr.joins.plan import ALL, Check, Relation, Shorten, describe
from dotr.joins.store import TripleIndex
from dotr.program import Program, Select
from dotr.program.own_functions import OWN
from dotr.rdf.terms import Term

Members = Mapping[tuple[Term, ...], Sequence[str]]

MANY_ANSWERS = "D4130"
MUCH_WORK = "D4132"


class SharedQuery(Struct, frozen=True):
    """What is evaluated for the queries of one shape. `members`: compared constants → streams."""

    select: Select
    members: Members
    comparisons: tuple[Comparison, ...]
    width: int

    @property
    def name(self) -> str:
        """The name of its first stream."""
        return next(stream for streams in self.members.values() for stream in streams)

    def distribution(self, shares: Shares | None = None) -> Distribution:
        """How rows are distributed to streams."""
        return Distribution(
            self.members,
            self.comparisons,
            self.select.variables,
            self.width,
            distinct=self.select.distinct,
            shares=shares,
        )

    def apart(self, queries: Mapping[str, Select]) -> Iterator[SharedQuery]:
        """Its members one by one, as if each ran alone."""
        for streams in self.members.values():
            yield _alone(queries, streams)


def shared_queries(queries: Mapping[str, Select]) -> list[SharedQuery]:
    """Queries by shape; a query that shares with none keeps its comparisons."""
    shapes: dict[Shape, dict[tuple[Term, ...], list[str]]] = {}
    for name, select in queries.items():
        shape, constants = shape_of(select)
        shapes.setdefault(shape, {}).setdefault(constants, []).append(name)
    return [
        SharedQuery(shape.query, members, shape.comparisons, shape.width)
        if len(members) > 1
        else _alone(queries, next(iter(members.values())))
        for shape, members in shapes.items()
    ]


def _alone(queries: Mapping[str, Select], streams: Sequence[str]) -> SharedQuery:
    select = queries[streams[0]]
    return SharedQuery(select, {(): tuple(streams)}, (), len(select.variables))


class UnitMaker:
    """Owns what the units of one store share. Used before the first instant, or between two steps.

    `limit`: more answers of one query at one instant are an explosion. `budget`: units of work of one query
    over the background alone (see `at_deployment`), `run_budget` at an instant; `moment` names the instant in
    progress if no caller opens the meters.
    """

    def __init__(
        self,
        store: TripleIndex,
        limit: int,
        budget: int,
        run_budget: int,
        moment: Callable[[], object] | None = None,
    ) -> None:
        self.store = store
        self._limit = limit
        self._budget = at_deployment(budget, len(store.background))
        self._run_budget = run_budget
        self._moment = moment

    def unit(self, shared: SharedQuery, distribution: Distribution) -> QueryUnit:
        """Raises Exhausted for the background."""
        meter = Meter(self._budget, self._moment)
        meter.open()
        made = self._made(shared, distribution, meter)
        meter.source = made
        meter.open(self._run_budget)
        return made

    def _made(self, shared: SharedQuery, distribution: Distribution, meter: Meter) -> QueryUnit:
        name, select = shared.name, shared.select
        translated = translate(select)
        leaves = self._leaves(translated, distribution, meter)
        if leaves is not None and all(leaf.additive and leaf.statically_empty for leaf in leaves):
            return MonotoneDelta(name, select, distribution, meter, leaves, self._limit)
        query = Query(
            translated, self.store, self._limit, meter, lambda branch: _checks(distribution, branch)
        )
        if query.interpreted:
            return Interpreted(name, select, distribution, query, self._budget)
        return IncrementalView(name, select, distribution, query)

    def _leaves(self, translated: Translated, distribution: Distribution, meter: Meter) -> list[Leaf] | None:
        """The conjunctions whose rows are the answers; None if there is more to do."""
        core = translated.core
        branches = None if isinstance(core, Uncompiled) else branches_of(core)
        if branches is None or translated.late or translated.order:
            return None
        return [
            Leaf(
                branch,
                self.store,
                _checks(distribution, branch),
                columns=translated.outputs,
                limit=self._limit,
                meter=meter,
            )
            for branch in branches
        ]

    def follower(self, unit: IncrementalView, kept: TripleIndex) -> Query:
        """The unit's query over the overlay of the kept background, where its standing answers change. Its
        meter has the limit of deployment, and the caller opens it.
        """
        distribution = unit.distribution
        meter = Meter(self._budget, source=unit)
        return Query(
            unit.query.translated, kept, meter=meter, checks=lambda branch: _checks(distribution, branch)
        )

    def many_answers(self, unit: QueryUnit | None, time: Time) -> ProgramError:
        """D4130."""
        name, span = ("", None) if unit is None else (unit.name, unit.select.span)
        return ProgramError.of(
            MANY_ANSWERS,
            f"query `{name}` has more than {self._limit} answers at {self.store.moment.clock.text(time)}",
            span,
            notes=("patterns without a common variable multiply their answers",),
            hint="join the patterns, filter, or aggregate",
        )

    def much_work(self, exhausted: Exhausted, unit: QueryUnit, time: Time) -> ProgramError:
        """D4132 at an instant."""
        where = f"at {self.store.moment.clock.text(time)}"
        return much_work_of(exhausted, unit.name, unit.select, unit.meter.limit, where)

    def much_background(self, exhausted: Exhausted, shared: SharedQuery) -> ProgramError:
        """D4132 at deployment."""
        return much_work_of(exhausted, shared.name, shared.select, self._budget, "over the background alone")


def much_work_of(exhausted: Exhausted, name: str, select: Select, budget: int, where: str) -> ProgramError:
    """D4132: a query takes more than a budget. D4133: it makes a string or number that is too long."""
    if isinstance(exhausted, Overlong):
        return ProgramError.of(
            OVERLONG,
            f"query `{name}` makes {exhausted.made} {where}",
            select.span,
            notes=exhausted.notes(),
            hint=exhausted.hint,
        )
    return ProgramError.of(
        MUCH_WORK,
        f"query `{name}` takes more than {budget} units of work {where}",
        select.span,
        notes=exhausted.notes(),
        hint="join patterns through shared variables, filter earlier, or raise --budget",
    )


def _checks(distribution: Distribution, branch: BasicGraphPattern) -> list[Check]:
    """A guard for the join: whether any member wants this value."""
    index = distribution.index
    if index is None or distribution.first.variable not in pattern_names(branch.patterns):
        return []
    first = distribution.first
    return [Check(index.any, (first.variable,), f"some {first.operator} constant", index.members)]


class ViewDeltas(Struct, frozen=True):
    """Units whose standing answers change: by how much, or (`asked`) to be evaluated again."""

    changes: tuple[tuple[IncrementalView, Sequence[Change]], ...] = ()
    asked: tuple[Interpreted, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes or self.asked)

    def __neg__(self) -> ViewDeltas:
        back = ((unit, [(row, -n) for row, n in changes]) for unit, changes in self.changes)
        return ViewDeltas(tuple(back), self.asked)


NO_MOVES = ViewDeltas()


class Following:
    """Owns the queries over the kept background, by the relations that wake them."""

    def __init__(self, units: Iterable[QueryUnit], maker: UnitMaker, kept: TripleIndex) -> None:
        self._kept = kept
        self._views: dict[Relation, list[tuple[IncrementalView, Query]]] = {}
        self._fallbacks: dict[Relation, list[Interpreted]] = {}
        for unit in units:
            if isinstance(unit, IncrementalView) and any(map(kept.changing, unit.relations)):
                query = maker.follower(unit, kept)
                for relation in query.relations:
                    self._views.setdefault(relation, []).append((unit, query))
            elif isinstance(unit, Interpreted):
                for relation in unit.relations:
                    self._fallbacks.setdefault(relation, []).append(unit)

    def reads(self, relation: Relation) -> bool:
        """Whether a query must be asked while a change of the relation is open."""
        return relation in self._views or relation in self._fallbacks

    def moves(self, spending: Spending, limit: int) -> ViewDeltas:
        """The effect of the open change; `limit`: units of each query. Raises Exhausted from a unit."""
        if not (self._views or self._fallbacks):
            return NO_MOVES
        touched = [changes.relation for changes in self._kept.overlay.touched]
        woken = {id(query): (unit, query) for r in touched for unit, query in self._views.get(r, ())}
        found = []
        asked = list(woken.values())
        if OWN:
            asked.sort(key=lambda one: one[0].number)
        for unit, query in asked:
            query.meter.open(spending.limit(limit))
            try:
                changes = query.changes()
                query.meter.charge(len(changes), "answers that change", CHANGED)
            finally:
                spending.spend_of(query.meter)
            query.forget()
            if changes:
                found.append((unit, changes))
        again = dict.fromkeys(unit for r in touched for unit in self._fallbacks.get(r, ()))
        return ViewDeltas(tuple(found), tuple(again))

    def settle(self, moves: ViewDeltas) -> None:
        for unit, changes in moves.changes:
            unit.settle(changes)
        for fallback in moves.asked:
            fallback.settle()


def _number(unit: QueryUnit) -> int:
    return unit.number


ANSWER_LIMIT = 1_000_000
"""More answers of one query at one instant are an explosion."""


def needed(queries: Mapping[str, Select]) -> frozenset[Relation]:
    """The relations that the queries read: rules and background may be pruned to them."""
    return frozenset().union(*map(reached, dict.fromkeys(queries.values())))


def wanted(program: Program, materialize_all: bool) -> frozenset[Relation]:
    """The relations that the program's queries read; with `materialize_all`, all."""
    relations = needed(program.selects)
    return relations | {ALL} if materialize_all else relations


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
    (budget.py), or `patience`, ProgramError D4132 is raised, and extract.py decides. With `shares`,
    streams of one shape that differ in a comparison have their facts under one name, each with the compared
    value: `filtered` has the name, operator and constant of each; and streams of equal queries have them
    under one of their names: see `same`. `filtered` takes precedence. `kept`: the background changes through
    the overlay of this store (enrich/maintenance.py).
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

    def moves(self, spending: Spending, limit: int) -> ViewDeltas:
        """How the open change of the kept background changes its answers; see `Following.moves`."""
        assert self._following is not None, "made with `kept`"
        return self._following.moves(spending, limit)

    def settle(self, moves: ViewDeltas) -> None:
        """Apply that change when it is committed; its negative when it is undone."""
        assert self._following is not None, "made with `kept`"
        if not moves:
            return
        self._following.settle(moves)
        self._always = [unit for unit in self.units if unit.always]

    @property
    def answers_always(self) -> bool:
        """Whether a query may have facts of what is kept alone."""
        return bool(self._always)

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
            if OWN and len(woken) > 1:
                woken.sort(key=_number)  # they call functions in this order
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
        tight = [(meter, meter.limit) for unit in self.units if most < (meter := unit.meter).limit]
        for meter, _ in tight:
            meter.open(most)
        try:
            return self.facts(time)
        finally:
            for unit in self.units:
                meter = unit.meter
                if meter.left[0] != meter.limit:
                    spending.spend_of(meter)
                meter.open()
            for meter, limit in tight:
                meter.open(limit)

    def without_graph(self) -> frozenset[str]:
        """Streams that may have facts at an instant without a graph: the background alone answers them."""
        return frozenset(stream for unit in self._always for stream in unit.without_graph())

    def entry(self, predicate: Term) -> SingleTripleReader | None:
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
            return QueryPlans("interpreted", unit.query.interpreted, streams, (), ())
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
        if unit.always and distribution.base:  # facts of the background are kept without time and size
            distribution.part()
        for stream, operator, constant in distribution.filters() if distribution.base else ():
            self.filtered[stream] = (distribution.base, operator, constant)
        unit.number = len(self.units)
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
