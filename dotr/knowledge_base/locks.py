"""Many readers or one writer.

Place:   around everything that knowledge_base.py does with its model.
Method:  a writer that waits goes before readers that come later, so that it is not starved; a thread that
         reads already goes on reading. What a reader sees is therefore the state between two transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock, local


class ReadWriteLock:
    """Owns who is inside. A thread that reads may not write until it has left."""

    def __init__(self) -> None:
        self._changed = Condition(Lock())
        self._readers = 0
        self._waiting = 0
        self._writing = False
        self._mine = local()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Be one of the readers. A thread may nest these, and read while it writes."""
        depth = getattr(self._mine, "depth", 0)
        if depth == 0 and not self.is_writing:
            with self._changed:
                while self._writing or self._waiting:
                    self._changed.wait()
                self._readers += 1
            try:
                self._mine.depth = 1
                yield
            finally:
                self._mine.depth = 0
                with self._changed:
                    self._readers -= 1
                    if not self._readers:
                        self._changed.notify_all()
            return
        self._mine.depth = depth + 1
        try:
            yield
        finally:
            self._mine.depth = depth

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one."""
        with self._changed:
            self._waiting += 1
            while self._writing or self._readers:
                self._changed.wait()
            self._waiting -= 1
            self._writing = True
        self._mine.writes = True
        try:
            yield
        finally:
            self._mine.writes = False
            with self._changed:
                self._writing = False
                self._changed.notify_all()

    @property
    def is_reading(self) -> bool:
        """Whether this thread is one of the readers."""
        return getattr(self._mine, "depth", 0) > 0

    @property
    def is_writing(self) -> bool:
        """Whether this thread is the writer."""
        return bool(getattr(self._mine, "writes", False))
