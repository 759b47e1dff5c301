"""The checker rejects proofs that do not follow: a premise dropped, a term changed, a window widened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from dotr.explain.proofs import Chosen, Derived, EventProof, FactProof, InStream, NothingThere, SolutionProof
from dotr.program import Absent, Within
from tests.explain.proving import checker_of, explainer_of, history_of

ROOT = Path(__file__).resolve().parents[2] / "examples" / "building"


@pytest.fixture(scope="module")
def fire() -> tuple[EventProof, Callable[[EventProof], list[str]]]:
    """The fire of the demo, and a function that checks a proof of it."""
    history = history_of(ROOT / "building.dotr", [ROOT / "morning.ttl"])
    explainer = explainer_of(history)
    event = next(e for e in history.events if history.program.rules[e.rule].name == "Fire")

    def check(proof: EventProof) -> list[str]:
        checker = checker_of(history, explainer)
        checker.event(proof)
        return checker.found

    return explainer.event(event), check


def _with_trigger(proof: EventProof, change: Callable[[SolutionProof], SolutionProof]) -> EventProof:
    assert isinstance(proof.trigger.why, SolutionProof)
    return replace(proof, trigger=replace(proof.trigger, why=change(proof.trigger.why)))


def drop_a_premise(proof: EventProof) -> EventProof:
    return _with_trigger(proof, lambda why: replace(why, premises=why.premises[1:]))


def drop_a_premise_of_a_rule(proof: EventProof) -> EventProof:
    def change(why: SolutionProof) -> SolutionProof:
        derived = next(p for p in why.premises if isinstance(p, Derived))
        less = replace(derived, premises=derived.premises[1:])
        return replace(why, premises=tuple(less if p is derived else p for p in why.premises))

    return _with_trigger(proof, change)


def state_what_was_not_stated(proof: EventProof) -> EventProof:
    def change(why: SolutionProof) -> SolutionProof:
        derived = next(p for p in why.premises if isinstance(p, Derived))
        return replace(
            why, premises=tuple(InStream(p.triple, proof.time) if p is derived else p for p in why.premises)
        )

    return _with_trigger(proof, change)


def change_a_term(proof: EventProof) -> EventProof:
    return replace(proof, values=("<urn:other>", *proof.values[1:]))


def change_the_name(proof: EventProof) -> EventProof:
    return replace(proof, id=proof.id[:-1] + ("a" if proof.id[-1] != "a" else "b"))


def _first(proof: EventProof, kind: type[Chosen] | type[NothingThere]) -> int:
    return next(i for i, step in enumerate(proof.steps) if isinstance(step, kind))


def widen_a_window(proof: EventProof) -> EventProof:
    place = _first(proof, Chosen)
    conjunct = proof.steps[place].conjunct
    assert isinstance(conjunct.window, Within)
    wide = replace(conjunct, window=replace(conjunct.window, duration=conjunct.window.duration * 2))
    steps = list(proof.steps)
    steps[place] = replace(steps[place], conjunct=wide)
    return replace(proof, steps=tuple(steps))


def skip_a_conjunct(proof: EventProof) -> EventProof:
    return replace(proof, steps=tuple(s for s in proof.steps if not isinstance(s.conjunct, Absent)))


def count_other_candidates(proof: EventProof) -> EventProof:
    place = _first(proof, Chosen)
    steps = list(proof.steps)
    chosen = steps[place]
    assert isinstance(chosen, Chosen)
    steps[place] = replace(chosen, passing=1)
    return replace(proof, steps=tuple(steps))


def take_an_earlier_fact(proof: EventProof) -> EventProof:
    place = _first(proof, Chosen)
    step = proof.steps[place]
    assert isinstance(step, Chosen)
    time, values, ordinal, id_ = step.fact.fact
    other: FactProof = replace(step.fact, fact=(time - 36_000_000, values, ordinal, id_))
    steps = list(proof.steps)
    steps[place] = replace(step, fact=other)
    return replace(proof, steps=tuple(steps))


MUTANTS = [
    drop_a_premise,
    drop_a_premise_of_a_rule,
    state_what_was_not_stated,
    change_a_term,
    change_the_name,
    widen_a_window,
    skip_a_conjunct,
    count_other_candidates,
    take_an_earlier_fact,
]


def test_the_proof_itself_is_accepted(fire: tuple[EventProof, Callable[[EventProof], list[str]]]) -> None:
    proof, check = fire
    assert check(proof) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_rejected(
    fire: tuple[EventProof, Callable[[EventProof], list[str]]], mutant: Callable[[EventProof], EventProof]
) -> None:
    proof, check = fire
    assert check(mutant(proof)) != []
