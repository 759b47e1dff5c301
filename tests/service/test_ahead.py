"""One wrong clock: a graph too far ahead is refused before it closes anything, alike wherever it is fed."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

import dotr as library
from dotr.core import instants
from dotr.errors import DataError
from dotr.service.journal import Journal
from tests.cli.conftest import Dotr, dotr, folder  # noqa: F401  # fixtures
from tests.service.deployments import deploy, feed
from tests.service.test_feed import Stop, write_lines

CHOOSES = """PREFIX : <urn:x:>
RULE Seen DEFINE { dotr_l :last ?v } FROM EVERY 1 s AS T
AND LAST X := { SELECT ?v { ?s :v ?v } } WITHIN 3 s FROM T WITH ?v := X.?v
"""
LACKS = """PREFIX : <urn:x:>
RULE Lost DEFINE { dotr_l :lost ?t } FROM EVERY 1 s AS T
AND NOT X := { SELECT ?v { ?s :v ?v } } WITHIN 10 min FROM T WITH ?t := T.time
"""
GRAPH = "<urn:a> <urn:x:v> 1 ."
FAR = "9999-12-31T23:59:59Z"


def line(time: int | str, graph: str = GRAPH) -> str:
    return json.dumps({"time": time, "graph": graph})


def stamps(*seconds: int) -> list[str]:
    return [line(f"2026-01-01T00:00:{second:02d}Z") for second in seconds]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_ticks_over_silence_that_can_match_nothing_are_skipped(here: Path) -> None:
    write_lines("in.jsonl", [*stamps(0), line(FAR)])
    fed = feed(deploy(here, CHOOSES), ["in.jsonl"], ["out.nq"])
    assert fed.pipeline.counters.ticks == 3
    assert Path("out.nq").read_text().count("generatedAtTime") == 5
    assert fed.pipeline.watermark == 253402300799 * 10**6


@pytest.mark.parametrize("pieces", [False, True])
def test_a_graph_behind_a_million_ticks_is_set_aside_and_time_does_not_go_on(
    here: Path, pieces: bool
) -> None:
    lines = [*stamps(0, 1), line(FAR), *stamps(2, 4)]
    write_lines("good.jsonl", [*stamps(0, 1), *stamps(2, 4)])
    (here / "other").mkdir()
    feed(deploy(here / "other", LACKS), ["good.jsonl"], ["good.nq"])
    state = deploy(here, LACKS)
    for upto in range(1, 6) if pieces else [5]:
        write_lines("in.jsonl", lines[:upto])
        fed = feed(state, ["in.jsonl"], ["out.nq"], letters="dead.jsonl", keep_open=upto < 5)
    assert Path("out.nq").read_bytes() == Path("good.nq").read_bytes()
    (letter,) = map(json.loads, Path("dead.jsonl").read_text().splitlines())
    assert (letter["code"], letter["place"], letter["time"]) == ("D2107", "in.jsonl:3", FAR)
    assert letter["document"] == lines[2]
    assert fed.totals.late == 0
    assert not fed.lineage._open


def test_exactly_a_million_ticks_may_lie_between_two_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = library.Engine.from_text(LACKS)
    engine.push(GRAPH, at=0)
    with pytest.raises(DataError, match=r"D2107.*1,000,000 ticks lie between 0 and 1000002"):
        engine.push(GRAPH, at=10**6 + 2)
    assert engine.pipeline.latest == 0
    monkeypatch.setattr(instants, "TICKS", 1000)
    engine = library.Engine.from_text(LACKS)
    engine.push(GRAPH, at=0)
    with pytest.raises(DataError, match="D2107"):
        engine.push(GRAPH, at=1002)
    assert len(engine.push(GRAPH, at=1001)) == 400
    assert engine.counters.ticks == 1000


def test_ticks_in_reach_count_up_to_the_limit_however_far_the_graph_is() -> None:
    engine = library.Engine.from_text(CHOOSES.replace("3 s", "12 d"))
    engine.push(GRAPH, at=0)
    with pytest.raises(DataError, match="D2107"):
        engine.push(GRAPH, at=10**9)
    assert len(engine.push(GRAPH, at=100)) == 100


def test_a_refused_push_leaves_the_engine_as_it_was() -> None:
    def pairs(far: bool) -> list[tuple[int, str]]:
        return [(1, GRAPH), (2, GRAPH), *([(10**9, GRAPH)] if far else []), (700, GRAPH)]

    expected = [
        e.to_json() for found in library.Engine.from_text(LACKS).push_all(pairs(False)) for e in found
    ]
    assert len(expected) == 97
    engine = library.Engine.from_text(LACKS)
    left = iter(pairs(True))
    with pytest.raises(DataError, match="D2107"):
        list(engine.push_all(left))
    assert [e.to_json() for events in engine.push_all(left) for e in events] == expected


def test_advance_is_refused_alike() -> None:
    engine = library.Engine.from_text(LACKS)
    engine.push(GRAPH, at=1)
    with pytest.raises(DataError, match=r"D2107.*between 1 and"):
        engine.advance(10**9)
    assert len(engine.advance(700)) == 99


def test_run_sets_the_graph_aside_and_names_it(dotr: Dotr) -> None:  # noqa: F811  # the fixture
    Path("lacks.dotr").write_text(LACKS)
    write_lines("in.jsonl", [*stamps(0, 9), line(FAR)])
    ran = dotr("run", "lacks.dotr", "in.jsonl")
    assert ran.code == 3
    assert "error[D2107]" in ran.err
    assert "in.jsonl:3" in ran.err
    assert "at each tick of `EVERY 1 s` something can match: `Lost`" in ran.err
    ran = dotr("run", "lacks.dotr", "in.jsonl", "--on-error", "file=dead.jsonl")
    assert (ran.code, json.loads(Path("dead.jsonl").read_text())["code"]) == (0, "D2107")
    assert "1 document refused" in ran.err


# -- --max-jump -----------------------------------------------------------------------------------------

PLAIN = """PREFIX : <urn:x:>
RULE R DEFINE { dotr_r :n ?v } FROM X := { SELECT ?v { ?s :v ?v } } WITH ?v := X.?v
"""


@pytest.mark.parametrize("every", [1, 10])
def test_max_jump_refuses_alike_in_runs_feeds_pieces_and_restarts(dotr: Dotr, every: int) -> None:  # noqa: F811
    Path("plain.dotr").write_text(PLAIN)
    times = [500, 3, 6, 17, 9, 700, 16, 26, 37, 36]
    lines = [line(time, f"<urn:a> <urn:x:v> {number} .") for number, time in enumerate(times)]
    write_lines("in.jsonl", lines[1:])
    dotr("deploy", "plain.dotr")
    state = str(Path(".dotr"))
    stops = 0
    while True:
        try:
            fed = feed(
                state,
                ["in.jsonl"],
                ["out.nq"],
                letters="dead.jsonl",
                late="late.jsonl",
                max_jump=10 * 10**6,
                every=every,
                stopping=Stop(2 if every == 1 else 10**9),
            )
            break
        except KeyboardInterrupt:
            stops += 1
    assert (stops > 2) == (every == 1)
    letters = [json.loads(text) for text in Path("dead.jsonl").read_text().splitlines()]
    assert [(letter["code"], letter["time"]) for letter in letters] == [
        ("D2106", 17),
        ("D2106", 700),
        ("D2106", 37),
    ]
    assert all("--max-jump" in letter["diagnostic"] for letter in letters)
    assert fed.pipeline.watermark == 36 * 10**6
    ran = dotr(
        "run", "plain.dotr", "in.jsonl", "--max-jump", "10s", "--on-error", "skip", "--format", "nquads"
    )
    assert ran.code == 0
    assert ran.out == Path("out.nq").read_text()
    engine = library.Engine("plain.dotr", max_jump="10 s")
    found: list[library.Event] = []
    for time, text in zip(times[1:], lines[1:], strict=True):
        with suppress(DataError):
            found += engine.push(json.loads(text)["graph"], at=time)
        blob = engine.snapshot()
        engine = library.Engine("plain.dotr", max_jump="10 s", snapshot=blob)
    found += engine.finish()
    assert [event.time for event in found] == [3, 6, 9, 16, 26, 36]


def test_the_first_graph_is_exempt_and_time_that_was_advanced_counts() -> None:
    engine = library.Engine.from_text(PLAIN, max_jump="10 s")
    engine.push(GRAPH, at=1000)
    with pytest.raises(DataError, match="D2106"):
        engine.push(GRAPH, at=1011)
    engine.advance(1005)
    engine.push(GRAPH, at=1015)


def test_under_fail_a_jump_ends_the_feed_behind_what_was_fed_before(here: Path) -> None:
    write_lines("in.jsonl", [*stamps(0, 1), line(FAR)])
    state = deploy(here, PLAIN)
    with pytest.raises(DataError, match=r"D2106[^$]*`in\.jsonl:3`"):
        feed(state, ["in.jsonl"], ["out.nq"], max_jump=10**6)
    with Journal(state, exclusive=False) as journal:
        assert (journal.status()["graphs"], journal.status()["latest"]) == (2, 1767225601 * 10**6)
    write_lines("in.jsonl", [*stamps(0, 1), *stamps(2)])
    fed = feed(state, ["in.jsonl"], ["out.nq"], max_jump=10**6)
    assert (fed.totals.graphs, fed.totals.late) == (1, 0)  # what was refused is no part of what was fed


# -- stopping ---------------------------------------------------------------------------------------------


def test_a_stop_is_heard_between_two_ticks_and_the_rest_comes_later(here: Path) -> None:
    write_lines("in.jsonl", [line(0), line(10_000), line(10_010)])
    state = deploy(here, LACKS.replace("10 min", "3 h"))

    class Impatient:
        asked = 0

        def __call__(self) -> bool:
            self.asked += 1
            return self.asked > 1000

    stopping = Impatient()
    with pytest.raises(KeyboardInterrupt):
        feed(state, ["in.jsonl"], ["out.nq"], stopping=stopping)
    assert stopping.asked == 1001
    with Journal(state, exclusive=False) as journal:
        snapshot = journal.snapshot()
    assert snapshot is not None
    assert snapshot["times"][2] < 1000 * 10**6
    fed = feed(state, ["in.jsonl"], ["out.nq"])
    assert fed.pipeline.counters.ticks == 9_999 + 9
    assert Path("out.nq").read_text() == ""
