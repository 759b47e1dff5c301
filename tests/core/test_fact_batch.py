"""Facts that wait for a trigger: what a batch gives to detection, and that runs do not differ by it."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from dotr.core.deployment import Deployment, Settings
from dotr.core.instant import FactBatch
from dotr.core.pipeline import Pipeline, PipelineObserver
from dotr.detect.detector import TeslaDetector
from dotr.events import Clock, Fact
from dotr.lang import load_program
from dotr.rdf.terms import Triple, integer

PREFIX = "PREFIX : <urn:x:> "
HEAT = "Heat := { SELECT ?r ?v WHERE { ?r :heat ?v FILTER(?v > 2) } }"
SMOKE = "Smoke := { SELECT ?r WHERE { ?r :smoke ?v } }"
RULES = {
    "LAST FROM": f"RULE A DEFINE {{ dotr_a :of ?r }} FROM {SMOKE} AND LAST {HEAT} WITHIN 5 s FROM Smoke "
    "ON Heat.?r = Smoke.?r WITH ?r := Smoke.?r",
    "EACH BEFORE": f"RULE A DEFINE {{ dotr_a :of ?v }} FROM {SMOKE} AND EACH {HEAT} WITHIN 5 s BEFORE Smoke "
    "WITH ?v := Heat.?v",
    "both ways": f"QUERY {HEAT} QUERY {SMOKE} "
    "RULE A DEFINE { dotr_a :of ?r } FROM Smoke AND NOT Heat WITHIN 3 s FROM Smoke WITH ?r := Smoke.?r "
    "RULE B DEFINE { dotr_b :of ?v } FROM Heat AND LAST Smoke WITHIN 4 s BEFORE Heat WITH ?v := Heat.?v",
    "joined": (
        f"RULE A DEFINE {{ dotr_a :n ?n }} FROM {SMOKE} AND COUNT(*) AS ?n "
        "OVER Near := { SELECT ?v ?w WHERE { ?r :heat ?v ; :near ?w } } WITHIN 6 s BEFORE Smoke "
        "WHERE ?n > 0 WITH ?n := ?n"
    ),
    "ticks": f"RULE A DEFINE {{ dotr_a :r 1 }} FROM EVERY 2 s AS T AND LAST {HEAT} WITHIN 3 s FROM T",
}


def facts(*times: int) -> list[Fact]:
    return [(time, (), 0, "") for time in times]


def put(batch: FactBatch, time: int, *streams: str) -> None:
    batch.put((time, (), {name: facts(time) for name in streams}, True))


def test_facts_wait_for_the_next_trigger_and_the_rest_for_the_end() -> None:
    batch = FactBatch({"Smoke"}, 9)
    for time, streams in (
        (1, ["Heat"]),
        (2, ["Heat", "Rain"]),
        (3, ["Heat", "Smoke"]),
        (4, ["Heat"]),
        (5, []),
    ):
        put(batch, time, *streams)
    batch.closed()
    batch.closed()
    found = [(time, dict(known)) for time, _, known, _ in batch.known]
    assert found == [
        (3, {"Heat": facts(1, 2, 3), "Rain": facts(2), "Smoke": facts(3)}),
        (5, {"Heat": facts(4)}),
    ]
    assert (batch.first, batch.last, batch.size, batch.room) == (1, 5, 5, 4)
    assert [batch.instants(0, 1), batch.instants(1, 2), batch.instants(0, 2), batch.instants(1, 1)] == [
        3,
        2,
        5,
        0,
    ]


def test_without_triggers_every_instant_comes_by_itself() -> None:
    batch = FactBatch(None, 3)
    put(batch, 1, "Heat")
    put(batch, 2)
    batch.closed()
    assert [(time, dict(known)) for time, _, known, _ in batch.known] == [(1, {"Heat": facts(1)}), (2, {})]
    assert batch.instants(0, 2) == 2


def test_lists_that_streams_share_stay_as_they_are() -> None:
    batch, shared = FactBatch({"Smoke"}, 3), facts(1)
    batch.put((1, (), {"Heat": shared, "Warm": shared}, True))
    put(batch, 2, "Heat")
    assert shared == facts(1)
    assert dict(batch.waiting) == {"Heat": facts(1, 2), "Warm": facts(1)}


_triples = st.tuples(
    st.sampled_from(["<urn:x:a>", "<urn:x:b>", "_:c"]),
    st.sampled_from(["<urn:x:heat>"] * 4 + ["<urn:x:smoke>", "<urn:x:near>", "<urn:x:other>"]),
    st.integers(0, 6).map(integer),
)
_streams = st.lists(
    st.tuples(st.integers(1, 3), st.lists(_triples, min_size=1, max_size=3, unique=True)), max_size=30
)


def driven(
    text: str, stream: list[tuple[int, list[Triple]]], cuts: list[int], budget: int = 10**6
) -> tuple[Any, ...]:
    """Events, instants in error, counts, and times after each part; `cuts`: instants with events after which
    the caller stops.
    """
    refused: list[int] = []
    deployment = Deployment(load_program(["p"], lambda _: PREFIX + text), (), Settings(budget=budget))
    pipeline = Pipeline(
        deployment, PipelineObserver(refused=lambda time, _parts, _error: refused.append(time))
    )
    pipeline.begin(Clock())
    time, events, states = 0, [], []
    for step, graph in stream:
        time += step
        pipeline.accept(time * 1_000_000, graph)
    pipeline.close_all()
    for cut in [*cuts, 1_000]:
        for place, found in enumerate(pipeline.drain()):
            events += [(event.id, event.time) for event in found]
            if place == cut:
                break
        states.append(pipeline.snapshot()["times"])
    state = pipeline.snapshot()
    state.pop("detect")
    return events, refused, json.dumps(state, default=str), states


@given(
    st.sampled_from(sorted(RULES)),
    _streams,
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from([10**6, 10**6, 60]),
)
def test_what_waits_changes_nothing(
    name: str, stream: list[tuple[int, list[Triple]]], cuts: list[int], budget: int
) -> None:
    found = driven(RULES[name], stream, cuts, budget)
    event("has events" if found[0] else "has none")
    event("has instants in error" if found[1] else "has none in error")
    with patch.object(TeslaDetector, "waking", PropertyMock(return_value=None)):
        assert driven(RULES[name], stream, cuts, budget) == found


@pytest.mark.parametrize("rules", [name for name in RULES if name != "ticks"])
def test_a_caller_that_stops_early_goes_on_behind_what_it_got(rules: str) -> None:
    kinds = ["heat", "heat", "heat", "smoke"] * 10
    stream = [(1, [("<urn:x:a>", f"<urn:x:{kind}>", integer(n))]) for n, kind in enumerate(kinds)]
    if rules == "joined":
        stream = [(step, [*graph, ("<urn:x:a>", "<urn:x:near>", integer(1))]) for step, graph in stream]
    whole = driven(RULES[rules], stream, [])
    assert whole[0]
    assert driven(RULES[rules], stream, [0, 0, 1])[0] == whole[0]
