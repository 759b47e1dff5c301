"""Expressions, one form for all places: queries, Datalog filters, ON, WHERE, WITH."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from dotr.late import dataclass
from dotr.rdf.terms import Term
from dotr.source import Span

if TYPE_CHECKING:
    from dotr.ir.queries import GroupPattern


@dataclass(frozen=True, slots=True)
class Const:
    """A constant, in canonical form."""

    term: Term
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Var:
    """`?name` of a query or Datalog rule; in TESLA expressions the `?v` of an aggregate."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Attribute:
    """`Position.?variable`, in ON, WHERE and WITH only."""

    position: str
    variable: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TimeOf:
    """`Position.time`, in ON, WHERE and WITH only."""

    position: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator, a SPARQL function, or a function named by IRI.

    `function` is one of: `|| && ! = != < > <= >= + - * / u- u+ IN NOT-IN` (IN: first argument is the tested
    one), a SPARQL function keyword in upper case (`STR`, `IF`, `COALESCE`, `BOUND`, `NOW`, ...), or the
    term of an IRI (`<http://www.w3.org/2001/XMLSchema#double>`) for casts and extension functions.
    """

    function: str
    arguments: tuple[Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate inside a query's projection, HAVING or ORDER BY. `argument` None is `COUNT(*)`."""

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """`EXISTS { … }` or `NOT EXISTS { … }`, in queries only."""

    pattern: GroupPattern
    negated: bool
    span: Span | None = field(default=None, compare=False, repr=False)


Expression: TypeAlias = Const | Var | Attribute | TimeOf | Call | Aggregate | Exists
