"""Random LARS programs and streams, small and rich in ties.

A name has a level; what is read at the own level is positive, NOT and aggregates look down. A value is made
by BIND only from levels below, so that every point has a finite model.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

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
    WindowAggregate,
    WindowAtom,
)
from dotr.program.queries import BindAtom, Call, Const, Expression, FilterAtom, Var
from dotr.rdf.terms import integer
from dotr.windows.rules import strata

STREAMS = {"P": 1, "Q": 2, "Z": 0, "Rule": 1}
TERMS = ("<a>", integer(1), integer(2), integer(2**63 - 1))
VARIABLES = ("x", "y", "z")

AGGREGATES = (
    *("COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "VARIANCE", "STDDEV_POP", "VAR_POP"),
    *("MEDIAN", "PERCENTILE 0.3", "FIRST", "LAST"),
)


class Piece(Struct, frozen=True):
    """Facts of a stream that come together."""

    name: str
    facts: tuple[tuple[Time, Values], ...]


class World(Struct, frozen=True):
    program: LarsProgram
    strata: list[list[int]]
    beginning: Time
    step: int
    clock: Clock
    watched: frozenset[str] | None
    pieces: dict[Time, tuple[Piece, ...]]  # by point
    cuts: frozenset[Time]
    until: Time


class _Name(Struct, frozen=True):
    name: str
    arity: int
    level: int  # 0: a stream


class _Maker:
    """Draws one program."""

    def __init__(self, draw: Any, step: int, keyed: bool) -> None:
        self.draw, self.step, self.keyed = draw, step, keyed
        self.streams = [_Name(name, arity, 0) for name, arity in STREAMS.items() if arity or not keyed]
        count = draw(st.integers(1, 4))
        # in a narrow program atoms are few, and several rules put them at the same points
        self.narrow = draw(st.booleans())
        arities = st.sampled_from((0, 0, 1)) if self.narrow else st.integers(0, 2)
        arities = st.integers(1, 2) if keyed else arities
        self.heads = [_Name(f"h{i}", draw(arities), draw(st.integers(1, 1 + i))) for i in range(count)]

    def rule(self, name: _Name) -> LarsRule:
        draw = self.draw
        body: list[LarsLiteral] = []
        times: list[str] = []
        bound: list[str] = []
        few = self.narrow or self.keyed
        for _ in range(draw(st.sampled_from((1, 1, 1, 2) if few else (0, 1, 1, 1, 2, 2, 3)))):
            if draw(st.integers(0, 9)) == 0:
                body.append(self.aggregate(name, bound))
                continue
            atom = self.window_atom(self.readable(name.level), False)
            if atom.at is not None:
                times.append(atom.at)
            bound += [a.name for a in atom.atom.arguments if isinstance(a, Var)]
            body.append(atom)
        local = all(self.level(literal) < name.level for literal in body)
        if bound and local and draw(st.integers(0, 4)) == 0:
            body.append(BindAtom(Call("+", (Var(draw(st.sampled_from(bound))), Const(integer(1)))), Var("w")))
            bound.append("w")
        bound += [] if self.narrow else times
        if bound and draw(st.integers(0, 3)) == 0:
            operator = draw(st.sampled_from((">=", "<", "=", "!=")))
            operand: Expression = Const(draw(st.sampled_from(TERMS)))
            if draw(st.booleans()):
                operand = Var(draw(st.sampled_from(bound)))
            body.append(FilterAtom(Call(operator, (Var(draw(st.sampled_from(bound))), operand))))
        if draw(st.integers(0, 2)) == 0:
            body.append(self.window_atom(self.readable(name.level - 1), True))
        arguments = tuple(
            Var(draw(st.sampled_from(bound)))
            if bound and draw(st.integers(0, 5))
            else draw(st.sampled_from(TERMS))
            for _ in range(name.arity)
        )
        if self.keyed:
            arguments = (Var("x"), *arguments[1:])
        at, offset = None, 0
        if times and draw(st.booleans()):
            at, offset = draw(st.sampled_from(times)), self.step * draw(st.integers(-3, 3))
        return LarsRule(LarsHead(NamedAtom(name.name, arguments), at, offset), tuple(body))

    def carrying(self, name: _Name) -> LarsRule:
        """A rule by which atoms of a head hold on from point to point, unless something comes."""
        draw = self.draw
        distinct = tuple(Var(variable) for variable in VARIABLES[: name.arity])
        atom = NamedAtom(name.name, distinct) if draw(st.booleans()) else self.atom(name)
        own = WindowAtom(atom, Modality.SOMETIME, TimeWindow(self.step))
        body: list[LarsLiteral] = [own]
        for _ in range(draw(st.sampled_from((0, 1, 1, 2)))):
            literal = self.window_atom(self.readable(name.level - 1), True)
            body.insert(draw(st.integers(0, len(body))), literal)
        return LarsRule(LarsHead(atom), tuple(body))

    def level(self, literal: LarsLiteral) -> int:
        if not isinstance(literal, WindowAtom | WindowAggregate):
            return 0
        return next(n.level for n in self.streams + self.heads if n.name == literal.atom.name)

    def readable(self, level: int) -> list[_Name]:
        return self.streams + [head for head in self.heads if head.level <= level]

    def atom(self, name: _Name) -> NamedAtom:
        draw = self.draw
        arguments: list[Argument] = []
        for _ in range(name.arity):
            constant = draw(st.integers(0, 5)) == 0
            arguments.append(
                draw(st.sampled_from(TERMS)) if constant else Var(draw(st.sampled_from(VARIABLES)))
            )
        if self.keyed:
            arguments[0] = Var("x")
        return NamedAtom(name.name, tuple(arguments))

    def window(self, name: _Name, modality: Modality = Modality.AT) -> LarsWindow:
        draw = self.draw
        if name.level or self.keyed or draw(st.integers(0, 2)):
            return TimeWindow(self.step * draw(st.integers(0, 4)))
        if name.arity and modality is not Modality.ALWAYS and draw(st.booleans()):
            columns = draw(st.lists(st.integers(0, name.arity - 1), min_size=1, unique=True))
            return FactWindow(draw(st.integers(1, 3)), (name.name,), None, tuple(columns))
        others = draw(st.lists(st.sampled_from(sorted(STREAMS)), max_size=2, unique=True))
        own = (name.name, *others) if draw(st.integers(0, 4)) or not others else tuple(others)
        return FactWindow(draw(st.integers(1, 4)), tuple(dict.fromkeys(own)))

    def window_atom(self, names: list[_Name], negated: bool) -> WindowAtom:
        draw = self.draw
        name = draw(st.sampled_from(names))
        atom = self.atom(name)
        modality = draw(st.sampled_from((None, *Modality)))
        if modality is None:
            return WindowAtom(atom, negated=negated)
        at = (
            draw(st.sampled_from(("t", "t", "t" if self.keyed else "x"))) if modality is Modality.AT else None
        )
        count = draw(st.integers(1, 3)) if modality is Modality.AT_LEAST else 0
        return WindowAtom(atom, modality, self.window(name, modality), at, count, negated)

    def aggregate(self, head: _Name, bound: list[str]) -> WindowAggregate:
        draw = self.draw
        name = draw(st.sampled_from(self.readable(head.level - 1)))
        # variables of its own, but for those of the group
        arguments = tuple(Var(f"{a.name}_") if isinstance(a, Var) else a for a in self.atom(name).arguments)
        variables = list(dict.fromkeys(a.name for a in arguments if isinstance(a, Var)))
        group = draw(st.lists(st.sampled_from(variables), max_size=1)) if variables else []
        group = ["x_"] if self.keyed else group
        renamed = tuple(Var(a.name[:-1]) if isinstance(a, Var) and a.name in group else a for a in arguments)
        argument: Expression | None = None
        function = draw(st.sampled_from(AGGREGATES))
        inside = list(dict.fromkeys(a.name for a in renamed if isinstance(a, Var)))
        if inside and (function != "COUNT" or draw(st.booleans())):
            argument = Var(draw(st.sampled_from(inside)))
            if draw(st.integers(0, 3)) == 0:
                argument = Call("*", (argument, Const(integer(2))))
        function = "COUNT" if argument is None else function
        distinct = argument is not None and draw(st.booleans())
        total = Var(draw(st.sampled_from(("n", "n", "x"))))
        if total.name in [name[:-1] for name in group]:
            total = Var("n")
        groups = tuple(Var(name[:-1]) for name in group)
        bound += [variable.name for variable in (*groups, total)]
        atom = NamedAtom(name.name, renamed)
        return WindowAggregate(function, argument, distinct, total, atom, self.window(name), groups)


@st.composite
def worlds(draw: st.DrawFn, keyed: bool = False) -> World:
    """`keyed`: every atom has the same variable in its first place."""
    step = draw(st.sampled_from((1, 1, 2, 3)))
    maker = _Maker(draw, step, keyed)
    rules = []
    for head in maker.heads:
        many = draw(st.sampled_from((1, 2, 2) if maker.narrow else (1, 1, 1, 2)))
        rules += [maker.rule(head) for _ in range(many)]
        if draw(st.integers(0, 2)) == 0:
            rules.append(maker.carrying(head))
    rules = draw(st.permutations(rules))
    program = LarsProgram(tuple(rules), step)
    beginning = step * draw(st.integers(0, 2))
    points = [beginning + step * i for i in range(draw(st.integers(4, 14)))]
    pieces: dict[Time, tuple[Piece, ...]] = {}
    values = st.sampled_from((TERMS[1],) if maker.narrow else (*TERMS, *TERMS, *TERMS, None))
    for point in points:
        if draw(st.integers(0, 2)):
            found = []
            for _ in range(draw(st.integers(0, 3))):
                name = draw(st.sampled_from(sorted(STREAMS)))
                facts = tuple(
                    (
                        point - draw(st.integers(0, step - 1)),
                        tuple(draw(values) for _ in range(STREAMS[name])),
                    )
                    for _ in range(draw(st.integers(1, 2)))
                )
                found.append(Piece(name, facts))
            pieces[point] = tuple(found)
    heads = sorted(head.name for head in maker.heads)
    watched = None if draw(st.booleans()) else frozenset(draw(st.lists(st.sampled_from(heads), unique=True)))
    cuts = frozenset(point for point in points if draw(st.integers(0, 4)) == 0)
    clock = draw(st.sampled_from((Clock(unit=1), Clock(integer=False))))
    layers = strata(program)
    if draw(st.booleans()):
        layers = [[number for layer in layers for number in layer]] if _one_layer(maker) else layers
    until = points[-1] + 8 * step
    return World(program, layers, beginning, step, clock, watched, pieces, cuts, until)


def _one_layer(maker: _Maker) -> bool:
    """Whether all heads have one level, so that nothing is negated and one stratum may hold all rules."""
    return len({head.level for head in maker.heads}) == 1
