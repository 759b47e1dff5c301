"""Pages of the manual as things that run: their files, commands and Python, in order.

A fence with `title="NAME"` is a file. A `console` fence holds commands behind `$` and what they print on
standard output, where `...` stands for anything: alone on a line for any lines, inside one for any
characters. A `python` fence is run, unless it says `no-run`.

A page may leave servers running behind `&`, with their output in files; they end with the page. Where it says
127.0.0.1:8080 to a command, the command gets a port that is free.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

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


_ADDRESS = "127.0.0.1:8080"


def run(page: str, folder: Path) -> int:
    """Run everything on a page in an empty folder; how many commands and programs that were."""
    count = 0
    with _terminal(folder) as terminal:
        for block in blocks(page):
            title = _TITLE.search(block.note)
            if title:
                (folder / title[1]).write_text(terminal.here(block.text), encoding="utf-8")
            elif block.language == "console":
                for command, output in commands(block.text):
                    terminal.type(command, output)
                    count += 1
            elif block.language == "python" and block.note != "no-run":
                subprocess.run([sys.executable, "-c", terminal.here(block.text)], cwd=folder, check=True)
                count += 1
    return count


@dataclass(slots=True)
class _Terminal:
    """Owns the processes that commands started. `path`: where `dotr` and `python` are."""

    folder: Path
    path: str
    address: str
    groups: list[int] = field(default_factory=list)

    def here(self, text: str) -> str:
        """A text of the page with the address that is free."""
        return text.replace(_ADDRESS, self.address)

    def type(self, command: str, output: str) -> None:
        """Run a command and compare what it prints."""
        environment = {**os.environ, "PATH": f"{self.path}{os.pathsep}{os.environ['PATH']}"}
        ran = subprocess.Popen(
            ["bash", "-c", self.here(command)],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.groups.append(ran.pid)
        try:
            stdout, stderr = ran.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"$ {command}\nit does not end") from None
        found = stdout.replace(self.address, _ADDRESS)
        assert ran.returncode in (0, 1), f"$ {command}\n{stderr}"
        message = f"$ {command}\n{found}\n--- the page says\n{output}\n--- standard error\n{stderr}"
        assert pattern(output).fullmatch(found), message


@contextmanager
def _terminal(folder: Path) -> Iterator[_Terminal]:
    with TemporaryDirectory() as path:
        for name, call in (("python", ""), ("dotr", " -m dotr")):
            program = Path(path, name)
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{call} "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        terminal = _Terminal(folder, path, _free())
        try:
            yield terminal
        finally:
            for group in terminal.groups:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)


def _free() -> str:
    """An address of this machine with a port of as many digits that nobody listens on."""
    for port in range(7000 + os.getpid() % 1000, 9999):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return f"127.0.0.1:{port}"
    raise AssertionError("no port is free")
