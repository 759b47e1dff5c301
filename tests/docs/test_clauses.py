"""Every clause has golden cases, every golden case a clause, and the page says so."""

from __future__ import annotations

import re

import pytest

from dotr.lang.explain import PAGES
from tests.docs.clauses import CLAUSES, GOLDEN, PAGE, ROOT, cases, named, rejected, text

LANGUAGE = (ROOT / "dotr" / "lang" / "language.md").read_text(encoding="utf-8")
EVERY = [(clause, patterns) for clauses in CLAUSES.values() for clause, patterns in clauses.items()]


def test_the_page_is_what_the_map_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == text()


@pytest.mark.parametrize(("clause", "patterns"), EVERY)
def test_a_clause_has_cases_and_each_name_of_it_is_one(clause: str, patterns: str) -> None:
    assert all(named(pattern) for pattern in patterns.split()), patterns
    words = [w for code in re.findall("`([^`]*)`", clause) for w in re.findall(r"\b[A-Z]{3,}\b", code)]
    used = "".join(
        path.read_text(encoding="utf-8")
        for case in named(patterns)
        for path in (
            *(GOLDEN / case).iterdir(),
            *(ROOT.glob("patterns/*.dotr") if "patterns/" in case else ()),
        )
        if path.suffix in (".dotr", ".dlog", ".lars")
    )
    assert [word for word in words if word not in used.upper()] == [], "no case of the clause has the word"


def test_a_golden_case_has_a_clause() -> None:
    known = {case for _, patterns in EVERY for case in named(patterns)}
    assert sorted(cases().keys() - known) == []


def test_a_row_of_the_reference_has_cases() -> None:
    """The table of clauses in language.md, row by row."""
    table = LANGUAGE[LANGUAGE.index("| clause | meaning |") :].partition("\n\n")[0]
    rows = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()[2:]]
    assert len(rows) > 10
    assert [row for row in rows if row not in CLAUSES["A rule"]] == []


def test_a_rejected_program_has_a_code_with_a_page() -> None:
    found = rejected()
    assert {name for names in found.values() for name in names} == {
        path.name for path in (GOLDEN / "rejected").iterdir() if path.is_dir()
    }
    assert [code for code in found if code not in PAGES] == []


def test_a_row_of_what_holds_has_cases() -> None:
    """The table of literals of .lars files, row by row: the words of each are in clauses of LARS."""
    table = LANGUAGE[LANGUAGE.index("| literal | true at a point |") :].partition("\n\n")[0]
    words = set(re.findall(r"\b[A-Z]{2,}\b", table))
    known = " ".join(CLAUSES["LARS"])
    assert [word for word in sorted(words) if word not in known] == []
