"""Parts that go on from batch to batch: however batches are cut and parts restored, the events of one run."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from dotr.batch.facts import APART
from dotr.batch.stream import (
    DISTRIBUTED,
    ORDERED,
    LiveSlots,
    StreamOptions,
    choose,
    compare,
    marks_of,
    meta_of,
    obstacles,
    places,
    slots,
    stream_layout,
)
from dotr.batch.work import Shipped, Treatment, extract, make_job, ship
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.errors import EngineError, RefusedError, UsageError
from dotr.events import Clock, Composite, Time
from dotr.io.events import format_jsonl
from dotr.lang import parse_program
from tests.batch.test_micro_batches import RULES, SECOND, graphs, in_one_go

CORES = 2


def shipped(rules: str = RULES) -> Shipped:
    deployment = Deployment(parse_program(rules, "r.dotr"))
    layout = stream_layout(deployment, CORES)
    return ship(make_job(deployment, Clock(), layout, Treatment(shared=False)))


def numbers(job: Shipped) -> list[int]:
    """All parts."""
    return [part for parts in places(job.worker().job.layout, CORES).values() for part in parts]


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
    live = LiveSlots(job, CORES)
    states: dict[int, tuple[int, bytes]] = {}
    found: list[Composite] = []
    while times:
        count = random.randint(1, 9)
        batch, times = times[:count], times[count:]
        rows = defaultdict(list)
        for part, time, text in extract(worker, [(time, instants[time]) for time in batch]):
            if part > APART:
                rows[part].append((time, text))
        for part, time, text in marks_of(numbers(job), batch[0], batch[-1]):
            rows[part].append((time, text))
        bound = random.choice([None, times[0] - 1]) if times else None
        for place, parts in places(worker.job.layout, CORES).items():
            token, content = states.get(place, (None, b""))
            alive = live.taken(place, token)
            if alive is None or random.random() < 0.3:
                alive = live.fresh(place)
                if content:
                    alive.restore(content)
            found += alive.take({part: random.sample(rows[part], len(rows[part])) for part in parts}, bound)
            token = random.getrandbits(60)
            states[place] = token, alive.snapshot()
            live.give_back(place, token if random.random() < 0.8 else 0, alive)
    wanted = in_one_go(graphs()).splitlines()
    assert len(wanted) > 15
    assert sorted(sorted_lines(found)) == sorted(wanted)


def test_a_snapshot_of_something_else_is_refused() -> None:
    slot = LiveSlots(shipped(), CORES).fresh(0)
    for content in (b"dotr part 0\nabc", slot.snapshot()[:-3]):
        with pytest.raises(EngineError, match="D5221"):
            slot.restore(content)


def test_a_tick_is_waited_for() -> None:
    """The part of EVERY wants to be called at its next tick, that of keys never."""
    job = shipped()
    live = LiveSlots(job, CORES)
    due = []
    for part in numbers(job):
        found = live.part(part)
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
    found = LiveSlots(job, CORES).part(part)

    def marks(first: Time, last: Time) -> list[tuple[Time, str]]:
        return [(time, text) for _, time, text in marks_of([part], first, last)]

    assert found.due() is None
    assert found.take([*marks(4 * SECOND, 4 * SECOND), (time, text)], 5 * SECOND) == []
    assert found.due() == 14 * SECOND
    again = LiveSlots(job, CORES).part(part)
    again.restore([found.snapshot()], 6 * SECOND)
    assert again.due() == 14 * SECOND
    assert [event.time for event in again.take(marks(20 * SECOND, 20 * SECOND), 19 * SECOND)] == [14 * SECOND]
    assert again.due() is None


def test_slots_deal_parts_out_in_turn() -> None:
    """By Spark's hash of a bigint; test_distributed_streams.py asks Spark."""
    layout = stream_layout(Deployment(parse_program(RULES, "r.dotr")), 8)
    known = places(layout, 8)
    assert [len(parts) for parts in known.values()] == [1] * 33
    found = slots(known, 4)
    assert list(found) == list(known)
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
        assert obstacles(deployment, options)
        with pytest.raises(UsageError, match="D4311"):
            choose("distributed", None, deployment, options, 16)
    with pytest.raises(UsageError, match="D4123"):
        choose("fast", None, deployment, plain, 16)
    keyless = Deployment(parse_program(RULES.replace(" ON Heat.?room = Smoke.?room", ""), "r.dotr"))
    assert choose("auto", None, keyless, plain, 16).mode == ORDERED


NOISE = """QUERY Noise := { SELECT ?room WHERE { ?o :noise ?room } }
"""
AGAIN = """RULE Again DEFINE { dotr_id a :Again ; :in ?room ; :count ?n } FROM Smoke
AND COUNT(*) AS ?n OVER Noise WITHIN 9 s FROM Smoke ON Noise.?room = Smoke.?room
WITH ?room := Smoke.?room, ?n := ?n
"""
LOUD = """RULE Loud DEFINE { dotr_id a :Loud ; :count ?n }
FROM EVERY 2 s AS Tick AND COUNT(*) AS ?n OVER Noise WITHIN 9 s FROM Tick WITH ?n := ?n
"""
BOTH = """RULE Both DEFINE { dotr_id a :Both ; :count ?n }
FROM EVERY 4 s AS Tick AND COUNT(*) AS ?n OVER Noise WITHIN 9 s FROM Tick AND LAST Smoke WITHIN 6 s FROM Tick
WITH ?n := ?n
"""
MOVING = """RULE Beat DEFINE { dotr_id a :Beat } FROM EVERY 2 s AS Tick AND EACH Alarm WITHIN 9 s FROM Tick
"""
CHANGES = {
    "a limit": (RULES, RULES.replace("WITHIN 5 s", "WITHIN 7 s")),
    "more rules": (RULES, RULES + NOISE + AGAIN + LOUD),
    "fewer rules": (RULES + NOISE + LOUD + AGAIN, RULES),
    "no rule of a group": (RULES + NOISE + AGAIN, RULES[: RULES.index("RULE Quiet")]),
    "groups that become one": (RULES + NOISE + LOUD, RULES + NOISE + AGAIN + LOUD + BOTH),
    "a group that falls apart": (RULES + NOISE + LOUD + BOTH, RULES + NOISE + LOUD),
    "a rule that comes back": (RULES, RULES[: RULES.index("RULE Quiet")], RULES),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("change", CHANGES)
def test_other_rules_go_on_as_in_one_engine(change: str, seed: int) -> None:
    """Until a batch the parts are those of some rules, then of others, made from their bytes. One engine that
    goes on with other rules finds the same.
    """
    random = Random(seed)
    instants: dict[Time, list[list[tuple[str, str, str]]]] = defaultdict(list)
    for time, graph in graphs():
        instants[time].append(graph)
    times = sorted(instants)
    ends = sorted(random.sample(range(5, len(times) - 5), len(CHANGES[change]) - 1))
    cuts = zip(CHANGES[change], [0, *ends], [*ends, len(times)], strict=True)
    states: dict[int, bytes] = {}
    found: list[Composite] = []
    wanted: list[Composite] = []
    pipeline: Pipeline | None = None
    for rules, start, end in cuts:
        job = shipped(rules)
        live = LiveSlots(job, CORES)
        slots_ = {place: live.fresh(place) for place in places(job.worker().job.layout, CORES)}
        for place in states:
            slots_[place].restore(states[place])
        some = times[start:end]
        while some:
            count = random.randint(1, 6)
            batch, some = some[:count], some[count:]
            rows: dict[int, list[tuple[Time, str]]] = defaultdict(list)
            for part, time, text in extract(job.worker(), [(time, instants[time]) for time in batch]):
                if part > APART:
                    rows[part].append((time, text))
            for part, time, text in marks_of(numbers(job), batch[0], batch[-1]):
                rows[part].append((time, text))
            for slot in slots_.values():
                found += slot.take(rows, batch[-1])
        states = {place: slot.snapshot() for place, slot in slots_.items()}
        engine = Pipeline(Deployment(parse_program(rules, "r.dotr")))
        if pipeline is None:
            engine.begin(Clock())
        else:
            engine.restore(pipeline.snapshot())
        for time in times[start:end]:
            for graph in instants[time]:
                wanted += engine.push(time, graph)
        wanted += engine.advance(times[end - 1])
        pipeline = engine
    assert sorted(sorted_lines(found)) == sorted(sorted_lines(wanted))
    assert len({event.rule for event in wanted}) > 1


def test_a_rule_whose_key_changes_is_refused() -> None:
    """A new rule looks at Alarm at ticks, which have no key: the facts of Alarm are in other parts then."""
    before, after = (
        meta_of(Deployment(parse_program(rules, "r.dotr")), StreamOptions(), DISTRIBUTED)
        for rules in (RULES, RULES + MOVING)
    )
    assert not compare(before, before, "x")
    with pytest.raises(RefusedError, match="D5220") as raised:
        compare(before, after, "x", changing=True)
    [found] = raised.value.diagnostics
    assert "rule `Alarm` is partitioned by another key beside the new rules" in found.notes
    assert "--change-rules" not in found.hint
    with pytest.raises(RefusedError, match="--parallelism 2 "):
        compare({**before, "cores": 2}, {**before, "cores": 4}, "x", changing=True)
