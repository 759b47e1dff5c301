"""Pages of the manual as things that run: their files, commands and Python, in order.

A fence with `title="NAME"` is a file. A `console` fence holds commands behind `$` and what they print on
standard output, where `...` stands for anything: alone on a line for any lines, inside one for any
characters. A `python` fence is run, unless it says `no-run`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """One fence: its language, what stands behind the language, its text."""

    language: str
    note: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    for found in _FENCE.finditer(page):
        yield Block(found[1], found[2].strip(), found[3])


def commands(text: str) -> Iterator[tuple[str, str]]:
    """(command, what it prints) of a console fence."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def pattern(output: str) -> re.Pattern[str]:
    """What a printed output must match."""
    lines = []
    for line in output.splitlines():
        if line == "...":
            lines.append("(?:.*\n)*")
        else:
            lines.append(".*".join(map(re.escape, line.split("..."))) + "\n")
    return re.compile("".join(lines))


def run(page: str, folder: Path) -> int:
    """Run everything on a page in an empty folder; how many commands and programs that were."""
    count = 0
    for block in blocks(page):
        title = _TITLE.search(block.note)
        if title:
            (folder / title[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, output in commands(block.text):
                _command(command, output, folder)
                count += 1
        elif block.language == "python" and block.note != "no-run":
            subprocess.run([sys.executable, "-c", block.text], cwd=folder, check=True)
            count += 1
    return count


def _command(command: str, output: str, folder: Path) -> None:
    line = f'python() {{ "{sys.executable}" "$@"; }}; dotr() {{ python -m dotr "$@"; }}; {command}'
    ran = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), f"$ {command}\n{ran.stderr}"
    assert pattern(output).fullmatch(ran.stdout), f"$ {command}\n{ran.stdout}\n--- the page says\n{output}"
