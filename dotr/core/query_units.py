"""From queries to units: one executable unit per shape of queries, over one store.

Place:   under extract.py, which runs all units of an instant together, and query_by_query.py, which runs them
         in turn.
Method:  queries of one shape share a unit (shapes.py), of the fastest kind that the query and the background
         allow (sparql/units.py). Its meter has the limit of deployment while it is made, since the background
         alone is queried then, and afterwards that of an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from dotr.budget import OVERLONG, Exhausted, Meter, Overlong, at_deployment
from dotr.errors import ProgramError
from dotr.events import Time
from dotr.ir import Select
from dotr.joins.body import Check
from dotr.joins.store import TripleIndex
from dotr.rdf.terms import Term
from dotr.sparql.algebra import BasicGraphPattern, branches_of, pattern_names
from dotr.sparql.compiled_query import CompiledQuery
from dotr.sparql.distribution import Distribution, Shares
from dotr.sparql.interpreter import InterpretedQuery
from dotr.sparql.leaves import Leaf
from dotr.sparql.operator_building import Builder
from dotr.sparql.queried_relations import relations_of
from dotr.sparql.shapes import Comparison, Shape, shape_of
from dotr.sparql.translate import Refused, Translated, translate
from dotr.sparql.units import IncrementalView, Interpreted, MonotoneDelta, QueryUnit

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
        try:
            translated = translate(shared.select)
        except Refused as refusal:
            relations = sorted(relations_of(shared.select))
            query = InterpretedQuery(shared.select, self.store, meter, self._limit)
            return Interpreted(
                shared.name,
                shared.select,
                distribution,
                meter,
                query,
                relations,
                str(refusal),
                self._budget,
            )
        return self._compiled(shared, distribution, meter, translated)

    def _compiled(
        self, shared: SharedQuery, distribution: Distribution, meter: Meter, translated: Translated
    ) -> QueryUnit:
        name, select = shared.name, shared.select
        branches = branches_of(translated.core)
        if branches is not None and not translated.late and not translated.order:
            leaves = [
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
            if all(leaf.additive and leaf.statically_empty for leaf in leaves):
                return MonotoneDelta(name, select, distribution, meter, leaves, self._limit)
        builder = Builder(self.store, self._limit, lambda branch: _checks(distribution, branch), meter)
        query = CompiledQuery(translated, builder)
        return IncrementalView(name, select, distribution, meter, query, builder.leaves)

    def follower(self, unit: IncrementalView, kept: TripleIndex) -> CompiledQuery:
        """The unit's query over the overlay of the kept background, where its standing answers change. Its
        meter has the limit of deployment, and the caller opens it.
        """
        distribution = unit.distribution
        meter = Meter(self._budget, source=unit)
        builder = Builder(kept, checks=lambda branch: _checks(distribution, branch), meter=meter)
        return CompiledQuery(unit.query.translated, builder)

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
    """D4132: a query takes more than a budget. D4133: it makes a text or number that is too long."""
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
