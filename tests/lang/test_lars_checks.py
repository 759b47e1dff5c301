"""What is refused of .lars files and HOLD lines, the layers of heads, how rules are printed."""

from __future__ import annotations

import pytest

from dotr import program
from dotr.errors import Diagnostics, ProgramError
from dotr.lang.checks.lars import atom_variables, head_attributes, head_of, lars_reads, literal_variables
from dotr.lang.checks.lasting import check_holds
from dotr.lang.checks.names import Resolver
from dotr.lang.loading import Loader
from dotr.lang.printer import format_lars, lars_literal_text, lars_rule_text
from dotr.program import NamedAtom, Var
from dotr.source import Source

HEAD = "PREFIX : <urn:>\nLARS <a.lars>\nQUERY temp := { SELECT ?s ?v WHERE { ?s :v ?v } }\n"
ALARM = "RULE Alarm DEFINE { dotr_x a :Alarm } FROM temp "


def resolved(lars: str, rules: str = "") -> tuple[program.Program, list[str]]:
    found = Diagnostics()
    loader = Loader({"a.dotr": HEAD + rules, "a.lars": lars}.__getitem__, found)
    loader.paths(["a.dotr"])
    program = Resolver(loader.loaded, found).program()
    return program, [one.code for one in found.errors]


@pytest.mark.parametrize(
    ("lars", "codes"),
    [
        ("h(?s) :- temp(?s, ?v) WITHIN 5 s .", []),
        ("h(?s) :- temp(?s) WITHIN 5 s .", ["D1606"]),
        ("h(?s) :- tmp(?s, ?v) WITHIN 5 s .\ng(?s) :- tmp(?s, ?v) .", ["D1604"]),
        ("h(?s) :- temp(?s, ?v) .\nh(?s, ?v) :- temp(?s, ?v) .", ["D1606"]),
        ("h(?x) :- temp(?s, ?v) .", ["D1605"]),
        ("h(?s) :- NOT temp(?s, ?v) WITHIN 5 s .", ["D1605"]),
        ("h(?s) :- temp(?s, ?v), FILTER(?w > 1) .", ["D1605"]),
        ("h(?s) :- temp(?s, ?v), BIND(?v + 1 AS ?w), BIND(?w + 1 AS ?u), FILTER(?u > 1) .", []),
        ("h(?s) :- temp(?s, ?v), BIND(?u + 1 AS ?w), BIND(?w + 1 AS ?u) .", ["D1605", "D1605"]),
        ("h(?s) :- temp(?s, ?v), BIND(1 AS ?v) .", ["D1605"]),
        ("h(?s) AT ?t :- temp(?s, ?v) AT ?t WITHIN 5 s .", []),
        ("h(?s) AT ?t :- temp(?s, ?v) WITHIN 5 s .", ["D1605"]),
        ("h(?t) :- temp(?s, ?v) AT ?t WITHIN 5 s .", ["D1613"]),
        ("h(?s, ?n) :- COUNT(*) AS ?n OVER temp(?s, ?v) WITHIN 5 s PER ?s .", []),
        ("h(?s, ?n) :- COUNT(*) AS ?n OVER temp(?s, ?v) WITHIN 5 s .", ["D1612"]),
        ("h(?n) :- COUNT(*) AS ?n OVER temp(?s, ?v) WITHIN 5 s PER ?w .", ["D1612"]),
        ("h(?s) :- temp(?s, ?v) WITHIN 5 FACTS .\ng(?s) :- h(?s) WITHIN 5 FACTS .", ["D1610"]),
        (
            "h(?s) :- temp(?s, ?v) WITHIN 5 FACTS PER (?s) .\ng(?s) :- h(?s) WITHIN 5 FACTS PER ?s .",
            ["D1610"],
        ),
        ("h(?s) :- temp(?s, ?v) WITHIN 5 FACTS PER (?w) .", ["D1619"]),
        ("h(?s) :- temp(?s, ?v) WITHIN 5 FACTS OF (temp, seen) PER (?s) .", ["D1619"]),
        ("h(?s) :- temp(?s, ?v) ALWAYS WITHIN 5 FACTS PER (?s) .", ["D1619"]),
        ("h(?s, ?n) :- SUM(?v) AS ?n OVER temp(?s, ?v) WITHIN 5 FACTS PER (?s) .", []),
        ("h(?s, ?n) :- SUM(?v) AS ?n OVER temp(?s, ?v) WITHIN 5 FACTS PER (?w, ?s) .", ["D1619"]),
        ("h(?s, ?v) :- COUNT(*) AS ?n OVER temp(?s, ?v) WITHIN 5 FACTS PER ?s, ?v .", []),
        ("STEP 2 s\nh(?s) :- temp(?s, ?v) WITHIN 4 s .", []),
        ("STEP 2 s\nh(?s) :- temp(?s, ?v) WITHIN 5 s .", ["D1608"]),
        ("STEP 0 s\nh(?s) :- temp(?s, ?v) WITHIN 5 s .", ["D1607"]),
        ("STEP 1 s\nSTEP 1 s\nh(?s) :- temp(?s, ?v) WITHIN 5 s .", []),
        ("STEP 1 s\nSTEP 2 s\nh(?s) :- temp(?s, ?v) WITHIN 4 s .", ["D1607"]),
        ("h(?s) :- temp(?s, ?v), NOT g(?s) .\ng(?s) :- temp(?s, ?v), NOT h(?s) .", ["D1615"]),
        ("h(?s) :- temp(?s, ?v) .\nh(?s) :- h(?s) WITHIN 1 s .", []),
        ("h(?n) :- COUNT(*) AS ?n OVER h(?v) WITHIN 1 s .", ["D1615"]),
    ],
)
def test_what_no_lars_file_may_say(lars: str, codes: list[str]) -> None:
    assert resolved(lars)[1] == codes


def test_a_head_is_above_what_it_negates_and_counts_and_the_rules_it_reads() -> None:
    lars = (
        "quiet(?s) :- temp(?s, ?v), NOT loud(?s) .\nloud(?s) :- temp(?s, ?v), FILTER(?v > 5) .\n"
        "both(?s) :- quiet(?s), loud(?s) .\nafter() :- Alarm() WITHIN 1 s .\n"
    )
    program, codes = resolved(lars, ALARM + "AND EACH quiet WITHIN 0 s FROM temp\n")
    assert codes == []
    assert [(layer.names, layer.before) for layer in program.lars.layers] == [
        (("loud",), 0),
        (("quiet", "both"), 0),
        (("after",), 1),
    ]
    assert [rule for layer in program.lars.layers for rule in layer.rules] == [1, 0, 2, 3]


def test_a_rule_that_waits_for_itself_by_way_of_what_holds() -> None:
    lars = "again() :- Alarm() WITHIN 1 s .\n"
    assert resolved(lars, ALARM + "AND NOT again WITHIN 1 s FROM temp\n")[1] == ["D1616"]
    assert resolved(lars, ALARM + "AND NOT again WITHIN 1 s BEFORE temp\n")[1] == []


def test_what_a_rule_reads_and_what_a_stream_is_about() -> None:
    program, _ = resolved("h(?s) :- temp(?s, ?v) WITHIN 5 FACTS, NOT g(?s) .\ng(?s) :- temp(?s, ?v) .")
    first = program.lars.rules[0]
    assert [(name, why) for name, why, _ in lars_reads(first)] == [("temp", ""), ("temp", ""), ("g", "NOT")]
    assert [head_of(name, program.lars) for name in ("h", "ISTREAM h", "temp")] == ["h", "h", None]
    assert [list(literal_variables(literal)) for literal in first.body] == [["s", "v"], ["s"]]
    atom = NamedAtom("h", (Var("a"), '"1"', Var("a"), Var("b")))
    assert atom_variables(atom) == ["a", "b"]
    assert head_attributes(atom) == ("a", "_2", "_3", "b")


# -- HOLD ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "codes", "number"),
    [
        ("HOLD :p FOR 1 s\nHOLD :p FOR 1 s\n", [], 1),
        ("HOLD :p FOR 1 s\nHOLD :p FOR 2 s\n", ["D1503"], 1),
        ("HOLD :p LATEST\nHOLD a :C FOR 1 s\n", [], 2),
        ("HOLD a :C LATEST\n", ["D1501"], 0),
        ("HOLD * LATEST\n", ["D1501"], 0),
        ("HOLD rdf:type FOR 1 s\n", ["D1502"], 0),
        ("HOLD :p FOR 0 s\n", ["D1505"], 1),
        ("HOLD :p FOR 0 s\nHOLD * FOR 1 s\n", [], 2),
    ],
)
def test_one_meaning_for_each_predicate_and_class(lines: str, codes: list[str], number: int) -> None:
    found = Diagnostics()
    loader = Loader(None, found)
    prefixes = "PREFIX : <urn:>\nPREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n"
    loader.program(Source("a.dotr", prefixes + lines))
    assert len(check_holds(loader.loaded.holds, found)) == number
    assert [one.code for one in found.found] == codes


def test_a_library_may_not_hold_everything() -> None:
    for line, codes in (("HOLD * FOR 1 s\n", ["D1504"]), ("HOLD <urn:p> FOR 1 s\n", [])):
        found = Diagnostics()
        loader = Loader({"a.dotr": "IMPORT <b.dotr> AS B\n", "b.dotr": line}.__getitem__, found)
        loader.paths(["a.dotr"])
        check_holds(loader.loaded.holds, found)
        assert [one.code for one in found.found] == codes


# -- printing ------------------------------------------------------------------------------------------


def test_a_lars_file_has_its_prefixes_then_its_step_then_its_rules() -> None:
    text = "h(?s):-temp(?s,?v) SOMETIME within 60 s. # why\nSTEP 1000 ms\n\n\ng() .\nprefix : <urn:>\n"
    assert format_lars(Source("a.lars", text)) == (
        "PREFIX : <urn:>\n\nSTEP 1 s\n\nh(?s) :- temp(?s, ?v) WITHIN 1 min .  # why\n\ng() .\n"
    )
    with pytest.raises(ProgramError):
        format_lars(Source("a.lars", "h( :- ."))


def test_rules_and_literals_are_printed_as_they_can_be_read() -> None:
    text = (
        "h(?s) AT ?t - 2 s :- temp(?s, ?v) AT ?t WITHIN 5 s, NOT temp(?s, 1), "
        "temp(?s, ?w) AT LEAST 2 WITHIN 5 FACTS, FILTER(?v > 1) ."
    )
    program, codes = resolved(text)
    assert codes == []
    [rule] = program.lars.rules
    one = lars_rule_text(rule, {})
    assert one == " ".join(format_lars(Source("a.lars", text)).split())
    assert lars_literal_text(rule.body[2], {}) == "temp(?s, ?w) AT LEAST 2 WITHIN 5 FACTS"


@pytest.mark.parametrize(
    "total",
    [
        "SUM(?v) AS ?n OVER temp(?s, ?v) WITHIN 5 FACTS PER (?s)",
        "SUM(?v) AS ?n OVER temp(?s, ?v) WITHIN 5 FACTS PER (?v, ?s)",
        "SUM(?v) AS ?n OVER temp(?s, ?v) WITHIN 5 FACTS PER (?s) PER ?v",
        "SUM(?v) AS ?n OVER temp(?s, ?v) WITHIN 5 FACTS PER ?s",
        "SUM(?v) AS ?n OVER temp(?s, ?v) WITHIN 5 FACTS PER ?s, ?v",
        "SUM(?v) AS ?n OVER temp(?s, ?v) WITHIN 5 s PER (?s, ?v)",
    ],
)
def test_the_key_of_a_window_and_groups_differ_by_brackets(total: str) -> None:
    assert format_lars(Source("a.lars", f"h(?n) :- {total} .")) == f"h(?n) :- {total} .\n"


def test_a_long_rule_has_a_literal_a_line() -> None:
    total = "SUM(DISTINCT ?u) AS ?n OVER temp(?q, ?u) WITHIN 1 s PER (?q, ?u)"
    again = format_lars(
        Source("a.lars", f"h(?s) :- temp(?s, ?v), NOT temp(?s, 1), {total}, FILTER(?v > 1) .")
    )
    assert again.splitlines()[0] == "h(?s) :-"
    assert again.splitlines()[3] == f"  {total},"
    assert format_lars(Source("a.lars", again)) == again
