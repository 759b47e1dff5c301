"""Where a large file of lines can be cut, so that tasks share it.

Place:   reading.py, on the driver; tasks read between the cuts with the usual readers.
Method:  JSON lines are cut at any line. N-Quads are cut where one graph ends and the next begins:
         neighbouring lines belong together when they are about one graph, as its quads or, in the default
         graph, as its stamp. Only a file whose beginning has its graphs in one piece each is cut at all.
Why not: cut at any line and mend in a shuffle. Graphs would be the largest thing shuffled.
"""

from __future__ import annotations

import os
import re
from typing import IO

from dotr.errors import DataError
from dotr.io.decode.compression import is_packed
from dotr.io.decode.documents import Format, format_of

SHAPE = 1 << 20
"""Bytes at the beginning of a file that show how it is written."""

_REACH = 1 << 24
_QUAD = re.compile(
    rb'[ \t]*(<[^<>"\s]*>|_:[^\s<]+)[ \t]*<[^<>"\s]*>[ \t]*'
    rb'(?:<[^<>"\s]*>|_:[^\s<]+|"(?:[^"\\\n]|\\.)*"(?:@[\w-]+|\^\^<[^<>"\s]*>)?)'
    rb"[ \t]*(<[^<>\"\s]*>|_:[^\s<]+)?[ \t]*\."
)


def cuts(path: str, size: int, piece: int) -> list[int]:
    """Byte offsets, ascending, between 0 and the file's size, about `piece` bytes apart; [] if it is not to
    be cut.
    """
    format_ = format_of(path)
    if size < 2 * piece or is_packed(path) or format_ not in (Format.JSONLINES, Format.NQUADS):
        return []
    quads = format_ is Format.NQUADS
    try:
        with open(path, "rb") as file:
            if quads and not _in_one_piece(file.read(SHAPE)):
                return []
            found: list[int] = []
            for number in range(1, size // piece):
                cut = _next_cut(file, number * piece, quads)
                if cut is not None and cut < size and (not found or cut > found[-1]):
                    found.append(cut)
            return found
    except (OSError, DataError):
        return []  # whoever reads it tells what is wrong


def graph_of(line: bytes) -> bytes | None:
    """Which graph a line of N-Quads is about: its name or, in the default graph, its subject. None: no
    quad.
    """
    quad = _QUAD.match(line)
    return None if quad is None else quad[2] or quad[1]


def _in_one_piece(head: bytes) -> bool:
    """Whether no graph of these lines stands in two places. An excerpt's last line does not count."""
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
    """The first place behind `offset` where a line begins and, of quads, a graph; None within reach."""
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
    """Bytes of a file, 0 where nobody can tell."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
