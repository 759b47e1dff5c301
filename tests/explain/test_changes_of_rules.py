"""Proofs of events when rules change on the way: by the rules of their time, over what has happened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dotr as package
from dotr.errors import UsageError
from dotr.explain.proofs import (
    Changed,
    Chosen,
    Counted,
    Derived,
    EventProof,
    NothingThere,
    SolutionProof,
)
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture
from tests.explain.proving import Checked, faults_over_changes

HEAD = "PREFIX : <urn:>\nBACKGROUND <map.ttl>\nRULES <{}.dlog>\n"
PAIR = """QUERY A := { SELECT ?x ?r WHERE { ?x a :A ; :in ?r } }
QUERY B := { SELECT ?x ?r WHERE { ?x a :B ; :in ?r } }
RULE Pair DEFINE { dotr_p a :Pair } FROM B AND LAST A WITHIN 10 s FROM B ON A.?r = B.?r
WITH ?a := A.?x, ?b := B.?x
CONSUMING A
"""
OTHERS = """RULE Seen DEFINE { dotr_s a :Seen }
FROM C := { SELECT ?x WHERE { ?x a :C } } AND COUNT(*) AS ?n OVER P := Pair WITHIN 20 s FROM C
AND NOT D := { SELECT ?x WHERE { ?x a :D } } WITHIN 20 s FROM C
WITH ?x := C.?x, ?n := ?n
"""
AT = "PREFIX : <urn:>\n:in(?x, ?r) :- :at(?x, ?d), :of(?d, ?r) .\n"
BY = "PREFIX : <urn:>\n:in(?x, ?r) :- :by(?x, ?d), :of(?d, ?r) .\n"


def thing(time: int, name: str, kind: str, how: str = "at") -> dict[str, object]:
    return {"time": time, "graph": f"<urn:{name}> a <urn:{kind}> ; <urn:{how}> <urn:d> ."}


STREAM = [
    thing(1, "a1", "A"),
    thing(2, "a2", "A"),
    thing(3, "b1", "B"),  # consumes a2
    thing(4, "d1", "D"),
    thing(6, "b2", "B"),  # after the change: takes a1, as a2 is consumed
    thing(7, "c1", "C"),
    thing(8, "a3", "A", "by"),
    thing(9, "b3", "B", "by"),
]


@pytest.fixture
def files(folder: Path) -> Path:
    (folder / "map.ttl").write_text("<urn:d> <urn:of> <urn:r> .\n")
    (folder / "old.dlog").write_text(AT)
    (folder / "new.dlog").write_text(BY)
    (folder / "old.dotr").write_text(HEAD.format("old") + PAIR)
    (folder / "same.dotr").write_text(HEAD.format("old") + PAIR + OTHERS)
    (folder / "new.dotr").write_text(HEAD.format("new") + PAIR + OTHERS)
    (folder / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in STREAM))
    return folder


def checked(files: Path, *then: tuple[int, str]) -> Checked:
    changes = [(time * 1_000_000, files / name) for time, name in then]
    found = faults_over_changes(files / "old.dotr", [files / "s.jsonl"], changes)
    assert found.faults == []
    return found


def of(found: Checked, rule: str) -> list[EventProof]:
    return [proof for proof in found.proofs if proof.rule.name == rule]


def test_a_rule_that_stays_the_same_keeps_its_facts_and_what_it_consumed(files: Path) -> None:
    first, second = of(checked(files, (5, "same.dotr")), "Pair")
    step = second.steps[0]
    assert isinstance(step, Chosen)
    assert (step.fact.fact[1][0], step.inside, step.passing) == ("<urn:a1>", 2, 1)
    assert (first.values[0], second.values[0]) == ("<urn:a2>", "<urn:a1>")


def test_a_fact_from_before_the_change_is_derived_by_the_rules_of_then(files: Path) -> None:
    """The rule that gave :in has gone, and the query has not changed: facts have happened."""
    (files / "both.dotr").write_text(
        (files / "old.dotr").read_text().replace("RULES <old.dlog>", "RULES <old.dlog>\nRULES <new.dlog>")
    )
    _, second = of(checked(files, (5, "same.dotr")), "Pair")
    step = second.steps[0]
    assert isinstance(step, Chosen)
    assert isinstance(step.fact.why, SolutionProof)
    derived = next(p for p in step.fact.why.premises if isinstance(p, Derived))
    assert "old.dlog" in str(derived.rule.span)


def test_a_rule_whose_datalog_changed_saw_nothing_before(files: Path) -> None:
    found = checked(files, (5, "new.dotr"))
    before, after = of(found, "Pair")
    assert (before.values, after.values) == (("<urn:a2>", "<urn:b1>"), ("<urn:a3>", "<urn:b3>"))
    step = after.steps[0]
    assert isinstance(step, Chosen)
    assert step.inside == 1
    assert isinstance(step.fact.why, SolutionProof)
    derived = next(p for p in step.fact.why.premises if isinstance(p, Derived))
    assert "new.dlog" in str(derived.rule.span)


def test_a_rule_that_is_new_sees_neither_events_nor_facts_from_before(files: Path) -> None:
    (seen,) = of(checked(files, (5, "same.dotr")), "Seen")
    counted, nothing = seen.steps
    assert isinstance(counted, Counted)
    assert isinstance(nothing, NothingThere)
    assert (counted.inside, nothing.inside) == (1, 0)  # the pair at 6, and not the D at 4


def test_rules_that_go_and_come_back_begin_anew(files: Path) -> None:
    (files / "without.dotr").write_text(
        "PREFIX : <urn:>\nBACKGROUND <map.ttl>\nRULES <old.dlog>\n"
        "RULE Other DEFINE { dotr_o a :O } FROM X := { SELECT ?x WHERE { ?x a :X } }\n"
    )
    found = checked(files, (4, "without.dotr"), (5, "old.dotr"))
    assert [proof.values[0] for proof in of(found, "Pair")] == ["<urn:a2>"]


def test_a_changed_background_is_stated_from_the_change_on(files: Path, dotr: Dotr) -> None:
    (files / "more.ttl").write_text("<urn:d> <urn:of> <urn:q> .\n")
    text = (files / "old.dotr").read_text().replace("map.ttl", "more.ttl")
    (files / "moved.dotr").write_text(text)
    found = checked(files, (5, "moved.dotr"))
    assert len(found.proofs) == 1  # what was in :r is not in :q
    ran = dotr(
        "explain", "old.dotr", "s.jsonl", "--then", "5", "moved.dotr", "--triple", ":b2 :in :q", "--at", "6"
    )
    assert ran.code == 0, ran.err
    assert ":d :of :q   background  more.ttl:1   since 5 until deleted" in ran.out


LASTING = """HOLD :in LATEST
QUERY In := { SELECT ?x ?r WHERE { ?x :in ?r } }
RULE Left DEFINE { dotr_l a :Left } FROM L := DSTREAM In
AND COUNT(*) AS ?n OVER M := ISTREAM In WITHIN 20 s FROM L
WITH ?x := L.?x, ?n := ?n
"""


def test_an_answer_that_ends_since_other_rules_hold_says_so(files: Path, dotr: Dotr) -> None:
    """No statement ends at 5: the rule that derived from it does."""
    (files / "l.dotr").write_text(HEAD.format("old") + LASTING)
    (files / "m.dotr").write_text(HEAD.format("new") + LASTING)
    lines = [{"time": 1, "insert": "<urn:a> <urn:at> <urn:d> ."}, {"time": 9, "graph": ""}]
    (files / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = faults_over_changes(files / "l.dotr", [files / "s.jsonl"], [(5_000_000, files / "m.dotr")])
    assert found.faults == []
    (left,) = found.proofs
    assert left.values == ("<urn:a>", '"0"^^<http://www.w3.org/2001/XMLSchema#integer>')
    assert isinstance(left.trigger.why, Changed)
    assert left.trigger.why.rules
    ran = dotr("explain", "l.dotr", "s.jsonl", "--then", "5", "m.dotr")
    assert "DSTREAM: the answer ends @ 5   1 such answer before, 0 from then on" in ran.out
    assert ":a :in :r   old.dlog:2" in ran.out
    assert "other rules hold from then on" in ran.out


HELD = """LARS <{}.lars>
QUERY a := {{ SELECT ?x WHERE {{ ?x a :A }} }}
RULE Begun DEFINE {{ dotr_b a :Begun }} FROM B := ISTREAM held WITH ?x := B.?x
RULE Ended DEFINE {{ dotr_e a :Ended }} FROM E := DSTREAM held WITH ?x := E.?x
"""


@pytest.mark.parametrize("other", ["h", "g"])
def test_what_holds_goes_on_where_its_rules_are_the_same_and_begins_anew_where_not(
    files: Path, other: str
) -> None:
    (files / "h.lars").write_text("held(?x) :- a(?x) WITHIN 4 s .\n")
    (files / "g.lars").write_text("held(?x) :- a(?x) WITHIN 3 s .\n")
    (files / "h.dotr").write_text("PREFIX : <urn:>\n" + HELD.format("h"))
    (files / "g.dotr").write_text(f"PREFIX : <urn:>\n# {other}\n" + HELD.format(other))
    changes = [(5_000_000, files / "g.dotr")]
    found = faults_over_changes(files / "h.dotr", [files / "s.jsonl"], changes)
    assert found.faults == []
    ended = {proof.values[0]: proof.time // 1_000_000 for proof in of(found, "Ended")}
    begun = {proof.values[0] for proof in of(found, "Begun")}
    assert begun == {"<urn:a1>", "<urn:a2>", "<urn:a3>"}
    assert ended == ({"<urn:a1>": 6, "<urn:a2>": 7} if other == "h" else {})


def test_the_command_explains_by_the_rules_of_the_event(files: Path, dotr: Dotr) -> None:
    then = ("--then", "5", "new.dotr")
    early = dotr("explain", "old.dotr", "s.jsonl", *then, "--rule", "Pair", "--at", "3", "--verify")
    assert early.code == 0, early.err
    assert "old.dlog:2" in early.out
    late = dotr("explain", "old.dotr", "s.jsonl", *then, "--rule", "Pair", "--verify")
    assert "new.dlog:2" in late.out
    assert "old.dlog" not in late.out
    why_not = dotr("explain", "old.dotr", "s.jsonl", *then, "--why-not", "Pair", "--at", "6")
    assert (why_not.code, "no B then" in why_not.out) == (1, True)
    assert "?x :in ?r   not found" in why_not.out


def test_an_engine_says_what_it_does_not_keep_any_more(files: Path) -> None:
    engine = package.Engine(str(files / "old.dotr"), keep="1 h")
    events = []
    for line in STREAM[:3]:
        events += engine.push(line["graph"], at=line["time"])
    events += engine.advance(3)
    engine.replace(str(files / "new.dotr"), at=5)
    assert "old.dlog:2" in str(events[0].explain())
    for line in STREAM[4:]:
        events += engine.push(line["graph"], at=line["time"])
    events += engine.finish()
    with pytest.raises(UsageError, match="D4173"):
        events[0].explain()
    assert "new.dlog:2" in str(events[-1].explain())
