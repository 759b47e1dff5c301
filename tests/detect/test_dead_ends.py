"""Which parts of a rule decide about a candidate, and for which times candidates are known."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.detect.dead_ends import Completable, completions, filters, known_first, parts_of, spans
from dotr.detect.plan import RulePlan, plan_rule
from dotr.events import Fact
from dotr.program import Conjunct
from tests.detect.building import absent, at, before, between, call, each, equal, last, rule


def plan(*conjuncts: Conjunct, **rest: Any) -> RulePlan:
    return plan_rule(0, rule("R", at("S"), *conjuncts, **rest), frozenset())


A, B = each(at("A"), before(9, "S")), each(at("B"), before(9, "A"))
C, D = each(at("C"), before(9, "B")), each(at("D"), before(9, "C"))
BESIDE = each(at("B"), before(9, "S"))


def filtered(of: RulePlan) -> str:
    """The names of the loops whose candidates are tested first."""
    found = parts_of(of.rule, of.steps)
    ways = completions(found, known_first(of.rule, found))
    return " ".join(sorted(found[place].gives for place, one in ways.items() if one.filtered))


@pytest.mark.parametrize(
    ("of", "names"),
    [
        (plan(A), ""),
        (plan(A, B), ""),
        (plan(A, BESIDE), ""),
        (plan(A, B, C), "B"),
        (plan(A, B, C, D), "B C"),
        (plan(A, BESIDE, C), "B"),
        (plan(A, B, absent(at("N"), before(2, "B"))), "B"),
        (plan(A, B, where=call(">", "B.v", 1)), "B"),
        (plan(A, BESIDE, where=call(">", "B.v", "A.v")), ""),
        (plan(A, B, last(at("L"), before(2, "B")), each(at("C"), before(9, "L"))), "B"),
        (plan(A, B, C, where=call(">", "B.v", "A.v")), "A B"),
        (plan(A, B, C, absent(at("N"), between("B", "A"))), "A B"),
    ],
)
def test_loops_that_are_reached_more_than_once_are_filtered(of: RulePlan, names: str) -> None:
    assert filtered(of) == names
    assert filters(of.rule, of.steps) == bool(names)


@pytest.mark.parametrize(
    ("of", "line"),
    [
        (plan(A, B, C, D), ""),
        (plan(A, B, C, where=call("<", "B.v", "A.v")), ""),
        (plan(A, B, each(at("C"), before(9, "B"), equal("C.k", "A.k"))), ""),
        (plan(A, B, C, where=call("<", "A.v", "C.v")), "WHERE: tested for each combination of A, C"),
        (
            plan(A, B, C, each(at("D"), before(9, "C"), call("<", "A.v", "D.v"))),
            "EACH D: tested for each combination of A, C",
        ),
        (plan(A, BESIDE, where=call("<", "A.v", "B.v")), "WHERE: tested for each combination of A, B"),
    ],
)
def test_a_plan_says_what_is_tested_for_combinations(of: RulePlan, line: str) -> None:
    assert [one for one in of.describe() if "combination" in one] == ([line] if line else [])


@given(st.lists(st.tuples(st.integers(-5, 30), st.integers(1, 9)), max_size=12))
def test_each_time_is_tested_once(asked: list[tuple[int, int]]) -> None:
    known, tested = Completable(), set[int]()
    for start, width in asked:
        if not known.since <= start or not start + width <= known.until:
            for since, until in known.gaps(start, start + width):
                assert tested.isdisjoint(range(since, until))
                tested.update(range(since, until))
                known.put([(time, (), number, "") for time in range(since, until) for number in (0, 1)])
        assert tested.issuperset(range(start, start + width))
        assert known.facts == [(time, (), number, "") for time in sorted(tested) for number in (0, 1)]


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=9),
    st.integers(1, 6),
    st.integers(0, 1),
    st.integers(-5, 40),
)
def test_windows_are_looked_through_together(times: list[int], width: int, beyond: int, start: int) -> None:
    facts: list[Fact] = [(time, (), 0, "") for time in sorted(times)]
    bucket: list[Fact] = [(time, (), number, "") for time in range(-9, 50) for number in (0, 1)]
    inside = {t for time in times for t in range(time - width, time + beyond)}
    covered = list(spans(facts, width, beyond))
    assert {t for since, until in covered for t in range(since, until)} == inside
    assert all(before_[1] < after[0] for before_, after in itertools.pairwise(covered))
    known = Completable()
    before_ = set(range(start, start + 3))
    if start < 0:  # no earlier request
        before_ = set()
    else:
        known.gaps(start, start + 3)
    found = known.ahead(bucket, facts, width, beyond)
    assert found == [fact for fact in bucket if fact[0] in inside - before_]
    known.put(found)
    assert known.facts == found
