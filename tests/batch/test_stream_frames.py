"""Streams as frames of events: any sink, restarts, other rules on an old checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import dotr.spark
from dotr.batch.spark.session import own
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.errors import RefusedError, UsageError
from dotr.events import Clock
from dotr.io.events import format_jsonl
from dotr.lang import parse_program
from tests.batch.test_micro_batches import RULES, SECOND, Log, graphs, in_one_go

pytestmark = pytest.mark.spark

LIMIT = 240
END = 60 * SECOND


def put(folder: Path, number: int, rows: Log) -> None:
    """A file of graphs, which comes after those with smaller numbers."""
    folder.mkdir(exist_ok=True)
    lines = [
        {"time": at // SECOND, "graph": "".join(f"{s} {p} {o} .\n" for s, p, o in graph)}
        for at, graph in rows
    ]
    path = folder / f"{number:03}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    os.utime(path, (1_000_000 + number, 1_000_000 + number))


def log_of(spark: Any, folder: Path) -> Any:
    reader = spark.readStream.schema("time bigint, graph string").option("maxFilesPerTrigger", 1)
    return reader.json(str(folder))


def events_in(lines: str) -> list[tuple[str, int, str]]:
    found = [json.loads(line) for line in lines.splitlines()]
    return sorted((event["id"], event["time"], event["rule"]) for event in found)


def events_of(rows: Sequence[Any]) -> list[tuple[str, int, str]]:
    return sorted((row.id, row.time, row["rule"]) for row in rows)


def once(events: Any, place: Path) -> None:
    """Run a query over what is there, with Parquet as the sink."""
    writer = events.writeStream.format("parquet").option("checkpointLocation", str(place / "state"))
    assert writer.trigger(availableNow=True).start(str(place / "found")).awaitTermination(LIMIT)


CHANGED = RULES.replace("WITHIN 5 s", "WITHIN 7 s")
"""Quiet looks farther back; Alarm is the same."""


@pytest.mark.parametrize("mode", ["ordered", "distributed"])
def test_a_streaming_frame_goes_on_with_other_rules(mode: str, spark: Any, tmp_path: Path) -> None:
    """Two queries on one checkpoint, the second with other rules, once it is allowed: what an engine finds
    that goes on with them. There is a batch without graphs, and one with a graph that comes late.
    """
    rows, log = graphs(), tmp_path / "log"
    options = {"mode": mode, "lateness": "3 s"}
    put(log, 0, rows[:13])
    put(log, 1, rows[13:25])
    once(dotr.spark.stream(log_of(spark, log), text=RULES, **options), tmp_path)
    put(log, 2, [])
    late = (SECOND, [("<urn:x:late>", "<urn:x:smoke>", "<urn:x:room0>")])
    put(log, 3, [late, *rows[25:], (END, [])])
    with pytest.raises(RefusedError, match=r"rule `Quiet` has changed[\s\S]*change_rules=True\)"):
        once(dotr.spark.stream(log_of(spark, log), text=CHANGED, **options), tmp_path)
    events = dotr.spark.stream(log_of(spark, log), text=CHANGED, change_rules=True, **options)
    assert events.isStreaming
    once(events, tmp_path)
    found = spark.read.parquet(str(tmp_path / "found"))
    first, second = (
        Pipeline(Deployment(parse_program(r, "r.dotr")), lateness=3 * SECOND) for r in (RULES, CHANGED)
    )
    first.begin(Clock())
    wanted = [event for time, graph in rows[:25] for event in first.push(time, graph)]
    second.restore(first.snapshot())
    for time, graph in [*rows[25:], (END, [])]:
        wanted += second.push(time, graph)
    lines = "".join(format_jsonl(event, Clock()) + "\n" for event in wanted)
    assert events_of(found.collect()) == events_in(lines)
    assert {event.rule for event in wanted} == {"Alarm", "Quiet"}
    alarm, one = (
        found.where("rule = 'Alarm'").orderBy("time").first(),
        next(e for e in wanted if e.rule == "Alarm"),
    )
    terms = dict(one.bindings)
    assert (alarm.time * SECOND, f"<{alarm.bindings.room.value}>") == (one.time, terms["room"])
    assert f'"{alarm.bindings.n}"^^' in terms["n"]
    assert alarm.match.Smoke.time == alarm.time


def test_a_function_gets_each_batch_once_more_after_an_error(spark: Any, tmp_path: Path) -> None:
    """What the function raises ends the query; the next one goes on, and closes the last instant."""
    log = tmp_path / "log"
    for number in range(3):
        put(log, number, graphs()[number * 20 : number * 20 + 20])
    batches: dict[int, list[Any]] = {}
    calls: list[int] = []

    def take(events: Any, number: int) -> None:
        calls.append(number)
        if number == 1 and calls.count(1) == 1:
            raise ValueError("the disk is full")
        batches[number] = events.orderBy("time").collect()
        assert events.count() == len(batches[number])  # it may be read again

    for again in range(2):
        frame = log_of(spark, log)
        query = dotr.spark.stream(
            frame, text=RULES, foreach_batch=take, checkpoint=tmp_path / "state", once=True, schema="terms"
        )
        assert query.mode == "ordered"
        if again:
            assert query.wait(LIMIT)
        else:
            with pytest.raises(ValueError, match="the disk is full"):
                query.wait(LIMIT)
    assert calls[:3] == [0, 1, 1]
    found = [row for number in sorted(batches) for row in batches[number]]
    assert events_of(found) == events_in(in_one_go(graphs()))
    reported = query.progress()
    assert (reported["event_time"], reported["watermark"], reported["graphs"]) == ("39", "39", 40)
    assert found[0].match.startswith("{")


def test_what_does_not_fit_together_is_refused(spark: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    put(log, 0, [])
    frame = log_of(spark, log)
    for options, wanted in (
        ({"checkpoint": "x"}, "`checkpoint` belongs to a query"),
        ({"once": True}, "`once` belongs to a query"),
        ({"out": "x"}, "needs a `checkpoint`"),
        ({"late": "keep"}, "late=.keep.` belongs to a folder"),
        ({"format": "nquads"}, "`format` belongs to a folder"),
        ({"out": "x", "checkpoint": "y", "types": {"n": "integer"}}, "`types` belongs to a frame"),
        ({"out": "x", "foreach_batch": print, "checkpoint": "y"}, "either `out` or `foreach_batch`"),
        ({"types": "data"}, "a log that has an end"),
        ({"schema": "wide"}, "no schema `wide`"),
    ):
        with pytest.raises(UsageError, match=f"D4123[\\s\\S]*{wanted}"):
            dotr.spark.stream(frame, text=RULES, **options)
    with pytest.raises(UsageError, match="D4311"):
        dotr.spark.stream(frame, text=RULES, mode="distributed", max_jump="5 s")
    with pytest.raises(UsageError, match="D4129"):
        dotr.spark.stream(spark.range(3), text=RULES)
    events = dotr.spark.stream(frame, text=RULES)
    assert events.rule("Alarm").columns == ["time", "id", "room", "n", "terms"]


SPARKS = """[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does
not match with the operator in state metadata.
Stateful operators in the metadata: [{}]; Stateful operators in current batch: [{}]. SQLSTATE: 42K03"""
ONE = "(OperatorId: 0 -> OperatorName: applyInPandasWithState)"
TWO = ", ".join(f"(OperatorId: {n} -> OperatorName: transformWithStateInPandasExec)" for n in range(2))


def test_a_checkpoint_of_the_other_mode_is_named() -> None:
    for before, now, mode in ((ONE, TWO, "ordered"), (TWO, ONE, "distributed")):
        found = own(SPARKS.format(before, now))
        assert found is not None
        assert (found.diagnostics[0].code, f'mode="{mode}"' in found.diagnostics[0].hint) == ("D5220", True)
    assert own(SPARKS.format(ONE, "(OperatorId: 0 -> OperatorName: dedupe)")) is None
