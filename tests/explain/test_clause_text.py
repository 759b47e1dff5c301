"""How explanations name clauses, windows and distances in time."""

import pytest

from dotr.explain.text import apart_text, counted_text, false_text, outside_text, window_text
from dotr.lang import parse_program

RULE = """
PREFIX : <urn:x:>
QUERY A := {{ SELECT ?x {{ ?x a :A }} }}
QUERY B := {{ SELECT ?x {{ ?x a :B }} }}
RULE R DEFINE {{ dotr_x a :R }} FROM B AND {} A {}
"""


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0 s"),
        (77_000_000, "1 min 17 s"),
        (60_000_000, "1 min"),
        (3_661_000_000, "1 h 1 min"),
        (90_000_000_000, "1 d 1 h"),
        (1_500, "1500 us"),
    ],
)
def test_distances_have_two_units_at_most(micros: int, text: str) -> None:
    assert apart_text(micros) == text


@pytest.mark.parametrize(
    ("word", "window", "text"),
    [
        ("LAST", "WITHIN 5 min FROM B", "within 5 min from B"),
        ("LAST", "WITHIN 2 h BEFORE B", "within 2 h before B"),
    ],
)
def test_windows_as_they_are_written(word: str, window: str, text: str) -> None:
    (conjunct,) = parse_program(RULE.format(word, window)).rules[0].conjuncts
    assert window_text(conjunct) == text
    minute = 60_000_000
    assert outside_text(conjunct, 0, {"B": 390_000_000}) == "outside of the window: 6 min 30 s before B"
    assert outside_text(conjunct, minute, {"B": 0}) == "outside of the window: 1 min after B"
    assert outside_text(conjunct, minute, {"B": minute}) == "outside of the window: with B"
    assert outside_text(conjunct, minute, {}) == "outside of the window"


def test_counts_and_conditions() -> None:
    assert (counted_text(1, "fact"), counted_text(1200, "fact")) == ("1 fact", "1,200 facts")
    assert (false_text([]), false_text(["a", "b"])) == ("", "not true: a && b")
