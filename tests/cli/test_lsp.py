"""What an editor is told of a place in a rule file: definitions, what a name is, what may stand there."""

from __future__ import annotations

import pytest

from dotr.cli.lsp import Analysis, analyse, completions, definition, hover, rename, renamed
from dotr.errors import UsageError

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


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("IMPORT <parts/doors.dotr> AS Doors", "rules/parts/doors.dotr"),
        ("IMPORT <dotr:patterns/lost.dotr> AS Lost", "dotr:patterns/lost.dotr"),
        ("RULES <rooms.dlog>", "rules/rooms.dlog"),
    ],
)
def test_a_file_that_is_named_is_the_definition_of_its_name(text: str, file: str) -> None:
    span = definition(analyse("rules/a.dotr", text, lambda path: text), text.index("<") + 3)
    assert span is not None
    assert (span.source.name, span.start) == (file, 0)


def test_the_iri_of_a_prefix_is_no_file() -> None:
    assert definition(analysed(), TEXT.index("<urn:>") + 1) is None


def test_prefixes_and_variables_are_completed_where_they_begin() -> None:
    text = TEXT + "RULE Third DEFINE { dotr_x a e } FROM Hot WHERE ? > 5"
    one = analysed(text, analysed())
    at_term = completions(one, text.rindex("a e }") + 3)
    assert ("ex:", "prefix") in {(c.label, c.kind) for c in at_term}
    assert [c.label for c in completions(one, text.rindex("? >") + 1)] == ["?at", "?limit", "?s", "?v"]


def test_names_of_an_import_are_completed() -> None:
    library = "PREFIX : <urn:>\nQUERY Door := { SELECT ?d WHERE { ?d a :Door } }\n"
    text = "IMPORT <doors.dotr> AS Doors\nPREFIX : <urn:>\nRULE R DEFINE { dotr_x a :R } FROM Doors_Door\n"
    texts = {"a.dotr": text, "doors.dotr": library}
    one = analyse("a.dotr", text, texts.__getitem__)
    assert one.program is not None
    assert "Doors_Door" in {c.label for c in completions(one, text.index("Doors_Door"))}
    span = definition(one, text.index("Doors_Door") + 1)
    assert span is not None
    assert (span.source.name, span.start) == ("doors.dotr", library.index("SELECT"))


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
    assert str(hover(one, TEXT.index("Hot := {"))).startswith("**Hot**: a query (?s, ?v), used by Fire\n")
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


def after_renaming(at: str, inside: int, name: str, text: str = TEXT) -> str:
    places, new = rename(analysed(text), text.index(at) + inside, name, lambda path: text)
    for place in reversed(places):
        text = text[: place.start] + new + text[place.end :]
    return text


@pytest.mark.parametrize("at", ["Hot := {", "Hot\nAND", "Hot WITHIN", "Hot ON", "Hot.time"])
def test_a_query_is_renamed_everywhere(at: str) -> None:
    text = after_renaming(at, 1, "Warm") if at != "Hot WITHIN" else after_renaming("Hot WITHIN", 1, "Warm")
    assert text.count("Warm") == 5
    assert "Hot" not in text


def test_a_position_is_renamed_in_its_rule() -> None:
    two = TEXT + "RULE More DEFINE { dotr_x a ex:More } FROM Again := Fire WHERE Again.?at != ex:a\n"
    text = after_renaming("Again.?v", 2, "Earlier", two)
    assert (text.count("Earlier"), text.count("Again")) == (4, 2)


def test_a_query_that_a_position_hides_keeps_the_position() -> None:
    text = (
        "QUERY A := { SELECT ?s WHERE { ?s a <urn:A> } }\nQUERY B := { SELECT ?s WHERE { ?s a <urn:B> } }\n"
        "RULE R DEFINE { dotr_x a <urn:R> } FROM A := B AND LAST C := A WITHIN 5 s FROM A WHERE A.?s = C.?s\n"
    )
    renamed_text = after_renaming("A := {", 0, "Z", text)
    assert "QUERY Z :=" in renamed_text
    assert "FROM A := B AND LAST C := Z WITHIN 5 s FROM A WHERE A.?s = C.?s" in renamed_text


def test_parameters_and_prefixes_are_renamed() -> None:
    text = after_renaming("?limit &&", 2, "?most")
    assert (text.count("?most"), text.count("limit")) == (2, 0)
    text = after_renaming("ex:Fire", 1, "zz:")
    assert (text.count("zz:"), text.count("ex:")) == (TEXT.count("ex:"), 0)


@pytest.mark.parametrize(
    ("at", "inside", "name", "why"),
    [
        ("Hot := {", 1, "Fire", "wrong"),
        ("Hot := {", 1, "no name", "is no name"),
        ("SELECT", 1, "Other", "nothing here"),
        ("?s ?v WHERE", 1, "t", "nothing here"),
        ("ex:Fire", 4, "Smoke", "nothing here"),
    ],
)
def test_what_cannot_be_renamed_is_refused(at: str, inside: int, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        after_renaming(at, inside, name)
    assert caught.value.diagnostics[0].code == "D4148"


def test_nothing_is_renamed_where_nothing_is() -> None:
    assert renamed(analysed(), len(TEXT)) == []


def test_a_query_shows_how_it_is_evaluated() -> None:
    shown = hover(analysed(), TEXT.index("Hot := {"))
    assert shown is not None
    assert "find ?s ex:v ?v" in shown
