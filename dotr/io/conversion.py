"""Graphs written as they are: the formats that `dotr convert` writes.

Place:   called by cli/convert.py with graphs in time order; what is written here is a source again.
Method:  blank nodes are numbered per graph in order of appearance (parsers draw names for `[]` at random),
         and where graphs share a document their graph's number goes into the name, so that no other tool
         joins them. Graph names are `urn:dotr:graph:` and the graph's number. A message of a log is a named
         graph and its stamp. Of a message with other parts each part is a graph of its own; in quads they are
         messages of one stamp, which mean the same.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from dotr.errors import UsageError
from dotr.events import DELETE, DELETION, INSERT, INSERTION, Clock, GraphOrMessage, Message, Time
from dotr.io.decode.documents import plain_name
from dotr.io.outputs import StreamOutput
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, RDF_TYPE, Term, Triple

if TYPE_CHECKING:
    from dotr.io.decode.jelly import JellyFrames
    from dotr.io.decode.parquet import ArchiveWriter

Writer: TypeAlias = Callable[[Time, GraphOrMessage, int], str]
"""(time, what came, its number from 1) → its text."""

_NAME = "urn:dotr:graph:"


def numbered(triples: list[Triple], prefix: str = "b") -> list[Triple]:
    """The triples with blank nodes called `_:<prefix>0`, `_:<prefix>1`, … as they appear."""
    names: dict[Term, Term] = {}

    def renamed(term: Term) -> Term:
        if term[0] != "_":
            return term
        if term not in names:
            names[term] = f"_:{prefix}{len(names)}"
        return names[term]

    if not any(s[0] == "_" or o[0] == "_" for s, _p, o in triples):
        return triples
    return [(renamed(s), p, renamed(o)) for s, p, o in triples]


def numbered_part(part: GraphOrMessage) -> GraphOrMessage:
    """As `numbered`, every part of a message by itself."""
    if not isinstance(part, Message):
        return numbered(part)
    return Message(**{kind: numbered(triples) for kind, triples in parts_of(part)})


def _ntriples(triples: list[Triple]) -> str:
    return "".join([f"{s} {p} {o} .\n" for s, p, o in triples])


def parts_of(part: GraphOrMessage) -> list[tuple[str, list[Triple]]]:
    """(graph, insert or delete, its triples) of each part that there is."""
    parts = part._asdict() if isinstance(part, Message) else {"graph": part}
    return [(kind, triples) for kind, triples in parts.items() if triples is not None]


def _json_line(clock: Clock) -> Writer:
    def write(time: Time, part: GraphOrMessage, _number: int) -> str:
        line: dict[str, str | int] = {"time": int(clock.text(time)) if clock.integer else clock.text(time)}
        line |= {kind: _ntriples(numbered(triples)) for kind, triples in parts_of(part)}
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"

    return write


_CLASSES = {"insert": INSERTION, "delete": DELETION}


def _stamped(part: GraphOrMessage, stamp: Term, number: int) -> Iterator[tuple[Term, str, list[Triple]]]:
    """(name, what the default graph says about it, triples) of each graph that a message makes."""
    for kind, triples in parts_of(part):
        name = f"<{_NAME}{number}>" if kind == "graph" else f"<{_NAME}{number}:{kind}>"
        said = f"{name} {PROV_GENERATED_AT_TIME} {stamp} .\n"
        if kind in _CLASSES:
            said += f"{name} {RDF_TYPE} {_CLASSES[kind]} .\n"
        yield name, said, numbered(triples, f"g{number}{kind[0] if kind != 'graph' else ''}b")


def _nquads(clock: Clock) -> Writer:
    def write(time: Time, part: GraphOrMessage, number: int) -> str:
        return "".join(
            said + "".join([f"{s} {p} {o} {name} .\n" for s, p, o in triples])
            for name, said, triples in _stamped(part, clock.term(time), number)
        )

    return write


def _trig(clock: Clock) -> Writer:
    def write(time: Time, part: GraphOrMessage, number: int) -> str:
        return "".join(
            said + _block(name, triples) for name, said, triples in _stamped(part, clock.term(time), number)
        )

    return write


def _block(name: Term, triples: list[Triple]) -> str:
    return f"{name} {{\n{''.join([f'  {s} {p} {o} .' + chr(10) for s, p, o in triples])}}}\n"


def _message(clock: Clock) -> Writer:
    names = {"graph": "", "insert": INSERT, "delete": DELETE}

    def write(time: Time, part: GraphOrMessage, number: int) -> str:
        blocks = [
            (names[kind] or f"<{_NAME}{number}>", numbered(triples, "b" if kind == "graph" else kind))
            for kind, triples in parts_of(part)
        ]
        head = "MESSAGE\n" if number > 1 else 'VERSION "1.2-messages"\n'
        stamp = f"{PROV_GENERATED_AT_TIME} {clock.term(time)} .\n"  # of each: an empty block says nothing
        return head + "".join(f"{name} {stamp}{_block(name, triples)}" for name, triples in blocks)

    return write


WRITERS: Mapping[str, Callable[[Clock], Writer]] = {
    ".jsonl": _json_line,
    ".nq": _nquads,
    ".trig": _trig,
    ".ttl": _message,
}
"""By the end of a file's name; a `.ttl` with many graphs is an RDF Message Log."""

JELLY = ".jelly"
PARQUET = ".parquet"

TARGETS = (PARQUET, *WRITERS, JELLY)


def _archive(path: str, clock: Clock) -> ArchiveWriter:
    from dotr.io.decode.parquet import ArchiveWriter  # noqa: PLC0415  # Arrow may not be installed

    return ArchiveWriter(path, clock)


class Conversion:
    """Owns the writing of one converted file, whose name determines the format; `.gz` compresses text
    formats.
    """

    def __init__(self, path: str, part: str, output: StreamOutput) -> None:
        """`part` is where `output` writes until it is finished. Raises UsageError D4140 for another name."""
        self._suffix = PurePath(plain_name(path)).suffix.lower()
        packed = path.lower().endswith(".gz")
        if self._suffix not in TARGETS or (packed and self._suffix in (PARQUET, JELLY)):
            raise UsageError.of(
                "D4140",
                f"the format to write cannot be inferred from the name `{path}`",
                hint=f"a file's name ends in one of {' '.join(TARGETS)}, of text formats also with .gz; "
                "that of a folder of Parquet files has no ending, or a slash",
            )
        self._part = part
        self._output = output
        # without the time of day and a name in its head, the same graphs are the same bytes
        self._gzip = gzip.GzipFile("", "wb", 6, _Packed(output), mtime=0) if packed else None
        self._write: Writer | None = None
        self._frames: JellyFrames | None = None
        if self._suffix == JELLY:
            from dotr.io.decode.jelly import JellyFrames  # noqa: PLC0415  # an extra

            self._frames = JellyFrames()
        self._archive: ArchiveWriter | None = None
        self.count = 0

    def add(self, time: Time, part: GraphOrMessage, clock: Clock) -> None:
        """Append one graph or message."""
        self.count += 1
        if self._suffix == PARQUET:
            if self._archive is None:
                self._archive = _archive(self._part, clock)
            self._archive.add(time, numbered_part(part))
            return
        if self._write is None:
            self._write = _nquads(clock) if self._frames is not None else WRITERS[self._suffix](clock)
        self._put(self._write(time, part, self.count))

    def close(self) -> None:
        """Complete the file; one without graphs is an empty log."""
        if self._archive is not None:
            self._archive.close()
        elif self._suffix == PARQUET:
            _archive(self._part, Clock()).close()
        elif self._frames is not None and not self.count:
            self._put("")
        elif self._suffix == ".ttl" and not self.count:
            self._put('VERSION "1.2-messages"\n')
        if self._gzip is not None:
            self._gzip.close()

    def _put(self, text: str) -> None:
        if self._frames is not None:
            self._output.write_bytes(self._frames.frame(text))
        elif self._gzip is not None:
            self._gzip.write(text.encode())
        else:
            self._output.write(text)


class _Packed(io.RawIOBase):
    """What gzip writes to: the output."""

    def __init__(self, output: StreamOutput) -> None:
        self._output = output

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        taken = bytes(content)
        self._output.write_bytes(taken)
        return len(taken)
