"""Bundles of a stream: graphs, and facts of parts, many instants in one value of bytes.

Place:   spark/distributed.py and ordered_frames.py send and keep them.
Method:  a row costs Spark 3 µs to shuffle, and more to store in a state and read again. A task distributes
         its graphs over as many bundles as there are downstream tasks, by a hash of their time, so that
         graphs of one instant meet in one place. A bundle of graphs is an Arrow table; the facts of a stream
         are Python's marshal of plain values, as in batch/stream.py.
Why not: a row of state for every instant: 100,000 graphs cost the JVM 3.3 s of CPU, and 1.1 s as bundles.
"""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from dotr.batch.facts import FactRow
from dotr.events import Time

GRAPHS = pa.schema([("time", pa.int64()), ("graph", pa.string())])
"""Times as the stream writes them; graphs may be null if those in error are skipped."""

Row = tuple[Time, str]

_MARSHAL = 4
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ over the golden ratio: its product with a time has mixed upper bits."""

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


def dealt(table: pa.Table, slots: int) -> list[pa.Table]:
    """Graphs by slot; those of one time are in one slot, in every task."""
    if slots == 1:
        return [table]
    times = table.column(0).combine_chunks().to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        numbers = ((times.view(np.uint64) * _ODD) >> np.uint64(33)) % np.uint64(slots)
    return [table.filter(pa.array(numbers == slot)) for slot in range(slots)]


def packed_bundle(table: pa.Table) -> bytes:
    """Graphs as bytes; none for no graphs."""
    if not table.num_rows:
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, GRAPHS, options=_LZ4) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]  # bytes


def unpacked(content: bytes) -> pa.Table:
    """The inverse of `packed`."""
    return pa.ipc.open_stream(content).read_all() if content else GRAPHS.empty_table()


class Drained(Struct, frozen=True):
    """`instants`: the closed ones, in order; `open`: graphs of all others; `late`: how many graphs came for
    an instant closed before.
    """

    instants: Sequence[tuple[int, list[str | None]]]
    open: pa.Table
    late: int


def drained(bundles: Iterable[bytes], before: int | None, closed: int) -> Drained:
    """The result of closing all instants up to `closed`, those up to `before` having been closed earlier."""
    table = pa.concat_tables([GRAPHS.empty_table(), *map(unpacked, bundles)])
    late = 0
    if before is not None and table.num_rows:
        in_time = table.filter(pc.greater(table.column(0), before))
        late, table = table.num_rows - in_time.num_rows, in_time
    over = pc.less_equal(table.column(0), closed)
    done = table.filter(over)
    rows = sorted(zip(done.column(0).to_pylist(), done.column(1).to_pylist(), strict=True), key=itemgetter(0))
    instants = [(time, [graph for _, graph in some]) for time, some in groupby(rows, key=itemgetter(0))]
    return Drained(instants, table.filter(pc.invert(over)), late)


def packed_facts(rows: Iterable[FactRow]) -> dict[int, bytes]:
    """Part → its rows, as bytes."""
    parts: dict[int, tuple[list[Time], list[str]]] = defaultdict(lambda: ([], []))
    for part, time, text in rows:
        times, texts = parts[part]
        times.append(time)
        texts.append(text)
    return {part: marshal.dumps(found, _MARSHAL) for part, found in parts.items()}


def unpacked_facts(content: bytes) -> Iterable[Row]:
    """The rows of a part, the inverse of `packed_facts`."""
    times, texts = marshal.loads(content)  # noqa: S302  # our own plain values; nothing is executed
    return zip(times, texts, strict=True)
