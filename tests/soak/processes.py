"""Processes of the command line, measured: the CPU time and memory of each.

Place:   under the scripts of this folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Spent(NamedTuple):
    """What a process took, seconds of CPU (user and system) and MiB of memory at most; what it said last."""

    cpu: float
    memory: float
    reported: str


def spent(verb: str, *arguments: str, cwd: Path) -> Spent:
    """Run `dotr VERB ARGUMENTS` to its end; standard output is dropped. Raises AssertionError if it fails.

    What it says is the last line of standard error, without its end.

    The first run of all compiles modules: it is for the caller to warm up.
    """
    nothing = subprocess.DEVNULL
    with subprocess.Popen(dotr(verb, arguments), cwd=cwd, stdout=nothing, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        reported = process.stderr.read().decode().rstrip().rpartition("\n")[2]
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"dotr {verb} {' '.join(arguments)}: {reported}"
    return Spent(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, reported)


def dotr(verb: str, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "dotr", verb, *arguments]
