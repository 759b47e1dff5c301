"""Which rows fall because they lost their last derivation, stratum by stratum.

Place:   called by stratum_evaluation.py after what a stratum reads has changed and before it derives anything
         new. Rows are removed in the overlay; the index stays unchanged.
Method:  delete and rederive (Gupta, Mumick, Subrahmanian 1993; Volz, Staab, Motik 2003, sec. 3.2), component
         by component in the order of derivation. A row of a non-recursive relation falls if nothing states or
         derives it now, which is exact; then what it supported is checked. In a recursive component a row
         falls that is neither stated nor derived from outside it, with everything it supported there, and is
         restored if what is left derives it.
Why not: counts of derivations: they break on recursion, cost memory for every row, and without recursion one
         search for another derivation decides the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from heapq import heappop, heappush

from dotr.datalog.clauses import Clause
from dotr.datalog.inserters import Inserters
from dotr.datalog.recursive_components import Component
from dotr.datalog.suspects import Clauses, Stated, Suspect, Suspects
from dotr.datalog.triggers import Trigger, Triggers
from dotr.joins.graph_relations import Relation
from dotr.joins.store import TripleIndex
from dotr.rdf.overlay import Row
from dotr.rdf.terms import Term


class Retraction:
    """Owns the order in which rows in doubt are decided.

    `stated`: whether a row needs no derivation. `heads`: relation → clauses and which head.
    """

    def __init__(
        self,
        store: TripleIndex,
        triggers: Triggers,
        heads: Clauses,
        level: Callable[[Relation], int],
        inserters: Inserters,
        stated: Stated,
    ) -> None:
        self.suspects = Suspects(store, triggers, heads, level, inserters, stated, self._wake)
        self._touch = store.overlay.touched.append
        self._unions = bool(inserters.unions)
        self._inserters = inserters
        self._waiting: dict[int, list[tuple[int, int, Component]]] = {}
        self._woken = 0
        self._lost: dict[int, Callable[..., None]] = {}

    def doubter(self, relation: Relation) -> Callable[..., None]:
        """Record that a row, passed by columns, may have lost its last derivation, or its statement."""
        return self.suspects.doubter(relation)

    def doubt_derived(self, clause: Clause, store: TripleIndex) -> None:
        """Doubt all that a clause of another program derives in its `store`, over the same index."""
        self.suspects.all_of(clause, store)()

    def lost(self, trigger: Trigger, rows: Iterable[tuple[Term, ...]]) -> None:
        """Rows that the clause used changed: doubt what it derived over the background."""
        lost = self._lost.get(id(trigger))
        if lost is None:
            lost = self._lost[id(trigger)] = self.suspects.lost(trigger)
        for row in rows:
            lost(*row)

    def derivable(self, relation: Relation) -> bool:
        """Whether a rule may derive rows of the relation."""
        return self.suspects.of(relation).derivable

    def fall(self, relation: Relation, keys: Collection[Row]) -> None:
        """Statements end that no rule derives: remove their rows, doubt what they supported."""
        suspect = self.suspects.of(relation)
        self.take_out(suspect, keys)
        if suspect.supports:
            for key in keys:
                suspect.spread(key)

    def fell(self, relation: Relation, key: Row) -> None:
        """A row fell without doubt (of an aggregate): doubt what it supported."""
        self.suspects.of(relation).spread(key)

    def waits(self, stratum: int) -> bool:
        """Whether rows of the stratum are in doubt."""
        return bool(self._waiting.get(stratum))

    def forget(self) -> None:
        """The instant is over."""
        if self._woken:
            self.suspects.forget()
            self._waiting.clear()
            self._woken = 0

    def _wake(self, suspect: Suspect) -> None:
        self._woken += 1
        heap = self._waiting.setdefault(suspect.level, [])
        heappush(heap, (-suspect.component.height, self._woken, suspect.component))

    def run(self, stratum: int) -> None:
        """Decide about every row of a stratum that is in doubt. Lower strata are complete."""
        heap = self._waiting.get(stratum)
        while heap:
            component = heappop(heap)[2]
            queue = self.suspects.queues[component]
            if component.cyclic:
                self._decide_together(queue)
            else:
                self._decide(queue)
            queue.clear()

    def _decide(self, queue: list[tuple[Suspect, Row]]) -> None:
        """For rows that do not derive each other: one falls if nothing states or derives it."""
        derives, take_out = self.suspects.derives, self.take_out
        for suspect, key in queue:
            if not (suspect.stated(key) or derives(suspect, key, False)):
                take_out(suspect, (key,))
                suspect.spread(key)

    def _decide_together(self, queue: list[tuple[Suspect, Row]]) -> None:
        """For rows that derive each other: overdelete, rederive."""
        derives, back, take_out = self.suspects.derives, self.suspects.back, self.take_out
        fallen: list[tuple[Suspect, Row]] = []
        for suspect, key in queue:  # grows during the loop
            if not (suspect.stated(key) or derives(suspect, key, False)):
                take_out(suspect, (key,))
                fallen.append((suspect, key))
                suspect.spread(key)
        back += [one for one in fallen if derives(*one, True)]
        for suspect, key in back:
            self.put_back(suspect, key)
        for suspect, key in back:  # grows during the loop
            suspect.again(key)
        back.clear()

    def put_back(self, suspect: Suspect, key: Row) -> None:
        """Restore a row that was taken out."""
        self._inserters.put_back(suspect.relation, key if isinstance(key, tuple) else (key,))

    def take_out(self, suspect: Suspect, keys: Collection[Row]) -> None:
        """Remove rows of the background from the open change."""
        if self._unions:
            for key in keys:
                self._inserters.remove(suspect.relation, key if isinstance(key, tuple) else (key,))
            return
        changes = suspect.changes
        if changes.idle:
            changes.idle = False
            self._touch(changes)
        changes.removed.update(dict.fromkeys(keys))
