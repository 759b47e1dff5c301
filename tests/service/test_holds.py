"""Rules over what holds: a feed in pieces and a batch have the events of the run in one go."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import dotr
from dotr.cli.main import group

ROOT = Path(__file__).parents[2]
COOLING = ROOT / "examples" / "cooling"


def called(*arguments: str) -> str:
    result = CliRunner().invoke(group, arguments)
    assert result.exception is None, result.exception
    return result.stdout


@pytest.fixture(scope="module")
def whole() -> str:
    return called("run", str(COOLING / "cooling.dotr"), str(COOLING / "sensor.jsonl"))


@pytest.mark.parametrize("size", [1, 7, 31])
def test_a_feed_in_pieces_is_the_run(size: int, whole: str, tmp_path: Path) -> None:
    lines = (COOLING / "sensor.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    folder = str(tmp_path / "deployed")
    called("deploy", str(COOLING / "cooling.dotr"), "--dir", folder)
    events = ""
    for start in range(0, len(lines), size * 5):
        piece = tmp_path / "piece.jsonl"
        piece.write_text("".join(lines[start : start + size * 5]), encoding="utf-8")
        events += called("feed", str(piece), "--dir", folder)
    assert events == whole


def test_a_snapshot_between_two_points_goes_on_as_if_there_were_none() -> None:
    rules = str(ROOT / "tests" / "golden" / "holds" / "steps-coarser-than-the-data" / "rules.dotr")
    graph = "PREFIX : <ex:> :{} a :A ."
    engine = dotr.Engine(rules)
    stream = ((3, "x"), (14, "y"), (20, "z"), (21, "x"))
    events = []
    for at, name in stream:
        events += engine.push(graph.format(name), at=at)
        engine = dotr.Engine(rules, snapshot=engine.snapshot())
    events += engine.finish()
    once = dotr.Engine(rules)
    expected = [
        e
        for at, name in ((3, "x"), (14, "y"), (20, "z"), (21, "x"))
        for e in once.push(graph.format(name), at=at)
    ]
    expected += once.finish()
    assert [event.to_json() for event in events] == [event.to_json() for event in expected]
    assert len(events) == 13


def test_a_batch_in_one_task_is_the_run_and_says_so(whole: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = CliRunner().invoke(
        group,
        [
            *("batch", str(COOLING / "cooling.dotr"), str(COOLING / "sensor.jsonl"), "--engine", "local"),
            *("--out", str(out), "--by", "key", "--verify"),
        ],
    )
    assert result.exception is None, result.exception
    assert "D4126" in result.stderr
    assert "not by key: in a rule for `isSteam` no variable is in all of its atoms" in result.stderr
    written = "".join(part.read_text(encoding="utf-8") for part in sorted(out.glob("part-*")))
    assert sorted(written.splitlines()) == sorted(whole.splitlines())


def test_a_head_that_holds_through_a_long_silence_is_counted_at_each_of_its_points(tmp_path: Path) -> None:
    (tmp_path / "h.lars").write_text("none() :- NOT a(?x) WITHIN 5 s .\n", encoding="utf-8")
    (tmp_path / "r.dotr").write_text(
        "PREFIX : <ex:>\nLARS <h.lars>\nQUERY a := { SELECT ?x { ?x a :A } }\n"
        "RULE R DEFINE { dotr_x a :R ; :n ?n } FROM a\n"
        "AND COUNT(*) AS ?n OVER none WITHIN 20 d FROM a WITH ?n := ?n\n",
        encoding="utf-8",
    )
    engine = dotr.Engine(str(tmp_path / "r.dotr"))
    events = [e for at in (0, 100_000, 200_000) for e in engine.push("<ex:x> a <ex:A> .", at=at)]
    counts = [event.bindings["n"] for event in [*events, *engine.finish()]]
    assert [str(count) for count in counts] == ["0", "99994", "199988"]
    assert engine.counters.ticks < 20
