"""What follows from what is stated, maintained while that changes, and the facts of each instant over it.

Place:   instants.py drives it; periods.py knows what is stated when; enrich/maintenance.py derives.
Method:  language.md, "What lasts". M(t) changes, K(t) is over it, and answers begin and end.
           MaintainedModel  the index of what holds and the answers that stand over it, for HOLD and for
             knowledge_base/ alike. A change is opened over the index, checked, the standing queries give
             their signed deltas, and it is committed with them; it can be undone. K(t) is a temporary overlay
             over the current index. Code for undeclared relations assumes that they never change; when a
             triple of theirs is inserted or deleted, plans are remade over the same index.
           PlainChanges  relations that no rule reads or derives: rows go straight into the index. A solution
             of a conjunction binds all its variables. So a change removes the solutions that use a removed
             row in the index before it, and adds those that use an added row in the index after it. Both are
             sets, whichever pattern a row matches. For each relation a query has one generated function that
             finds them (extract/query.py).
           reader_of  which triples of a relation the queries can match, by the constants of their patterns; a
             statement that matches none is not indexed. The caches of Gergatsoulis and Damigos (2021) hold,
             for ground and star queries, only what matches a pattern of the query. Relations that rules, a
             pattern without constants, a path or an interpreted query read are kept whole.
Why not: PlainChanges for all relations: derivations, paths, OPTIONAL and groups compare both states, which
         needs the overlay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import Struct

from dotr.budget import BUDGET, CHANGED, SLACK, UNLIMITED, Exhausted, Meter, Spending, at_deployment
from dotr.enrich.analysis import reads
from dotr.enrich.maintenance import Maintained, NetChange
from dotr.enrich.materialiser import Limits, Materialiser, clash_found
from dotr.enrich.owl import (
    SAME_AS,
    is_list_triple,
    is_schema,
    rules_over,
)
from dotr.enrich.rules import place_of
from dotr.errors import DataError, Diagnostic, ProgramError
from dotr.events import Clock, Fact, Time
from dotr.extract.algebra import Pattern, Uncompiled, patterns_of, read_by, relations_of, translate
from dotr.extract.extractor import NO_MOVES, Extractor, ViewDeltas, much_work_of, needed, wanted
from dotr.extract.operators import Change, Row
from dotr.extract.query import MaintainedQuery, Shown, UsingRows
from dotr.extract.sharing import attributes
from dotr.extract.units import QueryUnit
from dotr.joins.plan import ALL, Relation, class_relation, holding, is_class, relation_of
from dotr.joins.store import EVERYTHING
from dotr.program import DatalogRule, Entailment, Program, Select, Var
from dotr.rdf.index import Row as Key
from dotr.rdf.terms import RDF_TYPE, Term, Triple

_REMEMBERED = 10_000

Difference: TypeAlias = tuple[Select, MaintainedQuery, Sequence[Change]]
Reader: TypeAlias = tuple[Select, MaintainedQuery, UsingRows]

Answers: TypeAlias = dict[MaintainedQuery, tuple[Select, dict[Row, None], dict[Row, None]]]
"""Query → its SELECT, and the solutions before projection that it loses and gains: sets, in order."""

Rows: TypeAlias = dict[Relation, tuple[dict[Key, None], dict[Key, None]]]
"""Relation → (keys of added rows, keys of removed rows)."""


class PlainChange(Struct, frozen=True):
    """A change that was made in the index: its rows, how many ended triples were not stated, how the answers
    of queries changed, and how to undo it.
    """

    rows: Rows
    useless: int
    differences: Sequence[Difference]
    undo: Callable[[], None]

    def net(self) -> NetChange:
        """Its rows as triples."""
        rows = self.rows.items()
        added = [triple for relation, (keys, _) in rows for triple in _triples(relation, keys)]
        removed = [triple for relation, (_, keys) in rows for triple in _triples(relation, keys)]
        return NetChange(tuple(sorted(added)), tuple(sorted(removed)))


def _triples(relation: Relation, keys: Iterable[Key]) -> Iterator[Triple]:
    """Rows of a plain relation as triples."""
    if is_class(relation):
        return ((str(key), RDF_TYPE, relation[2:]) for key in keys)
    return ((key[0], relation, key[1]) for key in keys)


class PlainChanges:
    """Owns which relations are plain, and their queries. Made again whenever plans are.

    `woken`: standing queries by the relations that they read. `follows`: whether others must see a change of
    a relation while it is open. `meter`: the meter of the queries.
    """

    def __init__(
        self,
        kept: Maintained,
        woken: Mapping[Relation, Sequence[tuple[Select, MaintainedQuery]]],
        follows: Callable[[Relation], bool],
        meter: Meter,
    ) -> None:
        self._kept, self._woken, self._follows, self._meter = kept, woken, follows, meter
        self._readers: dict[Relation, list[Reader] | None] = {}

    def make(self, begun: Iterable[Triple], ended: Iterable[Triple], limit: int) -> PlainChange | None:
        """Make a change in the index and tell the queries. None, and nothing is done, if a relation is not
        plain or if it takes more than a part of `limit`: then the overlay decides.
        """
        if len(self._readers) > _REMEMBERED:
            self._readers.clear()
        self._meter.open(limit // SLACK)
        try:
            found = self._rows(begun, ended)
            if found is None:
                return None
            rows, useless = found
            answers: Answers = {}
            for relation, (_, removed) in rows.items():
                if removed:
                    self._use(relation, removed, answers, gained=False)
        except Exhausted:
            return None
        self._kept.exchange(rows)
        undo = partial(self._take_back, rows)
        try:
            for relation, (added, _) in rows.items():
                if added:
                    self._use(relation, added, answers, gained=True)
            differences: list[Difference] = []
            for query, (select, lost, gained) in answers.items():
                query.take(lost, gained)
                differences.append((select, query, query.moved()))
            return PlainChange(rows, useless, differences, undo)
        except Exhausted:
            for query in answers:
                query.forget()
            undo()
            return None

    def _take_back(self, rows: Rows) -> None:
        self._kept.exchange({relation: (removed, added) for relation, (added, removed) in rows.items()})

    def _use(self, relation: Relation, rows: Collection[Key], found: Answers, *, gained: bool) -> None:
        """Add the solutions that use rows of a relation to what is lost or gained in `found`."""
        for select, query, using in self._readers[relation] or ():
            if answers := using(rows):
                self._meter.charge(len(answers), "answers that change", CHANGED)
                _, before, after = found.setdefault(query, (select, {}, {}))
                (after if gained else before).update(dict.fromkeys(answers))

    def _rows(self, begun: Iterable[Triple], ended: Iterable[Triple]) -> tuple[Rows, int] | None:
        """The effective part of a change, and how many ended triples were not stated; None if a relation is
        not plain.
        """
        index = self._kept.index
        rows: Rows = {}
        useless = 0
        for triple in ended:
            relation, key = place_of(triple)
            exchanged = rows.get(relation) or self._entered(relation, rows)
            if exchanged is None:
                return None
            if triple in index:
                exchanged[1][key] = None
            else:
                useless += 1
        for triple in begun:
            relation, key = place_of(triple)
            exchanged = rows.get(relation) or self._entered(relation, rows)
            if exchanged is None:
                return None
            if key in exchanged[1]:
                del exchanged[1][key]
            elif triple not in index:
                exchanged[0][key] = None
        return rows, useless

    def _entered(self, relation: Relation, rows: Rows) -> tuple[dict[Key, None], dict[Key, None]] | None:
        """An entry for a relation in `rows`; None if it is not plain."""
        if relation not in self._readers:
            self._readers[relation] = None
            self._readers[relation] = self._reading(relation)
        return None if self._readers[relation] is None else rows.setdefault(relation, ({}, {}))

    def _reading(self, relation: Relation) -> list[Reader] | None:
        """The queries that read a relation; None if it is not plain."""
        if not self._kept.plain(relation) or self._follows(relation):
            return None
        found: list[Reader] = []
        for select, query in self._woken.get(relation, ()):
            using = query.using(relation)
            if using is None:
                return None
            found.append((select, query, using))
        return found


ConstantsReader: TypeAlias = Callable[[Iterable[Triple]], list[Triple]]
"""Triples → those that may matter, in the same order."""


_NOTHING: frozenset[Term] = frozenset()


class _Constants:
    """Owns the constants of the patterns of one predicate: `objects` without a constant subject, and
    `subjects` → the objects beside them, None for any.
    """

    __slots__ = ("objects", "subjects")

    def __init__(self) -> None:
        self.subjects: dict[Term, set[Term] | None] = {}
        self.objects: set[Term] = set()

    def matches(self, subject: Term, object_: Term) -> bool:
        """Whether a pattern may match the triple."""
        if object_ in self.objects:
            return True
        beside = self.subjects.get(subject, _NOTHING)
        return beside is None or object_ in beside


def reader_of(selects: Iterable[Select], rules: Iterable[DatalogRule]) -> ConstantsReader | None:
    """Which triples may matter to queries or rules; None where the relations alone decide."""
    whole: set[Term] = {relation for rule in rules for relation, _ in reads(rule)} | {RDF_TYPE}
    found: dict[Term, _Constants] = {}
    for select in selects:
        core = translate(select).core
        if isinstance(core, Uncompiled):
            whole |= relations_of(select)
            continue
        for pattern in patterns_of(core):
            if not _narrows(pattern, found):
                whole.update(read_by(pattern))
    if ALL in whole:
        return None
    limits = {predicate: limit for predicate, limit in found.items() if predicate not in whole}
    if not limits:
        return None
    subjects = frozenset(subject for limit in limits.values() for subject in limit.subjects)
    objects = frozenset(object_ for limit in limits.values() for object_ in limit.objects)

    def mattering(triples: Iterable[Triple]) -> list[Triple]:
        kept = []
        for triple in triples:  # most have a limited predicate and no constant of it
            subject, predicate, object_ = triple
            if object_ in objects or subject in subjects or predicate not in limits:
                limit = limits.get(predicate)
                if limit is None or limit.matches(subject, object_):
                    kept.append(triple)
        return kept

    return mattering


def _narrows(pattern: Pattern, found: dict[Term, _Constants]) -> bool:
    """Record the constants of a pattern; whether it has any."""
    subject, predicate, object_ = pattern.subject, pattern.predicate, pattern.object
    if not isinstance(predicate, str):
        return False
    if isinstance(subject, Var) and isinstance(object_, Var):
        return False
    constants = found.setdefault(predicate, _Constants())
    if isinstance(subject, Var):
        constants.objects.add(object_)  # type: ignore[arg-type]  # one of them is not a variable
    elif isinstance(object_, Var):
        constants.subjects[subject] = None
    else:
        beside = constants.subjects.setdefault(subject, set())
        if beside is not None:
            beside.add(object_)
    return True


Differences: TypeAlias = Mapping[Select, Sequence[Change]]
"""Standing query → how its answers change, where they do."""

_EPOCHS = 8
"""How often plans are remade for undeclared relations before all relations are taken to change."""

_NO_ENDS: Mapping[Triple, Time] = MappingProxyType({})
_NO_CHANGE: Final = NetChange((), ())


def _nothing() -> None:
    """No change was made: there is nothing to undo."""


class Outcome(Struct, frozen=True):
    """A committed change: how the answers of standing queries changed, and how to undo it.

    `net`: the triples that hold now, or no more, if the model `nets`. `useless`: ended triples that were not
    stated.
    """

    differences: Differences = MappingProxyType({})
    undo: Callable[[], None] = _nothing
    net: NetChange = _NO_CHANGE
    useless: int = 0


_NOTHING_MOVED: Final = Outcome()


class SchemaChange(Exception):  # noqa: N818  # not an error: the model must be remade
    """A change concerns triples over which rules were instantiated: other rules follow from it."""


class MaintainedModel:
    """Owns the index of what holds by one set of rules, the change or instant that is open over it, and the
    answers that stand over both.

    `standing`: queries whose answers are followed, mapped by `shown`, with their names for errors, which say
    `where` they are asked. `asked`: queries over K(t), None if there are no instants. `checked`: whether what
    holds may contradict itself. `mattering`: which triples matter, None for all. `unions`: which of ALL and
    RDF_TYPE `kept` keeps for standing queries, if more may `stand`. `nets`: note net changes. `spending`:
    what the run may spend on changes; with it, what a standing query has to know is found when plans are
    made, as part of closing. Raises ProgramError D4132 for a query that takes too much work over the index.
    """

    def __init__(
        self,
        kept: Maintained,
        standing: Mapping[Select, str] = MappingProxyType({}),
        asked: Mapping[str, Select] | None = None,
        *,
        entailment: Entailment,
        checked: bool,
        limits: Limits,
        spending: Spending | None = None,
        clock: Clock | None = None,
        mattering: ConstantsReader | None = None,
        shown: Shown = attributes,
        unions: frozenset[Relation] = frozenset(),
        nets: bool = False,
        where: str = "over what lasts",
    ) -> None:
        self.kept = kept
        self.unions = unions
        self.findings: list[Diagnostic] = []
        """Warnings about the graphs of `facts` and `beside` since they were taken."""
        self._names = dict(standing)
        self._asked, self._clock, self._mattering = asked, clock or Clock(), mattering
        self._limits, self._spending, self._closing = limits, spending, limits.closing or limits.budget
        self._shown, self._nets, self._where = shown, nets, where
        self._checked = checked
        self._lists = entailment is Entailment.OWL2RL
        self._epochs = 0
        self._meter = Meter()
        """The meter of the standing query that is evaluated."""
        self._standing: dict[Select, MaintainedQuery] = {}
        self.plan(standing)

    def plan(self, standing: Iterable[Select] | None = None) -> None:
        """Make plans over the current index. `standing`: other standing queries than before."""
        kept, selects = self.kept, list(self._standing if standing is None else standing)
        kept.store.moment.clock = self._clock
        self._instants: Materialiser | None = None
        self._extract: Extractor | None = None
        if self._asked is not None:
            instants = self._instants = Materialiser(
                (), closed=kept.closed, ground=kept.ground, limits=Limits(budget=self._limits.budget)
            )
            instants.store.moment.clock = self._clock
            self._extract = Extractor(
                self._asked,
                instants.store,
                budget=self._closing,
                patience=self._limits.budget,
                kept=kept.store,
            )
        self._met: set[Relation] = set()
        self._standing = {}
        self._woken: dict[Relation, list[tuple[Select, MaintainedQuery]]] = {}
        for select in selects:
            query = MaintainedQuery(select, kept.store, meter=self._meter, shown=self._shown)
            self._enter(select, query)
            if self._spending is not None:
                self._prime(select, query)
        self._plain_anew()

    def _enter(self, select: Select, query: MaintainedQuery) -> None:
        self._standing[select] = query
        for relation in query.relations:
            self._woken.setdefault(relation, []).append((select, query))

    def _plain_anew(self) -> None:
        """Find the plain relations again: they depend on the standing queries."""
        kept = self.kept
        self._plain: PlainChanges | None = None
        if not (kept.expires or self._checked or kept.closed.instantiated.watched):
            follows = self._extract.follows if self._extract is not None else lambda _: False
            self._plain = PlainChanges(kept, self._woken, follows, self._meter)

    # -- standing queries

    @property
    def standing(self) -> Collection[Select]:
        """The queries whose answers are followed."""
        return self._standing.keys()

    def stand(self, select: Select, name: str) -> None:
        """Follow the answers of a query without NOW() from now on."""
        if select in self._standing:
            return
        self._names[select] = name
        query = MaintainedQuery(select, self.kept.store, meter=self._meter, shown=self._shown)
        unions = query.relations & {ALL, RDF_TYPE}
        if unions <= self.unions:
            self._enter(select, query)
            self._plain_anew()
            return
        self.unions |= unions
        self.kept.unite(unions)
        self.plan([*self._standing, select])

    def drop(self, select: Select) -> None:
        """Follow them no more."""
        self._standing.pop(select, None)
        for relation, woken in self._woken.items():
            self._woken[relation] = [one for one in woken if one[0] != select]
        self._plain_anew()

    def followed(self, select: Select) -> list[Row]:
        """All answers of a standing query, which are kept from now on."""
        with self._working(select):
            return self._standing[select].answers()

    def answers(self, select: Select) -> Counter[Row]:
        """All answers over the index of any query without NOW()."""
        with self._working(select):
            query = MaintainedQuery(select, self.kept.store, meter=self._meter, shown=self._shown)
            return Counter(query.answers())

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
            self._spend(self._meter)

    def _limit(self) -> int:
        """Units that a query, or the rules, may take for the open change."""
        limit = at_deployment(self._limits.budget, len(self.kept.index))
        return limit if self._spending is None else self._spending.limit(limit)

    def _spend(self, meter: Meter) -> None:
        if self._spending is not None:
            self._spending.spend_of(meter)

    def _much_work(self, exhausted: Exhausted, select: Select, limit: int) -> ProgramError:
        return much_work_of(exhausted, self._names.get(select, ""), select, limit, self._where)

    # -- changes of M

    @property
    def over_schema(self) -> bool:
        """Whether rules were instantiated over a schema."""
        return self.kept.closed.instantiated.over

    def check(self) -> None:
        """Raise DataError D3101 if M, with the open change, contradicts itself."""
        if self._checked and (clashes := self.kept.clashes()):
            raise DataError([clash_found(clash) for clash in clashes])

    def mostly_ends(self, ended: Collection[Triple]) -> bool:
        """Whether recomputing M is less work than `change`."""
        kept = self.kept
        if not kept.mostly_ends(len(ended)):
            return False
        return kept.mostly_ends(
            sum(map(kept.states, ended if self._mattering is None else self._mattering(ended)))
        )

    def change(
        self,
        begun: Collection[Triple],
        ended: Collection[Triple],
        time: Time = 0,
        moved: Mapping[Triple, Time] = _NO_ENDS,
        *,
        check: Callable[[NetChange], None] | None = None,
        before: Maintained | None = None,
    ) -> Outcome:
        """Commit a change: triples end, then others begin. `begun`: with their ends, if `kept.expires`;
        `moved`: new ends of others.

        `check` is called while the change is open, and raises to refuse it. `before`: the index that `kept`
        is `under` other rules than. Raises SchemaChange if other rules follow, ProgramError if they explode,
        and what `check` raises; nothing has changed then.
        """
        mattering = self._mattering
        if mattering is not None:
            reads, ended = mattering(begun), mattering(ended)
            if not (reads or ended or moved):
                return _NOTHING_MOVED
            if len(reads) < len(begun):
                begun = {triple: begun[triple] for triple in reads} if isinstance(begun, Mapping) else reads
            moved = {triple: moved[triple] for triple in mattering(moved)} if moved else moved
        if before is not None:
            return self._through_overlay(begun, ended, time, moved, check, before)
        if self._plain is not None:
            plain = self._plain.make(begun, ended, self._limit())
            self._spend(self._meter)
            if plain is not None:
                net = plain.net() if self._nets else _NO_CHANGE
                return self._settled(plain.differences, plain.undo, net, plain.useless)
        if self.shapes_rules(begun) or self.shapes_rules(ended):
            raise SchemaChange
        self._widen(begun, ended)
        return self._through_overlay(begun, ended, time, moved, check)

    def _through_overlay(
        self,
        begun: Iterable[Triple],
        ended: Iterable[Triple],
        time: Time,
        moved: Mapping[Triple, Time],
        check: Callable[[NetChange], None] | None,
        before: Maintained | None = None,
    ) -> Outcome:
        kept = self.kept
        useless = 0
        if self._spending is not None:
            kept.most = self._limit()
        try:
            if kept.expires:
                assert isinstance(begun, Mapping), "statements begin with their ends"
                kept.go(time, begun, ended, moved)
            else:
                useless = kept.open(begun, ended, before)
        finally:
            self._spend(kept.store.meter)
        try:
            if before is None and self._reaches_rules():
                raise SchemaChange
            net = kept.changed() if self._nets else _NO_CHANGE
            if check is not None:
                check(net)
            differences = self._differences()
            moves = self._moves()
        except BaseException:
            for query in self._standing.values():
                query.forget()
            kept.abandon()
            raise
        new: set[Relation] = set()
        if self._instants is not None:
            touched = kept.store.overlay.touched
            new = {c.relation for c in touched if c.added and c.relation not in self._met}
        settled = self._settled(differences, partial(kept.undo, kept.commit()), net, useless, moves)
        if new and self._instants is not None:
            self._met |= new
            self._instants.meet(new)
        return settled

    def _settled(
        self,
        differences: Sequence[Difference],
        undo: Callable[[], None],
        net: NetChange,
        useless: int,
        moves: ViewDeltas = NO_MOVES,
    ) -> Outcome:
        """A change is in the index."""
        if not (differences or moves):
            return Outcome(undo=undo, net=net, useless=useless)
        backs = [query.settle() for _, query, _ in differences]
        if moves is not NO_MOVES:
            self._settle(moves)

        def back() -> None:
            undo()
            self._settle(-moves)
            for settled in backs:
                settled()

        moved = {select: changes for select, _, changes in differences if changes}
        return Outcome(moved, back, net, useless)

    def _settle(self, moves: ViewDeltas) -> None:
        if moves and self._extract is not None:
            self._extract.settle(moves)

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

    def _moves(self) -> ViewDeltas:
        """The delta of the standing answers of all other queries."""
        if self._extract is None or self._spending is None:
            return NO_MOVES
        limit = self._limit()
        try:
            return self._extract.moves(self._spending, limit)
        except Exhausted as exhausted:
            unit = exhausted.source
            assert isinstance(unit, QueryUnit), "followers say whose work it is"
            raise much_work_of(exhausted, unit.name, unit.select, limit, self._where) from None

    def shapes_rules(self, triples: Iterable[Triple]) -> bool:
        """Whether rules may be others with or without these statements."""
        instantiated = self.kept.closed.instantiated
        if not instantiated.over:
            return self._lists and any(map(is_list_triple, triples))
        equal = self._instants is not None or bool(instantiated.dormant)
        for triple in triples:
            relation = relation_of(*triple)
            if is_schema(relation) or is_list_triple(triple) or (equal and relation == SAME_AS):
                return True
        return False

    def _reaches_rules(self) -> bool:
        """Whether the open change is of what rules were instantiated over: with instants, also whether an
        equality of a class, of a property, or of what the schema mentions begins or ends.
        """
        watched = self.kept.closed.instantiated.watched
        if not watched:
            return False
        if self.kept.touches(watched):
            return True
        moved = self.kept.store.changes(SAME_AS)
        pairs = (*moved.added, *moved.removed)
        return bool(pairs) and self._instants is not None and self._instants.concerns_schema(pairs)

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
            self.plan()

    # -- K

    @contextmanager
    def _instant(self, graph: Iterable[Triple]) -> Iterator[Materialiser]:
        """K(t) over a graph, dropped afterwards. Raises DataError D2601, ProgramError."""
        instants = self._instants
        assert instants is not None, "made with `asked`"
        instants.instant(dict.fromkeys(graph))
        try:
            yield instants
        finally:
            instants.forget()

    def facts(self, graph: Collection[Triple], time: Time) -> dict[str, list[Fact]]:
        """The facts of the queries over K(t).

        Raises DataError D2601, D3101 and ProgramError; nothing has changed then.
        """
        assert self._extract is not None
        assert self._spending is not None, "instants spend"
        if not graph and not self._extract.answers_always:  # K(t) is M(t), which was checked
            return {}
        instants = self._instants
        assert instants is not None, "made with `asked`"
        instants.instant(dict.fromkeys(graph))
        try:  # as `_instant`, without a generator at every instant
            if self._checked and (clashes := instants.clashes()):
                raise DataError(clashes)
            if instants.over_schema:
                self.findings += instants.findings()
            return self._extract.facts_within(time, self._spending)
        finally:
            instants.forget()

    def beside(self, graph: Iterable[Triple]) -> None:
        """Note in `findings` what a graph makes equal. Raises DataError D2601 where it makes a class or a
        property equal to something, or where schema follows; and as `facts`.
        """
        with self._instant(graph) as instants:
            self.findings += instants.findings()

    def state(self, graph: Iterable[Triple]) -> set[Triple]:
        """K(t) over a graph; without stated triples that nothing reads. Raises as `facts`."""
        with self._instant(graph) as instants:
            return set(instants.state())


def lasting_model(
    program: Program,
    stated: Collection[Triple],
    clock: Clock,
    materialize_all: bool = False,
    budget: int = BUDGET,
    ends: Mapping[Triple, Time] = _NO_ENDS,
    spending: Spending | None = None,
    closing: int | None = None,
) -> MaintainedModel:
    """The model of a program over what is stated, with K(t) over it.

    `ends`: when those triples end that end by time alone. `spending`: what the run may spend; None for as
    much as there is. `closing`: units of closing what is stated, if not `budget`. Raises ProgramError,
    DataError for rules that are invalid over it; a contradiction in it is not an error here.
    """
    rules = rules_over(program, stated)
    checked = program.entailment is not Entailment.NONE
    mattering = None if checked or materialize_all else reader_of(program.selects.values(), rules)
    limits = Limits(budget=budget, closing=closing)
    kept = Maintained(
        rules,
        stated if mattering is None else mattering(stated),
        needed=wanted(program, materialize_all),
        changing=_declared(program),
        unions=needed(program.selects) & {ALL, RDF_TYPE},
        ends=ends if _over_windows(program) else None,
        limits=limits,
    )
    names: dict[Select, str] = {}
    for name, one in program.standing.items():
        names.setdefault(one.select, name)
    return MaintainedModel(
        kept,
        names,
        program.asked,
        entailment=program.entailment,
        checked=checked,
        limits=limits,
        spending=spending or Spending(UNLIMITED),
        clock=clock,
        mattering=mattering,
    )


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
    return any(hold.duration or hold.until for hold in holds) and not any(hold.latest for hold in holds)
