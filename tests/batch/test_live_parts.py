"""Parts that go on from batch to batch: however batches are cut and parts restored, the events of one run."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from dotr.batch.facts import APART
from dotr.batch.stream import (
    DISTRIBUTED,
    ORDERED,
    LiveParts,
    StreamOptions,
    choose,
    marks_of,
    obstacles,
    parts_of,
    slots,
    stream_layout,
)
from dotr.batch.work import Shipped, Treatment, extract, make_job, ship
from dotr.core.deployment import Deployment
from dotr.errors import EngineError, UsageError
from dotr.events import Clock, Composite, Time
from dotr.io.events import format_jsonl
from dotr.lang import parse_program
from tests.batch.test_micro_batches import RULES, SECOND, graphs, in_one_go

CORES = 2


def shipped(rules: str = RULES) -> Shipped:
    deployment = Deployment(parse_program(rules, "r.dotr"))
    layout = stream_layout(deployment, CORES)
    return ship(make_job(deployment, Clock(), layout, Treatment(shared=False)))


def sorted_lines(events: list[Composite]) -> list[str]:
    events.sort(key=lambda event: (event.time, event.rule, event.id))
    return [format_jsonl(event, Clock()) for event in events]


@pytest.mark.parametrize("seed", range(8))
def test_parts_find_what_one_engine_finds(seed: int) -> None:
    """Batches are cut anywhere between instants; some parts are restored from bytes, some stay alive; time
    comes a while behind the instants, as watermarks do.
    """
    random = Random(seed)
    job = shipped()
    worker = job.worker()
    instants: dict[Time, list[list[tuple[str, str, str]]]] = defaultdict(list)
    for time, graph in graphs():
        instants[time].append(graph)
    times = sorted(instants)
    live = LiveParts(job)
    states: dict[int, tuple[int, bytes]] = {}
    found: list[Composite] = []
    while times:
        count = random.randint(1, 9)
        batch, times = times[:count], times[count:]
        rows = defaultdict(list)
        for part, time, text in extract(worker, [(time, instants[time]) for time in batch]):
            if part > APART:
                rows[part].append((time, text))
        for part, time, text in marks_of(parts_of(worker.job.layout), batch[0], batch[-1]):
            rows[part].append((time, text))
        bound = random.choice([None, times[0] - 1]) if times else None
        for part, some in rows.items():
            token, content = states.get(part, (None, b""))
            alive = live.taken(part, token)
            if alive is None or random.random() < 0.3:
                alive = live.fresh(part)
                if content:
                    alive.restore(content)
            found += alive.take(random.sample(some, len(some)), bound)
            token = random.getrandbits(60)
            states[part] = token, alive.snapshot()
            live.give_back(part, token if random.random() < 0.8 else 0, alive)
    wanted = in_one_go(graphs()).splitlines()
    assert len(wanted) > 15
    assert sorted(sorted_lines(found)) == sorted(wanted)


def test_a_snapshot_of_something_else_is_refused() -> None:
    part = LiveParts(shipped()).fresh(0)
    for content in (b"dotr part 0\nabc", part.snapshot()[:-3]):
        with pytest.raises(EngineError, match="D5221"):
            part.restore(content)


def test_a_tick_is_waited_for() -> None:
    """The part of EVERY wants to be called at its next tick, that of keys never."""
    job = shipped()
    live = LiveParts(job)
    due = []
    for part in parts_of(job.worker().job.layout):
        found = live.fresh(part)
        found.take(
            [(time, text) for p, time, text in marks_of([part], 4 * SECOND, 5 * SECOND) if p == part], None
        )
        due.append(found.due())
    assert set(due) == {None, 6 * SECOND}


LATE = """PREFIX : <urn:x:> QUERY O := { SELECT ?k { ?o :k ?k } }
RULE Late DEFINE { dotr_l :of ?k } FROM O AFTER 10 s AS Due WITH ?k := O.?k"""


def test_a_part_waits_for_the_tick_of_what_came() -> None:
    job = shipped(LATE)
    came = [(4 * SECOND, [[("<urn:a>", "<urn:x:k>", "<urn:b>")]])]
    ((part, time, text),) = [row for row in extract(job.worker(), came) if row[0] > APART]
    found = LiveParts(job).fresh(part)

    def marks(first: Time, last: Time) -> list[tuple[Time, str]]:
        return [(time, text) for _, time, text in marks_of([part], first, last)]

    assert found.due() is None
    assert found.take([*marks(4 * SECOND, 4 * SECOND), (time, text)], 5 * SECOND) == []
    assert found.due() == 14 * SECOND
    again = LiveParts(job).fresh(part)
    again.restore(found.snapshot())
    assert again.due() == 14 * SECOND
    assert [event.time for event in again.take(marks(20 * SECOND, 20 * SECOND), 19 * SECOND)] == [14 * SECOND]
    assert again.due() is None


def test_slots_deal_parts_out_in_turn() -> None:
    """By Spark's hash of a bigint; test_distributed_streams.py asks Spark."""
    layout = stream_layout(Deployment(parse_program(RULES, "r.dotr")), 8)
    found = slots(parts_of(layout), 4)
    assert list(found) == parts_of(layout)
    assert len(set(found.values())) == len(found) == 33


def test_a_mode_is_chosen_and_said_why() -> None:
    deployment = Deployment(parse_program(RULES, "r.dotr"))
    plain = StreamOptions()
    assert choose("auto", None, deployment, plain, 16).mode == DISTRIBUTED
    assert choose("auto", ORDERED, deployment, plain, 16).mode == ORDERED
    few = choose("auto", None, deployment, plain, 2)
    assert (few.mode, "2 cores" in few.reasons[0]) == (ORDERED, True)
    assert choose("distributed", None, deployment, plain, 2).mode == DISTRIBUTED
    for options in (StreamOptions(late="keep"), StreamOptions(on_error="skip"), StreamOptions(max_jump=1)):
        assert obstacles(deployment.program, options)
        with pytest.raises(UsageError, match="D4311"):
            choose("distributed", None, deployment, options, 16)
    with pytest.raises(UsageError, match="D4123"):
        choose("fast", None, deployment, plain, 16)
    keyless = Deployment(parse_program(RULES.replace(" ON Heat.?room = Smoke.?room", ""), "r.dotr"))
    assert choose("auto", None, keyless, plain, 16).mode == ORDERED
