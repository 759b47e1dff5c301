"""Consecutive graphs of one time in a task, as one row.

Place:   cluster.py and remote_logs.py wrap the tasks of read_tasks.py in it; frame_stages.py shuffles the
         rest.
Method:  most logs are in order of time, so that a task reads the graphs of an instant consecutively. Only
         instants whose graphs are in several places, of one task or of several, are shuffled.
Why not: collect all graphs of a time within a task: they would stay in memory until its end.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dotr.batch.spark.failures import Batches, Work, crossing_to_driver

COLUMNS = "time bigint, graphs array<string>, note string"

MOST = 10_000
"""The approximate limit of buffered graphs of one time."""

_GRAPHS = pa.list_(pa.string())


@dataclass(frozen=True, slots=True)
class Together:
    """The rows of `read`, (time, graph, note), as COLUMNS. Notes stay separate rows."""

    read: Work

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: together(self.read(batches)))


def together(batches: Batches) -> Batches:
    waiting: list[pa.RecordBatch] = []  # graphs of one time; more may follow
    for batch in batches:
        noted = batch.column(2).is_valid()
        if batch.column(2).null_count < batch.num_rows:
            yield _notes(batch.filter(noted).column(2))
            batch = batch.filter(batch.column(2).is_null())
        if not batch.num_rows:
            continue
        rows = pa.Table.from_batches([*waiting, batch.select([0, 1])]).combine_chunks()
        times = rows.column(0).to_numpy()
        starts = np.concatenate(([0], np.flatnonzero(times[1:] != times[:-1]) + 1))
        done = int(starts[-1]) if len(times) - starts[-1] < MOST else len(times)
        if done:
            yield _instants(rows.slice(0, done), starts[starts < done])
        waiting = rows.slice(done).to_batches()
    if waiting:
        yield _instants(pa.Table.from_batches(waiting), np.zeros(1, np.int64))


def _instants(rows: pa.Table, starts: np.ndarray) -> pa.RecordBatch:
    """Rows (time, graph) whose runs of one time begin at `starts`."""
    rows = rows.combine_chunks()
    times, graphs = (rows.column(i).chunk(0) for i in range(2))
    ends = pa.py_buffer(array("i", [*starts.tolist(), rows.num_rows]))
    offsets = pa.Array.from_buffers(pa.int32(), len(starts) + 1, [None, ends])
    found = pa.Array.from_buffers(pa.int64(), len(starts), [None, pa.py_buffer(times.to_numpy()[starts])])
    return _batch(found, pa.ListArray.from_arrays(offsets, graphs), pa.nulls(len(starts), pa.string()))


def _notes(notes: pa.Array) -> pa.RecordBatch:
    return _batch(pa.nulls(len(notes), pa.int64()), pa.nulls(len(notes), _GRAPHS), notes)


def _batch(*columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=["time", "graphs", "note"])
