"""N-Quads by the line: every quad with its line and the byte behind it, so that reading can be resumed there.

Place:   under quads.py, which groups quads into graphs.
Method:  whole lines are parsed a block at a time; only a block with a bad line is gone through line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import TypeAlias

from dotr.connectors.documents import Format, Quad, decode, parse_quads
from dotr.errors import DataError, Diagnostic

_BLOCK = 1 << 18

Placed: TypeAlias = tuple[Quad, int, int]
"""A quad, its line (0 unknown), and the number of bytes up to the end of that line.

A line that cannot be read, where that is forgiven, is a quad without predicate, its object the line."""


def quad_lines(
    read: Callable[[int], bytes], name: str, line: int, offset: int, forgiving: bool
) -> Iterator[Placed]:
    """N-Quads, one quad a line, with places. Quads before an error come out before it is raised."""
    return chain.from_iterable(_line_blocks(read, name, line, offset, forgiving))


def _line_blocks(
    read: Callable[[int], bytes], name: str, line: int, offset: int, forgiving: bool
) -> Iterator[Iterator[Placed]]:
    rest = b""
    while True:
        block = read(_BLOCK)
        content = rest + block
        cut = content.rfind(b"\n") + 1 if block else len(content)
        content, rest = content[:cut], content[cut:]
        if content:
            yield placed_lines(content, name, line, offset, forgiving)
            line += content.count(b"\n")
            offset += len(content)
        if not block:
            return


def placed_lines(
    content: bytes, name: str, line: int, offset: int, forgiving: bool = False
) -> Iterator[Placed]:
    """The quads of whole N-Quads lines. Raises DataError at the first bad line, after the quads before it."""
    raw = content.split(b"\n")
    if not raw[-1]:
        raw.pop()
    ends = [offset + end + number for number, end in enumerate(accumulate(map(len, raw)), 1)]
    try:
        quads = parse_quads(decode(content, name), Format.NQUADS, name)
    except DataError:
        return _line_by_line(raw, ends, name, line, forgiving)
    numbers: Sequence[int] = range(line, line + len(raw))
    if len(quads) != len(raw):
        told = [i for i, text in enumerate(raw) if (bare := text.strip()) and bare[:1] != b"#"]
        if len(told) != len(quads):
            return _line_by_line(raw, ends, name, line, forgiving)
        numbers, ends = [line + i for i in told], [ends[i] for i in told]
    return zip(quads, numbers, ends, strict=True)


def _line_by_line(
    raw: Sequence[bytes], ends: Sequence[int], name: str, line: int, forgiving: bool
) -> Iterator[Placed]:
    """The same where a line is bad: up to it, or (`forgiving`) with it as a quad without predicate."""
    for number, (text, end) in enumerate(zip(raw, ends, strict=True), line):
        try:
            quads = parsed_line(text, name, number)
        except DataError:
            if not forgiving:
                raise
            quads = [("", "", text.decode("utf-8", "surrogateescape"), "")]
        for quad in quads:
            yield quad, number, end


def parsed_line(text: bytes, name: str, line: int) -> list[Quad]:
    """The quad of one line, if there is one. Raises DataError."""
    try:
        quads = parse_quads(decode(text, name), Format.NQUADS, name)
    except DataError as error:
        raise _moved(error, name, line) from None
    if len(quads) > 1:
        raise DataError(
            Diagnostic(
                "D2001",
                f"`{name}` has several statements in one line",
                place=f"{name}:{line}",
                hint="part them",
            )
        )
    return quads


def _moved(error: DataError, name: str, line: int) -> DataError:
    """The same error, its place being line 1 of a text that is line `line` of the file."""
    first = error.diagnostics[0]
    column = first.place.rpartition(":")[2] if first.place.startswith(f"{name}:1:") else ""
    return DataError(replace(first, place=f"{name}:{line}:{column}".rstrip(":")))
