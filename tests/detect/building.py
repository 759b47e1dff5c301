"""Short names for building checked rules and facts in tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dotr.events import Clock, Fact, Match
from dotr.program import (
    Absent,
    Attribute,
    Between,
    Binding,
    Call,
    Choose,
    Conjunct,
    Const,
    Every,
    Expression,
    Fresh,
    GroupPattern,
    Position,
    Program,
    Projection,
    Rule,
    Select,
    Selection,
    Summarise,
    TemplateNode,
    TemplateTriple,
    TimeOf,
    Var,
    Window,
    Within,
)
from dotr.rdf.terms import RDF_TYPE, Term, integer
from dotr.rdf.values import values_key

CLOCK = Clock(integer=True, unit=1)
A, B, C, D = "<urn:x:a>", "<urn:x:b>", "<urn:x:c>", "<urn:x:d>"


def at(name: str, stream: str | None = None, variables: str = "k v", chained: bool = False) -> Position:
    return Position(name, stream or name, tuple(variables.split()), chained)


def within(duration: int, reference: str) -> Within:
    return Within(duration, reference)


def before(duration: int, reference: str) -> Within:
    return Within(duration, reference, before=True)


def each(position: Position, window: Within, on: Expression | None = None) -> Choose:
    return Choose(Selection.EACH, position, window, on)


def last(position: Position, window: Within, on: Expression | None = None, k: int = 1) -> Choose:
    return Choose(Selection.LAST, position, window, on, k)


def first(position: Position, window: Within, on: Expression | None = None, k: int = 1) -> Choose:
    return Choose(Selection.FIRST, position, window, on, k)


def absent(position: Position, window: Window, on: Expression | None = None) -> Absent:
    return Absent(position, window, on)


def total(
    function: str,
    argument: Expression | None,
    variable: str,
    position: Position,
    window: Window,
    on: Expression | None = None,
    distinct: bool = False,
) -> Summarise:
    return Summarise(function, argument, distinct, variable, position, window, on)


def attribute(text: str) -> Expression:
    """`X.k`, `X.time` or `?n`."""
    if text.startswith("?"):
        return Var(text[1:])
    position, _, name = text.partition(".")
    return TimeOf(position) if name == "time" else Attribute(position, name)


def call(function: str, *arguments: Expression | str | int) -> Call:
    def one(argument: Expression | str | int) -> Expression:
        if isinstance(argument, int):
            return Const(integer(argument))
        if isinstance(argument, str):
            return Const(argument) if argument[0] in '<"_' else attribute(argument)
        return argument

    return Call(function, tuple(one(a) for a in arguments))


def equal(left: Expression | str | int, right: Expression | str | int) -> Call:
    return call("=", left, right)


def both(*conditions: Expression) -> Expression:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = Call("&&", (whole, condition))
    return whole


def rule(
    name: str,
    trigger: Position | Every,
    *conjuncts: Conjunct,
    where: Expression | None = None,
    give: Mapping[str, Expression | str] | None = None,
    consuming: Sequence[str] = (),
    template: Iterable[tuple[TemplateNode, TemplateNode, TemplateNode]] | None = None,
) -> Rule:
    bindings = tuple(
        Binding(variable, attribute(value) if isinstance(value, str) else value)
        for variable, value in (give or {}).items()
    )
    triples = template if template is not None else [(Fresh("dotr_id"), RDF_TYPE, f"<urn:x:{name}>")]
    return Rule(
        name,
        tuple(TemplateTriple(s, p, o) for s, p, o in triples),
        trigger,
        tuple(conjuncts),
        where,
        bindings,
        tuple(consuming),
    )


def program(*rules: Rule) -> Program:
    queries = {}
    for one in rules:
        for position in one.positions:
            if not position.chained:
                names = tuple(Projection(Var(v)) for v in position.variables)
                queries[position.stream] = Select(names, GroupPattern(()))
    return Program(queries=queries, rules=tuple(rules))


def between(start: str, end: str) -> Between:
    return Between(start, end)


def facts(time: int, *rows: Sequence[Term | int | None]) -> list[Fact]:
    """Facts of one stream at one time, in canonical order, numbered among equals; ints become integers."""
    values = [tuple(integer(v) if isinstance(v, int) else v for v in row) for row in rows]
    found: list[Fact] = []
    for row in sorted(values, key=values_key):
        same = sum(1 for fact in found if fact[1] == row)
        found.append((time, row, same, ""))
    return found


def times(matches: Iterable[Match]) -> list[tuple[int, ...]]:
    """The times of each match's facts, the trigger first."""
    return [tuple(fact[0] for fact in match.facts) for match in matches]
