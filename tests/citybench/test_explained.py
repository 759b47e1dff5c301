"""Events of CityBench have proofs that the checker accepts.

All events of the first graphs, over the part of the background that the queries can match; and over the whole
background events of every rule at a spread of instants, since the checker asks it anew at each instant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from msgspec.structs import replace

from dotr.events import Time
from dotr.explain import verify
from dotr.explain.checker import Checker
from dotr.explain.matches import Explainer
from dotr.explain.proofs import EventProof, SolutionProof
from dotr.explain.record import Graph, History, KeptEvent
from dotr.io.rules_and_background import RuleTexts, read_background
from dotr.io.sources import SourceOptions, Sources
from dotr.lang import load_program
from dotr.program import Program
from dotr.rdf.terms import Triple
from tests.citybench.test_citybench import EXAMPLE
from tests.citybench.test_citybench import citybench as citybench  # a fixture
from tests.citybench.test_citybench import convert as convert  # a fixture
from tests.explain.proving import checker_of, explainer_of

GRAPHS = 15
"""Of all events of so many graphs, one a second, the proofs are checked over a part of the background."""
INSTANTS = 1
"""Instants of which the events of each rule are checked over the whole background, a second each."""
NAMES = ("observes", "observedBy", "observedProperty", "hasValue")
CLASSES = ("CongestionLevel", "Temperature", "Humidity", "WindSpeed")


def asked_for(background: Iterable[Triple]) -> Iterator[Triple]:
    """The triples that a pattern of the two programs matches."""
    for triple in background:
        of_class = triple[1].endswith("#type>") and triple[2].endswith(tuple(f"#{c}>" for c in CLASSES))
        if of_class or triple[1].endswith(tuple(f"{name}>" for name in NAMES)):
            yield triple


def ran(program: Program, background: Collection[Triple], graphs: Path) -> History:
    """A run in which nothing is forgotten."""
    history = History(program, background)
    history.reach = verify.EVERYTHING
    reader = Sources([str(graphs)], SourceOptions(unit=1_000))
    history.run((Graph(g.time, g.triples, g.place) for g in reader), lambda: reader.clock)
    return history


def prover(history: History) -> tuple[Explainer, Checker]:
    explainer = explainer_of(history)
    return explainer, checker_of(history, explainer)


def emitted(history: History) -> list[tuple[int, Time, object]]:
    return [(event.rule, event.time, event.fact) for event in history.events]


def spread(events: list[KeptEvent], instants: int) -> list[KeptEvent]:
    """Those at so many of their times, evenly."""
    times = sorted({event.time for event in events})
    chosen = set(times[len(times) // instants - 1 :: len(times) // instants])
    return [event for event in events if event.time in chosen]


def without_its_first_premise(proof: EventProof) -> EventProof:
    """A proof that does not follow."""
    why = proof.trigger.why
    assert isinstance(why, SolutionProof)
    return replace(proof, trigger=replace(proof.trigger, why=replace(why, premises=why.premises[1:])))


@pytest.mark.parametrize("query", ["q1", "q2"])
def test_every_event_has_a_proof_that_the_checker_accepts(
    query: str, convert: ModuleType, citybench: Path, tmp_path: Path
) -> None:
    convert.main([str(citybench), str(tmp_path), "--graphs", str(GRAPHS), "--delta", "1000", "--copies", "0"])
    program = load_program([str(EXAMPLE / f"{query}.dotr")], RuleTexts())
    background = read_background([*program.background, str(tmp_path / "background.nt")])
    whole = ran(program, background, tmp_path / "graphs.jsonl")
    part = ran(program, frozenset(asked_for(background)), tmp_path / "graphs.jsonl")
    assert len(part.background) < len(whole.background) / 5
    assert emitted(part) == emitted(whole)
    of_rules = [[event for event in whole.events if event.rule == n] for n in range(len(program.rules))]
    assert all(len(events) >= GRAPHS for events in of_rules)

    explainer, checker = prover(part)
    for event in part.events:
        checker.event(explainer.event(event))
    assert checker.found == []
    checker.event(without_its_first_premise(explainer.event(part.events[-1])))
    assert checker.found != []

    explainer, checker = prover(whole)
    for events in of_rules:
        for event in spread(events, INSTANTS):
            checker.event(explainer.event(event))
    assert checker.found == []
