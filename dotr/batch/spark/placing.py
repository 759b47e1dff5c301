"""Which task gets what: parts of facts, pieces of a log, and the number of tasks at once.

Place:   used by frame_stages.py and cluster.py; reads no data.
Method:  a part's number determines its partition, which Spark takes unchanged: no two heavy parts meet by
         chance of a hash, and adaptive execution, which would join small partitions, leaves such an exchange
         alone. A reading task is a row that carries its own pieces.
Why not: the list of all pieces and a number in every task: for 10⁹ graphs every task would unpickle all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dotr.batch.fact_bundles import bundled
from dotr.batch.fact_rows import APART, FactRow, Layout
from dotr.batch.log_splits import Piece, Split
from dotr.batch.runs import PARTS
from dotr.events import Time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FACT_COLUMNS = "part bigint, time bigint, facts binary"

_GUESSED = 128
"""The limit of cores assumed for a cluster of unknown size."""


def parallelism(spark: SparkSession, asked: int | None = None) -> int:
    """Tasks that can run at once: as requested, else as Spark reports.

    Over Connect, which does not report it, `spark.default.parallelism`, else a guess from the number of
    shuffle partitions.
    """
    if asked is not None:
        return max(1, asked)
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # Connect raises several of its own kinds
        known = spark.conf.get("spark.default.parallelism", None)
    if known is not None:
        return max(1, int(known))
    return min(_GUESSED, max(1, int(spark.conf.get("spark.sql.shuffle.partitions") or 200) // 8))


def pieces_of(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """The pieces of the rows of `one_task_each`."""
    for batch in batches:
        for text in batch.column(0).to_pylist():
            yield from (Piece(*piece) for piece in json.loads(text))


def one_task_each(spark: SparkSession, splits: Sequence[Split]) -> DataFrame:
    """One row per split, each in its own partition: (pieces: JSON)."""
    pieces = [[[p.file, p.first, p.end, p.graphs, p.size] for p in split.pieces] for split in splits]
    return task_rows(spark, list(map(json.dumps, pieces)))


def task_rows(spark: SparkSession, texts: Sequence[str]) -> DataFrame:
    """One row per text, each in its own partition."""
    rows: list[Any] = list(enumerate(texts))
    frame = spark.createDataFrame(rows, "slot int, task string")
    return frame.repartitionById(len(rows), "slot").select("task")


def by_part(facts: DataFrame, marks: Sequence[FactRow], layout: Layout, first: Time, cores: int) -> DataFrame:
    """Bundles of facts, and marks, grouped by part and in order of their first times; parts are distributed
    to tasks in turn. `first`: the first instant of the log.
    """
    if marks:
        spark: SparkSession = facts.sparkSession
        rows = [row for bundles in bundled(marks) for row in bundles]
        facts = facts.unionByName(spark.createDataFrame(rows, FACT_COLUMNS))
    parts, added = layout.numbered(first)
    tasks = max(1, min(parts, cores * PARTS))
    return facts.repartitionById(tasks, _slot(added, tasks)).sortWithinPartitions("part", "time")


def _slot(added: Sequence[int], tasks: int) -> Column:
    """The partition of a part; other rows go to the first."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    groups = len(added)
    shift = (
        f"element_at(array({', '.join(f'{number}L' for number in added)}), int(pmod(part, {groups}L)) + 1)"
    )
    number = f"(part - pmod(part, {groups}L)) DIV {groups}L"
    return f.expr(f"IF(part <= {APART}L, 0, int(pmod({number} + {shift}, {tasks}L)))")
