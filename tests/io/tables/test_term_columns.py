"""Columns of cells to columns of terms: the same as cell by cell, and None where a cell is not usual."""

from __future__ import annotations

import pytest

from dotr.io.tables.compiled import USUAL, TermColumn, in_iris, in_literals
from dotr.rdf.terms import XSD, Memo


@pytest.mark.parametrize(
    ("kind", "written", "becomes"),
    [
        ("integer", "0\n-12", "0\n-12"),
        ("integer", "+1", None),
        ("integer", "01", None),
        ("integer", "-0", None),
        ("decimal", "1.50\n2.0\n-0.25", "1.5\n2\n-0.25"),
        ("decimal", "-0.0", None),
        ("decimal", ".5", None),
        ("decimal", "100", "100"),
        ("double", "123456789", None),
        ("double", "12.3400", "12.34"),
        ("boolean", "true\nfalse", "true\nfalse"),
        ("boolean", "1", None),
        ("dateTime", "2026-01-01T08:00:00Z", "2026-01-01T08:00:00Z"),
        ("dateTime", "2026-01-01T08:00:00.50Z", None),
        ("dateTime", "2026-01-01T08:00:00+00:00", None),
    ],
)
def test_lines_that_are_canonical_or_nearly_so(kind: str, written: str, becomes: str | None) -> None:
    assert USUAL[XSD + kind](written) == becomes


def test_iris_are_encoded_and_literals_escaped_line_by_line() -> None:
    assert in_iris("a/b\nü c\n\ue000") == "a%2Fb\nü%20c\n%EE%80%80"
    assert in_literals('a"b\nc\\d\ne\tf') == 'a\\"b\nc\\\\d\ne\\tf'
    assert in_iris("\ud800/") is None
    assert in_literals("\ud800") is None


def _without_blanks(joined: str) -> str | None:
    return None if " " in joined else joined


def column(calls: list[str | None]) -> TermColumn:
    def one(cell: str | None) -> str | None:
        calls.append(cell)
        return None if cell in (None, "NA") else f"<{cell.strip()}>"

    return TermColumn(Memo(one), ["NA"], usual=_without_blanks, ends=("<", ">"))


def test_missing_cells_keep_their_places() -> None:
    calls: list[str | None] = []
    cells = ["a", None, "b", "NA", "c"]
    assert column(calls)(cells) == ["<a>", None, "<b>", None, "<c>"]
    assert calls == [], "all at once"


def test_unusual_columns_and_those_of_few_values_go_cell_by_cell() -> None:
    for cells in (["a", " b", "c"], ["a\nb", "c"]):
        calls: list[str | None] = []
        assert column(calls)(cells) == [f"<{cell.strip()}>" for cell in cells]
        assert calls == cells
    calls = []
    assert column(calls)(["a"] * 4) == ["<a>"] * 4
    assert calls == ["a"]
