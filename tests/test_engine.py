"""Engine, as a Python user may misuse it: every mistake is told, none is taken silently."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
import rdflib

import dotr

RULES = """
PREFIX : <ex:>
RULE Hit DEFINE { dotr_x :v ?v } FROM Seen := { SELECT ?v WHERE { ?s :p ?v } } WITH ?v := Seen.?v
"""
GRAPH = "<ex:a> <ex:p> 1 ."


def engine(**options: Any) -> dotr.Engine:
    return dotr.Engine.from_text(RULES, **options)


@pytest.mark.parametrize(
    ("at", "code"),
    [
        (1.5, "D4104"),
        (True, "D4104"),
        (None, "D4104"),
        (date(2026, 1, 1), "D4104"),
        (datetime(2026, 1, 1), "D2103"),
        ("2026-01-01T00:00:00", "D2103"),
        ("noon", "D2105"),
        (10**30, "D2105"),
        (-(10**30), "D2105"),
    ],
)
def test_what_is_no_time_is_refused(at: Any, code: str) -> None:
    with pytest.raises(dotr.DotrError, match=code):
        engine().push(GRAPH, at=at)
    with pytest.raises(dotr.DotrError, match=code):
        engine().advance(at)


@pytest.mark.parametrize(
    ("graph", "code"),
    [
        (None, "D4105"),
        (5, "D4105"),
        (["<ex:a>"], "D4105"),
        ([("<ex:a", "<ex:p>", '"1"')], "D4105"),
        ([('"literal"', "<ex:p>", '"1"')], "D4105"),
        ([("<ex:a>", "_:p", '"1"')], "D4105"),
        ([("<ex:a>", "<ex:p>", '"1')], "D4105"),
        ([("<ex:a>", "<ex:p>", '"1" . <ex:b> <ex:p> "2"')], "D4105"),
        (b"\xff", "D2002"),
        ("<ex:a> <ex:p>", "D2001"),
    ],
)
def test_what_is_no_graph_is_refused(graph: Any, code: str) -> None:
    running = engine()
    with pytest.raises(dotr.DotrError, match=code):
        running.push(graph, at=1)
    running.push(GRAPH, at=1)
    assert [event.rule for event in running.finish()] == ["Hit"]


def test_terms_that_only_rdflib_takes_are_refused() -> None:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("ex:a b"), rdflib.URIRef("ex:p"), rdflib.Literal(1)))
    with pytest.raises(dotr.DataError, match="D2001"):
        engine().push(graph, at=1)


@pytest.mark.parametrize(
    "options",
    [
        {"lateness": 5},
        {"lateness": "5"},
        {"lateness": "-1 s"},
        {"late": "ignore"},
        {"time_unit": "m"},
        {"materialize": "some"},
        {"base": "building"},
    ],
)
def test_options_with_values_they_cannot_have_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(dotr.UsageError):
        engine(**options)


def test_late_graphs_that_fail_name_their_time_as_the_run_writes_it() -> None:
    running = engine(late="fail")
    running.push(GRAPH, at=datetime(2026, 1, 2, tzinfo=UTC))
    with pytest.raises(dotr.DataError, match="this graph is for 2026-01-01T00:00:00Z"):
        running.push(GRAPH, at="2026-01-01T00:00:00Z")


def test_a_snapshot_of_another_unit_is_refused() -> None:
    running = engine()
    running.push(GRAPH, at=1)
    with pytest.raises(dotr.DataError, match="D2102"):
        engine(time_unit="ms").restore(running.snapshot())


@pytest.mark.parametrize("blob", [b"", b"x", b"{}", b"[]", b"5", b'{"version":1}'])
def test_a_damaged_snapshot_is_told(blob: bytes) -> None:
    with pytest.raises(dotr.EngineError, match="D510"):
        engine().restore(blob)
