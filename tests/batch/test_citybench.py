"""CityBench Q1 and Q2: `dotr run` and both engines of `dotr batch` write the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request
from dotr.batch.spark.cluster import SparkRunner
from dotr.core.deployment import Deployment
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import SourceOptions
from dotr.io.time import UNITS
from dotr.lang import load_program
from tests.batch.test_local import Serial, in_one_process, output, quiet
from tests.bench.citybench import EXAMPLE, converter

GRAPHS = 2000


@pytest.fixture(scope="module")
def city(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's graphs, one a second, and its background."""
    folder = tmp_path_factory.mktemp("city")
    options = ["--graphs", str(GRAPHS), "--delta", "1000", "--copies", "0"]
    converter().main([str(data / "citybench"), str(folder), *options])
    return folder


@pytest.mark.spark
@pytest.mark.parametrize("query", ["q1", "q2"])
def test_every_engine_writes_the_same_bytes(query: str, city: Path, spark: Any, tmp_path: Path) -> None:
    options = SourceOptions(unit=UNITS["ms"])
    program = load_program([str(EXAMPLE / f"{query}.dotr")], read_rules_text)
    background = read_background([str(city / "background.nt")])
    log = str(city / "graphs.jsonl")
    expected = in_one_process(program, background, [log], options)
    assert len(expected) > 2 * GRAPHS
    for runner in (LocalRunner(2, Serial), SparkRunner()):
        folder = tmp_path / runner.name
        folder.mkdir()
        request = Request(Deployment(program, background), open_log([log], options))
        report = runner.run(request, str(folder), quiet)
        assert (report.graphs, report.parts > 1) == (GRAPHS, True)
        assert output(folder, report) == expected
