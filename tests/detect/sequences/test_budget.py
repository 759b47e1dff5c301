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


def run(
    budget: int, *values: int, text: str = PROGRAM, kept: list[int] | None = None
) -> tuple[list[Match], list[Fact]]:
    """Matches, and rows that were too much work. `kept` gets how much is open after each row."""
    refused: list[Fact] = []
    program = parse_program(text)
    detector = TeslaDetector(
        program, CLOCK, budget=budget, on_refused=lambda _rule, fact, _error: refused.append(fact)
    )
    found: list[Match] = []
    for time, value in enumerate(values):
        found += detector.at(time, {"Q": [(time, (integer(1), integer(value)), 0, "")]})
        if kept is not None:
            kept.append(sum(one.sequence.sizes() for one in detector.network.sequences.values()))  # type: ignore[union-attr]  # it ran
    return [match for match in found if match.rule == program.rule_index("S")], refused


def test_too_many_open_mappings_are_dropped() -> None:
    """Each row begins a mapping: two states wait for the second, four for the third."""
    found, refused = run(1_000, 0, 0, 0, 9)
    assert [match.bindings for match in found] == [(integer(3),)]
    assert refused == []
    found, refused = run(40, 0, 0, 0, 0, 9)
    assert [fact[0] for fact in refused] == [2]
    assert [match.bindings for match in found] == [(integer(1),)]


def written(pattern: str, conditions: str) -> str:
    """The program with another pattern."""
    query, _, rule = PROGRAM.strip().splitlines()
    return f"{query}\nSEQUENCE S := {pattern} OF Q PER ?k {conditions} WITHIN 1 d\n{rule}\n"


def test_a_row_makes_no_more_mappings_than_the_conditions_that_it_was_tested_for() -> None:
    """Behind each of eight alternatives nine elements wait: mappings are not kept nine times."""
    names = "ABCDEFGH"
    conditions = " ".join(f"AND {name} ON COUNT(*) > 0" for name in names)
    text = written(f"({' | '.join(names)})+ Z", f"{conditions} AND Z ON Z.?v = 9")
    budget, kept = 10_000, list[int]()
    _, refused = run(budget, *[0] * 12, text=text, kept=kept)
    assert len(refused) == 3
    assert max(kept) * 10 <= budget


def test_rows_that_an_aggregate_goes_through_are_counted() -> None:
    """COUNT(DISTINCT) of a condition has all its values again for each row and mapping."""
    text = written("A+ B", "AND A ON COUNT(DISTINCT A.?v) >= 0 AND B ON B.?v = 9")
    values = range(100, 400)
    assert run(50_000, *values, text=text.replace("DISTINCT ", ""))[1] == []
    _, refused = run(50_000, *values, text=text)
    assert len(refused) == 1


def test_what_exceeds_the_budget_in_one_partition_leaves_others_alone() -> None:
    program = parse_program(PROGRAM)
    refused: list[Fact] = []
    detector = TeslaDetector(
        program, CLOCK, budget=60, on_refused=lambda _rule, fact, _error: refused.append(fact)
    )
    found: list[Match] = []
    for time in range(6):
        rows = [(0, 0), (1, 0)] if time < 5 else [(0, 9), (1, 9)]
        if time in (1, 2, 3):
            rows = rows[:1]  # the second partition has two rows before the last
        found += detector.at(time, {"Q": [(time, (integer(k), integer(value)), 0, "") for k, value in rows]})
    assert {fact[1][0] for fact in refused} == {integer(0)}
    assert sum(match.rule == program.rule_index("S") for match in found) == 2
