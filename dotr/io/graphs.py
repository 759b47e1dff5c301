"""What readers of streams deliver: graphs with their times, marks, and bookmarks to go on from.

Place:   between reader.py, sources.py and what consumes them (runs, feeds, conversions, Spark's tasks).
Method:  a named tuple a graph; every graph and mark is itself the bookmark behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct

from dotr.core.parts import Part
from dotr.errors import DataError
from dotr.events import Clock, Time
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE
from dotr.io.decode.parse_choices import STRICT, ParseChoices
from dotr.io.decode.quads import WHOLE
from dotr.io.tables.names import mapping_for
from dotr.io.time_reading import EXACT, TimeReading
from dotr.io.timestamps import UNITS, TimestampExtractor
from dotr.rdf.terms import Term

if TYPE_CHECKING:
    from dotr.io.tables.mapping import TableMapping

_tuple = tuple.__new__  # of a named tuple's parts: its own `__new__` is a Python function

CACHE = 16 * 1024 * 1024
"""Bytes of documents whose graphs are kept between the look for times and the replay."""


MEMORY = 64 << 20
"""Bytes of the lines of a dump that are held before they are written to disk."""


class Bookmark(NamedTuple):
    """How far a file is consumed, for a reader that goes on there.

    `how` says what `end` counts: "byte"s and "graph"s of the document, graphs in time order of a document
    that is "sorted" before it is replayed, bytes of a "whole" document of one graph. `carried` is what a
    message log carries on (base and prefixes). `limit`: only so many bytes of the file belong to what was
    begun; 0 is all.
    """

    how: str
    end: int
    carried: str = ""
    limit: int = 0


START = Bookmark("byte", 0)

BEGUN = "\x1f"
"""What parts `carried` from the repeated hours in which reading stands (files/repeated_hours.py)."""


class TimedGraph(NamedTuple):
    """One time-annotated graph as read.

    `triples` are canonical, without repeats, blank nodes labelled as the document has them; a Message where
    the document says more than what graph came. `line` is 0 where
    it is unknown. `how`, `end` and `carried` are the bookmark behind it; of a "whole" document `carried` is
    the content's hash.
    """

    time: Time
    triples: Part
    file: str
    line: int = 0
    how: str = "byte"
    end: int = 0
    carried: str = ""

    @property
    def part(self) -> Part:
        """What came."""
        return self.triples

    @property
    def place(self) -> str:
        """Where it stands, for messages: `log.jsonl:17`, `log.trig, graph 17` where lines are unknown."""
        if self.line:
            return f"{self.file}:{self.line}"
        return f"{self.file}, graph {self.end}" if self.how == "graph" else self.file


class Mark(NamedTuple):
    """What a reader says beside graphs: a document was refused (`error`), or the file is read to its end.

    `time` is that of the graph before it in the file (None at the head); `content` are the refused bytes;
    `size` the bytes read so far.
    """

    time: Time | None
    file: str
    how: str
    end: int
    carried: str = ""
    error: DataError | None = None
    content: bytes = b""
    size: int = 0


Item: TypeAlias = TimedGraph | Mark


class GraphRun(NamedTuple):
    """Graphs that stand in one file one behind another, as columns: of each what `TimedGraph` says, `how` and
    `carried` being those of all. There is one at least, and none is a Message.
    """

    times: Sequence[Time]
    graphs: Sequence[Part]
    file: str
    lines: Sequence[int]
    ends: Sequence[int]
    how: str = "byte"
    carried: str = ""

    def items(self) -> list[TimedGraph]:
        """Each by itself."""
        name, how, carried = repeat(self.file), repeat(self.how), repeat(self.carried)
        rows = zip(self.times, self.graphs, name, self.lines, how, self.ends, carried, strict=False)
        return [_tuple(TimedGraph, row) for row in rows]

    def behind(self, count: int) -> GraphRun:
        """Without the first `count`."""
        columns = self.times[count:], self.graphs[count:], self.file, self.lines[count:], self.ends[count:]
        return GraphRun(*columns, self.how, self.carried)

    @property
    def last(self) -> TimedGraph:
        """The last one."""
        row = self.times[-1], self.graphs[-1], self.file, self.lines[-1]
        return TimedGraph(*row, self.how, self.ends[-1], self.carried)


def one_by_one(runs: Iterable[Item | GraphRun]) -> Iterator[Item]:
    """Items, those of runs among them."""
    for item in runs:
        if type(item) is GraphRun:
            yield from item.items()
        else:
            yield item  # type: ignore[misc]  # a graph or a mark


class SourceOptions(Struct, frozen=True):
    """How sources are read. `time_path` is an IRI term; `unit` is microseconds of one unit of integer
    time.
    """

    base: str = STREAM_BASE
    time_path: Term | None = None
    unit: int = UNITS["s"]
    max_document: int = MAX_DOCUMENT
    cache: int = CACHE
    whole: int = WHOLE
    zone: str = ""
    """The zone of dateTimes that say none; "" refuses them."""
    reading: TimeReading = EXACT
    """What is done about times that are no instant as they stand."""
    choices: ParseChoices = STRICT
    """What documents may say beyond RDF 1.1 and beyond themselves."""
    mappings: tuple[TableMapping, ...] = ()
    """What makes graphs of the rows of tables; the first that is for a file is taken."""
    split: Term = ""
    """The class or property of the subjects that a dump is taken apart by; "" leaves documents whole."""
    shared: bool = False
    """Whether what several subjects of a dump refer to goes into the graph of each."""
    split_memory: int = MEMORY
    """Bytes of a dump that are held in memory, about."""
    growing: bool = False
    """Whether files are being written: then a JSON line without its end is left for the next reading."""

    def mapping_for(self, file: str) -> TableMapping | None:
        """The mapping that a file is read through; None for documents of RDF."""
        return mapping_for(file, self.mappings) if self.mappings else None

    def extractor(self, clock: Clock | None = None) -> TimestampExtractor:
        """What finds the times of one run's graphs. Raises TimeError D2110."""
        return TimestampExtractor(
            self.time_path, self.unit, self.base, clock, zone=self.zone, reading=self.reading
        )
