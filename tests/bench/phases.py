"""Where the time of the default scenario goes, by the phases of the paper's table 1.

Method:  one run in which the calls between the steps are timed from outside; a call costs some 0.2 µs more
         than it does otherwise, so the phases are reported as shares as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from .runners import engine_of
from .workloads import Workload


class Timed:
    """Owns the time spent in one method of an object, which it takes the place of."""

    def __init__(self, owner: Any, method: str) -> None:
        self.seconds = 0.0
        function: Callable[..., Any] = getattr(owner, method)

        def call(*arguments: Any, **options: Any) -> Any:
            start = perf_counter()
            try:
                found = function(*arguments, **options)
            finally:
                self.seconds += perf_counter() - start
            return self._each(found) if isinstance(found, Iterator) else found

        setattr(owner, method, call)

    def _each(self, found: Iterator[Any]) -> Iterator[Any]:
        """What a generator gives, its own time counted."""
        while True:
            start = perf_counter()
            item = next(found, self)
            self.seconds += perf_counter() - start
            if item is self:
                return
            yield item


def split(workload: Workload) -> dict[str, float]:
    """Phase → microseconds a graph; what is between the phases is `engine`."""
    engine = engine_of(workload)
    pipeline: Any = engine.pipeline
    documents = workload.documents
    warm, rest = documents[: len(documents) // 4], documents[len(documents) // 4 :]
    for _ in engine.push_all(warm):  # fixes the clock, so that every step is there
        pass
    read = Timed(engine._pairs, "read")
    known = [Timed(pipeline.instants, "entered"), Timed(pipeline.instants, "overlaid")]
    found = Timed(pipeline._detect, "detected")
    write = 0.0
    start = perf_counter()
    for events in engine.push_all(rest):
        before = perf_counter()
        events.nquads()
        write += perf_counter() - before
    engine.finish().nquads()
    whole = perf_counter() - start
    seconds = {
        "translation in: Turtle": read.seconds,
        "enrich and extract: update, reasoning, queries": sum(timed.seconds for timed in known),
        "detect: events": found.seconds,
        "emit: names and N-Quads": write,
    }
    seconds["between the steps"] = whole - sum(seconds.values())
    return {name: value / len(rest) * 1e6 for name, value in seconds.items()}
