"""The first rows of a table, whatever it is written in: what `dotr map new` looks at.

Place:   under cli/map.py; reads without a mapping.
Bad input: D2407 not a table · D2403 nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from dotr.errors import DataError
from dotr.io.decode.documents import open_document, read_some
from dotr.io.decode.json_lines import raw_lines
from dotr.io.tables.arrow_files import open_columns
from dotr.io.tables.cells import CellError
from dotr.io.tables.csv_rows import CsvRows, Dialect, TableRow
from dotr.io.tables.json_rows import cell_of, columns_of, object_of
from dotr.io.tables.names import table_format
from dotr.late import dataclass

_HEAD = 4 << 20
"""Bytes of a text file that are looked at, at most."""

_DELIMITERS = (",", ";", "\t", "|")
_SPOKEN = {"\t": "tab"}


@dataclass(frozen=True, slots=True)
class TableSample:
    """Columns and rows, and the settings that reading them takes."""

    columns: list[str]
    rows: list[list[str | None]]
    settings: dict[str, str]


def sample(path: str, most: int) -> TableSample:
    """The first rows of a table. Raises DataError."""
    form = table_format(path)
    if form in ("parquet", "arrow"):
        return _of_columns(path, form, most)
    with open_document(path) as file:
        head = b""
        while len(head) < _HEAD and (part := read_some(file, _HEAD - len(head), path)):
            head += part
    whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
    found = _of_json(path, whole, most) if form == "jsonl" else _of_csv(whole, form == "tsv", most)
    if not found.columns or not found.rows:
        raise DataError.of(
            "D2403", f"`{path}` has no rows", place=path, hint="a header line, and rows below it"
        )
    return found


def _of_columns(path: str, form: str, most: int) -> TableSample:
    from dotr.io.tables import arrow_rows  # noqa: PLC0415  # start-up: Arrow takes 0.3 s

    schema, batches = open_columns(path, path, form)
    columns, rows = arrow_rows.columns_of(schema), arrow_rows.rows
    return TableSample(columns, list(islice(rows(batches, columns, path), most)), {})


def _of_json(path: str, head: bytes, most: int) -> TableSample:
    objects = []
    for line in islice(_json_lines(path, head), most):
        try:
            objects.append(object_of(line))
        except (CellError, UnicodeDecodeError):
            continue
    columns = columns_of(objects)
    rows: list[list[str | None]] = []
    for one in objects:
        try:
            rows.append([cell_of(one, column) for column in columns])
        except CellError:
            continue
    return TableSample(columns, rows, {"format": "jsonl"})


def _json_lines(path: str, head: bytes) -> Iterator[str]:
    class Once:
        def __init__(self) -> None:
            self._left = head

        def read(self, size: int = -1, /) -> bytes:
            found, self._left = self._left, b""
            return found

    for lines in raw_lines(Once(), path):
        yield from (line.content.decode("utf-8", "replace") for line in lines)


def _of_csv(head: bytes, tabbed: bool, most: int) -> TableSample:
    encoding = "utf-8"
    try:
        head.decode()
    except UnicodeDecodeError:
        encoding = "latin-1"
    usual = "\t" if tabbed else ","
    delimiter = _delimiter(head.split(b"\n", 1)[0].decode(encoding), usual)
    settings = {}
    if delimiter != usual:
        settings["delimiter"] = _SPOKEN.get(delimiter, delimiter)
    if encoding != "utf-8":
        settings["encoding"] = encoding
    source = CsvRows(Dialect(delimiter, True, encoding))
    cells = (row.cells for row in islice(_all(source, head), most + 1))
    found = [row for row in cells if not isinstance(row, CellError) and row]
    if not found:
        return TableSample([], [], settings)
    columns = [(name or "").strip() for name in found[0]]
    rows: list[list[str | None]] = [list(row) for row in found[1:] if len(row) == len(columns)]
    return TableSample(columns, rows, settings)


def _all(source: CsvRows, head: bytes) -> Iterator[TableRow]:
    yield from source.feed(head)
    yield from source.finish()


def _delimiter(header: str, usual: str) -> str:
    counts = {one: header.count(one) for one in _DELIMITERS}
    most = max(counts.values())
    return usual if counts[usual] == most else next(one for one in _DELIMITERS if counts[one] == most)
