"""Where the time of the default scenario goes, by the phases of the paper's table 1.

Method:  one run in which the calls between the steps are timed from outside; a call costs some 0.2 µs more
         than it does otherwise, so the phases are reported as shares as well.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from .runners import engine_of
from .workloads import Workload

STEPS = (
    ("enrich: update and reasoning", "_enrich", ("instant", "forget")),
    ("extract: queries", "_extract", ("facts",)),
    ("detect: events", "_detect", ("detect",)),
)


class Timed:
    """Owns the time spent in some methods of an object; passes everything else through."""

    def __init__(self, target: Any, methods: tuple[str, ...]) -> None:
        self.target = target
        self.seconds = 0.0
        for method in methods:
            if hasattr(target, method):
                setattr(self, method, self._timed(getattr(target, method)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = perf_counter()
            try:
                return function(*arguments)
            finally:
                self.seconds += perf_counter() - start

        return call


def split(workload: Workload) -> dict[str, float]:
    """Phase → microseconds a graph; what is between the phases is `engine`."""
    engine = engine_of(workload)
    pipeline: Any = engine.pipeline
    documents = workload.documents
    start = perf_counter()
    for _, text in documents:
        engine._triples(text)
    parse = perf_counter() - start
    (at, first), *rest = documents
    events = [engine.push(first, at=at)]  # fixes the clock, so that every step is there
    steps: dict[str, Timed] = {}
    for name, attribute, methods in STEPS:
        if hasattr(pipeline, attribute):
            steps[name] = Timed(getattr(pipeline, attribute), methods)
            setattr(pipeline, attribute, steps[name])
    start = perf_counter()
    for at, text in rest:
        events.append(engine.push(text, at=at))
    events.append(engine.finish())
    whole = perf_counter() - start
    start = perf_counter()
    for found in events:
        found.nquads()
    write = perf_counter() - start
    inside = sum(step.seconds for step in steps.values())
    seconds = {
        "translation in: Turtle": parse,
        **{name: step.seconds for name, step in steps.items()},
        "emit: names and N-Quads": write,
        "between the steps": max(0.0, whole - parse - inside),
    }
    return {name: value / len(documents) * 1e6 for name, value in seconds.items()}
