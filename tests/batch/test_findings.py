"""What workers find in instants that are not in error reaches whoever started them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.work import first_of_each, packed, unpacked
from dotr.core.deployment import Deployment
from dotr.errors import Diagnostic, Severity
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from tests.batch.test_local import quiet
from tests.cli import test_findings as story

NOTE = Diagnostic("D2602", "m", label="l", notes=("n",), hint="h", severity=Severity.INFO, place="@ 1")


def test_a_finding_crosses_as_it_is() -> None:
    assert unpacked(packed(NOTE)) == NOTE


def test_of_several_workers_the_earliest_instant_counts() -> None:
    texts = [(3, NOTE, "@ 3"), (1, NOTE, "@ 1")]
    found = first_of_each((time, json.dumps({**packed(note), "place": at})) for time, note, at in texts)
    assert [one.place for one in found] == ["@ 1"]


@pytest.mark.spark
def test_what_spark_finds_in_a_log_is_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    story.write(story.RULES)
    Path("out").mkdir()
    program = load_program(["r.dotr"], read_rules_text)
    log = open_log(["log.jsonl"], SourceOptions(), fail=True)
    request = Request(Deployment(program, read_background(["schema.ttl"])), log)
    report = SparkRunner().run(request, str(Path("out").resolve()), quiet)
    assert [(d.code, d.place) for d in report.findings] == [("D2602", "@ 1")]
