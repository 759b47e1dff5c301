"""Random programs of rules over what holds and of what holds over rules, against the literal reading."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dotr

FEWER = settings(max_examples=max(20, settings().max_examples // 3), deadline=None)

HEADS = [
    "held(?x) :- a(?x) WITHIN {w} s .",
    "held(?x) :- a(?x) AT LEAST 2 WITHIN {w} s .",
    "held(?x) AT ?t + {step} s :- b(?x) AT ?t WITHIN {w} s .",
    "box(?x) :- held(?x) ALWAYS WITHIN {w} s .",
    "box(?x) :- a(?x), NOT b(?x) WITHIN {w} s .",
    "none() :- NOT held(?x) WITHIN {w} s .",
    "none() :- NOT a(?x), NOT b(?y) WITHIN {w} s .",
    "many(?n) :- COUNT(?x) AS ?n OVER a(?x) WITHIN {w} s .",
    "many(?n) :- COUNT(*) AS ?n OVER held(?x) WITHIN {w} s .",
    "latest(?x) :- a(?x) WITHIN 2 FACTS OF (a, b), NOT box(?x) .",
    "on_and_on(?x) :- b(?x) .",
    "on_and_on(?x) AT ?t + {step} s :- on_and_on(?x) AT ?t WITHIN {step} s, NOT a(?x) WITHIN {w} s .",
    "told(?x) :- Seen(?x) WITHIN {w} s .",
    "told(?x) :- Begun(?x), NOT Strict(?x) WITHIN {w} s .",
]
ALWAYS_THERE = [
    *(f"{head}(?x) :- a(?x), FILTER(1 > 2) ." for head in ("held", "box", "on_and_on", "told", "latest")),
    "none() :- a(?x), FILTER(1 > 2) .",
    "many(?n) :- a(?n), FILTER(1 > 2) .",
]
RULES = """
RULE Seen DEFINE {{ dotr_x a :Seen }} FROM a WITH ?x := a.?x
RULE Begun DEFINE {{ dotr_x a :Begun }}
FROM B := ISTREAM {one} AND EACH {two} WITHIN {w} s FROM B WITH ?x := {two}.?x
RULE Ended DEFINE {{ dotr_x a :Ended }}
FROM E := DSTREAM {two} AND COUNT(*) AS ?n OVER {one} WITHIN {w} s FROM E WITH ?n := ?n
RULE Plain DEFINE {{ dotr_x a :Plain }}
FROM b AND LAST T := ISTREAM told WITHIN {w} s FROM b WITH ?x := T.?x
RULE Dense DEFINE {{ dotr_x a :Dense }} FROM box AND NOT none WITHIN {w} s FROM box WITH ?x := box.?x
RULE Strict DEFINE {{ dotr_x a :Strict }}
FROM a AND NOT told WITHIN {w} s BEFORE a ON told.?x = a.?x WITH ?x := a.?x
RULE Tick DEFINE {{ dotr_x a :Tick }}
FROM EVERY 3 s AS T AND EACH {two} WITHIN 2 s FROM T AND NOT many WITHIN 0 s FROM T WITH ?x := {two}.?x
"""


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    step = draw(st.sampled_from([1, 1, 2, 3]))
    windows = st.integers(0, 4).map(lambda n: n * step)
    chosen = draw(st.lists(st.sampled_from(HEADS), min_size=2, max_size=7))
    lars = [f"STEP {step} s", *(head.format(w=draw(windows), step=step) for head in chosen), *ALWAYS_THERE]
    one = draw(st.sampled_from(["held", "box", "none", "many"]))
    two = draw(st.sampled_from(["held", "latest", "box"]))
    rules = RULES.format(one=one, two=two, w=draw(st.integers(0, 9)))
    queries = "".join(f"QUERY {q} := {{ SELECT ?x WHERE {{ ?x a :{q.upper()} }} }}\n" for q in "ab")
    return f"PREFIX : <ex:>\nLARS <holds.lars>\n{queries}{rules}", "\n".join(lars) + "\n"


TRIPLES = st.sampled_from([":x a :A .", ":y a :A .", ":x a :B .", ":y a :B ."])
GRAPHS = st.lists(TRIPLES, max_size=2).map(" ".join)
STREAMS = st.lists(st.tuples(st.sampled_from([1, 1, 1, 2, 3, 7, 20]), GRAPHS), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("holds")


@FEWER
@given(programs(), st.integers(0, 5), STREAMS, st.sets(st.integers(0, 7)))
def test_rules_and_what_holds_are_as_the_literal_reading_has_them_wherever_it_is_cut(
    folder: Path, program: tuple[str, str], start: int, stream: list[tuple[int, str]], cuts: set[int]
) -> None:
    (folder / "rules.dotr").write_text(program[0], encoding="utf-8")
    (folder / "holds.lars").write_text(program[1], encoding="utf-8")
    rules = str(folder / "rules.dotr")
    engine, cut = dotr.Engine(rules, verify=True), dotr.Engine(rules)
    events, others = [], []
    time = start
    for number, (gap, graph) in enumerate(stream):
        time += gap
        events += engine.push(f"PREFIX : <ex:> {graph}", at=time)
        others += cut.push(f"PREFIX : <ex:> {graph}", at=time)
        if number in cuts:
            cut = dotr.Engine(rules, snapshot=cut.snapshot())
    events += engine.finish()
    others += cut.finish()
    assert [event.to_json() for event in others] == [event.to_json() for event in events]
