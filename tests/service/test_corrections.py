"""A deployment fed with corrections, stopped, killed or fed in pieces: what remains is what a run in order
reports.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import dotr
from dotr.events import Clock
from dotr.service.deployment import plan_of, propose
from dotr.service.history import FedDeployment, Question, explained
from dotr.service.journal import Journal
from tests.core.test_corrections import CHECK, QUIET, VALUE, Message
from tests.service.test_feed import Killed, Stop
from tests.test_whole_lasting import loaded
from tests.whole_corrections import (
    Case,
    Pace,
    compare,
    deploy,
    deployed,
    feed,
    lines_of,
    remaining,
    write,
)

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
PACE = Pace(3600, 0.5, 0)


def quiet_case(come: list[tuple[int, str]]) -> Case:
    messages = [Message(time, graph, None, None, False) for time, graph in come]
    return Case({"a.dotr": QUIET}, ["a.dotr"], "", messages, lambda: loaded((QUIET, "")))


COME = [
    (20, CHECK),
    (30, VALUE),
    (31, CHECK),
    (15, VALUE),
    (50, CHECK),
    (60, CHECK),
    (45, VALUE),
    (70, VALUE),
]


def signs(folder: Path) -> list[tuple[int, int]]:
    return [(line["change"], line["time"]) for line in lines_of(folder / "out.jsonl")]


def in_order(come: list[tuple[int, str]]) -> set[int]:
    engine = dotr.Engine.from_text(QUIET)
    events = [event for time, graph in sorted(come) for event in engine.push(graph, at=time)]
    return {event.time for event in [*events, *engine.finish()]}


def test_what_was_closed_when_a_feed_was_stopped_is_reported_by_the_next(tmp_path: Path) -> None:
    deploy(tmp_path, quiet_case(COME))
    write(tmp_path, quiet_case(COME).come)
    with pytest.raises(KeyboardInterrupt):
        feed(tmp_path, PACE, stopping=Stop(1))  # two graphs are taken, nothing has run
    assert signs(tmp_path) == []
    feed(tmp_path, PACE)
    assert {time for change, time in signs(tmp_path) if change > 0} == {20, 50, 60}
    assert len(remaining(lines_of(tmp_path / "out.jsonl"))) == len(in_order(COME))


def test_feeds_that_end_between_any_two_writes_go_on_as_they_were(tmp_path: Path) -> None:
    case = quiet_case(COME)
    deploy(tmp_path / "state", case)
    write(tmp_path / "state", case.come)
    at = ended = 0
    while True:
        at += 1
        folder = tmp_path / f"run{at}"
        shutil.copytree(tmp_path / "state", folder)
        disk = Killed(at)
        with suppress(KeyboardInterrupt):
            feed(folder, PACE, disk=disk, every=2)
        ended += disk.count >= at
        feed(folder, PACE, every=3)
        left = remaining(lines_of(folder / "out.jsonl"))
        assert len(left) == len(in_order(COME)), f"after an end at write {at}"
        assert sum(change for change, _ in signs(folder)) == len(left)
        if disk.count < at:
            break
        at += at // 6  # every write of the first commits, then fewer
    assert ended > 15


@pytest.mark.parametrize("number", range(2_000 if DEEP else 12))
def test_what_remains_of_disturbed_feeds_is_what_a_run_in_order_reports(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 12)  # effects that follow one another without an end
    deployed(number, tmp_path / "case")


def test_feeds_that_are_compared_have_corrections(tmp_path: Path) -> None:
    assert compare(tmp_path, quiet_case(COME), Random(5))


@pytest.mark.parametrize("kills", [0, 3, 7, 11])
def test_rules_that_hold_from_a_time_on_begin_the_period_anew(tmp_path: Path, kills: int) -> None:
    """Graphs behind 40 s are late once it has passed; what the rules since then reported is corrected."""
    come = [*COME[:4], (39, CHECK), (41, CHECK), (38, VALUE), *COME[4:]]
    case = quiet_case(come)
    deploy(tmp_path, case, keep=3600)
    write(tmp_path, case.come)
    (tmp_path / "a.dotr").write_text(QUIET.replace("10 s", "3 s"), encoding="utf-8")
    with Journal(str(tmp_path / "state")) as journal:
        proposal = propose(journal, [str(tmp_path / "a.dotr")])
        journal.keep_plan(plan_of(proposal, 40_000_000, Clock()))
    random = Random(kills)
    for _ in range(kills):
        with suppress(KeyboardInterrupt):
            feed(tmp_path, PACE, disk=Killed(random.randint(1, 60)), every=random.choice((1, 2, 5)))
    feed(tmp_path, PACE, every=1)
    late = [line["time"] for line in lines_of(tmp_path / "late.jsonl")]
    assert late == [38]
    plain = dotr.Engine.from_text(QUIET)
    plain.replace(tmp_path / "a.dotr", at=40)
    events = [event for time, graph in sorted(come) if time != 38 for event in plain.push(graph, at=time)]
    events += plain.finish()
    left = remaining(lines_of(tmp_path / "out.jsonl"))
    assert left == Counter(json.dumps(json.loads(event.to_json())) for event in events)
    assert any(change < 0 and time < 40 for change, time in signs(tmp_path))
    fed = FedDeployment(str(tmp_path / "state"))
    last = events[-1]
    assert explained(fed, Question(event_id=last.id)).happened
