"""Events with columns of types: no term is lost, whatever its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dotr.spark
from dotr.batch.spark.typed import check_typed
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.errors import UsageError
from dotr.events import Clock, Composite
from dotr.io.event_tables import _WRITTEN
from dotr.io.typed_events import DECLARED, TypedBatches, cell, columns_of, found_kind, of_parts
from dotr.lang import parse_program
from dotr.rdf.terms import XSD, Term, canonical, list_of, literal, literal_parts

NUMERALS = st.one_of(
    st.from_regex(r"[+-]?[0-9]{1,40}", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{0,25}\.[0-9]{1,25}", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{1,5}(\.[0-9]{1,5})?[eE][+-]?[0-9]{1,3}", fullmatch=True),
    st.sampled_from(["INF", "-INF", "NaN", "-0", "01", "+1", "9223372036854775808", "1e", "", " 1", "true"]),
)
DATES = st.one_of(
    st.from_regex(
        r"-?[0-9]{4,5}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
        r"(Z|[+-][01][0-9]:[0-5][0-9])?",
        fullmatch=True,
    ),
    st.sampled_from(
        [
            "2026-01-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "9999-12-31T23:59:59.999999Z",
            "10000-01-01T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "2026-01-01T00:00:00.1234567Z",
            "2026-01-01T01:00:00+01:00",
            "today",
        ]
    ),
)
DATATYPES = ("integer", "decimal", "double", "float", "boolean", "dateTime", "int", "date", "string")
TERMS: st.SearchStrategy[Term] = st.one_of(
    st.builds(
        lambda text, type_: literal(text, XSD + type_),
        st.one_of(NUMERALS, DATES, st.sampled_from(["true", "false", "1", "0", "TRUE"])),
        st.sampled_from(DATATYPES),
    ),
    st.builds(literal, st.text(st.characters(codec="utf-8"))),
    st.builds(lambda tag: f'"x"@{tag}', st.sampled_from(["en", "de-AT", "x-a"])),
    st.builds("<urn:x:{}>".format, st.from_regex(r"[a-zA-Z0-9]{0,5}", fullmatch=True)),
    st.builds("_:b{}".format, st.integers(0, 9)),
)


def again(value: Any, kind: str) -> Term:
    """The term of a value in a column."""
    if kind == "term":
        return of_parts(value)
    if kind == "list":
        return list_of([of_parts(one) for one in value])
    return _WRITTEN[kind](value)


@given(TERMS, st.sampled_from([*DECLARED, "list"]))
def test_a_column_gives_a_term_again_or_reports_that_it_does_not(term: Term, kind: str) -> None:
    found = cell(term, kind)
    if found.exact:
        assert again(found.value, kind) == term
    elif kind == "double" and found.value is not None:  # the nearest one to an integer or a decimal
        assert found.value == float(literal_parts(term)[0])
    elif found.value is not None:  # the same value in another form, or an integer among decimals
        written = again(found.value, kind)
        same = canonical(term)
        assert written == same or (kind == "decimal" and written == same.replace("#integer", "#decimal"))


@given(TERMS)
def test_every_term_is_exact_as_a_term_and_of_one_kind(term: Term) -> None:
    assert cell(term, "term").exact
    kinds = [kind for kind in DECLARED if kind != "term" and cell(term, kind).exact]
    assert kinds in ([], [found_kind(term)])
    assert not cell(term, "list").exact


@pytest.mark.parametrize(
    ("lexical", "datatype", "kind", "value", "exact"),
    [
        ("01", "integer", "integer", 1, False),
        ("9223372036854775807", "integer", "integer", 2**63 - 1, True),
        ("9223372036854775808", "integer", "integer", None, False),
        ("7", "integer", "decimal", 7, False),
        ("7", "integer", "double", 7.0, False),
        ("49.8", "decimal", "double", 49.8, False),
        ("4E1", "double", "decimal", None, False),
        ("2.15E1", "double", "double", 21.5, False),
        ("INF", "double", "double", float("inf"), True),
        ("21.5", "decimal", "decimal", Decimal("21.5"), True),
        ("21.50", "decimal", "decimal", Decimal("21.5"), False),
        ("0.0000000000000000001", "decimal", "decimal", None, False),
        ("2026-01-01T00:00:00", "dateTime", "dateTime", None, False),
        ("2026-01-01T00:00:00.1234567Z", "dateTime", "dateTime", None, False),
        ("soon", "dateTime", "dateTime", None, False),
        ("true", "boolean", "boolean", True, True),
        ("yes", "boolean", "boolean", None, False),
    ],
)
def test_what_does_not_fit_is_null(lexical: str, datatype: str, kind: str, value: Any, exact: bool) -> None:
    found = cell(literal(lexical, XSD + datatype), kind)
    assert (found.value, found.exact) == (value, exact)


RULES = """PREFIX : <urn:x:>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
QUERY Reading := { SELECT ?o ?v ?note WHERE { ?o :v ?v OPTIONAL { ?o :note ?note } } }
RULE Fire DEFINE { dotr_e a :Fire ; :v ?v } FROM Reading
WITH ?o := Reading.?o, ?v := Reading.?v, ?at := Reading.time, ?time := STRLEN(STR(Reading.?v)),
  ?d := xsd:double(STRLEN(STR(Reading.?v)))
RULE Many DEFINE { dotr_e a :Many ; :n ?n } FROM Fire
AND COUNT(*) AS ?n OVER Reading WITHIN 10 s FROM Fire
AND OPTIONAL LAST Prior := Reading WITHIN 10 s BEFORE Fire
AND COLLECT(All.?v) AS ?all OVER All := Reading WITHIN 10 s FROM Fire
WITH ?n := ?n, ?v := Fire.?v, ?all := ?all
"""


def test_the_program_tells_kinds() -> None:
    """`?v` is whatever the data have."""
    columns = columns_of(parse_program(RULES), Clock(integer=False))
    assert columns.bindings == {
        "o": "",
        "v": "",
        "at": "dateTime",
        "time": "integer",
        "d": "double",
        "n": "integer",
        "all": "list",
    }
    assert columns.match["Fire"]["at"] == "dateTime"
    assert list(columns.match["Prior"]) == ["o", "v", "note"]
    assert columns_of(parse_program(RULES), Clock()).bindings["at"] == "integer"
    declared = columns_of(parse_program(RULES), Clock(), {"v": "double", "Fire.o": "iri"})
    assert (declared.bindings["v"], declared.match["Reading"]["v"]) == ("double", "double")
    assert declared.bindings["o"] == "iri"
    assert declared.match["Reading"]["o"] == ""


@pytest.mark.parametrize(
    ("types", "message"),
    [({"w": "double"}, "no rule has the variable `w`"), ({"v": "doubel"}, "did you mean `double`")],
)
def test_types_that_nothing_has_are_refused(types: Mapping[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=f"D4123[\\s\\S]*{message}"):
        columns_of(parse_program(RULES), Clock(), types)


@pytest.mark.parametrize(
    ("types", "carry", "message"),
    [
        ([("v", "double")], (), "`types` cannot be"),
        (7, (), "`types` cannot be `7`"),
        ({"v": ["double"]}, (), "`types` cannot be"),
        ({3: "double"}, (), "`types` cannot be"),
        ("Data", (), "`types` cannot be `Data`"),
        (None, ("device", "device"), "the column `device` twice"),
        (None, ("device", "Device"), "the column `Device` twice"),
        (None, ("graph",), "a column `graph` of their own"),
        (None, ("devise",), "no column `devise`"),
    ],
)
def test_arguments_of_a_wrong_kind_are_refused(types: Any, carry: Sequence[str], message: str) -> None:
    """A list of pairs was taken for no types at all; a column carried twice was ambiguous in Spark."""
    log: Any = SimpleNamespace(columns=["time", "graph", "device", "Device"])
    check_typed(log, "typed", {"v": "double"}, ["device"])
    with pytest.raises(UsageError, match=f"D4123[\\s\\S]*{message}"):
        check_typed(log, "typed", types, carry)


@given(st.lists(TERMS.filter(lambda term: term[0] != "_"), min_size=1, max_size=8), st.sampled_from(DECLARED))
def test_rows_have_every_term_of_their_events(terms: list[Term], kind: str) -> None:
    """Read back from the columns and `terms`, events are what the engine reported."""
    columns = columns_of(parse_program(RULES), Clock(), {"v": kind}).with_kinds({})
    pipeline = Pipeline(Deployment(parse_program(RULES)))
    pipeline.begin(Clock())
    events: list[Composite] = []
    for second, term in enumerate(terms):
        events += pipeline.push(second * 10**6, [(f"<urn:x:o{second}>", "<urn:x:v>", term)])
    events += pipeline.finish()
    assert len(events) == 2 * len(terms)
    batch = TypedBatches(columns).of(events)
    for row, event in zip(batch.to_pylist(), events, strict=True):
        odd = dict(row["terms"])
        for name, term in event.bindings:
            found = odd.get(name) or again(_read(row["bindings"][name]), columns.bindings[name])
            assert found == term
        for position, variables, fact in event.match:
            assert row["match"][position]["time"] * 1_000_000 == fact[0]
            for name, term in zip(variables, fact[1], strict=True):
                value = row["match"][position]["values"][name]
                found = odd.get(f"{position}.{name}")
                if term is None:
                    assert (value, found) == (None, None)
                else:
                    assert (found or again(_read(value), columns.match[position][name])) == term
        absent = set(row["match"]) - {name for name, _, _ in event.match}
        assert all(row["match"][name] is None for name in absent)


def _read(value: Any) -> Any:
    return round(value.timestamp() * 1e6) if isinstance(value, datetime) else value


# ------------------------------------------------------------------ on Spark

HOT = """PREFIX : <urn:x:>
RULE Fire DEFINE { dotr_e a :Fire ; :at ?room } FROM Reading := { SELECT ?room ?c { ?o :c ?c ; :room ?room } }
AND COUNT(*) AS ?n OVER Near := Reading WITHIN 9 s FROM Reading ON Near.?room = Reading.?room
WHERE Reading.?c > 60
WITH ?room := Reading.?room, ?c := Reading.?c, ?n := ?n
"""
CELSIUS = (
    "71",
    '"80.5"^^<http://www.w3.org/2001/XMLSchema#double>',
    '"90"^^<http://www.w3.org/2001/XMLSchema#integer>',
)


def log_of(spark: Any, again: bool) -> Any:
    """Three instants of 2026; `again`: the second in two rows."""
    rows = []
    for n, celsius in enumerate(CELSIUS):
        number = celsius if celsius[0] == '"' else f'"{celsius}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        graph = f"<urn:x:o{n}> <urn:x:c> {number} .\n<urn:x:o{n}> <urn:x:room> <urn:x:r{n % 2}> ."
        rows.append((datetime(2026, 1, 1 + n, tzinfo=UTC), graph, f"device{n}"))
    if again:
        rows.append((rows[1][0], "<urn:x:o1> <urn:x:of> <urn:x:b> .", "another"))
    return spark.createDataFrame(rows, "time timestamp, graph string, device string")


@pytest.mark.spark
def test_events_of_a_frame_are_typed_and_written_by_rule_and_date(spark: Any, tmp_path: Path) -> None:
    log = log_of(spark, again=True)
    events = dotr.spark.detect(log, text=HOT, carry=["device"], types={"Fire.c": "double"}, by="key")
    assert [name for name, _ in events.dtypes] == [
        *("time", "date", "rule", "id", "bindings", "match", "terms", "graph", "device")
    ]
    found = {row.date.day: row for row in events.collect()}
    assert sorted(found) == [1, 2, 3]
    assert [found[day].bindings.c for day in (1, 2, 3)] == [71.0, 80.5, 90.0]  # integers as well
    integers = [CELSIUS[2].replace("90", "71"), CELSIUS[2]]
    assert [dict(found[day].terms) for day in (1, 2, 3)] == [{"c": integers[0]}, {}, {"c": integers[1]}]
    assert found[3].bindings.n == 1
    assert found[3].bindings.room.asDict() == {"value": "urn:x:r0", "type": "iri", "lang": None}
    assert found[3].match.Reading["values"].c.type == XSD + "integer"
    assert found[3].match.Reading["values"].c.value == "90"
    assert found[3].time == datetime(2026, 1, 3)  # Spark collects times of the session's zone
    assert [found[day].device for day in (1, 2, 3)] == [["device0"], ["another", "device1"], ["device2"]]
    fire = events.rule("Fire")
    assert fire.columns == ["time", "id", "room", "c", "n", "terms", "device"]
    events.write.partitionBy("rule", "date").parquet(str(tmp_path / "out"))
    again = spark.read.parquet(str(tmp_path / "out")).where("rule = 'Fire' AND date = DATE'2026-01-02'")
    assert [row.bindings.c for row in again.collect()] == [80.5]
    assert again.collect()[0].date == date(2026, 1, 2)
    with pytest.raises(UsageError, match="D4123"):
        events.rule("Fires")


@pytest.mark.spark
def test_names_that_differ_only_in_case_are_refused(spark: Any) -> None:
    """Spark took them for one field, and ended with an error of its own when that was read."""
    rules = HOT.replace("?n := ?n", "?n := ?n, ?ROOM := Reading.?c")
    log = log_of(spark, again=False)
    with pytest.raises(UsageError, match="`room` and `ROOM`"):
        dotr.spark.detect(log, text=rules)
    assert dotr.spark.detect(log, text=rules, schema="terms").count() == 3
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert dotr.spark.detect(log, text=rules).select("bindings.ROOM").count() == 3
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_program_without_events_has_no_empty_struct(spark: Any, tmp_path: Path) -> None:
    """Parquet refuses a struct without fields."""
    events = dotr.spark.detect(log_of(spark, again=False), text=HOT.replace("RULE Fire", "PRIVATE RULE Fire"))
    assert events.columns == ["time", "date", "rule", "id", "terms", "graph"]
    events.write.parquet(str(tmp_path / "out"))
    with pytest.raises(UsageError, match="D4123"):
        events.rule("Fire")


@pytest.mark.spark
def test_a_run_over_the_data_finds_types_of_distinct_times(spark: Any) -> None:
    log = log_of(spark, again=False).where("device < 'device1' OR device > 'device1'")
    options: dict[str, Any] = {"text": HOT, "types": "data", "times": "distinct", "carry": ["device"]}
    events = dotr.spark.detect(log, by="key", **options)
    assert events.select("bindings.room", "bindings.c", "bindings.n", "device").dtypes == [
        *(("room", "string"), ("c", "bigint"), ("n", "bigint"), ("device", "string"))
    ]
    rows = sorted(events.rule("Fire").drop("time", "id").collect())
    assert [(row.room, row.c, row.device, dict(row.terms)) for row in rows] == [
        ("urn:x:r0", 71, "device0", {}),
        ("urn:x:r0", 90, "device2", {}),
    ]


@pytest.mark.spark
@pytest.mark.parametrize(("distinct", "few"), [(True, 9), (False, 9), (False, 0)])
def test_detect_reads_its_frame_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distinct: bool, few: int
) -> None:
    """There were four scans of the graphs if times stand in several rows. Distinct times are not compared."""
    monkeypatch.setattr("dotr.batch.spark.frame_stages.FEW", few)
    log_of(spark, again=not distinct).write.parquet(str(tmp_path / "log"))
    log = spark.read.parquet(str(tmp_path / "log"))
    times: Any = "distinct" if distinct else "any"
    events = dotr.spark.detect(log, text=HOT, by="key", schema="terms", times=times)
    plan = events._jdf.queryExecution().executedPlan().toString()
    assert plan.count("FileScan parquet") == 1
    assert plan.count("Exchange hashpartitioning(time") == (0 if distinct else 1)
    assert sorted(row.bindings["c"] for row in events.collect()) == sorted(
        term if term[0] == '"' else literal(term, XSD + "integer") for term in CELSIUS
    )


@pytest.mark.spark
def test_a_time_of_two_rows_is_not_distinct(spark: Any) -> None:
    """Each row was an instant of its own, without an error."""
    log = log_of(spark, again=True).coalesce(1).sortWithinPartitions("time")
    events = dotr.spark.detect(log, text=HOT, by="key", times="distinct")
    with pytest.raises(UsageError, match=r"D4123[\s\S]*several rows[\s\S]*times=\"any\""):
        events.collect()


@pytest.mark.spark
def test_names_that_differ_in_case_from_a_column_keep_their_question_mark(spark: Any) -> None:
    """`?Time` and `time` were one column for Spark; maps that are carried could not be sorted."""
    rules = HOT.replace("?n := ?n", "?Time := ?n")
    celsius = '<urn:x:o> <urn:x:c> "71"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    rows = [(1, f"{celsius}\n<urn:x:o> <urn:x:room> <urn:x:r> .", {"a": 1})]
    log = spark.createDataFrame(rows, "time bigint, graph string, tags map<string,int>")
    events: Any = dotr.spark.detect(log, text=rules, carry=["tags"], times="distinct")
    fire = events.rule("Fire")
    assert fire.columns == ["time", "id", "room", "c", "?Time", "terms", "tags"]
    assert fire.select("time", "`?Time`", "tags").collect() == [(1, 1, {"a": 1})]
    with pytest.raises(UsageError, match=r"D4123[\s\S]*`tags` has a map"):
        dotr.spark.detect(log, text=rules, carry=["tags"])
