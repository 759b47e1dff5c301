"""Parquet and Arrow files as batches of columns.

Place:   files/table_reader.py and samples.py; pyarrow is loaded when a file is opened.
Method:  pyarrow takes what is in a file as it is: offsets beyond a buffer, indices of no value, bytes that
         are no UTF-8. So every batch is validated before anything is taken out of it, at more than a gigabyte
         a second; whatever pyarrow raises over a file is damage.
Bad input: D2017 not such a file · D2007 damaged behind its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dotr.errors import DataError
from dotr.io.decode.documents import unreadable


def open_columns(path: str, file: bytes | str, form: str) -> tuple[Any, Iterator[Any]]:
    """(schema, batches) of a Parquet or Arrow file. Raises DataError D2017; the batches raise D2007."""
    import pyarrow as pa  # noqa: PLC0415  # start-up: Arrow takes a third of a second
    import pyarrow.parquet as pq  # noqa: PLC0415

    from dotr.io.tables.arrow_rows import columns_of  # noqa: PLC0415  # start-up: see above

    damage = (pa.ArrowException, OSError, ValueError, SystemError, OverflowError, LookupError, RecursionError)
    try:
        file = pa.BufferReader(file) if isinstance(file, bytes) else file
        if form == "parquet":
            table = pq.ParquetFile(file, page_checksum_verification=True)
            schema, batches = table.schema_arrow, _by_group(table)
        else:
            schema, batches = _arrow(file)
        columns_of(schema)  # names that are no UTF-8, structs without end
    except FileNotFoundError as error:
        raise unreadable(path, error) from None
    except damage as error:
        raise DataError.of(
            "D2017",
            f"`{path}` cannot be read as {form.capitalize()}",
            place=path,
            label=_reason(error),
        ) from None
    return schema, _sound(path, batches, damage)


def _by_group(table: Any) -> Iterator[Any]:
    """The batches of a Parquet file, so that those of a row group stand before the next is looked at."""
    for group in range(table.num_row_groups):
        yield from table.iter_batches(row_groups=[group])


def _arrow(file: Any) -> tuple[Any, Iterator[Any]]:
    """(schema, batches) of an Arrow file, or of a stream in a file."""
    import pyarrow as pa  # noqa: PLC0415  # start-up: see above

    try:
        reader = pa.ipc.open_file(file)
        return reader.schema, (reader.get_batch(n) for n in range(reader.num_record_batches))
    except pa.ArrowInvalid:
        stream = pa.ipc.open_stream(file if not isinstance(file, str) else pa.memory_map(file))
        return stream.schema, iter(stream)


def _sound(path: str, batches: Iterable[Any], damage: tuple[type[Exception], ...]) -> Iterator[Any]:
    """Batches in which every value is one. Raises DataError D2007."""
    try:
        for batch in batches:
            batch.validate(full=True)
            yield batch
    except MemoryError:  # of Arrow's, which is an ArrowException, too
        raise
    except damage as error:
        raise DataError.of(
            "D2007",
            f"`{path}` is damaged",
            place=path,
            label=_reason(error),
            hint="copy or write it again; what was read before the damage stands",
        ) from None


def _reason(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]
