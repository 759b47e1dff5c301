"""The real thing: few small jobs in one session; what they compute is tested without a JVM beside this."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dotr.spark
from dotr.batch.facts import REFUSED, Cut, Layout
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.spark.frame_stages import FACT_COLUMNS, by_part
from dotr.batch.time_cuts import Uneven
from dotr.batch.work import graph_text
from dotr.core.deployment import Deployment
from dotr.core.funnel import Funnel
from dotr.detect.partitioning import Partitioning
from dotr.errors import DataError, RefusedError, UsageError
from dotr.events import Clock
from dotr.io.decode.parquet import ArchiveWriter
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions, Sources
from dotr.io.tables.mapping import parse_mapping
from dotr.lang import load_program, parse_program
from tests.batch.test_local import golden_cases, in_one_process, lasts, loaded, output, quiet

pytestmark = pytest.mark.spark


def frame_of(spark: Any, case: Path) -> Any:
    """A golden case's stream as a log, the latest graph first."""
    _program, _background, options = loaded(case)
    sources = Sources([str(case / "stream.jsonl")], options)
    rows = [(graph.time, graph_text(graph.triples)) for graph in sources][::-1]
    clock = sources.clock or Clock()
    frame = spark.createDataFrame(rows, "time bigint, graph string")
    if clock.integer:
        return frame.selectExpr(f"time DIV {clock.unit} AS time", "graph"), clock
    return frame.selectExpr("timestamp_micros(time) AS time", "graph"), clock


def json_lines(rows: list[Any], clock: Clock) -> list[tuple[Any, ...]]:
    """What a JSON line has of each row."""
    return sorted(
        (row.rule, row.id, row.match, row.graph, tuple(row.bindings.items()), _written(row.time, clock))
        for row in rows
    )


def _written(time: Any, clock: Clock) -> Any:
    return time if clock.integer else round(time.timestamp() * 1_000_000)


def expected_rows(lines: list[str], clock: Clock) -> list[tuple[Any, ...]]:
    rows = []
    for line in lines:
        event = json.loads(line)
        raw = line[line.index('"match":') + 8 : line.rindex(',"graph":')]
        rows.append((event["rule"], event["id"], raw, event["graph"]))
    return sorted(rows)


# what is said about the rules of a case is not what it is about
@pytest.mark.filterwarnings("ignore:(warning|info).D:UserWarning")
@pytest.mark.parametrize(
    "case", [c for c in golden_cases() if not lasts(c)], ids=lambda case: f"{case.parent.name}/{case.name}"
)
def test_golden_cases_hold_on_spark(case: Path, spark: Any) -> None:
    program, background, options = loaded(case)
    frame, clock = frame_of(spark, case)
    unit = {1: "us", 1_000: "ms", 1_000_000: "s"}[options.unit]
    expected = in_one_process(program, background, [str(case / "stream.jsonl")], options)
    rows = dotr.spark.detect(frame, case / "rules.dotr", time_unit=unit, schema="terms").collect()
    found = json_lines(rows, clock)
    assert [row[:4] for row in found] == expected_rows(expected, clock)


def test_lists_are_a_column_of_their_own(spark: Any, tmp_path: Path) -> None:
    rules = tmp_path / "rules.dotr"
    rules.write_text("""PREFIX : <urn:x:>
QUERY Item := { SELECT ?i WHERE { ?o :item ?i } }
RULE Order DEFINE { dotr_e :items ?items } FROM End := { SELECT ?e WHERE { ?o :end ?e } }
AND COLLECT(Item.?i) AS ?all OVER Item WITHIN 9 s FROM End
WITH ?e := End.?e, ?items := ?all
""")
    graphs = [
        (1, "<urn:x:o> <urn:x:item> <urn:x:b> .\n<urn:x:o> <urn:x:item> <urn:x:a> ."),
        (2, "<urn:x:o> <urn:x:end> <urn:x:e> ."),
    ]
    frame = spark.createDataFrame(graphs, "time bigint, graph string")
    (row,) = dotr.spark.detect(frame, rules, schema="terms").collect()
    assert row.bindings == {"e": "<urn:x:e>"}
    assert row.lists == {"items": ["<urn:x:a>", "<urn:x:b>"]}


RULES = """PREFIX : <urn:x:>
QUERY Smoke := { SELECT ?room WHERE { ?o :smoke ?room } }
RULE Alarm
DEFINE { dotr_id a :Alarm ; :in ?room ; :after ?n }
FROM Smoke
AND LAST Heat := { SELECT ?room WHERE { ?o :heat ?room } } WITHIN 4 s FROM Smoke ON Heat.?room = Smoke.?room
WITH ?room := Smoke.?room, ?n := Heat.time
CONSUMING Heat
RULE Quiet
DEFINE { dotr_id a :Quiet ; :count ?n }
FROM EVERY 3 s AS Tick AND COUNT(*) AS ?n OVER Smoke WITHIN 5 s FROM Tick
WITH ?n := ?n
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rules, and a log of JSON lines in two files that share times, neither in order."""
    folder = tmp_path_factory.mktemp("story")
    (folder / "rules.dotr").write_text(RULES, encoding="utf-8")
    (folder / "log").mkdir()
    for name, step in (("a", 7), ("b", 11)):
        graphs = []
        for i in range(120):
            time = i * step % 97
            kind = ("smoke", "heat", "noise")[i % 3]
            graphs.append({"time": time, "graph": f"<urn:x:{name}{i}> <urn:x:{kind}> <urn:x:room{i % 5}> ."})
        text = "".join(json.dumps(graph) + "\n" for graph in graphs)
        (folder / "log" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def of_one_process(story: Path, options: SourceOptions) -> list[str]:
    program = load_program([str(story / "rules.dotr")], read_rules_text)
    return in_one_process(program, [], [str(story / "log")], options)


@pytest.mark.parametrize("length", [None, 10_000_000])
def test_a_batch_writes_what_one_process_prints(
    story: Path, spark: Any, tmp_path: Path, length: int | None
) -> None:
    options = SourceOptions()
    program = load_program([str(story / "rules.dotr")], read_rules_text)
    request = Request(Deployment(program), open_log([str(story / "log")], options), slice_length=length)
    report = SparkRunner().run(request, str(tmp_path), quiet)
    funnels: dict[str, Funnel] = {}
    expected = in_one_process(program, [], [str(story / "log")], options, funnels)
    assert len(expected) > 30
    assert output(tmp_path, report) == expected
    assert (report.graphs, report.instants, report.first, report.last) == (240, 97, 0, 96_000_000)
    assert sum(report.time_sources.values()) == 240
    assert report.funnel(program) == funnels
    assert funnels["Alarm"][0] == ("Smoke", 80)


@pytest.mark.parametrize(
    ("few", "rows", "slices"), [(100_000, 25, False), (0, 25, False), (100_000, 1000, False), (0, 25, True)]
)
def test_archives_are_read_by_the_tasks_themselves(
    story: Path,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    few: int,
    rows: int,
    slices: bool,
) -> None:
    """Ten row groups that share times, few or many of them; and one, whose times nobody looks at before. As
    slices, with nothing but a task each.
    """
    if slices:
        monkeypatch.setattr("dotr.batch.archives._MUCH", 0)  # however much is read twice
    monkeypatch.setattr("dotr.batch.spark.frame_stages.FEW", few)
    monkeypatch.setattr("dotr.io.decode.parquet.ROWS", rows)
    if rows > 240:
        monkeypatch.setattr("dotr.batch.spark.frame_stages.look", None)
    archive = ArchiveWriter(str(tmp_path / "log.parquet"), Clock())
    for graph in Sources([str(story / "log")]):
        archive.add(graph.time, graph.triples)
    archive.close()
    log = open_log([str(tmp_path / "log.parquet")], SourceOptions())
    assert len(log.splits) == -(-240 // rows)
    program = parse_program(RULES.replace("CONSUMING Heat", "" if slices else "CONSUMING Heat"))
    (tmp_path / "out").mkdir()
    report = SparkRunner().run(Request(Deployment(program), log), str(tmp_path / "out"), quiet)
    assert ("read" in report.seconds) != slices
    expected = in_one_process(program, [], [str(story / "log")], SourceOptions(), funnels := {})
    assert output(tmp_path / "out", report) == expected
    assert (report.graphs, report.instants) == (240, 97)
    assert report.funnel(program) == funnels


def test_a_table_in_parquet_is_read_through_its_mapping(story: Path, spark: Any, tmp_path: Path) -> None:
    """It was taken for an archive of graphs (D2017), since its name ends as theirs do."""
    kinds = [("smoke", "heat", "noise")[i % 3] for i in range(240)]
    rows = {"at": list(range(240)), "kind": kinds, "room": [f"r{i % 5}" for i in range(240)]}
    pq.write_table(pa.table(rows), tmp_path / "table.parquet", row_group_size=25)
    mapping = parse_mapping("# time: at\n[] <urn:x:{kind}> <urn:x:{room}> .", "t.map")
    options = SourceOptions(mappings=(mapping,))
    program = load_program([str(story / "rules.dotr")], read_rules_text)
    (tmp_path / "out").mkdir()
    log = open_log([str(tmp_path / "table.parquet")], options)
    report = SparkRunner().run(Request(Deployment(program), log), str(tmp_path / "out"), quiet)
    expected = in_one_process(program, [], [str(tmp_path / "table.parquet")], options)
    assert len(expected) > 30
    assert output(tmp_path / "out", report) == expected
    assert report.graphs == 240


def test_the_data_source_reads_what_the_batch_reads(story: Path, spark: Any) -> None:
    dotr.spark.register(spark)
    log = spark.read.format("dotr").load(str(story / "log"))
    with pytest.raises(UsageError, match=r"there is no option `timeunits`[\s\S]*did you mean `timeUnit`"):
        spark.read.format("dotr").option("timeUnits", "ms").load(str(story / "log"))
    assert log.dtypes == [("time", "bigint"), ("graph", "string")]
    first = log.selectExpr("count(*) AS n", "count_if(time = 7) AS sevens").first()
    assert first == (240, 3)


def test_the_data_source_says_what_it_cannot_open(spark: Any) -> None:
    dotr.spark.register(spark)
    with pytest.raises(UsageError, match="D4127"):
        spark.read.format("dotr").load("hdfs://host/log")


def test_what_the_data_source_writes_it_reads_back(story: Path, spark: Any, tmp_path: Path) -> None:
    dotr.spark.register(spark)
    found = list(Sources([str(story / "log")]))[:50]
    graphs = sorted((graph.time // 10**6, graph_text(graph.triples)) for graph in found)
    log = spark.createDataFrame(graphs, "time bigint, graph string")
    for form in ("nquads", "jsonl"):
        path = str(tmp_path / form)
        log.write.format("dotr").mode("append").option("as", form).save(path)
        again = spark.read.format("dotr").load(path)
        assert sorted(map(tuple, again.collect())) == graphs
        assert not [file for file in (tmp_path / form).iterdir() if file.name.startswith(".")]


def test_a_log_gives_detect_its_unit(spark: Any, tmp_path: Path) -> None:
    """An archive in milliseconds was taken for one in seconds unless time_unit said so."""
    archive = ArchiveWriter(str(tmp_path / "log.parquet"), Clock(True, 1000))
    archive.add(1_500_000, [("<urn:x:a>", "<urn:x:smoke>", "<urn:x:hall>")])
    archive.close()
    (tmp_path / "rules.dotr").write_text(
        "RULE R DEFINE { dotr_a a <urn:x:R> } FROM EVERY 500 ms AS T "
        "AND EACH S := { SELECT ?r { ?o <urn:x:smoke> ?r } } WITHIN 0 s FROM T"
    )
    dotr.spark.register(spark)
    parquet = spark.read.parquet(str(tmp_path / "log.parquet"))
    source = spark.read.format("dotr").load((tmp_path / "log.parquet").as_uri())
    for log in (parquet, source):
        assert [row.time for row in dotr.spark.detect(log, tmp_path / "rules.dotr").collect()] == [1500]
        with pytest.raises(UsageError, match="D4123"):
            dotr.spark.detect(log, tmp_path / "rules.dotr", time_unit="s")


def test_timestamps_stay_timestamps(spark: Any, tmp_path: Path) -> None:
    dotr.spark.register(spark)
    (tmp_path / "log.jsonl").write_text(
        '{"time":"2026-01-01T08:00:12.5Z","graph":"<urn:x:a> <urn:x:smoke> <urn:x:hall> ."}\n',
        encoding="utf-8",
    )
    (tmp_path / "rules.dotr").write_text(
        "RULE R DEFINE { dotr_a a <urn:x:R> ; <urn:x:at> ?t } "
        "FROM S := { SELECT ?room WHERE { ?o <urn:x:smoke> ?room } } WITH ?t := S.time",
        encoding="utf-8",
    )
    log = spark.read.format("dotr").load(str(tmp_path / "log.jsonl"))
    (row,) = (
        dotr.spark.detect(log, str(tmp_path / "rules.dotr"), schema="terms")
        .selectExpr("string(time)", "bindings")
        .collect()
    )
    assert row.time == "2026-01-01 08:00:12.5"
    assert row.bindings["t"].startswith('"2026-01-01T08:00:12.5Z"')


def test_a_bad_graph_is_reported_as_a_diagnostic(story: Path, spark: Any) -> None:
    log = spark.createDataFrame([(1, "<urn:x:a> <urn:x:smoke> nonsense .")], "time bigint, graph string")
    found = dotr.spark.detect(log, story / "rules.dotr")
    for action in (found.collect, found.toArrow, found.count):
        with pytest.raises(DataError, match="D2001") as raised:
            action()
        assert "the graph at 1000000" in raised.value.diagnostics[0].place
        assert "dotr-error" not in str(raised.value)


def test_an_empty_log_has_no_events(story: Path, spark: Any) -> None:
    log = spark.createDataFrame([], "time bigint, graph string")
    assert dotr.spark.detect(log, story / "rules.dotr").collect() == []


def test_wrong_columns_are_refused_before_anything_runs(story: Path, spark: Any) -> None:
    with pytest.raises(UsageError, match="D4122"):
        dotr.spark.detect(spark.range(3), story / "rules.dotr")


def test_a_row_without_time_is_refused(story: Path, spark: Any) -> None:
    log = spark.createDataFrame([(None, ""), (1, "")], "time bigint, graph string")
    with pytest.raises(DataError, match="D2018"):
        dotr.spark.detect(log, story / "rules.dotr").collect()


def test_what_breaks_while_ctrl_c_is_answered_is_ctrl_c(
    story: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The talk with the JVM is broken off; what was cleaned up over it said D4303, exit code 4."""

    def stopped(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("Answer from Java side is empty")

    program = load_program([str(story / "rules.dotr")], read_rules_text)
    request = Request(Deployment(program), open_log([str(story / "log")], SourceOptions()))
    monkeypatch.setattr("dotr.batch.spark.frame_stages.look", stopped)
    with pytest.raises(KeyboardInterrupt):
        SparkRunner().run(request, str(tmp_path), quiet)


def test_parts_have_partitions_of_their_own(spark: Any) -> None:
    """Some of 150 parts met in one of 200 partitions by their hash; adaptive execution joined small ones."""
    layout = Layout(Partitioning((), ()), (Cut(25, Uneven((10, 20, 30))), Cut(50)), last=40)
    parts = [layout.part(0, bucket, slice_) for slice_ in range(4) for bucket in range(25)]
    parts += [layout.part(1, bucket, 0) for bucket in range(50)]
    rows = [(part, time, b"") for time in (3, 1, 2) for part in parts]
    facts = spark.createDataFrame([*rows, (REFUSED, 5, b"letter")], FACT_COLUMNS)
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        placed = by_part(facts, [], layout, 0, cores=100)
        found = placed.selectExpr("spark_partition_id() AS task", "part", "time").collect()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    tasks: dict[int, list[int]] = {}
    for row in found:
        if row.part != REFUSED:
            tasks.setdefault(row.task, []).append(row.part)
    assert len(tasks) == 150
    assert all(len(set(held)) == 1 for held in tasks.values())


def test_a_setting_that_comes_too_late_is_refused(spark: Any) -> None:
    with pytest.raises(UsageError, match="D4308"):
        dotr.spark.session("local[7]")
    assert dotr.spark.session() is spark


def test_a_log_is_written_in_all_four_modes(spark: Any, tmp_path: Path) -> None:
    """Spark hands on only two of them to sources in Python."""
    path = tmp_path / "log"

    def frame(*times: int) -> Any:
        rows = [(time, f"<urn:x:o{time}> <urn:x:p> <urn:x:q> .\n") for time in times]
        return spark.createDataFrame(rows, "time bigint, graph string")

    def times() -> list[int]:
        return sorted(graph.time // 10**6 for graph in Sources([str(path)]))

    assert dotr.spark.write(frame(1, 2), path)
    with pytest.raises(RefusedError, match="D5001"):
        dotr.spark.write(frame(3), path)
    assert not dotr.spark.write(frame(3), path, mode="ignore")
    assert dotr.spark.write(frame(3), path, mode="append", form="jsonl")
    assert times() == [1, 2, 3]
    dotr.spark.write(frame(4, 5), path, mode="overwrite")
    assert times() == [4, 5]
    (path / "mine.ttl").write_text("", encoding="utf-8")
    with pytest.raises(RefusedError, match=r"D5001[\s\S]*mine\.ttl"):
        dotr.spark.write(frame(6), path, mode="overwrite")
    with pytest.raises(UsageError, match="D4123"):
        dotr.spark.write(frame(6), path, mode="replace")
    assert (path / "mine.ttl").exists()


def test_what_is_in_error_becomes_dead_letters_and_the_rest_goes_on(spark: Any, tmp_path: Path) -> None:
    good = [(time, f"<urn:x:o{time}> <urn:x:smoke> <urn:x:room{time % 2}> .") for time in range(4, 20)]
    bad = [(1, "nonsense"), (7, "more nonsense"), (None, "<urn:x:a> <urn:x:b> <urn:x:c> .")]
    log = spark.createDataFrame([*bad, *good], "time bigint, graph string")
    events, letters = dotr.spark.detect(log, text=RULES, on_error="keep", persist=True, schema="terms")
    lines = [json.dumps({"time": time, "graph": graph}) + "\n" for time, graph in good]
    (tmp_path / "good.jsonl").write_text("".join(lines), encoding="utf-8")
    program = parse_program(RULES, "r.dotr")
    expected = in_one_process(program, [], [str(tmp_path / "good.jsonl")], SourceOptions())
    assert len(expected) == 5
    assert [row[:4] for row in json_lines(events.collect(), Clock())] == expected_rows(expected, Clock())
    found = sorted((row.time or 0, json.loads(row.letter)) for row in letters.collect())
    assert [(time, letter["code"]) for time, letter in found] == [(0, "D2018"), (1, "D2001"), (7, "D2001")]
    assert [letter["document"] for _, letter in found] == [bad[2][1], "nonsense", "more nonsense"]
    plan = letters._jdf.queryExecution().withCachedData().toString()
    assert "MapInArrow" not in plan.partition("InMemoryRelation")[0], "the events' extraction is read again"
    assert dotr.spark.detect(log, text=RULES, on_error="skip").count() == len(expected)
    spark.catalog.clearCache()


def test_rules_are_paths_or_text(spark: Any) -> None:
    log = spark.createDataFrame([], "time bigint, graph string")
    with pytest.raises(UsageError, match="D4123"):
        dotr.spark.detect(log)
    with pytest.raises(UsageError, match="D4123"):
        dotr.spark.detect(log, "rules.dotr", text=RULES)
