"""A .dotr text as written: names not yet looked up, windows not yet understood.

Place:   what dotr.py reads and resolve.py turns into the checked program. Values only.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from dotr.ir import Expression, Operator, RelationToStream, Select, Selection, TemplateTriple
from dotr.late import dataclass
from dotr.rdf.terms import Term
from dotr.source import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A name where it was written."""

    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in microseconds, never negative. `name`: the parameter that it was written as."""

    micros: int
    span: Span | None = field(default=None, compare=False, repr=False)
    name: str = ""


@dataclass(frozen=True, slots=True)
class EventSyntax:
    """`Name`, `Name := Other` or `Name := { SELECT … }`. `broken`: its query could not be read.

    `operator`: the word before `Other` or `{`, if there is one. `short`: `ISTREAM Name`, a position that is
    called as what it is about.
    """

    name: Name
    query: Select | None = None
    alias: Name | None = None
    broken: bool = False
    operator: RelationToStream | None = None
    short: bool = False


@dataclass(frozen=True, slots=True)
class WithinSyntax:
    duration: Duration
    reference: Name
    before: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BetweenSyntax:
    start: Name
    end: Name
    span: Span = field(compare=False, repr=False)


WindowSyntax: TypeAlias = WithinSyntax | BetweenSyntax


@dataclass(frozen=True, slots=True)
class EverySyntax:
    duration: Duration
    name: Name
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ChooseSyntax:
    """`k_name`: the parameter that k was written as."""

    selection: Selection
    k: int
    k_name: str
    event: EventSyntax
    window: WithinSyntax
    on: Expression | None
    span: Span = field(compare=False, repr=False)

    @property
    def operator(self) -> Operator:
        return Operator(self.selection.value)


@dataclass(frozen=True, slots=True)
class AbsentSyntax:
    event: EventSyntax
    window: WindowSyntax
    on: Expression | None
    span: Span = field(compare=False, repr=False)

    @property
    def operator(self) -> Operator:
        return Operator.NOT


@dataclass(frozen=True, slots=True)
class SummariseSyntax:
    function: str
    argument: Expression | None
    distinct: bool
    variable: Name
    event: EventSyntax
    window: WindowSyntax
    on: Expression | None
    span: Span = field(compare=False, repr=False)

    @property
    def operator(self) -> Operator:
        return Operator.AGGREGATE


ConjunctSyntax: TypeAlias = ChooseSyntax | AbsentSyntax | SummariseSyntax


@dataclass(frozen=True, slots=True)
class BindingSyntax:
    variable: Name
    expression: Expression


@dataclass(frozen=True, slots=True)
class RuleSyntax:
    """One rule. `wild` are names of events whose conjunct could not be read: anything may be said of them.

    `clauses` are the places of DEFINE (from RULE on), FROM, every AND, WHERE, WITH and CONSUMING, as written.
    """

    name: Name
    template: tuple[TemplateTriple, ...]
    trigger: EventSyntax | EverySyntax | None
    conjuncts: tuple[ConjunctSyntax, ...]
    where: Expression | None
    bindings: tuple[BindingSyntax, ...]
    consuming: tuple[Name, ...]
    template_names: tuple[Name, ...]
    wild: frozenset[str]
    whole: bool
    span: Span = field(compare=False, repr=False)
    clauses: tuple[Span, ...] = field(compare=False, repr=False)
    private: bool = False


@dataclass(frozen=True, slots=True)
class QuerySyntax:
    """`QUERY Name := …`; `select` None when it could not be read, or `alias` stands in its place.

    `operator`: the word before it, if there is one.
    """

    name: Name
    select: Select | None
    span: Span = field(compare=False, repr=False)
    operator: RelationToStream | None = None
    alias: Name | None = None


@dataclass(frozen=True, slots=True)
class PathSyntax:
    """A file named in BACKGROUND, RULES or IMPORT, as written."""

    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """`?name` in place of a value, where parameters are read as names (for printing)."""

    name: str


ParameterValue: TypeAlias = Term | Duration | Reference


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """`PARAMETER QUERY Name(?v, …)`: a query that the importing file hands in."""

    name: Name
    variables: tuple[Name, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ValueParameter:
    """`PARAMETER ?name [:= term or duration] [AT MOST duration]`."""

    name: Name
    default: ParameterValue | None
    most: Duration | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ImportSyntax:
    path: PathSyntax
    alias: Name | None
    queries: tuple[tuple[Name, Name], ...]
    values: tuple[tuple[Name, ParameterValue], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EntailmentSyntax:
    name: Name


@dataclass(frozen=True, slots=True)
class BackgroundSyntax:
    paths: tuple[PathSyntax, ...]


@dataclass(frozen=True, slots=True)
class RulesSyntax:
    paths: tuple[PathSyntax, ...]


@dataclass(frozen=True, slots=True)
class LarsSyntax:
    paths: tuple[PathSyntax, ...]


@dataclass(frozen=True, slots=True)
class HeldPredicate:
    """`:p` in HOLD."""

    iri: Term
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class HeldClass:
    """`a :C` in HOLD."""

    iri: Term
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class HeldRest:
    """`*` in HOLD: what has no line of its own."""

    span: Span = field(compare=False, repr=False)


Held: TypeAlias = HeldPredicate | HeldClass | HeldRest


@dataclass(frozen=True, slots=True)
class HoldSyntax:
    """`HOLD held, … [LATEST] [FOR duration]`."""

    held: tuple[Held, ...]
    latest: bool
    duration: Duration | None
    span: Span = field(compare=False, repr=False)


Statement: TypeAlias = (
    QuerySyntax
    | RuleSyntax
    | BackgroundSyntax
    | RulesSyntax
    | LarsSyntax
    | EntailmentSyntax
    | HoldSyntax
    | QueryParameter
    | ValueParameter
    | ImportSyntax
)


@dataclass(frozen=True, slots=True)
class FileSyntax:
    """One .dotr text: its statements in order, without PREFIX and BASE, which are resolved already.

    `places` are those of the statements; `prologue` those of PREFIX (with the prefix) and BASE (with None).
    """

    statements: tuple[Statement, ...]
    prefixes: dict[str, str]
    places: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    prologue: tuple[tuple[str | None, Span], ...] = field(default=(), compare=False, repr=False)
