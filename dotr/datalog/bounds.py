"""Lower bounds of the times until which rows hold, and which rows are due.

Place:   read and written by generated functions (inserters.py, suspects.py) while a change is open; owned by
         expiration.py, which decides what happens to due rows.
Method:  the expiration times of IMaRS (Barbieri et al. 2010, sec. 3): the bound of a row is the maximum over
         its derivations of the minimum over their premises; rows that never end have none. Bounds are lower
         bounds: if a premise is stated again, its consequences keep their bounds and are checked again when
         due. `looked_at` is the time up to which such rows may be due.
Why not: raise all consequences at once, as the paper does: in a repetitive stream that costs a derivation per
         statement instead of a check per window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from dotr.events import FOREVER, Time
from dotr.joins.graph_relations import Relation
from dotr.joins.join_code import Annotation
from dotr.rdf.overlay import Row

Ends: TypeAlias = dict[Row, Time]
Queue: TypeAlias = dict[Time, list[Row]]
Popped: TypeAlias = list[tuple[Relation, Time, list[Row]]]
Log: TypeAlias = list[tuple[Ends, Collection[Row], Time | None]]
"""The former bound of some rows; None: no bound."""


class Bounds:
    """Owns the bounds of all relations, and the queue of rows by their bounds.

    A row with a bound holds, with the open change. A queue may name rows whose bound has changed since.
    Changes of existing bounds are on `log`. `is_stated`: whether a row, old or new, is stated, with the open
    change.
    """

    def __init__(self, is_stated: Callable[[Relation, Row], bool]) -> None:
        self._is_stated = is_stated
        self.looked_at: Time = -FOREVER
        """Rows due before this may have a derivation that lasts longer."""
        self.log: Log = []
        self.annotation = Annotation(one=FOREVER, join=min, merge=max, rows=self.of)
        self._ends: dict[Relation, Ends] = {}
        self._own: dict[Relation, Ends] = {}
        self._queues: dict[Relation, Queue] = {}
        self._times: list[Time] = []  # heap
        self._waiting: dict[Time, list[Relation]] = {}

    def of(self, relation: Relation) -> Ends:
        """The bounds of a relation's rows that end, by key; always the same dict."""
        return self._ends.setdefault(relation, {})

    def own(self, relation: Relation) -> Ends:
        """Ends of the statements of a relation's rows that are derived for longer; always the same dict."""
        return self._own.setdefault(relation, {})

    def set_own(self, relation: Relation, key: Row, until: Time | None) -> None:
        """When the statement of a row ends; None: at its bound, or there is no statement."""
        own = self.own(relation)
        before = own.get(key)
        if before == until:
            return
        self.log.append((own, (key,), before))
        if until is None:
            del own[key]
        else:
            own[key] = until

    def queue(self, relation: Relation) -> Queue:
        """Time → rows of a relation that are due; always the same dict."""
        return self._queues.setdefault(relation, {})

    def opener(self, relation: Relation) -> Callable[[Time, Row], None]:
        """The function that puts the first row due at a time into the queue."""
        queue, times, waiting = self.queue(relation), self._times, self._waiting

        def begin(time: Time, key: Row) -> None:
            queue[time] = [key]
            known = waiting.get(time)
            if known is None:
                waiting[time] = [relation]
                heappush(times, time)
            else:
                known.append(relation)

        return begin

    def beginner(self, relation: Relation) -> Callable[[Mapping[Row, Time]], None]:
        """The function that records how long new rows hold."""
        queue, ends, opener = self.queue(relation), self.of(relation), self.opener(relation)

        def begin(rows: Mapping[Row, Time]) -> None:
            ends.update(rows)
            last: Time | None = None
            waiting: list[Row] | None = None
            for key, until in rows.items():  # many share an end
                if until != last:
                    last, waiting = until, queue.get(until)
                if until == FOREVER:
                    del ends[key]
                elif waiting is None:
                    opener(until, key)
                    waiting = queue[until]
                else:
                    waiting.append(key)

        return begin

    def set(self, relation: Relation, key: Row, until: Time) -> None:
        """Set or change the bound of a row."""
        ends = self.of(relation)
        self.log.append((ends, (key,), ends.get(key)))
        if until == FOREVER:
            ends.pop(key, None)
            return
        ends[key] = until
        queue = self.queue(relation)
        if until in queue:
            queue[until].append(key)
        else:
            self.opener(relation)(until, key)

    def derive(self, relation: Relation, key: Row, until: Time, *, read: bool = True) -> None:
        """A row is derived for longer. `read`: others may depend on it; they keep their bounds."""
        if key not in self.own(relation) and self._is_stated(relation, key):
            self.set_own(relation, key, self.of(relation).get(key, FOREVER))
        if read:
            self.extend(relation, key, until)
        else:
            self.set(relation, key, until)

    def extend(self, relation: Relation, key: Row, until: Time) -> None:
        """A row on which others may depend holds longer: they keep their bounds."""
        self.set(relation, key, until)
        self.looked_at = max(self.looked_at, until)

    def drop(self, relation: Relation, key: Row) -> Time:
        """A row no longer holds; returns its bound."""
        ends = self.of(relation)
        before = ends.pop(key, None)
        if before is None:
            return FOREVER
        self.log.append((ends, (key,), before))
        return before

    def drop_due(self, relation: Relation, due: Time, keys: Iterable[Row]) -> dict[Row, None]:
        """Remove and return those rows of a queue that are due at that time."""
        ends = self.of(relation)
        pop = ends.pop
        found: dict[Row, None] = {}
        for key in keys:
            until = pop(key, None)
            if until == due:
                found[key] = None
            elif until is not None:
                ends[key] = until
        self.log.append((ends, found, due))
        return found

    def pop_due(self, time: Time) -> Popped:
        """Remove and return the rows of the queue that are due by `time`."""
        found: Popped = []
        while self._times and self._times[0] <= time:
            due = heappop(self._times)
            for relation in self._waiting.pop(due):
                found.append((relation, due, self._queues[relation].pop(due)))
        return found

    def put_back(self, popped: Popped) -> None:
        """Put these rows into the queue again."""
        for relation, due, keys in popped:
            queue = self.queue(relation)
            if due in queue:
                queue[due] += keys
                continue
            queue[due] = keys
            if due not in self._waiting:
                self._waiting[due] = []
                self._times.append(due)
            self._waiting[due].append(relation)
        heapify(self._times)

    def undo(self, log: Log) -> None:
        for ends, keys, before in reversed(log):
            if before is None:
                for key in keys:
                    ends.pop(key, None)
            else:
                ends.update(dict.fromkeys(keys, before))
