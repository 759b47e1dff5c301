"""Ordered streams: whatever is killed wherever, the files are one after the other what one process prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from dotr.batch import stream as stream_folder
from dotr.batch.stream import MicroBatches, StreamOptions
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

Graphs = list[tuple[Time, list[Triple]]]


def graphs(count: int = 60) -> Graphs:
    kinds = ("smoke", "heat", "noise")
    return [
        (i * 2 // 3 * SECOND, [(f"<urn:x:o{i}>", f"<urn:x:{kinds[i % 3]}>", f"<urn:x:room{i % 5}>")])
        for i in range(count)
    ]


def batches_of(rows: Graphs, size: int = 7) -> list[Graphs]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def in_one_go(rows: Graphs, rules: str = RULES, lateness: int = 0) -> str:
    pipeline = Pipeline(Deployment(parse_program(rules, "r.dotr")), lateness=lateness)
    pipeline.begin(Clock())
    events = [event for time, graph in rows for event in pipeline.push(time, graph)]
    events += pipeline.finish()
    return "".join(f"{format_jsonl(event, Clock())}\n" for event in events)


def opened(folder: Path, rules: str = RULES, options: StreamOptions | None = None) -> MicroBatches:
    deployment = Deployment(parse_program(rules, "r.dotr"))
    return MicroBatches(deployment, str(folder / "out"), str(folder / "state"), options)


def found(folder: Path) -> str:
    files = sorted((folder / "out").glob("*.jsonl"))
    return "".join(file.read_text(encoding="utf-8") for file in files)


def test_files_one_after_the_other_are_what_one_process_prints(tmp_path: Path) -> None:
    stream = opened(tmp_path)
    for number, batch in enumerate(batches_of(graphs())):
        stream.take(number, Clock(), Random(number).sample(batch, len(batch)))
    stream.close()
    expected = in_one_go(graphs())
    assert expected.count("\n") > 15
    assert found(tmp_path) == expected
    assert stream.close() is None


class Killed(BaseException):
    """What no handler of errors takes."""


def killing(monkeypatch: pytest.MonkeyPatch, steps: Iterator[int]) -> None:
    """From now on the writing of files is killed before or behind the steps that are counted off."""
    write = stream_folder._write
    left = next(steps)

    def step(path: Path, content: bytes) -> None:
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

    monkeypatch.setattr(stream_folder, "_write", step)


@pytest.mark.parametrize("seed", range(12))
def test_a_kill_at_any_step_leaves_no_difference(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and behind events and state; a batch that was done but not noted comes again, too."""
    random = Random(seed)
    opened(tmp_path)
    killing(monkeypatch, iter(lambda: random.randint(1, 9), 0))
    pieces, number, kills = batches_of(graphs()), 0, 0
    while number <= len(pieces):
        try:
            stream = opened(tmp_path)
            while number <= len(pieces):
                if number == len(pieces):
                    stream.close()
                else:
                    stream.take(number, Clock(), pieces[number])
                if random.randint(0, 3) == 0:  # killed before the batch was noted: it comes again
                    raise Killed
                number += 1
        except Killed:
            kills += 1
    assert kills > 5
    assert found(tmp_path) == in_one_go(graphs())


def test_late_graphs_and_bad_ones_are_kept_once(tmp_path: Path) -> None:
    options = StreamOptions(lateness=2 * SECOND, late="keep", on_error="keep")
    rows = graphs(30)
    early, late = rows[:20], (SECOND, [("<urn:x:late>", "<urn:x:smoke>", "<urn:x:room0>")])
    for _again in range(2):
        stream = opened(tmp_path, options=options)
        taken = stream.take(0, Clock(), early)
        taken = stream.take(1, Clock(), [late, *rows[20:]], letters=['{"place":"x"}'])
        assert (taken.late, taken.refused, taken.graphs) == (1, 1, 11)
    stream.close()
    assert found(tmp_path) == in_one_go(rows, lateness=2 * SECOND)
    (kept,) = (tmp_path / "out" / "_late").iterdir()
    assert json.loads(kept.read_text(encoding="utf-8"))["time"] == 1
    (letters,) = (tmp_path / "out" / "_letters").iterdir()
    assert letters.read_text(encoding="utf-8") == '{"place":"x"}\n'


def test_a_batch_in_error_writes_nothing_and_can_come_again(tmp_path: Path) -> None:
    rows = graphs(30)
    stream = opened(tmp_path, options=StreamOptions(late="fail"))
    stream.take(0, Clock(), rows[:20])
    before = found(tmp_path)
    with pytest.raises(DataError, match="D2301"):
        stream.take(1, Clock(), [(0, []), *rows[20:]])
    with pytest.raises(DataError, match="D2102"):
        stream.take(1, Clock(integer=False), rows[20:])
    assert found(tmp_path) == before
    stream.take(1, Clock(), rows[20:])
    stream.close()
    assert found(tmp_path) == in_one_go(rows)


def test_a_stream_goes_on_behind_a_closed_instant(tmp_path: Path) -> None:
    rows = graphs(40)
    first = opened(tmp_path)
    first.take(0, Clock(), rows[:21])
    first.close()
    second = opened(tmp_path)
    second.take(1, Clock(), rows[21:])
    second.close()
    assert rows[20][0] < rows[21][0]
    assert found(tmp_path) == in_one_go(rows)


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
    opened(tmp_path).take(0, Clock(), graphs(20))
    opened(tmp_path, "# the same\n" + RULES.replace("\nAND", "\n  AND")).take(1, Clock(), [])
    with pytest.raises(RefusedError, match="D5220") as raised:
        opened(tmp_path, RULES.replace(*change))
    assert reported in raised.value.diagnostics[0].notes
    with pytest.raises(RefusedError, match="the lateness has changed"):
        opened(tmp_path, options=StreamOptions(lateness=1))


def test_foreign_folders_and_lost_states_are_reported(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x", encoding="utf-8")
    with pytest.raises(RefusedError, match="D5001"):
        opened(tmp_path)
    (tmp_path / "out" / "mine.txt").unlink()
    stream = opened(tmp_path)
    for number, batch in enumerate(batches_of(graphs(30))):
        stream.take(number, Clock(), batch)
    states = sorted((tmp_path / "state").glob("*.state"))
    assert len(states) == 3
    with pytest.raises(EngineError, match="D5221"):
        opened(tmp_path).take(1, Clock(), [])
    states[-1].write_bytes(b"nonsense")
    with pytest.raises(EngineError, match="D5221"):
        opened(tmp_path).take(9, Clock(), [])
    (tmp_path / "state" / stream_folder.META).unlink()
    with pytest.raises(EngineError, match="D5221"):
        opened(tmp_path)


def rows_of(text: Sequence[str]) -> Sequence[str]:
    return [json.loads(line)["rule"] for line in text]


def test_empty_batches_write_no_file(tmp_path: Path) -> None:
    stream = opened(tmp_path)
    assert stream.take(0, None, []).graphs == 0
    stream.take(1, Clock(), graphs(20))
    stream.take(2, None, [])
    stream.close()
    names = sorted(file.name for file in (tmp_path / "out").glob("*.jsonl"))
    assert names == ["000000000001.jsonl", "000000000002.last.jsonl"]
    assert rows_of(found(tmp_path).splitlines()) == rows_of(in_one_go(graphs(20)).splitlines())
