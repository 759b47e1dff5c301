"""How often Python's collector looks for cycles while a stream goes through.

Place:   processes of our own set it: `dotr run`, workers of a batch. An `Engine` leaves its user's alone.
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
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
