"""Tables as graphs and marks: one row, one graph, through a mapping.

TableReader    files, read as every reader reads them
CsvRows        rows of CSV and TSV with their places, one row refused at a time
JsonRows       lines of plain objects, documents, and the rows that `# rows:` names
open_columns   Parquet and Arrow files as batches of columns of any type
FrameSource    data frames and Arrow tables of this process: `Engine.feed(frame, mapping=…)`
passes_of      local times that came twice, by the order of the rows

Method:  in CSV and JSON lines the position after a row is its byte offset, and a bookmark carries the header,
         so reading resumes in a file that grows; rows of Parquet and Arrow are counted. A row in error is a
         mark in its place, and the next row is read.
         CSV is read by Python's `csv`, fed blocks of whole lines, without a byte order mark. A block in which
         every line is a row is read at once, others row by row, so that the byte offset of every row's end is
         known.
         JSON: numbers stay as written; a cell is found by its path (mapping.py). Columns that no row had are
         known when all rows were read: a mistyped name would otherwise drop its triples from every row
         without a report, since missing values in JSON are not written.
         Arrow: a column becomes a list of strings at once. Timestamps with a zone are written in UTC, those
         without one unchanged; decimals, floats and integers as their shortest exact text. pyarrow takes the
         contents of a file as they are (offsets beyond a buffer, indices of no value, bytes that are no
         UTF-8), so every batch is validated first, at more than a gigabyte a second; whatever pyarrow raises
         over a file is damage. It is loaded when a file is opened.
         `--ambiguous-time infer`: consecutive rows with times of a repeated hour wait until a row outside it
         comes. If they go back once, or none goes back and one stands still, those before are of the first
         pass of the hour and the others of the second; otherwise the order does not decide, and each is
         refused. pandas infers the same; here also the pass of rows that share their times. A bookmark
         carries the pass of its row, so that reading resumed within the hour gives the same.
Why not: deciding by the row before the hour: where rows of one pass are missing, the other is taken for it.
Bad input: D2401 `[*]` in a cell of another array · D2402 a column that is not there · D2403 a ragged row ·
         D2405 quotes that do not end, NUL, bytes of another encoding · D2408 not JSON or no object, and
         arrays, objects, lists, maps or bytes where a cell is wanted · D2414, a warning, a column that no row
         has · D2017 not such a file · D2007 damaged after its beginning · D4153 neither a path nor a frame ·
         D2404 and times as in cells.py · D2406 no time · D2407 not a table.
Cost:    memory: the rows of a repeated hour; more than LONGEST of them are refused.
"""

from __future__ import annotations

import csv
import json
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import chain, count, islice, pairwise, repeat
from operator import le
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct, field

from dotr.errors import DataError, Diagnostic, Severity, UsageError
from dotr.events import Clock, GraphOrMessage, Time, all_triples
from dotr.extract.forms import FormColumn, FormRun
from dotr.io.arrow import pa, pq
from dotr.io.decode.documents import Format, line_blocks, read_bounded, read_some, too_large, unreadable
from dotr.io.decode.json_lines import Line, raw_lines
from dotr.io.decode.limits import quiet_limit, says_nothing
from dotr.io.errors import ErrorPolicy, graphs_alone
from dotr.io.graphs import (
    BEGUN,
    START,
    Bookmark,
    GraphRun,
    Item,
    LazyGraphs,
    ReadEvent,
    SourceOptions,
    TimedGraph,
    WantedForm,
    one_by_one,
)
from dotr.io.tables.cells import CellError, RepeatedCellError, excerpt
from dotr.io.tables.compiled import (
    CompiledMapping,
    Row,
    cell_error,
    cells_used,
    compile_mapping,
    times_alike,
)
from dotr.io.tables.mapping import ABSENT, EVERY, Step, TableMapping, steps_of, walk, wrong
from dotr.io.time import TimestampExtractor, UndecidedTimeError
from dotr.io.time_reading import TimeReading
from dotr.lang.grammar.cursor import nearest

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
            hint = 'a quote inside a cell is written ""; # quote: none makes quotes ordinary characters'
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
            hint = "declare its encoding in the mapping: # encoding: latin-1"
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
    hint = "quote a cell that contains the delimiter or a line end"
    return CellError(f"this row has {len(row)} cells, the header {columns}", hint, "D2403")


_VALUES = {True: "true", False: "false", None: None}
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
_SAMPLED = 20
"""Rows whose columns are what a mistyped one may have meant."""

DEEPEST = 50
"""Levels of objects in which columns are looked for."""

JsonRow: TypeAlias = list[str | None] | CellError


SENT = (b":ok", b"event:", b"id:", b"data:", b"retry:")
"""How lines of a stream of server-sent events begin."""


def value_of(text: str, what: str = "line") -> Any:
    """The value that a line or document is, its numbers as texts. Raises CellError."""
    try:
        return _DECODER.decode(text)
    except ValueError as error:
        hint = str(error)
        if what == "document" and "Extra data" in hint:
            hint = f"{hint}; if every line is an object: # format: jsonl"
        if what == "line" and text[:8].encode("utf-8", "replace").startswith(SENT):
            hint = "these are server-sent events: keep what they carry, by sed -n 's/^data: //p'"
        raise CellError(f"this {what} is not JSON", hint, "D2408") from None
    except RecursionError:
        raise CellError(f"this {what} is nested too deep", "", "D2408") from None


def object_of(text: str) -> dict[str, Any]:
    """The object that a line is. Raises CellError."""
    value = value_of(text)
    if not isinstance(value, dict):
        raise _no_object("line", value)
    return value


def _no_object(what: str, value: Any, way: str = "$") -> CellError:
    """`way`: to the value, as `# rows:` has it."""
    hint = 'write an object, such as {"time": 12, "temperature": 21.5}'
    while isinstance(value, list) and value:
        way, value = f"{way}[*]", next((one for one in value if isinstance(one, dict | list)), value[0])
        if isinstance(value, dict):
            hint = f"# rows: {way} takes the elements of the array as rows"
    if "[*]" in way and not isinstance(value, dict | list):
        hint = f"elements that are plain values cannot be rows with columns; with # rows: {way} "
        hint += f"one is the cell {{{way}}}"
    return CellError(f"this {what} is not an object", hint, "D2408")


def _text(value: Any, column: str, rows: str = "$", row: Any = None) -> str | None:
    """`rows`: the way to the rows; `row`: the one that the value is of. Raises CellError."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return _VALUES[value]
    if value is ABSENT:
        return None
    if isinstance(value, list):
        path = column if column.startswith("$") else f"{rows}.{column}"
        kind, hint = "an array", _name_one(value, column, row)
        if hint and any(isinstance(one, dict) for one in value):
            hint += f"; or make rows of it: # rows: {path}[*]"
    else:
        kind, hint = "an object", _name_one(value, column, row)
    error = CellError(f"`{column}` is {kind}: {_shown(value)}", hint, "D2408")
    error.column = column
    raise error


def _name_one(value: Any, column: str, row: Any) -> str:
    """How to name one of what is in an array or object, as a hint; "" where no path leads there."""
    if isinstance(row, dict) and column in row and walk(row, steps_of(column)) is not value:
        return ""  # a key that looks like a path
    found = cell_in(value)
    return (
        f"name one of {'it' if isinstance(value, list) else 'its values'}: {{{column}{found}}}"
        if found
        else ""
    )


def cell_in(value: Any) -> str:
    """The path from an array or object to a plain value in it; "" where there is none that can be written."""
    for step in _steps_in(value):
        inner = walk(value, steps_of(f"$.{step}")[1:])
        if inner is ABSENT:
            continue
        if not isinstance(inner, dict | list):
            return f".{step}"
        if found := cell_in(inner):
            return f".{step}{found}"
    return ""


def _steps_in(value: Any) -> list[str]:
    """The next steps that can be written into an array, of which all are tried up to some, or an object."""
    if isinstance(value, list):
        return [str(n) for n in range(min(len(value), 1))]
    return [key for key in value if steps_of(f"$.{key}") == ("$", key)][:_SAMPLED]


def _shown(value: Any) -> str:
    try:
        return excerpt(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "nested deep"


def cell_of(row: dict[str, Any], column: str) -> str | None:
    """The value of a key, or at a path; None where it is missing. Raises CellError."""
    return _text(row[column] if column in row else walk(row, steps_of(column)), column)


class JsonRows:
    """Owns how values of JSON become rows of some columns, and which of these no row had yet.

    `rows`: the steps after `$` to the rows of a value; None: a value is a row, and so is each element of a
    document that is an array. Raises DataError D2401.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Step] | None, mapping: str) -> None:
        self._columns, self._rows, self._mapping = columns, rows, mapping
        self._places = [self._place(column) for column in columns]
        self._named = any(place[0] < 0 for place in self._places)
        self.count = 0
        self._way = _written(rows or ())
        self._astray: list[Any] = []  # values that `rows` leads nowhere in, until it leads somewhere
        self._led = rows is None
        self._unseen = dict.fromkeys(range(len(columns)))
        self._sample: list[tuple[Any, ...]] = []

    def _place(self, column: str) -> tuple[int, str, tuple[Step, ...]]:
        """(-1 and the name and steps in a row, or which of the values around it and the steps from there)."""
        steps = steps_of(column)
        if steps[0] != "$":
            if EVERY in steps:
                hint = "a cell is one value; # rows: $.records[*] makes a row of every element"
                raise wrong(f"`{column}` has [*]", self._mapping, hint)
            return -1, column, steps
        inner = steps[1:]
        depth = inner.count(EVERY)
        last = len(inner) - inner[::-1].index(EVERY) if depth else 0
        if inner[:last] != tuple((self._rows or ())[:last]):
            hint = "in a cell [*] is the element that the row is made of: begin as # rows: does"
            raise wrong(f"`{column}` is not on the path to a row", self._mapping, hint)
        return depth, column, inner[last:]

    def of(self, value: Any, what: str = "line") -> Iterator[JsonRow]:
        """The rows of a value, those in error as what is wrong with them."""
        way = self._rows
        if way is None and what == "document" and isinstance(value, list):
            way = (EVERY,)
            self._way = _written(way)
        if way is None:
            if isinstance(value, dict):
                yield self._row((value,))
            else:
                yield _no_object(what, value)
            return
        try:
            for around in expanded(value, way):
                if self._named and not isinstance(around[-1], dict):
                    yield _no_object("row", around[-1], self._way)
                else:
                    yield self._row(around)
        except CellError as error:
            yield error
        if not self._led:
            self._led = self.count > 0 or _leads(value, way)
            if not self._led and len(self._astray) < _SAMPLED:
                self._astray.append(value)

    def _row(self, around: tuple[Any, ...]) -> JsonRow:
        row = around[-1]
        self.count += 1
        values = [
            walk(around[depth], steps) if depth >= 0 else row[name] if name in row else walk(row, steps)
            for depth, name, steps in self._places
        ]
        if self._unseen:
            self._look(values, around)
        try:
            return [
                _text(value, name, self._way, row) for value, name in zip(values, self._columns, strict=True)
            ]
        except CellError as error:
            return error

    def _look(self, values: Sequence[Any], around: tuple[Any, ...]) -> None:
        for number in [n for n in self._unseen if values[n] is not ABSENT]:
            del self._unseen[number]
        if len(self._sample) < _SAMPLED and isinstance(around[-1], dict):
            self._sample.append(around)

    def missing(self, place: str) -> Iterator[Diagnostic]:
        """A warning for every column that no row had, if there was a row; and if no value had the rows."""
        if not self._led and self._astray:
            known = _array_paths(self._astray)
            yield Diagnostic(
                "D2414",
                f"there are no rows at `{self._way}`, which `{self._mapping}` names",
                place=place,
                label=", ".join(map(excerpt, known[:20])),
                hint=nearest(self._way, known) or "# rows: names the array whose elements are rows",
                severity=Severity.WARNING,
            )
        if not self.count or not self._unseen:
            return
        known = columns_of(around[-1] for around in self._sample)
        outer = columns_around(self._rows or (), self._sample)
        for number in self._unseen:
            column = self._columns[number]
            head = column.split(".")[0].split("[")[0]
            others = [one for one in known if one.startswith((f"{head}.", f"{head}["))]
            ends = column.removeprefix("$.").replace("[*]", "")
            meant = next((one for one in outer if one.replace("[*]", "").endswith(f".{ends}")), "")
            hint = f"did you mean `{meant}`?" if meant else nearest(column, [*known, *outer])
            hint = hint or (f"write {{{others[0]}}}" if others else "")
            yield Diagnostic(
                "D2414",
                f"no row has `{column}`, which `{self._mapping}` uses",
                place=place,
                label=", ".join(map(excerpt, known[:20])),
                hint=hint or "a column that only some other tables have can stay",
                severity=Severity.WARNING,
            )


def expanded(value: Any, steps: Sequence[Step]) -> Iterator[tuple[Any, ...]]:
    """Of every row of a document: the document, and the element of each `[*]`, the row being the last. Raises
    CellError.
    """
    return _expanded(value, steps, (value,), "$")


def columns_around(steps: Sequence[Step], rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """The columns of what rows are in, as `expanded` has it, written as cells have them."""
    ends = [0, *(number + 1 for number, step in enumerate(steps) if step == EVERY)]
    found: dict[str, None] = {}
    for row in rows:
        for end, value in zip(ends, row[:-1], strict=False):
            if isinstance(value, dict):
                way = _written(steps[:end])
                found.update(dict.fromkeys(f"{way}.{column}" for column in columns_of([value])))
    return list(found)


def _expanded(
    value: Any, steps: Sequence[Step], around: tuple[Any, ...], path: str
) -> Iterator[tuple[Any, ...]]:
    if EVERY not in steps:
        found = _only(value, steps, path)
        if found is not ABSENT and found is not None:
            yield (*around, found) if steps else around
        return
    at = steps.index(EVERY)
    inner = _only(value, steps[:at], path)
    if inner is ABSENT or inner is None:
        return
    keys = _written(steps[:at]).removeprefix("$")
    if not isinstance(inner, list):
        raise CellError(f"`{path}{keys}` is not an array", "# rows: $ is the document itself", "D2408")
    for element in inner:
        yield from _expanded(element, steps[at + 1 :], (*around, element), f"{path}{keys}[*]")


def _only(value: Any, steps: Sequence[Step], path: str) -> Any:
    """What is at a place, as `walk` has it. Raises CellError where a condition chooses several elements, of
    which only the first would be a row.
    """
    for number, step in enumerate(steps):
        if isinstance(value, list) and isinstance(step, tuple):
            chosen = [one for one in value if isinstance(one, dict) and walk(one, (step,)) is not ABSENT]
            if len(chosen) > 1:
                before, condition = (_written(part).removeprefix("$") for part in (steps[:number], [step]))
                hint = f"`{path}{before}[*]{condition}` makes a row of each"
                raise CellError(f"`{path}{before}{condition}` is {len(chosen)} elements", hint, "D2408")
        value = walk(value, (step,))
    return value


def _written(steps: Sequence[Step]) -> str:
    """A path as `# rows:` has it."""
    return "$" + "".join(
        "[*]" if step == EVERY else f"[{step[0]}={_word(step[1])}]" if isinstance(step, tuple) else f".{step}"
        for step in steps
    )


def _leads(value: Any, steps: Sequence[Step]) -> bool:
    """Whether a path leads somewhere in a value, be it to an array without elements."""
    at = steps.index(EVERY) if EVERY in steps else len(steps)
    inner = walk(value, steps[:at])
    if inner is ABSENT or at == len(steps):
        return inner is not ABSENT
    return not isinstance(inner, list) or not inner or any(_leads(one, steps[at + 1 :]) for one in inner)


def _array_paths(values: Iterable[Any], path: str = "$", depth: int = 0) -> list[str]:
    """The paths to the arrays of objects in values, as `# rows:` has them."""
    found: dict[str, None] = {}
    for value in values:
        if isinstance(value, list):
            if not value or any(isinstance(one, dict) for one in value):
                found[f"{path}[*]"] = None
            found.update(dict.fromkeys(_array_paths(value[:_SAMPLED], f"{path}[*]", depth + 1)))
        elif isinstance(value, dict) and depth < DEEPEST:
            for key, inner in value.items():
                found.update(dict.fromkeys(_array_paths([inner], f"{path}.{key}", depth + 1)))
    return list(found)


def columns_of(rows: Iterable[Any], prefix: str = "") -> list[str]:
    """The columns of objects in the order in which they come: nested ones as paths, lists of keys and values
    by their keys.
    """
    found: dict[str, None] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, dict) and value and prefix.count(".") < DEEPEST:
                found.update(dict.fromkeys(columns_of([value], f"{prefix}{key}.")))
            elif isinstance(value, list):
                found.update(dict.fromkeys(_of_pairs(value, f"{prefix}{key}")))
            else:
                found[f"{prefix}{key}"] = None
    return list(found)


def named(values: list[Any]) -> bool:
    """Whether a list has objects that name themselves, of which columns are made."""
    return next(_of_pairs(values[:1], ""), None) is not None


def _of_pairs(values: list[Any], name: str) -> Iterator[str]:
    """The columns of a list of objects that name themselves: `key` or `name` beside what it is."""
    for one in values:
        said = next((k for k in ("key", "name") if isinstance(one, dict) and isinstance(one.get(k), str)), "")
        if not said or "value" not in one:
            return
        yield from columns_of([{"value": one["value"]}], f"{name}[{said}={_word(one[said])}].")


def _word(word: str) -> str:
    """A value as it stands after `=`."""
    return json.dumps(word, ensure_ascii=False) if _is_quoted(word) else word


def _is_quoted(word: str) -> bool:
    """Whether a value is written in quotes after `=`."""
    return not word or any(char in word for char in '[]"=\\') or word != word.strip()


def arrays_of(rows: Iterable[Any], prefix: str = "") -> dict[str, tuple[str, bool]]:
    """The arrays that `columns_of` leaves out, each with the path from it to a value (`cell_in`), and whether
    its elements are objects.
    """
    found: dict[str, tuple[str, bool]] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, dict) and prefix.count(".") < DEEPEST:
                found.update(arrays_of([value], f"{prefix}{key}."))
            elif isinstance(value, list) and value and not named(value):
                cell = cell_in(value) if steps_of(f"$.{key}") == ("$", key) else ""
                found.setdefault(f"{prefix}{key}", (cell, all(isinstance(one, dict) for one in value)))
    return found


BATCH = 4096
"""Rows that are made together."""


def arrow_columns_of(schema: pa.Schema, prefix: str = "") -> list[str]:
    """Names of the columns, fields of structs as `a.b`."""
    found: list[str] = []
    for column in schema:
        if pa.types.is_struct(column.type):
            found += arrow_columns_of(pa.schema(list(column.type)), f"{prefix}{column.name}.")
        else:
            found.append(f"{prefix}{column.name}")
    return found


def batch_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows that are made together."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH):
            yield batch.slice(start, BATCH)


def part_texts(part: pa.RecordBatch, columns: Sequence[str], place: str) -> list[list[str | None]]:
    """The cells of some columns, column by column. Raises DataError D2408."""
    return [_texts(_column(part, name), name, place) for name in columns]


def rows(batches: Iterable[pa.RecordBatch], columns: Sequence[str], place: str) -> Iterator[list[str | None]]:
    """The rows of batches, of each the cells of some columns. Raises DataError D2408."""
    for part in batch_parts(batches):
        texts = part_texts(part, columns, place)
        yield from map(list, zip(*texts, strict=True)) if texts else ([] for _ in range(part.num_rows))


class CellColumn(Struct, frozen=True):
    """The cells of a column: those of the rows, or with `codes` the distinct ones and of each row which."""

    cells: list[str | None]
    codes: list[int] | None = None

    @classmethod
    def of_arrow(cls, array: Any, name: str, place: str) -> CellColumn:
        """Distinct values are made strings once where they repeat. Raises DataError D2408."""
        if len(array) < _FEW_ROWS or pa.types.is_nested(array.type):
            return cls(_texts(array, name, place))
        coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        if len(coded.dictionary) * 2 > len(array):
            return cls(_texts(array, name, place))
        codes = coded.indices.to_pylist()
        cells = _texts(coded.dictionary, name, place)
        if coded.indices.null_count:
            cells.append(None)
            codes = [len(cells) - 1 if code is None else code for code in codes]
        return cls(cells, codes)

    def of_rows(self) -> list[str | None]:
        """The cell of each row."""
        return self.cells if self.codes is None else list(map(self.cells.__getitem__, self.codes))


_FEW_ROWS = 64
"""Rows for which distinct values are not worth looking for."""


def form_columns(compiled: CompiledMapping, columns: Mapping[int, CellColumn]) -> list[FormColumn]:
    """The terms of a form, of columns by their places. Raises CellError for some cell."""
    found: list[FormColumn] = []
    for term in compiled.terms:
        own = [columns[place] for place in term.places]
        if len(own) == 1:
            found.append(FormColumn(term.make(own[0].cells), own[0].codes))
        else:
            found.append(FormColumn(term.make(*[column.of_rows() for column in own])))
    return found


def arrow_times(array: Any, mapping: TableMapping) -> list[Time] | None:
    """The times of a column of timestamps with a zone that is the time as it stands; None of another."""
    kind, cell = array.type, mapping.time
    if cell is None or cell.filters or not pa.types.is_timestamp(kind) or kind.tz is None or array.null_count:
        return None
    if kind.unit == "ns":
        return None
    micros = 1_000_000 // _PER_SECOND[kind.unit]
    values = array.cast(pa.int64()).to_pylist()
    if not values or not _FIRST <= min(values) * micros <= max(values) * micros < _LAST:
        return None
    return values if micros == 1 else [value * micros for value in values]


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name in batch.schema.names:
        return batch.column(batch.schema.names.index(name))
    head, _, rest = name.partition(".")
    array = batch.column(batch.schema.names.index(head))
    for key in rest.split("."):
        array = array.flatten()[[field.name for field in array.type].index(key)]
    return array


def _texts(array: Any, name: str, place: str) -> list[str | None]:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _texts(array.dictionary_decode(), name, place)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values: list[str | None] = array.to_pylist()
        return values
    if pa.types.is_timestamp(kind):
        return _timestamps(array, kind)
    if pa.types.is_boolean(kind):
        return [None if value is None else "true" if value else "false" for value in array.to_pylist()]
    if pa.types.is_floating(kind):
        return [None if value is None else repr(value) for value in array.to_pylist()]
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return [None if value is None else _plain(value) for value in array.to_pylist()]
    if pa.types.is_date(kind):
        return [
            None if value is None else _day(value)
            for value in array.cast(pa.date32(), safe=False).view(pa.int32()).to_pylist()
        ]
    if pa.types.is_time(kind):
        return _times_of_day(array, kind)
    if pa.types.is_null(kind):
        return [None] * len(array)
    raise DataError.of(
        "D2408",
        f"the column `{name}` is of the type {kind}",
        place=place,
        hint="a cell is one value: a string, number, time or boolean",
    )


def _plain(value: Any) -> str:
    """An integer, or a decimal without an exponent."""
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _day(days: int) -> str:
    """A day by its number from 1970 on; one outside the years 1 to 9999 in words that no datatype takes."""
    try:
        return date.fromordinal(_EPOCH + days).isoformat()
    except (ValueError, OverflowError):
        return f"{days} days from 1970-01-01"


def _times_of_day(array: Any, kind: Any) -> list[str | None]:
    if kind.unit != "ns":
        return [None if value is None else value.isoformat() for value in array.to_pylist()]
    whole = array.cast(pa.time64("us"), safe=False).to_pylist()
    rests = [None if value is None else value % 1000 for value in array.cast(pa.int64()).to_pylist()]
    return [
        None if time is None else f"{time.isoformat('microseconds')}{rest:03d}" if rest else time.isoformat()
        for time, rest in zip(whole, rests, strict=True)
    ]


_EPOCH = date(1970, 1, 1).toordinal()
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999, in µs."""

_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


def _timestamps(array: Any, kind: Any) -> list[str | None]:
    """ISO texts, to the nanosecond where there are any."""
    write, unit = Clock(integer=False).text, _PER_SECOND[kind.unit]
    end = None if kind.tz is not None else -1
    values = array.cast(pa.int64()).to_pylist()
    micros = 1_000_000 // unit
    known = [value for value in values if value is not None] if None in values else values
    if micros and (not known or _FIRST <= min(known) * micros <= max(known) * micros < _LAST):
        if end is None and None not in values:
            return [write(value * micros) for value in values]
        return [None if value is None else write(value * micros)[:end] for value in values]

    def text(value: int) -> str:
        seconds, rest = divmod(value, unit)
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{write(seconds * 1_000_000)[:-1]}{fraction}{'Z' if end is None else ''}"

    return [None if value is None else text(value) for value in values]


def open_columns(path: str, file: bytes | str, form: str, skip: int = 0) -> tuple[Any, Iterator[Any], int]:
    """(schema, batches, rows before them) of a Parquet or Arrow file; of the first `skip` rows, those of
    whole row groups are not read. Raises DataError D2017; the batches raise D2007.
    """
    damage = (pa.ArrowException, OSError, ValueError, SystemError, OverflowError, LookupError, RecursionError)
    try:
        file = pa.BufferReader(file) if isinstance(file, bytes) else file
        if form == "parquet":
            table = pq.ParquetFile(file, page_checksum_verification=True)
            schema = table.schema_arrow
            group, before = _first_group(table, skip)
            batches = _by_group(table, group)
        else:
            (schema, batches), before = _arrow(file), 0
        arrow_columns_of(schema)  # names that are no UTF-8, structs without end
    except FileNotFoundError as error:
        raise unreadable(path, error) from None
    except damage as error:
        raise DataError.of(
            "D2017",
            f"`{path}` cannot be read as {form.capitalize()}",
            place=path,
            label=_reason(error),
        ) from None
    return schema, _sound(path, batches, damage), before


def _first_group(table: Any, skip: int) -> tuple[int, int]:
    """The row group in which the row after the first `skip` stands, and the rows before it."""
    before = 0
    for group in range(table.num_row_groups if skip else 0):
        rows = table.metadata.row_group(group).num_rows
        if before + rows > skip:
            return group, before
        before += rows
    return (table.num_row_groups if skip else 0), before


def _by_group(table: Any, first: int = 0) -> Iterator[Any]:
    """The batches of a Parquet file, so that those of a row group stand before the next is examined."""
    for group in range(first, table.num_row_groups):
        yield from table.iter_batches(row_groups=[group])


def _arrow(file: Any) -> tuple[Any, Iterator[Any]]:
    """(schema, batches) of an Arrow file, or of a stream in a file."""
    try:
        reader = pa.ipc.open_file(file)
        return reader.schema, (reader.get_batch(n) for n in range(reader.num_record_batches))
    except pa.ArrowInvalid:
        stream = pa.ipc.open_stream(file if not isinstance(file, str) else pa.memory_map(file))
        return stream.schema, iter(stream)


def _sound(path: str, batches: Iterable[Any], damage: tuple[type[Exception], ...]) -> Iterator[Any]:
    """Batches in which every value is one. Raises DataError D2007."""
    try:
        for batch in batches:
            batch.validate(full=True)
            yield batch
    except MemoryError:  # of Arrow's, which is an ArrowException, too
        raise
    except damage as error:
        raise DataError.of(
            "D2007",
            f"`{path}` is damaged",
            place=path,
            label=_reason(error),
            hint="copy or write it again; what was read before the damage stands",
        ) from None


def _reason(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]


Pass: TypeAlias = str
"""Which pass of the hour a time is of: `earlier`, `later`, or `undecided`."""

Begun: TypeAlias = dict[str, tuple[Pass, Time]]
"""Of each column, in whose repeated hour reading stands: the pass and the local time of its last row."""

LONGEST: Final = 1 << 19
"""Rows of one repeated hour that may wait."""


class Undecided(NamedTuple):
    """A graph with local times that came twice, in µs as if they were UTC, by the column in which they stand.
    `make` gives what it is when the pass of each is known.
    """

    locals: Mapping[str, Time]
    make: Callable[[Mapping[str, Pass]], Item]
    end: int


def undecided(local: Time, make: Callable[[], Item], extractor: TimestampExtractor, end: int) -> Undecided:
    """A graph with a time of its own, which `make` finds."""
    return Undecided({"": local}, lambda passes: extractor.taking(passes[""], make), end)


def begun_at(bookmark: Bookmark) -> tuple[Bookmark, Begun]:
    """A bookmark as readers have it, and the repeated hours in which it lies."""
    carried, _, begun = bookmark.carried.partition(BEGUN)
    if not begun:
        return bookmark, {}
    stored = json.loads(begun)
    return bookmark._replace(carried=carried), {
        column: (word, time) for column, (word, time) in stored.items()
    }


def decided(
    items: Iterable[Item | GraphRun | Undecided], bookmark: Bookmark, begun: Begun, growing: bool
) -> Iterator[Item | GraphRun]:
    """The items, in their order, once it is known what all of their times are.

    `growing`: at the end of the file rows that wait are left for the next reading, which begins at them.
    """
    hours = _OpenHours(bookmark, begun)
    for item in items:
        if type(item) is Undecided:
            hours.add(item)
        elif growing and hours.queue and isinstance(item, ReadEvent) and item.error is None:
            yield hours.left(item)
            return
        else:
            hours.pass_on(item)  # type: ignore[arg-type]  # it is none that is undecided
        yield from hours.ready()
    hours.close(())
    yield from hours.ready()


def passes_of(locals_: Sequence[Time], begun: tuple[Pass, Time] | None = None) -> list[Pass]:
    """The passes of the times of one repeated hour, in the order of their rows; `begun`: the row before."""
    if begun is None:
        return _passes(locals_)
    word, last = begun
    found = _passes([last, *locals_])[1:]
    if word == "earlier" and found:
        return found
    backwards = any(b < a for a, b in pairwise([last, *locals_]))
    return ["undecided" if backwards else word] * len(locals_)


def _passes(locals_: Sequence[Time]) -> list[Pass]:
    steps = list(enumerate(pairwise(locals_), 1))
    back = [at for at, (a, b) in steps if b < a] or [at for at, (a, b) in steps if b == a]
    if len(back) != 1:
        return ["undecided"] * len(locals_)
    return ["earlier"] * back[0] + ["later"] * (len(locals_) - back[0])


class _Row(Struct):
    """One item that waits, and the passes of its columns as far as they are known."""

    item: Item | GraphRun | Undecided
    passes: dict[str, Pass] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        return type(self.item) is not Undecided or len(self.passes) == len(self.item.locals)


class _OpenHours:
    """Owns what waits, in order, and the rows of the repeated hours that are open, by column."""

    def __init__(self, bookmark: Bookmark, begun: Begun) -> None:
        self.queue: deque[_Row] = deque()
        self._hours: dict[str, list[_Row]] = {}
        self._begun = dict(begun)
        """The row before those of an hour."""
        self._passed = dict(begun)
        """Of the hours in which the last item stands that went out, what bookmarks carry."""
        self._bookmark = bookmark

    def add(self, item: Undecided) -> None:
        """The next row, with times of a repeated hour. Those of other columns end."""
        self.close(item.locals)
        row = _Row(item)
        self.queue.append(row)
        for column, local in item.locals.items():
            hour = self._hours.setdefault(column, [])
            hour.append(row)
            if len(hour) >= LONGEST:
                self._begun[column] = "undecided", local
                self._decide(column)

    def pass_on(self, item: Item | GraphRun) -> None:
        """The next item without such times: unless it was refused, all hours end."""
        if not isinstance(item, ReadEvent) or item.error is None:
            self.close(())
        self.queue.append(_Row(item))

    def close(self, but: Collection[str]) -> None:
        """The hours of all columns but these are over."""
        for column in [*self._hours, *self._begun]:
            if column not in but:
                self._decide(column)
                self._begun.pop(column, None)

    def _decide(self, column: str) -> None:
        rows = self._hours.pop(column, [])
        times = [row.item.locals[column] for row in rows if type(row.item) is Undecided]
        for row, word in zip(rows, passes_of(times, self._begun.get(column)), strict=True):
            row.passes[column] = word

    def ready(self) -> Iterator[Item | GraphRun]:
        """What need not wait any more."""
        while self.queue and self.queue[0].known:
            row = self.queue.popleft()
            item = row.item
            if type(item) is Undecided:
                self._passed = {column: (row.passes[column], item.locals[column]) for column in item.locals}
                item = item.make(row.passes)
            elif not isinstance(item, ReadEvent):  # the end of a file is in the hour of its last row
                self._passed = {}
            yield self._bookmarked(item)  # type: ignore[arg-type]  # it is none that is undecided

    def _bookmarked(self, item: Item | GraphRun) -> Item | GraphRun:
        """An item whose bookmark carries the hours in which it stands."""
        if isinstance(item, GraphRun):
            self._bookmark = Bookmark(item.how, item.ends[-1], item.carried)
            return item
        if self._passed and item.how != "whole":
            item = item._replace(carried=f"{item.carried}{BEGUN}{json.dumps(self._passed)}")
        self._bookmark = Bookmark(item.how, item.end, item.carried)
        return item

    def left(self, end: ReadEvent) -> ReadEvent:
        """The mark of the end where rows wait: reading goes on before them."""
        how, at, carried, _ = self._bookmark
        return end._replace(how=how, end=at, carried=carried)


MAPPED_TIME = "the mapping's time"

_BLOCK = 1 << 18
_TOGETHER = 1 << 9
_REFUSED = 1_000  # rows in a row that may be refused under any limit
"""Rows that are made together; more are not cheaper."""
_tuple = tuple.__new__  # of a named tuple's parts: its own `__new__` is a Python function


class CountingFile(Protocol):
    """An open file that counts what is read of it, as reader.py's StreamReader."""

    count: int

    def read(self, size: int = -1, /) -> bytes: ...

    def settled(self) -> None: ...

    def refused(self) -> None: ...


@dataclass(slots=True)
class RefusedRows:
    """Owns the count of rows of the table `name` that are refused one after the other, where a few bytes are
    any number of rows. `limit`: bytes of a document.
    """

    name: str
    limit: int
    _count: int = dataclass_field(default=0, init=False)

    def begin(self) -> None:
        """Rows come that are not of the same bytes."""
        self._count = 0

    def count(self, item: Item | GraphRun | Undecided) -> None:
        """The next row. Raises DataError D2023."""
        self._count = self._count + 1 if type(item) is ReadEvent else 0
        most = max(self.limit >> 12, _REFUSED)
        if self._count > most:
            raise says_nothing(self.name, most, "rows that are refused")


@dataclass(slots=True)
class TableReader:
    """Owns the reading of one table as graphs and marks. `name`: the table as messages call it."""

    name: str
    mapping: TableMapping
    options: SourceOptions
    extractor: TimestampExtractor
    refusals: ErrorPolicy
    bookmark: Bookmark
    wanted: WantedForm | None = None
    """Which forms of graphs are given as columns."""
    _last: Time | None = dataclass_field(default=None, init=False)
    _head: bytes = dataclass_field(default=b"", init=False)
    """The first lines of a table that has a header."""
    _carried: str = dataclass_field(default="", init=False)
    _names: Sequence[str] = dataclass_field(default=(), init=False)
    """The columns of the rows."""
    _passes: dict[tuple[tuple[str, str], ...], CompiledMapping] = dataclass_field(
        default_factory=dict, init=False
    )

    # ------------------------------------------------------------------ text

    def lines(self, stream: CountingFile, line: int) -> Iterator[Item | GraphRun | Undecided]:
        """The rows of a CSV, TSV or JSON lines file, open at the bookmark; its next line is `line`."""
        form = self.mapping.format_of(self.name)
        left = [stream.count]
        try:
            if form == "json" or self.mapping.rows is not None:
                yield from self._counted(stream, form)
                return
            rows = self._json(stream, line, left) if form == "jsonl" else self._csv(stream, line, left)
            yield from rows
        except DataError as error:
            _raise_of_mapping(error)
            yield self._refused(error, b"", "whole", stream.count)
            return
        end = left[0] if self.options.growing else stream.count
        yield ReadEvent(self._last, self.name, "byte", end, self._carried, size=stream.count)

    def _csv(self, stream: CountingFile, line: int, left: list[int]) -> Iterator[Item | GraphRun | Undecided]:
        mapping = self.mapping
        tabbed = mapping.format_of(self.name) == "tsv"
        dialect = Dialect(mapping.delimiter or ("\t" if tabbed else ","), mapping.quoted, mapping.encoding)
        source = CsvRows(dialect, line, stream.count)
        columns = self._columns()
        compiled = self._compiled(columns) if columns else None
        for rows in self._rows(source, stream):
            if compiled is None and rows:
                try:
                    columns = self._header(rows[0])
                    compiled = self._compiled(columns)
                except DataError as error:
                    raise _perhaps_json(error, self._head) from None
                left[0] = rows.pop(0).end
            if compiled is not None:
                width = len(columns)
                filled = (_of_width(row, width) for row in rows if row.cells)
                for item in self._together(filled, "byte", compiled):
                    yield item
                    stream.settled() if type(item) is not ReadEvent else stream.refused()
                    left[0] = _end(item)
            left[0] = source.offset

    def _columns(self) -> list[str]:
        """The columns as far as they are known before the table is read."""
        if self.bookmark.carried:
            self._carried = self.bookmark.carried
            found: list[str] = json.loads(self.bookmark.carried)
            return found
        return list(self.mapping.columns)

    def _header(self, row: TableRow) -> list[str]:
        try:
            self._carried = header_text(row)
        except CellError as error:
            raise cell_error(error, f"{self.name}:{row.line}") from None
        columns: list[str] = json.loads(self._carried)
        return columns

    def _rows(self, source: CsvRows, stream: CountingFile) -> Iterator[list[TableRow]]:
        """The rows of each block: of what a pipe gives at once."""
        limit = self.options.max_document
        most = quiet_limit(limit)
        first, blank = stream.count == 0, 0
        blocks = line_blocks(
            lambda size: read_some(stream, size, self.name),
            _BLOCK,
            b"",
            limit,
            lambda: too_large(self.name, limit),
        )
        for block in blocks:
            if first:
                _refuse_wide(block, self.name)
                self._head = block
            first = False
            if self.options.growing and not block.endswith(b"\n"):
                return
            blank = blank + len(block) if block.isspace() else 0
            if blank > most:
                raise says_nothing(self.name, most)
            yield list(source.feed(block))
        if not self.options.growing:
            yield list(source.finish())

    def _json(
        self, stream: CountingFile, line: int, left: list[int]
    ) -> Iterator[Item | GraphRun | Undecided]:
        columns = list(cells_used(self.mapping))
        compiled, found = self._compiled(columns), JsonRows(columns, None, self.mapping.name)
        try:
            for lines in raw_lines(stream, self.name, self.options.max_document, b"", line, stream.count):
                if self.options.growing and not lines[-1].complete:
                    return
                rows = (
                    TableRow(next(self._json_rows(one.content, found)), one.content, one.number, one.end)
                    for one in lines
                )
                for item in self._together(rows, "byte", compiled):
                    yield item
                    stream.settled() if type(item) is not ReadEvent else stream.refused()
                    left[0] = _end(item)
        finally:
            self._note_missing(found)

    def _json_rows(self, content: bytes, found: JsonRows, what: str = "line") -> Iterator[JsonRow]:
        """The rows of a line or document."""
        try:
            text = content.decode(self.mapping.encoding).removeprefix("\ufeff")
            value = value_of(text, what)
        except CellError as error:
            yield error
        except UnicodeDecodeError as error:
            byte = content[error.start]
            yield CellError(f"this {what} is not {self.mapping.encoding}: byte 0x{byte:02X}", "", "D2405")
        else:
            yield from found.of(value, what)

    def _note_missing(self, found: JsonRows) -> None:
        for finding in found.missing(self.name):
            self.extractor.columns_missing.setdefault(finding.message, finding)

    def _counted(self, stream: CountingFile, form: str) -> Iterator[Item | GraphRun | Undecided]:
        """The rows of a document of JSON, or of lines that have any number of them: these are counted."""
        columns = list(cells_used(self.mapping))
        number = skip = self.bookmark.end if self.bookmark.how == "graph" else 0
        ends = count(1)
        bound = RefusedRows(self.name, self.options.max_document)
        compiled = self._compiled(columns)
        found = JsonRows(columns, self.mapping.rows, self.mapping.name)
        try:
            for lines in self._texts(stream, form):
                made = chain.from_iterable(
                    map(self._placed_rows, lines, repeat(found), repeat(form), repeat(bound))
                )
                rows = (row._replace(end=end) for row, end in zip(made, ends, strict=False))
                for item in self._together((row for row in rows if row.end > skip), "graph", compiled):
                    yield item
                    number = _end(item)
                    stream.settled() if type(item) is not ReadEvent else stream.refused()
                    bound.count(item)
        finally:
            self._note_missing(found)
        yield ReadEvent(self._last, self.name, "graph", number, size=stream.count)

    def _texts(self, stream: CountingFile, form: str) -> Iterator[list[Line]]:
        limit = self.options.max_document
        if form == "json":
            content = read_bounded(stream, self.name, limit, Format.JSONLD)
            yield [Line(content, 1, len(content))]
            return
        for lines in raw_lines(stream, self.name, limit):
            if self.options.growing and not lines[-1].complete:
                return
            yield lines

    def _placed_rows(self, line: Line, found: JsonRows, form: str, bound: RefusedRows) -> Iterator[TableRow]:
        """Rows with their lines; of a document with their numbers in it."""
        bound.begin()
        whole = form == "json"
        rows = self._json_rows(line.content, found, "document" if whole else "line")
        for number, row in enumerate(rows, 1):
            content = b"" if not isinstance(row, CellError) or whole else line.content
            yield TableRow(row, content, number if whole else line.number, 0)

    # ------------------------------------------------------------------ Arrow

    @property
    def columnar(self) -> bool:
        """Whether the table is a file of columns, which is not read as lines."""
        return self.mapping.format_of(self.name) in ("parquet", "arrow")

    def columns(self, content: bytes | None = None) -> Iterator[Item | GraphRun | Undecided]:
        """The rows of a Parquet or Arrow file, whose bytes are `content` where they were fetched already."""
        try:
            form = self.mapping.format_of(self.name)
            skip = self.bookmark.end if self.bookmark.how == "graph" else 0
            opened = open_columns(self.name, self.name if content is None else content, form, skip)
            yield from self.batches(*opened)
        except DataError as error:
            _raise_of_mapping(error)
            yield self._refused(error, b"", "whole", 0)

    def batches(
        self, schema: Any, batches: Iterable[Any], before: int = 0
    ) -> Iterator[Item | GraphRun | Undecided]:
        """The rows of Arrow batches of one schema, the first of which is number `before` + 1. Raises
        DataError.
        """
        skip = self.bookmark.end if self.bookmark.how == "graph" else 0
        bound = RefusedRows(self.name, self.options.max_document)
        self._compiled(arrow_columns_of(schema))  # says what is not there
        used = list(cells_used(self.mapping))
        compiled = self._compiled(used)
        number = before
        for part in batch_parts(batches):
            first, size = number + 1, part.num_rows
            number += size
            if number <= skip:
                continue
            if first > skip and used and (run := self._form_run(compiled, part, used, first)) is not None:
                yield run
                bound.begin()
                continue
            columns = part_texts(part, used, self.name)
            run = self._run(compiled, columns, first) if first > skip else None
            if run is not None:
                yield run
                bound.begin()
                continue
            rows = map(list, zip(*columns, strict=True)) if columns else ([] for _ in range(size))
            left = (TableRow(row, b"", n, n) for n, row in enumerate(rows, first) if n > skip)
            for item in self._together(left, "graph", compiled):
                yield item
                bound.count(item)
        yield ReadEvent(self._last, self.name, "graph", max(number, skip), size=self._size())

    def _form_run(
        self, compiled: CompiledMapping, part: Any, used: Sequence[str], first: int
    ) -> GraphRun | None:
        """The rows of a part as columns, if that is wanted, and all is right with them."""
        if not self._takes(compiled):
            return None
        try:
            times, at = arrow_times(_column(part, used[compiled.time_at]), self.mapping), compiled.time_at
            places = {place for term in compiled.terms for place in term.places}
            columns = {
                place: CellColumn.of_arrow(_column(part, used[place]), used[place], self.name)
                for place in (places if times is not None else places | {at})
            }
            terms = form_columns(compiled, columns)
            timed = (times, False) if times is not None else compiled.times_alike(columns[at].of_rows())
        except CellError:
            return None
        if timed is None:
            return None

        def make(start: int, end: int) -> list[GraphOrMessage]:
            cells = part_texts(part.slice(start, end - start), used, self.name)
            return list(compiled.columns(cells))

        numbers = range(first, first + part.num_rows)
        return self._as_run(
            compiled, LazyGraphs(make, part.num_rows), *timed, numbers, numbers, "graph", terms
        )

    def _takes(self, compiled: CompiledMapping) -> bool:
        """Whether the rows of a mapping are asked for as columns."""
        if self.wanted is None or not compiled.form or self.extractor.elsewhere or compiled.changes:
            return False
        return compiled.time_at >= 0 and self.wanted(compiled.form)

    def _run(
        self, compiled: CompiledMapping, columns: Sequence[Sequence[str | None]], first: int
    ) -> GraphRun | None:
        """The graphs of rows that are all right, the first of which has this number; None of others."""
        if not columns or compiled.time_at < 0 or self.extractor.elsewhere:
            return None
        try:
            graphs = list(compiled.columns(columns))
            times = compiled.times_alike(columns[compiled.time_at])
        except CellError:
            return None
        numbers = range(first, first + len(graphs))
        return times and self._as_run(compiled, graphs, *times, numbers, numbers, "graph")

    def _as_run(
        self,
        compiled: CompiledMapping,
        graphs: Sequence[GraphOrMessage | CellError],
        found: Sequence[Time],
        integer: bool,
        lines: Sequence[int],
        ends: Sequence[int],
        how: str,
        terms: Sequence[FormColumn] = (),
    ) -> GraphRun | None:
        """Graphs and times of rows as a run; None where one is in error, or reading its times changed one."""
        if not graphs or compiled.changes:
            return None
        if not terms and any(type(graph) is not list for graph in graphs):
            return None
        if terms and not all(map(le, found, found[1:])):
            return None
        extractor = self.extractor
        if extractor.clock is None or extractor.clock.integer is not integer:
            extractor.accept(integer, f"{self.name}:{lines[0]}")
        extractor.hit(MAPPED_TIME, len(found))
        self._last = found[-1]
        columns = FormRun(compiled.form, found, terms) if terms else None
        return GraphRun(found, graphs, self.name, lines, ends, how, self._carried, columns)  # type: ignore[arg-type]  # likewise

    def _size(self) -> int:
        return os.path.getsize(self.name) if os.path.isfile(self.name) else 0

    # ------------------------------------------------------------------ rows

    def _settings(self) -> tuple[int, str, str, TimeReading]:
        return self.options.unit, self.options.zone, self.name, self.options.reading

    def _compiled(self, columns: Sequence[str]) -> CompiledMapping:
        self._names = tuple(columns)
        return compile_mapping(self.mapping, columns, *self._settings())

    def _together(
        self, rows: Iterable[TableRow], how: str, compiled: CompiledMapping
    ) -> Iterator[Item | GraphRun | Undecided]:
        """The items of rows, some of which are made together; those before an error come before it."""
        left = iter(rows)
        failed: DataError | None = None
        while failed is None:
            some: list[TableRow] = []
            try:
                some.extend(islice(left, _TOGETHER))
            except DataError as error:
                failed = error
            if not some:
                break
            cells = [row.cells for row in some if not isinstance(row.cells, CellError)]
            graphs = list(compiled.parts(cells))
            own = compiled.time_at < 0 or self.extractor.elsewhere
            found = () if own else compiled.instants([row[compiled.time_at] for row in cells])
            if not own and len(cells) == len(some):
                lines, ends = [row.line for row in some], [row.end for row in some]
                alike = times_alike(found)
                run = alike and self._as_run(compiled, graphs, *alike, lines, ends, how)
                if run is not None:
                    yield run
                    continue
            parts, times, changes = iter(graphs), iter(found), compiled.changes
            for row in some:
                part = row.cells if isinstance(row.cells, CellError) else next(parts)
                time = None if own or part is row.cells else next(times)
                if isinstance(part, RepeatedCellError) or isinstance(time, RepeatedCellError):
                    yield self._undecided(row, time is None, how, compiled)
                    continue
                try:
                    item = self._row(row, part, time, how)
                except UndecidedTimeError as error:
                    make = partial(self._row, row, part, time, how)
                    yield undecided(error.local, make, self.extractor, row.end)
                    continue
                if changes and type(item) is TimedGraph:
                    self._note(row, compiled)
                yield item
        if failed is not None:
            raise failed

    def _undecided(self, row: TableRow, own: bool, how: str, compiled: CompiledMapping) -> Undecided:
        """A row with local times of which the rows after it say what they are; `own`: its graph says its
        time.
        """
        cells: Row = row.cells  # type: ignore[assignment]  # they were read

        def made(passes: Mapping[str, str]) -> Item:
            one = self._of_passes(passes)
            time = None if own else one.instants([cells[one.time_at]])[0]
            item = self._row(row, next(one.parts([cells])), time, how)
            if type(item) is TimedGraph:
                self._note(row, one)
            return item

        return Undecided(compiled.repeated(cells), made, row.end)

    def _note(self, row: TableRow, compiled: CompiledMapping) -> None:
        """Count what reading the times of a row changed."""
        notes = compiled.notes(row.cells)  # type: ignore[arg-type]  # it made a graph
        self.extractor.note(notes, f"{self.name}:{row.line}")

    def _of_passes(self, passes: Mapping[str, str]) -> CompiledMapping:
        """The mapping for rows whose repeated local times are of these passes."""
        key = tuple(sorted(passes.items()))
        if key not in self._passes:
            self._passes[key] = compile_mapping(self.mapping, self._names, *self._settings(), passes)
        return self._passes[key]

    def _row(
        self,
        row: TableRow,
        part: GraphOrMessage | CellError,
        found: tuple[Time, bool] | CellError | None,
        how: str,
    ) -> Item:
        """`found`: the time of the row's cell; None where the graph says it."""
        try:
            if isinstance(part, CellError):
                raise part
            if isinstance(found, CellError):
                raise found
            if found is None:
                time = self.extractor.time(all_triples(part), "", f"{self.name}:{row.line}", mapped=True)
            else:
                time = self._accepted(row, *found)
        except CellError as error:
            refused = cell_error(error, f"{self.name}:{row.line}")
        except UndecidedTimeError:
            raise
        except DataError as error:
            refused = error
        else:
            self._last = time
            return _tuple(TimedGraph, (time, part, self.name, row.line, how, row.end, self._carried))
        return self._refused(refused, row.content or _as_json(row.cells), how, row.end)

    def _accepted(self, row: TableRow, time: Time, integer: bool) -> Time:
        extractor = self.extractor
        if extractor.clock is None or extractor.clock.integer is not integer:
            extractor.accept(integer, f"{self.name}:{row.line}")
        extractor.hit(MAPPED_TIME)
        return time

    def _refused(self, error: DataError, content: bytes, how: str, end: int) -> ReadEvent:
        if self.refusals.fail:
            raise error
        return ReadEvent(self._last, self.name, how, end, self._carried, error, content)


def _end(item: Item | GraphRun | Undecided) -> int:
    return item.ends[-1] if type(item) is GraphRun else item.end  # type: ignore[union-attr]  # a run has ends


def _of_width(row: TableRow, columns: int) -> TableRow:
    if isinstance(row.cells, CellError) or len(row.cells) == columns:
        return row
    return row._replace(cells=ragged(row.cells, columns))


def _raise_of_mapping(error: DataError) -> None:
    """What is wrong with a mapping is wrong with every table: no policy for documents passes over it."""
    if error.diagnostics[0].code == "D2401":
        raise error


def _perhaps_json(error: DataError, head: bytes) -> DataError:
    """What is wrong with the header of a table, of which JSON has none."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] not in (b"{", b"["):
        return error
    try:
        lines = isinstance(value_of(text.split(b"\n", 1)[0].decode()), dict)
    except (CellError, UnicodeDecodeError):
        lines = False
    hint = f"it begins like JSON, but is read as CSV: add # format: {'jsonl' if lines else 'json'}"
    return DataError([one._replace(hint=hint) for one in error.diagnostics])


def _as_json(cells: Row | CellError) -> bytes:
    return b"" if isinstance(cells, CellError) else json.dumps(list(cells), ensure_ascii=False).encode()


def _refuse_wide(block: bytes, name: str) -> None:
    """Raise DataError D2002 for UTF-16."""
    if block[:2] in (b"\xff\xfe", b"\xfe\xff") or (block[:200].count(b"\0") * 3 > len(block[:200])):
        hint = "convert it: iconv -f utf-16 -t utf-8"
        raise DataError.of("D2002", f"`{name}` is UTF-16", place=f"{name}:1", hint=hint)


def without_mapping(path: str) -> DataError:
    """A table, and no mapping for it."""
    return DataError.of(
        "D2407",
        f"`{path}` is a table, and no mapping says what its rows mean",
        place=path,
        hint=f"dotr map new {path} > readings.map proposes one; then add --map readings.map "
        "(in a file of tests `map: readings.map` after `from:`)",
    )


@dataclass(slots=True)
class FrameSource:
    """Owns the reading of frames, one after the other: iterate once over it. Raises DataError, UsageError."""

    frames: Sequence[Any]
    mapping: TableMapping
    options: SourceOptions
    refusals: ErrorPolicy = dataclass_field(default_factory=ErrorPolicy)
    extractor: TimestampExtractor = dataclass_field(init=False)
    paths: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.extractor = self.options.extractor()

    @property
    def clock(self) -> Clock | None:
        return self.extractor.clock

    def __iter__(self) -> Iterator[TimedGraph]:
        for number, frame in enumerate(self.frames, 1):
            name = f"<frame {number}>" if len(self.frames) > 1 else "<frame>"
            reader = TableReader(name, self.mapping, self.options, self.extractor, self.refusals, START)
            schema, batches = _batches(frame)
            items = decided(reader.batches(schema, batches), START, {}, growing=False)
            yield from graphs_alone(one_by_one(items), self.refusals)


def _batches(frame: Any) -> tuple[Any, Sequence[Any]]:
    """(schema, batches) of a table of Arrow, a frame of pandas, or what has Arrow's C stream interface."""
    if isinstance(frame, pa.RecordBatch):
        return frame.schema, [frame]
    if isinstance(frame, pa.Table):
        return frame.schema, frame.to_batches()
    if type(frame).__module__.startswith("pandas."):
        return _batches(pa.Table.from_pandas(frame, preserve_index=False))
    if hasattr(frame, "__arrow_c_stream__"):
        return _batches(pa.table(frame))
    hint = "give a path, a pandas frame or an Arrow table"
    raise UsageError.of("D4153", f"{type(frame).__name__} is not a table", hint=hint)
