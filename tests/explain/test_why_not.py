"""Why-not of every rule and trigger fact of the examples that did not fire names what indeed fails.

What is named is checked by the literal readings that the checker uses, not by what made the explanation.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dotr.events import no_fact
from dotr.explain.checker import Checker
from dotr.explain.proofs import Blocked, Chosen, Counted, EventProof, NothingThere, NoTrigger, Unmatched
from dotr.program import Absent, Choose, Tick
from dotr.reference.calendars import ticks_at
from dotr.reference.tesla import LiteralRule, Row, opening
from tests.explain.proving import checker_of, explainer_of, history_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def row_of(found: Blocked) -> Row:
    """What a match had bound when it was stopped."""
    row: Row = opening(found.rule, found.trigger.fact)
    for step in found.steps:
        if isinstance(step, Chosen):
            row[step.conjunct.position.name] = step.group or step.fact.fact
        elif isinstance(step, NothingThere) and isinstance(step.conjunct, Choose):
            row[step.conjunct.position.name] = no_fact(len(step.conjunct.position.variables))
        elif isinstance(step, Counted):
            row["?" + step.conjunct.variable] = step.value  # type: ignore[union-attr]
    return row


def fails(checker: Checker, found: Blocked) -> bool:
    """Whether what is named has no candidate (a NOT: has one), is not true, or has no value."""
    rule, literal, row = found.rule, LiteralRule(found.rule, checker.clock), row_of(found)
    named = [step.conjunct for step in found.steps]
    if found.failed is not None:
        assert [*named, found.failed] == list(rule.conjuncts[: len(named) + 1])
        inside, passing = checker._candidates(literal, found.failed, row)
        assert found.inside == len(inside)
        if isinstance(found.failed, Absent):
            assert found.blocker is not None
            return found.blocker.fact in passing
        assert found.nearest is None or found.outside or found.nearest in inside
        return not passing
    assert named == list(rule.conjuncts)
    if found.reason.startswith("WHERE"):
        return rule.where is not None and not literal.holds(rule.where, row)
    values = [literal.value(binding.expression, row) for binding in rule.bindings]
    if found.reason.startswith("WITH"):
        return None in values
    assert found.reason.startswith("its graph is not valid"), found.reason
    bound = tuple(value for value in values if value is not None)
    return len(bound) == len(values) and not literal._template_is_a_graph(bound)


def nothing_there(checker: Checker, found: NoTrigger | Unmatched) -> bool:
    """Whether the trigger has no fact then, and a sequence no match."""
    if isinstance(found, Unmatched):
        return not [fact for fact in checker.composites[found.rule.name] if fact[0] == found.time]
    trigger, time = found.rule.triggering, found.time - found.rule.delay
    if found.ahead is not None:
        return found.time > found.ahead
    if isinstance(trigger, Tick):
        return not ticks_at(trigger.rhythm, found.time)
    if trigger.chained:
        return not [fact for fact in checker.composites[trigger.stream] if fact[0] == time]
    if trigger.held:
        return not [f for f in checker._lars().seen(trigger.stream, time) if f[0] == time]
    no_graph = found.rule.delay > 0 and " " not in trigger.stream and time not in checker.history.stated
    return no_graph or not checker.history.facts(trigger.stream, time)


@pytest.mark.parametrize(
    ("rules", "stream", "stopped"),
    [
        ("building/building.dotr", "building/morning.ttl", 60),
        ("building/libraries.dotr", "building/morning.ttl", 60),
        ("fire/fire.dotr", "fire/events", 0),
        ("presence/presence.dotr", "presence/moves.jsonl", 0),
        ("cooling/alone.dotr", "cooling/sensor.jsonl", 0),
    ],
)
def test_every_trigger_that_did_not_fire_names_what_failed(rules: str, stream: str, stopped: int) -> None:
    history = history_of(EXAMPLES / rules, [EXAMPLES / stream])
    explainer = explainer_of(history)
    checker = checker_of(history, explainer)
    blocked = fired = silent = 0
    for rule in history.program.rules:
        for time in history.times():
            for found in explainer.why_not(rule.name, time, {}):
                if isinstance(found, Blocked):
                    blocked += 1
                    assert fails(checker, found), found
                elif isinstance(found, EventProof):
                    fired += 1
                else:
                    silent += 1
                    assert nothing_there(checker, found), found
                    short = found.found < len(found.looked_for) or bool(found.untrue)
                    assert short or not found.looked_for or found.operator is not None, found
    assert blocked >= stopped
    assert fired > 0
    assert silent > 0
