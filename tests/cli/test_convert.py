"""`dotr convert` keeps every graph and every time through every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dotr.io.conversion import TARGETS, numbered
from dotr.io.sources import Sources
from dotr.rdf.blanks import label_stream
from tests.cli.conftest import Dotr

LINES = [
    {"time": 3, "graph": '<urn:a> <urn:p> "x\\n\\u00e9"@EN, 01 .'},
    {"time": 3, "graph": "[] <urn:p> [ <urn:q> _:b ] . _:b <urn:r> 1.50 ."},
    {"time": 4, "graph": ""},
    {"time": 7, "graph": "<> <http://www.w3.org/ns/prov#generatedAtTime> 99 ."},
]


def contents(path: str) -> list[tuple[int, list[tuple[str, str, str]]]]:
    """Times and graphs, blank nodes labelled by content."""
    return [(graph.time, sorted(label_stream([graph.triples], graph.time)[0])) for graph in Sources([path])]


def test_blank_nodes_are_numbered_as_they_appear() -> None:
    triples = [("_:z", "<urn:p>", "_:a"), ("<urn:s>", "<urn:p>", "_:z")]
    assert numbered(triples, "g1b") == [("_:g1b0", "<urn:p>", "_:g1b1"), ("<urn:s>", "<urn:p>", "_:g1b0")]


@pytest.mark.parametrize("first", [*TARGETS, ".nq.gz"])
@pytest.mark.parametrize("second", [*TARGETS, ".jsonl.gz"])
def test_every_format_and_back_says_the_same(dotr: Dotr, first: str, second: str) -> None:
    Path("in.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    assert dotr("convert", "in.jsonl", "-o", f"a{first}").code == 0
    assert dotr("convert", f"a{first}", "-o", f"b{second}").code == 0
    assert contents(f"b{second}") == contents("in.jsonl")


@pytest.mark.parametrize("suffix", TARGETS)
def test_date_times_keep_their_kind_to_the_microsecond(dotr: Dotr, suffix: str) -> None:
    Path("in.jsonl").write_text('{"time":"2026-01-01T01:00:00.000001+01:00","graph":"<urn:a> <urn:p> 1 ."}')
    dotr("convert", "in.jsonl", "-o", f"a{suffix}")
    assert dotr("convert", f"a{suffix}", "-o", "b.jsonl").code == 0
    assert json.loads(Path("b.jsonl").read_text())["time"] == "2026-01-01T00:00:00.000001Z"


def test_integer_time_keeps_its_unit_in_an_archive(dotr: Dotr) -> None:
    Path("in.jsonl").write_text('{"time":1500,"graph":""}')
    dotr("convert", "in.jsonl", "--time-unit", "ms", "-o", "a.parquet")
    assert [graph.time for graph in Sources(["a.parquet"])] == [1_500_000]


def test_the_same_graphs_are_the_same_bytes(dotr: Dotr) -> None:
    Path("in.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    for suffix in (".nq", ".trig", ".ttl", ".jsonl", ".nq.gz"):
        dotr("convert", "in.jsonl", "-o", f"a{suffix}")
        dotr("convert", "in.jsonl", "-o", f"b{suffix}")
        assert Path(f"a{suffix}").read_bytes() == Path(f"b{suffix}").read_bytes()


def test_a_folder_becomes_one_archive_that_runs(dotr: Dotr) -> None:
    assert dotr("convert", "events", "-o", "log.parquet").code == 0
    assert '"rule":"Fire"' in dotr("run", "fire.dotr", "log.parquet").out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("events", "-o", "log.txt"), 2),
        (("events", "-o", "log.parquet.gz"), 2),
        (("events", "-o", "hdfs://host/archive"), 2),
        (("events", "-o", "building.ttl"), 5),
        (("nothing", "-o", "log.nq"), 3),
        (("events",), 2),
    ],
)
def test_what_cannot_be_converted_leaves_nothing_behind(
    dotr: Dotr, arguments: tuple[str, ...], code: int
) -> None:
    before = sorted(path.name for path in Path().iterdir())
    ran = dotr("convert", *arguments)
    assert ran.code == code
    assert "Traceback" not in ran.err
    assert sorted(path.name for path in Path().iterdir()) == before


def test_a_file_that_is_no_archive_is_reported(dotr: Dotr) -> None:
    Path("bad.parquet").write_text("nonsense")
    ran = dotr("convert", "bad.parquet", "-o", "out.nq")
    assert (ran.code, "D2017" in ran.err) == (3, True)


def test_an_archive_in_parts_is_what_many_tasks_read(dotr: Dotr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.io.decode.parquet.ROWS", 10)
    monkeypatch.setattr("dotr.io.decode.parquet.PART", 1)
    lines = [json.dumps({"time": i, "graph": f"<urn:a> <urn:p> {i} ."}) for i in range(35)]
    Path("in.jsonl").write_text("\n".join(lines))
    found = dotr("convert", "in.jsonl", "-o", "archive")
    assert found.code == 0
    assert "35 graphs to 4 files in archive" in found.err
    names = sorted(file.name for file in Path("archive").iterdir())
    assert names == ["_dotr_archive.json", *(f"part-{i:05}.parquet" for i in range(4))]
    times = [graph.time // 10**6 for name in names[1:] for graph in Sources([f"archive/{name}"])]
    assert times == list(range(35))
    assert contents("archive") == contents("in.jsonl")


def test_an_archive_in_parts_is_complete_or_not_there(dotr: Dotr) -> None:
    Path("in.jsonl").write_text('{"time":1,"graph":""}\nnonsense\n')
    before = sorted(file.name for file in Path().iterdir())
    assert dotr("convert", "in.jsonl", "-o", "archive/").code == 3
    assert sorted(file.name for file in Path().iterdir()) == before
    assert dotr("convert", "in.jsonl", "-o", "archive/", "--on-error", "skip").code == 0
    assert dotr("convert", "in.jsonl", "-o", "archive/", "--on-error", "skip").code == 5
    Path("in.jsonl").write_text("")
    assert dotr("convert", "in.jsonl", "-o", "archive/", "--overwrite").code == 0
    assert contents("archive") == []
    Path("theirs").mkdir()
    Path("theirs/thesis.txt").write_text("years of work")
    assert dotr("convert", "in.jsonl", "-o", "theirs", "--overwrite").code == 5
    assert dotr("convert", "in.jsonl", "-o", ".", "--overwrite").code == 5
