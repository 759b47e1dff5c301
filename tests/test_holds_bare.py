"""Rules that read heads themselves: kept as intervals, passed over in silence, and nobody can tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dotr
from dotr.detect.detector import TeslaDetector
from dotr.detect.timeline import Timeline
from dotr.errors import DotrError

FEWER = settings(max_examples=max(30, settings().max_examples // 3), deadline=None)

HEADS = """
STEP {step} s
held(?x) :- a(?x) WITHIN {v} s .
held(?x) :- b(?x), NOT a(?x) .
calm(?x) :- n(?x) WITHIN 1 h, NOT b(?y) WITHIN {w} s .
latest(?x) :- n(?x) WITHIN 2 FACTS OF (n, b) .
"""
CHOICES = [
    "EACH C := {h} WITHIN {w} s {at}",
    "EACH C := {h} WITHIN {w} s {at} ON C.?x = T.?x",
    "EACH C := {h} WITHIN {w} s {at} ON C.?x != T.?x",
    "LAST C := {h} WITHIN {w} s {at}",
    "LAST C := {h} WITHIN {w} s {at} ON C.?x != T.?x",
    "LAST C := {h} WITHIN {w} s {at} ON C.?x > 1",
    "LAST 3 C := {h} WITHIN {w} s {at}",
    "LAST 2 C := {h} WITHIN {w} s {at} ON C.?x != T.?x",
    "FIRST C := {h} WITHIN {w} s {at}",
    "FIRST C := {h} WITHIN {w} s {at} ON C.?x != T.?x",
    "FIRST 4 C := {h} WITHIN {w} s {at}",
    "LAST C := {h} WITHIN {w} s {at} ON T.time - C.time >= 4",
    "LAST A := n WITHIN {w} s {at} AND NOT C := {h} BETWEEN A AND T ON C.?x != A.?x",
    "LAST A := n WITHIN {w} s {at} AND COUNT(*) AS ?u OVER C := {h} BETWEEN A AND T",
    "LAST A := {h} WITHIN {w} s {at} AND FIRST B := {h} WITHIN 6 s FROM A ON B.?x != A.?x",
]
OTHERS = [
    "NOT N := {h} WITHIN {w} s {at}",
    "NOT N := {h} WITHIN {w} s {at} ON N.?x = T.?x",
    "NOT N := {h} WITHIN {w} s {at} ON N.?x != T.?x",
    "NOT N := {h} WITHIN {w} s {at} ON T.time - N.time = {v}",
]
TOTALS = [
    "COUNT(*) AS ?v OVER S := {h} WITHIN {w} s {at}",
    "COUNT(*) AS ?v OVER S := {h} WITHIN {w} s {at} ON S.?x = T.?x",
    "COUNT(S.?x + 1) AS ?v OVER S := {h} WITHIN {w} s {at}",
    "SUM(S.?x) AS ?v OVER S := {h} WITHIN {w} s {at}",
    "AVG(S.?x + 1) AS ?v OVER S := {h} WITHIN {w} s {at} ON S.?x != T.?x",
    "MIN(S.?x) AS ?v OVER S := {h} WITHIN {w} s {at}",
    "MAX(S.time) AS ?v OVER S := {h} WITHIN {w} s {at}",
    "SUM(DISTINCT S.?x) AS ?v OVER S := {h} WITHIN {w} s {at}",
]


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    step = draw(st.sampled_from([1, 1, 2, 3]))
    rules = []
    for number in range(draw(st.integers(1, 3))):
        names = {
            "h": draw(st.sampled_from(["held", "calm", "latest"])),
            "w": draw(st.sampled_from([0, 3, 6, 12, 60])),
            "v": draw(st.sampled_from([0, 3, 6])),
            "at": draw(st.sampled_from(["FROM T", "BEFORE T"])),
        }
        trigger = draw(st.sampled_from(["held", "calm", "latest", "n", "ISTREAM held", "a"]))
        body = [f"FROM T := {trigger}"]
        given_ = "?x := T.?x"
        kind = draw(st.integers(0, 3))
        if kind == 0:
            body.append("AND " + draw(st.sampled_from(CHOICES)).format(**names))
        if kind == 1 or draw(st.booleans()):
            body.append("AND " + draw(st.sampled_from(OTHERS)).format(**names))
        if kind == 2:
            body.append("AND " + draw(st.sampled_from(TOTALS)).format(**names))
            given_ += ", ?v := ?v"
        if kind == 3 and "LAST" not in "".join(body):
            body.append("AND EACH P := {h} WITHIN 6 s {at}".format(**names))
            if draw(st.booleans()):
                given_ += " CONSUMING P"
        where = draw(st.sampled_from(["", "", "WHERE T.?x < 2", "WHERE T.time > 40"]))
        text = " ".join(body)
        rules.append(f"RULE R{number} DEFINE {{ dotr_x a :R ; :x ?x }}\n{text} {where}\nWITH {given_}\n")
    if draw(st.booleans()):
        rules.append("RULE Tick DEFINE { dotr_x a :T } FROM EVERY 4 s AS T AND EACH R0 WITHIN 2 s FROM T\n")
    queries = "".join(f"QUERY {q} := {{ SELECT ?x WHERE {{ ?o :{q} ?x }} }}\n" for q in ("a", "b", "n"))
    windows = {"v": step * draw(st.integers(0, 3)), "w": step * draw(st.integers(0, 9))}
    return f"PREFIX : <ex:>\nLARS <h.lars>\n{queries}{''.join(rules)}", HEADS.format(step=step, **windows)


TRIPLES = st.builds(
    lambda q, x: f"[] :{q} {x} .", st.sampled_from("abn"), st.sampled_from(["1", "2", "1.0", "3"])
)
GRAPHS = st.lists(TRIPLES, max_size=2).map(" ".join)
STREAMS = st.lists(st.tuples(st.sampled_from([1, 1, 2, 3, 20, 100]), GRAPHS), min_size=1, max_size=7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bare")


def pushed(
    rules: str, stream: list[tuple[int, str]], cuts: set[int], verify: bool = False
) -> tuple[list[str], object]:
    """The events, and how far the rules came."""
    engine, time, events = dotr.Engine(rules, verify=verify), 0, list[str]()
    for number, (gap, graph) in enumerate(stream):
        time += gap
        events += [e.to_json() for e in engine.push(f"PREFIX : <ex:> {graph}", at=time)]
        if number in cuts:
            engine = dotr.Engine(rules, snapshot=engine.snapshot())
    events += [e.to_json() for e in engine.finish()]
    return events, engine.counters.funnel


@FEWER
@given(programs(), STREAMS, st.sets(st.integers(0, 6)))
def test_heads_as_intervals_are_facts_at_every_point(
    folder: Path, program: tuple[str, str], stream: list[tuple[int, str]], cuts: set[int]
) -> None:
    (folder / "r.dotr").write_text(program[0], encoding="utf-8")
    (folder / "h.lars").write_text(program[1], encoding="utf-8")
    rules = str(folder / "r.dotr")
    literal, _ = pushed(rules, stream, set(), verify=True)
    once = pushed(rules, stream, set())
    assert once[0] == literal
    assert pushed(rules, stream, cuts)[0] == literal
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Timeline, "stillness", lambda *_: False)
        assert pushed(rules, stream, set()) == once


ENDLESS = """
PREFIX : <ex:>
LARS <h.lars>
QUERY a := { SELECT ?x { ?o :a ?x } }
RULE Soon DEFINE { dotr_x a :Soon } FROM calm AND LAST a WITHIN 8 s FROM calm
RULE Nothing DEFINE { dotr_x a :Nothing } FROM T := calm AND NOT C := calm WITHIN 1 h BEFORE T
RULE Counted DEFINE { dotr_x :n ?n ; :m ?m } FROM a AND COUNT(*) AS ?n OVER calm WITHIN 36500 d FROM a
AND AVG(N.?x) AS ?m OVER N := number WITHIN 36500 d FROM a WITH ?n := ?n, ?m := ?m
RULE Youngest DEFINE { dotr_x :t ?t } FROM a AND LAST number WITHIN 36500 d FROM a ON number.?x < a.?x
WITH ?t := number.time
RULE Oldest DEFINE { dotr_x :t ?t } FROM a AND FIRST number WITHIN 36500 d FROM a ON number.?x < a.?x
WITH ?t := number.time
RULE Few DEFINE { dotr_x :t ?t } FROM a AND EACH calm WITHIN 3 s BEFORE a WITH ?t := calm.time
"""
NUMBERS = "STEP 1 s\ncalm() :- NOT a(?x) WITHIN 5 s .\nnumber(?x) :- a(?x) WITHIN 36500 d .\n"
YEARS = 10**9


def test_years_of_silence_are_a_few_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is anything kept of each point, nor a graph behind them refused."""
    (tmp_path / "h.lars").write_text(NUMBERS, encoding="utf-8")
    (tmp_path / "r.dotr").write_text(ENDLESS, encoding="utf-8")
    visited: list[int] = []
    detect = TeslaDetector.detect
    monkeypatch.setattr(
        TeslaDetector, "detect", lambda self, time, *a: visited.append(time) or detect(self, time, *a)
    )
    engine = dotr.Engine(str(tmp_path / "r.dotr"))
    engine.push("<ex:o> <ex:a> 1 .", at=0)
    engine.push("<ex:o> <ex:a> 7 .", at=YEARS)
    snapshot = engine.snapshot()
    engine = dotr.Engine(str(tmp_path / "r.dotr"), snapshot=snapshot)
    events = [event for event in engine.finish() if event.time == YEARS]
    assert len(visited) < 3_700  # the hour in which `Nothing` can look back to the beginning
    assert len(snapshot) < 20_000
    found = {(e.rule, n): str(v) for e in events for n, v in e.bindings.items()}
    assert found["Counted", "n"] == str(YEARS - 6)
    # 1 at each point, 7 at the last one, too
    assert found["Counted", "m"] == f"1.{6 * 10**18 // (YEARS + 2):018}"
    assert found["Youngest", "t"] == str(YEARS)
    assert found["Oldest", "t"] == "0"
    assert [str(e.bindings["t"]) for e in events if e.rule == "Few"] == [str(YEARS - i) for i in (3, 2, 1)]


def test_a_head_that_triggers_at_every_point_of_years_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "h.lars").write_text(NUMBERS, encoding="utf-8")
    rules = ENDLESS + "RULE Dense DEFINE { dotr_x a :Dense } FROM calm\n"
    (tmp_path / "r.dotr").write_text(rules, encoding="utf-8")
    engine = dotr.Engine(str(tmp_path / "r.dotr"), budget=1_000_000)
    engine.push("<ex:o> <ex:a> 1 .", at=0)
    engine.push("<ex:o> <ex:a> 7 .", at=900)
    engine.push("<ex:o> <ex:a> 7 .", at=1_800)
    with pytest.raises(DotrError, match=r"D4011.* for `calm` takes more than 1,000,000 units"):
        engine.push("<ex:o> <ex:a> 7 .", at=YEARS)
