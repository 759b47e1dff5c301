"""`--until`: time goes on behind the last graph, in a run, a batch and a test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dotr.cli.main import group
from dotr.errors import UsageError

RULES = """PREFIX : <http://example.org/>
RULE Ticks
DEFINE { dotr_x a :Tick ; :n ?n }
FROM EVERY 10 s AS Tick
AND COUNT(*) AS ?n OVER Row := { SELECT ?v WHERE { ?o :v ?v } } WITHIN 20 s FROM Tick
WITH ?n := ?n
"""
STREAM = '{"time": 5, "graph": "<a:a> <http://example.org/v> 1 ."}\n{"time": 15, "graph": ""}\n'


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rules.dotr").write_text(RULES, encoding="utf-8")
    Path("stream.jsonl").write_text(STREAM, encoding="utf-8")
    return tmp_path


def times(text: str) -> list[tuple[int, str]]:
    events = map(json.loads, text.splitlines())
    return [(event["time"], event["bindings"]["n"]["value"]) for event in events]


def test_a_run_goes_on_until_a_time(files: Path) -> None:
    run = ["run", "rules.dotr", "stream.jsonl", "--quiet", "--format", "jsonl"]
    assert times(CliRunner().invoke(group, run).stdout) == [(10, "1")]
    found = CliRunner().invoke(group, [*run, "--until", "40"])
    assert times(found.stdout) == [(10, "1"), (20, "1"), (30, "0"), (40, "0")]
    assert times(CliRunner().invoke(group, [*run, "--until", "7"]).stdout) == [(10, "1")]


def test_a_batch_goes_on_until_a_time(files: Path) -> None:
    batch = ["batch", "rules.dotr", "stream.jsonl", "--engine", "local", "--out", "out", "--quiet"]
    assert CliRunner().invoke(group, [*batch, "--until", "40"]).exit_code == 0
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(Path("out").glob("part-*")))
    assert sorted(times(text)) == [(10, "1"), (20, "1"), (30, "0"), (40, "0")]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("2026-01-01T00:00:00Z", "is of another kind than the times of the stream"),
        ("soon", "D4111"),
    ],
)
def test_a_time_that_is_none_of_the_streams(files: Path, written: str, message: str) -> None:
    found = CliRunner().invoke(group, ["run", "rules.dotr", "stream.jsonl", "--until", written])
    assert isinstance(found.exception, UsageError)
    assert message in str(found.exception)


def test_a_test_goes_on_until_a_time(files: Path) -> None:
    Path("rules.test.yaml").write_text(
        """rules: rules.dotr
tests:
  - name: the count falls
    stream: [{ at: 5, graph: '<a:a> <http://example.org/v> 1 .' }]
    until: 30
    expect:
      - { rule: Ticks, at: 10, n: 1 }
      - { rule: Ticks, at: 20, n: 1 }
      - { rule: Ticks, at: 30, n: 0 }
    only: true
""",
        encoding="utf-8",
    )
    found = CliRunner().invoke(group, ["test", "rules.test.yaml"])
    assert found.exit_code == 0, found.output
