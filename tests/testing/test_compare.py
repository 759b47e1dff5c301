"""`dotr compare`: what appears and disappears, counted and explained; values of a parameter side by side."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.events import Clock
from dotr.lang import parse_program
from dotr.rdf.terms import Triple
from dotr.service.comparison import Comparing, Difference, Version, moves
from tests.cli.conftest import FIRE, Dotr

SMOKE = """PREFIX : <http://example.org/building#>
PARAMETER ?limit := 60
QUERY Hot := { SELECT ?s ?v WHERE { ?r :sensor ?s ; :val ?v FILTER(?v > ?limit) } }
RULE Heat DEFINE { dotr_h a :Heat ; :of ?s } FROM Hot WITH ?s := Hot.?s
"""


def test_rules_that_are_the_same_do_not_differ(folder: Path, dotr: Dotr) -> None:
    (folder / "same.dotr").write_text(FIRE.replace("\n", "\n\n"), encoding="utf-8")
    ran = dotr("compare", "fire.dotr", "same.dotr", "events")
    assert ran.code == 0
    assert ran.out.splitlines()[1].split() == ["Fire", "day", "0", "1", "1", "0", "0"]
    assert "2 graphs, 0 differences" in ran.err


def test_what_disappears_is_counted_and_explained(folder: Path, dotr: Dotr) -> None:
    (folder / "new.dotr").write_text(FIRE.replace("?v > 60", "?v > 80"), encoding="utf-8")
    ran = dotr("compare", "fire.dotr", "new.dotr", "events")
    assert ran.code == 1
    assert "− Fire @ 12  ?room :roomA" in ran.out
    assert "LAST HighTemp  @ 10" in ran.out  # why it came
    assert "✗ LAST HighTemp" in ran.out  # why it comes no more
    back = dotr("compare", "new.dotr", "fire.dotr", "events", "--explain", "0")
    assert "+ Fire @ 12  ?room :roomA" in back.out
    assert "LAST" not in back.out


def test_a_rule_that_is_gone_is_named(folder: Path, dotr: Dotr) -> None:
    (folder / "new.dotr").write_text(FIRE.replace("RULE Fire", "RULE Blaze"), encoding="utf-8")
    ran = dotr("compare", "fire.dotr", "new.dotr", "events")
    assert "new.dotr has no rule Fire" in ran.out
    assert "+ Blaze @ 12" in ran.out


def test_at_one_time_a_cause_comes_before_what_follows_from_it(folder: Path, dotr: Dotr) -> None:
    rules = SMOKE + ("RULE Alarm DEFINE { dotr_a a :Alarm ; :of ?s } FROM Heat WITH ?s := Heat.?s\n")
    (folder / "old.dotr").write_text(rules, encoding="utf-8")
    (folder / "new.dotr").write_text(rules.replace(":= 60", ":= 800"), encoding="utf-8")
    ran = dotr("compare", "old.dotr", "new.dotr", "events", "--explain", "0")
    assert [line.split()[1] for line in ran.out.splitlines() if line.startswith("−")] == ["Heat", "Alarm"]


def test_json_and_html_have_the_same_figures(folder: Path, dotr: Dotr) -> None:
    (folder / "new.dotr").write_text(FIRE.replace("?v > 60", "?v > 80"), encoding="utf-8")
    found = json.loads(dotr("compare", "fire.dotr", "new.dotr", "events", "--format", "json").out)
    assert found["versions"] == ["fire.dotr", "new.dotr"]
    assert found["days"] == [
        {"rule": "Fire", "day": "day 0", "events": [1, 0], "added": [0, 0], "removed": [0, 1]}
    ]
    assert found["differences"][0]["because"]
    page = dotr("compare", "fire.dotr", "new.dotr", "events", "--format", "html", "-o", "c.html")
    assert page.code == 1
    text = (folder / "c.html").read_text(encoding="utf-8")
    assert "<svg" in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "").replace("http://example.org", "")


MOVES = """PREFIX : <urn:x:>
RULE Seen DEFINE { dotr_a a :Seen } FROM T := { SELECT ?x { ?x a :Trigger } } WITH ?x := T.?x
RULE Same DEFINE { dotr_b a :Same } FROM U := { SELECT ?x { ?x a :Other } } WITH ?x := U.?x
"""


def test_an_event_that_moved_says_how_far_and_what_is_the_same_is_folded(folder: Path, dotr: Dotr) -> None:
    for kind in ("Early", "Late"):
        (folder / f"{kind}.dotr").write_text(MOVES.replace(":Trigger", f":{kind}"), encoding="utf-8")
    lines = [
        (10, "a", "Early"),
        (20, "b", "Early"),
        (100, "o", "Other"),
        (310, "a", "Late"),
        (900, "c", "Late"),
    ]
    log = "".join(f'{{"time": {t}, "graph": "<urn:x:{x}> a <urn:x:{kind}> ."}}\n' for t, x, kind in lines)
    (folder / "log.jsonl").write_text(log)
    ran = dotr("compare", "Early.dotr", "Late.dotr", "log.jsonl", "--format", "html", "-o", "c.html")
    assert ran.code == 1
    page = (folder / "c.html").read_text(encoding="utf-8")
    assert "Seen @ 10  ?x :a   moved by 5 min, to 310" in page
    assert "− Seen @ 20  ?x :b" in page
    assert "+ Seen @ 900  ?x :c" in page
    assert "+ Seen @ 310" not in page
    assert page.count('class="move"') == 1
    assert "<summary>1 row is the same</summary>" in page
    back = dotr("compare", "Late.dotr", "Early.dotr", "log.jsonl", "--format", "html", "--explain", "0")
    assert "Seen @ 310  ?x :a   moved by 5 min earlier, to 10" in back.out


def test_the_nearest_of_events_that_are_the_same_moved() -> None:
    def one(time: int, change: int, rule: str = "R") -> Difference:
        return Difference(1, change, time, rule, (("x", "<urn:x>"),))

    gone, also, come, far = one(10, -1), one(50, -1), one(12, 1), one(90, 1)
    assert moves([gone, also, come, far]) == {gone: come, also: far}
    assert moves([gone, come, one(11, 1)]) == {gone: one(11, 1)}
    assert moves([gone, one(12, 1, "S"), one(10, -2)]) == {}


def test_values_of_a_parameter_stand_side_by_side(folder: Path, dotr: Dotr) -> None:
    (folder / "heat.dotr").write_text(SMOKE, encoding="utf-8")
    ran = dotr("compare", "heat.dotr", "events", "--param", "limit=60,70,50")
    assert ran.code == 0
    assert ran.out.splitlines()[0].split() == ["rule", "limit=60", "limit=70", "limit=50"]
    assert ran.out.splitlines()[1].split() == ["Heat", "1", "0", "1"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fire.dotr", "events"], "D4406", "two rule files"),
        (["fire.dotr", "new.dotr", "events", "--param", "a=1"], "D4406", "one rule file"),
        (["heat.dotr", "events", "--param", "limit"], "D4406", "list of values"),
        (["heat.dotr", "events", "--param", "limit=1,1"], "D4406", "twice"),
        (["heat.dotr", "events", "--param", "limit=1", "--param", "limit=2"], "D4406", "twice"),
        (["heat.dotr", "events", "--param", "limt=1"], "D1118", "did you mean `?limit`"),
        (["heat.dotr", "events", "--param", "limit=1) . }"], "D1118", "not a value"),
    ],
)
def test_what_is_not_a_comparison_is_refused(
    folder: Path, dotr: Dotr, arguments: list[str], code: str, words: str
) -> None:
    (folder / "heat.dotr").write_text(SMOKE, encoding="utf-8")
    (folder / "new.dotr").write_text(FIRE, encoding="utf-8")
    ran = dotr("compare", *arguments)
    assert ran.code in (2, 3)
    assert code in ran.err
    assert words in ran.err


@pytest.mark.spark
def test_spark_finds_the_same_differences(folder: Path, dotr: Dotr) -> None:
    (folder / "new.dotr").write_text(FIRE.replace("?v > 60", "?v > 80"), encoding="utf-8")
    arguments = ["compare", "fire.dotr", "new.dotr", "events", "--format", "json", "--explain", "0"]
    here, there = dotr(*arguments), dotr(*arguments, "--engine", "spark")
    assert there.code == 1
    assert json.loads(there.out) == json.loads(here.out)
    (folder / "heat.dotr").write_text(SMOKE, encoding="utf-8")
    sweep = ["compare", "heat.dotr", "events", "--param", "limit=60,70,50", "--time-unit", "ms"]
    assert dotr(*sweep, "--engine", "spark").out == dotr(*sweep).out


PROGRAM = """PREFIX : <http://e#>
QUERY A := {{ SELECT ?k WHERE {{ ?x :a ?k }} }}
QUERY B := {{ SELECT ?k WHERE {{ ?x :b ?k }} }}
RULE R DEFINE {{ dotr_r a :R ; :k ?k }}
FROM B AND EACH A WITHIN {window} s FROM B ON A.?k = B.?k WITH ?k := B.?k
RULE S DEFINE {{ dotr_s a :S ; :k ?k }}
FROM A AND NOT B WITHIN {window} s FROM A ON B.?k = A.?k WITH ?k := A.?k
"""


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.sampled_from("kl")), max_size=12),
)
def test_counts_are_those_of_two_runs(windows: tuple[int, int], steps: list[tuple[int, str, str]]) -> None:
    time, graphs = 0, []
    for number, (wait, predicate, key) in enumerate(steps):
        time += wait * 1_000_000
        graph: list[Triple] = [(f"<http://e#x{number}>", f"<http://e#{predicate}>", f"<http://e#{key}>")]
        graphs.append((time, graph))
    versions = [Version(str(w), parse_program(PROGRAM.format(window=w)), ()) for w in windows]

    def found(some: list[Version]) -> Counter[tuple[str, str]]:
        counts = Comparing(some).run(graphs, iter([Clock()])).counts
        return Counter({key: values[0] for key, values in counts.items()})

    both = Comparing(versions).run(graphs, iter([Clock()]))
    old, new = found(versions[:1]), found(versions[1:])
    for key in {*old, *new}:
        assert both.counts[key] == [old[key], new[key]]
        gained = both.added.get(key, [0, 0])[1] - both.removed.get(key, [0, 0])[1]
        assert gained == new[key] - old[key]
    assert (both.changed == 0) is (windows[0] == windows[1]) or not steps or old == new


def test_a_quoted_value_may_have_a_comma(folder: Path, dotr: Dotr) -> None:
    (folder / "heat.dotr").write_text(SMOKE.replace(":= 60", ':= "x"'), encoding="utf-8")
    ran = dotr("compare", "heat.dotr", "events", "--param", 'limit="a,b","c"')
    assert ran.out.splitlines()[0].split() == ["rule", "day", 'limit="a,b"', 'limit="c"', "+", "−"]


def test_one_value_is_a_table_of_one_column(folder: Path, dotr: Dotr) -> None:
    (folder / "heat.dotr").write_text(SMOKE, encoding="utf-8")
    assert dotr("compare", "heat.dotr", "events", "--param", "limit=99").out.split() == [
        "rule",
        "limit=99",
        "Heat",
        "0",
    ]


def test_the_order_of_with_is_no_difference(folder: Path, dotr: Dotr) -> None:
    one = "WITH ?room := Smoke.?room"
    two = FIRE.replace(one, "WITH ?room := Smoke.?room, ?v := HighTemp.?v")
    (folder / "a.dotr").write_text(two, encoding="utf-8")
    (folder / "b.dotr").write_text(
        FIRE.replace(one, "WITH ?v := HighTemp.?v, ?room := Smoke.?room"), encoding="utf-8"
    )
    assert dotr("compare", "a.dotr", "b.dotr", "events").code == 0


def test_days_of_integer_time_stand_in_order(folder: Path, dotr: Dotr) -> None:
    (folder / "heat.dotr").write_text(SMOKE, encoding="utf-8")
    graph = "<urn:r> <http://example.org/building#sensor> <urn:s> ; <http://example.org/building#val> 70 ."
    lines = [json.dumps({"time": day * 86_400, "graph": graph}) for day in (1, 2, 10)]
    (folder / "days.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "same.dotr").write_text(SMOKE, encoding="utf-8")
    out = dotr("compare", "heat.dotr", "same.dotr", "days.jsonl").out
    assert [line.split()[2] for line in out.splitlines()[1:]] == ["1", "2", "10"]


def test_what_is_refused_is_counted_and_does_not_end_it(folder: Path, dotr: Dotr) -> None:
    (folder / "same.dotr").write_text(FIRE, encoding="utf-8")
    lines = [json.dumps({"time": 10, "graph": "this is not Turtle"}), json.dumps({"time": 20, "graph": ""})]
    (folder / "bad.jsonl").write_text("\n".join(lines), encoding="utf-8")
    ran = dotr("compare", "fire.dotr", "same.dotr", "bad.jsonl", "--on-error", "skip")
    assert ran.code == 0
    assert "1 graph, 1 refused, 0 differences" in ran.err
    assert dotr("compare", "fire.dotr", "same.dotr", "bad.jsonl").code == 3


def test_an_output_that_exists_is_refused_before_anything_runs(folder: Path, dotr: Dotr) -> None:
    (folder / "out.txt").write_text("mine", encoding="utf-8")
    ran = dotr("compare", "fire.dotr", "nowhere.dotr", "events", "-o", "out.txt")
    assert ran.code == 5
    assert (folder / "out.txt").read_text(encoding="utf-8") == "mine"


def test_late_graphs_end_it_where_that_is_asked_for(folder: Path, dotr: Dotr) -> None:
    (folder / "same.dotr").write_text(FIRE, encoding="utf-8")
    lines = [json.dumps({"time": time, "graph": ""}) for time in (10, 20, 15)]
    (folder / "late.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert dotr("compare", "fire.dotr", "same.dotr", "late.jsonl").code == 0
    ran = dotr("compare", "fire.dotr", "same.dotr", "late.jsonl", "--late", "fail")
    assert ran.code == 3
    assert "D2301" in ran.err


def test_a_page_says_that_nothing_differs(folder: Path, dotr: Dotr) -> None:
    ran = dotr("compare", "fire.dotr", "fire.dotr", "events", "--format", "html")
    assert ran.code == 0
    assert "none: both versions have the same events" in ran.out
    assert "<svg" not in ran.out
