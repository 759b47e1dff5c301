"""Lines sorted on disk: as many as there are, in the memory that is allowed.

Place:   under subject_graphs.py.
Method:  external merge sort (Knuth, The Art of Computer Programming 3, section 5.4): runs that fit are sorted
         and written, then merged; more than FAN_IN runs are merged into one first.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator
from itertools import count

from msgspec import Struct, field

FAN_IN = 64
"""Runs that are merged at once, each an open file."""

_OVERHEAD = 64
"""Bytes that a line costs in memory beside its characters, about."""


class SortedLines(Struct):
    """Owns runs of sorted lines in `folder`, called after `name`. At most `memory` bytes wait to be written.

    Lines have no line ends. Iterating gives every line once, in order of code points; it may be done again,
    and lines may be added between.
    """

    folder: str
    name: str
    memory: int
    _waiting: list[str] = field(default_factory=list)
    _size: int = 0
    _runs: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def add(self, line: str) -> None:
        self._waiting.append(line)
        self._size += len(line) + _OVERHEAD
        if self._size >= self.memory:
            self._spill()

    def update(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.add(line)

    @property
    def runs(self) -> int:
        """Runs on disk."""
        return len(self._runs)

    def _spill(self) -> None:
        self._runs.append(self._write(sorted(set(self._waiting))))
        self._waiting, self._size = [], 0
        if len(self._runs) >= FAN_IN:
            merged = self._write(heapq.merge(*map(_lines_of, self._runs)))
            for run in self._runs:
                os.unlink(run)
            self._runs = [merged]

    def _write(self, lines: Iterable[str]) -> str:
        path = os.path.join(self.folder, f"{self.name}.{next(self._numbers)}")
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        return path

    def __iter__(self) -> Iterator[str]:
        last: str | None = None
        for line in heapq.merge(*map(_lines_of, self._runs), sorted(self._waiting)):
            if line != last:
                yield line
            last = line

    def __bool__(self) -> bool:
        return bool(self._runs or self._waiting)


def _lines_of(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line[:-1]
