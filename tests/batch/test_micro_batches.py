"""Ordered streams: whatever is killed wherever, the files are one after the other what one process prints.

Batches come as Spark brings them, without Spark: the operator gets the state of the batch before, and a batch
that is not committed comes again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dotr.batch import stream as stream_folder
from dotr.batch.spark import ordered_frames, stream_frames
from dotr.batch.spark.distributed import Bundle, Graphs
from dotr.batch.spark.event_rows import Lines, unpacked_rows
from dotr.batch.spark.ordered_frames import KEPT, Ordered
from dotr.batch.spark.stream_bundles import GRAPHS
from dotr.batch.spark.stream_frames import WriteLines
from dotr.batch.stream import StreamFolder, StreamOptions
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.errors import DataError, EngineError, RefusedError
from dotr.events import Clock, Time
from dotr.io.events import format_jsonl
from dotr.lang import parse_program
from dotr.rdf.terms import Triple

RULES = """PREFIX : <urn:x:>
QUERY Smoke := { SELECT ?room WHERE { ?o :smoke ?room } }
RULE Alarm
DEFINE { dotr_id a :Alarm ; :in ?room ; :after ?n }
FROM Smoke
AND LAST Heat := { SELECT ?room WHERE { ?o :heat ?room } } WITHIN 4 s FROM Smoke ON Heat.?room = Smoke.?room
WITH ?room := Smoke.?room, ?n := Heat.time
CONSUMING Heat
RULE Quiet
DEFINE { dotr_id a :Quiet ; :count ?n }
FROM EVERY 3 s AS Tick AND COUNT(*) AS ?n OVER Smoke WITHIN 5 s FROM Tick
WITH ?n := ?n
"""
SECOND = 1_000_000
SECONDS = Clock()

Log = list[tuple[Time, list[Triple]]]


def graphs(count: int = 60) -> Log:
    kinds = ("smoke", "heat", "noise")
    return [
        (i * 2 // 3 * SECOND, [(f"<urn:x:o{i}>", f"<urn:x:{kinds[i % 3]}>", f"<urn:x:room{i % 5}>")])
        for i in range(count)
    ]


def batches_of(rows: Log, size: int = 7) -> list[Log]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def in_one_go(rows: Log, rules: str = RULES, lateness: int = 0) -> str:
    pipeline = Pipeline(Deployment(parse_program(rules, "r.dotr")), lateness=lateness)
    pipeline.begin(Clock())
    events = [event for time, graph in rows for event in pipeline.push(time, graph)]
    events += pipeline.finish()
    return "".join(f"{format_jsonl(event, Clock())}\n" for event in events)


def text(graph: Iterable[Triple]) -> str:
    return "".join(f"{s} {p} {o} .\n" for s, p, o in graph)


NOTE: dict[str, Any] = {"letters": [], "time_sources": {}, "beside": {}, "clock": [True, SECOND]}
"""Of a task that read integer times in seconds."""


class Stream:
    """A query over an ordered stream: its folders, and what a checkpoint of Spark has. `restarted`: a new
    process goes on.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states: dict[int, Any] = {-1: None}
        self.last: Any = None

    def restarted(
        self, rules: str = RULES, options: StreamOptions | None = None, clock: Clock | None = SECONDS
    ) -> Stream:
        ordered_frames._ENGINES.clear()
        options = options or StreamOptions()
        deployment = Deployment(parse_program(rules, "r.dotr"))
        self.files = StreamFolder(
            deployment, str(self.folder / "out"), str(self.folder / "state"), options, more={"id": "x"}
        )
        frame: Any = SimpleNamespace(sparkSession=None)
        source = Graphs(frame, clock, "urn:base:")
        self.plan = Ordered(source, deployment, options, Lines(clock, "jsonl"), str(self.folder))
        return self

    def take(self, number: int, rows: Log, note: dict[str, Any] = NOTE, closing: bool = False) -> Any:
        """Batch `number`, from two tasks; its events and what is kept go to files. The last row."""
        unit = self.plan.task.unit
        parts: list[ordered_frames.Part] = [(None, None)] if closing else []
        for half in (rows[1::2], rows[::2]):
            found = [{"time": at // unit, "graph": text(graph), "note": None} for at, graph in half]
            found.append({"time": None, "graph": None, "note": json.dumps({**note, "letters": []})})
            table = pa.RecordBatch.from_pylist(found, GRAPHS.append(pa.field("note", pa.string())))
            parts += [(row["bundle"], row["note"]) for row in bundles(table)]
        if note["letters"]:
            parts.append((None, json.dumps(note)))
        last = max(at for at in self.states if at < number)

        def update(state: Any) -> None:
            committed.append(state)

        committed: list[Any] = []
        before = self.states[last]
        state = SimpleNamespace(exists=before is not None, get=before, update=update)
        frame = pd.concat(list(ordered_frames.taken(self.plan.task, parts, state)))
        contents = [content for content in frame["found"] if content is not None]
        batch = pa.RecordBatch.from_pydict({"found": pa.array(contents, pa.binary())})
        lines = [some.select(["line"]) for some in unpacked_rows(iter([batch]))]
        self.write(self.files.file(number), lines)
        for column, folder in KEPT.items():
            kept = [line for line in frame[column] if line is not None]
            self.write(self.files.kept(folder, number), [pa.RecordBatch.from_pydict({"line": kept})])
        self.states[number] = committed[0]
        return frame.iloc[-1]

    def write(self, path: Path, lines: list[pa.RecordBatch]) -> None:
        if not list(WriteLines(str(path))(iter(lines))):
            path.unlink(missing_ok=True)


def bundles(table: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    for batch in Bundle((0,), True)(iter([table])):
        yield from batch.to_pylist()


def opened(folder: Path, rules: str = RULES, options: StreamOptions | None = None) -> Stream:
    return Stream(folder).restarted(rules, options)


def found(folder: Path) -> str:
    files = sorted((folder / "out").glob("*.jsonl"))
    return "".join(file.read_text(encoding="utf-8") for file in files)


def test_files_one_after_the_other_are_what_one_process_prints(tmp_path: Path) -> None:
    stream = opened(tmp_path)
    pieces = batches_of(graphs())
    for number, batch in enumerate(pieces):
        last = stream.take(number, Random(number).sample(batch, len(batch)))
    assert json.loads(last.times) == ["39", "38", True]
    last = stream.take(len(pieces), [], closing=True)
    assert json.loads(last.times) == ["39", "39", False]
    expected = in_one_go(graphs())
    assert expected.count("\n") > 15
    assert found(tmp_path) == expected


class Killed(BaseException):
    """What no handler of errors takes."""


def killing(monkeypatch: pytest.MonkeyPatch, steps: Iterator[int]) -> None:
    """From now on the writing of files is killed before or after the steps that are counted off."""
    write = stream_frames.write_whole
    left = next(steps)

    def step(path: str, content: Iterable[bytes]) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            left = next(steps)
            raise Killed
        write(path, content)
        left -= 1
        if left == 0:
            left = next(steps)
            raise Killed

    monkeypatch.setattr(stream_frames, "write_whole", step)


@pytest.mark.parametrize("seed", range(12))
def test_a_kill_at_any_step_leaves_no_difference(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after files; a batch that was done but not committed comes again, too, here in the process
    that has its engine, there in a new one.
    """
    random = Random(seed)
    stream = opened(tmp_path)
    killing(monkeypatch, iter(lambda: random.randint(1, 9), 0))
    pieces, number, kills = batches_of(graphs()), 0, 0
    while number <= len(pieces):
        rows = [] if number == len(pieces) else pieces[number]
        try:
            stream.take(number, rows, closing=number == len(pieces))
            if random.randint(0, 3) == 0:  # killed before the batch was committed: it comes again
                del stream.states[number]
                raise Killed
            number += 1
        except Killed:
            kills += 1
            if random.randint(0, 1):
                stream.restarted()
    assert kills > 5
    assert found(tmp_path) == in_one_go(graphs())


def test_late_graphs_and_bad_ones_are_kept_once(tmp_path: Path) -> None:
    """The letters of a batch are those of documents, by task, and then those of instants."""
    options = StreamOptions(lateness=2 * SECOND, late="keep", on_error="keep")
    rows = graphs(30)
    early, late = rows[:20], (SECOND, [("<urn:x:late>", "<urn:x:smoke>", "<urn:x:room0>")])
    note = {**NOTE, "letters": ['{"place":"x:10"}', '{"place":"x:9"}']}
    stream = opened(tmp_path, options=options)
    stream.take(0, early)
    for _again in range(2):
        last = stream.restarted(options=options).take(1, [late, *rows[20:]], note=note)
        assert (last.late, last.refused) == (1, 0), "documents are counted where they are read"
        del stream.states[1]
    stream.take(1, [late, *rows[20:]], note=note)
    stream.take(2, [], closing=True)
    assert found(tmp_path) == in_one_go(rows, lateness=2 * SECOND)
    (kept,) = (tmp_path / "out" / "_late").iterdir()
    assert kept.name == "000000000001.jsonl"
    assert json.loads(kept.read_text(encoding="utf-8"))["time"] == 1
    (letters,) = (tmp_path / "out" / "_letters").iterdir()
    assert letters.read_text(encoding="utf-8") == '{"place":"x:10"}\n{"place":"x:9"}\n'


def test_a_batch_in_error_writes_nothing_and_can_come_again(tmp_path: Path) -> None:
    rows = graphs(30)
    stream = opened(tmp_path, options=StreamOptions(late="fail"))
    stream.take(0, rows[:20])
    before = found(tmp_path)
    with pytest.raises(DataError, match="D2301"):
        stream.take(1, [(0, []), *rows[20:]])
    assert found(tmp_path) == before
    stream.take(1, rows[20:])
    stream.take(2, [], closing=True)
    assert found(tmp_path) == in_one_go(rows)


def test_the_first_graph_shows_how_times_are_written(tmp_path: Path) -> None:
    """Nothing was there when the stream started: letters are kept, then times come as their readers note
    them; those of another kind are refused, also when the stream is started again, by what it knows then.
    """
    options = StreamOptions(on_error="keep")
    stream = Stream(tmp_path).restarted(options=options, clock=None)
    last = stream.take(0, [], note={**NOTE, "clock": None, "letters": ['{"place":"x"}']})
    assert json.loads(last.times) == ["", "", False]
    rows = graphs(30)
    for number, batch in enumerate((rows[:15], rows[15:]), 1):
        assert stream.take(number, batch).refused == 0
    dates = {**NOTE, "clock": [False, SECOND]}
    with pytest.raises(DataError, match="D2102"):
        stream.take(3, graphs(40)[30:], note=dates)
    with pytest.raises(DataError, match="D2102"):
        stream.restarted(options=options, clock=None).take(3, graphs(40)[30:], note=dates)
    with pytest.raises(RefusedError, match=r"D5220[\s\S]*the clock has changed"):
        stream.restarted(options=options, clock=Clock(integer=False)).take(3, graphs(40)[30:])
    stream.restarted(options=options, clock=Clock()).take(3, [], closing=True)
    assert found(tmp_path) == in_one_go(rows)
    assert (tmp_path / "out" / "_letters" / "000000000000.jsonl").read_text() == '{"place":"x"}\n'


def test_a_stream_goes_on_behind_a_closed_instant(tmp_path: Path) -> None:
    """Graphs that come in the batch with the end are not of the instant that it closes."""
    rows = graphs(40)
    stream = opened(tmp_path)
    stream.take(0, rows[:21])
    last = stream.take(1, rows[21:30], closing=True)
    assert json.loads(last.times)[2], "what came beside the end is open"
    stream.restarted().take(2, rows[30:])
    stream.take(3, [], closing=True)
    assert rows[20][0] < rows[21][0]
    assert found(tmp_path) == in_one_go(rows)
    late = rows[20][0], [("<urn:x:o>", "<urn:x:smoke>", "<urn:x:room0>")]
    again = opened(tmp_path / "again")
    again.take(0, rows[:21])
    assert again.take(1, [late, *rows[21:]], closing=True).late == 1


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (("4 s", "5 s"), "rule `Alarm` has changed"),
        (("RULE Quiet", "RULE Silent"), "rule `Silent` is new"),
    ],
)
def test_other_rules_are_refused_and_another_layout_is_not(
    change: tuple[str, str], reported: str, tmp_path: Path
) -> None:
    stream = opened(tmp_path)
    stream.take(0, graphs(20))
    stream.restarted("# the same\n" + RULES.replace("\nAND", "\n  AND")).take(1, [])
    with pytest.raises(RefusedError, match="D5220") as raised:
        opened(tmp_path, RULES.replace(*change))
    assert reported in raised.value.diagnostics[0].notes
    with pytest.raises(RefusedError, match="the lateness has changed"):
        opened(tmp_path, options=StreamOptions(lateness=1))


def test_foreign_folders_and_other_states_are_reported(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x", encoding="utf-8")
    with pytest.raises(RefusedError, match="D5001"):
        opened(tmp_path)
    (tmp_path / "out" / "mine.txt").unlink()
    stream = opened(tmp_path)
    stream.take(0, graphs(30))
    meta, token, content = stream.states[0]
    stream.states[0] = meta, token, b"nonsense"
    with pytest.raises(EngineError, match="D5221"):
        stream.restarted().take(1, [])
    stream.states[0] = meta, token, content
    place = tmp_path / "state" / stream_folder.META
    whole = place.read_text(encoding="utf-8")
    place.write_text(whole.replace('"version": 3', '"version": 2'), encoding="utf-8")
    with pytest.raises(EngineError, match=r"D5221[\s\S]*version 2; this release of dotr reads 3"):
        stream.restarted()
    place.unlink()
    with pytest.raises(EngineError, match=r"D5221[\s\S]*has its events"):
        stream.restarted()


def rows_of(text: Sequence[str]) -> Sequence[str]:
    return [json.loads(line)["rule"] for line in text]


def test_empty_batches_write_no_file(tmp_path: Path) -> None:
    stream = opened(tmp_path)
    assert json.loads(stream.take(0, []).times) == ["", "", False]
    stream.take(1, graphs(20))
    stream.take(2, [])
    stream.take(3, [], closing=True)
    names = sorted(file.name for file in (tmp_path / "out").glob("*.jsonl"))
    assert names == ["000000000001.jsonl", "000000000003.jsonl"]
    assert rows_of(found(tmp_path).splitlines()) == rows_of(in_one_go(graphs(20)).splitlines())
