"""What lasts, in a deployment's database: statements, messages that commands gave, changes to come.

Place:   tables of service/journal.py, which calls this inside its transactions.
Method:  a statement is a row of its own, so that a commit writes what changed since the last one, however
         much is held. A message given by `dotr feed --insert` is kept as it was taken, its time included:
         what the wall clock said is data from then on. What is deployed from a time on waits as a whole.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from dotr.core.periods import Entry
from dotr.events import Time
from dotr.rdf.terms import Triple

TABLES = """
CREATE TABLE stated (triple TEXT PRIMARY KEY, entry TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE given (id INTEGER PRIMARY KEY, line TEXT NOT NULL);
CREATE TABLE planned (id INTEGER PRIMARY KEY CHECK (id = 1), time INTEGER NOT NULL, content TEXT NOT NULL,
                      triples BLOB NOT NULL);
"""

Execute: TypeAlias = Callable[[str, Sequence[Any]], object]
"""Runs a statement with its values."""

Query: TypeAlias = Callable[[str], list[tuple[Any, ...]]]
"""The rows of a SELECT. Whole tables are read by `SELECT *`, so that their sums can be compared."""


class PlannedProgram(NamedTuple):
    """What is deployed from a time on. `clock`: (whether times are integers, their unit), for `time`;
    `content`: files, texts, removed rules and the hash of the background; `background`: its triples as
    N-Triples.
    """

    time: Time
    clock: tuple[bool, int]
    content: Mapping[str, Any]
    background: str


def write_stated(execute: Execute, changed: Mapping[Triple, Entry | None]) -> None:
    """Take over how statements changed since the last commit."""
    for triple, entry in changed.items():
        key = " ".join(triple)
        if entry is None:
            execute("DELETE FROM stated WHERE triple = ?", (key,))
        else:
            execute("INSERT OR REPLACE INTO stated VALUES (?, ?)", (key, json.dumps(entry)))


def read_stated(query: Query) -> list[list[Any]]:
    """Every statement, as `Periods.load` takes them."""
    found = []
    for key, entry in query("SELECT * FROM stated"):
        subject, predicate, object_ = key.split(" ", 2)
        found.append([subject, predicate, object_, *json.loads(entry)])
    return found


def write_given(execute: Execute, lines: Sequence[str]) -> None:
    """Keep messages that a command gave."""
    for line in lines:
        execute("INSERT INTO given (line) VALUES (?)", (line,))


def read_given(query: Query) -> list[str]:
    """The messages that commands gave, in order, as JSON lines."""
    return [line for _, line in query("SELECT * FROM given ORDER BY id")]


def write_plan(execute: Execute, plan: PlannedProgram | None) -> None:
    """Keep a plan instead of the one before; None takes it away."""
    execute("DELETE FROM planned", ())
    if plan is not None:
        content = json.dumps({"clock": plan.clock, **plan.content})
        packed = zlib.compress(plan.background.encode(), 1)
        execute("INSERT INTO planned VALUES (1, ?, ?, ?)", (plan.time, content, packed))


def read_plan(query: Query) -> PlannedProgram | None:
    """What is deployed from a time on that has not come yet."""
    for _, time, content, packed in query("SELECT * FROM planned"):
        known = json.loads(content)
        integer, unit = known.pop("clock")
        return PlannedProgram(time, (integer, unit), known, zlib.decompress(packed).decode())
    return None
