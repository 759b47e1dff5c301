"""What ends a process politely: Ctrl-C, SIGTERM, and SIGHUP of a terminal that closes.

Place:   main.py prepares all verbs; a feed has handlers of its own, which let it commit first.
Method:  SIGTERM and SIGHUP raise what Ctrl-C raises, so that outputs are settled, scratch files removed and
         other processes ended in the same way, whatever the verb does. One that is ignored (nohup) stays so.
"""

from __future__ import annotations

import signal
from types import FrameType

STOPPED = 130
"""The exit code of what was stopped."""

POLITE = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What asks for an end, beside Ctrl-C."""


class Terminated(KeyboardInterrupt):
    """An end was asked for, not by Ctrl-C: a prompt does not go on after it."""


def prepare() -> None:
    """From now on a polite signal ends what runs as Ctrl-C does. In the main thread."""
    for number in POLITE:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminated)


def _terminated(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
