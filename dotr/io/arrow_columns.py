"""Columns of Arrow batches from Python values.

Place:   whoever writes batches: parquet.py, and everything in spark/.
Method:  integers and UTF-8 are laid out here as Arrow's columnar format has them: values, offsets, a bit for
         each value that is there.
Why not: `pyarrow.array`. Its first call in a process loads pandas to see whether pandas made the values,
         which takes longer (0.9 s) than all else that a worker loads.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa


def integers(values: Sequence[int | None], kind: Any = None) -> Any:
    """A column of 64 bits: `kind` is int64 (the default) or a timestamp in microseconds."""
    there, bits = _there(values)
    if bits is not None:
        values = [value or 0 for value in values]
    content = pa.py_buffer(array("q", values))  # type: ignore[type-var]  # None is replaced above
    return pa.Array.from_buffers(kind or pa.int64(), len(values), [bits, content], null_count=there)


def texts(values: Sequence[str | None], kind: Any = None) -> Any:
    """A column of text: `kind` is string (the default) or large_string. Raises OverflowError when more than
    2 GiB go into a string column.
    """
    return _parts(values, [b"" if value is None else value.encode() for value in values], kind or pa.string())


def binaries(values: Sequence[bytes | None]) -> Any:
    """A column of bytes. Raises OverflowError for more than 2 GiB."""
    return _parts(values, [value or b"" for value in values], pa.binary())


def _parts(values: Sequence[object], parts: Sequence[bytes], kind: Any) -> Any:
    there, bits = _there(values)
    large = pa.types.is_large_string(kind)
    offsets = array("q" if large else "i", accumulate(map(len, parts), initial=0))
    buffers = [bits, pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(kind, len(parts), buffers, null_count=there)


def column(values: Sequence[Any], kind: Any) -> Any:
    """A column of any kind; of integers, timestamps, text and bytes as above."""
    if pa.types.is_int64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us"):
        return integers(values, kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return texts(values, kind)
    if pa.types.is_binary(kind):
        return binaries(values)
    return pa.array(values, kind)


def _there(values: Sequence[object]) -> tuple[int, Any]:
    """(values that are missing, a bit for each that is not; None where none is missing)."""
    missing = values.count(None)
    if not missing:
        return 0, None
    bits = bytearray((len(values) + 7) // 8)
    for place, value in enumerate(values):
        if value is not None:
            bits[place >> 3] |= 1 << (place & 7)
    return missing, pa.py_buffer(bytes(bits))
