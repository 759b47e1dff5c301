"""Where a row is too much work for a partition, what is open in it is dropped; it goes on behind that row."""

from __future__ import annotations

from dotr.detect.detector import TeslaDetector
from dotr.events import Fact, Match
from dotr.lang import parse_program
from dotr.rdf.terms import integer
from tests.detect.building import CLOCK

PROGRAM = """
QUERY Q := { SELECT ?k ?v WHERE { ?k <urn:x:v> ?v } }
SEQUENCE S := A+ B OF Q PER ?k AND A ON A.?v <= COUNT(A) AND B ON B.?v = 9 WITHIN 1 d WITH ?n := COUNT(A)
RULE R DEFINE { dotr_x a <urn:x:R> } FROM S
"""


def run(budget: int, *values: int) -> tuple[list[Match], list[Fact]]:
    refused: list[Fact] = []
    program = parse_program(PROGRAM)
    detector = TeslaDetector(
        program, CLOCK, budget=budget, on_refused=lambda _rule, fact, _error: refused.append(fact)
    )
    found: list[Match] = []
    for time, value in enumerate(values):
        found += detector.at(time, {"Q": [(time, (integer(1), integer(value)), 0, "")]})
    return [match for match in found if match.rule == program.rule_index("S")], refused


def test_too_many_open_mappings_are_dropped() -> None:
    """Each row begins a mapping: two states wait for the second, four for the third."""
    found, refused = run(1_000, 0, 0, 0, 9)
    assert [match.bindings for match in found] == [(integer(3),)]
    assert refused == []
    found, refused = run(40, 0, 0, 0, 0, 9)
    assert [fact[0] for fact in refused] == [2]
    assert [match.bindings for match in found] == [(integer(1),)]
