"""SELECT and ASK queries, expressions and Datalog rules: the syntax trees of a checked program.

Place:   the tree of a query is checked, printed, compiled, or handed on as written. Expressions have one form
         for all places: queries, Datalog filters, ON, WHERE, WITH.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from dotr.rdf.terms import Term
from dotr.source import Span, Syntax


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
    term of an IRI (`<http://www.w3.org/2001/XMLSchema#double>`) for casts and extension functions. `version`:
    of a function of one's own.
    """

    function: str
    arguments: tuple[Expression, ...]
    span: Span | None = None
    version: str = ""


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


class Select(Syntax, frozen=True, dict=True):
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

    def __hash__(self) -> int:
        """That of all its parts, computed once."""
        known = self.__dict__
        if "hash" not in known:
            known["hash"] = super().__hash__()
        found: int = known["hash"]
        return found

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the projected variables, in order: the attributes of a fact."""
        return tuple(p.variable.name for p in self.projection)


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
