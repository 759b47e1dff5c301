"""The process as a shell starts and ends it: standard streams that may be closed or full, and polite signals.

Place:   called by main.py, before and after a verb runs; a feed has handlers of its own, which let it commit
         first.
Method:  a closed descriptor is taken by the null device in the opposite direction, so that no file opened
         later gets its number, and its use fails with EBADF, which is then an ordinary error. Text is UTF-8
         whatever the locale says, as data are. SIGTERM and SIGHUP raise what Ctrl-C raises, so that outputs
         are settled, scratch files removed and other processes ended in the same way, whatever the verb does.
         One that is ignored (nohup) stays so.
Why not: leave it to the interpreter: with standard error closed `print` falls back to standard output, and
         an output that cannot be flushed at exit replaces the exit code by 120.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from dotr.cli import show
from dotr.io.outputs import unwritable

_UNWRITABLE = frozenset((errno.ENOSPC, errno.EBADF, errno.EFBIG, errno.EIO, errno.EDQUOT))

STOPPED = 130
"""The exit code of what was stopped."""

POLITE = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What asks for an end, besides Ctrl-C."""


@contextmanager
def without_logging() -> Iterator[None]:
    """Libraries log nothing within it: when Ctrl-C breaks off a talk with Spark's Java process, or that
    ends, Py4J logs tracebacks beside the error that dotr reports.
    """
    import logging  # noqa: PLC0415  # start-up: a short command uses none

    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


class Terminated(KeyboardInterrupt):
    """An end was requested, not by Ctrl-C: a prompt does not continue after it."""


def prepare() -> None:
    """Make the three streams usable, or fail as files do; a polite signal ends what runs as Ctrl-C does."""
    for number, direction in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, direction)  # takes the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # open until the process ends
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    for polite in POLITE:
        if signal.getsignal(polite) is signal.SIG_DFL:
            signal.signal(polite, _terminated)


def cannot_be_written(error: BaseException) -> bool:
    """Whether an error means that an output accepts nothing any more."""
    return isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None


def settle(code: int) -> int:
    """Flush what is buffered; the exit code: `code`, or 4 if it would hide that output was lost."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        discard(sys.stdout)
        if code in (0, 1) and isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            show.errors(unwritable("standard output", error))
            code = 4
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        discard(sys.stderr)
    return code


def discard(stream: TextIO) -> None:
    """A stream goes nowhere from here on: what it still holds cannot be written."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _terminated(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
