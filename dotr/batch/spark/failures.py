"""Errors of workers, reported to the caller of the action: dotr's own exceptions, with their codes.

Place:   every function that Spark runs for dotr goes through `shipped`; all functions that return a frame to
         a user call `install`.
Method:  an error that a user can fix crosses to the driver as text between two markers; `convert_exception`,
         where PySpark makes exceptions from errors of the JVM or the Connect server, turns it into dotr's
         error. A function is shipped by value: at the start of every task it compares the worker's version of
         dotr with the driver's, before anything of dotr is imported or unpickled.
Why not: leave Spark's exception to the user: its text is a traceback of three processes.
Bad input: D4303 a job failed for a reason that is not dotr's · D4307 a worker without this dotr.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

import pyarrow as pa

from dotr.batch.findings_as_json import packed, unpacked
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
from dotr.version import __version__

Batches = Iterator[pa.RecordBatch]
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
            raise RuntimeError(f"dotr-worker:{there}dotr-worker:")
        yield from pickle.loads(content)(batches)  # noqa: S301  # our own driver's bytes, same release

    return checked


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
    return None


def _other_worker(wanted: str, found: str, host: str, python: str) -> EngineError:
    has = f"has dotr {found}, the driver {wanted}" if found else "has no dotr"
    return EngineError.of(
        "D4307",
        f"a Spark worker {has}",
        place=host,
        label=python,
        notes=("the workers' Python is that of PYSPARK_PYTHON, or of the archive that was sent along",),
        hint=f"install dotr {wanted} there, or send an environment: --archives env.tar.gz#environment "
        "--conf spark.pyspark.python=./environment/bin/python",
    )


def as_own_error(error: Exception) -> DotrError:
    """A worker's error, from the exception that Spark made of it; D4303 for everything else."""
    if isinstance(error, DotrError):
        return error
    text = str(error)
    found = own(text)
    if found is not None:
        return found
    if isinstance(error, (ConnectionError, EOFError)) or type(error).__name__ == "Py4JNetworkError":
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
        hint="Spark's own log has the whole story; `--engine local` runs without it",
    )


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
