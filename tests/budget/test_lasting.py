"""What maintaining what lasts costs: an instant alone is cheap, all together have an allowance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dotr
from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.budget import LASTING, TRIPLE, Allowance, Spending
from dotr.cli.main import run
from dotr.core.deployment import Deployment, Settings
from dotr.errors import DotrError, ProgramError
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions
from dotr.io.time import UNITS
from dotr.lang import load_program
from tests.batch.test_local import Serial, output, quiet

HEAD = "PREFIX : <urn:x:>\nHOLD :p\n"
BEGUN = "RULE R DEFINE { dotr_r a :R ; :x ?x ; :y ?y } FROM B := {of} WITH ?x := B.?x, ?y := B.?y\n"
GROWING = {
    "a product in Datalog": (
        "RULES <d.dlog>\nQUERY Q := { SELECT ?x ?y { ?x :q ?y } }\n",
        ":q(?x, ?y) :- :p(?x, ?a), :p(?b, ?y), :p(?c, ?d) .",
        "ISTREAM Q",
    ),
    "a product in Datalog that derives nothing": (
        "RULES <d.dlog>\nQUERY Q := { SELECT ?x ?y { ?x :q ?y } }\n",
        ":q(?x, ?y) :- :p(?x, ?a), :p(?b, ?y), :p(?c, ?d), FILTER(STRLEN(STR(?a)) + STRLEN(STR(?d)) < 0) .",
        "ISTREAM Q",
    ),
    "a product in ISTREAM": (
        "QUERY Q := { SELECT DISTINCT ?x ?y { ?x :p ?a . ?b :p ?y . ?c :p ?d } }\n",
        "",
        "ISTREAM Q",
    ),
    "a product under FILTER": (
        "QUERY Q := { SELECT ?x ?y { ?x :p ?a . ?b :p ?y . ?c :p ?d FILTER(STRLEN(STR(?a)) + ?d < 0) } }\n",
        "",
        "ISTREAM Q",
    ),
    "a product without ISTREAM": ("QUERY Q := { SELECT ?x ?y { ?x :p ?a . ?b :p ?y } }\n", "", "Q"),
    "a path without ISTREAM": ("QUERY Q := { SELECT ?x ?y { ?x :p+ ?y } }\n", "", "Q"),
}


def rules_of(folder: Path, name: str) -> str:
    queries, dlog, of = GROWING[name]
    (folder / "d.dlog").write_text(f"PREFIX : <urn:x:>\n{dlog}\n", encoding="utf-8")
    (folder / "r.dotr").write_text(HEAD + queries + BEGUN.replace("{of}", of), encoding="utf-8")
    return str(folder / "r.dotr")


def chain(length: int) -> list[tuple[int, str]]:
    return [(time, f"<urn:x:n{time}> <urn:x:p> <urn:x:n{time + 1}> .") for time in range(length)]


def pushed(
    rules: str, stream: list[tuple[int, str]], budget: int, *, cuts: bool = False, on_error: str = "fail"
) -> tuple[list[str], list[str]]:
    """(events, what was refused); `cuts`: with a snapshot after every graph."""
    found: list[str] = []
    refused: list[str] = []

    def opened(snapshot: bytes | None = None) -> dotr.Engine:
        policy = (lambda error: refused.append(str(error))) if on_error == "skip" else on_error
        return dotr.Engine(rules, budget=budget, snapshot=snapshot, on_error=policy)

    engine = opened()
    try:
        for time, graph in stream:
            found += [event.to_json() for event in engine.push(graph, at=time)]
            if cuts:
                engine = opened(engine.snapshot())
        found += [event.to_json() for event in engine.finish()]
    except DotrError as error:
        refused.append(str(error))
    return found, refused


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_with_what_is_held_is_refused_soon(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All units of the run are within the budget and what every instant may spend anyway."""
    spent: list[int] = []
    end = Spending.end
    monkeypatch.setattr(Spending, "end", lambda self: spent.append(self._used) or end(self))
    budget, stream = 200_000, chain(400)
    _, refused = pushed(rules_of(tmp_path, name), stream, budget)
    assert len(refused) == 1
    assert "D4003" in refused[0] or "D4132" in refused[0]
    assert "a run 200,000 more" in refused[0]
    instants = len(spent)
    assert instants < len(stream)
    assert sum(spent) <= 2 * budget + LASTING * instants**2


@pytest.mark.parametrize("name", GROWING)
def test_refused_instants_do_not_spend_for_ever(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[int] = []
    end = Spending.end
    monkeypatch.setattr(Spending, "end", lambda self: spent.append(self._used) or end(self))
    stream = chain(400)
    events, refused = pushed(rules_of(tmp_path, name), stream, 100_000, on_error="skip")
    assert len(refused) > 100
    assert not events or len(events) < len(stream) ** 2
    held = len(stream) - len(refused)
    assert sum(spent[-100:]) <= 2 * 100 * (LASTING * (held + 2) + 100_000 // TRIPLE)


def test_what_is_linear_in_what_is_held_goes_on(tmp_path: Path) -> None:
    (tmp_path / "r.dotr").write_text(
        HEAD.replace("HOLD :p", "HOLD :p LATEST")
        + "QUERY Q := { SELECT (AVG(?v) AS ?x) (COUNT(*) AS ?y) { ?o :p ?v FILTER(?v > 0) } }\n"
        + BEGUN.replace("{of}", "Q"),
        encoding="utf-8",
    )
    stream = [(time, f"<urn:x:n{time % 50}> <urn:x:p> {time} .") for time in range(600)]
    events, refused = pushed(str(tmp_path / "r.dotr"), stream, 20_000)
    assert refused == []
    assert len(events) == len(stream)


@settings(max_examples=max(20, settings().max_examples // 8), deadline=None)
@given(
    st.sampled_from(sorted(GROWING)),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=14),
    st.integers(200, 6_000),
    st.sampled_from(["fail", "skip"]),
)
def test_snapshots_do_not_change_what_is_refused(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    pairs: list[tuple[int, int]],
    budget: int,
    on_error: str,
) -> None:
    rules = rules_of(tmp_path_factory.mktemp("l"), name)
    stream = [(time, f"<urn:x:n{a}> <urn:x:p> <urn:x:n{b}> .") for time, (a, b) in enumerate(pairs)]
    whole = pushed(rules, stream, budget, on_error=on_error)
    assert pushed(rules, stream, budget, cuts=True, on_error=on_error) == whole


@pytest.mark.parametrize("name", ["a product in Datalog", "a product in ISTREAM", "a path without ISTREAM"])
@pytest.mark.parametrize("budget", [3_000, 20_000, 1_000_000])
def test_a_batch_refuses_what_a_run_refuses(tmp_path: Path, name: str, budget: int) -> None:
    rules, stream = rules_of(tmp_path, name), chain(40)
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"time": t, "graph": g}) + "\n" for t, g in stream), encoding="utf-8")
    program = load_program([rules], read_rules_text)
    deployment = Deployment(program, read_background(program.background), Settings(budget=budget))
    request = Request(
        deployment, open_log([str(log)], SourceOptions(unit=UNITS["s"])), slice_length=UNITS["s"] * 5
    )
    (tmp_path / "out").mkdir()
    events, refused = pushed(rules, stream, budget)
    if refused:
        with pytest.raises(ProgramError) as raised:
            LocalRunner(2, Serial).run(request, str(tmp_path / "out"), quiet)
        assert raised.value.diagnostics[0].message in refused[0]
    else:
        report = LocalRunner(2, Serial).run(request, str(tmp_path / "out"), quiet)
        found = [json.loads(line)["id"] for line in output(tmp_path / "out", report)]
        assert sorted(found) == sorted(json.loads(line)["id"] for line in events)


def test_watch_is_refused_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(json.dumps({"time": t, "graph": g}) + "\n" for t, g in chain(160))
    (tmp_path / "s.jsonl").write_text(lines, encoding="utf-8")
    query = "PREFIX : <urn:x:> SELECT DISTINCT ?x ?y { ?x :p ?a . ?b :p ?y . ?c :p ?d }"
    (tmp_path / "q.rq").write_text(query, encoding="utf-8")
    command = ["watch", str(tmp_path / "q.rq"), str(tmp_path / "s.jsonl"), "--budget", "200k"]
    assert run(command) == 3
    reported = capsys.readouterr().err
    assert "error[D4132]" in reported
    assert "an instant may spend 100 units for each triple that is stated and each query" in reported


def test_an_allowance_is_never_more_than_at_first() -> None:
    allowance = Allowance(10)
    allowance.take(4)
    allowance.add(100)
    assert allowance.left == 10
    allowance.take(11)
    assert allowance.exhausted
