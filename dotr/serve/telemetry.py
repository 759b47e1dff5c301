"""The counts of `/metrics`, pushed by OTLP: the same names, labels and values.

Place:   beside metrics.py, which counts; the extra `otel`. server.py owns the thread.
Method:  what a scrape would get is sent every fifteen seconds to the collector of the configuration, as data
         points of OTLP. What cannot be sent is sent with the next ones: counts are cumulative.
Why not: instruments of the SDK: each count would be kept twice, and a histogram cannot be observed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from dotr.errors import Diagnostic, EngineError, Severity
from dotr.serve.metrics import Metrics
from dotr.version import __version__

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

EVERY: Final = 15.0
"""Seconds between two exports."""


class Telemetry:
    """Owns the thread that sends. `url`: of the collector, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it."""

    def __init__(
        self, url: str, metrics: Metrics, say: Callable[[Diagnostic], None], every: float = EVERY
    ) -> None:
        """Raises EngineError D4205 where a package is missing."""
        if find_spec("opentelemetry") is None:
            raise EngineError.of("D4205", "OTLP needs opentelemetry-sdk", hint="pip install 'dotr[otel]'")
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415  # an extra
            OTLPMetricExporter,
        )

        self._exporter = OTLPMetricExporter(f"{url.rstrip('/')}/v1/metrics", timeout=5)
        self._metrics, self._say, self._every = metrics, say, every
        self._url, self._failed = url, False
        self._begun = time.time_ns()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dotr-otlp", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send what is counted now, and end."""
        self._stopping.set()
        self._thread.join(6)

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            self._send()
        self._send()

    def _send(self) -> None:
        from opentelemetry.sdk.metrics.export import MetricExportResult  # noqa: PLC0415  # an extra

        try:
            sent = self._exporter.export(self.data()) is MetricExportResult.SUCCESS
        except Exception:  # whatever it is, nothing depends on it
            sent = False
        if not sent and not self._failed:
            message = f"the collector `{self._url}` cannot be reached; counts are sent when it can"
            self._say(Diagnostic("D4216", message, severity=Severity.WARNING))
        self._failed = not sent

    def data(self) -> Any:
        """What is counted now, as OTLP has it."""
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415  # an extra
            MetricsData,
            ResourceMetrics,
            ScopeMetrics,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

        now = time.time_ns()
        made = [made for one in self._metrics.collect() for made in _converted(one, self._begun, now)]
        scope = ScopeMetrics(InstrumentationScope("dotr", __version__), made, "")
        resource = Resource({"service.name": "dotr", "service.version": __version__})
        return MetricsData([ResourceMetrics(resource, [scope], "")])


def _converted(one: Metric, begun: int, now: int) -> list[Any]:
    """One family as metrics of OTLP."""
    from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415  # an extra
        AggregationTemporality,
        Gauge,
        Histogram,
        HistogramDataPoint,
        Metric,
        NumberDataPoint,
        Sum,
    )

    cumulative = AggregationTemporality.CUMULATIVE
    if one.type == "histogram":
        bounds = [s.labels["le"] for s in one.samples if s.name.endswith("_bucket")]
        counts = [int(s.value) for s in one.samples if s.name.endswith("_bucket")]
        total = next(s.value for s in one.samples if s.name.endswith("_sum"))
        each = [count - before for count, before in zip(counts, [0, *counts], strict=False)]
        edges = [float(bound) for bound in bounds[:-1]]
        point = HistogramDataPoint({}, begun, now, counts[-1], total, each, edges, 0.0, 0.0)
        return [Metric(one.name, one.documentation, "", Histogram([point], cumulative))]
    names = dict.fromkeys(sample.name for sample in one.samples)
    made = []
    for name in names:
        points = [
            NumberDataPoint(dict(sample.labels), begun, now, float(sample.value))
            for sample in one.samples
            if sample.name == name
        ]
        kind = Gauge(points) if one.type == "gauge" else Sum(points, cumulative, True)
        made.append(Metric(name, one.documentation, "", kind))
    return made
