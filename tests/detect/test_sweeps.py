"""Sweeps of columns: rules sleep and wake again, and what is out of reach goes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from dotr.detect.detector import TeslaDetector
from dotr.events import Fact, Match, Time
from dotr.lang import parse_program
from dotr.program import Program
from dotr.reference.tesla import LiteralTesla
from tests.detect.building import CLOCK

SECOND = 1_000_000


def program(*conjuncts: str) -> Program:
    queries = [f"QUERY {name} := {{ SELECT ?k WHERE {{ ?k <urn:{name}> 1 }} }}" for name in "SH"]
    rules = [
        f"RULE R{n} DEFINE {{ dotr_a a <urn:R> }} FROM T := S AND {conjunct} ON C.?k = T.?k"
        for n, conjunct in enumerate(conjuncts)
    ]
    return parse_program("\n".join([*queries, *rules]))


def facts(time: Time, keys: range) -> list[Fact]:
    return [(time, (f"<urn:x:{key:03}>",), 0, "") for key in keys]


def run(detector: Any, stream: list[tuple[Time, range, range]]) -> list[Match]:
    found: list[Match] = []
    for time, heat, smoke in stream:
        known = {"H": facts(time * SECOND, heat), "S": facts(time * SECOND, smoke)}
        found += detector.at(time * SECOND, {name: some for name, some in known.items() if some}, True)
        if isinstance(detector, TeslaDetector):
            for bundles in detector.network._users.values():
                assert all(0 <= bundle.missing <= 1 for bundle in bundles)  # each needs one column here
    return found


FOUR = [(time, range(30), range(30)) for time in (1, 2, 3, 4)]
LATER = [
    (0, range(1), range(0)),
    (80, range(30), range(30)),
    (1000, range(2), range(0)),
    (1001, range(2), range(2)),
]


@pytest.mark.parametrize(("seconds", "stream"), [(0, FOUR), (10, LATER)])
def test_a_rule_wakes_after_its_column_grew_and_was_swept_empty(
    seconds: int, stream: list[tuple[Time, range, range]]
) -> None:
    of = program(f"LAST C := H WITHIN {seconds} s FROM T")
    expected = run(LiteralTesla(of, CLOCK), stream)
    assert len(expected) > 30
    assert run(TeslaDetector(of, CLOCK), stream) == expected


@pytest.mark.parametrize("selection", ["LAST", "EACH"])
def test_a_column_of_ever_new_keys_is_swept_every_time_and_empty_when_none_is_live(selection: str) -> None:
    detector = TeslaDetector(program(f"{selection} C := H WITHIN 10 s FROM T"), CLOCK)
    (column,) = detector.network.columns.values()
    most = 0
    for time in range(200):
        detector.at(time * SECOND, {"H": facts(time * SECOND, range(3 * time, 3 * time + 3))}, True)
        most = max(most, column.size())
    assert 33 <= most <= 2 * 33 + 3  # three new keys a second, eleven seconds in reach
    detector.at((200 + 22) * SECOND, {}, True)
    assert column.size() == 0
    assert not detector.network.streams["S"].awake


@st.composite
def cases(draw: st.DrawFn) -> tuple[Program, list[tuple[Time, range, range]]]:
    """Some conjuncts, many keys, and steps at and beside multiples of what the columns keep."""
    seconds = draw(st.sampled_from([0, 1, 2, 5]))
    windows = [f"{seconds} s FROM T", f"{seconds + 1} s BEFORE T", f"{2 * seconds} s FROM T"]
    operators = draw(st.lists(st.sampled_from(["LAST", "NOT", "EACH", "FIRST"]), min_size=1, max_size=3))
    conjuncts = [f"{one} C := H WITHIN {draw(st.sampled_from(windows))}" for one in operators]
    steps = [1, 1, 2, max(1, seconds), max(1, 32 * seconds), 32 * seconds + 1, 100]
    many = st.sampled_from([0, 1, 3, 17, 40])
    stream, time = [], 0
    for _ in range(draw(st.integers(1, 12))):
        first = draw(st.integers(0, 20))
        stream.append((time, range(first, first + draw(many)), range(draw(many))))
        time += draw(st.sampled_from(steps))
    return program(*conjuncts), stream


@given(cases())
def test_what_is_swept_when_changes_no_match(case: tuple[Program, list[tuple[Time, range, range]]]) -> None:
    of, stream = case
    expected = run(LiteralTesla(of, CLOCK), stream)
    event("has matches" if expected else "has none")
    assert run(TeslaDetector(of, CLOCK), stream) == expected
