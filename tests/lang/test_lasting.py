"""HOLD, ISTREAM and DSTREAM become checked values; their words stay usable as names."""

from __future__ import annotations

import pytest

from dotr.detect.digest import rule_digests
from dotr.errors import Severity
from dotr.lang import check_program, load_program, parse_program
from dotr.lang.printer import format_text
from dotr.program import Hold, Program, RelationToStream, StandingQuery
from dotr.rdf.terms import RDF_TYPE
from dotr.source import Source

PREFIX = "PREFIX : <http://example.org/>\n"
JAM = PREFIX + "QUERY Jam := { SELECT DISTINCT ?road WHERE { ?road a :Congested } }\n"
SECOND = 1_000_000
MINUTE = 60 * SECOND


def ex(name: str) -> str:
    return f"<http://example.org/{name}>"


def rule(clauses: str, name: str = "R") -> str:
    return f"RULE {name} DEFINE {{ dotr_x a :{name} }} {clauses}\n"


def streams(program: Program) -> list[str]:
    return [position.stream for position in program.rules[0].positions]


def codes(text: str) -> list[str]:
    return [d.code for d in check_program(["x.dotr"], lambda _path: text)[1]]


def test_a_hold_says_for_each_predicate_and_class_how_long() -> None:
    text = """hold :in, :on FOR 10 min
    Hold :status LATEST
    HOLD :level latest for 1 h
    HOLD a :Open FOR 500 ms
    HOLD :knows
    HOLD * FOR 10 s
    HOLD :reading FOR 0 s"""
    assert parse_program(PREFIX + text).holds == (
        Hold(ex("in"), duration=10 * MINUTE),
        Hold(ex("on"), duration=10 * MINUTE),
        Hold(ex("status"), latest=True),
        Hold(ex("level"), latest=True, duration=60 * MINUTE),
        Hold(RDF_TYPE, ex("Open"), duration=SECOND // 2),
        Hold(ex("knows")),
        Hold(duration=10 * SECOND),
        Hold(ex("reading"), duration=0),
    )


def test_equal_lines_for_one_predicate_are_one_line() -> None:
    program = parse_program(PREFIX + "HOLD :in FOR 1 min\nHOLD :on, :in FOR 60 s")
    assert [hold.predicate for hold in program.holds] == [ex("in"), ex("on")]


def test_for_may_be_a_parameter_of_a_library() -> None:
    files = {
        "main.dotr": PREFIX + "IMPORT <held.dotr> AS Held WITH ?long := 1 h\nHOLD :in FOR 5 min",
        "held.dotr": PREFIX + "PARAMETER ?long := 2 h\nHOLD :on FOR ?long",
    }
    program = load_program(["main.dotr"], files.__getitem__)
    assert program.holds == (Hold(ex("on"), duration=60 * MINUTE), Hold(ex("in"), duration=5 * MINUTE))


def test_the_main_file_and_a_library_may_not_hold_a_predicate_in_two_ways() -> None:
    files = {
        "main.dotr": PREFIX + "IMPORT <held.dotr> AS Held\nHOLD :in FOR 5 min",
        "held.dotr": PREFIX + "HOLD :in LATEST",
    }
    [finding] = check_program(["main.dotr"], files.__getitem__)[1]
    assert (finding.code, str(finding.span)) == ("D1503", "main.dotr:3:6")
    assert finding.notes == ("the other is at held.dotr:2:6",)


def test_holding_for_no_time_without_a_star_is_a_warning() -> None:
    [finding] = check_program(["x.dotr"], lambda _path: PREFIX + "HOLD :in FOR 0 s")[1]
    assert (finding.code, finding.severity) == ("D1505", Severity.WARNING)
    assert codes(PREFIX + "HOLD :in FOR 0 s HOLD * FOR 1 s") == []


def test_istream_of_a_query_is_one_stream_wherever_it_is_written() -> None:
    text = "QUERY Begun := ISTREAM Jam\n" + rule(
        "FROM Begun AND NOT Over1 := DSTREAM Jam WITHIN 1 min FROM Begun "
        "AND EACH Again := istream Jam WITHIN 1 min BEFORE Begun AND EACH Jam WITHIN 0 s FROM Begun"
    )
    program = parse_program(JAM + text)
    assert streams(program) == ["ISTREAM Jam", "DSTREAM Jam", "ISTREAM Jam", "Jam"]
    select = program.queries["Jam"]
    assert program.standing == {
        "ISTREAM Jam": StandingQuery(RelationToStream.ISTREAM, select, "Jam"),
        "DSTREAM Jam": StandingQuery(RelationToStream.DSTREAM, select, "Jam"),
    }
    assert program.rules[0].positions[0].variables == ("road",)


def test_a_query_of_changes_may_be_written_in_place() -> None:
    came = "QUERY Came := ISTREAM { SELECT ?x WHERE { ?x :in ?y } }\n"
    left = "AND EACH Left := DSTREAM { SELECT ?y WHERE { ?x :in ?y } } WITHIN 1 min FROM Came"
    program = parse_program(PREFIX + came + rule(f"FROM Came {left}"))
    assert streams(program) == ["Came", "R.Left"]
    assert list(program.queries) == []
    assert [(s.operator, s.query) for s in program.standing.values()] == [("ISTREAM", ""), ("DSTREAM", "")]
    assert list(program.written) == ["Came", "R.Left"]


def test_a_library_may_ask_for_the_changes_of_a_query_it_is_given() -> None:
    files = {
        "main.dotr": JAM + "IMPORT <new.dotr> AS New WITH Of := Jam",
        "new.dotr": PREFIX + "PARAMETER QUERY Of(?road)\n" + rule("FROM Begun := ISTREAM Of"),
    }
    program = load_program(["main.dotr"], files.__getitem__)
    assert streams(program) == ["ISTREAM Jam"]
    files["main.dotr"] = JAM + "QUERY Begun := ISTREAM Jam IMPORT <new.dotr> AS New WITH Of := Begun"
    assert [d.code for d in check_program(["main.dotr"], files.__getitem__)[1]] == ["D1506"]


def test_a_query_that_only_changes_name_is_used() -> None:
    assert codes(JAM + rule("FROM Begun := ISTREAM Jam")) == []
    assert codes(JAM + "QUERY Begun := ISTREAM Jam\n" + rule("FROM Begun")) == []
    assert codes(JAM + "QUERY Begun := ISTREAM Jam\n" + rule("FROM Jam")) == ["D1117"]


@pytest.mark.parametrize("word", ["HOLD", "LATEST", "FOR", "ISTREAM", "DSTREAM"])
def test_the_words_are_names_where_no_query_or_predicate_follows(word: str) -> None:
    query = f"QUERY {word} := {{ SELECT ?x WHERE {{ ?x a :C }} }}\n"
    clauses = (
        f"FROM {word} AND EACH A := {word} WITHIN 5 s BEFORE {word} AND NOT B := {word} WITHIN 5 s FROM A\n"
    )
    text = PREFIX + "HOLD a :C FOR 5 s\n" + query + rule(clauses) + "HOLD :p LATEST FOR 1 s\n"
    program = parse_program(text)
    assert streams(program) == [word] * 3
    assert len(program.holds) == 2
    changes = PREFIX + query + rule(f"FROM {word}1 := ISTREAM {word} AND EACH C := ISTREAM {word} WITHIN 1 s "
                                    f"BEFORE {word}1") + "HOLD :p"  # fmt: skip
    assert streams(parse_program(changes)) == [f"ISTREAM {word}"] * 2
    for each in (text, changes):
        printed = format_text(Source("x.dotr", each))
        assert parse_program(printed).rules == parse_program(each).rules


def test_holds_may_stand_between_rules_and_are_printed_where_they_stand() -> None:
    text = rule("FROM Jam") + "hold :in,a :Open for 90 s # while it lasts\n" + rule("FROM Jam", "S")
    printed = format_text(Source("x.dotr", JAM + text))
    assert printed.split("\n\n")[3] == "HOLD :in, a :Open FOR 90 s  # while it lasts"


def test_a_program_that_is_cut_off_in_a_hold_goes_on_at_the_next_line() -> None:
    assert codes(JAM + "HOLD :in FOR\n" + rule("FROM Jam")) == ["D1004"]
    assert codes(JAM + "HOLD :in,\n" + rule("FROM Jama")) == ["D1004", "D1106"]
    assert codes(
        JAM + "RULE R DEFINE { dotr_x a :R } FROM 5\nHOLD rdf FOR 5 s\n" + rule("FROM Jam", "S")
    ) == ["D1004"]
    assert codes(JAM + "HOLD rdf FOR 5 s\n" + rule("FROM Jam", "S")) == ["D1004"]


def test_what_a_rule_remembers_of_changes_is_not_what_it_remembers_of_answers() -> None:
    [of_answers] = rule_digests(parse_program(JAM + rule("FROM B := { SELECT ?x WHERE { ?x :p ?y } }")))
    [begun] = rule_digests(parse_program(JAM + rule("FROM B := ISTREAM { SELECT ?x WHERE { ?x :p ?y } }")))
    [ended] = rule_digests(parse_program(JAM + rule("FROM B := DSTREAM { SELECT ?x WHERE { ?x :p ?y } }")))
    assert len({of_answers, begun, ended}) == 3


def test_a_hold_may_name_the_times_that_data_have() -> None:
    text = """HOLD :permit, a :Pass from :since until :end
    HOLD :price LATEST FROM :since FOR 1 min
    HOLD * UNTIL :end"""
    assert parse_program(PREFIX + text).holds == (
        Hold(ex("permit"), start=ex("since"), until=ex("end")),
        Hold(RDF_TYPE, ex("Pass"), start=ex("since"), until=ex("end")),
        Hold(ex("price"), latest=True, duration=MINUTE, start=ex("since")),
        Hold(until=ex("end")),
    )
    assert format_text(Source("x.dotr", PREFIX + text)) == (
        PREFIX + "\nHOLD :permit, a :Pass FROM :since UNTIL :end\n"
        "HOLD :price LATEST FROM :since FOR 1 min\nHOLD * UNTIL :end\n"
    )


def test_lines_that_end_otherwise_are_different_lines() -> None:
    assert codes(PREFIX + "HOLD :in UNTIL :end\nHOLD :in UNTIL :over") == ["D1503"]
    assert codes(PREFIX + "HOLD :in UNTIL :end\nHOLD :in UNTIL :end") == []
