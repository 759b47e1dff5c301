"""What a batch on Spark puts on a terminal, and what of private rules it writes: as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RULES = """PREFIX : <urn:x:>
PRIVATE RULE High
DEFINE { dotr_h a :High ; :v ?v }
FROM H := { SELECT ?v { ?o :val ?v FILTER(?v > 1) } }
WITH ?v := H.?v
RULE Top DEFINE { dotr_t a :Top ; :v ?v } FROM High WITH ?v := High.?v
"""


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
