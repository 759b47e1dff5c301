"""Columns are what pyarrow makes of the same values."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.io.decode.parquet import column

INTEGERS = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=20)
TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=20)


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us", tz="UTC")])
@given(values=INTEGERS)
def test_integers_and_timestamps_are_laid_out_as_arrow_does(kind: pa.DataType, values: list[int]) -> None:
    made = column(values, kind)
    made.validate(full=True)
    assert made.cast(pa.int64()).to_pylist() == values
    assert made.type == kind
    assert made.null_count == values.count(None)  # type: ignore[arg-type]  # None may be there


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@given(values=TEXTS)
def test_texts_are_laid_out_as_arrow_does(kind: pa.DataType, values: list[str]) -> None:
    made = column(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))
