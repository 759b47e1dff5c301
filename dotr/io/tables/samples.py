"""The first rows of a table, whatever it is written in: what `dotr map new` looks at.

Place:   under cli/convert.py; reads without a mapping.
Bad input: D2407 not a table · D2403 nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct, field

from dotr.errors import DataError
from dotr.io.decode.documents import decode, open_document, read_bytes, read_some
from dotr.io.decode.json_lines import raw_lines
from dotr.io.tables.arrow_files import open_columns
from dotr.io.tables.cells import CellError
from dotr.io.tables.compiled_mapping import cell_error
from dotr.io.tables.csv_rows import CsvRows, Dialect, TableRow
from dotr.io.tables.json_paths import steps_of
from dotr.io.tables.json_rows import DEEPEST, arrays_of, cell_of, columns_of, named, object_of, value_of
from dotr.io.tables.names import table_format

_HEAD = 4 << 20
"""Bytes of a text file that are looked at, at most."""

_DELIMITERS = (",", ";", "\t", "|")
_SPOKEN = {"\t": "tab"}


class TableSample(Struct, frozen=True):
    """Columns and rows, and the settings that reading them takes."""

    columns: list[str]
    rows: list[list[str | None]]
    settings: dict[str, str]
    arrays: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    """Arrays of JSON of which no cell is made: see `arrays_of`."""
    way: str = "$"
    """The way to the rows, as `# rows:` has it."""


def sample(path: str, most: int) -> TableSample:
    """The first rows of a table. Raises DataError."""
    form = table_format(path)
    if form in ("parquet", "arrow"):
        return _of_columns(path, form, most)
    if form == "json":
        return _some(_of_document(path, most), path)
    with open_document(path) as file:
        head = b""
        while len(head) < _HEAD and (part := read_some(file, _HEAD - len(head), path)):
            head += part
    whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
    found = _of_lines(path, whole, most) if form == "jsonl" else _of_csv(whole, form == "tsv", most)
    return _some(found, path)


def _some(found: TableSample, path: str) -> TableSample:
    """A sample that has rows. Raises DataError D2403."""
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


def _of_lines(path: str, head: bytes, most: int) -> TableSample:
    objects = []
    for line in islice(_json_lines(path, head), most):
        try:
            objects.append(object_of(line))
        except (CellError, UnicodeDecodeError):
            continue
    return _of_objects(objects, {"format": "jsonl"})


def _of_document(path: str, most: int) -> TableSample:
    """The rows of a document: the elements of it, or of the largest array of objects that is in it."""
    try:
        value = value_of(decode(read_bytes(path), path), "document")
    except CellError as error:
        raise cell_error(error, path) from None
    settings = {}
    way = "$[*]"
    if isinstance(value, dict):
        way, value = max(_lists([value], "$"), key=lambda found: len(found[1]), default=("", [value]))
        settings = {"rows": way} if way else {}
    objects = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    return _of_objects(objects[:most], settings, way or "$")


def _lists(values: Sequence[dict[str, Any]], way: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The way to the arrays of objects in objects that stand side by side, and their elements together."""
    arrays: dict[str, list[dict[str, Any]]] = {}
    objects: dict[str, list[dict[str, Any]]] = {}
    for value in values:
        for key, inner in value.items():
            if steps_of(f"$.{key}") != ("$", key):
                continue  # no path leads there
            if isinstance(inner, dict):
                objects.setdefault(key, []).append(inner)
            elif isinstance(inner, list) and all(isinstance(one, dict) for one in inner) and not named(inner):
                arrays.setdefault(key, []).extend(inner)
    for key, inside in objects.items():
        if way.count(".") < DEEPEST:
            yield from _lists(inside, f"{way}.{key}")
    for key, elements in arrays.items():
        yield f"{way}.{key}[*]", elements
        if way.count(".") < DEEPEST:
            yield from _lists(elements, f"{way}.{key}[*]")


def _of_objects(objects: Sequence[dict[str, Any]], settings: dict[str, str], way: str = "$") -> TableSample:
    columns = columns_of(objects)
    rows: list[list[str | None]] = []
    for one in objects:
        try:
            rows.append([cell_of(one, column) for column in columns])
        except CellError:
            continue
    return TableSample(columns, rows, settings, arrays_of(objects), way)


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
