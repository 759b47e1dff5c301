"""`dotr batch` as a user meets it, on the local engine: files, refusals, errors, what is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from dotr import __version__
from dotr.cli.main import main
from dotr.events import Clock
from dotr.io.decode.parquet import ArchiveWriter
from tests.batch.test_local import Serial

RULES = """PREFIX : <urn:x:>
RULE Fire
DEFINE { dotr_id a :Fire ; :at_room ?room }
FROM Smoke := { SELECT ?room WHERE { ?o :smoke ?room } }
AND LAST Heat := { SELECT ?room WHERE { ?o :heat ?room } } WITHIN 5 s FROM Smoke ON Heat.?room = Smoke.?room
WITH ?room := Smoke.?room
"""
LOG = [
    (3, "<urn:x:b> <urn:x:smoke> <urn:x:hall> ."),
    (1, "<urn:x:a> <urn:x:heat> <urn:x:kitchen> ."),
    (4, "<urn:x:c> <urn:x:smoke> <urn:x:kitchen> ."),
    (9, "<urn:x:d> <urn:x:smoke> <urn:x:kitchen> ."),
]


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.batch.local._pool", Serial)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "fire.dotr"
    path.write_text(RULES, encoding="utf-8")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A folder of one JSON lines file out of order, one Turtle file, one Parquet file."""
    folder = tmp_path / "log"
    folder.mkdir()
    lines = [json.dumps({"time": time, "graph": graph}) for time, graph in LOG[:2]]
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "4.ttl").write_text(LOG[2][1], encoding="utf-8")
    archive = ArchiveWriter(str(folder / "z.parquet"), Clock())
    archive.add(9_000_000, [("<urn:x:d>", "<urn:x:smoke>", "<urn:x:kitchen>")])
    archive.close()
    return folder


def dotr(*arguments: object) -> Result:
    """Run the command line; the exit code is the result's."""
    return CliRunner().invoke(_entry, [str(a) for a in arguments])


def _entry_function() -> Any:
    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def entry(arguments: tuple[str, ...]) -> None:
        main(list(arguments))

    return entry


_entry = _entry_function()


def batch(rules: Path, log: Path, out: Path, *more: object) -> Result:
    return dotr("batch", rules, "--log", log, "--out", out, "--engine", "local", *more)


def lines(out: Path, pattern: str = "part-*.jsonl") -> list[str]:
    return sorted(line for file in out.glob(pattern) for line in file.read_text("utf-8").splitlines())


def test_every_form_of_log_is_read_in_time_order(rules: Path, log: Path, tmp_path: Path) -> None:
    result = batch(rules, log, tmp_path / "out")
    assert result.exit_code == 0, result.output
    events = [json.loads(line) for line in lines(tmp_path / "out")]
    assert [(e["time"], e["match"]["Heat"]["time"]) for e in events] == [(4, 1)]
    assert not (tmp_path / "out.part").exists()


def test_the_run_file_says_what_ran(rules: Path, log: Path, tmp_path: Path) -> None:
    batch(rules, log, tmp_path / "out")
    run = json.loads((tmp_path / "out" / "_dotr_run.json").read_text("utf-8"))
    assert (run["engine"], run["graphs"], run["instants"], run["first"], run["last"]) == ("local", 4, 4, 1, 9)
    assert (run["events"], run["refused"], run["dropped"]) == ({"Fire": 1}, 0, 0)
    assert run["strategy"] == ["`Fire`: by key ?room and by time (overlap 5 s)"]
    assert set(run["seconds"]) == {"read", "extract", "detect"}
    assert len(run["rules"]["Fire"]) == 32


def test_the_literal_reading_beside_agrees(rules: Path, log: Path, tmp_path: Path) -> None:
    result = batch(rules, log, tmp_path / "out", "--verify", "--materialize", "all")
    assert result.exit_code == 0, result.output
    assert len(lines(tmp_path / "out")) == 1


@pytest.mark.parametrize(
    ("engine", "finds", "what"),
    [
        (
            "dotr.core.instant.Instants.entered",
            lambda _, due, place, out: out.known.extend((t, g[0], {}, True) for t, g in due) or len(due),
            "query `Fire.Smoke` at",
        ),
        (
            "dotr.detect.detector.TeslaDetector.detected",
            lambda _, instants, *_counts, every: ((place, []) for place, _ in enumerate(instants)),
            "rule `Fire` at",
        ),
    ],
)
def test_a_difference_to_the_literal_reading_ends_the_run(
    rules: Path,
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    finds: Callable[..., object],
    what: str,
) -> None:
    monkeypatch.setattr(engine, finds)
    result = batch(rules, log, tmp_path / "out", "--verify")
    assert result.exit_code == 4
    assert "D4090" in result.output
    assert what in result.output
    assert not (tmp_path / "out").exists()


def test_an_output_that_exists_is_refused_and_stays(rules: Path, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    batch(rules, log, out)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert batch(rules, log, out).exit_code == 5
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_overwrite_replaces_an_earlier_output_and_nothing_else(
    rules: Path, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    batch(rules, log, out)
    assert batch(rules, log, out, "--format", "nquads", "--overwrite").exit_code == 0
    assert [file.suffix for file in sorted(out.iterdir())] == [".json", ".nq"]
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.txt").write_text("years of work", encoding="utf-8")
    assert batch(rules, log, theirs, "--overwrite").exit_code == 5
    assert (theirs / "thesis.txt").read_text("utf-8") == "years of work"


def test_quads_and_parquet_have_the_events_of_the_lines(rules: Path, log: Path, tmp_path: Path) -> None:
    for form in ("jsonl", "nquads", "parquet"):
        assert batch(rules, log, tmp_path / form, "--format", form).exit_code == 0
    (event,) = [json.loads(line) for line in lines(tmp_path / "jsonl")]
    quads = lines(tmp_path / "nquads", "part-*.nq")
    assert any(
        line.startswith(f"<{event['id']}> <http://www.w3.org/ns/prov#generatedAtTime>") for line in quads
    )
    (row,) = pq.read_table(tmp_path / "parquet").to_pylist()
    assert (row["time"], row["rule"], row["id"], row["graph"]) == (4, "Fire", event["id"], event["graph"])
    assert row["bindings"] == [("room", "<urn:x:kitchen>")]
    assert json.loads(row["match"]) == event["match"]


@pytest.mark.parametrize("bad", ["fail", "skip", "file"])
def test_a_corrupt_file_meets_the_policy(rules: Path, log: Path, tmp_path: Path, bad: str) -> None:
    (log / "5.ttl").write_text("<urn:x:c> <urn:x:smoke> nonsense nonsense", encoding="utf-8")
    out, letters = tmp_path / "out", tmp_path / "letters.jsonl"
    policy = f"file={letters}" if bad == "file" else bad
    result = batch(rules, log, out, "--on-error", policy)
    if bad == "fail":
        assert result.exit_code == 3
        assert "5.ttl:1" in result.output
        assert not out.exists()
        assert not (tmp_path / "out.part").exists()
        return
    assert result.exit_code == 0, result.output
    assert len(lines(out)) == 1
    assert json.loads((out / "_dotr_run.json").read_text("utf-8"))["refused"] == 1
    if bad == "file":
        (letter,) = map(json.loads, letters.read_text("utf-8").splitlines())
        assert letter["place"].startswith(str(log / "5.ttl"))
        assert "nonsense" in letter["document"]


def test_two_kinds_of_time_in_one_log_are_refused(rules: Path, log: Path, tmp_path: Path) -> None:
    (log / "2026-01-01T00-00-00Z.ttl").write_text("<urn:x:c> <urn:x:smoke> <urn:x:hall> .", encoding="utf-8")
    result = batch(rules, log, tmp_path / "out")
    assert result.exit_code == 3
    assert "D2102" in result.output


def test_a_rule_that_runs_in_one_task_says_so(rules: Path, log: Path, tmp_path: Path) -> None:
    rules.write_text(RULES.replace("ON Heat.?room = Smoke.?room", "") + "CONSUMING Heat", encoding="utf-8")
    result = batch(rules, log, tmp_path / "out")
    assert result.exit_code == 0
    assert "warning[D4126]: detection of `Fire` runs in one task" in result.output


def test_an_empty_log_gives_an_empty_finished_output(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("", encoding="utf-8")
    assert batch(rules, tmp_path / "none.jsonl", tmp_path / "out").exit_code == 0
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["_dotr_run.json"]


def test_an_output_of_quads_is_a_log(rules: Path, log: Path, tmp_path: Path) -> None:
    batch(rules, log, tmp_path / "out", "--format", "nquads")
    (tmp_path / "again.dotr").write_text(
        "RULE Again DEFINE { dotr_a a <urn:x:A> } FROM F := { SELECT ?f WHERE { ?f a <urn:x:Fire> } }",
        encoding="utf-8",
    )
    assert batch(tmp_path / "again.dotr", tmp_path / "out", tmp_path / "second").exit_code == 0
    assert [json.loads(line)["time"] for line in lines(tmp_path / "second")] == [4]


def test_what_is_not_installed_has_no_version(
    rules: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout that nobody installed has no metadata, and the local engine needs no pyspark."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("dotr.cli.batch_run.version", missing)
    assert batch(rules, log, tmp_path / "out").exit_code == 0
    versions = json.loads((tmp_path / "out" / "_dotr_run.json").read_text(encoding="utf-8"))["versions"]
    assert versions["dotr"] == __version__
    assert (versions["pyspark"], versions["pyarrow"]) == (None, None)
