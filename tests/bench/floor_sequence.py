"""The floor of longer patterns: what `last` and `each` over several kinds of reading take by hand.

Knows beforehand that a graph has one triple, that every rule's filter passes, so that all rules have the same
matches, and which window the workload has. Reads Turtle with pyoxigraph, writes N-Quads, names events as dotr
does.
"""

from __future__ import annotations

from base64 import b32encode
from collections import deque
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import product

from pyoxigraph import RdfFormat, parse

from .floor_default import NAMESPACE, STAMP, TYPE, XSD_INTEGER

History = dict[str, list[deque[tuple[int, str]]]]
"""Per room and kind: the part of an event's name that a reading contributes, with its time."""


def run(
    documents: Sequence[tuple[int, str]],
    room_of: Mapping[str, str],
    names: Sequence[str],
    length: int,
    each: bool,
    window: int,
    history: History,
) -> list[str]:
    """The N-Quads of every graph's events; `names` are the rules, in their order; `history` is the memory."""
    turtle = RdfFormat.TURTLE
    predicates = {f"{NAMESPACE}read_val{number}": number - 1 for number in range(1, length + 1)}
    for room in room_of.values():
        history.setdefault(room, [deque(maxlen=None if each else 1) for _ in range(length)])
    heads = [(f"<urn:dotr:{name}:", f"> {TYPE} <{NAMESPACE}{name}> <urn:dotr:{name}:") for name in names]
    at_room, has_value = f"> <{NAMESPACE}at_room> ", f"> <{NAMESPACE}value> "
    out: list[str] = []
    for time, text in documents:
        for quad in parse(text, format=turtle):
            room = room_of[quad.subject.value]
            value = f'"{quad.object.value}"^^<{XSD_INTEGER}>'
            kind = predicates[quad.predicate.value]
            columns = history[room]
            part = f"\n{time}000000 0\n{room}\n{value}"
            if kind:
                columns[kind].append((time, part))
                continue
            oldest = time - window
            for column in columns[1:]:
                while column and column[0][0] < oldest:
                    column.popleft()
            if not all(columns[1:]):
                continue
            first = f"{time}000000{part}"
            stamp = f'> {STAMP} "{time}"^^<{XSD_INTEGER}> .\n'
            ids = [
                b32encode(blake2b(key.encode(), digest_size=15).digest()).decode().lower()
                for key in (first + "".join([p for _, p in c]) for c in product(*columns[1:]))
            ]
            for head, kind_ in heads:
                for name in ids:
                    event = f"{head}{name}"
                    out.append(
                        f"{event}{stamp}{event}{kind_}{name}> .\n"
                        f"{event}{at_room}{room} {event}> .\n{event}{has_value}{value} {event}> .\n"
                    )
    return out
