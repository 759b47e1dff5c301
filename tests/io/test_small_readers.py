"""Blocks of lines, names of tables, values that could be times, terms of users, outputs that are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dotr.errors import DataError, RefusedError, UsageError
from dotr.io.decode.documents import line_blocks
from dotr.io.graphs import is_table, table_format
from dotr.io.show import read_term, read_triple
from dotr.io.sinks import refuse_overlap
from dotr.io.time_survey import kind_of, likely_time, likely_times, reads_as
from dotr.rdf.terms import RDF_TYPE, literal


def blocks(content: bytes, size: int, head: bytes = b"", limit: int = 100) -> list[bytes]:
    rest = [content[at : at + size] for at in range(0, len(content), size)][::-1]
    return list(line_blocks(lambda _: rest.pop() if rest else b"", size, head, limit, lambda: DataError([])))


@pytest.mark.parametrize("size", range(1, 12))
def test_blocks_end_with_lines_and_lose_nothing(size: int) -> None:
    content = b"one\n\ntwo and\nthree"
    found = blocks(content, size)
    assert b"".join(found) == content
    assert all(block.endswith(b"\n") for block in found[:-1])
    assert blocks(content + b"\n", size)[-1].endswith(b"\n")


def test_the_head_comes_first_and_nothing_comes_of_nothing() -> None:
    assert blocks(b"b\n", 8, head=b"a\n") == [b"a\n", b"b\n"]
    assert blocks(b"c\n", 8, head=b"ab") == [b"abc\n"]
    assert blocks(b"", 8) == []


def test_a_line_beyond_the_limit_is_refused() -> None:
    assert b"".join(blocks(b"x" * 10 + b"\n", 3, limit=10)) == b"x" * 10 + b"\n"
    with pytest.raises(DataError):
        blocks(b"x" * 12 + b"\n", 3, limit=10)


def test_names_of_tables() -> None:
    assert [table_format(name) for name in ("a.TSV", "a.csv.gz", "a.parquet", "-")] == [
        "tsv",
        "csv",
        "parquet",
        "csv",
    ]
    assert [is_table(name) for name in ("a.csv.zst", "a.jsonl", "a.ttl", "a.arrow")] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("2026-03-01T10:00:00Z", ("dateTime", "")),
        ("2026-03-01 10:00+01:00", ("dateTime", "")),
        ("2026-03-01T10:00:00.5", ("local", "")),
        ("2026-03-01", ("day", "")),
        ("1772352000", ("epoch", "s")),
        ("1772352000000", ("epoch", "ms")),
        ("1772352000000000", ("epoch", "us")),
        ("123456789", None),  # 1973
        ("12", None),
        ("noon", None),
    ],
)
def test_kinds_of_values_that_could_be_times(text: str, kind: tuple[str, str] | None) -> None:
    assert kind_of(text) == kind


def test_a_property_is_a_time_if_all_its_values_could_be_of_one_kind() -> None:
    assert reads_as("1772352000", "s") == "2026-03-01T08:00:00Z"
    found = likely_time("at", ["1772352000", "1772352001", "1772352002"])
    assert found is not None
    assert (found.kind, found.unit, found.values, len(found.examples)) == ("epoch", "s", 3, 2)
    assert likely_time("at", ["1772352000", "2026-03-01"]) is None
    assert likely_time("at", []) is None


def test_usual_properties_come_first_with_the_classes_of_their_subjects() -> None:
    day = literal("2026-03-01")
    rows = [
        ("<a>", "<urn:a:day>", day),
        ("<a>", "<http://www.w3.org/ns/sosa/resultTime>", day),
        ("<a>", RDF_TYPE, "<urn:Reading>"),
        ("<a>", "<urn:text>", literal("x")),
    ]
    found = likely_times(rows)
    assert [one.name for one in found] == ["http://www.w3.org/ns/sosa/resultTime", "urn:a:day"]
    assert found[0].classes == ("urn:Reading",)


def test_terms_are_written_as_in_turtle_with_the_prefixes_of_the_rules() -> None:
    prefixes = {"": "urn:x:"}
    assert read_triple(":a :p 5", prefixes, "--triple")[:2] == ("<urn:x:a>", "<urn:x:p>")
    assert read_term('"x"', prefixes, "--where") == '"x"'


@pytest.mark.parametrize(
    ("text", "hint"),
    [("room", '`"room"`, a name with a prefix of the rules, `:room`'), ("no:room", "in Turtle")],
)
def test_what_is_not_a_term_is_refused_with_how_to_write_it(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_term(text, {"": "urn:x:"}, "--where")
    (found,) = raised.value.diagnostics
    assert (found.code, hint in found.hint) == ("D4174", True)


@pytest.mark.parametrize("text", ["", ":a :p", ":a :p :b . :c :d :e", ":a :p ["])
def test_what_is_not_one_triple_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_triple(text, {"": "urn:x:"}, "--triple")


def test_an_output_that_is_read_by_the_same_run_is_refused(tmp_path: Path) -> None:
    log, folder = tmp_path / "log.ttl", tmp_path / "in"
    log.write_text("")
    folder.mkdir()
    (folder / "a.ttl").write_text("")
    os.symlink(log, tmp_path / "link.ttl")
    refuse_overlap([str(tmp_path / "out.ttl")], [str(log), str(folder), str(tmp_path / "gone")])
    for output, path in (
        (log, log),
        (log, tmp_path / "link.ttl"),
        (folder, folder / "a.ttl"),
        (folder / "a.ttl", folder),
        (log, tmp_path / "*.ttl"),
    ):
        with pytest.raises(RefusedError, match="also read by this run"):
            refuse_overlap([str(output)], [str(path)])


def test_an_output_that_would_appear_among_watched_inputs_is_refused(
    tmp_path: Path,
) -> None:
    new = str(tmp_path / "new.ttl")
    refuse_overlap([new], [str(tmp_path)])
    for path in (tmp_path, tmp_path / "*.ttl", tmp_path / "**" / "*.ttl"):
        with pytest.raises(RefusedError):
            refuse_overlap([new], [str(path)], appearing=True)
    refuse_overlap([new], [str(tmp_path / "*.trig")], appearing=True)
    refuse_overlap([str(tmp_path / "events.xyz")], [str(tmp_path)], appearing=True)


def test_standard_output_may_be_a_file_that_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.ttl"
    with log.open("w") as file, pytest.raises(RefusedError, match="standard output"):
        refuse_overlap([], [str(log)], stdout=file.fileno())
