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
from dotr.testing.comparing import Comparison, Key, Version

_UNIT = 1_000_000


def compared_batches(versions: Sequence[Version], folders: Sequence[str]) -> Comparison:
    """Compare the JSON lines of batch outputs, one folder a version."""
    found = Comparison(versions)
    streams = [_events(Path(folder), found) for folder in folders]
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
    report = json.loads((Path(folders[0]) / "_dotr_run.json").read_text(encoding="utf-8"))
    found.graphs = report.get("graphs", 0)
    return found


def _events(folder: Path, found: Comparison) -> Iterator[tuple[Time, Key]]:
    """The events of an output in order of their times."""
    parts = [_lines(part, found) for part in sorted(folder.glob("part-*.jsonl"))]
    return heapq.merge(*parts)


def _lines(part: Path, found: Comparison) -> Iterator[tuple[Time, Key]]:
    with part.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            time, integer = parse_text(str(event["time"]), _UNIT)
            found.clock = Clock(integer, _UNIT)
            bindings = tuple((name, _term(value)) for name, value in event["bindings"].items())
            yield time, (event["rule"], bindings)


def _term(value: dict[str, Any]) -> Term:
    if value["type"] == "uri":
        return f"<{value['value']}>"
    if value["type"] == "bnode":
        return f"_:{value['value']}"
    if "xml:lang" in value:
        return f"{literal(value['value'])}@{value['xml:lang']}"
    return literal(value["value"], value["datatype"]) if "datatype" in value else literal(value["value"])
