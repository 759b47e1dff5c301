"""One total for rules that differ in a threshold: by level, and for whole programs against the oracle."""

from __future__ import annotations

import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from dotr.budget import DIGITS, Overlong
from dotr.detect.detector import TeslaDetector
from dotr.detect.operators import DETECTED
from dotr.detect.plan_step import Ranked, RankedTotal, RunningTotal
from dotr.detect.totals import (
    JoinedRanks,
    counted,
    ranked,
    running,
    summed,
    united,
    value_above,
    values_above,
)
from dotr.events import Fact, Match
from dotr.expressions.aggregates import AGGREGATES, Aggregator, summarise
from dotr.program import Rule
from dotr.program.rules import Operator
from dotr.rdf.terms import XSD, Term, integer
from dotr.reference.tesla import LiteralTesla
from tests.detect.building import (
    CLOCK,
    A,
    at,
    attribute,
    both,
    call,
    each,
    equal,
    facts,
    program,
    rule,
    total,
    within,
)
from tests.detect.test_differential import compare
from tests.detect.test_differential import engine as shared_engine
from tests.detect.total_worlds import totals
from tests.detect.worlds import ODD_VALUES, World

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"

TERMS: tuple[Term | None, ...] = (*ODD_VALUES, f'"0.1"^^<{XSD}double>', f'"1e300"^^<{XSD}double>')
RUNNING = (*(function for function, one in AGGREGATES.items() if not one.ordered), "PERCENTILE 0.3")
KINDS = st.sampled_from(
    [(f, d, False) for f in (*RUNNING, "WIDEST") for d in (False, True)] + [("COUNT", False, True)]
)
LEVELS = (0, 3, 4, 9)
STREAMS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(TERMS), st.sampled_from(LEVELS), st.booleans()), max_size=30
)


@pytest.fixture(autouse=True)
def another() -> Any:
    """An aggregate that has no running form."""
    known = [(term, len(term)) for term in TERMS if term is not None]
    order = {term: number for number, (term, _) in enumerate(sorted(known, key=itemgetter(1, 0)))}
    widest = Aggregator(lambda terms: max((t for t in terms if t is not None), key=order.get, default=None))
    with patch.dict(AGGREGATES, {"WIDEST": widest}):
        yield


@given(KINDS, STREAMS, st.integers(0, 4), st.lists(st.integers(0, 10)), st.booleans())
def test_what_is_above_each_level_is_the_aggregate_of_what_is_there(
    kind: tuple[str, bool, bool],
    stream: list[tuple[int, Term | None, int, bool]],
    width: int,
    limits: list[int],
    inclusive: bool,
) -> None:
    function, distinct, star = kind
    limits.sort()
    cut = bisect_right if inclusive else bisect_left
    nothing = summarise(function, distinct, [], star=star)
    bucket = ranked(function, distinct, star)()
    inside: list[tuple[int, Term | None, int]] = []
    now = 0

    def expected(least: int) -> Term | None:
        terms = [t for when, t, level in inside if when >= now - width and level >= least]
        return summarise(function, distinct, terms, star=star)

    for step, term, level, ask in stream:
        now += step
        bucket.add(now, term, level)
        inside.append((now, term, level))
        if ask:
            since = now - width
            for least in (*LEVELS, 10):
                assert value_above(bucket, since, least, nothing) == expected(least)
            lo, hi = (0, len(limits)) if now % 2 else (len(limits) // 3, len(limits) - len(limits) // 4)
            if lo < hi:
                found = values_above(nothing, bucket, since, lo, hi, limits, cut)
                each_ = {i: value for value, start, end in found for i in range(start, end)}
                wanted = {i: expected(limits[i] + (not inclusive)) for i in range(lo, hi)}
                assert each_ == wanted
                assert len(each_) == sum(end - start for _, start, end in found)
            copy = ranked(function, distinct, star)()
            for entry in bucket.entries():
                copy.add(*entry)
            assert copy.entries() == bucket.entries()
            for later in range(since, now + 2):
                for least in LEVELS:
                    terms = [t for when, t, level_ in inside if when >= later and level_ >= least]
                    of_copy = summarise(function, distinct, terms, star=star)
                    assert value_above(copy, later, least, nothing) == of_copy
    assert not bucket.expire(now + 1)
    assert bucket.above(now + 1) == bucket.entries() == []


@given(KINDS, STREAMS, st.integers(0, 4))
def test_several_are_read_as_one(
    kind: tuple[str, bool, bool], stream: list[tuple[int, Term | None, int, bool]], width: int
) -> None:
    function, distinct, star = kind
    parts = [ranked(function, distinct, star)() for _ in range(2)]
    inside: list[tuple[int, Term | None, int]] = []
    now = 0
    for step, term, level, which in stream:
        now += step
        parts[which].add(now, term, level)
        inside.append((now, term, level))
    joined = JoinedRanks(parts, ranked(function, distinct, star)())
    assert len(joined) == sum(len(part.entries()) for part in parts)
    nothing = summarise(function, distinct, [], star=star)
    for least in LEVELS:
        terms = [t for when, t, level in inside if when >= now - width and level >= least]
        expected = summarise(function, distinct, terms, star=star)
        assert value_above(joined, now - width, least, nothing) == expected


@given(KINDS, st.lists(st.tuples(st.integers(1, 6), st.sampled_from(TERMS))), st.integers(0, 3))
def test_candidates_are_added_up_for_the_members_that_they_pass_for(
    kind: tuple[str, bool, bool], values: list[tuple[int, Term | None]], lo: int
) -> None:
    function, distinct, star = kind
    values = [(upto, term) for upto, term in values if upto > lo]
    expected = {
        i: summarise(function, distinct, [term for upto, term in values if upto > i], star=star)
        for i in range(lo, 6)
    }
    if star:
        found = counted([upto for upto, _ in values], lo, 6)
    else:
        found = summed(list(values), lo, 6, running(function, distinct, star))
    assert {i: value for value, start, end in found for i in range(start, end)} == expected
    assert sum(end - start for _, start, end in found) == 6 - lo


@given(KINDS, STREAMS)
def test_what_rules_had_apart_is_one_total_by_level(
    kind: tuple[str, bool, bool], stream: list[tuple[int, Term | None, int, bool]]
) -> None:
    function, distinct, star = kind
    whole = ranked(function, distinct, star)()
    apart = {level: running(function, distinct, star)() for level in LEVELS}
    now = 0
    for step, term, level, _ in stream:
        now += step
        whole.add(now, term, level)
        for least, own in apart.items():
            if level >= least:
                own.add(now, term)
    dumps = [[["k", [[*entry, level] for entry in own.entries()]]] for level, own in apart.items()]
    again = ranked(function, distinct, star)()
    for _, entries in united(dumps):
        for entry in entries:
            again.add(*entry)
    nothing = summarise(function, distinct, [], star=star)
    for since in range(now + 2):
        for least in LEVELS:
            assert value_above(again, since, least, nothing) == value_above(whole, since, least, nothing)


# ------------------------------------------------------------------ rules


def fire(number: int, limit: int, argument: str = "", function: str = "COUNT", rest: str = "") -> Rule:
    on = both(equal("H.k", "S.k"), call(">", "H.v", limit))
    if rest:
        on = both(on, call("<", call("-", "H.v", "S.v"), 30))
    of = attribute(argument) if argument else None
    return rule(
        f"R{number}", at("S"), total(function, of, "n", at("H"), within(9, "S"), on), give={"n": "?n"}
    )


@pytest.mark.parametrize("rest", ["", "difference"])
@pytest.mark.parametrize("function", ["COUNT", "SUM", "AVG", "MIN", "MAX"])
def test_rules_with_any_aggregate_share_a_column_and_a_function(function: str, rest: str) -> None:
    of = program(*(fire(i, limit, "H.v", function, rest) for i, limit in enumerate((5, 1, 3))))
    detector = TeslaDetector(of, CLOCK)
    assert [len(group) for group in detector.network.groups] == [3]
    (column,) = detector.network.columns.values()
    assert isinstance(column.spec.content, Ranked if rest else RankedTotal)
    for time, size in enumerate((2, 4, 6, 1)):
        detector.at(time, {"H": facts(time, (A, size))})
    expected = {
        "COUNT": (1, 3, 2),
        "SUM": (6, 12, 10),
        "AVG": (6, 4, 5),
        "MIN": (6, 2, 4),
        "MAX": (6, 6, 6),
    }[function]
    found = detector.at(4, {"S": facts(4, (A, 0))})
    values = [int(float(match.bindings[0].split('"')[1])) for match in found]
    assert ([match.rule for match in found], tuple(values)) == ([0, 1, 2], expected)


def test_a_fact_is_kept_once_however_many_rules_it_passes_for() -> None:
    detector = TeslaDetector(program(*(fire(i, i) for i in range(100))), CLOCK)
    for time in range(3):
        detector.at(time, {"H": facts(time, (A, 50 + time))})
    (column,) = detector.network.columns.values()
    assert column.size() == 3
    (match, *_) = detector.detect(3, {"S": facts(3, (A, 0))})
    assert (match[0], match[3]) == (tuple(range(52, 100)), (integer(0),)), "equal values are one match"


def test_a_lonely_threshold_is_a_filter_of_a_plain_total() -> None:
    for limits in ((5,), (5, 5)):
        detector = TeslaDetector(program(*(fire(i, limit) for i, limit in enumerate(limits))), CLOCK)
        (column,) = detector.network.columns.values()
        assert isinstance(column.spec.content, RunningTotal)
        assert column.spec.size is not None


def test_a_count_that_two_bisections_give_is_no_reason_to_list_candidates() -> None:
    rules = [
        rule(
            f"R{limit}",
            at("S"),
            each(at("C"), within(5, "S")),
            total("COUNT", None, "n", at("H"), within(9, "C"), call(">", "H.v", limit)),
        )
        for limit in (1, 2)
    ]
    detector = TeslaDetector(program(*rules), CLOCK)
    assert len(detector.network.columns) == 3


# ------------------------------------------------------------------ whole programs


def _contents(world: World) -> set[type]:
    columns = shared_engine(world).network.columns
    return {type(spec.content) for spec in columns} & {RankedTotal, Ranked}


@given(totals())
@settings(max_examples=10_000 if DEEP else 300)
def test_aggregates_answered_together_are_those_of_each_rule(world: World) -> None:
    for content in _contents(world):
        event(content.__name__)
    compare(world)


UNSHARED = {Operator.AGGREGATE: DETECTED[Operator.AGGREGATE]._replace(shares=lambda *_: None)}


def _detector(world: World, way: tuple[bool, bool], state: Mapping[str, Any] | None = None) -> TeslaDetector:
    """`way`: whether totals are shared, and whether streams are given as their base."""
    together, base = way
    with patch.dict(DETECTED, {} if together else UNSHARED):  # type: ignore[arg-type]  # it is a dict
        detector = TeslaDetector(world.program, CLOCK, filtered=world.filtered if base else None)
        if state is not None:
            assert detector.restore(state).empty == ()
    return detector


def _former(state: dict[str, Any]) -> dict[str, Any]:
    """As version 3 wrote it."""
    parts = {
        digest: {k: v for k, v in part.items() if k != "levels"} for digest, part in state["rules"].items()
    }
    return {**state, "version": 3, "rules": parts}


@given(totals(), st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6))
@settings(max_examples=5_000 if DEEP else 200)
def test_a_state_fits_rules_that_share_their_totals_in_another_way(
    world: World, ways: Sequence[tuple[bool, bool]]
) -> None:
    oracle = LiteralTesla(world.program, CLOCK)
    detector, turn = _detector(world, ways[0]), 0
    for instant in world.instants:
        if instant.cut:
            state = detector.snapshot()
            if not ways[turn][0]:
                state = _former(state)
            turn = (turn + 1) % len(ways)
            detector = _detector(world, ways[turn], json.loads(json.dumps(state)))
        literal = world.literal(instant.facts)
        given_: dict[str, list[Fact]] = world.shared(instant.facts) if ways[turn][1] else literal
        expected: list[Match] = oracle.at(instant.time, literal, True)
        assert detector.at(instant.time, given_) == expected


@given(totals(), st.data())
@settings(max_examples=3_000 if DEEP else 150)
def test_a_state_fits_when_rules_go_that_shared_their_total(world: World, data: st.DataObject) -> None:
    """What is left of the rules finds what it would have found."""
    detector, oracle = shared_engine(world), LiteralTesla(world.program, CLOCK)
    rules = list(world.program.rules)
    for instant in world.instants:
        if instant.cut and len(rules) > 1:
            value = json.loads(json.dumps(detector.snapshot()))
            rules.remove(data.draw(st.sampled_from(rules)))
            detector = TeslaDetector(program(*rules), CLOCK, filtered=world.filtered)
            detector.restore(value)
        names = {one.name for one in rules}
        expected = [
            (world.program.rules[match.rule].name, *match[1:])
            for match in oracle.at(instant.time, world.literal(instant.facts), True)
            if world.program.rules[match.rule].name in names
        ]
        found = detector.at(instant.time, world.shared(instant.facts))
        assert [(rules[match.rule].name, *match[1:]) for match in found] == expected


def test_a_total_that_is_too_long_is_refused_whenever_it_is_asked_for() -> None:
    integer = f"^^<{XSD}integer>"
    total = ranked("SUM", False, False)()
    total.add(0, f'"1"{integer}', 5)
    for _ in range(2):
        total.add(0, f'"{"9" * DIGITS}"{integer}', 0)
    for _ in range(2):
        with pytest.raises(Overlong):
            value_above(total, 0, 0, None)
