"""A match with its choices, and what stopped one that did not come about.

Place:   over history.py (what was there) and solutions.py (why a fact was).
Method:  the table of language.md, sec. 3, read literally for one trigger fact: for each conjunct the facts in
         its window, those of them that pass ON, what was taken. What was emitted is given; what was not is
         followed conjunct by conjunct, and the furthest that any partial match got is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from dotr import ir
from dotr.events import Fact, Time, Values
from dotr.explain import proofs
from dotr.explain.derivations import Derivations
from dotr.explain.holding import HeldExplainer
from dotr.explain.instants import KeptInstants
from dotr.explain.proofs import parts_of
from dotr.explain.record import KeptEvent, Record
from dotr.explain.solutions import Text, alternatives, count, longest_prefix, solution
from dotr.explain.windows import Shown, bounds, neighbours
from dotr.rdf.terms import Term
from dotr.reference.operators import LITERAL, Row
from dotr.reference.tesla import LiteralRule, fact_key
from dotr.tesla.conditions import parts
from dotr.tesla.references import ticks_seen

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
        self._ticks = ticks_seen(history.program)
        self._solutions: dict[tuple[str, Fact], proofs.SolutionProof | proofs.Changed] = {}
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
        facts = iter(event.facts)
        trigger = self._fact(rule.trigger, next(facts), depth)
        row: Row = {rule.trigger.name: event.facts[0]}
        steps: list[proofs.ConjunctProof] = []
        for conjunct in rule.conjuncts:
            chosen = next(facts) if isinstance(conjunct, ir.Choose) else None
            steps.append(self._step(event.rule, conjunct, row, chosen, event.time, depth))
        return proofs.EventProof(rule, event.id, event.time, trigger, tuple(steps), event.bindings)

    def _step(
        self, index: int, conjunct: ir.Conjunct, row: Row, chosen: Fact | None, time: Time, depth: int
    ) -> proofs.ConjunctProof:
        """One conjunct of a match, `row` continued by it."""
        window = self._window(index, conjunct, row, time)
        name = conjunct.position.name
        match conjunct:
            case ir.Choose():
                assert chosen is not None
                row[name] = chosen
                fact = self._fact(conjunct.position, chosen, depth)
                return proofs.Chosen(conjunct, fact, window.count, len(window.passing))
            case ir.Absent():
                others = neighbours(self.history.program.rules[index], conjunct, row, window.inside)
                nearest = self._nearest(index, conjunct, row, others)
                failed = () if nearest is None else self._failed(index, conjunct, {**row, name: nearest})
                return proofs.NothingThere(conjunct, window.count, nearest, failed)
            case ir.Summarise(variable=variable):
                value = self._total(index, conjunct, row, window.passing) if window.opened else None
                row["?" + variable] = value
                return proofs.Counted(conjunct, value, window.passing, window.count)
            case _:
                assert_never(conjunct)

    def _fact(self, position: ir.Position | ir.Every, fact: Fact, depth: int) -> proofs.FactProof:
        """A fact with the reason for it."""
        if isinstance(position, ir.Every):
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
        return proofs.FactProof(
            position.name, position.stream, position.variables, fact, self._solutions[key]
        )

    def _why(self, stream: str, fact: Fact) -> proofs.SolutionProof | proofs.Changed:
        """The answer that a fact is, or the change of answers."""
        program, (time, values, _, _) = self.history.program, fact
        standing = program.standing.get(stream)
        if standing is None:
            with self.instants.open(time) as derivations:
                return self._solution(program.queries[stream], values, derivations)
        select, begins = standing.select, standing.operator is ir.RelationToStream.ISTREAM
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

    def _solution(self, select: ir.Select, values: Values, derivations: Derivations) -> proofs.SolutionProof:
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
        jump = self.history.jumps.at(time)
        return bool(self.history.graphs(time)) if jump is None else jump.graph

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
        return self._fact(ir.Position(name, name, variables, chained), facts[-1], depth)

    # -- windows

    def _window(self, index: int, conjunct: ir.Conjunct, row: Row, now: Time) -> Shown:
        rule, literal = self.history.program.rules[index], self._rules[index]
        position, name = conjunct.position, conjunct.position.name
        start, end, itself = bounds(rule, conjunct, row)
        found = self._facts(index, position, start, now)
        if found is None:
            return Shown((), (), opened=False)
        inside = tuple(fact for fact in found if start <= fact[0] <= end and fact != itself)
        passing = tuple(
            fact
            for fact in inside
            if (conjunct.on is None or literal.holds(conjunct.on, {**row, name: fact}))
            and self._consumer(index, conjunct, fact, row) is None
        )
        return Shown(inside, passing)

    def _facts(self, index: int, position: ir.Position, start: Time, end: Time) -> list[Fact] | None:
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
        ticks = [t for d in sorted(self._ticks[index]) for t in range(-(-first // d) * d, end + 1, d)]
        return self.instants.between(index, position.stream, start, end, ticks)

    def _consumer(self, index: int, conjunct: ir.Conjunct, fact: Fact, row: Row) -> KeptEvent | None:
        rule = self.history.program.rules[index]
        if conjunct.position.name not in rule.consuming:
            return None
        place = [c.position.name for c in rule.chosen].index(conjunct.position.name) + 1
        return self.history.consumer(index, place, fact, row[rule.trigger.name])

    def _total(self, index: int, conjunct: ir.Summarise, row: Row, facts: Sequence[Fact]) -> Term | None:
        (way,) = LITERAL[conjunct.operator].extend(conjunct, row, list(facts), self._rules[index].value)
        value: Term | None = way["?" + conjunct.variable]
        return value

    def _failed(self, index: int, conjunct: ir.Conjunct, row: Row) -> tuple[str, ...]:
        """The parts of ON that are not true."""
        literal = self._rules[index]
        return tuple(
            self.text.expression(part) for part in parts(conjunct.on) if not literal.holds(part, row)
        )

    def _nearest(self, index: int, conjunct: ir.Conjunct, row: Row, facts: Sequence[Fact]) -> Fact | None:
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
        fired = [e for e in self.history.events if e.rule == index and e.time == time]
        fired = [e for e in fired if _agrees(zip(rule.variables, e.bindings, strict=True), where)]
        found: list[proofs.WhyNot] = [self.event(event) for event in fired]
        triggers = self._triggers(index, time)
        variables = () if isinstance(rule.trigger, ir.Every) else rule.trigger.variables
        for fact in triggers:
            if any(event.facts[0] == fact for event in fired):
                continue
            if _agrees(zip(variables, fact[1], strict=True), where):
                found.append(self._followed(index, fact, time))
        return found or [self._no_trigger(rule, time)]

    def _triggers(self, index: int, time: Time) -> Sequence[Fact]:
        trigger = self.history.program.rules[index].trigger
        if isinstance(trigger, ir.Every):
            return [(time, (), 0, "")] if time % trigger.duration == 0 else []
        return self._facts(index, trigger, time, time) or []

    def _followed(self, index: int, fact: Fact, time: Time) -> proofs.Blocked:
        """The furthest that a match from this trigger fact got."""
        rule, literal = self.history.program.rules[index], self._rules[index]
        trigger = self._fact(rule.trigger, fact, DEPTH)
        partial: list[tuple[Row, tuple[proofs.ConjunctProof, ...]]] = [({rule.trigger.name: fact}, ())]
        for conjunct in rule.conjuncts:
            longer = [
                one for row, steps in partial for one in self._continued(index, conjunct, row, steps, time)
            ]
            if not longer:
                return self._stopped(index, trigger, partial[0], conjunct, time)
            partial = longer[:100]
        row, steps = partial[-1]
        if rule.where is not None:
            failing = [r for r, _ in partial if not literal.holds(rule.where, r)]
            if len(failing) == len(partial):
                false = [p for p in parts(rule.where) if not literal.holds(p, row)]
                return proofs.Blocked(
                    rule, trigger, steps, None, "WHERE " + " && ".join(map(self.text.expression, false))
                )
        for binding in rule.bindings:
            if all(literal.value(binding.expression, r) is None for r, _ in partial):
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

    def _continued(
        self, index: int, conjunct: ir.Conjunct, row: Row, steps: tuple[proofs.ConjunctProof, ...], time: Time
    ) -> list[tuple[Row, tuple[proofs.ConjunctProof, ...]]]:
        window = self._window(index, conjunct, row, time)
        if not window.opened:
            return []
        ways = LITERAL[conjunct.operator].extend(
            conjunct, row, list(window.passing), self._rules[index].value
        )
        found = []
        for way in ways:
            own = dict(row)
            step = self._step(index, conjunct, own, way.get(conjunct.position.name), time, 0)
            found.append((own, (*steps, step)))
        return found

    def _stopped(
        self,
        index: int,
        trigger: proofs.FactProof,
        partial: tuple[Row, tuple[proofs.ConjunctProof, ...]],
        conjunct: ir.Conjunct,
        time: Time,
    ) -> proofs.Blocked:
        """Why a conjunct ended the first of the partial matches."""
        rule = self.history.program.rules[index]
        row, steps = partial
        window = self._window(index, conjunct, row, time)
        name = conjunct.position.name
        if not window.opened:
            return proofs.Blocked(rule, trigger, steps, conjunct, proofs.TOO_LONG, None)
        if isinstance(conjunct, ir.Absent):
            blocker = self._fact(conjunct.position, window.passing[-1], DEPTH)
            return proofs.Blocked(
                rule, trigger, steps, conjunct, "there is one", len(window.inside), blocker=blocker
            )
        literal = self._rules[index]
        for fact in reversed(window.inside):
            if conjunct.on is None or literal.holds(conjunct.on, {**row, name: fact}):
                consumer = self._consumer(index, conjunct, fact, row)
                if consumer is not None:
                    return proofs.Blocked(
                        rule,
                        trigger,
                        steps,
                        conjunct,
                        "it was consumed",
                        len(window.inside),
                        fact,
                        consumed_by=consumer.id,
                        consumed_at=consumer.time,
                    )
        others = neighbours(rule, conjunct, row, window.inside)
        nearest, outside = self._nearest(index, conjunct, row, others), False
        if nearest is None:
            kept = self._facts(index, conjunct.position, self._oldest(), time) or []
            inside = set(window.inside)
            kept = [f for f in neighbours(rule, conjunct, row, kept) if f not in inside]
            nearest, outside = self._nearest(index, conjunct, row, kept), True
        missing = () if nearest is None else self._failed(index, conjunct, {**row, name: nearest})
        nowhere = self._nowhere(index, conjunct, row) if nearest is None else None
        found = len(window.inside)
        return proofs.Blocked(
            rule,
            trigger,
            steps,
            conjunct,
            "no candidate",
            found,
            nearest,
            missing,
            outside,
            nowhere=nowhere,
        )

    def _nowhere(self, index: int, conjunct: ir.Conjunct, row: Row) -> proofs.NoTrigger | None:
        """How far the patterns of a conjunct's query come in its window, where they come furthest; of several
        instants the last. None where it is not a plain query.
        """
        rule, program, position = self.history.program.rules[index], self.history.program, conjunct.position
        if position.stream not in program.queries or position.stream in program.standing:
            return None
        start, end, _ = bounds(rule, conjunct, row)
        times = [time for time in self.history.times() if start <= time <= end and self._graph_came(time)]
        best: proofs.NoTrigger | None = None
        for time in reversed(times[-INSTANTS:]):
            with self.instants.open(time) as derivations:
                found = longest_prefix(program.queries[position.stream], derivations, self.text)
            patterns, count_, near, untrue, bound = found
            if best is None or count_ > best.found:
                best = proofs.NoTrigger(
                    rule, time, True, patterns, count_, tuple(near), untrue=untrue, bound=bound
                )
        return best

    def _oldest(self) -> Time:
        return min(self.history.times(), default=0)

    def _no_trigger(self, rule: ir.Rule, time: Time) -> proofs.NoTrigger:
        """Why the trigger has no fact at an instant."""
        program = self.history.program
        seen = bool(self.history.graphs(time))
        left_out = tuple(graph.place or "a graph" for graph in self.history.left_out(time))
        if isinstance(rule.trigger, ir.Every) or rule.trigger.chained:
            return proofs.NoTrigger(rule, time, seen, left_out=left_out)
        if rule.trigger.held:
            held = self._held.facts(rule.trigger.stream.rpartition(" ")[2], time, time)
            failed = () if held else self._held.why_not(rule.trigger.stream, time)
            unopened: tuple[str, ...] = (proofs.TOO_LONG,) if held is None else ()
            return proofs.NoTrigger(
                rule, time, seen, left_out=left_out, not_held=failed, held_before=bool(held), untrue=unopened
            )
        standing = program.standing.get(rule.trigger.stream)
        select = program.selects[rule.trigger.stream]
        operator = None if standing is None else standing.operator
        looked = {None: proofs.Of.INSTANT, ir.RelationToStream.DSTREAM: proofs.Of.BEFORE}.get(
            operator, proofs.Of.LASTING
        )
        with self.instants.open(time, looked) as derivations:
            patterns, found, near, untrue, bound = longest_prefix(select, derivations, self.text)
        return proofs.NoTrigger(
            rule, time, seen, patterns, found, tuple(near), operator, left_out, untrue=untrue, bound=bound
        )


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


def _agrees(values: Iterable[tuple[str, Term | None]], where: Mapping[str, Term]) -> bool:
    known = dict(values)
    return all(name not in known or known[name] == term for name, term in where.items())
