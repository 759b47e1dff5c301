"""Aligned tables, and what becomes of them on a narrow terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.io.show import aligned

ROWS = [["rule", "day", "old.dotr"], ["Overheating of a machine", "2026-03-02", "12"], ["Gap", "-", "3"]]


def test_columns_are_as_wide_as_their_longest_cell() -> None:
    assert aligned(ROWS, left=2) == (
        "rule                      day         old.dotr\n"
        "Overheating of a machine  2026-03-02        12\n"
        "Gap                       -                  3\n"
    )


def test_the_widest_column_is_cut_where_there_is_no_room() -> None:
    assert aligned(ROWS, 36, left=2) == (
        "rule            day         old.dotr\n"
        "Overheating o…  2026-03-02        12\n"
        "Gap             -                  3\n"
    )


cells = st.text("abc ", max_size=30).map(str.strip)


@given(
    st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=1)),
    st.integers(60, 100),
)
def test_lines_fit_and_short_tables_stay(rows: list[list[str]], width: int) -> None:
    lines = aligned(rows, width).splitlines()
    assert len(lines) == len(rows)
    assert max(map(len, lines)) <= width
    whole = aligned(rows)
    if sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True)) <= width:
        assert aligned(rows, width) == whole


@pytest.mark.parametrize("width", [1, 10])
def test_a_terminal_too_narrow_for_any_table_gets_one(width: int) -> None:
    assert len(aligned(ROWS, width).splitlines()) == 3
