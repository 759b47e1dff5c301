"""What an editor is told of a place in a rule file: definitions, what a name is, what may stand there."""

from __future__ import annotations

import pytest

from dotr.cli.lsp import Analysis, analyse, completions, definition, hover

TEXT = """PREFIX ex: <urn:>
PARAMETER ?limit := 5
QUERY Hot := { SELECT ?s ?v WHERE { ?s ex:v ?v } }
RULE Fire DEFINE { dotr_x a ex:Fire ; ex:at ?at } FROM Hot
AND LAST Again := Hot WITHIN 5 s FROM Hot ON Again.?v > ?limit && Again.time < Hot.time
WITH ?at := Again.?s
RULE Alarm DEFINE { dotr_x a ex:Alarm } FROM Fire WHERE STR(Fire.?at) != "x"
"""


def analysed(text: str = TEXT, before: Analysis | None = None) -> Analysis:
    return analyse("a.dotr", text, lambda path: text, before)


@pytest.mark.parametrize(
    ("at", "inside", "defined"),
    [
        ("Again.?v", 0, "Again :="),
        ("Again.?v", 7, "?v WHERE"),
        ("Again.time", 0, "Again :="),
        ("Hot\nAND", 0, "Hot := {"),
        ("?limit &&", 0, "?limit := 5"),
        ("ex:Fire", 0, "ex: <urn:>"),
        ("Fire WHERE", 0, "Fire DEFINE"),
        ("Fire.?at", 6, "?at := Again"),
    ],
)
def test_where_a_name_is_defined(at: str, inside: int, defined: str) -> None:
    span = definition(analysed(), TEXT.index(at) + inside)
    assert span is not None
    assert span.start == TEXT.index(defined)


def test_what_is_no_name_is_defined_nowhere() -> None:
    assert definition(analysed(), TEXT.index("WITHIN")) is None
    assert definition(analysed(), TEXT.index('"x"')) is None


def test_in_the_middle_of_an_edit_the_last_right_program_answers() -> None:
    right = analysed()
    broken = TEXT.replace("WITH ?at := Again.?s", "WITH ?at := Again.")
    assert analysed(broken).program is None
    now = analysed(broken, right)
    assert now.program is right.program
    assert now.found
    offset = broken.index("Again.\n") + 6
    assert [one.label for one in completions(now, offset)] == ["?s", "?v", "time"]


def test_what_a_name_is() -> None:
    one = analysed()
    assert hover(one, TEXT.index("ex:Fire") + 4) == "`<urn:Fire>`"
    assert str(hover(one, TEXT.index("Hot := {"))) == "**Hot**: a query (?s, ?v), used by Fire"
    assert str(hover(one, TEXT.index("Fire DEFINE"))).startswith("**Fire**: a rule (?at)")
    time = str(hover(one, TEXT.index("Again.time")))
    assert time.startswith("**Again.time**: the time of **Again**: facts of query")
    assert hover(one, TEXT.index("5 s")) is None


def test_what_may_stand_at_a_place() -> None:
    text = TEXT + "RULE Third DEFINE { dotr_x a ex:F } FROM Hot WHERE ?l"
    one = analysed(text, analysed())
    assert [c.label for c in completions(one, len(text))] == ["?at", "?limit", "?s", "?v"]
    terms = [c.label for c in completions(one, text.rindex("ex:F") + 4)]
    assert terms == ["ex:Alarm", "ex:F", "ex:Fire", "ex:at", "ex:v"]
    words = {(c.label, c.kind) for c in completions(one, text.rindex("Hot") + 1)}
    assert {("Hot", "query"), ("Fire", "rule"), ("Again", "query"), ("EACH", "keyword")} <= words


def test_a_time_of_day_is_no_term_to_complete() -> None:
    text = 'PREFIX : <ex:>\nRULE R DEFINE { dotr_x a :Report } FROM EVERY 1 d AT 08:00 IN "UTC" AS Tick\n'
    one = analysed(text)
    assert [c.label for c in completions(one, text.index(":R") + 2)] == [":Report"]
    assert {"MONDAY", "MONTH", "AT"} <= {c.label for c in completions(one, text.index("EVERY"))}


def test_the_rule_around_a_token() -> None:
    one = analysed()
    number = one.at(TEXT.index("Again.time"))
    assert number is not None
    around = one.rule_around(number)
    assert around is not None
    assert [one.tokens[around[0] + 1].text, one.tokens[around[1] + 1].text] == ["Fire", "Alarm"]
    query = one.at(TEXT.index("Hot := {"))
    assert query is not None
    assert one.rule_around(query) is None
