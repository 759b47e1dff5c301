"""Plans of rules: which memory serves a conjunct, and what ON becomes."""

from __future__ import annotations

import pytest

from dotr.detect.plan import RulePlan, beginning, groups, plan_rule, without_needless_sharing
from dotr.detect.plan_step import (
    Content,
    FactLog,
    LastValue,
    MonotonicStack,
    PlanStep,
    Ranked,
    RankedTotal,
    RunningTotal,
)
from dotr.program import Conjunct, Rule
from tests.detect.building import (
    absent,
    at,
    before,
    between,
    both,
    call,
    each,
    equal,
    first,
    last,
    rule,
    total,
    within,
)

KEY = equal("H.k", "S.k")
REST = call("<", "H.v", "S.v")
W = within(9, "S")


def plan(of: Rule, index: int = 0, **more: object) -> RulePlan:
    return plan_rule(index, of, frozenset(), **more)  # type: ignore[arg-type]  # tests


def step(conjunct: Conjunct, **more: object) -> PlanStep:
    return plan(rule("R", at("S"), conjunct), **more).steps[0]


@pytest.mark.parametrize(
    ("conjunct", "content"),
    [
        (last(at("H"), W, KEY), LastValue),
        (absent(at("H"), W, KEY), LastValue),
        (each(at("H"), W, KEY), FactLog),
        (first(at("H"), W, KEY), FactLog),
        (last(at("H"), W, KEY, k=2), FactLog),
        (total("SUM", None, "n", at("H"), W, KEY), RunningTotal),
        (last(at("H"), W, both(KEY, call(">", "H.v", 1))), MonotonicStack),
        (absent(at("H"), W, both(KEY, call(">", "H.v", 1))), MonotonicStack),
        (each(at("H"), W, both(KEY, call(">", "H.v", 1))), Ranked),
        (last(at("H"), W, both(KEY, call(">", "H.v", "S.v"))), FactLog),
        (total("SUM", None, "n", at("H"), W, both(KEY, call(">", "H.v", 1))), RankedTotal),
        (total("SUM", None, "n", at("H"), W, both(REST, call(">", "H.v", 1))), Ranked),
    ],
)
def test_a_conjunct_has_the_smallest_memory_that_will_do(conjunct: Conjunct, content: type[Content]) -> None:
    assert type(step(conjunct).column.content) is content


def test_a_last_value_needs_a_window_that_ends_at_the_trigger() -> None:
    chain = rule("R", at("S"), last(at("H"), W), last(at("C"), within(3, "H")))
    assert [type(one.column.content) for one in plan(chain).steps] == [LastValue, FactLog]
    assert [one.newest for one in plan(chain).steps] == [True, False]
    ends = rule("R", at("S"), last(at("H"), W), absent(at("C"), between("H", "S")))
    assert [(one.newest, one.column.deferred) for one in plan(ends).steps] == [(True, False), (True, True)]
    assert step(last(at("H"), before(9, "S"))).column.deferred


def test_a_trigger_of_the_same_stream_is_no_candidate_under_from() -> None:
    same = at("H", "S")
    assert step(last(same, W)).itself == "S"
    assert step(last(same, before(9, "S"))).itself is None
    assert step(total("COUNT", None, "n", same, W)).itself is None, "aggregates count it"
    assert isinstance(step(last(same, W)).column.content, FactLog)


def test_on_is_split_into_keys_filters_and_the_rest() -> None:
    on = both(KEY, equal("H.v", 3), call("<", "H.v", "S.v"))
    found = step(each(at("H"), W, on))
    assert (len(found.probe), len(found.column.keys), len(found.column.filters)) == (1, 1, 1)
    assert found.residual == call("<", "H.v", "S.v")


@pytest.mark.parametrize(
    ("operator", "seconds", "width"),
    [("<=", 4, 4_000_000), ("<", 4, 3_999_999), ("<=", 10, 9_000_000), (">", 4, None), ("<", 0, None)],
)
def test_a_bound_of_age_in_on_narrows_the_window(operator: str, seconds: int, width: int | None) -> None:
    age = call(operator, call("-", "S.time", "H.time"), seconds)
    found = step(each(at("H"), within(9_000_000, "S"), both(KEY, age)))
    assert found.conjunct.window == within(width or 9_000_000, "S")
    assert found.residual == (None if width else age)


def test_rules_that_consume_share_nothing() -> None:
    of = rule("R", at("S"), last(at("H"), W, both(KEY, call(">", "H.v", 1))), consuming=["H"])
    found = plan(of)
    assert found.alone
    assert (found.steps[0].column.owner, found.steps[0].threshold) == ("R.H", None)
    assert isinstance(found.steps[0].column.content, FactLog)
    assert plan(rule("R", at("S")), referred=True).alone
    assert beginning(found) is None


def above(index: int, limit: int) -> RulePlan:
    return plan(rule(f"R{index}", at("S"), last(at("H"), W, both(KEY, call(">", "H.v", limit)))), index)


def test_a_threshold_that_nobody_else_has_becomes_a_filter() -> None:
    for plans in ([above(0, 1)], [above(0, 1), above(1, 1)]):
        settled = without_needless_sharing(plans)
        assert all(isinstance(one.steps[0].column.content, LastValue) for one in settled)
        assert all(one.steps[0].threshold is None and one.steps[0].column.size for one in settled)
    kept = without_needless_sharing([above(0, 1), above(1, 2)])
    assert [one.limits for one in kept] == [(10**18,), (2 * 10**18,)]


def test_groups_are_in_the_order_of_their_thresholds_and_split_where_these_cross() -> None:
    assert [[one.index for one in group] for group in groups([above(0, 5), above(1, 2), above(2, 5)])] == [
        [1, 0, 2]
    ]

    def two(index: int, a: int, b: int) -> RulePlan:
        conjuncts = [
            last(at("H"), W, both(KEY, call(">", "H.v", a))),
            last(at("C"), W, call(">", "C.v", b)),
        ]
        return plan(rule(f"R{index}", at("S"), *conjuncts), index)

    found = groups([two(0, 1, 1), two(1, 2, 0), two(2, 3, 3)])
    assert [[one.index for one in group] for group in found] == [[0, 2], [1]]


def test_rules_share_a_beginning_whatever_their_positions_are_called() -> None:
    one = plan(rule("R", at("S"), last(at("H"), W, KEY), last(at("C"), W)))
    other = plan(rule("Q", at("T", "S"), last(at("G", "H"), within(9, "T"), equal("G.k", "T.k"))))
    assert beginning(one) == beginning(other) is not None
    assert beginning(plan(rule("R", at("S")))) is None
    assert beginning(plan(rule("R", at("S"), last(at("H"), within(8, "S"), KEY)))) != beginning(one)


def test_a_plan_says_itself_in_a_line_a_position() -> None:
    of = rule("R", at("S"), last(at("H"), W, both(KEY, equal("H.v", 3))))
    assert plan(of).describe() == ["S: trigger", "H: lastvalue of H by 1 key(s), 1 filter(s), kept 9 us"]
