"""Datalog rules as checked."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from dotr.ir.expressions import Expression, Var
from dotr.ir.queries import Node
from dotr.source import Span, Syntax


class Atom(Syntax, frozen=True):
    """A triple pattern. `:p(?x, ?y)` is (?x, :p, ?y); `:C(?x)` is (?x, rdf:type, :C)."""

    subject: Node
    predicate: Node
    object: Node
    span: Span | None = None


class NotAtom(Syntax, frozen=True):
    """`NOT atom`: no such triple; variables bound nowhere else are existential inside it."""

    atom: Atom
    span: Span | None = None


class FilterAtom(Syntax, frozen=True):
    condition: Expression
    span: Span | None = None


class BindAtom(Syntax, frozen=True):
    expression: Expression
    variable: Var
    span: Span | None = None


class AggregateTerm(Struct, frozen=True):
    """`COUNT(?p) AS ?n` of an AGGREGATE atom. `function`: COUNT SUM AVG MIN MAX; argument None is `*`."""

    function: str
    argument: Expression | None
    distinct: bool
    variable: Var


class AggregateAtom(Syntax, frozen=True):
    """`AGGREGATE(atoms ON ?g … BIND total AS ?n …)`: one row per group; no group, no row.

    `body` may hold atoms, filters and binds; variables other than those of `group` and the totals are local.
    """

    body: tuple[Atom | FilterAtom | BindAtom | NotAtom, ...]
    group: tuple[Var, ...]
    totals: tuple[AggregateTerm, ...]
    span: Span | None = None


BodyAtom: TypeAlias = Atom | NotAtom | FilterAtom | BindAtom | AggregateAtom


class DatalogRule(Syntax, frozen=True):
    """`heads :- body.`; an empty body is a fact. Atoms are in the order written."""

    heads: tuple[Atom, ...]
    body: tuple[BodyAtom, ...]
    span: Span | None = None
