"""The parts of an explanation: proof trees for events, facts, triples and LARS heads.

Method:  a proof is a tree whose leaves are stated: triples of the stream at their instant, and triples of the
         background. Every inner step names the rule, query or clause by which it follows from its children,
         so that it can be checked without the engine. `Sharing` determines which proofs are equal, and how
         large they are. A statement that an event made goes on into the proof of that event.
         An atom of a LARS head opens into the rule that put it at its point and, literal by literal, into
         what the windows contained at the point at which the rule was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dotr.events import Fact, Time, Values
from dotr.program import (
    AggregateAtom,
    BindAtom,
    Conjunct,
    DatalogRule,
    FilterAtom,
    LarsLiteral,
    LarsRule,
    Node,
    RelationToStream,
    Rule,
    WindowAggregate,
    WindowAtom,
)
from dotr.rdf.terms import Term, Triple


class PlacedAtom(Struct, frozen=True):
    """An atom at a point. `why`: the fact or the atom of a head that it is; None where it is not opened."""

    name: str
    values: Values
    point: Time
    why: FactProof | HeldAtom | None = None


class Supported(Struct, frozen=True):
    """A window atom that held. `atoms`: what supports it, of ALWAYS its points, the latest first, the first
    few; `points`: how many there are; `start`: the beginning of its window, None where it has none.
    """

    literal: WindowAtom
    atoms: tuple[PlacedAtom, ...]
    points: int
    start: Time | None


class NoneHeld(Struct, frozen=True):
    """A NOT: nothing of the kind in its window, which begins at `start` (None: it has none)."""

    literal: WindowAtom
    start: Time | None


class ProvedTotal(Struct, frozen=True):
    """An aggregate over so many pairs of an atom and a point."""

    literal: WindowAggregate
    value: Term
    pairs: int
    start: Time


class Computed(Struct, frozen=True):
    """A FILTER that is true, a BIND."""

    literal: FilterAtom | BindAtom


LarsStep: TypeAlias = Supported | NoneHeld | ProvedTotal | Computed


class HeldAtom(Struct, frozen=True):
    """`rule`, read at `considered`, put the atom at `point`. `bindings`: of its variables."""

    name: str
    variables: tuple[str, ...]
    values: Values
    point: Time
    rule: LarsRule
    considered: Time
    bindings: tuple[tuple[str, Term], ...]
    steps: tuple[LarsStep, ...]


class LarsFailure(Struct, frozen=True):
    """A rule that did not give an atom at a point: the first literal, those of NOT and FILTER last, that left
    nothing; None: its head is at another point. `start`: of its window.
    """

    rule: LarsRule
    literal: LarsLiteral | None
    point: Time
    start: Time | None = None


class Holding(Struct, frozen=True):
    """Why a head has a fact. `operator` None: it holds. For DSTREAM the atom is that of the point before, and
    `failed` says why it holds no more. `atom` None: it was not opened.
    """

    operator: RelationToStream | None
    atom: HeldAtom | None
    failed: tuple[LarsFailure, ...] = ()


Inverses: TypeAlias = tuple[tuple[Term, Term], ...]
"""(an anonymous property, what it is the inverse of)."""


def parts_of(proof: TripleProof) -> Iterator[TripleProof]:
    """The proofs directly below one."""
    if isinstance(proof, Derived):
        yield from proof.premises
        for total in proof.totals:
            for row in total.shown:
                yield from row


class Sharing:
    """Owns the numbers of the proofs that were asked about, and holds them.

    Hash consing: a proof's number is looked up by its own content and the numbers of its premises, from the
    leaves upwards, without recursion: a chain of ten thousand steps is one loop, and what a proof uses twice
    is not walked twice. An event counts by its name.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._by_id: dict[int, tuple[int, TripleProof]] = {}
        self._sizes: list[int] = []

    def number(self, proof: TripleProof) -> int:
        """The same for equal proofs, and for those alone."""
        todo = [proof]
        while todo:
            one = todo[-1]
            if id(one) in self._by_id:
                todo.pop()
                continue
            below = list(parts_of(one))
            open_ = [part for part in below if id(part) not in self._by_id]
            if open_:
                todo += open_
                continue
            todo.pop()
            self._by_id[id(one)] = self._of(one, below), one
        return self._by_id[id(proof)][0]

    def _of(self, proof: TripleProof, below: list[TripleProof]) -> int:
        numbers = tuple(self._by_id[id(part)][0] for part in below)
        key: object = proof
        if isinstance(proof, Derived):
            counted = tuple(total.rows for total in proof.totals)
            key = proof.triple, id(proof.rule), proof.bindings, proof.absent, counted, numbers
        elif isinstance(proof, Lasting | InBackground):
            key = with_events(proof, _leaf_of)
        if key not in self._numbers:
            self._numbers[key] = len(self._sizes)
            own = len(proof.premises) if isinstance(proof, Derived) else 0
            self._sizes.append(1 + sum(self._sizes[number] for number in numbers[:own]))
        return self._numbers[key]

    def size(self, proof: TripleProof) -> int:
        """The steps of a proof as a tree."""
        return self._sizes[self.number(proof)]


def with_leaves(
    proof: TripleProof, change: Callable[[Lasting | InBackground], Lasting | InBackground]
) -> TripleProof:
    """A proof in which other statements stand at the leaves; itself where none is another one. Without
    recursion.
    """
    made: dict[int, TripleProof] = {}
    todo = [proof]
    while todo:
        one = todo[-1]
        below = [part for part in parts_of(one) if id(part) not in made]
        if below and id(one) not in made:
            todo += below
            continue
        todo.pop()
        if id(one) in made:
            continue
        made[id(one)] = one
        if isinstance(one, Lasting | InBackground):
            made[id(one)] = change(one)
        elif isinstance(one, Derived) and any(made[id(part)] is not part for part in parts_of(one)):
            premises = tuple(made[id(premise)] for premise in one.premises)
            totals = tuple(
                replace(total, shown=tuple(tuple(made[id(part)] for part in row) for row in total.shown))
                for total in one.totals
            )
            made[id(one)] = replace(one, premises=premises, totals=totals)
    return made[id(proof)]


def with_events(
    proof: Lasting | InBackground, change: Callable[[EventProof | EventLeaf], EventProof | EventLeaf]
) -> Lasting | InBackground:
    """A statement with other proofs of the events that stated and ended it; itself where there are none."""
    ended = None if proof.ended_by is None else change(proof.ended_by)
    if isinstance(proof, Lasting) and proof.stated_by is not None:
        return replace(proof, stated_by=change(proof.stated_by), ended_by=ended)
    return proof if ended is None else replace(proof, ended_by=ended)


def _leaf_of(event: EventProof | EventLeaf) -> EventLeaf:
    name = event.rule.name if isinstance(event, EventProof) else event.rule
    return EventLeaf(name, event.id, event.time)


class Of(Enum):
    """What is examined: K(t), M(t), or M just before t."""

    INSTANT = "K"
    LASTING = "M"
    BEFORE = "M-"


class InStream(Struct, frozen=True):
    """A graph of the stream states it at `time`."""

    triple: Triple
    time: Time


class InBackground(Struct, frozen=True):
    """The background states it, until it was deleted at `until`, where that is known. `ended_by`: the event
    that deleted it, where one did.
    """

    triple: Triple
    until: Time | None = None
    ended_by: EventProof | EventLeaf | None = None


OF_BACKGROUND = "BACKGROUND"
"""Place of a statement that came with the background of other rules."""


class Ending(Enum):
    """How a statement ends: by time, by another value of its subject and predicate, by a deletion."""

    OPEN = "until deleted"
    NEXT_VALUE = "until another value"
    TIME = "by time"
    REPLACED = "replaced"
    DELETED = "deleted"


class Lasting(Struct, frozen=True):
    """A message stated it at `start`, and it lasts until `until` (None: no end is known). `start` None:
    before what was kept. `inserted`: the message's insertion, else its graph, under a HOLD line. `place`: of
    the message. `stated_by`: the event that stated it, instead of a message; `ended_by`: the event that
    deleted or replaced it, where one did.
    """

    triple: Triple
    start: Time | None
    until: Time | None
    ending: Ending
    inserted: bool = False
    place: str = ""
    stated_by: EventProof | EventLeaf | None = None
    ended_by: EventProof | EventLeaf | None = None


class NotThen(Struct, frozen=True):
    """A triple of a graph under a HOLD line with FROM or UNTIL, which does not hold at the time in question:
    it does from `start` until `end` (None: no end is known), or `reason` says why it never does, with the
    value at fault, if it is one. `place`: of its graph.
    """

    triple: Triple
    start: Time | None = None
    end: Time | None = None
    reason: str = ""
    value: Term = ""
    place: str = ""


class Derived(Struct, frozen=True):
    """`rule` gives it from the premises. `bindings` are the values of the rule's variables; `absent`: what
    NOT looked for and did not find, as patterns; `totals`: of every AGGREGATE of the body what it counted.
    Of a rule that was instantiated over a schema, or stands for an axiom, the premises have that schema, too;
    `name`: of such a rule in its profile, as `cax-sco`. `inverses`: what each anonymous property of the rule
    is the inverse of, a property or another one of them, where there is such an axiom.
    """

    triple: Triple
    rule: DatalogRule
    bindings: tuple[tuple[str, Term], ...]
    premises: tuple[TripleProof, ...]
    absent: tuple[tuple[Term | None, ...], ...] = ()
    totals: tuple[Totalled, ...] = ()
    name: str = ""
    inverses: Inverses = ()


class Totalled(Struct, frozen=True):
    """An AGGREGATE of a rule's body: how many solutions its group has, and the first of them, in canonical
    order, each as the triples of its atoms.
    """

    atom: AggregateAtom
    rows: int
    shown: tuple[tuple[TripleProof, ...], ...]


class Unopened(Struct, frozen=True):
    """It holds; why was not found within the search's budget, or is of an interpreted query."""

    triple: Triple
    reason: str


TripleProof: TypeAlias = InStream | InBackground | Lasting | Derived | Unopened


class Origin(NamedTuple):
    """What a rule that runs is an instance of. `name`: of the rule in its profile, "" where it has none;
    `premises`: the schema triples that it stands on.
    """

    name: str = ""
    premises: tuple[Triple, ...] = ()


class SolutionProof(Struct, frozen=True):
    """Why a query has a solution. `premises`: the triples that its patterns matched. `absent`: patterns of
    MINUS, NOT EXISTS or an OPTIONAL that matched nothing, as text. `rows`: of an aggregate how many rows it
    counted, 0 where there is none. `opaque`: the query is interpreted; nothing is opened. `others`: further
    solutions with the same values, where all are asked for.
    """

    premises: tuple[TripleProof, ...] = ()
    absent: tuple[str, ...] = ()
    rows: int = 0
    opaque: str = ""
    others: tuple[SolutionProof, ...] = ()


class Changed(Struct, frozen=True):
    """Why a stream of changes has a fact: the answers with its values, over what lasts. `solution`: of the
    query at the fact's time for ISTREAM, just before it for DSTREAM. `before`, `after`: how many there are,
    None where the query is interpreted. `moved`: where no premise begins, or ends, with the answer, the
    statements that ended, or began, at that time. `rules`: other rules hold from that time on.
    """

    operator: RelationToStream
    solution: SolutionProof
    before: int | None
    after: int | None
    moved: tuple[Lasting | InBackground, ...] = ()
    rules: bool = False


class FactProof(Struct, frozen=True):
    """A fact at a position. `why` is its solution, the change of answers, what holds, or the event that it
    is; None for a tick.
    """

    position: str
    stream: str
    variables: tuple[str, ...]
    fact: Fact
    why: SolutionProof | Changed | Holding | EventProof | EventLeaf | None


class Chosen(Struct, frozen=True):
    """What EACH, LAST or FIRST took: one of `passing` candidates, out of `inside` facts in the window. EACH …
    PER took a `group`: `fact` is then its last candidate, and `passing` are groups.

    Of every conjunct: `inside` is None where its window was not opened (`TOO_LONG`).
    """

    conjunct: Conjunct
    fact: FactProof
    inside: int | None
    passing: int
    group: Fact | None = None


class NothingThere(Struct, frozen=True):
    """A NOT or an OPTIONAL without a candidate: `inside` facts lay in the window, the nearest of them failed
    `failed`.
    """

    conjunct: Conjunct
    inside: int | None
    nearest: Fact | None = None
    failed: tuple[str, ...] = ()


class Counted(Struct, frozen=True):
    """An aggregate over `facts`, its candidates in canonical order (of OVER LAST n those that count), of
    `inside` facts in the window.
    """

    conjunct: Conjunct
    value: Term | None
    facts: tuple[Fact, ...]
    inside: int | None


TOO_LONG = "not opened: a head over more points than are gone through"
"""Why a conjunct's window, or a trigger, was not opened."""

ConjunctProof: TypeAlias = Chosen | NothingThere | Counted


class EventProof(Struct, frozen=True):
    """A composite event: the trigger's fact, a step for each conjunct as written, and the values of WITH.

    Of a sequence the trigger is the first row, `rows` are all, and `ended` says what made the match certain.
    """

    rule: Rule
    id: str
    time: Time
    trigger: FactProof
    steps: tuple[ConjunctProof, ...]
    values: tuple[Term, ...]
    rows: tuple[RowProof, ...] = ()
    ended: str = ""


class RowProof(Struct, frozen=True):
    """A row of a match, and its element; "" where it is skipped."""

    element: str
    fact: FactProof


class EventLeaf(Struct, frozen=True):
    """A composite event that is named, not opened: it lies before what was kept, or (`kept`) too deep."""

    rule: str
    id: str
    time: Time
    kept: bool = False


class Blocked(Struct, frozen=True):
    """How far a match of a rule got for one trigger fact.

    `failed` is None where it was WHERE or WITH (`reason` says which). `inside`: facts in the window of the
    conjunct that failed; `nearest`: the one that came nearest, with the parts of ON that were not true for
    it; `outside`: whether it lies outside of the window; `consumed_by`: the event that consumed it, and when.
    `blocker`: of a NOT the fact that is there. `nowhere`: where there is no fact at all, how far the query's
    patterns come at the instant of the window at which they come furthest.
    """

    rule: Rule
    trigger: FactProof
    steps: tuple[ConjunctProof, ...]
    failed: Conjunct | None
    reason: str
    inside: int | None = 0
    nearest: Fact | None = None
    missing: tuple[str, ...] = ()
    outside: bool = False
    consumed_by: str = ""
    consumed_at: Time | None = None
    blocker: FactProof | None = None
    nowhere: NoTrigger | None = None


class NoTrigger(Struct, frozen=True):
    """No fact of the trigger at that time. `looked_for`: the query's patterns; `found`: how many of them, in
    the order written, have a common solution; `near`: triples that are nearest to the first that has none.
    `operator`: of a stream of changes, whose patterns are looked for in what lasts. `left_out`: places of
    graphs of that time that came too late or were refused. `not_held`: of a head, why each of its rules gives
    nothing; `held_before`: it holds, and did at the point before. `untrue`: where all patterns have a common
    solution, the filters that are not true for the one that came nearest, with what they saw. `bound`: values
    of variables of the first pattern without a solution, from the first solution of those before it. `ahead`:
    of an AFTER, time is closed up to then, before its tick. `not_then`: what would match the first pattern
    that has no solution, but is held at other times. `gone`: the statements of that pattern that ended last,
    where events ended them. `no_match`: of a sequence, how far it came.
    """

    rule: Rule
    time: Time
    seen: bool
    looked_for: tuple[str, ...] = ()
    found: int = 0
    near: tuple[Triple, ...] = ()
    operator: RelationToStream | None = None
    left_out: tuple[str, ...] = ()
    not_held: tuple[LarsFailure, ...] = ()
    held_before: bool = False
    untrue: tuple[str, ...] = ()
    bound: str = ""
    ahead: Time | None = None
    not_then: tuple[NotThen, ...] = ()
    gone: tuple[Lasting | InBackground, ...] = ()
    no_match: tuple[WhyNot, ...] = ()


class Unmatched(Struct, frozen=True):
    """How far a mapping of a sequence came: its `rows`, the element it waited for, empty where it has all.

    `row`: that did not satisfy the element, with the parts of its condition that were not true, `untrue`, and
    what they saw; None where the deadline `until` ended it, or is ahead (`open`).
    """

    rule: Rule
    time: Time
    rows: tuple[RowProof, ...] = ()
    waits: str = ""
    row: FactProof | None = None
    untrue: tuple[str, ...] = ()
    until: Time | None = None
    open: bool = False


class EventChange(Struct, frozen=True):
    """What a correction did with an event. `change`: 1 where it added it, -1 where it took it back; `at`: the
    watermark then; `late`: the times and places of the late graphs that it took, up to the time of the event.
    """

    change: int
    at: Time
    late: tuple[tuple[Time, str], ...]


class Corrected(Struct, frozen=True):
    """An event that corrections changed. `now`: None where it happened after all; else it was withdrawn,
    `event` is its proof before the last of them, and `now` how far its rule comes with the late graphs.
    """

    event: EventProof
    changes: tuple[EventChange, ...]
    now: WhyNot | None = None


WhyNot: TypeAlias = Blocked | NoTrigger | EventProof | Unmatched | Corrected


class Attempt(Struct, frozen=True):
    """A rule that could give a triple. `lacks`: the first pattern of its body that those before it leave
    without a solution, what is bound put in; empty where it is a FILTER, a BIND or a NOT. `inverses`: as
    those of `Derived`.
    """

    rule: DatalogRule
    lacks: tuple[Node, ...]
    inverses: Inverses = ()


class Missing(Struct, frozen=True):
    """A triple that does not hold, the rules that could give it, and other times at which it is held.
    `gone`: its statements that ended last.
    """

    triple: Triple
    attempts: tuple[Attempt, ...]
    not_then: tuple[NotThen, ...] = ()
    gone: tuple[Lasting | InBackground, ...] = ()
