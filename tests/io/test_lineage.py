"""Where the graphs of open instants came from, and which of their bytes can be had again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from dotr.errors import DataError
from dotr.events import Clock
from dotr.io.decode.documents import content_hash
from dotr.io.errors import Lineage, with_places
from dotr.io.graphs import Bookmark, GraphRun, ReadEvent, TimedGraph

ERROR = DataError.of("D3101", "they contradict", place="@ 1")
TRIPLES = [("<urn:s>", "<urn:p>", "<urn:o>")]


def graph(time: int, file: str, line: int, end: int, how: str = "byte", carried: str = "") -> TimedGraph:
    return TimedGraph(time, TRIPLES, file, line, how, end, carried)


def letters(lineage: Lineage, time: int, count: int = 1) -> list[dict[str, object]]:
    found = lineage.letters(time, [TRIPLES] * count, ERROR, Clock())
    return [json.loads(letter) for letter in found]


def test_a_letter_has_the_bytes_between_two_ends(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"skipped\nfirst\nbad\nsecond\n")
    lineage = Lineage(lambda: None)
    lineage.begin({str(path): Bookmark("byte", 8)})
    lineage.note(graph(1, str(path), 2, 14))
    lineage.passed(ReadEvent(1, str(path), "byte", 18))
    lineage.note_run(GraphRun([1, 2], [TRIPLES] * 2, str(path), [4, 5], [25, 26]))
    found = letters(lineage, 1, 2)
    assert [letter["document"] for letter in found] == ["first", "second"]
    assert [letter["place"] for letter in found] == [f"{path}:2", f"{path}:4"]
    assert lineage.places(2, 1) == [f"{path}:5"]


def test_bytes_that_may_be_others_are_not_given(tmp_path: Path) -> None:
    whole, packed = tmp_path / "a.ttl", tmp_path / "b.nq.gz"
    whole.write_bytes(b"content")
    packed.write_bytes(gzip.compress(b"content"))
    lineage = Lineage(lambda: None)
    lineage.note(graph(1, str(whole), 0, 7, "whole", content_hash(b"content")))
    lineage.note(graph(1, str(whole), 0, 7, "whole", content_hash(b"other")))
    lineage.note(graph(1, str(packed), 1, 7))
    lineage.note(graph(1, str(whole), 1, 8))
    lineage.note(graph(1, str(tmp_path / "gone"), 1, 8))
    assert [letter.get("document") for letter in letters(lineage, 1, 5)] == [
        "content",
        None,
        None,
        None,
        None,
    ]


def test_graphs_of_a_snapshot_without_places_come_before_the_others() -> None:
    lineage = Lineage(lambda: None)
    lineage.note(graph(1, "f", 7, 9))
    assert [letter["place"] for letter in letters(lineage, 1, 2)] == ["@ 1", "f:7"]
    assert lineage.places(1, 2) == ["f:7"]
    lineage.note(graph(1, "f", 8, 12))
    assert lineage.places(1, 1) == ["f:8"], "of more places the last are theirs"


def test_a_late_graph_is_withdrawn_and_a_settled_instant_forgotten() -> None:
    lineage = Lineage(lambda: None)
    lineage.note(graph(1, "f", 1, 5))
    late = graph(1, "f", 2, 9)
    lineage.note(late)
    lineage.withdraw(late)
    lineage.withdraw(late)
    assert lineage.places(1, 9) == ["f:1"]
    lineage.settle(1)
    assert lineage.save() == []


def test_what_is_kept_is_bounded_by_the_open_instants() -> None:
    closed = 0
    lineage = Lineage(lambda: closed)
    for time in range(1, 2_000):
        lineage.note(graph(time, "f", time, time))
        closed = time - 1
        assert len(lineage._open) < 300
    saved = json.loads(json.dumps(lineage.save()))
    again = Lineage(lambda: None)
    again.restore(saved)
    assert again.places(1_999, 1) == ["f:1999"]
    assert len(saved) == 1


def test_a_note_names_five_places_at_most() -> None:
    assert with_places(ERROR, []) is ERROR
    few = with_places(ERROR, ["a", "b"]).diagnostics[0].notes
    assert few == ("the graphs of this instant: `a`, `b`",)
    many = with_places(ERROR, list("abcdefg")).diagnostics[0].notes
    assert many[0].endswith("`e` and 2 more")
