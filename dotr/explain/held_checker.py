"""Whether proofs of what holds follow: each step against the definition, computed anew.

Place:   asked by checker.py with every fact of a head; knows nothing of how proofs are found.
Method:  the literal reading is run over all facts that were stated. At the point at which a rule was read,
         every literal must hold under the bindings that the proof names, the head be the atom at its point,
         and what is named in support be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dotr.events import Clock, Fact, Time
from dotr.explain.held_proofs import HeldAtom, Holding, PlacedAtom, Supported
from dotr.explain.proofs import FactProof
from dotr.ir import Program, RelationToStream
from dotr.late import dataclass
from dotr.reference.lars import LiteralLars

Given = Callable[[str], Sequence[Fact]]
"""A query or a rule → all facts of it that there were."""


def atoms(holding: Holding) -> Iterator[HeldAtom]:
    """Every atom of a head that a proof opens."""
    todo = [] if holding.atom is None else [holding.atom]
    for atom in todo:  # grows while it is read
        yield atom
        for placed in supports(atom):
            if isinstance(placed.why, HeldAtom):
                todo.append(placed.why)


def supports(atom: HeldAtom) -> Iterator[PlacedAtom]:
    """What a proof of an atom names in support of it."""
    for step in atom.steps:
        if isinstance(step, Supported):
            yield from step.atoms


def facts_below(holding: Holding) -> Iterator[tuple[PlacedAtom, FactProof]]:
    """The facts of queries and rules at the leaves of a proof."""
    for atom in atoms(holding):
        for placed in supports(atom):
            if isinstance(placed.why, FactProof):
                yield placed, placed.why


class _Run(LiteralLars):
    """The literal reading, open to questions."""

    def holds(self, name: str, values: Sequence[str | None], point: Time) -> bool:
        return tuple(values) in self._at(name, point)

    def follows(self, atom: HeldAtom) -> bool:
        """Whether the rule, read now under the bindings, puts the atom where it is said to be."""
        row = dict(atom.bindings)
        if any(not any(True for _ in self._extend(literal, dict(row))) for literal in atom.rule.body):
            return False
        return self._placed(atom.rule, row) == (atom.name, atom.values, atom.point)


@dataclass(frozen=True, slots=True)
class HeldChecker:
    """Checks proofs over one history. `first`: its first instant."""

    program: Program
    clock: Clock
    first: Time
    given: Given

    def faults(self, stream: str, fact: Fact, holding: Holding) -> list[str]:
        """What does not follow; empty for a right proof."""
        word, _, name = stream.rpartition(" ")
        time, values, _, _ = fact
        found: list[str] = []
        if holding.operator != (RelationToStream(word) if word else None):
            found.append(f"{name} is of another stream")
        step = self.program.lars.step or self.clock.unit
        shown = time - step if word == RelationToStream.DSTREAM else time
        if holding.atom is not None and (holding.atom.name, holding.atom.values, holding.atom.point) != (
            name,
            values,
            shown,
        ):
            found.append(f"{name} is another atom than its fact")
        opened = list(atoms(holding))
        asked = {atom.considered for atom in opened}
        run, held = None, False
        for run in self._points(step, time):
            for atom in opened:
                if atom.considered == run.now:
                    found += self._atom_faults(run, atom)
            if run.now < time:
                held = run.now == time - step and run.holds(name, values, run.now)
        if run is None or not asked <= set(range(-(-self.first // step) * step, time + 1, step)):
            return [*found, f"{name} is read at no point of the timeline"]
        now = run.holds(name, values, time)
        right = {"ISTREAM": now and not held, "DSTREAM": held and not now}.get(word, now)
        return found if right else [*found, f"{stream} has no such fact at {time}"]

    def _atom_faults(self, run: _Run, atom: HeldAtom) -> Iterator[str]:
        if atom.rule not in self.program.lars.rules:
            yield f"{atom.name} is given by no rule of the program"
        elif not run.follows(atom):
            yield f"{atom.name} at {atom.point} does not follow"
        for step in atom.steps:
            if step.literal not in atom.rule.body:
                yield f"{atom.name}: a step is not a literal of its rule"
        for placed in supports(atom):
            if not run.holds(placed.name, placed.values, placed.point):
                yield f"{placed.name} does not hold at {placed.point}"

    def _points(self, step: Time, until: Time) -> Iterator[_Run]:
        """The literal reading after each point."""
        lars = self.program.lars
        beginning = -(-self.first // step) * step
        run = _Run(lars, [layer.rules for layer in lars.layers], beginning, step, self.clock)
        facts = [(fact[0], name, fact[1]) for name in lars.reads for fact in self.given(name)]
        for point in range(beginning, until + 1, step):
            run.begin(point)
            for time, name, values in facts:
                if point - step < time <= point:
                    run.facts(name, [(time, values)])
            for number in range(len(lars.layers)):
                run.evaluate(number)
            yield run
            run.end()

    def seen(self, stream: str, until: Time) -> Iterable[Fact]:
        """The facts of a head, or of its changes, up to a time."""
        word, _, name = stream.rpartition(" ")
        step = self.program.lars.step or self.clock.unit
        before: set[tuple[str | None, ...]] = set()
        for run in self._points(step, until):
            now = {tuple(values) for values in run.holding(name)}
            changed = {"ISTREAM": now - before, "DSTREAM": before - now}.get(word, now)
            yield from ((run.now, values, 0, "") for values in changed)
            before = now
