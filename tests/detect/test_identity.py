"""Names of many matches at once are the names of each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dotr.events import Fact
from dotr.program.names import _LINES, hashes_of, match_hash

TERMS = st.sampled_from(["<urn:a>", '"1"', '"é"@en', None])
FACTS: st.SearchStrategy[Fact] = st.tuples(
    st.integers(-5, 5), st.lists(TERMS, max_size=3).map(tuple), st.integers(0, 2), st.just("")
)


@given(
    st.integers(),
    st.lists(st.lists(FACTS, min_size=1, max_size=3).map(tuple), max_size=40),
    st.integers(1, 5),
)
def test_many_hashes_are_those_of_each(time: int, few: list[tuple[Fact, ...]], times: int) -> None:
    several = few * times
    assert hashes_of([(time, several)]) == [match_hash(time, facts) for facts in several]


def test_more_hashes_than_are_made_at_once_are_those_of_each() -> None:
    trigger: Fact = (7, ("<urn:t>",), 0, "")
    several = [(trigger, (i, (f"<urn:{i}>",), 0, "")) for i in range(333)]
    assert hashes_of([(7, several)]) == [match_hash(7, facts) for facts in several]


def test_long_values_are_not_kept_for_their_names() -> None:
    """Else eight thousand facts with texts of a megabyte each would stay."""
    long, short = (
        [(time, (f'"{time}{"x" * width}"',), 0, "") for time in range(20)] for width in (10**4, 10)
    )
    for facts in (long, short):
        several: list[tuple[Fact, ...]] = [(fact, fact) for fact in facts]
        assert hashes_of([(7, several)]) == [match_hash(7, facts) for facts in several]
    assert not any(fact in _LINES for fact in long)
    assert all(fact in _LINES for fact in short)
