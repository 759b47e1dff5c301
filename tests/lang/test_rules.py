"""Rules become checked rules: names looked up, windows in microseconds, rules in the order they run."""

from __future__ import annotations

import pytest

from dotr.errors import ProgramError
from dotr.lang import check_program, parse_program
from dotr.program import (
    Absent,
    Attribute,
    Between,
    Calendar,
    CalendarTick,
    Call,
    Choose,
    Every,
    Fresh,
    Program,
    Rhythm,
    Selection,
    Summarise,
    TemplateVar,
    Tick,
    Var,
    Within,
)
from dotr.program.names import duration, rhythm_text

PREFIX = "PREFIX : <http://example.org/>\n"
QUERIES = """PREFIX : <http://example.org/>
QUERY Smoke := { SELECT ?room WHERE { ?o a :Smoke ; :room ?room } }
QUERY Temp := { SELECT ?room ?val WHERE { ?o :room ?room ; :val ?val } }
"""
SECOND = 1_000_000


def program(rules: str) -> Program:
    return parse_program(QUERIES + rules)


def rule(clauses: str, name: str = "R") -> str:
    return f"RULE {name} DEFINE {{ dotr_x a :{name} }} {clauses}\n"


def codes(text: str) -> list[str]:
    return [d.code for d in check_program(["x.dotr"], lambda _path: text)[1]]


def test_a_rule_has_the_clauses_it_was_written_with() -> None:
    text = """RULE Fire DEFINE { dotr_x a :Fire ; :by dotr_y ; :room ?r } FROM Smoke
    AND FIRST 2 Hot := Temp WITHIN 5 min BEFORE Smoke ON Hot.?val > 60
    AND NOT Drill := { SELECT * { ?d a :Drill } } BETWEEN Hot AND Smoke
    AND SUM(DISTINCT Temp.?val + 1) AS ?s OVER Temp WITHIN 90 sec FROM Hot
    WHERE ?s > 1 WITH ?r := Smoke.?room, ?t := Hot.time - Smoke.time CONSUMING Hot, Hot"""
    [fire] = program(text).rules
    hot, drill, total = fire.conjuncts
    assert isinstance(hot, Choose)
    assert (hot.selection, hot.k, hot.position.stream) == (Selection.FIRST, 2, "Temp")
    assert hot.window == Within(300 * SECOND, "Smoke", before=True)
    assert isinstance(drill, Absent)
    assert (drill.position.stream, drill.position.variables) == ("Fire.Drill", ("d",))
    assert drill.window == Between("Hot", "Smoke")
    assert isinstance(total, Summarise)
    assert (total.function, total.distinct, total.variable, total.window) == (
        "SUM",
        True,
        "s",
        Within(90 * SECOND, "Hot"),
    )
    assert isinstance(total.argument, Call)
    assert total.argument.arguments[0] == Attribute("Temp", "val")
    assert fire.where is not None
    assert fire.variables == ("r", "t")
    assert fire.consuming == ("Hot",)
    assert [t.object for t in fire.template[1:]] == [Fresh("dotr_y"), TemplateVar("r")]


def test_two_positions_may_range_over_one_query_rule_or_earlier_position() -> None:
    text = rule(
        "FROM A := { SELECT ?x { ?x a :A } } AND EACH B := A WITHIN 1 s FROM A "
        "AND EACH C := Smoke WITHIN 1 s FROM A"
    )
    [found] = program(text).rules
    assert [p.stream for p in found.positions] == ["R.A", "R.A", "Smoke"]
    assert list(program(text).queries) == ["Smoke", "Temp", "R.A"]


def test_a_rule_is_an_event_with_its_with_variables() -> None:
    fire, again = program(
        rule("FROM Smoke WITH ?a := Smoke.?room, ?b := 1", "Fire") + rule("FROM Fire WITH ?c := Fire.?b")
    ).rules
    position = again.positions[0]
    assert (position.stream, position.chained, position.variables) == ("Fire", True, ("a", "b"))
    assert fire.variables == position.variables


def test_rules_run_in_dependency_order_and_stay_in_program_order() -> None:
    found = program(
        rule("FROM B", "A")
        + rule("FROM Smoke AND EACH C WITHIN 1 s FROM Smoke", "B")
        + rule("FROM Smoke", "C")
    )
    assert [r.name for r in found.rules] == ["A", "B", "C"]
    assert found.dependencies == (2, 1, 0)


@pytest.mark.parametrize(
    "window", ["WITHIN 1 s BEFORE Smoke", "WITHIN 1 s FROM Past", "BETWEEN Past AND Smoke"]
)
def test_a_cycle_with_a_strict_reference_is_fine(window: str) -> None:
    kind = "NOT" if window.startswith("BETWEEN") else "EACH"
    past = "AND EACH Past := Temp WITHIN 1 s BEFORE Smoke"
    text = rule(f"FROM Smoke {past} AND {kind} B {window}", "A") + rule(
        "FROM Smoke AND EACH A WITHIN 1 s FROM Smoke", "B"
    )
    assert program(text).dependencies == (0, 1)


def test_a_fixed_trigger_of_ticks() -> None:
    [found] = program(
        rule("FROM EVERY 1 h AS Tick AND NOT Smoke WITHIN 1 d FROM Tick WITH ?t := Tick.time")
    ).rules
    assert found.trigger == Every(3600 * SECOND, "Tick")


@pytest.mark.parametrize(
    ("written", "calendar"),
    [
        ('2 d AT 8:05 IN "UTC"', Calendar("UTC", (8 * 60 + 5) * 60 * SECOND, 2)),
        ('7 d AT 00:00 IN "+05:30"', Calendar("+05:30", 0, 7)),
        ('THURSDAY AT 23:59:59 IN "UTC"', Calendar("UTC", 86_399 * SECOND, 7, 7)),
        ('sunday at 00:00 in "Asia/Kolkata"', Calendar("Asia/Kolkata", 0, 7, 3)),
        ("MONTH AT 12:00 IN 'UTC'", Calendar("UTC", 43_200 * SECOND, 0, 1)),
        ('MONTH ON DAY 31 AT 00:00:01 IN "UTC"', Calendar("UTC", SECOND, 0, 31)),
    ],
)
def test_a_trigger_of_local_times(written: str, calendar: Calendar) -> None:
    [found] = program(
        rule(f"FROM EVERY {written} AS Tick AND NOT Smoke WITHIN 1 d FROM Tick WITH ?t := Tick.time")
    ).rules
    assert found.trigger == CalendarTick(calendar, "Tick")
    assert parse_rhythm(rhythm_text(calendar)) == calendar


def parse_rhythm(text: str) -> Rhythm:
    """What EVERY reads of the text of a plan."""
    [found] = program(rule(f"FROM EVERY {text} AS T AND NOT Smoke WITHIN 1 d FROM T WITH ?t := T.time")).rules
    assert isinstance(found.trigger, Tick)
    return found.trigger.rhythm


def test_with_variables_are_a_namespace_of_their_own() -> None:
    [found] = program(
        rule("FROM Smoke AND COUNT(*) AS ?k OVER Temp WITHIN 1 s FROM Smoke WITH ?k := ?k")
    ).rules
    assert found.bindings[0].expression == Var("k")


def test_a_name_glued_to_the_sign_is_no_prefix() -> None:
    assert (
        parse_program(PREFIX + "QUERY A:={ SELECT ?x { ?x a :A } }\n" + rule("FROM B:=A"))
        .rules[0]
        .positions[0]
        .name
        == "B"
    )


def test_an_expression_ends_before_the_next_clause_in_any_layout() -> None:
    text = rule(
        "FROM Smoke AND LAST Temp WITHIN 1 s FROM Smoke ON Temp.?val\n> 5\n"
        "AND NOT D := Temp WITHIN 1 s FROM Smoke"
    )
    assert len(program(text).rules[0].conjuncts) == 2


def test_prefixes_hold_in_the_whole_file() -> None:
    text = rule("FROM A := { SELECT ?x { ?x a later:A } }") + "PREFIX later: <http://example.org/>\n" + PREFIX
    assert len(parse_program(text).rules) == 1


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("5 min", 300 * SECOND),
        ("PT5M", 300 * SECOND),
        ("1.5h", 5400 * SECOND),
        ("P1DT0.5S", 86_400_500_000),
        ("250us", 250),
    ],
)
def test_durations_outside_rules_are_written_in_the_same_units(text: str, micros: int) -> None:
    assert duration(text) == micros


@pytest.mark.parametrize("text", ["5", "5 m", "-5 s", "0.1 us", "P1M", "P", "9999999 d", "five min"])
def test_a_duration_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|microseconds"):
        duration(text)


def test_one_broken_clause_does_not_hide_the_others_nor_invent_mistakes() -> None:
    text = QUERIES + rule(
        "FROM Smoke\nAND LAST T := Temp WITHIN 5 m FROM\n"
        "AND NOT U := T WITHIN 1 s FROM T ON U.?x = T.?anything\n"
        "WITH ?a := T.?val, ?b := Smoke.?rom"
    )
    assert codes(text) == ["D1401", "D1004", "D1310"]


def test_findings_are_sorted_by_place_and_errors_alone_are_raised() -> None:
    text = (
        "PREFIX u: <http://example.org/>\n"
        + QUERIES
        + rule("FROM Smoke WITH ?a := Smoke.?rom, ?b := Smoke.?rum")
    )
    with pytest.raises(ProgramError) as caught:
        parse_program(text)
    assert [d.code for d in caught.value.diagnostics] == ["D1310", "D1310"]
    assert all(d.span is not None for d in caught.value.diagnostics)
