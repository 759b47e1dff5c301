"""Data frames and Arrow tables of this process as a source of graphs, through a mapping.

Place:   `Engine.feed(frame, mapping=…)`.
Bad input: D4153 neither a path nor a frame · what tables say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dotr.errors import UsageError
from dotr.events import Clock
from dotr.io.error_policy import ErrorPolicy, graphs_alone
from dotr.io.files.repeated_hours import decided
from dotr.io.files.table_reader import TableReader
from dotr.io.graphs import START, SourceOptions, TimedGraph
from dotr.io.tables.mapping import TableMapping
from dotr.io.timestamps import TimestampExtractor


@dataclass(slots=True)
class FrameSource:
    """Owns the reading of frames, one after the other: iterate once over it. Raises DataError, UsageError."""

    frames: Sequence[Any]
    mapping: TableMapping
    options: SourceOptions
    refusals: ErrorPolicy = field(default_factory=ErrorPolicy)
    extractor: TimestampExtractor = field(init=False)
    paths: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.extractor = self.options.extractor()

    @property
    def clock(self) -> Clock | None:
        return self.extractor.clock

    def __iter__(self) -> Iterator[TimedGraph]:
        for number, frame in enumerate(self.frames, 1):
            name = f"<frame {number}>" if len(self.frames) > 1 else "<frame>"
            reader = TableReader(name, self.mapping, self.options, self.extractor, self.refusals, START)
            schema, batches = _batches(frame)
            items = decided(reader.batches(schema, batches), START, {}, growing=False)
            yield from graphs_alone(items, self.refusals)  # type: ignore[arg-type]  # there are no runs


def _batches(frame: Any) -> tuple[Any, Sequence[Any]]:
    """(schema, batches) of a table of Arrow, a frame of pandas, or what has Arrow's C stream interface."""
    import pyarrow as pa  # noqa: PLC0415  # start-up: Arrow takes a third of a second

    if isinstance(frame, pa.RecordBatch):
        return frame.schema, [frame]
    if isinstance(frame, pa.Table):
        return frame.schema, frame.to_batches()
    if type(frame).__module__.startswith("pandas."):
        return _batches(pa.Table.from_pandas(frame, preserve_index=False))
    if hasattr(frame, "__arrow_c_stream__"):
        return _batches(pa.table(frame))
    hint = "give a path, a pandas frame or an Arrow table"
    raise UsageError.of("D4153", f"{type(frame).__name__} is not a table", hint=hint)
