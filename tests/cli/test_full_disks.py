"""A disk that is full while Parquet is written: D4201 that names the output, and nothing half-written."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

RULES = """PREFIX : <urn:x:>
RULE Hot DEFINE { dotr_h a :Hot ; :v ?v } FROM H := { SELECT ?v { ?o :val ?v } } WITH ?v := H.?v
"""


def _small_files() -> None:
    """Files may have 64 KiB: writing more fails as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "r.dotr").write_text(RULES)
    rows = [{"time": i, "graph": f"<urn:o{i}> <urn:x:val> {i * 7919 % 104729} ."} for i in range(12_000)]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["convert", "s.jsonl"], "o.parquet"),
        (["convert", "s.jsonl"], "folder/"),
        (["run", "r.dotr", "s.jsonl"], "o.parquet"),
    ],
)
def test_a_full_disk_is_named_with_the_output(folder: Path, command: list[str], output: str) -> None:
    there = sorted(path.name for path in folder.iterdir())
    ran = subprocess.run(
        [sys.executable, "-m", "dotr", *command, "-o", output],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=_small_files,
    )
    assert ran.returncode == 4, ran.stderr
    assert f"error[D4201]: cannot write {output}: file too large" in ran.stderr
    assert "D4999" not in ran.stderr
    assert "standard output" not in ran.stderr
    assert sorted(path.name for path in folder.iterdir()) == there
