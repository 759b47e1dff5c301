"""Maintain a materialisation while statements and rules are added and removed.

Place:   the heart of what lasts: pipeline and knowledge base pass the statements that begin and end; while a
         change is open, queries read the states before and after it from `store`.
Method:  a change is an overlay over the index: new statements and what they derive (semi-naive), deleted
         statements and the rows that fall with them (retraction.py), stratum by stratum. `commit` merges the
         overlay into the index, in place, and can be undone; `abandon` drops it without trace. Rows that are
         only derived are marked, so that statements cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import UNLIMITED, Exhausted, at_deployment
from dotr.enrich.closing import (
    Closed,
    close_background,
    closing_program,
    content,
    exceeded,
    overflow,
    triples_of,
)
from dotr.enrich.evaluation import StratumEvaluator
from dotr.enrich.expiration import Expiration, may_expire
from dotr.enrich.materialiser import Ground, Limits, clashes_of
from dotr.enrich.owl import SAME_AS, is_schema
from dotr.enrich.retraction import affected, relations_read, unions_of
from dotr.enrich.rules import (
    Clause,
    Clauses,
    Marks,
    Statements,
    Step,
    Undo,
    place_of,
    row_of,
    triples_in,
    without,
)
from dotr.errors import ProgramError
from dotr.events import FOREVER, Time
from dotr.joins.plan import ALL, Relation, class_relation, is_anonymous, is_apart, is_clash, is_class, is_path
from dotr.joins.store import EVERYTHING, Table, TripleIndex
from dotr.program import DatalogRule
from dotr.rdf.index import Background, Changes, Row, has
from dotr.rdf.terms import RDF_TYPE, Triple

_REMEMBERED = 10_000


class OpenStatements:
    """Owns which relations have statements that begin or end.

    `keeps`: whether anything reads a triple; others are not recorded.
    """

    def __init__(self, index: Background, marks: Marks, keeps: Callable[[Triple], bool]) -> None:
        self._index, self._marks, self._keeps = index, marks, keeps
        self.relations: dict[Relation, Statements] = {}
        """Relations in which the change begins or ends statements."""
        self._keeping: dict[Relation, bool] = {}

    def note(self, insert: Iterable[Triple], delete: Iterable[Triple]) -> tuple[int, int, bool]:
        """Record statements that begin and end; returns useless deletions, the size, whether any ends."""
        useless = size = 0
        of, opened, forward = self._marks.of, self.relations, self._index.forward
        for subject, predicate, object_ in delete:
            values = forward[predicate].get(subject) if predicate in forward else None
            if values is not None and (
                values == object_ if values.__class__ is str else has(values, object_)  # type: ignore[arg-type]  # several
            ):
                relation, key = place_of((subject, predicate, object_))
                statements = of(relation)
                if key not in statements.derived:
                    opened[relation] = statements
                    statements.ended[key] = None
                    size += 1
                    continue
            useless += 1
        mixed = bool(opened)
        for triple in insert:
            subject, predicate, object_ = triple
            if predicate == RDF_TYPE:
                relation, key = class_relation(object_), subject
            else:
                relation, key = predicate, (subject, object_)
            statements = opened.get(relation) or of(relation)
            if key in statements.ended:
                del statements.ended[key]
            elif key in statements.derived:
                opened[relation] = statements
                statements.begun[key] = None
            elif self.kept(relation):
                values = forward[predicate].get(subject) if predicate in forward else None
                if values is None or not (
                    values == object_ if values.__class__ is str else has(values, object_)  # type: ignore[arg-type]  # several
                ):
                    opened[relation] = statements
                    statements.begun[key] = None
            size += 1
        return useless, size, mixed

    def of(self, relation: Relation) -> Statements:
        """The statements of a relation in which the open change begins or ends some."""
        found = self.relations[relation] = self._marks.of(relation)
        return found

    def ends_by_relation(self, begun: Mapping[Triple, Time]) -> dict[Relation, dict[Row, Time]]:
        """The ends of statements that something reads, by the keys of their rows."""
        found: dict[Relation, dict[Row, Time]] = {}
        rows: dict[Row, Time] = {}
        last = None
        for (subject, predicate, object_), end in begun.items():
            if predicate is not last:  # few predicates, with many statements each
                if predicate == RDF_TYPE:
                    found.setdefault(class_relation(object_), {})[subject] = end
                    continue
                last, rows = predicate, found.setdefault(predicate, {})
            rows[subject, object_] = end
        return {relation: rows for relation, rows in found.items() if self.kept(relation)}

    def by_relation(self, triples: Iterable[Triple]) -> dict[Relation, list[Row]]:
        """The keys of the rows of triples that something reads."""
        found: dict[Relation, list[Row]] = {}
        for subject, predicate, object_ in triples:
            relation: Relation = predicate
            key: Row = (subject, object_)
            if predicate == RDF_TYPE:
                relation, key = class_relation(object_), subject
            try:
                found[relation].append(key)
            except KeyError:
                found[relation] = [key]
        return {relation: keys for relation, keys in found.items() if self.kept(relation)}

    def kept(self, relation: Relation) -> bool:
        """Whether anything reads rows of the relation."""
        found = self._keeping.get(relation)
        if found is None:
            triple: Triple = ("", RDF_TYPE, relation[2:]) if is_class(relation) else ("", relation, "")
            found = self._keeps(triple)
            if len(self._keeping) < _REMEMBERED:
                self._keeping[relation] = found
        return found

    def insert(self, layers: StratumEvaluator) -> None:
        """Close a change of new statements only."""
        for statements in self.relations.values():
            add = layers.inserters.adder(statements.relation)
            if is_class(statements.relation):
                for key in statements.begun:
                    add(key)
            else:
                for subject, object_ in statements.begun:
                    add(subject, object_)
        layers.run()

    def enter(self, layers: StratumEvaluator) -> None:
        """Enter new statements and doubt ended ones, before anything is joined. What no rule derives falls
        when it ends.
        """
        for statements in self.relations.values():
            if statements.begun:
                enter, derived = layers.inserters.enterer(statements.relation), statements.derived
                if rows := [key for key in statements.begun if key not in derived]:
                    enter(rows)
        for statements in self.relations.values():
            if statements.ended:
                if not layers.retraction.derivable(statements.relation):
                    layers.retraction.fall(statements.relation, statements.ended)
                    continue
                enqueue = layers.retraction.enqueuer(statements.relation)
                if is_class(statements.relation):
                    for key in statements.ended:
                        enqueue(key)
                else:
                    for subject, object_ in statements.ended:
                        enqueue(subject, object_)

    def forget(self) -> None:
        for statements in self.relations.values():
            statements.begun.clear()
            statements.ended.clear()
        self.relations.clear()


Exchange: TypeAlias = Mapping[Relation, tuple[Collection[Row], Collection[Row]]]
"""Relation → (keys of added rows, keys of removed rows)."""


class CommittedRows:
    """Changes the index, the tables beside it, the marks of derived rows, and bounds."""

    def __init__(
        self,
        index: Background,
        tables: Mapping[Relation, Table],
        statements: Marks,
        expiration: Expiration | None,
    ) -> None:
        self._index, self._tables = index, tables
        self._statements, self._expiration = statements, expiration

    def commit(
        self,
        touched: Sequence[Changes],
        opened: Collection[Statements],
        changes_of: Callable[[Relation], Changes],
    ) -> Undo:
        """Apply the change to the index; returns how to undo it. O(the change)."""
        undo = Undo([], None if self._expiration is None else self._expiration.commit(touched))
        stated = {statements.relation for statements in opened if not statements.derived}
        for changes in touched:
            self._commit(changes, undo)
        for statements in opened:
            relation, derived, unstated = statements.relation, statements.derived, []
            if not derived and not statements.ended:
                continue
            gone = changes_of(relation).removed
            if not derived and relation in stated and len(gone) == len(statements.ended):
                continue  # every old row was stated, and ended ones are gone
            if statements.ended:
                unstated = list(set(statements.ended).difference(gone, derived))
            confirmed = set(statements.begun).intersection(derived)
            if unstated or confirmed:
                derived.update(unstated)
                derived.difference_update(confirmed)
                undo.steps.append(Step(relation, (), (), unstated, confirmed))
        return undo

    def _commit(self, changes: Changes, undo: Undo) -> None:
        relation = changes.relation
        added, removed = list(changes.added), list(changes.removed)
        if relation in self._tables:
            self._move(relation, added, removed)
            undo.steps.append(Step(relation, added, removed))
            return
        statements = self._statements.of(relation)
        derived, begun = statements.derived, statements.begun
        if not derived and len(added) == len(begun):  # every old row is stated, and so are new ones
            self._move(relation, added, removed)
            undo.steps.append(Step(relation, added, removed))
            return
        unmarked = set(changes.removed).intersection(derived)
        marked = set(changes.added).difference(begun)  # on dicts: keys are not hashed again
        self._move(relation, added, removed)
        derived.difference_update(unmarked)
        derived.update(marked)
        undo.steps.append(Step(relation, added, removed, marked, unmarked))

    def _move(self, relation: Relation, added: Collection[Row], removed: Collection[Row]) -> None:
        """Remove and add rows of the index."""
        table = self._tables.get(relation)
        if table is not None:
            for key in removed:
                table.remove(row_of(key))
            for key in added:
                table.insert(row_of(key))
            return
        predicate = relation
        if is_class(relation):
            predicate, class_ = RDF_TYPE, relation[2:]
            added, removed = [(key, class_) for key in added], [(key, class_) for key in removed]
        if removed:
            self._index.remove_all(predicate, removed)
        if added:
            self._index.insert_all(predicate, added)

    def exchange(self, rows: Exchange) -> None:
        """Add and remove rows that are statements."""
        for relation, (added, removed) in rows.items():
            self._move(relation, added, removed)

    def undo(self, undo: Undo) -> None:
        """Undo the last committed change of the index. O(the change)."""
        for step in reversed(undo.steps):
            self._move(step.relation, step.removed, step.added)
            statements = self._statements.get(step.relation)
            if statements is not None:
                statements.derived.difference_update(step.marked)
                statements.derived.update(step.unmarked)
        if self._expiration is not None and undo.bounds is not None:
            self._expiration.undo(undo.bounds)


Opened = TypeVar("Opened")

_LIMITS = Limits()
_FEW, _OF_A_RULE = 500, 4
"""Up to this many ending statements, plus this many per rule, are always maintained incrementally."""
_NO_ENDS: Mapping[Triple, Time] = MappingProxyType({})


class NetChange(Struct, frozen=True):
    """What began and what ceased to hold: stated and derived, each triple once, sorted."""

    added: tuple[Triple, ...]
    removed: tuple[Triple, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class Maintained:
    """Owns the index of what holds, the marks of what is stated, and the overlay of the open change.

    `rules`: all rules. `stated`: canonical triples. `needed`: relations that queries read, None for all; what
    none of them reaches is not kept. `changing`: relations whose statements may change, None for all.
    `closed` and `marks`: the result of `saved`, instead of `stated`. `unions`: which of ALL and RDF_TYPE to
    keep in the overlay beside those that rules read. `ends`: when statements end, None if unknown; with it,
    if the rules allow it (`expires`), rows are kept with the time until which they hold (expiration.py), and
    changes go through `go`. Raises ProgramError for rules that are unsafe, not stratifiable, may not
    terminate, or derive too much (D4001).
    """

    def __init__(
        self,
        rules: Sequence[DatalogRule],
        stated: Collection[Triple] = (),
        *,
        closed: Closed | None = None,
        marks: Mapping[Relation, bytes] | None = None,
        needed: Iterable[Relation] | None = None,
        changing: Iterable[Relation] | None = None,
        unions: Iterable[Relation] = (),
        ends: Mapping[Triple, Time] | None = None,
        limits: Limits = _LIMITS,
        counting: bool = False,
    ) -> None:
        self._limits, self._counting = limits, counting
        self.most = UNLIMITED
        """Units of work of the next change, if less than the limits allow."""
        self._changing = None if changing is None else set(changing)
        if closed is not None:
            self._begin(closed, None, stated, marks, unions, ends)
            return
        lasting = [triple for triple in stated if triple not in ends] if ends else stated
        budget = at_deployment(limits.closing or limits.budget, len(stated))
        needed = None if needed is None else tuple(needed)
        known = {triple for triple in ends or () if triple[1] == SAME_AS}
        while True:
            derived: dict[Relation, set[Row]] = {}
            closed = close_background(rules, lasting, needed, limits.background, budget, derived, known)
            self._begin(closed, derived, stated, None, unions, ends)
            if not ends:
                return
            missed = self.missed()  # by what ends: rules are instantiated over it from the beginning
            if not missed:
                self.commit()
                return
            known |= missed

    def _begin(
        self,
        closed: Closed,
        derived: Mapping[Relation, set[Row]] | None,
        stated: Collection[Triple],
        marks: Mapping[Relation, bytes] | None,
        unions: Iterable[Relation],
        ends: Mapping[Triple, Time] | None,
    ) -> None:
        """Continue from a closed index, and open what ends over it."""
        found, clauses = closing_program(closed)
        self.closed = closed
        self.index = closed.index
        self.keeps = found.keeps
        """Whether anything reads a triple."""
        self._own: dict[Relation, bool] = {}
        self._clauses = clauses
        self._unions = frozenset(unions) | _unions_read(clauses)
        self._tables = {relation: Table(rows) for relation, rows in closed.tables.items()}
        self._statements = Marks(closed.index, marks)
        self._opened = OpenStatements(closed.index, self._statements, self.keeps)
        for subject, predicate, object_ in closed.clashes:
            self._tables.setdefault(predicate, Table()).insert((subject, object_))
        if derived is not None:
            for relation, rows in derived.items():
                self._of(relation).derived.update(rows)
        elif marks is None:
            self._note_derived(clauses, stated)
        may = ends is not None and may_expire(clauses) and not closed.instantiated.dormant
        self._expiration = Expiration(self._states_row) if may else None
        self._rows = CommittedRows(closed.index, self._tables, self._statements, self._expiration)
        self._make()
        if ends:
            if may:
                self.go(-FOREVER, ends)
            else:
                self.open(ends)

    def _make(self) -> None:
        """Plans and code over the current index."""
        clauses, changing = self._clauses, self._changing
        self._of_rules = _OF_A_RULE * len(clauses.all)
        self.general = EVERYTHING if changing is None else affected(clauses, sorted(changing))
        """Relations whose rows may change."""
        self.store = TripleIndex(
            self.index,
            volatile=self.general,
            general=self.general,
            arities={a.relation: a.arity for a in clauses.all_aggregations},
            counting=self._counting,
        )
        self.store.tables = self._tables
        for clause in clauses.all:
            for head in clause.heads:
                if is_apart(head.pattern.relation):
                    self._tables.setdefault(head.pattern.relation, Table())
        self._evaluator = StratumEvaluator(
            clauses,
            self.store,
            unions=self._unions,
            known=None,
            limit=self._limits.instant,
            overflow=overflow(clauses, self._limits.instant),
            stated=self.stated,
            bounds=None if self._expiration is None else self._expiration.bounds,
        )

    def under(self, closed: Closed) -> Maintained:
        """The same index and statements under another program (closing.under_other_rules), for `open`. Only
        one of the two stays valid: the new one after it has committed, else the old one.
        """
        found = copy(self)
        reach, found._clauses = closing_program(closed)
        found.closed, found.keeps = closed, reach.keeps
        found._unions = self._unions | _unions_read(found._clauses)
        known = {content(a): self._tables[a.relation] for a in self._clauses.all_aggregations}
        found._tables = {r: t for r, t in self._tables.items() if is_clash(r) or is_anonymous(r)}
        for aggregation in found._clauses.all_aggregations:
            found._tables[aggregation.relation] = known.get(content(aggregation), Table())
        found._opened = OpenStatements(found.index, found._statements, found.keeps)
        found._rows = CommittedRows(found.index, found._tables, found._statements, found._expiration)
        found._make()
        return found

    def widen(self, relations: Iterable[Relation] | None) -> None:
        """Let rows of these relations (None: all) change, too, from now on. Callers remake their plans."""
        if relations is None or self._changing is None:
            self._changing = None
        else:
            self._changing.update(relations)
        self._make()

    def unite(self, relations: Iterable[Relation]) -> None:
        """Keep these of ALL and RDF_TYPE in the overlay, too. Callers remake their plans."""
        self._unions |= frozenset(relations)
        self._make()

    def plan_anew(self) -> None:
        """Make plans for the current sizes. Callers remake their plans."""
        self._make()

    def saved(self) -> tuple[Closed, dict[Relation, bytes]]:
        """What a new instance over the same rules continues from without closing again; no change is open."""
        tables = {r: list(table.rows) for r, table in self._tables.items() if not is_clash(r)}
        index, clashes = self.index.reopened(), tuple(self.clashes())
        closed = replace(self.closed, index=index, tables=tables, clashes=clashes, explicit=frozenset())
        return closed, self._statements.save(index)

    def _note_derived(self, clauses: Clauses, stated: Collection[Triple]) -> None:
        heads = {head.pattern.relation for clause in clauses.all for head in clause.heads}
        if not heads:
            return
        explicit = stated if isinstance(stated, set | frozenset) else set(stated)
        everything = ALL in heads
        for triple in self.index:
            relation, key = place_of(triple)
            derivable = everything or relation in heads or (is_class(relation) and RDF_TYPE in heads)
            if derivable and triple not in explicit:
                self._of(relation).derived.add(key)

    # -- what holds

    def __contains__(self, triple: Triple) -> bool:
        return triple in self.index

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Triple]:
        return iter(self.index)

    def states(self, triple: Triple) -> bool:
        """Whether the triple is stated, before the open change."""
        return triple in self.index and self._statements.states(triple)

    def states_now(self, triple: Triple) -> bool:
        """Whether the triple is stated, with the open change."""
        relation, key = place_of(triple)
        if triple in self.index:
            return self.stated(relation)(key)
        return key in self._of(relation).begun

    def statements(self) -> Iterator[Triple]:
        """The stated triples that anything reads; before the open change."""
        return filter(self._statements.states, self.index)

    @property
    def clauses(self) -> Sequence[Clause]:
        """The rules as they run."""
        return self._clauses.all

    @property
    def tables(self) -> dict[Relation, Table]:
        """The rows of aggregates, clashes and anonymous properties, without those of the open change."""
        return self._tables

    @property
    def clashing(self) -> bool:
        touched = self.store.overlay.touched
        return any(c.added or c.removed for c in touched if is_clash(c.relation)) or any(
            table.rows for relation, table in self._tables.items() if is_clash(relation)
        )

    def clashes(self) -> list[Triple]:
        """What inconsistency rules find, with the open change; sorted."""
        return clashes_of(self.store)

    @property
    def ground(self) -> Ground:
        """The arguments with which instants over this background are opened."""
        return Ground(self.general, self.stated, self._tables)

    # -- a change

    def mostly_ends(self, ended: int) -> bool:
        """Whether so many statements end that closing the rest from scratch costs less than maintenance: more
        than remain, and more than plans cost. (A row maintained one by one costs about twice a row closed in
        bulk, plans of a rule as much as some rows. What begins is joined either way.) Decided by counts, not
        by a clock.
        """
        if ended <= _FEW + self._of_rules:
            return False
        return 2 * ended > len(self.index) - self._statements.derived()

    @property
    def expires(self) -> bool:
        """Whether rows are kept with their bounds: then `go` opens changes, not `open`."""
        return self._expiration is not None

    def end_of(self, triple: Triple) -> Time:
        """When the statement of a stated triple ends, if this `expires`."""
        assert self._expiration is not None
        return self._expiration.end_of(triple)

    def go(
        self,
        time: Time,
        begun: Mapping[Triple, Time],
        ended: Iterable[Triple] = (),
        moved: Mapping[Triple, Time] = _NO_ENDS,
    ) -> None:
        """Open the change to `time`: statements begin (with their ends), end, or change their end. Raises as
        `open` does. O(the added and removed rows), plus once the rows that depend on what ends before its
        time, or was stated again since.
        """
        ends = list(ended)
        try:
            self._in_rounds(lambda: self._go(time, begun, ends, moved))
        except BaseException as error:
            self._fail(error)
            raise

    def open(
        self, insert: Iterable[Triple] = (), delete: Iterable[Triple] = (), before: Maintained | None = None
    ) -> int:
        """Open a change: first `delete`, then `insert`. Returns the number of deletions of unstated triples.

        `before`: the instance that this is `under` other rules than, without an open change. Consequences of
        removed rules fall unless derived otherwise; those of new rules are added (Volz, Staab, Motik 2003,
        sec. 4). O(what these rules derive, and what changes). Raises ProgramError D4001, D4003 when rules
        derive or work too much; then nothing is open.
        """
        added, gone = list(insert), list(delete)
        try:
            return self._in_rounds(
                lambda: self._change(added, gone) if before is None else self._go_on(before, added, gone)
            )
        except BaseException as error:
            self._fail(error)
            raise

    def _in_rounds(self, attempt: Callable[[], Opened]) -> Opened:
        """What opens a change, repeated until it has made the calls of functions of one's own in order."""
        if not self._evaluator.calls:
            return attempt()
        from dotr.expressions.own_functions import in_rounds  # noqa: PLC0415  # start-up: few runs call one

        return in_rounds(attempt, self.abandon)

    def _fail(self, error: BaseException) -> None:
        """Abandon a change that cannot be opened. Raises ProgramError if its rules worked too much."""
        if not isinstance(error, Exhausted):
            self.abandon()
            return
        limit = self.store.meter.limit
        found = exceeded(error, self._clauses, self.store, limit, "the rules at a change")
        self.abandon()
        raise ProgramError(found) from None

    def _go_on(self, before: Maintained, insert: Iterable[Triple], delete: Iterable[Triple]) -> int:
        useless = self._opened.note(insert, delete)[0]
        for meter in (self.store.meter, before.store.meter):
            meter.open(at_deployment(self._limits.budget, len(self.index)))
        old, new = before.clauses, self.clauses
        layers = self._evaluator
        for clause in without(old, new):
            layers.retraction.doubt_derived(clause, before.store)
        self._opened.enter(self._evaluator)
        known = set(map(content, before._clauses.all_aggregations))
        totals = [a.relation for a in self._clauses.all_aggregations if content(a) not in known]
        layers.run_joined(without(new, old), totals)
        return useless

    def missed(self) -> set[Triple]:
        """Schema that holds, with the open change, over which the rules were not instantiated."""
        return self.closed.instantiated.missed(self._holding(is_schema))

    def _holding(self, of: Callable[[Relation], bool]) -> Iterator[Triple]:
        """The triples of some relations that hold, with the open change."""
        changed = [c for c in self._touched() if of(c.relation)]
        gone = {triple for changes in changed for triple in triples_of(changes, changes.removed)}
        yield from (triple for triple in triples_in(self.index, of) if triple not in gone)
        for changes in changed:
            yield from triples_of(changes, changes.added)

    def stated_of(self, of: Callable[[Relation], bool]) -> Iterator[Triple]:
        """The statements of some relations, before the open change. O(their rows)."""
        return filter(self.states, triples_in(self.index, of))

    def _change(self, insert: Iterable[Triple], delete: Iterable[Triple]) -> int:
        useless, size, mixed = self._opened.note(insert, delete)
        self.store.meter.open(min(self.most, at_deployment(self._limits.budget, size)))
        if mixed:
            self._opened.enter(self._evaluator)
            self._evaluator.run_all()
        else:
            self._opened.insert(self._evaluator)
        return useless

    def _go(
        self, time: Time, begun: Mapping[Triple, Time], ended: Iterable[Triple], moved: Mapping[Triple, Time]
    ) -> None:
        expiration, layers = self._expiration, self._evaluator
        assert expiration is not None
        doubts: list[tuple[Relation, Row]] = []
        for triple, end in moved.items():
            relation, key = place_of(triple)
            if self._opened.kept(relation) and expiration.move(relation, key, end):
                doubts.append((relation, key))
        size = len(begun)
        for relation, keys in self._opened.by_relation(ended).items():
            self._opened.of(relation).ended.update(dict.fromkeys(keys))
            doubts += expiration.end(relation, keys, time)
            size += len(keys)
        self.store.meter.open(min(self.most, at_deployment(self._limits.budget, size)))
        for relation, rows in self._opened.ends_by_relation(begun).items():
            statements = self._opened.of(relation)
            statements.begun.update(dict.fromkeys(rows))
            if not rows.keys().isdisjoint(statements.derived):
                for key in [key for key in rows if key in statements.derived]:
                    expiration.begin(relation, key, rows.pop(key))
            if rows:
                layers.inserters.enterer(relation)(rows)
        expiration.fall(time, doubts, layers.retraction)
        layers.run()

    def _of(self, relation: Relation) -> Statements:
        return self._statements.of(relation)

    def touches(self, relations: Container[Relation]) -> bool:
        """Whether the open change adds or removes rows of one of the relations."""
        return any(c.relation in relations and (c.added or c.removed) for c in self._touched())

    def changed(self) -> NetChange:
        """What the open change adds and removes."""
        added: list[Triple] = []
        removed: list[Triple] = []
        for changes in self._touched():
            added += triples_of(changes, changes.added)
            removed += triples_of(changes, changes.removed)
        return NetChange(tuple(sorted(added)), tuple(sorted(removed)))

    def commit(self) -> Undo:
        """Merge the open change into the index; returns how to undo it. O(the change)."""
        undo = self._rows.commit(self._touched(), self._opened.relations.values(), self.store.changes)
        self._forget()
        return undo

    def plain(self, relation: Relation) -> bool:
        """Whether rows of the relation may change, and are statements that no rule reads or derives. For an
        index without bounds only.
        """
        if self._unions or relation not in self.general or not self._opened.kept(relation):
            return False
        heads = {head.pattern.relation for clause in self._clauses.all for head in clause.heads}
        kinds = unions_of(relation)
        return heads.isdisjoint(kinds) and affected(self._clauses, [relation]) == frozenset(kinds)

    def exchange(self, rows: Exchange) -> None:
        """Add and remove rows of `plain` relations in the index, without opening a change."""
        self._rows.exchange(rows)

    def undo(self, undo: Undo) -> None:
        """Undo the last committed change of the index. O(the change)."""
        self._rows.undo(undo)

    def abandon(self) -> None:
        """Forget the open change. O(the change)."""
        if self._expiration is not None and (self._opened.relations or self.store.overlay.touched):
            self._expiration.abandon(self._touched())
        self._forget()

    def _forget(self) -> None:
        self._evaluator.abandon()
        self._opened.forget()

    def _is_own(self, relation: Relation) -> bool:
        found = self._own.get(relation)
        if found is None:
            found = self._own[relation] = relation not in (ALL, RDF_TYPE) and not is_path(relation)
        return found

    def _states_row(self, relation: Relation, key: Row) -> bool:
        """Whether a row, old or new, is stated, with the open change."""
        if is_anonymous(relation):
            return False
        statements = self._statements.of(relation)
        if key in self.store.changes(relation).added:
            return key in statements.begun
        return statements.test()(key)

    def _touched(self) -> list[Changes]:
        """What changes in relations that are kept, without unions and paths."""
        return [c for c in self.store.overlay.touched if self._is_own(c.relation)]

    def stated(self, relation: Relation) -> Callable[[Row], bool]:
        """Whether a row of the relation, by its key, is stated, with the open change."""
        if is_apart(relation):
            return lambda key: False
        return self._of(relation).test()


def _unions_read(clauses: Clauses) -> frozenset[Relation]:
    bodies = [clause.items for clause in clauses.all]
    bodies += [aggregation.items for aggregation in clauses.all_aggregations]
    return frozenset(relation for items in bodies for relation in relations_read(items)) & {ALL, RDF_TYPE}
