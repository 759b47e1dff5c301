"""What a deployment does to the disk, so that tests can let it fail.

Place:   under journal.py and the outputs of a feed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any


class Disk:
    """What the journal and its outputs do to the disk; tests put one in that fails."""

    def execute(self, connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> None:
        connection.execute(statement, values)

    def write(self, file: int, content: bytes) -> int:
        return os.write(file, content)

    def sync(self, file: int) -> None:
        os.fsync(file)

    def truncate(self, file: int, length: int) -> None:
        os.ftruncate(file, length)

    def create(self, path: str) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
