"""A running aggregate is the aggregate of what is inside the window."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dotr.detect.totals import JoinedTotal, running
from dotr.expressions.aggregates import SPREADS, summarise
from dotr.rdf.terms import XSD, Term
from tests.detect.worlds import ODD_VALUES

TERMS: tuple[Term | None, ...] = (*ODD_VALUES, f'"0.1"^^<{XSD}double>', f'"1e300"^^<{XSD}double>')
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", *SPREADS, "MEDIAN", "PERCENTILE 0.3")
AGGREGATES = st.sampled_from(
    [
        (f, d, False)
        for f in ("COUNT", "SUM", "AVG", "MIN", "MAX", *SPREADS, "MEDIAN", "PERCENTILE 0.3")
        for d in (False, True)
    ]
    + [("COUNT", False, True)]
)
STREAMS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(TERMS), st.booleans()), max_size=30)


@given(AGGREGATES, STREAMS, st.integers(0, 4))
def test_running_totals_equal_recomputation(
    aggregate: tuple[str, bool, bool], stream: list[tuple[int, Term | None, bool]], width: int
) -> None:
    function, distinct, star = aggregate
    total = running(function, distinct, star)()
    copy = running(function, distinct, star)()
    inside: list[tuple[int, Term | None]] = []
    now = 0
    for step, term, ask in stream:
        now += step
        total.add(now, term)
        inside.append((now, term))
        if ask:
            expected = summarise(
                function, distinct, [t for when, t in inside if when >= now - width], star=star
            )
            assert total.value(now - width) == expected
            for entry in total.entries():
                copy.add(*entry)
            assert copy.value(now - width) == expected
            copy.expire(now + 1)
    assert not total.expire(now + 1)
    assert total.entries() == []


@given(AGGREGATES, STREAMS, st.integers(0, 4))
def test_several_totals_read_as_one(
    aggregate: tuple[str, bool, bool], stream: list[tuple[int, Term | None, bool]], width: int
) -> None:
    function, distinct, star = aggregate
    parts = [running(function, distinct, star)() for _ in range(2)]
    inside: list[tuple[int, Term | None]] = []
    now = 0
    for step, term, which in stream:
        now += step
        parts[which].add(now, term)
        inside.append((now, term))
    expected = summarise(function, distinct, [t for when, t in inside if when >= now - width], star=star)
    assert JoinedTotal(parts, function, distinct, star).value(now - width) == expected
