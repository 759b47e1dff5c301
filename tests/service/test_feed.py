"""Feeding a deployment: exactly once, whatever is fed again, grows, fails or is killed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dotr.errors import DataError, DotrError, EngineError, RefusedError
from dotr.io.decode.documents import read_bytes
from dotr.io.decode.rdf import parse_triples
from dotr.io.sources import SourceOptions, Sources
from dotr.rdf.terms import integer
from dotr.service.feed import Feed
from dotr.service.journal import Journal
from tests.service.deployments import SEQUENCES, FailingDisk, deploy, feed, stream


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return deploy(tmp_path)


def write_lines(path: str, lines: list[str]) -> str:
    Path(path).write_text("".join(f"{line}\n" for line in lines))
    return path


def reference(tmp_path: Path, lines: list[str]) -> tuple[bytes, bytes]:
    """Events and dead letters of one uninterrupted feed."""
    (tmp_path / "reference").mkdir()
    other = deploy(tmp_path / "reference")
    source = write_lines("in.jsonl", lines)
    out, dead = str(tmp_path / "reference/out.nq"), str(tmp_path / "reference/dead.jsonl")
    feed(other, [source], [out], letters=dead, every=10**9)
    return Path(out).read_bytes(), Path(dead).read_bytes()


def test_feeding_the_same_files_again_emits_nothing(state: str) -> None:
    source = write_lines("in.jsonl", stream(60, bad=False))
    first = feed(state, [source], ["out.nq"])
    before = Path("out.nq").read_bytes()
    again = feed(state, [source], ["out.nq"])
    assert first.totals.events > 5
    assert (again.totals.graphs, again.totals.events, Path("out.nq").read_bytes()) == (0, 0, before)


def test_a_growing_file_continues_where_it_stopped(state: str, tmp_path: Path) -> None:
    lines = stream(120)
    expected, letters = reference(tmp_path, lines)
    for end in (0, 1, 30, 31, 77, len(lines)):
        source = write_lines("grow.jsonl", lines[:end])
        feed(state, [source], ["out.nq"], letters="dead.jsonl", keep_open=end < len(lines))
    assert Path("out.nq").read_bytes() == expected
    assert Path("dead.jsonl").read_bytes() == letters.replace(b"in.jsonl", b"grow.jsonl")


def test_a_folder_that_fills_continues_too(state: str, tmp_path: Path) -> None:
    lines = stream(40, bad=False)
    expected, _ = reference(tmp_path, lines)
    Path("events").mkdir()
    for number, line in enumerate(lines):
        graph = json.loads(line)
        Path(f"events/{number}@{graph['time']}.ttl").write_text(graph["graph"])
        if number % 13 == 0:
            feed(state, ["events"], ["out.nq"], keep_open=True)
    feed(state, ["events"], ["out.nq"])
    assert Path("out.nq").read_bytes() == expected


def test_a_file_whose_consumed_part_changed_is_a_new_file(state: str) -> None:
    write_lines("in.jsonl", stream(30, bad=False))
    feed(state, ["in.jsonl"], ["out.nq"])
    changed = ['{"time":1000,"graph":""}', *stream(30, bad=False)]
    assert feed(state, [write_lines("in.jsonl", changed)], ["out.nq"]).totals.late == 30


def test_the_end_of_input_closes_the_last_instant_unless_kept_open(state: str) -> None:
    write_lines("a.jsonl", ['{"time":1,"graph":""}'])
    write_lines("b.jsonl", ['{"time":1,"graph":""}'])
    assert feed(state, ["a.jsonl"]).totals.late == 0
    assert feed(state, ["b.jsonl"], late="late.jsonl").totals.late == 1
    assert [graph.time for graph in Sources(["late.jsonl"])] == [1_000_000]


def test_late_graphs_are_written_alike_in_every_run(state: str, tmp_path: Path) -> None:
    late = "[] <urn:x:room> <urn:x:a> ; <urn:x:near> [ <urn:x:room> <urn:x:b> ] ."
    write_lines("a.jsonl", ['{"time":9,"graph":""}', json.dumps({"time": 1, "graph": late})])
    (tmp_path / "other").mkdir()
    feed(state, ["a.jsonl"], late="late.jsonl")
    feed(deploy(tmp_path / "other"), ["a.jsonl"], late="again.jsonl")
    assert Path("late.jsonl").read_bytes() == Path("again.jsonl").read_bytes()
    assert [len(graph.triples) for graph in Sources(["late.jsonl"])] == [3]


def test_kept_open_the_last_instant_takes_more_graphs(state: str) -> None:
    hot = '{"time":1,"graph":"[] <urn:x:celsius> 70 ; <urn:x:room> <urn:x:a> ."}'
    smoke = '{"time":1,"graph":"[] a <urn:x:Smoke> ; <urn:x:room> <urn:x:a> ."}'
    write_lines("a.jsonl", [smoke])
    write_lines("b.jsonl", [hot])
    feed(state, ["a.jsonl"], ["out.nq"], keep_open=True)
    feed(state, ["b.jsonl"], ["out.nq"])
    assert b"urn:dotr:Fire:" in Path("out.nq").read_bytes()


def mixed_sources(folder: str) -> str:
    """One stream, its graphs dealt out to sources of every kind."""
    Path(folder).mkdir()
    stamp = "<http://www.w3.org/ns/prov#generatedAtTime>"
    texts = {"a.nq": "", "b.trig": "", "log.ttl": 'VERSION "1.2-messages"\n', "z.jsonl": ""}
    for number, line in enumerate(stream(60, bad=False)):
        time, graph = json.loads(line)["time"], json.loads(line)["graph"]
        match number % 5:
            case 0:
                name = f"<urn:g{number}>"
                texts["a.nq"] += f"{name} {stamp} {integer(time)} .\n"
                texts["a.nq"] += "".join(f"{s} {p} {o} {name} .\n" for s, p, o in parse_triples(graph))
            case 1:
                texts["b.trig"] += f"<urn:t{number}> {{ {graph} }} <urn:t{number}> {stamp} {time} .\n"
            case 2:
                texts["log.ttl"] += f"{graph} <> {stamp} {time} .\nMESSAGE\n"
            case 3:
                Path(f"{folder}/{number}@{time}.ttl").write_text(graph)
            case _:
                texts["z.jsonl"] += f"{line}\n"
    for name, text in texts.items():
        Path(f"{folder}/{name}").write_text(text)
    return folder


@pytest.mark.parametrize("after", [1, 4, 7])
def test_sources_of_all_kinds_are_resumed_between_any_two_graphs(
    state: str, tmp_path: Path, after: int
) -> None:
    paths = [mixed_sources("mix")]
    (tmp_path / "other").mkdir()
    whole = feed(deploy(tmp_path / "other"), paths, ["whole.nq"], every=10**9)
    assert whole.totals.graphs == 60
    stops = 0
    while True:
        try:
            feed(state, paths, ["out.nq"], stopping=Stop(after))
        except KeyboardInterrupt:
            stops += 1
        else:
            break
    assert stops >= 60 // (after + 1)
    assert Path("out.nq").read_bytes() == Path("whole.nq").read_bytes()


class Stop:
    """Says stop after so many items."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_an_io_error_at_any_write_is_reported_and_the_next_feed_makes_it_whole(
    state: str, tmp_path: Path, ending: str
) -> None:
    expected, letters = reference(tmp_path, stream(24))
    with sqlite3.connect(Path(state) / "deployment.db") as connection:
        connection.execute("DELETE FROM closed")  # so that each feed keeps it again
    connection.close()
    at, failed = 0, 0
    while True:
        at += 1
        folder = tmp_path / f"run{at}"
        shutil.copytree(state, folder)
        out, dead = str(folder / f"out.nq{ending}"), str(folder / "dead.jsonl")
        disk = FailingDisk(at)
        reported = "D4201"
        try:
            feed(str(folder), ["in.jsonl"], [out], letters=dead, disk=disk)
        except EngineError as error:
            reported = error.diagnostics[0].code
            failed += 1
        assert reported == "D4201"
        feed(str(folder), ["in.jsonl"], [out], letters=dead)
        assert read_bytes(out) == expected, f"after a failure at write {at}"
        assert Path(dead).read_bytes() == letters
        if disk.count < at:
            break
    assert failed > 30


class Killed(FailingDisk):
    """Takes no write from the `at`-th on, as of a process that was killed before it."""

    def _step(self) -> bool:
        self.count += 1
        if self.count >= self.at:
            raise KeyboardInterrupt
        return False


def test_sequences_that_end_between_any_two_writes_go_on_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With open mappings, matches that wait for a deadline, and several partitions, in every commit."""
    monkeypatch.chdir(tmp_path)
    write_lines("in.jsonl", stream(70, bad=False))
    for name in ("quiet", "state"):
        (tmp_path / name).mkdir()
    feed(deploy(tmp_path / "quiet", SEQUENCES), ["in.jsonl"], ["quiet/out.nq"], every=10**9)
    expected = Path("quiet/out.nq").read_bytes()
    rules = ("Dipped", "Climbed", "Left", "Stepped", "Calmed")
    assert [rule for rule in rules if f"urn:dotr:{rule}:".encode() not in expected] == []
    state = deploy(tmp_path / "state", SEQUENCES)
    at, ended = 0, 0
    while True:
        at += 1
        folder = tmp_path / f"run{at}"
        shutil.copytree(state, folder)
        out, disk = str(folder / "out.nq"), Killed(at)
        with suppress(KeyboardInterrupt):
            feed(str(folder), ["in.jsonl"], [out], disk=disk, every=4)
        ended += disk.count >= at
        feed(str(folder), ["in.jsonl"], [out], every=3)
        assert Path(out).read_bytes() == expected, f"after an end at write {at}"
        if disk.count < at:
            break
        at += at // 8  # every write of the first commits, then fewer
    assert ended > 25


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_every_commit_of_a_compressed_output_is_a_member_of_its_own(
    state: str, tmp_path: Path, ending: str
) -> None:
    lines, out = stream(60, bad=False), f"out.nq{ending}"
    expected, _ = reference(tmp_path, lines)
    lengths = [0]
    for end in (20, 20, 40, 60):
        feed(state, [write_lines("in.jsonl", lines[:end])], [out], every=10**9, keep_open=end < 60)
        lengths.append(Path(out).stat().st_size)
    assert lengths[1] == lengths[2], "a commit without an event adds nothing"
    content, texts = Path(out).read_bytes(), []
    for begin, end in pairwise(lengths):
        Path("member").write_bytes(content[begin:end])
        texts.append(read_bytes("member"))
    assert (b"".join(texts), read_bytes(out)) == (expected, expected)
    assert sum(map(bool, texts)) == 3


def test_a_compressed_output_is_cut_back_to_its_last_commit(state: str, tmp_path: Path) -> None:
    lines = stream(60, bad=False)
    expected, _ = reference(tmp_path, lines)
    feed(state, [write_lines("in.jsonl", lines[:25])], ["out.nq.gz"], keep_open=True)
    with Path("out.nq.gz").open("ab") as file:
        file.write(b"\x1f\x8b half a member")
    feed(state, [write_lines("in.jsonl", lines)], ["out.nq.gz"])
    assert read_bytes("out.nq.gz") == expected


def test_an_output_that_was_begun_without_compression_is_not_continued_with_it(state: str) -> None:
    feed(state, [write_lines("in.jsonl", stream(20, bad=False))], ["out.nq"])
    Path("out.nq.gz").symlink_to("out.nq")
    with pytest.raises(RefusedError, match=r"was begun as nquads, not as nquads\.gz"):
        feed(state, ["in.jsonl"], ["out.nq.gz"])


@pytest.mark.parametrize("at", [1, 4, 9])
def test_an_interrupt_in_the_middle_of_an_instant_saves_nothing(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    lines = stream(60, bad=False)
    expected, _ = reference(tmp_path, lines)
    write_lines("in.jsonl", lines)
    emit, left = Feed._emit, iter(range(at))

    def interrupted(feed: Feed, *given: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt  # a second Ctrl-C
        emit(feed, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Feed, "_emit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            feed(state, ["in.jsonl"], ["out.nq"])
    feed(state, ["in.jsonl"], ["out.nq"])
    assert Path("out.nq").read_bytes() == expected


def test_bytes_behind_the_last_commit_are_cut_off_at_the_next_start(state: str, tmp_path: Path) -> None:
    lines = stream(50, bad=False)
    expected, _ = reference(tmp_path, lines)
    feed(state, [write_lines("in.jsonl", lines[:25])], ["out.nq"], keep_open=True)
    with Path("out.nq").open("ab") as file:
        file.write(b"half an ev")
    feed(state, [write_lines("in.jsonl", lines)], ["out.nq"])
    assert Path("out.nq").read_bytes() == expected


def test_a_foreign_file_is_refused_and_left_alone(state: str) -> None:
    Path("out.nq").write_text("precious")
    write_lines("in.jsonl", stream(5, bad=False))
    with pytest.raises(RefusedError, match="D5001"):
        feed(state, ["in.jsonl"], ["out.nq"])
    assert Path("out.nq").read_text() == "precious"
    Path("out.nq").unlink()
    feed(state, ["in.jsonl"], ["out.nq"])


def test_an_output_that_lost_committed_bytes_is_reported(state: str) -> None:
    feed(state, [write_lines("in.jsonl", stream(60, bad=False))], ["out.nq"])
    os.truncate("out.nq", 10)
    with pytest.raises(RefusedError, match="D5207"):
        feed(state, ["in.jsonl"], ["out.nq"])
    Path("out.nq").unlink()
    with pytest.raises(RefusedError, match="D5207"):
        feed(state, ["in.jsonl"], ["out.nq"])


def test_a_second_feed_is_kept_out(state: str) -> None:
    with Journal(state), pytest.raises(RefusedError, match="D5204"):
        Journal(state)
    with Journal(state, exclusive=False):
        Journal(state).close()


@pytest.mark.parametrize("keep", [0, 100, 5000, 20_000])
def test_a_truncated_database_is_damaged_not_overwritten(state: str, keep: int) -> None:
    feed(state, [write_lines("in.jsonl", stream(60, bad=False))], ["out.nq"])
    path = Path(state) / "deployment.db"
    content = path.read_bytes()
    assert len(content) > 20_000
    path.write_bytes(content[:keep])
    with pytest.raises(EngineError, match="D5202"):
        feed(state, ["in.jsonl"], ["out.nq"])
    assert path.read_bytes() == content[:keep]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE texts SET text = replace(text, '> 60', '> 70')",
        "UPDATE files SET path = 'other.dotr'",
        "DELETE FROM files",
        "INSERT INTO removed VALUES ('Fire', 'rules.dotr')",
        "UPDATE state SET status = substr(status, 5)",
        "UPDATE state SET snapshot = substr(snapshot, 1, 30)",
        "UPDATE state SET snapshot = zeroblob(30)",
        "UPDATE texts SET text = cast(x'ff' AS TEXT)",
        "DROP TABLE positions",
        "UPDATE positions SET position = substr(position, 2)",
        "ALTER TABLE state DROP COLUMN status",
    ],
)
def test_rows_that_nobody_wrote_are_damage(state: str, damage: str) -> None:
    feed(state, [write_lines("in.jsonl", stream(20, bad=False))], ["out.nq"])
    with sqlite3.connect(Path(state) / "deployment.db") as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(EngineError, match="D5202"):
        feed(state, ["in.jsonl"], ["out.nq"])


def test_a_deployment_of_another_version_is_refused(state: str) -> None:
    with sqlite3.connect(Path(state) / "deployment.db") as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    connection.close()
    with pytest.raises(EngineError, match="D5203"):
        Journal(state)


def test_a_folder_without_deployment_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="D5201"):
        Journal(str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()


def test_a_bad_document_ends_the_feed_after_a_commit_and_is_met_again(state: str) -> None:
    write_lines("in.jsonl", [*stream(20, bad=False), "broken"])
    with pytest.raises(DataError, match="D2014"):
        feed(state, ["in.jsonl"], ["out.nq"])
    with pytest.raises(DataError, match="D2014"):
        feed(state, ["in.jsonl"], ["out.nq"])
    repaired = write_lines("in.jsonl", [*stream(20, bad=False), '{"time":500,"graph":""}'])
    assert feed(state, [repaired], ["out.nq"]).totals.graphs == 1


def test_a_bad_line_of_a_long_quad_stream_is_met_again_and_nothing_before_it(state: str) -> None:
    stamp = "<http://www.w3.org/ns/prov#generatedAtTime>"
    quads = [
        f"<urn:g{i}> {stamp} {integer(i)} .\n<urn:o> <urn:x:room> <urn:x:a> <urn:g{i}> .\n" for i in range(30)
    ]
    streamed = SourceOptions(whole=1)
    Path("in.nq").write_text("".join(quads[:20]) + "bad\n" + "".join(quads[20:]))
    for graphs in (19, 0, 0):  # the graph before the error may go on behind it
        with pytest.raises(DataError, match=r"in\.nq:41"):
            feed(state, ["in.nq"], options=streamed)
        assert Journal(state, exclusive=False).status()["graphs"] == 19, graphs
    Path("in.nq").write_text("".join(quads))
    assert feed(state, ["in.nq"], options=streamed).totals.graphs == 11


@pytest.mark.parametrize("whole", [1, 1 << 22])
def test_garbage_in_a_quad_stream_is_reported_once_wherever_a_feed_is_stopped(
    state: str, tmp_path: Path, whole: int
) -> None:
    stamp = "<http://www.w3.org/ns/prov#generatedAtTime>"
    text = ""
    for i in range(40):
        text += f"<urn:g{i}> {stamp} {integer(i)} .\n" + "garbage\n" * (i % 7 == 3)
        text += f"<urn:o> <urn:x:room> <urn:x:a> <urn:g{i}> .\n" + "rubbish\n" * (i % 5 == 2)
        text += f"<urn:o> <urn:x:celsius> {integer(70)} <urn:g{i}> .\n" + "junk\n\n" * (i % 11 == 4)
    Path("in.nq").write_text(text + "the end")
    options = SourceOptions(whole=whole)
    (tmp_path / "other").mkdir()
    quiet = feed(
        deploy(tmp_path / "other"), ["in.nq"], ["o.nq"], letters="o.dead", options=options, every=10**9
    )
    assert quiet.totals.refused == Path("o.dead").read_text().count("\n") > 12
    stops = 0
    while True:
        try:
            feed(state, ["in.nq"], ["n.nq"], letters="n.dead", options=options, stopping=Stop(stops % 3))
        except KeyboardInterrupt:
            stops += 1
        else:
            break
    assert Path("n.dead").read_bytes() == Path("o.dead").read_bytes()
    assert Path("n.nq").read_bytes() == Path("o.nq").read_bytes()


def test_a_line_that_is_still_being_written_is_left_for_later(state: str) -> None:
    Path("in.jsonl").write_text('{"time":1,"graph":""}\n{"time":2,"gra')
    growing = SourceOptions(growing=True)
    assert feed(state, ["in.jsonl"], options=growing, keep_open=True).totals.graphs == 1
    with Path("in.jsonl").open("a") as file:
        file.write('ph":""}\n')
    assert feed(state, ["in.jsonl"], options=growing).totals.graphs == 1


def test_commits_do_not_show_in_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = stream(80)
    expected, letters = reference(tmp_path, lines)
    for every in (1, 2, 7):
        folder = tmp_path / str(every)
        folder.mkdir()
        done: Feed = feed(
            deploy(folder), ["in.jsonl"], [str(folder / "o")], letters=str(folder / "d"), every=every
        )
        assert done.totals.commits >= 80 // max(every, 16)
        assert ((folder / "o").read_bytes(), (folder / "d").read_bytes()) == (expected, letters)


def test_errors_are_never_bare(state: str) -> None:
    with pytest.raises(DotrError):
        feed(state, ["nowhere"])


@pytest.mark.parametrize("more", [b"", b"what somebody added\n"])
def test_an_output_replaced_by_other_bytes_is_refused(state: str, more: bytes) -> None:
    lines = stream(80, bad=False)
    feed(state, [write_lines("one.jsonl", lines[:60])], ["out.nq"])
    written = Path("out.nq").read_bytes()
    Path("out.nq").write_bytes(written[:-9] + b"replaced\n" + more)
    with pytest.raises(RefusedError, match="D5213"):
        feed(state, [write_lines("two.jsonl", lines[60:])], ["out.nq"])
    assert Path("out.nq").read_bytes() == written[:-9] + b"replaced\n" + more, "nothing is cut"
    Path("out.nq").write_bytes(written + more)
    feed(state, ["two.jsonl"], ["out.nq"])
    assert Path("out.nq").read_bytes().startswith(written)


def test_commits_that_follow_output_are_synced_and_others_need_not_be(state: str) -> None:
    class Watching(FailingDisk):
        said: list[str] = []  # noqa: RUF012  # of this test

        def execute(self, connection: sqlite3.Connection, statement: str, values: Any = ()) -> None:
            self.said.append(statement)
            super().execute(connection, statement, values)

    disk = Watching(at=-1)
    feed(state, [write_lines("in.jsonl", stream(60, bad=False))], ["out.nq"], disk=disk, every=1)
    modes = [said.rsplit(" ", 1)[1] for said in disk.said if said.startswith("PRAGMA synchronous")]
    events = len(Path("out.nq").read_text().splitlines())
    assert {"FULL", "NORMAL"} == set(modes)
    assert 1 < modes.count("FULL") <= events
