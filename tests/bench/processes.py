"""What a command and all processes below it took: CPU, clock, memory.

Place:   used by the benches that start Spark, whose processes do not wait for each other.
Method:  this process adopts those whose parents have ended (PR_SET_CHILD_SUBREAPER of Linux), and reads the
         processor time of each from /proc every 50 ms: Spark's daemon for Python does not wait for its
         workers, so what the system sums up lacks them. What a process takes after its last reading is not
         counted.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

_LOOK = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Use:
    """Seconds of CPU of all, seconds by the clock, MB that the process of the command itself held at most,
    the end of what was written to standard error.
    """

    cpu: float
    clock: float
    memory: float
    said: str


def watched(
    command: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Use:
    """Run a command to its end, and all that it has started. Raises CalledProcessError, with what it wrote
    to standard error. No other process may run below this one.
    """
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    start = monotonic()
    used: dict[int, float] = {}
    memory = 0.0
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as ran:
        assert ran.stderr is not None
        os.set_blocking(ran.stderr.fileno(), False)
        said = b""
        while ran.poll() is None:
            used |= dict(own_seconds())
            memory = max(memory, greatest(ran.pid))
            said = (said + (ran.stderr.read() or b""))[-10_000:]
            sleep(_LOOK)
        clock = monotonic() - start
        with suppress(ChildProcessError):
            while True:  # what outlived it, and what has ended and nobody asked about
                used |= dict(own_seconds())
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    sleep(_LOOK)
        said += ran.stderr.read() or b""
    if ran.returncode:
        raise subprocess.CalledProcessError(ran.returncode, command, stderr=said.decode(errors="replace"))
    return Use(sum(used.values()), clock, memory, said.decode(errors="replace"))


def own_seconds() -> Iterator[tuple[int, float]]:
    """(process, seconds of CPU without those of ended children) of all below this one."""
    parents: dict[int, tuple[int, float]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            text = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
            fields = text[text.rindex(")") + 2 :].split()
            parents[int(entry)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS
    for process, (parent, seconds) in parents.items():
        while parent in parents and parent != os.getpid():
            parent = parents[parent][0]
        if parent == os.getpid():
            yield process, seconds


def greatest(process: int) -> float:
    """The most MB that a process has held so far; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0
