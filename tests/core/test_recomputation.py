"""What lasts, recomputed: standing answers as differences, undone changes, and contradictions passed over."""

from __future__ import annotations

from typing import Any

import pytest

from dotr.core.periods import Periods, StatedChange
from dotr.core.recomputation import Recomputation
from dotr.errors import DataError
from dotr.events import FOREVER, Clock, Fact
from dotr.io.files.rule_texts import RuleTexts
from dotr.ir import Program
from dotr.lang import parse_program
from dotr.rdf.terms import RDF_TYPE, Triple

OWL = "<http://www.w3.org/2002/07/owl#{}>"
RULES = """PREFIX : <urn:x:>
QUERY Q := { SELECT ?o WHERE { ?o a :A } }
RULE Begun DEFINE { dotr_x :begun ?o } FROM B := ISTREAM Q WITH ?o := B.?o
RULE Ended DEFINE { dotr_x :ended ?o } FROM E := DSTREAM Q WITH ?o := E.?o
RULE Now DEFINE { dotr_x :now ?o } FROM Q WITH ?o := Q.?o
HOLD :kept FOR 1 min
"""
A1: Triple = ("<urn:x:1>", RDF_TYPE, "<urn:x:A>")
A2: Triple = ("<urn:x:2>", RDF_TYPE, "<urn:x:A>")
B1: Triple = ("<urn:x:1>", RDF_TYPE, "<urn:x:B>")
SUBCLASS: Triple = ("<urn:x:B>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<urn:x:A>")
APART: Triple = ("<urn:x:A>", OWL.format("disjointWith"), "<urn:x:B>")


def knowledge(*stated: Triple, entailment: str = "") -> tuple[Recomputation, Program]:
    head = f"ENTAILMENT {entailment}\n" if entailment else ""
    program = parse_program(head + RULES, read=RuleTexts())
    return Recomputation(program, Periods(stated, program.holds), Clock()), program


def begins(*triples: Triple, held: bool = True) -> StatedChange:
    return StatedChange(dict.fromkeys(triples, FOREVER), held=triples if held else ())


def shown(found: dict[str, list[Fact]]) -> dict[str, list[Any]]:
    return {stream: [values[0] for _, values, _, _ in facts] for stream, facts in found.items()}


def test_standing_answers_are_the_difference_to_those_kept() -> None:
    of, _ = knowledge(A1)
    assert shown(of.change(1, begins(A2))) == {"ISTREAM Q": ["<urn:x:2>"]}
    of.keep()
    assert of.change(2, StatedChange()) == {}
    assert shown(of.change(2, StatedChange(ended=[A1]))) == {"DSTREAM Q": ["<urn:x:1>"]}
    assert shown(of.facts(2, None)) == {"Q": ["<urn:x:2>"]}


def test_an_abandoned_change_never_was() -> None:
    of, _ = knowledge(A1)
    of.keep()
    of.change(1, begins(A2))
    assert shown(of.facts(1, [("<urn:x:3>", RDF_TYPE, "<urn:x:A>")])) == {
        "Q": ["<urn:x:1>", "<urn:x:2>", "<urn:x:3>"]
    }
    of.abandon()
    assert shown(of.facts(1, None)) == {"Q": ["<urn:x:1>"]}
    assert shown(of.change(1, begins(A2))) == {"ISTREAM Q": ["<urn:x:2>"]}


def test_schema_that_is_inserted_is_followed_and_that_of_a_graph_refused() -> None:
    of, _ = knowledge(B1, entailment="owl2rl")
    with pytest.raises(DataError) as raised:
        of.change(1, begins(SUBCLASS))
    assert raised.value.diagnostics[0].code == "D2601"
    assert shown(of.change(1, begins(SUBCLASS, held=False))) == {"ISTREAM Q": ["<urn:x:1>"]}
    of.keep()
    assert A1 in of.state(())
    assert shown(of.change(2, StatedChange(ended=[SUBCLASS]))) == {"DSTREAM Q": ["<urn:x:1>"]}


def test_a_contradiction_is_passed_over_and_compared_with_the_last_consistent_answers() -> None:
    of, _ = knowledge(APART, A1, entailment="owl2rl")
    of.change(0, StatedChange())
    of.keep()
    with pytest.raises(DataError) as raised:
        of.change(1, begins(B1))
    assert raised.value.diagnostics[0].code == "D3101"
    assert of.snapshot() is None
    of.overlook(1, begins(B1))
    saved = of.snapshot()
    assert saved is not None
    with pytest.raises(DataError):
        of.change(2, StatedChange())
    assert shown(of.change(3, StatedChange(dict.fromkeys([A2], FOREVER), ended=[B1], held=[A2]))) == {
        "ISTREAM Q": ["<urn:x:2>"]
    }
    of.keep()
    assert of.snapshot() is None
    again, _ = knowledge(APART, A1, B1, entailment="owl2rl")
    again.restore(saved)
    assert again.snapshot() == saved
    assert shown(again.change(3, StatedChange(ended=[A1]))) == {"DSTREAM Q": ["<urn:x:1>"]}
