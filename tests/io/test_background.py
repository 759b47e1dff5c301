"""Blank nodes of background files: told apart, the same in every run, and by what is said of them."""

from __future__ import annotations

from pathlib import Path

from dotr.io.rules_and_background import read_background
from dotr.rdf.terms import Triple

_ROOM = "<urn:a> <urn:has> [ <urn:size> 1 ] .\n"


def _read(*files: Path) -> set[Triple]:
    return set(read_background(list(map(str, files))))


def test_two_files_never_join_through_what_they_say_of_a_blank_node(tmp_path: Path) -> None:
    one, two = tmp_path / "one.ttl", tmp_path / "two.ttl"
    one.write_text(_ROOM, encoding="utf-8")
    two.write_text(_ROOM + "<urn:b> <urn:is> <urn:c> .\n", encoding="utf-8")
    assert len(_read(one, two)) == 5


def test_the_same_document_twice_is_one(tmp_path: Path) -> None:
    one, two = tmp_path / "one.ttl", tmp_path / "two.ttl"
    one.write_text(_ROOM, encoding="utf-8")
    two.write_text(_ROOM, encoding="utf-8")
    assert _read(one, two) == _read(one)


def test_a_line_that_changes_leaves_the_labels_of_all_others(tmp_path: Path) -> None:
    file = tmp_path / "one.ttl"
    file.write_text(_ROOM + "<urn:b> <urn:has> [ <urn:size> 2 ] .\n", encoding="utf-8")
    before = _read(file)
    file.write_text("<urn:b> <urn:has> [ <urn:size> 3 ] .\n" + _ROOM, encoding="utf-8")
    assert len(before - _read(file)) == len(_read(file) - before) == 2
