"""Slices: who owns an instant, and who looks at it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dotr.batch.time_cuts import OVERLAP, Even, Slices, Uneven, balanced_slices

times = st.integers(-100, 100)
slices = st.one_of(
    st.builds(Even, st.integers(1, 30)),
    st.lists(times, unique=True, max_size=8).map(lambda starts: Uneven(tuple(sorted(starts)))),
)


@given(slices, times, st.integers(0, 60))
def test_a_slice_sees_what_is_up_to_a_horizon_before_what_it_owns(
    cut: Slices, time: int, horizon: int
) -> None:
    seen = cut.seen_by(time, horizon)
    known = range(seen.start - 3, seen.stop + 3) if isinstance(cut, Even) else range(len(cut.starts) + 1)
    for number in known:
        start, end = cut.bounds(number)
        looks = (start is None or time >= start - horizon) and (end is None or time < end)
        assert (number in seen) == looks


@given(slices, times)
def test_every_instant_has_one_owner(cut: Slices, time: int) -> None:
    assert len(cut.seen_by(time, 0)) == 1
    start, end = cut.bounds(cut.seen_by(time, 0)[0])
    assert start is None or start <= time
    assert end is None or time < end


@given(st.lists(times, min_size=1), st.integers(0, 5))
def test_balanced_slices_are_some_horizons_long(quantiles: list[int], horizon: int) -> None:
    starts = balanced_slices(quantiles, horizon).starts
    assert all(b - a >= 4 * horizon for a, b in pairwise(starts))
    assert OVERLAP >= 20
