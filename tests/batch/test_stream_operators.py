"""The operators of a streaming frame without Spark: batches, watermarks and timers as Spark has them, kills,
and other rules on an old state.
"""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dotr.batch.log import LogListing
from dotr.batch.spark import ordered_frames
from dotr.batch.spark.distributed import Bundle, Distributed, Graphs, InstantProcessor, SlotProcessor
from dotr.batch.spark.event_rows import Lines, unpacked_rows
from dotr.batch.spark.ordered_frames import Ordered
from dotr.batch.spark.read import FindClocks, ReadContents
from dotr.batch.spark.session import own
from dotr.batch.spark.stream_bundles import GRAPHS
from dotr.batch.stream import StreamOptions
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.errors import RefusedError
from dotr.events import Clock
from dotr.io.events import format_jsonl
from dotr.io.sources import SourceOptions
from dotr.lang import parse_program
from tests.batch.test_micro_batches import RULES, SECOND, Log, graphs, text

CORES = 2
LASTING = """PREFIX : <urn:x:>
HOLD :smoke
QUERY Heat := { SELECT ?room WHERE { ?h :heat ?room . ?o :smoke ?room } }
RULE Both DEFINE { dotr_id a :Both ; :in ?room } FROM Heat WITH ?room := Heat.?room
"""
DIVIDED = """PREFIX : <urn:x:>
HOLD :smoke FOR 7 s
HOLD :noise FOR 2 s
QUERY Heat := { SELECT ?room WHERE { ?h :heat ?room . ?o :smoke ?room } }
RULE Both DEFINE { dotr_id a :Both ; :in ?room } FROM Heat WITH ?room := Heat.?room
INSERT { dotr_id :hot ?room } DELETE { ?any :smoke ?room }
RULE Calm DEFINE { dotr_id a :Calm ; :in ?room }
FROM Gone := DSTREAM { SELECT ?room WHERE { ?o :noise ?room } }
AND NOT Both WITHIN 2 s FROM Gone ON Both.?room = Gone.?room WITH ?room := Gone.?room
RULE Hot DEFINE { dotr_id a :Hot ; :by ?e } FROM H := ISTREAM { SELECT ?e ?room WHERE { ?e :hot ?room } }
AND LAST Heat WITHIN 9 s FROM H ON Heat.?room = H.?room WITH ?e := H.?e
"""
CHANGED = RULES.replace("WITHIN 5 s", "WITHIN 7 s")


class Value:
    """A value state of Spark."""

    def __init__(self) -> None:
        self.value: Any = None

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value


class Handle:
    """What Spark gives to the processor of one key."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = defaultdict(Value)
        self.timers: set[int] = set()

    def getValueState(self, name: str, _schema: str) -> Value:  # noqa: N802  # Spark's name
        return self.values[name]

    def listTimers(self) -> Iterator[int]:  # noqa: N802  # Spark's name
        return iter(sorted(self.timers))

    def deleteTimer(self, time: int) -> None:  # noqa: N802  # Spark's name
        self.timers.discard(time)

    def registerTimer(self, time: int) -> None:  # noqa: N802  # Spark's name
        self.timers.add(time)


class Operator:
    """A stateful operator: a handle for each key."""

    def __init__(self) -> None:
        self.handles: dict[int, Handle] = {}

    def run(self, made: Any, task: Any, rows: pd.DataFrame, watermark: int) -> Iterator[pd.DataFrame]:
        """Rows by key, then the timers up to the watermark."""
        time = SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark)
        keys = dict(iter(rows.groupby("slot"))) if len(rows) else {}
        for key in sorted({*keys, *self.handles}):
            handle = self.handles.setdefault(key, Handle())
            processor = made(task)
            processor.init(handle)
            if key in keys:
                yield from processor.handleInputRows((key,), iter([keys[key]]), time)
            for timer in [timer for timer in handle.listTimers() if timer <= watermark]:
                handle.deleteTimer(timer)
                yield from processor.handleExpiredTimer((key,), time, None)


def table(rows: Log) -> pa.RecordBatch:
    found = [{"time": at // SECOND, "graph": text(graph)} for at, graph in rows]
    return pa.RecordBatch.from_pylist(found, GRAPHS)


def lines_of(found: Iterable[pd.DataFrame]) -> list[str]:
    contents = [content for frame in found for content in frame["found"] if content is not None]
    batch = pa.RecordBatch.from_pydict({"found": pa.array(contents, pa.binary())})
    return [row["line"].rstrip("\n") for rows in unpacked_rows(iter([batch])) for row in rows.to_pylist()]


def plan(kind: Any, rules: str, options: StreamOptions, stream: str) -> Any:
    frame: Any = SimpleNamespace(sparkSession=None)
    source = Graphs(frame, Clock(), "urn:base:")
    more = (CORES,) if kind is Distributed else ()
    return kind(
        source, Deployment(parse_program(rules, "r.dotr")), options, Lines(Clock(), "jsonl"), stream, *more
    )


class ByPart:
    """A distributed stream."""

    def __init__(self) -> None:
        self.instants, self.slots, self.watermark, self.latest = Operator(), Operator(), 0, 0

    def batch(self, of: Any, rows: Log) -> list[str]:
        """A batch, and the one without rows that lets time go on."""
        found = []
        for some in (rows, []):
            bundles = Bundle(of._gathered, False)(iter([table(some)] if some else []))
            arrived = [frame.to_pandas() for frame in bundles]
            frame = pd.concat(arrived) if arrived else pd.DataFrame({"slot": []})
            closed = [*self.instants.run(InstantProcessor, of.instant_task(), frame, self.watermark)]
            sent = [facts[facts["slot"].notna()] for facts in closed if facts["slot"].notna().any()]
            facts = pd.concat(sent).astype({"slot": "int64"}) if sent else pd.DataFrame({"slot": []})
            found += self.slots.run(SlotProcessor, of.slot_task(), facts, self.watermark)
            times = [of.event_time.timer(at) for at, _ in some]
            self.latest = max([self.latest, *times])
            self.watermark = max(self.watermark, self.latest - of.delay)
        return lines_of(found)


class InOrder:
    """An ordered stream."""

    def __init__(self) -> None:
        self.state: Any = None

    def batch(self, of: Any, rows: Log) -> list[str]:
        def update(new: Any) -> None:
            self.state = new

        state = SimpleNamespace(exists=self.state is not None, get=self.state, update=update)
        halves = [[row for at, row in enumerate(rows) if at % 2 == half] for half in (1, 0)]
        parsed = [table(half) for half in halves if half]
        bundles = [row for batch in Bundle((0,), False)(iter(parsed)) for row in batch.to_pylist()]
        return lines_of(
            ordered_frames.taken(of.task, [(row["bundle"], row["note"]) for row in bundles], state)
        )


def expected(parts: list[tuple[str, list[Log]]], lateness: int) -> list[str]:
    """One engine, which goes on with other rules."""
    before: Pipeline | None = None
    found: list[str] = []
    for rules, batches in parts:
        engine = Pipeline(Deployment(parse_program(rules, "r.dotr")), lateness=lateness)
        if before is None:
            engine.begin(Clock())
        else:
            engine.restore(before.snapshot())
        for batch in batches:
            for time, graph in sorted(batch, key=lambda row: row[0]):
                found += [format_jsonl(event, Clock()) for event in engine.push(time, graph)]
        before = engine
    return sorted(found)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("kind", "rules", "after"),
    [
        (Distributed, RULES, RULES),
        (Distributed, RULES, CHANGED),
        (Ordered, RULES, RULES),
        (Ordered, RULES, CHANGED),
        (Ordered, LASTING, LASTING),
        (Distributed, DIVIDED, DIVIDED),
        (Distributed, DIVIDED, DIVIDED.replace("9 s", "7 s")),
    ],
)
def test_operators_find_what_one_engine_finds(kind: Any, rules: str, after: str, seed: int) -> None:
    """Batches of any size, some empty, graphs out of order by the lateness; each may be killed after its work
    and come again from the state before it; now and then another process goes on. Halfway the rules change.
    """
    random = Random(seed)
    lateness = random.choice([0, 3]) * SECOND
    log = graphs()
    if lateness:
        log = [row for _, row in sorted((row[0] + random.uniform(0, 2.9 * SECOND), row) for row in log)]
    batches: list[Log] = []
    while log:
        size = random.randint(0, 15) if lateness else random.choice([0, 6, 12])
        batches.append(log[:size])
        log = log[size:]
    batches.append([(100 * SECOND, [])])
    if not lateness:  # an instant is in one batch
        batches = together(batches)
    half = len(batches) // 2
    stream: Any = ByPart() if kind is Distributed else InOrder()
    options = StreamOptions(lateness=lateness)
    of = plan(kind, rules, options, f"{kind} {seed} 0")
    found: list[str] = []
    for number, batch in enumerate(batches):
        if number == half or random.random() < 0.2:
            now = after if number >= half else rules
            changing = StreamOptions(lateness=lateness, change_rules=number >= half)
            of = plan(kind, now, changing, f"{kind} {seed} {number}")
        if random.random() < 0.3:
            killed = copy.deepcopy(stream)
            killed.batch(of, batch)
        found += stream.batch(of, random.sample(batch, len(batch)))
    wanted = expected([(rules, batches[:half]), (after, batches[half:])], lateness)
    assert sorted(found) == wanted
    assert len(wanted) > 5


def together(batches: list[Log]) -> list[Log]:
    """The same graphs, those of one time in the batch of the first of them."""
    first: dict[int, int] = {}
    made: list[Log] = [[] for _ in batches]
    for number, batch in enumerate(batches):
        for time, graph in batch:
            made[first.setdefault(time, number)].append((time, graph))
    return made


def test_what_lasts_is_not_divided_otherwise_on_an_old_checkpoint() -> None:
    """A rule may come that reads dust, which passes; but not one that needs the smoke of all rooms, which
    each part would have had to keep.
    """
    stream = ByPart()
    divided = DIVIDED[: DIVIDED.index("INSERT")] + DIVIDED[DIVIDED.index("RULE Calm") :]
    new = "RULE New DEFINE {{ dotr_id a :New }} FROM N := ISTREAM {{ SELECT ?room WHERE {{ {} }} }}"
    assert stream.batch(plan(Distributed, divided, StreamOptions(), "a"), graphs())
    for where in ("?n :dust ?room", "?n :dust ?room . ?o :smoke ?room"):
        other = divided + new.format(where)
        of = plan(Distributed, other, StreamOptions(change_rules=True), where)
        copy.deepcopy(stream).batch(of, [(99 * SECOND, [])])
    moved = divided + new.format("?n :dust ?room . ?o :smoke ?n")
    with pytest.raises(RuntimeError) as raised:
        stream.batch(plan(Distributed, moved, StreamOptions(change_rules=True), "b"), [(99 * SECOND, [])])
    error = own(str(raised.value))
    assert isinstance(error, RefusedError)
    [found] = error.diagnostics
    assert found.code == "D5220"
    assert "what lasts is divided by other keys beside the new rules" in found.notes
    assert "--change-rules" not in found.hint


@pytest.mark.parametrize("kind", [Distributed, Ordered])
def test_other_rules_are_refused_unless_they_are_allowed(kind: Any) -> None:
    """The hint of the error is followed; before, nothing of the batch happened."""
    stream: Any = ByPart() if kind is Distributed else InOrder()
    log = graphs()
    assert stream.batch(plan(kind, RULES, StreamOptions(), "a"), log[:30])
    with pytest.raises((RuntimeError, RefusedError)) as raised:
        copy.deepcopy(stream).batch(plan(kind, CHANGED, StreamOptions(), "b"), log[30:])
    error = own(str(raised.value)) or raised.value
    assert isinstance(error, RefusedError)
    [found] = error.diagnostics
    assert (found.code, found.notes) == ("D5220", ("rule `Quiet` has changed",))
    assert "change_rules=True" in found.hint
    assert stream.batch(plan(kind, CHANGED, StreamOptions(change_rules=True), "c"), log[30:])
    late = StreamOptions(lateness=SECOND, change_rules=True)
    with pytest.raises((RuntimeError, RefusedError), match="the lateness has changed"):
        stream.batch(plan(kind, CHANGED, late, "d"), [(99 * SECOND, [])])


COUNTED = """QUERY Warm := { SELECT ?room WHERE { ?o :heat ?room } }
RULE Counted DEFINE { dotr_id a :Counted ; :count ?n }
FROM Smoke AND COUNT(*) AS ?n OVER Warm WITHIN 90 s FROM Smoke WITH ?n := ?n
"""


def test_a_rule_that_comes_back_starts_without_a_state() -> None:
    """All rules without a key are gone for a while: their slot, which no timer calls, is called once, and
    forgets them.
    """
    keyed = RULES[: RULES.index("RULE Quiet")]
    rows = graphs()
    stream = ByPart()
    found: list[str] = []
    last = [rows[41:], [(100 * SECOND, [])]]
    parts = [(keyed + COUNTED, [rows[:20]]), (keyed, [rows[20:41]]), (keyed + COUNTED, last)]
    for number, (rules, batches) in enumerate(parts):
        of = plan(Distributed, rules, StreamOptions(change_rules=True), f"back {number}")
        for batch in batches:
            found += stream.batch(of, batch)
    wanted = expected(parts, 0)
    assert sorted(found) == wanted
    assert any(json.loads(line)["rule"] == "Counted" for line in wanted)


def test_few_states_of_an_engine_are_kept() -> None:
    """Each is whole; Spark keeps those of 100 batches unless it is told."""
    settings = plan(Ordered, RULES, StreamOptions(), "kept").settings()
    assert int(settings["spark.sql.streaming.minBatchesToRetain"]) <= 10


def test_late_graphs_are_counted_and_an_end_closes_the_last_instant() -> None:
    states: list[Any] = []
    of = plan(Ordered, RULES, StreamOptions(), "late")

    def run(parts: list[ordered_frames.Part]) -> Any:
        known = states[-1] if states else None
        state = SimpleNamespace(exists=known is not None, get=known, update=states.append)
        return pd.concat(list(ordered_frames.taken(of.task, parts, state)))

    def bundle(rows: Log) -> ordered_frames.Part:
        [batch] = Bundle((0,), False)(iter([table(rows)]))
        return batch.to_pylist()[0]["bundle"], None

    run([bundle(graphs())])
    found = run([bundle([(SECOND, []), (2 * SECOND, [])])])
    assert found["late"].sum() == 2
    closed = run([(None, None)])
    assert json.loads(closed["times"].iloc[-1]) == ["39", "39", False]
    assert lines_of([run([(None, None)])]) == []


def test_archives_of_dates_have_the_clock_that_is_found_in_them() -> None:
    """What the driver is told of the first file is what workers compare the others with."""
    sink = pa.BufferOutputStream()
    times = pa.array([SECOND, 2 * SECOND], pa.timestamp("us", tz="UTC"))
    rows = {"time": times, "graph": ["<urn:x:a> <urn:x:b> <urn:x:c> .\n"] * 2}
    pq.write_table(pa.table(rows), sink)
    documents = {"path": ["a.parquet"], "content": [sink.getvalue().to_pybytes()]}
    batch = pa.RecordBatch.from_pydict(documents)
    [found] = FindClocks(SourceOptions(), True)(iter([batch]))
    clock = Clock(found["integer"][0].as_py(), found["unit"][0].as_py())
    for known in (clock, None):
        read = ReadContents(LogListing((), known, SourceOptions()))(iter([batch]))
        rows_of_it = [row for part in read for row in part.to_pylist()]
        assert [row["time"] for row in rows_of_it] == [SECOND, 2 * SECOND, None]
        assert Clock(*json.loads(rows_of_it[-1]["note"])["clock"]) == clock == Clock(integer=False)
