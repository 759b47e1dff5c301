"""What events state and delete, in explanations: who did it, and why that happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

import dotr as package
from dotr.errors import DotrError
from dotr.explain.proofs import EventLeaf, EventProof, InBackground, Lasting, Missing, SolutionProof
from dotr.lang import load_program
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture
from tests.explain.proving import checker_of, explainer_of, faults_over_changes, history_of
from tests.explain.test_lasting_mutants import everywhere
from tests.whole_lasting import HOLDS, lastings

RULES = """PREFIX : <urn:>
BACKGROUND <map.ttl>
HOLD :state LATEST
HOLD :warm FOR 1 min
QUERY Motion := { SELECT DISTINCT ?room WHERE { ?m a :Motion ; :in ?room } }
QUERY Occupied := { SELECT ?room WHERE { ?room :state :occupied } }
RULE Enter
DEFINE { dotr_e a :Entered ; :room ?room }
FROM Motion
AND NOT Occupied WITHIN 0 s FROM Motion ON Occupied.?room = Motion.?room
WITH ?room := Motion.?room
INSERT { ?room :state :occupied ; :since dotr_e ; :warm true }
RULE Leave
DEFINE { dotr_l a :Left ; :room ?room }
FROM EVERY 1 min AS Look
AND EACH Occupied WITHIN 0 s FROM Look
AND NOT Motion WITHIN 10 min FROM Look ON Motion.?room = Occupied.?room
WITH ?room := Occupied.?room
INSERT { ?room :state :empty }
DELETE { ?room :since ?e . ?room :open ?door }
RULE Freed DEFINE { dotr_f a :Freed } FROM F := DSTREAM Occupied WITH ?room := F.?room
RULE Shut DEFINE { dotr_s a :Shut }
FROM S := DSTREAM { SELECT ?room WHERE { ?room :open ?door } } WITH ?room := S.?room
RULE Alone DEFINE { dotr_a a :Alone }
FROM N := ISTREAM { SELECT ?room WHERE { ?room :state :empty MINUS { ?room :since ?e } } }
WITH ?room := N.?room
RULE Ask DEFINE { dotr_q a :Answer }
FROM Q := { SELECT ?q ?room WHERE { ?q a :Question . ?room :since ?e } } WITH ?room := Q.?room
"""
STREAM: tuple[tuple[int, str], ...] = (
    (1, "<urn:m1> a <urn:Motion> ; <urn:in> <urn:r1> ."),
    (5, "<urn:m2> a <urn:Motion> ; <urn:in> <urn:r1> ."),
    (100, "<urn:q> a <urn:Question> ."),
    (300, "<urn:m3> a <urn:Motion> ; <urn:in> <urn:r2> ."),
    (1200, "<urn:q> a <urn:Question> ."),
)
ENTER = "stated by Enter  urn:dotr:Enter:"


@pytest.fixture
def rooms(folder: Path) -> Path:
    return written(folder)


def written(folder: Path) -> Path:
    (folder / "rooms.dotr").write_text(RULES)
    (folder / "map.ttl").write_text("<urn:r1> <urn:open> <urn:d> .")
    lines = (json.dumps({"time": time, "graph": graph}) for time, graph in STREAM)
    (folder / "s.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def explained(dotr: Dotr, *asked: str, code: int = 0) -> str:
    ran = dotr("explain", "rooms.dotr", "s.jsonl", *asked)
    assert ran.code == code, ran.err
    return ran.out


@pytest.mark.usefixtures("rooms")
def test_a_proof_goes_on_into_the_event_that_stated_a_triple(dotr: Dotr) -> None:
    out = explained(dotr, "--rule", "Ask", "--verify")
    assert "held since 2 until deleted" in out
    assert ENTER in out
    assert out.index(ENTER) < out.index(":m1 a :Motion   s.jsonl:1")


@pytest.mark.usefixtures("rooms")
def test_what_a_triple_ended_by_is_proved(dotr: Dotr) -> None:
    out = explained(dotr, "--rule", "Freed", "--verify")
    assert "held since 301 until 961: replaced" in out
    assert "replaced by Leave  urn:dotr:Leave:" in out
    assert "(above)" in out  # the event that stated it is named once more, below Leave
    shut = explained(dotr, "--rule", "Shut", "--verify")
    assert "background  map.ttl:1   until 661: deleted" in shut
    assert "deleted by Leave  urn:dotr:Leave:" in shut
    assert "replaced by" not in explained(dotr, "--rule", "Alone", "--verify")


@pytest.mark.usefixtures("rooms")
def test_triples_and_what_did_not_happen_name_who_deleted(dotr: Dotr) -> None:
    assert explained(dotr, "--triple", ":r1 :state :empty", "--at", "1200", "--verify").startswith(
        ":r1 :state :empty   held since 661 until another value\n└─ stated by Leave"
    )
    gone = explained(dotr, "--triple", ":r1 :state :occupied", "--at", "1200", code=1)
    assert "was stated: :r1 :state :occupied   held since 2 until 661: replaced" in gone
    assert "replaced by Leave" in gone
    why_not = explained(dotr, "--why-not", "Ask", "--at", "1200", code=1)
    assert "?room :since ?e   not found" in why_not
    assert "deleted by Leave  urn:dotr:Leave:" in why_not
    by_time = explained(dotr, "--triple", ":r1 :warm true", "--at", "70", code=1)
    assert "held since 2 until 62" in by_time


@pytest.mark.usefixtures("rooms")
def test_every_form_has_the_events(dotr: Dotr) -> None:
    plain = json.loads(explained(dotr, "--rule", "Freed", "--format", "json"))
    (leaf,) = plain["trigger"]["because"]
    assert (leaf["stated"], leaf["event"]["rule"], leaf["ended_by"]["rule"]) == ("event", "Enter", "Leave")
    assert leaf["ended_by"]["steps"][0]["fact"]["because"][0]["event"]["above"]
    turtle = explained(dotr, "--rule", "Freed", "--format", "ttl")
    assert "prov:wasDerivedFrom <urn:dotr:Enter:" in turtle
    assert "explain:endedBy <urn:dotr:Leave:" in turtle
    assert "stated by Enter" in explained(dotr, "--rule", "Freed", "--format", "html")
    assert "stated by Enter" in explained(dotr, "--rule", "Freed", "--format", "mermaid")
    gone = json.loads(explained(dotr, "--why-not", "Ask", "--at", "1200", "--format", "json", code=1))
    assert gone["was_stated"][0]["ended_by"]["rule"] == "Leave"


@pytest.mark.usefixtures("rooms")
def test_a_run_explains_and_verifies_its_events(dotr: Dotr) -> None:
    ran = dotr("run", "rooms.dotr", "s.jsonl", "--explain", "--verify", "-q")
    assert ran.code == 0, ran.err
    last = json.loads(ran.out.splitlines()[-1])
    assert last["because"]["trigger"]["because"]


@pytest.mark.usefixtures("rooms")
def test_a_deployment_explains(dotr: Dotr) -> None:
    assert dotr("deploy", "rooms.dotr", "--keep", "7d").code == 0
    fed = dotr("feed", "s.jsonl")
    assert fed.code == 0, fed.err
    out = dotr("explain", "--rule", "Freed")
    assert out.code == 0, out.err
    assert "replaced by Leave" in out.out
    assert ENTER in out.out


@pytest.mark.usefixtures("rooms")
def test_state_names_who_ended_what(dotr: Dotr) -> None:
    ran = dotr("state", "rooms.dotr", "s.jsonl", "--at", "1200", "--changes-since", "300")
    assert ran.code == 0, ran.err
    assert ":r1 :state :occupied .  # replaced @ 661 by Leave urn:dotr:Leave:" in ran.out
    assert ":r1 :open :d .  # deleted @ 661 by Leave urn:dotr:Leave:" in ran.out


def test_an_engine_that_keeps_little_names_events_that_it_forgot() -> None:
    """Enter is older than what is kept; it is named."""
    engine = package.Engine(
        load_program(["r.dotr"], lambda path: RULES.replace("BACKGROUND <map.ttl>\n", "")), keep="20 min"
    )
    for time in range(0, 7200, 60):
        engine.push("<urn:m> a <urn:Motion> ; <urn:in> <urn:r1> .", at=time)
    events = [*engine.push("<urn:q> a <urn:Question> .", at=7200), *engine.finish()]
    because = str(events[-1].explain())
    assert ENTER in because
    assert because.splitlines()[4].endswith("@ 0   not kept")


# -- the checker


@pytest.fixture(scope="module")
def proofs(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[EventProof], Callable[[EventProof], list[str]]]:
    """The events of a run, and a function that checks a proof."""
    folder = written(tmp_path_factory.mktemp("rooms"))
    text = (folder / "rooms.dotr").read_text().replace("<map.ttl>", f"<{folder / 'map.ttl'}>")
    (folder / "rooms.dotr").write_text(text)
    history = history_of(folder / "rooms.dotr", [folder / "s.jsonl"])
    explainer = explainer_of(history)

    def check(proof: EventProof) -> list[str]:
        checker = checker_of(history, explainer)
        checker.event(proof)
        return checker.found

    return [explainer.event(event) for event in history.events], check


def of_events(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda one: change(one) if isinstance(one, Lasting) and one.stated_by is not None else None


def ended(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def changed(one: Any) -> Any:
        return change(one) if isinstance(one, Lasting | InBackground) and one.ended_by is not None else None

    return changed


def without_a_premise(event: Any) -> Any:
    """An event whose trigger lacks a premise."""
    if isinstance(event, EventProof) and isinstance(event.trigger.why, SolutionProof):
        why = replace(event.trigger.why, premises=event.trigger.why.premises[1:])
        return replace(event, trigger=replace(event.trigger, why=why))
    return EventLeaf("Enter", "urn:dotr:Enter:other", event.time)


OTHER = EventLeaf("Ask", "urn:dotr:Ask:aaaaaaaaaaaaaaaaaaaaaaaa", 1_000_000)
MUTANTS: dict[str, Callable[[Any], Any]] = {
    "nobody stated it": of_events(lambda one: replace(one, stated_by=None)),
    "another event stated it": of_events(lambda one: replace(one, stated_by=OTHER)),
    "the event was at another time": of_events(
        lambda one: replace(one, stated_by=EventLeaf("Enter", one.stated_by.id, one.stated_by.time + 1))
    ),
    "the event that stated it does not follow": of_events(
        lambda one: replace(one, stated_by=without_a_premise(one.stated_by))
    ),
    "it began with its event": of_events(lambda one: replace(one, start=one.start - 1_000_000)),
    "it is inserted": of_events(lambda one: replace(one, inserted=True)),
    "nobody ended it": ended(lambda one: replace(one, ended_by=None)),
    "another event ended it": ended(lambda one: replace(one, ended_by=OTHER)),
    "it ended with its event": ended(lambda one: replace(one, until=one.until - 1_000_000)),
    "who stated it ended it": ended(
        lambda one: replace(one, ended_by=one.stated_by) if isinstance(one, Lasting) else None
    ),
    "another triple": of_events(lambda one: replace(one, triple=("<urn:zoe>", *one.triple[1:]))),
}


def test_the_proofs_themselves_are_accepted(
    proofs: tuple[list[EventProof], Callable[[EventProof], list[str]]],
) -> None:
    events, check = proofs
    assert {event.rule.name for event in events} >= {"Enter", "Leave", "Freed", "Shut", "Alone", "Ask"}
    for proof in events:
        assert check(proof) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_rejected(
    proofs: tuple[list[EventProof], Callable[[EventProof], list[str]]], name: str
) -> None:
    events, check = proofs
    tried = 0
    for proof in events:
        for wrong in everywhere(proof, MUTANTS[name]):
            tried += 1
            assert check(wrong) != [], wrong
    assert tried > 0


# -- random programs


def test_random_programs_have_proofs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 12)
    found = sum(proved(seed, tmp_path) for seed in range(30))
    assert found > 200


def added() -> Iterator[str]:
    """Rules that see what begins and ends, and some that state and delete it."""
    for number, verb in enumerate((":p", ":q", ":v", ":s", "a", ":since")):
        query = f"{{ SELECT ?k ?v WHERE {{ ?k {verb} ?v }} }}"
        for how in ("ISTREAM", "DSTREAM"):
            head = f"RULE {how.title()}{number} DEFINE {{ dotr_w a :W }}"
            yield f"\n{head} FROM W := {how} {query} WITH ?k := W.?k, ?v := W.?v\n"
    for number, (verb, clauses) in enumerate(EFFECTS):
        query = f"{{ SELECT ?k ?v WHERE {{ ?k {verb} ?v }} }}"
        yield f"\nRULE Does{number} DEFINE {{ dotr_w a :W }} FROM W := {query} WITH ?k := W.?k, ?v := W.?v\n"
        yield clauses


EFFECTS = (
    (":p", "INSERT { ?k :s ?v ; :since dotr_w } DELETE { ?k :s ?o }"),
    (":q", "INSERT { ?k :q 1 } DELETE { ?k :since ?o . ?x :p ?k }"),
    (":v", "DELETE { ?x ?y ?v }"),
)


def proved(seed: int, folder: Path) -> int:
    """Check every event of a program; how many of its proofs name an event that stated, or
    ended, something.
    """
    whole = lastings(Random(seed))
    programs = [whole.rules, *(rules for _, rules in whole.then)]
    if any("LARS" in rules for rules, _ in programs):
        return 0
    (folder / "h.lars").write_text(HOLDS)
    (folder / "background.ttl").write_text(whole.background)
    for number, (rules, datalog) in enumerate(programs):
        (folder / f"{number}.dlog").write_text(datalog or "# nothing\n")
        named = f"BACKGROUND <background.ttl>\nRULES <{number}.dlog>\n"
        (folder / f"{number}.dotr").write_text(named + rules + "".join(added()))
    lines = [
        {
            key: value
            for key in ("time", "graph", "insert", "delete")
            if (value := getattr(sent, key)) is not None
        }
        for sent in whole.stream
    ]
    (folder / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    times = dict(zip((time for time, _ in whole.then), range(1, 9), strict=False))
    then = [(time * 1_000_000, folder / f"{number}.dotr") for time, number in sorted(times.items())]
    try:
        checked = faults_over_changes(folder / "0.dotr", [folder / "s.jsonl"], then)
    except DotrError:
        return 0
    assert checked.faults == [], f"seed {seed}: {checked.faults[:3]}\n{whole}"
    return sum(
        "stated_by=Event" in repr(proof) or "ended_by=Event" in repr(proof) for proof in checked.proofs
    )


def test_what_does_not_hold_has_no_event_where_nothing_was_stated(rooms: Path) -> None:
    history = history_of(rooms / "rooms.dotr", [rooms / "s.jsonl"])
    found = explainer_of(history).triples(("<urn:r9>", "<urn:state>", "<urn:empty>"), 1_200_000_000)
    assert isinstance(found, Missing)
    assert found.gone == ()
