"""Where graphs come from: sources with positions that only they understand.

Place:   between feeds, which take graphs and record positions, and what is read. Files are one source
         (files/file_source.py); `DocumentSource` (document_source.py) makes another of anything that delivers
         documents: a queue, a database, a socket with a log.
Method:  a position is a JSON value for each partition, as Bytewax has it: whoever delivers gives a mark with
         every document, and what is stored for a mark is asked at commits alone. Transport knows nothing of
         RDF, decoding nothing of where bytes come from; times are found by timestamps.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from dotr.io.graphs import Bookmark, Item
from dotr.io.timestamps import TimestampExtractor

Position: TypeAlias = Any
"""A JSON value: how far one partition of a source is consumed. Only the source understands it."""

PositionOf: TypeAlias = Callable[[str], Position | None]
"""Partition → its position at the last commit, None before the first."""


class Document(NamedTuple):
    """The bytes of one document, and the mark behind it. `place` names it in messages."""

    content: bytes
    mark: Position
    place: str = ""


class Transport(Protocol):
    """Delivers documents as bytes, from any position on, in the same order each time.

    `name` is what its positions are stored under. A source that cannot deliver again what was not committed
    gives at-most-once at best; one that can gives exactly-once with sinks that are (service/sink.py).
    """

    name: str

    def partitions(self) -> Sequence[str]:
        """What has positions of its own, by name."""

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        """Batches of the documents behind `position`; an empty one: none has come for a while. The end: none
        is there now, `open` may be called again. Raises DataError.
        """

    def position(self, partition: str, mark: Position) -> Position:
        """What is stored for the mark of the last document that was consumed; asked at commits."""

    def committed(self, positions: Mapping[str, Position | None]) -> None:
        """What lies before these positions, by partition, is not asked for again; None: the beginning."""


class GraphSource(Protocol):
    """Graphs with times, in the order in which a feed takes them.

    `extractor` finds times; its `clock` is set where a run has one. `bookmarks`: where partitions that are
    files are read on from. `live`: graphs cannot wait for others. `over`: nothing more can come. `done` of
    `total` bytes are behind, None: not known.
    """

    name: str
    extractor: TimestampExtractor
    bookmarks: Mapping[str, Bookmark]
    live: bool
    done: int
    total: int | None

    @property
    def over(self) -> bool: ...

    def items(self, position_of: PositionOf) -> Iterator[Item | None]:
        """What is there now behind the positions; None: nothing has come for a while. Raises DataError."""

    def consumed(self, item: Item) -> None:
        """Everything up to and with this item, the last that was given, is consumed."""

    def changes(self) -> Mapping[str, Position]:
        """The positions that changed since the last commit, for the next one. Raises DataError."""

    def committed(self) -> None:
        """The changes are stored."""
