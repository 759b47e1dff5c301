"""The benchmark can be believed: baselines find what dotr finds, floors are small, streams repeatable."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import dotr
from dotr.detect.detector import TeslaDetector
from dotr.errors import ProgramError
from dotr.events import Clock
from dotr.lang import parse_datalog
from dotr.reference.lars import LiteralLars
from dotr.windows.engine import LarsEngine
from dotr.windows.rules import strata

from . import (
    as_of,
    background,
    budget,
    by_hand,
    chains,
    citybench,
    detect,
    formats,
    lars,
    peers,
    peers_environment,
    peers_esper,
    peers_flink,
    places,
    report,
    residuals,
    runners,
    spark_paper,
    tables,
    workloads,
)
from .harness import DifferenceError, same
from .peers_closure import derives_schema
from .peers_environment import Environment, Peer, PeerError
from .runners import Run
from .workloads import Workload

ROOT = Path(__file__).parents[2]
WORKLOADS: dict[str, tuple[Workload, Callable[[Workload], Run]]] = {
    "default": (workloads.default(60, extra=50), runners.prepare_floor),
    "last 4": (workloads.sequence(60, 4, "LAST", count=2, extra=50), runners.prepare_floor_sequence),
    "each 3": (workloads.sequence(60, 3, "EACH", count=2, extra=50), runners.prepare_floor_sequence),
    "100 rules": (
        workloads.default(12, thresholds=workloads.thresholds(100, "all"), extra=50),
        runners.prepare_floor,
    ),
}


@pytest.mark.parametrize("rules", [1, 3])
def test_the_loop_by_hand_writes_the_bytes_that_dotr_writes(rules: int) -> None:
    row = by_hand.measure(2_000, rules, repeats=1)
    assert row["same"]
    assert row["events"] > 100


@pytest.mark.parametrize("name", WORKLOADS)
def test_dotr_floor_and_naive_loop_write_the_same_events(name: str) -> None:
    workload, floor = WORKLOADS[name]
    found = runners.prepare_dotr(workload)(workload.documents)
    assert found
    same("dotr", found, "floor", floor(workload)(workload.documents))
    same("dotr", found, "naive", runners.prepare_naive(workload)(workload.documents))


@pytest.mark.parametrize("query", ["q1", "q2"])
def test_citybench_is_the_same_for_all(query: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOTR_DATA", str(data))
    workload = citybench.citybench(query, 25, 10)
    keep = [line for line in workload.background.splitlines(keepends=True) if "copy" not in line]
    workload = replace(workload, background="".join(keep))
    found = runners.prepare_dotr(workload)(workload.documents)
    assert found
    same("dotr", found, "floor", runners.prepare_floor_citybench(workload)(workload.documents))
    naive = runners.prepare_naive(workload, citybench.PREFIXES)
    same("dotr", found, "naive", naive(workload.documents))


@pytest.mark.parametrize("case", lars.CASES, ids=lambda case: str(case.name))
def test_lars_programs_are_what_they_mean(case: lars.Case) -> None:
    program = case.program(3)
    layers = strata(program)
    engine = LarsEngine(program, layers, 0, lars.SECOND, Clock())
    literal = LiteralLars(program, layers, 0, lars.SECOND, Clock())
    stream = case.atoms(20)
    changes = 0
    for number in range(8):
        given = next(stream)
        changes += lars.visit(engine, len(layers), number * lars.SECOND, case.stream, given)
        literal.begin(number * lars.SECOND)
        literal.facts(case.stream, [(number * lars.SECOND, values) for values in given])
        for stratum in range(len(layers)):
            literal.evaluate(stratum)
        for name in {rule.head.atom.name for rule in program.rules}:
            assert engine.holding(name) == literal.holding(name)
        literal.end()
    assert changes > 20


@pytest.mark.parametrize("length", [3, 6])
def test_chains_have_few_matches_or_none(length: int) -> None:
    none, few = (chains.Chain(length, 60, kind) for kind in ("none", "few"))
    assert [none.trigger(), none.trigger()] == [0, 0]
    assert [few.trigger(), few.trigger()] == [60 // length] * 2
    counted, turns = chains.Chain(length, 60, "counted"), 60 // length
    assert [counted.trigger(), counted.trigger()] == [math.comb(turns + length - 1, length)] * 2


def test_rules_of_different_shape_all_fire() -> None:
    workload = workloads.different_shapes(40, 30, extra=50)
    found = "".join(runners.prepare_dotr(workload)(workload.documents))
    assert all(f"<urn:dotr:Shape{number}:" in found for number in range(1, 31))


def test_rules_that_do_not_fire_do_not() -> None:
    workload = workloads.default(40, thresholds=workloads.thresholds(20, "none"), extra=10)
    assert not runners.prepare_dotr(workload)(workload.documents)
    some = workloads.default(40, thresholds=workloads.thresholds(100, "1%"), extra=10)
    found = "".join(runners.prepare_dotr(some)(some.documents))
    assert "<urn:dotr:Event1:" in found
    assert "<urn:dotr:Event2:" not in found


def test_every_value_passes_every_filter_and_a_fifth_triggers() -> None:
    workload = workloads.default(5_000)
    values = [int(text.split()[-2]) for _, text in workload.documents]
    assert (min(values), max(values)) == (20, 100)
    triggers = sum("read_valA" in text for _, text in workload.documents)
    assert 0.18 < triggers / 5_000 < 0.22
    assert len(workload.background.splitlines()) == 25 + 10_000
    assert workload.datalog.count(":-") == 11


def test_workloads_are_the_same_at_every_call() -> None:
    assert workloads.default(50) == workloads.default(50)
    assert workloads.endless(50, 0.2, start=100) == workloads.endless(50, 0.2, start=100)


def test_ever_new_keys_still_match() -> None:
    workload = workloads.endless(100, 0.2)
    assert runners.prepare_dotr(workload)(workload.documents)


@pytest.mark.parametrize("file", sorted(Path(__file__).parent.glob("floor_*.py")), ids=lambda file: file.stem)
def test_a_floor_is_at_most_120_lines_and_owes_dotr_nothing(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert "import dotr" not in text
    assert "from dotr" not in text


def test_a_difference_is_reported_with_its_line() -> None:
    with pytest.raises(DifferenceError, match="line 2"):
        same("a", ["x\ny\n"], "b", ["x\nz\n"])
    with pytest.raises(DifferenceError, match="2 lines"):
        same("a", ["x\n", "y\n"], "b", ["x\n"])
    same("a", ["x\n", "y\n"], "b", ["x\n"], prefix=True)


def test_every_format_is_read_whole() -> None:
    assert {row["format"] for row in formats.measure(20, 1)} == set(formats.ALONE)


def test_the_page_on_spark_quotes_what_the_planner_gives() -> None:
    page = (Path(dotr.__file__).parent / "docs" / "spark.md").read_text(encoding="utf-8")
    section = page.partition("## 10⁹ graphs")[2]
    found = spark_paper.paper(10**9, 1_000, 20, 6, 10**7)
    for name, text in (
        ("tasks that read", "{:,.0f}, of"),
        ("pieces sent to one task, bytes", "{:,.0f} bytes"),
        ("parts by key", "{:,.0f} ·"),
        ("parts by time", "· {:,.0f}"),
        ("shuffle, GB", "{:.0f} GB of facts"),
        ("background, GB sent to an executor", "{:.2f} GB"),
        ("background, GB of a machine: mapped", "{:.2f} GB"),
        ("background, GB of a machine: in dicts", "{:.0f} GB in dicts"),
        ("heaviest task, s, keys as 1/rank", "{:.0f} s |"),
    ):
        assert text.format(found[name]) in section, name
    assert found["planning, MB of the driver"] < 40
    assert found["what tasks report to the driver, MB"] < 5


def test_a_mapped_background_writes_the_events_of_dicts() -> None:
    rows = list(background.lookups(sensors=300, graphs=400, repeats=1))  # they are compared
    assert [row["readings"] for row in rows] == ["hot", "uniform"]
    assert all(row["events a graph"] > 0 for row in rows)


def test_a_point_in_zones_is_found_with_the_filter_alone() -> None:
    pytest.importorskip("shapely")
    pytest.importorskip("pyproj")
    row = places.measure(100, places.PIECE)
    assert 0.7 < row["in a zone"] < 0.9


def test_what_workers_hold_is_measured_in_their_processes() -> None:
    held = background.workers(sensors=2_000, graphs=50)
    assert held["mapped: own MB"] < held["dicts: own MB"]


def test_tables_are_the_graphs_made_by_hand() -> None:
    assert [row["table"] for row in tables.measure(700, 1)] == list(tables.TABLES)


def test_the_last_line_is_json() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "ingest", "--quick", "--graphs", "50", "--repeats", "1"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["scenario"] == "ingest"
    assert {"rows", "checks", "machine"} <= set(result)


@pytest.mark.parametrize("name", sorted(peers.PEERS))
def test_what_runs_beside_a_peer_compiles_and_owes_dotr_nothing(name: str) -> None:
    assert peers.arguments().parse_args([name]).peer == name
    assert name in peers.COMPARISONS
    script = Path(__file__).parent / peers.PEERS[name].script
    text = script.read_text(encoding="utf-8")
    assert script.suffix == ".java" or compile(text, script.name, "exec")
    assert "import dotr" not in text
    assert "from dotr" not in text
    assert "from ." not in text


def test_a_peer_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        peers.main(["drools"])
    assert "choose from" in capsys.readouterr().err


def test_a_peer_that_cannot_run_here_says_what_is_missing() -> None:
    with pytest.raises(PeerError, match="nothing==1 needs `no-such-program`"):
        Environment(Peer("nothing==1", "none.py", needs=("no-such-program",))).__enter__()


@pytest.mark.parametrize("threshold", [peers_flink.THRESHOLD, peers_flink.RARE])
@pytest.mark.parametrize("name", peers_flink.RULES)
def test_a_peers_facts_and_the_stream_they_come_from_give_the_same_matches(name: str, threshold: int) -> None:
    default = workloads.default(1_000, extra=10)
    found = peers_flink.detected(name, threshold, peers_flink.instants(peers_flink.facts_of(default)))
    run = runners.prepare_dotr(replace(default, rules=peers_flink.rule(name, threshold)))
    assert found
    assert sorted(found) == sorted(peers_flink.written("".join(run(default.documents))))


@pytest.mark.parametrize(("selection", "rules"), peers_esper.CASES)
def test_facts_of_two_events_and_the_lines_they_come_from_give_the_same_matches(
    selection: str, rules: int, tmp_path: Path
) -> None:
    stream, program, out = tmp_path / "in.jsonl", tmp_path / "rules.dotr", tmp_path / "out.jsonl"
    by_hand.write_stream(stream, 2_000)
    peers_esper.write_rules(program, selection, rules)
    run = [sys.executable, "-m", "dotr.cli.main", "run", str(program), str(stream), "-o", str(out)]
    subprocess.run(run, cwd=ROOT, check=True, capture_output=True)
    known = peers_esper.instants(peers_esper.facts_of(stream))
    found = peers_esper.detected(selection, rules, known)
    assert len(found) > 100
    assert found == peers_esper.reported_by_dotr(out)
    assert len(found) == peers_esper.counting(selection, rules)(known)()
    if rules == 1:
        assert len(found) == peers_esper.by_dictionary(selection, by_hand.thresholds(1)[0])(known)()


def test_the_coordinates_of_a_peer_become_a_project_of_mavens() -> None:
    text = peers_environment.pom("a.b:c:1 a.b:d:2")
    assert "<groupId>a.b</groupId><artifactId>d</artifactId><version>2</version>" in text
    assert text.count("<dependency>") == 2


def test_the_size_of_a_measured_process_is_its_own(tmp_path: Path) -> None:
    held = bytearray(os.urandom(1)) * 200_000_000
    seconds, size = peers_environment.measured([sys.executable, "-S", "-c", "sum(range(300000))"], tmp_path)
    assert 0 < seconds < 60
    assert 2 < size < 100 < len(held) / 1e6
    with pytest.raises(PeerError, match="ends with 3"):
        peers_environment.measured([sys.executable, "-S", "-c", "raise SystemExit(3)"], tmp_path)


def test_next_is_last_without_the_second_trigger_after_a_reading() -> None:
    stream = peers_flink.instants(peers_flink.facts_of(workloads.default(1_000)))
    last, following = (set(peers_flink.detected(name, 40, stream)) for name in ("last", "next"))
    first: dict[tuple[str, int], int] = {}
    for room, second, _, since, _ in sorted(last, key=lambda match: match[1]):
        first.setdefault((room, since), second)
    assert following == {match for match in last if first[match[0], match[3]] == match[1]}
    assert following < last


def test_both_forms_of_a_peers_matches_are_read(tmp_path: Path) -> None:
    (tmp_path / "part-0").write_text('r1,"5=50,7=51",2,60\n', encoding="utf-8")
    (tmp_path / "part-1").write_text("r2,6,52,3,61\n", encoding="utf-8")
    assert peers_flink.reported(tmp_path) == [
        ("r1", 5, 50, 2, 60),
        ("r1", 7, 51, 2, 60),
        ("r2", 6, 52, 3, 61),
    ]


def test_rules_that_say_something_of_classes_from_two_kinds_of_statements_are_told_apart() -> None:
    prefix = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"
    domain = "[?p, rdfs:domain, ?d] :- [?p, rdfs:domain, ?c], [?c, rdfs:subClassOf, ?d] ."
    chain = "[?a, rdfs:subClassOf, ?c] :- [?a, rdfs:subClassOf, ?b], [?b, rdfs:subClassOf, ?c] ."
    member = "[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] ."
    rules = parse_datalog(prefix + "\n".join((domain, chain, member)), "rules.dlog")
    assert [derives_schema(rule) for rule in rules] == [True, False, False]


def test_the_section_of_the_readme_is_made_from_the_results(tmp_path: Path) -> None:
    result = {
        "scenario": "table1",
        "dotr_us": 9.25,
        "push_us": 11.5,
        "floor_us": 5.0,
        "naive_us": 3000.0,
        "parse_us": 2.5,
        "checks": {"dotr ≤ 2 × floor": False},
        "machine": {"cpu": "Slide rule", "cores": 2, "python": "3.11.7"},
    }
    results, readme = tmp_path / "results.jsonl", tmp_path / "README.md"
    older = {**result, "dotr_us": 99.0}
    results.write_text(f"a table\n{json.dumps(older)}\n{json.dumps(result)}\n", encoding="utf-8")
    readme.write_text(f"# dotr\n{report.BEGIN}\nold\n{report.END}\nmore\n", encoding="utf-8")
    report.main([str(results), str(readme)])
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(f"# dotr\n{report.BEGIN}\n")
    assert text.endswith(f"{report.END}\nmore\n")
    assert "**9.25 µs a graph**" in text
    assert "Slide rule" in text
    assert "different hardware" in text
    assert "Not reached in this run: table1: dotr ≤ 2 × floor." in text
    assert "old" not in text.split("different hardware")[0]


@pytest.mark.parametrize("workload", budget.kernels(2), ids=lambda workload: workload.name)
def test_uncharged_means_that_nothing_is_counted(workload: Workload) -> None:
    def prepare() -> Run:
        return runners.prepare_dotr(workload, budget=300)

    assert budget.without(prepare)(workload.documents)
    with pytest.raises(ProgramError, match=r"D4003|D4010|D4132"):
        prepare()(workload.documents)


@pytest.mark.parametrize("operator", residuals.OPERATORS)
def test_rules_with_a_further_condition_are_one_function(operator: str) -> None:
    for condition in residuals.CONDITIONS:
        network = TeslaDetector(residuals.ten(operator, condition), Clock()).network
        assert (len(network.groups), len(network.columns)) == (1, 1)


@pytest.mark.parametrize("size", [1, 7, 400])
def test_a_merge_over_arrays_finds_what_the_engine_finds(size: int) -> None:
    known: as_of.InstantFacts = [(time, None, facts, True) for time, facts in detect.stream(400)]
    batches = [known[place : place + size] for place in range(0, len(known), size)]
    found = as_of.merge(batches)
    assert len(found) > 50
    assert found == as_of.engine(batches)
