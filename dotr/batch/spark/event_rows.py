"""Events of a stream as bytes that pass through an operator of Spark, and as rows afterwards.

Place:   the operators of a stream (distributed.py, ordered_frames.py) make the bytes, a map behind them the
         rows: typed columns or terms for users, lines of text for files.
Method:  an operator in Python answers with frames of pandas, which have neither structs nor times before
         1677. So it answers with bytes (Arrow's stream format, some thousand events each), and a map
         without a shuffle makes rows of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from msgspec import Struct

from dotr.batch.runs import batched
from dotr.batch.spark.frame_stages import event_columns, spark_schema
from dotr.batch.spark.session import Batches, crossing_to_driver, shipped
from dotr.events import Clock, Composite
from dotr.io.decode.parquet import integers, texts
from dotr.io.event_tables import EventBatches
from dotr.io.events import formatter
from dotr.io.typed_events import TRIGGER, TypedBatches, TypedColumns
from dotr.program import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Write: TypeAlias = Callable[[Sequence[Composite]], pa.RecordBatch]


class Terms(Struct, frozen=True):
    """Events with the schema "terms"."""

    clock: Clock

    def opened(self, _program: Program) -> Write:
        """Writes some events; for one task."""
        return EventBatches(self.clock).of

    def columns(self) -> StructType | str:
        """The schema of the rows."""
        return event_columns(self.clock)


class Typed(Struct, frozen=True):
    """Events with the columns of typed.py."""

    of: TypedColumns

    def opened(self, _program: Program) -> Write:
        """Writes some events; for one task."""
        return TypedBatches(self.of).of

    def columns(self) -> StructType | str:
        """The schema of the rows; it includes TRIGGER."""
        return spark_schema(self.of)


class Lines(Struct, frozen=True):
    """Events as text of a format: (time in µs, rule, id, line), the line with its end. `clock`: None if the
    stream's is not known yet; an operator then writes by its own.
    """

    clock: Clock | None
    format_: str

    def opened(self, program: Program) -> Write:
        """Writes some events; for one task."""
        clock = self.clock
        assert clock is not None
        head, write = formatter(self.format_, program.prefixes, program.rules)
        assert not head, "formats with a head cannot be concatenated"

        def lines(events: Sequence[Composite]) -> pa.RecordBatch:
            columns = [
                integers([event.time for event in events]),
                texts([event.rule for event in events]),
                texts([event.id for event in events]),
                texts([write([event], clock) for event in events]),
            ]
            return pa.RecordBatch.from_arrays(columns, names=["time", "rule", "id", "line"])

        return lines

    def columns(self) -> StructType | str:
        """The schema of the rows."""
        return "time bigint, rule string, id string, line string"


Form: TypeAlias = Terms | Typed | Lines


def packed_events(events: Iterable[Composite], write: Write) -> Iterator[tuple[int, bytes]]:
    """(number of events, these as bytes), some thousand at a time."""
    for some in batched(events):
        batch = write(some)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield batch.num_rows, sink.getvalue().to_pybytes()


def _unpacked(batches: Batches) -> Batches:
    for batch in batches:
        for content in batch.column(0).to_pylist():
            yield from pa.ipc.open_stream(content)


def unpacked_rows(batches: Batches) -> Batches:
    """Bytes of `packed_events` to rows."""
    return crossing_to_driver(lambda: _unpacked(batches))


def rows_of(found: DataFrame, form: Form) -> DataFrame:
    """The events of a frame with the column `found`."""
    packed: Any = found.where("found IS NOT NULL").select("found")
    rows: DataFrame = packed.mapInArrow(shipped(unpacked_rows), form.columns())
    return rows.drop(TRIGGER) if isinstance(form, Typed) else rows
