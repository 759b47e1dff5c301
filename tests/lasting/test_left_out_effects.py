"""Effects that contradict what lasts are judged one after the other, each over what those before it left: as
if all that are kept and it were tried anew, and at the cost of what they change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.events import Clock, Effect, Message, Pattern
from dotr.io.rules_and_background import read_rules_text
from dotr.lang import load_program
from dotr.lasting.instants import LastingRun, Maintenance
from dotr.lasting.periods import Periods, StatedChange
from dotr.rdf.terms import RDF, RDF_TYPE, Triple

OWL = "http://www.w3.org/2002/07/owl#"
RULES = """ENTAILMENT OWL2RL
PREFIX : <urn:>
HOLD :s LATEST
HOLD :f FOR 3 s
RULE R DEFINE { dotr_r a :R } FROM N := ISTREAM { SELECT ?x WHERE { ?x a :A } } WITH ?x := N.?x
DELETE { ?x :s ?any . ?x a :B . ?other :s ?x }
"""
SCHEMA: list[Triple] = [
    ("<urn:A>", f"<{OWL}disjointWith>", "<urn:B>"),
    ("<urn:B>", f"<{OWL}disjointWith>", "<urn:C>"),
    ("<urn:On>", f"<{OWL}disjointWith>", "<urn:A>"),
    ("<urn:On>", f"<{OWL}onProperty>", "<urn:s>"),
    ("<urn:On>", f"<{OWL}hasValue>", "<urn:on>"),
    ("<urn:f>", f"<{RDF}type>", f"<{OWL}SymmetricProperty>"),
    ("<urn:f>", f"<{OWL}propertyDisjointWith>", "<urn:g>"),
]
SECOND = 1_000_000

things = st.sampled_from(["<urn:x>", "<urn:y>"])
triples = (
    st.tuples(things, st.just(RDF_TYPE), st.sampled_from(["<urn:A>", "<urn:B>", "<urn:C>"]))
    | st.tuples(things, st.just("<urn:s>"), st.sampled_from(["<urn:on>", "<urn:off>", "<urn:x>"]))
    | st.tuples(things, st.sampled_from(["<urn:f>", "<urn:g>"]), things)
)
patterns: st.SearchStrategy[Pattern] = (
    triples
    | st.tuples(things, st.just("<urn:s>"), st.just(0))
    | st.tuples(things, st.just(RDF_TYPE), st.just("<urn:B>"))
    | st.tuples(st.just(0), st.just("<urn:s>"), things)
)
effects = st.lists(
    st.builds(
        Effect,
        st.just("R"),
        st.just("urn:e"),
        st.lists(triples, max_size=3).map(tuple),
        st.lists(patterns, max_size=2).map(tuple),
    ),
    max_size=6,
)


def begun(stated: list[Triple], graph: list[Triple]) -> LastingRun:
    """What lasts after a message, in a program without contradictions so far."""
    program = load_program(["a.dotr"], lambda path: RULES if path == "a.dotr" else read_rules_text(path))
    run = LastingRun(program, SCHEMA, Clock())
    run.at(0, [Message(graph, stated)])
    return run


consistent = st.lists(
    st.tuples(things, st.just("<urn:s>"), st.sampled_from(["<urn:on>", "<urn:off>"]))
    | st.tuples(things, st.just("<urn:f>"), things)
    | st.tuples(things, st.just(RDF_TYPE), st.just("<urn:B>")),
    max_size=4,
)


@given(consistent, consistent, effects, st.sampled_from([1, 3]))
def test_one_after_the_other_is_all_that_are_kept_and_each(
    stated: list[Triple], graph: list[Triple], given_effects: list[Effect], second: int
) -> None:
    run, time = begun(stated, graph), second * SECOND
    before = {triple: run._periods._entry(triple) for triple in run.stated()}
    model = run._knowledge.state(())
    found = [error is None for _, error in run._judged(time, given_effects)]
    kept: list[Effect] = []
    expected = []
    for effect in given_effects:
        expected.append(run._error_of(time, (*kept, effect)) is None)
        kept += [effect] if expected[-1] else []
    assert found == expected
    assert {triple: run._periods._entry(triple) for triple in run.stated()} == before
    assert run._knowledge.state(()) == model


def test_many_effects_are_judged_at_the_cost_of_what_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triples that statements and the model are told of, and not time, are counted."""
    counted = 0
    change, hold = Maintenance.change, Periods._hold

    def changing(self: Maintenance, time: int, stated: StatedChange, *more: None) -> object:
        nonlocal counted
        counted += len(stated.begun) + len(stated.ended) + 1
        return change(self, time, stated, *more)

    def holding(self: Periods, *arguments: object) -> None:
        nonlocal counted
        counted += 1
        hold(self, *arguments)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Maintenance, "change", changing)
    monkeypatch.setattr(Periods, "_hold", holding)
    costs = []
    for many in (50, 100):
        run = begun([(f"<urn:t{n}>", RDF_TYPE, "<urn:B>") for n in range(0, many, 2)], [])
        things = [f"<urn:t{n}>" for n in range(many)]
        asked = [
            Effect("R", "urn:e", ((one, RDF_TYPE, "<urn:A>"), (one, "<urn:s>", "<urn:v>")), ())
            for one in things
        ]
        counted = 0
        assert [error is None for _, error in run._judged(SECOND, asked)] == [n % 2 == 1 for n in range(many)]
        costs.append(counted)
    assert costs[1] <= 2.1 * costs[0]
