"""`dotr.spark.graphs`: a frame of any columns becomes a log, one graph per row, through a mapping.

Place:   before detect, stream and write, which take its result.
Method:  the template is compiled once in every task and run over Arrow batches (mapInArrow), so rows never
         become Spark's Python objects, and no parser runs. The kind of time is decided here, by the type of
         the column and its filters, which are known before anything runs.
Bad input: D2401, D2402 the mapping, when called; D2404 and errors of times, when rows are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from dotr.batch.arrow_batches import graph_text
from dotr.batch.spark import failures
from dotr.batch.spark.failures import shipped
from dotr.errors import DataError, UsageError
from dotr.events import Clock, Time
from dotr.io.arrow_columns import integers, texts
from dotr.io.decode.documents import STREAM_BASE
from dotr.io.error_policy import dead_letter
from dotr.io.tables.arrow_rows import rows
from dotr.io.tables.cells import CellError, instants_of
from dotr.io.tables.compiled_mapping import CompiledMapping, Row, cell_error, cells_used, compile_mapping
from dotr.io.tables.graph_template import parse_cell
from dotr.io.tables.mapping import TableMapping, parse_mapping, read_mapping
from dotr.io.time_reading import EXACT, TimeReading, time_reading
from dotr.io.timestamps import UNITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]

_ROWS = 512
_PLACE = "<frame>"


def graphs(
    frame: DataFrame,
    *,
    template: str | None = None,
    mapping: str | PathLike[str] | None = None,
    time: str | None = None,
    time_unit: str | None = None,
    time_zone: str = "",
    sub_microsecond: str = "cut",
    ambiguous_time: str = "refuse",
    nonexistent_time: str = "refuse",
    interval: str = "refuse",
    base: str | None = None,
    on_error: str = "fail",
) -> tuple[DataFrame, DataFrame]:
    """(the log, its dead letters): (time: bigint or timestamp, graph) and (letter). See `dotr.spark.graphs`.

    Raises DataError D2401, D2402, UsageError D4123.
    """
    failures.install()
    if on_error not in ("fail", "skip"):
        raise UsageError.of("D4123", f"on_error cannot be `{on_error}`", hint="fail, skip or keep")
    if time_unit is not None and time_unit not in UNITS:
        hint = f"one of {', '.join(UNITS)}"
        raise UsageError.of("D4123", f"`{time_unit}` is not a unit of time", hint=hint)
    read = _mapping(template, mapping, base or STREAM_BASE, time)
    assert read.time is not None
    reading = time_reading(sub_microsecond, ambiguous_time, nonexistent_time, interval)
    if read.reading(reading).ambiguous == "infer":
        hint = "rows of a frame have no order; ambiguous_time can be earlier, later or refuse"
        raise UsageError.of("D4187", "`infer` is not a value of ambiguous_time on Spark", hint=hint)
    columns = _columns(frame)
    clock = _clock(frame, read, time_unit or "s", time_zone)
    compile_mapping(read, columns, clock.unit, time_zone, _PLACE, reading)  # reports its errors now
    used = list(cells_used(read))
    work = ReadTable(read, tuple(used), clock, time_zone, on_error == "fail", reading)
    narrow = frame.select(*dict.fromkeys(_quoted(frame, name) for name in used))
    kind = "bigint" if clock.integer else "timestamp"
    made = narrow.mapInArrow(shipped(work), f"time {kind}, graph string, letter string")
    if on_error == "fail":
        return made.select("time", "graph"), made.select("letter").where("false")
    return made.where("letter IS NULL").select("time", "graph"), made.where("letter IS NOT NULL").select(
        "letter"
    )


def _mapping(
    template: str | None, mapping: str | PathLike[str] | None, base: str, time: str | None
) -> TableMapping:
    if (template is None) == (mapping is None):
        hint = 'template="[] :celsius {temp} .", or mapping="readings.map"'
        raise UsageError.of("D4123", "rows are mapped by either a template or a file", hint=hint)
    if template is not None:
        read = parse_mapping(template, "<template>", base)
    else:
        assert mapping is not None
        read = read_mapping(fspath(mapping), base)
    if time is not None:
        read = replace(read, time=parse_cell(time, "<time>"))
    if read.time is None:
        hint = 'time="ts", or # time: ts in the mapping'
        raise UsageError.of("D4123", "no column is named as the time", hint=hint)
    return read


def _columns(frame: DataFrame) -> list[str]:
    """Names of the columns, with fields of structs as `a.b`."""

    def below(fields: Sequence[Any], prefix: str) -> Iterator[str]:
        for field in fields:
            inner = getattr(field.dataType, "fields", None)
            if inner is None:
                yield f"{prefix}{field.name}"
            else:
                yield from below(inner, f"{prefix}{field.name}.")

    return list(below(frame.schema.fields, ""))


def _quoted(frame: DataFrame, name: str) -> str:
    """The column of the frame with a (dotted) name."""
    own = name if name in frame.columns else name.split(".", 1)[0]
    return f"`{own.replace('`', '``')}`"


def _clock(frame: DataFrame, mapping: TableMapping, unit: str, zone: str) -> Clock:
    assert mapping.time is not None
    kind = next((f.dataType.typeName() for f in frame.schema.fields if f.name == mapping.time.column), "")
    whole = kind in ("byte", "short", "integer", "long")
    integer = whole and instants_of(mapping.time, zone, mapping.name) is None
    return Clock(integer=integer, unit=UNITS[unit])


class ReadTable(Struct, frozen=True):
    """Rows of `columns` to (time, graph, letter); letters unless `fail` is set."""

    mapping: TableMapping
    columns: tuple[str, ...]
    clock: Clock
    zone: str
    fail: bool
    reading: TimeReading = EXACT

    def __call__(self, batches: Batches) -> Batches:
        return failures.crossing_to_driver(lambda: self._read(batches))

    def _read(self, batches: Batches) -> Batches:
        settings = self.clock.unit, self.zone, _PLACE, self.reading
        compiled = compile_mapping(self.mapping, self.columns, *settings)
        found = rows(batches, self.columns, _PLACE)
        while some := list(islice(found, _ROWS)):
            yield self._made(some, compiled)

    def _made(self, some: list[list[str | None]], compiled: CompiledMapping) -> pa.RecordBatch:
        unit = self.clock.unit if self.clock.integer else 1
        times: list[int | None] = []
        graphs_: list[str | None] = []
        letters: list[str | None] = []
        instants = compiled.instants([row[compiled.time_at] for row in some])
        for row, part, instant in zip(some, compiled.parts(some), instants, strict=True):
            try:
                if isinstance(part, CellError):
                    raise part
                times.append(self._time(instant) // unit)
                graphs_.append(graph_text(part))
                letters.append(None)
            except CellError as error:
                letters.append(self._refused(error, row))
                times.append(None)
                graphs_.append(None)
        kind = None if self.clock.integer else pa.timestamp("us", tz="UTC")
        arrays = [integers(times, kind), texts(graphs_), texts(letters)]
        return pa.RecordBatch.from_arrays(arrays, names=["time", "graph", "letter"])

    def _time(self, instant: tuple[Time, bool] | CellError) -> Time:
        if isinstance(instant, CellError):
            raise instant
        time, integer = instant
        if integer is not self.clock.integer:
            hint = "cast the column: integers to bigint; or read them: time='ts|epoch(s)'"
            kind = "an integer" if integer else "a dateTime"
            raise CellError(f"the time of this row is {kind}, that of others is not", hint, "D2102")
        return time

    def _refused(self, error: CellError, row: Row) -> str:
        content = json.dumps(dict(zip(self.columns, row, strict=True)), ensure_ascii=False)
        refused: DataError = cell_error(error, _PLACE, content)
        if self.fail:
            raise refused
        return dead_letter(refused, content.encode())
