"""Files, folders, pipes and standard input as a source of a feed, read once or watched.

Place:   what `dotr feed` reads; sources.py orders graphs by time, ready_files.py says which files may be
         read, file_positions.py how far each is consumed.
Method:  transport and decoding are one here: formats read blocks of bytes as it suits them. A live source is
         read by a thread of its own, so that its silence is noticed.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence

from dotr.io.error_policy import ErrorPolicy
from dotr.io.files.file_positions import FilePositions, ResumePlan
from dotr.io.files.read_so_far import ReadSoFar
from dotr.io.files.ready_files import ReadyFiles
from dotr.io.files.sources import Sources, live, resolve
from dotr.io.graph_source import Position, PositionOf
from dotr.io.graphs import Bookmark, Item, SourceOptions

FILES = "files"
"""What positions of files are stored under; a partition is the real path of a file."""

_AHEAD = 1000
"""Graphs that may be read ahead of the pipeline from a live source."""


class FileSource:
    """Owns the reading of one feed's files. `fail`: raise what cannot be read; `follow`: each call of `items`
    takes the files that are ready by then.
    """

    def __init__(
        self, paths: Sequence[str], options: SourceOptions, *, fail: bool = True, follow: bool = False
    ) -> None:
        self.name = FILES
        self.extractor = options.extractor()
        self.bookmarks: Mapping[str, Bookmark] = {}
        self.live, self.done = False, 0
        self.total: int | None = None
        self._paths, self._options, self._fail = paths, options, fail
        self._watch = ReadyFiles(paths, options.mappings) if follow else None
        self._positions = FilePositions()
        self.changed = self._positions.changed
        """Files that are read from their beginning again → what became of the bytes that were fed."""

    @property
    def over(self) -> bool:
        """Whether every source is standard input, and has ended."""
        return self._watch is None or self._watch.over

    def items(self, position_of: PositionOf) -> Iterator[Item | None]:
        """See `GraphSource`. Hashes what was consumed of each file again."""
        watch = self._watch
        files = resolve(self._paths, self._options.mappings) if watch is None else watch.ready()
        plan = self._positions.plan(files, position_of)
        self.bookmarks, self.live, self.total = plan.bookmarks, live(plan.files), None
        return self._read(files, plan, position_of)

    def _read(self, files: Sequence[str], plan: ResumePlan, position_of: PositionOf) -> Iterator[Item | None]:
        while plan.files:
            sources = Sources(plan.files, self._options, ErrorPolicy(self._fail), bookmarks=plan.bookmarks)
            sources.extractor = self.extractor
            yield from ahead(sources.items()) if self.live else self._counted(sources)
            if not plan.limited:
                return
            plan = self._positions.plan(files, position_of)

    def _counted(self, sources: Sources) -> Iterator[Item]:
        behind = ReadSoFar(sources.paths)
        self.total = behind.total
        for item in sources.items():
            behind.passed(item)
            self.done = behind.done
            yield item

    def consumed(self, item: Item) -> None:
        """See `GraphSource`."""
        self._positions.consumed(item)

    def changes(self) -> Mapping[str, Position]:
        """See `GraphSource`."""
        return self._positions.changes()

    def committed(self) -> None:
        """See `GraphSource`."""
        self._positions.committed()


def ahead(items: Iterator[Item]) -> Iterator[Item | None]:
    """Items of a live source as they come, None whenever nothing comes for a while."""
    waiting: queue.Queue[Item | BaseException | None] = queue.Queue(_AHEAD)

    def read() -> None:
        try:
            for item in items:
                waiting.put(item)
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            item = waiting.get(timeout=0.2)
        except queue.Empty:
            yield None
            continue
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item
        yield item
