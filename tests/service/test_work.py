"""What a commit costs, in rows, bytes, pages and calls: what changed since the last, however much is held."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dotr.service.database import Disk
from dotr.service.feed import Feed
from tests.service.deployments import deploy, feed

CHANGES = 100
"""Triples that each commit's messages insert, delete, replace or let end."""

RULES = """
PREFIX : <urn:x:>
RULES <near.dlog>
HOLD :at LATEST
HOLD :seen FOR 3 s
QUERY near := { SELECT ?a ?b { ?a :near ?b } }
RULE Near DEFINE { dotr_n :near ?a ; :to ?b } FROM N := ISTREAM near WITH ?a := N.?a, ?b := N.?b
"""
NEAR = "[?a, <urn:x:near>, ?d] :- [?a, <urn:x:at>, ?b], [?b, <urn:x:door>, ?d], [?a, <urn:x:seen>, ?s] .\n"


class Cost(NamedTuple):
    """Of one commit: rows that are written, bytes of their values, pages that reach the disk, and calls of
    functions from the taking of the snapshot to its end.
    """

    rows: int
    bytes: int
    pages: int
    calls: int


class CountingDisk(Disk):
    """Counts the rows that SQLite says were changed, and the bytes of what it is given."""

    def __init__(self) -> None:
        self.rows = self.bytes = 0

    def execute(self, connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> None:
        before = connection.total_changes
        super().execute(connection, statement, values)
        self.rows += connection.total_changes - before
        self.bytes += sum(len(value) for value in values if isinstance(value, str | bytes))


def lines(held: int) -> list[str]:
    """One message with what is held, then messages of a hundred changes each: people who are moved, doors put
    in and taken out, people who are seen for a while.
    """
    first = "".join(f"<urn:x:p{i}> <urn:x:at> <urn:x:r{i}> . " for i in range(held // 2))
    doors = "".join(f"<urn:x:r{i}> <urn:x:door> <urn:x:h> . " for i in range(held // 2))
    found = [json.dumps({"time": 0, "graph": first, "insert": doors})]
    quarter, step = CHANGES // 4, held // 2 // (CHANGES // 4)
    for time in range(1, 13):
        some = [i * step + time for i in range(quarter)]
        graph = "".join(
            f"<urn:x:p{i}> <urn:x:at> <urn:x:r{i + 1}> . <urn:x:p{i}> <urn:x:seen> 1 . " for i in some
        )
        insert = "".join(f"<urn:x:r{i}> <urn:x:door> <urn:x:new> . " for i in some)
        delete = "".join(f"<urn:x:r{i}> <urn:x:door> <urn:x:h> . " for i in some)
        found.append(json.dumps({"time": time, "graph": graph, "insert": insert, "delete": delete}))
    return found


def costs(folder: Path, held: int, monkeypatch: pytest.MonkeyPatch) -> list[Cost]:
    """What each commit of a feed over so much costs, in a process that goes on with what another one fed."""
    folder.mkdir()
    (folder / "near.dlog").write_text(NEAR)
    state = deploy(folder, RULES)
    first, *others = lines(held)
    (folder / "first.jsonl").write_text(f"{first}\n")
    feed(state, [str(folder / "first.jsonl")])
    (folder / "others.jsonl").write_text("".join(f"{line}\n" for line in others))
    found: list[Cost] = []
    disk, log = CountingDisk(), folder / "state/deployment.db-wal"
    save = Feed.save

    def counted(feeding: Feed) -> None:
        calls = 0

        def count(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        disk.rows = disk.bytes = 0
        before = log.stat().st_size
        sys.setprofile(count)
        try:
            save(feeding)
        finally:
            sys.setprofile(None)
        found.append(Cost(disk.rows, disk.bytes, (log.stat().st_size - before) // 4096, calls))

    monkeypatch.setattr(Feed, "save", counted)
    feed(state, [str(folder / "others.jsonl")], disk=disk, every=1)
    monkeypatch.undo()
    return found


def test_a_commit_over_large_held_state_costs_what_its_changes_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (costs(tmp_path / str(held), held, monkeypatch) for held in (2_000, 40_000))
    assert len(small) == len(large) > 10
    for one, other in zip(small, large, strict=True):
        assert other.rows == one.rows <= 2 * CHANGES
        assert other.bytes <= 1.1 * one.bytes  # longer names, and counters
        assert other.calls <= 1.02 * one.calls
        assert other.pages <= 2 * one.pages <= 2 * CHANGES  # a row has a page to itself at worst
    assert max(one.rows for one in small) >= CHANGES


def test_a_commit_without_changes_of_what_is_held_writes_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert min(one.rows for one in costs(tmp_path / "one", 2_000, monkeypatch)) == 2  # state and position
