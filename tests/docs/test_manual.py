"""The manual: every command on it prints what it says; every page is a topic; links lead somewhere."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dotr.cli.help import command, pages
from tests.docs.pages import pattern, run

PAGES = pages()


@pytest.mark.parametrize("topic", PAGES)
def test_what_a_page_shows_is_what_is_printed(topic: str, tmp_path: Path) -> None:
    run(PAGES[topic].read_text(encoding="utf-8"), tmp_path)


@pytest.mark.parametrize("topic", PAGES)
def test_links_lead_to_pages(topic: str) -> None:
    text = PAGES[topic].read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert "://" in target or (PAGES[topic].parent / target).exists(), target


def test_a_page_is_printed_as_it_is() -> None:
    shown = CliRunner().invoke(command, ["time"])
    assert shown.exit_code == 0
    assert shown.output == PAGES["time"].read_text(encoding="utf-8")


def test_topics_are_listed_with_their_titles() -> None:
    lines = CliRunner().invoke(command, []).output.splitlines()
    assert [line.split()[0] for line in lines] == list(PAGES)


def test_an_unknown_topic_names_the_nearest() -> None:
    shown = CliRunner().invoke(command, ["tmie"])
    assert shown.exit_code == 2
    assert "did you mean `time`?" in shown.output


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert pattern("a ... b\n...\nc\n").fullmatch("a xy b\n1\n2\nc\n")
    assert not pattern("a ... b\n").fullmatch("a xy c\n")
    assert not pattern("a.b\n").fullmatch("axb\n")
