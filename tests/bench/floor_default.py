"""The floor of the default scenario: what it takes by hand, without any generality.

Knows beforehand that a graph has one triple, which predicates there are, that every rule's filter passes,
that all rules want the last B of the room of A. Reads Turtle with pyoxigraph, writes N-Quads, names events as
dotr does. Not a line more than the workload needs.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from pyoxigraph import RdfFormat, parse

NAMESPACE = "http://example.org/bench#"
XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
WINDOW = 300


def rooms(background: str) -> dict[str, str]:
    """Sensor → its room, as N-Triples terms."""
    equips: dict[str, str] = {}
    placed: dict[str, str] = {}
    for quad in parse(background, format=RdfFormat.N_TRIPLES):
        if quad.predicate.value == NAMESPACE + "equips":
            equips[quad.subject.value] = quad.object.value
        elif quad.predicate.value == NAMESPACE + "placed_in":
            placed[quad.subject.value] = f"<{quad.object.value}>"
    return {sensor: placed[thing] for sensor, thing in equips.items() if thing in placed}


def run(
    documents: Sequence[tuple[int, str]],
    room_of: Mapping[str, str],
    names: Sequence[str],
    last: dict[str, tuple[int, str]],
) -> list[str]:
    """The N-Quads of every graph's events; `names` are the rules, in their order; `last` is the memory."""
    trigger = NAMESPACE + "read_valA"
    turtle = RdfFormat.TURTLE
    heads = [(f"<urn:dotr:{name}:", f"> {TYPE} <{NAMESPACE}{name}> <urn:dotr:{name}:") for name in names]
    at_room, has_value = f"> <{NAMESPACE}at_room> ", f"> <{NAMESPACE}value> "
    out: list[str] = []
    for time, text in documents:
        for quad in parse(text, format=turtle):
            room = room_of[quad.subject.value]
            value = f'"{quad.object.value}"^^<{XSD_INTEGER}>'
            if quad.predicate.value != trigger:
                last[room] = (time, value)
                continue
            found = last.get(room)
            if found is None or found[0] < time - WINDOW:
                continue
            then, old = found
            key = f"{time}000000\n{time}000000 0\n{room}\n{value}\n{then}000000 0\n{room}\n{old}"
            name = b32encode(blake2b(key.encode(), digest_size=15).digest()).decode().lower()
            stamp = f'> {STAMP} "{time}"^^<{XSD_INTEGER}> .\n'
            for head, kind in heads:
                event = f"{head}{name}"
                out.append(
                    f"{event}{stamp}{event}{kind}{name}> .\n"
                    f"{event}{at_room}{room} {event}> .\n{event}{has_value}{value} {event}> .\n"
                )
    return out
