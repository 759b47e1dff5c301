"""What lasts on the command line: feeds in pieces, one message by hand, rules from a time on."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from freezegun import freeze_time

from dotr.service import journal
from tests.cli.conftest import Dotr

DATABASE = f".dotr/{journal.DATABASE}"

RULES = """PREFIX : <urn:>
HOLD :in FOR 10 s
QUERY In := { SELECT ?x ?y WHERE { ?x :in ?y } }
RULE Left DEFINE { dotr_l a :Left ; :who ?x ; :what ?y } FROM L := DSTREAM In WITH ?x := L.?x, ?y := L.?y
RULE Came DEFINE { dotr_c a :Came ; :who ?x ; :what ?y } FROM C := ISTREAM In WITH ?x := C.?x, ?y := C.?y
"""
LATER = RULES.replace("10 s", "2 s").replace("PREFIX", "BACKGROUND <map.ttl>\nPREFIX", 1)


def line(time: int, **parts: str) -> str:
    """A message whose parts are pairs of letters: who is in what."""
    texts = {}
    for kind, pairs in parts.items():
        texts[kind] = "".join(f"<urn:{x}> <urn:in> <urn:{y}> ." for x, y in pairs.split())
    return json.dumps({"time": time, **texts}) + "\n"


def reported(out: str) -> list[str]:
    """`+ab @ 3` for a Came of a in b."""
    found = []
    for one in map(json.loads, out.splitlines()):
        x, y = (one["bindings"][name]["value"].removeprefix("urn:") for name in "xy")
        found.append(f"{'+' if one['rule'] == 'Came' else '-'}{x}{y} @ {one['time']}")
    return found


@pytest.fixture(autouse=True)
def files(dotr: Dotr) -> None:
    Path("in.dotr").write_text(RULES)
    Path("later.dotr").write_text(LATER)
    Path("map.ttl").write_text("<urn:m> <urn:in> <urn:n> .")
    Path("s.jsonl").write_text(
        line(0, graph="ab") + line(3, graph="cd", insert="ef") + line(7, delete="ab") + line(30, graph="")
    )


EVENTS = ["+ab @ 0", "+cd @ 3", "+ef @ 3", "-ab @ 7", "-cd @ 13"]


def test_a_run_has_ends_of_periods_insertions_and_deletions(dotr: Dotr) -> None:
    ran = dotr("run", "in.dotr", "s.jsonl")
    assert reported(ran.out) == EVENTS
    ran = dotr("run", "in.dotr", "s.jsonl", "--verify", "--format", "text")
    assert ran.code == 0
    assert "@ 13" in ran.out


def test_a_feed_in_pieces_is_one_run(dotr: Dotr) -> None:
    dotr("deploy", "in.dotr")
    lines = Path("s.jsonl").read_text().splitlines(keepends=True)
    out = ""
    for number, text in enumerate(lines):
        Path(f"{number}.jsonl").write_text(text)
        fed = dotr("feed", f"{number}.jsonl")
        assert fed.code == 0, fed.err
        out += fed.out
    assert reported(out) == EVENTS


def test_a_message_by_hand_is_fed_at_its_time_and_kept_with_it(dotr: Dotr) -> None:
    dotr("deploy", "in.dotr")
    Path("0.jsonl").write_text(line(0, graph="ab"))
    Path("new.ttl").write_text("<urn:e> <urn:in> <urn:f> .")
    Path("old.ttl").write_text("<urn:a> <urn:in> <urn:b> .")
    assert reported(dotr("feed", "0.jsonl").out) == ["+ab @ 0"]
    fed = dotr("feed", "--insert", "new.ttl", "--delete", "old.ttl", "--at", "4")
    assert reported(fed.out) == ["-ab @ 4", "+ef @ 4"]
    with sqlite3.connect(DATABASE) as database:
        [(kept,)] = database.execute("SELECT line FROM given")
    assert json.loads(kept) == {"time": 4, "insert": "<urn:e> <urn:in> <urn:f> .\n",
                                "delete": "<urn:a> <urn:in> <urn:b> .\n"}  # fmt: skip


@freeze_time("2026-03-01T08:00:00Z")
def test_now_is_the_wall_clock_as_the_deployment_writes_times(dotr: Dotr) -> None:
    dotr("deploy", "in.dotr")
    Path("new.ttl").write_text("<urn:e> <urn:in> <urn:f> .")
    assert reported(dotr("feed", "--insert", "new.ttl", "--at", "now").out) == ["+ef @ 2026-03-01T08:00:00Z"]
    dotr("deploy", "in.dotr", "--dir", "whole")
    Path("0.jsonl").write_text(line(0, graph="ab"))
    dotr("feed", "0.jsonl", "--dir", "whole")
    fed = dotr("feed", "--insert", "new.ttl", "--at", "now", "--dir", "whole")
    assert reported(fed.out) == ["-ab @ 10", "+ef @ 1772352000"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["s.jsonl", "--at", "4"],
        ["--insert", "map.ttl"],
        ["s.jsonl", "--insert", "map.ttl", "--at", "4"],
        ["--insert", "map.ttl", "--at", "4", "--follow"],
    ],
)
def test_a_feed_has_sources_or_one_message(dotr: Dotr, arguments: list[str]) -> None:
    dotr("deploy", "in.dotr")
    fed = dotr("feed", *arguments)
    assert (fed.code, "D4162" in fed.err) == (2, True)


def test_a_message_by_hand_is_late_or_in_error_as_any_other(dotr: Dotr) -> None:
    dotr("deploy", "in.dotr")
    dotr("feed", "s.jsonl")
    assert dotr("feed", "--insert", "map.ttl", "--at", "12", "--late", "file=late.jsonl").code == 0
    assert json.loads(Path("late.jsonl").read_text()) == {
        "time": 12,
        "insert": "<urn:m> <urn:in> <urn:n> .\n",
    }
    assert "D2102" in dotr("feed", "--insert", "map.ttl", "--at", "2026-03-01T00:00:00Z").err
    Path("blank.ttl").write_text("[] <urn:in> <urn:n> .")
    assert "D2202" in dotr("feed", "--delete", "blank.ttl", "--at", "40").err
    assert "D2010" in dotr("feed", "--delete", "s.jsonl", "--at", "40").err


def test_a_commit_writes_what_changed(dotr: Dotr) -> None:
    """However much is held: no statement is written twice."""
    dotr("deploy", "in.dotr")
    Path("many.jsonl").write_text(json.dumps({"time": 1, "insert": "".join(
        f"<urn:x{i}> <urn:in> <urn:y> ." for i in range(50))}) + "\n" + line(2, graph=""))  # fmt: skip
    dotr("feed", "many.jsonl")
    with sqlite3.connect(DATABASE) as database:
        database.execute("CREATE TABLE written (triple TEXT)")
        database.execute(
            "CREATE TRIGGER t AFTER INSERT ON stated BEGIN INSERT INTO written VALUES (new.triple); END"
        )
    Path("more.jsonl").write_text(line(5, graph="ab") + line(6, graph=""))
    dotr("feed", "more.jsonl")
    with sqlite3.connect(DATABASE) as database:
        assert database.execute("SELECT triple FROM written").fetchall() == [("<urn:a> <urn:in> <urn:b>",)]
        assert database.execute("SELECT count(*) FROM stated").fetchone() == (51,)
    Path("end.jsonl").write_text(line(50, graph=""))
    assert reported(dotr("feed", "end.jsonl").out) == ["-ab @ 15"]
    with sqlite3.connect(DATABASE) as database:
        assert database.execute("SELECT count(*) FROM stated").fetchone() == (50,)


# -- rules from a time on


def test_then_lets_other_rules_hold_from_a_time_on(dotr: Dotr) -> None:
    ran = dotr("run", "in.dotr", "s.jsonl", "--then", "5", "later.dotr", "--verify")
    assert reported(ran.out) == ["+ab @ 0", "+cd @ 3", "+ef @ 3", "+mn @ 5", "-ab @ 7", "-cd @ 13"]
    ran = dotr("run", "in.dotr", "s.jsonl", "--then", "2", "later.dotr", "--then", "8", "in.dotr")
    assert reported(ran.out) == ["+ab @ 0", "+mn @ 2", "+cd @ 3", "+ef @ 3", "-cd @ 5", "-ab @ 7", "-mn @ 8"]
    assert "D2102" in dotr("run", "in.dotr", "s.jsonl", "--then", "2026-01-01T00:00:00Z", "in.dotr").err


def test_of_two_programs_for_one_instant_the_last_counts(dotr: Dotr) -> None:
    twice = ["--then", "5", "in.dotr", "--then", "5", "later.dotr"]
    ran = dotr("run", "in.dotr", "s.jsonl", *twice, "--verify")
    assert ran.code == 0
    assert ran.out == dotr("run", "in.dotr", "s.jsonl", "--then", "5", "later.dotr").out
    assert ran.out != dotr("run", "in.dotr", "s.jsonl", *twice[3:], *twice[:3]).out


def test_a_deployment_from_a_time_on_is_a_run_with_then(dotr: Dotr) -> None:
    expected = dotr("run", "in.dotr", "s.jsonl", "--then", "5", "later.dotr").out
    lines = Path("s.jsonl").read_text().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        folder = f"cut{cut}"
        Path("a.jsonl").write_text("".join(lines[:cut]))
        Path("b.jsonl").write_text("".join(lines[cut:]))
        Path("rules.dotr").write_text(RULES)
        dotr("deploy", "rules.dotr", "--dir", folder)
        Path("rules.dotr").write_text(LATER)
        planned = dotr("deploy", "rules.dotr", "--dir", folder, "--from", "5")
        assert planned.code == 0, planned.err
        out = dotr("feed", "a.jsonl", "--dir", folder).out + dotr("feed", "b.jsonl", "--dir", folder).out
        assert out == expected


def test_a_plan_waits_and_can_be_taken_back(dotr: Dotr) -> None:
    dotr("deploy", "in.dotr")
    Path("in.dotr").write_text(LATER)
    assert "planned from 5 on" in dotr("deploy", "in.dotr", "--from", "5").err
    refused = dotr("deploy", "in.dotr")
    assert (refused.code, "D5211" in refused.err) == (5, True)
    assert "D5211" in dotr("undeploy", "Left").err
    assert "withdrawn" in dotr("undeploy", "--planned").err
    assert "nothing was planned" in dotr("undeploy", "--planned").err
    assert "D4163" in dotr("undeploy").err
    assert reported(dotr("feed", "s.jsonl").out) == EVENTS


def test_a_plan_for_a_time_that_closed_names_the_first_possible_one(dotr: Dotr) -> None:
    dotr("deploy", "in.dotr")
    dotr("feed", "s.jsonl")
    Path("in.dotr").write_text(LATER)
    refused = dotr("deploy", "in.dotr", "--from", "30")
    assert refused.code == 2
    assert "the first time that is not closed is 31" in refused.err
    assert dotr("deploy", "in.dotr", "--from", "31").code == 0
    assert "D2102" in dotr("deploy", "in.dotr", "--from", "2026-01-01T00:00:00Z").err


def test_lengths_of_time_between_two_units_are_a_program_error(dotr: Dotr) -> None:
    Path("in.dotr").write_text(RULES.replace("10 s", "500 ms"))
    ran = dotr("run", "in.dotr", "s.jsonl")
    assert ran.code == 3
    assert "D1409" in ran.err
    assert "FOR 500 ms" in ran.err
    assert dotr("run", "in.dotr", "s.jsonl", "--time-unit", "ms").code == 0


def test_a_summary_counts_useless_deletions(dotr: Dotr) -> None:
    Path("s.jsonl").write_text(line(0, graph="ab") + line(1, delete="ab cd") + line(2, delete="ab"))
    assert "2 deletions of what was not stated" in dotr("run", "in.dotr", "s.jsonl").err


def test_query_sees_what_lasts_at_its_time(dotr: Dotr) -> None:
    Path("q.rq").write_text("SELECT ?x ?y { ?x <urn:in> ?y }")
    for at, rows in (("0", "ab"), ("3", "ab cd ef"), ("7", "cd ef"), ("13", "ef")):
        asked = dotr("query", "in.dotr", "s.jsonl", "--at", at, "q.rq", "--format", "jsonl")
        found = [json.loads(row) for row in asked.out.splitlines()]
        assert " ".join(r["x"]["value"][-1] + r["y"]["value"][-1] for r in found) == rows


def test_a_refused_instant_leaves_letters_with_all_parts(dotr: Dotr) -> None:
    Path("in.dotr").write_text("ENTAILMENT rdfs\n" + RULES)
    Path("s.jsonl").write_text(
        line(0, graph="ab")
        + '{"time": 10, "graph": "<urn:C> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:D> .", '
        '"insert": "<urn:e> <urn:in> <urn:f> ."}\n' + line(11, graph="")
    )
    ran = dotr("run", "in.dotr", "s.jsonl", "--on-error", "file=dead.jsonl")
    assert reported(ran.out) == ["+ab @ 0", "-ab @ 10"]
    letter = json.loads(Path("dead.jsonl").read_text())
    assert (letter["code"], letter["time"], letter["insert"]) == ("D2601", 10, "<urn:e> <urn:in> <urn:f> .\n")
    assert dotr("run", "in.dotr", "s.jsonl").code == 3


MUCH = """PREFIX : <urn:>
HOLD :in FOR 10 s
QUERY Far := { SELECT ?x ?z WHERE { ?x :in ?y . ?z :in ?w FILTER(STR(?y) < STR(?w)) } }
RULE Came DEFINE { dotr_c :x ?x ; :y ?y } FROM C := ISTREAM Far WITH ?x := C.?x, ?y := C.?z
"""
NOW = """PREFIX : <urn:>
HOLD :in FOR 10 s
QUERY Far := { SELECT ?x ?z WHERE { ?x :in ?y . ?z :in ?w FILTER(STR(?y) < STR(?w)) } }
RULE Came DEFINE { dotr_c :x ?x ; :y ?y } FROM Far WITH ?x := Far.?x, ?y := Far.?z
"""
DERIVED = """PREFIX : <urn:>
RULES <far.dlog>
HOLD :in FOR 10 s
QUERY Far := { SELECT ?x ?z WHERE { ?x :far ?z } }
RULE Came DEFINE { dotr_c :x ?x ; :y ?y } FROM C := ISTREAM Far WITH ?x := C.?x, ?y := C.?z
"""


@pytest.mark.parametrize(("rules", "code"), [(MUCH, "D4132"), (NOW, "D4132"), (DERIVED, "D4003")])
def test_what_lasts_keeps_to_the_budget(dotr: Dotr, rules: str, code: str) -> None:
    Path("much.dotr").write_text(rules)
    Path("far.dlog").write_text(
        "PREFIX : <urn:>\n:far(?x, ?z) :- [?x, :in, ?y], [?z, :in, ?w], FILTER(STR(?y) < STR(?w)) ."
    )
    many = " ".join(a + b for a in "abcdefghij" for b in "klmnopqrst")
    Path("m.jsonl").write_text(line(0, graph="ab cd") + line(3, graph=many) + line(30, graph="ab cd"))
    ran = dotr("run", "much.dotr", "m.jsonl", "--on-error", "file=dead", "--budget", "5k", "--verify")
    assert ran.code == 0, ran.err
    assert {json.loads(one)["time"] for one in ran.out.splitlines()} == {0, 30}
    assert [json.loads(letter)["code"] for letter in Path("dead").read_text().splitlines()] == [code]
    assert dotr("run", "much.dotr", "m.jsonl").code == 0


TICKING = """PREFIX : <urn:>
QUERY Q := { SELECT ?x { ?x :in ?y } }
RULE Quiet DEFINE { dotr_q :quiet ?t } FROM EVERY 1 s AS T AND NOT Q WITHIN 1 s FROM T WITH ?t := T.time
"""


@pytest.mark.parametrize(
    ("times", "changes", "refused"),
    [
        ((5, 3_000_000), {10: "ticking"}, True),
        ((5, 3_000_000), {10: "ticking", 20: "plain"}, False),
        ((5, 3_000_000), {10: "plain", 2_999_990: "ticking"}, False),
        ((3_000_000,), {10: "ticking"}, True),  # the first graph is not far ahead, but ticks are before it
        ((3_000_000,), {10: "plain"}, False),
    ],
)
def test_ticks_of_programs_to_come_are_counted_where_they_hold(
    dotr: Dotr, times: tuple[int, ...], changes: dict[int, str], refused: bool
) -> None:
    Path("plain.dotr").write_text(TICKING.replace("EVERY 1 s AS T AND NOT Q WITHIN 1 s FROM T", "T := Q"))
    Path("ticking.dotr").write_text(TICKING)
    Path("few.jsonl").write_text("".join(line(time, graph="ab") for time in times))
    given = [word for time, name in changes.items() for word in ("--then", str(time), f"{name}.dotr")]
    ran = dotr("run", "plain.dotr", "few.jsonl", *given)
    assert ("D2107" in ran.err, ran.code) == (refused, 3 if refused else 0)


EFFECTS = """PREFIX : <urn:>
ENTAILMENT OWL2RL
BACKGROUND <open.ttl>
QUERY Seen := { SELECT ?x ?v WHERE { ?x :in ?v } }
RULE Made DEFINE { dotr_m a :Made } FROM Seen WITH ?x := Seen.?x, ?v := Seen.?v
INSERT { ?x a :Closed . ?v :of ?x }
"""
OPEN = "<urn:Open> <http://www.w3.org/2002/07/owl#disjointWith> <urn:Closed> . <urn:a> a <urn:Open> ."
LOST = {"not_stated": 1, "ineffective": 1}


def test_what_of_effects_is_lost_is_in_the_summaries_and_in_the_status(dotr: Dotr) -> None:
    Path("e.dotr").write_text(EFFECTS)
    Path("open.ttl").write_text(OPEN)
    graphs = ["<urn:a> <urn:in> <urn:b> .", "<urn:c> <urn:in> 'd' .", ""]
    Path("e.jsonl").write_text(
        "".join(json.dumps({"time": time, "graph": g}) + "\n" for time, g in enumerate(graphs))
    )
    ran = dotr("run", "e.dotr", "e.jsonl", "--on-error", "skip", "--summary", "json")
    summary = json.loads(ran.err.splitlines()[-1])
    assert {name: summary[name] for name in LOST} == LOST
    assert dotr("deploy", "e.dotr").code == 0
    fed = dotr("feed", "e.jsonl", "--on-error", "skip", "--summary", "json")
    summary = json.loads(fed.err.splitlines()[-1])
    assert {name: summary[name] for name in LOST} == LOST
    status = json.loads(dotr("status", "--format", "json").out)
    assert {name: status[name] for name in LOST} == LOST
    assert (
        "effects     1 triple of INSERT that no graph can have, 1 event without effect\n"
        in dotr("status").out
    )
    quiet = dotr("run", "in.dotr", "s.jsonl", "--summary", "json")
    assert not LOST.keys() & json.loads(quiet.err.splitlines()[-1]).keys()
