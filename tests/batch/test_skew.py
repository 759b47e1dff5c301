"""A key that most facts have is named, and an even log says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Report, Request
from dotr.core.deployment import Deployment
from dotr.detect.partitioning import By
from dotr.io.sources import SourceOptions
from dotr.lang import parse_program
from tests.batch.test_local import Serial, quiet

RULES = """PREFIX : <urn:x:>
RULE Alarm
DEFINE { dotr_id a :Alarm ; :in ?room }
FROM Smoke := { SELECT ?room WHERE { ?o :smoke ?room } }
AND LAST Heat := { SELECT ?room WHERE { ?o :heat ?room } } WITHIN 4 s FROM Smoke ON Heat.?room = Smoke.?room
WITH ?room := Smoke.?room
"""


RANKED = tuple(room for room in range(64) for _ in range(64 // (room + 1)))
"""Room n as often as 1/(n + 1): the first has a fifth of all."""


@pytest.mark.parametrize(
    ("rooms", "reported"),
    [((0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3), True), (RANKED, True), (range(64), False)],
    ids=["most", "1/rank", "even"],
)
def test_a_heavy_key_is_named(
    rooms: range | tuple[int, ...], reported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.batch.work.LEAST", 100)
    lines = []
    for i in range(600):
        kind, room = ("heat", "smoke")[i % 2], rooms[i // 2 % len(rooms)]
        lines.append({"time": i, "graph": f"<urn:x:o> <urn:x:{kind}> <urn:x:room{room}> ."})
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    log = open_log([str(tmp_path / "log.jsonl")], SourceOptions())
    request = Request(Deployment(parse_program(RULES, "r.dotr")), log, By.KEY)
    report: Report = LocalRunner(4, Serial).run(request, str(tmp_path), quiet)
    assert report.events["Alarm"] > 100
    assert [finding.code for finding in report.findings] == ["D4136"] * reported
    if reported:
        (finding,) = report.findings
        assert "of the input of `Alarm`" in finding.message
        assert finding.label.startswith("?room = <urn:x:room0> in ")
