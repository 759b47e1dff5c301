"""Run a program over the overlay: at an instant, stratum by stratum, and once over the background itself.

Place:   under materialiser.py; rows come and go through writers.py, joins are plans of joins/.
Method:  semi-naive insertion, one new row at a time. Where a NOT or an AGGREGATE stands above what changed, a
         conclusion of the background may fall: delete and rederive (Gupta, Mumick, Subrahmanian 1993; Volz,
         Staab, Motik 2003, sec. 3.2), stratum by stratum over the net changes below: overdelete by joins over
         the background as it was, take back what is explicit or still derivable, then insert. Nothing of it
         touches the background: what falls is noted in the overlay and stands again when that is forgotten.
Why not: redo the strata above a NOT at every instant: 400 µs for ten thousand rooms where this takes ten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from dotr.budget import DERIVED, Factor
from dotr.datalog.aggregates import GroupTotals
from dotr.datalog.clauses import Clause, Clauses
from dotr.datalog.inserters import Inserters, Work
from dotr.datalog.triggers import Trigger, Triggers
from dotr.ir import Node, Var
from dotr.joins.body import BodyPattern, Item, View
from dotr.joins.emit import Found, compile_plan
from dotr.joins.planner import plan
from dotr.joins.relations import ALL, Relation, class_relation, is_aggregate, is_class, relation_name
from dotr.joins.store import TripleIndex
from dotr.rdf.overlay import Changes
from dotr.rdf.terms import RDF_TYPE, Term

Row = tuple[Term, ...]
Finder = Callable[..., Any]


class StratumEvaluator:
    """Owns worklists and compiled functions of one program over one store.

    `explicit(relation, row)`: whether the background states the row itself. `told` collects rows a stream
    stated of relations that may lose rows; who tells fills it.
    """

    def __init__(
        self,
        clauses: Clauses,
        store: TripleIndex,
        *,
        unions: frozenset[Relation],
        known: frozenset[Relation] | None,
        limit: int,
        overflow: Callable[[Changes], None],
        explicit: Callable[[Relation, Row], bool],
        refuse: Mapping[Relation, Callable[..., None]] | None = None,
    ) -> None:
        self.store = store
        self._meter = store.meter
        self.told: set[tuple[Relation, Row]] = set()
        self._level = clauses.level
        self._layers = [[c for c in layer if c.heads] for layer in clauses.layers]
        self._triggers = Triggers.of([clause for layer in self._layers for clause in layer])
        self._work: list[Work] = [[] for _ in self._layers]
        self._explicit = explicit
        self.writers = Inserters(
            store,
            self._triggers,
            self._work,
            clauses.level,
            unions=unions,
            known=known,
            limit=limit,
            overflow=overflow,
            refuse=refuse,
        )
        self._totals = [[GroupTotals(a, store) for a in layer] for layer in clauses.aggregations]
        self._heads: dict[Relation, list[tuple[Clause, int]]] = {}
        for layer in self._layers:
            for clause in layer:
                for i, head in enumerate(clause.heads):
                    self._heads.setdefault(head.pattern.relation, []).append((clause, i))
        self._starters: dict[int, Finder] = {}
        self._finders: dict[tuple[int, str], Finder] = {}
        self._rederivers: dict[Relation, list[tuple[BodyPattern, tuple[str, ...], Finder]]] = {}
        self._upper = range(1, len(self._layers))
        self.waiting = self._work[0]
        """Rows of the lowest stratum that wait to be joined; with one stratum and none waiting, there is
        nothing to `run`."""
        self.several = len(self._layers) > 1

    # -- an instant

    def run(self) -> None:
        """Close the overlay. New rows are on the worklists."""
        if self._work[0]:
            self._drain(self._work[0])
        for stratum in self._upper:
            if self.writers.late:
                self._refill()  # before anything is counted above
            if self.store.overlay.touched:
                self._layer(stratum)
        if self.writers.late:
            self._refill()

    def _drain(self, work: Work) -> None:
        """Join every row that waits; joining makes more of them wait."""
        done, end, left, units = 0, len(work), self._meter.left, 1
        while done < end:
            left[0] -= (end - done) * units
            if left[0] < 0:
                self._meter.spent([Factor("facts just derived", end - done)])
            units = DERIVED
            for run, first, second in work[done:end]:
                run(first, second)
            done, end = end, len(work)
        work.clear()

    def abandon(self) -> None:
        """Forget an instant that failed half-way."""
        for work in self._work:
            work.clear()
        self.writers.late.clear()
        self.store.overlay.forget()
        self.told.clear()

    def _refill(self) -> None:
        """Indexes made while rows were waiting have some of them twice: make them again, once."""
        for changes, columns in self.writers.late:
            changes.fill(columns)
        self.writers.late.clear()

    def _layer(self, stratum: int) -> None:
        touched = list(self.store.overlay.touched)
        gained: list[tuple[GroupTotals, Row]] = []
        dead: list[tuple[Relation, Row]] = []
        for totals in self._totals[stratum]:
            self._recount(totals, touched, dead, gained)
        self._overdelete(stratum, touched, dead)
        for relation, row in dead:
            if self._stands(relation, row):
                key = row[0] if len(row) == 1 else row
                if key in self.store.changes(relation).removed:
                    self.writers.restore(relation, key)
        for totals, row in gained:
            self.store.overlay.add(totals.relation, row)
            self._work[stratum].append((self.writers.again(totals.relation), row, None))
        self._insert(stratum, touched)
        self._drain(self._work[stratum])

    def _recount(
        self,
        totals: GroupTotals,
        touched: Sequence[Changes],
        dead: list[tuple[Relation, Row]],
        gained: list[tuple[GroupTotals, Row]],
    ) -> None:
        """Rows of an aggregate that are no longer true, and those that are instead."""
        for group in totals.affected(touched):
            before = totals.before(group)
            now = totals.now(group)
            if before == now:
                continue
            if before is not None:
                self.store.overlay.remove(totals.relation, before)
                dead.append((totals.relation, before))
            if now is not None:
                gained.append((totals, now))

    def _overdelete(self, stratum: int, touched: Sequence[Changes], dead: list[tuple[Relation, Row]]) -> None:
        """Take out rows of the background that a lost row, or a new row under a NOT, once supported."""
        for changes in touched:
            for trigger in self._triggers.negative.get((changes.relation, stratum), ()):
                for row in self._rows(changes, changes.added, stratum):
                    self._kill(self._supported(trigger, row), trigger.clause, dead)
            if changes.removed:
                for trigger in self._triggers.positive.get((changes.relation, stratum), ()):
                    for row in self._rows(changes, changes.removed, stratum):
                        self._kill(self._supported(trigger, row), trigger.clause, dead)
        for relation, row in dead:  # grows while it is read
            for over, columns in self._seen_as(relation, row):
                for trigger in self._triggers.positive.get((over, stratum), ()):
                    self._kill(self._supported(trigger, columns), trigger.clause, dead)

    def _supported(self, trigger: Trigger, row: Row) -> list[Row]:
        """Head columns of the clause's solutions over the background that use the row."""
        key = (id(trigger), "old")
        finder = self._finders.get(key)
        if finder is None:
            found = plan(
                trigger.rest,
                trigger.clause.outputs,
                self.store,
                trigger=trigger.atom,
                view=View.OLD,
                as_set=True,
            )
            finder = self._finders[key] = compile_plan(found, self.store)
        rows: list[Row] = []
        finder(rows.append, *row)
        self._meter.charge(1 + len(rows), "conclusions of the background to be looked at again")
        return rows

    def _kill(self, solutions: Iterable[Row], clause: Clause, dead: list[tuple[Relation, Row]]) -> None:
        for solution in solutions:
            at = 0
            for head in clause.heads:
                width = len(head.pattern.columns)
                row = solution[at : at + width]
                at += width
                relation = head.pattern.relation
                if relation not in self.store.volatile:
                    continue
                key = row[0] if width == 1 else row
                removed = self.store.changes(relation).removed
                if key not in removed and self.store.background_rows(relation, row):
                    self.writers.remove(relation, row)
                    dead.append((relation, row))

    def _stands(self, relation: Relation, row: Row) -> bool:
        """Whether a row is stated, or derivable from what holds now."""
        if (relation, row) in self.told or self._explicit(relation, row):
            return True
        rederivers = self._rederivers.get(relation)
        if rederivers is None:
            rederivers = self._rederivers[relation] = [
                self._rederiver(clause, i) for clause, i in self._heads.get(relation, ())
            ]
        for pattern, names, finder in rederivers:
            binding = _match(pattern.columns, row)
            if binding is not None and finder(*(binding[name] for name in names)):
                return True
        return False

    def _rederiver(self, clause: Clause, place: int) -> tuple[BodyPattern, tuple[str, ...], Finder]:
        pattern = clause.heads[place].pattern
        names = tuple(pattern.variables)
        found = plan(clause.items, (), self.store, given=names, as_set=True)
        return pattern, names, compile_plan(found, self.store, Found())

    def _insert(self, stratum: int, touched: Sequence[Changes]) -> None:
        """What net changes below let this stratum's clauses derive."""
        for changes in touched:
            relation = changes.relation
            for trigger in self._triggers.positive.get((relation, stratum), ()):
                if changes.added and self._below(relation, stratum):
                    start = self._starter(trigger)
                    for row in self._rows(changes, changes.added, stratum):
                        start(*row)
            if changes.removed:
                for trigger in self._triggers.negative.get((relation, stratum), ()):
                    start = self._starter(trigger)
                    for row in self._rows(changes, changes.removed, stratum):
                        start(*row)

    def _below(self, relation: Relation, stratum: int) -> bool:
        """Whether rows come from lower strata; those of the stratum itself are on its worklist."""
        return relation in (ALL, RDF_TYPE) or self._level(relation) < stratum

    def _starter(self, trigger: Trigger) -> Finder:
        found = self._starters.get(id(trigger))
        if found is None:
            found = self._starters[id(trigger)] = self.writers.starter(trigger)
        return found

    def _rows(self, changes: Changes, rows: Collection[Any], stratum: int) -> list[Row]:
        """Rows as columns; of a union only those that lower strata have completed."""
        if changes.arity == 1:
            self._meter.charge(len(rows), relation_name(changes.relation))
            return [(row,) for row in rows]
        self._meter.charge(len(rows), relation_name(changes.relation))
        level = self._level
        if changes.relation == RDF_TYPE:
            return [row for row in rows if level(class_relation(row[1])) < stratum]
        if changes.relation == ALL:
            return [row for row in rows if level(_narrow(row)) < stratum]
        return list(rows)

    def _seen_as(self, relation: Relation, row: Row) -> list[tuple[Relation, Row]]:
        """A row under every relation an atom may name it by."""
        if is_aggregate(relation):
            return [(relation, row)]
        if is_class(relation):
            class_ = relation[2:]
            return [(relation, row), (RDF_TYPE, (row[0], class_)), (ALL, (row[0], RDF_TYPE, class_))]
        return [(relation, row), (ALL, (row[0], relation, row[1]))]

    # -- the background itself

    def close(self) -> dict[Relation, list[Row]]:
        """Derive everything into the overlay; the rows of every aggregate when its stratum began."""
        tables: dict[Relation, list[Row]] = {}
        for stratum, layer in enumerate(self._layers):
            for totals in self._totals[stratum]:
                tables[totals.relation] = totals.all()
                for row in tables[totals.relation]:
                    self.store.overlay.add(totals.relation, row)
            for clause in layer:
                if all(self._some(item) for item in clause.items):
                    found = plan(clause.items, clause.outputs, self.store, as_set=True)
                    self.store.prepare(found)
                    self.writers.function_of(found, clause)()
            self._drain(self._work[stratum])
        return tables

    def _some(self, item: Item) -> bool:
        """Whether a pattern can match by now; what comes later triggers its clause itself."""
        if not isinstance(item, BodyPattern):
            return True
        changes = self.store.overlay.relations.get(item.relation)
        return self.store.filled(item.relation) or (changes is not None and bool(changes.added))


def _narrow(row: Row) -> Relation:
    return class_relation(row[2]) if row[1] == RDF_TYPE else row[1]


def _match(columns: Sequence[Node], row: Row) -> dict[str, Term] | None:
    binding: dict[str, Term] = {}
    for node, term in zip(columns, row, strict=True):
        if isinstance(node, Var):
            if binding.setdefault(node.name, term) != term:
                return None
        elif node != term:
            return None
    return binding
