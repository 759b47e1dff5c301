"""A proof goes through anonymous properties, and names them by what they are the inverses of."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest
from msgspec.structs import replace

from dotr import KnowledgeBase
from dotr.explain.checker import TripleChecker
from dotr.explain.proofs import Derived, EventProof, Of, SolutionProof
from tests.explain.proving import checker_of, explainer_of, history_of

CASE = Path(__file__).parents[1] / "golden/entailment/an-anonymous-inverse-stands-where-a-property-may"
ONTOLOGY = """
PREFIX : <urn:> PREFIX owl: <http://www.w3.org/2002/07/owl#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
:has rdfs:subPropertyOf [ owl:inverseOf [ owl:inverseOf [ owl:inverseOf :partOf ] ] ] . :car :has :wheel .
"""
PARTS = ("<urn:wheel>", "<urn:partOf>", "<urn:car>")


@pytest.fixture
def kb() -> KnowledgeBase:
    found = KnowledgeBase(entailment="owl2rl", terms="canonical", prefixes={"": "urn:"})
    found.insert(ONTOLOGY)
    return found


def test_it_is_shown_as_it_was_written(kb: KnowledgeBase) -> None:
    text = str(kb.explain(PARTS))
    assert ":car [ owl:inverseOf :partOf ] :wheel" in text
    assert ":car [ owl:inverseOf [ owl:inverseOf [ owl:inverseOf :partOf ] ] ] :wheel" in text
    assert "_:" not in text


def test_values_say_what_its_labels_are_the_inverses_of(kb: KnowledgeBase) -> None:
    found = kb.explain(PARTS).to_dict()
    ((label, of),) = found["inverses"].items()
    assert label.startswith("_:")
    assert of == "<urn:partOf>"
    assert found["premises"][0]["triple"] == ["<urn:car>", label, "<urn:wheel>"]


def test_what_does_not_hold_lacks_a_triple_of_it(kb: KnowledgeBase) -> None:
    found = kb.explain(("<urn:car>", "<urn:partOf>", "<urn:wheel>"))
    assert not found
    assert "lacks :wheel [ owl:inverseOf :partOf ] :car" in str(found)
    assert found.to_dict()["attempts"][0]["inverses"]


def _premise(proof: EventProof) -> Derived:
    assert isinstance(proof.trigger.why, SolutionProof)
    found = proof.trigger.why.premises[0]
    assert isinstance(found, Derived)
    return found


def test_a_proof_is_checked_and_a_wrong_inverse_is_refuted() -> None:
    with chdir(CASE):
        history = history_of(Path("rules.dotr"), [Path("stream.jsonl")])
        explainer = explainer_of(history)
        checker = checker_of(history, explainer)
        proofs = [explainer.event(event) for event in history.events]
        for proof in proofs:
            checker.event(proof)
        assert checker.found == []
        right = _premise(proofs[-1])
        assert [label for label, _ in right.inverses]
        refuted: list[str] = []
        claims = TripleChecker(checker.history, lambda ok, text: None if ok else refuted.append(text))
        claims.check(right, 2 * 10**6, Of.INSTANT)
        assert refuted == []
        wrong = replace(right, inverses=tuple((label, "<ex:in>") for label, _ in right.inverses))
        claims.check(wrong, 2 * 10**6, Of.INSTANT)
        assert any("is not the inverse of <ex:in>" in text for text in refuted)
