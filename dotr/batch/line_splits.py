"""Where a large file of lines can be split for several tasks.

Place:   used by log_splits.py, on the driver; tasks read between the cuts with the usual readers.
Method:  JSON lines are cut at any line. N-Quads are cut between graphs: adjacent lines belong together if
         they are quads of one graph or, in the default graph, its stamp. A file is cut only if each graph at
         its beginning is contiguous. A table is cut at any line if every line is a row: the whole table is
         searched for cells with line ends.
Why not: cut at any line and repair in a shuffle: that would shuffle graphs, the largest data.
"""

from __future__ import annotations

import os
import re
from typing import IO, TYPE_CHECKING

from msgspec import Struct

from dotr.errors import DataError
from dotr.io.decode.compression import is_packed
from dotr.io.decode.documents import Format, format_of
from dotr.io.tables.csv_rows import LONGEST_ROW, CsvRows, Dialect, header_text, one_row_a_line

if TYPE_CHECKING:
    from dotr.io.tables.mapping import TableMapping

SHAPE = 1 << 20
"""How many bytes at the beginning of a file are inspected."""

_REACH = 1 << 24
_BLOCK = 1 << 22
_QUAD = re.compile(
    rb'[ \t]*(<[^<>"\s]*>|_:[^\s<]+)[ \t]*<[^<>"\s]*>[ \t]*'
    rb'(?:<[^<>"\s]*>|_:[^\s<]+|"(?:[^"\\\n]|\\.)*"(?:@[\w-]+|\^\^<[^<>"\s]*>)?)'
    rb"[ \t]*(<[^<>\"\s]*>|_:[^\s<]+)?[ \t]*\."
)


COMPRESSED = "a compressed file is read from its beginning"
_LINE_END = "a cell has a line end, so it is unknown where rows begin"
_SCATTERED = "quads of one graph are in several places of it"


class Cuts(Struct, frozen=True):
    """Byte offsets, ascending, between 0 and a file's size. `why`: why one task reads a file that is large
    enough to be cut; "" if it is cut, small, or unreadable.
    """

    at: tuple[int, ...] = ()
    why: str = ""


def cuts(path: str, size: int, piece: int) -> Cuts:
    """Where to cut a file of lines into pieces of about `piece` bytes."""
    format_ = format_of(path)
    if size < 2 * piece:
        return Cuts()
    if is_packed(path):
        return Cuts(why=COMPRESSED)
    if format_ not in (Format.JSONLINES, Format.NQUADS):
        name = "what it is" if format_ is None else format_.value
        return Cuts(why=f"{name} is not cut; `dotr convert` it to N-Quads or Parquet, which are")
    quads = format_ is Format.NQUADS
    try:
        with open(path, "rb") as file:
            if quads and not _in_one_piece(file.read(SHAPE)):
                return Cuts(why=_SCATTERED)
            found: list[int] = []
            for number in range(1, size // piece):
                cut = _next_cut(file, number * piece, quads)
                if cut is not None and cut < size and (not found or cut > found[-1]):
                    found.append(cut)
            return Cuts(tuple(found))
    except (OSError, DataError):
        return Cuts()  # the reader reports the error


def table_cuts(path: str, size: int, piece: int, mapping: TableMapping) -> Cuts:
    """`cuts` for a table; none for Parquet and Arrow, nor for CSV in which a cell has a line end, since row
    starts then depend on everything before. Reads the file, as rows if it has quotes.
    """
    form = mapping.format_of(path)
    if size < 2 * piece:
        return Cuts()
    if form in ("parquet", "arrow"):
        return Cuts(why="tables of Parquet and Arrow are not cut")
    if form == "json" or mapping.rows is not None:
        return Cuts(why="documents of JSON, and lines of several rows, are not cut")
    if is_packed(path):
        return Cuts(why=COMPRESSED)
    try:
        with open(path, "rb") as file:
            if form != "jsonl" and mapping.quoted and not _rows_are_lines(file, _dialect(path, mapping)):
                return Cuts(why=_LINE_END)
            found = [_next_cut(file, number * piece, quads=False) for number in range(1, size // piece)]
        return Cuts(tuple(sorted({cut for cut in found if cut is not None and cut < size})))
    except (OSError, DataError):
        return Cuts()  # the reader reports the error


def table_header(path: str, mapping: TableMapping) -> str:
    """What a bookmark after the header of a CSV file carries: its columns. "" if not needed."""
    if mapping.columns or mapping.format_of(path) in ("jsonl", "json"):
        return ""
    rows = CsvRows(_dialect(path, mapping))
    with open(path, "rb") as file:
        for line in file:
            for row in rows.feed(line):
                return header_text(row)
    return ""


def _dialect(path: str, mapping: TableMapping) -> Dialect:
    usual = "\t" if mapping.format_of(path) == "tsv" else ","
    return Dialect(mapping.delimiter or usual, mapping.quoted, mapping.encoding)


def _rows_are_lines(file: IO[bytes], dialect: Dialect) -> bool:
    """Whether no cell has a line end. Stops at the first that has one."""
    left = b""
    while block := file.read(_BLOCK):
        block = left + block
        cut = block.rfind(b"\n") + 1
        left = block[cut:]
        if b'"' in block[:cut] and not one_row_a_line(block[:cut], dialect):
            return False
        if len(left) > LONGEST_ROW:
            return False
    return b'"' not in left or one_row_a_line(left, dialect)


def graph_of(line: bytes) -> bytes | None:
    """The graph of a line of N-Quads: its name or, in the default graph, its subject. None: no quad."""
    quad = _QUAD.match(line)
    return None if quad is None else quad[2] or quad[1]


def _in_one_piece(head: bytes) -> bool:
    """Whether every graph of these lines is contiguous. An excerpt's last line does not count."""
    seen: set[bytes] = set()
    last: bytes | None = None
    for line in head.split(b"\n")[:-1]:
        graph = graph_of(line)
        if graph is None or graph == last:
            continue
        if graph in seen:
            return False
        seen.add(graph)
        last = graph
    return last is not None


def _next_cut(file: IO[bytes], offset: int, quads: bool) -> int | None:
    """The first place after `offset` where a line (for quads: a graph) begins; None if none is near."""
    file.seek(offset)
    file.readline()
    if not quads:
        return file.tell()
    last: bytes | None = None
    while (at := file.tell()) < offset + _REACH:
        line = file.readline()
        if not line:
            return None
        graph = graph_of(line)
        if graph is None:
            continue
        if last is not None and graph != last:
            return at
        last = graph
    return None


def file_size(path: str) -> int:
    """Bytes of a file, 0 if unknown."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
