"""Logs as tables of SQL, filters on time that spare reading, and rules as a table function."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Observation
from pyspark.sql import datasource as api
from pyspark.sql.types import StructType

import dotr.spark
from dotr.batch.spark.frame_stages import COUNTS
from dotr.batch.spark.frames import LogSource
from dotr.batch.spark.session import own, same_release
from dotr.batch.spark.sql import Analysis, DetectFunction
from dotr.errors import DataError, ProgramError, UsageError
from dotr.io.decode.parquet import UNIT_NOTE

RULES = """PREFIX : <urn:x:>
QUERY Smoke := { SELECT ?room ?c WHERE { ?o :smoke ?room ; :c ?c } }
RULE Again DEFINE { dotr_e a :Again ; :in ?room } FROM Smoke
AND LAST Prior := Smoke WITHIN 30 s BEFORE Smoke ON Prior.?room = Smoke.?room
WITH ?room := Smoke.?room, ?c := Smoke.?c, ?since := Prior.time
"""
CALL = "SELECT * FROM dotr_detect({})"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def graph(at: int) -> str:
    return (
        f'<urn:x:o{at}> <urn:x:smoke> <urn:x:room{at % 3}> .\n<urn:x:o{at}> <urn:x:c> "{at}"^^<{INTEGER}> .'
    )


def archive(path: Path, times: Sequence[Any], bad: Sequence[int] = ()) -> str:
    """Row groups of ten rows; the graphs of `bad` rows are none."""
    graphs = ["nonsense" if at in bad else graph(at) for at in range(len(times))]
    kind = pa.int64() if isinstance(times[0], int) else pa.timestamp("us", tz="UTC")
    pq.write_table(pa.table({"time": pa.array(times, kind), "graph": graphs}), path, row_group_size=10)
    return str(path)


# ------------------------------------------------------------------ the data source, without a JVM

START = datetime(2026, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
BOUNDS = st.one_of(st.none(), st.integers(-3, 43))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Forty graphs in four row groups, by integers and by dateTimes; and as lines, which have no groups."""
    folder = tmp_path_factory.mktemp("logs")
    stamps = [START + timedelta(microseconds=n) for n in range(40)]
    lines = [f'{{"time":{n},"graph":"<urn:x:o{n}> <urn:x:smoke> <urn:x:r> ."}}\n' for n in range(40)]
    (folder / "log.jsonl").write_text("".join(lines), encoding="utf-8")
    return {
        "integer": archive(folder / "integer.parquet", range(40)),
        "dateTime": archive(folder / "stamps.parquet", stamps),
        "lines": str(folder / "log.jsonl"),
    }


@pytest.mark.parametrize("kind", ["integer", "dateTime", "lines"])
@given(since=BOUNDS, until=BOUNDS)
def test_a_range_of_time_gives_what_a_filter_leaves(
    logs: dict[str, str], kind: str, since: int | None, until: int | None
) -> None:
    dated = kind == "dateTime"
    options = {"path": logs[kind], "from": since, "until": until}
    given_ = {name: value for name, value in options.items() if value is not None}
    if dated:
        given_ |= {n: (START + v * MICROSECOND).isoformat() for n, v in given_.items() if isinstance(v, int)}
    source = LogSource(api.CaseInsensitiveDict({name: str(value) for name, value in given_.items()}))
    reader = source.reader(source.schema())
    partitions = reader.partitions()
    batches = [batch for part in partitions for batch in reader.read(part)]
    found = [time for batch in batches for time in batch.column("time").to_pylist()]
    expected = [n for n in range(40) if (since is None or n >= since) and (until is None or n < until)]
    assert sorted((time - START) // MICROSECOND if dated else time for time in found) == expected
    if expected and kind != "lines":
        read = [piece.first for part in partitions for piece in part.split.pieces]
        assert sorted(read) == sorted({n // 10 for n in expected})


@pytest.mark.parametrize(
    ("kind", "bound"), [("integer", "2026-01-01T00:00:00Z"), ("dateTime", "7"), ("lines", "x")]
)
def test_a_bound_of_another_kind_than_the_times_is_refused(
    logs: dict[str, str], kind: str, bound: str
) -> None:
    source = LogSource(api.CaseInsensitiveDict({"path": logs[kind], "until": bound}))
    with pytest.raises(RuntimeError, match=f"D4125.*the option until cannot be `{bound}`"):
        source.reader(source.schema())


def test_times_alone_are_read_without_graphs(tmp_path: Path) -> None:
    """A graph that cannot be read is not looked at, as in `select time from parquet`."""
    source = LogSource(api.CaseInsensitiveDict(path=archive(tmp_path / "a.parquet", range(20), bad=[3])))
    reader = source.reader(StructType().add("time", "long"))
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [batch.schema.names for batch in batches] == [["time"]] * 2
    assert sum(batch.num_rows for batch in batches) == 20
    for columns in (StructType(), StructType().add("time", "string"), StructType().add("room", "string")):
        with pytest.raises(RuntimeError, match="D4122"):
            source.reader(columns)


# ------------------------------------------------------------------ SQL


@pytest.fixture(scope="module")
def sql(spark: Any) -> Any:
    dotr.spark.register(spark)
    return spark.sql


@pytest.mark.spark
def test_row_groups_out_of_range_are_not_read(sql: Any, spark: Any, tmp_path: Path) -> None:
    """A frame whose filters Spark had pushed kept them for the next query: rows were missing."""
    path = archive(tmp_path / "log.parquet", [START + timedelta(hours=n) for n in range(40)], bad=[5, 31])
    bounds = {"from": "2026-01-01T10:00:00Z", "until": "2026-01-02T06:00:00Z"}
    log = spark.read.format("dotr").options(**bounds).load(path)
    assert log.where("time >= '2026-01-02'").count() == 6
    assert log.count() == 20
    with pytest.raises(DataError, match="D2001"):
        spark.read.format("dotr").load(path).collect()


@pytest.mark.spark
def test_tables_and_views_of_sql_read_logs(sql: Any, tmp_path: Path) -> None:
    """Spark hands on properties of a table as options, which were refused; and reads it without any."""
    path = archive(tmp_path / "log.parquet", range(40))
    options = f"USING dotr OPTIONS (path '{path}', timeUnit 'ms', from '3')"
    sql(f"CREATE TABLE smoke {options} COMMENT 'rooms' TBLPROPERTIES ('team' = 'a', 'owner.mail' = 'b')")
    try:
        assert sql("SELECT count(*), max(time) FROM smoke WHERE time >= 35").first() == (5, 39)
        found = dotr.spark.detect(sql("SELECT * FROM smoke"), text=RULES)
        assert found.count() == 34
        assert sql("SELECT * FROM smoke").schema["time"].metadata[UNIT_NOTE] == "ms"
        with pytest.raises(UsageError, match="D4124"):
            sql("INSERT INTO smoke VALUES (1, '')")
    finally:
        sql("DROP TABLE smoke")
    with pytest.raises(UsageError, match=r"no option `timeunits`"):
        sql(f"CREATE TABLE wrong USING dotr OPTIONS (path '{path}', timeUnits 'ms')")
    sql(f"CREATE TEMPORARY VIEW smoke {options}")
    assert sql("SELECT count(graph) FROM smoke WHERE time = 7 OR time = 9").first() == (2,)
    sql("DROP VIEW smoke")


@pytest.fixture(scope="module")
def log(spark: Any) -> Any:
    """Sixty graphs out of order in three partitions, and the room of each."""
    rows = [(at, graph(at), f"r{at % 3}") for at in (n * 23 % 60 for n in range(60))]
    frame = spark.createDataFrame(rows, "time bigint, graph string, room string").repartition(3)
    frame.createOrReplaceTempView("log")
    return frame


@pytest.mark.spark
@pytest.mark.parametrize(
    "clauses",
    [
        "TABLE(log), rules => '{}'",
        "TABLE(log), rules => '{}', key => 'room'",
        "TABLE(log) PARTITION BY room ORDER BY time, rules => '{}', partitioned => true",
        "TABLE(log) WITH SINGLE PARTITION ORDER BY time, rules => '{}', partitioned => true",
    ],
)
def test_a_table_function_detects_what_detect_does(sql: Any, log: Any, tmp_path: Path, clauses: str) -> None:
    (tmp_path / "rules.dotr").write_text(RULES, encoding="utf-8")
    events = sql(CALL.format(clauses.format(tmp_path / "rules.dotr")))
    expected = dotr.spark.detect(log, text=RULES)
    assert events.schema == expected.schema
    rows = events.collect()
    assert sorted(rows) == sorted(expected.collect())
    assert len(rows) == 57


@pytest.mark.spark
def test_a_table_function_has_typed_columns_or_terms(sql: Any, spark: Any, log: Any) -> None:
    text = RULES.replace("'", "''")
    table = "TABLE(SELECT timestamp_seconds(time) AS time, graph FROM log WHERE time < 5)"
    call = f"{table}, rules => '{text}', "
    types = "types => map('c', 'integer', 'room', 'iri')"
    row = sql(CALL.format(call + types)).orderBy("time").first()
    assert (row.bindings.room, row.bindings.c, row.match.Prior["values"].c) == ("urn:x:room0", 3, 0)
    assert (row.bindings.since.timestamp(), row.time.timestamp(), row.terms) == (0, 3, {})
    terms = sql(CALL.format(f"{call} schema => 'terms'"))
    stamped = spark.sql("SELECT timestamp_seconds(time) AS time, graph FROM log WHERE time < 5")
    assert sorted(map(str, terms.collect())) == sorted(
        map(str, dotr.spark.detect(stamped, text=RULES, schema="terms").collect())
    )


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ("TABLE(log), rules => 'RULE nonsense'", ProgramError, "D1004"),
        ("TABLE(log), rules => 'nowhere.dotr'", ProgramError, "D1000"),
        ("TABLE(SELECT time AS ts, graph FROM log), rules => '{}'", UsageError, "D4122"),
        ("TABLE(log), rules => '{}', key => 'rom'", UsageError, r"D4123[\s\S]*did you mean `room`"),
        ("TABLE(log), rules => '{}', types => map('w', 'double')", UsageError, "no rule has the variable"),
        ("TABLE(log), rules => '{}', schema => 'term'", UsageError, "there is no schema `term`"),
        (
            "TABLE(log), rules => '{}', time_unit => 's', background => 7",
            UsageError,
            "`background` cannot be",
        ),
        ("TABLE(log) PARTITION BY time > 30, rules => '{}', partitioned => true", UsageError, "D4315"),
        ("TABLE(SELECT time, 'x' AS graph FROM log), rules => '{}'", DataError, "D2001"),
    ],
)
def test_wrong_calls_of_the_table_function_are_diagnosed(
    sql: Any, log: Any, arguments: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sql(CALL.format(arguments.format(RULES))).collect()


def test_another_release_in_a_worker_is_told() -> None:
    same_release(dotr.__version__)
    with pytest.raises(RuntimeError) as raised:
        DetectFunction(Analysis(StructType(), version="0.0.1"))
    found = own(str(raised.value))
    assert found is not None
    assert found.diagnostics[0].code == "D4307"


# ------------------------------------------------------------------ what is observed


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:warning.D4126:UserWarning")
def test_an_observation_has_the_counters_of_a_run(spark: Any, log: Any) -> None:
    """Times of two rows take another way to the same numbers."""
    bad = spark.createDataFrame([(7, "nonsense", "r1"), (61, "nonsense", "r1")], log.schema)
    again = spark.createDataFrame([(9, graph(9), "r0")], log.schema)
    ways: list[tuple[Any, int, int, Any]] = [
        (log, 60, 0, "fail"),
        (log.union(again).union(bad), 63, 2, "skip"),
    ]
    for frame, graphs, refused, on_error in ways:
        seen = Observation("dotr")
        events = dotr.spark.detect(frame, text=RULES, on_error=on_error, observation=seen)
        assert COUNTS not in events.columns
        assert events.count() == 57
        found = {"graphs": graphs, "facts": 60, "refused": refused, "events": 57, "events Again": 57}
        assert seen.get == found
    seen = Observation("dotr")
    terms = dotr.spark.detect(log.limit(0), text=RULES, schema="terms", observation=seen)
    assert terms.collect() == []
    assert seen.get["events"] == 0
    seen = Observation("dotr")
    lasting = dotr.spark.detect(log, text=f"{RULES}HOLD :c FOR 1 s\n", observation=seen)
    assert lasting.count() == 57
    assert (seen.get["graphs"], seen.get["events Again"]) == (None, 57)
