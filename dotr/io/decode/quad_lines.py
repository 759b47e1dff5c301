"""N-Quads by the line: every quad with its line and the byte behind it, so that reading can be resumed there.

Place:   under quads.py, which groups quads into graphs.
Method:  whole lines are parsed a block at a time; only a block with a bad line is gone through line by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import TypeAlias

from msgspec.structs import replace

from dotr.errors import DataError
from dotr.io.decode.documents import MAX_DOCUMENT, Format, decode, too_large
from dotr.io.decode.line_blocks import Read, line_blocks
from dotr.io.decode.ntriples import Run
from dotr.io.decode.parse_choices import STRICT, ParseChoices
from dotr.io.decode.parsing import Quad, parse_quads, parse_runs
from dotr.io.decode.quiet_bytes import is_quiet, says_nothing
from dotr.rdf.terms import Term, Triple

_BLOCK = 1 << 18
_MOST_LOST = 1 << 16

Placed: TypeAlias = tuple[Quad, int, int]
"""A quad, its line (0 unknown), and the number of bytes up to the end of that line.

A line that cannot be read, where that is forgiven, is a quad without predicate, its object the line."""

PlacedRun: TypeAlias = tuple[Term, list[Triple], int, int]
"""Quads that stand together (graph name, triples), the line of the first, the bytes up to behind the last."""


def line_runs(
    read: Read,
    name: str,
    line: int,
    offset: int,
    forgiving: bool,
    limit: int = MAX_DOCUMENT,
    choices: ParseChoices = STRICT,
) -> Iterator[PlacedRun]:
    """N-Quads, one quad a line, with places. Quads before an error come out before it is raised.

    Raises DataError D2006 for a line of more than `limit` bytes, D2023 where too many cannot be read.
    """
    runs = chain.from_iterable(_line_blocks(read, name, line, offset, forgiving, limit, choices))
    return _some_readable(runs, name) if forgiving else runs


def _some_readable(runs: Iterator[PlacedRun], name: str) -> Iterator[PlacedRun]:
    """Runs among which not too many lines in a row are unreadable: these are held until a graph comes."""
    lost = 0
    for run in runs:
        lost = 0 if run[1][0][1] else lost + 1
        if lost > _MOST_LOST:
            hint = "check how the file is written"
            raise says_nothing(f"{name}:{run[2]}", _MOST_LOST, "lines that cannot be read", hint)
        yield run


def _line_blocks(
    read: Read,
    name: str,
    line: int,
    offset: int,
    forgiving: bool,
    limit: int,
    choices: ParseChoices,
) -> Iterator[Iterator[PlacedRun]]:
    def too_long() -> DataError:
        return too_large(f"{name}:{line}", limit)

    for block in line_blocks(read, _BLOCK, b"", limit, too_long):
        if not is_quiet(block):
            yield _placed_runs(block, name, line, offset, forgiving, choices)
        line += block.count(b"\n")
        offset += len(block)


def placed_lines(
    content: bytes, name: str, line: int, offset: int, forgiving: bool = False
) -> Iterator[Placed]:
    """The quads of whole N-Quads lines. Raises DataError at the first bad line, after the quads before it."""
    lines = _NumberedLines(content, line, offset)
    runs = lines.runs(name)
    if runs is None:
        return lines.one_by_one(name, forgiving)
    quads = [(s, p, o, g) for g, triples in runs for s, p, o in triples]
    return ((quad, *lines.place(number)) for number, quad in enumerate(quads))


def _placed_runs(
    content: bytes, name: str, line: int, offset: int, forgiving: bool, choices: ParseChoices
) -> Iterator[PlacedRun]:
    lines = _NumberedLines(content, line, offset, choices)
    runs = lines.runs(name)
    if runs is None:
        for (s, p, o, g), number, end in lines.one_by_one(name, forgiving):
            yield g, [(s, p, o)], number, end
        return
    number = 0
    rows, ends = lines.rows, lines.ends
    for graph, triples in runs:
        first = rows[number]
        number += len(triples)
        last = rows[number - 1]
        yield graph, triples, line + first, offset + ends[last]


class _NumberedLines:
    """Owns whole lines of N-Quads, the first being line `line` of a file, at its byte `offset`."""

    def __init__(self, content: bytes, line: int, offset: int, choices: ParseChoices = STRICT) -> None:
        self._content, self._line, self._offset, self._choices = content, line, offset, choices
        self._raw = content.split(b"\n")
        open_ended = bool(self._raw[-1])
        if not open_ended:
            self._raw.pop()
        self.ends = list(accumulate([len(text) + 1 for text in self._raw]))
        """The bytes up to behind each line."""
        if open_ended:
            self.ends[-1] = len(content)
        self.rows: Sequence[int] = range(len(self._raw))
        """The lines that have a quad, by its number; both count from 0."""

    def runs(self, name: str) -> list[Run] | None:
        """The quads of all lines, None if they must be looked at one by one."""
        if self._choices.rdf12 == "plain" and b"<<(" in self._content:
            return None  # not every line gives a quad
        try:
            runs = parse_runs(decode(self._content, name), Format.NQUADS, name, choices=self._choices)
        except DataError:
            return None
        count = sum([len(triples) for _graph, triples in runs])
        if count != len(self._raw):
            self.rows = [i for i, text in enumerate(self._raw) if (bare := text.strip()) and bare[:1] != b"#"]
        return runs if count == len(self.rows) else None

    def place(self, number: int) -> tuple[int, int]:
        """The line of a quad, counted from 0, and the bytes up to behind it."""
        row = self.rows[number]
        return self._line + row, self._offset + self.ends[row]

    def one_by_one(self, name: str, forgiving: bool) -> Iterator[Placed]:
        """The same where a line is bad: up to it, or (`forgiving`) with it as a quad without predicate."""
        for row, text in enumerate(self._raw):
            number = self._line + row
            try:
                quads = parsed_line(text, name, number, self._choices)
            except DataError:
                if not forgiving:
                    raise
                quads = [("", "", text.decode("utf-8", "surrogateescape"), "")]
            for quad in quads:
                yield quad, number, self._offset + self.ends[row]


def parsed_line(text: bytes, name: str, line: int, choices: ParseChoices = STRICT) -> list[Quad]:
    """The quad of one line, if there is one. Raises DataError."""
    try:
        quads = parse_quads(decode(text, name), Format.NQUADS, name, choices=choices)
    except DataError as error:
        raise _moved(error, name, line) from None
    if len(quads) > 1:
        raise DataError.of(
            "D2001", f"`{name}` has several statements in one line", place=f"{name}:{line}", hint="part them"
        )
    return quads


def _moved(error: DataError, name: str, line: int) -> DataError:
    """The same error, its place being line 1 of a text that is line `line` of the file."""
    first = error.diagnostics[0]
    column = first.place.rpartition(":")[2] if first.place.startswith(f"{name}:1:") else ""
    return DataError(replace(first, place=f"{name}:{line}:{column}".rstrip(":")))
