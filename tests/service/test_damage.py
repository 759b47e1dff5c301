"""A deployment's database that was damaged: right answers or a diagnostic, whatever bit it was."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from dotr.service.database import OF_THEMSELVES, columns_of, digest, row_sum
from dotr.service.journal import LOG_TABLES, TABLES, Journal
from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture
from tests.service.deployments import HELD, HOLDING, LASTING, REACH, RULES, doors, stream

FED = ("feed", "rest.jsonl", "--dir", "damaged", "-o", "damaged/out.jsonl", "-q")
STATUS = ("status", "--dir", "damaged", "--format", "json")
WHY = ("explain", "--dir", "damaged", "--why-not", "Hot", "--at", "3")
KINDS = {"remembers": RULES, "holds": HOLDING, "lasts": LASTING}


def prepared(dotr: Dotr, rules: str) -> tuple[bytes, str]:
    """A deployment in `before`, half fed; the events of all, and the status of half."""
    Path("rules.dotr").write_text(rules)
    Path("holds.lars").write_text(HELD)
    Path("reach.dlog").write_text(REACH)
    lines = [line for number, one in enumerate(stream(40, bad=False)) for line in (one, *doors(one, number))]
    Path("first.jsonl").write_text("".join(f"{line}\n" for line in lines[:60]))
    Path("rest.jsonl").write_text("".join(f"{line}\n" for line in lines[60:]))
    assert dotr("deploy", "rules.dotr", "--dir", "damaged", "--keep", "1h").code == 0
    fed = ("feed", "first.jsonl", "--dir", "damaged", "-q", "--keep-open", "-o", "damaged/out.jsonl")
    assert dotr(*fed).code == 0
    shutil.copytree("damaged", "before")
    status = dotr(*STATUS).out
    ran = dotr(*FED)
    assert ran.code == 0, ran.err
    return Path("damaged/out.jsonl").read_bytes(), status


def again(content: bytes | None = None) -> None:
    """The deployment as it was half fed, with another database."""
    shutil.rmtree("damaged")
    shutil.copytree("before", "damaged")
    if content is not None:
        Path("damaged/deployment.db").write_bytes(content)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def outcome(dotr: Dotr, events: bytes, status: str) -> str:
    """The codes that were reported; "" where all is right. Fails where an answer is wrong."""
    said = dotr(*STATUS)
    if said.code == 0:
        assert said.out == status
    ran = dotr(*FED)
    if ran.code == 0:
        assert Path("damaged/out.jsonl").read_bytes() == events
    codes = set()
    for one in (said, ran):
        assert one.code in (0, 4, 5), one.err
        assert "D4999" not in one.err
        assert "Traceback" not in one.err
        if one.code:
            (code,) = {word for word in ("D5105", "D5202", "D5203", "D5207") if f"[{word}]" in one.err} - (
                {"D5202"} if "[D5105]" in one.err else set()
            )
            codes.add(code)
    return " ".join(sorted(codes))


def test_whatever_bit_is_damaged_the_events_are_right_or_there_is_a_diagnostic(dotr: Dotr, kind: str) -> None:
    events, status = prepared(dotr, KINDS[kind])
    whole = Path("before/deployment.db").read_bytes()
    noise, found = random.Random(kind), set[str]()
    for trial in range(240):
        if trial >= 60 and {"", "D5105"} <= found:
            break
        place, bit = noise.randrange(len(whole)), 1 << noise.randrange(8)
        again(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        found.add(outcome(dotr, events, status))
    assert {"", "D5105"} <= found


@pytest.mark.parametrize("table", [name for name in columns_of(TABLES) if name != "sums"])
def test_damage_in_a_row_of_any_table_is_reported_with_the_table(dotr: Dotr, table: str) -> None:
    """A bit in the middle of every value of the table, found by the value's own bytes."""
    events, status = prepared(dotr, LASTING)
    path = Path("before/deployment.db")
    whole = path.read_bytes()
    with sqlite3.connect(path) as connection:
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608  # a table of ours
    connection.close()
    reported = 0
    for value in {
        value for row in rows for value in row if isinstance(value, str | bytes) and len(value) > 4
    }:
        content = value.encode() if isinstance(value, str) else value
        place = whole.find(content[:60])
        if place < 0:
            continue
        at = place + len(content[:60]) // 2
        for wrong in (whole[at] ^ 1, 0xFF):
            again(whole[:at] + bytes([wrong]) + whole[at + 1 :])
            if table == "kept":
                asked = dotr(*WHY)
                assert (asked.code, f"`{table}`" in asked.err) == (4, True), asked.err
                reported += 1
            elif outcome(dotr, events, status):
                reported += 1
            else:
                assert table == "closed", "a closed background is closed again"
    if rows and table not in ("closed", "planned", "given"):
        assert reported


def test_a_row_that_is_gone_or_of_an_older_commit_is_missed(dotr: Dotr) -> None:
    prepared(dotr, LASTING)
    for change in (
        "DELETE FROM stated WHERE triple = (SELECT min(triple) FROM stated)",
        "INSERT INTO stated VALUES ('<urn:x:a> <urn:x:door> <urn:x:z>', '[false, true, \"\", null]')",
        "DELETE FROM positions",
        "UPDATE outputs SET length = length - 3, tail = ''",
        "UPDATE sums SET total = 'none' WHERE name = 'stated'",
        "DELETE FROM sums",
    ):
        again()
        with sqlite3.connect("damaged/deployment.db") as connection:
            connection.execute(change)
        connection.close()
        ran = dotr(*FED)
        assert (ran.code, "[D5105]" in ran.err) == (4, True), f"{change}: {ran.err}"


NONSENSE = (
    "UPDATE state SET snapshot = x'00'",
    "UPDATE state SET status = '[]'",
    'UPDATE state SET status = \'{"clock": 3, "commit": "x"}\'',
    "UPDATE stated SET entry = '{}'",
    "UPDATE stated SET entry = '[1]'",
    "UPDATE stated SET triple = replace(triple, ' ', '_')",
    "UPDATE positions SET position = '7'",
    "UPDATE positions SET position = '[1, 2]'",
    "UPDATE meta SET value = 'long' WHERE key = 'keep'",
    "UPDATE kept SET content = x'00'",
    "INSERT INTO planned VALUES (1, 5, '{}', x'00')",
    "UPDATE background SET triples = x'00'",
    "UPDATE outputs SET length = 'x'",
    "UPDATE closed SET content = CAST('dotr file [1]' AS BLOB)",
)


@pytest.mark.parametrize("change", NONSENSE)
def test_nonsense_that_has_its_sum_is_a_diagnostic(dotr: Dotr, change: str) -> None:
    events, status = prepared(dotr, LASTING)
    again()
    resummed(change)
    for command in (STATUS, FED, WHY):
        ran = dotr(*command)
        assert ran.code in ((1, 4) if command is WHY else (0, 4, 5)), ran.err
        assert "D4999" not in ran.err, ran.err
        if ran.code > 1:
            assert "[D5" in ran.err
        elif command is FED:
            assert Path("damaged/out.jsonl").read_bytes() == events
        elif command is STATUS:
            assert ran.out == status or "kept" in change or "keep" in change


def resummed(change: str) -> None:
    """Change the database, and write the sums that are right then."""
    with sqlite3.connect("damaged/deployment.db") as connection:
        connection.execute(change)
        for name in columns_of(TABLES):
            if name not in OF_THEMSELVES:
                total = sum(row_sum(name, row) for row in connection.execute(f"SELECT * FROM {name}"))  # noqa: S608  # ours
                connection.execute(
                    "UPDATE sums SET total = ? WHERE name = ?", (f"{total % 2**128:032x}", name)
                )
        closed = connection.execute("SELECT content FROM closed").fetchone()
        if closed is not None:
            connection.execute("UPDATE closed SET hash = ?", (digest(closed[0]),))
    connection.close()


def test_a_deployment_of_a_format_before_sums_gets_them(dotr: Dotr) -> None:
    events, _ = prepared(dotr, LASTING)
    again()
    with sqlite3.connect("damaged/deployment.db") as connection:
        for table in ("sums", "period", *columns_of(LOG_TABLES)):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE meta SET value = '6' WHERE key = 'format'")
    connection.close()
    assert dotr(*STATUS).code == 0
    ran = dotr(*FED)
    assert (ran.code, Path("damaged/out.jsonl").read_bytes()) == (0, events), ran.err
    with Journal("damaged", exclusive=False) as journal:
        assert journal.snapshot() is not None
    with sqlite3.connect("damaged/deployment.db") as connection:
        connection.execute("UPDATE stated SET entry = entry || ' '")
    connection.close()
    assert "[D5105]" in dotr(*FED).err


def test_the_sums_of_a_feed_are_those_of_its_rows(dotr: Dotr) -> None:
    """After commits, a change from a time on, and what is kept going away."""
    prepared(dotr, LASTING)
    Path("rules.dotr").write_text(LASTING.replace("20 s", "5 s"))
    assert dotr("deploy", "rules.dotr", "--dir", "damaged", "--from", "500").code == 0
    line = json.dumps({"time": 600, "graph": "<urn:x:a> <urn:x:door> <urn:x:b> ."})
    Path("more.jsonl").write_text(f"{line}\n{line.replace('600', '610')}\n")
    assert dotr("feed", "more.jsonl", "--dir", "damaged", "-q").code == 0
    with Journal("damaged") as journal:
        journal.keep(0)
    with sqlite3.connect("damaged/deployment.db") as connection:
        for name in columns_of(TABLES):
            if name not in OF_THEMSELVES:
                total = sum(row_sum(name, row) for row in connection.execute(f"SELECT * FROM {name}"))  # noqa: S608  # ours
                (found,) = connection.execute("SELECT total FROM sums WHERE name = ?", (name,)).fetchone()
                assert int(found, 16) == total % 2**128, name
    connection.close()
