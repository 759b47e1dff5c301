"""The tutorial: each part of its list is a page of one shape, whose exercises `dotr test` checks.

The manual's own test runs the pages; here is checked that three exercises are asked, that each is answered,
and that the answers' tests look at each answer.
"""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
import yaml

from dotr.cli.help import pages
from tests.docs.pages import Block, blocks, commands

PARTS = [
    *("enrichment", "queries", "windows", "choices", "not", "aggregates", "consuming", "chaining", "every"),
    *("lasting", "lars", "explain", "tests", "deployment", "spark", "sequences"),
]
NAMES = [f"tutorial-{number:02}-{part}" for number, part in enumerate(PARTS, 1)]
TEXTS = {name: pages()[name].read_text(encoding="utf-8") for name in NAMES}


def titled(text: str, title: str) -> list[Block]:
    return [block for block in blocks(text) if f'title="{title}"' in block.note]


def exercises(text: str) -> list[str]:
    part = text.partition("## Exercises\n")[2].partition("## Answers\n")[0]
    return re.findall(r"^\d\. (.*(?:\n   .*)*)", part, flags=re.MULTILINE)


def test_every_part_is_a_page_and_in_the_table_of_contents() -> None:
    assert [name for name in pages() if re.match(r"tutorial-\d", name)] == NAMES
    contents = pages()["tutorial"].read_text(encoding="utf-8")
    assert re.findall(r"\((tutorial-[\w-]+)\.md\)", contents) == NAMES


def test_each_page_leads_to_the_next() -> None:
    for name, following in pairwise(NAMES):
        assert f"]({following}.md)" in TEXTS[name].splitlines()[-1], name


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_an_example_that_runs_and_three_exercises(name: str) -> None:
    example, _, rest = TEXTS[name].partition("## Exercises\n")
    assert any(commands(block.text) for block in blocks(example) if block.language == "console")
    assert len(exercises(TEXTS[name])) == 3
    assert "## Answers\n" in rest


@pytest.mark.parametrize("name", NAMES)
def test_each_exercise_is_answered_and_its_answer_tested(name: str) -> None:
    text = TEXTS[name]
    suite = yaml.safe_load(titled(text, "answers.test.yaml")[0].text)
    run = [
        command
        for block in blocks(text)
        if block.language == "console"
        for command, _ in commands(block.text)
    ]
    assert any(command.startswith("dotr test answers.test.yaml") for command in run)
    expected = {one["rule"] for test in suite["tests"] for one in test.get("expect", ())}
    if name.endswith("-tests"):  # its exercises are tests themselves
        assert len(suite["tests"]) == 3
        return
    answers = titled(text, "answers.dotr")[0].text
    for exercise in exercises(text):
        asked = re.match("`(\\w+)`", exercise)
        if asked:
            assert f"RULE {asked[1]}\n" in answers
            assert asked[1] in expected, f"no test looks at {asked[1]}"
        else:  # what is asked for is a command
            option = re.search("`(--[\\w-]+)`", exercise)
            assert option, exercise
            assert any(option[1] in command for command in run)
