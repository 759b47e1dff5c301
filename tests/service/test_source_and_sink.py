"""A source and a sink that are no files: positions that nobody else understands, commits in two phases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dotr.events import Clock, Composite
from dotr.io.decode.documents import Format
from dotr.io.events import nquads
from dotr.io.feeds import Document, DocumentSource, Position
from dotr.io.graphs import SourceOptions, TimedGraph
from dotr.io.tables.mapping import parse_mapping
from dotr.service.journal import Journal, Prepared
from tests.service.deployments import deploy, feed, stream

LINES = stream(90, bad=False)


class Killed(BaseException):
    """As if the process was gone."""


class Queue:
    """A queue in memory. Its marks are texts that only it reads; what is acknowledged is gone."""

    name = "queue"

    def __init__(self, documents: Mapping[str, Sequence[bytes]], batch: int = 4) -> None:
        self.documents = {name: list(there) for name, there in documents.items()}
        self.acknowledged: dict[str, int] = dict.fromkeys(documents, 0)
        self.pauses = 0
        self._batch = batch

    def partitions(self) -> Sequence[str]:
        return list(self.documents)

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        start = 0 if position is None else int(position.removeprefix("at "))
        assert start >= self.acknowledged[partition], "what was acknowledged is not there any more"
        for _ in range(self.pauses):
            yield ()
        while documents := self.documents[partition][start : start + self._batch]:
            yield [
                Document(content, f"read {number}", f"queue/{partition}@{number}")
                for number, content in enumerate(documents, start)
            ]
            start += len(documents)

    def position(self, partition: str, mark: Position) -> Position:
        return f"at {int(mark.removeprefix('read ')) + 1}"

    def committed(self, positions: Mapping[str, Position | None]) -> None:
        for name, position in positions.items():
            self.acknowledged[name] = 0 if position is None else int(position.removeprefix("at "))


class Database:
    """A database in memory with transactions: `rows` are visible. Fails at the `kill`-th step of any kind."""

    exactly_once = True

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.prepared: dict[int, list[str]] = {}
        self.kill, self.steps = 0, 0
        self._written: list[str] = []

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.kill:
            raise Killed

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        self._step()
        self._written += nquads(events, clock).splitlines()

    def resume(self, commit: int) -> None:
        self.confirm(commit)
        self.prepared.clear()
        self._written = []

    def prepare(self, commit: int) -> Prepared:
        self._step()
        self.prepared[commit] = self._written[:]
        self._step()
        return Prepared()

    def confirm(self, commit: int) -> None:
        if commit in self.prepared:
            self._step()
            self.rows += self.prepared.pop(commit)
            self._written = []
            self._step()

    def close(self) -> None:
        self._written = []


class Log(Database):
    """Takes nothing back."""

    exactly_once = False

    def write(self, events: Sequence[Composite], clock: Clock) -> None:
        super().write(events, clock)
        self.rows += nquads(events, clock).splitlines()

    def prepare(self, commit: int) -> Prepared:
        self._step()
        return Prepared()


def one_each(lines: Sequence[str]) -> dict[str, list[bytes]]:
    return {"a": [line.encode() for line in lines]}


def three_each(lines: Sequence[str]) -> dict[str, list[bytes]]:
    return {"a": ["\n".join(lines[i : i + 3]).encode() for i in range(0, len(lines), 3)]}


def source(queue: Queue, **more: Any) -> DocumentSource:
    return DocumentSource(queue, Format.JSONLINES, **more)


@pytest.fixture
def expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The events of the lines as a file."""
    monkeypatch.chdir(tmp_path)
    Path("file").mkdir()
    Path("in.jsonl").write_text("".join(f"{line}\n" for line in LINES))
    feed(deploy(tmp_path / "file"), ["in.jsonl"], ["out.nq"])
    found = Path("out.nq").read_text().splitlines()
    assert len(found) > 60
    return found


@pytest.mark.parametrize("documents", [one_each, three_each])
@pytest.mark.parametrize("every", [1, 10])
def test_a_queue_gives_the_events_of_a_file(expected: list[str], documents: Any, every: int) -> None:
    database, queue = Database(), Queue(documents(LINES))
    feed(deploy(Path.cwd()), [], ["all.nq"], every=every, source=source(queue), others=[database])
    assert Path("all.nq").read_text().splitlines() == database.rows == expected
    assert queue.acknowledged == {"a": len(queue.documents["a"])}


@pytest.mark.parametrize("documents", [one_each, three_each])
def test_a_kill_at_any_step_neither_loses_nor_repeats_a_row(
    expected: list[str], tmp_path: Path, documents: Any
) -> None:
    for kill in range(1, 10_000, 5):
        folder = tmp_path / f"kill{kill}"
        folder.mkdir()
        state, database, queue = deploy(folder), Database(), Queue(documents(LINES))
        database.kill = kill
        killed = False
        try:
            feed(state, [], every=7, source=source(queue), others=[database])
        except Killed:
            killed = True
            feed(state, [], every=7, source=source(queue), others=[database])
        assert database.rows == expected
        if not killed:
            break
    assert kill > 30


def test_what_takes_nothing_back_repeats_and_loses_nothing(expected: list[str], tmp_path: Path) -> None:
    log, queue = Log(), Queue(one_each(LINES))
    log.kill = 30
    state = deploy(Path.cwd())
    with pytest.raises(Killed):
        feed(state, [], every=7, source=source(queue), others=[log])
    feed(state, [], every=7, source=source(queue), others=[log])
    assert list(dict.fromkeys(log.rows)) == expected
    assert len(log.rows) >= len(expected)
    assert not log.exactly_once


def test_the_journal_keeps_positions_as_the_source_gave_them(tmp_path: Path) -> None:
    queue = Queue({"a": [line.encode() for line in LINES[:30]], "b": [LINES[0].encode()]})
    state = deploy(tmp_path)
    feed(state, [], source=source(queue), lateness=10**9, keep_open=True)
    with Journal(state) as journal:
        assert journal.positions("queue") == {"a": ["at 30", 0], "b": ["at 1", 0]}
        assert journal.positions("files") == {}
    queue.documents["b"] += [line.encode() for line in LINES[1:5]]
    feed(state, [], source=source(queue), lateness=10**9)
    with Journal(state) as journal:
        assert journal.positions("queue")["b"] == ["at 5", 0]


def test_a_queue_is_followed_while_it_grows_and_is_silent(expected: list[str]) -> None:
    queue = Queue({"a": []})
    queue.pauses = 2
    waiting = [line.encode() for line in LINES]

    class Clock:
        def tick(self, count: float) -> float:
            queue.documents["a"] += waiting[: int(count)]
            del waiting[: int(count)]
            return count

    feed(
        deploy(Path.cwd()),
        [],
        ["all.nq"],
        source=source(queue, ends=False),
        keep_open=True,
        follow_for=(Clock(), 20, 7),
    )
    found = Path("all.nq").read_text().splitlines()
    assert found == expected[: len(found)]
    assert len(found) > 50


def test_a_queue_that_ends_ends_a_feed_that_follows_it(expected: list[str]) -> None:
    queue = Queue(one_each(LINES))

    class Clock:
        def tick(self, count: float) -> float:
            raise AssertionError("nothing more can come")

    feed(deploy(Path.cwd()), [], ["all.nq"], source=source(queue), follow_for=(Clock(), 1, 3))
    assert Path("all.nq").read_text().splitlines() == expected


@pytest.mark.parametrize("every", [1, 50])
def test_bad_documents_and_late_graphs_of_a_queue_go_where_those_of_files_go(
    expected: list[str], every: int
) -> None:
    documents = [line.encode() for line in LINES]
    documents.insert(40, b"not json")
    documents.insert(60, LINES[3].encode())
    queue = Queue({"a": documents})
    made = feed(
        deploy(Path.cwd()),
        [],
        ["all.nq"],
        every=every,
        letters="dead.jsonl",
        late="late.jsonl",
        source=source(queue, fail=False),
    )
    assert Path("all.nq").read_text().splitlines() == expected
    assert (made.totals.refused, made.totals.late) == (1, 1)
    (letter,) = Path("dead.jsonl").read_text().splitlines()
    assert json.loads(letter)["place"].startswith("queue/a@40")
    (late,) = Path("late.jsonl").read_text().splitlines()
    assert json.loads(late)["time"] == json.loads(LINES[3])["time"]


def test_a_document_that_cannot_be_read_ends_the_feed_behind_what_was_before_it(tmp_path: Path) -> None:
    documents = [line.encode() for line in LINES]
    documents.insert(40, b"not json")
    queue, state = Queue({"a": documents}), deploy(tmp_path)
    with pytest.raises(Exception, match="queue/a@40"):
        feed(state, [], source=source(queue))
    with Journal(state) as journal:
        assert journal.positions("queue") == {"a": ["at 40", 0]}


@pytest.mark.parametrize("batch", [1, 4, 50, 400])
@pytest.mark.parametrize("partitions", [2, 3, 7])
def test_partitions_of_one_stream_give_the_events_of_the_stream(
    expected: list[str], partitions: int, batch: int
) -> None:
    documents: dict[str, list[bytes]] = {f"p{number}": [] for number in range(partitions)}
    for number, line in enumerate(LINES):
        documents[f"p{number * number % partitions}"].append(line.encode())
    made = feed(deploy(Path.cwd()), [], ["all.nq"], every=7, source=source(Queue(documents, batch)))
    assert Path("all.nq").read_text().splitlines() == expected
    assert made.totals.late == 0


def test_a_kill_among_partitions_neither_loses_nor_repeats_a_row(expected: list[str], tmp_path: Path) -> None:
    documents = {f"p{number}": [line.encode() for line in LINES[number::3]] for number in range(3)}
    for kill in range(1, 10_000, 9):
        folder = tmp_path / f"kill{kill}"
        folder.mkdir()
        state, database, queue = deploy(folder), Database(), Queue(documents, batch=1 + kill % 5)
        database.kill = kill
        killed = False
        try:
            feed(state, [], every=7, source=source(queue), others=[database])
        except Killed:
            killed = True
            feed(state, [], every=7, source=source(queue), others=[database])
        assert database.rows == expected
        if not killed:
            break
    assert kill > 30


def test_what_waits_for_a_partition_that_may_go_on_is_read_once(tmp_path: Path) -> None:
    queue = Queue({"a": [LINES[0].encode(), LINES[5].encode()], "b": [LINES[1].encode()]})
    source_ = source(queue, ends=False, idle=None)
    source_.extractor.clock = None
    given = []
    for _ in range(3):
        for item in source_.items(lambda _source, _partition: None):
            assert item is not None
            source_.consumed(item)
            given.append(item.place)
    assert given == ["queue/a@0:1", "queue/b@0:1"]
    assert source_.done == sum(len(line) for line in (LINES[0], LINES[1], LINES[5]))
    queue.documents["b"].append(LINES[6].encode())
    for item in source_.items(lambda _source, _partition: None):
        assert item is not None
        source_.consumed(item)
        given.append(item.place)
    assert [place[:9] for place in given] == ["queue/a@0", "queue/b@0", "queue/a@1"]


class Told(Queue):
    """A queue that says how its documents are written, and when their graphs happen."""

    def __init__(self, documents: Sequence[Document]) -> None:
        super().__init__({})
        self.told = documents

    def partitions(self) -> Sequence[str]:
        return ["a"]

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        yield self.told

    def position(self, partition: str, mark: Position) -> Position:
        return mark


def times_of(*documents: Document) -> list[int]:
    queue = DocumentSource(Told(documents), Format.TURTLE, fail=False)
    found = [item for item in queue.items(lambda _s, _p: None) if item is not None]
    return [item.time if isinstance(item, TimedGraph) else -1 for item in found]


STAMPED = b"""PREFIX p: <http://www.w3.org/ns/prov#> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
<> p:generatedAtTime "1970-01-01T00:00:05Z"^^xsd:dateTime ."""
BARE = b"<urn:x:a> a <urn:x:Smoke> ."


def test_a_document_says_when_its_graphs_happen() -> None:
    given = "1970-01-01T00:00:07Z"
    assert times_of(Document(STAMPED, 1), Document(STAMPED, 2, time=given)) == [5_000_000, 7_000_000]
    assert times_of(Document(BARE, 1), Document(BARE, 2, time=given)) == [-1, 7_000_000]


def test_the_arrival_is_the_time_of_graphs_that_say_none() -> None:
    assert times_of(Document(STAMPED, 1, arrival=9), Document(BARE, 2, arrival=9)) == [5_000_000, 9]


def test_a_document_says_how_it_is_written() -> None:
    line = b'{"time": "1970-01-01T00:00:03Z", "graph": "<urn:x:a> a <urn:x:Smoke> ."}'
    assert times_of(Document(line, 1, format=Format.JSONLINES), Document(line, 2)) == [3_000_000, -1]
    table = parse_mapping("# time: at\n# format: csv\n[] a <urn:x:Smoke> ; <urn:x:room> {room} .")
    rows = b"at,room\n1970-01-01T00:00:01Z,1\n1970-01-01T00:00:02Z,2\n"
    assert times_of(Document(rows, 1, mapping=table)) == [1_000_000, 2_000_000]
    assert times_of(Document(rows, 1, mapping=table, time="1970-01-01T00:00:09Z")) == [9_000_000] * 2


def test_the_last_line_of_a_document_is_whole_where_files_are_followed() -> None:
    """`dotr feed --follow` leaves the last line of a file that grows, if it has no end, for the next look."""
    line = b'{"time": 3, "graph": "<urn:x:a> a <urn:x:Smoke> ."}'
    followed = DocumentSource(
        Told([Document(line + b"\n" + line, 1)]), Format.JSONLINES, SourceOptions(growing=True), ends=False
    )
    found = [item for item in followed.items(lambda _s, _p: None) if isinstance(item, TimedGraph)]
    assert [item.time for item in found] == [3_000_000] * 2


def test_the_number_of_a_document_is_not_its_time() -> None:
    """`input@7` calls the seventh document of a source, and is no file name."""
    assert times_of(Document(BARE, 1, "input@7"), Document(BARE, 2, "input@8", arrival=99)) == [-1, 99]
    assert times_of(Document(STAMPED, 1, "topic/0@2")) == [5_000_000]
