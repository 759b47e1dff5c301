"""Effects of events: chains without an end, effects that contradict what lasts, and names of events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dotr

PREFIX = "PREFIX : <ex:>\n"
UNDONE = (
    PREFIX
    + """HOLD :s LATEST
RULE P
DEFINE { dotr_e a :P }
FROM Up := ISTREAM { SELECT ?x WHERE { ?x :s :on } }
WITH ?x := Up.?x
INSERT { ?x :s :off }

RULE Q
DEFINE { dotr_e a :Q }
FROM Down := ISTREAM { SELECT ?x WHERE { ?x :s :off } }
WITH ?x := Down.?x
INSERT { ?x :s :on }

RULE R
DEFINE { dotr_e a :R }
FROM Looks := { SELECT ?x WHERE { ?m :look ?x } }
WITH ?x := Looks.?x
INSERT { ?x :looked true }
"""
)
OPEN = (
    PREFIX
    + """BACKGROUND <schema.ttl>
ENTAILMENT OWL2RL
RULE Close
DEFINE { dotr_e a :Close }
FROM Shut := { SELECT ?x WHERE { ?m :shut ?x } }
WITH ?x := Shut.?x
INSERT { ?x a :Closed }

RULE Is
DEFINE { dotr_e a :Is }
FROM New := ISTREAM { SELECT ?x WHERE { ?x a :Closed } }
WITH ?x := New.?x
"""
)


def engine(text: str, **options: Any) -> dotr.Engine:
    return dotr.Engine.from_text(text, time_unit="s", **options)


def test_rules_that_undo_each_other_end_the_run_before_the_next_graph() -> None:
    """Case 5 of the worked cases: a billion seconds of silence are a thousand moments of effects."""
    run = engine(UNDONE)
    run.push(PREFIX + ":d1 :s :on .", at=0)
    with pytest.raises(dotr.ProgramError) as raised:
        run.push(PREFIX + ":m :look :d1 .", at=10**9)
    [found] = raised.value.diagnostics
    assert found.code == "D4013"
    assert "`P`, `Q` at 1001" in found.message


def test_messages_between_them_let_a_chain_go_on() -> None:
    run = engine(UNDONE)
    events = run.push(PREFIX + ":d1 :s :on .", at=0)
    for time in range(500, 2501, 500):
        events += run.push(PREFIX + ":m :look :d1 .", at=time)
    events += run.advance(2500)
    assert len([event for event in events if event.rule in "PQ"]) > 2400


def test_what_an_event_states_can_name_the_event() -> None:
    run = engine(
        PREFIX
        + """RULE Enter
DEFINE { dotr_e a :Entered }
FROM A := { SELECT ?x WHERE { ?m :a ?x } }
WITH ?x := A.?x
INSERT { ?x :since dotr_e }

RULE Since
DEFINE { dotr_e a :Since }
FROM New := ISTREAM { SELECT ?x ?e WHERE { ?x :since ?e } }
WITH ?e := New.?e
"""
    )
    events = run.push(PREFIX + ":m :a :d1 .", at=1)
    events += run.push("", at=5)
    events += run.advance(5)
    enter, since = events
    assert (enter.rule, since.rule) == ("Enter", "Since")
    assert str(since.bindings["e"]) in (enter.id, f"<{enter.id}>")


def test_effects_that_contradict_are_left_out_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "schema.ttl").write_text(
        "@prefix : <ex:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
        ":Open owl:disjointWith :Closed . :d1 a :Open .\n"
    )
    (tmp_path / "rules.dotr").write_text(OPEN)
    errors: list[dotr.DotrError] = []
    run = dotr.Engine(tmp_path / "rules.dotr", time_unit="s", on_error=errors.append)
    events = run.push(PREFIX + ":m :shut :d1, :d2 .", at=1)
    events += run.push("", at=5)
    events += run.advance(5)
    assert [(event.rule, event.time, str(event.bindings["x"])) for event in events] == [
        ("Close", 1, "ex:d1"),
        ("Close", 1, "ex:d2"),
        ("Is", 2, "ex:d2"),
    ]
    [found] = [error.diagnostics[0] for error in errors]
    assert found.code == "D2604"
    assert "`Close`" in found.message
    assert found.notes[0] == f"the event is {events[0].id}"
    assert (run.counters.ineffective, run.counters.overlooked) == (1, 0)


def test_under_fail_effects_that_contradict_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "schema.ttl").write_text(
        "@prefix : <ex:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
        ":Open owl:disjointWith :Closed . :d1 a :Open .\n"
    )
    (tmp_path / "rules.dotr").write_text(OPEN)
    run = dotr.Engine(tmp_path / "rules.dotr", time_unit="s")
    run.push(PREFIX + ":m :shut :d1 .", at=1)
    with pytest.raises(dotr.DataError) as raised:
        run.push("", at=5)
    assert raised.value.diagnostics[0].code == "D2604"


def test_a_chain_beside_rules_of_lars_ends_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 10)
    (tmp_path / "calm.lars").write_text("STEP 1 s\nseen(?x) :- Looked(?x) .\n")
    looks = "LARS <calm.lars>\nQUERY Looked := { SELECT ?x WHERE { ?m :look ?x } }\n"
    (tmp_path / "rules.dotr").write_text(UNDONE.replace("HOLD", looks + "HOLD", 1))
    run = dotr.Engine(tmp_path / "rules.dotr", time_unit="s")
    run.push(PREFIX + ":d1 :s :on .", at=0)
    with pytest.raises(dotr.ProgramError) as raised:
        run.push(PREFIX + ":m :look :d1 .", at=100)
    assert raised.value.diagnostics[0].code == "D4013"


def test_points_of_timers_are_counted_from_message_to_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.lasting.instants.LONGEST", 50)
    run = engine(
        PREFIX
        + """HOLD :s FOR 1 s
RULE Again
DEFINE { dotr_e a :Again }
FROM Gone := DSTREAM { SELECT ?x WHERE { ?x :s :on } }
WITH ?x := Gone.?x
INSERT { ?x :s :on }
"""
    )
    run.push(PREFIX + ":d1 :s :on .", at=0)
    run.push("", at=40)
    with pytest.raises(dotr.ProgramError) as raised:
        run.push("", at=1000)
    assert raised.value.diagnostics[0].code == "D4013"


def test_no_effect_is_left_out_for_a_budget() -> None:
    run = engine(
        PREFIX
        + """RULE Put
DEFINE { dotr_e a :Put }
FROM A := { SELECT ?x WHERE { ?m :a ?x } }
WITH ?x := A.?x
INSERT { ?x :put ?x }

RULE Pair
DEFINE { dotr_e a :Pair }
FROM New := ISTREAM { SELECT ?x ?y WHERE { ?x :put ?a . ?y :put ?b } }
WITH ?x := New.?x
""",
        budget=3_000,
        on_error=lambda _: None,
    )
    run.push(PREFIX + ":m :a " + ", ".join(f":d{n}" for n in range(100)) + " .", at=1)
    run.push("", at=5)
    run.advance(5)
    assert run.counters.ineffective == 0


def test_an_instant_whose_effects_are_all_left_out_is_verified(tmp_path: Path) -> None:
    (tmp_path / "schema.ttl").write_text(
        "@prefix : <ex:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
        ":Open owl:disjointWith :Closed . :d1 a :Open .\n"
    )
    (tmp_path / "rules.dotr").write_text(OPEN)
    run = dotr.Engine(tmp_path / "rules.dotr", time_unit="s", on_error=lambda _: None, verify=True)
    run.push(PREFIX + ":m :shut :d1 .", at=1)
    run.push("", at=5)
    run.advance(5)
    assert run.counters.ineffective == 1


def test_under_other_rules_a_chain_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 10)
    run = engine(UNDONE)
    run.push(PREFIX + ":d1 :s :on .", at=0)
    run.advance(9)
    mended = engine(UNDONE.replace("INSERT { ?x :s :on }", "INSERT { ?x :was :off }"))
    mended.restore(run.snapshot())
    events = mended.push(PREFIX + ":m :look :d1 .", at=10**9)
    assert {event.rule for event in events} <= {"P", "Q"}
