"""Ends of statements with a lifetime: a queue instead of deleting and deriving again.

Place:   beside retraction.py, for recursive programs without NOT and aggregates: maintenance.py uses it for
         statements whose ends are known when they begin.
Method:  IMaRS (Barbieri et al. 2010, sec. 3) with lower bounds (insertion.py): due rows fall at once, without
         a join; only if some premise was stated again since, each is checked, and stays with the latest bound
         of its derivations. A deletion lowers bounds: the rows that may depend on it are found by joins, as
         in delete and rederive, except those with a later bound than its own, and their bounds are computed
         again.
Why not: without recursion. There retraction.py decides about a row by one search for another derivation, and
         is faster: it takes 0.8 to 1.0 of the time of a run with HOLD FOR, in a chain of classes or a join.
         Over a transitive property it takes 1.1 to 1.4 of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from dotr.enrich.analysis import components
from dotr.enrich.insertion import Bounds, Ends, Log, Popped
from dotr.enrich.retraction import DeletionCheck, Retraction, relations_read
from dotr.enrich.rules import Clauses, place_of
from dotr.events import FOREVER, Time
from dotr.joins.plan import ALL, AbsentPattern, Relation, is_aggregate, is_clash, is_path
from dotr.rdf.index import Changes, Row
from dotr.rdf.terms import RDF_TYPE, Triple


def may_expire(clauses: Clauses) -> bool:
    """Whether derivations alone determine how long a row holds, and rules are recursive: no NOT, no
    aggregates, no relations that contain others.
    """
    if clauses.all_aggregations or len(clauses.layers) > 1:
        return False
    graph: dict[Relation, list[Relation]] = {}
    for clause in clauses.all:
        if any(isinstance(item, AbsentPattern) for item in clause.items):
            return False
        heads = [head.pattern.relation for head in clause.heads]
        for relation in [*heads, *relations_read(clause.items)]:
            graph.setdefault(relation, [])
        for relation in relations_read(clause.items):
            graph[relation] += heads
    special = (is_aggregate, is_clash, is_path)
    if graph.keys() & {ALL, RDF_TYPE} or any(test(relation) for relation in graph for test in special):
        return False
    return any(len(members) > 1 or members[0] in graph[members[0]] for members in components(graph))


class UndoBounds(Struct, frozen=True):
    """How to undo the bounds of a change, after its rows are undone."""

    log: Log
    popped: Popped
    added: list[tuple[Ends, list[Row]]]


class Expiration:
    """Owns the bounds, and what the open change removes from their queue. `is_stated`: see Bounds."""

    def __init__(self, is_stated: Callable[[Relation, Row], bool]) -> None:
        self.bounds = Bounds(is_stated)
        self._popped: Popped = []

    def end_of(self, triple: Triple) -> Time:
        """When the statement of a stated triple ends."""
        relation, key = place_of(triple)
        return self._end(relation, key)

    def _end(self, relation: Relation, key: Row) -> Time:
        found = self.bounds.own(relation).get(key)
        return self.bounds.of(relation).get(key, FOREVER) if found is None else found

    # -- a change

    def begin(self, relation: Relation, key: Row, until: Time) -> None:
        """An existing row that was only derived is stated."""
        bound = self.bounds.of(relation).get(key, FOREVER)
        if until > bound:
            self.bounds.extend(relation, key, until)
        elif until < bound:
            self.bounds.set_own(relation, key, until)

    def move(self, relation: Relation, key: Row, until: Time) -> bool:
        """Change the end of a statement; returns whether its consequences are in doubt."""
        bound, before = self.bounds.of(relation).get(key, FOREVER), self._end(relation, key)
        if until >= bound:
            self.bounds.set_own(relation, key, None)
            if until > bound:
                self.bounds.extend(relation, key, until)
            return False
        self.bounds.set_own(relation, key, until)
        return before == bound

    def end(self, relation: Relation, keys: Iterable[Row], time: Time) -> list[tuple[Relation, Row]]:
        """End statements; returns those on which rows may depend that are not due now."""
        ends, own = self.bounds.of(relation), self.bounds.own(relation)
        found: list[tuple[Relation, Row]] = []
        for key in keys:
            if own and key in own:
                self.bounds.set_own(relation, key, None)
            elif ends.get(key, FOREVER) > time:
                found.append((relation, key))
        return found

    def fall(self, time: Time, doubts: list[tuple[Relation, Row]], retraction: Retraction) -> None:
        """Remove what is due and what depends on rows in doubt; restore what is still derived."""
        checks, bounds = retraction.checks, self.bounds
        self._popped = popped = bounds.pop_due(time)
        rows: dict[tuple[DeletionCheck, Row], Time] = {}
        look = bool(doubts)
        for relation, due, keys in popped:
            check = checks.of(relation)
            found = bounds.drop_due(relation, due, keys)
            retraction.take_out(check, found)
            if look or due < bounds.looked_at:
                look = True
                rows |= {(check, key): due for key in found}
        if doubts:
            rows |= self._standing_on(doubts, retraction)
        if look:
            self._rederive(rows, retraction)

    def _standing_on(
        self, doubts: list[tuple[Relation, Row]], retraction: Retraction
    ) -> dict[tuple[DeletionCheck, Row], Time]:
        """Rows whose bounds may stem from rows in doubt (no later than those), with their former bounds."""
        of = self.bounds.of
        latest = max(of(relation).get(key, FOREVER) for relation, key in doubts)
        checks = retraction.checks
        found: dict[tuple[DeletionCheck, Row], Time] = {}
        for relation, key in doubts:
            checks.enqueuer(relation)(*(key if isinstance(key, tuple) else (key,)))
        queues = list(checks.queues.values())
        waiting = True
        while waiting:
            waiting = False
            for queue in queues:
                waiting = waiting or bool(queue)
                for check, key in queue:  # grows during the loop
                    if key in check.changes.removed:
                        continue  # it was due: rows with the same bound are due, too
                    if of(check.relation).get(key, FOREVER) <= latest:
                        retraction.take_out(check, (key,))
                        found[check, key] = self.bounds.drop(check.relation, key)
                        check.propagate(key)
                queue.clear()
            queues = list(checks.queues.values())
        return found

    def _rederive(self, rows: Mapping[tuple[DeletionCheck, Row], Time], retraction: Retraction) -> None:
        """Restore those removed rows (with their former bounds) that are stated or derived."""
        checks, bounds, back = retraction.checks, self.bounds, retraction.checks.back
        found: list[tuple[DeletionCheck, Row, Time]] = []
        for (check, key), before in rows.items():
            relation = check.relation
            own = self.bounds.own(relation).get(key, before) if check.stated(key) else -FOREVER
            until = max(own, checks.latest(check, key))
            if until > -FOREVER:
                self.bounds.set_own(relation, key, own if -FOREVER < own < until else None)
                found.append((check, key, until))
        for check, key, until in found:
            bounds.set(check.relation, key, until)
            retraction.put_back(check, key)
        back += [(check, key) for check, key, _ in found]
        for check, key in back:  # grows during the loop
            check.again(key)
        back.clear()

    def commit(self, touched: Iterable[Changes]) -> UndoBounds:
        """Drop the statements of removed rows. Returns how to undo all bounds of the change."""
        bounds = self.bounds
        added: list[tuple[Ends, list[Row]]] = []
        for changes in touched:
            own = bounds.own(changes.relation)
            if own and changes.removed:
                for key in own.keys() & changes.removed.keys():
                    bounds.set_own(changes.relation, key, None)
            if changes.added:
                added.append((bounds.of(changes.relation), list(changes.added)))
        undo = UndoBounds(bounds.log, self._popped, added)
        bounds.log = []
        self._popped = []
        return undo

    def undo(self, undo: UndoBounds) -> None:
        """Undo the bounds of the last committed change."""
        self.bounds.undo(undo.log)
        for ends, keys in undo.added:
            for key in keys:
                ends.pop(key, None)
        self.bounds.put_back(undo.popped)

    def abandon(self, touched: Iterable[Changes]) -> None:
        """Forget the open change; called before the overlay forgets its rows."""
        bounds = self.bounds
        bounds.undo(bounds.log)
        bounds.log = []
        for changes in touched:
            ends = bounds.of(changes.relation)
            for key in changes.added:
                ends.pop(key, None)
        bounds.put_back(self._popped)
        self._popped = []
