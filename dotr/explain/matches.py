"""A match with its choices, or what stopped a match that did not come about.

Explainer       explanations of matches and of missing matches
HeldExplainer   why a LARS head holds at a point, or does not

Method:  the literal reading (reference/tesla.py) is asked about recorded facts for one trigger fact: for each
         conjunct the facts in its window, those of them that pass ON, and those that were taken. Emitted
         matches are given; a match that was not emitted is followed conjunct by conjunct, and the answer is
         the furthest that any partial match got.
         A LARS head: the literal reading (reference/lars.py) is run again over the recorded facts, from as
         far back as anything can influence the point (windows/building.py); each atom remembers the rule that
         first put it there and what its windows contained. The support of an atom is opened when it is shown,
         down to the given depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from dotr import program
from dotr.detect.analysis import (
    awaits_graph,
    delays_seen,
    occasions_seen,
    parts,
    rhythms_in_order,
    ticks_seen,
)
from dotr.events import NEVER, Clock, Fact, Time, Values
from dotr.explain import proofs
from dotr.explain.derivations import Derivations
from dotr.explain.proofs import (
    Computed,
    FactProof,
    HeldAtom,
    Holding,
    LarsFailure,
    LarsStep,
    NoneHeld,
    PlacedAtom,
    ProvedTotal,
    Supported,
    parts_of,
)
from dotr.explain.record import KeptEvent, KeptInstants, Record
from dotr.explain.sequences import SequenceExplainer
from dotr.explain.solutions import Text, alternatives, count, longest_prefix, solution
from dotr.program import Position, Program, RelationToStream
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Term, Triple
from dotr.rdf.values import values_key
from dotr.reference.calendars import ticks_at, ticks_in
from dotr.reference.lars import LiteralLars, Placed, body_order, in_order, unified
from dotr.reference.lars import Row as LarsRow
from dotr.reference.operators import Row, group_of, summed_up
from dotr.reference.tesla import Candidates, LiteralRule, fact_key, lacks_reference, opening, window
from dotr.windows.building import horizon

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

    def __init__(self, program: program.LarsProgram, beginning: Time, step: Time, clock: Clock) -> None:
        super().__init__(program, [layer.rules for layer in program.layers], beginning, step, clock)
        self.origins: dict[Placed, HeldAtom] = {}
        self.facts_seen: dict[str, list[Fact]] = {}
        self._attributes = program.attributes

    def _derive(self, rule: program.LarsRule) -> Iterator[Placed]:
        """Of several ways to put an atom the first in canonical order is remembered: rows come from sets."""
        ways: dict[Placed, list[LarsRow]] = {}
        for row in self._rows(rule):
            ways.setdefault(self._placed(rule, row), []).append(row)
        for placed, rows in ways.items():
            if placed not in self.origins:
                first = min(rows, key=lambda row: values_key(tuple(row.values())))
                self.origins[placed] = self._origin(rule, first, placed)
        return iter(ways)

    def _origin(self, rule: program.LarsRule, row: LarsRow, placed: Placed) -> HeldAtom:
        name, values, point = placed
        bindings = tuple((name, term) for name, term in row.items() if isinstance(term, str))
        steps = tuple(self._step_of(literal, row) for literal in rule.body)
        return HeldAtom(name, self._attributes[name], values, point, rule, self._now, bindings, steps)

    def _step_of(self, literal: program.LarsLiteral, row: LarsRow) -> LarsStep:
        match literal:
            case program.FilterAtom() | program.BindAtom():
                return Computed(literal)
            case program.WindowAggregate(atom=atom, window=window, group=group, variable=variable):
                key = {v.name: row[v.name] for v in group}
                pairs = [p for _, there in self._window(atom.name, window) for p in unified(atom, there, key)]
                return ProvedTotal(literal, row[variable.name], len(pairs), self._start(atom.name, window))
            case program.WindowAtom(negated=True):
                return NoneHeld(literal, self._start_of(literal))
            case program.WindowAtom():
                return self._support(literal, row)
            case _:
                assert_never(literal)

    def _support(self, literal: program.WindowAtom, row: LarsRow) -> Supported:
        atom = literal.atom
        values = tuple(row[a.name] if isinstance(a, program.Var) else a for a in atom.arguments)
        if literal.window is None:
            return Supported(literal, (PlacedAtom(atom.name, values, self._now),), 1, None)
        points = [point for point, there in self._window(atom.name, literal.window) if values in there]
        if literal.modality is program.Modality.AT:
            assert literal.at is not None
            points = [self._points[row[literal.at]]]
        chosen = points[::-1]
        if literal.modality in (None, program.Modality.SOMETIME):
            chosen = chosen[:1]
        shown = tuple(PlacedAtom(atom.name, values, point) for point in chosen[:SHOWN])
        return Supported(literal, shown, len(points), self._start(atom.name, literal.window))

    def _start(self, name: str, window: program.LarsWindow) -> Time:
        shown = self._window(name, window)
        return shown[0][0] if shown else self._now

    def _start_of(self, literal: program.WindowAtom) -> Time | None:
        return None if literal.window is None else self._start(literal.atom.name, literal.window)

    def end(self) -> None:
        for name in self._watched:
            held, before = self._at(name, self._now), self._held.get(name, set())
            for stream, atoms in (
                (name, held),
                (f"{program.RelationToStream.ISTREAM} {name}", held - before),
                (f"{program.RelationToStream.DSTREAM} {name}", before - held),
            ):
                found: list[Fact] = [(self._now, values, 0, "") for values in in_order(atoms)]
                self.facts_seen.setdefault(stream, []).extend(found)
        super().end()

    def failures(self, name: str, values: Values | None) -> tuple[LarsFailure, ...]:
        """Why no rule gives an atom of a head at the last point; `values` None: any atom."""
        return tuple(self._failure(rule, values) for rule in self._rules_of(name))

    def _rules_of(self, name: str) -> list[program.LarsRule]:
        return [rule for rules in self._strata for rule in rules if rule.head.atom.name == name]

    def _failure(self, rule: program.LarsRule, values: Values | None) -> LarsFailure:
        rows: list[LarsRow] = [{}]
        if values is not None:
            rows = list(unified(rule.head.atom, [values], {}))
            if not rows:
                return LarsFailure(rule, None, self._now)
        for literal in body_order(rule.body):
            longer = [more for row in rows for more in self._extend(literal, row)]
            if not longer:
                start = self._start_of(literal) if isinstance(literal, program.WindowAtom) else None
                return LarsFailure(rule, literal, self._now, start)
            rows = longer
        return LarsFailure(rule, None, self._now)


class HeldExplainer(Struct):
    """Owns the traced runs of one record."""

    record: Record
    program: Program
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
        operator = program.RelationToStream(word) if word else None
        run = self._run(time)
        if run is None:
            return Holding(operator, None)
        ended = operator is program.RelationToStream.DSTREAM
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


DEPTH = 40
"""How many events are opened inside one another."""

INSTANTS = 100
"""Of a window without any fact, so many instants are looked into, the last ones."""

MOVED = 10
"""How many statements are named that ended, or began, with an answer."""


class Explainer:
    """Owns the explanations of one record. `every`: of a fact all solutions are
    given, not the smallest alone.
    """

    def __init__(
        self, history: Record, text: Text, instants: KeptInstants | None = None, every: bool = False
    ) -> None:
        self.history = history
        self.text = text
        self.instants = instants or KeptInstants(history)
        self._every = every
        self._rules = [LiteralRule(rule, history.clock) for rule in history.program.rules]
        self._sequences = SequenceExplainer(history, self._facts, self._fact)
        self._ticks = ticks_seen(history.program)
        self._delays = delays_seen(history.program)
        rules = history.program.rules
        sequences = {rule.name: n for n, rule in enumerate(rules) if isinstance(rule.trigger, RowPattern)}
        self._seen = [
            {sequences[name] for name in sequences.keys() & seen} for seen in occasions_seen(history.program)
        ]
        self._solutions: dict[tuple[str, Fact], proofs.SolutionProof | proofs.Changed] = {}
        self._opened: dict[tuple[str, Fact, int], proofs.SolutionProof | proofs.Changed] = {}
        self._events: dict[tuple[str, int], proofs.EventProof] = {}
        self._held = HeldExplainer(history, history.program, self._read_by_lars, self._opened_fact)

    # -- why

    def event(self, event: KeptEvent, depth: int = DEPTH) -> proofs.EventProof:
        """The proof of a composite."""
        key = event.id, depth
        if key not in self._events:
            self._events[key] = self._proved(event, depth)
        return self._events[key]

    def _proved(self, event: KeptEvent, depth: int) -> proofs.EventProof:
        rule = self.history.program.rules[event.rule]
        if isinstance(rule.trigger, RowPattern):
            return self._sequences.event(event, depth)
        names = (rule.triggering.name, *(conjunct.position.name for conjunct in rule.chosen))
        chosen: Row = dict(zip(names, event.facts, strict=True))
        trigger = self._fact(rule.triggering, event.facts[0], depth)
        steps = self._steps(event.rule, rule.conjuncts, chosen, depth)
        return proofs.EventProof(rule, event.id, event.time, trigger, steps, event.bindings)

    def _steps(
        self, index: int, conjuncts: Iterable[program.Conjunct], chosen: Row, depth: int
    ) -> tuple[proofs.ConjunctProof, ...]:
        """The first conjuncts of a match, of which the facts are given."""
        rule = self.history.program.rules[index]
        row = opening(rule, chosen[rule.triggering.name])
        return tuple(self._step(index, conjunct, row, chosen, depth) for conjunct in conjuncts)

    def _step(
        self, index: int, conjunct: program.Conjunct, row: Row, chosen: Row, depth: int
    ) -> proofs.ConjunctProof:
        """One conjunct of a match, `row` continued by it."""
        literal, name = self._rules[index], conjunct.position.name
        seen = self._candidates(index, conjunct, row)
        inside, passing = ([], []) if seen is None else seen
        found = None if seen is None else len(inside)
        match conjunct:
            case program.Choose():
                row[name] = chosen[name]
                if chosen[name][0] == NEVER:
                    return self._nothing(index, conjunct, row, inside, found)
                if conjunct.per:
                    return self._grouped(conjunct, chosen[name], passing, found, depth)
                fact = self._fact(conjunct.position, chosen[name], depth)
                return proofs.Chosen(conjunct, fact, found, len(passing))
            case program.Absent():
                return self._nothing(index, conjunct, row, inside, found)
            case program.Summarise(variable=variable):
                value = None if seen is None else literal.ways(conjunct, row, passing)[0]["?" + variable]
                row["?" + variable] = value
                return proofs.Counted(conjunct, value, tuple(summed_up(conjunct, passing)), found)
            case _:
                assert_never(conjunct)

    def _grouped(
        self, conjunct: program.Choose, group: Fact, passing: Sequence[Fact], found: int | None, depth: int
    ) -> proofs.Chosen:
        """What EACH … PER took, by the last of its candidates."""
        own = [fact for fact in passing if group_of(conjunct, fact, group[0]) == group]
        several = {group_of(conjunct, fact, group[0]) for fact in passing}
        position = conjunct.position
        proof = proofs.FactProof(position.name, position.stream, position.variables, group, None)
        if own:
            proof = self._fact(position, own[-1], depth)
        return proofs.Chosen(conjunct, proof, found, len(several), group)

    def _nothing(
        self, index: int, conjunct: program.Conjunct, row: Row, inside: list[Fact], found: int | None
    ) -> proofs.NothingThere:
        """That a conjunct has no candidate among the facts of its window."""
        others = self._rules[index].others(conjunct, row, inside)
        nearest = self._nearest(index, conjunct, row, others)
        failed: tuple[str, ...] = ()
        if nearest is not None:
            failed = self._failed(index, conjunct, {**row, conjunct.position.name: nearest})
        return proofs.NothingThere(conjunct, found, nearest, failed)

    def _fact(
        self, position: program.Position | program.Tick | RowPattern, fact: Fact, depth: int
    ) -> proofs.FactProof:
        """A fact with the reason for it."""
        if not isinstance(position, program.Position):
            return proofs.FactProof(position.name, "", (), fact, None)
        if position.chained:
            event = self.history.event(fact[3])
            why: proofs.EventProof | proofs.EventLeaf = proofs.EventLeaf(
                position.stream, fact[3], fact[0], event is not None
            )
            if event is not None and depth > 0:
                why = self.event(event, depth - 1)
            return proofs.FactProof(position.name, position.stream, position.variables, fact, why)
        if position.held:
            held = self._held.why(position.stream, fact, depth)
            return proofs.FactProof(position.name, position.stream, position.variables, fact, held)
        key = position.stream, fact
        if key not in self._solutions:
            self._solutions[key] = self._why(position.stream, fact)
        at = position.stream, fact, depth
        if at not in self._opened:
            self._opened[at] = self._with_events(self._solutions[key], depth)
        return proofs.FactProof(position.name, position.stream, position.variables, fact, self._opened[at])

    # -- what events stated and ended

    def triples(self, triple: Triple, time: Time) -> list[proofs.TripleProof] | proofs.Missing:
        """The proof of a triple at an instant, with `every` all of them; or why it does not hold."""
        statements = self.history.statements
        with self.instants.open(time) as derivations:
            if derivations.holds(triple):
                found = derivations.proofs(triple) if self._every else [derivations.proof(triple)]
            else:
                missing = derivations.why_absent(triple)
                gone = () if statements is None else statements.gone(triple, time)
                return replace(missing, gone=self._all_with_events(gone, DEPTH))
        return [self._of_events(proof, DEPTH) for proof in found]

    def _with_events(
        self, why: proofs.SolutionProof | proofs.Changed, depth: int
    ) -> proofs.SolutionProof | proofs.Changed:
        """The same with proofs of the events that stated or ended its premises; itself where none did."""
        if isinstance(why, proofs.Changed):
            inner = self._solution_with_events(why.solution, depth)
            moved = self._all_with_events(why.moved, depth)
            same = inner is why.solution and all(map(is_, moved, why.moved))
            return why if same else replace(why, solution=inner, moved=moved)
        return self._solution_with_events(why, depth)

    def _solution_with_events(self, why: proofs.SolutionProof, depth: int) -> proofs.SolutionProof:
        premises = tuple(self._of_events(premise, depth) for premise in why.premises)
        others = tuple(self._solution_with_events(other, depth) for other in why.others)
        if all(map(is_, premises, why.premises)) and all(map(is_, others, why.others)):
            return why
        return replace(why, premises=premises, others=others)

    def _of_events(self, proof: proofs.TripleProof, depth: int) -> proofs.TripleProof:
        return proofs.with_leaves(proof, lambda leaf: self._leaf_with_events(leaf, depth))

    def _all_with_events(
        self, leaves: Iterable[proofs.Lasting | proofs.InBackground], depth: int
    ) -> tuple[proofs.Lasting | proofs.InBackground, ...]:
        return tuple(self._leaf_with_events(leaf, depth) for leaf in leaves)

    def _leaf_with_events(
        self, leaf: proofs.Lasting | proofs.InBackground, depth: int
    ) -> proofs.Lasting | proofs.InBackground:
        return proofs.with_events(leaf, lambda event: self._event_or_name(event, depth))

    def _event_or_name(
        self, named: proofs.EventProof | proofs.EventLeaf, depth: int
    ) -> proofs.EventProof | proofs.EventLeaf:
        """The proof of an event that stated or ended something; its name where it lies too deep, was not kept
        or is of earlier rules.
        """
        event = self.history.event(named.id)
        if event is None or not self.history.opens(event):
            earlier = self.history.gone.values()
            kept = any(fact[3] == named.id for facts in earlier for fact in facts)
            return proofs.EventLeaf(_name_of(named), named.id, named.time, kept)
        if depth <= 0:
            return proofs.EventLeaf(_name_of(named), named.id, named.time, kept=True)
        return self.event(event, depth - 1)

    def _why(self, stream: str, fact: Fact) -> proofs.SolutionProof | proofs.Changed:
        """The answer that a fact is, or the change of answers."""
        program, (time, values, _, _) = self.history.program, fact
        standing = program.standing.get(stream)
        if standing is None:
            with self.instants.open(time) as derivations:
                return self._solution(program.queries[stream], values, derivations)
        select, begins = standing.select, standing.operator is RelationToStream.ISTREAM
        with self.instants.open(time, proofs.Of.BEFORE) as derivations:
            before = count(select, values, derivations, self.text)
            found = None if begins else self._solution(select, values, derivations)
        with self.instants.open(time, proofs.Of.LASTING) as derivations:
            after = count(select, values, derivations, self.text)
            found = found or self._solution(select, values, derivations)
        statements = self.history.statements
        moved: tuple[proofs.Lasting | proofs.InBackground, ...] = ()
        if statements is not None and not any(_moves(p, time, begins) for p in found.premises):
            moved = statements.moved(time, ended=begins)[:MOVED]
        rules = any(time == until for until, _ in self.history.programs)
        return proofs.Changed(standing.operator, found, before, after, moved, rules)

    def _solution(
        self, select: program.Select, values: Values, derivations: Derivations
    ) -> proofs.SolutionProof:
        if self._every:
            return alternatives(select, values, derivations, self.text)
        return solution(select, values, derivations, self.text)

    # -- what holds

    def _read_by_lars(self, name: str, start: Time, end: Time) -> list[Fact]:
        """The facts of a query, or the events of a rule, that LARS rules see in a stretch."""
        program = self.history.program
        if name not in program.selects:
            place, before = program.rule_index(name), self.history.gone.get(name, ())
            known = [*before, *(e.fact for e in self.history.events if e.rule == place)]
            return [fact for fact in known if start <= fact[0] <= end]
        times = [time for time in self.history.times() if start <= time <= end]
        if name not in program.standing:
            times = [time for time in times if self._graph_came(time)]
        return [fact for time in times for fact in self.instants.facts(time, name)]

    def _graph_came(self, time: Time) -> bool:
        instant = self.history.lasting.at(time)
        return bool(self.history.graphs(time)) if instant is None else instant.graph

    def _opened_fact(
        self, name: str, values: Values, after: Time, end: Time, depth: int
    ) -> proofs.FactProof | None:
        """The last fact of a query or rule with these values in `(after, end]`."""
        program = self.history.program
        facts = [fact for fact in self._read_by_lars(name, after + 1, end) if fact[1] == values]
        if not facts:
            return None
        chained = name not in program.selects
        variables = (
            program.rules[program.rule_index(name)].variables if chained else program.selects[name].variables
        )
        return self._fact(Position(name, name, variables, chained), facts[-1], depth)

    # -- windows

    def _candidates(self, index: int, conjunct: program.Conjunct, row: Row) -> Candidates | None:
        """What a conjunct sees; None where a head holds over more points than are gone through."""
        literal = self._rules[index]
        times, _ = window(literal.rule, conjunct, row)
        if lacks_reference(conjunct, row):
            return Candidates([], [])
        found = self._facts(index, conjunct.position, times.start, row[literal.rule.trigger.name][0])
        if found is None:
            return None
        return literal.candidates(conjunct, row, found, self._consumed(index, conjunct, row))

    def _facts(self, index: int, position: program.Position, start: Time, end: Time) -> list[Fact] | None:
        """The facts of a position's stream, as far as they were kept, and the rule was there; None where it
        is a head over more points than are gone through.
        """
        start = max(start, self.history.begun.get(self.history.program.rules[index].name, start))
        if position.chained:
            place = self.history.program.rule_index(position.stream)
            found = [e.fact for e in self.history.events if e.rule == place and start <= e.time <= end]
            return sorted(found, key=fact_key)
        if position.held:
            return self._held.facts(position.stream, start, end)
        begun = self.history.first_instant
        first = start if begun is None else max(start, begun)
        ticks = [t for d in rhythms_in_order(self._ticks[index]) for t in ticks_in(d, first, end)]
        for delay, event in self._delays[index].items():
            ticks += self._late(event, delay.duration, first, end)
        if sequences := self._seen[index]:
            ticks += [event.time for event in self.history.events if event.rule in sequences]
        return self.instants.between(index, position.stream, start, end, ticks)

    def _late(self, event: program.Position, duration: Time, first: Time, end: Time) -> list[Time]:
        """The ticks of an AFTER in `[first, end]`, where nothing lasts."""
        since, until = first - duration, end - duration
        if event.held:
            facts = self._held.facts(event.stream, since, until) or []
        else:
            facts = self._read_by_lars(event.stream, since, until)
        return sorted({fact[0] + duration for fact in facts})

    def _consumed(self, index: int, conjunct: program.Conjunct, row: Row) -> Mapping[Fact, KeptEvent]:
        """The facts that a rule consumed at a conjunct before a trigger's turn, each with its event."""
        rule, name = self.history.program.rules[index], conjunct.position.name
        if name not in rule.consuming:
            return {}
        place = [c.position.name for c in rule.chosen].index(name) + 1
        return self.history.consumed(index, place, row[rule.triggering.name])

    def _failed(self, index: int, conjunct: program.Conjunct, row: Row) -> tuple[str, ...]:
        """The parts of ON that are not true."""
        literal = self._rules[index]
        return tuple(
            self.text.expression(part) for part in parts(conjunct.on) if not literal.holds(part, row)
        )

    def _nearest(
        self, index: int, conjunct: program.Conjunct, row: Row, facts: Sequence[Fact]
    ) -> Fact | None:
        """The fact for which most parts of ON are true; of several the latest."""
        literal, name, tests = self._rules[index], conjunct.position.name, parts(conjunct.on)

        def true_parts(place: int) -> tuple[int, int]:
            extended = {**row, name: facts[place]}
            return sum(literal.holds(test, extended) for test in tests), place

        return facts[max(range(len(facts)), key=true_parts)] if facts else None

    # -- why not

    def why_not(self, name: str, time: Time, where: Mapping[str, Term]) -> list[proofs.WhyNot]:
        """For each trigger fact of a rule at an instant how far it got; the event where it fired.

        `where`: attributes of the trigger, or WITH variables, by name; what has another value is left out.
        """
        index = self.history.program.rule_index(name)
        rule = self.history.program.rules[index]
        if isinstance(rule.trigger, RowPattern):
            return self._sequences.why_not(index, time, where)
        fired = [e for e in self.history.events if e.rule == index and e.time == time]
        fired = [e for e in fired if _agrees(zip(rule.variables, e.bindings, strict=True), where)]
        found: list[proofs.WhyNot] = [self.event(event) for event in fired]
        triggers = self._triggers(index, time)
        first = rule.triggering
        variables = first.variables if isinstance(first, program.Position) else ()
        for fact in triggers:
            if any(event.facts[0] == fact for event in fired):
                continue
            if _agrees(zip(variables, fact[1], strict=True), where):
                found.append(self._followed(index, fact, time))
        return found or [self._no_trigger(rule, time)]

    def _triggers(self, index: int, time: Time) -> Sequence[Fact]:
        trigger = self.history.program.rules[index].trigger
        if isinstance(trigger, program.Tick):
            return [(time, (), 0, "")] if ticks_at(trigger.rhythm, time) else []
        if isinstance(trigger, program.After):
            return self._awaited(index, trigger, time)
        assert isinstance(trigger, program.Position), "sequences are explained by themselves"
        return self._facts(index, trigger, time, time) or []

    def _awaited(self, index: int, trigger: program.After, time: Time) -> Sequence[Fact]:
        """The facts that an AFTER follows at a time, if that has come."""
        position, when = trigger.position, time - trigger.duration
        if time > self.history.closed or (awaits_graph(position) and not self._graph_came(when)):
            return []
        return self._facts(index, position, when, when) or []

    def _followed(self, index: int, fact: Fact, time: Time) -> proofs.Blocked:
        """The furthest that a match from this trigger fact got."""
        rule, literal = self.history.program.rules[index], self._rules[index]
        trigger = self._fact(rule.triggering, fact, DEPTH)
        partial: list[Row] = [opening(rule, fact)]
        for place, conjunct in enumerate(rule.conjuncts):
            longer = [more for row in partial for more in self._continued(index, conjunct, row)]
            if not longer:
                steps = self._steps(index, rule.conjuncts[:place], partial[0], 0)
                return self._stopped(index, trigger, partial[0], steps, conjunct)
            partial = longer[:100]
        row, steps = partial[-1], self._steps(index, rule.conjuncts, partial[-1], 0)
        if rule.where is not None:
            failing = [r for r in partial if not literal.holds(rule.where, r)]
            if len(failing) == len(partial):
                false = [p for p in parts(rule.where) if not literal.holds(p, row)]
                return proofs.Blocked(
                    rule, trigger, steps, None, "WHERE " + " && ".join(map(self.text.expression, false))
                )
        for binding in rule.bindings:
            if all(literal.value(binding.expression, r) is None for r in partial):
                text = self.text.expression(binding.expression)
                return proofs.Blocked(
                    rule, trigger, steps, None, f"WITH ?{binding.variable} := {text} has no value"
                )
        return proofs.Blocked(
            rule,
            trigger,
            steps,
            None,
            "its graph is not valid: a literal as subject, or a predicate that is not an IRI",
        )

    def _continued(self, index: int, conjunct: program.Conjunct, row: Row) -> list[Row]:
        seen = self._candidates(index, conjunct, row)
        return [] if seen is None else self._rules[index].ways(conjunct, row, seen.passing)

    def _stopped(
        self,
        index: int,
        trigger: proofs.FactProof,
        row: Row,
        steps: tuple[proofs.ConjunctProof, ...],
        conjunct: program.Conjunct,
    ) -> proofs.Blocked:
        """Why a conjunct ended the first of the partial matches."""
        literal, name = self._rules[index], conjunct.position.name
        rule, seen = literal.rule, self._candidates(index, conjunct, row)
        if seen is None:
            return proofs.Blocked(rule, trigger, steps, conjunct, proofs.TOO_LONG, None)
        inside, passing = seen
        if isinstance(conjunct, program.Absent):
            blocker = self._fact(conjunct.position, passing[-1], DEPTH)
            return proofs.Blocked(
                rule, trigger, steps, conjunct, "there is one", len(inside), blocker=blocker
            )
        consumed = self._consumed(index, conjunct, row)
        for fact in reversed(inside):
            holds = conjunct.on is None or literal.holds(conjunct.on, {**row, name: fact})
            if holds and (consumer := consumed.get(fact)) is not None:
                return proofs.Blocked(
                    rule,
                    trigger,
                    steps,
                    conjunct,
                    "it was consumed",
                    len(inside),
                    fact,
                    consumed_by=consumer.id,
                    consumed_at=consumer.time,
                )
        nearest, outside = self._nearest(index, conjunct, row, literal.others(conjunct, row, inside)), False
        if nearest is None:
            time = row[rule.trigger.name][0]
            kept, there = self._facts(index, conjunct.position, self._oldest(), time) or [], set(inside)
            others = [fact for fact in literal.others(conjunct, row, kept) if fact not in there]
            nearest, outside = self._nearest(index, conjunct, row, others), True
        missing = () if nearest is None else self._failed(index, conjunct, {**row, name: nearest})
        nowhere = self._nowhere(index, conjunct, row) if nearest is None else None
        return proofs.Blocked(
            rule,
            trigger,
            steps,
            conjunct,
            "no candidate",
            len(inside),
            nearest,
            missing,
            outside,
            nowhere=nowhere,
        )

    def _nowhere(self, index: int, conjunct: program.Conjunct, row: Row) -> proofs.NoTrigger | None:
        """How far the patterns of a conjunct's query come in its window, where they come furthest; of several
        instants the last. None where it is not a plain query.
        """
        rule, program, position = self._rules[index].rule, self.history.program, conjunct.position
        if position.stream not in program.queries or position.stream in program.standing:
            return None
        inside, _ = window(rule, conjunct, row)
        times = [time for time in self.history.times() if time in inside and self._graph_came(time)]
        best: proofs.NoTrigger | None = None
        for time in reversed(times[-INSTANTS:]):
            with self.instants.open(time) as derivations:
                found = longest_prefix(program.queries[position.stream], derivations, self.text)
            patterns, count_, near, untrue, bound, not_then, fails = found
            if best is None or count_ > best.found:
                best = proofs.NoTrigger(
                    rule,
                    time,
                    True,
                    patterns,
                    count_,
                    tuple(near),
                    untrue=untrue,
                    bound=bound,
                    not_then=not_then,
                )
                best = replace(best, gone=self._gone(fails, time))
        return best

    def _oldest(self) -> Time:
        return min(self.history.times(), default=0)

    def _no_match(self, trigger: program.Trigger, time: Time) -> tuple[proofs.WhyNot, ...]:
        """Why the sequence that triggers a rule has no match at a time; nothing of another trigger."""
        sequences = {rule.name for rule in self.history.program.rules if isinstance(rule.trigger, RowPattern)}
        if not isinstance(trigger, Position) or trigger.stream not in sequences:
            return ()
        index = self.history.program.rule_index(trigger.stream)
        return tuple(self._sequences.why_not(index, time, {})[:SHOWN])

    def _no_trigger(self, rule: program.Rule, time: Time) -> proofs.NoTrigger:
        """Why the trigger has no fact at an instant."""
        program, trigger, due = self.history.program, rule.triggering, time
        if rule.delay and time > self.history.closed:
            return proofs.NoTrigger(rule, time, seen=True, ahead=self.history.closed)
        time -= rule.delay
        seen = bool(self.history.graphs(time))
        left_out = tuple(graph.place or "a graph" for graph in self.history.left_out(time))
        if not isinstance(trigger, Position) or trigger.chained:
            return proofs.NoTrigger(
                rule, due, seen, left_out=left_out, no_match=self._no_match(trigger, time)
            )
        if trigger.held:
            held = self._held.facts(trigger.stream.rpartition(" ")[2], time, time)
            failed = () if held else self._held.why_not(trigger.stream, time)
            unopened: tuple[str, ...] = (proofs.TOO_LONG,) if held is None else ()
            return proofs.NoTrigger(
                rule, due, seen, left_out=left_out, not_held=failed, held_before=bool(held), untrue=unopened
            )
        standing = program.standing.get(trigger.stream)
        select = program.selects[trigger.stream]
        operator = None if standing is None else standing.operator
        looked = {None: proofs.Of.INSTANT, RelationToStream.DSTREAM: proofs.Of.BEFORE}.get(
            operator, proofs.Of.LASTING
        )
        with self.instants.open(time, looked) as derivations:
            patterns, found, near, untrue, bound, not_then, fails = longest_prefix(
                select, derivations, self.text
            )
        nothing = proofs.NoTrigger(
            rule,
            due,
            seen,
            patterns,
            found,
            tuple(near),
            operator,
            left_out,
            untrue=untrue,
            bound=bound,
            not_then=not_then,
        )
        return replace(nothing, gone=self._gone(fails, time))

    def _gone(
        self, nodes: Sequence[Term | None] | None, time: Time
    ) -> tuple[proofs.Lasting | proofs.InBackground, ...]:
        """What was stated as a pattern without a match needs, and ended last, if an event ended it."""
        statements = self.history.statements
        if nodes is None or statements is None:
            return ()
        found = [one for one in statements.gone(nodes, time) if one.ended_by is not None]
        return self._all_with_events(found[:MOVED], DEPTH)


def _moves(proof: proofs.TripleProof, time: Time, begins: bool) -> bool:
    """Whether a statement below a proof begins, or ends, at a time."""
    todo, seen = [proof], {id(proof)}
    while todo:
        one = todo.pop()
        if isinstance(one, proofs.Lasting) and (one.start if begins else one.until) == time:
            return True
        if isinstance(one, proofs.InBackground) and not begins and one.until == time:
            return True
        below = [part for part in parts_of(one) if id(part) not in seen]
        seen.update(map(id, below))
        todo += below
    return False


def _name_of(event: proofs.EventProof | proofs.EventLeaf) -> str:
    return event.rule.name if isinstance(event, proofs.EventProof) else event.rule


def _agrees(values: Iterable[tuple[str, Term | None]], where: Mapping[str, Term]) -> bool:
    known = dict(values)
    return all(name not in known or known[name] == term for name, term in where.items())
