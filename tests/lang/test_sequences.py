"""Sequences as text: what is read is what is printed, whatever the pattern."""

from __future__ import annotations

from hypothesis import given

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
