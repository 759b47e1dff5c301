"""`spark.read.format("dotr")`: RDF logs as DataFrames, and DataFrames as RDF logs.

Place:   registered by `dotr.spark.register`; reads like the batch, by log_splits.py.
Method:  columns `time` (bigint in the log's unit, or timestamp) and `graph` (N-Triples). Splits are those of
         a batch. The writer takes the same columns, and `id` if graphs have names (events do); each task
         writes its own file, which is renamed when all are done.
Options: path (several: separated by newlines) · timeUnit s|ms|us · timePath ·
         subMicrosecond cut|refuse · interval refuse|begin|end · rdf12 refuse|plain · base ·
         onError fail|skip · maxDocument · for writing: as nquads|jsonl.
Why not: filter push-down: a graph's time is known only after parsing it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from dotr.batch.locations import is_remote, plain_path
from dotr.batch.log_splits import LogListing, ReadCounts, Split, absolute, open_log, read_split, spread
from dotr.batch.spark import failures
from dotr.errors import RefusedError, UsageError
from dotr.events import Clock
from dotr.io.arrow_columns import integers, texts
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE, Format
from dotr.io.decode.parquet import UNIT_NOTE, batch_times, missing
from dotr.io.decode.parse_choices import RDF12, ParseChoices
from dotr.io.decode.parsing import parse_triples
from dotr.io.files.outputs import unwritable
from dotr.io.files.sources import SourceOptions
from dotr.io.time_reading import FINER, INTERVAL, TimeReading
from dotr.io.timestamps import UNITS
from dotr.lang.grammar.base import nearest
from dotr.rdf.terms import PROV_GENERATED_AT_TIME

_ROWS = 2048
_TASKS = 64
_OPTIONS = (
    *("path", "timeUnit", "timePath", "subMicrosecond", "interval", "rdf12"),
    *("base", "onError", "maxDocument", "as"),
)
_SUFFIXES = {"nquads": "nq", "jsonl": "jsonl"}
_OURS = re.compile(r"part-[0-9a-f]{12}-\d{5,}\.(nq|jsonl)")


class LogSource(DataSource):
    """An RDF log as a Spark data source."""

    @classmethod
    def name(cls) -> str:
        return "dotr"

    @failures.crossed
    def schema(self) -> StructType:
        """Reads the first graph. Integer times carry their unit, like those of archives."""
        clock = self._log().clock or Clock()
        made = StructType()
        if clock.integer:
            unit = next(name for name, size in UNITS.items() if size == clock.unit)
            made = made.add("time", "long", True, {UNIT_NOTE: unit})
        else:
            made = made.add("time", "timestamp")
        return made.add("graph", "string")

    @failures.crossed
    def reader(self, schema: StructType) -> LogReader:
        return LogReader(absolute(self._log()))

    @failures.crossed
    def writer(self, schema: StructType, overwrite: bool) -> LogWriter:
        _refuse_unknown(self.options)
        path = self.options.get("path")
        if not path:
            raise UsageError.of("D4124", 'the data source "dotr" needs a path', hint="save(path)")
        form = self.options.get("as", "nquads")
        if form not in _SUFFIXES:
            raise _bad("as", form, _SUFFIXES)
        if "graph" not in schema.names or "time" not in schema.names:
            raise UsageError.of(
                "D4122",
                "a log has the columns `time` and `graph`",
                label=", ".join(schema.names),
                hint="rename them",
            )
        names = tuple(name for name in ("time", "graph", "id") if name in schema.names)
        places = tuple(schema.names.index(name) for name in names)
        integer = schema["time"].dataType.typeName() in ("long", "integer", "short", "byte")
        return LogWriter(path, form, places, Clock(integer, self._unit()), overwrite)

    def _unit(self) -> int:
        name = self.options.get("timeUnit", "s")
        if name not in UNITS:
            raise _bad("timeUnit", name, UNITS)
        return UNITS[name]

    def _choice(self, option: str, known: Sequence[str]) -> str:
        """One of some words, the first where the option is not given."""
        word = self.options.get(option, known[0])
        if word not in known:
            raise _bad(option, word, known)
        return word

    def _log(self) -> LogListing:
        _refuse_unknown(self.options)
        path = self.options.get("path")
        if not path:
            raise UsageError.of("D4124", 'the data source "dotr" needs a path', hint="load(path)")
        policy = self.options.get("onError", "fail")
        if policy not in ("fail", "skip"):
            raise _bad("onError", policy, ("fail", "skip"))
        time_path = self.options.get("timePath")
        options = SourceOptions(
            base=self.options.get("base", STREAM_BASE),
            time_path=f"<{time_path.strip('<>')}>" if time_path else None,
            unit=self._unit(),
            reading=TimeReading(
                finer=self._choice("subMicrosecond", FINER), interval=self._choice("interval", INTERVAL)
            ),
            choices=ParseChoices(self._choice("rdf12", RDF12)),
            max_document=int(self.options.get("maxDocument", MAX_DOCUMENT)),
        )
        places = [_here(place) for place in path.split("\n")]
        return open_log(places, options, policy == "fail")


def _here(place: str) -> str:
    """A place as a path. Raises UsageError D4127 if Python cannot open it."""
    if is_remote(place):
        raise UsageError.of(
            "D4127",
            f"`{place}` is not on this machine",
            hint="the data source opens files; `dotr batch --log` reads whatever Spark can, and so does "
            "spark.read.parquet for archives of `dotr convert`",
        )
    return plain_path(place)


def _refuse_unknown(options: Mapping[str, str]) -> None:
    """Raise UsageError D4125 for an unknown option: a misspelt one would have no effect."""
    known = {option.lower(): option for option in _OPTIONS}
    for option in options:
        if option.lower() not in known:
            hint = nearest(option, _OPTIONS) or f"the options are {', '.join(_OPTIONS)}"
            raise UsageError.of("D4125", f"there is no option `{option}`", hint=hint)


def _bad(option: str, found: str, known: Any) -> UsageError:
    return UsageError.of(
        "D4125", f"the option {option} cannot be `{found}`", hint=f"one of {', '.join(known)}"
    )


@dataclass
class LogPartition(InputPartition):
    """What one task reads."""

    split: Split


class LogReader(DataSourceReader):
    def __init__(self, log: LogListing) -> None:
        self._log = log

    @failures.crossed
    def partitions(self) -> Sequence[LogPartition]:
        if self._log.clock is None:
            return []
        return [LogPartition(split) for split in spread(self._log.splits, _TASKS)]

    def read(self, partition: LogPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]  # Spark passes our own partitions
        return failures.crossing_to_driver(lambda: self._batches(partition.split))

    def _batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        clock = self._log.clock or Clock()
        unit = clock.unit if clock.integer else 1
        kind = pa.int64() if clock.integer else pa.timestamp("us", tz="UTC")
        times: list[int] = []
        graphs: list[str] = []

        def batch() -> pa.RecordBatch:
            columns = [integers(times, kind), texts(graphs)]
            return pa.RecordBatch.from_arrays(columns, names=["time", "graph"])

        for time, graph in read_split(self._log, split, ReadCounts()):
            times.append(time // unit)
            graphs.append(graph)
            if len(times) >= _ROWS:
                yield batch()
                times, graphs = [], []
        yield batch()


@dataclass
class Wrote(WriterCommitMessage):
    """The files of one task, not renamed yet."""

    files: tuple[str, ...]


class LogWriter(DataSourceArrowWriter):
    """Writes RDF logs beside the existing files of a folder, or (`overwrite`) instead of them: the old ones
    are removed once all new ones are renamed.

    Raises RefusedError D5001 for a path that is not a folder, and if foreign files would be removed.
    """

    def __init__(
        self, path: str, form: str, places: tuple[int, ...], clock: Clock, overwrite: bool = False
    ) -> None:
        self._path = os.path.abspath(_here(path))
        self._form, self._places, self._clock = form, places, clock
        self._run = uuid4().hex[:12]
        if os.path.lexists(self._path) and not os.path.isdir(self._path):
            raise RefusedError.of("D5001", f"`{path}` is not a folder", place=path, hint="another name")
        self._old = _written_before(self._path) if overwrite else []

    @failures.crossed
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Wrote:
        """One file of a task; not created without rows."""
        name = f".{uuid4().hex}.part"
        path = os.path.join(self._path, name)
        file = None
        rows = 0
        try:
            for batch in iterator:
                if file is None:
                    os.makedirs(self._path, exist_ok=True)
                    file = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115  # closed below
                file.writelines(self._lines(batch, rows))
                rows += batch.num_rows
            if file is not None:
                file.flush()
                os.fsync(file.fileno())
                file.close()
        except OSError as error:
            raise unwritable(path, error) from None
        return Wrote((name,) if file is not None else ())

    def _lines(self, batch: pa.RecordBatch, first: int) -> Iterator[str]:
        columns = [batch.column(place) for place in self._places]
        times = batch_times(columns[0], self._clock)
        graphs = columns[1].to_pylist()
        ids = columns[2].to_pylist() if len(columns) > 2 else [None] * len(times)
        for row, (time, graph, id_) in enumerate(zip(times, graphs, ids, strict=True), first):
            if time is None or graph is None:
                raise missing("the frame to write", "time" if time is None else "graph")
            stamp = self._clock.text(time)
            if self._form == "jsonl":
                line = {"time": int(stamp) if self._clock.integer else stamp, "graph": graph}
                yield json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
                continue
            triples = parse_triples(graph, Format.NTRIPLES, f"the graph at {stamp}")
            name = f"<{id_ or _name(stamp, graph, row)}>"
            yield f"{name} {PROV_GENERATED_AT_TIME} {self._clock.term(time)} .\n"
            yield from (f"{s} {p} {o} {name} .\n" for s, p, o in triples)

    def commit(self, messages: list[Any]) -> None:
        """Give the files of all tasks their names."""
        number = 0
        for message in messages:
            for name in () if message is None else message.files:
                final = f"part-{self._run}-{number:05}.{_SUFFIXES[self._form]}"
                os.rename(os.path.join(self._path, name), os.path.join(self._path, final))
                number += 1
        for old in self._old:
            os.unlink(os.path.join(self._path, old))

    def abort(self, messages: list[Any]) -> None:
        for message in messages:
            for name in () if message is None else message.files:
                os.unlink(os.path.join(self._path, name))


def _written_before(folder: str) -> list[str]:
    """The files of a folder that an overwriting job replaces. Raises RefusedError D5001 for foreign ones."""
    found = [name for name in os.listdir(folder) if not name.startswith(".")] if os.path.isdir(folder) else []
    foreign = [name for name in found if not _OURS.fullmatch(name)]
    if foreign:
        raise RefusedError.of(
            "D5001",
            f"`{folder}` has files that dotr did not write",
            place=folder,
            label=", ".join(sorted(foreign)[:5]),
            hint="give another name, or mode append",
        )
    return found


def _name(stamp: str, graph: str, row: int) -> str:
    """A name for a graph without one. `row` distinguishes equal graphs of one file."""
    return f"urn:dotr:graph:{blake2b(f'{stamp} {graph}'.encode(), digest_size=15).hexdigest()}-{row}"
