"""Which triples are stated at a time: statements whose periods messages and time begin and end.

Place:   pipeline.py passes every message and every end to it; Maintenance (instants.py) has what follows
         from the statements. It knows terms and times, not rules or queries. The knowledge base uses Expiry
         for statements inserted until a time, and deletes those that are due.
Method:  language.md, "What lasts". A statement holds over `[from, until)` (half open, as periods of SQL:2011)
         and keeps the lifetime it was stated with. Of a triple's statements that end by time alone only the
         last to end is kept, so at most two are: one that is replaceable, one that is not. In Expiry the last
         to end stands for all statements of a triple; one without an end is not kept there. Statements that
         begin later are kept one by one until they begin. Ends and beginnings wait in a heap; entries of
         deleted statements are skipped when they come up.
Why not: a list of all statements: the literal reading (reference/lasting.py) keeps one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.events import FOREVER, Clock, Effect, Message, Pattern, Time
from dotr.lasting.effects import Form, StatedIndex, fits
from dotr.lasting.validity import NotHeld, period, times_of
from dotr.program import Hold
from dotr.rdf.terms import RDF_TYPE, Term, Triple

Held: TypeAlias = tuple[Time, Time]
"""The statements of one triple by graphs: when the last one ends, and when the one ends that the next value
of its subject and predicate replaces. A time before all others means none.
"""


class Later(Struct, frozen=True, order=True):
    """A statement of a triple by a graph, from `start` on; `latest`: it is replaceable."""

    start: Time
    until: Time
    latest: bool


Entry: TypeAlias = tuple[Any, ...]
"""The statements of one triple: whether the background's was deleted, whether it is inserted, and both ends
of `Held`; then, if any begin later, a list of these.
"""

_NONE: Final[Time] = -FOREVER
_NOT_HELD: Final[Held] = (_NONE, _NONE)


class StatedChange(Struct, frozen=True):
    """The change of what is stated at one time.

    `begun`: newly stated triples → their end as far as is known (FOREVER: until deleted). `held`: those of
    them that only graphs state. `ended`: triples stated until now. `moved`: triples still stated whose end
    changed → the new end. `useless`: deletions of triples that were not stated. `unheld`: triples of graphs
    that are declared and do not last.
    """

    begun: Mapping[Triple, Time] = field(default_factory=dict)
    ended: Collection[Triple] = ()
    moved: Mapping[Triple, Time] = field(default_factory=dict)
    held: Collection[Triple] = ()
    useless: int = 0
    unheld: Sequence[NotHeld] = ()

    def __bool__(self) -> bool:
        return bool(self.begun or self.ended)


_NO_CHANGE: Final = StatedChange()


class Gathering(Struct):
    """What effects of an instant, taken one after the other, did so far.

    By the place of an effect `matched`, what its DELETE ends; `replaced`: what a value of subject and
    predicate replaces; `change`: that of the instant without effects; `due`: what ended or began by it;
    `first`: triples as they were before the instant, as far as it touched them. Of the effects taken in: what
    was `deleted`, `ended` by another value, and `stated`.
    """

    time: Time
    matched: Sequence[Sequence[Triple]]
    replaced: Mapping[tuple[Term, Term], Sequence[Triple]]
    change: StatedChange
    due: frozenset[Triple]
    first: dict[Triple, tuple[bool, bool, Held]]
    deleted: set[Triple] = field(default_factory=set)
    ended: set[Triple] = field(default_factory=set)
    stated: set[Triple] = field(default_factory=set)


class Periods:
    """Owns every statement that holds, and when it ends.

    `background`: the triples stated from the beginning; read, never copied. `clock`: how graphs write the
    times of FROM and UNTIL.
    """

    def __init__(
        self,
        background: Collection[Triple] = (),
        holds: Sequence[Hold] = (),
        clock: Clock | None = None,
        forms: Collection[Form] = (),
    ) -> None:
        self._clock = clock or Clock()
        self._background = background if isinstance(background, set | frozenset) else frozenset(background)
        self._deleted: set[Triple] = set()  # of the background
        self._inserted: dict[Triple, None] = {}
        self._held: dict[Triple, Held] = {}
        self._later: dict[Triple, tuple[Later, ...]] = {}
        self._latest: dict[Term, dict[Term, set[Triple]]] = {}  # predicate → subject → what the next replaces
        self._ends: list[tuple[Time, Triple]] = []  # heap, of beginnings, too
        self._undo: dict[Triple, tuple[Time, bool, bool, Held, tuple[Later, ...]]] = {}
        self._changed: dict[Triple, bool] = {}  # since the last `changed`: whether there was an entry then
        self._index = StatedIndex(forms, ())
        self.declare(holds, forms)

    def declare(self, holds: Sequence[Hold], forms: Collection[Form] = ()) -> None:
        """Set how long what graphs state lasts from now on, and what patterns of effects bind; earlier
        statements keep their lifetimes.
        """
        self._index = StatedIndex(forms, self) if forms else StatedIndex((), ())
        self._predicates = {hold.predicate: hold for hold in holds if hold.class_ is None}
        self._classes = {hold.class_: hold for hold in holds if hold.class_ is not None}
        self._rest = self._predicates.pop(None, None)
        self._timely = predicates_of_times(holds)
        self._touching = self._timely.union(self._predicates)

    def rebase(self, background: Collection[Triple]) -> None:
        """Take a new background, whose difference was already deleted and inserted: what is stated stays."""
        self._background = background if isinstance(background, set | frozenset) else frozenset(background)
        self._changed |= dict.fromkeys(self._deleted - self._background, True)
        self._deleted &= self._background
        self._undo = {}

    # -- what is stated

    def __contains__(self, triple: Triple) -> bool:
        return self._end(triple) != _NONE

    def __iter__(self) -> Iterator[Triple]:
        """Every triple that is stated, once."""
        for triple in self._background:
            if triple not in self._deleted:
                yield triple
        known, deleted = self._background, self._deleted
        for triple in self._inserted:
            if triple not in known or triple in deleted:
                yield triple
        for triple in self._held:
            if triple not in self._inserted and (triple not in known or triple in deleted):
                yield triple

    @property
    def statements(self) -> int:
        """How many there are: at least the number of triples stated."""
        return len(self._background) - len(self._deleted) + len(self._inserted) + len(self._held)

    def _end(self, triple: Triple) -> Time:
        """When the last statement of a triple ends; a time before all others if there is none."""
        if self._is_lasting(triple):
            return FOREVER
        held = self._held.get(triple)
        return _NONE if held is None else max(held)

    def ends(self) -> dict[Triple, Time]:
        """The ends of the triples that end by time alone."""
        found = ((triple, max(held)) for triple, held in self._held.items() if not self._is_lasting(triple))
        return {triple: until for triple, until in found if until != FOREVER}

    def next_change(self) -> Time | None:
        """When the next statement ends, or begins, by time, or None."""
        ends = self._ends
        while ends and not self._waits(*ends[0]):
            heappop(ends)
        return ends[0][0] if ends else None

    def _waits(self, time: Time, triple: Triple) -> bool:
        """Whether a statement of a triple ends or begins at a time."""
        if time in self._held.get(triple, ()):
            return True
        return bool(self._later) and any(time == one.start for one in self._later.get(triple, ()))

    # -- a change

    def change(
        self,
        time: Time,
        messages: Iterable[Message] = (),
        ended: Iterable[Triple] = (),
        begun: Iterable[Triple] = (),
        effects: Sequence[Effect] = (),
    ) -> StatedChange:
        """Advance to `time`: ends and beginnings first, then deletions, then insertions and what is held.

        `messages`: all of the instant, with labelled blank nodes. `ended` and `begun`: triples that a change
        of the background also deletes and inserts, without counting. A deletion also ends what begins later.
        `effects`: of the events of the moment before; their patterns match what is stated before the change.
        Times never decrease, and no end is skipped. `undo` undoes the last change.
        """
        self._undo = {}
        graphs: list[Triple] = []
        inserted: list[Triple] = []
        deleted: dict[Triple, None] = {}
        for graph, insert, delete in messages:
            if graph:
                graphs += self._changing(graph)
            if insert:
                inserted += insert
            if delete:
                deleted |= dict.fromkeys(delete)
        due = self._is_due(time)
        if not (graphs or effects or due or inserted or deleted or ended or begun):
            return _NO_CHANGE
        stated: dict[Triple, None] = {}
        patterns: list[Pattern] = []
        for effect in effects:
            stated |= dict.fromkeys(effect.insert)
            patterns += effect.delete
        matched = self._matched(patterns) if patterns else ()
        useless = 0
        if deleted:
            useless = sum([self._end(triple) == _NONE and triple not in self._later for triple in deleted])
        if due:
            for triple in self._due(time):
                self._pass(triple, time)
        for triple in (*deleted, *ended, *matched):
            self._delete(triple)
        graphs += stated
        made, unheld = self._made(graphs, time, stated)
        self._replace(graphs, made, time)
        for triple in (*inserted, *begun):
            self._insert(triple)
        for triple, one in made.items():
            self._hold(triple, one, time)
        return self._net(made, useless, unheld)

    # -- effects one after the other

    def gathering(self, time: Time, effects: Sequence[Effect]) -> Gathering | None:
        """Advance to `time` without effects, for `extended`; `undo` undoes it, and nothing else does. None,
        and nothing is done, where statements depend on others of the instant: those with times of their own.
        """
        if self._timely or self._later:
            return None
        matched = [self._matched(effect.delete) for effect in effects]
        places = {triple[:2] for effect in effects for triple in effect.insert}
        replaced = {place: tuple(sorted(values)) for place in places if (values := self._replaceable(*place))}
        change = self.change(time)
        first = {
            triple: (deleted, inserted, held)
            for triple, (_, deleted, inserted, held, _) in self._undo.items()
        }
        return Gathering(time, matched, replaced, change, frozenset(first), first)

    def extended(self, given: Gathering, number: int, effect: Effect) -> StatedChange:
        """The change of what is stated by another effect of the instant, given those that came before.
        `number`: its place among all. What all of them together state does not depend on their order, so
        only what this one touches is decided again. `undo` undoes it. O(the triples that it touches).
        """
        places = dict.fromkeys(triple[:2] for triple in effect.insert)
        replaced = [triple for place in places for triple in given.replaced.get(place, ())]
        matched = given.matched[number]
        touched = dict.fromkeys((*matched, *replaced, *effect.insert))
        deleted, ended, stated = {*matched}, {*replaced}, {*effect.insert}
        self._undo = {}
        for triple in touched:
            self._note(triple)
            _, was_deleted, was_inserted, held, _ = self._undo[triple]
            was_deleted, was_inserted, held = given.first.get(triple, (was_deleted, was_inserted, held))
            given.first.setdefault(triple, (was_deleted, was_inserted, held))
            (self._deleted.add if was_deleted else self._deleted.discard)(triple)
            if was_inserted:
                self._inserted[triple] = None
            self._put_held(triple, held, ())
            if triple in given.due:
                self._pass(triple, given.time)
            if triple in deleted or triple in given.deleted:
                self._delete(triple)
            if triple in ended or triple in given.ended:
                until, _ = self._held.get(triple, _NOT_HELD)
                self._put_held(triple, (until, _NONE), ())
        again = [triple for triple in touched if triple in stated or triple in given.stated]
        made, unheld = self._made(again, given.time, again)
        for triple, one in made.items():
            self._hold(triple, one, given.time)
        return self._net(made, 0, unheld)

    def take_in(self, given: Gathering, number: int, effect: Effect) -> Callable[[], None]:
        """The effect that `extended` the change last belongs to it; returns what takes it out again, after
        later ones.
        """
        places = {triple[:2] for triple in effect.insert}
        given.deleted.update(given.matched[number])
        given.ended.update(triple for place in places for triple in given.replaced.get(place, ()))
        given.stated.update(effect.insert)
        return self.taking_back()

    def taking_back(self) -> Callable[[], None]:
        """What undoes the last change, after later ones are undone."""
        undo = self._undo

        def back() -> None:
            self._undo = undo
            self.undo()

        return back

    def _matched(self, patterns: Collection[Pattern]) -> list[Triple]:
        """The stated triples that these patterns match."""
        found: set[Triple] = set()
        for pattern in set(patterns):
            subject, predicate, object_ = pattern
            if isinstance(subject, str) and isinstance(predicate, str) and isinstance(object_, str):
                found.update([one] if (one := (subject, predicate, object_)) in self else [])
            else:
                near = self._index.candidates(pattern)
                found.update(triple for triple in (self if near is None else near) if fits(triple, pattern))
        return sorted(found)

    def _made(
        self, graphs: Sequence[Triple], time: Time, stated: Collection[Triple]
    ) -> tuple[dict[Triple, Later], list[NotHeld]]:
        """The statements that the triples of an instant's graphs make, and which of those make none.
        `stated`: those of effects, which last without a line, too.
        """
        made: dict[Triple, Later] = {}
        unheld: list[NotHeld] = []
        times = times_of(graphs, self._timely) if self._timely else {}
        predicates, classes, rest = self._predicates, self._classes, self._rest
        for triple in graphs:
            _, predicate, object_ = triple
            is_type = predicate == RDF_TYPE
            hold = classes.get(object_, rest) if is_type else predicates.get(predicate, rest)
            if hold is None:
                if triple in stated:
                    made[triple] = Later(time, FOREVER, latest=False)
                continue
            if hold.duration == 0 or triple in made:
                continue
            if hold.start is None and hold.until is None:
                end = FOREVER if hold.duration is None else time + hold.duration
                made[triple] = Later(time, end, hold.latest)
                continue
            found = period(triple, hold, time, times, self._clock)
            if isinstance(found, NotHeld):
                unheld.append(found)
            else:
                made[triple] = Later(*found, hold.latest)
        return made, sorted(set(unheld)) if unheld else unheld

    def undo(self) -> None:
        for triple, (_, deleted, inserted, held, later) in reversed(self._undo.items()):
            (self._deleted.add if deleted else self._deleted.discard)(triple)
            if inserted:
                self._inserted[triple] = None
            else:
                self._inserted.pop(triple, None)
            self._put_held(triple, held, later)
            self._await_all(triple, held, later)
            self._changed.setdefault(triple, False)
            self._forget_new(triple)
        self._file(self._undo)
        self._undo = {}

    def _file(self, triples: Iterable[Triple]) -> None:
        """Keep the index of stated triples right."""
        if self._index.forms:
            for triple in triples:
                (self._index.put if triple in self else self._index.discard)(triple)

    def _forget_new(self, triple: Triple) -> None:
        """Forget what began and ended since the last `changed`."""
        if not self._changed.get(triple, True) and self._entry(triple) is None:
            del self._changed[triple]

    def _net(self, made: Collection[Triple], useless: int, unheld: Sequence[NotHeld]) -> StatedChange:
        """The change of what is stated since `_undo` was empty."""
        begun: dict[Triple, Time] = {}
        moved: dict[Triple, Time] = {}
        ended: list[Triple] = []
        held: list[Triple] = []
        self._file(self._undo)
        for triple, (was, _, _, _, _) in self._undo.items():
            lasting = self._is_lasting(triple)
            now = FOREVER if lasting else max(self._held.get(triple, _NOT_HELD))
            if now == _NONE:
                self._forget_new(triple)
                ended += [triple] if was != _NONE else []
            elif was == _NONE:
                begun[triple] = now
                held += [triple] if triple in made and not lasting else []
            elif was != now:
                moved[triple] = now
        return StatedChange(begun, tuple(ended), moved, tuple(held), useless, tuple(unheld))

    def _is_lasting(self, triple: Triple) -> bool:
        """Whether the background or an insertion states it."""
        return triple in self._inserted or (triple in self._background and triple not in self._deleted)

    def _note(self, triple: Triple) -> None:
        """Called before a triple's statements change."""
        if triple in self._undo:
            return
        deleted, inserted = triple in self._deleted, triple in self._inserted
        held = self._held.get(triple, _NOT_HELD)
        later = self._later.get(triple, ()) if self._later else ()
        lasting = inserted or (triple in self._background and not deleted)
        self._undo[triple] = FOREVER if lasting else max(held), deleted, inserted, held, later
        if triple not in self._changed:
            self._changed[triple] = deleted or inserted or bool(later) or held != _NOT_HELD

    def _changing(self, graph: list[Triple]) -> list[Triple]:
        """Those triples of a graph that may change what is stated."""
        if self._rest is not None:
            return graph
        touching, latest, classes = self._touching, self._latest, self._classes
        return [
            triple
            for triple in graph
            if (predicate := triple[1]) in touching
            or predicate in latest
            or (predicate == RDF_TYPE and triple[2] in classes)
        ]

    def _replaceable(self, subject: Term, predicate: Term) -> Collection[Triple]:
        """What the next value of a subject and predicate replaces."""
        return self._latest.get(predicate, {}).get(subject, ())

    def _is_due(self, time: Time) -> bool:
        """Whether a statement may end or begin by `time`."""
        return bool(self._ends) and self._ends[0][0] <= time

    def _due(self, time: Time) -> list[Triple]:
        """The triples with a statement that ends, or begins, by `time`."""
        found: dict[Triple, None] = {}
        while self._ends and self._ends[0][0] <= time:
            until, triple = heappop(self._ends)
            if self._waits(until, triple):
                found[triple] = None
        return list(found)

    def _pass(self, triple: Triple, time: Time) -> None:
        """End and begin what does so by `time`."""
        ends = [end if end > time else _NONE for end in self._held.get(triple, _NOT_HELD)]
        later = self._later.get(triple, ()) if self._later else ()
        for one in later:
            if one.start <= time < one.until:
                ends[one.latest] = max(ends[one.latest], one.until)
                self._await(triple, one.until)
        still = tuple([one for one in later if one.start > time]) if later else later
        self._set_held(triple, (ends[0], ends[1]), still)

    def _delete(self, triple: Triple) -> None:
        self._set_held(triple, _NOT_HELD, ())
        self._inserted.pop(triple, None)
        if triple in self._background:
            self._deleted.add(triple)

    def _insert(self, triple: Triple) -> None:
        self._note(triple)
        self._inserted[triple] = None

    def _replace(self, graphs: Iterable[Triple], made: Mapping[Triple, Later], time: Time) -> None:
        """End earlier values when the new ones begin: now, where these are not held."""
        latest = self._latest
        if not latest:
            return
        places: dict[tuple[Term, Term], Time] = {}
        for triple in graphs:
            subject, predicate, _ = triple
            if predicate in latest and subject in latest[predicate]:
                start = made[triple].start if triple in made else time
                places[subject, predicate] = min(start, places.get((subject, predicate), start))
        for place, end in places.items():
            for triple in sorted(self._replaceable(*place)):
                until, replaced = self._held.get(triple, _NOT_HELD)
                if end > time:
                    replaced = min(replaced, end)
                    self._await(triple, replaced)
                else:
                    replaced = _NONE
                later = self._later.get(triple, ()) if self._later else ()
                if later:
                    cut = [replace(one, until=min(one.until, end)) if one.latest else one for one in later]
                    later = tuple([one for one in cut if one.start < one.until])
                self._set_held(triple, (until, replaced), later)

    def hold_of(self, triple: Triple) -> Hold | None:
        """How long a triple of a graph lasts; None if it does not."""
        _, predicate, object_ = triple
        if predicate == RDF_TYPE:
            return self._classes.get(object_, self._rest)
        return self._predicates.get(predicate, self._rest)

    def _hold(self, triple: Triple, made: Later, time: Time) -> None:
        until, latest = held = self._held.get(triple, _NOT_HELD)
        later = self._later.get(triple, ()) if self._later else ()
        end = made.until
        if made.start > time:
            later = tuple(sorted({*later, made}))
            end = made.start
        elif made.latest:
            held = until, max(latest, end)
        else:
            held = max(until, end), latest
        self._await(triple, end)
        self._set_held(triple, held, later)

    def _await(self, triple: Triple, until: Time) -> None:
        if abs(until) != FOREVER:
            heappush(self._ends, (until, triple))

    def _await_all(self, triple: Triple, held: Held, later: Iterable[Later]) -> None:
        for time in (*held, *(one.start for one in later)):
            self._await(triple, time)

    def _set_held(self, triple: Triple, held: Held, later: tuple[Later, ...]) -> None:
        self._note(triple)
        self._put_held(triple, held, later)

    def _put_held(self, triple: Triple, held: Held, later: tuple[Later, ...]) -> None:
        if held == _NOT_HELD:
            self._held.pop(triple, None)
        else:
            self._held[triple] = held
        if later:
            self._later[triple] = later
        elif self._later:
            self._later.pop(triple, None)
        subject, predicate, _ = triple
        if held[1] != _NONE or (later and any(one.latest for one in later)):
            self._latest.setdefault(predicate, {}).setdefault(subject, set()).add(triple)
        elif (values := self._latest.get(predicate)) is not None and subject in values:
            values[subject].discard(triple)
            if not values[subject]:
                del values[subject]
                if not values:
                    del self._latest[predicate]

    # -- as a value

    def save(self) -> list[list[Any]]:
        """Every statement except those of the background that hold, as a JSON value."""
        return [[*triple, *entry] for triple, entry in self.entries().items()]

    def entries(self) -> dict[Triple, Entry]:
        """The same by triple, in order."""
        known = sorted(self._deleted | self._inserted.keys() | self._held.keys() | self._later.keys())
        return {triple: entry for triple in known if (entry := self._entry(triple)) is not None}

    def changed(self) -> dict[Triple, Entry | None]:
        """The triples whose statements changed since the last call, each with its value in `save`."""
        changed, self._changed = self._changed, {}
        return {triple: self._entry(triple) for triple in sorted(changed)}

    def _entry(self, triple: Triple) -> Entry | None:
        held = self._held.get(triple, _NOT_HELD)
        deleted, inserted = triple in self._deleted, triple in self._inserted
        later = self._later.get(triple, ())
        if not deleted and not inserted and held == _NOT_HELD and not later:
            return None
        entry = int(deleted), int(inserted), _plain(held[0]), _plain(held[1])
        if not later:
            return entry
        return *entry, [[one.start, _plain(one.until), int(one.latest)] for one in later]

    def take(self, changed: Mapping[Triple, Entry | None]) -> None:
        """Take over what `changed` of another gave, over the same background."""
        for triple, entry in changed.items():
            deleted, inserted, until, latest, *later = entry or (0, 0, None, None)
            (self._deleted.add if deleted else self._deleted.discard)(triple)
            if inserted:
                self._inserted[triple] = None
            else:
                self._inserted.pop(triple, None)
            held, ahead = (_time(until), _time(latest)), later_of(*later)
            self._put_held(triple, held, ahead)
            self._await_all(triple, held, ahead)

    def load(self, saved: Iterable[Sequence[Any]]) -> None:
        """Restore the value of `save` over the current background; deletions of what it lacks are dropped."""
        self._deleted, self._inserted, self._held, self._latest, self._undo = set(), {}, {}, {}, {}
        self._later, self._ends = {}, []
        for subject, predicate, object_, deleted, inserted, until, latest, *later in saved:
            triple = subject, predicate, object_
            if deleted and triple in self._background:
                self._deleted.add(triple)
            elif deleted:
                self._changed[triple] = True
            if inserted:
                self._inserted[triple] = None
            held, ahead = (_time(until), _time(latest)), later_of(*later)
            self._put_held(triple, held, ahead)
            self._await_all(triple, held, ahead)
        self._index = StatedIndex(self._index.forms, self)


def predicates_of_times(holds: Sequence[Hold]) -> frozenset[Term]:
    """The predicates of FROM and UNTIL."""
    return frozenset(p for hold in holds for p in (hold.start, hold.until) if p is not None)


def later_of(saved: Iterable[Sequence[Any]] = ()) -> tuple[Later, ...]:
    """What an Entry has of statements that begin later."""
    return tuple(Later(start, _time(until), bool(latest)) for start, until, latest in saved)


def declared(holds: Sequence[Hold]) -> Callable[[Triple], bool]:
    """Whether a triple of a graph is held, ends held ones, or has the time at which they begin or end."""
    periods, timely = Periods((), holds), predicates_of_times(holds)

    def is_held(triple: Triple) -> bool:
        return triple[1] in timely or periods.hold_of(triple) is not None

    return is_held


def _plain(end: Time) -> int | str | None:
    """An end in JSON: None for no statement, "" for one without an end."""
    return None if end == _NONE else "" if end == FOREVER else end


def _time(plain: int | str | None) -> Time:
    return _NONE if plain is None else FOREVER if isinstance(plain, str) else plain


class Expiry:
    """Owns the ends. `until`: the triples all of whose statements end → when the last one does."""

    def __init__(self, until: dict[Triple, Time] | None = None) -> None:
        self.until = {} if until is None else until
        self._heap = [(end, triple) for triple, end in self.until.items()]
        heapify(self._heap)

    def due(self, time: Time) -> list[Triple]:
        """What no statement holds at `time` any more: periods are half open. Nothing changes."""
        found: dict[Triple, None] = {}
        while self._heap and self._heap[0][0] <= time:
            end, triple = heappop(self._heap)
            if self.until.get(triple) == end:
                found[triple] = None
        for triple in found:
            heappush(self._heap, (self.until[triple], triple))
        return list(found)

    def end(self, triples: Iterable[Triple]) -> None:
        """Every statement of these triples has ended."""
        for triple in triples:
            self.until.pop(triple, None)

    def begin(self, triples: Iterable[Triple], until: Time | None) -> None:
        """These triples, which have no other statement without an end, are stated until then; None: until
        they are deleted.
        """
        for triple in triples:
            if until is None:
                self.until.pop(triple, None)
            elif until > self.until.get(triple, -(2**127)):
                self.until[triple] = until
                heappush(self._heap, (until, triple))
