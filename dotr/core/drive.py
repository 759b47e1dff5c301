"""Graphs are taken several dozen at a time, then the instants they closed are run.

Place:   between the owners of graphs (`Engine`, rule tests) and the pipeline.
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
    """Yields the emission of each instant that closes. `taking` has the pipeline take graphs, and yields how
    many at each step.

    An error of `taking` is raised after the emissions of what was closed before it; an instant's error at its
    place. After leaving early, the pipeline's next call returns the rest.
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
