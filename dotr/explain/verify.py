"""A checker over everything that was kept of a run: for tests and `--verify`.

Place:   over record.py and checker.py; the claims of a proof are compared with the messages.
Method:  of the run only the messages are taken, the events that it emitted (which are given, as language.md
         has it: composites are named by what they matched) and the changes of rules. What holds is found by
         the literal readings. Nothing may have been forgotten: `EVERYTHING` is the reach of such a record.
         Which events had an effect is given, too: those whose effects contradict what lasts had none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dotr.errors import EngineError
from dotr.events import Fact, Message, Time, labelled
from dotr.explain.checker import Checker, LiteralHistory
from dotr.explain.proofs import EventLeaf, EventProof, Missing, TripleProof, WhyNot
from dotr.explain.record import KeptEvent, KeptInstants, Record
from dotr.program import Program
from dotr.rdf.terms import Triple
from dotr.reference.effects import LiteralEffect, effect_of
from dotr.reference.lasting import LiteralStatements

EVERYTHING: Final[Time] = 2**62
"""So far back that nothing is forgotten, in µs."""


def checker_of(record: Record, instants: KeptInstants) -> Checker:
    """A checker of the proofs of a record's program, which forgot nothing."""
    program = record.program
    composites = {
        rule.name: [event.fact for event in record.events if event.rule == index]
        for index, rule in enumerate(program.rules)
    }
    for name, facts in record.gone.items():
        composites[name] = [*facts, *composites.get(name, ())]
    consumed = {
        (rule.name, name): _consumed(
            record.events, index, [c.position.name for c in rule.chosen].index(name) + 1
        )
        for index, rule in enumerate(program.rules)
        for name in rule.consuming
    }
    return Checker(_history(record, instants), composites, consumed)


def refuse_wrong(
    checker: Checker, found: Sequence[WhyNot | TripleProof | Missing], time: Time | None
) -> None:
    """Raise EngineError D4090 for a proof that does not follow. `time`: of proofs of triples."""
    for one in found:
        if isinstance(one, EventProof):
            checker.event(one)
        elif time is not None and isinstance(one, TripleProof):
            checker.triple(one, time)
    if checker.found:
        raise EngineError.of(
            "D4090",
            "a proof does not follow, literally",
            notes=tuple(checker.found[:5]),
            hint="this is a bug of dotr: please report rules and input",
        )


def _history(record: Record, instants: KeptInstants) -> LiteralHistory:
    program, clock = record.program, record.clock
    if record.statements is None:
        stated = {time: instants.triples(time) for time in record.times()}
        return LiteralHistory(program, record.background, stated, clock)
    over: dict[Time, list[Triple]] = {}
    statements = LiteralStatements.of(record.background)
    background = record.background
    changes = [time for time, _ in record.programs]
    effects = _effects(record)
    for time in sorted({*record.times(), *changes, *effects}):
        messages = labelled([graph.part for graph in record.graphs(time)], time)
        new = record.backgrounds.get(time, background) if time in changes else background
        holds = record.program_at(time).holds
        happen = [effect for _, effect in effects.get(time, ())]
        statements, _ = statements.after(
            time, messages, holds, background - new, new - background, clock, happen
        )
        background = new
        if any(message.graph is not None for message in messages):
            over[time] = _graphs(messages)
    past: list[tuple[Time, Program]] = record.programs
    return LiteralHistory(program, record.background, over, clock, statements, past, effects)


def _effects(record: Record) -> dict[Time, list[tuple[EventLeaf, LiteralEffect]]]:
    """The effects that happened, by when: whose they are is taken from the run, which may have left some out,
    and what they do is read off the rules.
    """
    facts = {event.id: event.fact for event in record.events}
    facts |= {fact[3]: fact for gone in record.gone.values() for fact in gone}
    found: dict[Time, list[tuple[EventLeaf, LiteralEffect]]] = {}
    for time, events in record.effects.items():
        for event in events:
            program, fact = record.program_at(event.time), facts.get(event.id)
            if fact is not None and fact[0] == event.time:
                rule = program.rules[program.rule_index(event.rule)]
                values = [value or "" for value in fact[1]]  # WITH binds all
                found.setdefault(time, []).append((event, effect_of(rule, event.id, values)))
    return found


def _graphs(messages: Sequence[Message]) -> list[Triple]:
    return [triple for message in messages for triple in message.graph or ()]


def _consumed(events: Sequence[KeptEvent], rule: int, place: int) -> list[tuple[Fact, Fact]]:
    return [(event.facts[0], event.facts[place]) for event in events if event.rule == rule]
