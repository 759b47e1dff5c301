"""`dotr batch --format parquet --schema typed`: structs of values, in a folder for each rule and day."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from dotr.cli.main import run
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.events import Clock
from dotr.io.typed_events import TypedEventFolder
from dotr.lang import parse_program

RULES = """PREFIX : <urn:x:>
QUERY Hot := { SELECT ?room ?c WHERE { ?o :c ?c ; :room ?room FILTER(?c > 60) } }
RULE Fire DEFINE { dotr_e a :Fire ; :in ?room } FROM Hot WITH ?room := Hot.?room, ?c := Hot.?c
RULE Again DEFINE { dotr_e a :Again ; :n ?n } FROM Hot
AND COUNT(*) AS ?n OVER Near := Hot WITHIN 3 h FROM Hot ON Near.?room = Hot.?room
WITH ?n := ?n, ?at := Hot.time
"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def written(folder: Path, times: Sequence[Any]) -> None:
    (folder / "rules.dotr").write_text(RULES, encoding="utf-8")
    lines = []
    for n, time in enumerate(times):
        graph = (
            f'<urn:x:o{n}> <urn:x:c> "{55 + n}"^^<{INTEGER}> .\n<urn:x:o{n}> <urn:x:room> <urn:x:r{n % 2}> .'
        )
        lines.append(json.dumps({"time": time, "graph": graph}) + "\n")
    (folder / "log.jsonl").write_text("".join(lines), encoding="utf-8")


def batch(folder: Path, engine: str, *more: str) -> int:
    words = ["batch", str(folder / "rules.dotr"), str(folder / "log.jsonl"), "--out", str(folder / engine)]
    return run([*words, "--engine", engine, "-q", "--format", "parquet", "--schema", "typed", *more])


def rows(folder: Path) -> list[dict[str, Any]]:
    found = ds.dataset(str(folder), format="parquet", partitioning="hive").to_table().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def test_local_batches_write_typed_folders(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`--schema` was no option of `dotr batch`."""
    written(tmp_path, [f"2026-01-{1 + n // 12:02}T{n % 12:02}:00:00Z" for n in range(24)])
    assert batch(tmp_path, "local") == 0
    folders = {str(path.parent.relative_to(tmp_path / "local")) for path in tmp_path.rglob("*.parquet")}
    assert folders == {f"rule={r}/date=2026-01-0{d}" for r in ("Fire", "Again") for d in (1, 2)}
    names = [path.name for path in (tmp_path / "local").iterdir()]
    assert sorted(names) == ["_dotr_run.json", "rule=Again", "rule=Fire"]
    capfd.readouterr()
    assert (
        run(["run", str(tmp_path / "rules.dotr"), str(tmp_path / "log.jsonl"), "-q", "--format", "jsonl"])
        == 0
    )
    expected = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    found = rows(tmp_path / "local")
    assert [row["id"] for row in found] == sorted(event["id"] for event in expected)
    assert len(found) == 2 * 18
    fire = [row for row in found if row["rule"] == "Fire"]
    assert sorted(row["match"]["Hot"]["values"]["c"]["value"] for row in fire) == [
        str(n) for n in range(61, 79)
    ]
    again = [row for row in found if row["rule"] == "Again"]
    assert {row["bindings"]["n"] for row in again} == {1, 2}
    assert all(row["bindings"]["at"] == row["time"] for row in again)
    assert all(row["time"].date().isoformat() == str(row["date"]) for row in found)


def test_integer_times_have_folders_of_rules_alone(tmp_path: Path) -> None:
    written(tmp_path, range(20))
    assert batch(tmp_path, "local") == 0
    assert len(rows(tmp_path / "local")) == 2 * 14
    assert {path.parent.name for path in tmp_path.rglob("*.parquet")} == {"rule=Fire", "rule=Again"}


@pytest.mark.parametrize(
    ("more", "out", "message"),
    [(["--format", "jsonl"], "out", "D4151"), ([], "s3a://bucket/out", "typed parquet at a URI")],
)
def test_typed_folders_are_refused_where_they_cannot_be(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], more: list[str], out: str, message: str
) -> None:
    written(tmp_path, range(3))
    assert batch(tmp_path, "local", "--out", out, *more) == 2
    assert message.lower() in capfd.readouterr().err.lower()


def test_many_days_do_not_keep_as_many_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.io.typed_events._OPEN", 2)
    monkeypatch.setattr("dotr.io.typed_events._MANY", 7)
    program = parse_program(RULES)
    pipeline, days = Pipeline(Deployment(program)), 5
    pipeline.begin(Clock(integer=False))
    graph = [("<urn:x:o>", "<urn:x:c>", f'"70"^^<{INTEGER}>'), ("<urn:x:o>", "<urn:x:room>", "<urn:x:r>")]
    events = [e for n in range(45) for e in pipeline.push(n * days * 86_400_000_000 // 45, graph)]
    events += pipeline.finish()
    events.sort(key=lambda event: event.id)  # days alternate
    folder = TypedEventFolder(str(tmp_path), program, Clock(integer=False))
    for event in events:
        folder.add([event])
        assert len(folder._writers) <= 2
    folder.close()
    found = rows(tmp_path)
    assert len(found) == len({row["id"] for row in found}) == len(events) == 90
    assert {str(row["date"]) for row in found} == {str(date.fromordinal(719163 + day)) for day in range(days)}


@pytest.mark.spark
def test_both_engines_write_the_same_typed_events(spark: Any, tmp_path: Path) -> None:
    written(tmp_path, [f"2026-01-{1 + n // 12:02}T{n % 12:02}:00:00Z" for n in range(24)])
    assert batch(tmp_path, "local") == batch(tmp_path, "spark") == 0
    assert rows(tmp_path / "spark") == rows(tmp_path / "local")
    read = spark.read.parquet(str(tmp_path / "spark"))
    assert dict(read.dtypes)["date"] == "date"
    assert read.where("rule = 'Again' AND date = '2026-01-02'").selectExpr("max(bindings.n)").first() == (2,)
