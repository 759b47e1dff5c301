"""The page of configuration and limits has what the code has, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dotr.budget import BUDGET, TEXT
from dotr.cli.help import pages
from dotr.cli.main import EXIT_CODES
from dotr.core.instants import TICKS
from dotr.enrich.closing import BACKGROUND_LIMIT
from dotr.enrich.materialiser import INSTANT_LIMIT
from dotr.extract.extractor import ANSWER_LIMIT
from dotr.io.decode.documents import MAX_DOCUMENT, SUFFIXES
from dotr.lang.explain import PAGES
from tests.docs.pages import blocks, commands

CODE = Path(__file__).resolve().parents[2] / "dotr"
PAGE = pages()["configuration"].read_text(encoding="utf-8")
SOURCES = pages()["sources"].read_text(encoding="utf-8")
BINARY = ("Jelly", "Parquet")
BY_SPARK = {
    "MASTER",
    "SPARK_REMOTE",
    "SPARK_ENV_LOADED",
    "SPARK_CONF_DIR",
    "SPARK_HOME",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",
}


def rows(section: str) -> list[list[str]]:
    """The cells of the table of a section."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_exit_codes_are_those_of_the_command() -> None:
    reported = {int(code) for code, _ in rows("Exit codes")}
    assert reported == {0, 1, 130} | {code for _, code in EXIT_CODES}


def test_variables_are_those_that_the_code_reads() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in CODE.rglob("*.py"))
    read = set(re.findall(r'environ(?:ment)?(?:\.get\(|\.setdefault\(|\[)\s*"([A-Z_]+)"', text))
    read |= set(re.findall(r'"([A-Z_]+)" in (?:os\.)?environ', text))
    reported = {
        name for row in rows("Variables of the environment") for name in re.findall("`([A-Z_]+)`", row[0])
    }
    assert reported - {"TERM"} <= read
    assert read - reported - {"TERM"} <= BY_SPARK


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("`--budget`", BUDGET),
        ("`--max-document`", MAX_DOCUMENT),
        ("derived rows of one relation, in a background", BACKGROUND_LIMIT),
        ("derived rows of one relation, at an instant", INSTANT_LIMIT),
        ("answers of a query at an instant", ANSWER_LIMIT),
        ("characters of a string that an expression makes", TEXT),
        ("ticks between two graphs at which something can match", TICKS),
    ],
)
def test_limits_are_those_of_the_code(name: str, value: int) -> None:
    reported = dict(row[:2] for row in rows("Limits that options set") + rows("Limits that are fixed"))
    assert reported[name].split()[0] == f"{value:,}"


def test_codes_on_the_page_are_codes() -> None:
    assert set(re.findall(r"D\d{4}", PAGE)) <= set(PAGES)


def test_every_format_of_a_source_is_on_its_page_with_four_samples() -> None:
    table = SOURCES.partition("|---")[2].partition("\n\n")[0]
    assert [suffix for suffix in SUFFIXES if f"`{suffix}`" not in table] == []
    parts = dict(part.split("\n", 1) for part in SOURCES.split("\n## ")[1:])
    assert len(parts) > 10
    for name, text in parts.items():
        samples = [
            block.note for block in blocks(text) if "title=" in block.note and ".map" not in block.note
        ]
        for suffix in (f".{name.lower()}",) if name in BINARY else ():  # what programs on the page write
            samples += set(re.findall(rf"[\w.-]+\{suffix}\b", " ".join(_commands(text))))
        assert len(samples) >= 4, name


def _commands(text: str) -> list[str]:
    return [line for block in blocks(text) for line, _ in commands(block.text) if block.language == "console"]
