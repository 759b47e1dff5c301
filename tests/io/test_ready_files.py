"""Which files of a watched folder may be read: those renamed into place, and those that stopped growing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dotr.errors import DataError
from dotr.io.feeds import ReadyFiles

LONG_AGO = 60.0


def written(file: Path, text: str, age: float = 0.0) -> None:
    """A file that was last written so many seconds ago."""
    file.write_text(text, encoding="utf-8")
    then = time.time() - age
    os.utime(file, (then, then))


def looks(ready: ReadyFiles) -> list[str]:
    return [os.path.basename(file) for file in ready.ready()]


def test_files_that_were_there_and_rest_are_read_at_the_first_look_and_once(tmp_path: Path) -> None:
    written(tmp_path / "a.ttl", "", LONG_AGO)
    ready = ReadyFiles([str(tmp_path)])
    assert looks(ready) == ["a.ttl"]
    assert looks(ready) == []


def test_a_document_that_is_being_written_waits_until_two_looks_are_alike(tmp_path: Path) -> None:
    ready = ReadyFiles([str(tmp_path)])
    assert looks(ready) == [], "a folder may be empty"
    written(tmp_path / "a.ttl", "# begun", -5)
    assert looks(ready) == []
    written(tmp_path / "a.ttl", "# begun, and more", -4)
    assert looks(ready) == [], "it has grown"
    assert looks(ready) == ["a.ttl"]


def test_a_file_that_was_renamed_into_place_is_read_at_once(tmp_path: Path) -> None:
    ready = ReadyFiles([str(tmp_path)])
    ready.ready()
    written(tmp_path / "a.ttl", "# whole", LONG_AGO)
    assert looks(ready) == ["a.ttl"]


def test_lines_are_read_as_they_are_completed_and_again_when_there_are_more(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    written(log, "{}\n")
    ready = ReadyFiles([str(log)])
    assert looks(ready) == ["log.jsonl"]
    assert looks(ready) == []
    written(log, "{}\n{}\n")
    assert looks(ready) == ["log.jsonl"]


def test_packed_lines_are_a_document(tmp_path: Path) -> None:
    written(tmp_path / "log.jsonl.gz", "not yet whole", -5)
    ready = ReadyFiles([str(tmp_path)])
    assert looks(ready) == []


def test_a_file_that_was_given_and_grows_is_given_again_when_it_rests(tmp_path: Path) -> None:
    written(tmp_path / "a.ttl", "# one", LONG_AGO)
    ready = ReadyFiles([str(tmp_path)])
    assert looks(ready) == ["a.ttl"]
    written(tmp_path / "a.ttl", "# one and two", LONG_AGO)
    assert looks(ready) == []
    assert looks(ready) == ["a.ttl"]


def test_a_file_that_is_gone_is_forgotten_and_may_come_back(tmp_path: Path) -> None:
    file = tmp_path / "a.ttl"
    written(file, "# one", LONG_AGO)
    ready = ReadyFiles([str(tmp_path)])
    assert looks(ready) == ["a.ttl"]
    file.unlink()
    assert looks(ready) == []
    written(file, "# one", LONG_AGO)
    assert looks(ready) == ["a.ttl"]


def test_a_pipe_is_read_as_it_comes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ttl")
    ready = ReadyFiles([str(tmp_path / "pipe.ttl")])
    assert looks(ready) == ["pipe.ttl"]
    assert not ready.over


def test_standard_input_is_given_once_and_is_over_where_nothing_else_is_watched(tmp_path: Path) -> None:
    alone, beside = ReadyFiles(["-"]), ReadyFiles(["-", str(tmp_path)])
    assert not alone.over, "before it was read"
    assert (alone.ready(), beside.ready()) == (["-"], ["-"])
    assert (alone.over, beside.over) == (True, False)
    assert alone.ready() == []


def test_a_path_that_does_not_exist_is_an_error_and_an_empty_pattern_is_not(tmp_path: Path) -> None:
    assert ReadyFiles([str(tmp_path / "*.ttl")]).ready() == []
    with pytest.raises(DataError, match="gone"):
        ReadyFiles([str(tmp_path / "gone.ttl")]).ready()
