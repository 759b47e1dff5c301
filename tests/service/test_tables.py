"""What a deployment's database holds beside its state, and files beside it: written, read again, damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.enrich.closing import Closed, close_background
from dotr.errors import RefusedError
from dotr.events import Clock
from dotr.lang import parse_program
from dotr.rdf.terms import Triple
from dotr.service import journal as closed_files
from dotr.service.feed import Keeping
from dotr.service.journal import (
    FORMAT,
    TABLES,
    UPDATES,
    Journal,
    PlannedProgram,
    read_given,
    read_plan,
    read_stated,
    write_given,
    write_plan,
    write_stated,
)
from dotr.service.journal import LASTING_TABLES as LASTING
from dotr.service.outputs import EventParts

S = 1_000_000
TRIPLES: list[Triple] = [(f"<urn:s{n}>", "<urn:p>", '"a b"') for n in range(9)]


@pytest.fixture
def database() -> sqlite3.Connection:
    found = sqlite3.connect(":memory:")
    found.executescript(LASTING)
    return found


def test_statements_change_by_what_changed(database: sqlite3.Connection) -> None:
    def query(text: str) -> list[tuple[Any, ...]]:
        return database.execute(text).fetchall()

    write_stated(database.execute, {TRIPLES[0]: [1, 2], TRIPLES[1]: [3, 4]})  # type: ignore[dict-item]  # any entry
    write_stated(database.execute, {TRIPLES[0]: [5, 6], TRIPLES[1]: None, TRIPLES[2]: None})  # type: ignore[dict-item]
    assert read_stated(query) == [[*TRIPLES[0], 5, 6]], "a literal may have blanks"


def test_one_plan_waits_and_messages_come_in_order(database: sqlite3.Connection) -> None:
    def query(text: str) -> list[tuple[Any, ...]]:
        return database.execute(text).fetchall()

    assert read_plan(query) is None
    write_plan(database.execute, PlannedProgram(5, (True, S), {"files": ["a"]}, "x"))
    second = PlannedProgram(7, (False, 1), {"files": ["b"]}, "<urn:ü> .\n")
    write_plan(database.execute, second)
    assert read_plan(query) == second
    write_plan(database.execute, None)
    assert read_plan(query) is None
    write_given(database.execute, ["b", "a"])
    write_given(database.execute, ["b"])
    assert read_given(query) == ["b", "a", "b"]


def columns(database: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: database.execute(f"PRAGMA table_info({name})").fetchall() for name in sorted(names)}


def test_a_database_of_the_first_format_becomes_one_of_today_with_its_rows() -> None:
    old, new = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    new.executescript(TABLES)
    old.executescript(
        """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (place INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE texts (path TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE removed (rule TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE background (id INTEGER PRIMARY KEY CHECK (id = 1), hash TEXT NOT NULL, triples BLOB NOT NULL);
CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), snapshot BLOB NOT NULL, status TEXT NOT NULL);
CREATE TABLE outputs (path TEXT PRIMARY KEY, format TEXT NOT NULL, length INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sources (file TEXT PRIMARY KEY, how TEXT, "end" INTEGER, carried TEXT, size INTEGER, hash TEXT,
                      finished INTEGER) WITHOUT ROWID;
INSERT INTO files VALUES (0, 'a.dotr'), (1, 'b.dotr');
INSERT INTO removed VALUES ('R');
INSERT INTO outputs VALUES ('o', 'jsonl', 7);
INSERT INTO sources VALUES ('log', 'byte', 12, '', 20, 'h', 0);
"""
    )
    for format_ in range(1, FORMAT):
        old.executescript(UPDATES[format_])
    assert columns(old) == columns(new)
    assert old.execute("SELECT * FROM removed ORDER BY file").fetchall() == [("R", "a.dotr"), ("R", "b.dotr")]
    assert old.execute("SELECT * FROM outputs").fetchall() == [("o", "jsonl", 7, "")]
    assert old.execute("SELECT * FROM positions").fetchall() == [("files", "log", '["byte",12,"",20,"h",0]')]


@pytest.fixture
def closed() -> Closed:
    return close_background([], TRIPLES)


def bytes_of(content: Any) -> bytes:
    return bytes(memoryview(content))


def test_a_small_background_is_in_its_row(closed: Closed, tmp_path: Path) -> None:
    row = closed_files.write(tmp_path, closed)
    assert list(tmp_path.iterdir()) == []
    assert closed_files.read(tmp_path, row) == closed.save()
    assert closed_files.read(tmp_path, row[:-4]) is None


def test_a_large_one_is_in_the_only_file_of_its_name(
    closed: Closed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_files, "ROW_LIMIT", 10)
    (tmp_path / "closed-old.background").write_bytes(b"before")
    row = closed_files.write(tmp_path, closed)
    (path,) = tmp_path.iterdir()
    assert bytes_of(closed_files.read(tmp_path, row)) == closed.save()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / path.name).write_bytes(path.read_bytes())
    assert bytes_of(closed_files.read(copy, row)) == closed.save(), "written at another time: its name says"
    (copy / path.name).write_bytes(path.read_bytes()[:-1] + b"?")
    assert closed_files.read(copy, row) is None
    path.unlink()
    assert closed_files.read(tmp_path, row) is None


def test_parts_that_were_not_committed_go_and_committed_ones_are_missed(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    with Journal(str(tmp_path / "d"), create=True) as journal:
        parts = EventParts(journal, str(out))
        parts.write([], Clock())
        assert [path.name for path in out.iterdir()] == [".part-000000.parquet"]
        (length,) = parts.prepare(1).lengths.values()
        assert [path.name for path in out.iterdir()] == ["part-000000.parquet"]
        parts.close()
        assert (length.length, list(out.iterdir())) == (1, []), "the commit never came"
        assert parts.prepare(1).lengths[parts.path].length == 0, "nothing was written"
        journal.register_output(str(out.resolve()), "parquet")
        (out / "mine.txt").write_text("kept")
        again = EventParts(journal, str(out))
        again.write([], Clock())
        again.prepare(1)
        again.confirm(1)
        again.close()
        assert sorted(path.name for path in out.iterdir()) == ["mine.txt", "part-000000.parquet"]
        (out / "part-000000.parquet").unlink()
        again.length = 1
        with pytest.raises(RefusedError) as raised:
            again._tidy()
        assert raised.value.diagnostics[0].code == "D5207"


def test_folders_of_others_and_other_formats_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "file").touch()
    with Journal(str(tmp_path / "d"), create=True) as journal:
        with pytest.raises(RefusedError) as raised:
            EventParts(journal, str(out))
        assert raised.value.diagnostics[0].code == "D5001"
        (out / "file").unlink()
        EventParts(journal, str(out)).close()
        with pytest.raises(RefusedError) as raised:
            EventParts(journal, str(out), format_="jelly")
        assert raised.value.diagnostics[0].code == "D5206"
        EventParts(journal, str(out), overwrite=True, format_="jelly").close()


SEEN = "PREFIX : <urn:x:>\nRULE R DEFINE { dotr_x a :R } FROM S := { SELECT ?o WHERE { ?o :p ?v } }"


def keeping(length: int) -> tuple[Keeping, Pipeline]:
    pipeline = Pipeline(Deployment(parse_program(SEEN), []))
    pipeline.begin(Clock())
    return Keeping(pipeline, length * S), pipeline


def take(kept: Keeping, pipeline: Pipeline, times: Sequence[int]) -> None:
    for time in times:
        kept.came(time * S, [], f"f:{time}")
        pipeline.push(time * S, [])


def kinds(rows: Sequence[Any]) -> list[str | int]:
    return ["state" if row.state is not None else len(row.messages) for row in rows]


def test_what_is_kept_begins_with_a_state_and_each_commit_gives_what_came() -> None:
    kept, pipeline = keeping(1_000)
    kept.begin()
    take(kept, pipeline, [1, 2])
    change = kept.changes(adopted=False)
    assert (change.replaces, kinds(change.rows)) == (True, ["state", 2])
    kept.committed()
    kept.begin()
    take(kept, pipeline, [3])
    again = kept.changes(adopted=False)
    assert (again.replaces, kinds(again.rows)) == (False, [1])
    assert [message.place for message in again.rows[0].messages] == ["f:3"]
    kept.committed()
    take(kept, pipeline, [4])
    other = kept.changes(adopted=True)
    assert (other.replaces, kinds(other.rows)) == (True, ["state"]), "other rules: what came before goes"


def test_a_message_that_is_not_taken_is_kept_as_left_out() -> None:
    kept, pipeline = keeping(1_000)
    kept.begin()
    graph: list[Triple] = []
    kept.came(S, graph, "f:1")
    kept.leave_out([[]])
    kept.leave_out([graph])
    kept.came(2 * S, [], "f:2")
    (row,) = [row for row in kept.changes(adopted=False).rows if row.state is None]
    assert [message.left_out for message in row.messages] == [True, False]
    assert pipeline.latest is None


def test_states_come_a_quarter_apart_and_whole_stretches_go() -> None:
    kept, pipeline = keeping(400)
    kept.begin()
    take(kept, pipeline, range(1, 1_000))
    rows = kept.changes(adopted=False).rows
    states = [row.time for row in rows if row.state is not None]
    assert kinds(rows)[0] == "state"
    settled = pipeline.settled
    assert settled is not None
    assert states[0] is not None
    assert states[0] < settled - 400 * S + 64 * S, "enough is left"
    assert states[1] is not None
    assert states[1] >= settled - 400 * S - 64 * S, "and no stretch too much"
    gaps = [b - a for a, b in pairwise(states) if a is not None and b is not None]
    assert all(100 * S < gap <= 164 * S for gap in gaps)
