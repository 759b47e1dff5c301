"""The name of an output says its format: what is written is that, or nothing is."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dotr.cli.explain import refuse_format
from dotr.errors import UsageError
from dotr.io.decode.documents import read_bytes
from tests.cli.conftest import HOT, SMOKE, Dotr

TWO = """PREFIX : <http://example.org/building#>
RULE Hot DEFINE { dotr_x a :Hot } FROM T := { SELECT ?r ?v WHERE { ?r a :TempReading ; :val ?v } }
WITH ?r := T.?r, ?note := CONCAT("a, \\"b\\"\\n", STR(T.?v)), ?time := T.time
PRIVATE RULE Inner DEFINE { } FROM Smoky WITH ?hidden := Smoky.time
RULE Smoky DEFINE { dotr_x a :Smoky }
FROM S := { SELECT ?r ?v WHERE { ?r a :SmokeReading OPTIONAL { ?r :val ?v } } }
WITH ?v := COALESCE(S.?v, "none"@en), ?r := S.?r
RULE After DEFINE { dotr_x a :After } FROM Inner
"""
HEADER = "time,rule,id,r,note,?time,v"


@pytest.fixture
def two(dotr: Dotr) -> Dotr:
    Path("two.dotr").write_text(TWO)
    return dotr


def test_a_csv_file_has_a_column_for_every_variable_of_every_public_rule(two: Dotr) -> None:
    assert two("run", "two.dotr", "events", "-o", "x.csv").code == 0
    text = Path("x.csv").read_text()
    assert text.splitlines()[0] == HEADER
    rows = list(csv.reader(text.splitlines(keepends=True)))[1:]
    assert [row[:2] for row in rows] == [["10", "Hot"], ["12", "Smoky"], ["12", "After"]]
    assert rows[0][3:] == ["http://example.org/building#r1", 'a, "b"\n70', "10", ""]
    assert rows[1][3:] == ["http://example.org/building#r2", "", "", "none"]
    assert two("run", "two.dotr", "events", "--format", "csv").out == text


def test_a_parquet_file_has_the_events_of_the_json_lines(two: Dotr) -> None:
    lines = [json.loads(line) for line in two("run", "two.dotr", "events").out.splitlines()]
    assert two("run", "two.dotr", "events", "-o", "x.parquet").code == 0
    rows = pq.read_table("x.parquet").to_pylist()
    for key in ("time", "rule", "id", "graph"):
        assert [row[key] for row in rows] == [line[key] for line in lines]
    assert [json.loads(row["match"]) for row in rows] == [line["match"] for line in lines]
    assert [[name for name, _ in row["bindings"]] for row in rows] == [
        list(line["bindings"]) for line in lines
    ]


def test_a_parquet_file_without_events_is_one(two: Dotr) -> None:
    Path("none.dotr").write_text(TWO.replace(":TempReading", ":Other").replace(":SmokeReading", ":Other"))
    assert two("run", "none.dotr", "events", "-o", "x.parquet").code == 0
    assert pq.read_table("x.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        ("run", "x.ttl"), ("run", "x.nt"), ("run", "x.json"), ("run", "x.parquet.gz"), ("run", "x.jsonl.bz2"),
        ("run", "x.json.zst"), ("feed", "x.ttl"), ("feed", "x.jelly.gz"), ("batch", "x.jsonl.gz"),
        ("query", "x.trig"), ("query", "x.ttl"), ("query", "x.jelly"),
        ("batch", "x.ttl"), ("batch", "x.xlsx"),
    ],
)  # fmt: skip
def test_a_name_of_a_format_that_is_not_written_is_refused_with_those_that_are(
    two: Dotr, verb: str, name: str
) -> None:
    Path("q.rq").write_text("SELECT * WHERE { ?s ?p ?o }")
    two("deploy", "two.dotr")
    ran = {
        "run": lambda: two("run", "two.dotr", "events", "-o", name),
        "feed": lambda: two("feed", "events", "-o", name),
        "query": lambda: two("query", "two.dotr", "q.rq", "-o", name),
        "batch": lambda: two("batch", "two.dotr", "events", "--engine", "local", "--out", name),
    }[verb]()
    assert ran.code == 2
    assert f"error[D4151]: dotr {verb} does not write `{name}`" in ran.err
    assert "jsonl (.jsonl)" in ran.err
    assert not Path(name).exists()


@pytest.mark.parametrize("name", ["x.gz", "x.jsonl.zst"])
@pytest.mark.parametrize("verb", ["run", "feed"])
def test_what_is_not_text_is_refused_behind_a_name_that_says_it_is_compressed(
    two: Dotr, verb: str, name: str
) -> None:
    two("deploy", "two.dotr")
    rules = ["two.dotr"] if verb == "run" else []
    ran = two(verb, *rules, "events", "--format", "parquet", "-o", name)
    assert (ran.code, f"error[D4151]: dotr {verb} does not write parquet to `{name}`" in ran.err) == (2, True)
    assert not Path(name).exists()
    assert two(verb, *rules, "events", "--format", "jsonl", "-o", name).code == 0
    assert read_bytes(name).startswith(b"{")


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("name", ["x.jsonl", "x.txt", "x.nq", "x.trig", "x.csv", "x", "x.JSONL"])
def test_text_is_compressed_if_the_name_says_so(two: Dotr, name: str, ending: str) -> None:
    packed = name + (ending if name.islower() else ending.upper())
    for output in (name, packed):
        assert two("run", "two.dotr", "events", "-o", output).code == 0
    assert read_bytes(packed) == Path(name).read_bytes() != Path(packed).read_bytes()
    assert not Path(f"{packed}.part").exists()
    two("deploy", "two.dotr")
    assert two("feed", "events", "-o", f"fed{name}", "-o", f"fed{packed}", "--commit-graphs", "1").code == 0
    assert read_bytes(f"fed{packed}") == Path(f"fed{name}").read_bytes() == Path(name).read_bytes()
    Path("more.jsonl").write_text(json.dumps({"time": 20, "graph": HOT}))
    assert two("feed", "more.jsonl", "-o", f"fed{name}", "-o", f"fed{packed}").code == 0
    assert read_bytes(f"fed{packed}") == Path(f"fed{name}").read_bytes() != Path(name).read_bytes()


def test_another_head_is_seen_behind_compression(two: Dotr) -> None:
    two("deploy", "two.dotr")
    for name in ("x.csv.gz", "x.csv.zst"):
        assert two("feed", "events", "-o", name).code == 0
        Path("two.dotr").write_text(TWO.replace("?note :=", f"?{name[6:]} :="))
        assert two("deploy", "two.dotr").code == 0
        refused = two("feed", "events", "-o", name)
        assert (refused.code, "D5212" in refused.err, HEADER in refused.err) == (5, True, name == "x.csv.gz")


def test_a_compressed_output_can_be_read_when_a_run_did_not_finish(two: Dotr) -> None:
    Path("log.jsonl").write_text(json.dumps({"time": 1, "graph": HOT}) + "\n" + '{"time": 2}\n')
    for name in ("x.jsonl", "x.jsonl.gz", "x.jsonl.zst"):
        ran = two("run", "two.dotr", "log.jsonl", "-o", name, "--on-error", "fail")
        assert (ran.code, f"what was emitted so far is in {name}.part" in ran.err) == (3, True)
        assert not Path(name).exists()
    assert (
        read_bytes("x.jsonl.gz.part") == read_bytes("x.jsonl.zst.part") == Path("x.jsonl.part").read_bytes()
    )


def test_an_output_without_events_is_an_empty_compressed_file(two: Dotr) -> None:
    Path("none.dotr").write_text(TWO.replace(":TempReading", ":Other").replace(":SmokeReading", ":Other"))
    for name in ("x.jsonl.gz", "x.jsonl.zst"):
        assert two("run", "none.dotr", "events", "-o", name).code == 0
        assert Path(name).read_bytes()
        assert read_bytes(name) == b""


def test_answers_are_compressed_too(two: Dotr) -> None:
    Path("q.rq").write_text("SELECT * WHERE { ?s ?p ?o }")
    for name in ("x.csv", "x.csv.gz"):
        assert two("query", "two.dotr", "q.rq", "-o", name).code == 0
    assert read_bytes("x.csv.gz") == Path("x.csv").read_bytes()


def test_a_format_that_is_asked_for_goes_before_the_name(two: Dotr) -> None:
    assert two("run", "two.dotr", "events", "-o", "x.ttl", "--format", "trig").code == 0
    assert Path("x.ttl").read_text().startswith("PREFIX ")


def test_parquet_needs_a_file(two: Dotr) -> None:
    ran = two("run", "two.dotr", "events", "--format", "parquet")
    assert (ran.code, ran.out) == (2, "")
    assert "dotr run does not write Parquet to a stream" in ran.err


@pytest.mark.parametrize("format_", ["jsonl", "nquads", "trig", "csv"])
def test_a_batch_of_positional_logs_writes_what_run_writes(two: Dotr, format_: str) -> None:
    ending = {"jsonl": "jsonl", "nquads": "nq", "trig": "trig", "csv": "csv"}[format_]
    out = f"out.{ending}"
    ran = two("batch", "two.dotr", "events/10.ttl", "events/12.ttl", "--engine", "local", "--out", out)
    assert ran.code == 0
    parts = [path.read_text() for path in sorted(Path(out).glob("part-*"))]
    assert {path.suffix for path in Path(out).glob("part-*")} == {f".{ending}"}
    whole = two("run", "two.dotr", "events", "--format", format_).out
    head = {"csv": f"{HEADER}\n", "trig": whole[: whole.index("<urn:dotr")] if format_ == "trig" else ""}
    shown = head.get(format_, "")
    assert all(part.startswith(shown) for part in parts)
    of_parts = "".join(part.removeprefix(shown) for part in parts)
    assert sorted(of_parts.splitlines()) == sorted(whole.removeprefix(shown).splitlines())


def test_a_batch_without_logs_says_how_to_name_them(two: Dotr) -> None:
    ran = two("batch", "two.dotr", "--engine", "local", "--out", "out")
    assert ran.code == 2
    assert "name one or more logs" in ran.err


def test_a_feed_writes_parquet_as_a_folder_with_a_part_a_commit(two: Dotr) -> None:
    two("deploy", "two.dotr")
    assert two("feed", "events", "-o", "x.parquet", "--commit-graphs", "1").code == 0
    first = sorted(path.name for path in Path("x.parquet").iterdir())
    Path("x.parquet/part-000099.parquet").write_bytes(b"left by a crash")
    Path("more.jsonl").write_text(
        json.dumps({"time": 20, "graph": HOT}) + "\n" + json.dumps({"time": 21, "graph": SMOKE})
    )
    assert two("feed", "more.jsonl", "-o", "x.parquet").code == 0
    names = sorted(path.name for path in Path("x.parquet").iterdir())
    assert names[: len(first)] == first == [f"part-{n:06}.parquet" for n in range(len(first))]
    assert len(names) == len(first) + 1
    rows = [row for name in names for row in pq.read_table(f"x.parquet/{name}").to_pylist()]
    assert [row["time"] for row in rows] == [10, 12, 12, 20, 21, 21]
    assert "parquet" in two("status").out
    Path(f"x.parquet/{names[0]}").unlink()
    assert "error[D5207]" in two("feed", "more.jsonl", "-o", "x.parquet").err


def test_a_folder_that_is_not_the_deployments_takes_no_parts(two: Dotr) -> None:
    two("deploy", "two.dotr")
    Path("x.parquet").mkdir()
    Path("x.parquet/mine.txt").write_text("mine")
    ran = two("feed", "events", "-o", "x.parquet", "--overwrite")
    assert ran.code == 5
    assert "error[D5001]" in ran.err


def test_a_csv_file_whose_header_would_change_is_not_continued(two: Dotr) -> None:
    two("deploy", "two.dotr")
    assert two("feed", "events", "-o", "x.csv").code == 0
    before = Path("x.csv").read_text()
    assert before.splitlines()[0] == HEADER
    Path("more.jsonl").write_text(json.dumps({"time": 20, "graph": HOT}))
    assert two("feed", "more.jsonl", "-o", "x.csv").code == 0
    after = Path("x.csv").read_text()
    assert after.startswith(before)
    assert after.count(HEADER) == 1
    Path("two.dotr").write_text(TWO.replace("?note :=", "?remark :="))
    two("deploy", "two.dotr")
    Path("more.jsonl").write_text(json.dumps({"time": 30, "graph": HOT}))
    ran = two("feed", "more.jsonl", "-o", "x.csv")
    assert ran.code == 5
    assert "error[D5212]: the head of `x.csv` is not that of these rules" in ran.err
    assert Path("x.csv").read_text() == after


def test_only_json_lines_have_a_place_for_a_proof() -> None:
    refuse_format("jsonl")
    with pytest.raises(UsageError):
        refuse_format("turtle")


@pytest.mark.parametrize("verb", ["run", "feed"])
def test_a_pipe_is_a_stream_whatever_its_name_says(two: Dotr, verb: str) -> None:
    os.mkfifo("events.parquet")
    arguments = ("two.dotr",) if verb == "run" else ()
    if verb == "feed":
        assert two("deploy", "two.dotr").code == 0
    refused = two(verb, *arguments, "events", "-o", "events.parquet")
    assert (refused.code, "error[D4151]" in refused.err) == (2, True)
