"""Every code has a page with examples that are what they say, and the language's codes have golden cases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dotr
from dotr.errors import Diagnostic, Severity
from dotr.io.rules_and_background import SCHEME, read_rules_text
from dotr.lang import check_program
from dotr.lang.explain import GROUPS, PAGES, Page, explain, pages_of, similar
from tests.lang.rejected import cases, findings

PACKAGE = Path(dotr.__file__).parent
FILES = {
    "rooms.dlog": "PREFIX : <http://example.org/>\n:in(?x, ?y) :- :at(?x, ?y) .\n",
    "lost.dotr": "PREFIX : <http://example.org/>\nPARAMETER QUERY Beat(?room)\nPARAMETER ?patience\n"
    "RULE Lost DEFINE { dotr_x a :Lost } FROM EVERY 1 min AS Tick AND NOT Beat WITHIN ?patience FROM Tick\n",
    "hold.dotr": "HOLD * FOR 10 s\n",
    "cooling.lars": "alarm() :- temp(?v), FILTER(?v > 90) .\nquiet() :- NOT temp(?v) WITHIN 1 min .\n",
    "circle.lars": "again() :- Alarm() WITHIN 1 min .\n",
    "lars.dotr": "PREFIX : <http://example.org/>\nLARS <page.lars>\n"
    "QUERY temp := { SELECT ?v WHERE { ?o :value ?v } }\n"
    "QUERY seen := { SELECT ?room ?o WHERE { ?o :in ?room } }\n",
    "circle.dotr": "IMPORT <circle.dotr> AS Round\n",
}
RUNNABLE = [page for page in PAGES.values() if page.language]


def codes() -> set[str]:
    """Every code that occurs in the source."""
    return {
        code
        for file in PACKAGE.rglob("*.py")
        for code in re.findall(r'"(D\d{4})"', file.read_text(encoding="utf-8"))
    }


def test_a_code_has_one_page_and_nothing_in_the_files_is_none() -> None:
    """A second one would silently take the place of the first, and what is written otherwise would go."""
    files = sorted((PACKAGE / "lang" / "pages").iterdir())
    assert [file.name for file in files] == sorted(f"{group}.txt" for group in GROUPS)
    pages = [page.code for group in GROUPS for page in pages_of(group)]
    assert len(pages) == len(set(pages)) == len(PAGES)
    assert len(pages) == sum(len(re.findall(r"^D\d{4}", file.read_text(), re.MULTILINE)) for file in files)


def findings_of(page: Page, text: str) -> list[Diagnostic]:
    name = f"page.{page.language}"
    path = "lars.dotr" if page.language == "lars" else name

    def read(path: str) -> str:
        if path.startswith(SCHEME):
            return read_rules_text(path)
        try:
            return {**FILES, name: text}[path]
        except KeyError:
            raise FileNotFoundError(2, "no such file", path) from None

    return check_program([path], read)[1]


def test_every_code_has_a_page() -> None:
    assert sorted(codes() - PAGES.keys()) == []


def test_every_page_is_of_a_code_that_occurs() -> None:
    assert sorted(PAGES.keys() - codes()) == []


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.code)
def test_the_wrong_example_of_a_page_gets_its_code_and_no_other(page: Page) -> None:
    found = {diagnostic.code for diagnostic in findings_of(page, page.wrong)}
    assert page.code in found
    assert found <= {page.code, "D1001", "D1117"}


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.code)
def test_the_right_example_of_a_page_is_right(page: Page) -> None:
    assert [d.render() for d in findings_of(page, page.right) if d.severity is not Severity.INFO] == []


def test_every_code_that_check_can_find_has_a_golden_case() -> None:
    seen = {code for case in cases() for code, _ in findings(case)}
    assert sorted({page.code for page in RUNNABLE} - seen) == []


def test_a_page_is_found_in_any_case_and_shows_both_examples() -> None:
    page = explain("d1310")
    assert page is not None
    assert "wrong:" in page
    assert "right:" in page
    assert explain("D9999") is None
    assert "D1310" in similar("D1301x") or similar("D1301x")
