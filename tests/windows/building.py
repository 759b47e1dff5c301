"""LARS rules without text, and driving what evaluates them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from dotr.events import Clock, Time, Values
from dotr.program.program import (
    Argument,
    FactWindow,
    LarsHead,
    LarsLiteral,
    LarsProgram,
    LarsRule,
    LarsWindow,
    Modality,
    NamedAtom,
    TimeWindow,
    WindowAtom,
)
from dotr.program.queries import Var

CLOCK = Clock(unit=1)

Facts: TypeAlias = Mapping[Time, Mapping[str, Sequence[Values]]]
Holding: TypeAlias = dict[Time, dict[str, list[Values]]]


class Lars(Protocol):
    """The literal reading, or the engine."""

    def begin(self, point: Time) -> None: ...
    def facts(self, name: str, facts: Iterable[tuple[Time, Values]]) -> None: ...
    def evaluate(self, stratum: int) -> dict[str, tuple[list[Values], list[Values]]]: ...
    def holding(self, name: str) -> list[Values]: ...
    def end(self) -> None: ...
    def due(self) -> Time | None: ...
    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, state: Mapping[str, Any]) -> None: ...


def term(text: str) -> Argument:
    """`?x` is a variable, `x` an IRI."""
    return Var(text[1:]) if text[0] == "?" else f"<{text}>"


def atom(name: str, *arguments: str) -> NamedAtom:
    return NamedAtom(name, tuple(map(term, arguments)))


def now(name: str, *arguments: str, negated: bool = False) -> WindowAtom:
    return WindowAtom(atom(name, *arguments), negated=negated)


def window(
    modality: Modality,
    within: LarsWindow | int,
    name: str,
    *arguments: str,
    at: str | None = None,
    count: int = 0,
    negated: bool = False,
) -> WindowAtom:
    seen = TimeWindow(within) if isinstance(within, int) else within
    return WindowAtom(atom(name, *arguments), modality, seen, at, count, negated)


def sometime(within: int, name: str, *arguments: str, negated: bool = False) -> WindowAtom:
    return window(Modality.SOMETIME, within, name, *arguments, negated=negated)


def last(count: int, streams: Sequence[str], name: str, *arguments: str) -> WindowAtom:
    return window(Modality.SOMETIME, FactWindow(count, tuple(streams)), name, *arguments)


def rule(head: NamedAtom, *body: LarsLiteral, at: str | None = None, offset: int = 0) -> LarsRule:
    return LarsRule(LarsHead(head, at, offset), body)


def program(*rules: LarsRule) -> LarsProgram:
    return LarsProgram(rules, 1)


def row(*values: str) -> Values:
    return tuple(f"<{value}>" for value in values)


def held(lars: Lars, names: Sequence[str], strata: int, facts: Facts, first: Time, until: Time) -> Holding:
    """What holds at each point, every point visited, by the atoms and by the changes alike."""
    found: Holding = {}
    running: dict[str, set[Values]] = {name: set() for name in names}
    for point in range(first, until + 1):
        lars.begin(point)
        for name, rows in facts.get(point, {}).items():
            lars.facts(name, [(point, values) for values in rows])
        for stratum in range(strata):
            for name, (began, ended) in lars.evaluate(stratum).items():
                assert not running[name].intersection(began)
                assert running[name].issuperset(ended)
                running[name] = running[name].union(began).difference(ended)
        found[point] = {name: lars.holding(name) for name in names}
        for name in names:
            assert running[name] == set(found[point][name])
        lars.end()
    return found
