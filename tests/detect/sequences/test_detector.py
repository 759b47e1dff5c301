"""Detectors with sequences are the literal reading: on random programs, cut anywhere, without graphs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dotr.detect.detector import TeslaDetector
from dotr.events import Fact, Match, Time
from dotr.lang import parse_program
from dotr.program.program import Program
from dotr.rdf.terms import integer
from dotr.reference.tesla import LiteralTesla
from tests.detect.building import CLOCK
from tests.detect.sequences.patterns import S
from tests.detect.sequences.worlds import random_history, random_program


def _all(
    detector: LiteralTesla | TeslaDetector,
    program: Program,
    history: list[tuple[int, dict[str, list[Fact]]]],
    background: bool,
    cuts: Random | None = None,
) -> list[Match]:
    """`background`: S1 has its facts without a graph, too."""
    found: list[Match] = []
    last: int | None = None
    for time, facts in [*history, (history[-1][0] + 40 * S, {})]:
        tick = None if last is None else detector.next_tick(last)
        while tick is not None and tick < time:
            known = {"S1": [(tick, *fact[1:]) for fact in history[0][1]["S1"]]} if background else {}
            found += detector.at(tick, known, False)  # type: ignore[arg-type]  # facts
            if cuts is not None and cuts.random() < 0.2:
                assert isinstance(detector, TeslaDetector)
                detector = _again(detector, program)
            tick = detector.next_tick(tick)
        found += detector.at(time, facts, True)
        if cuts is not None and cuts.random() < 0.2:
            assert isinstance(detector, TeslaDetector)
            detector = _again(detector, program)
        last = time
    return found


def _again(detector: TeslaDetector, program: Program) -> TeslaDetector:
    state = json.loads(json.dumps(detector.snapshot()))
    other = TeslaDetector(program, CLOCK)
    assert other.restore(state).empty == ()
    return other


def check(seed: int) -> int:
    """How many matches there are."""
    random = Random(seed)
    program = random_program(random)
    history = random_history(random, program, random.choice([4, 8, 12]))
    background = random.random() < 0.3
    literal = _all(LiteralTesla(program, CLOCK), program, history, background)
    assert _all(TeslaDetector(program, CLOCK), program, history, background) == literal
    assert _all(TeslaDetector(program, CLOCK), program, history, background, Random(seed)) == literal
    return len(literal)


@given(st.integers(0, 2**40))
def test_random_programs(seed: int) -> None:
    check(seed)


def refusing(seed: int) -> int:
    """With a budget that some rows exceed; the literal reading is given which. How many did."""
    random = Random(seed)
    program = random_program(random)
    return len(left_out(program, random_history(random, program, 10), random.choice([30, 60, 100])))


def left_out(
    program: Program, history: Sequence[tuple[Time, dict[str, list[Fact]]]], budget: int
) -> list[tuple[int, Fact]]:
    """The rows that exceed a budget, after what is found without them was compared, deadlines included."""
    refused: list[tuple[int, Fact]] = []
    detector = TeslaDetector(
        program, CLOCK, budget=budget, on_refused=lambda rule, fact, _error: refused.append((rule, fact))
    )
    literal = LiteralTesla(program, CLOCK)
    last: int | None = None
    for time, facts in history:
        tick = None if last is None else detector.next_tick(last)
        while tick is not None and tick < time:
            found = detector.at(tick, {}, False)
            assert literal.at(tick, {}, False, refused) == found
            tick = detector.next_tick(tick)
        found = detector.at(time, facts)
        assert literal.at(time, facts, True, refused) == found
        last = time
    return refused


@given(st.integers(0, 2**40))
def test_what_is_too_much_is_left_out(seed: int) -> None:
    refusing(seed)


def test_a_row_is_asked_for_no_attribute_that_its_source_has_not() -> None:
    """Several conditions compare one attribute, which rows of the other source are too short for."""
    program = parse_program("""
QUERY Quote := { SELECT ?user ?price WHERE { ?user <urn:x:price> ?price } }
QUERY Call := { SELECT ?user WHERE { ?user <urn:x:calls> true } }
SEQUENCE S := Start Down+ Up Top Call OF Quote, Call PER ?user
AND Start OF Quote
AND Down OF Quote ON Down.?price < PREV.?price
AND Up OF Quote ON Up.?price > PREV.?price
AND Top OF Quote ON Top.?price > Start.?price
WITHIN 1 h WITH ?top := Top.?price
RULE R DEFINE { dotr_r a <urn:x:R> ; <urn:x:top> ?top } FROM S WITH ?top := S.?top
""")
    history: list[tuple[int, dict[str, list[Fact]]]] = []
    for second, price in enumerate([None, 5, 4, 2, 3, 6, None, 7]):
        time = second * S
        if price is None:
            history.append((time, {"Call": [(time, ('"u"',), 0, "")]}))
        else:
            history.append((time, {"Quote": [(time, ('"u"', integer(price)), 0, "")]}))

    def found(detector: LiteralTesla | TeslaDetector) -> list[Match]:
        return [match for time, facts in history for match in detector.at(time, facts)]

    literal = found(LiteralTesla(program, CLOCK))
    assert [(match.time, match.bindings) for match in literal] == [(6 * S, (integer(6),))] * 2
    assert found(TeslaDetector(program, CLOCK)) == literal
