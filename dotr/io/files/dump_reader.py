"""Dumps as graphs and marks: `--split CLASS-or-PROPERTY`.

Place:   reader.py hands documents to it; io/dumps/ takes them apart. What it gives comes in the order of
         time, whatever the order of the dump, so feeding counts graphs.
Method:  triples are streamed into SubjectGraphs; every graph gets its time by the extractor (the name of the
         file is not asked), and is sorted by it on disk, too.
Bad input: D2410 nothing there to split by · what parsers and times say.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

from msgspec import Struct

from dotr.errors import DataError
from dotr.events import Time
from dotr.io.decode.documents import Format, Readable, decode, read_some, too_large
from dotr.io.decode.parsing import parse_runs, stream_runs
from dotr.io.dumps.subject_graphs import SubjectGraphs
from dotr.io.error_policy import ErrorPolicy
from dotr.io.graphs import Bookmark, Item, Mark, SourceOptions, TimedGraph
from dotr.io.timestamps import TimestampExtractor
from dotr.lang.grammar.base import WELL_KNOWN
from dotr.rdf.terms import Term, Triple

WHOLE = (Format.RDFXML, Format.JSONLD)
"""Formats whose documents are read whole."""


@dataclass(slots=True)
class DumpReader:
    """Owns the taking apart of one dump. `name`: the file as messages call it."""

    name: str
    options: SourceOptions
    extractor: TimestampExtractor
    refusals: ErrorPolicy
    bookmark: Bookmark
    _last: Time | None = field(default=None, init=False)

    def items(self, file: Readable, format_: Format) -> Iterator[Item]:
        """Its graphs in time order, refused ones first, then the mark of the end. Raises DataError."""
        skip = self.bookmark.end if self.bookmark.how == "graph" else 0
        number = 0
        counted = _CountedBytes(file)
        with tempfile.TemporaryDirectory(prefix="dotr-split-") as folder:
            try:
                with closing(self._parts(folder, counted, format_)) as parts:
                    self._keep(parts)
                    for number, (time, root, triples) in enumerate(parts.by_time(), 1):
                        item = self._item(time, root, triples, number)
                        if number > skip:
                            yield item
            except DataError as error:
                if self.refusals.fail:
                    raise
                yield Mark(self._last, self.name, "whole", counted.count, "", error, b"")
                return
        yield Mark(self._last, self.name, "graph", number, size=counted.count)

    def _parts(self, folder: str, file: _CountedBytes, format_: Format) -> SubjectGraphs:
        options = self.options
        parts = SubjectGraphs(folder, options.split, options.shared, options.split_memory)
        if format_ in WHOLE:
            content = read_some(file, options.max_document + 1, self.name)
            while len(content) <= options.max_document and (more := read_some(file, 1 << 20, self.name)):
                content += more
            if len(content) > options.max_document:
                raise too_large(self.name, options.max_document)
            runs = iter(
                parse_runs(decode(content, self.name), format_, self.name, options.base, options.choices)
            )
        else:
            runs = stream_runs(file, format_, self.name, options.base, choices=options.choices)
        for _graph, triples in runs:
            parts.add(triples)
        return parts

    def _keep(self, parts: SubjectGraphs) -> None:
        """Find the time of every graph; none for those in error."""
        number = 0
        for number, (root, triples) in enumerate(parts.graphs(), 1):
            time: Time | None = None
            try:
                time = self._time(root, triples)
            except DataError:
                if self.refusals.fail:
                    raise
            parts.keep(time, number, root, triples)
        if not number:
            raise self._nothing(parts)
        for what, count in (("all", parts.beside), ("shared", parts.beside_shared)):
            self.extractor.beside[what] = self.extractor.beside.get(what, 0) + count

    def _time(self, root: Term, triples: list[Triple]) -> Time:
        return self.extractor.time(triples, "", f"{self.name}, {root}")

    def _item(self, time: Time | None, root: Term, triples: list[Triple], number: int) -> Item:
        if time is None:
            content = "".join(f"{s} {p} {o} .\n" for s, p, o in triples).encode()
            try:
                time = self._time(root, triples)
            except DataError as error:
                return Mark(None, self.name, "graph", number, "", error, content)
        self._last = time
        return TimedGraph(time, triples, self.name, 0, "graph", number)

    def _nothing(self, parts: SubjectGraphs) -> DataError:
        wanted = short(self.options.split)
        classes = sorted(parts.classes, key=lambda one: (-parts.classes[one], one))[:5]
        listed = ", ".join(f"{short(one)} ({parts.classes[one]:,})" for one in classes)
        return DataError.of(
            "D2410",
            f"nothing in `{self.name}` is of the class {wanted} or has that property",
            place=self.name,
            label=f"it has {listed}" if listed else "it has no classes",
            hint=f"--split {short(classes[0])}" if classes else "--split takes a property, too",
        )


class _CountedBytes(Struct):
    """Owns the count of bytes read of a file."""

    file: Readable
    count: int = 0

    def read(self, size: int = -1, /) -> bytes:
        part = self.file.read(size)
        self.count += len(part)
        return part


def short(term: Term) -> str:
    """An IRI as `--split` takes it: with a prefix that everybody knows, else in full."""
    iri = term[1:-1]
    return next((f"{p}:{iri[len(ns) :]}" for p, ns in WELL_KNOWN.items() if iri.startswith(ns)), iri)
