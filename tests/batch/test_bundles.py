"""Bundles of graphs: whoever deals them out, instants meet and are closed once, as in a dictionary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest

from dotr.batch.facts import MARK
from dotr.batch.spark.distributed import Bundle
from dotr.batch.spark.frame_stages import Extract
from dotr.batch.spark.stream_bundles import GRAPHS, dealt, drained, packed_facts, unpacked, unpacked_facts
from dotr.batch.spark.stream_bundles import packed_bundle as packed
from dotr.batch.stream import LiveSlots, marks_of, places
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.errors import DataError
from dotr.events import Clock, Composite
from dotr.lang import parse_program
from tests.batch.test_live_parts import CORES, shipped, sorted_lines
from tests.batch.test_micro_batches import RULES, SECOND, graphs


def table(rows: list[tuple[int, str]]) -> pa.Table:
    return pa.Table.from_pylist([{"time": time, "graph": graph} for time, graph in rows], GRAPHS)


def _cut(log: list[tuple[int, str]], random: Random) -> Iterator[list[tuple[int, str]]]:
    while log:
        size = random.randint(1, 9)
        yield log[:size]
        log = log[size:]


@pytest.mark.parametrize("seed", range(12))
def test_graphs_out_of_order_are_closed_as_one_engine_closes_them(seed: int) -> None:
    """Tasks deal graphs out to slots; a watermark closes instants batch by batch; graphs behind it are late.
    The events are those of the pipeline over what was in time, instant by instant.
    """
    random = Random(seed)
    slots, delay = random.choice((1, 2, 3, 7)), random.choice((0, 2, 5))
    log = [(time // SECOND, "".join(f"{s} {p} {o} .\n" for s, p, o in graph)) for time, graph in graphs()]
    log = [row for _, row in sorted((row[0] + random.uniform(0, 4), row) for row in log)]
    job = shipped()
    extract = Extract(job, SECOND, None)
    live = LiveSlots(job, CORES)
    numbers = [part for some in places(job.worker().job.layout, CORES).values() for part in some]
    parts = {part: live.part(part) for part in numbers}
    open_: dict[int, list[str]] = defaultdict(list)
    states: dict[int, tuple[int | None, bytes]] = dict.fromkeys(range(slots), (None, b""))
    in_time: list[tuple[int, str]] = []
    late = naive_late = 0
    found: list[Composite] = []
    closed = -1
    for batch in [*_cut(log, random), []]:
        before = closed
        closed = max([before, *(time - delay - 1 for time, _ in in_time)]) if batch else 10**6
        for time, graph in batch:
            if time <= before:
                naive_late += 1
            else:
                in_time.append((time, graph))
                open_[time].append(graph)
        tasks = [batch[i::3] for i in range(3)]
        rows = defaultdict(list)
        closing = {time: open_.pop(time) for time in sorted(open_) if time <= closed}
        for slot, (seen, bundle) in states.items():
            drain = drained(
                [bundle, *(packed(dealt(table(task), slots)[slot]) for task in tasks)], seen, closed
            )
            for time, texts in drain.instants:
                assert sorted(map(str, texts)) == sorted(closing.pop(time))
            late += drain.late
            states[slot] = closed, packed(drain.open)
            facts = [row for row in extract.rows(drain.instants) if row[0] in parts]
            if drain.instants:
                first, last = drain.instants[0][0], drain.instants[-1][0]
                facts += marks_of(parts, first * SECOND, last * SECOND)
            for part, content in packed_facts(facts).items():
                rows[part] += unpacked_facts(content)
        assert not closing, "an instant came out of no slot"
        for part, some in rows.items():
            assert any(time == MARK for time, _ in some)
            found += parts[part].take(some, None if closed == 10**6 else closed * SECOND)
    assert late == naive_late
    pipeline = Pipeline(Deployment(parse_program(RULES, "r.dotr")))
    pipeline.begin(Clock())
    wanted: list[Composite] = []
    for time, graph in sorted(in_time):
        triples = [tuple(line.removesuffix(" .").split(" ", 2)) for line in graph.splitlines()]
        wanted += pipeline.push(time * SECOND, triples)  # type: ignore[arg-type]  # triples
    wanted += pipeline.finish()
    assert sorted(sorted_lines(found)) == sorted(sorted_lines(wanted))
    assert wanted


def test_a_bundle_is_what_it_was_made_of() -> None:
    rows = table([(-3, "a"), (2**62, "b\n"), (0, "")])
    assert unpacked(packed(rows)).equals(rows)
    assert packed(rows.slice(0, 0)) == b""
    assert unpacked(b"").num_rows == 0
    assert drained([], 5, 9).instants == []


def test_a_task_counts_what_it_deals_out() -> None:
    """One row a slot; graphs, and what was refused, are counted once. No time: an error, or counted."""
    batch = pa.RecordBatch.from_pydict({"time": [5, None, 7], "graph": ["a", "b", "c"]}, GRAPHS)
    (dealt_out,) = Bundle((3, 8), True)(iter([batch]))
    rows = dealt_out.to_pylist()
    assert [row["slot"] for row in rows] == [3, 8]
    assert [(row["graphs"], row["refused"], row["last"]) for row in rows] == [(2, 1, 7), (0, 0, 7)]
    assert sum(unpacked(row["bundle"]).num_rows for row in rows) == 2
    with pytest.raises(RuntimeError, match="D2018"):
        list(Bundle((3, 8), False)(iter([batch])))
    with pytest.raises(DataError, match="D2018"):
        Bundle((3, 8), False)._whole(batch)
    assert list(Bundle((3, 8), True)(iter([batch.slice(0, 0)]))) == []


def test_notes_of_documents_count_what_could_not_be_read() -> None:
    note = '{"letters": ["a", "b"], "time_sources": {}, "beside": 0}'
    columns = {"time": [5, None], "graph": ["a", None], "note": [None, note]}
    schema = pa.schema([*GRAPHS, ("note", pa.string())])
    (dealt_out,) = Bundle((3,), False)(iter([pa.RecordBatch.from_pydict(columns, schema)]))
    assert dealt_out.to_pylist()[0]["refused"] == 2
    assert dealt_out.to_pylist()[0]["graphs"] == 1
