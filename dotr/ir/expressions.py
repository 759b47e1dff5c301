"""Expressions, one form for all places: queries, Datalog filters, ON, WHERE, WITH."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dotr.rdf.terms import Term
from dotr.source import Span, Syntax

if TYPE_CHECKING:
    from dotr.ir.queries import GroupPattern


class Const(Syntax, frozen=True):
    """A constant, in canonical form."""

    term: Term
    span: Span | None = None


class Var(Syntax, frozen=True):
    """`?name` of a query or Datalog rule; in TESLA expressions the `?v` of an aggregate."""

    name: str
    span: Span | None = None


class Attribute(Syntax, frozen=True):
    """`Position.?variable`, in ON, WHERE and WITH only."""

    position: str
    variable: str
    span: Span | None = None


class TimeOf(Syntax, frozen=True):
    """`Position.time`, in ON, WHERE and WITH only."""

    position: str
    span: Span | None = None


class Call(Syntax, frozen=True):
    """An operator, a SPARQL function, or a function named by IRI.

    `function` is one of: `|| && ! = != < > <= >= + - * / u- u+ IN NOT-IN` (IN: first argument is the tested
    one), a SPARQL function keyword in upper case (`STR`, `IF`, `COALESCE`, `BOUND`, `NOW`, ...), or the
    term of an IRI (`<http://www.w3.org/2001/XMLSchema#double>`) for casts and extension functions.
    """

    function: str
    arguments: tuple[Expression, ...]
    span: Span | None = None


class Aggregate(Syntax, frozen=True):
    """An aggregate inside a query's projection, HAVING or ORDER BY. `argument` None is `COUNT(*)`."""

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None
    span: Span | None = None


class Exists(Syntax, frozen=True):
    """`EXISTS { … }` or `NOT EXISTS { … }`, in queries only."""

    pattern: GroupPattern
    negated: bool
    span: Span | None = None


Expression: TypeAlias = Const | Var | Attribute | TimeOf | Call | Aggregate | Exists
