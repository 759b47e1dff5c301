"""Datalog rules as checked."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from dotr.ir.expressions import Expression, Var
from dotr.ir.queries import Node
from dotr.late import dataclass
from dotr.source import Span


@dataclass(frozen=True, slots=True)
class Atom:
    """A triple pattern. `:p(?x, ?y)` is (?x, :p, ?y); `:C(?x)` is (?x, rdf:type, :C)."""

    subject: Node
    predicate: Node
    object: Node
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NotAtom:
    """`NOT atom`: no such triple; variables bound nowhere else are existential inside it."""

    atom: Atom
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FilterAtom:
    condition: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BindAtom:
    expression: Expression
    variable: Var
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """`COUNT(?p) AS ?n` of an AGGREGATE atom. `function`: COUNT SUM AVG MIN MAX; argument None is `*`."""

    function: str
    argument: Expression | None
    distinct: bool
    variable: Var


@dataclass(frozen=True, slots=True)
class AggregateAtom:
    """`AGGREGATE(atoms ON ?g … BIND total AS ?n …)`: one row per group; no group, no row.

    `body` may hold atoms, filters and binds; variables other than those of `group` and the totals are local.
    """

    body: tuple[Atom | FilterAtom | BindAtom | NotAtom, ...]
    group: tuple[Var, ...]
    totals: tuple[AggregateTerm, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


BodyAtom: TypeAlias = Atom | NotAtom | FilterAtom | BindAtom | AggregateAtom


@dataclass(frozen=True, slots=True)
class DatalogRule:
    """`heads :- body.`; an empty body is a fact. Atoms are in the order written."""

    heads: tuple[Atom, ...]
    body: tuple[BodyAtom, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
