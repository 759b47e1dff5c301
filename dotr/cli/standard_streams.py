"""Standard input, output and error as a shell may hand them over: closed, full, or in another encoding.

Place:   called by main.py, before and after a verb runs.
Method:  a closed descriptor is taken by the null device in the opposite direction, so that no file opened
         later gets its number, and its use fails with EBADF, which is then an ordinary error. Text is UTF-8
         whatever the locale says, as data are.
Why not: leave it to the interpreter: with standard error closed `print` falls back to standard output, and
         an output that cannot be flushed at exit replaces the exit code by 120.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import TextIO

from dotr.cli import render
from dotr.io.files.outputs import unwritable

_UNWRITABLE = frozenset((errno.ENOSPC, errno.EBADF, errno.EFBIG, errno.EIO, errno.EDQUOT))


def prepare() -> None:
    """Make the three streams usable, or fail as files do."""
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


def cannot_be_written(error: BaseException) -> bool:
    """Whether an error is that of an output that takes no more."""
    return isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None


def settle(code: int) -> int:
    """Flush what is buffered; the exit code: `code`, or 4 if it would hide that output was lost."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        discard(sys.stdout)
        if code in (0, 1) and isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            render.errors(unwritable("standard output", error))
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
