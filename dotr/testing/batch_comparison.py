"""Outputs of two batch runs compared as comparing.py compares runs.

Place:   `dotr compare --engine spark`.
Method:  parts of a batch are each in order of time; they are merged.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dotr.events import Clock, Time
from dotr.io.timestamps import parse_text
from dotr.rdf.terms import Term, literal
from dotr.testing.comparing import Key, RunComparison, Version


def compared_batches(
    versions: Sequence[Version], outputs: Sequence[Sequence[str]], unit: Time = 1_000_000
) -> RunComparison:
    """Compare the JSON lines of batch outputs: per version its files. `unit` of integer time, in µs."""
    found = RunComparison(versions)
    streams = [heapq.merge(*(_lines(Path(file), found, unit) for file in files)) for files in outputs]
    heads = [next(stream, None) for stream in streams]
    while any(head is not None for head in heads):
        time = min(head[0] for head in heads if head is not None)
        at: list[Counter[Key]] = []
        for number, stream in enumerate(streams):
            events: Counter[Key] = Counter()
            head = heads[number]
            while head is not None and head[0] == time:
                events[head[1]] += 1
                head = next(stream, None)
            heads[number] = head
            at.append(events)
        found.at(time, at)
    return found


def _lines(part: Path, found: RunComparison, unit: Time) -> Iterator[tuple[Time, Key]]:
    with part.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            time, integer = parse_text(str(event["time"]), unit)
            found.clock = Clock(integer, unit)
            bindings = tuple(sorted((name, _term(value)) for name, value in event["bindings"].items()))
            yield time, (event["rule"], bindings)


def _term(value: dict[str, Any]) -> Term:
    if value["type"] == "uri":
        return f"<{value['value']}>"
    if value["type"] == "bnode":
        return f"_:{value['value']}"
    if "xml:lang" in value:
        return f"{literal(value['value'])}@{value['xml:lang']}"
    return literal(value["value"], value["datatype"]) if "datatype" in value else literal(value["value"])
