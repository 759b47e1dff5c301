"""Trigger facts that are left out, graphs that are taken ahead, and moves of standing answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dotr.budget import OVERLONG, Exhausted, Factor, Overlong
from dotr.core.deployment import Deployment
from dotr.core.instant import is_refusable
from dotr.core.pipeline import Pipeline, SkippedTriggers, drive
from dotr.errors import DataError, Diagnostic, ProgramError, Severity
from dotr.events import Clock, Fact
from dotr.extract.extractor import NO_MOVES, ViewDeltas
from dotr.lang import parse_program
from dotr.program.names import fail, overworked
from tests.detect.building import A, at, rule

CLOCK = Clock()
FACT: Fact = (5_000_000, (A, None), 0, "")
RULES = [rule("R", at("S")), rule("Q", at("S"))]


def much(number: int) -> ProgramError:
    return overworked(RULES[number], FACT, Exhausted([Factor("EACH H", 9)]), CLOCK, 100)


def test_without_a_handler_the_first_error_ends_the_run_behind_the_instant() -> None:
    left = SkippedTriggers()
    left.take(1, FACT, first := much(1))
    left.take(0, FACT, much(0))
    assert left.facts == [(1, FACT), (0, FACT)]
    assert left.settle(5, RULES, CLOCK) is first
    assert (left.facts, left.counts) == ([], {"Q": 1, "R": 1})
    assert left.settle(6, RULES, CLOCK) is None


def test_with_one_facts_are_counted_and_the_first_of_a_rule_is_said() -> None:
    taken: list[str] = []
    said: list[Diagnostic] = []
    left = SkippedTriggers(lambda name, _: taken.append(name), said.append)
    for time in (5, 6):
        for number in (0, 0, 1):
            left.take(number, FACT, much(number))
        assert left.settle(time, RULES, CLOCK) is None
    assert left.counts == {"R": 4, "Q": 2}
    assert taken == ["R", "R", "Q"] * 2
    assert [(one.severity, one.message.split("`")[1]) for one in said] == [
        (Severity.WARNING, "R"),
        (Severity.WARNING, "Q"),
    ]


def test_what_a_handler_raises_ends_the_run_but_all_are_counted() -> None:
    def refuse(name: str, error: ProgramError) -> None:
        if name == "Q":
            raise error

    left = SkippedTriggers(refuse)
    for number in (0, 1, 0):
        left.take(number, FACT, much(number))
    failed = left.settle(5, RULES, CLOCK)
    assert failed is not None
    assert "`Q`" in failed.diagnostics[0].message
    assert left.counts == {"R": 2, "Q": 1}
    left.take(0, FACT, much(0))
    left.forget()
    assert left.settle(6, RULES, CLOCK) is None


def test_a_fact_that_takes_too_much_is_shown_cut_with_its_time() -> None:
    (one,) = much(0).diagnostics
    assert (one.code, one.place) == ("D4010", "@ 5")
    assert "the fact: S(<urn:x:a>, unbound)" in one.notes
    long: Fact = (0, ("x" * 1000,), 0, "")
    (text,) = overworked(RULES[0], long, Overlong(1 << 30), CLOCK, 100).diagnostics
    assert text.code == OVERLONG
    assert len(text.notes[0]) < 300
    with pytest.raises(ProgramError):
        fail(0, FACT, much(0))


def test_which_errors_an_instant_is_at_fault_for() -> None:
    codes = ["D3101", "D3001", "D2601", "D4130", "D2006", "D1201", "D4090"]
    found = [code for code in codes if is_refusable(DataError.of(code, "x"))]
    assert found == ["D3101", "D3001", "D2601", "D4130"]


def test_moves_are_undone_by_their_opposite() -> None:
    moves = ViewDeltas(((None, [(("a",), 2), (("b",), -1)]),))  # type: ignore[arg-type]  # whichever unit
    assert (-moves).changes == ((None, [(("a",), -2), (("b",), 1)]),)
    again = -moves
    assert -again == moves
    assert bool(moves)
    assert not NO_MOVES
    assert ViewDeltas(asked=(None,))  # type: ignore[arg-type]


SEEN = "PREFIX : <urn:x:>\nRULE R DEFINE { dotr_x a :R } FROM S := { SELECT ?o WHERE { ?o :p ?v } }"


def pipeline() -> Pipeline:
    made = Pipeline(Deployment(parse_program(SEEN), []))
    made.begin(CLOCK)
    return made


def taking(of: Pipeline, times: list[int], error: Exception | None = None) -> Iterator[int]:
    for time in times:
        of.take(time * 1_000_000, [(f"<urn:x:{time}>", "<urn:x:p>", A)])
        yield 1
    if error is not None:
        raise error


def test_graphs_are_run_several_at_a_time_and_those_left_at_the_end() -> None:
    of, steps = pipeline(), []
    source = taking(of, [1, 2, 3, 4, 5])

    def counted() -> Iterator[int]:
        for number in source:
            steps.append(number)
            yield number

    run = drive(of, counted(), ahead=2)
    first = next(run)
    assert (first[0].time, len(steps)) == (1_000_000, 2), "the second closes the first"
    assert [one.time for found in run for one in found] == [2_000_000, 3_000_000, 4_000_000]


def test_an_error_of_the_source_comes_behind_what_was_closed_before_it() -> None:
    of = pipeline()
    found: list[int] = []

    def run() -> None:
        for emission in drive(of, taking(of, [1, 2, 3], DataError.of("D2014", "bad"))):
            found.extend(event.time for event in emission)

    with pytest.raises(DataError):
        run()
    assert found == [1_000_000, 2_000_000]
