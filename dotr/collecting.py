"""How often Python's collector looks for cycles while a stream goes through, or something large is made.

Place:   processes of our own set how often: `dotr run`, workers of a batch. An `Engine` leaves its user's
         alone, but for the while in which a program is read and compiled.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

RARELY: Final = (100_000, 20, 100)
"""As `gc.set_threshold` takes it: by Python's own settings it takes a tenth of a run's time, and finds no
cycles in graphs, facts and events.
"""


@contextmanager
def rarely() -> Iterator[None]:
    """A while in which cycles are looked for rarely."""
    before = gc.get_threshold()
    gc.freeze()  # the program stays: no collection need look at it
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def uncollected() -> Iterator[None]:
    """A while without the collector: it looks at every list of something large again and again, which takes
    longer than making them, and there are no cycles in it.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
