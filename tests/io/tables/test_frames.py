"""Frames are fed as files are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import dotr
from dotr.errors import DataError, UsageError

RULES = """PREFIX : <http://example.org/>
RULE Hot DEFINE { dotr_e a :Hot ; :in ?s ; :celsius ?c }
FROM Reading := { SELECT ?s ?c WHERE { ?s :celsius ?c FILTER(?c > 30) } }
WITH ?s := Reading.?s, ?c := Reading.?c
"""
MAPPING = """# time: ts
PREFIX : <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
:{room} :celsius {temp}^^xsd:double .
"""
STAMPS = ["2026-07-01T10:00:00+00:00", "2026-07-01T10:05:00+00:00", "2026-07-01T10:10:00+00:00"]


def pandas_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {"ts": pd.to_datetime(STAMPS), "room": ["r1", "r2", "r3"], "temp": [20.5, None, 41.0]},
        index=[7, 8, 9],
    )


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    file = tmp_path / "r.map"
    file.write_text(MAPPING)
    return file


def found(frames: list[Any], mapping: Path) -> list[tuple[str, float]]:
    engine = dotr.Engine.from_text(RULES)
    return [(event.time.isoformat(), float(event["c"])) for event in engine.feed(*frames, mapping=mapping)]


def test_frames_of_pandas_and_arrow_give_the_same_events(mapping: Path) -> None:
    frame = pandas_frame()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    expected = [(STAMPS[2], 41.0)]
    for frames in ([frame], [table], table.to_batches(), [table.slice(0, 2), table.slice(2)]):
        assert found(frames, mapping) == expected


def test_a_row_in_error_names_itself(mapping: Path) -> None:
    frame = pandas_frame()
    frame["temp"] = ["20", "x", "1"]
    with pytest.raises(DataError) as error:
        found([frame], mapping)
    assert error.value.diagnostics[0].place == "<frame>:2, column `temp`"


def test_what_is_not_a_table_is_refused(mapping: Path) -> None:
    for frames in ([[1, 2]], [pandas_frame(), "a.csv"]):
        with pytest.raises(UsageError) as error:
            found(frames, mapping)
        assert error.value.diagnostics[0].code == "D4153"
    with pytest.raises(UsageError):
        list(dotr.Engine.from_text(RULES).feed(pandas_frame()))


def test_files_are_fed_through_a_mapping_with_a_zone(mapping: Path, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("ts,room,temp\n2026-07-01T12:00:00,r1,50\n")
    engine = dotr.Engine.from_text(RULES)
    events = list(engine.feed(tmp_path / "r.csv", mapping=mapping, time_zone="Europe/Berlin"))
    assert [event.time.isoformat() for event in events] == ["2026-07-01T10:00:00+00:00"]
