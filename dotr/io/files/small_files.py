"""Small files of one graph each, read some at a time: a folder with a file for every reading.

Place:   asked by sources.py, file by file in their order; what it does not give is read by reader.py.
Method:  the next files are read whole and parsed together (batch_parse.py). A file that is anything but a
         small document of one graph, uncompressed and without errors, is left out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dotr.errors import DataError
from dotr.io.decode.batch_parse import LONG, MANY, BatchParser, common_head
from dotr.io.decode.compression import is_packed
from dotr.io.decode.documents import Format, decode, format_of
from dotr.io.decode.message_logs import is_message_log
from dotr.io.decode.plain_graphs import PlainGraphs
from dotr.rdf.terms import Triple

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
