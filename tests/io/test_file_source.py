"""Files as a source: what was consumed is not given again, within one feed and from one to the next."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dotr.errors import DataError, Diagnostic
from dotr.io.feeds import FileSource, Position, ahead
from dotr.io.graphs import Item, SourceOptions, TimedGraph


def trig(*times: int) -> str:
    return "".join(
        f"<urn:g:{time}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
        f"<urn:g:{time}> {{ <urn:s> <urn:p> {time} }}\n"
        for time in times
    )


def given(source: FileSource, stored: dict[str, Position], most: int = 99) -> list[int]:
    """The times of the graphs that are consumed, committed once at the end."""
    times: list[int] = []
    for item in source.items(lambda _source, file: stored.get(file)):
        assert item is not None
        source.consumed(item)
        if isinstance(item, TimedGraph):
            times.append(item.time // 1_000_000)
        if len(times) == most:
            break
    stored.update({file: position for (_, file), position in source.changes().items()})
    source.committed()
    return times


def test_a_document_that_grew_while_a_feed_rested_is_read_once_to_its_end(tmp_path: Path) -> None:
    log, other = tmp_path / "log.trig", tmp_path / "other.trig"
    log.write_text(trig(3, 1, 2))
    other.write_text(trig(9))
    stored: dict[str, Position] = {}
    files = [str(log), str(other)]
    assert given(FileSource(files, SourceOptions()), stored, most=2) == [1, 2]
    log.write_text(trig(3, 1, 2) + trig(5, 4))
    rest = given(FileSource(files, SourceOptions()), stored, most=20)
    assert rest == [3, 9, 5, 4], "what was there then, and then what was added"
    assert given(FileSource(files, SourceOptions()), stored) == []


def test_files_say_how_much_of_them_is_behind(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"time": 1, "graph": ""}\n{"time": 2, "graph": ""}\n')
    source, seen = FileSource([str(file)], SourceOptions()), []
    for item in source.items(lambda _source, _file: None):
        assert item is not None
        seen.append(source.done)
    assert seen == [25, 50, 50]
    assert source.total == 50
    assert source.over
    assert not source.live


def test_a_live_source_says_when_nothing_comes_and_hands_on_what_goes_wrong() -> None:
    gate = threading.Event()

    def slow() -> Iterator[Item]:
        yield TimedGraph(1, [], "in")
        assert gate.wait(30)
        raise DataError(Diagnostic("D2000", "broken off"))

    items = ahead(slow())
    assert isinstance(next(items), TimedGraph)
    assert next(items) is None, "silence is noticed"
    gate.set()
    with pytest.raises(DataError, match="broken off"):  # noqa: PT012  # silence may come first
        while next(items) is None:
            pass


def test_a_live_source_ends() -> None:
    assert [item for item in ahead(iter([TimedGraph(7, [], "in")])) if item is not None] == [
        TimedGraph(7, [], "in")
    ]


def test_watched_files_are_taken_as_they_get_ready_and_lines_are_read_on(tmp_path: Path) -> None:
    log = tmp_path / "in.jsonl"
    log.write_text('{"time": 1, "graph": ""}\n')
    source, stored = FileSource([str(tmp_path)], SourceOptions(), follow=True), dict[str, Position]()
    assert given(source, stored) == [1]
    assert given(source, stored) == []
    with log.open("a") as file:
        file.write('{"time": 2, "graph": ""}\n')
    assert given(source, stored) == [2]
    assert not source.over, "more may come into a folder"
