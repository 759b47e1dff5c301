"""Shells complete dotr's verbs, options and files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr


def completed(words: str, shell: str = "bash") -> list[str]:
    """What is proposed for the last of `words`, as the script of the shell asks."""
    asked = {
        "_DOTR_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    ran = subprocess.run(
        [sys.executable, "-m", "dotr.cli.main"],
        env=os.environ | asked,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ran.stdout.split()


def test_verbs_are_completed() -> None:
    assert completed("dotr ex") == ["plain,explain"]
    assert "plain,run" in completed("dotr ")


def test_options_of_a_verb_are_completed() -> None:
    assert completed("dotr run --late") == ["plain,--lateness"] or "plain,--late" in completed(
        "dotr run --late"
    )


def test_arguments_are_files() -> None:
    assert completed("dotr run fi") == ["file,fi"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_names_dotr(dotr: Dotr, shell: str) -> None:
    ran = dotr("completion", shell)
    assert ran.code == 0
    assert f"_DOTR_COMPLETE={shell}_complete" in ran.out


def test_another_shell_is_a_usage_error(dotr: Dotr) -> None:
    assert dotr("completion", "csh").code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_a_verb_with_the_script(dotr: Dotr, tmp_path: Path) -> None:
    script = tmp_path / "dotr.bash"
    script.write_text(dotr("completion", "bash").out)
    program = tmp_path / "dotr"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dotr.cli.main "$@"\n')
    program.chmod(0o755)
    asked = (
        f'. {script}; COMP_WORDS=(dotr exp); COMP_CWORD=1; _dotr_completion dotr; echo "${{COMPREPLY[@]}}"'
    )
    ran = subprocess.run(
        ["bash", "-c", asked],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.split() == ["explain"], ran.stderr
