"""Reading a log in pieces: together they have every graph once, wherever the cuts fall."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dotr.batch import log as reading
from dotr.batch.log import COMPRESSED, Cuts, ReadCounts, cuts, graph_of, open_log, read_split, spread
from dotr.io.sources import SourceOptions
from dotr.io.tables.mapping import parse_mapping
from tests.batch.test_batch import dotr

PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD_INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


def quads(before: bool) -> str:
    """Forty graphs of one to five quads, their stamps before or behind them."""
    out = []
    for i in range(40):
        stamp = f'<urn:g:{i}> {PROV} "{i}"^^{XSD_INTEGER} .\n'
        own = "".join(
            f'<urn:x:s> <urn:x:p> "{i} <urn:g:0> . \\" {j}" <urn:g:{i}> .\n' for j in range(i % 5 + 1)
        )
        out.append(stamp + own if before else own + stamp)
    return "".join(out)


def read_all(path: Path, options: SourceOptions | None = None) -> list[tuple[int, str]]:
    log = open_log([str(path)], options or SourceOptions())
    return [row for split in log.splits for row in read_split(log, split, ReadCounts())]


@pytest.mark.parametrize("piece", [60, 200, 501, 1000])
@pytest.mark.parametrize("before", [True, False])
def test_quads_are_cut_between_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, before: bool
) -> None:
    path = tmp_path / "log.nq"
    path.write_text(quads(before), encoding="utf-8")
    whole = read_all(path)
    monkeypatch.setattr(reading, "SPLIT", piece)
    assert len(open_log([str(path)], SourceOptions()).splits) > 3
    assert read_all(path) == whole
    assert [time for time, _graph in whole] == [i * 1_000_000 for i in range(40)]


def test_json_lines_are_cut_at_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    lines = [json.dumps({"time": i, "graph": f'<urn:x:s> <urn:x:p> "{"é" * (i % 7)}" .'}) for i in range(50)]
    path.write_text("\n".join(lines), encoding="utf-8")
    whole = read_all(path)
    monkeypatch.setattr(reading, "SPLIT", 97)
    assert len(open_log([str(path)], SourceOptions()).splits) > 10
    assert read_all(path) == whole
    assert len(whole) == 50


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "bare.csv", "dos.csv"])
def test_tables_are_cut_at_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    path = tmp_path / name
    comma = "\t" if name == "t.tsv" else ","
    rows = [f'{i}{comma}"say ""{i}{comma}é"" twice"{comma}room{i % 7}' for i in range(90)]
    head = [] if name == "bare.csv" else [comma.join(("at", "note", "room"))]
    text = "\r\n".join([*head, *rows, ""]) if name == "dos.csv" else "\n".join([*head, *rows, ""])
    if name == "t.jsonl":
        objects = [{"at": i, "note": f'say "{i},é" twice', "room": f"room{i % 7}"} for i in range(90)]
        text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects)
    path.write_bytes(text.encode())
    columns = "# columns: at, note, room\n" if name == "bare.csv" else ""
    mapping = f"{columns}# time: at\n[] <urn:in> <urn:{{room}}> ; <urn:note> {{note}} ."
    options = SourceOptions(mappings=(parse_mapping(mapping, f"{name}.map"),))
    whole = read_all(path, options)
    monkeypatch.setattr(reading, "SPLIT", 211)
    assert len(open_log([str(path)], options).splits) > 8
    assert read_all(path, options) == whole
    assert [time for time, _ in whole] == [i * 1_000_000 for i in range(90)]


def test_a_table_with_line_ends_in_cells_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("at,note\n" + "".join(f"{i},plain\n" for i in range(90)) + '90,"two\nlines"\n91,"x"\n')
    options = SourceOptions(mappings=(parse_mapping("# time: at\n[] <urn:note> {note} .", "t.map"),))
    monkeypatch.setattr(reading, "SPLIT", 50)
    log = open_log([str(path)], options)
    assert len(log.splits) == 1
    assert [file for file, why in log.whole if why.startswith("a cell has a line end")] == [str(path)]
    assert len(read_all(path, options)) == 92
    path.write_text(path.read_text().replace("two\nlines", "one line"))
    assert len(open_log([str(path)], options).splits) > 8


def test_a_batch_reports_which_files_one_task_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("at,note\n" + "".join(f'{i},"two\nlines"\n' for i in range(20)))
    (tmp_path / "t.map").write_text("# time: at\n[] <urn:note> {note} .")
    (tmp_path / "r.dotr").write_text(
        "RULE R DEFINE { dotr_x a <urn:R> } FROM N := { SELECT ?n WHERE { ?o <urn:note> ?n } }"
    )
    monkeypatch.setattr(reading, "SPLIT", 50)
    logs, mapping = [tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "t.map"
    local = ("--engine", "local", "--map", mapping, "--out")
    reported = dotr("batch", tmp_path / "r.dotr", *logs, *local, tmp_path / "out").output
    reason = "a cell has a line end, so it is unknown where rows begin"
    assert f"a.csv` and 1 more are read by one task each: {reason}" in reported
    assert "a.csv` is read by one task: a cell" in (
        dotr("batch", tmp_path / "r.dotr", logs[0], *local, tmp_path / "one").output
    )
    quiet = dotr("batch", tmp_path / "r.dotr", *logs, "-q", *local, tmp_path / "quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_graphs_in_several_places_are_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.nq"
    lines = [f"<urn:x:s> <urn:x:p> <urn:x:{i}> <urn:g:{i % 2}> .\n" for i in range(60)]
    path.write_text("".join(lines), encoding="utf-8")
    found = cuts(str(path), path.stat().st_size, 100)
    assert (found.at, "in several places" in found.why) == ((), True)


def test_compressed_files_are_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(b"x" * 1000)
    assert cuts(str(path), 1000, 100) == Cuts(why=COMPRESSED)
    assert cuts(str(path), 100, 100) == Cuts()


def test_a_line_is_about_its_graph_or_its_subject() -> None:
    assert graph_of(b'<a> <p> "x <b> ." <g> .') == b"<g>"
    assert graph_of(b'_:s <p> "x"@en-GB .') == b"_:s"
    assert graph_of(b'<g> <p> "1"^^<t> . # <c>') == b"<g>"
    assert graph_of(b"# <a> <b> <c> <d> .") is None


def test_many_small_files_are_spread_over_tasks(tmp_path: Path) -> None:
    for i in range(20):
        (tmp_path / f"{i}.ttl").write_text("<urn:x:s> <urn:x:p> <urn:x:o> .", encoding="utf-8")
    log = open_log([str(tmp_path)], SourceOptions())
    assert len(log.splits) == 1
    parted = spread(log.splits, 6)
    assert [len(split.pieces) for split in parted] == [4, 4, 4, 4, 4]
    assert [p for split in parted for p in split.pieces] == list(log.splits[0].pieces)
