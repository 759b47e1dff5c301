"""Rows of CSV and TSV with their places, one row refused at a time.

Place:   files/table_reader.py reads files through it. It is fed blocks of whole lines.
Method:  Python's `csv` does the reading, without the byte order mark that a file may begin with. A block in
         which every line is a row goes through it at once, others row by row, so that the bytes up to the
         end of every row are known and feeding can go on there.
Bad input: D2403 ragged · D2405 quotes that do not end, NUL, bytes of another encoding. Reading goes on with
         the next line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from dotr.io.tables.cells import CellError

LONGEST_ROW = 1 << 17
"""Bytes within which a quoted cell must end."""

_MOST_LINES = 1000

_MARK = "\ufeff"
"""What a file may begin with: before the quotes of its first cell, which `csv` would take for text."""


class Dialect(Struct, frozen=True):
    """How cells are parted and encoded."""

    delimiter: str = ","
    quoted: bool = True
    encoding: str = "utf-8"

    def reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        if not self.quoted:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, strict=True)
        return csv.reader(lines, delimiter=self.delimiter, strict=True)


class TableRow(NamedTuple):
    """A row of any table: its cells, or what is wrong with it; its bytes where they may be asked for, its
    line from 1, and where it ends: the bytes of the file up to there, or its number where they say nothing.
    """

    cells: Sequence[str | None] | CellError
    content: bytes
    line: int
    end: int


class CsvRows:
    """Owns the lines that have come and are not rows yet."""

    def __init__(self, dialect: Dialect, line: int = 1, offset: int = 0) -> None:
        self._dialect, self._line, self._offset = dialect, line, offset
        self._open: list[bytes] = []

    @property
    def offset(self) -> int:
        """The end of the last row that was given."""
        return self._offset

    def feed(self, block: bytes) -> Iterator[TableRow]:
        """The rows that end in a block of whole lines."""
        if not self._open and not block.strip(b"\r\n"):
            self._line += len(block.splitlines())
            self._offset += len(block)
            return
        lines = block.splitlines(keepends=True) if b"\r" in block else _lines(block)
        if not self._open and (rows := self._at_once(block, lines)) is not None:
            yield from rows
            return
        yield from self._one_by_one([*self._open, *lines], last=False)

    def finish(self) -> Iterator[TableRow]:
        """What is left when nothing more comes."""
        yield from self._one_by_one(self._open, last=True)

    def _at_once(self, block: bytes, lines: Sequence[bytes]) -> Iterator[TableRow] | None:
        """The rows of lines that are a row each; None where it is not so simple."""
        if b"\0" in block:
            return None
        try:
            text = self._without_mark(block.decode(self._dialect.encoding))
            if b"\r" in block:
                text = text.replace("\r\n", "\n").replace("\r", "\n")
            texts = text.split("\n")
            rows = list(self._dialect.reader(texts if texts[-1] else texts[:-1]))
        except (UnicodeDecodeError, csv.Error):
            return None
        return self._placed(rows, lines) if len(rows) == len(lines) else None

    def _placed(self, rows: Sequence[list[str]], lines: Sequence[bytes]) -> Iterator[TableRow]:
        for row, line in zip(rows, lines, strict=True):
            self._offset += len(line)
            if row:
                yield TableRow(row, line, self._line, self._offset)
            self._line += 1

    def _without_mark(self, text: str) -> str:
        """Text of the next row."""
        return text if self._offset else text.removeprefix(_MARK)

    def _one_by_one(self, lines: Sequence[bytes], last: bool) -> Iterator[TableRow]:
        at = 0
        while at < len(lines):
            used = self._used(lines, at)
            if used == 0 and not last and not _too_long(lines[at:]):
                break  # a quoted cell goes on
            found = self._row(lines[at : at + max(used, 1)], used == 0)
            yield found
            at += max(used, 1)
        self._open = list(lines[at:])

    def _used(self, lines: Sequence[bytes], at: int) -> int:
        """How many lines the row at a place takes; 0 where its end is not among them."""
        if not self._dialect.quoted or b'"' not in lines[at]:
            return 1
        texts: list[str] = []
        size = 0
        for line in lines[at : at + _MOST_LINES]:
            text = line.decode(self._dialect.encoding, "replace").replace("\0", " ")
            texts.append(text if texts else self._without_mark(text))
            size += len(line)
            if size > LONGEST_ROW:
                return 0
            if b'"' not in line and len(texts) > 1:
                continue  # the cell goes on, or it would have ended before
            try:
                next(self._dialect.reader(texts))
            except csv.Error as error:
                if "unexpected end" in str(error):
                    continue
                return 1
            return len(texts)
        return 0

    def _row(self, lines: Sequence[bytes], unended: bool) -> TableRow:
        content, line, start = b"".join(lines), self._line, self._offset
        self._offset += len(content)
        self._line += len(lines)
        try:
            text = self._text(content, lines)
            if start == 0:
                text = text.removeprefix(_MARK)
            if unended:
                raise CellError("a quoted cell does not end", 'a quote inside a cell is written ""', "D2405")
            rows = [row for row in self._dialect.reader([text]) if row]
        except csv.Error as error:
            hint = 'a quote inside a cell is written ""; # quote: none says that quotes are text'
            return TableRow(
                CellError(f"this row is not CSV: {error}", hint, "D2405"), content, line, self._offset
            )
        except CellError as error:
            return TableRow(error, content, line, self._offset)
        return TableRow(rows[0] if rows else [], content, line, self._offset)

    def _text(self, content: bytes, lines: Sequence[bytes]) -> str:
        if b"\0" in content:
            hint = "the file is damaged, or it is UTF-16: iconv -f utf-16 -t utf-8"
            raise CellError("this row has a NUL", hint, "D2405")
        try:
            return content.decode(self._dialect.encoding)
        except UnicodeDecodeError as error:
            byte = content[error.start]
            hint = "the mapping can say in which it is: # encoding: latin-1"
            raise CellError(
                f"this row is not {self._dialect.encoding}: byte 0x{byte:02X}", hint, "D2405"
            ) from None


def one_row_a_line(block: bytes, dialect: Dialect) -> bool:
    """Whether each of some whole lines is a row."""
    try:
        lines = block.decode(dialect.encoding).removeprefix(_MARK).replace("\r\n", "\n").split("\n")
        lines = lines if lines[-1] else lines[:-1]
        return sum(1 for _ in dialect.reader(lines)) == len(lines)
    except (UnicodeDecodeError, csv.Error):
        return False


def header_text(row: TableRow) -> str:
    """The columns that a header row names, as bookmarks carry them. Raises CellError."""
    if isinstance(row.cells, CellError):
        raise row.cells
    columns = [(name or "").strip() for name in row.cells]
    return json.dumps(columns, ensure_ascii=False)


def _lines(block: bytes) -> list[bytes]:
    parts = [part + b"\n" for part in block.split(b"\n")]
    last = parts.pop()[:-1]
    return [*parts, last] if last else parts


def _too_long(lines: Sequence[bytes]) -> bool:
    return len(lines) > _MOST_LINES or sum(map(len, lines)) > LONGEST_ROW


def ragged(row: Sequence[str | None], columns: int) -> CellError:
    """A row with too few or too many cells."""
    hint = "a cell with the delimiter in it is quoted; so is one with a line end"
    return CellError(f"this row has {len(row)} cells, the header {columns}", hint, "D2403")
