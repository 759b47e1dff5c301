"""M as an index that is maintained, K over it, and the answers that stand over both.

Place:   under maintained.py, which supplies what is stated; over datalog/maintenance.py, which derives.
Method:  language.md, "What lasts". A change is opened over the index, the standing queries give their signed
         deltas, and it is committed with them; an instant is a temporary overlay over the current index. Code
         for undeclared relations assumes that they never change; when a triple of theirs is inserted or
         deleted, plans are remade over the same index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from dotr.budget import BUDGET, UNLIMITED, Exhausted, Meter, at_deployment
from dotr.core.constants_read import reader_of
from dotr.core.enrich import wanted
from dotr.core.extract import Extractor, needed
from dotr.core.following import NO_MOVES, Moves
from dotr.core.plain_changes import Difference, PlainChanges
from dotr.core.query_units import much_work_of
from dotr.core.spending import Spending
from dotr.datalog.maintenance import Maintained
from dotr.datalog.materialiser import Limits, Materialiser, clash_found
from dotr.datalog.owl_lists import is_list_triple, rules_over
from dotr.datalog.schema import SAME_AS, is_schema, schema_triples
from dotr.errors import DataError, Diagnostic, ProgramError
from dotr.events import Clock, Fact, Time
from dotr.ir import Entailment, Program, Select
from dotr.joins.graph_relations import ALL, Relation, class_relation, holding, relation_of
from dotr.joins.store import EVERYTHING
from dotr.rdf.terms import RDF_TYPE, Triple
from dotr.sparql.solution_operators import Change, Row
from dotr.sparql.standing import MaintainedQuery, standing_query
from dotr.sparql.units import QueryUnit

Differences = Mapping[Select, Sequence[Change]]
"""Standing query → how its answers change, where they do."""

_EPOCHS = 8
"""How often plans are remade for undeclared relations before all relations are taken to change."""


class Settled(NamedTuple):
    """A committed change: how the standing answers changed, and how to undo it."""

    differences: Differences
    undo: Callable[[], None]


def _nothing() -> None:
    """No change was made: there is nothing to undo."""


_NO_DIFFERENCES: Differences = MappingProxyType({})
_NOTHING_MOVED = Settled(_NO_DIFFERENCES, _nothing)


class SchemaChange(Exception):  # noqa: N818  # not an error: the model must be remade
    """A change concerns triples over which rules were instantiated: M must be recomputed."""


class LastingModel:
    """Owns the index of M for one program, and the overlays over it.

    `stated`: all stated triples; `ends`: when those end that end by time alone. `spending`: what the run may
    spend; None for as much as there is. `closing`: units of closing what is stated, if not `budget`. Raises
    ProgramError, DataError for rules that are invalid over it; a contradiction in it is not an error here.
    """

    def __init__(
        self,
        program: Program,
        stated: Collection[Triple],
        clock: Clock,
        materialize_all: bool,
        budget: int = BUDGET,
        ends: Mapping[Triple, Time] = MappingProxyType({}),
        spending: Spending | None = None,
        closing: int | None = None,
    ) -> None:
        self.program = program
        self._budget, self._closing = budget, closing or budget
        self._spending = spending or Spending(UNLIMITED)
        self._checked = program.entailment is not Entailment.NONE
        self._clock = clock
        self._unions = needed(program.selects) & {ALL, RDF_TYPE}
        self._epochs = 0
        rules = rules_over(program, stated)
        mattering = None
        if program.entailment is Entailment.NONE and not materialize_all:
            mattering = reader_of(program.selects.values(), rules)
        self._mattering = mattering
        self.kept = Maintained(
            rules,
            stated if mattering is None else mattering(stated),
            needed=wanted(program, materialize_all),
            changing=_declared(program),
            unions=self._unions,
            ends=ends if _over_windows(program) else None,
            limits=Limits(budget=budget, closing=closing),
        )
        self.findings: list[Diagnostic] = []
        """Warnings about the graphs of `facts` and `equalities` since they were taken."""
        self._over_basics = self.over_schema or program.entailment is Entailment.OWL2RL
        self._make()

    def _make(self) -> None:
        """Plans over the current index."""
        kept = self.kept
        self._meter = Meter()
        """The meter of the standing query that is evaluated."""
        self._instants = Materialiser(
            (), closed=kept.closed, ground=kept.ground, limits=Limits(budget=self._budget)
        )
        self._instants.store.moment.clock = kept.store.moment.clock = self._clock
        self._extract = Extractor(
            self.program.asked,
            self._instants.store,
            budget=self._closing,
            patience=self._budget,
            kept=kept.store,
        )
        self._met: set[Relation] = set()
        self._standing: dict[Select, MaintainedQuery] = {}
        self._woken: dict[Relation, list[tuple[Select, MaintainedQuery]]] = {}
        self._names: dict[Select, str] = {}
        for name, standing in self.program.standing.items():
            if standing.select not in self._standing:
                self._names[standing.select] = name
                query = self._standing[standing.select] = standing_query(
                    standing.select, kept.store, meter=self._meter
                )
                self._prime(standing.select, query)
                for relation in query.relations:
                    self._woken.setdefault(relation, []).append((standing.select, query))
        self._plain: PlainChanges | None = None
        if not (kept.expires or self._checked or kept.closed.instantiated.watched):
            self._plain = PlainChanges(kept, self._woken, self._extract.follows, self._meter)

    # -- M

    def answers(self, select: Select) -> Counter[Row]:
        """All answers over M of a query without NOW()."""
        with self._working(select):
            return Counter(standing_query(select, self.kept.store, meter=self._meter).answers())

    def _prime(self, select: Select, query: MaintainedQuery) -> None:
        """Let a query find the answers that it has to know; no instant spends for what lasts already."""
        limit = at_deployment(self._closing, len(self.kept.index))
        self._meter.open(limit)
        try:
            query.prime()
        except Exhausted as exhausted:
            raise self._much_work(exhausted, select, limit) from None

    @contextmanager
    def _working(self, select: Select) -> Iterator[None]:
        """Evaluate a standing query. Raises ProgramError D4132 for too much work."""
        limit = self._limit()
        self._meter.open(limit)
        try:
            yield
        except Exhausted as exhausted:
            raise self._much_work(exhausted, select, limit) from None
        finally:
            self._spending.spend_of(self._meter)

    def _limit(self) -> int:
        """Units that a query, or the rules, may take for the open change."""
        return self._spending.limit(at_deployment(self._budget, len(self.kept.index)))

    def _much_work(self, exhausted: Exhausted, select: Select, limit: int) -> ProgramError:
        return much_work_of(exhausted, self._names.get(select, ""), select, limit, "over what lasts")

    @property
    def over_schema(self) -> bool:
        """Whether rules were instantiated over a schema."""
        return self.kept.closed.instantiated.over

    def schema(self) -> set[Triple]:
        """The triples of M over which rules were instantiated, and those these are derived from."""
        watched = self.kept.closed.instantiated.watched
        return {triple for triple in schema_triples(self.kept) if relation_of(*triple) in watched}

    def check(self) -> None:
        """Raise DataError D3101 if M, with the open change, contradicts itself."""
        if self._checked and (clashes := self.kept.clashes()):
            raise DataError([clash_found(clash) for clash in clashes])

    def mostly_ends(self, ended: Collection[Triple]) -> bool:
        """Whether recomputing M is less work than `move`."""
        kept = self.kept
        if not kept.mostly_ends(len(ended)):
            return False
        return kept.mostly_ends(
            sum(map(kept.keeps, ended if self._mattering is None else self._mattering(ended)))
        )

    def move(
        self,
        begun: Mapping[Triple, Time],
        ended: Collection[Triple],
        time: Time,
        moved: Mapping[Triple, Time] = MappingProxyType({}),
        *,
        check: bool = True,
    ) -> Settled:
        """Commit a StatedChange. Raises DataError, ProgramError if M contradicts itself or explodes,
        SchemaChange if it must be recomputed; nothing has changed then.
        """
        mattering = self._mattering
        if mattering is not None:
            reads, loses = mattering(begun), mattering(ended)
            if not (reads or loses or moved):
                return _NOTHING_MOVED
            if len(reads) < len(begun):
                begun = {triple: begun[triple] for triple in reads}
            ended = loses
            moved = {triple: moved[triple] for triple in mattering(moved)} if moved else moved
        if self._plain is not None:
            plain = self._plain.make(begun, ended, self._limit())
            self._spending.spend_of(self._meter)
            if plain is not None:
                differences, undo = plain
                if not differences:
                    return Settled(_NO_DIFFERENCES, undo)
                return self._settled(differences, undo)
        return self._move(begun, ended, time, moved, check=check)

    def _move(
        self,
        begun: Mapping[Triple, Time],
        ended: Collection[Triple],
        time: Time,
        moved: Mapping[Triple, Time],
        *,
        check: bool,
    ) -> Settled:
        kept = self.kept
        if self._over_basics and (self._schema_among(begun) or self._schema_among(ended)):
            raise SchemaChange
        self._widen(begun, ended)
        kept.most = self._limit()
        try:
            if kept.expires:
                kept.go(time, begun, ended, moved)
            else:
                kept.open(begun, ended)
        finally:
            self._spending.spend_of(kept.store.meter)
        try:
            watched = kept.closed.instantiated.watched
            if watched and (kept.touches(watched) or self._equates()):
                raise SchemaChange
            if check:
                self.check()
            differences = self._differences()
            moves = self._moves()
        except BaseException:
            self._forget()
            kept.abandon()
            raise
        new = {c.relation for c in kept.store.overlay.touched if c.added and c.relation not in self._met}
        settled = self._settled(differences, partial(kept.undo, kept.commit()), moves)
        if new:
            self._met |= new
            self._instants.meet(new)
        return settled

    def _settled(
        self, differences: Sequence[Difference], undo: Callable[[], None], moves: Moves = NO_MOVES
    ) -> Settled:
        """A change is in the index."""
        backs = [query.settle() for _, query, _ in differences]
        self._extract.settle(moves)

        def back() -> None:
            undo()
            self._extract.settle(-moves)
            for settled in backs:
                settled()

        return Settled({select: changes for select, _, changes in differences if changes}, back)

    def _differences(self) -> list[Difference]:
        """The delta of every standing query that the open change may touch. (Hashing a Select hashes all its
        parts: queries are compared by identity here.)
        """
        woken = {
            id(one[1]): one
            for changes in self.kept.store.overlay.touched
            for one in self._woken.get(changes.relation, ())
        }
        found: list[Difference] = []
        for select, query in woken.values():
            with self._working(select):
                found.append((select, query, query.moved()))
        return found

    def _moves(self) -> Moves:
        """The delta of the standing answers of all other queries."""
        limit = self._limit()
        try:
            return self._extract.moves(self._spending, limit)
        except Exhausted as exhausted:
            unit = exhausted.source
            assert isinstance(unit, QueryUnit), "followers say whose work it is"
            raise much_work_of(exhausted, unit.name, unit.select, limit, "over what lasts") from None

    def _forget(self) -> None:
        for query in self._standing.values():
            query.forget()

    def _schema_among(self, triples: Iterable[Triple]) -> bool:
        """Whether these triples may change the rules' instances."""
        if self.over_schema:
            return any(map(_is_basic, triples))
        return self.program.entailment is Entailment.OWL2RL and any(map(is_list_triple, triples))

    def _equates(self) -> bool:
        """Whether an equality of a class, of a property, or of what the schema mentions begins or ends."""
        moved = self.kept.store.changes(SAME_AS)
        pairs = (*moved.added, *moved.removed)
        return bool(pairs) and self._instants.concerns_schema(pairs)

    def _widen(self, *changes: Iterable[Triple]) -> None:
        """Open an epoch for relations that were assumed not to change."""
        kept = self.kept
        if kept.general is EVERYTHING:
            return
        new = {holding(t)[0] for part in changes for t in part if kept.keeps(t)}
        new = {relation for relation in new if relation not in kept.general}
        if new:
            self._epochs += 1
            kept.widen(None if self._epochs >= _EPOCHS else sorted(new))
            self._make()

    # -- K

    def facts(self, graph: Iterable[Triple], time: Time) -> dict[str, list[Fact]]:
        """The facts of the queries over K(t), which is dropped afterwards.

        Raises DataError D2601, D3101 and ProgramError; nothing has changed then.
        """
        instants = self._instants
        instants.instant(dict.fromkeys(graph))
        try:
            if self._checked and (clashes := instants.clashes()):
                raise DataError(clashes)
            self.findings += instants.findings()
            return self._extract.facts_within(time, self._spending)
        finally:
            instants.forget()

    def beside(self, graph: Iterable[Triple]) -> None:
        """Note in `findings` what a graph makes equal. Raises DataError D2601 where it makes a class or a
        property equal to something, or where schema follows; and as `facts`.
        """
        self._instants.instant(dict.fromkeys(graph))
        self.findings += self._instants.findings()
        self._instants.forget()

    def state(self, graph: Iterable[Triple]) -> set[Triple]:
        """K(t) over a graph, dropped afterwards; without stated triples that nothing reads. Raises as
        `facts`.
        """
        instants = self._instants
        instants.instant(dict.fromkeys(graph))
        try:
            return set(instants.state())
        finally:
            instants.forget()


def _declared(program: Program) -> list[Relation] | None:
    """The relations of HOLD lines; None for all."""
    if any(hold.predicate is None and hold.class_ is None for hold in program.holds):
        return None
    return [
        class_relation(hold.class_) if hold.class_ is not None else str(hold.predicate)
        for hold in program.holds
    ]


def _over_windows(program: Program) -> bool:
    """Whether what graphs state ends by time only, unless deleted."""
    holds = program.holds
    return any(hold.duration for hold in holds) and not any(hold.latest for hold in holds)


def _is_basic(triple: Triple) -> bool:
    """Whether rules may be instantiated over a triple."""
    relation = relation_of(*triple)
    return is_schema(relation) or relation == SAME_AS or is_list_triple(triple)
