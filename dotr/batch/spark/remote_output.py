"""Output of a batch to a place that only Spark can reach, complete or absent.

Place:   beside batch/output_parts.py, which does the same with local folders; the driver owns the folder,
         Spark's writers fill it.
Method:  a run is written to `DIR.part`. Spark writes to a subfolder, whose committer names only the files of
         finished tasks. Then each is moved to `DIR`, which is marked as unfinished until the run file, a
         manifest, names them all. A file is renamed once, which object stores do by copying; the folder never
         is.
Why not: write to `DIR` directly: readers could not recognise a run that failed half-way.
Bad input: D4306 a session without its own JVM (Spark Connect), which could not rename the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from dotr.batch.output_parts import RUN_FILE, UNFINISHED, part_name
from dotr.errors import EngineError, RefusedError
from dotr.io.files.outputs import unwritable
from dotr.io.output_formats import ENDINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RAW = "spark"
"""The folder inside the unfinished one that Spark writes to."""

T = TypeVar("T")


def write_remote(found: DataFrame, folder: str, format_: str) -> list[str]:
    """Write the events of `frame_stages.noted` through Spark; returns the names of the files, in order."""
    rows = found.where("note IS NULL").drop("note")
    path = f"{folder}/{_RAW}"
    if format_ == "parquet":
        rows.write.option("compression", "zstd").parquet(path)
    else:
        rows.write.option("lineSep", "\n").text(path)
    store = RemoteStore(found.sparkSession, path)
    return [f"{_RAW}/{name}" for name, size in store.files(path) if size and name.startswith("part-")]


class RemoteStore:
    """The file system of a URI, as Spark's JVM knows it. Raises EngineError D4201, D4306."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        try:
            context: Any = spark.sparkContext
            self._jvm = context._jvm
            settings = context._jsc.hadoopConfiguration()
        except Exception:  # Connect raises several of its own kinds
            raise EngineError.of(
                "D4306",
                "over Spark Connect `dotr batch` cannot name files in a remote folder",
                place=uri,
                hint="write to a folder that all workers share, or use dotr.spark.detect(…).write",
            ) from None
        self._fs = self._asked(uri, lambda: self._path(uri).getFileSystem(settings))

    def _path(self, uri: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(uri)

    def _asked(self, uri: str, question: Callable[[], T]) -> T:
        try:
            return question()
        except Exception as error:  # Py4J passes on what the store raised
            text = str(error)
            cause = next((line.strip(": ") for line in text.splitlines() if "Exception:" in line), text)
            raise unwritable(uri, OSError(cause[:300])) from None

    def files(self, uri: str) -> list[tuple[str, int]]:
        """(name, bytes) of a folder's content, by name."""
        found = self._asked(uri, lambda: list(self._fs.listStatus(self._path(uri))))
        return sorted((status.getPath().getName(), status.getLen()) for status in found)

    def exists(self, uri: str) -> bool:
        return bool(self._asked(uri, lambda: self._fs.exists(self._path(uri))))

    def is_folder(self, uri: str) -> bool:
        return bool(self._asked(uri, lambda: self._fs.getFileStatus(self._path(uri)).isDirectory()))

    def make(self, uri: str) -> None:
        self._must(uri, lambda: self._fs.mkdirs(self._path(uri)))

    def rename(self, old: str, new: str) -> None:
        self._must(new, lambda: self._fs.rename(self._path(old), self._path(new)))

    def remove(self, uri: str) -> None:
        self._must(uri, lambda: self._fs.delete(self._path(uri), True))

    def write(self, uri: str, text: str) -> None:
        """A small file, complete or absent."""

        def put() -> None:
            stream = self._fs.create(self._path(uri), True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()

        self._asked(uri, put)

    def _must(self, uri: str, step: Callable[[], Any]) -> None:
        if not self._asked(uri, step):
            raise unwritable(uri, OSError("its store refused a step"))


class RemoteFolder:
    """Owns `DIR.part` from the start of a run to `finish`, when its files move to `DIR`; like `OutputFolder`.

    Raises RefusedError D5001 at once if DIR or DIR.part is not empty and `overwrite` is not set.
    """

    def __init__(self, spark: SparkSession, uri: str, format_: str, overwrite: bool) -> None:
        self._format = format_
        self.path = uri.rstrip("/")
        self.part = f"{self.path}.part"
        self._store = RemoteStore(spark, self.path)
        for there in (self.path, self.part):
            if not self._store.exists(there):
                continue
            names = [name for name, _ in self._store.files(there)] if self._store.is_folder(there) else None
            if names == []:
                continue
            if not overwrite:
                what = "was left by a run that did not finish" if there == self.part else "exists"
                raise _refused(f"`{there}` {what}", there, "give another name, or --overwrite")
            if names is None or not {RUN_FILE, UNFINISHED} & set(names):
                raise _refused(f"`{there}` is not an output of `dotr batch`", there, "give another name")

    def open(self) -> str:
        """Make the folder of the unfinished run; returns its URI."""
        if self._store.exists(self.part):
            self._store.remove(self.part)
        self._store.make(self.part)
        self._store.write(f"{self.part}/{UNFINISHED}", "")
        return self.part

    def finish(self, files: Sequence[str], run: str) -> None:
        """Move the reported files to the folder, one rename each, and write RUN_FILE, which names them.

        What has that name is removed only now.
        """
        store, part = self._store, self.part
        sizes = {f"{_RAW}/{name}": size for name, size in store.files(f"{part}/{_RAW}")} if files else {}
        if store.exists(self.path):
            store.remove(self.path)
        try:
            store.make(self.path)
            store.write(f"{self.path}/{UNFINISHED}", "")
            manifest: list[dict[str, Any]] = []
            for number, file in enumerate(files):
                name = part_name(number, len(files), ENDINGS[self._format])
                store.rename(f"{part}/{file}", f"{self.path}/{name}")
                manifest.append({"name": name, "bytes": sizes[file]})
            store.write(f"{self.path}/{RUN_FILE}", with_manifest(run, manifest))
            store.remove(f"{self.path}/{UNFINISHED}")
        except BaseException:
            with suppress(EngineError):
                store.remove(self.path)
            raise
        with suppress(EngineError):  # the run is complete; another one removes it
            store.remove(part)

    def abandon(self) -> None:
        """Leave nothing of a failed run behind."""
        with suppress(EngineError):
            if self._store.exists(self.part):
                self._store.remove(self.part)


def with_manifest(run: str, files: Sequence[Mapping[str, Any]]) -> str:
    """The text of RUN_FILE, with the name and the bytes of every file."""
    return json.dumps(json.loads(run) | {"manifest": list(files)}, ensure_ascii=False, indent=2) + "\n"


def _refused(message: str, place: str, hint: str) -> RefusedError:
    return RefusedError.of("D5001", message, place=place, hint=hint)
