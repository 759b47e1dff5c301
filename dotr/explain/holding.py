"""Why a head of a .lars file holds at a point, or does not.

Place:   asked by matches.py; over reference/lars.py.
Method:  the literal reading is run again over what was kept, from so far back as anything can influence the
         point (dotr/lars/reach.py), and each atom remembers the rule that put it there first and what its
         windows showed. What supports an atom is opened where it is shown, as far as the depth goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import Struct, field

from dotr import ir
from dotr.events import Clock, Fact, Time, Values
from dotr.explain.held_proofs import (
    Computed,
    HeldAtom,
    Holding,
    LarsFailure,
    LarsStep,
    NoneHeld,
    PlacedAtom,
    ProvedTotal,
    Supported,
)
from dotr.explain.proofs import FactProof
from dotr.explain.record import Record
from dotr.lars.reach import horizon
from dotr.rdf.order import values_key
from dotr.reference.lars import LiteralLars, Placed, Row, body_order, in_order, unified

SHOWN = 3
"""Supporting atoms of one literal that are opened."""

MOST = 100_000
"""Points that are gone through for an explanation."""

OpenFact = Callable[[str, Values, Time, Time, int], FactProof | None]
"""(query or rule, values, after, up to, depth) → the fact with these values in that stretch, proved."""
FactsOf = Callable[[str, Time, Time], Iterable[Fact]]
"""(query or rule, from, to) → its facts, both ends included."""


class Traced(LiteralLars):
    """The literal reading, which also remembers why. `facts`: stream → facts as rules see them."""

    def __init__(self, program: ir.LarsProgram, beginning: Time, step: Time, clock: Clock) -> None:
        super().__init__(program, [layer.rules for layer in program.layers], beginning, step, clock)
        self.origins: dict[Placed, HeldAtom] = {}
        self.facts_seen: dict[str, list[Fact]] = {}
        self._attributes = program.attributes

    def _derive(self, rule: ir.LarsRule) -> Iterator[Placed]:
        """Of several ways to put an atom the first in canonical order is remembered: rows come from sets."""
        ways: dict[Placed, list[Row]] = {}
        for row in self._rows(rule):
            ways.setdefault(self._placed(rule, row), []).append(row)
        for placed, rows in ways.items():
            if placed not in self.origins:
                first = min(rows, key=lambda row: values_key(tuple(row.values())))
                self.origins[placed] = self._origin(rule, first, placed)
        return iter(ways)

    def _origin(self, rule: ir.LarsRule, row: Row, placed: Placed) -> HeldAtom:
        name, values, point = placed
        bindings = tuple((name, term) for name, term in row.items() if isinstance(term, str))
        steps = tuple(self._step_of(literal, row) for literal in rule.body)
        return HeldAtom(name, self._attributes[name], values, point, rule, self._now, bindings, steps)

    def _step_of(self, literal: ir.LarsLiteral, row: Row) -> LarsStep:
        match literal:
            case ir.FilterAtom() | ir.BindAtom():
                return Computed(literal)
            case ir.WindowAggregate(atom=atom, window=window, group=group, variable=variable):
                key = {v.name: row[v.name] for v in group}
                pairs = [p for _, there in self._window(atom.name, window) for p in unified(atom, there, key)]
                return ProvedTotal(literal, row[variable.name], len(pairs), self._start(atom.name, window))
            case ir.WindowAtom(negated=True):
                return NoneHeld(literal, self._start_of(literal))
            case ir.WindowAtom():
                return self._support(literal, row)
            case _:
                assert_never(literal)

    def _support(self, literal: ir.WindowAtom, row: Row) -> Supported:
        atom = literal.atom
        values = tuple(row[a.name] if isinstance(a, ir.Var) else a for a in atom.arguments)
        if literal.window is None:
            return Supported(literal, (PlacedAtom(atom.name, values, self._now),), 1, None)
        points = [point for point, there in self._window(atom.name, literal.window) if values in there]
        if literal.modality is ir.Modality.AT:
            assert literal.at is not None
            points = [self._points[row[literal.at]]]
        chosen = points[::-1]
        if literal.modality in (None, ir.Modality.SOMETIME):
            chosen = chosen[:1]
        shown = tuple(PlacedAtom(atom.name, values, point) for point in chosen[:SHOWN])
        return Supported(literal, shown, len(points), self._start(atom.name, literal.window))

    def _start(self, name: str, window: ir.LarsWindow) -> Time:
        shown = self._window(name, window)
        return shown[0][0] if shown else self._now

    def _start_of(self, literal: ir.WindowAtom) -> Time | None:
        return None if literal.window is None else self._start(literal.atom.name, literal.window)

    def end(self) -> None:
        for name in self._watched:
            held, before = self._at(name, self._now), self._held.get(name, set())
            for stream, atoms in (
                (name, held),
                (f"{ir.RelationToStream.ISTREAM} {name}", held - before),
                (f"{ir.RelationToStream.DSTREAM} {name}", before - held),
            ):
                found: list[Fact] = [(self._now, values, 0, "") for values in in_order(atoms)]
                self.facts_seen.setdefault(stream, []).extend(found)
        super().end()

    def failures(self, name: str, values: Values | None) -> tuple[LarsFailure, ...]:
        """Why no rule gives an atom of a head at the last point; `values` None: any atom."""
        return tuple(self._failure(rule, values) for rule in self._rules_of(name))

    def _rules_of(self, name: str) -> list[ir.LarsRule]:
        return [rule for rules in self._strata for rule in rules if rule.head.atom.name == name]

    def _failure(self, rule: ir.LarsRule, values: Values | None) -> LarsFailure:
        rows: list[Row] = [{}]
        if values is not None:
            rows = list(unified(rule.head.atom, [values], {}))
            if not rows:
                return LarsFailure(rule, None, self._now)
        for literal in body_order(rule.body):
            longer = [more for row in rows for more in self._extend(literal, row)]
            if not longer:
                start = self._start_of(literal) if isinstance(literal, ir.WindowAtom) else None
                return LarsFailure(rule, literal, self._now, start)
            rows = longer
        return LarsFailure(rule, None, self._now)


class HeldExplainer(Struct):
    """Owns the traced runs of one record."""

    record: Record
    program: ir.Program
    facts_of: FactsOf
    open_fact: OpenFact
    _runs: dict[Time, Traced | None] = field(default_factory=dict)
    _placed_atoms: dict[object, PlacedAtom] = field(default_factory=dict)

    @property
    def step(self) -> Time:
        return self.program.lars.step or self.record.clock.unit

    def point(self, time: Time) -> Time:
        """The first point that is not before a time."""
        return -(-time // self.step) * self.step

    def facts(self, stream: str, start: Time, end: Time) -> list[Fact] | None:
        """The facts of a head, or of its changes, in a stretch, both ends included; None where that is more
        points than are gone through.
        """
        first, last = self._first(), end // self.step * self.step
        if first is None or last < self.point(first):
            return []
        run = self._run(last, max(0, end - max(start, first)))
        if run is None:
            return None
        return [fact for fact in run.facts_seen.get(stream, []) if start <= fact[0] <= end]

    def why(self, stream: str, fact: Fact, depth: int) -> Holding:
        """Why a head, or a stream of its changes, has a fact."""
        time, values, _, _ = fact
        word, _, name = stream.rpartition(" ")
        operator = ir.RelationToStream(word) if word else None
        run = self._run(time)
        if run is None:
            return Holding(operator, None)
        ended = operator is ir.RelationToStream.DSTREAM
        origin = run.origins.get((name, values, time - self.step if ended else time))
        failed = run.failures(name, values) if ended else ()
        return Holding(operator, None if origin is None else self._opened(origin, run, depth), failed)

    def why_not(self, stream: str, time: Time) -> tuple[LarsFailure, ...]:
        """Why a head, or a stream of its changes, has no fact at a time."""
        run = self._run(time // self.step * self.step)
        return () if run is None else run.failures(stream.rpartition(" ")[2], None)

    def _opened(self, atom: HeldAtom, run: Traced, depth: int) -> HeldAtom:
        """The atom with what supports it, opened."""
        steps = tuple(
            Supported(
                step.literal,
                tuple(self._placed(one, run, depth - 1) for one in step.atoms),
                step.points,
                step.start,
            )
            if isinstance(step, Supported)
            else step
            for step in atom.steps
        )
        return HeldAtom(
            atom.name,
            atom.variables,
            atom.values,
            atom.point,
            atom.rule,
            atom.considered,
            atom.bindings,
            steps,
        )

    def _placed(self, atom: PlacedAtom, run: Traced, depth: int) -> PlacedAtom:
        key = id(run), atom.name, atom.values, atom.point, depth
        if depth > 0 and key not in self._placed_atoms:
            self._placed_atoms[key] = self._supporting(atom, run, depth)
        return self._placed_atoms.get(key, atom)

    def _supporting(self, atom: PlacedAtom, run: Traced, depth: int) -> PlacedAtom:
        """What supports something, opened."""
        origin = run.origins.get((atom.name, atom.values, atom.point))
        why: FactProof | HeldAtom | None
        if origin is not None:
            why = self._opened(origin, run, depth)
        else:
            why = self.open_fact(atom.name, atom.values, atom.point - self.step, atom.point, depth)
        return PlacedAtom(atom.name, atom.values, atom.point, why)

    def _run(self, until: Time, back: Time = 0) -> Traced | None:
        """The literal reading up to a point, from so far back that it is right for what lies `back` before
        it; None where that is too much, or before what was kept.
        """
        first = self._first()
        if first is None or until < self.point(first):
            return None
        if until not in self._runs or back:
            self._runs[until] = self._traced(self.point(first), until, back)
            self._placed_atoms.clear()  # their keys are of runs that may have gone
        return self._runs[until]

    def _first(self) -> Time | None:
        """The first instant that the LARS rules of now saw."""
        first, begun = self.record.first_instant, self.record.held_begun
        return first if begun is None or first is None else max(first, begun)

    def _traced(self, first: Time, until: Time, back: Time) -> Traced | None:
        reach, _ = horizon(self.program.lars)
        beginning = first
        if reach is not None:
            far = until - reach - self.point(back) - self.step
            beginning = max(first, far // self.step * self.step)
        if (until - beginning) // self.step > MOST:
            return None
        run = Traced(self.program.lars, beginning, self.step, self.record.clock)
        given = self._given(beginning, until)
        for point in range(beginning, until + self.step, self.step):
            run.begin(point)
            for name, facts in given.get(point, {}).items():
                run.facts(name, facts)
            for number in range(len(self.program.lars.layers)):
                run.evaluate(number)
            run.end()
        return run

    def _given(
        self, beginning: Time, until: Time
    ) -> Mapping[Time, Mapping[str, Sequence[tuple[Time, Values]]]]:
        begun = self._first()
        assert begun is not None, "there is a point"
        found: dict[Time, dict[str, list[tuple[Time, Values]]]] = {}
        for name in self.program.lars.reads:
            for time, values, _, _ in self.facts_of(name, max(beginning - self.step + 1, begun), until):
                found.setdefault(self.point(time), {}).setdefault(name, []).append((time, values))
        return found
