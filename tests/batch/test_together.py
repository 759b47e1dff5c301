"""Graphs of one time that follow each other are one row; what has to meet elsewhere is what is left."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark import frame_stages, read
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.spark.read import _batch
from dotr.core.deployment import Deployment
from dotr.io.sources import SourceOptions
from dotr.lang import parse_program
from tests.batch.test_local import in_one_process, output, quiet
from tests.batch.test_spark import RULES

rows = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "<a> <b> <c> .\n", "ä"])), max_size=6)


@given(st.lists(rows, max_size=5), st.sampled_from([2, 100]))
def test_rows_of_one_time_become_one(batches: list[list[tuple[int, str]]], most: int) -> None:
    notes = [(None, None, '{"letters": []}')]
    given_ = [[*((time, graph, None) for time, graph in batch)] for batch in batches]
    given_ = [[*batch, *(notes if number % 2 else [])] for number, batch in enumerate(given_)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "MOST", most)
        made = [
            row
            for batch in read.together(_batch(*map(list, zip(*b, strict=True))) for b in given_ if b)
            for row in batch.to_pylist()
        ]
    assert [row for row in made if row["note"]] == [
        {"time": None, "graphs": None, "note": notes[0][2]} for b in given_ for row in b if row[2]
    ]
    found = [(row["time"], row["graphs"]) for row in made if not row["note"]]
    flat = [row for batch in batches for row in batch]
    assert [(time, graph) for time, graphs in found for graph in graphs] == flat
    if most == 100:
        assert found == [(t, [g for _, g in some]) for t, some in groupby(flat, key=lambda row: row[0])]
    assert all(a[0] != b[0] or len(a[1]) + len(b[1]) > most for a, b in pairwise(found))


@pytest.mark.spark
def test_only_times_that_several_places_have_are_shuffled(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every instant has several graphs; of all times one is in two files. All graphs were shuffled."""
    kept = frame_stages.instants
    shuffled: list[int] = []

    def instants(frame: Any, repeated: int) -> Any:
        shuffled.append(repeated)
        return kept(frame, repeated)

    monkeypatch.setattr(frame_stages, "instants", instants)
    for name, times in (("a", range(20)), ("b", range(19, 40))):
        lines = []
        for time in times:
            for i, kind in enumerate(("smoke", "heat", "noise")):
                graph = f"<urn:x:{name}{time}{i}> <urn:x:{kind}> <urn:x:room{time % 5}> ."
                lines.append(json.dumps({"time": time, "graph": graph}) + "\n")
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    program = parse_program(RULES, "rules.dotr")
    log = open_log([str(tmp_path)], SourceOptions())
    expected = in_one_process(program, [], [str(tmp_path)], SourceOptions())
    (tmp_path / "out").mkdir()
    report = SparkRunner().run(Request(Deployment(program), log), str(tmp_path / "out"), quiet)
    assert output(tmp_path / "out", report) == expected
    assert (report.graphs, report.instants) == (3 * 41, 40)
    assert len(expected) > 20
    assert shuffled == [1]
