"""For users of other engines: each row of each table is run on the page, by the rule or command it names.

The manual's own test runs the page and compares what is printed; here is checked that each row has its share
in that: the rule it names is written on the page with the words of the row, and prints an event there; the
command it names is run there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from dotr.cli.help import pages
from tests.docs.pages import blocks, commands

PAGE = pages()["coming-from"].read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
WORDS = re.compile(r"\b[A-Z]{2,}(?: ?\(\*\))?\b")


def rows(section: str) -> Iterator[tuple[str, str, str]]:
    """(theirs, ours, what shows it) of a section's table."""
    for line in [line for line in SECTIONS[section].splitlines() if line.startswith("|")][2:]:
        theirs, ours, shown = (cell.strip() for cell in line.strip("|").split(" | "))
        yield theirs, ours, shown


def programs(section: str) -> dict[str, str]:
    """Rule, or predicate of a Datalog head → its text, and the lines of its file that are of no rule."""
    found: dict[str, str] = {}
    for block in blocks(SECTIONS[section]):
        if block.language == "dotr":
            prologue, *rules = re.split(r"^RULE ", block.text, flags=re.MULTILINE)
            found |= {rule.split()[0]: f"{prologue}RULE {rule}" for rule in rules}
        elif block.language == "dlog":
            for rule in block.text.splitlines():
                head = re.match(r"\[\?\w+, (:\w+)|(:\w+)\(", rule)
                if head:
                    found[head[1] or head[2]] = rule
    return found


def ran(section: str) -> list[tuple[str, str]]:
    return [
        pair
        for block in blocks(SECTIONS[section])
        if block.language == "console"
        for pair in commands(block.text)
    ]


ROWS = [(section, *row) for section in SECTIONS for row in rows(section)]


def test_there_are_tables_of_six_families() -> None:
    assert [len(list(rows(section))) >= 10 for section in SECTIONS] == [True] * 6
    first = [name.split()[0].strip(",") for name in SECTIONS]
    assert first == ["Esper", "Flink", "Siddhi", "C-SPARQL", "RDFox", "RTEC"]


@pytest.mark.parametrize(("section", "theirs", "ours", "shown"), ROWS)
def test_a_row_is_run(section: str, theirs: str, ours: str, shown: str) -> None:
    texts, done = programs(section), ran(section)
    printed = "\n".join(output for _, output in done)
    names = re.findall("`([^`]+)`", shown)
    assert names
    text = ""
    for name in names:
        if name in texts:
            text += texts[name]
            event = rf"urn:dotr:{name}:" if name[0] != ":" else rf"(?:\s|:){name[1:]} |{name} "
            assert re.search(event, printed), f"{name} prints nothing"
        else:
            runs = [command for command, _ in done if name in command]
            assert runs, f"nothing runs {name}"
            text += "\n".join(runs)
    code = " ".join(re.findall("`([^`]*)`", ours))
    missing = [word for word in WORDS.findall(code) if word not in text]
    assert missing == [], f"{theirs}: {shown} does not use {missing}"


@pytest.mark.parametrize("section", SECTIONS)
def test_a_rule_of_the_page_is_that_of_a_row(section: str) -> None:
    named = {name for _, _, shown in rows(section) for name in re.findall("`([^`]+)`", shown)}
    rules = {name for name in programs(section) if name[0] != ":"}
    assert rules - named == set()
