"""What was there, by the literal readings: K and M at any time, facts of queries, what rules could see.

Place:   what checker.py asks; it knows nothing of proofs.
Method:  each state is closed from nothing, each query asked of the full engine, and where rules changed on
         the way, both by the program of that time. Answers are kept, since many steps ask the same.
Why not: the stores of the engine, or the run's facts: a proof made from them is checked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pyoxigraph as ox
from msgspec import Struct, field

from dotr.datalog.owl_lists import rules_over
from dotr.events import Clock, Fact, Time
from dotr.explain.proofs import Of
from dotr.expressions.literal_numbers import row_key
from dotr.ir import DatalogRule, Program, RelationToStream, Rule, Select
from dotr.rdf.terms import Triple
from dotr.reference.datalog import LiteralStates, in_rdf
from dotr.reference.enrich import quad
from dotr.reference.lasting import LiteralStatements
from dotr.sparql.distribution import facts_of
from dotr.sparql.full import FullQuery
from dotr.tesla.digest import rule_digests, timeline_digest
from dotr.tesla.references import occasions_seen, ticks_seen

EVER: Time = -(2**127)
"""Before every time."""


def moment_of(time: Time, of: Of) -> Time:
    """The time at which M, or K, is looked at; times are whole µs."""
    return time - 1 if of is Of.BEFORE else time


class LiteralHistory(Struct):
    """Owns the states and facts of one history.

    `stated`: instants at which a graph came and the triples that the stream states then, labelled; those of
    the horizon are needed to see that what is said to be absent is. `statements`: where something lasts, all
    that were ever made, as the literal reading makes them. `past`: programs that held before `program`, each
    with the time from which it held no more; `statements` have the changes of background that came with them.
    """

    program: Program
    background: Collection[Triple]
    stated: Mapping[Time, Sequence[Triple]]
    clock: Clock
    statements: LiteralStatements | None = None
    past: Sequence[tuple[Time, Program]] = ()
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
        for until, program in reversed(self.past):
            if timeline_digest(program) != timeline_digest(self.program):
                return until
        return min(self.stated, default=0)

    def instants(self, rule: Rule, now: Time) -> set[Time]:
        """The times up to `now` that a rule may have seen: graphs, ticks of its own and of rules it refers
        to, and ends and beginnings of what lasts at which a stream of changes that it sees has a fact.
        """
        place = self.program.rules.index(rule)
        since, first = self.begun(rule), min(self.stated, default=now)
        ticks = {t for d in ticks_seen(self.program)[place] for t in range(-(-first // d) * d, now + 1, d)}
        seen = occasions_seen(self.program)[place]
        streams = [stream for stream in self.program.standing if stream in seen]
        jumps = {
            time
            for time in (self.turns() if streams else ())
            if since <= time <= now and any(self.facts(stream, time) for stream in streams)
        }
        return {time for time in {*self.stated, *ticks, *jumps} if since <= time}

    def turns(self) -> set[Time]:
        """The times at which what lasts may change."""
        made = () if self.statements is None else self.statements.made
        ends = {time for one in made for time in (one.start, one.until) if EVER < time < -EVER}
        return ends | {time for time, _ in self.past}


def _digests(program: Program) -> dict[str, str]:
    return {rule.name: digest for rule, digest in zip(program.rules, rule_digests(program), strict=True)}
