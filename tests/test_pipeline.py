"""The pipeline however it is driven: taken ahead, drained by halves, cut, silent, out of order, in error.

Place:   the expected events are those of the same graphs pushed one by one in order, without what came late
         and without the instants in error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pytest

from dotr.core.deployment import Deployment
from dotr.core.instant import FactBatch, Facts, Graphs, InstantFacts, Instants
from dotr.core.pipeline import TOGETHER, Pipeline, PipelineObserver
from dotr.errors import DotrError
from dotr.events import Clock, Composite, Instant, Time
from dotr.io.rules_and_background import read_rules_text
from dotr.lang import load_program
from dotr.rdf.terms import Triple, integer

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SECOND = 1_000_000
RULES = (
    """
RULE Pair DEFINE { dotr_x a :Pair ; :v ?v ; :w ?w }
FROM A := { SELECT ?v WHERE { ?s :a ?v } }
AND EACH B := { SELECT ?v WHERE { ?s :b ?v } } WITHIN 20 s FROM A
WITH ?v := A.?v, ?w := B.?v
""",
    """
RULE Tick DEFINE { dotr_x a :Tick ; :n ?n ; :t ?t }
FROM EVERY 3 s AS T
AND COUNT(*) AS ?n OVER B := { SELECT ?v WHERE { ?s :b ?v } } WITHIN 10 s FROM T
WITH ?n := ?n, ?t := T.time
""",
    """
RULE Taken DEFINE { dotr_x a :Taken ; :v ?v }
FROM A := { SELECT ?v WHERE { ?s :a ?v } }
AND LAST B := { SELECT ?v WHERE { ?s :b ?v FILTER(?v > 3) } } WITHIN 9 s BEFORE A
WITH ?v := B.?v
CONSUMING B
""",
)
IN_ERROR: Triple = ("<urn:x:s>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<urn:x:t>")


@dataclass
class Life:
    """Owns a pipeline, what came out of it, and what should have been taken by it."""

    random: Random
    found: list[Composite] = field(default_factory=list)
    taken: list[tuple[Time, list[Triple]]] = field(default_factory=list)
    refused: list[Time] = field(default_factory=list)
    latest: int = 0

    def __post_init__(self) -> None:
        r = self.random
        text = "PREFIX : <urn:x:>\nENTAILMENT rdfs\n" + "".join(r.sample(RULES, r.randint(1, 3)))
        self.program = load_program(["p"], lambda path: text if path == "p" else read_rules_text(path))
        self.lateness = r.choice((0, 0, 2, 5)) * SECOND
        self.refuses = r.random() < 0.5
        self.open = -(10**9)
        self.pipeline = self.new()
        self.pipeline.begin(Clock())

    def new(self) -> Pipeline:
        refused = (lambda time, graphs, error: self.refused.append(time)) if self.refuses else None
        return Pipeline(Deployment(self.program), PipelineObserver(refused=refused), lateness=self.lateness)

    def accept(self) -> None:
        r = self.random
        time = self.latest + r.choice((0, 1, 1, 1, 2, 4)) - r.choice((0, 0, 0, 1, 3))
        sizes = (0, 1, 1, 1, 2)
        graph = [("<urn:x:s>", f"<urn:x:{r.choice('ab')}>", integer(r.randint(0, 9)))] * r.choice(sizes)
        if r.random() < 0.07:
            graph.append(IN_ERROR)
        if time * SECOND >= self.open:
            self.taken.append((time * SECOND, graph))
            self.open = max(self.open, time * SECOND - self.lateness)
            self.latest = max(self.latest, time)
        self.pipeline.accept(time * SECOND, list(graph))

    def drain(self, most: int) -> None:
        """Hand out the events of so many instants, if there are; errors at instants are noted and passed."""
        while True:
            try:
                for number, events in enumerate(self.pipeline.drain(), 1):
                    self.found += events
                    if number == most:
                        return
            except DotrError:
                continue
            return

    def silence(self) -> None:
        time = (self.latest + self.random.choice((-1, 0, 1))) * SECOND
        self.pipeline.close_up_to(time)
        self.open = max(self.open, time + 1)

    def cut(self) -> None:
        state = json.loads(json.dumps(self.pipeline.snapshot()))
        self.pipeline = self.new()
        self.pipeline.restore(state)

    def live(self) -> None:
        r = self.random
        for _ in range(r.randint(3, 40)):
            step = r.choices(("accept", "all", "one", "silence", "cut"), (65, 10, 8, 6, 8))[0]
            if step == "accept" or not self.taken:
                self.accept()
            elif step == "silence":
                self.silence()
            elif step == "cut":
                self.cut()
            else:
                self.drain(1 if step == "one" else 10**9)
        self.pipeline.close_all()
        self.drain(10**9)

    def expected(self) -> Sequence[Composite]:
        bad = {time for time, graph in self.taken if IN_ERROR in graph}
        assert not self.refuses or set(self.refused) == bad
        pipeline = Pipeline(Deployment(self.program))
        pipeline.begin(Clock())
        found: list[Composite] = []
        for time, graph in sorted((t for t in self.taken if t[0] not in bad), key=lambda taken: taken[0]):
            found += pipeline.push(time, graph)
        assert self.pipeline.watermark is not None
        return found + list(pipeline.advance(self.pipeline.watermark))


def plain(events: Sequence[Composite]) -> list[tuple[object, ...]]:
    return [(event.rule, event.time, event.id, event.bindings) for event in events]


def test_events_are_those_of_a_quiet_run_however_the_pipeline_is_driven() -> None:
    eventful = 0
    seeds = range(5_000 if DEEP else 60)
    for seed in seeds:
        life = Life(Random(seed))
        life.live()
        if plain(life.found) != plain(life.expected()):
            pytest.fail(f"seed {seed}: {plain(life.found)} instead of {plain(life.expected())}")
        eventful += bool(life.found)
    assert eventful > len(seeds) // 2


def test_a_day_that_is_closed_at_once_has_few_instants_facts_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = load_program(["p"], lambda _: "PREFIX : <urn:x:>" + RULES[0])
    pipeline = Pipeline(Deployment(program), lateness=86_400 * SECOND)
    pipeline.begin(Clock())
    for time in range(3 * TOGETHER):
        pipeline.accept(time * SECOND, [("<urn:x:s>", f"<urn:x:{'ab'[time % 2]}>", integer(time))])
    pipeline.close_all()
    extracted = detected = 0
    overlaid, entered = Instants.overlaid, Instants.entered

    def counted(self: Instants, time: Time, graphs: Graphs | None) -> InstantFacts:
        nonlocal extracted
        extracted += 1
        return overlaid(self, time, graphs)

    def counted_together(self: Instants, due: Sequence[Instant], place: int, batch: FactBatch) -> int:
        nonlocal extracted
        end = entered(self, due, place, batch)
        extracted += end - place
        return end

    monkeypatch.setattr(Instants, "overlaid", counted)
    monkeypatch.setattr(Instants, "entered", counted_together)
    for events in pipeline.drain():
        detected = events.matches[0][1] // SECOND + 1
        assert extracted - detected < TOGETHER
    assert extracted == 3 * TOGETHER


COUNTING = """PREFIX : <urn:x:>
RULE Counted DEFINE { dotr_x a :Counted ; :n ?n }
FROM A := { SELECT ?v WHERE { ?s :a ?v } }
AND COUNT(*) AS ?n OVER B := { SELECT ?v WHERE { ?s :b ?v } } WITHIN 1 h FROM A
WITH ?n := ?n
"""


def test_what_an_interrupted_call_has_detected_is_not_detected_again() -> None:
    """A notebook's user stops a long call and goes on: facts of instants without events counted twice."""
    program = load_program(["p"], lambda _: COUNTING)
    interrupted = False

    def stop(time: Time, facts: Facts, graph: bool) -> Facts:
        nonlocal interrupted
        if time == 7 * SECOND and not interrupted:
            interrupted = True
            raise KeyboardInterrupt
        return facts

    pipeline = Pipeline(Deployment(program), PipelineObserver(facts=stop))
    pipeline.begin(Clock())
    for time in range(10):
        pipeline.accept(time * SECOND, [("<urn:x:s>", "<urn:x:b>", integer(time))])
    pipeline.accept(10 * SECOND, [("<urn:x:s>", "<urn:x:a>", integer(0))])
    with pytest.raises(KeyboardInterrupt):
        list(pipeline.drain())
    assert pipeline.counters.instants == 7
    events = pipeline.finish()
    assert [event.bound for event in events] == [(integer(10),)]
    assert pipeline.counters.instants == 11
    assert pipeline.counters.streams == {"Counted.A": 1, "Counted.B": 10}
