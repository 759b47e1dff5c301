"""Places in texts: which file, which characters.

Place:   below everything; every syntax node and every diagnostic points at one of these.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple


class Source(NamedTuple):
    """One text a user wrote. `name` is what messages call it (a path as the user gave it)."""

    name: str
    text: str

    def __repr__(self) -> str:
        return f"Source(name={self.name!r})"

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1. O(log lines) after one pass over the text."""
        starts = _line_starts(self.text)
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (from 1) without its end."""
        starts = _line_starts(self.text)
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r")


class Span(NamedTuple):
    """The characters `[start, end)` of a source."""

    source: Source
    start: int
    end: int

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"


@lru_cache(maxsize=64)
def _line_starts(text: str) -> list[int]:
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts
