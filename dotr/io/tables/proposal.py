"""A mapping proposed from a sample of a table: the time, what is measured, and by what.

Place:   `dotr map new` prints it; its reader checks it before use.
Method:  the sample is the first rows of a table in any format, read without a mapping. A column is what all
         of its cells in the sample are. The time is the first column that could be one, by its name rather
         than its place. Measured numbers become observations of SOSA, made by what a column named after a
         sensor, device, station or the like names, and with what else the row has. A row that has several
         numbers and more than one other thing, or another thing and no sensor, is a record: one subject with
         all of its columns. Rows in arrays of JSON have cells of what is around them, too.
Why not: guessing zones: a time without one is written without one, and dotr asks for it.
Bad input: D2407 not a table · D2403 nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from functools import lru_cache
from itertools import islice
from os.path import splitext
from typing import Any, Final

from msgspec import Struct, field

from dotr.errors import DataError
from dotr.io.decode.documents import decode, open_document, plain_name, read_bytes, read_some
from dotr.io.decode.json_lines import raw_lines
from dotr.io.graphs import TABLES, table_format
from dotr.io.tables.cells import CellError, DateFormat, checked
from dotr.io.tables.compiled import cell_error
from dotr.io.tables.mapping import Step, steps_of
from dotr.io.tables.rows import (
    DEEPEST,
    SENT,
    CsvRows,
    Dialect,
    JsonRows,
    TableRow,
    arrays_of,
    cell_of,
    columns_around,
    columns_of,
    expanded,
    named,
    object_of,
    open_columns,
    value_of,
)
from dotr.io.time import TimeError
from dotr.io.time_survey import likely_time, reads_as
from dotr.rdf.terms import XSD

SAMPLE: Final = 1000
"""Rows that are examined."""

_FORMATS: Final = tuple(
    f"{day}{gap}{clock}"
    for day in ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d", "%d %b %Y", "%d %B %Y")
    for gap, clock in (
        (" ", "%H:%M:%S"),
        (" ", "%H:%M"),
        (" ", "%I:%M %p"),
        (" ", "%H:%M:%S.%f"),
        ("T", "%H%M%S"),
    )
)
_CLOCKED = re.compile(r"[0-9].{4,}?[:Tt][0-9]")
"""How texts of all of these formats begin."""
_NUMBERS: Final = ("integer", "decimal", "double")
_TIMELY = re.compile(r"time|date|stamp|seen|when|\bts\b|\bdt\b|^ts|_ts|_at$|instant|observed", re.IGNORECASE)
_SENSOR = re.compile(
    r"(?i:sensor|device|station|meter|machine|node|thing|asset|vehicle|report_id)|_id$|^id$|Id$|ID$"
)
_STRONG = re.compile(r"sensor|device|station|meter|machine|report_id", re.IGNORECASE)
_OWN_ID = re.compile(r"(?:.*\.)?id\Z", re.IGNORECASE)
"""Of a record, not of something that it refers to."""
_IRI = re.compile(r"(?:urn:[a-z0-9-]+:|https?://)[^\s<>\"{}|\\^`]+", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:^|[_ ])id$|[a-z]I[dD]$|_ID$|^ID$|(?:^|_)(?:no|nr|index|row)$", re.IGNORECASE)
_MISSING: Final = (
    *("NA", "N/A", "n/a", "n.a.", "#N/A", "NaN", "nan", "null", "NULL", "None", "none"),
    *("-", "--", "---", "?", "missing", "urn:ngsi-ld:null"),
)
_COMMA = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)(?:,[0-9]+)?")
_FINE_COMMA = re.compile(r".*(?:\..*,|,(?![0-9]{3}\Z))")
"""Of which the comma is no thousands': a point stands before it, or other than three digits after."""
_NANO = re.compile(r"[0-9]{18,19}")
_PAIR = re.compile(r'\[[^=\]]+="?(.+?)"?\](?:\.value)?(?:\.\w+Value)?\Z')


class ProposedColumn(Struct, frozen=True):
    """What the cells of a column are: a datatype of XSD, `text`, `time`, or `empty`. `time` is the filter
    that reads it, "" where none is needed; `note` is what its reader should look at; `number` are the filters
    of a number with a decimal comma.
    """

    name: str
    kind: str
    distinct: int
    time: str = ""
    note: str = ""
    number: str = ""
    interval: bool = False
    """Whether its times are `begin/end`."""
    iri: bool = False
    """Whether its texts are IRIs."""
    gaps: bool = False
    """Whether rows have no value of it."""


def describe(
    name: str, cells: Sequence[str | None], missing: Sequence[str], zone: str = ""
) -> ProposedColumn:
    """What a column is, by its cells."""
    texts = [cell for cell in cells if cell is not None and cell != "" and cell not in missing]
    distinct, gaps = len(set(texts)), len(texts) < len(cells)
    if not texts:
        return ProposedColumn(name, "empty", 0)
    if (found := _time(name, texts, zone)) is not None:
        return ProposedColumn(name, "time", distinct, *found, gaps=gaps)
    if (found := _intervals(name, texts, zone)) is not None:
        return ProposedColumn(name, "time", distinct, *found, interval=True, gaps=gaps)
    kinds: tuple[str, ...] = ("integer", "decimal", "double", "boolean", "date")
    kind = next((kind for kind in kinds if _all(kind, texts)), "text")
    if kind == "text" and all(map(_COMMA.fullmatch, texts)) and any(map(_FINE_COMMA.match, texts)):
        thousands = 'replace(".", "")|' if any("." in text for text in texts) else ""
        return ProposedColumn(name, "decimal", distinct, number=f'{thousands}replace(",", ".")')
    return ProposedColumn(name, kind, distinct, iri=kind == "text" and all(map(_IRI.fullmatch, texts)))


def _all(kind: str, texts: Sequence[str]) -> bool:
    check = checked(XSD + kind)
    assert check is not None
    try:
        for text in texts:
            check(text)
    except CellError:
        return False
    return kind != "boolean" or not set(texts) <= {"0", "1"}


def _time(name: str, texts: Sequence[str], zone: str) -> tuple[str, str] | None:
    """(the filter, a note) that read texts as times; None where they are not times."""
    named = f', "{zone}"' if zone else ""
    likely = likely_time(name, texts)
    if likely is not None and likely.kind == "epoch":
        if not _TIMELY.search(name):
            return None
        return f"epoch({likely.unit})", f"`{likely.examples[0]}` as {likely.unit} is {likely.reads}"
    if likely is not None and likely.kind == "dateTime":
        return ('datetime("iso")' if " " in texts[0] else ""), ""
    if likely is not None and likely.kind == "local":
        return f'datetime("iso"{named})', "" if zone else _NO_ZONE
    if _TIMELY.search(name) and all(map(_NANO.fullmatch, texts)):
        reads = reads_as(texts[0][:-3], "us")
        if "2000" <= reads[:4] < "2100":
            return "epoch(ns)", f"`{texts[0]}` as ns is {reads}"
    if not _CLOCKED.match(texts[0]):
        return None
    fits = [form for form in _FORMATS if _reads(form, texts)]
    if not fits:
        return None
    notes = [] if zone else [_NO_ZONE]
    if len(fits) > 1:
        notes.append(f"{fits[1]} would read it, too")
    return f'datetime("{fits[0]}"{named})', "; ".join(notes)


def _intervals(name: str, texts: Sequence[str], zone: str) -> tuple[str, str] | None:
    """As `_time`, for intervals of two dateTimes."""
    if not all(text.count("/") == 1 for text in texts):
        return None
    likely = likely_time(name, [end for text in texts for end in text.split("/")])
    if likely is None or likely.kind not in ("dateTime", "local"):
        return None
    local = likely.kind == "local"
    note = "its times are intervals: --interval begin, or --interval end, chooses the end that is the time"
    return (
        f'datetime("iso", "{zone}")' if local and zone else 'datetime("iso")',
        f"{note}; {_NO_ZONE}" if local and not zone else note,
    )


_NO_ZONE: Final = 'its times have no zone: name it by --time-zone, or as in datetime("…", "Europe/Berlin")'


@lru_cache(maxsize=len(_FORMATS))
def _reader(form: str) -> Callable[[str], int]:
    return DateFormat(form, UTC).micros


def _reads(form: str, texts: Sequence[str]) -> bool:
    read = _reader(form)
    try:
        for text in texts:
            read(text)
    except TimeError:
        return False
    return True


def missing_words(rows: Sequence[Sequence[str | None]]) -> list[str]:
    """Words in number columns that usually mean that there is no value."""
    found = {cell for row in rows for cell in row if cell in _MISSING}
    return [word for word in _MISSING if word in found]


def propose(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    settings: Mapping[str, str] | None = None,
    zone: str = "",
    arrays: Mapping[str, tuple[str, bool]] | None = None,
    way: str = "$",
) -> str:
    """The text of a mapping for a table. `settings` stand at its head as they are; `arrays` are named as left
    out: each has the path from it to a value, and says whether it is one of objects. `way`: to the rows.
    """
    missing = missing_words(rows)
    found = [
        describe(name, [row[number] for row in rows if number < len(row)], missing, zone)
        for number, name in enumerate(columns)
        if name
    ]
    left_out = _left_out(arrays, way) if arrays else ()
    return "\n".join([*_head(found, dict(settings or {}), missing), "", *left_out, *_body(found)]) + "\n"


def _left_out(arrays: Mapping[str, tuple[str, bool]], way: str) -> Iterator[str]:
    """What there is to know about arrays, each kind by its first."""
    yield f"# Left out, arrays: {', '.join(arrays)}"
    plain = next((name + cell for name, (cell, objects) in arrays.items() if cell and not objects), "")
    if plain:
        yield f"# One of an array is a cell, {{{plain}}}"
    first = next((name for name, (cell, objects) in arrays.items() if cell and objects), "")
    if first:
        cell = f"{first}{arrays[first][0]}"
        rows = f"{way}.{first}[*]"
        yield f"# A field of an object in an array is a cell, {{{cell}}}; each is a row with # rows: {rows}"


def _head(found: Sequence[ProposedColumn], settings: dict[str, str], missing: Sequence[str]) -> Iterator[str]:
    time = _time_column(found)
    if time is None:
        yield "# No column could be a time. Name the one that is: # time: COLUMN"
        for day in (column.name for column in found if column.kind == "date"):
            yield f'# `{day}` is a day: its beginning is # time: {day}|datetime("%Y-%m-%d", "Europe/Berlin")'
    else:
        yield f"# time: {time.name}{'|' + time.time if time.time else ''}"
        if time.note:
            yield f"# Note, {time.note}."
        if time.gaps:
            yield "# Note, some rows have no value of it: --on-error skip leaves them out."
    if missing:
        settings["missing"] = ", ".join(missing)
    for key, value in settings.items():
        yield f"# {key}: {value}"
    yield "PREFIX sosa: <http://www.w3.org/ns/sosa/>"
    yield "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
    yield "PREFIX : <http://example.org/>"


def _time_column(found: Sequence[ProposedColumn]) -> ProposedColumn | None:
    times = [column for column in found if column.kind == "time"]
    times = [column for column in times if not column.interval] or times
    times = [column for column in times if not column.gaps] or times
    return next((column for column in times if _TIMELY.search(column.name)), times[0] if times else None)


def _body(found: Sequence[ProposedColumn]) -> Iterator[str]:
    time = _time_column(found)
    others = [column for column in found if column is not time and column.kind != "empty"]
    empty = [column.name for column in found if column.kind == "empty"]
    sensor = _sensor(others)
    measured = [c for c in others if c is not sensor and c.kind in _NUMBERS and not _NUMBERED.search(c.name)]
    names = {column.name for column in measured}
    said = [column for column in others if column is not sensor and column.name not in names]
    if empty:
        yield f"# Without a value in the sample: {', '.join(empty)}"
    if time is None or not measured:
        yield from _row(sensor, [*measured, *said])
        return
    if len(measured) > 1 and len(said) > (sensor is not None):
        own = next((column for column in others if _OWN_ID.match(column.name)), None)
        yield from _row(own, [column for column in others if column is not own])
        return
    for column in measured:
        yield "[] a sosa:Observation ;"
        if sensor is not None:
            yield f"   sosa:madeBySensor {_named(sensor)} ;"
        for other in said:
            yield f"   :{_slug(other.name)} {_value(other)} ;"
        yield f"   sosa:observedProperty :{_slug(column.name)} ;"
        yield f"   sosa:hasSimpleResult {_value(column)} ."


def _row(sensor: ProposedColumn | None, columns: Sequence[ProposedColumn]) -> Iterator[str]:
    subject = "[]" if sensor is None else _named(sensor)
    pairs, known = [] if columns else ["a :Row"], set[str]()
    for column in columns:
        slug = _slug(column.name)
        if slug in known and column.name.startswith("$."):
            slug = f"around_{slug}"  # what is around the rows may have names that they have
        known.add(slug)
        pairs.append(f":{slug} {_value(column)}")
    yield f"{subject} {pairs[0]}" + (" ;" if len(pairs) > 1 else " .")
    for number, pair in enumerate(pairs[1:], 2):
        yield f"   {pair}" + (" ;" if number < len(pairs) else " .")


def _named(column: ProposedColumn) -> str:
    """What a column names."""
    if column.iri:
        return f"<{{{column.name}|iri}}>"
    return f"<http://example.org/{_slug(column.name)}/{{{column.name}}}>"


def _sensor(columns: Sequence[ProposedColumn]) -> ProposedColumn | None:
    named = [c for c in columns if _SENSOR.search(c.name) and c.kind in ("text", "integer")]
    strong = [c for c in named if _STRONG.search(c.name)]
    texts = [c for c in named if c.kind == "text"]
    candidates = strong or texts or named
    return min(candidates, key=lambda c: c.distinct, default=None)


def _value(column: ProposedColumn) -> str:
    if column.kind == "time" and not column.interval:
        return f"{{{column.name}|{column.time}}}" if column.time else f"{{{column.name}}}^^xsd:dateTime"
    if column.kind in ("text", "time"):
        return f"{{{column.name}}}"
    filters = f"|{column.number}" if column.number else ""
    return f"{{{column.name}{filters}}}^^xsd:{column.kind}"


def _slug(name: str) -> str:
    """A name as a local name of Turtle."""
    pair = _PAIR.search(name)
    words = re.sub(r"[^A-Za-z0-9_]+", "_", name if pair is None else pair[1]).strip("_")
    return words if words and not words[0].isdigit() else f"c_{words}".rstrip("_")


_HEAD = 4 << 20
"""Bytes of a text file that are examined, at most."""

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
    whole = _whole_lines(path)
    by_name = splitext(plain_name(path))[1].lower() in TABLES
    if form == "jsonl" or (not by_name and whole.lstrip().startswith(b"{")):
        return _some(_of_lines(path, whole, most), path)
    if not by_name and whole.startswith(SENT):
        try:
            value_of(whole.split(b"\n", 1)[0].decode("utf-8", "replace"))
        except CellError as error:
            raise cell_error(error, path) from None
    return _some(_of_csv(whole, form == "tsv", most), path)


def _whole_lines(path: str) -> bytes:
    """The lines that a file begins with."""
    head = b""
    with open_document(path) as file:
        while len(head) < _HEAD and (part := read_some(file, _HEAD - len(head), path)):
            head += part
    return head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]


def _some(found: TableSample, path: str) -> TableSample:
    """A sample that has rows. Raises DataError D2403."""
    if not found.columns or not found.rows:
        raise DataError.of(
            "D2403", f"`{path}` has no rows", place=path, hint="a header line, and rows below it"
        )
    return found


def _of_columns(path: str, form: str, most: int) -> TableSample:
    from dotr.io.tables import rows as arrow_rows  # noqa: PLC0415  # start-up: Arrow takes 0.3 s

    schema, batches, _ = open_columns(path, path, form)
    columns, rows = arrow_rows.arrow_columns_of(schema), arrow_rows.rows
    return TableSample(columns, list(islice(rows(batches, columns, path), most)), {})


def _of_lines(path: str, head: bytes, most: int) -> TableSample:
    objects = []
    for line in islice(_json_lines(path, head), most):
        try:
            objects.append(object_of(line))
        except (CellError, UnicodeDecodeError):
            continue
    found = _of_objects(objects, {"format": "jsonl"})
    way, inside = _largest(objects) or ("", [])
    if not way or (found.columns and (_measures(found) or not _measures(_of_objects(inside[:most], {})))):
        return found
    # each line is an envelope, as exporters of OpenTelemetry and brokers write them
    return _inside(objects, {"format": "jsonl", "rows": way}, way, inside, most)


def _measures(found: TableSample) -> bool:
    """Whether a column has numbers, other than those that name or count."""
    columns = [
        describe(name, [row[number] for row in found.rows], _MISSING)
        for number, name in enumerate(found.columns)
    ]
    return any(column.kind in _NUMBERS and not _NUMBERED.search(column.name) for column in columns)


def _of_document(path: str, most: int) -> TableSample:
    """The rows of a document: the elements of it, or of the largest array of objects that is in it."""
    try:
        value = value_of(decode(read_bytes(path), path), "document")
    except CellError as error:
        found = _of_lines(path, _whole_lines(path), most)
        if len(found.rows) > 1:
            return found  # an object a line
        raise cell_error(error, path) from None
    settings: dict[str, str] = {}
    way = "$[*]"
    if isinstance(value, dict):
        way, inside = _largest([value]) or ("", [])
        if way:
            return _inside([value], {"rows": way}, way, inside, most)
        way, value = "", [value]
    objects = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    return _of_objects(objects[:most], settings, way or "$")


def _largest(values: Sequence[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]] | None:
    """The way to the largest array of objects in objects, and its elements; of equals, one with cells, and of
    these one with a time.
    """

    def size(found: tuple[str, list[dict[str, Any]]]) -> tuple[int, bool, bool]:
        columns = columns_of(found[1])
        return len(found[1]), bool(columns), any(map(_TIMELY.search, columns))

    return max(_lists(values, "$"), key=size, default=None)


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


def _inside(
    values: Sequence[dict[str, Any]],
    settings: dict[str, str],
    way: str,
    elements: Sequence[dict[str, Any]],
    most: int,
) -> TableSample:
    """The rows at a way into values, with cells of what they are in."""
    steps = steps_of(way)[1:]
    around = islice(_around(values, steps), most)
    columns = [*columns_of(elements[:most]), *columns_around(steps, around)]
    cells = JsonRows(columns, steps, "")
    rows = (row for value in values for row in cells.of(value) if not isinstance(row, CellError))
    return TableSample(columns, list(islice(rows, most)), settings, arrays_of(elements[:most]), way)


def _around(values: Sequence[dict[str, Any]], steps: Sequence[Step]) -> Iterator[tuple[Any, ...]]:
    """What the rows of values are in; nothing of values that have something else there."""
    for value in values:
        with suppress(CellError):
            yield from expanded(value, steps)


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
    cells = (row.cells for row in islice(_sample_all(source, head), most + 1))
    found = [row for row in cells if not isinstance(row, CellError) and row]
    if not found:
        return TableSample([], [], settings)
    columns = [(name or "").strip() for name in found[0]]
    rows: list[list[str | None]] = [list(row) for row in found[1:] if len(row) == len(columns)]
    return TableSample(columns, rows, settings)


def _sample_all(source: CsvRows, head: bytes) -> Iterator[TableRow]:
    yield from source.feed(head)
    yield from source.finish()


def _delimiter(header: str, usual: str) -> str:
    counts = {one: header.count(one) for one in _DELIMITERS}
    most = max(counts.values())
    return usual if counts[usual] == most else next(one for one in _DELIMITERS if counts[one] == most)
