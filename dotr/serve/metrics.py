"""Counts of a server in Prometheus's text format.

Place:   `GET /metrics`. What the engine counts is as of its last commit, which stores it; what the server
         counts (readers, waiting documents) is of now.
Method:  one collector, asked when somebody scrapes: nothing is counted twice for it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.metrics_core import Metric

from dotr.serve.deliveries import Deliveries
from dotr.serve.engine import Engine
from dotr.serve.streaming import Broadcast
from dotr.service.inbox import Inbox
from dotr.version import __version__

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Durations:
    """Owns how often something took how long: counts of buckets, and the sum in seconds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BUCKETS) + 1)
        self._sum = 0.0

    def note(self, seconds: float, count: int = 1) -> None:
        """Something took so long, so often."""
        place = next((n for n, bound in enumerate(_BUCKETS) if seconds <= bound), len(_BUCKETS))
        self._counts[place] += count
        self._sum += seconds * count

    def metric(self, name: str, text: str) -> Metric:
        """The histogram."""
        found = HistogramMetricFamily(name, text)
        total, buckets = 0, []
        for bound, count in zip([*map(str, _BUCKETS), "+Inf"], self._counts, strict=True):
            total += count
            buckets.append((bound, total))
        found.add_metric([], buckets, self._sum)
        return found


class Metrics:
    """Owns the registry."""

    def __init__(self, engine: Engine, inbox: Inbox, broadcast: Broadcast, deliveries: Deliveries) -> None:
        self._engine, self._inbox, self._broadcast = engine, inbox, broadcast
        self._deliveries = deliveries
        self.commits, self.latencies = Durations(), Durations()
        self.refused: dict[tuple[str, str], int] = {}
        """Source and outcome of documents that were not taken into the inbox → their number."""
        self.accepted = 0
        """Documents that were taken into the inbox."""
        self._latencies: deque[float] = deque(maxlen=10_000)
        self._commits: deque[float] = deque(maxlen=10_000)
        self._arrived: dict[str, deque[tuple[int, float]]] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """What a scrape gets."""
        return generate_latest(self._registry)

    def count(self, source: str, outcome: str) -> None:
        """A document came."""
        key = (source, outcome)
        self.refused[key] = self.refused.get(key, 0) + 1

    def arrived(self, source: str, number: int) -> None:
        """A document was taken into the inbox."""
        self.accepted += 1
        waiting = self._arrived.setdefault(source, deque(maxlen=10_000))
        waiting.append((number, time.monotonic()))

    def committed(self, fed: Mapping[str, int]) -> None:
        """A commit has the documents of each source up to a number."""
        self.commits.note(self._engine.commit_seconds)
        self._commits.append(self._engine.commit_seconds)
        now = time.monotonic()
        for source, number in fed.items():
            waiting = self._arrived.get(source)
            while waiting and waiting[0][0] <= number:
                seconds = now - waiting.popleft()[1]
                self.latencies.note(seconds)
                self._latencies.append(seconds)

    def recent(self) -> tuple[list[float], list[float]]:
        """Latencies and lengths of commits, in seconds, since this was asked last; the latest of many."""
        found = list(self._latencies), list(self._commits)
        self._latencies.clear()
        self._commits.clear()
        return found

    def collect(self) -> Iterator[Metric]:
        """Everything, for the registry."""
        status, inbox, broadcast = self._engine.status, self._inbox, self._broadcast
        yield _gauge("dotr_build_info", "The version.", ["version"], {(__version__,): 1})
        yield _counter(
            "dotr_source_documents",
            "Documents that came, by what became of them at once.",
            ["source", "outcome"],
            self.refused,
        )
        clock = status.get("clock")
        unit = 1e6 if clock is None or not clock[0] else clock[1]
        marks = {
            (source_name(state[0]), state[1]): state[2] / unit
            for state in status.get("partitions", ())
            if state[2] is not None
        }
        yield _gauge(
            "dotr_source_watermark_seconds",
            "The time of the latest graph of each partition, in seconds since 1970 or units of integer time.",
            ["source", "partition"],
            marks,
        )
        counts = inbox.counts()
        yield _gauge(
            "dotr_source_lag_rows",
            "Documents of a source that wait in the inbox.",
            ["source"],
            {
                (name,): counts[name].rows if name in counts else 0
                for name in (*self._engine.configuration.sources, *counts)
                if name in counts or self._engine.configuration.sources[name].http is not None
            },
        )
        yield _gauge(
            "dotr_inbox_rows", "Documents in the inbox.", [], {(): sum(c.rows for c in counts.values())}
        )
        yield _counter("dotr_instants", "Instants that were run.", [], {(): status.get("instants", 0)})
        steps = SummaryMetricFamily(
            "dotr_instant_seconds",
            "How long instants took, by step.",
            labels=["step"],
        )
        for step, seconds in sorted(self._engine.steps.items()):
            steps.add_metric([step], status.get("instants", 0), seconds)
        yield steps
        yield _counter("dotr_graphs", "Graphs that were taken.", [], {(): status.get("graphs", 0)})
        yield _counter(
            "dotr_events",
            "Events by rule.",
            ["rule"],
            {(rule,): count for rule, count in status.get("events", {}).items()},
        )
        yield _counter(
            "dotr_rule_stage",
            "How far trigger facts of a rule came: how many passed each conjunct.",
            ["rule", "stage"],
            dict(_stages(status.get("funnel", {}))),
        )
        yield _gauge(
            "dotr_state_facts",
            "Facts that rules remember.",
            ["stream"],
            {(name,): size for name, size in status.get("sizes", {}).items()},
        )
        yield self.commits.metric("dotr_commit_seconds", "How long commits took.")
        yield self.latencies.metric(
            "dotr_event_latency_seconds",
            "From the arrival of a document to the commit that shows its events.",
        )
        yield _gauge("dotr_outbox_rows", "Events that are kept.", [], {(): self._kept()})
        states = self._deliveries.states()
        yield _gauge(
            "dotr_sink_lag_rows",
            "Events that wait for an output.",
            ["sink"],
            {(one.name,): max(0, broadcast.last - one.delivered) for one in states},
        )
        yield _counter(
            "dotr_sink_errors",
            "Deliveries that failed.",
            ["sink"],
            {(one.name,): one.errors for one in states},
        )
        yield _gauge("dotr_subscribers", "Readers of events.", [], {(): broadcast.readers})
        yield _counter(
            "dotr_dead_letters",
            "Dead letters since the server began.",
            ["code"],
            {(code,): count for code, count in self._engine.letters.items()},
        )
        yield _counter("dotr_late", "Graphs that came late.", [], {(): status.get("late", 0)})
        yield _counter(
            "dotr_refused", "Documents and graphs that were refused.", [], {(): status.get("refused", 0)}
        )
        yield _gauge("dotr_paused", "Whether the engine was paused.", [], {(): int(self._engine.paused)})

    def _kept(self) -> int:
        bounds = self._broadcast.reader.bounds()
        return bounds.last - bounds.first + 1


def source_name(name: str) -> str:
    """The name of a source in the configuration, of that in the journal, which has its kind before it."""
    return name.partition("/")[2] or name


def _stages(funnel: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    for rule, stages in funnel.items():
        for number, stage in enumerate(stages):
            name, count = (stage[0], stage[1]) if isinstance(stage, list | tuple) else (number, stage)
            yield (rule, f"{number} {name}"), float(count)


def _gauge(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    return _family(GaugeMetricFamily(name, text, labels=labels), values)


def _counter(name: str, text: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    return _family(CounterMetricFamily(name, text, labels=labels), values)


def _family(found: Any, values: Mapping[Any, float]) -> Metric:
    for key, value in sorted(values.items()):
        found.add_metric(list(key), value)
    metric: Metric = found
    return metric
