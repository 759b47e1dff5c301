"""The first stage of a distributed stream: arriving graphs to a bundle for every slot of instants.

Place:   distributed.py maps it over the source's frame; instant_processor.py takes the bundles.
Method:  a task sends its bundles (bundles.py) when they are large, and at its end. It also counts, so that
         the JVM does not touch single graphs. Every slot gets a row from every task that has graphs: it is
         called with each batch, and knows when to wake.
Bad input: D2018 a graph without a time or a text, if that ends the stream.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dotr.batch.bundles import GRAPHS, dealt, packed
from dotr.batch.spark.failures import Batches, Work, crossing_to_driver
from dotr.io.arrow_columns import column
from dotr.io.decode.parquet import missing

COLUMNS = "slot bigint, bundle binary, last bigint, graphs bigint, refused bigint"
"""`last`: the greatest time of the task's graphs, as the stream writes it. Of a task, one row alone counts
graphs.
"""

_SCHEMA = pa.schema(
    [("slot", pa.int64()), ("bundle", pa.binary())]
    + [(name, pa.int64()) for name in ("last", "graphs", "refused")]
)
_MUCH = 32_000_000
"""Approximate bytes of buffered graphs."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """(time, graph), optionally with a note as in read_tasks.py, to COLUMNS. `slots`: what Spark groups by.
    `read` makes such rows if the source has documents. `forgiving`: a row without a time or a graph is
    skipped and counted.
    """

    slots: Sequence[int]
    forgiving: bool
    read: Work | None = None

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._bundles(batches if self.read is None else self.read(batches)))

    def _bundles(self, batches: Batches) -> Batches:
        waiting: list[pa.RecordBatch] = []
        size = refused = 0
        for batch in batches:
            if batch.num_columns > 2:
                notes = batch.column(2).drop_null().to_pylist()
                refused += sum(len(json.loads(note)["letters"]) for note in notes)
                batch = batch.filter(batch.column(0).is_valid())  # a note is not a graph
            whole = self._whole(batch.select([0, 1]))
            refused += batch.num_rows - whole.num_rows
            waiting.append(whole.cast(GRAPHS))
            size += whole.nbytes
            if size > _MUCH:
                yield self._dealt(waiting, refused)
                waiting, size, refused = [], 0, 0
        if refused or any(batch.num_rows for batch in waiting):
            yield self._dealt(waiting, refused)

    def _whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows with both a time and a graph. Raises DataError D2018 if all must have both."""
        for number, name in enumerate(("time", "graph")):
            if batch.column(number).null_count:
                if not self.forgiving:
                    raise missing("the stream", name)
                batch = batch.filter(batch.column(number).is_valid())
        return batch

    def _dealt(self, batches: Sequence[pa.RecordBatch], refused: int) -> pa.RecordBatch:
        table = pa.Table.from_batches(batches, GRAPHS).combine_chunks()
        count = len(self.slots)
        rest = [0] * (count - 1)
        last = pc.max(table.column(0)).as_py()
        values: list[Sequence[Any]] = [
            self.slots,
            [packed(some) for some in dealt(table, count)],
            [last] * count,
            [table.num_rows, *rest],
            [refused, *rest],
        ]
        arrays = [column(found, field.type) for found, field in zip(values, _SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
