"""Why something holds, or does not: window atoms opened, absences, the window atom that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from dotr.explain import matches
from dotr.explain.proofs import EventProof, HeldAtom, Holding
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture
from tests.explain.proving import checker_of, explainer_of, history_of

RULES = """PREFIX : <urn:>
LARS <h.lars>
QUERY a := { SELECT ?x WHERE { ?x a :A } }
RULE Begun DEFINE { dotr_b a :Begun } FROM ISTREAM box WITH ?x := box.?x
RULE Ended DEFINE { dotr_e a :Ended } FROM E := DSTREAM box WITH ?x := E.?x
RULE Quiet DEFINE { dotr_q a :Quiet } FROM ISTREAM quiet
RULE Busy DEFINE { dotr_n a :Busy } FROM N := ISTREAM busy WITH ?n := N.?n
"""
HELD = """
held(?x)  :- a(?x) WITHIN 2 s .
box(?x)   :- held(?x) ALWAYS WITHIN 3 s .
quiet()   :- NOT a(?x) WITHIN 4 s, NOT Begun(?x) WITHIN 1 s .
busy(?n)  :- COUNT(?x) AS ?n OVER a(?x) WITHIN 5 s .
"""


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    (folder / "h.dotr").write_text(RULES)
    (folder / "h.lars").write_text(HELD)
    graphs = [(0, ""), (4, "<urn:x> a <urn:A> ."), (6, "<urn:x> a <urn:A> ."), (30, "")]
    (folder / "s.jsonl").write_text(
        "".join(json.dumps({"time": time, "graph": graph}) + "\n" for time, graph in graphs)
    )


def reported(dotr: Dotr, *question: str, code: int = 0) -> str:
    ran = dotr("explain", "h.dotr", "s.jsonl", *question)
    assert ran.code == code, ran.err
    return ran.out


def test_a_head_opens_into_what_its_windows_showed_down_to_lines_of_the_stream(dotr: Dotr) -> None:
    out = reported(dotr, "--rule", "Begun")
    assert "ISTREAM: it holds, and did not at the point before" in out
    assert "box(:x)  @ 7   h.lars:3   box(?x) :- held(?x) ALWAYS WITHIN 3 s ." in out
    assert "held(?x) ALWAYS WITHIN 3 s   at 4 points from 4 on" in out
    assert "held(:x)  @ 7   h.lars:2" in out
    assert "a(?x) WITHIN 2 s   at 1 point from 5 on" in out
    assert ":x a :A   s.jsonl:3" in out


def test_an_end_says_what_held_before_and_which_window_atom_fails_now(dotr: Dotr) -> None:
    out = reported(dotr, "--rule", "Ended")
    assert "DSTREAM: it held at the point before" in out
    assert "✗ held(?x) ALWAYS WITHIN 3 s   not at every point from 6 to 9" in out


def test_a_not_opens_into_what_was_absent(dotr: Dotr) -> None:
    out = reported(dotr, "--rule", "Quiet", "--at", "11")
    assert "NOT a(?x) WITHIN 4 s   none from 7 on" in out
    assert "NOT Begun(?x) WITHIN 1 s   none from 10 on" in out


def test_an_aggregate_says_over_how_many_pairs(dotr: Dotr) -> None:
    assert "2, of 2 from 1 on" in reported(dotr, "--rule", "Busy", "--at", "6")


def test_why_not_names_the_window_atom_that_failed(dotr: Dotr) -> None:
    out = reported(dotr, "--why-not", "Begun", "--at", "5", code=1)
    assert "Begun did not fire @ 5: no box then" in out
    assert "✗ held(?x) ALWAYS WITHIN 3 s   not at every point from 2 to 5" in out
    assert "✗ NOT a(?x) WITHIN 4 s   there is one from 2 to 6" in reported(
        dotr, "--why-not", "Quiet", "--at", "6", code=1
    )
    assert "it holds then, as it did at the point before" in reported(
        dotr, "--why-not", "Begun", "--at", "8", code=1
    )


def test_as_json_a_proof_has_the_literals_with_their_support(dotr: Dotr) -> None:
    proof = json.loads(reported(dotr, "--rule", "Begun", "--format", "json"))
    holds = proof["trigger"]["holds"]
    assert (holds["head"], holds["time"], proof["trigger"]["change"]) == ("box", "7", "ISTREAM")
    step = holds["body"][0]
    assert (step["literal"], step["points"], step["from"]) == ("held(?x) ALWAYS WITHIN 3 s", 4, "4")
    assert step["support"][0]["body"][0]["support"][0]["because"][0]["stated"] == "stream"


LONG = """PREFIX : <urn:>
LARS <long.lars>
QUERY a := { SELECT ?x WHERE { ?x a :A } }
RULE Total DEFINE { dotr_t a :T }
  FROM a AND COUNT(*) AS ?n OVER B := quiet WITHIN 30000 d FROM a WITH ?m := ?n
RULE Took DEFINE { dotr_t a :K } FROM a AND LAST B := quiet WITHIN 30000 d FROM a WITH ?x := a.?x
RULE Never DEFINE { dotr_t a :N } FROM a AND NOT B := never WITHIN 30000 d FROM a WITH ?x := a.?x
RULE Unmet DEFINE { dotr_t a :U } FROM a AND LAST B := never WITHIN 30000 d FROM a WITH ?x := a.?x
"""


def long_silence(folder: Path, end: int) -> None:
    """Two graphs far apart; `quiet` holds from 4 s on, `never` does not."""
    (folder / "h.dotr").write_text(LONG)
    (folder / "long.lars").write_text("quiet() :- NOT a(?x) WITHIN 3 s .\nnever() :- quiet(), a(?x) .\n")
    graph = "<urn:x> a <urn:A> ."
    (folder / "s.jsonl").write_text(
        "".join(json.dumps({"time": time, "graph": graph}) + "\n" for time in (0, end))
    )


def test_windows_over_more_points_than_are_gone_through_say_that_they_are_not_opened(
    dotr: Dotr, folder: Path
) -> None:
    far = 400_000_000
    long_silence(folder, far)
    not_opened = "not opened: a head over more points than are gone through"
    counted = " ".join(reported(dotr, "--rule", "Total", "--at", str(far)).split())
    assert f"?m {far - 4}" in counted
    assert f"COUNT(*) AS ?n OVER B within 30000 d from a │ {not_opened}" in counted
    assert "facts" not in counted
    step = json.loads(reported(dotr, "--rule", "Total", "--at", str(far), "--format", "json"))["steps"][0]
    assert (step["in_window"], step["value"], step["unopened"]) == (None, None, not_opened)
    took = reported(dotr, "--rule", "Took", "--at", str(far))
    assert "not opened" in took
    assert "latest of" not in took
    never = reported(dotr, "--rule", "Never", "--at", str(far))
    assert not_opened in never
    assert "no B in the window" not in never
    unmet = reported(dotr, "--why-not", "Unmet", "--at", str(far), code=1)
    assert not_opened in unmet
    assert "there is no B" not in unmet


def test_the_checker_accepts_windows_of_heads_that_are_not_opened_and_no_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_silence(folder, 40)
    monkeypatch.setattr(matches, "MOST", 20)
    history = history_of(folder / "h.dotr", [folder / "s.jsonl"])
    explainer = explainer_of(history)
    events = [event for event in history.events if event.time > 0]
    assert len(events) == 3
    for event in events:
        proof, checker = explainer.event(event), checker_of(history, explainer)
        assert proof.steps[0].inside is None
        checker.event(proof)
        assert checker.found == []
        step = proof.steps[0]
        other = replace(step.conjunct, position=replace(step.conjunct.position, held=False))
        rule = replace(proof.rule, conjuncts=(other,))
        checker = checker_of(history, explainer)
        checker.event(replace(proof, rule=rule, steps=(replace(step, conjunct=other),)))
        assert checker.found != []


def changed(proof: EventProof, holding: Holding) -> EventProof:
    return replace(proof, trigger=replace(proof.trigger, why=holding))


def test_the_checker_accepts_the_proofs_and_notices_when_they_are_tampered_with(folder: Path) -> None:
    history = history_of(folder / "h.dotr", [folder / "s.jsonl"])
    explainer = explainer_of(history)
    for event in history.events:
        checker = checker_of(history, explainer)
        checker.event(explainer.event(event))
        assert checker.found == []
    proof = explainer.event(next(event for event in history.events if event.rule == 0))
    matches = proof.trigger.why
    assert isinstance(matches, Holding)
    atom = matches.atom
    assert isinstance(atom, HeldAtom)
    for wrong in (
        replace(matches, atom=replace(atom, considered=6)),
        replace(matches, atom=replace(atom, bindings=(("x", "<urn:y>"),))),
        replace(matches, atom=replace(atom, rule=history.program.lars.rules[0])),
        replace(matches, atom=replace(atom, values=("<urn:y>",))),
    ):
        checker = checker_of(history, explainer)
        checker.event(changed(proof, wrong))
        assert checker.found != []
