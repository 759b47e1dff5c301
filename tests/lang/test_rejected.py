"""Rejected programs say what is wrong, where, and what would be right: every message as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dotr.cli.main import run
from tests.lang.rejected import FOLDER, cases, findings, text


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_rejected_program_gets_its_messages(case: Path) -> None:
    assert text(case) == (case / "expected.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_rejected_program_has_an_error(case: Path) -> None:
    assert any(message.startswith("error") for _, message in findings(case))


def test_there_are_at_least_sixty_rejected_programs() -> None:
    assert len(cases()) >= 60


def test_six_mistakes_on_six_lines_are_six_findings_at_their_places(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FOLDER / "six-mistakes-on-six-lines")
    assert run(["check", "program.dotr"]) == 1
    output = capsys.readouterr().out
    places = [line.strip().removeprefix("--> ") for line in output.splitlines() if "-->" in line]
    assert places == [f"program.dotr:{place}" for place in ("2:53", "3:41", "5:82", "6:29", "7:21", "8:11")]
