"""Ends of what was stated for a time: a look at a queue instead of deleting and deriving again.

Place:   beside retraction.py, for programs without NOT and aggregates: maintenance.py has a change go through
         here where statements have ends that are known when they begin.
Method:  IMaRS (Barbieri et al. 2010, sec. 3) with lower bounds (bounds.py): rows that are due fall at once,
         with nothing joined; only where some premise was stated again since, each of them is looked at, and
         stays with the latest of its derivations' bounds. A deletion lowers bounds: the rows that may stand
         on it are found by joins, as in delete and rederive, but for those whose bound is later than its own,
         and get theirs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dotr.datalog.bounds import Bounds, Ends, Log, Popped
from dotr.datalog.clauses import Clauses
from dotr.datalog.retraction import Retraction
from dotr.datalog.statements import place_of
from dotr.datalog.suspects import Suspect
from dotr.events import FOREVER, Time
from dotr.joins.body import AbsentPattern, BodyPattern
from dotr.joins.graph_relations import ALL, Relation, is_aggregate, is_clash, is_path
from dotr.late import dataclass
from dotr.rdf.overlay import Changes, Row
from dotr.rdf.terms import RDF_TYPE, Triple


def may_expire(clauses: Clauses) -> bool:
    """Whether there are rules, and a row's derivations say until when it holds: no NOT, no aggregates, no
    relations that others are part of.
    """
    if not clauses.all or clauses.all_aggregations or len(clauses.layers) > 1:
        return False
    relations = {head.pattern.relation for clause in clauses.all for head in clause.heads}
    for clause in clauses.all:
        if any(isinstance(item, AbsentPattern) for item in clause.items):
            return False
        relations |= {item.relation for item in clause.items if isinstance(item, BodyPattern)}
    special = (is_aggregate, is_clash, is_path)
    return not (relations & {ALL, RDF_TYPE} or any(test(r) for r in relations for test in special))


@dataclass(frozen=True, slots=True)
class UndoBounds:
    """How to take the bounds of a change back, once its rows are."""

    log: Log
    popped: Popped
    added: list[tuple[Ends, list[Row]]]


class Expiration:
    """Owns the bounds, and what the open change takes out of their queue. `is_stated`: see Bounds."""

    def __init__(self, is_stated: Callable[[Relation, Row], bool]) -> None:
        self.bounds = Bounds(is_stated)
        self._popped: Popped = []

    def end_of(self, triple: Triple) -> Time:
        """When the statement of a triple that is stated ends."""
        relation, key = place_of(triple)
        return self._end(relation, key)

    def _end(self, relation: Relation, key: Row) -> Time:
        found = self.bounds.own(relation).get(key)
        return self.bounds.of(relation).get(key, FOREVER) if found is None else found

    # -- a change

    def begin(self, relation: Relation, key: Row, until: Time) -> None:
        """A row that is there, and only derived, is stated."""
        bound = self.bounds.of(relation).get(key, FOREVER)
        if until > bound:
            self.bounds.extend(relation, key, until)
        elif until < bound:
            self.bounds.set_own(relation, key, until)

    def move(self, relation: Relation, key: Row, until: Time) -> bool:
        """A statement ends at another time; whether what stands on it is in doubt."""
        bound, before = self.bounds.of(relation).get(key, FOREVER), self._end(relation, key)
        if until >= bound:
            self.bounds.set_own(relation, key, None)
            if until > bound:
                self.bounds.extend(relation, key, until)
            return False
        self.bounds.set_own(relation, key, until)
        return before == bound

    def end(self, relation: Relation, keys: Iterable[Row], time: Time) -> list[tuple[Relation, Row]]:
        """Statements end; those of them on which something may stand that is not just due."""
        ends, own = self.bounds.of(relation), self.bounds.own(relation)
        found: list[tuple[Relation, Row]] = []
        for key in keys:
            if own and key in own:
                self.bounds.set_own(relation, key, None)
            elif ends.get(key, FOREVER) > time:
                found.append((relation, key))
        return found

    def fall(self, time: Time, doubts: list[tuple[Relation, Row]], retraction: Retraction) -> None:
        """Take out what is due and what stands on rows in doubt; have back what is derived still."""
        suspects, bounds = retraction.suspects, self.bounds
        self._popped = popped = bounds.pop_due(time)
        rows: dict[tuple[Suspect, Row], Time] = {}
        look = bool(doubts)
        for relation, due, keys in popped:
            suspect = suspects.of(relation)
            found = bounds.drop_due(relation, due, keys)
            retraction.take_out(suspect, found)
            if look or due < bounds.looked_at:
                look = True
                rows |= {(suspect, key): due for key in found}
        if doubts:
            rows |= self._standing_on(doubts, retraction)
        if look:
            self._rederive(rows, retraction)

    def _standing_on(
        self, doubts: list[tuple[Relation, Row]], retraction: Retraction
    ) -> dict[tuple[Suspect, Row], Time]:
        """Rows that may have their bounds from rows in doubt, none whose own is later: with what they had."""
        of = self.bounds.of
        latest = max(of(relation).get(key, FOREVER) for relation, key in doubts)
        suspects = retraction.suspects
        found: dict[tuple[Suspect, Row], Time] = {}
        for relation, key in doubts:
            suspects.doubter(relation)(*(key if isinstance(key, tuple) else (key,)))
        queues = list(suspects.queues.values())
        waiting = True
        while waiting:
            waiting = False
            for queue in queues:
                waiting = waiting or bool(queue)
                for suspect, key in queue:  # grows while it is read
                    if key in suspect.changes.removed:
                        continue  # it was due: what has its bound from it is due, too
                    if of(suspect.relation).get(key, FOREVER) <= latest:
                        retraction.take_out(suspect, (key,))
                        found[suspect, key] = self.bounds.drop(suspect.relation, key)
                        suspect.spread(key)
                queue.clear()
            queues = list(suspects.queues.values())
        return found

    def _rederive(self, rows: Mapping[tuple[Suspect, Row], Time], retraction: Retraction) -> None:
        """Of rows that were taken out, with their bounds, those come back that are stated or derived."""
        suspects, bounds, back = retraction.suspects, self.bounds, retraction.suspects.back
        found: list[tuple[Suspect, Row, Time]] = []
        for (suspect, key), before in rows.items():
            relation = suspect.relation
            own = self.bounds.own(relation).get(key, before) if suspect.stated(key) else -FOREVER
            until = max(own, suspects.latest(suspect, key))
            if until > -FOREVER:
                self.bounds.set_own(relation, key, own if -FOREVER < own < until else None)
                found.append((suspect, key, until))
        for suspect, key, until in found:
            bounds.set(suspect.relation, key, until)
            retraction.put_back(suspect, key)
        back += [(suspect, key) for suspect, key, _ in found]
        for suspect, key in back:  # grows while it is read
            suspect.again(key)
        back.clear()

    def commit(self, touched: Iterable[Changes]) -> UndoBounds:
        """Rows that fell are no statements any more. How to take all of the change's bounds back."""
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
        """Take the bounds of a change back that was committed last."""
        self.bounds.undo(undo.log)
        for ends, keys in undo.added:
            for key in keys:
                ends.pop(key, None)
        self.bounds.put_back(undo.popped)

    def abandon(self, touched: Iterable[Changes]) -> None:
        """Forget the open change; before the overlay forgets its rows."""
        bounds = self.bounds
        bounds.undo(bounds.log)
        bounds.log = []
        for changes in touched:
            ends = bounds.of(changes.relation)
            for key in changes.added:
                ends.pop(key, None)
        bounds.put_back(self._popped)
        self._popped = []
