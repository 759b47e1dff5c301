"""Damaged tables of columns: every damage is D2017 or D2007 in its place, and rows before it stand."""

from __future__ import annotations

import io
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dotr.errors import DataError
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import SourceOptions
from dotr.io.sources import Sources
from dotr.io.tables.mapping import parse_mapping

ROWS = 300
MAPPING = parse_mapping("# time: t\n[] <urn:s> {s} ; <urn:v> {v} ; <urn:x> {st.x} ; <urn:b> {b} .\n", "m.map")


VALUES = ("D2101", "D2102", "D2103", "D2105", "D2404", "D2406", "D2408")
"""What a damaged value or type may be instead."""


def table() -> pa.Table:
    return pa.table(
        {
            "t": pa.array([datetime(2026, 1, 1, 0, n // 60, n % 60, tzinfo=UTC) for n in range(ROWS)]),
            "s": pa.array([f"sé{n % 5}" for n in range(ROWS)]).dictionary_encode(),
            "v": pa.array([n / 3 for n in range(ROWS)]),
            "st": pa.array([{"x": str(n)} for n in range(ROWS)]),
            "b": pa.array([n % 2 == 0 for n in range(ROWS)]),
        }
    )


def parquet(compression: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(), sink, compression=compression, row_group_size=100, write_page_checksum=False)
    return sink.getvalue()


def arrow(compression: str | None, stream: bool = False) -> bytes:
    sink = io.BytesIO()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with make(sink, table().schema, options=options) as writer:
        writer.write_table(table(), max_chunksize=100)
    return sink.getvalue()


FILES: dict[str, Any] = {
    "1.parquet": lambda: parquet("snappy"),
    "2.parquet": lambda: parquet("zstd"),
    "3.parquet": lambda: parquet("none"),
    "1.arrow": lambda: arrow(None),
    "2.arrow": lambda: arrow("lz4"),
    "3.arrow": lambda: arrow(None, stream=True),
}


def damaged(content: bytes, noise: random.Random) -> bytes:
    """Some bits flipped, bytes replaced, or a piece cut out; mostly in the second half."""
    found = bytearray(content)
    at = noise.randrange(len(found) // 4, len(found))
    size = noise.choice([1, 1, 4, 30])
    how = noise.randrange(3)
    if how == 0:
        found[at] ^= 1 << noise.randrange(8)
    elif how == 1:
        found[at : at + size] = noise.randbytes(size)
    else:
        del found[at : at + size]
    return bytes(found)


@pytest.mark.parametrize("name", FILES)
def test_every_damage_is_a_diagnostic_that_on_error_takes(tmp_path: Path, name: str) -> None:
    content = FILES[name]()
    codes: set[str] = set()
    for number in range(60):
        (tmp_path / name).write_bytes(damaged(content, random.Random(f"{name} {number}")))
        letters: list[str] = []
        policy = ErrorPolicy(fail=False, sink=letters.append)
        options = SourceOptions(mappings=(MAPPING,))
        graphs = list(Sources([str(tmp_path / name)], options, policy))
        assert len(graphs) <= ROWS
        codes |= {json.loads(letter)["code"] for letter in letters}
    assert codes & {"D2007", "D2017"}
    assert codes <= {"D2007", "D2017", "D2022", "D2402", *VALUES}


def test_rows_before_the_damage_stand(tmp_path: Path) -> None:
    content = bytearray(parquet("none"))
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata
    column = metadata.row_group(2).column(2)
    start = column.data_page_offset
    content[start : start + 8] = b"\xff" * 8
    (tmp_path / "1.parquet").write_bytes(content)
    found: list[object] = []
    policy = ErrorPolicy(fail=False, sink=found.append)
    graphs = list(Sources([str(tmp_path / "1.parquet")], SourceOptions(mappings=(MAPPING,)), policy))
    assert 0 < len(graphs) < ROWS
    assert len(found) == 1
    with pytest.raises(DataError, match="is damaged") as raised:
        list(
            Sources([str(tmp_path / "1.parquet")], SourceOptions(mappings=(MAPPING,)), ErrorPolicy(fail=True))
        )
    assert raised.value.diagnostics[0].code == "D2007"


def test_bytes_that_are_no_utf8_are_damage_and_no_text(tmp_path: Path) -> None:
    text = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))
    batch = pa.RecordBatch.from_arrays([pa.array(["2026-01-01T00:00:00Z"]), text], names=["t", "s"])
    with pa.OSFile(str(tmp_path / "1.arrow"), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    options = SourceOptions(mappings=(parse_mapping("# time: t\n[] <urn:s> {s} .", "m.map"),))
    with pytest.raises(DataError, match="D2007"):
        list(Sources([str(tmp_path / "1.arrow")], options, ErrorPolicy(fail=True)))
