"""Composite event rules as checked."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from dotr.program.queries import Expression
from dotr.rdf.terms import Term
from dotr.source import Span, Syntax


class Position(Syntax, frozen=True):
    """An event position of a rule: its local name and the stream it ranges over.

    `stream` is a key of `Program.queries`, or the name of a rule (`chained`). An inline query's stream is
    "Rule.Position". `variables` are the stream's attributes, in the order of a fact's values. `held`: it
    ranges over a head of a .lars file, or (`stream` is "ISTREAM head", "DSTREAM head") over its changes.
    """

    name: str
    stream: str
    variables: tuple[str, ...]
    chained: bool = False
    span: Span | None = None
    held: bool = False

    @property
    def within_instant(self) -> bool:
        """Whether its facts are found while the rules of an instant run: those of rules, and of heads."""
        return self.chained or self.held

    @property
    def of_head(self) -> bool:
        """Whether it ranges over a head itself: a fact at every point at which it holds."""
        return self.held and " " not in self.stream


class Every(Syntax, frozen=True):
    """`EVERY duration AS name`: a trigger without attributes at each multiple of `duration` (µs, > 0)."""

    duration: int
    name: str
    span: Span | None = None


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
    """`AND EACH | LAST [k] | FIRST [k] event within [ON condition]`. `k` is 1 unless written."""

    selection: Selection
    position: Position
    window: Within
    on: Expression | None = None
    k: int = 1
    span: Span | None = None

    @property
    def operator(self) -> Operator:
        return Operator(self.selection.value)

    @property
    def word(self) -> str:
        """`EACH`, `LAST 3`."""
        return str(self.selection) if self.k == 1 else f"{self.selection} {self.k}"


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


class Summarise(Syntax, frozen=True):
    """`AND function([DISTINCT] argument) AS ?variable OVER event window [ON condition]`.

    `function`: COUNT SUM AVG MIN MAX; argument None is `COUNT(*)`.
    """

    function: str
    argument: Expression | None
    distinct: bool
    variable: str
    position: Position
    window: Window
    on: Expression | None = None
    span: Span | None = None

    @property
    def operator(self) -> Operator:
        return Operator.AGGREGATE

    @property
    def word(self) -> str:
        """`AVG OVER`."""
        return f"{self.function} OVER"


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


TemplateNode: TypeAlias = Term | TemplateVar | Fresh


class TemplateTriple(Syntax, frozen=True):
    subject: TemplateNode
    predicate: TemplateNode
    object: TemplateNode
    span: Span | None = None


class Rule(Syntax, frozen=True):
    """One composite event rule. `bindings` are its attributes under chaining, in WITH order.

    `private`: its events are facts of other rules and never leave. That does not change its state's digest
    (detect/digest.py), so it is not printed.
    """

    name: str
    template: tuple[TemplateTriple, ...]
    trigger: Position | Every
    conjuncts: tuple[Conjunct, ...]
    where: Expression | None
    bindings: tuple[Binding, ...]
    consuming: tuple[str, ...]
    span: Span | None = None
    private: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(b.variable for b in self.bindings)

    @property
    def positions(self) -> tuple[Position, ...]:
        """Every position except an EVERY trigger, as written (including NOT and aggregates)."""
        first = (self.trigger,) if isinstance(self.trigger, Position) else ()
        return first + tuple(c.position for c in self.conjuncts)

    @property
    def chosen(self) -> tuple[Choose, ...]:
        """The conjuncts that put a fact into a match."""
        return tuple(c for c in self.conjuncts if isinstance(c, Choose))
