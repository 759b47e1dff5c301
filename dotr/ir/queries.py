"""SELECT and ASK queries as written: the syntax tree that is checked, printed, compiled, or handed on."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from dotr.ir.expressions import Expression, Var
from dotr.late import dataclass
from dotr.rdf.terms import Term
from dotr.source import Span

Node: TypeAlias = Term | Var
"""A node of a triple pattern: a constant term (str) or a variable. A blank node written in a query is a `Var`
whose name starts with a dot (".b0"): it joins as a variable and can never be projected."""


@dataclass(frozen=True, slots=True)
class Inverse:
    path: Path


@dataclass(frozen=True, slots=True)
class Sequence:
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`path*` (minimum 0), `path+` (minimum 1), `path?` (minimum 0, at most one)."""

    path: Path
    minimum: int
    unbounded: bool


@dataclass(frozen=True, slots=True)
class NegatedSet:
    """`!(a|^b)`: any predicate except `forward`, or backwards except `inverse` (each only if not empty)."""

    forward: tuple[Term, ...]
    inverse: tuple[Term, ...]


Path: TypeAlias = Term | Inverse | Sequence | Alternative | Repeat | NegatedSet


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """`predicate` is a constant IRI (str), a variable, or a path that is not a plain IRI."""

    subject: Node
    predicate: Node | Path
    object: Node
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Triples:
    """Adjacent triple patterns; semantically, a FILTER between two blocks does not separate them."""

    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expression
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Bind:
    expression: Expression
    variable: Var
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Values:
    """Inline data; None is UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[GroupPattern, ...]


@dataclass(frozen=True, slots=True)
class OptionalGroup:
    group: GroupPattern


@dataclass(frozen=True, slots=True)
class Minus:
    group: GroupPattern


@dataclass(frozen=True, slots=True)
class SubSelect:
    select: Select


@dataclass(frozen=True, slots=True)
class GroupPattern:
    """`{ … }`: elements in the order written."""

    elements: tuple[Element, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


Element: TypeAlias = (
    Triples | Filter | Bind | Values | Union | OptionalGroup | Minus | SubSelect | GroupPattern
)


@dataclass(frozen=True, slots=True)
class Projection:
    """`?v`, or `(expression AS ?v)`."""

    variable: Var
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class OrderKey:
    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class GroupKey:
    """`GROUP BY ?v`, `GROUP BY (e AS ?v)` or `GROUP BY e` (variable None)."""

    expression: Expression
    variable: Var | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT or ASK (`ask` True: no projection).

    `projection` has `SELECT *` expanded, in order of first appearance; `star`: it was written so. IRIs are
    absolute, prefixes resolved, constants canonical.
    """

    projection: tuple[Projection, ...]
    where: GroupPattern
    distinct: bool = False
    reduced: bool = False
    star: bool = False
    ask: bool = False
    group_by: tuple[GroupKey, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    values: Values | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the projected variables, in order: the attributes of a fact."""
        return tuple(p.variable.name for p in self.projection)
