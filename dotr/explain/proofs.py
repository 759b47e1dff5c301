"""What an explanation is made of.

Place:   made by derivations.py, solutions.py and matches.py, checked by checker.py, rendered by the others.
Method:  a proof is a tree whose leaves are stated: triples of the stream at their instant, and of the
         background. Every inner step says by which rule, query or clause it follows from its children, so
         that it can be checked without the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dotr.events import Fact, Time
from dotr.ir import Conjunct, DatalogRule, Node, Rule
from dotr.rdf.terms import Term, Triple


@dataclass(frozen=True, slots=True)
class InStream:
    """A graph of the stream states it at `time`."""

    triple: Triple
    time: Time


@dataclass(frozen=True, slots=True)
class InBackground:
    """The background states it."""

    triple: Triple


@dataclass(frozen=True, slots=True)
class Derived:
    """`rule` gives it from the premises. `bindings` are the values of the rule's variables; `absent`: what
    NOT looked for and did not find, as patterns; `total`: an AGGREGATE of the body was read (its rows are
    not opened).
    """

    triple: Triple
    rule: DatalogRule
    bindings: tuple[tuple[str, Term], ...]
    premises: tuple[TripleProof, ...]
    absent: tuple[tuple[Term | None, ...], ...] = ()
    total: bool = False


@dataclass(frozen=True, slots=True)
class Unopened:
    """It holds; why was not found within the search's budget, or is the full engine's to know."""

    triple: Triple
    reason: str


TripleProof: TypeAlias = InStream | InBackground | Derived | Unopened


@dataclass(frozen=True, slots=True)
class Solution:
    """Why a query has a solution. `premises`: the triples that its patterns matched. `absent`: patterns of
    MINUS, NOT EXISTS or an OPTIONAL that matched nothing, as text. `rows`: of an aggregate how many rows it
    counted, 0 where there is none. `opaque`: the full engine answered; nothing is opened.
    """

    premises: tuple[TripleProof, ...] = ()
    absent: tuple[str, ...] = ()
    rows: int = 0
    opaque: str = ""


@dataclass(frozen=True, slots=True)
class FactProof:
    """A fact at a position. `why` is its solution, or the event that it is; None for a tick."""

    position: str
    stream: str
    variables: tuple[str, ...]
    fact: Fact
    why: Solution | EventProof | EventLeaf | None


@dataclass(frozen=True, slots=True)
class Chosen:
    """What EACH, LAST or FIRST took: one of `passing` candidates, out of `inside` facts in the window."""

    conjunct: Conjunct
    fact: FactProof
    inside: int
    passing: int


@dataclass(frozen=True, slots=True)
class NothingThere:
    """A NOT without a candidate: `inside` facts lay in the window, the nearest of them failed `failed`."""

    conjunct: Conjunct
    inside: int
    nearest: Fact | None = None
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """An aggregate over `facts`, all its candidates in canonical order, of `inside` facts in the window."""

    conjunct: Conjunct
    value: Term | None
    facts: tuple[Fact, ...]
    inside: int


ConjunctProof: TypeAlias = Chosen | NothingThere | Counted


@dataclass(frozen=True, slots=True)
class EventProof:
    """A composite event: the trigger's fact, a step for each conjunct as written, and the values of WITH."""

    rule: Rule
    id: str
    time: Time
    trigger: FactProof
    steps: tuple[ConjunctProof, ...]
    values: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class EventLeaf:
    """A composite event that lies before what was kept: named, not opened."""

    rule: str
    id: str
    time: Time


@dataclass(frozen=True, slots=True)
class Blocked:
    """How far a match of a rule got for one trigger fact.

    `failed` is None where it was WHERE or WITH (`reason` says which). `inside`: facts in the window of the
    conjunct that failed; `nearest`: the one that came nearest, with the parts of ON that were not true for
    it; `outside`: whether it lies outside of the window; `consumed_by`: the event that consumed it.
    `blocker`: of a NOT the fact that is there.
    """

    rule: Rule
    trigger: FactProof
    steps: tuple[ConjunctProof, ...]
    failed: Conjunct | None
    reason: str
    inside: int = 0
    nearest: Fact | None = None
    missing: tuple[str, ...] = ()
    outside: bool = False
    consumed_by: str = ""
    blocker: FactProof | None = None


@dataclass(frozen=True, slots=True)
class NoTrigger:
    """No fact of the trigger at that time. `looked_for`: the query's patterns; `found`: how many of them, in
    the order written, have a common solution; `near`: triples that are nearest to the first that has none.
    """

    rule: Rule
    time: Time
    seen: bool
    looked_for: tuple[str, ...] = ()
    found: int = 0
    near: tuple[Triple, ...] = ()


WhyNot: TypeAlias = Blocked | NoTrigger | EventProof


@dataclass(frozen=True, slots=True)
class Attempt:
    """A rule that could give a triple. `lacks`: the first pattern of its body that those before it leave
    without a solution, what is bound put in; empty where it is a FILTER, a BIND or a NOT.
    """

    rule: DatalogRule
    lacks: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """A triple that does not hold, and the rules that could give it."""

    triple: Triple
    attempts: tuple[Attempt, ...]
