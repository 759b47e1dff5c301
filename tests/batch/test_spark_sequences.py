"""Sequences on Spark, by key: the events of random programs are those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import dotr
import dotr.spark
from dotr.batch.work import graph_text
from dotr.events import Clock
from dotr.io.decode.rdf import parse_triples
from tests.batch.test_spark import expected_rows, json_lines
from tests.sequences import graph_of
from tests.whole_sequences import World, run, worlds

pytestmark = pytest.mark.spark


@pytest.mark.filterwarnings("ignore:(warning|info).D:UserWarning")
@settings(
    max_examples=4,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),  # a run takes a second
)
@given(worlds(lasting=False))
def test_random_sequences_hold_on_spark(tmp_path: Path, spark: Any, world: World) -> None:
    try:
        program = world.program()
    except dotr.ProgramError:
        return
    for name, text in (("a.dotr", world.rules), ("h.lars", world.heads), ("r.dlog", world.datalog)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    rows = [(time, graph_text(parse_triples(graph_of(part)))) for time, part in world.stream][::-1]
    frame = spark.createDataFrame(rows, "time bigint, graph string")
    found = dotr.spark.detect(frame, tmp_path / "a.dotr", schema="terms").collect()
    rows_found = [row[:4] for row in json_lines(found, Clock(integer=True, unit=1_000_000))]
    assert rows_found == expected_rows(run(world, program), Clock())
