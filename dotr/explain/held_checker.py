"""Whether proofs of what holds follow: each step against the definition, recomputed.

Place:   asked by checker.py with every fact of a head; knows nothing of how proofs are found.
Method:  the literal reading is run once over all facts that were stated, and asked as of any of its points.
         At the point at which a rule was read, every literal must hold under the bindings that the proof
         names, the head be the atom at its point, and what is named in support be there, as often as is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct, field

from dotr.events import Clock, Fact, Time, Values
from dotr.explain import held_proofs
from dotr.explain.proofs import FactProof
from dotr.ir import FactWindow, Program, RelationToStream, Var, WindowAtom
from dotr.reference.lars import LiteralLars, Row, unified

Given = Callable[[str], Sequence[Fact]]
"""A query or a rule → all facts of it that there were."""


def atoms(holding: held_proofs.Holding) -> Iterator[held_proofs.HeldAtom]:
    """Every atom of a head that a proof opens."""
    todo = [] if holding.atom is None else [holding.atom]
    seen = {id(atom) for atom in todo}
    for atom in todo:  # grows while it is read
        yield atom
        for placed in supports(atom):
            if isinstance(placed.why, held_proofs.HeldAtom) and id(placed.why) not in seen:
                seen.add(id(placed.why))
                todo.append(placed.why)


def supports(atom: held_proofs.HeldAtom) -> Iterator[held_proofs.PlacedAtom]:
    """What a proof of an atom names in support of it."""
    for step in atom.steps:
        if isinstance(step, held_proofs.Supported):
            yield from step.atoms


def facts_below(holding: held_proofs.Holding) -> Iterator[tuple[held_proofs.PlacedAtom, FactProof]]:
    """The facts of queries and rules at the leaves of a proof."""
    for atom in atoms(holding):
        for placed in supports(atom):
            if isinstance(placed.why, FactProof):
                yield placed, placed.why


class _LiteralRun(LiteralLars):
    """The literal reading, which knows when heads put atoms at points that had passed."""

    _late: dict[tuple[str, Time], dict[Values, Time]]

    def _add(self, name: str, values: Values, point: Time) -> bool:
        new = super()._add(name, values, point)
        if new and point < self._now:
            self._late.setdefault((name, point), {})[values] = self._now
        return new

    def as_of(self, point: Time) -> _Past:
        """What was known when a point that it has passed was done."""
        past = _Past.__new__(_Past)
        past.__dict__.update(self.__dict__)
        past._now, past._last = point, {}
        return past


class _Past(_LiteralRun):
    """A look at a run, which it shares, as of one of its points; open to questions about that point."""

    def _at(self, name: str, point: Time) -> set[Values]:
        there = super()._at(name, point)
        if (late := self._late.get((name, point))) is None:
            return there
        return {values for values in there if late.get(values, self._now) <= self._now}

    def _last_facts(self, window: FactWindow) -> set[tuple[str, Time, Values]]:
        whole, now = self._latest, self._now
        self._latest = {
            name: {key: time for key, time in known.items() if key[0] <= now} for name, known in whole.items()
        }
        found = super()._last_facts(window)
        self._latest = whole
        return found

    def holds(self, name: str, values: Sequence[str | None], point: Time) -> bool:
        return tuple(values) in self._at(name, point)

    def follows(self, atom: held_proofs.HeldAtom) -> bool:
        """Whether the rule, read now under the bindings, puts the atom where it is said to be."""
        row = dict(atom.bindings)
        if any(not any(True for _ in self._extend(literal, dict(row))) for literal in atom.rule.body):
            return False
        return self._placed(atom.rule, row) == (atom.name, atom.values, atom.point)

    def shown(self, step: held_proofs.LarsStep, row: Row) -> bool:
        """Whether a window showed what a step says: how often, how much, from when on."""
        match step:
            case held_proofs.Supported(literal=literal, points=points, start=start):
                return (points, start) == self._support(literal, row)
            case held_proofs.ProvedTotal(literal=literal, value=value, pairs=pairs, start=start):
                window = self._window(literal.atom.name, literal.window)
                key = {v.name: row[v.name] for v in literal.group}
                there = [pair for _, atoms in window for pair in unified(literal.atom, atoms, key)]
                first = window[0][0] if window else self._now
                return (row[literal.variable.name], len(there), first) == (value, pairs, start)
            case held_proofs.NoneHeld(literal=literal, start=start):
                return start == self._beginning_of(literal)
            case _:
                return True

    def _support(self, literal: WindowAtom, row: Row) -> tuple[int, Time | None]:
        if literal.window is None:
            return 1, None
        values = tuple(row[a.name] if isinstance(a, Var) else a for a in literal.atom.arguments)
        window = self._window(literal.atom.name, literal.window)
        count = sum(values in there for _, there in window)
        return (1 if literal.at is not None else count), self._beginning_of(literal)

    def _beginning_of(self, literal: WindowAtom) -> Time | None:
        if literal.window is None:
            return None
        window = self._window(literal.atom.name, literal.window)
        return window[0][0] if window else self._now


class HeldChecker(Struct):
    """Owns one literal run over a history, which goes on as far as is asked. `first`: its first instant."""

    program: Program
    clock: Clock
    first: Time
    given: Given
    _run: _LiteralRun | None = None
    _facts: dict[Time, list[tuple[str, Time, Values]]] = field(default_factory=dict)
    _held: dict[Time, dict[str, set[Values]]] = field(default_factory=dict)

    @property
    def _step(self) -> Time:
        return self.program.lars.step or self.clock.unit

    @property
    def _beginning(self) -> Time:
        return -(-self.first // self._step) * self._step

    def faults(self, stream: str, fact: Fact, holding: held_proofs.Holding) -> list[str]:
        """What does not follow; empty for a right proof."""
        word, _, name = stream.rpartition(" ")
        time, values, _, _ = fact
        found: list[str] = []
        if holding.operator != (RelationToStream(word) if word else None):
            found.append(f"{name} is of another stream")
        step = self._step
        shown = time - step if word == RelationToStream.DSTREAM else time
        if holding.atom is not None and (holding.atom.name, holding.atom.values, holding.atom.point) != (
            name,
            values,
            shown,
        ):
            found.append(f"{name} is another atom than its fact")
        run = self._up_to(time)
        for atom in atoms(holding):
            if atom.considered > time or atom.considered not in self._held:
                return [*found, f"{name} is read at no point of the timeline"]
            found += self._atom_faults(run.as_of(atom.considered), atom)
        if time not in self._held:
            return [*found, f"{name} is read at no point of the timeline"]
        right = values in self._changes(word, name, time)
        return found if right else [*found, f"{stream} has no such fact at {time}"]

    def _atom_faults(self, run: _Past, atom: held_proofs.HeldAtom) -> Iterator[str]:
        if atom.rule not in self.program.lars.rules:
            yield f"{atom.name} is given by no rule of the program"
        elif not run.follows(atom):
            yield f"{atom.name} at {atom.point} does not follow"
        elif not all(run.shown(step, dict(atom.bindings)) for step in atom.steps):
            yield f"{atom.name} at {atom.point}: a window shows something else"
        if [step.literal for step in atom.steps] != list(atom.rule.body):
            yield f"{atom.name}: its steps are not the literals of its rule"
        for step in atom.steps:
            if isinstance(step, held_proofs.Supported) and not step.atoms:
                yield f"{atom.name}: nothing supports one of its literals"
        for placed in supports(atom):
            if not run.holds(placed.name, placed.values, placed.point):
                yield f"{placed.name} does not hold at {placed.point}"

    def _changes(self, word: str, name: str, point: Time) -> set[Values]:
        """What a head, or a stream of its changes, has at a point that was passed."""
        now = self._held[point].get(name, set())
        before = self._held.get(point - self._step, {}).get(name, set())
        return {"ISTREAM": now - before, "DSTREAM": before - now}.get(word, now)

    def _up_to(self, until: Time) -> _LiteralRun:
        """The run, which has passed every point up to a time."""
        lars, step, run = self.program.lars, self._step, self._run
        if run is None:
            run = self._run = _LiteralRun(
                lars, [layer.rules for layer in lars.layers], self._beginning, step, self.clock
            )
            run._late = {}
            for name in lars.reads:
                for time, values, _, _ in self.given(name):
                    self._facts.setdefault(-(-time // step) * step, []).append((name, time, values))
        for point in range(run.now + step, until + 1, step):
            run.begin(point)
            for name, time, values in self._facts.get(point, ()):
                run.facts(name, [(time, values)])
            for number in range(len(lars.layers)):
                run.evaluate(number)
            heads = {rule.head.atom.name for rule in lars.rules}
            self._held[point] = {name: set(run.holding(name)) for name in heads}
            run.end()
        return run

    def seen(self, stream: str, until: Time) -> Iterable[Fact]:
        """The facts of a head, or of its changes, up to a time."""
        word, _, name = stream.rpartition(" ")
        self._up_to(until)
        for point in range(self._beginning, until + 1, self._step):
            yield from ((point, values, 0, "") for values in self._changes(word, name, point))
