"""How often Python's collector runs while a stream is processed or something large is built.

Place:   our own processes set it: `dotr run`, batch workers. An `Engine` leaves its user's setting alone,
         except while a program is read and compiled.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

RARELY: Final = (100_000, 20, 100)
"""For `gc.set_threshold`: with Python's defaults it takes a tenth of a run's time, and graphs, facts and
events have no cycles to find.
"""


@contextmanager
def rarely() -> Iterator[None]:
    """Runs the collector rarely in this block."""
    before = gc.get_threshold()
    gc.freeze()  # the program stays: collections skip it
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def uncollected() -> Iterator[None]:
    """Turns the collector off in this block: rescanning the lists of a large structure takes longer than
    building them, and they have no cycles.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
