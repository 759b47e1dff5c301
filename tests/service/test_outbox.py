"""The outbox: events as rows of the commit, in order and without gaps, whoever is killed or reads."""

from __future__ import annotations

import base64
import gzip
import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dotr.cli.main import run
from dotr.errors import DataError, DotrError, EngineError
from dotr.io.decode.documents import Format
from dotr.io.feeds import DocumentSource
from dotr.service.database import Disk
from dotr.service.inbox import Inbox, InboxTransport
from dotr.service.journal import DATABASE, FORMAT, Commit, Journal, Prepared
from dotr.service.logs import ID_SHIFT, Letter, NewEvents, NewLetters, Outcome, joined_spans
from dotr.service.outbox import Cursors, DeadLetterRows, Origin, Outbox, OutboxReader, Outcomes
from tests.service.deployments import RULES, FailingDisk, deploy, feed, stream
from tests.service.test_source_and_sink import Killed, Queue, one_each, source, three_each

LINES = stream(90, bad=False)
WAIT = 20.0


def code_of(error: BaseException) -> str:
    assert isinstance(error, DotrError)
    return error.diagnostics[0].code


def run_over(folder: Path, lines: Sequence[str]) -> list[str]:
    """The events of `dotr run`."""
    folder.mkdir(exist_ok=True)
    (folder / "rules.dotr").write_text(RULES)
    (folder / "in.jsonl").write_text("".join(f"{line}\n" for line in lines))
    files = [str(folder / name) for name in ("rules.dotr", "in.jsonl", "out.jsonl")]
    assert run(["run", *files[:2], "-o", files[2], "-q"]) == 0
    return (folder / "out.jsonl").read_text().splitlines()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    found = run_over(tmp_path_factory.mktemp("run"), LINES)
    assert len(found) > 60
    return found


def lines_of(state: str) -> list[str]:
    """The lines of the outbox; their numbers have no gap."""
    with OutboxReader(state) as reader:
        rows = reader.after(0, 10_000)
        assert [row.number for row in rows] == list(range(1, reader.last() + 1))
        return [row.line for row in rows]


# -- what a feed writes


@pytest.mark.parametrize("documents", [one_each, three_each])
def test_the_outbox_has_the_events_of_a_run(expected: list[str], tmp_path: Path, documents: Any) -> None:
    state = deploy(tmp_path)
    feed(state, [], every=7, source=source(Queue(documents(LINES))), others=[Outbox()])
    assert lines_of(state) == expected
    with OutboxReader(state) as reader:
        for row in reader.after(0):
            line = json.loads(row.line)
            assert (line["rule"], line["time"] * 1_000_000, line["id"]) == (row.rule, row.time, row.id)
            assert reader.by_id(row.id) == row
        assert reader.by_id("urn:dotr:none") is None


class KillingOutbox(Outbox):
    """Fails at the `kill`-th call of a feed."""

    kill: int = 0
    calls: int = 0

    def _step(self) -> None:
        self.calls += 1
        if self.calls == self.kill:
            raise Killed

    def write(self, events: Any, clock: Any) -> None:
        self._step()
        super().write(events, clock)

    def prepare(self, commit: int) -> Prepared:
        self._step()
        return super().prepare(commit)

    def confirm(self, commit: int) -> None:
        self._step()
        super().confirm(commit)


def test_from_inbox_to_outbox_a_kill_at_any_step_shows_nowhere(expected: list[str], tmp_path: Path) -> None:
    for kill in range(1, 10_000, 7):
        folder = tmp_path / f"kill{kill}"
        folder.mkdir()
        state = deploy(folder)
        with Inbox(state) as inbox:
            for line in LINES:
                last = inbox.append("a", line.encode(), format="application/x-ndjson")
            last.result(WAIT)
        killed = False
        for at in (kill, 0):
            with Inbox(state) as inbox:
                transport = InboxTransport(inbox, {"a": "event"})
                outcomes = Outcomes(transport.origin)
                reading = DocumentSource(transport, Format.JSONLINES)
                try:
                    feed(
                        state,
                        [],
                        every=7,
                        source=reading,
                        others=[KillingOutbox(kill=at)],
                        outcomes=outcomes,
                    )
                    break
                except Killed:
                    killed = True
        assert lines_of(state) == expected
        with OutboxReader(state) as reader:
            assert [reader.outcome(n) is not None for n in (1, 45, 90, 91)] == [True, True, True, False]
        if not killed:
            break
    assert kill > 30


def test_a_disk_that_fails_at_any_write_loses_and_repeats_nothing(
    expected: list[str], tmp_path: Path
) -> None:
    for at in range(1, 100_000, 3):
        folder = tmp_path / f"at{at}"
        folder.mkdir()
        state = deploy(folder)
        queue, disk = Queue(one_each(LINES)), FailingDisk(at)
        try:
            feed(state, [], every=20, source=source(queue), others=[Outbox()], disk=disk)
        except EngineError as error:
            raised = code_of(error)
            feed(state, [], every=20, source=source(queue), others=[Outbox()])
        else:
            raised = ""
        assert raised in ("D4201", "")
        assert lines_of(state) == expected
        if disk.count < at:
            break
    assert at > 30


FEEDER = """
import sys
from dotr.io.decode.documents import Format
from dotr.io.feeds import DocumentSource
from dotr.service.database import Disk
from dotr.service.inbox import Inbox, InboxTransport
from dotr.service.outbox import Outbox
from tests.service.deployments import feed
state = sys.argv[1]
with Inbox(state) as inbox:
    transport = InboxTransport(inbox, {"a": "event"})
    print("ready", flush=True)
    reading = DocumentSource(transport, Format.JSONLINES)
    feed(state, [], every=1, source=reading, others=[Outbox(keep=20_000_000)])
print("done", flush=True)
"""


def test_processes_killed_at_random_moments_leave_numbers_without_gaps(
    expected: list[str], tmp_path: Path
) -> None:
    state, noise = deploy(tmp_path), random.Random(4)
    with Inbox(state) as inbox:
        for line in LINES:
            last = inbox.append("a", line.encode(), format="application/x-ndjson")
        last.result(WAIT)
    killed = 0
    while True:
        command = [sys.executable, "-c", FEEDER, state]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as feeding:
            assert feeding.stdout is not None
            feeding.stdout.readline()
            if killed < 3:
                time.sleep(noise.random() / 5)
                feeding.send_signal(signal.SIGKILL)
            rest = feeding.stdout.read()
        if b"done" in rest:
            break
        killed += 1
        assert killed < 10
    assert killed
    with OutboxReader(state) as reader:
        first, last_number, size = reader.bounds()
        assert last_number == len(expected)
        assert first > 1, "what was 20 s older went"
        assert [row.line for row in reader.after(0)] == expected[first - 1 :]
        assert size == sum(len(line) for line in expected[first - 1 :])


# -- rows, numbers, what is kept


def put(journal: Journal, *outputs: Prepared) -> None:
    journal.commit(Commit({}, {}, {}, outputs))


def events(first: int, count: int) -> list[tuple[int, str, str, str]]:
    return [
        (n // 2, "ab"[n % 2], f"urn:dotr:{n}", json.dumps({"n": n, "x": "é"}))
        for n in range(first, first + count)
    ]


@pytest.fixture
def state(tmp_path: Path) -> str:
    return deploy(tmp_path)


class Statements(Disk):
    """Notes what is executed."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def execute(self, connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> None:
        self.found.append(statement)
        super().execute(connection, statement, values)


@pytest.mark.parametrize(
    ("commit", "synced"),
    [
        (Commit({}, {}, {}, ()), False),
        (Commit({}, {}, {("files", "a"): 1}, (Prepared(),)), False),
        (Commit({}, {}, {("inbox", "a"): 1}, ()), True),
        (Commit({}, {}, {}, (Prepared(events=NewEvents([(1, "a", "b", "c")])),)), True),
        (Commit({}, {}, {}, (Prepared(outcomes={1: ("a", Outcome())}),)), True),
    ],
)
def test_a_power_cut_takes_back_no_commit_that_others_saw(state: str, commit: Commit, synced: bool) -> None:
    disk = Statements()
    with Journal(state, disk=disk) as journal:
        journal.commit(commit)
    assert ("PRAGMA synchronous = FULL" in disk.found) is synced


def test_pages_of_all_rules_and_of_some(state: str) -> None:
    with Journal(state) as journal, OutboxReader(state) as reader:
        assert (reader.first(), reader.last(), reader.after(0), reader.since(5)) == (1, 0, [], 0)
        put(journal, Prepared(events=NewEvents(events(1, 30_000))))
        assert (reader.first(), reader.last()) == (1, 30_000)
        assert [row.number for row in reader.after(7, 3)] == [8, 9, 10]
        assert [row.number for row in reader.after(7, 3, ["b"])] == [9, 11, 13]
        assert [row.number for row in reader.after(29_998, 5)] == [29_999, 30_000]
        assert reader.after(40_000) == []
        assert reader.page(0, 10, ["none"])[:2] == ([], 20_000)
        assert reader.page(20_000, 10, ["none"])[:2] == ([], 30_000)
        assert reader.page(0, 2, ["a"]).upto == 4
        assert reader.after(0, 10, ["none"]) == []
        assert len(reader.after(0, 20_000, ["a", "b"])) == 20_000
        for number in (1, 16_383, 16_384, 30_000):
            found = reader.by_id(f"urn:dotr:{number}")
            assert found is not None
            assert found.number == number
        assert reader.by_id("urn:dotr:0") is None
        assert reader.since(0) == 0
        assert reader.since(5) == 9
        assert reader.since(15_000) == 29_999
        assert reader.since(20_000) == 30_000


def test_what_is_too_old_goes_a_bounded_part_at_a_commit(state: str) -> None:
    with Journal(state) as journal, OutboxReader(state) as reader:
        put(journal, Prepared(events=NewEvents(events(1, 5_000))))
        put(journal, Prepared(events=NewEvents(events(5_001, 10), low=2_000)))
        assert reader.bounds()[:2] == (1_021, 5_010)
        for _ in range(3):
            put(journal, Prepared(events=NewEvents([], low=2_000)))
        assert reader.bounds()[:2] == (4_000, 5_010)
        assert reader.after(0, 2)[0].number == 4_000
        assert reader.since(0) == 3_999
        put(journal, Prepared(events=NewEvents(events(5_011, 5), low=10_000)))
        put(journal, Prepared(events=NewEvents([], low=10_000)))
        assert reader.bounds() == (5_016, 5_015, 0)
        put(journal, Prepared(events=NewEvents(events(5_016, 1))))
        assert [row.number for row in reader.after(0)] == [5_016]


def test_what_is_too_much_goes_but_not_what_a_cursor_has_not_passed(state: str) -> None:
    with Journal(state) as journal, OutboxReader(state) as reader, Cursors(state) as cursors:
        cursors.begin("hook")
        cursors.move("hook", 30, "a state")
        cursors.begin("board", 100)
        put(journal, Prepared(events=NewEvents(events(1, 200), max_bytes=1_000)))
        assert reader.first() == 31
        assert cursors.held(200) == 170
        cursors.move("hook", 190)
        put(journal, Prepared(events=NewEvents([], max_bytes=1_000)))
        assert reader.first() == 101
        cursors.drop("board")
        put(journal, Prepared(events=NewEvents([], max_bytes=1_000)))
        first, last, size = reader.bounds()
        assert last == 200
        assert size == sum(len(row.line.encode()) for row in reader.after(0)) <= 1_000
        assert 150 < first <= 191
    with Cursors(state) as cursors:
        assert cursors.begin("hook", 7).number == 190
        assert cursors.all()["hook"].state == ""


def test_an_event_is_found_by_its_id_without_a_scan(state: str) -> None:
    with Journal(state):
        connection = sqlite3.connect(Path(state, DATABASE))
        query = f"SELECT number FROM outbox WHERE number >> {ID_SHIFT} = 3 AND id = 'x'"  # noqa: S608  # a number
        ((*_, plan),) = connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
        connection.close()
    assert "outbox_ids" in plan


def test_cursors_are_moved_while_a_feed_commits(state: str) -> None:
    with Journal(state) as journal, Cursors(state) as cursors:
        done = threading.Event()

        def deliver(name: str) -> None:
            number = 0
            while not done.is_set():
                number += 1
                cursors.move(name, number)

        threads = [threading.Thread(target=deliver, args=(name,)) for name in "xy"]
        for thread in threads:
            thread.start()
        for number in range(100):
            put(journal, Prepared(events=NewEvents(events(10 * number, 10), low=0)))
        done.set()
        for thread in threads:
            thread.join()
        moved = cursors.all()
    with Cursors(state) as cursors, Journal(state), OutboxReader(state) as reader:
        assert cursors.all() == moved
        assert reader.cursors() == [moved["x"], moved["y"]]
        assert reader.last() == 1_000


@pytest.mark.parametrize("look", [None, 0.01])
def test_readers_wake_with_a_commit_and_none_is_overlooked(state: str, look: float | None) -> None:
    with Journal(state) as journal, OutboxReader(state, look=look) as reader:
        seen: dict[int, list[int]] = {n: [] for n in range(5)}

        def read(name: int) -> None:
            own = seen[name]
            while len(own) < 300:
                reader.wait(WAIT, own[-1] if own else 0)
                own += [row.number for row in reader.after(own[-1] if own else 0, 7)]

        threads = [threading.Thread(target=read, args=(name,)) for name in seen]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        for number in range(100):
            put(journal, Prepared(events=NewEvents(events(3 * number, 3))))
            if look is None:
                reader.notify()
        for thread in threads:
            thread.join()
        assert time.monotonic() - begun < WAIT
        assert all(own == list(range(1, 301)) for own in seen.values())
        begun = time.monotonic()
        reader.wait(0.05, 300)
        assert time.monotonic() - begun >= 0.05


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM outbox WHERE number = 5",
        "DELETE FROM outbox WHERE number = 9",
        "DELETE FROM outbox WHERE number = 1",
        "UPDATE outbox SET line = '{}' WHERE number = 5",
        "UPDATE outbox SET time = 77 WHERE number = 5",
        "UPDATE outbox SET rule = 'x' WHERE number = 5",
    ],
)
def test_a_row_that_is_missing_or_not_as_committed_is_found_by_its_reader(state: str, change: str) -> None:
    with Journal(state) as journal:
        put(journal, Prepared(events=NewEvents(events(1, 9))))
    with sqlite3.connect(Path(state, DATABASE)) as connection:
        connection.execute(change)
    connection.close()
    with OutboxReader(state) as reader:
        with pytest.raises(EngineError) as raised:
            reader.after(0)
        assert code_of(raised.value) == "D5202"


def test_a_large_outbox_does_not_make_opening_slow(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages are checked as they are read; those of other tables are checked at once."""
    monkeypatch.setattr("dotr.service.journal._LARGE", 1_000)
    with Journal(state) as journal:
        put(journal, Prepared(events=NewEvents(events(1, 9))))
    for table, opens in (("outbox", True), ("meta", False)):
        broken = Path(state).with_name(table)
        broken.mkdir()
        with sqlite3.connect(Path(state, DATABASE)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (page,) = connection.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
            ).fetchone()
        connection.close()
        content = bytearray(Path(state, DATABASE).read_bytes())
        content[(page - 1) * 4096 + 3] ^= 0x7F
        (broken / DATABASE).write_bytes(content)
        try:
            Journal(str(broken)).close()
        except EngineError:
            assert not opens
        else:
            assert opens
            with OutboxReader(str(broken)) as reader, pytest.raises(EngineError):
                reader.after(0)


@pytest.mark.parametrize(
    "change",
    ["UPDATE logs SET last = 4 WHERE name = 'outbox'", "DELETE FROM logs", "UPDATE logs SET first = 3"],
)
def test_bounds_that_were_not_committed_are_found_at_opening(state: str, change: str) -> None:
    with Journal(state) as journal:
        put(journal, Prepared(events=NewEvents(events(1, 9))))
    with sqlite3.connect(Path(state, DATABASE)) as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(EngineError) as raised:
        Journal(state)
    assert code_of(raised.value) == "D5105"


def test_a_damaged_cursor_is_found(state: str) -> None:
    with Cursors(state) as cursors:
        cursors.begin("hook", 3)
    with sqlite3.connect(Path(state, DATABASE)) as connection:
        connection.execute("UPDATE cursors SET number = 4")
    connection.close()
    with pytest.raises(EngineError) as raised:
        Cursors(state)
    assert code_of(raised.value) == "D5202"
    with Journal(state) as journal:
        with pytest.raises(EngineError) as raised:
            put(journal, Prepared(events=NewEvents(events(1, 1), low=0)))
        assert code_of(raised.value) == "D5202"


def test_without_a_deployment_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        OutboxReader(str(tmp_path / "none"))
    assert code_of(raised.value) == "D5201"


# -- dead letters and outcomes


def test_dead_letters_are_numbered_bounded_and_taken_away(state: str) -> None:
    def letters(first: int, count: int) -> NewLetters:
        rows = [
            Letter(0, "refused", "a", None, "D2001", "", "{}", b"%d" % n) for n in range(first, first + count)
        ]
        return NewLetters(rows, max_rows=5, max_bytes=100)

    with Journal(state) as journal, OutboxReader(state) as reader:
        put(journal, Prepared(letters=letters(1, 3)))
        assert [(one.number, one.content) for one in reader.letters()] == [(1, b"1"), (2, b"2"), (3, b"3")]
        journal.drop_letters([2, 9])
        assert [one.number for one in reader.letters()] == [1, 3]
        put(journal, Prepared(letters=letters(4, 4)))
        assert [one.number for one in reader.letters()] == [3, 4, 5, 6, 7]
        assert [one.number for one in reader.letters(after=4, limit=2, kind="refused")] == [5, 6]
        assert reader.letters(kind="late") == []
        assert reader.letter(2) is None
        late = Letter(0, "late", "b", 7, "D2301", "x", "{}", b"x" * 97)
        put(journal, Prepared(letters=NewLetters([late], 5, 100)))
        assert reader.letters() == [late._replace(number=8)]
    with Journal(state) as journal:
        journal.drop_letters([8])
        put(journal, Prepared(letters=letters(1, 1)))
    with OutboxReader(state) as reader:
        assert [one.number for one in reader.letters()] == [9]


def test_bad_documents_and_late_graphs_of_an_inbox_are_rows_with_their_bytes(
    expected: list[str], tmp_path: Path
) -> None:
    state = deploy(tmp_path)
    documents = [line.encode() for line in LINES]
    documents.insert(40, b"not json \xff")
    documents[50] = documents[50] + b"\nnot json\n" + LINES[3].encode()
    with Inbox(state) as inbox:
        for content in documents:
            last = inbox.append("a", content, format="application/x-ndjson")
        last.result(WAIT)
        transport = InboxTransport(inbox, {"a": "event"})
        feed(
            state,
            [],
            every=7,
            source=DocumentSource(transport, Format.JSONLINES, fail=False),
            others=[Outbox()],
            dead_letters=DeadLetterRows("refused", transport.whole_origin),
            delayed=DeadLetterRows("late", transport.whole_origin),
            outcomes=Outcomes(transport.origin),
        )
    assert lines_of(state) == expected
    with OutboxReader(state) as reader:
        whole, line = reader.letters(kind="refused")
        assert (whole.source, whole.content, whole.format) == ("a", b"not json \xff", "application/x-ndjson")
        assert json.loads(whole.line)["place"].startswith("a@41")
        assert (line.source, line.content) == ("a", b"not json")
        (late,) = reader.letters(kind="late")
        assert (late.source, late.time, late.code) == ("a", json.loads(LINES[3])["time"] * 1_000_000, "D2301")
        assert json.loads(late.content)["time"] == json.loads(LINES[3])["time"]
        refused = reader.outcome(41)
        assert refused is not None
        assert (refused.graphs, refused.late, len(refused.refused)) == (0, [], 1)
        mixed = reader.outcome(51)
        assert mixed is not None
        times = [json.loads(LINES[n])["time"] * 1_000_000 for n in (49, 3)]
        assert (mixed.graphs, mixed.late, len(mixed.refused)) == (2, [times[1]], 1)
        assert [first for first, _ in mixed.spans] == sorted(times)
        plain = reader.outcome(1)
        time_ = json.loads(LINES[0])["time"] * 1_000_000
        assert plain == Outcome(1, [[time_, time_]], [], [])


def test_a_letter_of_bytes_and_a_graph_of_an_instant_keep_what_can_be_sent_again() -> None:
    rows = DeadLetterRows("refused", lambda place: Origin("s", 3, "text/turtle") if place == "s@3" else None)
    rows.letter(
        json.dumps(
            {"place": "s@3", "code": "D1", "diagnostic": "x", "base64": base64.b64encode(b"\xff").decode()}
        )
    )
    rows.letter(
        json.dumps({"place": "f:3", "code": "D2", "diagnostic": "y", "time": 5, "graph": "<a> <b> <c> ."}),
        time=5_000_000,
    )
    letters = rows.prepare(1).letters
    assert letters is not None
    one, two = letters.rows
    assert (one.source, one.format, one.content, one.time) == ("s", "text/turtle", b"\xff", None)
    assert (two.source, two.format, two.time) == ("", "application/x-ndjson", 5_000_000)
    assert json.loads(two.content) == {"time": 5, "graph": "<a> <b> <c> ."}
    assert json.loads(one.line) == {"place": "s@3", "code": "D1", "diagnostic": "x"}
    assert rows.prepare(2).letters is not None, "the commit before failed"
    rows.confirm(2)
    assert rows.prepare(3).letters is None


def test_outcomes_of_parts_of_a_document_are_joined(state: str) -> None:
    with Journal(state) as journal, OutboxReader(state) as reader:
        put(journal, Prepared(outcomes={3: ("a", Outcome(2, [(1, 1), (2, 2)]))}))
        put(journal, Prepared(outcomes={3: ("a", Outcome(1, [(2, 2)], [2], ["no"])), 4: ("b", Outcome())}))
        assert reader.outcome(3) == Outcome(3, [[1, 1], [2, 2]], [2], ["no"])
        assert reader.outcome(4) == Outcome(0, [], [], [])
    assert joined_spans([(n, n) for n in range(200)]) == [(0, 199)]


def test_old_outcomes_go(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.service.logs.MAX_OUTCOMES", 10)
    with Journal(state) as journal, OutboxReader(state) as reader:
        for number in range(1, 40):
            put(journal, Prepared(outcomes={number: ("a", Outcome())}))
        assert [number for number in range(1, 40) if reader.outcome(number)] == list(range(30, 40))


# -- the format before


def test_a_journal_of_format_7_is_updated_and_goes_on(tmp_path: Path) -> None:
    """It was made by the version before the outbox from the first half of LINES, by commits of ten."""
    whole = run_over(tmp_path / "run", LINES)
    state = tmp_path / "state"
    state.mkdir()
    (state / DATABASE).write_bytes(gzip.decompress((Path(__file__).parent / "format7.db.gz").read_bytes()))
    with Journal(str(state), exclusive=False) as journal:
        assert journal.positions("queue") == {"a": ["at 45", 0]}
    queue = Queue(one_each(LINES))
    queue.acknowledged["a"] = 45
    feed(str(state), [], source=source(queue), others=[Outbox()])
    found = lines_of(str(state))
    assert 20 < len(found) < len(whole)
    assert found == whole[-len(found) :]
    with sqlite3.connect(state / DATABASE) as connection:
        (format_,) = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    connection.close()
    assert format_ == str(FORMAT) == "9"
