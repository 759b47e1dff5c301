"""Complexity, by counting the looks at facts' times: no stopwatch, no flakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dotr.detect.detector import TeslaDetector
from dotr.errors import ProgramError
from dotr.events import Fact, RawMatch
from dotr.program import Conjunct, Every, Program
from dotr.rdf.terms import integer
from tests.detect.building import (
    CLOCK,
    A,
    B,
    absent,
    at,
    attribute,
    before,
    between,
    both,
    call,
    each,
    equal,
    first,
    last,
    program,
    rule,
    total,
    within,
)

looks = 0


def _watched(name: str) -> Callable[[Any, Any], Any]:
    plain = getattr(int, name)

    def compare(self: int, other: object) -> Any:
        global looks
        looks += 1
        return plain(self, other)

    return compare


class Watched(int):
    """A time that counts how often it is compared."""

    __hash__ = int.__hash__
    __lt__ = _watched("__lt__")
    __le__ = _watched("__le__")
    __gt__ = _watched("__gt__")
    __ge__ = _watched("__ge__")
    __eq__ = _watched("__eq__")


def stuffed(of: Program, size: int) -> TeslaDetector:
    """A detector that has seen `size` facts of `Heat` and of `Rain`, one an instant, all of one key."""
    detector = TeslaDetector(of, CLOCK)
    for t in range(size):
        fact: Fact = (Watched(t), (A, integer(t % 7)), 0, "")
        detector.at(t, {"Heat": [fact], "Rain": [fact]})
    return detector


def looks_of_a_trigger(of: Program, size: int) -> int:
    """Looks of one trigger when `size` facts lie in its window, after a first one that did the evictions."""
    global looks
    detector = stuffed(of, size)
    detector.at(size, {"Smoke": [(size, (A, integer(1)), 0, "")]})
    looks = 0
    assert len(detector.at(size + 1, {"Smoke": [(size + 1, (A, integer(1)), 0, "")]})) <= size
    return looks


KEY = equal("Heat.k", "Smoke.k")
ALL = 10**6


def smoke(*conjuncts: Conjunct, **rest: Any) -> Program:
    return program(rule("Fire", at("Smoke"), *conjuncts, **rest))


@pytest.mark.parametrize(
    "of",
    [
        smoke(last(at("Heat"), within(ALL, "Smoke"), KEY)),
        smoke(last(at("Heat"), before(ALL, "Smoke"), KEY)),
        smoke(last(at("Heat"), within(ALL, "Smoke"), both(KEY, call("=", "Heat.v", 3)))),
        smoke(last(at("Heat"), within(ALL, "Smoke"), KEY), consuming=["Heat"]),
        smoke(last(at("Heat"), within(ALL, "Smoke"), KEY, k=2)),
        smoke(absent(at("Heat"), within(ALL, "Smoke"), both(KEY, call(">", "Heat.v", 100)))),
        smoke(absent(at("Heat"), within(ALL, "Smoke"), KEY)),
        smoke(last(at("Rain"), within(ALL, "Smoke")), absent(at("Heat"), between("Rain", "Smoke"), KEY)),
        smoke(total("AVG", attribute("Heat.v"), "n", at("Heat"), within(ALL, "Smoke"), KEY)),
        smoke(total("COUNT", attribute("Heat.v"), "n", at("Heat"), within(ALL, "Smoke"), KEY, distinct=True)),
        smoke(total("MAX", attribute("Heat.v"), "n", at("Heat"), before(ALL, "Smoke"), KEY)),
        smoke(total("COUNT", None, "n", at("Heat"), within(ALL, "Smoke"), KEY)),
    ],
    ids=[
        *(
            "last",
            "last-before",
            "last-filter",
            "last-consuming",
            "last-k",
            "not-filter",
            "not",
            "not-between",
        ),
        *("avg", "count-distinct", "max", "count"),
    ],
)
def test_a_trigger_costs_the_same_whatever_the_window_holds(of: Program) -> None:
    assert looks_of_a_trigger(of, 1_000) <= looks_of_a_trigger(of, 20) + 4


@pytest.mark.parametrize(
    "of",
    [
        smoke(first(at("Heat"), within(ALL, "Smoke"), KEY)),
        smoke(last(at("Rain"), within(ALL, "Smoke")), last(at("Heat"), before(ALL, "Rain"), KEY)),
        smoke(
            last(at("Rain"), within(ALL, "Smoke")), absent(at("Heat"), within(0, "Rain"), equal("Heat.k", B))
        ),
        smoke(
            each(at("Heat"), within(5, "Smoke"), KEY),
            each(at("Wide", "Heat"), within(ALL, "Smoke"), equal("Wide.k", B)),
        ),
        smoke(
            last(at("Rain"), before(5, "Smoke")),
            total("COUNT", None, "n", at("Heat"), within(ALL, "Rain"), KEY),
        ),
    ],
    ids=[
        "first",
        "last-of-another-reference",
        "not-of-another-reference",
        "each",
        "count-of-another-reference",
    ],
)
def test_a_range_is_found_by_bisection(of: Program) -> None:
    assert looks_of_a_trigger(of, 4_096) <= looks_of_a_trigger(of, 16) + 60


def test_each_is_proportional_to_its_output() -> None:
    of = smoke(each(at("Heat"), within(10, "Smoke"), KEY))
    assert looks_of_a_trigger(of, 4_096) <= looks_of_a_trigger(of, 16) + 60


def _chain(length: int, on: Callable[[int], Any] = lambda _: None) -> Program:
    """Each event before the one written before it; the last one is of Rain."""
    conjuncts: list[Conjunct] = []
    reference = "Smoke"
    for i in range(1, length + 1):
        stream = "Rain" if i == length else "Heat"
        conjuncts.append(each(at(f"X{i}", stream), before(ALL, reference), on(i)))
        reference = f"X{i}"
    return smoke(*conjuncts)


@pytest.mark.parametrize("length", [3, 6, 24, 150])
def test_a_chain_without_its_first_event_costs_its_candidates(length: int) -> None:
    """150 Heat before the only Rain: no chain begins, and the budget is enough for each candidate once."""
    detector = TeslaDetector(_chain(length), CLOCK, budget=40 * 150 * length)
    for t in range(150):
        detector.at(t, {"Heat": [(t, (A, integer(1)), 0, "")]})
    detector.at(150, {"Rain": [(150, (A, integer(1)), 0, "")]})
    assert detector.at(151, {"Smoke": [(151, (A, integer(1)), 0, "")]}) == []


@pytest.mark.parametrize(
    "on",
    [
        lambda i: equal(f"X{i}.k", "Smoke.k"),
        lambda i: equal(f"X{i}.k", f"X{i - 1}.k" if i > 1 else "Smoke.k"),
        lambda i: equal(f"X{i}.k", "X1.k") if i > 1 else None,
        lambda i: call(">=", f"X{i}.v", f"X{i - 1}.v") if i > 1 else None,
    ],
    ids=["key of the trigger", "key of the one before", "key of the first", "comparison"],
)
def test_dead_ends_are_found_under_conditions(on: Callable[[int], Any]) -> None:
    detector = TeslaDetector(_chain(6, on), CLOCK, budget=1_000_000)
    for t in range(80):
        detector.at(t, {"Heat": [(t, (A, integer(1)), 0, "")]})
    detector.at(80, {"Rain": [(80, (A, integer(1)), 0, "")]})
    assert detector.at(81, {"Smoke": [(81, (A, integer(1)), 0, "")]}) == []


def test_facts_are_looked_at_about_twice_after_they_came() -> None:
    global looks
    of = smoke(
        last(at("Heat"), within(50, "Smoke"), KEY),
        each(at("Rain"), within(50, "Smoke"), equal("Rain.k", "Smoke.k")),
        total(
            "SUM",
            attribute("More.v"),
            "n",
            at("More", "Heat"),
            within(50, "Smoke"),
            equal("More.k", "Smoke.k"),
        ),
    )
    looks = 0
    stuffed(of, 5_000)
    assert looks <= 3 * 5_000 * 3


def test_rules_that_cannot_match_cost_nothing() -> None:
    rules = [
        rule(
            f"Fire{i}", at("Smoke"), last(at(f"Heat{i}"), within(5, "Smoke"), equal(f"Heat{i}.k", "Smoke.k"))
        )
        for i in range(200)
    ]
    detector = TeslaDetector(program(*rules), CLOCK)
    for t in range(100):
        time = Watched(t)
        detector.at(time, {"Smoke": [(t, (A, integer(1)), 0, "")], "Heat7": [(t, (B, integer(1)), 0, "")]})
    awake = detector.network.streams["Smoke"].awake
    assert [group.name for _, group in awake if group.run is not None] == ["Fire7"]


def test_rules_of_one_shape_share_columns_and_code() -> None:
    rules = [
        rule(
            f"Fire{i}",
            at("Smoke"),
            last(at("Heat"), within(100 + i, "Smoke"), equal("Heat.k", "Smoke.k")),
            where=call(">", "Heat.v", i),
        )
        for i in range(20)
    ]
    detector = TeslaDetector(program(*rules), CLOCK)
    assert len(detector.network.columns) == 1
    detector.at(1, {"Smoke": [(1, (A, integer(1)), 0, "")], "Heat": [(1, (A, integer(9)), 0, "")]})
    runs = [group.run for _, group in detector.network.streams["Smoke"].awake]
    assert len({run.__code__ for run in runs if run is not None}) == 1  # type: ignore[attr-defined]  # functions


def test_state_is_bounded_by_the_horizon_whether_or_not_a_trigger_comes() -> None:
    of = smoke(
        last(at("Heat"), within(50, "Smoke"), KEY),
        each(at("Rain"), before(50, "Heat"), equal("Rain.k", "Smoke.k")),
        absent(at("Heat2", "Heat"), within(20, "Smoke"), equal("Heat2.k", "Smoke.k")),
        total(
            "MAX",
            attribute("Rain2.v"),
            "n",
            at("Rain2", "Rain"),
            within(30, "Smoke"),
            equal("Rain2.k", "Smoke.k"),
        ),
        consuming=["Rain"],
    )
    detector = TeslaDetector(of, CLOCK)
    most = 0
    for t in range(2_000):
        key = f"<urn:x:{t}>"
        detector.at(t, {"Heat": [(t, (key, integer(t)), 0, "")], "Rain": [(t, (key, integer(t)), 0, "")]})
        most = max(most, sum(column.size() for column in detector.network.columns.values()))
    assert most <= 2 * (51 + 101 + 21 + 31) + 8
    assert sum(detector.sizes().values()) <= 51 + 101 + 21 + 31
    detector.at(5_000, {})
    assert detector.sizes() == {"Fire": 0}
    assert not any(column.index.items() for column in detector.network.columns.values())


def test_an_explosion_of_matches_names_rule_and_time() -> None:
    bad = smoke(each(at("Heat"), within(99, "Smoke")), each(at("More", "Heat"), within(99, "Smoke")))
    detector = TeslaDetector(bad, CLOCK, budget=1_000)
    for t in range(10):
        detector.at(t, {"Heat": [(t, (A, integer(t)), 0, "")]})
    assert len(detector.at(10, {"Smoke": [(10, (A, integer(1)), 0, "")]})) == 100
    detector.at(11, {"Heat": [(11, (A, integer(1)), 0, "")]})
    with pytest.raises(
        ProgramError, match=r"D4010.*`Fire` takes more than 1000 units of .* `Smoke`\n--> @ 12"
    ):
        detector.at(12, {"Smoke": [(12, (A, integer(1)), 0, "")]})


def test_an_explosion_is_stopped_long_before_it_is_counted_out() -> None:
    conjuncts = [each(at(f"X{i}", "Heat"), within(99, "Smoke")) for i in range(30)]
    detector = TeslaDetector(smoke(*conjuncts), CLOCK, budget=10_000)
    detector.at(0, {"Heat": [(0, (A, integer(t)), t, "") for t in range(10)]})
    with pytest.raises(ProgramError, match="D4010"):
        detector.at(1, {"Smoke": [(1, (A, integer(1)), 0, "")]})


@pytest.mark.parametrize("loops", [2, 14])
def test_rules_that_explode_together_are_stopped_as_soon_as_one_alone(loops: int) -> None:
    """What they match alike is one entry: a hundred rules have no hundred times the room."""
    conjuncts = [each(at(f"X{i}", "Heat"), within(99, "Smoke")) for i in range(loops)]
    of = program(*(rule(f"Fire{i}", at("Smoke"), *conjuncts) for i in range(100)))
    detector = TeslaDetector(of, CLOCK, budget=10_000)
    (group,) = detector.network.groups
    assert len(group) == 100  # rules
    width = 100 if loops == 2 else 2
    detector.at(0, {"Heat": [(0, (A, integer(t)), t, "") for t in range(width)]})
    (_, woken), *_ = detector.network.streams["Smoke"].awake
    out: list[RawMatch] = []
    with pytest.raises(ProgramError, match="D4010"):
        detector.network.compile(woken)(1, [(1, (A, integer(1)), 0, "")], out)
    assert out == []


def test_a_pattern_of_thirty_events_is_as_good_as_one_of_two() -> None:
    conjuncts = [each(at(f"X{i}", "Heat"), within(99, "Smoke"), call("=", f"X{i}.v", i)) for i in range(30)]
    detector = TeslaDetector(smoke(*conjuncts), CLOCK)
    detector.at(0, {"Heat": [(0, (A, integer(t)), 0, "") for t in range(30)]})
    found = detector.at(1, {"Smoke": [(1, (A, integer(1)), 0, ""), (1, (B, integer(1)), 0, "")]})
    assert [[fact[1][1] for fact in match.facts[1:]] for match in found] == [
        [integer(t) for t in range(30)]
    ] * 2


def test_ticks_that_are_passed_over_do_not_come_later() -> None:
    detector = TeslaDetector(program(rule("Tick", Every(5, "Now"))), CLOCK)
    detector.at(3, {})
    assert detector.at(22, {}) == []
    assert [match.time for time in (25, 27, 40) for match in detector.at(time, {})] == [25, 40]
