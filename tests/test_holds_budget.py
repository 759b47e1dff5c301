"""The budget of what holds: joins that explode are refused soon, and alike in every way of running."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dotr
from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.cli.main import run
from dotr.core.deployment import Deployment, Settings
from dotr.errors import DotrError
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions
from dotr.io.time import UNITS
from dotr.lang import load_program
from tests.batch.test_holds_by_key import programs as keyed
from tests.batch.test_local import Serial, output, quiet
from tests.test_holds import STREAMS, programs

FEWER = settings(max_examples=max(25, settings().max_examples // 4), deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("holds")
    (made / "f.ttl").write_text("<ex:x> a <ex:F> . <ex:z> a <ex:F> .", encoding="utf-8")
    return made


def pushed(rules: str, stream: list[tuple[int, str]], budget: int, cuts: bool) -> list[str]:
    """The events of an engine, and what ended it; `cuts`: with a snapshot behind every graph."""
    found: list[str] = []
    try:
        engine = dotr.Engine(rules, budget=budget)
        for time, graph in stream:
            found += [event.to_json() for event in engine.push(f"PREFIX : <ex:> {graph}", at=time)]
            if cuts:
                engine = dotr.Engine(rules, budget=budget, snapshot=engine.snapshot())
        found += [event.to_json() for event in engine.finish()]
    except DotrError as error:
        found.append(str(error))
    return found


def refusal(outcome: list[str]) -> list[str]:
    return [line for line in outcome if "D4011" in line]


def in_batch(folder: Path, stream: list[tuple[int, str]], budget: int) -> tuple[list[str], list[str]]:
    """(events, findings) of a batch in processes; what ended it is its only event."""
    log = folder / "log.jsonl"
    lines = [json.dumps({"time": time, "graph": f"PREFIX : <ex:> {graph}"}) for time, graph in stream]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    program = load_program([str(folder / "rules.dotr")], read_rules_text)
    background, options = read_background(program.background), SourceOptions(unit=UNITS["s"])
    out = folder / "out"
    out.mkdir(exist_ok=True)
    deployment = Deployment(program, background, Settings(budget=budget))
    try:
        report = LocalRunner(2, Serial).run(
            Request(deployment, open_log([str(log)], options)), str(out), quiet
        )
    except DotrError as error:
        return [str(error)], []
    return output(out, report), [found.code for found in report.findings]


@FEWER
@given(st.one_of(programs(), keyed()), STREAMS, st.integers(1, 400))
def test_every_way_of_running_refuses_alike(
    folder: Path, program: tuple[str, str], gaps: list[tuple[int, str]], budget: int
) -> None:
    (folder / "rules.dotr").write_text(program[0], encoding="utf-8")
    (folder / "holds.lars").write_text(program[1], encoding="utf-8")
    rules = str(folder / "rules.dotr")
    time, stream = 0, []
    for gap, graph in gaps:
        time += gap
        stream.append((time, graph))
    whole = pushed(rules, stream, budget, False)
    if any("error[" in line and "D4011" not in line for line in whole):
        return  # a query or a rule takes too much, which is tested elsewhere
    assert pushed(rules, stream, budget, True) == whole
    events, _ = in_batch(folder, stream, budget)
    if refusal(whole):
        assert refusal(events) == refusal(whole)
    else:
        assert sorted(json.loads(line)["id"] for line in events) == sorted(
            json.loads(line)["id"] for line in whole
        )


EXPLODING = {
    "pairs": "near(?a, ?b) :- p(?a, ?x) WITHIN 10 s, p(?b, ?y) WITHIN 10 s .",
    "filtered": "near(?a, ?a) :- p(?a, ?x) WITHIN 10 s, p(?b, ?y) WITHIN 10 s, FILTER(?x + ?y < 0) .",
    "standing": "near(?a, ?b) :- p(?a, ?x) WITHIN 10 s, p(?b, ?y) WITHIN 10 s, NOT p(:none, ?z) WITHIN 9 s .",
    "facts": "near(?a, ?b) :- p(?a, ?x) WITHIN 9000 FACTS, p(?b, ?y) WITHIN 9000 FACTS .",
    "recursive": "near(?a, ?b) :- p(?a, ?x), p(?b, ?y), FILTER(?x + 1 = ?y) . "
    "near(?a, ?c) :- near(?a, ?b), near(?b, ?c) WITHIN 3 s .",
    "at": "near(?a, ?b) AT ?t :- p(?a, ?x) AT ?t WITHIN 10 s, p(?b, ?y) AT ?t WITHIN 10 s .",
}


@pytest.mark.parametrize("name", EXPLODING)
def test_a_join_that_explodes_ends_with_the_rule_and_its_loops(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = " ".join(f":o{i} :val {i} ." for i in range(5_000))
    (tmp_path / "s.jsonl").write_text(json.dumps({"time": 3, "graph": f"PREFIX : <ex:> {graph}"}) + "\n")
    (tmp_path / "h.lars").write_text(f"PREFIX : <ex:>\nSTEP 1 s\n{EXPLODING[name]}\n")
    (tmp_path / "r.dotr").write_text(
        "PREFIX : <ex:>\nLARS <h.lars>\nQUERY p := { SELECT ?a ?x { ?a :val ?x } }\n"
        "RULE R DEFINE { dotr_x a :R } FROM ISTREAM near\n"
    )
    start = process_time()
    arguments = ["run", str(tmp_path / "r.dotr"), str(tmp_path / "s.jsonl"), "--on-error", "skip"]
    assert run(arguments) == 3
    reported = capsys.readouterr().err
    assert process_time() - start < 20
    assert "error[D4011]: a rule for `near` brings what holds at 3 to more than 10000000 units" in reported
    assert "h.lars:3:" in reported
    assert "in a loop over p(" in reported or "in a loop over near(" in reported


def test_a_text_that_grows_is_refused_at_its_rule(tmp_path: Path) -> None:
    bind = "BIND(REPLACE(?t, '', ?t) AS ?u)"
    (tmp_path / "h.lars").write_text(f"long(?u) :- text(?t), {bind} .\n")
    (tmp_path / "r.dotr").write_text(
        "LARS <h.lars>\nQUERY text := { SELECT ?t { ?x <ex:t> ?t } }\n"
        "RULE R DEFINE { dotr_x a <ex:R> } FROM ISTREAM long\n"
    )
    engine = dotr.Engine(str(tmp_path / "r.dotr"))
    engine.push(f'<ex:o> <ex:t> "{"x" * 2_000}" .', at=1)
    with pytest.raises(DotrError, match=r"D4133.*a rule for `long` makes a string"):
        engine.finish()


def test_a_part_of_the_keys_that_is_crowded_is_run_in_one_task(tmp_path: Path) -> None:
    graph = " ".join(f":o{i} :val :v{i} ." for i in range(20))
    (tmp_path / "holds.lars").write_text("h(?x) :- p(?x, ?y) WITHIN 5 s .\n")
    (tmp_path / "rules.dotr").write_text(
        "PREFIX : <ex:>\nLARS <holds.lars>\nQUERY p := { SELECT ?x ?y { ?x :val ?y } }\n"
        "RULE R DEFINE { dotr_x a :R } FROM ISTREAM h WITH ?x := h.?x\n"
    )
    stream = [(1, graph), (3, ":o1 :val :v0 .")]
    outcomes = {budget: in_batch(tmp_path, stream, budget) for budget in (150, 260, 100_000)}
    assert [len(events) for events, _ in outcomes.values()] == [1, 20, 20]
    assert refusal(outcomes[150][0]) == refusal(pushed(str(tmp_path / "rules.dotr"), stream, 150, False))
    assert ["D4126" in findings for _, findings in outcomes.values()] == [False, True, False]
