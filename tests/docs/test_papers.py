"""For readers of the papers: each figure and table has a row whose command, file or page is there.

What is shown of a command is what it prints today, but for its numbers.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dotr.cli.help import pages
from tests.bench.scenarios import SCENARIOS, Size

ROOT = Path(__file__).resolve().parents[2]
PAGE = pages()["papers"].read_text(encoding="utf-8")
SECTIONS = {part.split(" ", 1)[0].strip(","): part for part in PAGE.split("\n## ")[1:]}
FIGURES = {
    "DOTR": ["Table 1", *(f"Fig. {number}" for number in range(1, 8))],
    "IMaRS": [*(f"Table {number}" for number in range(1, 7)), *(f"Fig. {number}" for number in range(1, 7))],
    "Volz": ["Table 1", "Fig. 1", "Fig. 2", "Fig. 3", "Appendix A"],
    "Laser": [f"Fig. {number}" for number in range(1, 6)],
    "Gergatsoulis": ["Fig. 1", "Fig. 2"],
}
SMALL = {"table1": 60, "fig6": 60, "imars": 100, "volz": 200, "delta": 200, "lars": 1}


def rows(paper: str) -> list[tuple[str, str]]:
    table = (
        SECTIONS[paper].partition("| figure or table | reproduced by |\n|---|---|\n")[2].partition("\n\n")[0]
    )
    return [tuple(line.strip("| ").split(" | ")) for line in table.splitlines()]  # type: ignore[misc]  # two cells


def numbered(cell: str) -> list[str]:
    """`Fig. 1, 2 and Table 3` → each by itself."""
    return [
        f"{kind} {number}"
        for kind, numbers in re.findall(r"(Fig\.|Table) (\d(?:, \d)*)", cell)
        for number in numbers.split(", ")
    ] + re.findall("Appendix A", cell)


@pytest.mark.parametrize("paper", FIGURES)
def test_every_figure_and_table_has_a_row(paper: str) -> None:
    listed = {name for cell, _ in rows(paper) for name in numbered(cell)}
    assert listed == set(FIGURES[paper])


@pytest.mark.parametrize("paper", FIGURES)
def test_a_row_has_a_command_a_file_or_a_reason(paper: str) -> None:
    for what, how in rows(paper):
        commands = re.findall(r"`python -m tests\.bench (\w+)", how)
        assert set(commands) <= SCENARIOS.keys(), what
        files = [name for name in re.findall(r"`([\w/.-]+/[\w/.-]+)`", how) if (ROOT / name).exists()]
        pages_named = re.findall(r"\]\(([\w-]+\.md)\)", how)
        assert commands or files or pages_named or re.search("not reproduced|not measured", how), what


def test_files_that_the_page_names_are_there() -> None:
    named = re.findall(r"`((?:dotr|tests|rules|examples)/[\w/.-]+)`", PAGE)
    assert len(named) > 15
    assert [name for name in named if not (ROOT / name).exists()] == []


def shown(scenario: str) -> list[str]:
    """The lines of the table that the page shows for a scenario."""
    found = re.search(rf"`python -m tests\.bench {scenario} --quick`.*?```text\n(.*?)```", PAGE, re.DOTALL)
    assert found, scenario
    return found[1].split("\n\n")[0].splitlines()


@pytest.mark.parametrize("scenario", SMALL)
def test_a_table_has_the_columns_that_the_command_prints(scenario: str) -> None:
    result = SCENARIOS[scenario](Size(quick=True, graphs=SMALL[scenario], repeats=1))
    columns = list(dict.fromkeys(name for row in result.rows for name in row))
    assert re.split(r"\s{2,}", shown(scenario)[0]) == columns
    assert len(shown(scenario)) == len(result.rows) + 1


@pytest.mark.parametrize("scenario", ["fig4", "fig5", "fig7"])
def test_a_table_that_takes_longer_has_columns_of_the_scenarios(scenario: str) -> None:
    source = (ROOT / "tests" / "bench" / "scenarios.py").read_text(encoding="utf-8")
    columns = re.split(r"\s{2,}", shown(scenario)[0])
    assert [name for name in columns if f'"{name}"' not in source] == []
