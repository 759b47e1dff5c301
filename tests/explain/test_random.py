"""Random whole programs: every event has a proof that the checker accepts, every silent rule its reason.

The literal readings judge; what made the proofs is not asked.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DotrError
from dotr.explain.proofs import Blocked, EventProof
from tests.explain.proving import checker_of, explainer_of, history_of
from tests.explain.test_why_not import fails, nothing_there
from tests.whole import TURTLE, wholes
from tests.whole_days import in_days

MOST = 8
"""Events of one program that are explained, and trigger times at which each rule is asked."""


def explained(seed: int, days: bool = False) -> int:
    """Check a program and a log, with `days` one whose clocks tick at local times; how many events it had."""
    r = Random(seed)  # no secret
    whole = wholes(r)
    if days:
        whole = in_days(r, whole)
    with TemporaryDirectory() as folder:
        path = Path(folder)
        named = "BACKGROUND <background.ttl>\nRULES <rules.dlog>\n"
        (path / "main.dotr").write_text(named + whole.rules)
        (path / "rules.dlog").write_text(whole.datalog)
        (path / "background.ttl").write_text(TURTLE + whole.background)
        lines = [{"time": graph.time, "graph": TURTLE + graph.text} for graph in whole.stream]
        (path / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        try:
            history = history_of(path / "main.dotr", [path / "s.jsonl"])
        except DotrError:
            return 0
        explainer = explainer_of(history)
        checker = checker_of(history, explainer)
        events = history.events if len(history.events) <= MOST else r.sample(history.events, MOST)
        for event in events:
            proof = explainer.event(event)
            checker.event(proof)
            assert checker.found == [], f"{whole}\n{proof}"
        for rule in history.program.rules:
            for time in r.sample(history.times(), min(MOST, len(history.times()))):
                for found in explainer.why_not(rule.name, time, {}):
                    if isinstance(found, Blocked):
                        assert fails(checker, found), f"{whole}\n{found}"
                    elif not isinstance(found, EventProof):
                        assert nothing_there(checker, found), f"{whole}\n{found}"
        return len(events)


@given(st.integers(0, 2**32))
def test_every_event_of_a_random_program_has_a_proof(seed: int) -> None:
    explained(seed)


def test_every_event_at_local_times_has_a_proof() -> None:
    """Seeds of programs with events at ticks, and some without."""
    assert sum(explained(seed, days=True) for seed in (7, 71, 85, 104, 114, 121, 163, 166, 184)) > 9


def test_there_is_something_to_explain() -> None:
    """149: ticks of an EVERY rule begin at the first instant, also where that is 0."""
    assert sum(explained(seed) for seed in [*range(20), 149]) > 20
