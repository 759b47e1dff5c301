"""JSON lines as a stream: `{"time": 12, "graph": "<Turtle>"}`, one message a line.

Place:   called by sources.py with an open file. What events.py writes as JSON lines is such a stream:
         other keys than `time` and the parts `graph`, `insert` and `delete` are not looked at.
Bad input: D2014 a line that is no such object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from sys import int_info
from typing import NamedTuple, TypeAlias

from msgspec import UNSET, MsgspecError, Struct, UnsetType
from msgspec.json import Decoder as JsonDecoder

from dotr.errors import DataError
from dotr.events import GraphOrMessage, message_of
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    Readable,
    decode,
    line_blocks,
    read_some,
    too_large,
)
from dotr.io.decode.limits import is_quiet, quiet_limit, says_nothing
from dotr.io.decode.plain import MANY, BatchParser, common_head
from dotr.io.decode.rdf import STRICT, ParseChoices, parse_triples
from dotr.rdf.terms import Triple

_BLOCK = 1 << 18

Said: TypeAlias = str | int | None
"""The time that a line says, as it says it; None if it says none."""


class PartTexts(NamedTuple):
    """The parts of a line that says more than what graph came, each as Turtle; None where it has none."""

    graph: str | None
    insert: str | None
    delete: str | None


class Line(NamedTuple):
    """One line of the file: its bytes, its number from 1, and the number of bytes up to its end."""

    content: bytes
    number: int
    end: int
    complete: bool = True
    """Whether the line has its end; the last one of a file that is being written may lack it."""


class LineBatch(NamedTuple):
    """Lines that are in hand at a time, none of them blank: see Line."""

    contents: list[bytes]
    numbers: Sequence[int]
    ends: Sequence[int]
    complete: bool = True

    def lines(self) -> list[Line]:
        """Each by itself."""
        rows = zip(self.contents, self.numbers, self.ends, strict=True)
        return [Line(content, number, end, self.complete) for content, number, end in rows]


def line_batches(
    file: Readable,
    name: str,
    limit: int = MAX_DOCUMENT,
    head: bytes = b"",
    line: int = 1,
    offset: int = 0,
    comments: bool = False,
) -> Iterator[LineBatch]:
    """The lines of a file that are not blank, nor with `comments` begin with `#`, at most MANY at a time; a
    line without its end comes alone. Bounded memory: raises DataError D2006 for an endless one, D2023 where
    too many bytes are such lines.
    """
    blank, most = 0, quiet_limit(limit)
    said = _says if comments else bytes.strip
    quiet = is_quiet if comments else bytes.isspace
    blocks = line_blocks(
        lambda size: read_some(file, size, name),
        _BLOCK,
        head,
        limit,
        lambda: too_large(f"{name}:{line}", limit),
    )
    for block in blocks:
        if quiet(block):
            line += block.count(b"\n")
            offset += len(block)
            blank += len(block)
            if blank > most:
                raise says_nothing(f"{name}:{line}", most)
            continue
        blank = 0
        *parts, rest = block.split(b"\n")
        numbers: Sequence[int] = range(line, line + len(parts))
        ends = list(accumulate([len(part) + 1 for part in parts], initial=offset))
        line, offset = line + len(parts), ends.pop()
        ends = [*ends[1:], offset] if parts else []
        if not all(map(said, parts)):
            kept = [i for i, part in enumerate(parts) if said(part)]
            parts, numbers, ends = (
                [parts[i] for i in kept],
                [numbers[i] for i in kept],
                [ends[i] for i in kept],
            )
        for start in range(0, len(parts), MANY):
            some = slice(start, start + MANY)
            yield LineBatch(parts[some], numbers[some], ends[some])
        if said(rest):
            yield LineBatch([rest], [line], [offset + len(rest)], complete=False)


def _says(line: bytes) -> bool:
    bare = line.strip()
    return bare[:1] not in (b"", b"#")


def raw_lines(
    file: Readable,
    name: str,
    limit: int = MAX_DOCUMENT,
    head: bytes = b"",
    line: int = 1,
    offset: int = 0,
    comments: bool = False,
) -> Iterator[list[Line]]:
    """As `line_batches`, each line by itself."""
    return map(LineBatch.lines, line_batches(file, name, limit, head, line, offset, comments))


@dataclass(slots=True)
class Lines:
    """Owns the parsing of the lines of the file `name`, many at once where that is the same as one by one."""

    name: str
    base: str | None = STREAM_BASE
    choices: ParseChoices = STRICT
    _together: BatchParser = field(init=False)

    def __post_init__(self) -> None:
        self._together = BatchParser(self.base)

    def batch(self, batch: LineBatch) -> tuple[LineBatch, tuple[list[list[Triple]], list[Said]] | None]:
        """Lines, with their `graphs`."""
        return batch, self.graphs(batch.contents)

    def graphs(self, contents: Sequence[bytes]) -> tuple[list[list[Triple]], list[Said]] | None:
        """What `parse` finds where every line says a graph, in two lists; None where one does not, or may be
        wrong: then `parse` reports it.
        """
        said = _graph_lines(contents) if len(contents) > 1 else None
        graphs = None if said is None else self._many([line.graph for line in said])
        return None if said is None or graphs is None else (graphs, [line.time for line in said])

    def parse(self, lines: Sequence[Line]) -> list[tuple[GraphOrMessage, Said] | DataError]:
        """Of each line what came and the time it says, or what is wrong with it."""
        said: list[tuple[str | PartTexts, Said] | DataError] = []
        for line in lines:
            try:
                said.append(_said(line, f"{self.name}:{line.number}"))
            except DataError as error:
                said.append(error)
        graphs = self._many([one[0] for one in said if isinstance(one, tuple)])
        if graphs is None:
            return [self._alone(one, line) for one, line in zip(said, lines, strict=True)]
        many = iter(graphs)
        return [(next(many), one[1]) if isinstance(one, tuple) else one for one in said]

    def _many(self, texts: Sequence[str | PartTexts]) -> list[list[Triple]] | None:
        graphs = [text for text in texts if type(text) is str]
        if len(texts) < 2 or len(graphs) < len(texts):
            return None
        head = common_head(graphs)
        return self._together.parse([text[len(head) :] for text in graphs], head)

    def _alone(
        self, said: tuple[str | PartTexts, Said] | DataError, line: Line
    ) -> tuple[GraphOrMessage, Said] | DataError:
        if isinstance(said, DataError):
            return said
        place = f"{self.name}:{line.number}"
        try:
            if isinstance(said[0], str):
                return self._triples(said[0], place), said[1]
            parts = [
                None if text is None else self._triples(text, f"{place}, {name}")
                for name, text in said[0]._asdict().items()
            ]
            return message_of(parts[0], parts[1], parts[2], place), said[1]
        except DataError as error:
            return error

    def _triples(self, text: str, place: str) -> list[Triple]:
        return parse_triples(text, Format.TURTLE, place, self.base, choices=self.choices)


def _said(line: Line, place: str) -> tuple[str | PartTexts, Said]:
    """The text of a line's graph, or of its parts, and the time it says. Raises DataError."""
    value = _loaded(decode(line.content, place), place)
    if not isinstance(value, dict):
        raise _no_object(place, "no object")
    text: str | PartTexts | None = value.get("graph")
    if "insert" in value or "delete" in value:
        text = PartTexts(value.get("graph"), value.get("insert"), value.get("delete"))
        if not all(part is None or isinstance(part, str) for part in text):
            raise _no_object(place, "a part that is not a string")
    elif not isinstance(text, str):
        raise _no_object(place, "no string `graph`, `insert` or `delete`")
    time = value.get("time")
    if time is not None and type(time) is not int and not (isinstance(time, str) and time.isascii()):
        raise DataError.of(
            "D2105",
            "the time of this line is not a timestamp",
            place=place,
            label=json.dumps(time)[:100],
            hint='write "time": 12, or "time": "2026-01-01T08:00:12Z"',
        )
    return text, time


_value = json.JSONDecoder().raw_decode  # json.loads looks for blanks with two patterns


class _GraphLine(Struct, gc=False):
    """What a line says that says a graph, and neither inserts nor deletes."""

    graph: str
    time: int | str | None = None
    insert: UnsetType = UNSET
    delete: UnsetType = UNSET


_graph_line = JsonDecoder(_GraphLine).decode
_LEAST_LIMIT = int_info.str_digits_check_threshold
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)


def _graph_lines(contents: Sequence[bytes]) -> list[_GraphLine] | None:
    """What many lines say, a third of the time that `json` takes; None where one says no graph, or another
    thing besides, or may be one that `json` refuses: what is skipped may have bytes that are no text, and
    numbers of too many digits.
    """
    try:
        found = list(map(_graph_line, contents))
    except (MsgspecError, ValueError, RecursionError):
        return None
    if max(map(len, contents)) > _LEAST_LIMIT:
        joined = b"\n".join(contents).translate(_DIGITS)
        if b"0" * (_LEAST_LIMIT + 1) in joined:
            return None
    if not all(map(bytes.isascii, contents)):
        try:
            b"\n".join(contents).decode()
        except ValueError:
            return None
    return found


def _said_of(error: ValueError) -> str:
    """What is wrong with a JSON text; Python's word on numbers of too many digits is about its settings."""
    return "a number of too many digits" if "int_max_str_digits" in str(error) else str(error)


def _loaded(text: str, place: str) -> object:
    """A JSON text's value. Raises DataError D2014."""
    try:
        value, end = _value(text)
        if end == len(text) or text[end:].isspace():
            return value
    except ValueError as error:
        if not text[:1].isspace():
            raise _no_object(place, _said_of(error)) from None
    except RecursionError:
        pass
    try:
        return json.loads(text)
    except ValueError as error:
        raise _no_object(place, _said_of(error)) from None
    except RecursionError:
        raise _no_object(place, "nested too deeply") from None


def _no_object(place: str, found: str) -> DataError:
    return DataError.of(
        "D2014",
        "this line is not a time-annotated graph",
        place=place,
        label=found,
        hint='write {"time": 12, "graph": "<Turtle>"}, one object a line; "" is an empty graph. '
        "Objects of another form are read with --map, and `dotr map new FILE` proposes a mapping",
    )
