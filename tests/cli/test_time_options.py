"""Options about times that are no instant as they stand mean the same to every verb that reads sources."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dotr.cli.main import run

RULES = """PREFIX : <urn:>
RULE S DEFINE { dotr_e a :S ; :x ?x } FROM Q := { SELECT ?x WHERE { ?x :v ?v } } WITH ?x := Q.?x
"""
LINES = [
    '{"time": "2026-10-25T02:30:00.1234567", "graph": "<urn:a> <urn:v> 1 ."}',
    '{"time": "2026-10-25T02:00:00/2026-10-25T04:00:00", "graph": "<urn:b> <urn:v> 1 ."}',
    '{"time": "2027-03-28T02:30:00", "graph": "<urn:c> <urn:v> 1 ."}',
]
GIVEN = (
    *("--time-zone", "Europe/Berlin", "--ambiguous-time", "infer"),
    *("--nonexistent-time", "forward", "--interval", "begin"),
)
FOUND = ["2026-10-25T00:30:00.123456Z", "2026-10-25T01:00:00Z", "2027-03-28T01:00:00Z"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "r.dotr").write_text(RULES)
    (tmp_path / "in.jsonl").write_text("\n".join(LINES) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def out(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    found = run(list(arguments))
    said = capsys.readouterr()
    assert found == code, said.err
    return said.out, said.err


def test_run_takes_them_and_counts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, said = out(capsys, "run", "r.dotr", "in.jsonl", *GIVEN, "--format", "jsonl")
    assert [json.loads(line)["time"] for line in text.splitlines()] == FOUND
    assert "1 time cut to the microsecond, the first at in.jsonl:1" in said
    assert "2 times of a repeated hour (1 earlier, 1 later)" in said
    assert "1 time of a skipped hour moved forward" in said
    _, said = out(capsys, "run", "r.dotr", "in.jsonl", *GIVEN, "--summary", "json")
    assert json.loads(said.splitlines()[-1])["changed"] == {"cut": 1, "earlier": 1, "later": 1, "forward": 1}
    _, said = out(capsys, "run", "r.dotr", "in.jsonl", *GIVEN, "--sub-microsecond", "refuse", code=3)
    assert "D2105" in said


def test_other_verbs_take_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, _ = out(capsys, "times", "in.jsonl", *GIVEN, "--format", "json")
    assert json.loads(text)["changed"] == {"cut": 1, "earlier": 1, "later": 1, "forward": 1}
    out(capsys, "convert", "in.jsonl", *GIVEN, "-o", "out.jsonl", "-q")
    written = [json.loads(line)["time"] for line in (folder / "out.jsonl").read_text().splitlines()]
    assert written == FOUND
    text, _ = out(capsys, "explain", "r.dotr", "in.jsonl", *GIVEN, "--at", FOUND[1])
    assert ":b :v 1   in.jsonl:2" in text
    out(capsys, "check", "r.dotr", "--sample", "in.jsonl", *GIVEN)
    (folder / "q.rq").write_text("SELECT ?x { ?x <urn:v> ?v }")
    (folder / "held.jsonl").write_text("\n".join(LINES).replace('"graph"', '"insert"') + "\n")
    text, _ = out(capsys, "watch", "q.rq", "held.jsonl", *GIVEN)
    assert FOUND[1] in text


def test_a_feed_takes_them_and_goes_on_in_the_hour(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out(capsys, "deploy", "r.dotr")
    _, said = out(capsys, "feed", "in.jsonl", *GIVEN, "-o", "events.jsonl")
    assert "2 times of a repeated hour" in said
    events = (folder / "events.jsonl").read_text()
    assert [json.loads(line)["time"] for line in events.splitlines()] == FOUND


def test_a_batch_takes_them(folder: Path) -> None:
    command = [sys.executable, "-m", "dotr", "batch", "r.dotr", "in.jsonl", "--out", "out"]
    command += ["--engine", "local"]
    ran = subprocess.run([*command, *GIVEN], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    events = "".join(file.read_text() for file in sorted((folder / "out").glob("*.jsonl")))
    assert sorted(json.loads(line)["time"] for line in events.splitlines()) == FOUND
    assert "1 time cut to the microsecond, the first at in.jsonl:1" in ran.stderr


def test_map_check_takes_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.map").write_text('# time: ts|datetime("iso")\n<urn:x> <urn:v> 1 .\n')
    (folder / "t.csv").write_text("ts\n2026-10-25T02:30:00\n2026-10-25T02:00:00\n")
    text, _ = out(capsys, "map", "check", "t.map", "t.csv", *GIVEN)
    assert "2026-10-25T00:30:00Z" in text
    assert "2026-10-25T01:00:00Z" in text


def test_a_graph_that_is_late_by_the_choice_of_an_hour_names_the_other_choice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = ["01:59:00", "02:30:00", "02:50:00", "02:10:00", "03:00:00"]
    lines = [f'{{"time": "2026-10-25T{time}", "graph": "<urn:a> <urn:v> 1 ."}}' for time in times]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    zone = ("--time-zone", "Europe/Berlin", "--ambiguous-time")
    _, said = out(capsys, "run", "r.dotr", "in.jsonl", *zone, "earlier", code=3)
    assert "D2301" in said
    assert "--ambiguous-time infer" in said
    out(capsys, "run", "r.dotr", "in.jsonl", *zone, "infer")
    (folder / "in.jsonl").write_text("\n".join(reversed(lines[:2])) + "\n")
    _, said = out(capsys, "run", "r.dotr", "in.jsonl", "--time-zone", "UTC", code=3)
    assert "infer" not in said


def test_a_property_of_the_time_has_a_prefix_that_everybody_knows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.nt").write_text(
        '<urn:a> <https://uri.etsi.org/ngsi-ld/observedAt> "2026-01-01T00:00:00Z" .\n'
    )
    out(capsys, "convert", "a.nt", "--time-path", "ngsi-ld:observedAt", "-q", "-o", "x.jsonl")
    assert json.loads((folder / "x.jsonl").read_text())["time"] == "2026-01-01T00:00:00Z"
    _, said = out(capsys, "convert", "a.nt", "--time-path", "nobody:knows", "-o", "y.jsonl", code=2)
    assert "is not a prefix that dotr knows" in said


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00Z/PT5M", "2026-01-01T00:00:00Z/..", "../2026-01-01T00:00:00Z"]
)
def test_an_interval_of_another_form_says_which_one_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (folder / "in.jsonl").write_text(f'{{"time": "{text}", "graph": ""}}\n')
    _, said = out(capsys, "convert", "in.jsonl", "--interval", "begin", "-o", "x.jsonl", code=3)
    assert "write begin/end, both as dateTimes" in said
    (folder / "a.nt").write_text(f'<urn:a> <http://www.w3.org/ns/sosa/resultTime> "{text}" .\n')
    _, said = out(capsys, "convert", "a.nt", "--interval", "begin", "-o", "x.jsonl", code=3)
    assert "write begin/end, both as dateTimes" in said
