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


def fed(frames: list[pd.DataFrame], mapping: Path, **options: Any) -> tuple[dotr.Engine, list[dotr.Event]]:
    engine = dotr.Engine.from_text(RULES, **options)
    return engine, [event for frame in frames for event in engine.feed(frame, mapping=mapping)]


def test_rows_out_of_order_are_a_warning_with_the_lateness_that_keeps_them(mapping: Path) -> None:
    shuffled = pandas_frame().assign(temp=40.0).iloc[[2, 0, 1]]
    engine, events = fed([shuffled], mapping)
    assert len(events) == 1
    (warning,) = engine.diagnostics
    assert (warning.code, warning.severity.value) == ("D2301", "warning")
    assert "2 graphs were left out" in warning.message
    assert warning.notes == ("out of order by up to 10 min",)
    assert 'sort_values("ts")' in warning.hint
    assert 'lateness="10min"' in warning.hint
    for frame, options in (
        (shuffled, {"lateness": "10 min"}),
        (shuffled.sort_values("ts"), {}),
        (shuffled, {"corrections": "1 h"}),
    ):
        engine, events = fed([frame], mapping, **options)
        assert (sum(event.change for event in events), engine.diagnostics) == (3, [])
    assert fed([shuffled], mapping, lateness="599 s")[0].counters.late == 1


def test_late_rows_that_a_function_takes_are_no_warning(mapping: Path) -> None:
    late: list[int] = []
    engine, _ = fed([pandas_frame().iloc[::-1]], mapping, late=lambda time, _part: late.append(time))
    assert (len(late), engine.diagnostics) == (2, [])


@pytest.mark.parametrize("keep", [None, "horizon"])
def test_a_second_feed_with_what_the_first_closed_names_that(mapping: Path, keep: str | None) -> None:
    frame = pandas_frame()
    engine, _ = fed([frame, frame.iloc[:1]], mapping, keep=keep)
    (warning,) = engine.diagnostics
    assert "1 graph was left out" in warning.message
    assert warning.notes == ("1 of them: the instant was closed before this feed began",)
    assert "lateness" not in warning.hint
