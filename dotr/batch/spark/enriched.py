"""Enriched graphs of a log, by Spark: `dotr batch --emit-state`.

Place:   a separate job beside those of frame_stages.py, over the same instants; only on request.
Method:  each task enriches its instants and writes what holds at them to its own file; it reports the file's
         name, so that files of failed attempts are not used.
Why not: rows beside those of facts, which are shuffled: enriched graphs are larger than the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from dotr.batch.arrow_batches import extract
from dotr.batch.job import Shipped
from dotr.batch.spark.failures import Batches, crossing_to_driver, shipped
from dotr.batch.spark.frame_stages import trusted_instants
from dotr.events import Clock
from dotr.io.arrow_columns import texts
from dotr.io.enriched_graphs import StatePart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_states(instants: DataFrame, job: Shipped, clock: Clock, folder: str) -> list[str]:
    """Write what holds at every instant to files in `folder`, shared by all workers; returns their names."""
    unit = clock.unit if clock.integer else 1
    found = instants.mapInArrow(shipped(_WriteStates(job, unit, folder)), "file string").collect()
    return sorted(row.file for row in found if row.file)


@dataclass(frozen=True, slots=True)
class _WriteStates:
    shipped: Shipped
    unit: int
    folder: str

    def __call__(self, batches: Batches) -> Batches:
        return crossing_to_driver(lambda: self._written(batches))

    def _written(self, batches: Batches) -> Batches:
        worker = self.shipped.worker()
        part = StatePart(self.folder, worker.job.clock)
        worker.extracting.report_states(part.write)
        try:
            for _ in extract(worker, trusted_instants(batches, self.unit)):
                pass  # facts and letters come from the job beside this one
        finally:
            worker.extracting.report_states(None)
        yield pa.RecordBatch.from_arrays([texts([part.close()])], names=["file"])
