"""What an editor is told about sequences: elements, rows, and the sequence itself."""

from __future__ import annotations

import pytest

from dotr.cli.lsp import Analysis, analyse, completions, definition, hover, rename
from dotr.errors import UsageError

TEXT = """PREFIX : <urn:x:>
QUERY Q := { SELECT ?k ?v WHERE { ?o :k ?k ; :v ?v } }
QUERY Bell := { SELECT ?k WHERE { ?o :bell ?k } }
QUERY Start := { SELECT ?k WHERE { ?o :start ?k } }
SEQUENCE Dip := Start Down+ Ring
  OF Q, Ring := Bell PER ?k
  AND Start OF Q
  AND Down OF Q ON Down.?v < PREV.?v && LAST(Down, 1).?v > 0
  WITHIN 100 s
  WITH ?low := LAST(Down).?v, ?n := COUNT(Down)
RULE Found DEFINE { dotr_x a :Dip ; :low ?low } FROM Dip WITH ?low := Dip.?low
RULE Begun DEFINE { dotr_x a :Begun } FROM Start
"""


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    found = analyse("a.dotr", TEXT, lambda _path: TEXT)
    assert found.found == []
    return found


def at(word: str, inside: int = 1) -> int:
    return TEXT.index(word) + inside


@pytest.mark.parametrize(
    ("word", "inside", "shown"),
    [
        ("Dip :=", 1, "**Dip**: a sequence (?low, ?n)"),
        ("FROM Dip", 6, "**Dip**: facts of sequence `Dip` (?low, ?n)"),
        ("Down+", 1, "**Down**: an element of sequence `Dip`, rows: facts of query `Q` (?k, ?v)"),
        ("Ring\n", 1, "**Ring**: an element of sequence `Dip`, rows: facts of query `Bell` (?k)"),
        ("Down.?v <", 6, "**Down.?v**: an attribute of **Down**: an element of sequence `Dip`"),
        ("Start Down", 1, "**Start**: an element of sequence `Dip`"),
        ("QUERY Start", 7, "**Start**: a query (?k), used by Begun"),
    ],
)
def test_what_is_hovered_over(analysis: Analysis, word: str, inside: int, shown: str) -> None:
    assert (hover(analysis, at(word, inside)) or "").startswith(shown)


@pytest.mark.parametrize(
    ("word", "inside", "labels"),
    [
        ("Down.?v", 5, ["?k", "?v", "time"]),
        ("PREV.?v", 5, ["?k", "?v", "time"]),
        ("LAST(Down, 1).", 14, ["?k", "?v", "time"]),
        ("LAST(Down).", 11, ["?k", "?v", "time"]),
        ("Dip.?low", 4, ["?low", "?n", "time"]),
    ],
)
def test_attributes_of_rows_are_completed(
    analysis: Analysis, word: str, inside: int, labels: list[str]
) -> None:
    found = [one.label for one in completions(analysis, at(word, inside))]
    if word.startswith("PREV"):  # of rows of both sources
        assert "time" in found
    else:
        assert found == labels


@pytest.mark.parametrize(
    ("word", "inside", "count"),
    [
        ("Dip :=", 1, 3),
        ("FROM Dip", 6, 3),
        ("Down+", 1, 6),
        ("LAST(Down)", 6, 6),
        ("Ring :=", 1, 2),
        ("Start Down", 1, 2),
        ("QUERY Start", 7, 2),
    ],
)
def test_names_of_sequences_and_elements_are_renamed_where_they_stand(
    analysis: Analysis, word: str, inside: int, count: int
) -> None:
    places, new = rename(analysis, at(word, inside), "Other", lambda _path: TEXT)
    assert (len(places), new) == (count, "Other")


def test_a_name_that_is_taken_is_refused(analysis: Analysis) -> None:
    with pytest.raises(UsageError, match="D4148"):
        rename(analysis, at("Dip :="), "Found", lambda _path: TEXT)


def test_definitions(analysis: Analysis) -> None:
    places = [str(definition(analysis, at(word, n))) for word, n in (("FROM Dip", 6), ("COUNT(Down", 7))]
    assert places == ["a.dotr:5:10", "a.dotr:5:23"]
