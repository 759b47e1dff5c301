"""Rows of Arrow batches: columns of any type as texts.

Place:   Parquet and Arrow files of table_reader.py, frames of Python and Spark.
Method:  a column becomes a list of texts at once. Timestamps with a zone are written in UTC, those without
         one as they stand; decimals, floats and integers as their shortest exact text.
Bad input: D2402 a column that is not there · D2408 a column of lists, maps or bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dotr.errors import DataError
from dotr.events import Clock

BATCH = 4096
"""Rows that are made together."""


def columns_of(schema: pa.Schema, prefix: str = "") -> list[str]:
    """Names of the columns, fields of structs as `a.b`."""
    found: list[str] = []
    for field in schema:
        if pa.types.is_struct(field.type):
            found += columns_of(pa.schema(list(field.type)), f"{prefix}{field.name}.")
        else:
            found.append(f"{prefix}{field.name}")
    return found


def rows(batches: Iterable[pa.RecordBatch], columns: Sequence[str], place: str) -> Iterator[list[str | None]]:
    """The rows of batches, of each the cells of some columns. Raises DataError D2408."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH):
            part = batch.slice(start, BATCH)
            texts = [_texts(_column(part, name), name, place) for name in columns]
            if not texts:
                yield from ([] for _ in range(part.num_rows))
            yield from map(list, zip(*texts, strict=True))


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
        hint="a cell is one value: text, number, time or truth value",
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
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


def _timestamps(array: Any, kind: Any) -> list[str | None]:
    """ISO texts, to the nanosecond where there are any."""
    clock, unit = Clock(integer=False), _PER_SECOND[kind.unit]
    tail = "Z" if kind.tz is not None else ""

    def text(value: int | None) -> str | None:
        if value is None:
            return None
        seconds, rest = divmod(value, unit)
        fraction = f".{rest * (1_000_000_000 // unit):09d}".rstrip("0") if rest else ""
        return f"{clock.text(seconds * 1_000_000)[:-1]}{fraction}{tail}"

    return [text(value) for value in array.cast(pa.int64()).to_pylist()]
