"""Parquet and Arrow files as batches of columns.

Place:   files/table_reader.py and samples.py; pyarrow is loaded when a file is opened.
Bad input: D2017 not such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dotr.errors import DataError


def open_columns(path: str, file: bytes | str, form: str) -> tuple[Any, Iterator[Any]]:
    """(schema, batches) of a Parquet or Arrow file. Raises DataError D2017."""
    import pyarrow as pa  # noqa: PLC0415  # start-up: Arrow takes a third of a second
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        file = pa.BufferReader(file) if isinstance(file, bytes) else file
        if form == "parquet":
            table = pq.ParquetFile(file)
            return table.schema_arrow, table.iter_batches()
        try:
            reader = pa.ipc.open_file(file)
            return reader.schema, (reader.get_batch(n) for n in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            stream = pa.ipc.open_stream(file if not isinstance(file, str) else pa.memory_map(file))
            return stream.schema, iter(stream)
    except (pa.ArrowException, OSError) as error:
        raise DataError.of(
            "D2017",
            f"`{path}` cannot be read as {form.capitalize()}",
            place=path,
            label=str(error).splitlines()[0][:200],
        ) from None
