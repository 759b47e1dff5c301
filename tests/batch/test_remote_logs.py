"""Logs and outputs that only Spark can reach: a file system of its own scheme, and files by their URIs."""

from __future__ import annotations

import bz2
import gzip
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dotr.batch.log import LogListing
from dotr.batch.runs import Report, Request
from dotr.batch.spark import read
from dotr.batch.spark.cluster import RemoteFolder, RemoteStore, SparkRunner
from dotr.batch.spark.read import list_files, open_remote
from dotr.batch.spark.session import SparkOptions
from dotr.cli import batch_run as verb
from dotr.core.deployment import Deployment
from dotr.errors import DataError, EngineError, RefusedError
from dotr.events import Clock
from dotr.io.decode.parquet import ArchiveWriter
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions, Sources
from dotr.io.tables.mapping import parse_mapping
from dotr.lang import load_program
from tests.batch.test_batch import dotr
from tests.batch.test_local import in_one_process, output, quiet
from tests.batch.test_spark import RULES

pytestmark = pytest.mark.spark

XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
QUADS = f"""<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "60"^^<{XSD_INTEGER}> .
<urn:x:o> <urn:x:smoke> <urn:x:room1> <urn:g> .
"""


@pytest.fixture(scope="module")
def store(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that Spark knows as viewfs://store/box, with rules and a log of every form."""
    folder = tmp_path_factory.mktemp("store")
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set("fs.viewfs.mounttable.store.link./box", folder.as_uri())
    (folder / "rules.dotr").write_text(RULES, encoding="utf-8")
    log = folder / "log"
    (log / "below").mkdir(parents=True)
    for name, step in (("a", 7), ("below/b c%20{1}", 11)):
        lines = []
        for i in range(60):
            kind = ("smoke", "heat", "noise")[i % 3]
            text = f"<urn:x:o{step}-{i}> <urn:x:{kind}> <urn:x:room{i % 5}> ."
            lines.append(json.dumps({"time": i * step % 47, "graph": text}) + "\n")
        (log / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (log / "heat@59.ttl").write_text("<urn:x:o> <urn:x:heat> <urn:x:room1> .", encoding="utf-8")
    (log / "below" / "70.ttl").write_text("", encoding="utf-8")
    (log / "quads.nq.gz").write_bytes(gzip.compress(QUADS.encode()))
    (log / "readme.txt").write_text("no RDF", encoding="utf-8")
    return folder


def expected(store: Path, *more: Path) -> list[str]:
    program = load_program([str(store / "rules.dotr")], read_rules_text)
    return in_one_process(program, [], [str(store / "log"), *map(str, more)], SourceOptions())


def batch(store: Path, log: LogListing, out: Path) -> tuple[list[str], Report]:
    program = load_program([str(store / "rules.dotr")], read_rules_text)
    out.mkdir()
    report = SparkRunner().run(Request(Deployment(program), log), str(out), quiet)
    return output(out, report), report


def remote_log(spark: Any, *places: str, fail: bool = True) -> LogListing:
    return open_remote(spark, places, LogListing((), None, SourceOptions(), fail))


@pytest.mark.parametrize("scheme", ["viewfs", "file"])
def test_a_log_behind_a_uri_is_read_as_it_is_here(
    store: Path, spark: Any, tmp_path: Path, scheme: str
) -> None:
    uri = "viewfs://store/box/log" if scheme == "viewfs" else (store / "log").as_uri()
    found, report = batch(store, remote_log(spark, uri), tmp_path / "out")
    assert found == expected(store)
    assert (report.graphs, report.last) == (123, 70_000_000)
    assert report.time_sources == {"the line's own time": 120, "prov:generatedAtTime": 1, "file name": 2}


def test_large_files_are_parted_by_spark(
    store: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = ArchiveWriter(str(store / "more.parquet"), Clock())
    for graph in Sources([str(store / "log" / "a.jsonl")]):
        archive.add(graph.time + 100_000_000, graph.triples)
    archive.close()
    monkeypatch.setattr("dotr.batch.spark.read.WHOLE", 100)
    log = remote_log(spark, "viewfs://store/box/log", "viewfs://store/box/more.parquet")
    found, report = batch(store, log, tmp_path / "out")
    assert found == expected(store, store / "more.parquet")
    assert report.time_sources["the archive's own time"] == 60


def test_tables_and_dumps_behind_a_uri_are_read_as_they_are_here(
    store: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    rows = [f"{i},{('smoke', 'heat')[i % 2]},room{i % 5}" for i in range(80)]
    table = "\n".join(["at,kind,room", *rows, ""])
    (folder / "a.csv").write_text(table, encoding="utf-8")
    (folder / "b.csv.bz2").write_bytes(bz2.compress(table.encode()))
    objects = (dict(zip(("at", "kind", "room"), row.split(","), strict=True)) for row in rows)
    (folder / "c.jsonl").write_text("".join(json.dumps(o) + "\n" for o in objects), encoding="utf-8")
    at = "http://www.w3.org/ns/sosa/resultTime"
    dump = "".join(f"<urn:d{i}> <{at}> {i} ; <urn:x:smoke> <urn:x:room{i % 5}> .\n" for i in range(9))
    (folder / "d.ttl").write_text(dump, encoding="utf-8")
    mapping = parse_mapping("# time: at\n[] <urn:x:{kind}> <urn:x:{room}> .", "t.map")
    options = SourceOptions(mappings=(mapping,), split=f"<{at}>")
    program = load_program([str(store / "rules.dotr")], read_rules_text)
    here = in_one_process(program, [], [str(folder)], options)
    assert here
    for whole in (64 << 20, 100):
        monkeypatch.setattr("dotr.batch.spark.read.WHOLE", whole)
        log = open_remote(spark, [folder.as_uri()], LogListing((), None, options))
        found, report = batch(store, log, tmp_path / f"out{whole}")
        assert found == here
        assert report.graphs == 3 * 80 + 9


def test_an_archive_gives_spark_its_unit(store: Path, spark: Any, tmp_path: Path) -> None:
    for name, unit in (("ms", 1000), ("us", 1)):
        archive = ArchiveWriter(str(tmp_path / f"{name}.parquet"), Clock(True, unit))
        archive.add(7_000_000, [])
        archive.close()
        frame = spark.read.parquet((tmp_path / f"{name}.parquet").as_uri())
        assert frame.schema["time"].metadata == {"dotr.unit": name}
        assert [row.time for row in frame.collect()] == [7_000_000 // unit]
    with pytest.raises(DataError, match="D2102"):
        batch(store, remote_log(spark, tmp_path.as_uri()), tmp_path / "out")


def test_what_is_wrong_with_a_place_is_reported(store: Path, spark: Any) -> None:
    with pytest.raises(DataError, match="D2003"):
        list_files(spark, ["viewfs://store/box/nowhere"])
    with pytest.raises(DataError, match="D2008"):
        list_files(spark, ["viewfs://store/box/log/readme.txt"])
    with pytest.raises(DataError, match="D2009"):
        list_files(spark, ["viewfs://store/box/log/*.txt"])
    with pytest.raises(EngineError, match="D4305") as raised:
        list_files(spark, ["nostore://a/b"])
    assert 'No FileSystem for scheme "nostore"' in str(raised.value)


def test_a_corrupt_file_behind_a_uri_meets_the_policy(store: Path, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "0.ttl").write_text("nonsense", encoding="utf-8")
    (tmp_path / "1.jsonl").write_text('{"time": 1, "graph": ""}\n{"time": true}\n', encoding="utf-8")
    (tmp_path / "2.parquet").write_text("nonsense", encoding="utf-8")
    with pytest.raises(DataError, match="D2001"):
        batch(store, remote_log(spark, tmp_path.as_uri()), tmp_path / "fails")
    log = remote_log(spark, tmp_path.as_uri(), fail=False)
    _found, report = batch(store, log, tmp_path / "skips")
    letters = sorted(json.loads(letter)["place"] for letter in report.letters)
    places = [(tmp_path / name).as_uri().replace("///", "/") for name in ("0.ttl", "1.jsonl", "2.parquet")]
    assert report.graphs == 1
    assert [letter.startswith(place) for letter, place in zip(letters, places, strict=True)] == [True] * 3


@pytest.mark.parametrize("form", ["jsonl", "nquads", "parquet"])
def test_an_output_behind_a_uri_is_complete_or_not_there(store: Path, spark: Any, form: str) -> None:
    uri, here = f"viewfs://store/box/out-{form}", store / f"out-{form}"
    program = load_program([str(store / "rules.dotr")], read_rules_text)
    request = Request(Deployment(program), remote_log(spark, "viewfs://store/box/log"), format_=form)
    folder = RemoteFolder(spark, uri, form, overwrite=False)
    part = folder.open()
    report = SparkRunner().run(request, part, quiet)
    assert not here.exists()
    folder.finish(report.files, "{}")
    assert not (store / f"out-{form}.part").exists()
    names = {file.name for file in here.iterdir() if not file.name.startswith(".")}
    suffix = {"nquads": "nq"}.get(form, form)
    assert names == {"_dotr_run.json", *(f"part-{i:05}.{suffix}" for i in range(len(report.files)))}
    lines = expected(store)
    assert sum(report.events.values()) == len(lines)
    if form == "jsonl":
        files = here.glob("part-*")
        assert sorted(line for file in files for line in file.read_text("utf-8").splitlines()) == lines
    elif form == "parquet":
        rows = [row for file in here.glob("part-*") for row in pq.read_table(file).to_pylist()]
        assert sorted((row["time"], row["id"]) for row in rows) == sorted(
            (event["time"], event["id"]) for event in map(json.loads, lines)
        )
    else:
        events = list(Sources([str(here)]))
        assert len(events) == len(lines)
    with pytest.raises(RefusedError, match="D5001"):
        RemoteFolder(spark, uri, form, overwrite=False)
    again = RemoteFolder(spark, uri, form, overwrite=True)
    again.open()
    again.abandon()
    assert (here / "_dotr_run.json").exists()
    assert not (store / f"out-{form}.part").exists()


def test_a_folder_that_is_no_output_is_never_replaced(store: Path, spark: Any) -> None:
    with pytest.raises(RefusedError, match="not an output of `dotr batch`"):
        RemoteFolder(spark, "viewfs://store/box/log", "jsonl", overwrite=True)


def test_the_verb_follows_uris(store: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dotr(
        *("batch", store / "rules.dotr", "--log", "viewfs://store/box/log/*.jsonl"),
        *("--log", (store / "log" / "below").as_uri(), "--out", "viewfs://store/box/verb"),
    )
    assert found.exit_code == 0, found.output
    run = json.loads((store / "verb" / "_dotr_run.json").read_text("utf-8"))
    assert (run["engine"], run["graphs"]) == ("spark", 121)
    broken = dotr(
        *("batch", store / "rules.dotr", "--log", "viewfs://store/box/readme.txt"),
        *("--out", "viewfs://store/box/broken"),
    )
    assert broken.exit_code == 3
    assert not (store / "broken").exists()
    assert not (store / "broken.part").exists()


def test_the_local_engine_refuses_uris(store: Path, tmp_path: Path) -> None:
    found = dotr(
        *("batch", store / "rules.dotr", "--log", "hdfs://host/log", "--out", tmp_path / "out"),
        *("--engine", "local"),
    )
    assert found.exit_code == 2
    assert "error[D4127]: `hdfs://host/log` is not on this machine" in found.output


def test_a_session_that_was_there_stays(spark: Any) -> None:
    with closing(verb._runner("spark", SparkOptions(), ["hdfs://host/log"])) as runner:
        assert isinstance(runner, SparkRunner)
        assert runner.session() is spark
    assert spark.range(3).count() == 3


class Gone(BaseException):
    """The driver has died: nothing that it would do comes to be."""


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_file_is_renamed_once_and_no_folder_is(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Stores of objects rename by copying; all that was there was copied once more, with its folder."""
    renamed: list[tuple[str, str]] = []
    rename = RemoteStore.rename

    def counted(store: RemoteStore, old: str, new: str) -> None:
        renamed.append((old, new))
        rename(store, old, new)

    monkeypatch.setattr(RemoteStore, "rename", counted)
    uri = (tmp_path / "out").as_uri()
    files = written(RemoteFolder(spark, uri, form, overwrite=False))
    assert [Path(old).name for old, _ in renamed] == files
    assert [new for _, new in renamed] == [f"{uri}/part-{i:05}.{form}" for i in range(3)]
    run = json.loads((tmp_path / "out" / "_dotr_run.json").read_text("utf-8"))
    assert run == {
        "graphs": 7,
        "manifest": [{"name": f"part-{i:05}.{form}", "bytes": 10 * i + 10} for i in range(3)],
    }
    assert {file.name for file in tmp_path.iterdir()} == {"out"}


def test_an_end_that_breaks_off_anywhere_leaves_an_unfinished_output(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step the driver dies at; with --overwrite the next run takes the place of what is left."""
    steps = ("make", "rename", "remove", "write")
    kept = {name: getattr(RemoteStore, name) for name in steps}
    left = 0

    def dying(name: str) -> Any:
        def step(store: RemoteStore, *arguments: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Gone
            kept[name](store, *arguments)

        return step

    for name in steps:
        monkeypatch.setattr(RemoteStore, name, dying(name))
    uri, out = (tmp_path / "out").as_uri(), tmp_path / "out"
    seen: list[str] = []
    for steps_done in range(99):
        left = 99
        folder = RemoteFolder(spark, uri, "jsonl", overwrite=True)
        part = folder.open()
        files = some_files(part)
        left = steps_done
        try:
            folder.finish(files, "{}")
        except Gone:
            names = {file.name for file in out.iterdir()} if out.exists() else set()
            complete = "_dotr_run.json" in names and "_dotr_unfinished" not in names
            assert not complete or len(names & {f"part-{i:05}.jsonl" for i in range(3)}) == 3
            seen.append("complete" if complete else "unfinished" if names else "none")
            continue
        break
    assert seen[0] == "none"
    assert seen.count("unfinished") >= 5
    assert {file.name for file in tmp_path.iterdir()} == {"out"}


def some_files(part: str) -> list[str]:
    """As Spark leaves them: of 10, 20 and 30 bytes."""
    folder = Path(part.removeprefix("file://")) / "spark"
    folder.mkdir()
    names = [f"part-0000{i}-c000.txt" for i in range(3)]
    for i, name in enumerate(names):
        (folder / name).write_text("x" * (10 * i + 10), encoding="utf-8")
    return [f"spark/{name}" for name in names]


def written(folder: RemoteFolder) -> list[str]:
    files = some_files(folder.open())
    folder.finish(files, '{"graphs": 7}')
    return [Path(file).name for file in files]


def test_places_and_archives_are_looked_through_together(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One scan for all places, one for all archives whose columns are alike; a bad graph has its file."""
    unions = 0
    union = read.union

    def counted(made: Any) -> Any:
        nonlocal unions
        unions += 1
        return union(made)

    monkeypatch.setattr("dotr.batch.spark.read.union", counted)
    monkeypatch.setattr("dotr.batch.spark.read.WHOLE", 100)
    for number in range(3):
        archive = ArchiveWriter(str(tmp_path / f"a b{number}.parquet"), Clock(True, 1_000_000))
        for i in range(20):
            archive.add((number * 20 + i) * 1_000_000, [(f"<urn:x:{i}>", "<urn:x:smoke>", "<urn:x:room1>")])
        archive.close()
    table = pq.read_table(tmp_path / "a b1.parquet")
    graphs = ["nonsense", *table.column("graph").to_pylist()[1:]]
    pq.write_table(table.set_column(1, "graph", pa.array(graphs)), tmp_path / "a b1.parquet")
    places = [(tmp_path / f"a b{number}.parquet").as_uri().replace("%20", " ") for number in range(3)]
    listed = list_files(spark, places)
    assert (len(listed), unions) == (3, 1)
    log = remote_log(spark, *places, fail=False)
    (frame,) = read.read_remote(spark, log)
    notes = [json.loads(row.note) for row in frame.where("note IS NOT NULL").collect()]
    (letter,) = [letter for note in notes for letter in note["letters"]]
    assert "a b1.parquet, a graph at 20" in json.loads(letter)["place"]
    assert frame.selectExpr("sum(size(graphs)) AS n").first().n == 59
