"""A position holds for the bytes that were there when reading began; what is known is not read again."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, TypeAlias

import pytest

from dotr.errors import DataError, Diagnostic
from dotr.io import feeds as module
from dotr.io.decode.documents import parts_of
from dotr.io.feeds import FilePosition, FilePositions, Position, PositionOf
from dotr.io.graphs import Bookmark, ReadEvent, TimedGraph

LINES = b"".join(b'{"time": %d, "graph": ""}\n' % number for number in range(9))
OTHER = LINES.replace(b"0", b"1")


Rows: TypeAlias = dict[str, Position]
"""What a journal has of files."""


def hash_of(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def graph(file: Path, end: int, how: str = "byte") -> TimedGraph:
    return TimedGraph(1, [], str(file), 1, how, end)


def written(file: Path, content: bytes) -> None:
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)


def commit(found: FilePositions, item: TimedGraph | ReadEvent, rows: Rows | None = None) -> FilePosition:
    found.consumed(item)
    changes = found.changes()
    found.committed()
    if rows is not None:
        rows.update(changes)
    (row,) = changes.values()
    return row


ERROR = DataError(Diagnostic("D2001", "not RDF", place="x"))


def stored(rows: Mapping[str, Any]) -> PositionOf:
    """Positions of files, as a journal has them."""
    return lambda _source, file: rows.get(file)


def test_a_packed_file_is_known_by_its_bytes_when_reading_began(tmp_path: Path) -> None:
    file, rows = tmp_path / "log.jsonl.gz", Rows()
    written(file, LINES)
    reading = FilePositions()
    assert commit(reading, graph(file, 26), rows) == ("byte", 26, "", len(LINES), hash_of(LINES), False)
    written(file, OTHER)
    assert commit(reading, graph(file, 52), rows).hash == hash_of(LINES), "of what graphs were read from"
    refused = ReadEvent(1, str(file), "byte", 78, error=ERROR, size=78)
    assert commit(reading, refused, rows)[3:] == (len(LINES), hash_of(LINES), False)
    again = FilePositions()
    assert again.plan([str(file)], stored(rows)).bookmarks[str(file)] == Bookmark("byte", 0), (
        "other bytes: from the start"
    )
    assert again.changed == {str(file): "changed"}


def test_the_end_of_a_file_that_did_not_grow_is_the_end_of_what_was_read(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl.gz"
    written(file, LINES)
    reading = FilePositions()
    commit(reading, graph(file, 26))
    written(file, OTHER)
    row = commit(reading, ReadEvent(1, str(file), "byte", len(LINES), size=len(LINES)))
    assert (row.hash, row.finished) == (hash_of(LINES), True)
    assert commit(reading, graph(file, 26)).hash == hash_of(OTHER), "read again from its start, it is another"


def test_a_packed_file_that_grew_while_it_was_read_is_known_by_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl.gz"
    written(file, LINES)
    reading = FilePositions()
    commit(reading, graph(file, 26))
    written(file, LINES + OTHER)
    end = len(LINES + OTHER)
    row = commit(reading, ReadEvent(1, str(file), "byte", end, size=end))
    assert row == ("byte", end, "", end, hash_of(LINES + OTHER), True)


@pytest.mark.parametrize(
    ("name", "how"), [("log.trig", "graph"), ("log.trig", "sorted"), ("log.jsonl.gz", "byte")]
)
def test_a_document_that_is_resumed_stays_known_by_what_was_there_at_first(
    tmp_path: Path, name: str, how: str
) -> None:
    file = tmp_path / name
    written(file, LINES)
    rows = Rows()
    commit(FilePositions(), graph(file, 2, how), rows)
    again = FilePositions()
    assert again.plan([str(file)], stored(rows)).bookmarks == {str(file): Bookmark(how, 2)}
    written(file, OTHER)
    assert commit(again, graph(file, 3, how)).hash == hash_of(LINES)


def test_a_document_that_grew_is_read_to_where_it_ended_then_and_anew_behind_it(tmp_path: Path) -> None:
    file, rows = tmp_path / "log.trig", Rows()
    written(file, LINES)
    commit(FilePositions(), graph(file, 2, "sorted"), rows)
    written(file, LINES + OTHER)
    plan = FilePositions().plan([str(file)], stored(rows))
    assert plan.bookmarks == {str(file): Bookmark("sorted", 2, limit=len(LINES))}
    assert plan.limited


def test_of_a_stream_only_what_was_added_is_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, rows, read = tmp_path / "log.jsonl", Rows(), [0]

    def counted(document: IO[bytes], end: int, name: str) -> Iterator[bytes]:
        for part in parts_of(document, end, name):
            read[0] += len(part)
            yield part

    monkeypatch.setattr(module, "parts_of", counted)
    written(file, LINES)
    reading = FilePositions()
    commit(reading, graph(file, 26), rows)
    commit(reading, graph(file, 52), rows)
    row = commit(reading, ReadEvent(1, str(file), "byte", len(LINES)), rows)
    assert row == ("byte", len(LINES), "", len(LINES), hash_of(LINES), True)
    assert read == [len(LINES)], "every byte once"
    written(file, LINES + OTHER)
    again = FilePositions()
    assert again.plan([str(file)], stored(rows)).bookmarks == {str(file): Bookmark("byte", len(LINES))}
    end = len(LINES) + 26
    assert commit(again, graph(file, end), rows).hash == hash_of((LINES + OTHER)[:end])
    assert read == [2 * len(LINES) + 26], "and once more to see that they are the same"


@pytest.mark.parametrize(
    ("content", "reported"),
    [(OTHER, "changed"), (LINES[:30], "shrank"), (b"", "was emptied"), (OTHER + LINES, "changed")],
)
def test_what_became_of_a_file_is_reported(tmp_path: Path, content: bytes, reported: str) -> None:
    file, rows = tmp_path / "log.jsonl", Rows()
    written(file, LINES)
    commit(FilePositions(), ReadEvent(1, str(file), "byte", len(LINES)), rows)
    assert FilePositions().plan([str(file)], stored(rows)).files == [], "unchanged, and nothing is left of it"
    written(file, content)
    again = FilePositions()
    assert again.plan([str(file)], stored(rows)).bookmarks == {str(file): Bookmark("byte", 0)}
    assert again.changed == {str(file): reported}


def test_a_document_of_one_graph_is_another_when_it_grew(tmp_path: Path) -> None:
    file, rows = tmp_path / "a.ttl", Rows()
    written(file, LINES)
    item = graph(file, len(LINES), "whole")._replace(carried=hash_of(LINES))
    row = commit(FilePositions(), item, rows)
    assert row == ("whole", len(LINES), "", len(LINES), hash_of(LINES), True)
    assert FilePositions().plan([str(file)], stored(rows)).files == []
    written(file, LINES + OTHER)
    again = FilePositions()
    assert again.plan([str(file)], stored(rows)).bookmarks == {str(file): Bookmark("byte", 0)}
    assert again.changed == {str(file): "changed"}


def test_what_cannot_be_read_again_has_no_position(tmp_path: Path) -> None:
    reading = FilePositions()
    reading.consumed(TimedGraph(1, [], "<stdin>"))
    reading.consumed(TimedGraph(1, [], str(tmp_path / "gone.jsonl")))
    assert reading.changes() == {}
    found: Any = reading.plan([str(tmp_path / "gone.jsonl")], stored({}))
    assert found.bookmarks == {str(tmp_path / "gone.jsonl"): Bookmark("byte", 0)}, (
        "the reader says that it is gone"
    )


def test_what_a_message_log_carries_on_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "log.ttl"
    written(file, LINES)
    row = commit(FilePositions(), graph(file, 26)._replace(carried="PREFIX"))
    assert row == ("byte", 26, "PREFIX", 26, hash_of(LINES[:26]), False)


def test_a_document_whose_rest_was_refused_is_finished_with(tmp_path: Path) -> None:
    file, rows = tmp_path / "a.ttl", Rows()
    written(file, LINES)
    row = commit(FilePositions(), ReadEvent(1, str(file), "whole", 26, error=ERROR), rows)
    assert row == ("byte", len(LINES), "", len(LINES), hash_of(LINES), True)
    assert FilePositions().plan([str(file)], stored(rows)).files == []


def test_what_is_committed_is_not_committed_again(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    written(file, LINES)
    reading = FilePositions()
    commit(reading, graph(file, 26))
    assert reading.changes() == {}
