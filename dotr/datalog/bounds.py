"""Until when rows hold at least, and which of them are due.

Place:   read and written by generated functions (inserters.py, suspects.py) while a change is open; owned by
         expiration.py, which says what follows when rows are due.
Method:  the expiration times of IMaRS (Barbieri et al. 2010, sec. 3): a row has the latest, over its
         derivations, of the earliest bound of their premises; what never ends is not noted. Bounds are lower
         bounds: where a premise is stated again, what follows from it keeps its bound, and is looked at once
         more when that is due. `looked_at` says how far in time there may be such rows.
Why not: raise everything that follows at once, as the paper does: in a stream that says the same again and
         again that is a derivation a statement, for a look that is needed once a window.
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
"""What some rows had before, all of them the same; None: no bound."""


class Bounds:
    """Owns the bounds of all relations, and the queue of rows by their bounds.

    A row that does not hold, with the open change, has none: where one is noted, the row holds. A queue may
    name rows that have another bound by now. What changes a bound that was there is on `log`.
    `is_stated`: whether a row, there or new, is stated, with the open change.
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
        """The bounds of a relation's rows that end, by their keys; the same dict for ever."""
        return self._ends.setdefault(relation, {})

    def own(self, relation: Relation) -> Ends:
        """When statements of a relation's rows end that are derived for longer; the same dict for ever."""
        return self._own.setdefault(relation, {})

    def set_own(self, relation: Relation, key: Row, until: Time | None) -> None:
        """When the statement of a row ends; None: when its bound says, or there is none."""
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
        """Which rows of a relation are due when; the same dict for ever."""
        return self._queues.setdefault(relation, {})

    def opener(self, relation: Relation) -> Callable[[Time, Row], None]:
        """The function that puts the first row into the queue at a time."""
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
        """The function that notes how long new rows hold."""
        queue, ends, opener = self.queue(relation), self.of(relation), self.opener(relation)

        def begin(rows: Mapping[Row, Time]) -> None:
            ends.update(rows)
            last: Time | None = None
            waiting: list[Row] | None = None
            for key, until in rows.items():  # many have the same end
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
        """Another bound of a row, or one of a row without."""
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
        """A row is derived for longer than before. `read`: others may stand on it; they keep their bounds."""
        if key not in self.own(relation) and self._is_stated(relation, key):
            self.set_own(relation, key, self.of(relation).get(key, FOREVER))
        if read:
            self.extend(relation, key, until)
        else:
            self.set(relation, key, until)

    def extend(self, relation: Relation, key: Row, until: Time) -> None:
        """A row that others may stand on holds longer: they keep their bounds."""
        self.set(relation, key, until)
        self.looked_at = max(self.looked_at, until)

    def drop(self, relation: Relation, key: Row) -> Time:
        """A row does not hold any more; the bound that it had."""
        ends = self.of(relation)
        before = ends.pop(key, None)
        if before is None:
            return FOREVER
        self.log.append((ends, (key,), before))
        return before

    def drop_due(self, relation: Relation, due: Time, keys: Iterable[Row]) -> dict[Row, None]:
        """Of the rows of a queue those that are due then do not hold any more: which these are."""
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
        """Take the rows out of the queue that are due by `time`."""
        found: Popped = []
        while self._times and self._times[0] <= time:
            due = heappop(self._times)
            for relation in self._waiting.pop(due):
                found.append((relation, due, self._queues[relation].pop(due)))
        return found

    def put_back(self, popped: Popped) -> None:
        """Have these rows wait again."""
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
        """Take changes of bounds back."""
        for ends, keys, before in reversed(log):
            if before is None:
                for key in keys:
                    ends.pop(key, None)
            else:
                ends.update(dict.fromkeys(keys, before))
