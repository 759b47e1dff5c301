"""The real thing: few small jobs in one session; what they compute is tested without a JVM beside this."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dotr.spark
from dotr.connectors.sources import Sources
from dotr.events import Clock
from dotr.spark.batches import graph_text
from tests.spark.test_local import golden_cases, in_one_process, loaded

pytestmark = pytest.mark.spark


def frame_of(spark: Any, case: Path) -> Any:
    """A golden case's stream as a log, the latest graph first."""
    _program, _background, options = loaded(case)
    sources = Sources([str(case / "stream.jsonl")], options)
    rows = [(graph.time, graph_text(graph.triples)) for graph in sources][::-1]
    clock = sources.clock or Clock()
    frame = spark.createDataFrame(rows, "time bigint, graph string")
    if clock.integer:
        return frame.selectExpr(f"time DIV {clock.unit} AS time", "graph"), clock
    return frame.selectExpr("timestamp_micros(time) AS time", "graph"), clock


def json_lines(rows: list[Any], clock: Clock) -> list[tuple[Any, ...]]:
    """What a JSON line has of each row."""
    return sorted(
        (row.rule, row.id, row.match, row.graph, tuple(row.bindings.items()), _written(row.time, clock))
        for row in rows
    )


def _written(time: Any, clock: Clock) -> Any:
    return time if clock.integer else round(time.timestamp() * 1_000_000)


def expected_rows(lines: list[str], clock: Clock) -> list[tuple[Any, ...]]:
    rows = []
    for line in lines:
        event = json.loads(line)
        raw = line[line.index('"match":') + 8 : line.rindex(',"graph":')]
        rows.append((event["rule"], event["id"], raw, event["graph"]))
    return sorted(rows)


@pytest.mark.filterwarnings("ignore:warning.D4201")  # rules of one task are meant to say so
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_golden_cases_hold_on_spark(case: Path, spark: Any) -> None:
    program, background, options = loaded(case)
    frame, clock = frame_of(spark, case)
    unit = {1: "us", 1_000: "ms", 1_000_000: "s"}[options.unit]
    expected = in_one_process(program, background, [str(case / "stream.jsonl")], options)
    rows = dotr.spark.detect(frame, case / "rules.dotr", time_unit=unit).collect()
    found = json_lines(rows, clock)
    assert [row[:4] for row in found] == expected_rows(expected, clock)
