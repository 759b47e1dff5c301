"""Why-not of every rule and trigger fact of an example that did not fire names a conjunct that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from dotr.explain.matches import Explainer
from dotr.explain.proofs import Blocked, EventProof, NoTrigger
from dotr.ir import Absent
from dotr.reference.tesla import LiteralRule, Row
from tests.explain.proving import explainer_of, history_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def _fails(explainer: Explainer, found: Blocked) -> bool:
    """Whether the conjunct that is named has no candidate (a NOT: has one) after the steps before it."""
    assert found.failed is not None
    rule = found.rule
    index = explainer.history.program.rules.index(rule)
    row: Row = {rule.trigger.name: found.trigger.fact}
    literal = LiteralRule(rule, explainer.history.clock)
    for step in found.steps:
        assert step.conjunct in rule.conjuncts
        if hasattr(step, "fact"):
            row[step.conjunct.position.name] = step.fact.fact
        elif hasattr(step, "value"):
            row["?" + step.conjunct.variable] = step.value  # type: ignore[union-attr]
    window = explainer._window(index, found.failed, row, found.trigger.fact[0])
    on = found.failed.on
    name = found.failed.position.name
    passing = [f for f in window.inside if on is None or literal.holds(on, {**row, name: f})]
    if isinstance(found.failed, Absent):
        return bool(passing)
    return not passing or found.consumed_by != ""


@pytest.mark.parametrize(("rules", "stream"), [("building/building.dotr", "building/morning.ttl")])
def test_every_trigger_that_did_not_fire_names_what_failed(rules: str, stream: str) -> None:
    history = history_of(EXAMPLES / rules, [EXAMPLES / stream])
    explainer = explainer_of(history)
    blocked = fired = 0
    for rule in history.program.rules:
        for time in history.times()[::4]:
            for found in explainer.why_not(rule.name, time, {}):
                if isinstance(found, Blocked):
                    blocked += 1
                    assert found.failed is None or _fails(explainer, found)
                elif isinstance(found, EventProof):
                    fired += 1
                else:
                    assert isinstance(found, NoTrigger)
                    assert found.found < max(1, len(found.looked_for)) or not found.looked_for
    assert blocked > 20
    assert fired > 0
