"""The rules of examples/citybench find exactly what a count over the CSV values finds."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyoxigraph as ox
import pytest

import dotr

from . import brute

EXAMPLE = Path(__file__).parents[2] / "examples" / "citybench"
GRAPHS = 200


@pytest.fixture(scope="module")
def citybench(data: Path) -> Path:
    return data / "citybench"


@pytest.fixture(scope="module")
def convert() -> ModuleType:
    specification = importlib.util.spec_from_file_location("citybench_convert", EXAMPLE / "convert.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def values(citybench: Path) -> list[brute.Reading]:
    return brute.readings(citybench, GRAPHS)


def found(query: str, folder: Path) -> Iterator[dict[str, Any]]:
    engine = dotr.Engine(
        str(EXAMPLE / f"{query}.dotr"), background=[str(folder / "background.nt")], time_unit="ms"
    )
    for event in engine.feed(folder / "graphs.jsonl"):
        yield json.loads(event.to_json())


def key(event: dict[str, Any], *variables: str) -> tuple[Any, ...]:
    return (event["rule"], event["time"], *(float(event["bindings"][v]["value"]) for v in variables))


@pytest.mark.parametrize("delta", [100, 1000, 3000, 3001])
def test_rules_find_what_a_count_over_the_csv_values_finds(
    delta: int, convert: ModuleType, citybench: Path, values: list[brute.Reading], tmp_path: Path
) -> None:
    convert.main(
        [str(citybench), str(tmp_path), "--graphs", str(GRAPHS), "--delta", str(delta), "--copies", "0"]
    )
    q1 = Counter(key(event, "a", "b") for event in found("q1", tmp_path))
    assert q1 == brute.q1(values, delta)
    q2 = Counter(key(event, "c", "t", "h", "w") for event in found("q2", tmp_path))
    assert q2 == brute.q2(values, delta)


def test_counts_are_those_of_the_window() -> None:
    """The count itself, against arithmetic: 30 earlier readings are within three seconds at 10 a second."""
    values = [brute.Reading(float(n), float(n), 0.0, 0.0, 0.0) for n in range(100)]
    for delta, reach in ((100, 30), (1000, 3), (3000, 1), (3001, 0)):
        assert brute.q1(values, delta).total() == 2 * sum(min(n, reach) + 1 for n in range(100))


def test_a_padded_background_has_100k_triples_and_changes_nothing(
    convert: ModuleType, citybench: Path, values: list[brute.Reading], tmp_path: Path
) -> None:
    convert.main([str(citybench), str(tmp_path), "--graphs", "20"])
    lines = (tmp_path / "background.nt").read_text(encoding="utf-8").splitlines()
    assert len(set(lines)) > 100_000
    assert Counter(key(event, "a", "b") for event in found("q1", tmp_path)) == brute.q1(values[:20], 100)


def test_a_graph_has_ten_congestion_and_five_weather_triples(
    convert: ModuleType, citybench: Path, tmp_path: Path
) -> None:
    convert.main([str(citybench), str(tmp_path), "--graphs", "50", "--copies", "0"])
    for number, line in enumerate((tmp_path / "graphs.jsonl").read_text(encoding="utf-8").splitlines()):
        graph = json.loads(line)
        assert graph["time"] == (number + 1) * 100
        triples = set(ox.parse(graph["graph"], format=ox.RdfFormat.TURTLE))
        readings = {triple for triple in triples if "Reading-" in triple.subject.value}
        assert (len(readings), len(triples - readings)) == (10, 5)


def test_of_rows_with_one_timestamp_the_last_counts(convert: ModuleType, citybench: Path) -> None:
    rows = convert.rows(citybench / "streams" / "AarhusTrafficData182955.stream")
    twice = [row for row in rows if row["TIMESTAMP"] == "2014-08-18T01:10:00"]
    assert len(twice) > 1
    assert convert.traffic(citybench, "182955")["2014-08-18T01:10:00"] == int(twice[-1]["vehicleCount"])
