"""`--engine spark`: the batch on Spark, on this machine or on a cluster.

Place:   beside batch/local.py; the same functions over batches, run by the stages of frame_stages.py.
Method:  tasks over Parquet read row groups themselves, so that graphs never cross from JVM to Python: once
         for the times, once to extract. All other input is read once by tasks over splits of files, held on
         disk, and scanned twice: for its times, and for its graphs. Workers write the output themselves and
         report one row per task, so neither facts nor events come to the driver.
         `--emit-state` adds a separate job over the same instants: each task enriches its instants, writes
         what holds at them to its own file, and reports the file's name, so that files of failed attempts are
         not used.
         Output to a place that only Spark can reach is complete or absent, too: Spark writes to a subfolder
         of `DIR.part`, whose committer names only the files of finished tasks. Then each is moved to `DIR`,
         which is marked as unfinished until the run file, a manifest, names them all. A file is renamed once,
         which object stores do by copying; the folder never is.
Why not: enriched graphs as rows beside those of facts, which are shuffled: they are larger than the log.
         Output written to `DIR` directly: readers could not recognise a run that failed half-way.
Bad input: D4306 a session without its own JVM (Spark Connect), which could not rename the files.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from dotr.batch.archives import ArchiveSlice, KnownTimes, known_times, share_times, sliced
from dotr.batch.facts import INSTANTS, Layout, marks
from dotr.batch.local import LocalRunner
from dotr.batch.log import ARCHIVE_TIME, LogListing, absolute, is_archive, is_remote, packed, spread
from dotr.batch.runs import (
    PARTS,
    RUN_FILE,
    UNFINISHED,
    OnProgress,
    Report,
    Request,
    add_counts,
    check_program,
    lay_out,
    part_name,
    run_again,
)
from dotr.batch.spark import frame_stages as frames
from dotr.batch.spark import session as failures
from dotr.batch.spark import session as shipped_files
from dotr.batch.spark.frame_stages import (
    FACT_COLUMNS,
    by_part,
    one_task_each,
    parallelism,
    task_rows,
    trusted_instants,
)
from dotr.batch.spark.read import (
    COLUMNS,
    ExtractArchives,
    ReadGraphs,
    ReadSlices,
    ReadSplits,
    ReadTimes,
    Together,
    read_remote,
    union,
)
from dotr.batch.spark.session import (
    Batches,
    SparkExecutor,
    SparkOptions,
    crossing_to_driver,
    described,
    shipped,
)
from dotr.batch.spark.session import start as start_session
from dotr.batch.time_cuts import Cutoff, cutoff
from dotr.batch.work import Shipped, Weight, extract, first_of_each, make_job, ship, skewed
from dotr.detect.analysis import ENDLESS
from dotr.errors import DotrError, EngineError, RefusedError, UnsupportedError
from dotr.events import Clock, Time
from dotr.io.decode.parquet import texts
from dotr.io.events import ENDINGS, EVENT_FORMATS
from dotr.io.outputs import unwritable
from dotr.io.sinks import StatePart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_states(instants: DataFrame, job: Shipped, clock: Clock, folder: str) -> list[str]:
    """Write what holds at every instant to files in `folder`, shared by all workers; returns their names."""
    unit = clock.unit if clock.integer else 1
    found = instants.mapInArrow(shipped(_WriteStates(job, unit, folder)), "file string").collect()
    return sorted(row.file for row in found if row.file)


@dataclass(frozen=True, slots=True)
class _WriteStates:
    shipped: Shipped
    unit: int
    folder: str

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._written(batches))

    def _written(self, batches: Batches) -> Batches:
        worker = self.shipped.worker()
        part = StatePart(self.folder, worker.job.clock)
        worker.extracting.report_states(part.write)
        try:
            for _ in extract(worker, trusted_instants(batches, self.unit)):
                pass  # facts and letters come from the job beside this one
        finally:
            worker.extracting.report_states(None)
        yield pa.RecordBatch.from_arrays([texts([part.close()])], names=["file"])


_RAW = "spark"
"""The folder inside the unfinished one that Spark writes to."""

T = TypeVar("T")


def write_remote(found: DataFrame, folder: str, format_: str) -> list[str]:
    """Write the events of `frame_stages.noted` through Spark; returns the names of the files, in order."""
    rows = found.where("note IS NULL").drop("note")
    path = f"{folder}/{_RAW}"
    if EVENT_FORMATS[format_].columns:
        rows.write.option("compression", "zstd").parquet(path)
    else:
        rows.write.option("lineSep", "\n").text(path)
    store = RemoteStore(found.sparkSession, path)
    return [f"{_RAW}/{name}" for name, size in store.files(path) if size and name.startswith("part-")]


class RemoteStore:
    """The file system of a URI, as Spark's JVM knows it. Raises EngineError D4201, D4306."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        try:
            context: Any = spark.sparkContext
            self._jvm = context._jvm
            settings = context._jsc.hadoopConfiguration()
        except Exception:  # Connect raises several of its own kinds
            raise EngineError.of(
                "D4306",
                "over Spark Connect `dotr batch` cannot name files in a remote folder",
                place=uri,
                hint="write to a folder that all workers share, or use dotr.spark.detect(…).write",
            ) from None
        self._fs = self._asked(uri, lambda: self._path(uri).getFileSystem(settings))

    def _path(self, uri: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(uri)

    def _asked(self, uri: str, question: Callable[[], T]) -> T:
        try:
            return question()
        except Exception as error:  # Py4J passes on what the store raised
            text = str(error)
            cause = next((line.strip(": ") for line in text.splitlines() if "Exception:" in line), text)
            raise unwritable(uri, OSError(cause[:300])) from None

    def files(self, uri: str) -> list[tuple[str, int]]:
        """(name, bytes) of a folder's content, by name."""
        found = self._asked(uri, lambda: list(self._fs.listStatus(self._path(uri))))
        return sorted((status.getPath().getName(), status.getLen()) for status in found)

    def exists(self, uri: str) -> bool:
        return bool(self._asked(uri, lambda: self._fs.exists(self._path(uri))))

    def is_folder(self, uri: str) -> bool:
        return bool(self._asked(uri, lambda: self._fs.getFileStatus(self._path(uri)).isDirectory()))

    def make(self, uri: str) -> None:
        self._must(uri, lambda: self._fs.mkdirs(self._path(uri)))

    def rename(self, old: str, new: str) -> None:
        self._must(new, lambda: self._fs.rename(self._path(old), self._path(new)))

    def remove(self, uri: str) -> None:
        self._must(uri, lambda: self._fs.delete(self._path(uri), True))

    def write(self, uri: str, text: str) -> None:
        """A small file, complete or absent."""

        def put() -> None:
            stream = self._fs.create(self._path(uri), True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()

        self._asked(uri, put)

    def _must(self, uri: str, step: Callable[[], Any]) -> None:
        if not self._asked(uri, step):
            raise unwritable(uri, OSError("its store refused a step"))


class RemoteFolder:
    """Owns `DIR.part` from the start of a run to `finish`, when its files move to `DIR`; like `OutputFolder`.

    Raises RefusedError D5001 at once if DIR or DIR.part is not empty and `overwrite` is not set.
    """

    def __init__(self, spark: SparkSession, uri: str, format_: str, overwrite: bool) -> None:
        self._format = format_
        self.path = uri.rstrip("/")
        self.part = f"{self.path}.part"
        self._store = RemoteStore(spark, self.path)
        for there in (self.path, self.part):
            if not self._store.exists(there):
                continue
            names = [name for name, _ in self._store.files(there)] if self._store.is_folder(there) else None
            if names == []:
                continue
            if not overwrite:
                what = "was left by a run that did not finish" if there == self.part else "exists"
                raise _refused(f"`{there}` {what}", there, "give another name, or --overwrite")
            if names is None or not {RUN_FILE, UNFINISHED} & set(names):
                raise _refused(f"`{there}` is not an output of `dotr batch`", there, "give another name")

    def open(self) -> str:
        """Make the folder of the unfinished run; returns its URI."""
        if self._store.exists(self.part):
            self._store.remove(self.part)
        self._store.make(self.part)
        self._store.write(f"{self.part}/{UNFINISHED}", "")
        return self.part

    def finish(self, files: Sequence[str], run: str) -> None:
        """Move the reported files to the folder, one rename each, and write RUN_FILE, which names them.

        What has that name is removed only now.
        """
        store, part = self._store, self.part
        sizes = {f"{_RAW}/{name}": size for name, size in store.files(f"{part}/{_RAW}")} if files else {}
        if store.exists(self.path):
            store.remove(self.path)
        try:
            store.make(self.path)
            store.write(f"{self.path}/{UNFINISHED}", "")
            manifest: list[dict[str, Any]] = []
            for number, file in enumerate(files):
                name = part_name(number, len(files), ENDINGS[self._format])
                store.rename(f"{part}/{file}", f"{self.path}/{name}")
                manifest.append({"name": name, "bytes": sizes[file]})
            store.write(f"{self.path}/{RUN_FILE}", with_manifest(run, manifest))
            store.remove(f"{self.path}/{UNFINISHED}")
        except BaseException:
            with suppress(EngineError):
                store.remove(self.path)
            raise
        with suppress(EngineError):  # the run is complete; another one removes it
            store.remove(part)

    def abandon(self) -> None:
        """Leave nothing of a failed run behind."""
        with suppress(EngineError):
            if self._store.exists(self.part):
                self._store.remove(self.part)


def with_manifest(run: str, files: Sequence[Mapping[str, Any]]) -> str:
    """The text of RUN_FILE, with the name and the bytes of every file."""
    return json.dumps(json.loads(run) | {"manifest": list(files)}, ensure_ascii=False, indent=2) + "\n"


def _refused(message: str, place: str, hint: str) -> RefusedError:
    return RefusedError.of("D5001", message, place=place, hint=hint)


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
        """Stop the session if it is ours; its Java process may have ended, which the run has reported."""
        if self._session is not None and self._own:
            with suppress(ConnectionError, EOFError):
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
        request, last = self.request, self.request.end(look.last) if cut is None else cut.last
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
        here = (is_archive(p.file, log.options) for s in log.splits for p in s.pieces)
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
        found = None
        if stated is not None:
            found = sliced(request, replace(stated, last=request.end(stated.last)), hands)
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
        report.time_sources = {ARCHIVE_TIME: look.graphs}
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
        report.time_sources = {ARCHIVE_TIME: report.graphs}
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
            for time_source, count in note["time_sources"].items():
                self.report.time_sources[time_source] = self.report.time_sources.get(time_source, 0) + count
            for what, count in note.get("beside", {}).items():
                self.report.beside[what] = self.report.beside.get(what, 0) + count

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        """Time a stage, and report its progress as far as Spark knows."""
        start, over = monotonic(), threading.Event()
        watch = threading.Thread(target=self._watch, args=(name, over), daemon=True)
        watch.start()
        try:
            with described(self.spark, name, self.request.program):
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
