"""Which statements hold when, with what made and what ends each: the leaves of proofs where something lasts.

Place:   owned by record.py, which passes it every instant; derivations.py asks for the leaves of one instant.
Method:  language.md, "What lasts". What ended is remembered as long as an explanation may look back; what
         holds, as long as it does. A background triple is looked up, never copied; its deletion is noted.
Why not: core/periods.py: it keeps what is needed to go on, neither since when a triple holds nor why.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct

from dotr.events import Message, Time
from dotr.explain.proofs import Ending, InBackground, Lasting, TripleProof
from dotr.ir import Hold
from dotr.rdf.terms import RDF_TYPE, Term, Triple

_FOREVER: Time = 2**127
_TRIPLE = attrgetter("triple")


class LatestStatement(Struct):
    """A triple that a message made last. `hold`: by which line; None of an insertion. `start` None: earlier
    than what was kept. `until`: when it ends by time alone. `over`: when something ended it before that, how.
    """

    triple: Triple
    start: Time | None
    until: Time
    hold: Hold | None
    place: str = ""
    over: Time | None = None
    ending: Ending = Ending.OPEN

    def holds(self, time: Time) -> bool:
        return (self.start is None or self.start <= time) and time < self.end

    @property
    def end(self) -> Time:
        return self.until if self.over is None else self.over

    def proof(self, now: Time) -> Lasting:
        """The statement as it was known at `now`."""
        if self.over is not None and self.over <= now:
            return Lasting(self.triple, self.start, self.over, self.ending, self.hold is None, self.place)
        until = None if self.until == _FOREVER else self.until
        ending = Ending.TIME if until is not None else Ending.OPEN
        if self.hold is not None and self.hold.latest:
            ending = Ending.NEXT_VALUE
        return Lasting(self.triple, self.start, until, ending, self.hold is None, self.place)


class RunStatements:
    """Owns the statements of one run."""

    def __init__(self, background: Collection[Triple], holds: Sequence[Hold]) -> None:
        self._background = background if isinstance(background, frozenset) else frozenset(background)
        self._deleted: dict[Triple, Time] = {}  # of the background
        self._made: dict[Triple, list[LatestStatement]] = {}
        self._latest: dict[tuple[Term, Term], list[LatestStatement]] = {}
        self._over: deque[tuple[Time, Triple]] = deque()
        self._ends: dict[Time, list[Triple]] = {}
        self._aside: set[Triple] = set()  # of which something ended before what is kept
        self.declare(holds)

    def declare(self, holds: Sequence[Hold]) -> None:
        """What graphs state from now on lasts as these say."""
        self._predicates = {hold.predicate: hold for hold in holds if hold.class_ is None}
        self._classes = {hold.class_: hold for hold in holds if hold.class_ is not None}
        self._rest = self._predicates.pop(None, None)

    def take(self, time: Time, messages: Sequence[Message], places: Sequence[str] = ()) -> None:
        """What comes at `time`: deletions, then insertions and graphs. Times never decrease."""
        named = places if len(places) == len(messages) else [""] * len(messages)
        for message in messages:
            for triple in message.delete or ():
                self.delete(triple, time)
        values = {triple[:2] for message in messages for triple in message.graph or ()}
        for value in values & self._latest.keys():
            for statement in self._latest.pop(value):
                self._end(statement, time, Ending.REPLACED)
        for message, place in zip(messages, named, strict=True):
            for triple in message.insert or ():
                self.insert(triple, time, place)
            for triple in message.graph or ():
                hold = self._hold_of(triple)
                if hold is not None and hold.duration != 0:
                    until = _FOREVER if hold.duration is None else time + hold.duration
                    self._add(LatestStatement(triple, time, until, hold, place))

    def insert(self, triple: Triple, time: Time | None, place: str = "") -> None:
        self._add(LatestStatement(triple, time, _FOREVER, None, place))

    def delete(self, triple: Triple, time: Time) -> None:
        """End every statement of a triple that holds."""
        if triple in self._background and triple not in self._deleted:
            self._deleted[triple] = time
        for statement in self._made.get(triple, ()):
            self._end(statement, time, Ending.DELETED)

    def load(self, saved: Iterable[Sequence[Any]]) -> None:
        """Take what core/periods.py saved: since when it holds is not known."""
        for subject, predicate, object_, deleted, inserted, until, latest in saved:
            triple = subject, predicate, object_
            if deleted:
                self._deleted[triple] = -_FOREVER
            if inserted:
                self.insert(triple, None)
            for end, of_latest in ((until, False), (latest, True)):
                if end is not None:
                    hold = Hold(predicate, latest=of_latest)
                    self._add(LatestStatement(triple, None, _FOREVER if end == "" else end, hold))

    def _add(self, statement: LatestStatement) -> None:
        self._made.setdefault(statement.triple, []).append(statement)
        if statement.hold is not None and statement.hold.latest:
            self._latest.setdefault(statement.triple[:2], []).append(statement)
        if statement.until != _FOREVER:
            self._ends.setdefault(statement.until, []).append(statement.triple)

    def _end(self, statement: LatestStatement, time: Time, ending: Ending) -> None:
        if time < statement.end:
            statement.over, statement.ending = time, ending
            self._over.append((time, statement.triple))

    def _hold_of(self, triple: Triple) -> Hold | None:
        _, predicate, object_ = triple
        if predicate == RDF_TYPE:
            return self._classes.get(object_, self._rest)
        return self._predicates.get(predicate, self._rest)

    # -- what holds

    def basic(self, time: Time) -> frozenset[Triple]:
        """What the background and insertions state at a time: what changes rarely."""
        gone = {triple for triple, over in self._deleted.items() if over <= time}
        inserted = {
            s.triple for made in self._made.values() for s in made if s.hold is None and s.holds(time)
        }
        return ((self._background - gone) | inserted) if gone or inserted else self._background

    def held(self, time: Time) -> set[Triple]:
        """What graphs made last, at a time."""
        return {
            s.triple for made in self._made.values() for s in made if s.hold is not None and s.holds(time)
        }

    def leaf(self, triple: Triple, time: Time, now: Time) -> TripleProof | None:
        """Why a triple is stated at `time`, as known at `now`; None where it is not. Of several statements
        the background's, then the one that lasts longest, then the first.
        """
        if triple in self._background and time < self._deleted.get(triple, _FOREVER):
            over = self._deleted.get(triple)
            return InBackground(triple, over if over is not None and over <= now else None)
        found = [s for s in self._made.get(triple, ()) if s.holds(time)]
        return max(found, key=_lasts).proof(now) if found else None

    def moved(self, time: Time, *, ended: bool) -> tuple[Lasting | InBackground, ...]:
        """The statements that ended, or began, at a time: those of the background, then in the order of their
        triples.
        """
        gone = sorted(triple for triple, over in self._deleted.items() if ended and over == time)
        made = (s for of_triple in self._made.values() for s in of_triple)
        found = sorted((s for s in made if (s.end if ended else s.start) == time), key=_TRIPLE)
        return *(InBackground(triple, time) for triple in gone), *(s.proof(time) for s in found)

    def forget(self, low: Time, start: Time, end: Time) -> None:
        """Drop what ended before `low` and did not hold between `start` and `end`. Cost: what ended since the
        last time, and what is kept for `start` and `end`.
        """
        while self._over and self._over[0][0] < low:
            self._aside.add(self._over.popleft()[1])
        for time in [time for time in self._ends if time < low]:
            self._aside.update(self._ends.pop(time))
        still: set[Triple] = set()
        for triple in self._aside:
            made = self._made.get(triple, [])
            old = [s for s in made if s.end < low]
            pinned = [s for s in old if s.end >= start and (s.start is None or s.start <= end)]
            kept = [s for s in made if s.end >= low or s in pinned]
            if kept:
                self._made[triple] = kept
            else:
                self._made.pop(triple, None)
            if pinned:
                still.add(triple)
            of_latest = [s for s in self._latest.get(triple[:2], ()) if s.end >= low]
            if of_latest:
                self._latest[triple[:2]] = of_latest
            else:
                self._latest.pop(triple[:2], None)
        self._aside = still


def _lasts(statement: LatestStatement) -> tuple[Time, Time]:
    return statement.end, -(statement.start if statement.start is not None else -_FOREVER)
