"""The inbox: what was answered is there, once, whatever is killed, full, damaged or sent again."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dotr.errors import DotrError, EngineError, RefusedError
from dotr.io.decode.documents import Format
from dotr.io.tables.mapping import parse_mapping
from dotr.service.database import Disk
from dotr.service.inbox import DATABASE, Inbox, InboxTransport, Incoming, Received, Row, format_called
from tests.service.deployments import FailingDisk

LINES = "application/x-ndjson"
WAIT = 20.0


class CountingDisk(Disk):
    """Counts commits, each of which takes a while, as on a disk that syncs."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.commits, self._seconds = 0, seconds

    def execute(self, connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> None:
        if statement == "COMMIT":
            self.commits += 1
            time.sleep(self._seconds)
        super().execute(connection, statement, values)


class HeldDisk(Disk):
    """Holds commits back until `go` is set."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()

    def execute(self, connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> None:
        if statement == "COMMIT":
            assert self.go.wait(WAIT)
        super().execute(connection, statement, values)


def put(inbox: Inbox, content: str, source: str = "a", **more: Any) -> Received:
    return inbox.append(source, content.encode(), format=LINES, **more).result(WAIT)


def code_of(error: BaseException | None) -> str:
    assert isinstance(error, DotrError)
    return error.diagnostics[0].code


def rows(inbox: Inbox, source: str = "a", after: int = 0) -> list[tuple[int, bytes]]:
    return [(row.number, row.content) for row in inbox.read(source, after, 10_000)]


def gone(inbox: Inbox, left: int) -> None:
    """Wait until so many rows are left."""
    for _ in range(500):
        if sum(count.rows for count in inbox.counts().values()) == left:
            return
        time.sleep(0.01)
    raise AssertionError(inbox.counts())


def test_a_row_has_what_was_given_and_sources_have_their_own(tmp_path: Path) -> None:
    with Inbox(str(tmp_path), clock=lambda: 5.5) as inbox:
        assert put(inbox, "one", time="7", key="k", mapping="m") == (1, False)
        assert put(inbox, "two", "b") == (2, False)
        assert put(inbox, "three") == (3, False)
        assert inbox.read("a", 0, 1) == [Row(1, "a", b"one", LINES, "7", 5_500_000, "k", "m")]
        assert rows(inbox, "a", 1) == [(3, b"three")]
        assert rows(inbox, "b") == [(2, b"two")]
        assert inbox.counts() == {"a": (2, 8), "b": (1, 3)}
        assert [row.number for row in inbox.read("a", 0, 10, max_bytes=4)] == [1], "but for the first"


def test_many_senders_share_a_commit(tmp_path: Path) -> None:
    disk = CountingDisk(0.02)
    numbers: list[int] = []
    with Inbox(str(tmp_path), disk=disk) as inbox:

        def send(name: str) -> None:
            for number in range(5):
                numbers.append(put(inbox, f"{name} {number}").number)

        senders = [threading.Thread(target=send, args=(f"s{n}",)) for n in range(100)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert disk.commits < 60
        assert sorted(numbers) == list(range(1, 501))
        assert len({content for _, content in rows(inbox)}) == 500


def test_an_answer_comes_after_its_commit(tmp_path: Path) -> None:
    disk = HeldDisk()
    with Inbox(str(tmp_path), disk=disk) as inbox:
        disk.go.clear()
        future = inbox.append("a", b"x", format=LINES)
        time.sleep(0.05)
        assert not future.done()
        assert inbox.last == 0
        assert rows(inbox) == []
        disk.go.set()
        assert future.result(WAIT).number == 1
        assert inbox.last == 1


def test_a_key_stands_for_its_bytes_also_after_they_have_gone(tmp_path: Path) -> None:
    with Inbox(str(tmp_path)) as inbox:
        assert put(inbox, "one", key="k") == (1, False)
        assert put(inbox, "one", key="k") == (1, True)
        assert put(inbox, "one", "b", key="k") == (2, False), "keys are those of a source"
        with pytest.raises(RefusedError) as refused:
            put(inbox, "two", key="k")
        assert code_of(refused.value) == "D5231"
        inbox.forget({"a": 1, "b": 2})
        gone(inbox, 0)
    with Inbox(str(tmp_path)) as inbox:
        assert put(inbox, "one", key="k") == (1, True)
        assert put(inbox, "one") == (3, False)
        assert inbox.counts() == {"a": (1, 3)}, "what was not taken twice counts once"


def test_a_key_is_known_within_a_commit_and_forgotten_after_a_day(tmp_path: Path) -> None:
    disk, now = HeldDisk(), [1000.0]
    with Inbox(str(tmp_path), disk=disk, clock=lambda: now[0]) as inbox:
        disk.go.clear()
        futures = [inbox.append("a", b"x", format=LINES, key=key) for key in ("h", "k", "k")]
        futures.append(inbox.append("a", b"y", format=LINES, key="k"))
        disk.go.set()
        assert [future.result(WAIT) for future in futures[:3]] == [(1, False), (2, False), (2, True)]
        assert code_of(futures[3].exception(WAIT)) == "D5231"
        now[0] += 23 * 3600
        assert put(inbox, "x", key="k") == (2, True)
        now[0] += 2 * 3600
        assert put(inbox, "y", key="k") == (3, False)


def test_numbers_are_never_used_twice(tmp_path: Path) -> None:
    for number in range(1, 4):
        with Inbox(str(tmp_path)) as inbox:
            assert put(inbox, "x").number == number
            inbox.forget({"a": number})
            gone(inbox, 0)
    for name in tmp_path.glob(f"{DATABASE}*"):
        name.unlink()
    with Inbox(str(tmp_path), after=3) as inbox:
        assert put(inbox, "x").number == 4


def test_arrivals_never_go_back(tmp_path: Path) -> None:
    now = [100.0]
    for step in (0.0, 50.0, -140.0, 30.0):
        now[0] += step
        with Inbox(str(tmp_path), clock=lambda: now[0]) as inbox:
            put(inbox, "x")
            inbox.forget({"b": 1})
    with Inbox(str(tmp_path)) as inbox:
        put(inbox, "x", arrival=200_000_000)
        put(inbox, "x", arrival=3)
        arrivals = [row.arrival // 1_000_000 for row in inbox.read("a", 0, 10)]
    assert arrivals == [100, 150, 150, 150, 200, 200]


def test_a_full_inbox_refuses_until_rows_go(tmp_path: Path) -> None:
    with Inbox(str(tmp_path), max_rows=3, max_bytes=10) as inbox:
        put(inbox, "1234567")
        with pytest.raises(RefusedError) as refused:
            put(inbox, "1234")
        assert code_of(refused.value) == "D5230"
        assert not inbox.full
        put(inbox, "1", key="k")
        put(inbox, "1")
        assert inbox.full
        with pytest.raises(RefusedError):
            put(inbox, "")
        inbox.forget({"a": 1})
        gone(inbox, 2)
        assert put(inbox, "12345").number == 4
    with Inbox(str(tmp_path), max_rows=3) as inbox:
        assert inbox.full


def test_what_is_forgotten_goes_in_steps_and_by_source(tmp_path: Path) -> None:
    with Inbox(str(tmp_path)) as inbox:
        futures = [inbox.append("ab"[n % 2], b"x", format=LINES) for n in range(5_000)]
        futures[-1].result(WAIT)
        inbox.forget({"a": 4_001})
        gone(inbox, 2_999)
        assert inbox.counts() == {"a": (499, 499), "b": (2_500, 2_500)}
        assert rows(inbox)[0][0] == 4_003
    with Inbox(str(tmp_path)) as inbox:
        assert inbox.counts() == {"a": (499, 499), "b": (2_500, 2_500)}


def test_documents_given_together_are_one_commit_and_each_has_its_answer(tmp_path: Path) -> None:
    disk = CountingDisk()
    with Inbox(str(tmp_path), disk=disk) as inbox:
        put(inbox, "there", key="k")
        before = disk.commits
        given = [
            Incoming(b"one", LINES, key="a"),
            Incoming(b"there", LINES, key="k"),
            Incoming(b"one", LINES, key="a"),  # the key of one that came with it
            Incoming(b"other", LINES, key="k"),
            Incoming(b"new", LINES, key="k", renew=True),
            Incoming(b"new", LINES, key="k"),
        ]
        answers = inbox.append_all("a", given).result(WAIT)
        assert disk.commits == before + 1
        assert answers[:3] == [(2, False), (1, True), (2, True)]
        assert isinstance(answers[3], RefusedError)
        assert code_of(answers[3]) == "D5231"
        assert answers[4:] == [(3, False), (3, True)]
        assert rows(inbox) == [(1, b"there"), (2, b"one"), (3, b"new")]
        assert inbox.counts() == {"a": (3, 11)}
    with Inbox(str(tmp_path)) as inbox:
        assert inbox.counts() == {"a": (3, 11)}


def test_of_documents_given_together_those_are_accepted_for_which_there_is_room(tmp_path: Path) -> None:
    given = [Incoming(b"%d" % number, LINES) for number in range(5)]
    with Inbox(str(tmp_path), max_rows=3, max_bytes=100) as inbox:
        assert len(inbox.append_all("a", given).result(WAIT)) == 3
        with pytest.raises(RefusedError) as full:
            inbox.append_all("a", given[3:])
        assert code_of(full.value) == "D5230"
        inbox.forget({"a": 2})
        gone(inbox, 1)
        large = [Incoming(b"x" * 90, LINES), Incoming(b"x" * 90, LINES)]
        assert inbox.append_all("a", large).result(WAIT) == [(4, False)]
        assert [number for number, _ in rows(inbox)] == [3, 4]


def test_a_disk_that_fails_takes_none_of_what_was_given_together(tmp_path: Path) -> None:
    given = [Incoming(b"%d" % number, LINES, key=f"k{number}") for number in range(4)]
    failed = 0
    for at in range(9, 20):
        folder = tmp_path / str(at)
        with Inbox(str(folder), disk=FailingDisk(at)) as inbox:
            try:
                inbox.append_all("a", given).result(WAIT)
            except EngineError:
                failed += 1
                assert rows(inbox) == []
                inbox.append_all("a", given).result(WAIT)
            assert rows(inbox) == [(n + 1, b"%d" % n) for n in range(4)]
        with Inbox(str(folder)) as inbox:
            assert inbox.counts() == {"a": (4, 4)}
    assert failed > 2


def test_rows_that_are_one_json_line_each_are_decoded_together(tmp_path: Path) -> None:
    """Their places and positions are those of rows; others stay alone."""
    line = b'{"time":%d,"graph":"<urn:a> <urn:b> %d ."}'
    with Inbox(str(tmp_path)) as inbox:
        given = [Incoming(line % (n, n), LINES) for n in range(5)]
        given.insert(3, Incoming(b"<urn:a> <urn:b> 1 .", "text/turtle", time="2"))
        inbox.append_all("a", given).result(WAIT)
        (batch,) = InboxTransport(inbox, {"a": "event"}).open("a", None)
        assert [[place for place, _ in one.each] or [one.place] for one in batch] == [
            ["a@1", "a@2", "a@3"],
            ["a@4"],
            ["a@5", "a@6"],
        ]
        assert [one.mark for one in batch] == [3, 4, 6]


def test_a_full_disk_fails_those_who_wait_and_nobody_else(tmp_path: Path) -> None:
    failed: list[str] = []
    for at in range(9, 40):
        folder = tmp_path / str(at)
        with Inbox(str(folder), disk=FailingDisk(at)) as inbox:
            accepted = []
            for number in range(6):
                try:
                    accepted.append((put(inbox, str(number), key=str(number)).number, b"%d" % number))
                except EngineError as error:
                    failed.append(code_of(error))
                    accepted.append((put(inbox, str(number), key=str(number)).number, b"%d" % number))
                inbox.forget({"b": 1})
            assert rows(inbox) == accepted == [(n + 1, b"%d" % n) for n in range(6)]
            assert inbox.counts() == {"a": (6, 6)}
        with Inbox(str(folder)) as inbox:
            assert rows(inbox) == accepted
    assert len(failed) > 5
    assert set(failed) == {"D4201"}


def test_a_sender_that_gave_up_before_the_commit_sends_nothing(tmp_path: Path) -> None:
    disk = HeldDisk()
    with Inbox(str(tmp_path), disk=disk) as inbox:
        disk.go.clear()
        first = inbox.append("a", b"1", format=LINES)
        time.sleep(0.1)
        second, third = (inbox.append("a", b"%d" % n, format=LINES) for n in (2, 3))
        assert second.cancel()
        disk.go.set()
        assert (first.result(WAIT).number, third.result(WAIT).number) == (1, 2)
        assert rows(inbox) == [(1, b"1"), (2, b"3")]
        assert inbox.counts() == {"a": (2, 2)}


def test_a_name_that_cannot_be_written_fails_nobody_else(tmp_path: Path) -> None:
    with Inbox(str(tmp_path)) as inbox:
        with pytest.raises(UnicodeEncodeError):
            inbox.append("a", b"x", format=LINES, key="\ud800")
        assert put(inbox, "y").number == 1


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with Inbox(str(tmp_path)):
        program = "import sys; from dotr.service.inbox import Inbox; Inbox(sys.argv[1])"
        ran = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=False)
        assert b"D5204" in ran.stderr
    Inbox(str(tmp_path)).close()


def test_a_wait_ends_with_a_row_and_none_is_overlooked(tmp_path: Path) -> None:
    with Inbox(str(tmp_path)) as inbox:
        seen: list[int] = []

        def read() -> None:
            while len(seen) < 300:
                inbox.wait(WAIT, seen[-1] if seen else 0)
                seen.extend(number for number, _ in rows(inbox, "a", seen[-1] if seen else 0))

        reader = threading.Thread(target=read)
        begun = time.monotonic()
        reader.start()
        for number in range(300):
            put(inbox, str(number))
        reader.join(WAIT)
        assert seen == list(range(1, 301))
        assert time.monotonic() - begun < WAIT
        begun = time.monotonic()
        inbox.wait(0.05, 300)
        assert time.monotonic() - begun >= 0.05


def test_what_waits_when_it_is_closed_is_written(tmp_path: Path) -> None:
    inbox = Inbox(str(tmp_path), disk=CountingDisk(0.01))
    futures = [inbox.append("a", b"x", format=LINES) for _ in range(50)]
    inbox.close()
    assert [future.result(0).number for future in futures] == list(range(1, 51))
    with pytest.raises(EngineError):
        inbox.append("a", b"x", format=LINES)


SENDER = """
import sys, threading, time
from dotr.service.inbox import Inbox
inbox = Inbox(sys.argv[1])
def send(name):
    for number in range(10**9):
        key = f"{name}-{number}"
        got = inbox.append("a", (key * 300).encode(), format="x", key=key).result()
        sys.stdout.write(f"{key} {got.number}\\n")
        sys.stdout.flush()
def forget():
    while True:
        inbox.forget({"a": inbox.last - 20})
        time.sleep(0.005)
threading.Thread(target=forget, daemon=True).start()
for name in sys.argv[2:]:
    threading.Thread(target=send, args=(name,)).start()
"""


def test_a_kill_at_any_moment_loses_no_answer_and_takes_nothing_twice(tmp_path: Path) -> None:
    noise = random.Random(5)
    answers: dict[str, int] = {}
    for life in range(6):
        names = [f"{life}{letter}" for letter in "xyz"]
        with subprocess.Popen(
            [sys.executable, "-c", SENDER, str(tmp_path), *names], stdout=subprocess.PIPE
        ) as sender:
            assert sender.stdout is not None
            first = sender.stdout.readline()
            time.sleep(noise.random() / 3)
            sender.send_signal(signal.SIGKILL)
            text = first + sender.stdout.read()
        for line in text.decode().splitlines()[: None if text.endswith(b"\n") else -1]:
            key, number = line.split()
            assert int(number) not in answers.values()
            answers[key] = int(number)
    assert len(answers) > 50
    with Inbox(str(tmp_path)) as inbox:
        last = max(answers.values())
        assert inbox.last >= last
        found = dict(rows(inbox))
        assert sorted(found) == list(range(min(found), inbox.last + 1))
        assert len(set(found.values())) == len(found)
        for key, number in answers.items():
            assert number < min(found) or found[number] == (key * 300).encode()
            again = inbox.append("a", (key * 300).encode(), format="x", key=key)
            assert again.result(WAIT) == (number, True)


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM rows WHERE number = 2",
        "UPDATE rows SET digest = zeroblob(16) WHERE number = 2",
        "UPDATE head SET number = 2",
        "UPDATE head SET total = 'x'",
        "DELETE FROM head",
        "UPDATE rows SET size = 'x' WHERE number = 2",
        "DROP TABLE rows",
    ],
)
def test_rows_that_are_missing_or_not_those_that_were_committed_are_found_at_opening(
    tmp_path: Path, change: str
) -> None:
    with Inbox(str(tmp_path)) as inbox:
        for number in range(3):
            put(inbox, str(number))
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(EngineError) as raised:
        Inbox(str(tmp_path))
    assert code_of(raised.value) == "D5202"


@pytest.mark.parametrize("column", ["content", "source", "time", "key", "arrival"])
def test_a_damaged_value_is_found_when_its_row_is_read(tmp_path: Path, column: str) -> None:
    with Inbox(str(tmp_path)) as inbox:
        put(inbox, "one")
        put(inbox, "two")
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        value = "x'41'" if column == "content" else "'41'"
        connection.execute(f"UPDATE rows SET {column} = {value} WHERE number = 2")  # noqa: S608  # a column of ours
    connection.close()
    with Inbox(str(tmp_path)) as inbox:
        source = "41" if column == "source" else "a"
        with pytest.raises(EngineError) as raised:
            inbox.read(source, 0)
        assert code_of(raised.value) == "D5105"


def test_whatever_bit_is_damaged_rows_are_right_or_there_is_a_diagnostic(tmp_path: Path) -> None:
    contents = [f"document {number} ".encode() * 40 for number in range(30)]
    with Inbox(str(tmp_path)) as inbox:
        for content in contents:
            inbox.append("a", content, format=LINES, key=content[:11].decode()).result(WAIT)
    whole, noise, found = (tmp_path / DATABASE).read_bytes(), random.Random(3), set()
    for _ in range(120):
        place, bit = noise.randrange(len(whole)), 1 << noise.randrange(8)
        for name in tmp_path.glob(f"{DATABASE}-*"):
            name.unlink()
        (tmp_path / DATABASE).write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        try:
            with Inbox(str(tmp_path)) as inbox:
                assert [content for _, content in rows(inbox)] == contents
                found.add("")
        except EngineError as error:
            found.add(code_of(error))
    assert found >= {"", "D5105", "D5202"}
    assert found <= {"", "D5105", "D5202", "D5203"}


def test_another_format_and_nonsense_are_diagnostics(tmp_path: Path) -> None:
    Inbox(str(tmp_path)).close()
    with sqlite3.connect(tmp_path / DATABASE) as connection:
        connection.execute("UPDATE head SET format = 9")
    connection.close()
    with pytest.raises(EngineError) as raised:
        Inbox(str(tmp_path))
    assert code_of(raised.value) == "D5203"
    (tmp_path / DATABASE).write_bytes(b"not a database, but long enough to be taken for one" * 99)
    with pytest.raises(EngineError) as raised:
        Inbox(str(tmp_path))
    assert code_of(raised.value) == "D5202"
    (tmp_path / "file").touch()
    with pytest.raises(EngineError) as raised:
        Inbox(str(tmp_path / "file"))
    assert code_of(raised.value) == "D4201"


def test_formats_are_called_by_content_type_or_by_name() -> None:
    assert format_called("Text/Turtle; charset=utf-8") is Format.TURTLE
    assert format_called("JSON lines") is Format.JSONLINES
    assert format_called("image/png") is None


def test_a_transport_gives_rows_of_its_sources_and_forgets_what_is_committed(tmp_path: Path) -> None:
    with Inbox(str(tmp_path)) as inbox:
        transport = InboxTransport(inbox, {"a": "event", "b": "event"})
        futures: list[Future[Received]] = [
            inbox.append("abc"[n % 3], b"%d" % n, format=LINES) for n in range(9)
        ]
        futures[-1].result(WAIT)
        assert transport.partitions() == ["a", "b"]
        ((first, second, third),) = transport.open("b", None)
        assert [d.content for d in (first, second, third)] == [b"1", b"4", b"7"]
        assert first.place == "b@2"
        assert [d.content for batch in transport.open("b", first.mark) for d in batch] == [b"4", b"7"]
        assert list(transport.open("b", third.mark)) == []
        transport.committed({"b": transport.position("b", second.mark), "a": None})
        gone(inbox, 7)
        begun = time.monotonic()
        inbox.append("a", b"x", format=LINES).result(WAIT)
        transport.wait(WAIT)
        assert time.monotonic() - begun < WAIT, "it came after the last look"
        with pytest.raises(EngineError) as raised:
            list(transport.open("a", 11))
        assert code_of(raised.value) == "D5202"


def test_times_formats_and_mappings_of_rows_are_those_of_documents(tmp_path: Path) -> None:
    modes = ("event", "arrival", "header", "event-or-arrival")
    mapping = parse_mapping("[] <urn:p> {x} .")
    with Inbox(str(tmp_path), clock=lambda: 61.5) as inbox:
        for mode in modes:
            inbox.append(mode, b"", format="text/turtle")
            inbox.append(mode, b"", format="text/csv", time="7", mapping="m").result(WAIT)
        transport = InboxTransport(inbox, {mode: mode for mode in modes}, {"m": mapping})
        found = {mode: next(iter(transport.open(mode, None))) for mode in modes}
    assert {mode: [document.time for document in found[mode]] for mode in modes} == {
        "event": ["", "7"],
        "arrival": ["1970-01-01T00:01:01.5Z", "7"],
        "header": ["", "7"],
        "event-or-arrival": ["", "7"],
    }
    assert [found[mode][0].arrival for mode in modes] == [None, None, None, 61_500_000]
    assert [document.format for document in found["event"]] == [Format.TURTLE, None]
    assert [document.mapping for document in found["event"]] == [None, replace(mapping, format="csv")]
