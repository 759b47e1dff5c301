"""Columns of Arrow as cells: every type as its shortest exact text, structs by their fields."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dotr.errors import DataError
from dotr.io.tables.rows import BATCH, rows
from dotr.io.tables.rows import arrow_columns_of as columns_of

WHEN = datetime(2026, 1, 1, 8, 0, 0, 500_000)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (Decimal("1E+3"), pa.decimal128(10, 0), "1000"),
        (Decimal("1.50"), pa.decimal128(10, 2), "1.50"),
        (0.1, pa.float64(), "0.1"),
        (True, pa.bool_(), "true"),
        (2**63, pa.uint64(), "9223372036854775808"),
        (date(2026, 1, 2), pa.date32(), "2026-01-02"),
        (3_660_000, pa.date32(), "3660000 days from 1970-01-01"),
        (time(8, 30), pa.time64("us"), "08:30:00"),
        (1_001, pa.time64("ns"), "00:00:00.000001001"),
        (WHEN, pa.timestamp("ms"), "2026-01-01T08:00:00.5"),
        (WHEN.replace(tzinfo=UTC), pa.timestamp("us", tz="Europe/Berlin"), "2026-01-01T08:00:00.5Z"),
        (1, pa.timestamp("ns", tz="UTC"), "1970-01-01T00:00:00.000000001Z"),
        (-1, pa.timestamp("ms", tz="UTC"), "1969-12-31T23:59:59.999Z"),
        ("x", pa.dictionary(pa.int8(), pa.string()), "x"),
        (None, pa.null(), None),
    ],
)
def test_a_value_of_each_type(value: object, kind: Any, text: str | None) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([value, None], kind)], names=["a"])
    assert list(rows([batch], ["a"], "f")) == [[text], [None]]


def test_fields_of_structs_are_columns_also_where_the_struct_is_null() -> None:
    batch = pa.RecordBatch.from_pylist([{"a": {"b": {"c": 1}}, "d": "x"}, {"a": None, "d": "y"}])
    assert columns_of(batch.schema) == ["a.b.c", "d"]
    assert list(rows([batch], ["d", "a.b.c"], "f")) == [["x", "1"], ["y", None]]
    dotted = pa.RecordBatch.from_pylist([{"a.b": 1}])
    assert list(rows([dotted], columns_of(dotted.schema), "f")) == [["1"]]


def test_rows_come_without_columns_and_beyond_a_batch() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(range(BATCH + 1))], names=["a"])
    assert list(rows([batch], [], "f")) == [[]] * (BATCH + 1)
    assert list(rows([batch], ["a"], "f"))[-1] == [str(BATCH)]


def test_a_column_of_lists_is_refused_by_name() -> None:
    batch = pa.RecordBatch.from_pylist([{"a": [1]}])
    with pytest.raises(DataError, match="`a`") as raised:
        list(rows([batch], ["a"], "f"))
    assert raised.value.diagnostics[0].code == "D2408"
