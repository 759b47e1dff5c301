"""Files that the driver writes and Spark copies to every executor, once: a large background, to be mapped.

Place:   cluster.py, dataframe.py and distributed.py pass it to batch/job.py, whose workers open the file.
Method:  SparkFiles, or an artifact of the session under Connect; an executor fetches a file before its first
         task that may need it, and its Python workers share the mapped copy. The driver's own copy stays
         until its process ends: executors come late.
Why not: a broadcast: every Python worker would unpickle its own copy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dotr.batch.job import Place
from dotr.io.files.whole_files import write_whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkFile(Struct, frozen=True):
    """A file that Spark has copied."""

    name: str

    def path(self) -> str:
        """Its path on this executor."""
        from pyspark import SparkFiles  # noqa: PLC0415  # start-up

        return SparkFiles.get(self.name)


def place(spark: SparkSession) -> Place:
    """Takes files for the executors of a session."""
    return partial(_added, spark)


def _added(spark: SparkSession, name: str, parts: Sequence[Any]) -> SparkFile:
    path = os.path.join(_folder().name, name)
    if not os.path.exists(path):
        write_whole(path, parts)
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        spark.addArtifacts(path, file=True)
    else:
        spark.sparkContext.addFile(path)
    return SparkFile(name)


@cache
def _folder() -> TemporaryDirectory[str]:
    """The folder of this process; removed when it ends."""
    return TemporaryDirectory(prefix="dotr-")
