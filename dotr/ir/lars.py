"""LARS rules as checked: what holds over windows.

Plain LARS with stratified negation (Beck, Dao-Tran, Eiter, 2018; Bazoobandi, Beck, Urbani: Laser, 2017), with
tuple windows and aggregates; each rule is evaluated at every point of the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct, field

from dotr.ir.datalog import BindAtom, FilterAtom
from dotr.ir.expressions import Expression, Var
from dotr.rdf.terms import Term
from dotr.source import Span, Syntax

Argument: TypeAlias = Term | Var
"""A constant (canonical) or a variable."""


class Modality(StrEnum):
    """At which points of its window an atom must hold."""

    SOMETIME = "SOMETIME"
    ALWAYS = "ALWAYS"
    AT = "AT"
    AT_LEAST = "AT LEAST"


class NamedAtom(Syntax, frozen=True):
    """`Name(argument, …)`: an atom of a query, of a composite event rule, or of a head."""

    name: str
    arguments: tuple[Argument, ...]
    span: Span | None = None


class TimeWindow(Syntax, frozen=True):
    """`WITHIN duration` (µs, a multiple of the step): the points of `[t − duration, t]` of the timeline."""

    duration: int
    span: Span | None = None


class FactWindow(Syntax, frozen=True):
    """`WITHIN count FACTS [OF (stream, …)]`: the `count` last distinct atoms of `streams`.

    `streams` are queries or composite event rules; never empty in a checked program (without OF: the atom's
    own stream).
    """

    count: int
    streams: tuple[str, ...]
    span: Span | None = None


LarsWindow: TypeAlias = TimeWindow | FactWindow


class WindowAtom(Syntax, frozen=True):
    """`[NOT] atom [modality window]`. Without a window (`window` and `modality` None): the atom holds now.

    `at`: the variable of AT. `count`: of AT LEAST.
    """

    atom: NamedAtom
    modality: Modality | None = None
    window: LarsWindow | None = None
    at: str | None = None
    count: int = 0
    negated: bool = False
    span: Span | None = None


class WindowAggregate(Syntax, frozen=True):
    """`function([DISTINCT] argument) AS ?variable OVER atom window [PER ?v, …]`.

    One row per group; no group, no row. It ranges over pairs of an atom and a point of the window.
    `function`: COUNT SUM AVG MIN MAX; argument None is `*`.
    """

    function: str
    argument: Expression | None
    distinct: bool
    variable: Var
    atom: NamedAtom
    window: LarsWindow
    group: tuple[Var, ...] = ()
    span: Span | None = None


LarsLiteral: TypeAlias = WindowAtom | WindowAggregate | FilterAtom | BindAtom


class LarsHead(Syntax, frozen=True):
    """`atom [AT ?at [± offset]]`. `offset` in µs, a multiple of the step; `at` None: now."""

    atom: NamedAtom
    at: str | None = None
    offset: int = 0
    span: Span | None = None


class LarsRule(Syntax, frozen=True):
    """`head :- body.`; an empty body holds at every point. Literals are in the order written."""

    head: LarsHead
    body: tuple[LarsLiteral, ...] = ()
    span: Span | None = None

    @property
    def durations(self) -> list[tuple[int, Span | None]]:
        """The lengths of its windows and offsets, in µs, with their places."""
        windows = [b.window for b in self.body if isinstance(b, WindowAtom | WindowAggregate)]
        found = [(window.duration, window.span) for window in windows if isinstance(window, TimeWindow)]
        return [*found, (abs(self.head.offset), self.head.span)] if self.head.offset else found


class LarsLayer(Struct, frozen=True):
    """Heads that are evaluated together: none of them negates or aggregates another.

    `rules`: indices into `LarsProgram.rules`, in program order. `before`: how many of the composite event
    rules, in the order of `Program.dependencies`, come before it.
    """

    names: tuple[str, ...]
    rules: tuple[int, ...]
    before: int = 0


class LarsProgram(Syntax, frozen=True):
    """All LARS rules of a deployment, in the order of the files and within them.

    `step`: the timeline's, in µs; None where no file states it (one unit of integer time). `attributes`: name
    of a head → the attributes of its facts for composite event rules: the variables of the first rule for the
    name; `_k` for a constant or a repeated variable at place k, from 1. `layers`: in order of evaluation at a
    point.
    """

    rules: tuple[LarsRule, ...] = ()
    step: int | None = None
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layers: tuple[LarsLayer, ...] = ()
    span: Span | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """The queries and composite event rules that the rules read, in order of first use."""
        found: dict[str, None] = {}
        for rule in self.rules:
            for literal in rule.body:
                if isinstance(literal, WindowAtom | WindowAggregate):
                    found[literal.atom.name] = None
                    if isinstance(literal.window, FactWindow):
                        found.update(dict.fromkeys(literal.window.streams))
        return tuple(name for name in found if name not in self.attributes)
