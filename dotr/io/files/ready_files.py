"""Which files of watched sources are ready to be read.

Place:   asked by file_source.py under `--follow`, once a look.
Method:  a file is taken when it was renamed into place (it was last written before the look at which it was
         not there yet) or has not grown between two looks. Nothing is remembered of a file but its size.
Why not: notifications of the operating system: different everywhere, and none on network file systems.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from msgspec import Struct, field

from dotr.errors import DataError
from dotr.io.decode.compression import plain_name
from dotr.io.decode.documents import Format, format_of
from dotr.io.files.sources import resolve
from dotr.io.tables.mapping import TableMapping
from dotr.io.tables.names import mapping_for

_GRAIN = 0.05
"""Seconds by which the clock of a file system may be coarse."""


class ReadyFiles(Struct):
    """Owns what the last look saw: file → (size, time of last write), and the files handed out at
    that size.
    """

    paths: Sequence[str]
    mappings: Sequence[TableMapping] = ()
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    _given: dict[str, int] = field(default_factory=dict)
    _looked: float = 0.0

    def ready(self) -> list[str]:
        """Files that may be read now: new ones, and those that grew. Folders may still be empty.

        Raises DataError for a path that does not exist.
        """
        now = time.time()
        ready: list[str] = []
        seen: dict[str, tuple[int, float]] = {}
        for file in self._files():
            if file == "-":
                if "-" not in self._given:
                    ready.append(file)
                self._given[file], seen[file] = 0, (0, 0.0)
                continue
            try:
                status = os.stat(file)
            except OSError:
                continue  # gone again
            size, written = status.st_size, status.st_mtime
            seen[file] = (size, written)
            if self._given.get(file) == size:
                continue
            before = self._seen.get(file)
            if not os.path.isfile(file) or self._by_lines(file):
                ready.append(file)  # a pipe is read as it comes, lines as they are completed
                self._given[file] = size
                continue
            renamed = before is None and file not in self._given and 0 < written < self._looked - _GRAIN
            first = not self._looked and written < now - 1
            if renamed or first or (before is not None and before == (size, written)):
                ready.append(file)
                self._given[file] = size
        self._seen, self._looked = seen, now
        self._given = {file: size for file, size in self._given.items() if file in seen}
        return ready

    def _by_lines(self, file: str) -> bool:
        """Whether a file is read on while it grows."""
        mapping = mapping_for(file, self.mappings)
        if plain_name(file) != file:
            return False
        if mapping is None:
            return format_of(file) is Format.JSONLINES
        return mapping.format_of(file) in ("csv", "tsv", "jsonl")

    @property
    def over(self) -> bool:
        """Whether nothing more can come: every source is standard input, and was handed out."""
        return bool(self._given) and all(path == "-" for path in self.paths)

    def _files(self) -> list[str]:
        files: list[str] = []
        for path in self.paths:
            try:
                files.extend(resolve([path], self.mappings))
            except DataError as error:
                if error.diagnostics[0].code != "D2009":  # an empty folder fills, a pattern comes to match
                    raise
        return files
