"""Accept a proof, or name the steps that do not follow.

Place:   every proof that a test or `--verify` makes goes through it.
Method:  each step is checked against its own claim, by the literal readings: leaves against the graphs and
         the background, a rule's instance against its body, a solution by asking the full engine over K(t)
         and over the premises alone, a choice by enumerating the window. It shares terms and the evaluator of
         expressions with the engines, and nothing else.
Why not: trusting the search that made the proof: a proof is worth what can be checked without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import assert_never

import pyoxigraph as ox

from dotr.datalog.owl_lists import rules_over
from dotr.events import Clock, Fact, Time
from dotr.explain.held_checker import HeldChecker, facts_below
from dotr.explain.held_proofs import Holding
from dotr.explain.proofs import (
    Changed,
    Chosen,
    ConjunctProof,
    Counted,
    Derived,
    Ending,
    EventLeaf,
    EventProof,
    FactProof,
    InBackground,
    InStream,
    Lasting,
    NothingThere,
    Of,
    SolutionProof,
    TripleProof,
    Unopened,
)
from dotr.expressions.aggregates import summarise
from dotr.expressions.evaluate import compile_condition
from dotr.ir import (
    Absent,
    AggregateAtom,
    Atom,
    Attribute,
    Between,
    BindAtom,
    Choose,
    Conjunct,
    Every,
    FilterAtom,
    Node,
    NotAtom,
    Program,
    RelationToStream,
    Rule,
    Select,
    Selection,
    Summarise,
    TimeOf,
    Var,
    Within,
)
from dotr.late import dataclass
from dotr.rdf.terms import Term, Triple
from dotr.reference.datalog import closure, compute, counted
from dotr.reference.enrich import LiteralEnricher, quad
from dotr.reference.lasting import LiteralStatements
from dotr.reference.tesla import LiteralRule, Row, fact_key
from dotr.sparql.distribution import facts_of
from dotr.sparql.full import FullQuery
from dotr.tesla.identity import match_hash
from dotr.tesla.references import occasions_seen, ticks_seen

_EVER: Time = -(2**127)


@dataclass(slots=True)
class Checker:
    """Owns the findings about proofs over one history: `found` is empty while every step follows.

    `stated`: instants at which a graph came and the triples that the stream states then, labelled; those of
    the horizon are needed to see that what is said to be absent is. `statements`: where something lasts, all
    that were ever made, as the literal reading makes them. `composites`: events of the program as facts, by
    rule; `consumed`: (rule, position) → facts consumed, each with the trigger's fact of the event that did.
    """

    program: Program
    background: Collection[Triple]
    stated: Mapping[Time, Sequence[Triple]]
    clock: Clock
    composites: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    consumed: Mapping[tuple[str, str], Sequence[tuple[Fact, Fact]]] = field(default_factory=dict)
    statements: LiteralStatements | None = None
    found: list[str] = field(default_factory=list)
    _literal: LiteralEnricher | None = None
    _states: dict[tuple[Time, Of], frozenset[Triple]] = field(default_factory=dict)
    _facts: dict[tuple[str, Time], list[Fact]] = field(default_factory=dict)

    def event(self, proof: EventProof) -> None:
        """Check an event and everything below it."""
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
        self._claim(conjuncts == rule.conjuncts, f"{proof.id} does not have the rule's conjuncts")
        for step in proof.steps:
            self._step(rule, literal, step, row, proof.time)
        if rule.where is not None:
            self._claim(literal.holds(rule.where, row), f"WHERE of {proof.id} is not true")
        values = tuple(literal.value(binding.expression, row) for binding in rule.bindings)
        self._claim(values == proof.values, f"WITH of {proof.id} has other values")

    def triple(self, proof: TripleProof, time: Time, of: Of = Of.INSTANT) -> None:
        """Check the proof of a triple at an instant: in K, in M, or in M before it."""
        match proof:
            case InStream(triple=triple, time=at):
                self._claim(at == time and of is Of.INSTANT, f"{triple} is of another instant")
                self._claim(triple in self.stated.get(time, ()), f"{triple} is not stated at {time}")
            case InBackground(triple=triple, until=until):
                self._claim(triple in self.background, f"{triple} is not in the background")
                if self.statements is not None:
                    self._lasts(triple, _EVER, until, _moment(time, of))
            case Lasting(triple=triple, start=start, until=until):
                known = until if proof.ending in (Ending.REPLACED, Ending.DELETED) else None
                self._lasts(triple, start, known, _moment(time, of))
            case Unopened(triple=triple):
                self._claim(triple in self._state(time, of), f"{triple} does not hold at {time}")
            case Derived():
                self._derived(proof, time, of)
                for premise in proof.premises:
                    self.triple(premise, time, of)

    def _lasts(self, triple: Triple, start: Time | None, until: Time | None, moment: Time) -> None:
        """A statement from `start` holds then, and ends at `until`, where that is said."""
        made = () if self.statements is None else self.statements.made
        holding = [s for s in made if s.triple == triple and s.start == start and s.holds(moment)]
        self._claim(bool(holding), f"{triple} is not a statement from {start} that holds at {moment}")
        ends = until is None or any(s.until == until for s in holding)
        self._claim(ends, f"{triple} does not end at {until}")

    def _derived(self, proof: Derived, time: Time, of: Of) -> None:
        """One instance of a rule."""
        env = dict(proof.bindings)
        heads = [_instance(head, env) for head in proof.rule.heads]
        self._claim(proof.triple in heads, f"{proof.triple} is not a head of its rule")
        premises = {premise.triple for premise in proof.premises}
        for item in proof.rule.body:
            match item:
                case Atom():
                    self._claim(_instance(item, env) in premises, f"{proof.triple} lacks a premise")
                case NotAtom(atom=atom):
                    there = any(_matches(atom, env, triple) for triple in self._state(time, of))
                    self._claim(not there, f"{proof.triple}: what NOT excludes is there")
                case FilterAtom(condition=condition):
                    holds = compile_condition(condition, _leaf, clock=Clock())(env)
                    self._claim(holds, f"{proof.triple}: a FILTER is not true")
                case BindAtom(expression=expression, variable=variable):
                    value = compute(expression)(env)
                    self._claim(value == env.get(variable.name), f"{proof.triple}: a BIND has another value")
                case AggregateAtom():
                    self._totalled(proof, item, time, of)
                case _:
                    assert_never(item)
        aggregates = [item for item in proof.rule.body if isinstance(item, AggregateAtom)]
        told = [one.atom for one in proof.totals]
        self._claim(told == aggregates, f"{proof.triple} does not have its rule's AGGREGATE")

    def _totalled(self, proof: Derived, item: AggregateAtom, time: Time, of: Of) -> None:
        """One AGGREGATE: counted again, literally."""
        env = dict(proof.bindings)
        members, agrees = counted(item, env, self._state(time, of))
        self._claim(agrees, f"{proof.triple}: an AGGREGATE has another value")
        atoms = [atom for atom in item.body if isinstance(atom, Atom)]
        rows = [[_instance(atom, member) for atom in atoms] for member in members]
        for one in proof.totals:
            if one.atom == item:
                self._claim(one.rows == len(members), f"{proof.triple}: {len(members)} solutions are counted")
                self._claim(len(one.shown) == min(10, one.rows), f"{proof.triple}: solutions are left out")
                for row in one.shown:
                    self._claim([p.triple for p in row] in rows, f"{proof.triple}: that is not counted")
                    for premise in row:
                        self.triple(premise, time, of)

    # -- facts

    def _fact(self, position: str, proof: FactProof, rule: Rule) -> None:
        self._claim(proof.position == position, f"{proof.position} is not {position}")
        streams = {p.name: p for p in rule.positions}
        match proof.why:
            case None:
                trigger = rule.trigger
                ticks = isinstance(trigger, Every) and proof.fact[0] % trigger.duration == 0
                self._claim(ticks and not proof.fact[1], f"{position} is not a tick")
            case EventProof() as why:
                self._claim(why.rule.name == streams[position].stream, f"{position} is another rule's event")
                self._claim(proof.fact[3] == why.id, f"{position} is another event")
                self._claim(proof.fact[1] == why.values, f"{position} has other values than its event")
                self.event(why)
            case EventLeaf(id=name):
                self._claim(proof.fact[3] == name, f"{position} is another event")
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
        def given(name: str) -> list[Fact]:
            if name not in self.program.selects:
                return list(self.composites.get(name, ()))
            times = {*self.stated}
            if name in self.program.standing and self.statements is not None:
                made = self.statements.made
                times |= {time for s in made for time in (s.start, s.until) if _EVER < time < -_EVER}
            return [fact for time in sorted(times) for fact in self.facts(name, time)]

        return HeldChecker(self.program, self.clock, min(self.stated, default=0), given)

    def _changed(self, stream: str, proof: FactProof, change: Changed) -> None:
        """A stream of changes has the fact, and there are so many answers on both sides of it."""
        standing, (time, values, _, _) = self.program.standing[stream], proof.fact
        self._claim(change.operator is standing.operator, f"{proof.position} is of another stream")
        for of, told in ((Of.BEFORE, change.before), (Of.LASTING, change.after)):
            there = [
                fact for fact in self._ask(standing.select, self._state(time, of), time) if fact[1] == values
            ]
            self._claim(
                told is None or told == len(there), f"{proof.position}: {len(there)} answers, not {told}"
            )
        side = Of.LASTING if change.operator is RelationToStream.ISTREAM else Of.BEFORE
        self._solution(stream, proof, change.solution, side)
        for one in change.moved:
            begins = change.operator is RelationToStream.ISTREAM
            moved = one.until if begins else one.start if isinstance(one, Lasting) else None
            self._claim(moved == time, f"{proof.position}: {one.triple} did not change then")

    def _solution(self, stream: str, proof: FactProof, why: SolutionProof, of: Of) -> None:
        """The fact is an answer at its instant, and of the premises alone where nothing is left out."""
        time = proof.fact[0]
        self._claim(stream == proof.stream, f"{proof.position} is of another stream")
        self._claim(proof.fact in self.facts(stream, time), f"{proof.position}: {proof.fact} is not a fact")
        for premise in why.premises:
            self.triple(premise, time, of)
        if why.opaque or why.rows > 10:
            return
        triples = {premise.triple for premise in why.premises}
        select = replace(self.program.selects[stream], limit=None, offset=0)
        answers = self._ask(select, triples, time)
        self._claim(
            proof.fact[1] in [fact[1] for fact in answers],
            f"{proof.position} does not follow from its premises",
        )

    def facts(self, stream: str, time: Time) -> list[Fact]:
        """The facts of a query at an instant, literally."""
        if (stream, time) not in self._facts:
            self._facts[stream, time] = self._found(stream, time)
        return self._facts[stream, time]

    def _found(self, stream: str, time: Time) -> list[Fact]:
        standing = self.program.standing.get(stream)
        if standing is None:
            return self._ask(self.program.queries[stream], self._state(time), time)
        before, after = (
            Counter(fact[1] for fact in self._ask(standing.select, self._state(time, of), time))
            for of in (Of.BEFORE, Of.LASTING)
        )
        gained = after - before if standing.operator is RelationToStream.ISTREAM else before - after
        return facts_of(gained.elements(), time)

    def _ask(self, select: Select, triples: Collection[Triple], time: Time) -> list[Fact]:
        store = ox.Store()
        store.bulk_extend(quad(triple) for triple in triples)
        query = FullQuery(select)
        return facts_of(query.rows(store, self.clock.term(time)), time)

    def _state(self, time: Time, of: Of = Of.INSTANT) -> frozenset[Triple]:
        """K(t), M(t) or M before t, closed from nothing."""
        if (time, of) not in self._states:
            graph = self.stated.get(time, ()) if of is Of.INSTANT else ()
            if self.statements is not None:
                lasting = self.statements.at(_moment(time, of))
                rules = rules_over(self.program, lasting)
                self._states[time, of] = frozenset(closure(rules, lasting | set(graph)))
            else:
                if self._literal is None:
                    rules = rules_over(self.program, self.background)
                    self._literal = LiteralEnricher(rules, self.background)
                self._states[time, of] = self._literal.state(graph)
        return self._states[time, of]

    # -- conjuncts

    def _step(self, rule: Rule, literal: LiteralRule, step: ConjunctProof, row: Row, now: Time) -> None:
        """One conjunct, by enumeration; `row` is continued."""
        conjunct, name = step.conjunct, step.conjunct.position.name
        inside, passing = self._candidates(rule, literal, conjunct, row, now)
        self._claim(
            step.inside == len(inside), f"{name}: {len(inside)} facts are in the window, not {step.inside}"
        )
        match step:
            case Chosen(fact=proof, passing=count):
                assert isinstance(conjunct, Choose)
                self._fact(name, proof, rule)
                self._claim(
                    count == len(passing), f"{name}: there are {len(passing)} candidates, not {count}"
                )
                self._claim(
                    proof.fact in _taken(conjunct, passing),
                    f"{name}: {conjunct.selection} takes another fact",
                )
                row[name] = proof.fact
            case NothingThere():
                self._claim(isinstance(conjunct, Absent) and not passing, f"{name}: there is one")
            case Counted(value=value, facts=facts):
                assert isinstance(conjunct, Summarise)
                self._claim(list(facts) == passing, f"{name}: other facts are counted")
                self._claim(value == _total(literal, conjunct, row, passing), f"{name}: its value is another")
                row["?" + conjunct.variable] = value

    def _candidates(
        self, rule: Rule, literal: LiteralRule, conjunct: Conjunct, row: Row, now: Time
    ) -> tuple[list[Fact], list[Fact]]:
        position, name = conjunct.position, conjunct.position.name
        inside_window, itself = _window(rule, conjunct, row)
        if position.chained:
            known = list(self.composites.get(position.stream, ()))
        elif position.held:
            known = list(self._lars().seen(position.stream, now))
        else:
            times = {*self.stated, *self._ticks(rule, now), *self._jumps(rule, now)}
            known = [
                fact for time in times if inside_window(time) for fact in self.facts(position.stream, time)
            ]
        inside = sorted([f for f in known if inside_window(f[0]) and f != itself], key=fact_key)
        turn = fact_key(row[rule.trigger.name])
        gone = {fact for by, fact in self.consumed.get((rule.name, name), ()) if fact_key(by) < turn}
        taken = gone if isinstance(conjunct, Choose) else set()
        passing = [
            fact
            for fact in inside
            if fact not in taken and (conjunct.on is None or literal.holds(conjunct.on, {**row, name: fact}))
        ]
        return inside, passing

    def _ticks(self, rule: Rule, now: Time) -> list[Time]:
        """Ticks that a rule saw, its own and those of the rules it refers to."""
        first = min(self.stated, default=now)
        durations = ticks_seen(self.program)[self.program.rules.index(rule)]
        return [t for d in durations for t in range(-(-first // d) * d, now + 1, d)]

    def _jumps(self, rule: Rule, now: Time) -> list[Time]:
        """Instants without a graph at which a stream of changes that the rule sees has a fact."""
        if self.statements is None:
            return []
        seen = occasions_seen(self.program)[self.program.rules.index(rule)]
        streams = [stream for stream in self.program.standing if stream in seen]
        ends = {time for s in self.statements.made for time in (s.start, s.until) if _EVER < time <= now}
        return [time for time in sorted(ends) if any(self.facts(stream, time) for stream in streams)]

    def _claim(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self._say(otherwise)

    def _say(self, what: str) -> None:
        self.found.append(what)


def _moment(time: Time, of: Of) -> Time:
    return time - 1 if of is Of.BEFORE else time


def _window(rule: Rule, conjunct: Conjunct, row: Row) -> tuple[Callable[[Time], bool], Fact | None]:
    """(whether a time is in the window, the reference itself where it is not a candidate)."""
    match conjunct.window:
        case Within(duration=duration, reference=reference, before=True):
            end = row[reference][0]
            return (lambda t: end - duration <= t < end), None
        case Within(duration=duration, reference=reference):
            end = row[reference][0]
            stream = next((p.stream for p in rule.positions if p.name == reference), None)
            same = stream == conjunct.position.stream and not isinstance(conjunct, Summarise)
            return (lambda t: end - duration <= t <= end), row[reference] if same else None
        case Between(start=a, end=b):
            after, until = row[a][0], row[b][0]
            return (lambda t: after < t < until), None


def _taken(conjunct: Choose, passing: list[Fact]) -> list[Fact]:
    if conjunct.selection is Selection.EACH:
        return passing
    if conjunct.selection is Selection.LAST:
        return passing[max(0, len(passing) - conjunct.k) :]
    return passing[: conjunct.k]


def _total(literal: LiteralRule, conjunct: Summarise, row: Row, facts: Sequence[Fact]) -> Term | None:
    if conjunct.argument is None:
        return summarise(conjunct.function, conjunct.distinct, [None] * len(facts), star=True)
    name, argument = conjunct.position.name, conjunct.argument
    terms = [literal.value(argument, {**row, name: fact}) for fact in facts]
    return summarise(conjunct.function, conjunct.distinct, terms)


def _instance(atom: Atom, env: Mapping[str, Term]) -> tuple[Term | None, ...]:
    return tuple(_node(node, env) for node in (atom.subject, atom.predicate, atom.object))


def _node(node: Node, env: Mapping[str, Term]) -> Term | None:
    return env.get(node.name) if isinstance(node, Var) else node


def _matches(atom: Atom, env: Mapping[str, Term], triple: Triple) -> bool:
    local: dict[str, Term] = {}
    for node, term in zip((atom.subject, atom.predicate, atom.object), triple, strict=True):
        known = _node(node, env)
        if known is None and isinstance(node, Var):
            known = local.setdefault(node.name, term)
        if known != term:
            return False
    return True


def _leaf(node: Var | Attribute | TimeOf) -> Callable[[Mapping[str, Term]], Term | None]:
    assert isinstance(node, Var), "Datalog has variables only"
    name = node.name
    return lambda env: env.get(name)
