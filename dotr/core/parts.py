"""The input of one timestamp: graphs, and messages that may change what lasts.

Place:   the values between core/pipeline.py, which closes instants, and the code that runs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from dotr.events import Message, Time
from dotr.rdf.blanks import label_stream
from dotr.rdf.terms import Triple

Part: TypeAlias = list[Triple] | Message
"""A graph, or a message that may insert, delete, or bring no graph."""

Instant: TypeAlias = tuple[Time, list[Part] | None]
"""A time and what came for it; None is a tick without a message."""


def labelled(parts: Sequence[Part], time: Time) -> list[Message]:
    """The messages of one instant, blank nodes relabelled per part."""
    messages = [part if isinstance(part, Message) else Message(part) for part in parts]
    graphs = iter(label_stream([m.graph for m in messages if m.graph is not None], time))
    inserts = iter(label_stream([m.insert for m in messages if m.insert is not None], time, "insert "))
    return [
        Message(
            None if message.graph is None else next(graphs),
            None if message.insert is None else next(inserts),
            message.delete,
        )
        for message in messages
    ]


def all_triples(part: Part) -> list[Triple]:
    """The triples of all parts together."""
    if not isinstance(part, Message):
        return part
    return [triple for triples in part for triple in triples or ()]


def plain(part: Part) -> Any:
    """A part as a JSON value: a graph as its triples, a message as its parts."""
    if isinstance(part, Message):
        return {name: triples for name, triples in part._asdict().items() if triples is not None}
    return [list(triple) for triple in part]


def part_of(value: Any) -> Part:
    """The inverse of `plain`."""
    if isinstance(value, Mapping):
        return Message(**{name: [(s, p, o) for s, p, o in triples] for name, triples in value.items()})
    return [(s, p, o) for s, p, o in value]
