"""Sequences as text: what is read is what is printed, whatever the pattern."""

from __future__ import annotations

import pytest
from hypothesis import given

from dotr.errors import ProgramError
from dotr.lang import parse_program
from dotr.lang.printer import format_text
from dotr.source import Source
from tests.sequences import programs


@given(programs())
def test_a_program_is_printed_as_it_was_read(text: str) -> None:
    printed = format_text(Source("rules.dotr", text))
    assert format_text(Source("rules.dotr", printed)) == printed
    assert parse_program(printed) == parse_program(text)


def test_layout_and_comments_stay_apart() -> None:
    """A query in OF takes lines of its own; comments go with their clauses."""
    long = " ; ".join(f":p{n} ?v{n}" for n in range(12))
    text = (
        "PREFIX : <http://example.org/>\n\nSEQUENCE Seq := A+? (B | A B){2,} SKIPPING  # the pattern\n"
        f"OF A := {{ SELECT ?v1 WHERE {{ ?o {long} . }} }},\n"
        "   B := { SELECT ?v1 WHERE { ?o :b ?v1 . } }\n"
        "# by value\nPER ?v1\n# not the first\nAND A ON A.?v1 > PREV(2).?v1\n"
        "WITHIN 5 s GAP 2 s SKIP TO LAST A\n"
    )
    printed = format_text(Source("rules.dotr", text))
    assert printed.startswith(
        "PREFIX : <http://example.org/>\n\nSEQUENCE Seq := A+? (B | A B){2,} SKIPPING  # the pattern\n"
    )
    assert "\n},\n   B := { SELECT ?v1 WHERE { ?o :b ?v1 . } }\n  PER ?v1\n" in printed
    assert format_text(Source("rules.dotr", printed)) == printed


def wrong(pattern: str, of: str = "Q") -> list[tuple[str, str, str]]:
    """(code, message, hint) of what is wrong with a program of such a sequence."""
    text = (
        "PREFIX : <http://example.org/>\nQUERY Q := { SELECT ?v WHERE { ?o :v ?v } }\n"
        "SEQUENCE S := PATTERN OF SOURCES WITHIN 1 h WITH ?v := 1\n"
        "RULE R DEFINE { dotr_r a :R ; :v ?v } FROM S WITH ?v := S.?v\n"
    ).replace("PATTERN", pattern)
    text = text.replace("SOURCES", of)
    with pytest.raises(ProgramError) as raised:
        parse_program(text)
    return [(one.code, one.message, one.hint) for one in raised.value.diagnostics]


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [("A NOT X B", "name an element for what may come"), ("every A B", "leave it out: matches follow")],
)
def test_words_of_patterns_elsewhere_say_what_to_write(pattern: str, hint: str) -> None:
    [(code, _, said)] = wrong(pattern)
    assert code == "D1017"
    assert said.startswith(hint)


def test_a_sequence_of_its_own_events_says_that_a_rule_must_be_between() -> None:
    [(code, message, hint)] = wrong("A+", "A := R")
    assert (code, message) == ("D1307", "sequence `S` waits for itself within one instant")
    assert "let a rule between read one" in hint
