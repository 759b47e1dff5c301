"""Where a row is too much work for a partition, what is open in it is dropped; it goes on behind that row."""

from __future__ import annotations

from typing import Any

import pytest

from dotr.detect.detector import TeslaDetector
from dotr.events import Fact, Match
from dotr.lang import parse_program
from dotr.rdf.terms import integer
from tests.detect.building import CLOCK
from tests.detect.sequences.patterns import S
from tests.detect.sequences.test_detector import left_out

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


def written(pattern: str, conditions: str, way: str = "") -> str:
    """The program with another pattern."""
    query, _, rule = PROGRAM.strip().splitlines()
    return f"{query}\nSEQUENCE S := {pattern} OF Q PER ?k {conditions} WITHIN 1 d {way}\n{rule}\n"


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


ZEROS = "AND A ON A.?v = 0 AND B ON B.?v = 9"


@pytest.mark.parametrize(
    ("pattern", "way", "lengths"),
    [("A+ B", "OVERLAPPING", range(2, 202)), ("A C A* B", "SKIP TO LAST C", range(3, 202))],
)
def test_matches_that_end_at_one_instant_share_their_rows(pattern: str, way: str, lengths: range) -> None:
    """Each of 200 rows begins a mapping which a last one completes. Registers take rows and matches, not
    their product.
    """
    values = "WITH ?n := COUNT(*), ?s := SUM(A.?v), ?f := FIRST(*, 1).time"
    text = written(pattern, f"{ZEROS} {'AND C ON C.?v = 0' if 'C' in pattern else ''}", f"{way} {values}")
    detector = TeslaDetector(parse_program(text), CLOCK)
    for time in range(200):
        assert not detector.at(time, {"Q": [(time, (integer(1), integer(0)), 0, "")]})
    [sequence] = [bundle.sequence for bundle in detector.network.sequences.values()]
    assert sequence is not None
    calls = 0

    def counted(update: Any) -> Any:
        def call(*given: Any) -> Any:
            nonlocal calls
            calls += 1
            return update(*given)

        return call

    code = sequence.code
    code.updates[:], code.prepends[:] = map(counted, code.updates), map(counted, code.prepends)
    found = detector.at(200, {"Q": [(200, (integer(1), integer(9)), 0, "")]})
    assert {match.bindings[0] for match in found if match.bindings} == set(map(integer, lengths))
    assert 0 < calls < 3 * 200


@pytest.mark.parametrize("value", ["COLLECT(A.?v)", "COUNT(DISTINCT A.?v)", "MEDIAN(A.?v)"])
def test_rows_that_values_of_matches_go_through_are_counted(value: str) -> None:
    """Ten matches of ten rows and fewer: 55 in all. Then the partition has no match at that instant."""
    text = written("A+ B", ZEROS, f"OVERLAPPING WITH ?n := {value}")
    rows = [*[0] * 10, 9, 0, 9]
    found, refused = run(90, *rows, text=text)
    assert (len(found), refused) == (11, [])
    found, refused = run(70, *rows, text=text)
    assert [match.time for match in found] == [12]
    assert [fact[:2] for fact in refused] == [(0, (integer(1), integer(0)))]


def test_what_values_exceed_is_left_out_by_the_literal_reading() -> None:
    """Also at a deadline, where the named row came at the same instant, and in a mapping by itself."""
    several = {4: [0] * 12, 30: [0, 0], 60: [0, 0, 0, 0, 9]}
    history = [
        (time * S, {"Q": [(time * S, (integer(1), integer(v)), n, "") for n, v in enumerate(values)]})
        for time, values in {**{time: [0] for time in range(4)}, **several, 90: [5]}.items()
    ]
    exceeded = set()
    for pattern, conditions in [("A+", ZEROS.split(" AND B")[0]), ("A+", "AND A ON COUNT(A) < 20")]:
        for way in ("OVERLAPPING", ""):
            text = written(pattern, conditions, f"GAP 9 s {way} WITH ?n := COLLECT(A.?v)")
            for budget in (9, 15, 40, 60, 130, 400, 2_000):
                refused = left_out(parse_program(text), history, budget)
                exceeded.add((way, budget, bool(refused)))
    assert {True, False} == {some for _, _, some in exceeded}
    assert ("OVERLAPPING", 130, True) in exceeded
    assert ("OVERLAPPING", 2_000, False) in exceeded
