"""How many bytes of a run's sources are behind it: what a progress bar shows.

Place:   beside sources.py; verbs that read files show it on a terminal.
Method:  a place in a text that is not compressed counts as it stands, anything else at the end of its file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from dotr.io.graphs import Item, Mark


class ReadSoFar:
    """Owns the count, `done` of `total` bytes.

    `total` is None where it is not known: a pipe, or one compressed file alone.
    """

    __slots__ = ("_behind", "_sizes", "done", "total")

    def __init__(self, files: Sequence[str]) -> None:
        self._sizes: dict[str, int] = {}
        self._behind: dict[str, int] = {}
        self.done = 0
        self.total: int | None = 0
        for file in files:
            try:
                found = os.stat(file)
            except OSError:
                found = None
            if found is None or not stat.S_ISREG(found.st_mode):
                self.total = None
                return
            self._sizes[file] = found.st_size
        packed = len(files) == 1 and files[0].endswith((".gz", ".bz2", ".zst", ".zip"))
        self.total = None if packed else sum(self._sizes.values())

    def passed(self, item: Item) -> None:
        """An item of a source is behind."""
        size = self._sizes.get(item.file)
        if size is None:
            return
        if item.how == "whole" or (isinstance(item, Mark) and item.error is None):
            reached = size
        elif item.how == "byte":
            reached = min(item.end, size)
        else:
            return
        self.done += reached - self._behind.get(item.file, 0)
        self._behind[item.file] = reached
