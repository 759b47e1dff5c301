"""Functions that run in Spark's workers: an Executor of the standard library over a session.

Place:   cluster.py passes it to the runner of batch/local.py for what lasts, whose rounds are functions over
         files that every worker sees.
Method:  a function with its arguments is a job of one task, a row of bytes in and one out; jobs are submitted
         by threads, so that Spark runs as many at once as there are cores.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from dotr.batch.spark import failures
from dotr.batch.spark.failures import Batches, crossing_to_driver, shipped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


class SparkExecutor(Executor):
    """Owns the threads that submit jobs; `tasks` at once."""

    def __init__(self, spark: SparkSession, tasks: int) -> None:
        self._spark = spark
        self._threads = ThreadPoolExecutor(tasks)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return self._threads.submit(self._run, partial(fn, *args, **kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)

    def _run(self, work: Callable[[], T]) -> T:
        content = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
        frame = self._spark.createDataFrame([(content,)], "work binary").coalesce(1)
        try:
            [row] = frame.mapInArrow(shipped(called), "result binary").collect()
        except Exception as error:  # Py4J and gRPC raise anything
            raise failures.as_own_error(error) from None
        result: T = pickle.loads(row.result)  # noqa: S301  # our own worker's bytes
        return result


def called(batches: Batches) -> Batches:
    """Batches of functions as batches of their results."""
    return crossing_to_driver(lambda: _called(batches))


def _called(batches: Batches) -> Batches:
    for batch in batches:
        for content in batch.column(0).to_pylist():
            work = pickle.loads(content)  # noqa: S301  # our own driver's bytes
            result = pickle.dumps(work(), pickle.HIGHEST_PROTOCOL)
            yield pa.RecordBatch.from_arrays([pa.array([result], pa.binary())], ["result"])
