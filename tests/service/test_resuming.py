"""Resuming a deployment: the closed background is loaded, not closed again, and never a wrong one."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dotr.enrich import closing, materialiser
from dotr.enrich.closing import close_background
from dotr.errors import EngineError
from dotr.service.database import columns_of
from dotr.service.deployment import (
    Added,
    closed_key,
    commit_proposal,
    deployed_program,
    propose,
    resumed,
    undeploy,
)
from dotr.service.journal import DATABASE, Journal
from dotr.service.logs import LOG_TABLES
from tests.service.deployments import FailingDisk, deploy, feed, stream

RULES = """PREFIX : <urn:x:>
BACKGROUND <rooms.ttl>
RULES <rooms.dlog>
RULE Seen DEFINE { dotr_s :in ?room }
FROM Reading := { SELECT ?room { ?o :sensor ?s . ?s :room ?room } }
WITH ?room := Reading.?room
"""
ROOMS = "@prefix : <urn:x:> . :s :at :spot . :spot :in :kitchen ."
DATALOG = "PREFIX : <urn:x:> :room(?s, ?r) :- :at(?s, ?p), :in(?p, ?r) ."
LINE = '{"time":%d,"graph":"[] <urn:x:sensor> <urn:x:s> ."}\n'


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("rooms.ttl").write_text(ROOMS)
    Path("rooms.dlog").write_text(DATALOG)
    Path("in.jsonl").write_text(LINE % 1)
    return deploy(tmp_path, RULES)


@pytest.fixture
def closings(state: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the size of the background whenever one is closed. The deploy itself is not counted."""
    counted: list[int] = []
    close: Callable[..., Any] = materialiser.close_background

    def counting(rules: Any, background: Any, *more: Any) -> Any:
        counted.append(len(background))
        return close(rules, background, *more)

    monkeypatch.setattr(materialiser, "close_background", counting)
    return counted


def redeploy(state: str) -> None:
    with Journal(state) as journal:
        commit_proposal(journal, propose(journal, ["rules.dotr"]))


def kept(state: str) -> list[tuple[str, bytes]]:
    with sqlite3.connect(Path(state) / "deployment.db") as connection:
        rows = connection.execute("SELECT key, content FROM closed").fetchall()
    connection.close()
    return rows


def rooms(out: str = "out.nq") -> list[str]:
    return [line.split()[2] for line in Path(out).read_text().splitlines() if "<urn:x:in>" in line]


def test_a_feed_closes_nothing_that_the_deploy_closed(state: str, closings: list[int]) -> None:
    feed(state, ["in.jsonl"], ["out.nq"])
    Path("in.jsonl").write_text(LINE % 1 + LINE % 2)
    feed(state, ["in.jsonl"], ["out.nq"])
    assert closings == []
    assert rooms() == ["<urn:x:kitchen>"] * 2


def test_a_changed_background_is_closed_anew_and_the_old_one_goes(state: str, closings: list[int]) -> None:
    (before,) = kept(state)
    Path("rooms.ttl").write_text(ROOMS.replace(":kitchen", ":cellar"))
    redeploy(state)
    assert len(closings) == 1
    (after,) = kept(state)
    assert after[0] != before[0]
    feed(state, ["in.jsonl"], ["out.nq"])
    assert rooms() == ["<urn:x:cellar>"]
    assert len(closings) == 1


def test_changed_datalog_is_closed_anew(state: str, closings: list[int]) -> None:
    (before,) = kept(state)
    Path("rooms.dlog").write_text(DATALOG.replace(":in(?p, ?r)", ":in(?p, ?x), :above(?x, ?r)"))
    redeploy(state)
    assert kept(state)[0][0] != before[0]
    feed(state, ["in.jsonl"], ["out.nq"])
    assert rooms() == []


def test_what_queries_read_is_part_of_the_key(state: str, closings: list[int]) -> None:
    (before,) = kept(state)
    Path("rules.dotr").write_text(RULES.replace("?s :room ?room", "?s :at ?room"))
    redeploy(state)
    assert kept(state)[0][0] != before[0]
    feed(state, ["in.jsonl"], ["out.nq"])
    assert rooms() == ["<urn:x:spot>"]
    assert len(closings) == 1


def test_without_a_rule_that_was_taken_out_it_is_closed_again_once(state: str, closings: list[int]) -> None:
    with Journal(state) as journal:
        undeploy(journal, "Seen")
    assert kept(state) == []
    for _ in range(2):
        feed(state, ["in.jsonl"])
    assert len(closings) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE closed SET content = zeroblob(40)",
        "UPDATE closed SET content = substr(content, 9)",
        "UPDATE closed SET hash = x'00'",
    ],
)
def test_a_damaged_entry_is_closed_again_and_mended(state: str, closings: list[int], damage: str) -> None:
    (before,) = kept(state)
    with sqlite3.connect(Path(state) / "deployment.db") as connection:
        connection.execute(damage)
    connection.close()
    feed(state, ["in.jsonl"], ["out.nq"])
    assert rooms() == ["<urn:x:kitchen>"]
    assert (len(closings), kept(state)) == (1, [before])


def test_an_entry_that_another_dotr_wrote_is_closed_again(
    state: str, closings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(state) as journal, monkeypatch.context() as another:
        program = deployed_program(journal.deployed())
        key = closed_key(program, journal.deployed().background)
        another.setattr(closing, "_MAGIC", b"dotr closed 99\n")
        journal.keep_closed(key, close_background((), ()))
    feed(state, ["in.jsonl"], ["out.nq"])
    assert rooms() == ["<urn:x:kitchen>"]
    assert len(closings) == 1


def test_files_added_for_a_feed_are_known_by_their_bytes(state: str, closings: list[int]) -> None:
    def facts(room: str) -> list[str]:
        Path("more.ttl").write_text(f"<urn:x:s> <urn:x:room> <urn:x:{room}> .")
        with Journal(state) as journal:
            pipeline = resumed(journal, deployed_program(journal.deployed()), Added(["more.ttl"]))
        return sorted(s + o for s, p, o in pipeline.instants.enrich.background if p == "<urn:x:room>")

    assert facts("attic") == facts("attic") == ["<urn:x:s><urn:x:attic>", "<urn:x:s><urn:x:kitchen>"]
    assert len(closings) == 1
    assert facts("hall") == ["<urn:x:s><urn:x:hall>", "<urn:x:s><urn:x:kitchen>"]
    assert len(closings) == 2
    feed(state, ["in.jsonl"], ["out.nq"])
    assert rooms() == ["<urn:x:kitchen>"]


@pytest.fixture(params=["many triples", "many bytes"])
def in_file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every background is large."""
    if request.param == "many triples":
        monkeypatch.setattr("dotr.rdf.index.LARGE", 0)
    else:
        monkeypatch.setattr("dotr.service.journal.ROW_LIMIT", 10)


def file_of(state: str) -> Path:
    (file,) = Path(state).glob("closed-*.background")
    return file


@pytest.mark.usefixtures("in_file")
def test_a_large_background_is_a_file_beside_the_database(state: str, closings: list[int]) -> None:
    redeploy(state)
    (row,) = kept(state)
    assert row[1].startswith(b"dotr file ")
    for _ in range(2):
        feed(state, ["in.jsonl"], ["out.nq"])
    assert rooms() == ["<urn:x:kitchen>"]
    before = file_of(state)
    shutil.copytree(state, "copy")  # with other times
    os.utime(Path("copy") / before.name, (1, 1))
    feed("copy", ["in.jsonl"])
    assert len(closings) == 1
    Path("rooms.ttl").write_text(ROOMS + ":spot :in :hall .")
    redeploy(state)
    assert file_of(state) != before


@pytest.mark.usefixtures("in_file")
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "a byte"])
def test_a_file_that_is_not_what_was_written_is_closed_again(
    state: str, closings: list[int], damage: str
) -> None:
    redeploy(state)
    file = file_of(state)
    whole = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "cut": whole[:-4], "a byte": whole[:-1] + b"?"}[damage])
        os.utime(file, (1, 1))
    feed(state, ["in.jsonl"], ["out.nq"])
    assert rooms() == ["<urn:x:kitchen>"]
    assert len(closings) == 2
    assert file_of(state).read_bytes() == whole


def older(state: str) -> None:
    """Make a deployment what the first format was."""
    with sqlite3.connect(Path(state) / "deployment.db", isolation_level=None) as connection:
        rules = [rule for (rule,) in connection.execute("SELECT DISTINCT rule FROM removed")]
        later = ("closed", "removed", "stated", "given", "planned", "kept")  # formats 2, 3, 5
        for table in (*later, *columns_of(LOG_TABLES), "period"):  # 8 and 9
            connection.execute(f"DROP TABLE {table}")
        connection.execute(  # positions: format 6
            'CREATE TABLE sources (file TEXT PRIMARY KEY, how TEXT NOT NULL, "end" INTEGER NOT NULL,'
            " carried TEXT NOT NULL, size INTEGER NOT NULL, hash TEXT NOT NULL, finished INTEGER NOT NULL)"
            " WITHOUT ROWID"
        )
        for file, position in connection.execute("SELECT part, position FROM positions").fetchall():
            connection.execute(
                "INSERT INTO sources VALUES (?, ?, ?, ?, ?, ?, ?)", (file, *json.loads(position))
            )
        connection.execute("DROP TABLE positions")
        connection.execute("ALTER TABLE outputs RENAME TO outputs_now")  # tails: format 4
        connection.execute(
            "CREATE TABLE outputs (path TEXT PRIMARY KEY, format TEXT NOT NULL, length INTEGER NOT NULL)"
            " WITHOUT ROWID"
        )
        connection.execute("INSERT INTO outputs SELECT path, format, length FROM outputs_now")
        connection.execute("DROP TABLE outputs_now")
        connection.execute("CREATE TABLE removed (rule TEXT PRIMARY KEY) WITHOUT ROWID")
        connection.executemany("INSERT INTO removed VALUES (?)", [(rule,) for rule in rules])
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'format'")
    connection.close()


@pytest.mark.parametrize("what", ["deploy", "undeploy", "update"])
def test_an_io_error_at_any_write_of_a_deploy_leaves_the_old_one(
    state: str, tmp_path: Path, what: str
) -> None:
    Path("rules.dotr").write_text(RULES.replace("Seen", "Met"))
    if what == "update":
        older(state)
    at, names = 0, {"Seen"}
    reported: list[str] = []
    while names == {"Seen"}:
        at += 1
        folder = tmp_path / f"run{at}"
        shutil.copytree(state, folder)
        try:
            with Journal(str(folder), disk=FailingDisk(at)) as journal:
                if what == "deploy":
                    commit_proposal(journal, propose(journal, ["rules.dotr"]))
                elif what == "undeploy":
                    undeploy(journal, "Seen")
        except EngineError as error:
            reported.append(error.diagnostics[0].code)
        else:
            names = set()
        with Journal(str(folder)) as journal:
            found = {rule.name for rule in deployed_program(journal.deployed()).rules}
        assert found == ({"Seen"} if names or what == "update" else {"Met"} if what == "deploy" else set())
        feed(str(folder), ["in.jsonl"])
    assert reported == ["D4201"] * (at - 1)
    assert at > 6


def test_a_deployment_of_the_first_format_is_looked_at_as_it_is_and_fed_as_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{line}\n" for line in stream(60, bad=False)]
    texts = []
    for name in ("new", "old"):
        Path(name).mkdir()
        state = deploy(tmp_path / name)
        with Journal(state) as journal:
            undeploy(journal, "Quiet")
        Path("in.jsonl").write_text("".join(lines[:30]))
        feed(state, ["in.jsonl"], [f"{name}.nq"], keep_open=True)
        if name == "old":
            older(state)
            with Journal(state, exclusive=False) as journal:
                rules = [rule.name for rule in deployed_program(journal.deployed()).rules]
            assert rules == ["Fire", "Mean", "Again"]
        Path("in.jsonl").write_text("".join(lines))
        feed(state, ["in.jsonl"], [f"{name}.nq"])
        texts.append(Path(f"{name}.nq").read_bytes())
        with Journal(state, exclusive=False) as journal:
            assert len(deployed_program(journal.deployed()).rules) == 3
    assert texts[0] == texts[1]
    assert len(texts[0]) > 1000


def test_a_deployment_that_cannot_be_opened_is_not_left_locked(tmp_path: Path) -> None:
    (tmp_path / DATABASE).mkdir()
    reported = []
    for _ in range(2):
        with pytest.raises(EngineError) as caught:
            Journal(str(tmp_path))
        reported.append(caught)  # with its frames, which hold the journal
    assert [caught.value.diagnostics[0].code for caught in reported] == ["D4201", "D4201"]


def test_nothing_is_kept_until_it_is_asked_for(state: str) -> None:
    with Journal(state) as journal:
        assert journal.keeps() == 0
        journal.keep(30_000_000)
        assert journal.keeps() == 30_000_000
        journal.keep(0)
        assert journal.keeps() == 0
