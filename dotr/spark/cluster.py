"""`--engine spark`: the batch on Spark, here or on a cluster.

Place:   beside local.py; the same functions over batches, run by frames.py's stages.
Method:  tasks over Parquet read row groups themselves, so that graphs never cross from JVM to Python: once
         for the times, once to extract. Everything else is read once by tasks over splits of files, held on
         disk, and looked at twice: for its times, and for its graphs. Workers write the output themselves
         and report one row a task, so neither facts nor events ever come to the driver.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dotr.connectors.parquet import SUFFIX
from dotr.errors import DotrError
from dotr.events import Clock
from dotr.spark import frames
from dotr.spark.archives import ExtractArchives, ReadGraphs, ReadTimes
from dotr.spark.batch import PARTS, Report, Request, Tell, check_ticks, lay_out
from dotr.spark.facts import marks
from dotr.spark.job import make_job, ship
from dotr.spark.reading import Log, ReadCounts, Split, read_split, spread
from dotr.spark.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READ_COLUMNS = "time bigint, graph string, note string"
"""`note` is set in the last row of a task, which has no graph: dead letters and how times were found."""

_ROWS = 1024


class SparkRunner:
    """Runs on the session at `master`, or on the one that is there."""

    name = "spark"

    def __init__(self, master: str | None = None) -> None:
        self._master = master

    def run(self, request: Request, folder: str, tell: Tell) -> Report:
        """As `Runner.run`. `folder` must be one that every worker can write to."""
        report = Report()
        if request.log.clock is None:
            return report
        check_ticks(request.program, request.log.clock)
        from pyspark.sql import SparkSession  # noqa: PLC0415  # start-up

        own = SparkSession.getActiveSession() is None
        start = monotonic()
        tell("start Spark", 0, 0, 0)
        spark = session(self._master)
        report.seconds["start"] = monotonic() - start
        try:
            _Run(request, report, spark, request.log.clock, folder, tell).run()
        except DotrError:
            raise
        except Exception as error:  # Py4J and gRPC raise what they like
            raise frames.mended(error) from None
        finally:
            if own:
                spark.stop()
        return report


@dataclass(slots=True)
class _Run:
    """Owns one run's jobs."""

    request: Request
    report: Report
    spark: SparkSession
    clock: Clock
    folder: str
    tell: Tell

    def run(self) -> None:
        request, report = self.request, self.report
        cores = max(1, int(self.spark.conf.get("spark.sql.shuffle.partitions") or 8) // 8)
        unit = self.clock.unit if self.clock.integer else 1
        splits = self.request.log.splits
        if self.request.log.fail and all(p.file.endswith(SUFFIX) for s in splits for p in s.pieces):
            self._archives(cores, unit)
            return
        log, kept = self._graphs(cores)
        try:
            with self._stage("read"):
                self._notes(kept)
                look = frames.look(log, unit, cores * PARTS)
            report.graphs, report.instants = look.graphs, look.instants
            report.first, report.last = look.first, look.last
            if look.first is None or look.last is None:
                return
            layout = lay_out(request.plan(), cores, look.quantiles, look.last, request.slice_length)
            job = ship(make_job(request.program, request.background, self.clock, layout, request.treatment))
            facts = frames.facts(frames.instants(log, look.repeated), job, self.clock)
            rows = marks(layout, look.first)
            with self._stage("detect"):
                done = frames.written(facts, rows, job, self.folder, request.format_).collect()
        finally:
            kept.unpersist()
        self._sum_up(done)

    def _sum_up(self, done: Sequence[Any]) -> None:
        """Add what the tasks wrote to the report."""
        report = self.report
        report.events = frames.counts_of(done)
        report.dropped = sum(row.dropped for row in done)
        report.parts = sum(row.parts for row in done)
        report.files = sorted(row.file for row in done if row.file)

    def _archives(self, cores: int, unit: int) -> None:
        """The run over Parquet files: tasks read row groups themselves."""
        request, report, splits = self.request, self.report, self.request.log.splits
        tasks = self.spark.range(0, len(splits), 1, len(splits))
        with self._stage("read"):
            times = tasks.mapInArrow(ReadTimes(request.log), "time bigint")
            look = frames.look(times, 1, cores * PARTS)
            few = look.repeated <= frames.FEW
            again = frozenset(frames.repeated_times(times)) if look.repeated and few else frozenset()
        report.graphs, report.instants = look.graphs, look.instants
        report.first, report.last = look.first, look.last
        if look.first is None or look.last is None:
            return
        layout = lay_out(request.plan(), cores, look.quantiles, look.last, request.slice_length)
        job = ship(make_job(request.program, request.background, self.clock, layout, request.treatment))
        clock = Clock(integer=True, unit=1)  # these tasks give times in microseconds
        if few:
            facts = tasks.mapInArrow(ExtractArchives(request.log, job, again), frames.FACT_COLUMNS)
        if look.repeated:
            graphs = tasks.mapInArrow(ReadGraphs(request.log, again), "time bigint, graph string")
            gathered = frames.facts(frames.gathered(graphs), job, clock, request.log.options.base)
            facts = facts.unionByName(gathered) if few else gathered
        with self._stage("detect"):
            rows = marks(layout, look.first)
            self._sum_up(frames.written(facts, rows, job, self.folder, request.format_).collect())

    def _graphs(self, cores: int) -> tuple[DataFrame, DataFrame]:
        """(time in the log's unit, graph), and the frame that is held on disk for it."""
        log = self.request.log
        splits = spread(log.splits, cores * PARTS)
        read = _Read(replace(log, splits=splits), self.clock.unit if self.clock.integer else 1)
        from pyspark import StorageLevel  # noqa: PLC0415  # start-up

        kept = (
            self.spark.range(0, len(splits), 1, len(splits))
            .mapInArrow(read, READ_COLUMNS)
            .persist(StorageLevel.DISK_ONLY)
        )
        return kept.where("time IS NOT NULL").select("time", "graph"), kept

    def _notes(self, kept: DataFrame) -> None:
        """Dead letters and how times were found, from the rows that are no graphs."""
        for row in kept.where("note IS NOT NULL").select("note").collect():
            note = json.loads(row.note)
            self.report.letters += note["letters"]
            for rung, count in note["rungs"].items():
                self.report.rungs[rung] = self.report.rungs.get(rung, 0) + count

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        """Time a stage, and tell its progress as far as Spark lets on."""
        start, over = monotonic(), threading.Event()
        watch = threading.Thread(target=self._watch, args=(name, over), daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()
            self.report.seconds[name] = monotonic() - start

    def _watch(self, name: str, over: threading.Event) -> None:
        while not over.wait(0.5):
            done, of = _tasks(self.spark)
            self.tell(name, done, of, self.report.graphs * done // of if of else 0)


def _tasks(spark: SparkSession) -> tuple[int, int]:
    """(finished, all) tasks of the stages that run; (0, 0) where Spark does not tell (Connect)."""
    try:
        tracker: Any = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(s.numCompletedTasks for s in stages if s), sum(s.numTasks for s in stages if s)
    except Exception:  # progress is never a reason to fail
        return 0, 0


@dataclass(frozen=True, slots=True)
class _Read:
    """Reads the splits that a task's rows name."""

    log: Log
    unit: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return frames.told(lambda: self._rows(batches))

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._split(self.log.splits[number])

    def _split(self, split: Split) -> Iterator[pa.RecordBatch]:
        counts = ReadCounts()
        times: list[int] = []
        graphs: list[str] = []
        size = 0
        for time, graph in read_split(self.log, split, counts):
            times.append(time // self.unit)
            graphs.append(graph)
            size += len(graph)
            if len(times) >= _ROWS or size > 4_000_000:
                yield _batch(times, graphs, [None] * len(times))
                times, graphs, size = [], [], 0
        note = json.dumps({"letters": counts.letters, "rungs": counts.rungs})
        yield _batch([*times, None], [*graphs, None], [*([None] * len(times)), note])


def _batch(times: list[Any], graphs: list[Any], notes: list[Any]) -> pa.RecordBatch:
    columns = [pa.array(times, pa.int64()), pa.array(graphs, pa.string()), pa.array(notes, pa.string())]
    return pa.RecordBatch.from_arrays(columns, names=["time", "graph", "note"])
