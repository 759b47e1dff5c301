"""Rows of CSV: where each ends, whatever the blocks, and which rows are refused alone."""

from __future__ import annotations

import json

import pytest

from dotr.io.tables import rows as csv_rows
from dotr.io.tables.cells import CellError
from dotr.io.tables.rows import CsvRows, Dialect, TableRow, header_text, one_row_a_line, ragged

CONTENT = b'a,b\r\n\n"x ""y""","over\ntwo lines"\nc,d\n'


def read(content: bytes, dialect: Dialect, cuts: tuple[int, ...] = ()) -> list[TableRow]:
    source = CsvRows(dialect)
    blocks = [content[a:b] for a, b in zip((0, *cuts), (*cuts, len(content)), strict=True)]
    return [*(row for block in blocks for row in source.feed(block)), *source.finish()]


def codes(rows: list[TableRow]) -> list[str]:
    return [row.cells.code if isinstance(row.cells, CellError) else "" for row in rows]


@pytest.mark.parametrize("cuts", [(), (5,), (6,), (5, 6, 22), (22,)])
def test_rows_know_their_lines_and_ends_wherever_blocks_are_cut(cuts: tuple[int, ...]) -> None:
    rows = [row for row in read(CONTENT, Dialect(), cuts) if row.cells]
    assert [row.cells for row in rows] == [["a", "b"], ['x "y"', "over\ntwo lines"], ["c", "d"]]
    assert [(row.line, row.end) for row in rows] == [(1, 5), (3, len(CONTENT) - 4), (5, len(CONTENT))]
    assert rows[1].content == CONTENT[6:-4]


def test_a_row_in_error_is_refused_alone() -> None:
    rows = read(b'1,2\n\xff,3\nx\0,4\n"a"b,5\n6,7\n', Dialect())
    assert codes(rows) == ["", "D2405", "D2405", "D2405", ""]
    assert "0xFF" in str(rows[1].cells)
    assert read(b"\xff,3\n", Dialect(encoding="latin-1"))[0].cells == ["ÿ", "3"]


def test_a_quote_that_does_not_end_takes_its_own_line_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = read(b'1,"2\n3,4\n', Dialect())
    assert codes(rows) == ["D2405", ""]
    assert rows[1].cells == ["3", "4"]
    assert rows[1].line == 2
    monkeypatch.setattr(csv_rows, "LONGEST_ROW", 10)
    source = CsvRows(Dialect())
    assert codes(list(source.feed(b'1,"2\n3456,78\n9,0\n'))) == ["D2405", "", ""], "not waited for"


def test_without_quotes_a_quote_is_text() -> None:
    assert [row.cells for row in read(b'1,"2\n3,4"\n', Dialect(quoted=False))] == [["1", '"2'], ["3", '4"']]


def test_whether_every_line_is_a_row() -> None:
    assert one_row_a_line(b'a,b\r\n"c",d', Dialect())
    assert not one_row_a_line(b'a,"b\nc",d\n', Dialect())
    assert not one_row_a_line(b"a,\xff\n", Dialect())
    assert not one_row_a_line(b'a,"b', Dialect())


def test_a_header_is_cleaned_and_one_in_error_raised() -> None:
    assert header_text(TableRow(["time ", None, "ü"], b"", 1, 9)) == '["time", "", "ü"]'
    with pytest.raises(CellError):
        header_text(TableRow(ragged(["a"], 2), b"", 1, 2))


@pytest.mark.parametrize("quoted", ["a", "a,b", "a\nb", 'a""b'])
@pytest.mark.parametrize("cut", [False, True])
def test_a_byte_order_mark_stands_before_the_quotes_of_the_first_cell(quoted: str, cut: bool) -> None:
    block = f'\ufeff"{quoted}",c\n"\ufeff1",2\n'.encode()
    rows = CsvRows(Dialect())
    lines = block.splitlines(keepends=True) if cut else [block]
    found = [*(row for line in lines for row in rows.feed(line)), *rows.finish()]
    name = quoted.replace('""', '"')
    assert [row.cells for row in found] == [[name, "c"], ["\ufeff1", "2"]]
    assert json.loads(header_text(found[0])) == [name, "c"]
    assert [row.end for row in found] == [len(block.rsplit(b"\n", 2)[0]) + 1, len(block)]
    assert one_row_a_line(block, Dialect()) == ("\n" not in quoted)
