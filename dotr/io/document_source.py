"""Graphs of documents that a transport delivers: decoded, stamped, each with a position behind it.

Place:   makes a source (graph_source.py) of any transport; formats are those of files, by decode/.
Method:  partitions in turn, a batch of each. A document may have several graphs: what is stored is the mark
         of the last whole document and how many graphs of the next are consumed: commits may fall anywhere.
Bad input: as in files: raised, or a mark in its place, and reading goes on with the next document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dotr.io.decode.documents import Format
from dotr.io.error_policy import ErrorPolicy
from dotr.io.files.reader import FileReader
from dotr.io.graph_source import Document, Position, PositionOf, Transport
from dotr.io.graphs import Bookmark, Item, Mark, SourceOptions, TimedGraph


class Reached(NamedTuple):
    """How far a partition is consumed: behind the whole document with `mark`, or, before there was one, from
    the stored `position` on; and so many items of the next document.
    """

    position: Position | None
    mark: Position | None = None
    items: int = 0


class DocumentSource:
    """Owns how far each partition is consumed. `format_`: of every document; `fail`: raise what cannot be
    read. `ends`: nothing more comes behind what is there.
    """

    def __init__(
        self,
        transport: Transport,
        format_: Format,
        options: SourceOptions | None = None,
        *,
        fail: bool = True,
        ends: bool = True,
    ) -> None:
        self.name = transport.name
        self.options = options or SourceOptions()
        self.extractor = self.options.extractor()
        self.bookmarks: Mapping[str, Bookmark] = {}
        self.live, self.done, self.total = True, 0, None
        self.over = False
        self._transport, self._format, self._refusals = transport, format_, ErrorPolicy(fail)
        self._ends = ends
        self._last: tuple[str, Reached] = ("", Reached(None))  # behind the item that was given last
        self._reached: dict[str, Reached] = {}
        self._changed: set[str] = set()

    def items(self, position_of: PositionOf) -> Iterator[Item | None]:
        """See `GraphSource`."""
        open_ = {}
        for partition in self._transport.partitions():
            if partition not in self._reached:
                stored, count = position_of(partition) or (None, 0)
                self._reached[partition] = Reached(stored, items=count)
            open_[partition] = self._transport.open(partition, self._position(partition))
        while open_:
            silent = True
            for partition in list(open_):
                batch = next(open_[partition], None)
                if batch is None:
                    del open_[partition]
                for document in batch or ():
                    silent = False
                    yield from self._document(partition, document)
            if silent and open_:
                yield None
        self.over = self._ends

    def _document(self, partition: str, document: Document) -> Iterator[Item]:
        before = self._reached[partition]
        done = before.items
        name = document.place or f"{self.name}/{partition}"
        self.done += len(document.content)
        reader = FileReader(
            name, self.options, self.extractor, self._refusals, content=document.content, format=self._format
        )
        items: list[Item] = [item for item in reader.items() if not _is_end(item)]
        for number, item in enumerate(items[done:], done + 1):
            whole = number == len(items)
            self._last = partition, Reached(None, document.mark) if whole else before._replace(items=number)
            yield item._replace(how="document", end=number)
        if done >= len(items):  # a document of no graph
            self._last = partition, Reached(None, document.mark)
            yield Mark(None, name, "document", 0)

    def consumed(self, item: Item) -> None:
        """See `GraphSource`."""
        partition, reached = self._last
        self._reached[partition] = reached
        self._changed.add(partition)

    def changes(self) -> Mapping[str, Position]:
        """See `GraphSource`."""
        return {name: [self._position(name), self._reached[name].items] for name in sorted(self._changed)}

    def _position(self, partition: str) -> Position | None:
        position, mark, _ = self._reached[partition]
        return position if mark is None else self._transport.position(partition, mark)

    def committed(self) -> None:
        """See `GraphSource`. The transport may let go of whole documents."""
        self._transport.committed({name: self._position(name) for name in sorted(self._changed)})
        self._changed.clear()


def _is_end(item: Item) -> bool:
    return not isinstance(item, TimedGraph) and item.error is None
