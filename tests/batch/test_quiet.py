"""What a batch on Spark puts on a terminal, and what of private rules it writes: as a user runs it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark.cluster import SparkRunner
from dotr.core.deployment import Deployment
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from tests.batch.test_local import quiet

RULES = """PREFIX : <urn:x:>
PRIVATE RULE High
DEFINE { dotr_h a :High ; :v ?v }
FROM H := { SELECT ?v { ?o :val ?v FILTER(?v > 1) } }
WITH ?v := H.?v
RULE Top DEFINE { dotr_t a :Top ; :v ?v } FROM High WITH ?v := High.?v
"""


@pytest.mark.spark
def test_jobs_have_names_and_a_logger_gets_them(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller's own names are restored."""
    (tmp_path / "r.dotr").write_text(RULES, encoding="utf-8")
    lines = (json.dumps({"time": t, "graph": f"<urn:x:o> <urn:x:val> {t} ."}) for t in range(4))
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "out").mkdir()
    context, program = spark.sparkContext, load_program([str(tmp_path / "r.dotr")], read_rules_text)
    context.setLocalProperty("spark.jobGroup.id", "mine")
    try:
        log = open_log([str(tmp_path / "a.jsonl")], SourceOptions())
        with caplog.at_level(logging.INFO, "dotr.spark"):
            SparkRunner().run(Request(Deployment(program), log), str(tmp_path / "out"), quiet)
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
        assert context.getLocalProperty("spark.job.description") is None
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    names = ["dotr read r.dotr", "dotr detect r.dotr"]
    assert all(context.statusTracker().getJobIdsForGroup(name) for name in names)
    reported = [record.getMessage().partition(" after ")[0] for record in caplog.records]
    assert reported == [f"{name}: {what}" for name in names for what in ("begins", "ends")]


@pytest.mark.spark
def test_sparks_own_words_stay_away_and_private_events_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "r.dotr").write_text(RULES, encoding="utf-8")
    lines = (json.dumps({"time": t, "graph": f"<urn:x:o> <urn:x:val> {t} ."}) for t in range(4))
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    batch = ["batch", "r.dotr", "a.jsonl", "--engine", "spark", "--master", "local[1]", "--format", "csv"]
    ran = subprocess.run(
        [sys.executable, "-m", "dotr", *batch, "--out", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    reported = ran.stderr.splitlines()
    assert all(line.startswith(("dotr:", " ", "Top")) for line in reported), reported
    parts = [part.read_text().splitlines() for part in sorted((tmp_path / "out").glob("*.csv"))]
    assert {part[0] for part in parts} == {"time,rule,id,v"}
    assert [row.split(",")[1] for part in parts for row in part[1:]] == ["Top", "Top"]
