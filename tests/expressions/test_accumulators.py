"""An accumulator's value is the aggregate of what came and did not leave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.expressions.accumulators import accumulator, mergeable
from dotr.expressions.aggregates import SPREADS, summarise
from dotr.rdf.terms import XSD, Term, integer, literal
from tests.detect.worlds import ODD_VALUES

HALF = literal("0.5", XSD + "decimal")
TERMS: tuple[Term | None, ...] = (*ODD_VALUES, f'"0.1"^^<{XSD}double>', f'"1e300"^^<{XSD}double>', None)
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", *SPREADS, "MEDIAN", "PERCENTILE 0.3")
KINDS = st.sampled_from([(f, d, False) for f in FUNCTIONS for d in (False, True)] + [("COUNT", False, True)])
STEPS = st.lists(st.tuples(st.sampled_from(TERMS), st.integers(-2, 3), st.booleans()), max_size=30)


@given(KINDS, STEPS)
def test_what_came_and_did_not_leave_is_aggregated(
    kind: tuple[str, bool, bool], steps: list[tuple[Term | None, int, bool]]
) -> None:
    function, distinct, star = kind
    kept, inside = accumulator(function, distinct, star), list[Term | None]()
    for term, times, ask in steps:
        if times > 0:
            kept.add(term, times)
            inside += [term] * times
        elif times < 0 and inside.count(term) >= -times:
            kept.remove(term, -times)
            for _ in range(-times):
                inside.remove(term)
        assert bool(kept.size) == bool(inside)
        if ask:
            assert kept.value() == summarise(function, distinct, inside, star=star)
    assert kept.value() == summarise(function, distinct, inside, star=star)


@given(KINDS, st.lists(st.lists(st.sampled_from(TERMS)), max_size=4))
def test_parts_make_a_whole(kind: tuple[str, bool, bool], parts: list[list[Term | None]]) -> None:
    function, _, star = kind
    whole = mergeable(function, star)
    for terms in parts:
        part = mergeable(function, star)
        for term in terms:
            part.add(term)
        whole.include(part)
    together = [term for terms in parts for term in terms]
    assert whole.value() == summarise(function, False, together, star=star)


def total(function: str, *terms: str | None, distinct: bool = False, star: bool = False) -> str | None:
    kept = accumulator(function, distinct, star)
    for term in terms:
        kept.add(term)
    return kept.value()


@pytest.mark.parametrize(
    ("function", "expected"),
    [("COUNT", integer(3)), ("SUM", integer(5)), ("MIN", integer(1)), ("MAX", integer(3))],
)
def test_a_total_of_values(function: str, expected: str) -> None:
    assert total(function, integer(1), integer(3), integer(1)) == expected


def test_repeated_and_missing_values() -> None:
    one, three = integer(1), integer(3)
    assert total("COUNT", one, one, None, distinct=True) == integer(1)
    assert total("COUNT", one, None) == integer(1)
    assert total("COUNT", one, None, star=True) == integer(2)
    assert total("SUM", one, one, three, distinct=True) == integer(4)
    assert total("SUM", one, None) is None
    assert total("MIN", None, three, one) == one
    assert total("MAX", None) is None


def test_a_value_beyond_the_known_extreme_is_the_new_one() -> None:
    for function, beyond in (("MIN", integer(-1)), ("MAX", integer(9))):
        kept = accumulator(function, False, star=False)
        kept.add(integer(3))
        assert kept.value() == integer(3)
        kept.add(beyond)
        assert kept.value() == beyond


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("distinct", [True, False])
def test_what_left_has_left_no_trace(function: str, distinct: bool) -> None:
    kept = accumulator(function, distinct, star=False)
    for term in (HALF, integer(3), integer(3), None, integer(-9), integer(9)):
        kept.add(term)
    kept.value()
    for term in (None, integer(-9), integer(3), integer(9)):
        kept.remove(term)
    assert kept.value() == total(function, HALF, integer(3), distinct=distinct)
    kept.remove(HALF)
    kept.remove(integer(3))
    assert not kept.size
