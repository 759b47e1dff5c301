"""What holds, cut by key: random programs whose LARS rules share a variable, beside one process."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotr.batch.facts import APART
from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.stream import LiveSlots, marks_of, places, stream_layout
from dotr.batch.work import Treatment, extract, make_job, ship
from dotr.core.deployment import Deployment
from dotr.detect.partitioning import plan_batch, strategy
from dotr.events import Clock, Composite
from dotr.io.decode.documents import Format
from dotr.io.decode.rdf import parse_triples
from dotr.io.events import format_jsonl
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions
from dotr.io.time import UNITS
from dotr.lang import load_program
from dotr.rdf.terms import Triple
from tests.batch.test_local import Serial, in_one_process, output, quiet
from tests.test_holds import STREAMS

FEWER = settings(max_examples=max(25, settings().max_examples // 4), deadline=None)

HEADS = [
    "held(?x) :- a(?x) WITHIN {w} s .",
    "held(?x) :- a(?x) AT LEAST 2 WITHIN {w} s .",
    "held(?x) AT ?t + {step} s :- b(?x) AT ?t WITHIN {w} s .",
    "box(?x) :- held(?x) ALWAYS WITHIN {w} s .",
    "box(?x) :- a(?x), NOT b(?x) WITHIN {w} s .",
    "box(?x) :- box(?x) WITHIN {step} s, NOT a(?x) WITHIN {w} s .",
    "many(?x, ?n) :- COUNT(*) AS ?n OVER held(?x) WITHIN {w} s PER ?x .",
    "many(?x, ?y) :- fixed(?x) WITHIN {w} s, held(?x), BIND(STR(?x) AS ?y) .",
    "told(?x) :- Seen(?x) WITHIN {w} s .",
    "told(?x) :- Begun(?x), NOT Strict(?x) WITHIN {w} s .",
]
ALWAYS_THERE = [
    *(f"{head}(?x) :- a(?x), FILTER(1 > 2) ." for head in ("held", "box", "told")),
    "many(?x, ?x) :- a(?x), FILTER(1 > 2) .",
]
RULES = """
RULE Seen DEFINE {{ dotr_x a :Seen }} FROM a WITH ?x := a.?x
RULE Begun DEFINE {{ dotr_x a :Begun }}
FROM B := ISTREAM {one} AND EACH {two} WITHIN {w} s FROM B ON {two}.?x = B.?x WITH ?x := {two}.?x
RULE Ended DEFINE {{ dotr_x a :Ended }}
FROM E := DSTREAM {two} AND COUNT(*) AS ?n OVER {one} WITHIN {w} s FROM E ON {one}.?x = E.?x
AND EACH fixed WITHIN 0 s FROM E ON fixed.?x = E.?x WITH ?n := ?n, ?x := E.?x
RULE Plain DEFINE {{ dotr_x a :Plain }}
FROM b AND LAST T := ISTREAM told WITHIN {w} s FROM b ON T.?x = b.?x WITH ?x := T.?x
RULE Dense DEFINE {{ dotr_x a :Dense }} FROM box AND NOT told WITHIN {w} s FROM box ON told.?x = box.?x
WITH ?x := box.?x
RULE Strict DEFINE {{ dotr_x a :Strict }}
FROM a AND NOT told WITHIN {w} s BEFORE a ON told.?x = a.?x WITH ?x := a.?x
"""


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    step = draw(st.sampled_from([1, 1, 2, 3]))
    windows = st.integers(0, 4).map(lambda n: n * step)
    chosen = draw(st.lists(st.sampled_from(HEADS), min_size=2, max_size=7))
    lars = [f"STEP {step} s", *(head.format(w=draw(windows), step=step) for head in chosen), *ALWAYS_THERE]
    one = draw(st.sampled_from(["held", "box", "many"]))
    two = draw(st.sampled_from(["held", "box"]))
    rules = RULES.format(one=one, two=two, w=draw(st.integers(0, 9)))
    wheres = {"a": "?x a :A", "b": "?x a :B", "fixed": "?x a :F"}
    queries = "".join(f"QUERY {q} := {{ SELECT ?x WHERE {{ {where} }} }}\n" for q, where in wheres.items())
    return (
        f"PREFIX : <ex:>\nBACKGROUND <f.ttl>\nLARS <holds.lars>\n{queries}{rules}",
        "\n".join(lars) + "\n",
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("holds")
    (made / "f.ttl").write_text("<ex:x> a <ex:F> . <ex:z> a <ex:F> .", encoding="utf-8")
    return made


@FEWER
@given(programs(), st.integers(0, 5), STREAMS, st.integers(1, 3))
def test_parts_by_key_give_what_one_process_gives(
    folder: Path, program: tuple[str, str], start: int, stream: list[tuple[int, str]], processes: int
) -> None:
    (folder / "rules.dotr").write_text(program[0], encoding="utf-8")
    (folder / "holds.lars").write_text(program[1], encoding="utf-8")
    time, lines = start, []
    for gap, graph in stream:
        time += gap
        lines.append(json.dumps({"time": time, "graph": f"PREFIX : <ex:> {graph}"}))
    log = folder / "log.jsonl"
    log.write_text("\n".join(reversed(lines)) + "\n", encoding="utf-8")
    checked = load_program([str(folder / "rules.dotr")], read_rules_text)
    plan = plan_batch(checked)
    assert all(strategy(checked, component).startswith("by key ?x") for component in plan.components)
    background, options = read_background(checked.background), SourceOptions(unit=UNITS["s"])
    expected = in_one_process(checked, background, [str(log)], options)
    out = folder / "out"
    out.mkdir(exist_ok=True)
    request = Request(Deployment(checked, background), open_log([str(log)], options))
    report = LocalRunner(processes, Serial).run(request, str(out), quiet)
    assert output(out, report) == expected


@FEWER
@given(programs(), st.integers(0, 5), STREAMS, st.randoms(use_true_random=False))
def test_parts_of_a_stream_give_what_one_process_gives(
    folder: Path, program: tuple[str, str], start: int, stream: list[tuple[int, str]], random: Random
) -> None:
    """Wherever batches are cut, and whichever part is restored from its bytes."""
    (folder / "rules.dotr").write_text(program[0], encoding="utf-8")
    (folder / "holds.lars").write_text(program[1], encoding="utf-8")
    instants: dict[int, list[list[Triple]]] = {}
    lines, time = [], start
    for gap, graph in stream:
        time += gap
        lines.append(json.dumps({"time": time, "graph": f"PREFIX : <ex:> {graph}"}))
        parsed = parse_triples(f"PREFIX : <ex:> {graph}", Format.TURTLE, "x")
        instants.setdefault(time * UNITS["s"], []).append(parsed)
    log = folder / "log.jsonl"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    checked = load_program([str(folder / "rules.dotr")], read_rules_text)
    background, options = read_background(checked.background), SourceOptions(unit=UNITS["s"])
    expected = in_one_process(checked, background, [str(log)], options)
    deployment, clock = Deployment(checked, background), Clock()
    job = ship(make_job(deployment, clock, stream_layout(deployment, 1), Treatment(shared=False)))
    worker, live, states = job.worker(), LiveSlots(job, 1), dict[int, bytes]()
    slots = {place: parts for place, parts in places(worker.job.layout, 1).items() if parts}
    assert any(group.keys is not None for group in worker.job.layout.plan.groups)
    times, found = sorted(instants), list[Composite]()
    while times:
        count = random.randint(1, 3)
        batch, times = times[:count], times[count:]
        rows = {part: [] for parts in slots.values() for part in parts}
        for part, at, text in extract(worker, [(at, instants[at]) for at in batch]):
            if part > APART:
                rows[part].append((at, text))
        for part, at, text in marks_of(rows, batch[0], batch[-1]):
            rows[part].append((at, text))
        bound = random.randint(batch[-1], times[0] - 1) if times else None
        for place, parts in slots.items():
            token = 1 if place in states else None
            alive = live.taken(place, token)
            if alive is None or (place in states and random.random() < 0.3):
                alive = live.fresh(place)
                alive.restore(states[place])
            found += alive.take({part: random.sample(rows[part], len(rows[part])) for part in parts}, bound)
            states[place] = alive.snapshot()
            live.give_back(place, 1, alive)
    assert sorted(format_jsonl(event, clock) for event in found) == sorted(expected)


READER = """PREFIX : <ex:>
LARS <h.lars>
QUERY a := { SELECT ?x { ?x a :A } }
QUERY b := { SELECT ?x { ?x a :B } }
RULE R DEFINE { dotr_x a :R } FROM H := ISTREAM h AND NOT a WITHIN 1 s FROM H ON a.?x = H.?ATTRIBUTE
"""


@pytest.mark.parametrize(
    ("rule", "strategy_", "reason"),
    [
        ("h(?x) :- a(?x) WITHIN 2 s .", "by key ?x", ""),
        ("h(?x) :- a(?x) WITHIN 2 FACTS .", "one task", "a window of facts counts those of all keys"),
        ("h(?x) :- a(?x), NOT b(?y) .", "one task", "no variable is in all of its atoms"),
        ("h(?x) :- a(?x), b(?x) ALWAYS WITHIN 2 s, FILTER(?x != :y) .", "by key ?x", ""),
        ("h(:x) .", "one task", "its body reads nothing"),
        ("h(?x) :- a(?x) . h(?y) :- g(?x, ?y) . g(?x, ?x) :- a(?x) . g(?x, ?y) :- g(?y, ?x), a(?x) .",
         "one task", "no single attribute"),
    ],
)  # fmt: skip
def test_the_plan_says_by_which_key_or_why_by_none(
    tmp_path: Path, rule: str, strategy_: str, reason: str
) -> None:
    (tmp_path / "h.lars").write_text(f"PREFIX : <ex:>\nSTEP 1 s\n{rule}\n", encoding="utf-8")
    attribute = "_1" if rule.startswith("h(:x)") else "x"
    (tmp_path / "r.dotr").write_text(READER.replace("ATTRIBUTE", attribute), encoding="utf-8")
    program = load_program([str(tmp_path / "r.dotr")], read_rules_text)
    (component,) = plan_batch(program).components
    assert strategy(program, component) == strategy_
    assert reason in component.reasons[-1]
