"""`dotr init`: every template passes its tests, and its README shows what its commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from dotr.cli.help import templates
from tests.cli.conftest import Dotr
from tests.docs.pages import run

PATTERNS = Path(__file__).resolve().parents[2] / "patterns"


@pytest.mark.parametrize("template", templates())
def test_a_new_folder_does_what_its_readme_says(folder: Path, dotr: Dotr, template: str) -> None:
    ran = dotr("init", "mine", "--from", template)
    assert ran.code == 0
    assert "mine/ is ready" in ran.err
    new = folder / "mine"
    assert len((new / "events.jsonl").read_text(encoding="utf-8").splitlines()) == 20
    assert run((new / "README.md").read_text(encoding="utf-8"), new) == 5
    assert dotr("test", "mine").code == 0


def test_a_folder_that_exists_is_left_alone(folder: Path, dotr: Dotr) -> None:
    (folder / "mine").mkdir()
    ran = dotr("init", "mine")
    assert ran.code == 5
    assert "D5001" in ran.err
    assert not list((folder / "mine").iterdir())


def test_libraries_are_listed_and_shown(dotr: Dotr) -> None:
    listed = dotr("patterns").out
    assert listed.count("IMPORT <dotr:patterns/") == len(list(PATTERNS.glob("*.dotr")))
    assert "PARAMETER QUERY Reading(?entity, ?value)" in dotr("patterns", "show", "held").out
    ran = dotr("patterns", "show", "hold")
    assert ran.code == 2
    assert "did you mean `held`?" in ran.err
