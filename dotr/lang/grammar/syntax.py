"""A .dotr text as written: names not yet looked up, windows not yet understood.

Place:   what dotr.py reads and names.py turns into the checked program. Values only.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from dotr.program import (
    Aggregate,
    Expression,
    Operator,
    RelationToStream,
    Select,
    Selection,
    TemplateTriple,
    Var,
)
from dotr.program.rules import COLLECT
from dotr.program.sequences import Pattern
from dotr.rdf.terms import Term
from dotr.source import Span, Syntax


class Name(Syntax, frozen=True):
    """A name where it was written."""

    text: str
    span: Span


class Duration(Syntax, frozen=True):
    """A length of time in microseconds, never negative. `name`: the parameter that it was written as."""

    micros: int
    span: Span | None = None
    name: str = ""


class EventSyntax(Struct, frozen=True):
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


class WithinSyntax(Syntax, frozen=True):
    duration: Duration
    reference: Name
    before: bool
    span: Span


class BetweenSyntax(Syntax, frozen=True):
    start: Name
    end: Name
    span: Span


WindowSyntax: TypeAlias = WithinSyntax | BetweenSyntax


class EverySyntax(Syntax, frozen=True):
    duration: Duration
    name: Name
    span: Span


class CalendarSyntax(Syntax, frozen=True):
    """`EVERY 1 d AT 08:00 IN "zone" AS name`. `unit`: `MONTH`, a weekday, or empty for `duration`. `day` is
    that of ON DAY. `at` is in µs. `zone_name`: the parameter that the zone was written as.
    """

    unit: str
    duration: Duration | None
    day: int | None
    at: int
    zone: str
    zone_name: str
    name: Name
    span: Span


class AfterSyntax(Syntax, frozen=True):
    """`event AFTER duration AS name`."""

    event: EventSyntax
    duration: Duration
    name: Name
    span: Span


TriggerSyntax: TypeAlias = EventSyntax | EverySyntax | CalendarSyntax | AfterSyntax


class ChooseSyntax(Syntax, frozen=True):
    """`k_name`: the parameter that k was written as. `optional`: OPTIONAL stands before it. `per`: the
    attributes of PER.
    """

    selection: Selection
    k: int
    k_name: str
    event: EventSyntax
    window: WithinSyntax
    on: Expression | None
    span: Span
    optional: bool = False
    per: tuple[Name, ...] = ()

    @property
    def operator(self) -> Operator:
        return Operator(self.selection.value)


class AbsentSyntax(Syntax, frozen=True):
    event: EventSyntax
    window: WindowSyntax
    on: Expression | None
    span: Span

    @property
    def operator(self) -> Operator:
        return Operator.NOT


class SummariseSyntax(Syntax, frozen=True):
    """`selection`, `k`, `k_name`: what stands behind OVER, as in ChooseSyntax."""

    function: str
    argument: Expression | None
    distinct: bool
    variable: Name
    event: EventSyntax
    window: WindowSyntax
    on: Expression | None
    span: Span
    selection: Selection | None = None
    k: int = 0
    k_name: str = ""

    @property
    def operator(self) -> Operator:
        return Operator.AGGREGATE


ConjunctSyntax: TypeAlias = ChooseSyntax | AbsentSyntax | SummariseSyntax


class BindingSyntax(Struct, frozen=True):
    variable: Name
    expression: Expression


class EffectSyntax(Syntax, frozen=True):
    """The triples of INSERT or DELETE, and the variables that they name."""

    triples: tuple[TemplateTriple, ...]
    names: tuple[Name, ...]
    span: Span


class RuleSyntax(Syntax, frozen=True):
    """One rule. `unresolved`: names of events whose conjunct could not be read; nothing is reported of them.

    `clauses` are the places of DEFINE (from RULE on), FROM, every AND, WHERE, WITH, CONSUMING, INSERT and
    DELETE, as written.
    """

    name: Name
    template: tuple[TemplateTriple, ...]
    trigger: TriggerSyntax | None
    conjuncts: tuple[ConjunctSyntax, ...]
    where: Expression | None
    bindings: tuple[BindingSyntax, ...]
    consuming: tuple[Name, ...]
    template_names: tuple[Name, ...]
    unresolved: frozenset[str]
    whole: bool
    span: Span
    clauses: tuple[Span, ...]
    private: bool = False
    inserts: EffectSyntax | None = None
    deletes: EffectSyntax | None = None

    @property
    def lists(self) -> frozenset[str]:
        """The variables of WITH whose values are lists."""
        found = [c for c in self.conjuncts if isinstance(c, SummariseSyntax) and c.function == COLLECT]
        totals = {conjunct.variable.text for conjunct in found}
        given = [b for b in self.bindings if isinstance(b.expression, Var) and b.expression.name in totals]
        return frozenset(binding.variable.text for binding in given)


class QuerySyntax(Syntax, frozen=True):
    """`QUERY Name := …`; `select` None when it could not be read, or `alias` is set instead.

    `operator`: the word before it, if there is one.
    """

    name: Name
    select: Select | None
    span: Span
    operator: RelationToStream | None = None
    alias: Name | None = None


class ElementSyntax(Syntax, frozen=True):
    """`AND Name [OF Name, …] [ON condition]` of a sequence."""

    name: Name
    sources: tuple[Name, ...]
    on: Expression | None
    span: Span


class SequenceSyntax(Syntax, frozen=True):
    """One sequence. `elements_named`: the elements of the pattern where they are written. `skipping`: that
    word. `unresolved`, `whole`: as in RuleSyntax.

    In ON and WITH `LAST(X,1).?v` is an attribute of "LAST(X,1)", `COUNT(X)` an aggregate over the attribute
    "" of X.
    `clauses` are the places of the pattern (from SEQUENCE on), OF with PER, every AND, WITHIN with what
    follows, and WITH, as written.
    """

    name: Name
    pattern: Pattern | None
    elements_named: tuple[Name, ...]
    skipping: Name | None
    sources: tuple[EventSyntax, ...]
    per: tuple[Name, ...]
    elements: tuple[ElementSyntax, ...]
    within: Duration | None
    gap: Duration | None
    overlapping: bool
    skip_to: Name | None
    bindings: tuple[BindingSyntax, ...]
    unresolved: frozenset[str]
    whole: bool
    span: Span
    clauses: tuple[Span, ...]

    @property
    def lists(self) -> frozenset[str]:
        """The variables of WITH whose values are lists."""
        given = [(b.variable.text, b.expression) for b in self.bindings]
        return frozenset(v for v, e in given if isinstance(e, Aggregate) and e.function == COLLECT)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of its facts."""
        return tuple(b.variable.text for b in self.bindings) or tuple(name.text for name in self.per)


DefinitionSyntax: TypeAlias = QuerySyntax | RuleSyntax | SequenceSyntax


class PathSyntax(Syntax, frozen=True):
    """A file named in BACKGROUND, RULES or IMPORT, as written."""

    text: str
    span: Span


class Reference(Struct, frozen=True):
    """`?name` in place of a value, where parameters are read as names (for printing)."""

    name: str


ParameterValue: TypeAlias = Term | Duration | Reference


class QueryParameter(Syntax, frozen=True):
    """`PARAMETER QUERY Name(?v, …)`: a query that the importing file hands in."""

    name: Name
    variables: tuple[Name, ...]
    span: Span


class ValueParameter(Syntax, frozen=True):
    """`PARAMETER ?name [:= term or duration] [AT MOST duration]`."""

    name: Name
    default: ParameterValue | None
    most: Duration | None
    span: Span


class ImportSyntax(Syntax, frozen=True):
    path: PathSyntax
    alias: Name | None
    queries: tuple[tuple[Name, Name], ...]
    values: tuple[tuple[Name, ParameterValue], ...]
    span: Span


class EntailmentSyntax(Struct, frozen=True):
    name: Name


class BackgroundSyntax(Struct, frozen=True):
    paths: tuple[PathSyntax, ...]


class RulesSyntax(Struct, frozen=True):
    paths: tuple[PathSyntax, ...]


class LarsSyntax(Struct, frozen=True):
    paths: tuple[PathSyntax, ...]


class HeldPredicate(Syntax, frozen=True):
    """`:p` in HOLD."""

    iri: Term
    span: Span


class HeldClass(Syntax, frozen=True):
    """`a :C` in HOLD."""

    iri: Term
    span: Span


class HeldRest(Syntax, frozen=True):
    """`*` in HOLD: what has no line of its own."""

    span: Span


Held: TypeAlias = HeldPredicate | HeldClass | HeldRest


class HoldSyntax(Syntax, frozen=True):
    """`HOLD held, … [LATEST] [FROM predicate] [UNTIL predicate] [FOR duration]`."""

    held: tuple[Held, ...]
    latest: bool
    duration: Duration | None
    span: Span
    start: HeldPredicate | None = None
    until: HeldPredicate | None = None


Statement: TypeAlias = (
    QuerySyntax
    | RuleSyntax
    | SequenceSyntax
    | BackgroundSyntax
    | RulesSyntax
    | LarsSyntax
    | EntailmentSyntax
    | HoldSyntax
    | QueryParameter
    | ValueParameter
    | ImportSyntax
)


class FileSyntax(Syntax, frozen=True):
    """One .dotr text: its statements in order, without PREFIX and BASE, which are resolved already.

    `places` are those of the statements; `prologue` those of PREFIX (with the prefix) and BASE (with None).
    """

    statements: tuple[Statement, ...]
    prefixes: dict[str, str]
    places: tuple[Span, ...] = ()
    prologue: tuple[tuple[str | None, Span], ...] = ()
