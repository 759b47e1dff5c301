"""Too far ahead is too far ahead: what `dotr run` refuses, a batch refuses; what it skips, a batch skips."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.time_cuts import Spans, gaps, joined
from dotr.batch.work import Treatment
from dotr.core.deployment import Deployment
from dotr.errors import DataError
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from tests.batch.test_local import Serial, output, quiet
from tests.batch.test_refused_instants import letters
from tests.cli.conftest import Dotr, dotr, folder  # noqa: F401  # fixtures

RULES = """PREFIX : <urn:x:>
QUERY Heat := { SELECT ?v { ?s :v ?v } }
QUERY Place := { SELECT ?p { ?p a :Place } }
RULE Warm DEFINE { dotr_w :warm ?v } FROM EVERY 2 s AS T AND LAST Heat WITHIN 7 s FROM T WITH ?v := Heat.?v
RULE Often DEFINE { dotr_o :often ?n } FROM EVERY 3 s AS T
AND COUNT(*) AS ?n OVER Place WITHIN 9 s FROM T AND EACH Heat WITHIN 4 s FROM T WITH ?n := ?n
RULE Found DEFINE { dotr_f :found ?n } FROM Heat
AND COUNT(*) AS ?n OVER Warm WITHIN 30 s BEFORE Heat WITH ?n := ?n
"""
LOST = RULES + (
    "RULE Lost DEFINE { dotr_l :lost ?p } FROM EVERY 1 s AS T AND EACH Place WITHIN 0 s FROM T "
    "AND NOT Heat WITHIN 40 s FROM T WITH ?p := Place.?p"
)
CAME = """PREFIX : <urn:x:>
HOLD :v FOR 5 s
QUERY Heat := { SELECT ?v { ?s :v ?v } }
RULE Came DEFINE { dotr_c :came ?v } FROM C := ISTREAM Heat WITH ?v := C.?v
"""
TICKING = (
    CAME
    + """
RULE Warm DEFINE { dotr_w :warm ?v } FROM EVERY 2 s AS T AND LAST Heat WITHIN 7 s FROM T WITH ?v := Heat.?v
"""
)
SEEN = """PREFIX : <urn:x:>
RULE Seen DEFINE { dotr_s :seen ?v } FROM Heat := { SELECT ?v { ?s :v ?v } } WITH ?v := Heat.?v
"""
BACKGROUND = "<urn:x:hall> a <urn:x:Place> ."
GRAPH = "<urn:a> <urn:x:v> 1 ."
TIMES = [3, 4, 9, 60, 61, 400, 10**9, 10**9 + 5, 10**12]


def write(rules: str, times: list[int]) -> None:
    Path("r.dotr").write_text(rules)
    Path("hall.ttl").write_text(BACKGROUND)
    lines = [json.dumps({"time": time, "graph": GRAPH}) for time in times]
    Path("log.jsonl").write_text("\n".join(lines))
    random.Random(3).shuffle(lines)
    Path("shuffled.jsonl").write_text("\n".join(lines))


CASES = [
    (RULES, [], {}),
    (LOST, [], {"D2107"}),
    (RULES, ["--max-jump", "50s"], {"D2106"}),
    (LOST, ["--max-jump", "400s"], {"D2106"}),
    (CAME, [], {}),
    (CAME, ["--max-jump", "50s"], {"D2106"}),
    (TICKING, [], {"D2107"}),
    (TICKING, ["--max-jump", "50s"], {"D2106"}),
]


@pytest.mark.parametrize(("rules", "options", "codes"), CASES)
@pytest.mark.parametrize("slice_", ["", "100s"])
def test_the_local_engine_refuses_and_skips_as_run_does(
    dotr: Dotr,  # noqa: F811  # the fixture
    monkeypatch: pytest.MonkeyPatch,
    rules: str,
    options: list[str],
    codes: set[str],
    slice_: str,
) -> None:
    monkeypatch.setattr("dotr.batch.local._pool", Serial)
    write(rules, TIMES)
    common = ["--background", "hall.ttl", *options, "-q"]
    ran = dotr("run", "r.dotr", "log.jsonl", *common, "--on-error", "file=dead.jsonl")
    assert ran.code == 0
    arguments = ["batch", "r.dotr", "--log", "shuffled.jsonl", "--engine", "local", *common]
    arguments += ["--slice", slice_] if slice_ else []
    batch = dotr(*arguments, "--out", "out", "--on-error", "file=batch.jsonl")
    assert batch.code == 0
    assert letters(Path("batch.jsonl").read_text()) == letters(Path("dead.jsonl").read_text())
    assert {code for code, _, _ in letters(Path("dead.jsonl").read_text())} == set(codes)
    found = [line for file in Path("out").glob("part-*") for line in file.read_text().splitlines()]
    assert sorted(found) == sorted(ran.out.splitlines())
    assert found
    fails = dotr(*arguments, "--out", "fails")
    assert fails.code == (3 if codes else 0)
    assert all(f"error[{code}]" in fails.err for code in codes)
    assert Path("fails").exists() == (not codes)


@pytest.mark.spark
@pytest.mark.parametrize(("rules", "options", "codes"), CASES)
def test_spark_refuses_and_skips_as_run_does(
    dotr: Dotr,  # noqa: F811  # the fixture
    spark: Any,
    rules: str,
    options: list[str],
    codes: set[str],
) -> None:
    write(rules, TIMES)
    ran = dotr(
        "run",
        "r.dotr",
        "log.jsonl",
        "--background",
        "hall.ttl",
        *options,
        "-q",
        "--on-error",
        "file=dead.jsonl",
    )
    program = load_program(["r.dotr"], read_rules_text)
    background = [("<urn:x:hall>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<urn:x:Place>")]
    log = open_log(["shuffled.jsonl"], SourceOptions(), fail=False)
    Path("out").mkdir()
    jump = int(options[1][:-1]) * 10**6 if options else None
    request = Request(
        Deployment(program, background), log, treatment=Treatment(forgiving=True), max_jump=jump
    )
    report = SparkRunner().run(request, str(Path("out").resolve()), quiet)
    assert output(Path("out"), report) == sorted(ran.out.splitlines())
    assert letters("\n".join(report.letters)) == letters(Path("dead.jsonl").read_text())


@pytest.mark.spark
def test_frames_refuse_what_jumps_too_far_as_run_does(dotr: Dotr, spark: Any) -> None:  # noqa: F811  # the fixture
    from dotr.spark import detect  # noqa: PLC0415  # needs Java, which may be missing

    write(SEEN, TIMES)
    common = ["--max-jump", "60s", "-q"]
    ran = dotr("run", "r.dotr", "log.jsonl", *common, "--on-error", "file=dead.jsonl")
    rows = [(time, '<urn:a> <urn:x:v> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .') for time in TIMES]
    random.Random(3).shuffle(rows)
    log = spark.createDataFrame(rows, "time bigint, graph string")
    found, left = detect(log, "r.dotr", max_jump="60 s", on_error="keep")
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert {event["time"] for event in events} == {3, 4, 9, 60, 61}
    reported = sorted((event["time"], event["rule"], event["id"]) for event in events)
    assert sorted((row.time, row.rule, row.id) for row in found.collect()) == reported
    refused = sorted(json.loads(row.letter)["time"] for row in left.collect())
    assert refused == sorted(json.loads(line)["time"] for line in Path("dead.jsonl").read_text().splitlines())
    assert refused == [time for time in TIMES if time > 61]
    with pytest.raises(DataError, match="D2106"):
        detect(log, "r.dotr", max_jump="60 s").collect()
    assert detect(log, "r.dotr").count() == len(TIMES)


def test_a_slice_that_is_asked_for_is_not_too_short_for_a_wrong_clock(
    dotr: Dotr,  # noqa: F811  # the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dotr.batch.local._pool", Serial)
    write(RULES, [*range(0, 1000, 2), 10**11])
    arguments = ["--log", "log.jsonl", "--engine", "local", "--slice", "200s", "--out", "out", "-q"]
    assert dotr("batch", "r.dotr", *arguments, "--background", "hall.ttl").code == 0
    assert json.loads(Path("out/_dotr_run.json").read_text())["parts"] < 40_000


@settings(max_examples=300)
@given(st.lists(st.integers(-50, 50)), st.integers(0, 12), st.integers(1, 5))
def test_gaps_are_found_in_times_of_any_order(times: list[int], stride: int, readers: int) -> None:
    found = [Spans(stride) for _ in range(readers)]
    for number, time in enumerate(times):
        found[number % readers].add(time)
    ordered = sorted(set(times))
    wide = [pair for pair in pairwise(ordered) if pair[1] - pair[0] > stride]
    spans = [span for one in found for span in one.joined()]
    assert list(gaps(spans, stride)) == wide
    assert joined(joined(spans, stride), stride) == joined(spans, stride)


def test_many_cells_are_joined_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.batch.time_cuts._MANY", 3)
    spans = Spans(2)
    for time in (0, 50, 3, 6, 52, 9, 100, 12, 15):
        spans.add(time)
    assert spans.joined() == [(0, 0), (3, 3), (6, 6), (9, 9), (12, 12), (15, 15), (50, 52), (100, 100)]
