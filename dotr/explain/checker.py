"""Accept a proof, or name the steps that do not follow.

Place:   every proof that a test or `--verify` makes goes through it.
Method:  each step is checked against its own claim, by the literal readings: leaves against the graphs and
         the background, a rule's instance against its body, a solution by asking the full engine over K(t)
         and over the premises alone, a choice by enumerating the window. It shares terms and the evaluator of
         expressions with the engines, and nothing else. What can be read off a query comes first.
Why not: trusting the search that made the proof: a proof is worth what can be checked without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from dotr import ir
from dotr.events import Clock, Fact, Time
from dotr.explain.held_checker import HeldChecker, facts_below
from dotr.explain.held_proofs import Holding
from dotr.explain.literal_history import LiteralHistory
from dotr.explain.proofs import (
    Changed,
    Chosen,
    ConjunctProof,
    Counted,
    EventLeaf,
    EventProof,
    FactProof,
    NothingThere,
    Of,
    SolutionProof,
    TripleProof,
)
from dotr.explain.triple_checker import TripleChecker
from dotr.rdf.terms import Term, Triple
from dotr.rdf.values import decode
from dotr.reference.operators import LITERAL, Row
from dotr.reference.tesla import LiteralRule, fact_key
from dotr.temporal.identity import match_hash

_ROWS: Final = ir.Var("dotr_rows")


def is_aggregate(select: ir.Select) -> bool:
    """Whether it groups its solutions."""
    values = [one.expression for one in select.projection]
    return bool(select.group_by) or any(map(_aggregates, [*values, *select.having]))


def _aggregates(expression: ir.Expression | None) -> bool:
    match expression:
        case ir.Aggregate():
            return True
        case ir.Call(arguments=arguments):
            return any(map(_aggregates, arguments))
        case _:
            return False


def with_rows(select: ir.Select) -> ir.Select:
    """The query of groups, with the number of solutions in each as one column more, the last."""
    counted = ir.Projection(_ROWS, ir.Aggregate("COUNT", None))
    return replace(select, projection=(*select.projection, counted), order_by=())


def row_count(term: Term | None) -> int:
    """The number that such a column has."""
    value = None if term is None else decode(term)
    assert isinstance(value, int), "a count is an integer"
    return value


def excluded(select: ir.Select) -> int:
    """How many MINUS and NOT EXISTS every solution of a query must pass."""
    found = 0
    for element in select.where.elements:
        if isinstance(element, ir.Minus):
            found += 1
        elif isinstance(element, ir.Filter):
            condition = element.condition
            found += isinstance(condition, ir.Exists) and condition.negated
    return found


SHOWN = 10
"""Rows of an aggregate whose triples are premises."""


@dataclass(slots=True)
class Checker:
    """Owns the findings about proofs over one history: `found` is empty while every step follows.

    `composites`: events of the program as facts, by rule, as far back as they were kept; `consumed`: (rule,
    position) → facts consumed, each with the trigger's fact of the event that did.
    """

    history: LiteralHistory
    composites: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    consumed: Mapping[tuple[str, str], Sequence[tuple[Fact, Fact]]] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    _triples: TripleChecker = field(init=False)
    _held_checker: HeldChecker | None = None
    _checked: dict[int, EventProof] = field(default_factory=dict)  # by id()

    def __post_init__(self) -> None:
        self._triples = TripleChecker(self.history, self._claim)

    @property
    def program(self) -> ir.Program:
        return self.history.program

    @property
    def clock(self) -> Clock:
        return self.history.clock

    def event(self, proof: EventProof) -> None:
        """Check an event and everything below it."""
        if id(proof) in self._checked:
            return
        self._checked[id(proof)] = proof
        rule = proof.rule
        if rule not in self.program.rules:
            self._say(f"{rule.name} is not a rule of the program")
            return
        literal = LiteralRule(rule, self.clock)
        facts = [proof.trigger.fact, *(step.fact.fact for step in proof.steps if isinstance(step, Chosen))]
        name = f"urn:dotr:{rule.name}:{match_hash(proof.time, tuple(facts))}"
        self._claim(name == proof.id, f"{proof.id} is not the name of what it matched")
        self._claim(proof.trigger.fact[0] == proof.time, f"{proof.id} does not have its trigger's time")
        self._fact(rule.trigger.name, proof.trigger, rule)
        row: Row = {rule.trigger.name: proof.trigger.fact}
        conjuncts = tuple(step.conjunct for step in proof.steps)
        if conjuncts != rule.conjuncts:
            self._say(f"{proof.id} does not have the rule's conjuncts")
            return
        for step in proof.steps:
            self._step(rule, literal, step, row, proof.time)
        if any(isinstance(step, Counted) and step.inside is None for step in proof.steps):
            return  # WHERE and WITH may read what was not counted
        if rule.where is not None:
            self._claim(literal.holds(rule.where, row), f"WHERE of {proof.id} is not true")
        values = tuple(literal.value(binding.expression, row) for binding in rule.bindings)
        self._claim(values == proof.values, f"WITH of {proof.id} has other values")

    def triple(self, proof: TripleProof, time: Time, of: Of = Of.INSTANT) -> None:
        """Check the proof of a triple at an instant: in K, in M, or in M before it."""
        self._triples.check(proof, time, of)

    # -- facts

    def _fact(self, position: str, proof: FactProof, rule: ir.Rule) -> None:
        self._claim(proof.position == position, f"{proof.position} is not {position}")
        streams = {p.name: p for p in rule.positions}
        match proof.why:
            case None:
                trigger = rule.trigger
                ticks = isinstance(trigger, ir.Every) and proof.fact[0] % trigger.duration == 0
                self._claim(ticks and not proof.fact[1], f"{position} is not a tick")
            case EventProof() as why:
                self._claim(why.rule.name == streams[position].stream, f"{position} is another rule's event")
                self._claim(proof.fact[3] == why.id, f"{position} is another event")
                self._claim(proof.fact[1] == why.values, f"{position} has other values than its event")
                self._claim(proof.fact[0] == why.time, f"{position} has another time than its event")
                self.event(why)
            case EventLeaf(rule=name, id=id_):
                self._claim(proof.fact[3] == id_, f"{position} is another event")
                self._claim(name == streams[position].stream, f"{position} is another rule's event")
                known = proof.fact in self.composites.get(name, ())
                self._claim(known, f"{position}: there is no such event")
            case SolutionProof():
                self._solution(streams[position].stream, proof, proof.why, Of.INSTANT)
            case Holding() as holding:
                self._held(streams[position].stream, proof.fact, holding)
            case Changed() as change:
                self._changed(streams[position].stream, proof, change)

    def _held(self, stream: str, fact: Fact, holding: Holding) -> None:
        """What holds, and what came at the leaves of it."""
        self.found += self._lars().faults(stream, fact, holding)
        for placed, leaf in facts_below(holding):
            same = leaf.fact[1] == placed.values and leaf.stream == placed.name
            self._claim(same, f"{placed.name} is supported by another fact")
            if isinstance(leaf.why, SolutionProof):
                self._solution(placed.name, leaf, leaf.why, Of.INSTANT)
            elif isinstance(leaf.why, EventProof):
                self._claim(leaf.why.rule.name == placed.name, f"{placed.name} is another rule's event")
                values = leaf.why.values
                self._claim(values == placed.values, f"{placed.name} has other values than its event")
                self.event(leaf.why)

    def _lars(self) -> HeldChecker:
        if self._held_checker is None:
            self._held_checker = self._new_held_checker()
        return self._held_checker

    def _new_held_checker(self) -> HeldChecker:
        history, first = self.history, self.history.first_point()

        def given(name: str) -> list[Fact]:
            if name not in self.program.selects:
                return [fact for fact in self.composites.get(name, ()) if fact[0] >= first]
            times = {*history.stated, *(history.turns() if name in self.program.standing else ())}
            found = sorted(time for time in times if time >= first)
            return [fact for time in found for fact in history.facts(name, time)]

        return HeldChecker(self.program, self.clock, first, given)

    def _changed(self, stream: str, proof: FactProof, change: Changed) -> None:
        """A stream of changes has the fact, and there are so many answers on both sides of it."""
        standing, (time, values, _, _) = self.program.standing[stream], proof.fact
        self._claim(change.operator is standing.operator, f"{proof.position} is of another stream")
        for of, count in ((Of.BEFORE, change.before), (Of.LASTING, change.after)):
            answers = self.history.ask(standing.select, self.history.state(time, of), time)
            there = [fact for fact in answers if fact[1] == values]
            self._claim(
                count is None or count == len(there), f"{proof.position}: {len(there)} answers, not {count}"
            )
        side = Of.LASTING if change.operator is ir.RelationToStream.ISTREAM else Of.BEFORE
        self._solution(stream, proof, change.solution, side)
        rules = any(time == until for until, _ in self.history.past)
        self._claim(rules == change.rules, f"{proof.position}: whether other rules hold from then on")
        for one in change.moved:
            begins = change.operator is ir.RelationToStream.ISTREAM
            moved = self._triples.moved(one, time, begins=not begins)
            self._claim(moved, f"{proof.position}: {one.triple} did not change then")

    def _solution(self, stream: str, proof: FactProof, why: SolutionProof, of: Of) -> None:
        """The fact is an answer at its instant, and of the premises alone where nothing is left out."""
        time = proof.fact[0]
        self._claim(stream == proof.stream, f"{proof.position} is of another stream")
        self._claim(
            proof.fact in self.history.facts(stream, time), f"{proof.position}: {proof.fact} is not a fact"
        )
        for premise in why.premises:
            self.triple(premise, time, of)
        if why.opaque:
            return
        select, triples = self.program.selects[stream], {premise.triple for premise in why.premises}
        whole = replace(select, limit=None, offset=0)
        if is_aggregate(select):
            self._rows(proof, why, whole, triples, of)
        if why.rows <= SHOWN:
            answers = [fact[1] for fact in self.history.ask(whole, triples, time)]
            self._claim(proof.fact[1] in answers, f"{proof.position} does not follow from its premises")
        left_out = excluded(select)
        named = sum(one.startswith(("MINUS: no ", "no ")) for one in why.absent)
        self._claim(named >= left_out, f"{proof.position}: something is left out that must be absent")

    def _rows(
        self, proof: FactProof, why: SolutionProof, select: ir.Select, triples: Collection[Triple], of: Of
    ) -> None:
        """How many rows an aggregate counts, and that as many as are shown have their triples."""
        time, values = proof.fact[:2]
        counting = with_rows(select)
        answers = self.history.ask(counting, self.history.state(time, of), time)
        counts = [row_count(fact[1][-1]) for fact in answers if fact[1][:-1] == values]
        self._claim(why.rows in counts, f"{proof.position}: not {why.rows} rows are counted")
        shown = self.history.ask(replace(counting, having=()), triples, time)
        most = max((row_count(fact[1][-1]) for fact in shown), default=0)
        self._claim(most >= min(why.rows, SHOWN), f"{proof.position}: rows that are counted are left out")

    # -- conjuncts

    def _step(self, rule: ir.Rule, literal: LiteralRule, step: ConjunctProof, row: Row, now: Time) -> None:
        """One conjunct, by enumeration; `row` is continued."""
        conjunct, name = step.conjunct, step.conjunct.position.name
        if step.inside is None:  # as many points would be gone through here
            self._claim(conjunct.position.held, f"{name}: its window is not opened, and is not of a head")
            if isinstance(step, Chosen):
                self._fact(name, step.fact, rule)
                row[name] = step.fact.fact
            elif isinstance(step, Counted) and isinstance(conjunct, ir.Summarise):
                row["?" + conjunct.variable] = None
            return
        inside, passing = self._candidates(rule, literal, conjunct, row, now)
        self._claim(
            step.inside == len(inside), f"{name}: {len(inside)} facts are in the window, not {step.inside}"
        )
        ways = LITERAL[conjunct.operator].extend(conjunct, row, passing, literal.value)
        match step:
            case Chosen(fact=proof, passing=count):
                self._fact(name, proof, rule)
                self._claim(
                    count == len(passing), f"{name}: there are {len(passing)} candidates, not {count}"
                )
                self._claim(
                    any(way.get(name) == proof.fact for way in ways),
                    f"{name}: {conjunct.word} takes another fact",
                )
                row[name] = proof.fact
            case NothingThere(nearest=nearest):
                self._claim(conjunct.operator is ir.Operator.NOT and ways != [], f"{name}: there is one")
                stream = conjunct.position.stream
                taken = [row[p.name] for p in rule.positions if p.stream == stream and p.name in row]
                others = [fact for fact in inside if fact not in taken]
                named = nearest in others if others else nearest is None
                self._claim(named, f"{name}: another fact is named as the nearest")
            case Counted(value=value, facts=facts):
                assert isinstance(conjunct, ir.Summarise)
                self._claim(list(facts) == passing, f"{name}: other facts are counted")
                variable = "?" + conjunct.variable
                self._claim(value == ways[0][variable], f"{name}: its value is another")
                row[variable] = value

    def _candidates(
        self, rule: ir.Rule, literal: LiteralRule, conjunct: ir.Conjunct, row: Row, now: Time
    ) -> tuple[list[Fact], list[Fact]]:
        position, name = conjunct.position, conjunct.position.name
        inside_window, itself = _window(rule, conjunct, row)
        if position.chained:
            known = list(self.composites.get(position.stream, ()))
        elif position.held:
            known = list(self._lars().seen(position.stream, now))
        else:
            times = [time for time in self.history.instants(rule, now) if inside_window(time)]
            known = [fact for time in times for fact in self.history.facts(position.stream, time)]
        begun = self.history.begun(rule)
        known = [fact for fact in known if fact[0] >= begun]
        inside = sorted([f for f in known if inside_window(f[0]) and f != itself], key=fact_key)
        turn = fact_key(row[rule.trigger.name])
        gone = {fact for by, fact in self.consumed.get((rule.name, name), ()) if fact_key(by) < turn}
        taken = set() if LITERAL[conjunct.operator].sees_consumed else gone
        passing = [
            fact
            for fact in inside
            if fact not in taken and (conjunct.on is None or literal.holds(conjunct.on, {**row, name: fact}))
        ]
        return inside, passing

    def _claim(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self._say(otherwise)

    def _say(self, what: str) -> None:
        self.found.append(what)


def _window(rule: ir.Rule, conjunct: ir.Conjunct, row: Row) -> tuple[Callable[[Time], bool], Fact | None]:
    """(whether a time is in the window, the reference itself where it is not a candidate)."""
    match conjunct.window:
        case ir.Within(duration=duration, reference=reference, before=True):
            end = row[reference][0]
            return (lambda t: end - duration <= t < end), None
        case ir.Within(duration=duration, reference=reference):
            end = row[reference][0]
            stream = next((p.stream for p in rule.positions if p.name == reference), None)
            same = stream == conjunct.position.stream and not LITERAL[conjunct.operator].counts_reference
            return (lambda t: end - duration <= t <= end), row[reference] if same else None
        case ir.Between(start=a, end=b):
            after, until = row[a][0], row[b][0]
            return (lambda t: after < t < until), None
