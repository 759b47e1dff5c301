"""The literal run beside the engines: it accepts what is right, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from dotr.errors import DataError, Diagnostic, EngineError
from dotr.events import Clock, Message, RawMatch
from dotr.io.rules_and_background import RuleTexts
from dotr.lang import parse_program
from dotr.program import Program
from dotr.rdf.terms import XSD_INTEGER, Triple
from dotr.reference.oracle import Oracle

TEXT = """
PREFIX : <urn:x:>
RULE Hot DEFINE { dotr_h a :Hot ; :in ?room } FROM Reading
  WITH ?room := Reading.?room
RULE Twice DEFINE { dotr_t a :Twice } FROM Hot AND LAST Earlier := Hot WITHIN 10 s BEFORE Hot
QUERY Reading := { SELECT ?room { ?room :celsius ?v FILTER(?v > 60) } }
"""
LASTING = """
PREFIX : <urn:x:>
HOLD :open FOR 5 s
RULE Opened DEFINE { dotr_o a :Opened } FROM ISTREAM Open
QUERY Open := { SELECT ?door { ?door :open true } }
"""
CLOCK = Clock(True, 1_000_000)
SECOND = 1_000_000


def reading(room: str, celsius: int) -> Triple:
    return (f"<urn:x:{room}>", "<urn:x:celsius>", f'"{celsius}"^^<{XSD_INTEGER}>')


def opens(door: str) -> Triple:
    return (f"<urn:x:{door}>", "<urn:x:open>", '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>')


def oracle_of(program: Program, lasting: bool = False) -> Oracle:
    oracle = Oracle(program, [])
    oracle.begin(CLOCK)
    if lasting:
        oracle.last_from_now()
    return oracle


def as_found(matches: list[Any]) -> list[RawMatch]:
    return [((rule,), *rest) for rule, *rest in matches]


def test_it_accepts_what_the_contract_says_and_remembers_it() -> None:
    program = parse_program(TEXT)
    oracle, beside = oracle_of(program), oracle_of(program)
    for second, celsius, rules in ((1, 70, [0]), (2, 20, []), (3, 80, [0, 1])):
        came = [reading("a", celsius)]
        found = beside.matches(second * SECOND, came, True)
        assert [match.rule for match in found] == rules
        oracle.check(second * SECOND, came, True, as_found(found))


@pytest.mark.parametrize("what", ["missing", "invented", "late"])
def test_an_event_that_is_missing_invented_or_at_another_time_is_a_difference(what: str) -> None:
    program = parse_program(TEXT)
    (found,) = as_found(list(oracle_of(program).matches(SECOND, [reading("a", 70)], True)))
    wrong = {"missing": [], "invented": [found, found], "late": [(found[0], found[1] + 1, *found[2:])]}
    with pytest.raises(EngineError) as raised:
        oracle_of(program).check(SECOND, [reading("a", 70)], True, wrong[what])
    (difference,) = raised.value.diagnostics
    assert difference.code == "D4090"
    assert "rule `Hot` at 1" in difference.message


def test_what_takes_too_much_work_is_left_out_as_the_engine_says() -> None:
    program = parse_program(TEXT)
    (found,) = oracle_of(program).matches(SECOND, [reading("a", 70)], True)
    oracle = oracle_of(program)
    oracle.check(SECOND, [reading("a", 70)], True, [], [(0, found.facts[0])])


def test_state_leaves_as_a_value_and_comes_back() -> None:
    program = parse_program(TEXT)
    first, second = oracle_of(program), oracle_of(program)
    first.matches(SECOND, [reading("a", 70)], True)
    assert Oracle(program, []).snapshot() is None, "nothing has begun"
    second.restore(first.snapshot())
    came = 3 * SECOND, [reading("a", 80)], True
    assert [match.rule for match in second.matches(*came)] == [0, 1]


def test_what_lasts_ends_by_itself_and_events_there_must_not_be_missed() -> None:
    program = parse_program(LASTING)
    oracle = oracle_of(program, lasting=True)
    with pytest.raises(EngineError, match="engine and literal reading differ"):
        oracle.check(SECOND, [Message(graph=[opens("a")])], True, [])


def test_an_error_that_only_the_engine_has_is_a_difference_unless_it_is_about_work() -> None:
    def error(code: str) -> DataError:
        return DataError(Diagnostic(code, "refused"))

    oracle = oracle_of(parse_program(LASTING), lasting=True)
    messages = [Message(insert=[opens("a")])]
    oracle.refuse(SECOND, messages, error("D4001"))
    with pytest.raises(EngineError, match="refused at 1"):
        oracle.refuse(SECOND, messages, error("D2601"))


def test_a_refusal_that_the_contract_asks_for_is_accepted_and_changes_nothing() -> None:
    oracle = oracle_of(parse_program("ENTAILMENT rdfs\n" + LASTING, read=RuleTexts()), lasting=True)
    before = oracle.snapshot()
    schema = ("<urn:x:A>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<urn:x:B>")
    oracle.refuse(SECOND, [Message(graph=[schema])], DataError(Diagnostic("D2601", "a schema in the stream")))
    assert oracle.snapshot()["rules"] == before["rules"]


def test_another_program_holds_from_its_time_on_and_like_rules_keep_what_they_saw() -> None:
    program, other = parse_program(LASTING), parse_program(LASTING.replace("Opened", "Unlocked"))
    oracle = oracle_of(program, lasting=True)
    oracle.replace(3 * SECOND, other, [])
    assert oracle.program is program
    oracle.overlook(4 * SECOND)
    assert oracle.program is other
    saved = oracle.snapshot()
    assert saved["lasting"] is not None
    oracle.restore(saved)
