"""A terminal in memory: what a program draws on it, line by line.

Method:  a pseudo terminal of the system, of which the program is the foreground process; its screen is made
         of what was written, by the few sequences that drawing needs. Any other fails the test: data must not
         reach a terminal with sequences of their own.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_UNFINISHED = re.compile(r"\x1b(?:\[\??[0-9;]*)?\Z")
"""A sequence whose rest is still to be read."""

_PIECE = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|\x1b(.)|([\x00-\x1f\x7f-\x9f])|([^\x00-\x1f\x7f-\x9f]+)")


class Screen:
    """Owns lines without an end, of so many columns, and the cursor. `styled`: whether anything had a colour;
    `hidden`: whether the cursor is hidden.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lines: list[str] = [""]
        self.row = self.column = 0
        self.styled = self.hidden = False
        self._rest = ""

    def write(self, text: str) -> None:
        """Obey what a program writes; AssertionError for what drawing does not need."""
        text = self._rest + text
        cut = _UNFINISHED.search(text)
        text, self._rest = (text[: cut.start()], cut[0]) if cut else (text, "")
        for found in _PIECE.finditer(text):
            parameters, command, escaped, control, plain = found.groups()
            if plain is not None:
                self._put(plain)
            elif control is not None:
                self._control(control)
            else:
                assert escaped is None, f"a sequence that is not drawing: ESC {escaped}"
                self._command(parameters, command)

    def _put(self, text: str) -> None:
        for char in text:
            if self.column == self.columns:
                self._control("\n")
                self.column = 0
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + char + line[self.column + 1 :]
            self.column += 1

    def _control(self, control: str) -> None:
        if control == "\r":
            self.column = 0
        elif control == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        else:
            raise AssertionError(f"a control character that is not drawing: {control!r}")

    def _command(self, parameters: str, command: str) -> None:
        if command == "m":
            self.styled = self.styled or parameters not in ("", "0")
        elif command == "A":
            self.row -= int(parameters or 1)
            assert self.row >= 0, "above the screen"
        elif (parameters, command) == ("2", "K"):
            self.lines[self.row] = ""
        elif (parameters, command) in (("?25", "l"), ("?25", "h")):
            self.hidden = command == "l"
        else:
            raise AssertionError(f"a sequence that is not drawing: CSI {parameters}{command}")

    @property
    def text(self) -> str:
        """The lines, without blanks at their ends."""
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n")


class OnTerminal:
    """Owns `dotr` with a terminal for its standard streams, or for standard error and input alone."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        columns: int = 100,
        rows: int = 30,
        environment: Mapping[str, str] | None = None,
        out: int | None = None,
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        modes = termios.tcgetattr(theirs)
        modes[3] |= termios.NOFLSH  # Ctrl-C does not discard what was written and is still to be read
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        left_out = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM")
        own = {name: value for name, value in os.environ.items() if name not in left_out}

        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [sys.executable, "-m", "dotr", *arguments],
            cwd=folder,
            stdin=theirs,
            stdout=theirs if out is None else out,
            stderr=theirs,
            env={**own, "TERM": "xterm", **(environment or {})},
            start_new_session=True,
            preexec_fn=take_terminal,  # nothing else runs in the child
        )
        os.close(theirs)
        self.screen = Screen(columns)
        self.written = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def read(self, seconds: float = 0.1) -> bool:
        """Take what was written, at most so long; whether there may be more."""
        if not select.select([self._ours], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self._ours, 65536)
        except OSError:  # the end, as Linux says it
            return False
        text = self._decoder.decode(piece)
        self.written += text
        self.screen.write(text)
        return bool(piece)

    def until(self, done: Callable[[str], bool], seconds: float = 30) -> str:
        """Read until the screen is so; its text."""
        end = time.monotonic() + seconds
        while not done(self.screen.text):
            assert time.monotonic() < end, self.screen.text
            assert self.read(), self.screen.text
        return self.screen.text

    def interrupt(self, seconds: float = 60) -> int:
        """Press Ctrl-C; the exit code, when all was read."""
        os.write(self._ours, b"\x03")
        end = time.monotonic() + seconds
        while self.read() and time.monotonic() < end:
            pass
        return self.process.wait(30)

    def close(self) -> None:
        """End the process, if it runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        os.close(self._ours)
