"""Accept a proof, or name the steps that do not follow.

Place:   every proof that a test or `--verify` makes is checked here.
Method:  each step is checked against its own claim, by the literal readings: leaves against the graphs and
         the background, a rule's instance against its body, a solution by asking the full engine over K(t)
         and over the premises alone, a choice by enumerating the window. The checker shares terms and the
         evaluator of expressions with the engines, and nothing else. What can be read off a query is checked
         first.
         Triples (`TripleChecker`): a derivation is an instance of a rule of the program under the bindings
         that it names; a rule that was instantiated over a schema, or that stands for an axiom, needs that
         schema among its premises. NOT is checked by a search, and AGGREGATE by counting again, in the
         literal state.
         LARS heads (`HeldChecker`): the literal reading is run once over all stated facts and asked as of any
         of its points. At the point at which a rule was read, every literal must hold under the bindings that
         the proof names, the head must be the atom at its point, and the facts named as support must be
         there, as often as the proof states.
         `LiteralHistory`: each state is closed from nothing and each query asked of the full engine; where
         rules changed in between, both use the program of that time. Answers are cached, since many steps ask
         for the same. `checker_of`, for `--verify`: only the messages of a run, the events that it emitted
         and its rule changes are taken (composites are named by what they matched, as in language.md);
         nothing may have been forgotten, so such a record has the reach `EVERYTHING`.
Why not: trusting the search that made the proof: a proof is worth what can be checked without it. The stores
         of the engine, or the run's facts: a proof made from them is what is checked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Final, TypeAlias

import pyoxigraph as ox
from msgspec import Struct, field
from msgspec.structs import replace

from dotr import program
from dotr.detect.analysis import awaits_graph, delays_seen, occasions_seen, ticks_seen
from dotr.detect.digest import rule_digests, timeline_digest
from dotr.enrich.owl import (
    INVERSE_OF,
    SAME_AS,
    TripleSet,
    ground,
    instance,
    instantiable,
    list_rules,
    replaces,
    rules_over,
    schema_atoms,
    solutions,
    written_out,
)
from dotr.errors import DataError
from dotr.events import Clock, Fact, Time, Values, no_fact
from dotr.explain import proofs as held_proofs
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
    Holding,
    InBackground,
    InStream,
    Lasting,
    NothingThere,
    Of,
    SolutionProof,
    Totalled,
    TripleProof,
    Unopened,
)
from dotr.expressions.evaluate import compile_condition
from dotr.expressions.literal_numbers import literally, row_key
from dotr.extract.full import FullQuery
from dotr.extract.sharing import facts_of
from dotr.joins.plan import holding
from dotr.program import (
    Conjunct,
    DatalogRule,
    FactWindow,
    Position,
    Program,
    RelationToStream,
    Rule,
    Select,
    Var,
    WindowAtom,
)
from dotr.program.names import match_hash
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import Term, Triple
from dotr.rdf.values import decode
from dotr.reference.calendars import ticks_at, ticks_in
from dotr.reference.effects import LiteralEffect, next_moment
from dotr.reference.enrich import LiteralStates, compute, counted, in_rdf, quad
from dotr.reference.lars import LiteralLars, unified
from dotr.reference.lars import Row as LarsRow
from dotr.reference.lasting import FOREVER, LiteralStatements, TimedStatement, hold_of
from dotr.reference.operators import Row, group_of, summed_up
from dotr.reference.sequences import LiteralSequence, Mapped, PatternRow
from dotr.reference.tesla import Candidates, LiteralRule, fact_key, opening, window

EVER: Time = -(2**127)
"""Before every time."""

Followed: TypeAlias = Callable[[Position, Time], Sequence[Fact]]
"""(a position over a rule or a head's changes, a time) → its facts, at least those up to the time."""


def _nothing(_position: Position, _until: Time) -> Sequence[Fact]:
    return ()


def moment_of(time: Time, of: Of) -> Time:
    """The time at which M, or K, is examined; times are whole µs."""
    return time - 1 if of is Of.BEFORE else time


class LiteralHistory(Struct):
    """Owns the states and facts of one history.

    `stated`: instants at which a graph came and the triples that the stream states then, labelled; those of
    the horizon are needed to see that what a proof calls absent is so. `statements`: where something lasts,
    all that were ever made, as the literal reading makes them. `past`: programs that held before `program`,
    each with the time from which it held no more; `statements` have the changes of background that came with
    them. `effects`: time → the effects that happen then, each with its event.
    """

    program: Program
    background: Collection[Triple]
    stated: Mapping[Time, Sequence[Triple]]
    clock: Clock
    statements: LiteralStatements | None = None
    past: Sequence[tuple[Time, Program]] = ()
    effects: Mapping[Time, Sequence[tuple[EventLeaf, LiteralEffect]]] = field(default_factory=dict)
    _literal: LiteralStates | None = None
    _states: dict[tuple[Time, Of], frozenset[Triple]] = field(default_factory=dict)
    _generalized: dict[tuple[Time, Of], frozenset[Triple]] = field(default_factory=dict)
    _rules: dict[tuple[Time, Of], tuple[DatalogRule, ...]] = field(default_factory=dict)
    _facts: dict[tuple[str, Time], list[Fact]] = field(default_factory=dict)
    _begun: dict[str, Time] = field(default_factory=dict)

    def program_at(self, time: Time) -> Program:
        """The program that holds at a time."""
        return next((program for until, program in self.past if time < until), self.program)

    def rules(self, time: Time, of: Of = Of.INSTANT) -> tuple[DatalogRule, ...]:
        """The rules that hold, with those that OWL lists stand for."""
        if (time, of) not in self._rules:
            self._rules[time, of] = rules_over(self.program_at(moment_of(time, of)), self._lasting(time, of))
        return self._rules[time, of]

    def _lasting(self, time: Time, of: Of) -> Collection[Triple]:
        if self.statements is None:
            return self.background
        return self.statements.at(moment_of(time, of))

    def state(self, time: Time, of: Of = Of.INSTANT) -> frozenset[Triple]:
        """K(t), M(t) or M before t, closed from nothing."""
        if (time, of) not in self._states:
            self._states[time, of] = frozenset(in_rdf(self.generalized(time, of)))
        return self._states[time, of]

    def generalized(self, time: Time, of: Of) -> frozenset[Triple]:
        """`state`, with the triples of anonymous properties, which proofs may use."""
        if (time, of) not in self._generalized:
            graph = self.stated.get(time, ()) if of is Of.INSTANT else ()
            if self.statements is not None:
                found = LiteralStates(self.rules(time, of), self._lasting(time, of)).generalized_at(graph)
            else:
                if self._literal is None:
                    self._literal = LiteralStates(self.rules(time, of), self.background)
                found = self._literal.generalized_at(graph)
            self._generalized[time, of] = frozenset(found)
        return self._generalized[time, of]

    def facts(self, stream: str, time: Time) -> list[Fact]:
        """The facts of a query, or of a stream of changes, at an instant."""
        if (stream, time) not in self._facts:
            self._facts[stream, time] = self._found(stream, time)
        return self._facts[stream, time]

    def _found(self, stream: str, time: Time) -> list[Fact]:
        program = self.program_at(time)
        standing = program.standing.get(stream)
        if standing is None:
            return self.ask(program.queries[stream], self.state(time), time)
        before, after = (
            Counter(fact[1] for fact in self.ask(standing.select, self.state(time, of), time))
            for of in (Of.BEFORE, Of.LASTING)
        )
        gained = after - before if standing.operator is RelationToStream.ISTREAM else before - after
        return facts_of(gained.elements(), time, row_key)

    def ask(self, select: Select, triples: Collection[Triple], time: Time) -> list[Fact]:
        """The answers of a query over some triples, as facts."""
        store = ox.Store()
        store.bulk_extend(quad(triple) for triple in triples)
        return facts_of(FullQuery(select).rows(store, self.clock.term(time)), time, row_key)

    # -- what a rule could see

    def begun(self, rule: Rule) -> Time:
        """Since when a rule is what it is: what came before a change of it, or of what it stands on, it did
        not see.
        """
        if not self._begun:
            now = _digests(self.program)
            past = [(until, _digests(program)) for until, program in self.past]
            for name, digest in now.items():
                others = (until for until, then in reversed(past) if then.get(name) != digest)
                self._begun[name] = next(others, EVER)
        return self._begun[rule.name]

    def first_point(self) -> Time:
        """Since when what holds is derived by the LARS rules of now."""
        for until, before in reversed(self.past):
            if timeline_digest(before) != timeline_digest(self.program):
                return until
        return min(self.stated, default=0)

    def instants(self, rule: Rule, now: Time, found: Followed = _nothing) -> set[Time]:
        """The times up to `now` that a rule may have seen: graphs, ticks of its own and of rules it refers
        to, ends and beginnings of what lasts at which a stream of changes that it sees has a fact, and
        deadlines at which a sequence has one. `found`: facts that are found while rules run.
        """
        place = self.program.rules.index(rule)
        since, first = self.begun(rule), min(self.stated, default=now)
        ticks = {t for d in ticks_seen(self.program)[place] for t in ticks_in(d, first, now)}
        seen = occasions_seen(self.program)[place]
        streams = [stream for stream in self.program.standing if stream in seen]
        jumps = {
            time
            for time in (self.turns() if streams else ())
            if since <= time <= now and any(self.facts(stream, time) for stream in streams)
        }
        late = {
            time + delay.duration
            for delay, event in delays_seen(self.program)[place].items()
            for time in self._followed(event, now - delay.duration, found)
        }
        sequences = {r.name for r in self.program.rules if isinstance(r.trigger, RowPattern)} & seen
        read = {p.stream: p for r in self.program.rules for p in r.positions if p.stream in sequences}
        due = {fact[0] for position in read.values() for fact in found(position, now) if fact[0] <= now}
        return {time for time in {*self.stated, *ticks, *jumps, *late, *due} if since <= time}

    def _followed(self, event: Position, until: Time, found: Followed) -> set[Time]:
        """The times up to `until` at which an AFTER's event has a fact."""
        if event.within_instant:
            return {fact[0] for fact in found(event, until) if fact[0] <= until}
        times = {*self.stated, *(() if awaits_graph(event) else self.turns())}
        return {time for time in times if time <= until and self.facts(event.stream, time)}

    def turns(self) -> set[Time]:
        """The times at which what lasts may change."""
        made = () if self.statements is None else self.statements.made
        ends = {time for one in made for time in (one.start, one.until) if EVER < time < -EVER}
        return ends | {time for time, _ in self.past}


def _digests(program: Program) -> dict[str, str]:
    return {rule.name: digest for rule, digest in zip(program.rules, rule_digests(program), strict=True)}


Claim = Callable[[bool, str], None]
"""(whether it is so, what is wrong otherwise)."""


class TripleChecker(Struct):
    """Owns what was checked: no step twice, since proofs share their parts."""

    history: LiteralHistory
    claim: Claim
    event: Callable[[EventProof], None] = lambda proof: None
    _done: dict[tuple[int, Time, Of], TripleProof] = field(default_factory=dict)
    _known: dict[program.DatalogRule, bool] = field(default_factory=dict)

    def check(self, proof: TripleProof, time: Time, of: Of) -> None:
        """Check a proof and everything below it, however deep that is."""
        todo = [proof]
        while todo:
            one = todo.pop()
            if (id(one), time, of) in self._done:
                continue
            self._done[id(one), time, of] = one  # held, so that its id is not another's
            if isinstance(one, Derived):
                self._derived(one, time, of)
                todo += one.premises
                todo += [premise for total in one.totals for row in total.shown for premise in row]
            else:
                self._leaf(one, time, of)

    def _leaf(self, proof: InStream | InBackground | Lasting | Unopened, time: Time, of: Of) -> None:
        history, triple = self.history, proof.triple
        match proof:
            case InStream(time=at):
                self.claim(at == time and of is Of.INSTANT, f"{triple} is of another instant")
                self.claim(triple in history.stated.get(time, ()), f"{triple} is not stated at {time}")
            case InBackground(until=until):
                self.claim(triple in history.background, f"{triple} is not in the background")
                if history.statements is not None:
                    found = self.holding(triple, EVER, moment_of(time, of))
                    ends = until is None or any(s.until == until for s in found)
                    self.claim(bool(found) and ends, f"{triple} does not hold then, or until {until}")
                self.events_of(proof)
            case Lasting(start=start):
                found = [s for s in self.holding(triple, start, moment_of(time, of)) if _agrees(proof, s)]
                self.claim(bool(found), f"{triple} is not such a statement from {start}")
                self.events_of(proof)
            case Unopened():
                self.claim(triple in history.generalized(time, of), f"{triple} does not hold at {time}")

    def holding(self, triple: Triple, start: Time | None, moment: Time) -> list[TimedStatement]:
        """The statements of a triple from `start` that hold at a moment."""
        made = () if self.history.statements is None else self.history.statements.made
        return [s for s in made if s.triple == triple and s.start == start and s.holds(moment)]

    def events_of(self, proof: Lasting | InBackground) -> None:
        """A statement was stated, and ended, by the effects of the events that it names, or by messages."""
        triple, history = proof.triple, self.history
        programs = (history.program, *(program for _, program in history.past))
        lines = [hold_of(triple, program.holds) for program in programs]
        ahead = any(hold is not None and hold.start is not None for hold in lines)
        if isinstance(proof, Lasting) and not proof.inserted and proof.start is not None:
            if proof.stated_by is not None:
                at = self._happened(proof.stated_by, lambda effect: triple in effect.stated)
                begins = at is not None and (at == proof.start or (ahead and at < proof.start))
                self.claim(begins, f"{triple} is not stated by {proof.stated_by.id}")
            else:
                there = triple in history.stated.get(proof.start, ())
                self.claim(there or ahead, f"no message states {triple} at {proof.start}")
        elif isinstance(proof, Lasting):
            self.claim(proof.stated_by is None, f"{triple} is inserted, by no event")
        replaced = isinstance(proof, Lasting) and proof.ending is Ending.REPLACED
        over = isinstance(proof, InBackground) or proof.ending in (Ending.REPLACED, Ending.DELETED)

        def ends(effect: LiteralEffect) -> bool:
            if replaced:
                return any(other[:2] == triple[:2] for other in effect.stated)
            return effect.ends(triple)

        if proof.ended_by is not None:
            at = self._happened(proof.ended_by, ends)
            known = at is not None and over and proof.until is not None
            self.claim(
                known and (at == proof.until or (replaced and ahead)),
                f"{triple} is not ended by {proof.ended_by.id}",
            )
        elif over and proof.until is not None and not (replaced and ahead):
            nobody = not any(ends(effect) for _, effect in history.effects.get(proof.until, ()))
            self.claim(nobody, f"{triple} is ended by an event, which is not named")

    def _happened(self, event: EventProof | EventLeaf, does: Callable[[LiteralEffect], bool]) -> Time | None:
        """When the effect of an event happened, if it does that; the event itself is checked, too."""
        if isinstance(event, EventProof):
            self.event(event)
        name = event.rule.name if isinstance(event, EventProof) else event.rule
        at = next_moment(event.time, self.history.clock)
        found = (
            effect
            for one, effect in self.history.effects.get(at, ())
            if (one.rule, one.id, one.time) == (name, event.id, event.time)
        )
        return at if any(does(effect) for effect in found) else None

    def moved(self, proof: Lasting | InBackground, time: Time, begins: bool) -> bool:
        """Whether a statement begins, or ends, at a time."""
        made = () if self.history.statements is None else self.history.statements.made
        start = EVER if isinstance(proof, InBackground) else proof.start
        return any(
            s.triple == proof.triple and s.start == start and (s.start if begins else s.until) == time
            for s in made
        )

    def _derived(self, proof: Derived, time: Time, of: Of) -> None:
        """One instance of a rule."""
        env, claim, triple = dict(proof.bindings), self.claim, proof.triple
        premises = {premise.triple for premise in proof.premises}
        claim(self._is_rule(proof.rule, premises, time, of), f"{triple}: its rule is not one of the program")
        known = self.history.state(time, of) if proof.inverses else ()
        for one, other in proof.inverses:
            stated = (one, INVERSE_OF, other) in known or (other, INVERSE_OF, one) in known
            claim(stated, f"{triple}: {one} is not the inverse of {other}")
        heads = [_instance(head, env) for head in proof.rule.heads]
        claim(triple in heads, f"{triple} is not a head of its rule")
        absent: list[tuple[Term | None, ...]] = []
        for item in proof.rule.body:
            match item:
                case program.Atom():
                    claim(_instance(item, env) in premises, f"{triple} lacks a premise")
                case program.NotAtom(atom=atom):
                    absent.append(_instance(atom, env))
                    free = isinstance(atom.predicate, program.Var)  # stands for IRIs
                    known = (self.history.state if free else self.history.generalized)(time, of)
                    there = any(_matches(atom, env, other) for other in known)
                    claim(not there, f"{triple}: what NOT excludes is there")
                case program.FilterAtom(condition=condition):
                    holds = compile_condition(condition, _getter, clock=Clock(), reading=literally)(env)
                    claim(holds, f"{triple}: a FILTER is not true")
                case program.BindAtom(expression=expression, variable=variable):
                    value = compute(expression)(env)
                    claim(value == env.get(variable.name), f"{triple}: a BIND has another value")
                case program.AggregateAtom():
                    self._totalled(proof, item, time, of)
        claim(sorted(map(repr, absent)) == sorted(map(repr, proof.absent)), f"{triple}: a NOT is left out")
        aggregates = [item for item in proof.rule.body if isinstance(item, program.AggregateAtom)]
        opened = [one.atom for one in proof.totals]
        claim(opened == aggregates, f"{triple} does not have its rule's AGGREGATE")

    def _totalled(self, proof: Derived, item: program.AggregateAtom, time: Time, of: Of) -> None:
        """One AGGREGATE: counted again, literally."""
        env, claim, triple = dict(proof.bindings), self.claim, proof.triple
        members, agrees = counted(item, env, self.history.state(time, of))
        claim(agrees, f"{triple}: an AGGREGATE has another value")
        atoms = [atom for atom in item.body if isinstance(atom, program.Atom)]
        rows = [[_instance(atom, member) for atom in atoms] for member in members]
        for one in proof.totals:
            if one.atom == item:
                self._counted(one, rows, triple)

    def _counted(self, one: Totalled, rows: list[list[tuple[Term | None, ...]]], triple: Triple) -> None:
        self.claim(one.rows == len(rows), f"{triple}: {len(rows)} solutions are counted")
        self.claim(len(one.shown) == min(10, one.rows), f"{triple}: solutions are left out")
        for row in one.shown:
            self.claim([p.triple for p in row] in rows, f"{triple}: that is not counted")

    def _is_rule(self, rule: program.DatalogRule, premises: Collection[Triple], time: Time, of: Of) -> bool:
        """Whether a rule is one of the program, of an axiom that is among the premises, or an instance of
        one over schema that is.
        """
        written = self.history.program_at(moment_of(time, of)).datalog
        if any(_has(other, rule) for other in written):
            return True
        try:
            lists = list_rules(sorted(premises))
        except DataError:  # a list lacks a cell
            lists = ()
        if any(_has(other, rule) for other in lists if other in self.history.rules(time, of)):
            return True
        known = TripleSet(premises)
        named = {(a.subject, a.predicate, a.object) for a in rule.body if isinstance(a, program.Atom)}
        for other in filter(instantiable, written):
            atoms = schema_atoms(other)
            for values in solutions(atoms, known):
                kept = {triple for atom in atoms if (triple := ground(atom, values)) in named}
                made = instance(other, atoms, values, kept)
                if made is not None and _has(made, rule):
                    return True
        return self._is_exchange(rule, time, of)

    def _is_exchange(self, rule: program.DatalogRule, time: Time, of: Of) -> bool:
        """Whether a rule is one that replaces equals, with constants for its variable predicates."""
        state = self.history.generalized(time, of)
        rules = [other for other in self.history.rules(time, of) if replaces(other)]
        if not rules:
            return False
        relations = {relation for triple in state for relation in holding(triple)}
        equalities = TripleSet(triple for triple in state if triple[1] == SAME_AS)
        return any(_has(other, rule) for other in written_out(rules, relations, equalities))


def _has(rule: program.DatalogRule, part: program.DatalogRule) -> bool:
    """Whether a rule gives at least what another one gives, from the same body."""
    return rule.body == part.body and set(part.heads) <= set(rule.heads)


def _agrees(proof: Lasting, statement: TimedStatement) -> bool:
    """Whether a statement is of the kind that is claimed, and ends so; an end that is to come is the latest
    one.
    """
    if proof.inserted == statement.held:
        return False
    match proof.ending:
        case Ending.REPLACED:
            return statement.latest and statement.until == proof.until
        case Ending.DELETED:
            return statement.until == proof.until
        case Ending.NEXT_VALUE:
            return statement.latest and (proof.until is None or statement.until <= proof.until)
        case Ending.TIME:
            return not statement.latest and proof.until is not None and statement.until <= proof.until
        case Ending.OPEN:
            return not statement.latest and proof.until is None and statement.until <= FOREVER


def _instance(atom: program.Atom, env: Mapping[str, Term]) -> tuple[Term | None, ...]:
    return tuple(_node(node, env) for node in (atom.subject, atom.predicate, atom.object))


def _node(node: program.Node, env: Mapping[str, Term]) -> Term | None:
    return env.get(node.name) if isinstance(node, program.Var) else node


def _matches(atom: program.Atom, env: Mapping[str, Term], triple: Triple) -> bool:
    local: dict[str, Term] = {}
    for node, term in zip((atom.subject, atom.predicate, atom.object), triple, strict=True):
        known = _node(node, env)
        if known is None and isinstance(node, program.Var):
            known = local.setdefault(node.name, term)
        if known != term:
            return False
    return True


def _getter(
    node: program.Var | program.Attribute | program.TimeOf,
) -> Callable[[Mapping[str, Term]], Term | None]:
    assert isinstance(node, program.Var), "Datalog has variables only"
    name = node.name
    return lambda env: env.get(name)


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

    def shown(self, step: held_proofs.LarsStep, row: LarsRow) -> bool:
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

    def _support(self, literal: WindowAtom, row: LarsRow) -> tuple[int, Time | None]:
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


_ROWS: Final = program.Var("dotr_rows")


def is_aggregate(select: program.Select) -> bool:
    """Whether it groups its solutions."""
    values = [one.expression for one in select.projection]
    return bool(select.group_by) or any(map(_aggregates, [*values, *select.having]))


def _aggregates(expression: program.Expression | None) -> bool:
    match expression:
        case program.Aggregate():
            return True
        case program.Call(arguments=arguments):
            return any(map(_aggregates, arguments))
        case _:
            return False


def with_rows(select: program.Select) -> program.Select:
    """The query of groups, with the number of solutions in each as one column more, the last."""
    counted = program.Projection(_ROWS, program.Aggregate("COUNT", None))
    return replace(select, projection=(*select.projection, counted), order_by=())


def row_count(term: Term | None) -> int:
    """The number that such a column has."""
    value = None if term is None else decode(term)
    assert isinstance(value, int), "a count is an integer"
    return value


def excluded(select: program.Select) -> int:
    """How many MINUS and NOT EXISTS every solution of a query must pass."""
    found = 0
    for element in select.where.elements:
        if isinstance(element, program.Minus):
            found += 1
        elif isinstance(element, program.Filter):
            condition = element.condition
            found += isinstance(condition, program.Exists) and condition.negated
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
    composites: Mapping[str, Sequence[Fact]] = dataclass_field(default_factory=dict)
    consumed: Mapping[tuple[str, str], Sequence[tuple[Fact, Fact]]] = dataclass_field(default_factory=dict)
    found: list[str] = dataclass_field(default_factory=list)
    _triples: TripleChecker = dataclass_field(init=False)
    _held_checker: HeldChecker | None = None
    _checked: dict[int, EventProof] = dataclass_field(default_factory=dict)  # by id()

    def __post_init__(self) -> None:
        self._triples = TripleChecker(self.history, self._claim, self.event)

    @property
    def program(self) -> Program:
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
        if isinstance(rule.trigger, RowPattern):
            self._sequence(proof, rule, rule.trigger)
            return
        literal = LiteralRule(rule, self.clock)
        facts = (proof.trigger.fact, *_matched(proof.steps))
        name = f"urn:dotr:{rule.name}:{match_hash(proof.time, facts)}"
        self._claim(name == proof.id, f"{proof.id} is not the name of what it matched")
        due = proof.trigger.fact[0] + rule.delay
        self._claim(due == proof.time, f"{proof.id} does not have its trigger's time")
        self._fact(rule.triggering.name, proof.trigger, rule)
        row: Row = opening(rule, proof.trigger.fact)
        conjuncts = tuple(step.conjunct for step in proof.steps)
        if conjuncts != rule.conjuncts:
            self._say(f"{proof.id} does not have the rule's conjuncts")
            return
        for step in proof.steps:
            self._step(literal, step, row)
        if any(isinstance(step, Counted) and step.inside is None for step in proof.steps):
            return  # WHERE and WITH may read what was not counted
        if rule.where is not None:
            self._claim(literal.holds(rule.where, row), f"WHERE of {proof.id} is not true")
        values = tuple(literal.value(binding.expression, row) for binding in rule.bindings)
        self._claim(values == proof.values, f"WITH of {proof.id} has other values")

    def _sequence(self, proof: EventProof, rule: Rule, pattern: RowPattern) -> None:
        """A match: its name, its rows, and that the literal reading finds it at the first of them."""
        places = (n for n, source in enumerate(pattern.sources) if source.name == proof.trigger.position)
        begun = next(places, len(pattern.sources))  # no source: the name differs
        name = f"urn:dotr:{rule.name}:{match_hash(proof.time, (proof.trigger.fact,) * (begun + 1))}"
        self._claim(name == proof.id, f"{proof.id} is not the name of what it matched")
        for shown in proof.rows:
            self._fact(shown.fact.position, shown.fact, rule)
        if not proof.rows:
            return
        start, rows = proof.rows[0].fact.fact[0] - pattern.within, []
        times = [t for t in self.history.instants(rule, proof.time, self._given) if t >= start]
        for number, source in enumerate(pattern.sources):
            if source.chained:
                known = [f for f in self.composites.get(source.stream, ()) if start <= f[0] <= proof.time]
            elif source.held:
                return  # points of a head are not gone through again
            else:
                known = [fact for time in times for fact in self.history.facts(source.stream, time)]
            rows += [PatternRow(number, fact) for fact in known]
        rows.sort(key=lambda row: (row.fact[0], row.source, fact_key(row.fact)))
        literal = LiteralSequence(pattern, rule.bindings, self.clock)
        taken = [row.fact.fact for row in proof.rows]
        elements = tuple(row.element for row in proof.rows)
        own = [row for row in rows if literal.key(row) is not None]
        found = False
        for row in own:
            part = [other for other in own if literal.key(other) == literal.key(row)]
            if (row.source, row.fact) == (begun, taken[0]):
                given, certain = literal.at(part, place := part.index(row))
                there = [other.fact for other in part[place : place + len(given)]] == taken
                values = literal.values(part, Mapped(place, given, proof.time)) if given else ()
                found = found or (
                    there and (given, values) == (elements, proof.values) and certain <= proof.time
                )
        self._claim(found, f"{proof.id} is no match of its rows")

    def triple(self, proof: TripleProof, time: Time, of: Of = Of.INSTANT) -> None:
        """Check the proof of a triple at an instant: in K, in M, or in M before it."""
        self._triples.check(proof, time, of)

    # -- facts

    def _fact(self, position: str, proof: FactProof, rule: Rule) -> None:
        self._claim(proof.position == position, f"{proof.position} is not {position}")
        streams = {p.name: p for p in rule.positions}
        match proof.why:
            case None:
                trigger = rule.trigger
                ticks = isinstance(trigger, program.Tick) and ticks_at(trigger.rhythm, proof.fact[0])
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
        side = Of.LASTING if change.operator is program.RelationToStream.ISTREAM else Of.BEFORE
        self._solution(stream, proof, change.solution, side)
        rules = any(time == until for until, _ in self.history.past)
        self._claim(rules == change.rules, f"{proof.position}: whether other rules hold from then on")
        for one in change.moved:
            begins = change.operator is program.RelationToStream.ISTREAM
            moved = self._triples.moved(one, time, begins=not begins)
            self._claim(moved, f"{proof.position}: {one.triple} did not change then")
            self._triples.events_of(one)

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
        self, proof: FactProof, why: SolutionProof, select: Select, triples: Collection[Triple], of: Of
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

    def _step(self, literal: LiteralRule, step: ConjunctProof, row: Row) -> None:
        """One conjunct, by enumeration; `row` is continued."""
        rule, conjunct, name = literal.rule, step.conjunct, step.conjunct.position.name
        if step.inside is None:  # as many points would be gone through here
            self._claim(conjunct.position.held, f"{name}: its window is not opened, and is not of a head")
            if isinstance(step, Chosen) and step.group is not None:
                row[name] = step.group
            elif isinstance(step, Chosen):
                self._fact(name, step.fact, rule)
                row[name] = step.fact.fact
            elif isinstance(step, NothingThere) and isinstance(conjunct, program.Choose):
                row[name] = no_fact(len(conjunct.position.variables))
            elif isinstance(step, Counted) and isinstance(conjunct, program.Summarise):
                row["?" + conjunct.variable] = None
            return
        inside, passing = self._candidates(literal, conjunct, row)
        self._claim(
            step.inside == len(inside), f"{name}: {len(inside)} facts are in the window, not {step.inside}"
        )
        ways = literal.ways(conjunct, row, passing)
        match step:
            case Chosen(fact=proof, passing=count, group=group):
                self._fact(name, proof, rule)
                taken, among = proof.fact, len(passing)
                if group is not None and isinstance(conjunct, program.Choose):
                    there = proof.fact in passing and group_of(conjunct, proof.fact, group[0]) == group
                    self._claim(there, f"{name}: a fact is named that is not of its group")
                    taken, among = group, len(ways)
                self._claim(count == among, f"{name}: there are {among} candidates, not {count}")
                self._claim(
                    any(way.get(name) == taken for way in ways), f"{name}: {conjunct.word} takes another fact"
                )
                row[name] = taken
            case NothingThere(nearest=nearest):
                none_there = conjunct.operator is program.Operator.NOT and ways != []
                if isinstance(conjunct, program.Choose):
                    none_there = conjunct.optional and not passing
                    row[name] = no_fact(len(conjunct.position.variables))
                self._claim(none_there, f"{name}: there is one")
                others = literal.others(conjunct, row, inside)
                named = nearest in others if others else nearest is None
                self._claim(named, f"{name}: another fact is named as the nearest")
            case Counted(value=value, facts=facts):
                assert isinstance(conjunct, program.Summarise)
                self._claim(list(facts) == summed_up(conjunct, passing), f"{name}: other facts are counted")
                variable = "?" + conjunct.variable
                self._claim(value == ways[0][variable], f"{name}: its value is another")
                row[variable] = value

    def _candidates(self, literal: LiteralRule, conjunct: Conjunct, row: Row) -> Candidates:
        rule, position, trigger = literal.rule, conjunct.position, row[literal.rule.triggering.name]
        now = row[rule.trigger.name][0]
        if position.chained:
            known = list(self.composites.get(position.stream, ()))
        elif position.held:
            known = list(self._lars().seen(position.stream, now))
        else:
            inside, _ = window(rule, conjunct, row)
            times = [t for t in self.history.instants(rule, now, self._given) if t in inside]
            known = [fact for time in times for fact in self.history.facts(position.stream, time)]
        begun, turn = self.history.begun(rule), fact_key(trigger)
        by = self.consumed.get((rule.name, position.name), ())
        gone = {fact for event, fact in by if fact_key(event) < turn}
        seen = sorted([fact for fact in known if fact[0] >= begun], key=fact_key)
        return literal.candidates(conjunct, row, seen, gone)

    def _given(self, position: Position, until: Time) -> Sequence[Fact]:
        """The facts of a rule, or of a head's changes."""
        if position.chained:
            return self.composites.get(position.stream, ())
        return list(self._lars().seen(position.stream, until))

    def _claim(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self._say(otherwise)

    def _say(self, what: str) -> None:
        self.found.append(what)


def _matched(steps: Sequence[ConjunctProof]) -> Iterator[Fact]:
    """The facts of a match behind the trigger's, in order."""
    for step in steps:
        if isinstance(step, Chosen):
            yield step.fact.fact if step.group is None else step.group
        elif isinstance(step, NothingThere) and isinstance(step.conjunct, program.Choose):
            yield no_fact(len(step.conjunct.position.variables))
