"""`--engine spark`: the batch on Spark, here or on a cluster.

Place:   beside batch/local.py; the same functions over batches, run by the stages of frame_stages.py.
Method:  tasks over Parquet read row groups themselves, so that graphs never cross from JVM to Python: once
         for the times, once to extract. Everything else is read once by tasks over splits of files, held on
         disk, and scanned twice: for its times, and for its graphs. Workers write the output themselves and
         report one row per task, so neither facts nor events come to the driver.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.archive_slices import ArchiveSlice, sliced
from dotr.batch.archive_times import KnownTimes, known_times, share_times
from dotr.batch.fact_rows import INSTANTS, Layout, marks
from dotr.batch.findings_as_json import first_of_each
from dotr.batch.job import Shipped, make_job, ship
from dotr.batch.local import LocalRunner
from dotr.batch.locations import is_remote
from dotr.batch.log_splits import ARCHIVE_RUNG, LogListing, absolute, packed, spread
from dotr.batch.runs import PARTS, OnProgress, Report, Request, add_counts, check_program, lay_out, run_again
from dotr.batch.skew import Weight, skewed
from dotr.batch.spark import failures, shipped_files
from dotr.batch.spark import frame_stages as frames
from dotr.batch.spark.archives import ExtractArchives, ReadGraphs, ReadSlices, ReadTimes
from dotr.batch.spark.enriched import write_states
from dotr.batch.spark.executor import SparkExecutor
from dotr.batch.spark.failures import shipped
from dotr.batch.spark.placing import FACT_COLUMNS, by_part, one_task_each, parallelism, task_rows
from dotr.batch.spark.read_tasks import ReadSplits
from dotr.batch.spark.remote_logs import read_remote, union
from dotr.batch.spark.remote_output import write_remote
from dotr.batch.spark.sessions import SparkOptions
from dotr.batch.spark.sessions import start as start_session
from dotr.batch.spark.together import COLUMNS, Together
from dotr.batch.time_gaps import Cutoff, cutoff
from dotr.errors import DotrError, UnsupportedError
from dotr.events import Clock, Time
from dotr.io.decode.parquet import SUFFIX
from dotr.temporal.silences import ENDLESS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PLAIN_SPARK = SparkOptions()

MANY = 1024
"""The minimum of requested quantiles of times."""


class SparkRunner:
    """Owns the session that it starts, until `close`; uses an existing one."""

    name = "spark"

    def __init__(self, options: SparkOptions = PLAIN_SPARK) -> None:
        self._options = options
        self._session: SparkSession | None = None
        self._own = False
        self._seconds = 0.0

    def session(self) -> SparkSession:
        """The session; started on the first call. Raises EngineError D4301, D4302."""
        if self._session is None:
            from pyspark.sql import SparkSession  # noqa: PLC0415  # start-up

            start = monotonic()
            self._own = SparkSession.getActiveSession() is None
            self._session = start_session(self._options)
            self._seconds = monotonic() - start
        return self._session

    def close(self) -> None:
        """Stop the session if it is ours."""
        if self._session is not None and self._own:
            self._session.stop()
        self._session = None

    def run(self, request: Request, folder: str, on_progress: OnProgress) -> Report:
        """See `Runner.run`. `folder`: one that every worker can write to, or a URI that Spark knows."""
        return run_again(request, lambda request: self._once(request, folder, on_progress))

    def _once(self, request: Request, folder: str, on_progress: OnProgress) -> Report:
        report = Report()
        if request.log.clock is None:
            return report
        here = request.log.remote is None and not is_remote(folder)
        if not (request.program.lasting and here):
            check_program(request.program, request.log.clock)
        on_progress("start Spark", 0, 0, 0)
        spark = self.session()
        report.seconds["start"] = self._seconds
        try:
            found = replace(request, log=absolute(request.log))
            if request.program.lasting:
                return self._in_slices(found, os.path.abspath(folder), on_progress)
            _ClusterRun(
                found, report, spark, request.log.clock, folder, on_progress, self._options.parallelism
            ).run()
        except UnsupportedError as error:
            if not here or error.diagnostics[0].code != "D4160":
                raise
            return self._in_slices(
                found, os.path.abspath(folder), on_progress
            )  # its messages insert or delete
        except DotrError:
            raise
        except Exception as error:  # Py4J and gRPC raise anything
            if _interrupted(error):
                raise KeyboardInterrupt from None
            raise failures.as_own_error(error) from None
        return report

    def _in_slices(self, request: Request, folder: str, on_progress: OnProgress) -> Report:
        """What lasts: the rounds of batch/local.py as tasks of Spark; the driver maintains the statements
        before each slice. Workers share the folder, with its scratch files.
        """
        spark, asked = self.session(), self._options.parallelism
        tasks = parallelism(spark, asked)
        return LocalRunner(tasks, partial(SparkExecutor, spark)).run(request, folder, on_progress)


class _ClusterRun(Struct):
    """Owns one run's jobs."""

    request: Request
    report: Report
    spark: SparkSession
    clock: Clock
    folder: str
    on_progress: OnProgress
    parallelism: int | None = None
    weights: list[Weight] = field(default_factory=list)

    def run(self) -> None:
        """The whole run, and then the warnings about its partitioning."""
        layout = self._run()
        if layout is not None:
            self.report.findings += skewed(self.request.program, layout, self.weights)

    def _run(self) -> Layout | None:
        request, report = self.request, self.report
        unit = self.clock.unit if self.clock.integer else 1
        if self._only_archives():
            return self._archives(unit)
        log, kept = self._graphs()
        try:
            with self._stage("read"):
                self._notes(kept)
                look = frames.look(frames.counted(log), unit, self._pieces())
            report.graphs, report.instants = look.graphs, look.instants or 0
            report.first, report.last = look.first, look.last
            if look.first is None or look.last is None:
                return None
            cut = self._cutoff(log.select("time"), unit)
            job, layout = self._job(look, cut, log.select("time"), unit)
            instants = frames.instants(log, look.repeated)
            facts = frames.facts(instants, job, self.clock)
            first: Time | None = look.first
            if request.treatment.forgiving and any(
                group.ticks or group.holds for group in layout.plan.groups
            ):
                taken = instants if cut is None else instants.where(f"time < {cut.since // unit}")
                first = frames.first_accepted(taken, job, self.clock, look.first)
            rows = [] if first is None else marks(layout, first)
            report.ticking = None if first is None else (first, layout.last)
            with self._stage("detect"):
                self._write(by_part(facts, rows, layout, look.first, self._cores()), job)
            if request.states is not None:
                with self._stage("enrich"):
                    report.states = write_states(instants, job, self.clock, request.states)
            return layout
        finally:
            kept.unpersist()

    def _cutoff(self, times: DataFrame, unit: int) -> Cutoff | None:
        """The time from which the log, with times in `unit` µs, is refused."""
        ahead = self.request.deployment.ahead(self.request.max_jump)
        if ahead.stride >= ENDLESS:
            return None
        found = frames.gaps(times, unit, ahead.stride)
        return cutoff(ahead, found, self.clock, self.request.treatment.forgiving)

    def _job(
        self, look: frames.Look, cut: Cutoff | None, times: DataFrame, unit: int
    ) -> tuple[Shipped, Layout]:
        """The job for a log, whose times are scanned again if rules are cut at gaps."""
        assert look.last is not None
        request, last = self.request, look.last if cut is None else cut.last
        cores = self._cores()  # by now all executors have come
        quantiles = frames.thinned(look.quantiles, cores * PARTS)
        plan = request.plan()
        gaps = [] if plan.gap is None else frames.gaps_to_cut_at(times, unit, plan.gap, look)
        layout = lay_out(plan, cores, quantiles, last, request.slice_length, gaps)
        place = shipped_files.place(self.spark)
        return ship(make_job(request.deployment, self.clock, layout, request.treatment, cut, place)), layout

    def _only_archives(self) -> bool:
        """Whether tasks can read all of the log by row groups, and nothing of it can be refused."""
        log = self.request.log
        if self.request.states is not None:
            return False  # its instants are written, too
        here = (p.file.lower().endswith(SUFFIX) for s in log.splits for p in s.pieces)
        return log.fail and log.remote is None and all(here)

    def _write(self, tasks: DataFrame, job: Shipped, detect: frames.Detection = frames.of_facts) -> None:
        """Detect and write: tasks write files themselves if they can, else Spark does."""
        format_ = self.request.format_
        if not is_remote(self.folder):
            self._sum_up(frames.written(tasks, job, self.folder, format_, detect).collect())
            return
        from pyspark import StorageLevel  # noqa: PLC0415  # start-up

        found = frames.noted(tasks, job, format_, self.clock, detect).persist(StorageLevel.DISK_ONLY)
        try:
            self.report.files = write_remote(found, self.folder, format_)
            findings: list[tuple[Time, str]] = []
            for row in found.where("note IS NOT NULL").select("note").collect():
                note = json.loads(row.note)
                self.report.dropped += note["dropped"]
                self.report.parts += note["parts"]
                self.report.letters += note["letters"]
                self.report.instants -= note["refused"]
                findings += note["findings"]
                self.report.add_counted(note["counted"])
                self.weights += note["weights"]
                add_counts(self.report.events, note["counts"])
                add_counts(self.report.left_out, note["left_out"])
            self.report.findings = first_of_each(findings)
        finally:
            found.unpersist()

    def _sum_up(self, done: Sequence[Any]) -> None:
        """Add what the tasks wrote to the report."""
        report = self.report
        report.events = frames.counts_of(done)
        report.dropped = sum(row.dropped for row in done)
        report.parts = sum(row.parts for row in done)
        report.letters += [letter for row in done for letter in json.loads(row.letters)]
        report.instants -= sum(row.refused for row in done)
        report.findings = first_of_each(found for row in done for found in json.loads(row.findings))
        report.files = [row.file for row in done if row.file]
        for row in done:
            add_counts(report.left_out, json.loads(row.left_out))
            report.add_counted(row.counted)
            self.weights += json.loads(row.weights)

    def _archives(self, unit: int) -> Layout | None:
        """The run over Parquet files: tasks read row groups themselves."""
        request, report = self.request, self.report
        stated, hands = self._known(), self._cores()
        log = replace(request.log, splits=())  # tasks carry their own pieces
        found = None if stated is None else sliced(request, stated, hands)
        if found is not None:
            return self._slices(log, *found)
        splits = packed(request.log.splits, hands * PARTS)
        tasks = one_task_each(self.spark, splits)
        with self._stage("read"):
            times = tasks.mapInArrow(shipped(ReadTimes(log)), "time bigint, n bigint")
            known: frames.Look | None = None
            if stated is not None and not share_times(splits):
                quantiles = stated.quantiles(self._pieces())
                known = frames.Look(stated.graphs, None, 0, stated.first, stated.last, quantiles)
            look = frames.look(times, 1, self._pieces()) if known is None else known
            few = look.repeated <= frames.FEW
            again = frozenset(frames.repeated_times(times)) if look.repeated and few else frozenset()
        report.graphs, report.instants = look.graphs, look.instants or 0
        report.first, report.last = look.first, look.last
        report.rungs = {ARCHIVE_RUNG: look.graphs}
        if look.first is None or look.last is None:
            return None
        job, layout = self._job(look, None if known is not None else self._cutoff(times, 1), times, 1)
        clock = Clock(integer=True, unit=1)  # these tasks give times in microseconds
        if few:
            facts = tasks.mapInArrow(
                shipped(ExtractArchives(log, job, again, known is not None)), FACT_COLUMNS
            )
        if look.repeated:
            graphs = tasks.mapInArrow(shipped(ReadGraphs(log, again)), "time bigint, graph string")
            gathered = frames.facts(frames.gathered(graphs), job, clock, request.log.options.base)
            facts = facts.unionByName(gathered) if few else gathered
        report.ticking = look.first, layout.last
        with self._stage("detect"):
            self._write(by_part(facts, marks(layout, look.first), layout, look.first, self._cores()), job)
        report.instants += report.streams.pop(INSTANTS, 0)
        return layout

    def _known(self) -> KnownTimes | None:
        """The times by the footers, if no gap can be too wide."""
        request = self.request
        found = known_times(request.log.splits)
        if found is None or found.last - found.first > request.deployment.ahead(request.max_jump).stride:
            return None
        return found

    def _slices(self, log: LogListing, layout: Layout, slices: Sequence[ArchiveSlice]) -> Layout:
        """The run over slices that tasks read themselves."""
        request, report = self.request, self.report
        report.graphs, (report.first, report.last) = request.log.known, slices[0].span
        report.rungs = {ARCHIVE_RUNG: report.graphs}
        report.ticking = slices[0].span
        place = shipped_files.place(self.spark)
        job = make_job(request.deployment, self.clock, layout, request.treatment, place=place, whole=True)
        with self._stage("detect"):
            frame = task_rows(self.spark, [one.text() for one in slices])
            self._write(frame, ship(job), ReadSlices(log))
        report.instants = report.streams.pop(INSTANTS, 0)
        return layout

    def _cores(self) -> int:
        """Tasks that can run at once, as far as known now."""
        return parallelism(self.spark, self.parallelism)

    def _pieces(self) -> int:
        """Quantiles to request; a cluster's executors may come meanwhile."""
        return max(MANY, self._cores() * PARTS)

    def _graphs(self) -> tuple[DataFrame, DataFrame]:
        """(time in the log's unit, graphs), and its frame held on disk."""
        log = self.request.log
        from pyspark import StorageLevel  # noqa: PLC0415  # start-up

        made = read_remote(self.spark, log)
        if log.splits:
            tasks = one_task_each(self.spark, spread(log.splits, self._cores() * PARTS))
            read = Together(ReadSplits(replace(log, splits=())))
            made.append(tasks.mapInArrow(shipped(read), COLUMNS))
        kept = union(made).persist(StorageLevel.DISK_ONLY)
        return kept.where("time IS NOT NULL").select("time", "graphs"), kept

    def _notes(self, kept: DataFrame) -> None:
        """Dead letters and how times were found, from the rows with notes."""
        for row in kept.where("note IS NOT NULL").select("note").collect():
            note = json.loads(row.note)
            self.report.letters += note["letters"]
            for rung, count in note["rungs"].items():
                self.report.rungs[rung] = self.report.rungs.get(rung, 0) + count
            for what, count in note.get("beside", {}).items():
                self.report.beside[what] = self.report.beside.get(what, 0) + count

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        """Time a stage, and report its progress as far as Spark knows."""
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
            graphs = self.report.graphs or self.request.log.known
            self.on_progress(name, done, of, graphs * done // of if of else 0)


def _interrupted(error: BaseException | None) -> bool:
    """Whether an error came while Ctrl-C was handled, which breaks the connection to the JVM."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _tasks(spark: SparkSession) -> tuple[int, int]:
    """(finished, all) tasks of the running stages; (0, 0) if unknown (Connect)."""
    try:
        tracker: Any = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(s.numCompletedTasks for s in stages if s), sum(s.numTasks for s in stages if s)
    except Exception:  # progress is never a reason to fail
        return 0, 0
