"""Processes that end with the one that started them, and at once when it stops.

Place:   the pool of local.py.
Method:  a process asks the system to be ended when its parent ends (Linux), or waits for that in a thread
         (elsewhere); without either, a task would go on and write into a folder that a new run has. Ctrl-C
         is the parent's: who is stopped ends the processes, whatever they are doing.
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import Executor
from gc import set_threshold
from multiprocessing import parent_process
from threading import Thread

from dotr.collecting import RARELY

_PR_SET_PDEATHSIG = 1


def begin() -> None:
    """What a process of the pool does first."""
    set_threshold(*RARELY)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None or _ended_by_the_system():
        if parent is not None and os.getppid() != parent.pid:  # it ended before we asked
            os._exit(1)
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _ended_by_the_system() -> bool:
    """Whether the system promises to end this process with its parent."""
    if sys.platform != "linux":
        return False
    from ctypes import CDLL  # noqa: PLC0415  # of these processes alone

    try:
        return bool(CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def end(pool: Executor) -> None:
    """End a pool and its processes, whatever they are doing."""
    for process in list((getattr(pool, "_processes", None) or {}).values()):  # threads have none
        process.kill()
    pool.shutdown(wait=True, cancel_futures=True)
