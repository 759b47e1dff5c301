"""SELECT and ASK queries as written: the syntax tree that is checked, printed, compiled, or handed on."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from dotr.ir.expressions import Expression, Var
from dotr.rdf.terms import Term
from dotr.source import Span, Syntax

Node: TypeAlias = Term | Var
"""A node of a triple pattern: a constant term (str) or a variable. A blank node written in a query is a `Var`
whose name starts with a dot (".b0"): it joins as a variable and can never be projected."""


class Inverse(Struct, frozen=True):
    path: Path


class Sequence(Struct, frozen=True):
    paths: tuple[Path, ...]


class Alternative(Struct, frozen=True):
    paths: tuple[Path, ...]


class Repeat(Struct, frozen=True):
    """`path*` (minimum 0), `path+` (minimum 1), `path?` (minimum 0, at most one)."""

    path: Path
    minimum: int
    unbounded: bool


class NegatedSet(Struct, frozen=True):
    """`!(a|^b)`: any predicate except `forward`, or backwards except `inverse` (each only if not empty)."""

    forward: tuple[Term, ...]
    inverse: tuple[Term, ...]


Path: TypeAlias = Term | Inverse | Sequence | Alternative | Repeat | NegatedSet


class TriplePattern(Syntax, frozen=True):
    """`predicate` is a constant IRI (str), a variable, or a path that is not a plain IRI."""

    subject: Node
    predicate: Node | Path
    object: Node
    span: Span | None = None


class Triples(Struct, frozen=True):
    """Adjacent triple patterns; semantically, a FILTER between two blocks does not separate them."""

    patterns: tuple[TriplePattern, ...]


class Filter(Syntax, frozen=True):
    condition: Expression
    span: Span | None = None


class Bind(Syntax, frozen=True):
    expression: Expression
    variable: Var
    span: Span | None = None


class Values(Syntax, frozen=True):
    """Inline data; None is UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    span: Span | None = None


class Union(Struct, frozen=True):
    branches: tuple[GroupPattern, ...]


class OptionalGroup(Struct, frozen=True):
    group: GroupPattern


class Minus(Struct, frozen=True):
    group: GroupPattern


class SubSelect(Struct, frozen=True):
    select: Select


class GroupPattern(Syntax, frozen=True):
    """`{ … }`: elements in the order written."""

    elements: tuple[Element, ...]
    span: Span | None = None


Element: TypeAlias = (
    Triples | Filter | Bind | Values | Union | OptionalGroup | Minus | SubSelect | GroupPattern
)


class Projection(Struct, frozen=True):
    """`?v`, or `(expression AS ?v)`."""

    variable: Var
    expression: Expression | None = None


class OrderKey(Struct, frozen=True):
    expression: Expression
    descending: bool = False


class GroupKey(Struct, frozen=True):
    """`GROUP BY ?v`, `GROUP BY (e AS ?v)` or `GROUP BY e` (variable None)."""

    expression: Expression
    variable: Var | None = None


class Select(Syntax, frozen=True):
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
    span: Span | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the projected variables, in order: the attributes of a fact."""
        return tuple(p.variable.name for p in self.projection)
