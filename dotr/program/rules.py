"""Composite event rules as checked."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from dotr.program.positions import Position
from dotr.program.queries import Expression, Var
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Term
from dotr.source import Span, Syntax


class Every(Syntax, frozen=True):
    """`EVERY duration AS name`: a trigger without attributes at each multiple of `duration` (µs, > 0)."""

    duration: int
    name: str
    span: Span | None = None

    @property
    def rhythm(self) -> Rhythm:
        """When it ticks."""
        return self.duration


class Calendar(Struct, frozen=True, order=True):
    """Local times of a zone: `at` µs after midnight of some days. They are `day` and every `days` (> 0) days
    more, and less, counted from 1970-01-01; with `days` 0 the day `day` (1 to 31) of every month, its last
    where it has no such day. expressions/rhythms.py has the instants.
    """

    zone: str
    at: int
    days: int
    day: int = 0


class CalendarTick(Syntax, frozen=True):
    """`EVERY 1 d AT 08:00 IN "Europe/Brussels" AS name` and its like: a trigger without attributes at local
    times.
    """

    calendar: Calendar
    name: str
    span: Span | None = None

    @property
    def rhythm(self) -> Rhythm:
        """When it ticks."""
        return self.calendar


Rhythm: TypeAlias = int | Calendar
"""When an EVERY ticks: at the multiples of a duration (µs), or at local times."""

Tick: TypeAlias = Every | CalendarTick


class After(Syntax, frozen=True):
    """`event AFTER duration AS name`: for each fact of the event the rule is evaluated `duration` (µs, > 0)
    later. That time is `name`, which has no attributes; the event is in the past.

    Of a query those facts count that it has at instants with a graph.
    """

    position: Position
    duration: int
    name: str
    span: Span | None = None

    @property
    def delay(self) -> Delay:
        """Its ticks."""
        return Delay(self.position.stream, self.duration)


class Delay(Struct, frozen=True):
    """Ticks: one `duration` (µs) after each fact of `stream`."""

    stream: str
    duration: int


Trigger: TypeAlias = Position | Tick | After | RowPattern


class Within(Syntax, frozen=True):
    """`reference.t − duration ≤ time ≤ reference.t` (closed, FROM) or `< reference.t` (BEFORE). µs."""

    duration: int
    reference: str
    before: bool = False
    span: Span | None = None


class Between(Syntax, frozen=True):
    """The open interval `start.t < time < end.t`."""

    start: str
    end: str
    span: Span | None = None


Window: TypeAlias = Within | Between


class Operator(StrEnum):
    """The operator of a conjunct on the facts in its window. Each has a row in lang/operators.py (syntax and
    checks), in detect/operators.py (detection) and in reference/operators.py (semantics).
    """

    EACH = "EACH"
    LAST = "LAST"
    FIRST = "FIRST"
    NOT = "NOT"
    AGGREGATE = "AGGREGATE"


class Selection(StrEnum):
    EACH = "EACH"
    LAST = "LAST"
    FIRST = "FIRST"


class Choose(Syntax, frozen=True):
    """`AND [OPTIONAL] EACH | LAST [k] | FIRST [k] event within [ON condition]`. `k` is 1 unless written.

    `optional`, of LAST and FIRST alone: without a candidate the match goes on, with `no_fact`. `per`, of EACH
    alone (`PER (?a, ?b)` behind the event): a match for each distinct tuple of these attributes among the
    candidates; its fact is the group: at the time of the evaluation, nothing bound but these attributes.
    """

    selection: Selection
    position: Position
    window: Within
    on: Expression | None = None
    k: int = 1
    span: Span | None = None
    optional: bool = False
    per: tuple[str, ...] = ()

    @property
    def operator(self) -> Operator:
        return Operator(self.selection.value)

    @property
    def word(self) -> str:
        """`EACH`, `LAST 3`, `OPTIONAL FIRST`."""
        if self.optional:
            return f"OPTIONAL {self.selection}"
        return str(self.selection) if self.k == 1 else f"{self.selection} {self.k}"

    @property
    def suffix(self) -> str:
        """What stands behind the event: ` PER (?a, ?b)`, or nothing."""
        return f" PER ({', '.join(f'?{name}' for name in self.per)})" if self.per else ""


class Absent(Syntax, frozen=True):
    """`AND NOT event window [ON condition]`."""

    position: Position
    window: Window
    on: Expression | None = None
    span: Span | None = None

    @property
    def operator(self) -> Operator:
        return Operator.NOT

    @property
    def word(self) -> str:
        return "NOT"


COLLECT: Final = "COLLECT"
"""The aggregate whose value is a list: no term, and a value of WITH alone."""


class Summarise(Syntax, frozen=True):
    """`AND function([DISTINCT] argument) AS ?variable OVER [LAST n | FIRST n] event window [ON condition]`.

    `function`: a keyword of AGGREGATES (expressions/aggregates.py), PERCENTILE with its share; argument None
    is `COUNT(*)`. `selection`, of LAST and FIRST alone: over the `k` greatest or least candidates only.
    """

    function: str
    argument: Expression | None
    distinct: bool
    variable: str
    position: Position
    window: Window
    on: Expression | None = None
    span: Span | None = None
    selection: Selection | None = None
    k: int = 0

    @property
    def operator(self) -> Operator:
        return Operator.AGGREGATE

    @property
    def word(self) -> str:
        """`AVG OVER`, `AVG OVER LAST 3`."""
        return f"{self.function} {self.over}"

    @property
    def over(self) -> str:
        """`OVER`, `OVER LAST 3`."""
        return "OVER" if self.selection is None else f"OVER {self.selection} {self.k}"


Conjunct: TypeAlias = Choose | Absent | Summarise


class Binding(Syntax, frozen=True):
    """`?variable := expression` of WITH."""

    variable: str
    expression: Expression
    span: Span | None = None


class TemplateVar(Struct, frozen=True):
    name: str


class Fresh(Struct, frozen=True):
    """A fresh name `dotr_x`. The first of a template is the event's id, others are id + "-x"."""

    name: str


class AnyTerm(Struct, frozen=True):
    """A variable of DELETE that WITH does not bind: any term, the same at all its places in a triple."""

    name: str


TemplateNode: TypeAlias = Term | TemplateVar | Fresh
PatternNode: TypeAlias = TemplateNode | AnyTerm


class TemplateTriple(Syntax, frozen=True):
    subject: TemplateNode
    predicate: TemplateNode
    object: TemplateNode
    span: Span | None = None


class PatternTriple(Syntax, frozen=True):
    """A triple of DELETE: it matches by itself."""

    subject: PatternNode
    predicate: PatternNode
    object: PatternNode
    span: Span | None = None

    @property
    def nodes(self) -> tuple[PatternNode, PatternNode, PatternNode]:
        return self.subject, self.predicate, self.object


class Rule(Syntax, frozen=True):
    """One composite event rule. `bindings` are its attributes under chaining, in WITH order.

    `private`: its events are facts of other rules and never leave. That does not change its state's digest
    (detect/digest.py), so it is not printed. `inserts` and `deletes`: what its events state and end at the
    next moment.
    """

    name: str
    template: tuple[TemplateTriple, ...]
    trigger: Trigger
    conjuncts: tuple[Conjunct, ...]
    where: Expression | None
    bindings: tuple[Binding, ...]
    consuming: tuple[str, ...]
    span: Span | None = None
    private: bool = False
    inserts: tuple[TemplateTriple, ...] = ()
    deletes: tuple[PatternTriple, ...] = ()

    @property
    def kind(self) -> str:
        """What it is called: "rule" or "sequence"."""
        return "sequence" if isinstance(self.trigger, RowPattern) else "rule"

    @property
    def has_effects(self) -> bool:
        """Whether its events change what lasts."""
        return bool(self.inserts or self.deletes)

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(b.variable for b in self.bindings)

    @property
    def lists(self) -> frozenset[str]:
        """The variables of WITH whose values are lists."""
        totals = {c.variable for c in self.conjuncts if isinstance(c, Summarise) and c.function == COLLECT}
        if isinstance(self.trigger, RowPattern):
            totals = {name for name, total in self.trigger.totals if total.function == COLLECT}
        return frozenset(
            b.variable for b in self.bindings if isinstance(b.expression, Var) and b.expression.name in totals
        )

    @property
    def positions(self) -> tuple[Position, ...]:
        """Every position except a tick, as written (including NOT and aggregates); of a sequence its sources,
        of which two may have one name.
        """
        first: tuple[Position, ...]
        match self.triggering:
            case Position() as position:
                first = (position,)
            case RowPattern(sources=sources):
                first = sources
            case _:
                first = ()
        return first + tuple(c.position for c in self.conjuncts)

    @property
    def triggering(self) -> Position | Tick | RowPattern:
        """What the rule's trigger facts are facts of: the first of every match. That of a sequence is the
        first row.
        """
        return self.trigger.position if isinstance(self.trigger, After) else self.trigger

    @property
    def delay(self) -> int:
        """How long after a trigger fact the rule is evaluated, in µs."""
        return self.trigger.duration if isinstance(self.trigger, After) else 0

    @property
    def chosen(self) -> tuple[Choose, ...]:
        """The conjuncts that put a fact into a match."""
        return tuple(c for c in self.conjuncts if isinstance(c, Choose))

    @property
    def required(self) -> tuple[Choose, ...]:
        """Those of them without whose fact there is no match."""
        return tuple(c for c in self.chosen if not c.optional)
