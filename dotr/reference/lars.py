"""What holds over windows, literally: M(t) recomputed at every point of the timeline.

Place:   beside dotr/windows/engine.py, for tests and `--verify`. The same interface as LarsEngine.
Method:  the definition (Beck, Dao-Tran, Eiter 2018, for plain LARS with stratified negation; language.md):
         everything that ever held is kept, and at each point every rule is tried on everything that its
         windows show, stratum by stratum, until nothing is new.
Why not: faster. Whoever doubts the engine reads this file against the contract.

The interface, of both. Points are times in µs, multiples of the step, the first of them the beginning of the
timeline. `due()` is the next point at which something may change without input, None if nothing ever does;
here, where nothing is remembered but what held, it is always the next point, and none may be left out.

    lars.begin(point)                     points increase; none that is due is left out
    lars.facts(name, [(time, values)])    of a query or rule; before the first stratum that reads the name,
                                          in as many pieces as there are
    lars.evaluate(stratum)                strata in order → name of a head → what began and ended to hold
    lars.holding(name)                    the atoms of a head that hold at this point
    lars.end()
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from dotr.budget import KEPT, UNLIMITED, Exhausted
from dotr.events import Clock, Time, Values
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.expressions.literal_numbers import literally, row_key, summarised
from dotr.joins.plan import expression_variables
from dotr.program.program import (
    FactWindow,
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
from dotr.program.queries import Attribute, BindAtom, Expression, FilterAtom, TimeOf, Var
from dotr.rdf.terms import Term

Row = dict[str, Term]
Placed = tuple[str, Values, Time]
"""An atom of a head and the point that it is put at."""


class LiteralLars:
    """Owns all atoms that ever held, each with its points. A point costs what enumeration costs.

    `strata`: numbers of rules, in evaluation order. `beginning`: the first point. `watched`: heads whose
    changes are reported; None: all.
    """

    def __init__(
        self,
        program: LarsProgram,
        strata: Sequence[Sequence[int]],
        beginning: Time,
        step: int,
        clock: Clock,
        watched: Collection[str] | None = None,
    ) -> None:
        self._strata = [[program.rules[number] for number in numbers] for numbers in strata]
        self._beginning, self._step, self._clock = beginning, step, clock
        heads = {rule.head.atom.name for rule in program.rules}
        self._watched = heads if watched is None else heads & set(watched)
        self._now = beginning - step
        self._atoms: dict[str, dict[Time, set[Values]]] = {}
        self._latest: dict[str, dict[tuple[Time, Values], Time]] = {}  # of a fact at a point: its last time
        self._pending: set[Placed] = set()
        self._held: dict[str, set[Values]] = {}  # what held at the point before, as of then
        self._points: dict[Term, Time] = {}
        self._last: dict[FactWindow, set[tuple[str, Time, Values]]] = {}
        self.used = 0
        """Units of work at this point: points and rows that were enumerated."""
        self.limit = UNLIMITED
        """Of `used`; beyond it Exhausted is raised."""

    @property
    def now(self) -> Time:
        """The last point that began."""
        return self._now

    # -- a point

    def begin(self, point: Time) -> None:
        """Go to the next point: pending atoms come due."""
        assert point == self._now + self._step, "the literal reading leaves no point out"
        self._now, self.used = point, 0
        self._points[self._clock.term(point)] = point
        self._last.clear()
        for name, values, at in [placed for placed in self._pending if placed[2] == point]:
            self._add(name, values, at)
        self._pending = {placed for placed in self._pending if placed[2] > point}

    def facts(self, name: str, facts: Iterable[tuple[Time, Values]]) -> None:
        """Facts of a query or a composite event rule whose point this is."""
        self._last.clear()
        latest = self._latest.setdefault(name, {})
        for time, values in facts:
            self._add(name, values, self._now)
            latest[self._now, values] = max(time, latest.get((self._now, values), time))

    def evaluate(self, stratum: int) -> dict[str, tuple[list[Values], list[Values]]]:
        """Rules of a stratum to their fixpoint. Watched heads → (began, ended), each in canonical order."""
        rules = self._strata[stratum]
        while sum([self._put(*placed) for rule in rules for placed in list(self._derive(rule))]):
            pass
        changes = {}
        for name in dict.fromkeys(rule.head.atom.name for rule in rules):
            if name in self._watched:
                now, before = self._at(name, self._now), self._held.get(name, set())
                changes[name] = (in_order(now - before), in_order(before - now))
        return changes

    def holding(self, name: str) -> list[Values]:
        """The atoms of a head that hold at this point, once its stratum is evaluated; in canonical order."""
        return in_order(self._at(name, self._now))

    def end(self) -> None:
        """The point is done."""
        self._held = {name: set(self._at(name, self._now)) for name in self._watched}

    def restless(self) -> list[str]:
        """The heads whose atoms wait ahead."""
        return sorted({name for name, _, _ in self._pending})

    def due(self) -> Time | None:
        """The next point at which something may change without input."""
        return self._now + self._step

    # -- atoms and their points

    def _at(self, name: str, point: Time) -> set[Values]:
        return self._atoms.get(name, {}).get(point, set())

    def _add(self, name: str, values: Values, point: Time) -> bool:
        there = self._atoms.setdefault(name, {}).setdefault(point, set())
        new = values not in there
        there.add(values)
        return new

    def _put(self, name: str, values: Values, point: Time) -> bool:
        """Add a derived atom; whether anything that is seen now is new."""
        if point < self._beginning:
            return False
        if point > self._now:
            self._pending.add((name, values, point))
            return False
        return self._add(name, values, point)

    # -- windows

    def _window(self, name: str, window: LarsWindow) -> list[tuple[Time, set[Values]]]:
        """The points that a window shows, each with the atoms of `name` at it."""
        if isinstance(window, TimeWindow):
            since = self._since(self._now - window.duration)
            self._spend(len(since))
            return [(point, self._at(name, point)) for point in since]
        last = self._last_facts(window)
        fewer = not last if window.per else len(last) < window.count
        points = self._since(self._beginning if fewer else min(point for _, point, _ in last))
        self._spend(len(points))
        if name not in window.streams:
            return [(point, self._at(name, point)) for point in points]
        return [(p, {values for values in self._at(name, p) if (name, p, values) in last}) for p in points]

    def _since(self, point: Time) -> range:
        return range(max(point, self._beginning), self._now + self._step, self._step)

    def _last_facts(self, window: FactWindow) -> set[tuple[str, Time, Values]]:
        """The last atoms of the streams: by a fact's time, the order in OF, the canonical order."""
        if window not in self._last:
            ranked = sorted(
                (time, place, row_key(values), point, values)
                for place, name in enumerate(window.streams)
                for (point, values), time in self._latest.get(name, {}).items()
            )
            chosen = ranked[-window.count :]
            if window.per:
                by_key: dict[Values, list[Any]] = {}
                for one in ranked:
                    by_key.setdefault(tuple(one[4][n] for n in window.per), []).append(one)
                chosen = [one for group in by_key.values() for one in group[-window.count :]]
            self._last[window] = {(window.streams[place], at, v) for _, place, _, at, v in chosen}
        return self._last[window]

    # -- rules

    def _derive(self, rule: LarsRule) -> Iterator[Placed]:
        for row in self._rows(rule):
            yield self._placed(rule, row)

    def _rows(self, rule: LarsRule) -> list[Row]:
        """The ways in which the body of a rule holds now."""
        rows: list[Row] = [{}]
        for literal in body_order(rule.body):
            before, rows = rows, []
            for row in before:
                extended = list(self._extend(literal, row))
                self._spend(2 * KEPT * (1 + len(extended)))
                rows += extended
        return rows

    def _spend(self, units: int) -> None:
        self.used += units
        if self.used > self.limit:
            raise Exhausted

    def _placed(self, rule: LarsRule, row: Row) -> Placed:
        """What the head of a rule puts, and where, when its body holds so."""
        at = self._now if rule.head.at is None else self._points[row[rule.head.at]] + rule.head.offset
        values = tuple(row[a.name] if isinstance(a, Var) else a for a in rule.head.atom.arguments)
        return rule.head.atom.name, values, at

    def _extend(self, literal: LarsLiteral, row: Row) -> Iterable[Row]:
        match literal:
            case WindowAtom(negated=False):
                return self._matches(literal, row)
            case WindowAtom():
                return () if any(True for _ in self._matches(literal, row)) else (row,)
            case WindowAggregate():
                return self._aggregated(literal, row)
            case FilterAtom():
                return (row,) if self._condition(literal.condition)(row) else ()
            case BindAtom():
                value = self._value(literal.expression)(row)
                return _bound(row, literal.variable.name, value)
            case _:
                assert_never(literal)

    def _matches(self, literal: WindowAtom, row: Row) -> Iterator[Row]:
        """The ways in which a window atom, taken without its NOT, holds now under `row`."""
        atom = literal.atom
        if literal.window is None:
            yield from unified(atom, self._at(atom.name, self._now), row)
            return
        window = self._window(atom.name, literal.window)
        shown = set().union(*(there for _, there in window))
        match literal.modality:
            case None | Modality.SOMETIME:
                yield from unified(atom, shown, row)
            case Modality.ALWAYS:
                yield from unified(atom, {v for v in shown if all(v in there for _, there in window)}, row)
            case Modality.AT_LEAST:
                often = {v for v in shown if sum(v in there for _, there in window) >= literal.count}
                yield from unified(atom, often, row)
            case Modality.AT:
                assert literal.at is not None
                for point, there in window:
                    for longer in _bound(row, literal.at, self._clock.term(point)):
                        yield from unified(atom, there, longer)
            case _:
                assert_never(literal.modality)

    def _aggregated(self, literal: WindowAggregate, row: Row) -> Iterator[Row]:
        """One row a group that agrees with `row` and has a total."""
        groups: dict[tuple[Term, ...], list[Row]] = {}
        for _, there in self._window(literal.atom.name, literal.window):
            for pair in unified(literal.atom, in_order(there), {}):
                groups.setdefault(tuple(pair[v.name] for v in literal.group), []).append(pair)
        for key, pairs in groups.items():
            group = dict(zip((v.name for v in literal.group), key, strict=True))
            if all(row.get(name, term) == term for name, term in group.items()):
                yield from _bound({**row, **group}, literal.variable.name, self._total(literal, pairs))

    def _total(self, literal: WindowAggregate, pairs: Sequence[Row]) -> Term | None:
        if literal.argument is None:
            return summarised(literal.function, False, [None] * len(pairs), star=True)
        return summarised(literal.function, literal.distinct, map(self._value(literal.argument), pairs))

    def _value(self, expression: Expression) -> Callable[[Row], Term | None]:
        return compile_expression(expression, _leaf, clock=self._clock, reading=literally)

    def _condition(self, condition: Expression) -> Callable[[Row], bool]:
        return compile_condition(condition, _leaf, clock=self._clock, reading=literally)

    # -- state

    def snapshot(self) -> dict[str, Any]:
        """All that was seen and derived, as a JSON-able value; between points."""
        return {
            "now": self._now,
            "atoms": [
                [name, point, [list(values) for values in in_order(there)]]
                for name, points in self._atoms.items()
                for point, there in points.items()
            ],
            "latest": [
                [name, point, list(values), time]
                for name, latest in self._latest.items()
                for (point, values), time in latest.items()
            ],
            "pending": sorted([name, list(values), point] for name, values, point in self._pending),
            "held": {name: [list(v) for v in in_order(held)] for name, held in self._held.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot of the same program."""
        self._now = state["now"]
        for point in range(self._beginning, self._now + self._step, self._step):
            self._points[self._clock.term(point)] = point
        for name, point, there in state["atoms"]:
            self._atoms.setdefault(name, {})[point] = {tuple(values) for values in there}
        for name, point, values, time in state["latest"]:
            self._latest.setdefault(name, {})[point, tuple(values)] = time
        self._pending = {(name, tuple(values), point) for name, values, point in state["pending"]}
        self._held = {name: {tuple(values) for values in held} for name, held in state["held"].items()}


def in_order(atoms: Iterable[Values]) -> list[Values]:
    return sorted(atoms, key=row_key)


def body_order(body: Sequence[LarsLiteral]) -> list[LarsLiteral]:
    """Atoms and aggregates as written, then each BIND after what it reads, then filters and NOT."""
    last = [
        lit for lit in body if isinstance(lit, FilterAtom) or (isinstance(lit, WindowAtom) and lit.negated)
    ]
    binds = [literal for literal in body if isinstance(literal, BindAtom)]
    ordered = [literal for literal in body if literal not in last and literal not in binds]
    while binds:
        waiting = {bind.variable.name for bind in binds}
        ready = next(b for b in binds if not waiting & set(expression_variables(b.expression)))
        binds.remove(ready)
        ordered.append(ready)
    return ordered + last


def unified(atom: NamedAtom, atoms: Iterable[Values], row: Row) -> Iterator[Row]:
    """The row, longer by what the arguments of `atom` bind. An unbound attribute matches nothing."""
    for values in atoms:
        longer = dict(row)
        for argument, value in zip(atom.arguments, values, strict=True):
            wanted = longer.setdefault(argument.name, value or "") if isinstance(argument, Var) else argument
            if value is None or wanted != value:
                break
        else:
            yield longer


def _bound(row: Row, name: str, value: Term | None) -> Iterable[Row]:
    """The row with a variable bound; none if it has another value already, or there is no value."""
    return () if value is None or row.get(name, value) != value else ({**row, name: value},)


def _leaf(leaf: Var | Attribute | TimeOf) -> Callable[[Row], Term | None]:
    assert isinstance(leaf, Var), "checked: these rules have variables only"
    name = leaf.name
    return lambda row: row.get(name)
