"""Matches of private rules that others only count are counted, not listed; nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.detect.counting import Counts
from dotr.detect.detector import TeslaDetector
from dotr.events import Fact, Match
from dotr.program import Conjunct, Const, Every, Position, Rule, Summarise
from dotr.rdf.terms import integer
from tests.detect.building import (
    CLOCK,
    A,
    absent,
    at,
    before,
    between,
    call,
    each,
    equal,
    facts,
    last,
    program,
    rule,
    total,
    within,
)
from tests.detect.chain_worlds import chain, constants
from tests.detect.test_differential import DEEP, drive, engine, run_oracle
from tests.detect.worlds import QUERIES, VARIABLES, World, instants

X = before(9, "S")


def private(*conjuncts: Conjunct, **rest: Any) -> Rule:
    rest.setdefault("give", {"k": "S.k", "v": "S.v"})
    return replace(rule("Chain", at("S", "P"), *conjuncts, **rest), private=True)


def chained(name: str = "C", stream: str = "Chain") -> Position:
    return at(name, stream, chained=True)


def counting(*conjuncts: Conjunct) -> Rule:
    return rule("Reader", at("T", "Q"), *conjuncts, give={"k": "T.k"})


HOW_MANY = total("COUNT", None, "n", chained(), within(9, "T"))
EACH_A, EACH_B = each(at("A"), X), each(at("B"), before(9, "A"))


def counted(*rules: Rule) -> bool:
    return bool(TeslaDetector(program(*rules), CLOCK).counted)


@pytest.mark.parametrize(
    ("chain_", "reader"),
    [
        (private(EACH_A), counting(HOW_MANY)),
        (private(EACH_A, EACH_B), counting(HOW_MANY)),
        (private(EACH_A, EACH_B), counting(absent(chained(), within(9, "T")))),
        (private(EACH_A, EACH_B), counting(absent(chained(), within(9, "T"), equal("C.k", "T.k")), HOW_MANY)),
        (private(EACH_A, EACH_B, where=call("<", "A.v", "B.v")), counting(HOW_MANY)),
        (private(EACH_A, EACH_B, absent(at("N"), between("B", "A"))), counting(HOW_MANY)),
        (private(EACH_A, give={"k": "S.k", "v": "A.v"}), counting(HOW_MANY)),
    ],
)
def test_what_is_only_counted_is_not_listed(chain_: Rule, reader: Rule) -> None:
    assert counted(chain_, reader)
    assert "matches: counted, not listed" in TeslaDetector(program(chain_, reader), CLOCK).describe()["Chain"]
    assert not TeslaDetector(program(chain_, reader), CLOCK, listed=True).counted


@pytest.mark.parametrize(
    ("chain_", "readers"),
    [
        (replace(private(EACH_A), private=False), [counting(HOW_MANY)]),
        (private(EACH_A), [counting(last(chained(), within(9, "T")))]),
        (private(EACH_A), [counting(HOW_MANY), rule("Other", chained("S"), give={"k": "S.k"})]),
        (private(EACH_A), [counting(replace(HOW_MANY, argument=call("+", "C.k", 1)))]),
        (private(EACH_A, consuming=["A"]), [counting(HOW_MANY)]),
        (private(last(at("A"), X)), [counting(HOW_MANY)]),
        (private(EACH_A, each(at("B"), X), where=call("<", "A.v", "B.v")), [counting(HOW_MANY)]),
        (
            private(EACH_A, give={"k": "A.k", "v": "S.v"}),
            [counting(absent(chained(), within(9, "T"), equal("C.k", "T.k")))],
        ),
        (private(EACH_A), []),
    ],
)
def test_what_somebody_sees_is_listed(chain_: Rule, readers: list[Rule]) -> None:
    assert not counted(chain_, *readers)


@st.composite
def counts(draw: st.DrawFn) -> World:
    """A private chain, and rules that count its events or find none."""
    chain_ = replace(constants(draw(chain("T0", 0)), draw), private=True, consuming=())
    readers = [draw(_reader(f"R{i}")) for i in range(draw(st.integers(1, 2)))]
    return World(program(chain_, *readers), draw(instants(draw(st.integers(0, 3)) == 0)))


@st.composite
def _reader(draw: st.DrawFn, name: str) -> Rule:
    trigger = (
        Every(3, "Go") if draw(st.booleans()) else Position("Go", draw(st.sampled_from(QUERIES)), VARIABLES)
    )
    conjuncts: list[Conjunct] = []
    give: dict[str, Any] = {"k": "?n", "v": Const(A)}
    for number, kind in enumerate(draw(st.sampled_from((("n",), ("a",), ("n", "a"), ("n", "n"))))):
        position = Position(f"C{number}", "T0", VARIABLES, chained=True)
        window = (before if draw(st.booleans()) else within)(draw(st.sampled_from((0, 2, 9))), "Go")
        on = draw(st.none() | st.just(call("=", f"C{number}.k", A)) | st.just(call("<", f"C{number}.v", 2)))
        if isinstance(trigger, Position) and draw(st.integers(0, 3)) == 0:
            on = equal(f"C{number}.k", "Go.k")
        if kind == "n":
            conjuncts.append(Summarise("COUNT", None, False, f"n{number or ''}", position, window, on))
        else:
            conjuncts.append(absent(position, window, on))
    if "?n" not in {f"?{c.variable}" for c in conjuncts if isinstance(c, Summarise)}:
        give["k"] = Const(A)
    return rule(name, trigger, *conjuncts, give=give)


@given(counts())
@settings(max_examples=5_000 if DEEP else 120)
def test_counts_are_those_of_the_literal_reading(world: World) -> None:
    expected, dropped = run_oracle(world)
    detector = engine(world)
    event("counted" if detector.counted else "listed")
    hidden = detector.counted
    expected = [match for match in expected if match.rule not in hidden]
    expected.append(Match(-1, dropped, (), ()))
    passed: dict[str, int | None] = {}
    for cuts in (False, True):
        found = drive(detector, world, cuts)
        assert found == expected
        if not cuts and hidden:
            passed = {name: steps[-1][1] for name, steps in detector.passed().items() if steps}
        detector = engine(world)
    listed = TeslaDetector(world.program, CLOCK, listed=True)
    drive(listed, world)
    if hidden:
        of_chain = listed.passed()["T0"]
        assert passed.get("T0", 0) == (of_chain[-1][1] if of_chain else 0)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=12), st.integers(0, 3))
def test_ways_are_added_up_wherever_they_are_put(asked: list[tuple[int, int]], dead: int) -> None:
    known = Counts()
    for start, width in asked:
        for since, until in known.gaps(start, start + width):
            new: list[Fact] = [(t, (), n, "") for t in range(since, until) for n in (0, 1) if t % 4 != dead]
            known.put((new, [1 + fact[0] + fact[2] for fact in new]))
        inside = [(t, n) for t in range(start, start + width) for n in (0, 1) if t % 4 != dead]
        assert known.many(start, start + width) == sum(1 + t + n for t, n in inside)
        assert known.of((start, (), 1, "")) == (0 if start % 4 == dead else start + 2)
        facts_, ways = known.between(start, start + width, (start, (), 1, ""))
        left = [(t, n) for t, n in inside if (t, n) != (start, 1)]
        assert [(fact[0], fact[2]) for fact in facts_] == left
        assert ways == [1 + t + n for t, n in left]


def test_a_count_takes_no_more_than_its_candidates() -> None:
    """Twelve loops over thirty facts each: 2 · 10¹⁷ matches."""
    loops = [each(at(f"E{i}", "R"), before(1_000, f"E{i - 1}" if i else "S")) for i in range(12)]
    reader = counting(total("COUNT", None, "n", chained(), within(9, "T")))
    reader = replace(reader, bindings=rule("R", at("T", "Q"), give={"n": "?n"}).bindings)
    detector = TeslaDetector(program(private(*loops), reader), CLOCK, budget=10_000)
    for time in range(30):
        detector.at(time, {"R": facts(time, (A, time))})
    detector.at(30, {"P": facts(30, (A, 1))})
    (match,) = detector.at(31, {"Q": facts(31, (A, 1))})
    assert match.bindings == (integer(86_493_225),)  # 30 over 12
