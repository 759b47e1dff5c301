"""Graphs are taken some dozens at a time, then what they closed is run.

Place:   between who has graphs (`Engine`, tests of rules) and the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dotr.core.emit import Emission
from dotr.core.pipeline import Pipeline
from dotr.errors import DotrError

AHEAD: Final = 64
"""How many graphs are taken before they are run, unless they cannot wait."""


def drive(pipeline: Pipeline, taking: Iterator[int], ahead: int = AHEAD) -> Iterator[Emission]:
    """What comes of each instant that is closed. `taking` has the pipeline take graphs, and says at each step
    how many.

    An error of `taking` is raised behind what was closed before it; one of an instant at its place. Who
    leaves early finds the rest in the pipeline's next call.
    """
    waiting, running = 0, False
    try:
        for taken in taking:
            waiting += taken
            if waiting >= ahead:
                waiting, running = 0, True
                yield from pipeline.drain()
                running = False
    except DotrError:
        if not running:
            yield from pipeline.drain()
        raise
    yield from pipeline.drain()
