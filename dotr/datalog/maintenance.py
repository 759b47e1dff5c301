"""Keep a materialisation while statements and rules come and go.

Place:   the heart of what lasts: pipeline and knowledge base say which statements begin and end; queries
         read `store` while a change is open, when it shows the state before and after it.
Method:  a change is an overlay over the index: new statements and what they derive (semi-naive), statements
         taken back and what falls with them (retraction.py), stratum by stratum. `commit` puts the overlay
         into the index, in place; `abandon` forgets it, and leaves nothing. Which rows are only derived is
         noted by row, so that statements cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dotr.budget import Exhausted, at_deployment
from dotr.datalog.clauses import Clauses
from dotr.datalog.closing import Closed, close_background, exceeded, overflow, rows_of, triples_of
from dotr.datalog.materialiser import Limits
from dotr.datalog.statements import Statements, place_of, row_of, triple_of
from dotr.datalog.stratum_evaluation import StratumEvaluator
from dotr.errors import ProgramError
from dotr.ir import DatalogRule
from dotr.joins.body import AbsentPattern, BodyPattern, Item, View
from dotr.joins.relations import ALL, Relation, is_aggregate, is_clash, is_class
from dotr.joins.store import EVERYTHING, Table, TripleIndex
from dotr.rdf.overlay import Changes, Row
from dotr.rdf.terms import RDF_TYPE, Triple

_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class NetChange:
    """What holds now and did not before, and the converse: stated and derived, each triple once, sorted."""

    added: tuple[Triple, ...]
    removed: tuple[Triple, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


class Maintained:
    """Owns the index of what holds, which of it is stated, and the overlay of a change that is open.

    `rules`: all rules. `stated`: canonical triples. `unions`: which of ALL and RDF_TYPE queries read.
    Raises ProgramError for rules that are unsafe, not stratifiable, need not end, or derive too much (D4001).
    """

    def __init__(
        self,
        rules: Sequence[DatalogRule],
        stated: Collection[Triple] = (),
        *,
        closed: Closed | None = None,
        unions: Iterable[Relation] = (),
        limits: Limits = _LIMITS,
        counting: bool = False,
    ) -> None:
        if closed is None:
            budget = at_deployment(limits.budget, len(stated))
            closed = close_background(rules, stated, None, limits.background, budget)
        self._clauses = closed.clauses
        self._budget = limits.budget
        self.index = closed.index
        clauses = closed.clauses
        self.store = TripleIndex(
            closed.index,
            volatile=EVERYTHING,
            general=EVERYTHING,
            arities={a.relation: a.arity for a in clauses.all_aggregations},
            counting=counting,
        )
        self.store.tables.update((relation, Table(rows)) for relation, rows in closed.tables.items())
        self._statements: dict[Relation, Statements] = {}
        self._opened: dict[Relation, Statements] = {}
        self._note_derived(clauses, stated, closed.clashes)
        self._unions = frozenset(unions) | _unions_read(clauses)
        self._layers = self._make_layers(clauses, limits.instant)

    def _make_layers(self, clauses: Clauses, limit: int) -> StratumEvaluator:
        for clause in clauses.all:
            for head in clause.heads:
                if is_clash(head.pattern.relation):
                    self.store.tables.setdefault(head.pattern.relation, Table())
        return StratumEvaluator(
            clauses,
            self.store,
            unions=self._unions,
            known=None,
            limit=limit,
            overflow=overflow(clauses, limit),
            stated=self._stated,
        )

    def _note_derived(self, clauses: Clauses, stated: Collection[Triple], clashes: Iterable[Triple]) -> None:
        heads = {head.pattern.relation for clause in clauses.all for head in clause.heads}
        if not heads:
            return
        told = stated if isinstance(stated, set | frozenset) else set(stated)
        everything = ALL in heads
        for triple in self.index:
            relation, key = place_of(triple)
            derivable = everything or relation in heads or (is_class(relation) and RDF_TYPE in heads)
            if derivable and triple not in told:
                self._of(relation).derived.add(key)
        for subject, predicate, object_ in clashes:
            self.store.tables.setdefault(predicate, Table()).insert((subject, object_))

    # -- what holds

    def __contains__(self, triple: Triple) -> bool:
        return triple in self.index

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Triple]:
        return iter(self.index)

    def states(self, triple: Triple) -> bool:
        """Whether the triple is stated, before the change that is open."""
        relation, key = place_of(triple)
        known = self._statements.get(relation)
        return triple in self.index and (known is None or key not in known.derived)

    def clashes(self) -> list[Triple]:
        """What inconsistency rules find, with the change that is open; sorted."""
        found = []
        for relation in self.store.tables:
            if is_clash(relation):
                rows = self.store.find(relation, (None, None), View.NEW)
                found += [(subject, relation, object_) for subject, object_ in rows]
        return sorted(found)

    # -- a change

    def open(self, insert: Iterable[Triple] = (), delete: Iterable[Triple] = ()) -> int:
        """Open a change: first `delete`, then `insert`. How many deletions were of what was not stated.

        Raises ProgramError D4001, D4003 when rules derive or work too much; nothing is open then.
        """
        try:
            return self._change(insert, delete)
        except Exhausted as exhausted:
            limit = self.store.meter.limit
            found = exceeded(exhausted, self._clauses, self.store, limit, "the rules at a change")
            self.abandon()
            raise ProgramError(found) from None
        except BaseException:
            self.abandon()
            raise

    def _change(self, insert: Iterable[Triple], delete: Iterable[Triple]) -> int:
        useless = 0
        for triple in delete:
            if self.states(triple):
                relation, key = place_of(triple)
                self._open(relation).ended[key] = None
            else:
                useless += 1
        mixed = bool(self._opened)
        for triple in insert:
            relation, key = place_of(triple)
            known = self._statements.get(relation)
            if known is not None and key in known.ended:
                del known.ended[key]
            elif not self.states(triple):
                self._open(relation).begun[key] = None
        size = sum(len(statements.begun) + len(statements.ended) for statements in self._opened.values())
        self.store.meter.open(at_deployment(self._budget, size))
        if mixed:
            self._replace()
        else:
            self._insert()
        return useless

    def _insert(self) -> None:
        """Close over new statements alone."""
        layers = self._layers
        for statements in self._opened.values():
            add = layers.writers.adder(statements.relation)
            if is_class(statements.relation):
                for key in statements.begun:
                    add(key)
            else:
                for subject, object_ in statements.begun:
                    add(subject, object_)
        layers.run()

    def _replace(self) -> None:
        """Close over statements that begin and end."""
        layers, index = self._layers, self.index
        for statements in self._opened.values():
            relation = statements.relation
            for key in statements.begun:
                if triple_of(relation, key) not in index:
                    layers.enter(relation, row_of(key))
        for statements in self._opened.values():
            for key in statements.ended:
                layers.retraction.doubt(statements.relation, row_of(key))
        layers.run_all()

    def _of(self, relation: Relation) -> Statements:
        found = self._statements.get(relation)
        if found is None:
            found = self._statements[relation] = Statements(relation)
        return found

    def _open(self, relation: Relation) -> Statements:
        """The statements of a relation that the open change touches."""
        found = self._opened[relation] = self._of(relation)
        return found

    def changed(self) -> NetChange:
        """What the open change adds and removes."""
        added: list[Triple] = []
        removed: list[Triple] = []
        for changes in self._touched():
            added += triples_of(changes, changes.added)
            removed += triples_of(changes, changes.removed)
        return NetChange(tuple(sorted(added)), tuple(sorted(removed)))

    def commit(self) -> None:
        """Put the open change into the index. O(the change)."""
        for changes in self._touched():
            self._commit(changes)
        for statements in self._opened.values():
            for key in statements.ended:
                if triple_of(statements.relation, key) in self.index:
                    statements.derived.add(key)
            statements.derived.difference_update(statements.begun)
        self.abandon()

    def _commit(self, changes: Changes) -> None:
        relation = changes.relation
        table = self.store.tables.get(relation)
        if table is not None:
            for key in changes.removed:
                table.remove(row_of(key))
            for key in changes.added:
                table.insert(row_of(key))
            return
        insert, remove = self.index.insert, self.index.remove
        known = self._statements.get(relation)
        for triple in rows_of(changes, changes.removed):
            remove(*triple)
        if known is not None:
            known.derived.difference_update(changes.removed)
        for triple in rows_of(changes, changes.added):
            insert(*triple)
        if known is None and changes.added:
            known = self._of(relation)
        if known is not None:
            known.derived.update(key for key in changes.added if key not in known.begun)

    def abandon(self) -> None:
        """Forget the open change. O(the change)."""
        self._layers.abandon()
        for statements in self._opened.values():
            statements.begun.clear()
            statements.ended.clear()
        self._opened.clear()

    def _touched(self) -> list[Changes]:
        return [c for c in self.store.overlay.touched if c.relation not in (ALL, RDF_TYPE)]

    def _stated(self, relation: Relation) -> Callable[[Row], bool]:
        if is_aggregate(relation) or is_clash(relation):
            return lambda key: False
        return self._of(relation).test()


def _unions_read(clauses: Clauses) -> frozenset[Relation]:
    items: list[Item] = [item for clause in clauses.all for item in clause.items]
    items += [item for aggregation in clauses.all_aggregations for item in aggregation.items]
    patterns = (item.pattern if isinstance(item, AbsentPattern) else item for item in items)
    return frozenset(p.relation for p in patterns if isinstance(p, BodyPattern)) & {ALL, RDF_TYPE}
