"""A time and a message that a command is given: `--at TIME --insert FILE --delete FILE`.

Place:   under cli/feed.py and cli/deploy.py. The wall clock is read here and nowhere else, when a user says
         so; what it said is data from then on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dotr.core.parts import Part
from dotr.errors import DataError, UsageError
from dotr.events import Clock, Time
from dotr.io.decode.documents import Format, decode, format_of, read_bytes, unknown_format
from dotr.io.decode.parsing import parse_triples
from dotr.io.message_parts import message_of
from dotr.io.timestamps import TimeError, parse_text
from dotr.rdf.terms import Triple

if TYPE_CHECKING:
    from dotr.io.graphs import SourceOptions

_STREAMS = frozenset({Format.JSONLINES, Format.PATCH, Format.PARQUET, Format.JELLY})


def given_time(text: str, unit: int, clock: Clock | None, option: str = "--at") -> tuple[Time, Clock]:
    """A time in µs, and how it is written; `now` is written as `clock` does, else a dateTime.

    Raises UsageError D4111.
    """
    if text == "now":
        micros = time.time_ns() // 1000
        written = clock or Clock(False, unit)
        return (micros // written.unit * written.unit if written.integer else micros), written
    try:
        when, integer = parse_text(text, unit)
    except TimeError as error:
        raise UsageError.of("D4111", f"{option}: {error.message}", hint=error.hint) from None
    return when, Clock(integer, unit)


def given_message(insert: str | None, delete: str | None, options: SourceOptions) -> Part:
    """The message that two files make, of which one may be missing. Raises DataError."""
    parts = [None if path is None else _triples(path, options) for path in (insert, delete)]
    return message_of(None, parts[0], parts[1], delete or insert or "")


def _triples(path: str, options: SourceOptions) -> list[Triple]:
    format_ = format_of(path)
    if format_ is None:
        raise unknown_format(path)
    if format_ in _STREAMS:
        raise DataError.of(
            "D2010", f"`{path}` is a stream, no graph", place=path, hint="feed it as a SOURCE: it has times"
        )
    text = decode(read_bytes(path, options.max_document), path)
    return parse_triples(text, format_, path, options.base, choices=options.choices)
