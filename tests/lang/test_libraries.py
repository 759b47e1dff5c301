"""PARAMETER and IMPORT: libraries are brought in under a name, with queries and values put in as terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import dotr
from dotr.errors import ProgramError, Severity
from dotr.lang import check_program, load_program
from dotr.program import Absent, Choose, Const, Every, Program, Within

ROOT = Path(__file__).parent.parent.parent
SHIPPED = sorted((ROOT / "patterns").glob("*.dotr"))
PREFIX = "PREFIX : <http://example.org/>\n"
LIMIT = """PREFIX lib: <http://example.org/library#>
PARAMETER QUERY Reading(?s)
PARAMETER ?limit := 60
PARAMETER ?k := 2
PARAMETER ?span := 5 min
QUERY Own := { SELECT ?x WHERE { ?x lib:value ?v FILTER(?v > ?limit) } }
RULE Alarm
DEFINE { dotr_a a lib:Alarm ; lib:of ?s }
FROM Reading
AND LAST ?k Own WITHIN ?span BEFORE Reading ON Own.?x = Reading.?s && Reading.time > ?limit
WITH ?s := Reading.?s, ?above := ?limit
"""
USER = PREFIX + "QUERY Beat := { SELECT ?s ?t WHERE { ?o :by ?s ; :at ?t } }\n"


def reader(**files: str) -> Callable[[str], str]:
    """A file system of a few texts: `main_dotr` is main.dotr, `lib__x_dotr` is lib/x.dotr."""
    texts = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}

    def read(path: str) -> str:
        if path not in texts:
            raise FileNotFoundError(2, "no such file", path)
        return texts[path]

    return read


def load(**files: str) -> Program:
    return load_program(["main.dotr"], reader(**files))


def test_an_import_brings_rules_and_queries_in_under_its_name() -> None:
    program = load(main_dotr=USER + "IMPORT <limit.dotr> AS Hot WITH Reading := Beat", limit_dotr=LIMIT)
    assert [rule.name for rule in program.rules] == ["Hot_Alarm"]
    assert list(program.queries) == ["Beat", "Hot_Own"]
    rule = program.rules[0]
    assert not isinstance(rule.trigger, Every)
    assert (rule.trigger.name, rule.trigger.stream, rule.trigger.variables) == ("Reading", "Beat", ("s", "t"))


def test_values_are_put_in_as_terms_and_defaults_hold_where_none_is_given() -> None:
    text = USER + "IMPORT <limit.dotr> AS Hot WITH Reading := Beat, ?limit := 70, ?k := 3, ?span := 1 h"
    program = load(main_dotr=text, limit_dotr=LIMIT)
    last = program.rules[0].conjuncts[0]
    assert isinstance(last, Choose)
    assert last.k == 3
    assert last.window == Within(3_600_000_000, "Reading", before=True)
    seventy = Const('"70"^^<http://www.w3.org/2001/XMLSchema#integer>')
    assert program.rules[0].bindings[1].expression == seventy
    default = load(main_dotr=USER + "IMPORT <limit.dotr> AS H WITH Reading := Beat", limit_dotr=LIMIT).rules[
        0
    ]
    assert isinstance(default.conjuncts[0], Choose)
    assert default.conjuncts[0].k == 2


def test_a_value_is_never_text_of_a_query() -> None:
    evil = '"} } RULE Evil DEFINE { dotr_x a <urn:evil> } FROM Beat #"'
    program = load(
        main_dotr=USER + f"IMPORT <limit.dotr> AS H WITH Reading := Beat, ?limit := {evil}", limit_dotr=LIMIT
    )
    assert [rule.name for rule in program.rules] == ["H_Alarm"]


def test_one_library_can_be_imported_twice_and_a_rule_can_be_its_query() -> None:
    text = (
        USER
        + """IMPORT <limit.dotr> AS A WITH Reading := Beat
        IMPORT <limit.dotr> AS B WITH Reading := A_Alarm, ?limit := 7
        RULE Both DEFINE { dotr_x a :Both } FROM B_Alarm AND LAST A_Alarm WITHIN 1 h FROM B_Alarm"""
    )
    program = load(main_dotr=text, limit_dotr=LIMIT)
    assert [rule.name for rule in program.rules] == ["A_Alarm", "B_Alarm", "Both"]
    assert program.rules[1].positions[0].chained
    assert list(program.dependencies) == [0, 1, 2]


def test_paths_of_a_library_are_relative_to_it_and_its_prefixes_its_own() -> None:
    inner = (
        "PREFIX : <http://example.org/inner#>\nRULES <inner.dlog>\nQUERY Q := { SELECT ?x WHERE { ?x a :C } }"
    )
    program = load(
        main_dotr=PREFIX + "IMPORT <lib/outer.dotr> AS Out\nRULE R DEFINE { dotr_x a :R } FROM Out_In_Q",
        lib__outer_dotr="IMPORT <inner.dotr> AS In\nBACKGROUND <data/b.ttl>",
        lib__inner_dotr=inner,
        lib__inner_dlog="<http://example.org/p>(<urn:a>, <urn:b>) .",
    )
    assert list(program.queries) == ["Out_In_Q"]
    assert program.background == ("lib/data/b.ttl",)
    assert len(program.datalog) == 1
    assert program.prefixes == {"": "http://example.org/"}


def test_a_library_does_not_see_the_names_of_who_imports_it() -> None:
    with pytest.raises(ProgramError, match="D1106"):
        load(main_dotr=USER + "IMPORT <l.dotr> AS L", l_dotr="RULE R DEFINE { dotr_x a <urn:R> } FROM Beat")


def test_an_import_without_a_name_brings_names_in_as_they_are() -> None:
    program = load(main_dotr="IMPORT <q.dotr>\nRULE R DEFINE { dotr_x a <urn:R> } FROM Beat", q_dotr=USER)
    assert list(program.queries) == ["Beat"]


def test_a_duration_is_no_term_and_a_term_no_duration() -> None:
    wrong = "PARAMETER ?p := 5 min\nQUERY Q := { SELECT ?x WHERE { ?x <urn:v> ?p } }"
    with pytest.raises(ProgramError, match="D1113"):
        load(main_dotr=wrong)
    with pytest.raises(ProgramError, match="D1113"):
        load(main_dotr="PARAMETER ?p := 5\nRULE R DEFINE { dotr_x a <urn:R> } FROM EVERY ?p AS Tick")


def test_a_library_by_itself_can_be_checked_but_not_run() -> None:
    program, found = check_program(["limit.dotr"], reader(limit_dotr=LIMIT))
    assert program is None
    assert [d for d in found if d.severity is Severity.ERROR] == []
    with pytest.raises(ProgramError, match="D1111"):
        load_program(["limit.dotr"], reader(limit_dotr=LIMIT))


def test_a_file_is_read_once_however_it_is_named() -> None:
    read: Counter[str] = Counter()
    files = reader(main_dotr="RULES <r.dlog>, <./r.dlog>", r_dlog="<urn:p>(<urn:a>, <urn:b>) .")

    def counted(path: str) -> str:
        read[path] += 1
        return files(path)

    assert len(load_program(["main.dotr", "r.dlog"], counted).datalog) == 1
    assert read["r.dlog"] == 1


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_library_is_right_and_says_what_it_needs(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    head = text.split("\nPREFIX")[0]
    _, found = check_program([str(file)], lambda path: Path(path).read_text(encoding="utf-8"))
    assert [d.render() for d in found] == []
    assert f"IMPORT <dotr:patterns/{file.name}> AS " in head
    for word in ("needs", "values", "gives"):
        assert f"#{' ':<1}{word}" in head


def test_at_least_six_libraries_are_shipped() -> None:
    assert len(SHIPPED) >= 6


def test_the_building_uses_every_library() -> None:
    folder = ROOT / "examples" / "building"
    engine = dotr.Engine(folder / "libraries.dotr")
    reported = Counter(event.rule for event in engine.feed(str(folder / "morning.ttl")))
    assert reported == {
        "Lost_Alarm": 1, "Lost_Still": 1, "Stuffy_Held": 1, "Worse_Trend": 2,
        "Fire_AThenB": 2, "Fire_BThenA": 1, "Calm_Once": 2, "Stairs_Matched": 2,
    }  # fmt: skip


def test_absent_positions_of_a_library_range_over_the_given_query() -> None:
    program = load(
        main_dotr=USER + "IMPORT <n.dotr> AS N WITH Beat := Beat",
        n_dotr="PARAMETER QUERY Beat(?s)\nRULE R DEFINE { dotr_x a <urn:R> } FROM EVERY 1 min AS T\n"
        "AND NOT Beat WITHIN 1 min FROM T",
    )
    absent = program.rules[0].conjuncts[0]
    assert isinstance(absent, Absent)
    assert absent.position.stream == "Beat"
