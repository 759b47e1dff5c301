"""Archives that others wrote: as Spark and pandas write them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.events import Clock
from dotr.io.decode.parquet import ArchiveFile, ArchiveWriter
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import Bookmark, Item, ReadEvent, SourceOptions
from dotr.io.reader import FileReader
from dotr.io.sources import Sources

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
    assert log(tmp_path, kind, MOMENT * 1000 + 1) == [MOMENT]


def test_timestamps_without_a_zone_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"D2103"):
        log(tmp_path, pa.timestamp("us"), MOMENT)


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.uint32(), pa.int16()])
def test_integers_of_any_width_are_times(tmp_path: Path, kind: Any) -> None:
    assert log(tmp_path, kind, 7, 12) == [7_000_000, 12_000_000]


USUAL = '<urn:x:a> <urn:x:b> "{}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
ROWS = st.one_of(
    st.lists(st.integers(0, 3).map(USUAL.format), max_size=3).map("".join),
    st.sampled_from(
        ["", "<urn:x:a> <urn:x:b> <urn:x:c> ."] * 9 + ["_:b <urn:x:b> _:c .", "<a> .", "<urn:x:a>"]
    ),
)


@given(st.data())
def test_rows_read_together_are_the_rows_read_one_by_one(data: st.DataObject) -> None:
    """Damaged ones, rows without a graph, messages, and a bookmark anywhere among them."""
    odd = data.draw(st.sampled_from([False, False, True]))
    rows = data.draw(st.lists(st.one_of(ROWS, st.none()) if odd else ROWS, min_size=1, max_size=20))
    count = len(rows)
    times = data.draw(
        st.lists(
            st.one_of(st.integers(0, 9), st.none()) if odd else st.integers(0, 9),
            min_size=count,
            max_size=count,
        )
    )
    columns = {"time": pa.array(times, pa.int64()), "graph": pa.array(rows, pa.string())}
    if data.draw(st.booleans()):
        inserts = data.draw(st.lists(st.one_of(ROWS, st.none()), min_size=count, max_size=count))
        columns["insert"] = pa.array(inserts if odd else [None] * count, pa.string())
    written = BytesIO()
    pq.write_table(pa.table(columns), written, row_group_size=data.draw(st.integers(1, 20)))
    skip, fail = data.draw(st.integers(0, count)), data.draw(st.booleans())

    def read() -> tuple[list[Item], list[str], dict[str, int]]:
        found: list[Item] = []
        wrong: list[str] = []
        options, policy = SourceOptions(), ErrorPolicy(fail=fail)
        reader = FileReader(
            "log.parquet",
            options,
            options.extractor(),
            policy,
            None,
            Bookmark("graph", skip),
            written.getvalue(),
        )
        try:
            for item in reader.items():
                found.append(item._replace(error=None) if isinstance(item, ReadEvent) else item)
                wrong += [str(item.error)] if isinstance(item, ReadEvent) and item.error else []
        except DataError as error:
            wrong.append(str(error))
        return found, wrong, reader.extractor.time_sources

    with patch("dotr.io.decode.parquet.MANY", data.draw(st.integers(1, 8))):
        together = read()
    with patch("dotr.io.decode.plain.PlainGraphs.parse", return_value=None):
        assert together == read()


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

    def read(archive: ArchiveFile) -> list[Any]:
        return [row for times, parts, _place in archive.graphs() for row in zip(times, parts, strict=True)]

    written = read(ArchiveFile("log", 1000, content))
    random, reported = Random(3), 0
    for _ in range(300):
        damaged = bytearray(content)
        damaged[random.randrange(len(content))] ^= 1 << random.randrange(8)
        if random.random() < 0.1:
            del damaged[random.randrange(len(content)) :]
        try:
            assert read(ArchiveFile("log", 1000, bytes(damaged))) == written
        except DataError:
            reported += 1
    assert reported > 100
