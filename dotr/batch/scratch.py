"""Rows between the rounds of a local batch: Arrow streams in a scratch folder.

Place:   under local.py and local_lasting.py.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from dotr.io.arrow_columns import column

GRAPHS = pa.schema([("time", pa.int64()), ("graph", pa.large_string())])
"""A message by column."""

_CHUNK = 4_000_000


def load(scratch: str, prefix: str, schema: pa.Schema) -> pa.Table:
    """All rows of the files with a prefix."""
    tables = []
    for name in sorted(os.listdir(scratch)):
        if name.startswith(prefix):
            with pa.OSFile(os.path.join(scratch, name)) as file:
                tables.append(pa.ipc.open_stream(file).read_all())
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)


class Files:
    """Owns one Arrow stream for each number that got a row; closes them together."""

    def __init__(self, scratch: str, name: str, schema: pa.Schema) -> None:
        self._scratch, self._name, self._schema = scratch, name, schema
        self._rows: dict[int, list[tuple[Any, ...]]] = {}
        self._writers: dict[int, tuple[Any, Any]] = {}
        self._size = 0

    def add(self, number: int, row: tuple[Any, ...], size: int) -> None:
        self._rows.setdefault(number, []).append(row)
        self._size += size + 50
        if self._size >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        for number, rows in self._rows.items():
            if number not in self._writers:
                file = pa.OSFile(os.path.join(self._scratch, self._name.format(number)), "wb")
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self._writers[number] = file, pa.ipc.new_stream(file, self._schema, options=options)
            columns = [column(c, f.type) for c, f in zip(zip(*rows, strict=True), self._schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
            self._writers[number][1].write_batch(batch)
        self._rows, self._size = {}, 0

    def close(self) -> None:
        self._flush()
        for file, writer in self._writers.values():
            writer.close()
            file.close()
