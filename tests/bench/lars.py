"""Laser's evaluation (Bazoobandi, Beck, Urbani 2017, sec. 4): five programs over windows and rates.

Method:  the engine alone, as in the paper: atoms are tuples already, what begins and ends to hold is asked
         for at every point, in no order. One point a second. The window is full before the time is taken; all
         atoms given while it is taken share it.
         diamond, many rules: no atom comes twice. Join: an atom meets the one before it and the one after,
         so that there is one answer an atom whatever the window. Box: atoms that last 1 to 160 points each.
         Cooling: figure 4 over random temperatures.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

from dotr.events import Clock, Values
from dotr.program.program import LarsProgram, LarsRule, Modality, TimeWindow
from dotr.program.queries import Call, Const, Expression, FilterAtom, Var
from dotr.rdf.terms import XSD, integer, iri, literal
from dotr.windows.engine import LarsEngine
from dotr.windows.rules import strata
from tests.windows.building import atom, now, rule, window

SECOND = 1_000_000
Atoms = Iterator[list[Values]]
"""Values of the one stream, point by point."""


@dataclass(frozen=True)
class Case:
    """A program over one stream, and how that is made at a rate."""

    name: str
    stream: str
    rules: Callable[[int], tuple[LarsRule, ...]]
    atoms: Callable[[int], Atoms]

    def program(self, points: int) -> LarsProgram:
        return LarsProgram(self.rules(points * SECOND), SECOND)


def _diamond(length: int) -> tuple[LarsRule, ...]:
    return (rule(atom("q", "?a", "?b"), window(Modality.SOMETIME, length, "p", "?a", "?b")),)


def _box(length: int) -> tuple[LarsRule, ...]:
    return (rule(atom("q", "?a", "?b"), window(Modality.ALWAYS, length, "p", "?a", "?b")),)


def _joined(head: str, length: int) -> LarsRule:
    left = window(Modality.SOMETIME, length, "p", "?a", "?b")
    return rule(atom(head, "?a", "?c"), left, window(Modality.SOMETIME, length, "p", "?b", "?c"))


def _many(length: int) -> tuple[LarsRule, ...]:
    return tuple(_joined(f"q{number}", length) for number in range(10))


def _cooling(length: int) -> tuple[LarsRule, ...]:
    def seen(name: str, *arguments: str) -> Any:
        return window(Modality.AT, TimeWindow(length), name, *arguments, at="t")

    def compared(operator: str, number: int) -> FilterAtom:
        value: Expression = Var("v")
        return FilterAtom(Call(operator, (value, Const(integer(number)))))

    return (
        rule(atom("steam", "?v"), seen("temp", "?v"), compared(">=", 100), at="t"),
        rule(atom("liquid", "?v"), seen("temp", "?v"), compared(">=", 1), compared("<", 100), at="t"),
        rule(atom("isSteam"), seen("steam", "?v"), at="t"),
        rule(atom("isLiquid"), seen("liquid", "?v"), at="t"),
        rule(atom("alarm"), window(Modality.ALWAYS, length, "isSteam")),
        rule(atom("normal"), window(Modality.ALWAYS, length, "isLiquid")),
        rule(atom("freeze"), now("alarm", negated=True), now("normal", negated=True)),
        rule(atom("veryHot", "?t"), seen("steam", "?v"), compared(">=", 150)),
        rule(atom("veryCold", "?t"), seen("liquid", "?v"), compared("=", 1)),
    )


def _unique(rate: int) -> Atoms:
    count = 0
    while True:
        yield [(iri(f"urn:a{i}"), iri(f"urn:b{i}")) for i in range(count, count + rate)]
        count += rate


def _chain(rate: int) -> Atoms:
    count, order = 0, random.Random(1)
    while True:
        found: list[Values] = [(iri(f"urn:n{i}"), iri(f"urn:n{i + 1}")) for i in range(count, count + rate)]
        order.shuffle(found)
        yield found
        count += rate


def _lasting(rate: int) -> Atoms:
    point = 0
    while True:
        yield [(iri(f"urn:a{slot}"), iri(f"urn:b{point // (1 + slot % 160)}")) for slot in range(rate)]
        point += 1


def _temperatures(rate: int) -> Atoms:
    drawn = random.Random(2)
    while True:
        yield [(literal(f"{drawn.randrange(200_00) / 100}", XSD + "decimal"),) for _ in range(rate)]


CASES = (
    Case("diamond", "p", _diamond, _unique),
    Case("box", "p", _box, _lasting),
    Case("join", "p", lambda length: (_joined("q", length),), _chain),
    Case("many rules", "p", _many, _chain),
    Case("cooling", "temp", _cooling, _temperatures),
)


def visit(lars: LarsEngine, layers: int, point: int, stream: str, given: list[Values]) -> int:
    """One point; how many changes there were."""
    lars.begin(point)
    lars.facts(stream, [(point, values) for values in given])
    found = 0
    for stratum in range(layers):
        for began, ended in lars.evaluate(stratum, ordered=False).values():
            found += len(began) + len(ended)
    lars.end()
    return found


def measure(case: Case, points: int, rate: int, timed: int) -> dict[str, Any]:
    """µs an atom over `timed` points with a window of `points` that is full."""
    program = case.program(points)
    layers = strata(program)
    engine = LarsEngine(program, layers, 0, SECOND, Clock())
    stream = case.atoms(rate)
    warm = [next(stream) for _ in range(points + 2)]
    for number, given in enumerate(warm):
        visit(engine, len(layers), number * SECOND, case.stream, given)
    todo = [next(stream) for _ in range(timed)]
    gc.collect()
    changes = 0
    start = process_time()
    for number, given in enumerate(todo, start=len(warm)):
        changes += visit(engine, len(layers), number * SECOND, case.stream, given)
    seconds = process_time() - start
    count = rate * timed
    return {
        "program": case.name,
        "window": points,
        "atoms a point": rate,
        "µs an atom": seconds / count * 1e6,
        "changes an atom": changes / count,
    }


def silence() -> tuple[float, int]:
    """(ms, points visited) of a day without input at one point a second, after the cooling program saw ten
    points.
    """
    case = CASES[-1]
    program = case.program(10)
    layers = strata(program)
    engine = LarsEngine(program, layers, 0, SECOND, Clock())
    stream = case.atoms(200)
    for number in range(10):
        visit(engine, len(layers), number * SECOND, case.stream, next(stream))
    day, visits = 86_400 * SECOND, 0
    start = process_time()
    due = engine.due()
    while due is not None and due <= day:
        visit(engine, len(layers), due, case.stream, [])
        visits += 1
        due = engine.due()
    return (process_time() - start) * 1e3, visits
