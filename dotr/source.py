"""Places in texts: which file, which characters.

Place:   below everything; every syntax node and every diagnostic points at one of these.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from dotr.late import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """One text a user wrote. `name` is what messages call it (a path as the user gave it)."""

    name: str
    text: str = field(repr=False)
    _starts: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1. O(log lines) after one pass over the text."""
        if not self._starts:
            self._starts.append(0)
            at = self.text.find("\n")
            while at >= 0:
                self._starts.append(at + 1)
                at = self.text.find("\n", at + 1)
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its end."""
        self.position(0)
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """The characters `[start, end)` of a source."""

    source: Source
    start: int
    end: int

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"
