"""Sources: files, folders, globs and standard input become time-annotated graphs in time order.

Place:   what `dotr run`, `dotr feed`, `dotr convert` and Engine.feed read; reader.py reads each file.
Method:  a single stream is read in its own order. Several files are first scanned for their times: files of
         one graph each are sorted by time, files of many graphs are merged by the time of their heads (those
         that are not in order themselves are read whole and sorted). Up to CACHE bytes of documents are kept
         from the first scan; beyond that they are read a second time, so memory does not grow with a folder.
         Small files (a folder with a file for every reading): the next files are read whole and parsed
         together (decode/plain.py). Anything but a small document of one graph, uncompressed and
         without errors, is left to reader.py.
Why not: sorting everything in memory: a folder may be larger than it; trusting the order of names: 10.ttl <
         9.ttl.
Bad input: D2003 no such file · D2008 unknown format · D2009 nothing there · D2016 an unsorted file too large
         to sort.
"""

from __future__ import annotations

import glob
import heapq
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import IO, TYPE_CHECKING, NamedTuple

from msgspec import Struct

from dotr.errors import DataError
from dotr.events import Clock, Time, all_triples
from dotr.io.decode.documents import Format, content_hash, decode, format_of, is_packed
from dotr.io.decode.messages import is_message_log
from dotr.io.decode.plain import LONG, MANY, BatchParser, PlainGraphs, common_head
from dotr.io.errors import ErrorPolicy, graphs_alone
from dotr.io.graphs import (
    CACHE,
    START,
    Bookmark,
    GraphRun,
    Item,
    ReadEvent,
    SourceOptions,
    TimedGraph,
    WantedForm,
    mapping_for,
    one_by_one,
)
from dotr.io.reader import FileReader
from dotr.io.time import TimestampExtractor
from dotr.rdf.terms import Triple

if TYPE_CHECKING:
    from dotr.io.parse_workers import ParseWorkers
    from dotr.io.tables.mapping import TableMapping

_FORMATS = (Format.TURTLE, Format.NTRIPLES)
_PACKED = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"PK")
"""What compressed files begin with."""


class SmallFile(NamedTuple):
    """What is in a file, and its graph."""

    content: bytes
    triples: list[Triple]


class SmallFiles:
    """Owns files that were read ahead. `wanted`: whether a file is read from its beginning, as what its name
    says.
    """

    def __init__(self, files: Sequence[str], base: str | None, wanted: Callable[[str], bool]) -> None:
        self._files, self._wanted = files, wanted
        self._turtle, self._lines = BatchParser(base), PlainGraphs(lines=True)
        self._ahead: dict[int, SmallFile] = {}
        self._next = 0

    def take(self, number: int) -> SmallFile | None:
        """The file of this number; each is asked for once, one after the other. None: read it otherwise."""
        if number == self._next:
            self._read()
        return self._ahead.pop(number, None)

    def _read(self) -> None:
        """Read the next files of one format."""
        first = self._next
        format_ = format_of(self._files[first])
        found: dict[int, bytes] = {}
        self._next = first + 1
        if format_ not in _FORMATS:
            return
        for number, file in enumerate(self._files[first : first + MANY], first):
            if format_of(file) is not format_:
                break
            self._next = number + 1
            content = None if is_packed(file) or not self._wanted(file) else _small(file)
            if content is not None:
                found[number] = content
        if len(found) < 2:
            return
        try:
            texts = [decode(content, self._files[number]) for number, content in found.items()]
        except DataError:
            return
        graphs = self._parsed(texts, format_)
        if graphs is not None:
            rows = zip(found.items(), graphs, strict=True)
            self._ahead = {number: SmallFile(content, graph) for (number, content), graph in rows}

    def _parsed(self, texts: Sequence[str], format_: Format | None) -> list[list[Triple]] | None:
        if format_ is Format.NTRIPLES:
            return self._lines.parse(texts)
        head = common_head(texts)
        return self._turtle.parse([text[len(head) :] for text in texts], head)


def _small(file: str) -> bytes | None:
    """All of a small regular file that is not compressed, and one document; None for any other."""
    try:
        found = os.stat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size >= LONG:
            return None
        opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.read(opened, LONG)
        finally:
            os.close(opened)
    except OSError:
        return None
    if len(content) != found.st_size or is_message_log(content) or content.startswith(_PACKED):
        return None
    return content


__all__ = [
    "CACHE",
    "Bookmark",
    "FileReader",
    "Item",
    "ReadEvent",
    "SourceOptions",
    "Sources",
    "TimedGraph",
    "files_below",
    "live",
    "resolve",
]


_NOTHING: Iterator[Item] = iter(())


@dataclass(slots=True)
class Sources:
    """Owns the reading of one run's sources: iterate once over it for TimedGraphs in time order.

    Iteration raises DataError; what was yielded before stays right. After the first graph `clock` says how
    this run writes time; `extractor.time_sources` counts how times were found, `refusals.count` what was left
    out. `bookmarks` say, by file as `resolve` names it, where to go on.
    """

    paths: Sequence[str]
    options: SourceOptions = field(default_factory=SourceOptions)
    refusals: ErrorPolicy = field(default_factory=ErrorPolicy)
    stdin: IO[bytes] | None = None
    bookmarks: Mapping[str, Bookmark] = field(default_factory=dict)
    workers: ParseWorkers | None = None
    """What parses ahead, where there is one file."""
    wanted: WantedForm | None = None
    """Which forms of graphs `runs` may give as columns, where there is one file; None: none."""
    extractor: TimestampExtractor = field(init=False)

    def __post_init__(self) -> None:
        self.extractor = self.options.extractor()

    @property
    def clock(self) -> Clock | None:
        return self.extractor.clock

    def __iter__(self) -> Iterator[TimedGraph]:
        return graphs_alone(self.items(), self.refusals)

    def items(self) -> Iterator[Item]:
        """Graphs in time order, refused documents (unless refusing is fatal), and the ends of files."""
        return one_by_one(self.runs())

    def runs(self) -> Iterator[Item | GraphRun]:
        """As `items`; graphs that one file gave at once are together."""
        files = resolve(self.paths, self.options.mappings)
        if len(files) == 1 and self._bookmark(files[0]).how != "sorted":
            reader = self._reader(files[0])
            reader.workers, reader.wanted = self.workers, self.wanted
            return reader.runs()
        return self._replay(files)

    def _bookmark(self, file: str) -> Bookmark:
        return self.bookmarks.get(file, START)

    def _reader(self, file: str, again: bool = False) -> FileReader:
        extractor = (
            replace(self.extractor, time_sources={}, beside={}, first={}) if again else self.extractor
        )  # a second look counts nothing twice
        return FileReader(file, self.options, extractor, self.refusals, self.stdin, self._bookmark(file))

    def _replay(self, files: Sequence[str]) -> Iterator[Item]:
        """All graphs of several files by time; among equals in the order of the files."""
        heap: list[tuple[Time, int, Item | None, Iterator[Item]]] = []
        budget = self.options.cache
        small = SmallFiles(files, self.options.base, self._plain)
        for number, file in enumerate(files):
            read = small.take(number)
            graph = None if read is None else self._small(file, read)
            if graph is not None and read is not None:
                cost = _cost(graph)
                kept = cost <= min(budget, len(read.content) * 4 + 1000)
                budget -= cost if kept else 0
                heap.append(
                    (graph.time, number, graph, _NOTHING)
                    if kept
                    else (graph.time, number, None, self._again(file, True))
                )
                continue
            size = _size(file)
            if size is None:  # a pipe can be examined once only
                heap.extend(_head(self._reader(file).items(), number))
                continue
            look = _look(self._reader(file).items(), min(budget, size * 4 + 1000))
            budget -= look.cost
            ordered = look.ordered and self._bookmark(file).how != "sorted"
            only: Item | None = None
            if look.kept is None:
                rest = self._again(file, ordered)
            elif ordered:
                rest = iter(look.kept)
                if len(look.kept) == 1 and isinstance(look.kept[0], TimedGraph):
                    only, rest = look.kept[0], _NOTHING
            else:
                rest = _sorted(look.kept, self._bookmark(file))
            heap.append((look.first, number, only, rest))
        heapq.heapify(heap)
        reached = -(2**63)
        while heap:
            reached, number, item, rest = heapq.heappop(heap)
            if item is not None:
                yield item
            following = next(rest, None)
            if following is not None:
                time = reached if following.time is None else max(reached, following.time)
                if isinstance(following, TimedGraph):
                    time = following.time
                heapq.heappush(heap, (time, number, following, rest))

    def _plain(self, file: str) -> bool:
        """Whether a file is read from its beginning, as one document of what its name says."""
        options = self.options
        return self._bookmark(file) == START and not options.split and options.mapping_for(file) is None

    def _small(self, file: str, read: SmallFile) -> TimedGraph | None:
        """The graph of a small file; None where it has no right time: its reader says why."""
        try:
            time = self.extractor.time(read.triples, file, file)
        except DataError:
            return None
        hashed = content_hash(read.content)
        return TimedGraph(time, read.triples, file, 0, "whole", len(read.content), hashed)

    def _again(self, file: str, ordered: bool) -> Iterator[Item]:
        items = self._reader(file, again=True).items()
        if ordered:
            yield from items
            return
        size = _size(file) or 0
        if size > self.options.max_document:
            raise DataError.of(
                "D2016",
                f"`{file}` is not in time order and too large to be sorted here",
                place=file,
                label=f"{size} bytes",
                hint="sort it, feed it alone with --lateness, or raise --max-document",
            )
        yield from _sorted(list(items), self._bookmark(file))


def _sorted(items: Sequence[Item], bookmark: Bookmark) -> Iterator[Item]:
    """A file's graphs by time, each with its number in that order; what was refused first, the end last."""
    skip = bookmark.end if bookmark.how == "sorted" else 0
    marks = [item for item in items if isinstance(item, ReadEvent)]
    graphs = sorted((item for item in items if isinstance(item, TimedGraph)), key=_time)
    refused = [mark._replace(time=None) for mark in marks if mark.error is not None]
    everything: list[Item] = [*refused, *graphs]
    for number, item in enumerate(everything, 1):
        if number > skip:
            yield item._replace(how="sorted", end=number)
    yield from (mark for mark in marks if mark.error is None)


def _time(graph: TimedGraph) -> Time:
    return graph.time


def _size(file: str) -> int | None:
    """The bytes of a regular file, None for anything else."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _head(items: Iterator[Item], number: int) -> Iterator[tuple[Time, int, Item | None, Iterator[Item]]]:
    for item in items:
        yield (-(2**63) if item.time is None else item.time), number, item, items
        return


class _LookAhead(Struct):
    first: Time = -(2**63)
    ordered: bool = True
    kept: list[Item] | None = None
    cost: int = 0


def _look(items: Iterator[Item], budget: int) -> _LookAhead:
    """Read a file for its times; keep what it has while that costs at most `budget` bytes.

    A refused document follows the graph before it in its file at once, or comes before all graphs.
    """
    kept: list[Item] | None = []
    look = _LookAhead()
    last: Time | None = None
    headed = (
        False  # whether a mark comes first: then the file is due at once, now and when reading is resumed
    )
    for item in items:
        headed = headed or (last is None and isinstance(item, ReadEvent))
        if isinstance(item, TimedGraph):
            if last is None and not headed:
                look.first = item.time
            elif not headed:
                look.first = min(look.first, item.time)
            look.ordered = look.ordered and (last is None or last <= item.time)
            last = item.time
        if kept is None:
            continue
        look.cost += _cost(item) if isinstance(item, TimedGraph) else 100 + len(item.content)
        if look.cost > budget:
            kept, look.cost = None, 0
        else:
            kept.append(item)
    look.kept = kept
    return look


def _cost(graph: TimedGraph) -> int:
    """Bytes of a graph that is kept, about."""
    return 100 + sum([len(s) + len(p) + len(o) for s, p, o in all_triples(graph.triples)])


def resolve(paths: Sequence[str], mappings: Sequence[TableMapping] = ()) -> list[str]:
    """Files of the sources in the order given, folders and globs spelled out in name order; of folders the
    tables, too, that a mapping is for. Raises DataError.
    """
    files: list[str] = []
    for path in paths:
        if path == "-" or os.path.isfile(path):
            files.append(path)
        elif os.path.isdir(path):
            found = files_below(path, mappings)
            if not found:
                raise DataError.of(
                    "D2009", f"the folder `{path}` has no RDF file", place=path, hint="check the path"
                )
            files.extend(found)
        elif os.path.lexists(path):
            files.append(path)  # a pipe or device, or a link that leads nowhere, which reading refuses
        elif glob.has_magic(path):
            matched = sorted(f for f in glob.glob(path, recursive=True) if os.path.isfile(f))
            if not matched:
                raise DataError.of("D2009", f"no file matches `{path}`", place=path, hint="check the pattern")
            files.extend(matched)
        else:
            hint = _nearest_path(path) or "check the path"
            raise DataError.of("D2003", f"there is no `{path}`", place=path, hint=hint)
    return files


def _nearest_path(path: str) -> str:
    """A did-you-mean for a path that leads nowhere: the first folder of it that is not there, or the file."""
    where = path.rstrip("/")
    while (folder := os.path.dirname(where)) and not os.path.isdir(folder):
        where = folder
    try:
        near = get_close_matches(os.path.basename(where), sorted(os.listdir(folder or ".")), 1)
    except OSError:
        return ""
    return f"did you mean `{os.path.join(folder, near[0])}`?" if near else ""


def files_below(folder: str, mappings: Sequence[TableMapping] = ()) -> list[str]:
    """Every RDF file below a folder, and every table that a mapping is for, in name order; hidden ones, pipes
    and devices are left out.

    A link that leads nowhere, and a folder that cannot be looked into, are among them: reading refuses them.
    """
    found: list[str] = []
    waiting = [folder]
    while waiting:
        where = waiting.pop()
        try:
            with os.scandir(where) as scanned:
                entries = sorted((e for e in scanned if e.name[0] != "."), key=lambda entry: entry.name)
        except OSError:
            found.append(where)
            continue
        folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        found.extend(entry.path for entry in entries if _is_read(entry.name, mappings) and _is_file(entry))
        waiting.extend(reversed(folders))
    return found


def _is_read(name: str, mappings: Sequence[TableMapping]) -> bool:
    return format_of(name) is not None or mapping_for(name, mappings, listed=True) is not None


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a regular file, or a link to one or to nothing."""
    if entry.is_symlink():
        return os.path.isfile(entry.path) or not os.path.exists(entry.path)
    return entry.is_file()


def live(paths: Sequence[str]) -> bool:
    """Whether graphs may still be on their way: a source is standard input or a pipe."""
    return any(
        path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))
        for path in paths
    )
