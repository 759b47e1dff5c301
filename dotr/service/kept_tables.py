"""What a deployment keeps for explanations: messages of the last days, and states to begin with.

Place:   tables of service/journal.py, which calls this inside its transactions; keeping.py fills them.
Method:  rows in the order of the feed: a state of the engine, then the messages behind it, commit by commit.
         Every now and then there is another state, so that what is too old goes by whole stretches and what
         is left begins with a state. Compressed; no more than LIMIT bytes, whatever was asked for.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dotr.events import Time
from dotr.service.lasting_tables import Execute, Query

TABLES = """
CREATE TABLE kept (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, time INTEGER, graphs INTEGER NOT NULL,
                   content BLOB NOT NULL);
"""

LIMIT = 1 << 30
"""Bytes, about, beyond which the oldest stretch goes."""


class KeptMessage(NamedTuple):
    """One message: `part` as `core.parts.plain` has it. `left_out`: it came too late, or too far ahead."""

    time: Time
    part: Any
    place: str
    left_out: bool = False


class KeptRow(NamedTuple):
    """A state of the engine that holds up to `time`, or messages up to it."""

    time: Time | None
    state: dict[str, Any] | None = None
    messages: Sequence[KeptMessage] = ()


class KeptSummary(NamedTuple):
    """What is kept: messages, bytes, and from which time on all of them; None: from the beginning."""

    graphs: int
    bytes: int
    since: Time | None


@dataclass(frozen=True, slots=True)
class KeptChange:
    """What one commit changes: `replaces`: what was kept goes. Then rows, and what is no more needed for
    times from `low` on goes.
    """

    replaces: bool = False
    rows: Sequence[KeptRow] = field(default_factory=tuple)
    low: Time | None = None


def write_kept(execute: Execute, query: Query, change: KeptChange, limit: int = LIMIT) -> None:
    """Take over what a commit changes."""
    if change.replaces:
        execute("DELETE FROM kept", ())
    for row in change.rows:
        content = row.state if row.state is not None else row.messages
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        values = (int(row.state is not None), row.time, len(row.messages), zlib.compress(text.encode(), 1))
        execute("INSERT INTO kept (state, time, graphs, content) VALUES (?, ?, ?, ?)", values)
    states = query("SELECT id, time FROM kept WHERE state ORDER BY id")
    first = 0
    for number, time in states[1:]:
        if change.low is not None and time is not None and time < change.low:
            first = number
    execute("DELETE FROM kept WHERE id < ?", (first,))
    sizes = query("SELECT id, state, length(content) FROM kept ORDER BY id DESC")
    total = 0
    for number, state, size in sizes:
        total += size
        if total > limit and state and number != sizes[-1][0]:
            execute("DELETE FROM kept WHERE id < ?", (number,))
            break


def read_kept(query: Query) -> list[KeptRow]:
    """Everything that is kept, in order."""
    found = []
    for _, state, time, _, content in query("SELECT * FROM kept ORDER BY id"):
        value = json.loads(zlib.decompress(content))
        found.append(
            KeptRow(time, value) if state else KeptRow(time, None, [KeptMessage(*one) for one in value])
        )
    return found


def read_kept_summary(query: Query) -> KeptSummary | None:
    """How much is kept; None where nothing is."""
    rows = query("SELECT time, graphs, length(content) FROM kept ORDER BY id")
    if not rows:
        return None
    return KeptSummary(sum(row[1] for row in rows), sum(row[2] for row in rows), rows[0][0])
