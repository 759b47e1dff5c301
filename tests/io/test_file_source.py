"""Files as a source: what was consumed is not given again, within one feed and from one to the next."""

from __future__ import annotations

from pathlib import Path

from dotr.io.files.file_source import FileSource
from dotr.io.graph_source import Position
from dotr.io.graphs import SourceOptions, TimedGraph


def trig(*times: int) -> str:
    return "".join(
        f"<urn:g:{time}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
        f"<urn:g:{time}> {{ <urn:s> <urn:p> {time} }}\n"
        for time in times
    )


def given(source: FileSource, stored: dict[str, Position], most: int = 99) -> list[int]:
    """The times of the graphs that are consumed, committed once at the end."""
    times: list[int] = []
    for item in source.items(stored.get):
        assert item is not None
        source.consumed(item)
        if isinstance(item, TimedGraph):
            times.append(item.time // 1_000_000)
        if len(times) == most:
            break
    stored.update(source.changes())
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
    for item in source.items({}.get):
        assert item is not None
        seen.append(source.done)
    assert seen == [25, 50, 50]
    assert source.total == 50
    assert source.over
    assert not source.live
