"""Metrics by OTLP: a collector gets what a scrape gets."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from .servers import RULES, hot, serving, smoke


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Any]]]:
    came: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # its name
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            came.append((self.path, ExportMetricsServiceRequest.FromString(body)))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", came
    server.shutdown()
    server.server_close()


def test_a_collector_gets_the_counts_of_a_scrape(tmp_path: Path, collector: tuple[str, list[Any]]) -> None:
    url, came = collector
    with serving(tmp_path, RULES, "--set", f"otlp={url}") as server:
        server.post([hot(1), smoke(2), hot(3)], wait="committed")
        scraped = server.client.get("/metrics").text
    path, request = came[-1]
    assert path == "/v1/metrics"
    (scope,) = request.resource_metrics[0].scope_metrics
    found = {metric.name: metric for metric in scope.metrics}
    (events,) = found["dotr_events_total"].sum.data_points
    assert (events.as_double, events.attributes[0].value.string_value) == (1.0, "Fire")
    assert found["dotr_commit_seconds"].histogram.data_points[0].count >= 1
    names = {line.split("{")[0].split(" ")[0] for line in scraped.splitlines() if not line.startswith("#")}
    plain = {name for name in names if not name.endswith(("_bucket", "_sum", "_count"))}
    assert plain <= set(found)


def test_a_collector_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    with serving(tmp_path, RULES, "--set", "otlp=http://127.0.0.1:9") as server:
        server.post([hot(1)], wait="committed")
    assert sum("D4216" in line for line in server.log) == 1
