"""What events offer to Python programs: matched facts, prefixes, frames, notebooks, and types."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import rdflib

import dotr
from tests.python.notebook import NOTEBOOK, data_of, shown

RULES = """PREFIX : <urn:ex:>
QUERY Temp := { SELECT ?m ?c WHERE { ?o :celsius ?c ; :of ?m } }
QUERY Door := { SELECT ?m ?who WHERE { ?o :door ?m OPTIONAL { ?o :by ?who } } }
RULE Hot
DEFINE { dotr_x a :Hot ; :of ?m ; :celsius ?c }
FROM Temp AND LAST Door WITHIN 5 s FROM Temp ON Door.?m = Temp.?m
WITH ?m := Temp.?m, ?c := Temp.?c
RULE Warm DEFINE { dotr_x a :Warm } FROM Temp
"""
URI = rdflib.Namespace("urn:ex:")


def events(**options: object) -> dotr.Events:
    engine = dotr.Engine.from_text(RULES, **options)  # type: ignore[arg-type]  # whatever a test gives
    engine.push("<urn:ex:d> <urn:ex:door> <urn:ex:oven> .", at=3)
    engine.push([(URI.o, URI.celsius, rdflib.Literal(70)), (URI.o, URI.of, URI.oven)], at=5)
    return engine.finish()


def test_a_match_has_the_facts_by_position() -> None:
    hot = events()[0]
    assert hot.match["Door"] == (3, {"m": URI.oven, "who": None})
    assert hot.match["Temp"].time == 5
    assert hot.match["Temp"].values["c"] == rdflib.Literal(70)


def test_a_graph_has_the_prefixes_of_the_program() -> None:
    text = events()[0].graph.serialize(format="turtle")
    assert "@prefix : <urn:ex:> ." in text
    assert "a :Hot" in text


def test_a_frame_has_a_row_an_event_and_values_of_python() -> None:
    frame = events().to_frame()
    assert list(frame.columns) == ["time", "rule", "id", "m", "c"]
    assert frame.iloc[0][["time", "rule", "m", "c"]].tolist() == [5, "Hot", "urn:ex:oven", 70]
    assert frame.iloc[1]["m"] is None
    assert list(dotr.Engine.from_text(RULES).finish().to_frame().columns) == ["time", "rule", "id"]


def test_a_frame_has_times_with_a_zone() -> None:
    engine = dotr.Engine.from_text(RULES)
    engine.push("<urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> .", at="2026-01-01T08:00:00Z")
    assert engine.finish().to_frame()["time"][0] == datetime(2026, 1, 1, 8, tzinfo=UTC)


def column(*values: str) -> pyarrow.ChunkedArray:
    """The values of a WITH variable in the table of events, a term in Turtle an event."""
    prefix = "PREFIX : <urn:ex:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    rules = prefix + "RULE R DEFINE { dotr_x :v ?v } FROM Q := { SELECT ?v { ?s :p ?v } } WITH ?v := Q.?v"
    engine, found = dotr.Engine.from_text(rules), []
    for at, value in enumerate(values):
        found += engine.push(f"{prefix} :s :p {value} .", at=at)
    found += engine.finish()
    return dotr.Events.of(found).to_arrow()["v"]


def test_a_table_of_arrow_has_a_row_an_event() -> None:
    table = events().to_arrow()
    assert table.schema.names == ["time", "rule", "id", "m", "c"]
    assert [str(kind) for kind in table.schema.types] == ["int64", "string", "string", "string", "int64"]
    assert table.select(["time", "rule", "m", "c"]).to_pylist() == [
        {"time": 5, "rule": "Hot", "m": "urn:ex:oven", "c": 70},
        {"time": 5, "rule": "Warm", "m": None, "c": None},
    ]
    assert dotr.Engine.from_text(RULES).finish().to_arrow().schema.names == ["time", "rule", "id"]


def test_a_table_of_arrow_has_times_in_utc() -> None:
    engine = dotr.Engine.from_text(RULES)
    engine.push("<urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> .", at="2026-01-01T08:00:00+02:00")
    times = engine.finish().to_arrow()["time"]
    assert times.type == pyarrow.timestamp("us", "UTC")
    assert times.to_pylist() == [datetime(2026, 1, 1, 6, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("values", "kind", "found"),
    [
        (("1", "2"), "int64", [1, 2]),
        (("1", "2.5e0"), "double", [1.0, 2.5]),
        (("1", "2.25", "10.5"), "decimal128(4, 2)", [Decimal("1.00"), Decimal("2.25"), Decimal("10.50")]),
        (("true", "false"), "bool", [True, False]),
        (('"2026-01-02"^^xsd:date',), "date32[day]", [date(2026, 1, 2)]),
        (
            ('"2026-01-02T03:00:00+01:00"^^xsd:dateTime',),
            "timestamp[us, tz=UTC]",
            [datetime(2026, 1, 2, 2, tzinfo=UTC)],
        ),
        (('"2026-01-02T03:00:00"^^xsd:dateTime',), "timestamp[us]", [datetime(2026, 1, 2, 3)]),
        ((":a", '"b"', '"c"@en'), "string", ["urn:ex:a", "b", "c"]),
    ],
)
def test_a_column_of_arrow_has_the_type_of_its_values(values: list[str], kind: str, found: list[Any]) -> None:
    made = column(*values)
    assert (str(made.type), made.to_pylist()) == (kind, found)


@pytest.mark.parametrize(
    "values",
    [
        ("1", '"one"'),
        ("true", "1"),
        ("9223372036854775808",),
        ("9007199254740993", "0.5e0"),
        ("0.1", "0.5e0"),
        ("10000000000000000000000000000000000000000", "0.1"),
        ('"2026-01-02T03:00:00"^^xsd:dateTime', '"2026-01-02T03:00:00Z"^^xsd:dateTime'),
        ('"P1Y"^^xsd:duration',),
        ('"many"^^xsd:integer',),
    ],
)
def test_values_without_a_common_type_are_lexical_forms(values: list[str]) -> None:
    """Nothing is rounded to fit a type."""
    made = column(*values)
    forms = [value.partition("^^")[0].strip('"') for value in values]
    assert str(made.type) == "string"
    assert [rdflib.Literal(form).toPython().replace("e0", "") for form in forms] == [
        form.replace("E0", "").replace("e0", "") for form in made.to_pylist()
    ]


def test_a_frame_of_polars_has_the_table() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = events().to_polars()
    text, number = polars.String, polars.Int64
    assert frame.schema == {"time": number, "rule": text, "id": text, "m": text, "c": number}
    assert frame.drop("id").rows() == [(5, "Hot", "urn:ex:oven", 70), (5, "Warm", None, None)]


def test_without_polars_its_absence_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.io.event_frames.find_spec", lambda _name: None)
    with pytest.raises(dotr.EngineError, match="D4205") as raised:
        events().to_polars()
    assert raised.value.diagnostics[0].hint == "pip install polars"


def test_what_a_notebook_shows_is_escaped() -> None:
    html = events()._repr_html_()
    assert "<th>time</th><th>rule</th><th>m</th><th>c</th>" in html
    assert '<td><span class="time">5</span></td><td>Hot</td><td>:oven</td><td>70</td>' in html
    engine = dotr.Engine.from_text(RULES.replace("Temp.?c", '"<script>"'))
    engine.push(
        "<urn:ex:d> <urn:ex:door> <urn:ex:m> . <urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> .", 1
    )
    (first, _) = engine.finish()
    assert "&lt;script&gt;" in first._repr_html_()


def test_an_engine_says_what_it_is() -> None:
    engine = dotr.Engine.from_text(RULES)
    assert repr(engine) == "<dotr.Engine: 2 rules, 0 graphs, 0 events>"
    engine.push("<urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> .", at=12)
    assert repr(engine.finish()) == "[<Warm @ 12>]"
    assert repr(engine) == "<dotr.Engine: 2 rules, 1 graphs, 1 events, at 12>"
    assert '<td>Hot</td><td class="n">0</td><td>Temp 1 → LAST Door 0</td>' in engine._repr_html_()


def test_a_program_says_what_it_is() -> None:
    program = dotr.Engine.from_text(RULES.replace("RULE Warm", "PRIVATE RULE Warm")).program
    assert repr(program) == "<dotr program: 2 rules, 2 queries>"
    html = program._repr_html_()
    assert "<p>dotr program: 2 rules, 2 queries</p>" in html
    assert "<td>Hot</td><td></td><td>Temp</td><td>Door</td><td>?m ?c</td>" in html
    assert "<td>Warm</td><td>private</td><td>Temp</td>" in html
    assert repr(dotr.Engine.from_text("").program) == "<dotr program: empty>"
    many = "".join(f"RULE R{n} DEFINE {{ dotr_x a <urn:{n}> }} FROM Temp\n" for n in range(30))
    assert '<p class="note">and 12 more</p>' in dotr.Engine.from_text(RULES + many).program._repr_html_()


def test_programs_that_differ_have_other_fingerprints() -> None:
    """Though their `repr` is the same: workers of a batch are kept by this."""
    one, same, other = (
        dotr.Engine.from_text(text).program for text in (RULES, RULES, RULES.replace("5 s", "6 s"))
    )
    assert repr(one) == repr(other)
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_a_plan_says_what_each_rule_keeps() -> None:
    plan = dotr.Engine.from_text(RULES).plan
    assert repr(plan).split("\n") == [
        "<dotr plan: 2 rules>",
        "Hot",
        "  Temp  each fact of Temp",
        "  LAST Door  of Door  the last fact of each key, for 5 s",
        "Warm",
        "  Temp  each fact of Temp",
    ]
    html = plan._repr_html_()
    assert "<td>Hot</td><td>Temp</td><td>each fact of Temp</td><td></td>" in html
    assert "<td></td><td>LAST Door</td><td>of Door</td><td>the last fact of each key, for 5 s</td>" in html


def test_a_plan_is_that_of_the_rules_that_hold_now(tmp_path: Path) -> None:
    engine = dotr.Engine.from_text(RULES)
    engine.push("<urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> .", at=1)
    rules = tmp_path / "rules.dotr"
    rules.write_text(RULES.replace("5 s", "6 s"), encoding="utf-8")
    engine.replace(rules, at=5)
    assert "for 5 s" in repr(engine.plan)
    engine.push("<urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> .", at=6)
    assert [event.rule for event in engine.finish()] == ["Warm"]
    assert "for 6 s" in repr(engine.plan)


def test_a_path_is_read_and_a_text_that_names_one_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "now.ttl"
    file.write_text("<urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> .", encoding="utf-8")
    engine = dotr.Engine.from_text(RULES)
    engine.push(file, at=1)
    assert [event.rule for event in engine.finish()] == ["Warm"]
    with pytest.raises(dotr.UsageError, match="D4105") as raised:
        engine.push(str(file), at=2)
    assert "pathlib.Path" in str(raised.value)


def test_an_engine_goes_on_from_a_snapshot_of_rules_as_text() -> None:
    first = dotr.Engine.from_text(RULES)
    first.push("<urn:ex:d> <urn:ex:door> <urn:ex:oven> .", at=3)
    again = dotr.Engine.from_text(RULES, snapshot=first.snapshot())
    again.push("<urn:ex:o> <urn:ex:celsius> 70 ; <urn:ex:of> <urn:ex:oven> .", at=5)
    assert [event.rule for event in again.finish()] == ["Hot", "Warm"]


def test_a_snapshot_with_a_damaged_bit_is_refused_and_one_without_a_sum_is_read() -> None:
    def ended(blob: bytes) -> list[str]:
        again = dotr.Engine.from_text(RULES, snapshot=blob)
        again.push("<urn:ex:o> <urn:ex:celsius> 70 ; <urn:ex:of> <urn:ex:oven> .", at=5)
        return [event.rule for event in again.finish()]

    first = dotr.Engine.from_text(RULES)
    first.push("<urn:ex:d> <urn:ex:door> <urn:ex:oven> .", at=3)
    blob = first.snapshot()
    codes = set()
    for place in range(0, len(blob), 3):
        damaged = blob[:place] + bytes([blob[place] ^ 1 << place % 8]) + blob[place + 1 :]
        try:
            assert ended(damaged) == ["Hot", "Warm"], damaged
        except dotr.EngineError as error:
            codes.add(error.diagnostics[0].code)
    assert codes == {"D5102"}
    older = json.loads(blob)
    del older["sum"]
    assert ended(json.dumps(older).encode()) == ["Hot", "Warm"]


def test_an_engine_takes_the_time_path_and_the_policy_of_the_command_line(tmp_path: Path) -> None:
    lines = [
        {"graph": "<urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> ; <urn:ex:at> 12 ."},
        {"graph": "nonsense"},
        {"graph": "<urn:ex:o> <urn:ex:celsius> 8 ; <urn:ex:of> <urn:ex:m> ; <urn:ex:at> 13 ."},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    reported: list[dotr.DotrError] = []
    engine = dotr.Engine.from_text(RULES, time_path="urn:ex:at", on_error=reported.append)
    assert [event.time for event in engine.feed(tmp_path / "in.jsonl")] == [12, 13]
    assert (engine.refused, len(reported)) == (1, 1)
    with pytest.raises(dotr.DataError):
        list(dotr.Engine.from_text(RULES, time_path="urn:ex:at").feed(tmp_path / "in.jsonl"))
    with pytest.raises(dotr.UsageError, match="D4109"):
        dotr.Engine.from_text(RULES, on_error="ignore")


def test_an_instant_in_error_is_left_out_where_that_is_the_policy() -> None:
    rules = "ENTAILMENT owl2rl " + RULES
    engine = dotr.Engine.from_text(
        rules,
        background="<urn:ex:A> <http://www.w3.org/2002/07/owl#disjointWith> <urn:ex:B> .",
        on_error="skip",
    )
    engine.push("<urn:ex:o> a <urn:ex:A>, <urn:ex:B> .", at=1)
    engine.push("<urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> .", at=2)
    assert [event.time for event in engine.finish()] == [2]
    assert engine.refused == 1


SNIPPET = """
import asyncio
import datetime
import pathlib

import pandas
import pyarrow
import rdflib
import rdflib.term

import dotr

engine = dotr.Engine(pathlib.Path("fire.dotr"), lateness=datetime.timedelta(minutes=5), on_error="skip")
for event in engine.push("<urn:a> <urn:b> <urn:c> .", at=12):
    when: int | datetime.datetime = event.time
    value: rdflib.term.Node = event["room"]
    graph: rdflib.Graph = event.graph
    facts: dict[str, rdflib.term.Node | list[rdflib.term.Node] | None] = event.match["Smoke"].values
frame: pandas.DataFrame = engine.finish().to_frame()
steps: list[tuple[str, int]] = engine.counters.funnel["Fire"]
found: list[dotr.Diagnostic] = engine.diagnostics
blob: bytes = engine.snapshot()
table: pyarrow.Table = dotr.Events.of(engine.feed("events/")).to_arrow()


async def main() -> None:
    async with dotr.AsyncEngine(engine, unread=10) as hot:
        await hot.push("<urn:a> <urn:b> <urn:c> .", at=12)
        first: dotr.Event = await anext(hot)
        rules: list[str] = [event.rule async for event in hot]
        graphs: int = await hot.run(lambda engine: engine.counters.graphs)
        state: bytes = await hot.run(dotr.Engine.snapshot)
        print(first, rules, graphs, state)


try:
    asyncio.run(main())
except dotr.DotrError as error:
    one: dotr.Diagnostic = error.diagnostics[0]
    place: tuple[str, int | None, int | None] = (one.file, one.line, one.column)
    words: tuple[str, str, tuple[str, ...]] = (one.code, one.hint, one.notes)
"""


UNTYPED = {"reportMissingTypeStubs", "reportUnknownVariableType", "reportUnknownMemberType"}
"""What pyright reports of pandas and pyarrow, which have no types."""


def test_a_strict_checker_sees_types_everywhere(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(SNIPPET, encoding="utf-8")
    wrong = SNIPPET + "number: int = engine.snapshot()\n"
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    for name, code in (("snippet.py", 0), ("wrong.py", 1)):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
             "--disable-error-code=import-untyped", "--cache-dir", str(tmp_path), name],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
    assert 'expression has type "bytes", variable has type "int"' in done.stdout


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed (pip install pyright)")
def test_pyright_sees_the_same_types(tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    wrong = SNIPPET + "number: int = engine.snapshot()\n"
    for name, text, found in (("snippet.py", SNIPPET, set()), ("wrong.py", wrong, {"reportAssignmentType"})):
        (tmp_path / name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["pyright", "--pythonpath", sys.executable, "--outputjson", name],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        errors = [
            one for one in json.loads(done.stdout)["generalDiagnostics"]
            if one["severity"] == "error" and one.get("rule") not in UNTYPED
        ]  # fmt: skip
        assert {one["rule"] for one in errors} == found, errors


def test_the_notebook_of_the_examples_runs_and_shows_what_it_has_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Texts and pictures; `python -m tests.python.notebook` renews them."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    monkeypatch.chdir(NOTEBOOK.parent)
    kinds: list[str] = []
    for cell, value in shown(notebook):
        for output in cell["outputs"]:
            assert output["data"] == data_of(value)
            kinds += output["data"]
    assert kinds.count("text/html") >= 5
    assert kinds.count("text/plain") >= 7


def test_an_engine_is_asked_what_holds() -> None:
    engine = dotr.Engine.from_text(
        RULES + "RULE Kept DEFINE { dotr_x a :Kept } FROM Door",
        background="<urn:ex:oven> a <urn:ex:Machine> .",
        keep="1 min",
    )
    engine.push("<urn:ex:d> <urn:ex:door> <urn:ex:oven> .", at=3)
    engine.push("<urn:ex:o> <urn:ex:celsius> 7 ; <urn:ex:of> <urn:ex:m> .", at=5)
    engine.finish()
    assert engine.query("SELECT ?x { ?x a :Machine }") == [{"x": URI.oven}]
    assert engine.query("ASK { ?o :door :oven }") is False
    assert engine.query("ASK { ?o :door :oven }", at=3) is True
    assert engine.query("Temp", at=5) == [{"m": URI.m, "c": rdflib.Literal(7)}]
    graph = engine.query("CONSTRUCT { ?x :is ?y } WHERE { ?x a ?y }")
    assert isinstance(graph, rdflib.Graph)
    assert set(graph) == {(URI.oven, URI["is"], URI.Machine)}
    with pytest.raises(dotr.UsageError, match="D4112"):
        engine.query("SELECT (NOW() AS ?n) {}")
    with pytest.raises(dotr.UsageError, match="D4176"):
        dotr.Engine.from_text(RULES).query("ASK { ?s ?p ?o }", at=5)


def test_rules_that_share_a_threshold_and_find_nothing_are_no_events() -> None:
    quiet = "RULE Quiet%d DEFINE { dotr_q :quiet ?r } FROM Smoke AND NOT Heat WITHIN 9 s FROM Smoke\n"
    quiet += "ON Heat.?r = Smoke.?r && Heat.?v > %d WITH ?r := Smoke.?r\n"
    engine = dotr.Engine.from_text(
        "PREFIX : <urn:x:>\n"
        "QUERY Smoke := { SELECT ?r { ?o :smoke ?r } }\n"
        "QUERY Heat := { SELECT ?r ?v { ?o :at ?r ; :heat ?v } }\n"
        + "".join(quiet % (limit, limit) for limit in range(5))
    )
    assert not engine.push("<urn:x:o> <urn:x:at> 1 ; <urn:x:heat> 90 .", at=1)
    assert not engine.push("<urn:x:o> <urn:x:smoke> 1 .", at=2)
    assert not engine.push("<urn:x:o> <urn:x:at> 1 ; <urn:x:heat> 3 .", at=20)
    assert not engine.push("<urn:x:o> <urn:x:smoke> 1 .", at=21)
    assert [event.rule for event in engine.finish()] == ["Quiet3", "Quiet4"]
