"""Sources and outputs by the scheme of a URI: our own table, and packages of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from dotr.errors import UsageError
from dotr.io.decode.documents import Format
from dotr.io.feeds import Document, DocumentSource, GraphSource, Position
from dotr.io.graphs import SourceOptions
from dotr.service import schemes
from dotr.service.deployment import deployed_program
from dotr.service.journal import Journal, Prepared
from dotr.service.schemes import OutputRequest, SourceRequest, output_of, scheme_of, source_of
from tests.service.deployments import deploy, feed, stream

LINES = stream(60, bad=False)


class Shelf:
    """A transport of what somebody put there, by names of shelves."""

    name = "shelf"
    shelves: dict[str, list[str]] = {}  # noqa: RUF012  # tests fill it

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def partitions(self) -> Sequence[str]:
        return self._names

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        for number, line in enumerate(self.shelves[partition][position or 0 :], (position or 0) + 1):
            yield [Document(line.encode(), number)]

    def position(self, partition: str, mark: Position) -> Position:
        return mark

    def committed(self, positions: Any) -> None:
        return


def read_shelves(request: SourceRequest) -> GraphSource:
    names = [uri.removeprefix("shelf://") for uri in request.uris]
    return DocumentSource(Shelf(names), Format.JSONLINES, request.options, fail=request.fail)


class Box:
    """A sink that counts."""

    exactly_once, events = False, 0

    def write(self, events: Sequence[Any], clock: Any) -> None:
        Box.events += len(events)

    def resume(self, commit: int) -> None:
        return

    def prepare(self, commit: int) -> Prepared:
        return Prepared()

    def confirm(self, commit: int) -> None:
        return

    def close(self) -> None:
        return


def write_box(request: OutputRequest) -> Box:
    return Box()


@pytest.fixture(autouse=True)
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package had been installed."""
    known = {
        "dotr.sources": [EntryPoint("shelf", f"{__name__}:read_shelves", "dotr.sources")],
        "dotr.outputs": [EntryPoint("box", f"{__name__}:write_box", "dotr.outputs")],
    }
    monkeypatch.setattr(schemes, "entry_points", lambda group: known[group])


def test_a_path_is_a_file() -> None:
    assert [scheme_of(uri) for uri in ("a.ttl", "-", "/tmp/x y", "file:///a", "kafka://k/t")] == [  # noqa: S108
        *["file"] * 4,
        "kafka",
    ]


def test_files_and_others_are_merged_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "several"):
        (tmp_path / name).mkdir()
    Path("all.jsonl").write_text("".join(f"{line}\n" for line in LINES))
    feed(deploy(tmp_path / "one"), ["all.jsonl"], ["one.nq"])
    Path("part.jsonl").write_text("".join(f"{line}\n" for line in LINES[::3]))
    Shelf.shelves = {"x": LINES[1::3], "y": LINES[2::3]}
    source = source_of(
        ["file://part.jsonl", "shelf://x", "shelf://y"], SourceOptions(), fail=True, follow=False
    )
    state = deploy(tmp_path / "several")
    found = feed(state, [], ["several.nq"], source=source)
    assert found.totals.graphs == len(LINES)
    assert found.totals.late == 0
    assert sorted(Path("several.nq").read_text().splitlines()) == sorted(
        Path("one.nq").read_text().splitlines()
    )
    with Journal(state) as journal:
        assert journal.position("shelf", "x") == [20, 0]
        assert [one[:2] for one in journal.status()["partitions"]] == [
            ["files", ""],
            ["shelf", "x"],
            ["shelf", "y"],
        ]


def test_an_output_of_another_package(tmp_path: Path) -> None:
    with Journal(deploy(tmp_path)) as journal:
        program = deployed_program(journal.deployed())
        sink = output_of(OutputRequest("box://here", journal, program, "jsonl"))
        assert isinstance(sink, Box)


def test_a_scheme_that_nothing_reads_is_said_with_those_there_are() -> None:
    with pytest.raises(UsageError) as raised:
        source_of(["shelv://x"], SourceOptions(), fail=True, follow=False)
    (found,) = raised.value.diagnostics
    assert found.code == "D4213"
    assert found.notes == ("there are file, shelf",)
    assert found.hint == "did you mean `shelf`?"
