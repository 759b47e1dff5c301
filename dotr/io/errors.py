"""Refused documents and graphs: the error policy, dead letters, and places in documents.

Method:  `--on-error fail|skip|file=PATH`: a dead letter has all that is needed to fix and feed it again: the
         place, the diagnostic, and the original bytes, as one JSON line (bytes as text where they are UTF-8,
         else as base64).
         Lineage: some errors of data show only when an instant is closed: a triple of the schema, a
         contradiction, an explosion. Then the graphs of the instant are set aside as if they had never come,
         each as one dead letter: place, diagnostic, the graph as it was read with its time (so that the
         letter itself is a line of a source), and the bytes of its document, message or line where a regular
         file still has them. Of a graph only its place is kept until its instant is closed; the bytes are
         read again.
         Place of a triple, found again for the leaves of a proof: a tolerant scan for the line on which the
         object stands after the predicate and the subject, each in any of the ways in which Turtle can write
         it. Triples carry no lines on their way through the engine.
Why not: keeping the bytes of open instants: with a lateness of an hour that is an hour of the stream.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from os.path import isfile
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field

from dotr.errors import DataError, Diagnostic, DotrError, Severity
from dotr.events import Clock, GraphOrMessage, Time, labelled
from dotr.io.decode.documents import content_hash, is_packed, open_document, read_bytes
from dotr.io.events import late_line
from dotr.io.graphs import Bookmark, DocumentRun, GraphRun, Item, TimedGraph
from dotr.program.names import duration_text
from dotr.rdf.terms import RDF_TYPE, Term, Triple, literal_parts

if TYPE_CHECKING:
    from dotr.explain.record import Record
    from dotr.explain.text import Places


DeadLetter: TypeAlias = Callable[[str], None]
"""Takes one JSON line without its end."""


class LateGraphs(Struct):
    """Owns the count of graphs that came late in one feed and were dropped. `closed`: everything up to there
    was closed before the feed began.
    """

    closed: Time | None = None
    count: int = 0
    before: int = 0
    """Of them, those that were late whatever the order of this feed."""
    behind: Time = 0
    """How far the others lay behind the latest graph, at most: the lateness (µs) that keeps them."""

    def take(self, time: Time, latest: Time | None) -> None:
        """A graph was dropped when the latest one was of `latest`."""
        self.count += 1
        if self.closed is not None and time <= self.closed:
            self.before += 1
        elif latest is not None:
            self.behind = max(self.behind, latest - time)

    def warnings(self, in_order: str, more: str = "") -> list[Diagnostic]:
        """D2301 where there were any. `in_order`: the hint on their order, with `{}` for a lateness."""
        if not self.count:
            return []
        many = "1 graph was" if self.count == 1 else f"{self.count:,} graphs were"
        notes, hint = [], "what an earlier feed closed stays closed: feed what is older first"
        if self.before:
            notes.append(f"{self.before:,} of them: the instant was closed before this feed began")
        if self.behind:
            unit = 1_000_000 if self.behind > 1_000_000 else 1  # rounded up, so that it is enough
            behind = duration_text(-(-self.behind // unit) * unit)
            notes.append(f"out of order by up to {behind}")
            lateness = behind.replace(" ", "")
            hint = in_order.format(lateness) + more
        message = f"{many} left out, for an instant that was already closed"
        return [Diagnostic("D2301", message, notes=tuple(notes), hint=hint, severity=Severity.WARNING)]


class ErrorPolicy(Struct):
    """Owns the count of refused documents and the policy for them.

    `fail` raises the first; otherwise they are counted, and written to `sink` if there is one.
    """

    fail: bool = True
    sink: DeadLetter | None = None
    count: int = 0
    first: DataError | None = None

    def take(self, error: DataError, content: bytes) -> None:
        """A document whose original bytes are `content` was refused. Raises `error` under `fail`."""
        if self.fail:
            raise error
        self.count += 1
        if self.first is None:
            self.first = error
        if self.sink is not None:
            self.sink(dead_letter(error, content))

    def set_aside(self, letters: Iterable[str]) -> None:
        """Graphs were refused at their instant, where `fail` is not the policy; a dead letter each."""
        for letter in letters:
            self.count += 1
            if self.sink is not None:
                self.sink(letter)


def dead_letter(
    error: DotrError, content: bytes | None, place: str = "", more: Mapping[str, Any] | None = None
) -> str:
    """A refused document as one JSON line: place, code, diagnostic, document or (for other bytes) base64.

    `place` is used instead of the diagnostic's; `more` goes between the diagnostic and the document, which is
    left out if it no longer exists.
    """
    first = error.diagnostics[0]
    line = {"place": place or first.place, "code": first.code, "diagnostic": str(error), **(more or {})}
    if content is not None:
        try:
            line["document"] = content.decode()
        except UnicodeDecodeError:
            line["base64"] = base64.b64encode(content).decode("ascii")
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def graphs_alone(items: Iterable[Item], refusals: ErrorPolicy) -> Iterator[TimedGraph]:
    """The graphs among items; what is refused goes to the refusals."""
    for item in items:
        if isinstance(item, TimedGraph):
            yield item
        elif item.error is not None:
            refusals.take(item.error, item.content)


Origin: TypeAlias = tuple[Time, str, int, str, int, int, str]
"""Time, file, line (0 unknown), what `start` and `end` count, start, end, hash of a whole document."""

_FULL = 256


class Lineage(Struct):
    """Owns the places of the graphs whose instants are open, and how far each file has been read.

    `watermark`: up to where instants are closed.
    """

    watermark: Callable[[], Time | None]
    _open: list[Origin] = field(default_factory=list)
    _ends: dict[str, int] = field(default_factory=dict)
    _full: int = _FULL

    def begin(self, bookmarks: Mapping[str, Bookmark]) -> None:
        """Files are read from here on."""
        for file, bookmark in bookmarks.items():
            self._ends[file] = bookmark.end if bookmark.how == "byte" else 0

    def passed(self, item: Item) -> None:
        """A document that gives no graph was read."""
        if item.how == "byte":
            self._ends[item.file] = item.end

    def note(self, graph: TimedGraph) -> None:
        """A graph is about to be taken. Once a graph: it keeps no triple and looks nothing up."""
        time, _triples, file, line, how, end, carried = graph
        if how == "byte":
            self._open.append((time, file, line, how, self._ends.get(file, 0), end, ""))
            self._ends[file] = end
        else:
            self._open.append((time, file, line, how, 0, end, carried))
        if len(self._open) > self._full:
            self._forget()

    def note_run(self, run: GraphRun) -> None:
        """As `note` for many graphs."""
        file, ends = run.file, run.ends
        starts: Iterable[int] = repeat(0)
        carried = run.carried
        if run.how == "byte":
            starts, carried = (self._ends.get(file, 0), *ends), ""
            self._ends[file] = ends[-1]
        columns = repeat(file), run.lines, repeat(run.how), starts, ends, repeat(carried)
        self._open += zip(run.times, *columns, strict=False)
        if len(self._open) > self._full:
            self._forget()

    def note_documents(self, run: DocumentRun) -> None:
        """As `note` for many graphs."""
        columns = repeat(1), repeat("document"), repeat(0), repeat(1), repeat("")
        self._open += zip(run.times, run.files, *columns, strict=False)
        if len(self._open) > self._full:
            self._forget()

    def withdraw(self, graph: TimedGraph) -> None:
        """The graph just noted came late: it is not one of its instant's."""
        if self._open and self._open[-1][:3] == (graph.time, graph.file, graph.line):
            self._open.pop()

    def settle(self, time: Time) -> None:
        """The graphs of an instant have been dealt with."""
        self._open = [origin for origin in self._open if origin[0] != time]

    def _forget(self) -> None:
        closed = self.watermark()
        if closed is not None:
            self._open = [origin for origin in self._open if origin[0] > closed]
        self._full = 2 * len(self._open) + _FULL

    def letters(
        self, time: Time, graphs: Sequence[GraphOrMessage], error: DotrError, clock: Clock
    ) -> Iterable[str]:
        """A dead letter a graph, without line ends."""
        for graph, origin in zip(graphs, self._of(time, len(graphs)), strict=True):
            place = _place(origin)
            more = json.loads(late_line(time, graph, clock))
            yield dead_letter(error, _original(origin), place, more)

    def places(self, time: Time, count: int) -> list[str]:
        """The places of the graphs of an instant, as far as they are known, in the order they came."""
        return [place for place in map(_place, self._of(time, count)) if place]

    def _of(self, time: Time, count: int) -> list[Origin]:
        """The places of the graphs of an instant; of those a snapshot brought without places, nowhere."""
        if not count:
            return []
        found = [origin for origin in self._open if origin[0] == time][-count:]
        return [(time, "", 0, "", 0, 0, "")] * (count - len(found)) + found

    def save(self) -> list[Any]:
        """The places of open instants as a JSON-able value."""
        self._forget()
        return [list(origin) for origin in self._open]

    def restore(self, saved: Sequence[Any]) -> None:
        """What `save` gave, before anything is noted."""
        self._open = [(*origin,) for origin in saved]


def with_places(error: DotrError, places: Sequence[str]) -> DotrError:
    """An error at an instant, with the places of its graphs for a note."""
    if not places:
        return error
    first, *more = error.diagnostics
    others = f" and {len(places) - 5} more" if len(places) > 5 else ""
    note = f"the graphs of this instant: {', '.join(f'`{place}`' for place in places[:5])}{others}"
    return type(error)([first._replace(notes=(*first.notes, note)), *more])


def _place(origin: Origin) -> str:
    _time, file, line, *_ = origin
    return f"{file}:{line}" if line else file


def _original(origin: Origin) -> bytes | None:
    """The bytes of a graph's document, message or line, None where they cannot be had again."""
    _time, file, _line, how, start, end, whole = origin
    if not file or not isfile(file):
        return None
    try:
        if how == "whole":
            content = read_bytes(file)
            return content if content_hash(content) == whole else None
        if how != "byte" or not start < end or is_packed(file):
            return None
        with open_document(file) as document:
            document.seek(start)
            content = document.read(end - start)
        return content.strip(b"\r\n") if len(content) == end - start else None
    except (DataError, OSError):
        return None


MOST = 64 * 1024 * 1024
"""Bytes of a document that are looked through."""


def lines_of(path: str) -> Sequence[str]:
    """The lines of a document, none where it cannot be read."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return _lines(os.path.abspath(path), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _lines(path: str, _written: int, _size: int) -> Sequence[str]:
    """The lines of a document as it was written then."""
    try:
        return read_bytes(path, MOST).decode("utf-8", "replace").splitlines()
    except (OSError, DataError):
        return ()


def place_of(triple: Triple, paths: Iterable[str]) -> str:
    """`building.ttl:41`, or "" where it is not found."""
    for path in paths:
        line = line_of(triple, lines_of(path))
        if line:
            return f"{path}:{line}"
    return ""


def place_in(triple: Triple, graph: str) -> str:
    """Where a triple of a graph of the stream stands, whose place is `file:line`, or `file, graph 17`."""
    path, _, line = graph.rpartition(":")
    if not line.isdigit():
        path, line = graph, "1"
    if path.endswith(".jelly"):  # what was read is its statements as text, one a line
        return f"{path}, line {line} as text"
    if path.endswith((".jsonl", ".parquet", ".csv", ".tsv")) or is_packed(path) or path == "-":
        return graph
    found = line_of(triple, lines_of(path), int(line))
    return f"{path}:{found}" if found else graph


def line_of(triple: Triple, lines: Sequence[str], start: int = 1) -> int:
    """The line, from 1, on which a triple ends; 0 where no line looks like it. Looks from `start` on."""
    subject, predicate, object_ = (_spelled(term) for term in triple)
    if triple[1] == RDF_TYPE:
        predicate = re.compile(rf"(?:^|\s)a(?=\s)|{predicate.pattern}")
    stage = 0
    for number in range(start, len(lines) + 1):
        line, at = lines[number - 1], 0
        found = subject.search(line)
        if found and (stage == 0 or found.start() == _indent(line)):
            stage, at = 1, found.end()
        if stage == 1 and (found := predicate.search(line, at)):
            stage, at = 2, found.end()
        if stage == 2 and object_.search(line, at):
            return number
    return 0


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _spelled(term: Term) -> re.Pattern[str]:
    """The ways in which a document may write a term."""
    if term[0] == "_":
        return re.compile(r"_:\S+|\[|\]|\(|\)")
    if term[0] == '"':
        lexical, _, _ = literal_parts(term)
        return re.compile(rf"(?<![\w.]){re.escape(lexical)}(?!\w)")
    iri = term[1:-1]
    local = re.split(r"[#/:]", iri)[-1]
    return re.compile(rf"<{re.escape(iri)}>|<[^>\s]*{re.escape(local)}>|[\w.-]*:{re.escape(local)}(?![\w-])")


def places_of(record: Record, background: Sequence[str]) -> Places:
    """Where triples of a run's record stand, looked up when it is asked for; `background`: its files."""

    @lru_cache(maxsize=64)
    def stated(time: Time, _graphs: int) -> list[tuple[frozenset[Triple], str]]:
        """What each graph of an instant states, its blank nodes as in proofs, and its place."""
        graphs = record.graphs(time)
        messages = labelled([graph.part for graph in graphs], time)
        return [
            (frozenset(message.graph or ()), graph.place)
            for message, graph in zip(messages, graphs, strict=True)
        ]

    def place(triple: Triple, time: Time | None) -> str:
        if time is None:
            return place_of(triple, background)
        graphs = record.graphs(time)
        for triples, where in stated(time, len(graphs)):
            if where and (triple in triples or len(graphs) == 1):
                return place_in(triple, where)
        return ""

    return place
