"""Times by the statistics of row groups: what they say is so, and nothing is said where it might not be."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dotr.batch.archives import known_times, share_times
from dotr.batch.log import Piece, Split, open_log, packed
from dotr.io.sources import SourceOptions


def log(tmp_path: Path, times: Any, rows: int = 10) -> tuple[Split, ...]:
    path = tmp_path / "log.parquet"
    table = pa.table(
        {"time": times, "graph": [f"<urn:x:{i}> <urn:p> <urn:o> .\n" for i in range(len(times))]}
    )  # type: ignore[arg-type]
    pq.write_table(table, path, row_group_size=rows)
    return open_log([str(path)], SourceOptions()).splits


def test_sorted_times_need_not_be_read(tmp_path: Path) -> None:
    splits = log(tmp_path, list(range(100, 200)))
    found = known_times(splits)
    assert found is not None
    assert (found.graphs, found.first, found.last) == (100, 100_000_000, 199_000_000)
    quantiles = found.quantiles(4)
    assert len(quantiles) == 4
    for quantile, true in zip(quantiles, (100, 125, 150, 175), strict=True):
        assert abs(quantile / 1_000_000 - true) < 2


def test_timestamps_are_in_microseconds(tmp_path: Path) -> None:
    stamps = pa.array(
        [datetime(2026, 1, 1, 0, 0, i, tzinfo=UTC) for i in range(30)], pa.timestamp("ms", "UTC")
    )
    splits = log(tmp_path, stamps)
    found = known_times(splits)
    assert found is not None
    assert found.last - found.first == 29_000_000
    assert found.first == int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6)


@pytest.mark.parametrize(
    "times",
    [
        pytest.param([*range(30), 29], id="a time on both sides of a cut"),
        pytest.param([i * 7 % 31 for i in range(31)], id="no order"),
    ],
)
def test_times_that_tasks_may_share_are_read(times: list[int], tmp_path: Path) -> None:
    splits = log(tmp_path, times)
    assert known_times(splits) is not None
    assert share_times(splits)


def test_one_task_shares_no_time_with_itself(tmp_path: Path) -> None:
    splits = log(tmp_path, [i * 7 % 31 for i in range(31)])
    found = known_times(splits)
    assert found is not None
    assert not share_times(packed(splits, 1))
    assert (found.first, found.last) == (0, 30_000_000)


def test_files_that_say_nothing_are_read(tmp_path: Path) -> None:
    assert known_times([Split((Piece("a.parquet", 0, 1, 5, 10),))]) is None
    assert known_times(log(tmp_path, [*range(15), None, *range(16, 31)])) is None, "a row without a time"


def test_graphs_between_two_times_are_about_so_many(tmp_path: Path) -> None:
    found = known_times(log(tmp_path, [*range(30), *range(20, 40), 1000]))
    assert found is not None
    micros = 1_000_000
    assert found.between(0, 1001 * micros) == 51
    assert abs(found.between(5 * micros, 12 * micros) - 7) <= 2
    assert abs(found.between(20 * micros, 30 * micros) - 20) <= 3
    assert found.between(500 * micros, 900 * micros) == 0
