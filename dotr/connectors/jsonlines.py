"""JSON lines as a stream: `{"time": 12, "graph": "<Turtle>"}`, one graph a line.

Place:   called by sources.py with an open file. What sinks.py writes as JSON lines is such a stream: other
         keys than `time` and `graph` are not looked at.
Bad input: D2014 a line that is no such object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from dotr.connectors.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    Readable,
    decode,
    parse_triples,
    read_some,
    too_large,
)
from dotr.errors import DataError, Diagnostic
from dotr.rdf.terms import Triple

_BLOCK = 1 << 18


class Line(NamedTuple):
    """One line of the file: its bytes, its number from 1, and the number of bytes up to its end."""

    content: bytes
    number: int
    end: int
    complete: bool = True
    """Whether the line has its end; the last one of a file that is being written may lack it."""


def raw_lines(
    file: Readable, name: str, limit: int = MAX_DOCUMENT, head: bytes = b"", line: int = 1, offset: int = 0
) -> Iterator[Line]:
    """The lines of a file that are not blank, in bounded memory. Raises DataError D2006 for an
    endless one.
    """
    block, rest = head, b""  # what is in hand comes before the next read, which may have to wait
    ended = False
    while not ended:
        block = block or read_some(file, _BLOCK, name)
        ended = not block
        parts = (rest + block).split(b"\n")
        block, rest = b"", parts.pop()
        for part in parts:
            offset += len(part) + 1
            if part and not part.isspace():
                yield Line(part, line, offset)
            line += 1
        if len(rest) > limit:
            raise too_large(f"{name}:{line}", limit)
    if rest.strip():
        yield Line(rest, line, offset + len(rest), complete=False)


def parse_line(
    line: Line, name: str, base: str | None = STREAM_BASE
) -> tuple[list[Triple], str | int | None]:
    """The graph of a line and the time it says, None if it says none. Raises DataError."""
    place = f"{name}:{line.number}"
    value = _loaded(decode(line.content, place), place)
    if not isinstance(value, dict) or not isinstance(value.get("graph"), str):
        raise _no_object(place, "no object with a text `graph`")
    time = value.get("time")
    if time is not None and type(time) is not int and not (isinstance(time, str) and time.isascii()):
        raise DataError(
            Diagnostic(
                "D2105",
                "the time of this line is no timestamp",
                place=place,
                label=json.dumps(time)[:100],
                hint='write "time": 12, or "time": "2026-01-01T08:00:12Z"',
            )
        )
    return parse_triples(value["graph"], Format.TURTLE, place, base), time


_value = json.JSONDecoder().raw_decode  # json.loads looks for blanks with two patterns


def _loaded(text: str, place: str) -> object:
    """A JSON text's value. Raises DataError D2014."""
    try:
        value, end = _value(text)
        if end == len(text) or text[end:].isspace():
            return value
    except (ValueError, RecursionError):
        pass  # told below, if it is not for blanks at the head
    try:
        return json.loads(text)
    except ValueError as error:
        raise _no_object(place, str(error)) from None
    except RecursionError:
        raise _no_object(place, "nested without measure") from None


def _no_object(place: str, found: str) -> DataError:
    return DataError(
        Diagnostic(
            "D2014",
            "this line is no time-annotated graph",
            place=place,
            label=found,
            hint='write {"time": 12, "graph": "<Turtle>"}, one object a line',
        )
    )
