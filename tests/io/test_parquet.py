"""Archives that others wrote: as Spark and pandas write them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dotr.errors import DataError
from dotr.events import Clock
from dotr.io.decode.parquet import ArchiveFile, ArchiveWriter
from dotr.io.files.sources import Sources

MOMENT = 1_767_254_412_500_000
"""2026-01-01T08:00:12.5Z."""


def log(path: Path, kind: Any, *times: int | None, **options: Any) -> list[int]:
    graphs = pa.array(["<urn:x:a> <urn:x:b> <urn:x:c> ."] * len(times))
    table = pa.table({"time": pa.array(times, kind), "graph": graphs})
    pq.write_table(table, path / "log.parquet", **options)
    return [graph.time for graph in Sources([str(path / "log.parquet")])]


def test_timestamps_as_spark_writes_them_are_utc(tmp_path: Path) -> None:
    """They have 96 bits and no zone, and were refused for the lack of one."""
    kind = pa.timestamp("us", tz="UTC")
    assert log(tmp_path, kind, MOMENT, use_deprecated_int96_timestamps=True) == [MOMENT]
    assert log(tmp_path, kind, MOMENT) == [MOMENT]


def test_timestamps_as_pandas_writes_them_are_exact(tmp_path: Path) -> None:
    kind = pa.timestamp("ns", tz="Europe/Berlin")
    assert log(tmp_path, kind, MOMENT * 1000) == [MOMENT]
    with pytest.raises(DataError, match=r"D2105.*finer than a microsecond"):
        log(tmp_path, kind, MOMENT * 1000 + 1)


def test_timestamps_without_a_zone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"D2103"):
        log(tmp_path, pa.timestamp("us"), MOMENT)


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.uint32(), pa.int16()])
def test_integers_of_any_width_are_times(tmp_path: Path, kind: Any) -> None:
    assert log(tmp_path, kind, 7, 12) == [7_000_000, 12_000_000]


def test_a_row_without_time_says_which(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"D2018(.|\n)*row group 0, row 2"):
        log(tmp_path, pa.int64(), 7, None)


def test_a_damaged_archive_is_reported_and_never_read_as_another(tmp_path: Path) -> None:
    """Bytes changed anywhere: a diagnostic, or what was written; no traceback, no other graph."""
    archive = ArchiveWriter(str(tmp_path / "log.parquet"), Clock(True, 1000))
    for i in range(300):
        archive.add(i * 1_000_000, [(f"<urn:x:{i}>", "<urn:p>", f'"ä{i}"')])
    archive.close()
    content = (tmp_path / "log.parquet").read_bytes()
    written = [row[:2] for row in ArchiveFile("log", 1000, content).graphs()]
    random, reported = Random(3), 0
    for _ in range(300):
        damaged = bytearray(content)
        damaged[random.randrange(len(content))] ^= 1 << random.randrange(8)
        if random.random() < 0.1:
            del damaged[random.randrange(len(content)) :]
        try:
            found = ArchiveFile("log", 1000, bytes(damaged))
            assert [row[:2] for row in found.graphs()] == written
        except DataError:
            reported += 1
    assert reported > 100
