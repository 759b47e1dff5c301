"""The funnel as `run`, `feed`, `batch` and `status` show it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.batch.test_local import Serial
from tests.cli.conftest import Dotr

LINE = "  Fire  0   Smoke 1 → LAST HighTemp 0   query Fire.HighTemp: 0 facts"


@pytest.fixture
def cold(folder: Path) -> Path:
    """The paper's example with a temperature that is no reason for an alarm."""
    (folder / "events" / "10.ttl").write_text(
        (folder / "events" / "10.ttl").read_text(encoding="utf-8").replace("70", "20"), encoding="utf-8"
    )
    return folder


def test_a_run_without_events_says_how_far_it_came_and_why(cold: Path, dotr: Dotr) -> None:
    done = dotr("run", "fire.dotr", "events")
    assert "fire.dotr: 2 graphs, 10 – 12\n" in done.err
    assert LINE in done.err


def test_a_run_with_events_shows_its_funnels_when_asked(folder: Path, dotr: Dotr) -> None:
    assert "→" not in dotr("run", "fire.dotr", "events").err
    assert "  Fire  1   Smoke 1 → LAST HighTemp 1\n" in dotr("run", "fire.dotr", "events", "-v").err
    assert "→" not in dotr("run", "fire.dotr", "events", "-v", "-q").err


def test_a_summary_as_json_is_the_last_line_of_standard_error(folder: Path, dotr: Dotr) -> None:
    reported = json.loads(dotr("run", "fire.dotr", "events", "--summary", "json").err.splitlines()[-1])
    assert (reported["graphs"], reported["first"], reported["last"]) == (2, 10, 12)
    assert reported["queries"] == {"Fire.Smoke": 1, "Fire.HighTemp": 1}
    (rule,) = reported["rules"]
    assert rule["funnel"] == [{"step": "Smoke", "count": 1}, {"step": "LAST HighTemp", "count": 1}]
    assert rule["events"] == 1


def test_a_deployment_counts_across_feeds(cold: Path, dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events/10.ttl")
    assert LINE in dotr("feed", "events/12.ttl").err
    assert LINE in dotr("status").out
    (rule,) = json.loads(dotr("status", "--format", "json").out)["rules"]
    assert rule["funnel"] == [{"step": "Smoke", "count": 1}, {"step": "LAST HighTemp", "count": 0}]
    reported = json.loads(dotr("feed", "events/12.ttl", "--summary", "json").err.splitlines()[-1])
    assert (reported["graphs"], reported["rules"][0]["funnel"]) == (0, rule["funnel"])


def test_a_batch_has_the_funnel_of_a_run(cold: Path, dotr: Dotr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.batch.local._pool", Serial)
    batch = ("batch", "fire.dotr", "events", "--engine", "local")
    assert LINE in dotr(*batch, "--out", "out").err
    reported = json.loads(dotr(*batch, "--out", "again", "--summary", "json").err.splitlines()[-1])
    run = json.loads(dotr("run", "fire.dotr", "events", "--summary", "json").err.splitlines()[-1])
    assert reported["rules"] == run["rules"]
    written = json.loads((cold / "out" / "_dotr_run.json").read_text("utf-8"))
    assert written["funnel"]["Fire"] == [["Smoke", 1], ["LAST HighTemp", 0]]
