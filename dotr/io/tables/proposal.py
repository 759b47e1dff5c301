"""A mapping proposed from a sample of a table: which column is the time, what is measured, by what.

Place:   `dotr map new` prints it; nobody is meant to use it unread.
Method:  a column is what all of its cells in the sample are. The time is the first column that could be one,
         by its name rather than its place. Measured numbers become observations of SOSA, made by what a
         column named after a sensor, device, station or the like names.
Why not: guess zones: a time without one is written without one, and dotr asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC
from functools import lru_cache
from typing import Final

from msgspec import Struct

from dotr.io.likely_times import likely_time, reads_as
from dotr.io.local_time import TimeError
from dotr.io.tables.cells import CellError, checked
from dotr.io.tables.date_formats import DateFormat
from dotr.rdf.terms import XSD

SAMPLE: Final = 1000
"""Rows that are looked at."""

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
_TIMELY = re.compile(r"time|date|stamp|seen|when|\bts\b|^ts|_ts|_at$|instant|observed", re.IGNORECASE)
_SENSOR = re.compile(
    r"(?i:sensor|device|station|meter|machine|node|thing|asset|vehicle|report_id)|_id$|^id$|Id$|ID$"
)
_STRONG = re.compile(r"sensor|device|station|meter|machine|report_id", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:^|_)id$|[a-z]I[dD]$|_ID$|^ID$|(?:^|_)(?:no|nr|index|row)$", re.IGNORECASE)
_MISSING: Final = (
    *("NA", "N/A", "n/a", "n.a.", "#N/A", "NaN", "nan", "null", "NULL", "None", "none"),
    *("-", "--", "---", "?", "missing"),
)
_COMMA = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)(?:,[0-9]+)?")
_FINE_COMMA = re.compile(r".*(?:\..*,|,(?![0-9]{3}\Z))")
"""Of which the comma is no thousands': a point stands before it, or other than three digits behind."""
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


def describe(
    name: str, cells: Sequence[str | None], missing: Sequence[str], zone: str = ""
) -> ProposedColumn:
    """What a column is, by its cells."""
    texts = [cell for cell in cells if cell is not None and cell != "" and cell not in missing]
    distinct = len(set(texts))
    if not texts:
        return ProposedColumn(name, "empty", 0)
    if (found := _time(name, texts, zone)) is not None:
        return ProposedColumn(name, "time", distinct, *found)
    if (found := _intervals(name, texts, zone)) is not None:
        return ProposedColumn(name, "time", distinct, *found, interval=True)
    kinds: tuple[str, ...] = ("integer", "decimal", "double", "boolean", "date")
    kind = next((kind for kind in kinds if _all(kind, texts)), "text")
    if kind == "text" and all(map(_COMMA.fullmatch, texts)) and any(map(_FINE_COMMA.match, texts)):
        thousands = 'replace(".", "")|' if any("." in text for text in texts) else ""
        return ProposedColumn(name, "decimal", distinct, number=f'{thousands}replace(",", ".")')
    return ProposedColumn(name, kind, distinct)


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
    note = "its times are intervals: --interval begin, or --interval end, says which end is the time"
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
        yield "# No column could be a time. Say which one is: # time: COLUMN"
        for day in (column.name for column in found if column.kind == "date"):
            yield f'# `{day}` is a day: its beginning is # time: {day}|datetime("%Y-%m-%d", "Europe/Berlin")'
    else:
        yield f"# time: {time.name}{'|' + time.time if time.time else ''}"
        if time.note:
            yield f"# Note, {time.note}."
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
    if len(measured) > 1 and said:
        yield f"# Beside what is measured: {', '.join(column.name for column in said)}"
        said = []
    for column in measured:
        yield "[] a sosa:Observation ;"
        if sensor is not None:
            yield f"   sosa:madeBySensor <http://example.org/{_slug(sensor.name)}/{{{sensor.name}}}> ;"
        for other in said:
            yield f"   :{_slug(other.name)} {_value(other)} ;"
        yield f"   sosa:observedProperty :{_slug(column.name)} ;"
        yield f"   sosa:hasSimpleResult {_value(column)} ."


def _row(sensor: ProposedColumn | None, columns: Sequence[ProposedColumn]) -> Iterator[str]:
    subject = "[]" if sensor is None else f"<http://example.org/{_slug(sensor.name)}/{{{sensor.name}}}>"
    pairs = [f":{_slug(column.name)} {_value(column)}" for column in columns] or ["a :Row"]
    yield f"{subject} {pairs[0]}" + (" ;" if len(pairs) > 1 else " .")
    for number, pair in enumerate(pairs[1:], 2):
        yield f"   {pair}" + (" ;" if number < len(pairs) else " .")


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
