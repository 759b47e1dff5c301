"""Bounded memories, what an instant adds to the background, and which literals are of their datatype."""

import pytest

from dotr.rdf.index import Overlay
from dotr.rdf.terms import XSD, Memo, literal
from dotr.rdf.values import is_well_typed


def test_a_memo_computes_once_is_emptied_when_full_and_keeps_nothing_long() -> None:
    asked: list[str] = []

    def double(key: str) -> str:
        asked.append(key)
        return key * 2

    memo = Memo(double, limit=2, longest=3)
    assert [memo["a"], memo["a"], memo["b"]] == ["aa", "aa", "bb"]
    assert asked == ["a", "b"]
    assert memo["long key"] == "long keylong key"
    assert "long key" not in memo
    assert memo["c"] == "cc"
    assert dict(memo) == {"c": "cc"}, "it was full"


def test_a_memo_of_other_keys_is_bounded_by_its_results() -> None:
    memo: Memo[int, bytes] = Memo(bytes, longest=4)
    assert (memo[3], memo[9]) == (bytes(3), bytes(9))
    assert set(memo) == {3}


def test_an_overlay_indexes_what_is_added_before_and_after_and_forgets_what_it_touched() -> None:
    overlay = Overlay()
    overlay.add("<p>", ("<a>", "<b>"))
    extended: list[tuple[int, ...]] = []
    changes = overlay.changes("<p>", 2)
    changes.extended = lambda _changes, columns: extended.append(columns)
    index = changes.index((0,))
    assert (index, extended) == ({"<a>": ["<b>"]}, [(0,)])
    overlay.add("<p>", ("<a>", "<c>"))
    overlay.add("<q>", ("<x>",))
    overlay.remove("<p>", ["<z>", "<z>"])
    assert index == {"<a>": ["<b>", "<c>"]}
    assert changes.index((0,)) is index, "made once"
    assert [c.relation for c in overlay.touched] == ["<p>", "<q>"]
    assert list(overlay.changes("<q>", 1).added) == ["<x>"]
    added, removed = changes.added, changes.removed
    overlay.forget()
    assert (added, removed, index, overlay.touched) == ({}, {}, {}, [])
    assert overlay.changes("<p>", 2) is changes
    overlay.remove("<p>", ["<z>", "<z>"])
    assert overlay.touched == [changes], "it is idle again and noted again"


def test_an_index_of_several_columns_has_whole_rows() -> None:
    overlay = Overlay()
    overlay.add("*", ("<a>", "<p>", "<b>"))
    assert overlay.changes("*", 3).index((0, 2)) == {("<a>", "<b>"): [("<a>", "<p>", "<b>")]}


@pytest.mark.parametrize(
    ("datatype", "right", "wrong"),
    [
        ("byte", ["127", "-128", "+0"], ["128", "1.0", "", "x"]),
        ("nonNegativeInteger", ["0", "9" * 50], ["-1"]),
        ("unsignedLong", ["0" * 50 + "7", str(2**64 - 1)], [str(2**64), "9" * 50]),
        ("decimal", ["1.", ".5", "-2"], [".", "1e0"]),
        ("double", ["1e3", "-INF", "NaN"], ["inf", "e3"]),
        ("boolean", ["true", "0"], ["True", "yes"]),
        ("hexBinary", ["", "0aF1"], ["0"]),
        ("base64Binary", ["", "YQ==", "YWE="], ["Y", "YQ="]),
        ("token", ["a b"], ["a  b", " a", "a\tb"]),
        ("normalizedString", ["a  b"], ["a\nb"]),
        ("language", ["de-CH"], ["de_CH", ""]),
        ("NCName", ["_a-1"], ["a:b", "1a"]),
        ("dateTime", ["2026-03-01T00:00:00", "2026-03-01T00:00:00Z"], ["2026-02-30T00:00:00", "today"]),
        ("dateTimeStamp", ["2026-03-01T00:00:00Z"], ["2026-03-01T00:00:00"]),
        ("gMonth", ["--05"], ["5"]),
        ("dayTimeDuration", ["P1DT2H"], ["P1M"]),
    ],
)
def test_texts_of_a_datatype(datatype: str, right: list[str], wrong: list[str]) -> None:
    assert [text for text in right if not is_well_typed(literal(text, XSD + datatype))] == []
    assert [text for text in wrong if is_well_typed(literal(text, XSD + datatype))] == []


def test_a_datatype_that_is_not_known_has_no_wrong_texts() -> None:
    assert is_well_typed(literal("anything", "urn:x:mine"))
