"""Random patterns of rows, and rows for them."""

from __future__ import annotations

from random import Random
from typing import Any

from dotr.events import Fact
from dotr.program.positions import Position
from dotr.program.queries import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.program.rules import Binding, Rule
from dotr.program.sequences import (
    Either,
    Element,
    InOrder,
    Pattern,
    Place,
    Repeated,
    RowElement,
    RowName,
    RowPattern,
    RowTotal,
    elements_of,
)
from dotr.rdf.terms import integer
from dotr.rdf.values import values_key

S = 1_000_000
VARIABLES = (("v", "k", "a"), ("k", "v", "b"))


def nullable(pattern: Pattern) -> bool:
    match pattern:
        case Element():
            return False
        case InOrder(parts):
            return all(map(nullable, parts))
        case Either(branches):
            return any(map(nullable, branches))
        case Repeated(part, minimum):
            return minimum == 0 or nullable(part)


def random_pattern(random: Random, names: list[str], depth: int = 3) -> Pattern:
    choice = random.random()
    if depth == 0 or choice < 0.25:
        return Element(random.choice(names))
    if choice < 0.55:
        return InOrder(tuple(random_pattern(random, names, depth - 1) for _ in range(random.randint(2, 3))))
    if choice < 0.7:
        return Either(tuple(random_pattern(random, names, depth - 1) for _ in range(2)))
    part = random_pattern(random, names, depth - 1)
    if nullable(part):
        return part
    least, most = random.choice([(0, None), (1, None), (0, 1), (2, None), (1, 2), (0, 2), (2, 2), (1, 3)])
    return Repeated(part, least, most, random.random() < 0.3)


def _condition(random: Random, own: str, names: list[str], *, apart: bool) -> Expression:
    def value() -> Expression:
        reads: list[Expression] = [Attribute("PREV", "v"), Const(integer(random.randint(0, 3)))]
        if random.random() < 0.2:
            reads = [Attribute("PREV(2)", "v")]
        if apart:
            other = random.choice([*names, "*"])
            reads += [
                Attribute(random.choice(names), "v"),
                Attribute(f"FIRST({other})", "v"),
                Attribute(f"LAST({other},1)", "v"),
                Var(f".{random.randrange(len(TOTALS))}:{random.choice(names)}"),
            ]
        return random.choice(reads)

    one: Expression = Call(random.choice(["<", ">", "=", "<=", "!="]), (Attribute(own, "v"), value()))
    if random.random() < 0.2:
        gap: tuple[Expression, Expression] = TimeOf(own), TimeOf("PREV")
        one = Call(random.choice(["&&", "||"]), (one, Call("<=", (Call("-", gap), Const(integer(2))))))
    return one


TOTALS: tuple[tuple[str, bool, bool], ...] = (
    ("COUNT", False, True),
    ("SUM", False, False),
    ("AVG", False, False),
    ("MIN", False, False),
    ("MAX", False, False),
    ("COUNT", True, False),
    ("COUNT", False, False),
    ("COLLECT", False, False),
)
"""(function, distinct, star)."""


def random_sequence(random: Random, *, apart: bool | None = None) -> Rule:
    count = random.choice([1, 1, 1, 2])
    names = ["A", "B", "C", "D"][: random.randint(1, 4)]
    while nullable(pattern := random_pattern(random, names)):
        pass
    names = list(dict.fromkeys(elements_of(pattern)))
    if apart is None:
        apart = random.random() < 0.4
    elements = tuple(
        RowElement(
            name,
            tuple(range(count)) if random.random() < 0.6 else (random.randrange(count),),
            _condition(random, name, names, apart=apart) if random.random() < 0.7 else None,
        )
        for name in names
    )
    rows: list[tuple[str, RowName]] = [
        ("PREV", RowName(Place.PREV, "", 1)),
        ("PREV(2)", RowName(Place.PREV, "", 2)),
    ]
    for name in [*names, "*"]:
        rows += [
            (name, RowName(Place.LAST, name, 0)),
            (f"FIRST({name})", RowName(Place.FIRST, name, 0)),
            (f"FIRST({name},1)", RowName(Place.FIRST, name, 1)),
            (f"LAST({name},1)", RowName(Place.LAST, name, 1)),
            (f"LAST({name})", RowName(Place.LAST, name, 0)),
        ]
    totals = tuple(
        (f".{n}:{name}", RowTotal(function, name, None if star else Attribute(name, "v"), distinct))
        for n, (function, distinct, star) in enumerate(TOTALS)
        for name in names
    )
    read: list[Expression] = [
        Attribute("*", "v"),
        TimeOf("FIRST(*)"),
        Attribute(random.choice(names), "v"),
        Attribute(f"FIRST({random.choice(names)})", "v"),
        Attribute(f"FIRST({random.choice(names)},1)", "v"),
        Attribute(f"LAST({random.choice(names)},1)", "v"),
        Attribute("LAST(*,1)", "v"),
        *(Var(random.choice(totals)[0]) for _ in range(3)),
        Call("+", (Attribute("*", "v"), Var(totals[0][0]))),
    ]
    mode = random.choice(["next", "next", "next", "overlapping", "skip"])
    trigger = RowPattern(
        tuple(Position(f"S{n}", f"S{n}", VARIABLES[n]) for n in range(count)),
        pattern,
        elements,
        random.choice([3, 5, 10, 30]) * S,
        random.choice([(), ("k",)]),
        random.choice([None, None, 2 * S, 4 * S]),
        mode == "overlapping",
        random.choice(names) if mode == "skip" else None,
        random.random() < 0.2,
        tuple(rows),
        totals,
    )
    chosen = random.sample(read, random.randint(1, len(read)))
    bindings = tuple(Binding(f"b{n}", value) for n, value in enumerate(chosen))
    return Rule("Seq", (), trigger, (), None, bindings, (), private=True)


def random_instants(
    random: Random, rule: Rule, length: int
) -> list[tuple[int, list[tuple[int, list[Fact]]]]]:
    """(time, facts by source), in order."""
    pattern: Any = rule.trigger
    found = []
    time = 0
    for _ in range(length):
        time += random.choice([1, 1, 1, 2, 3, 6]) * S
        rows = []
        for source, position in enumerate(pattern.sources):
            facts = set()
            for _ in range(random.choice([0, 1, 1, 1, 2, 3])):
                bound = {"v": random.choice([0, 1, 2, 3, None]), "k": random.choice([1, 1, 2])}
                if random.random() < 0.05:
                    bound["k"] = None
                facts.add(
                    tuple(
                        None if (value := bound.get(name)) is None else integer(value)
                        for name in position.variables
                    )
                )
            rows.append((source, [(time, values, 0, "") for values in sorted(facts, key=values_key)]))
        found.append((time, rows))
    return found
