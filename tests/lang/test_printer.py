"""Canonical text: printing and parsing again gives the same program, and no comment is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotr.cli.main import run
from dotr.errors import Diagnostics
from dotr.extract.printing import query_text
from dotr.lang import parse_datalog, parse_query
from dotr.lang.grammar.cursor import comments
from dotr.lang.grammar.dotr import DotrParser
from dotr.lang.grammar.lars import LarsParser
from dotr.lang.printer import format_text
from dotr.program import Select
from dotr.program.names import duration_text
from dotr.source import Source
from tests.extract.strategies import selects
from tests.lang.lars_texts import lars_files
from tests.lang.programs import datalog, programs

FEWER = settings(max_examples=max(25, settings().max_examples // 4))
ROOT = Path(__file__).parent.parent.parent
FILES = sorted(
    file
    for folder in ("tests/golden", "examples", "patterns", "rules")
    for file in (ROOT / folder).rglob("*.*")
    if file.suffix in (".dotr", ".dlog", ".lars") and "rejected" not in file.parts
)


def tree(text: str) -> object:
    found = Diagnostics()
    file = DotrParser(Source("x.dotr", text), found, symbolic=True).file()
    assert found.errors == []
    return file.statements


def remarks(text: str) -> list[str]:
    return sorted(text[start:end].rstrip() for start, end in comments(Source("", text)))


@FEWER
@given(programs())
def test_a_program_printed_and_parsed_is_the_same_program(text: str) -> None:
    printed = format_text(Source("x.dotr", text))
    assert tree(printed) == tree(text)
    assert remarks(printed) == remarks(text)
    assert format_text(Source("x.dotr", printed)) == printed


@FEWER
@given(datalog())
def test_datalog_printed_and_parsed_is_the_same_datalog(text: str) -> None:
    printed = format_text(Source("x.dlog", text))
    assert parse_datalog(printed) == parse_datalog(text)
    assert remarks(printed) == remarks(text)
    assert format_text(Source("x.dlog", printed)) == printed


@FEWER
@given(lars_files())
def test_what_holds_printed_and_parsed_is_the_same(text: str) -> None:
    def tree(lars: str) -> object:
        found = Diagnostics()
        file = LarsParser(Source("x.lars", lars), found).file()
        assert found.errors == []
        return file.rules, file.steps

    printed = format_text(Source("x.lars", text))
    assert tree(printed) == tree(text)
    assert remarks(printed) == remarks(text)
    assert format_text(Source("x.lars", printed)) == printed


@FEWER
@given(selects(), st.booleans())
def test_a_query_printed_and_parsed_is_the_same_query(select: Select, prefixes: bool) -> None:
    known = {"ex": "http://example.org/", "xsd": "http://www.w3.org/2001/XMLSchema#"} if prefixes else {}
    parsed = parse_query(query_text(select, known or None), prefixes=known)
    assert parse_query(query_text(parsed, known or None), prefixes=known) == parsed


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_program_of_the_project_has_a_canonical_text(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    printed = format_text(Source(file.name, text))
    assert format_text(Source(file.name, printed)) == printed


def test_comments_stay_with_what_they_speak_of() -> None:
    text = """# the head

# about the prefix
PREFIX : <http://example.org/>   # a short one
# about the query
QUERY A := { SELECT ?x   # inside
  WHERE { ?x a :A } }    # behind

RULE R DEFINE { dotr_x a :R } # the template
FROM A
# about the window
AND NOT B := A WITHIN 300 s BEFORE A
# the end
"""
    assert (
        format_text(Source("x.dotr", text))
        == """# the head

# about the prefix
PREFIX : <http://example.org/>  # a short one

# about the query
# inside
QUERY A := { SELECT ?x WHERE { ?x a :A . } }  # behind

# the template
RULE R
DEFINE { dotr_x a :R }
FROM A
# about the window
AND NOT B := A WITHIN 5 min BEFORE A

# the end
"""
    )


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0 s"),
        (1, "1 us"),
        (1_500, "1500 us"),
        (90_000_000, "90 s"),
        (300_000_000, "5 min"),
        (172_800_000_000, "2 d"),
    ],
)
def test_a_duration_is_printed_in_its_largest_whole_unit(micros: int, text: str) -> None:
    assert duration_text(micros) == text


def test_fmt_rewrites_files_and_check_only_looks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.dotr"
    file.write_text(
        "prefix : <http://example.org/> query A := { select ?x where { ?x a :A } }\n", encoding="utf-8"
    )
    assert run(["fmt", "--check", str(file)]) == 1
    assert capsys.readouterr().out == f"{file}\n"
    assert file.read_text(encoding="utf-8").startswith("prefix")
    assert run(["fmt", str(file)]) == 0
    printed = file.read_text(encoding="utf-8")
    assert printed == "PREFIX : <http://example.org/>\n\nQUERY A := { SELECT ?x WHERE { ?x a :A . } }\n"
    assert run(["fmt", "--check", str(file)]) == 0


def test_fmt_leaves_a_file_with_errors_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.dotr"
    file.write_text("QUERY A := { SELECT }\n", encoding="utf-8")
    assert run(["fmt", str(file)]) == 3
    assert file.read_text(encoding="utf-8") == "QUERY A := { SELECT }\n"
    assert "D1201" in capsys.readouterr().err
